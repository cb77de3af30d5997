# memory.may_take
def reusable(self, node, places, names, number):
    spec = node.outputs[0].spec
    for p, x in zip(places, node.inputs):
        if node.op.inplace and p.spec == spec and p.contiguous and p.buffer.kind == "temp" and not p.offset \
                and p.buffer.nbytes == spec.nbytes and self.last_read.get(base(x), -1) <= number \
                and node.inputs.count(x) == 1 and sum(q.buffer is p.buffer for q in places) == 1:
            return p
    return None
