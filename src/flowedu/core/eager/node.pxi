# Chapter 2: the nodes of the tape (part of dispatch.pyx; traversed by core/grad/tape.pyx).

@cython.freelist(128)
cdef class TapeNode:
    """One recorded call: its op, the nodes of its inputs, and the values saved for its rules.

    Users see it as `grad_fn`. Its methods are in node_names.py and hooks.py of tensor/gradients/.
    """

    @property
    def op(self):
        return None if self.entry is None else self.entry.op

    @property
    def attrs(self):
        return () if self.entry is None else self.entry.attrs

    @property
    def shapes(self):
        """Shapes of the inputs."""
        return self.custom.shapes if self.entry is None else self.entry.in_shapes

    @property
    def outputs(self):
        """Number of outputs of the call."""
        return self.custom.outputs if self.entry is None else self.entry.nout

    cpdef int slot(self, int i):
        """Return the position of input i among the outputs of edges[i]."""
        return self.slots[i] if self.more is None else self.more[i]

    def __repr__(self):
        return f"<{self.name()}>"

    def name(self):
        """Return the name of the node, such as `broadcast_add_backward`."""
        if filled.node_name is not None:
            return filled.node_name(self)
        return f"{self.custom.name if self.entry is None else self.op.name}_backward"

    @property
    def next_functions(self):
        """One pair (node, output number) per input; leaves have an accumulate_grad node."""
        return filled.node_next(self)

    def register_hook(self, hook):
        """Call `hook(grad_inputs, grad_outputs)` after this node; it may return new grad_inputs."""
        return filled.node_hook(self, "after", hook)

    def register_prehook(self, hook):
        """Call `hook(grad_outputs)` before this node; it may return new grad_outputs."""
        return filled.node_hook(self, "before", hook)


cdef inline object get_edge(TensorBase x):
    return None if not x.flags & TRACKED else x if x.node is None else x.node


cdef inline bint has_gradient(int32_t dtype) noexcept:
    return is_float(dtype) or dtype == FE_F16 or dtype == FE_BF16


cdef int set_output(TensorBase y, TapeNode node, int out_index, bint tracked) except -1:
    """Make y output number `out_index` of `node`, unless y has an integer dtype."""
    if node is None or has_gradient(y.v.dtype):
        y.node, y.out_index = node, out_index
        set_flag(y, TRACKED, tracked)
    return 0


cdef int copy_history(TensorBase x, TensorBase y) except -1:
    """Give x the autograd history of y."""
    x.node, x.out_index = y.node, y.out_index
    set_flag(x, TRACKED, y.flags & TRACKED)
    return 0


cdef int set_edges(TapeNode node, tuple inputs) except -1:
    """Store the nodes, or leaves, of the inputs."""
    cdef int n = len(inputs), i
    global sequence
    sequence += 1
    node.seq = sequence
    if n == 1:
        node.edges = (get_edge(<TensorBase>inputs[0]),)
        node.slots[0] = (<TensorBase>inputs[0]).out_index
    elif n == 2:
        node.edges = (get_edge(<TensorBase>inputs[0]), get_edge(<TensorBase>inputs[1]))
        node.slots[0] = (<TensorBase>inputs[0]).out_index
        node.slots[1] = (<TensorBase>inputs[1]).out_index
    else:
        node.edges = tuple([get_edge(<TensorBase>x) for x in inputs])
        if n > 4:
            node.more = [(<TensorBase>x).out_index for x in inputs]
        else:
            for i in range(n):
                node.slots[i] = (<TensorBase>inputs[i]).out_index
    return 0


cdef int set_saved(TapeNode node, tuple saved) except -1:
    """Save values (None: not needed) for backward, with the current versions of their memory."""
    cdef int i, n = len(saved)
    node.saved = saved
    for i in range(min(n, 4)):
        if saved[i] is not None:
            node.versions[i] = version_of(<TensorBase>saved[i])
    if n > 4:
        node.more_versions = [0 if t is None else version_of(<TensorBase>t) for t in saved]
    if filled.pack is not None:
        node.saved = tuple([None if t is None else filled.pack(t) for t in saved])
    return 0


cdef int64_t select_saved(OpBase op, tuple inputs):
    """Return a bit mask of the values in op.saved that the rules of tracked inputs need."""
    cdef int i
    cdef int64_t mask = 0
    if op.star is not None:
        return -1
    for i in range(len(inputs)):
        if (<TensorBase>inputs[i]).flags & TRACKED and op.by_input[i] is not None:
            mask |= (<Rule>op.by_input[i]).saves
    return mask


cdef tape(OpBase op, tuple inputs, Entry e, result):
    cdef int i
    cdef TapeNode node
    cdef int64_t mask
    cdef TensorBase y
    cdef list saved
    if not e.differentiable:
        return
    if not op.any_rule and not has_differentiable_input(op, inputs):
        return
    node = TapeNode.__new__(TapeNode)
    node.entry = e
    set_edges(node, inputs)
    if op.variadic and (<TensorBase>inputs[0]).block == NULL and op.saved_inputs:
        set_saved(node, tuple([alias_parts(<TensorBase>x) for x in inputs]))
    elif op.variadic:
        set_saved(node, inputs if op.saved_inputs else NOTHING)
    elif len(op.saved) == 0:
        node.saved = NOTHING
    else:
        mask, saved = select_saved(op, inputs), []
        for i in op.saved if mask else NOTHING:                  # i >= 0: input i; i < 0: output ~i
            if not mask & 1:
                saved.append(None)
            elif i >= 0:
                y = <TensorBase>inputs[i]          # in-place ops replace parts of global tensors
                saved.append(y if y.block != NULL else alias_parts(y))
            else:                                      # an alias avoids a reference cycle
                saved.append(alias_of(<TensorBase>result if e.nout == 1
                                      else <TensorBase>result[~i]))
            mask >>= 1
        set_saved(node, tuple(saved))
    if filled.line is not None:
        node.line = filled.line()
    elif not op.rules:
        node.line = user_line()                        # for the error of the backward pass
    if e.nout == 1:
        set_output(<TensorBase>result, node, 0, True)
    else:
        for i in range(e.nout):
            set_output(<TensorBase>result[i], node, i, True)


def make_custom_node(custom, tuple inputs, tuple saved=NOTHING):
    """Make a node whose gradients `custom` computes, for autograd.Function and writes into views.

    `custom` has the attributes name, shapes (of the inputs), and outputs (their number). Its method
    backward(node, douts) returns a gradient or None for each input.
    """
    cdef TapeNode node = TapeNode.__new__(TapeNode)
    cdef TensorBase x
    for x in inputs:
        if x.link is not None:
            refresh_view(x)
    node.custom = custom
    set_edges(node, inputs)
    set_saved(node, saved)
    if filled.line is not None:
        node.line = filled.line()
    return node


def set_history(TensorBase y, TapeNode node or None, int out_index=0):
    """Make y output number `out_index` of `node`, or a leaf without gradient if node is None."""
    set_output(y, node, out_index, node is not None)


cdef bint has_differentiable_input(OpBase op, tuple inputs):
    """Return True if an input that requires a gradient has a rule."""
    cdef int i
    for i in range(len(inputs)):
        if (<TensorBase>inputs[i]).flags & TRACKED \
                and op.rules.get(op.inputs[0 if op.variadic else i]) is not None:
            return True
    return False
