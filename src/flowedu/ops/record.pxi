# What the tape remembers of a call (part of core.pyx; the walk back is autograd/tape.pyx).

@cython.freelist(128)
cdef class Node:
    """One recorded call: what ran, where its inputs came from, and the values its gradient rules asked for."""


cdef inline object edge_of(TensorBase x):
    return None if not x.requires_grad_ else x if x.node is None else x.node


cdef tape(OpBase op, tuple inputs, tuple attrs, Entry e, result):
    cdef int n = len(inputs), i
    cdef Node node
    cdef TensorBase y
    cdef list saved
    global sequence
    if not e.differentiable:
        return
    if not op.any_rule and not differentiable_inputs(op, inputs):
        return
    node = Node.__new__(Node)
    node.op, node.attrs, node.specs, node.shapes = op, attrs, e.specs, e.in_shapes
    sequence += 1
    node.seq = sequence
    if n == 1:
        node.edges = (edge_of(<TensorBase>inputs[0]),)
        node.slots[0] = (<TensorBase>inputs[0]).out_index
    elif n == 2:
        node.edges = (edge_of(<TensorBase>inputs[0]), edge_of(<TensorBase>inputs[1]))
        node.slots[0], node.slots[1] = (<TensorBase>inputs[0]).out_index, (<TensorBase>inputs[1]).out_index
    else:
        node.edges = tuple([edge_of(<TensorBase>x) for x in inputs])
        if n > 4:
            node.more = [(<TensorBase>x).out_index for x in inputs]
        else:
            for i in range(n):
                node.slots[i] = (<TensorBase>inputs[i]).out_index
    if op.variadic:
        node.saved = inputs if op.saved_inputs else NOTHING
    elif len(op.saved) == 0:
        node.saved = NOTHING
    else:
        saved = []
        for i in op.saved:                             # i >= 0: input i; i < 0: output ~i
            if i >= 0:
                saved.append(inputs[i])
            else:                                      # an alias: the output must not keep itself alive
                saved.append(alias_of(<TensorBase>result if e.nout == 1 else <TensorBase>result[~i]))
        node.saved = tuple(saved)
    if e.nout == 1:
        y = <TensorBase>result
        if y.v.dtype <= 1 or y.v.dtype == FE_F16:
            y.node, y.requires_grad_ = node, True
    else:
        for i in range(e.nout):
            y = <TensorBase>result[i]
            if y.v.dtype <= 1 or y.v.dtype == FE_F16:
                y.node, y.out_index, y.requires_grad_ = node, i, True


cdef bint differentiable_inputs(OpBase op, tuple inputs):
    """Whether an input that requires a gradient has a rule."""
    cdef int i
    for i in range(len(inputs)):
        if (<TensorBase>inputs[i]).requires_grad_ and op.rules.get(op.inputs[0 if op.variadic else i]) is not None:
            return True
    return False
