# memory.may_take
def reusable(self, node, places, names, number):
    spec = node.outputs[0].spec
    for p, name, x in zip(places, names, node.inputs):
        if (name in node.op.inplace and p.spec == spec and p.contiguous and p.buffer.kind == "temp" and not p.offset
                and p.buffer.nbytes == spec.nbytes and self.last_read.get(base(x), -1) <= number):
            return p
    return None
