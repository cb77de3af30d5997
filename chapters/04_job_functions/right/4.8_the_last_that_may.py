def reusable(self, node, places, names, number):
    out, took = node.outputs[0], None
    for i, x in enumerate(node.inputs):
        at = places[i]
        if names[i] not in node.op.inplace or self.last_read.get(base(x), -1) > number:
            continue
        if at.buffer.kind != "temp" or at.offset != 0 or at.buffer.nbytes != out.spec.nbytes:
            continue
        if at.spec != out.spec or not at.contiguous:
            continue
        if [p.buffer is at.buffer for p in places].count(True) > 1 or node.inputs.count(x) > 1:
            continue
        took = at
    return took
