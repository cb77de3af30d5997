# memory.may_take
def reusable(self, node, places, names, number):
    spec = node.outputs[0].spec
    for p, name, x in zip(places, names, node.inputs):
        if (name in node.op.inplace and p.spec == spec and p.contiguous and node.inputs.count(x) == 1
                and not any(q is not p and q.buffer is p.buffer for q in places)
                and self.last_read.get(base(x), -1) <= number):
            return p
    return None
