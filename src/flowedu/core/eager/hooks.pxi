# Chapter 2: slots for functions of later chapters (part of dispatch.pyx).
#
# Ops and the tape call functions of later chapters through the slots below, without importing them.
# A module with such a function fills the slot when it is imported: `connect(write=arithmetic)`.

cdef dict HOOKS = {
    # slot: (the module that fills it, its purpose)
    "Tensor": ("flowedu.core.eager.tensor", "the class of the results of eager calls"),
    "Size": ("flowedu.core.eager.tensor", "the class of shapes"),
    "add": ("flowedu.core.eager.tensor", "the op behind x + y; so sub, mul, div and matmul"),
    "sub": ("flowedu.core.eager.tensor", "x - y"), "mul": ("flowedu.core.eager.tensor", "x * y"),
    "div": ("flowedu.core.eager.tensor", "x / y"), "matmul": ("flowedu.core.eager.tensor", "x @ y"),
    "mixed": ("flowedu.core.eager.tensor", "x + y and the like for other operands"),
    "mixed_matmul": ("flowedu.core.eager.tensor", "x @ y for these, or if one is not a matrix"),
    "write": ("flowedu.tensor.inplace.history", "x += y and the like"),
    "into": ("flowedu.tensor.inplace.writing", "f(op, inputs, attrs, x): in x's memory if safe"),
    "renew": ("flowedu.tensor.inplace.writing", "f(x): record the history of a stale view"),
    "node_name": ("flowedu.tensor.gradients.node_names", "name of a node; unset: that of its op"),
    "node_next": ("flowedu.tensor.gradients.hooks", "its next_functions"),
    "node_hook": ("flowedu.tensor.gradients.hooks", "puts a hook on it"),
    "leaf_hooks": ("flowedu.tensor.gradients.hooks", "f(leaf, gradient): run the leaf's hooks"),
    "before_node": ("flowedu.tensor.gradients.hooks", "f(node, douts): run hooks of its outputs"),
    "after_node": ("flowedu.tensor.gradients.hooks", "f(node, grads, douts): run its hooks"),
    "pack": ("flowedu.autograd.graph", "f(x): what is saved for backward instead of x; or unset"),
    "line": ("flowedu.autograd.anomaly", "anomaly mode: the line of a recorded call; or unset"),
    "watch": ("flowedu.autograd.anomaly", "anomaly mode: f(node, douts, grads, error) per node"),
    "seed": ("flowedu.oneflow04.random", "f(seed): further effects of flow.manual_seed; or unset"),
    "run_global": ("flowedu.core.sbp.tensor", "f(op, inputs, attrs): an unrecorded global call"),
    "bring": ("flowedu.core.sbp.tensor", "f(x, global_layout): a gradient in its leaf's layout"),
    "logical": ("flowedu.core.sbp.tensor", "a global tensor as one local one"),
    "write_parts": ("flowedu.core.sbp.tensor", "writing in place into a global tensor"),
    "device_memory": ("flowedu.cuda.engine", "f(bytes, GPU): owner of memory at its .address"),
    "launch": ("flowedu.cuda.engine", "f(entry, inputs, outputs, (seed, draw) or None): launch"),
    "carry": ("flowedu.cuda.engine", "f(x, y): copy x's values into y, on any two devices"),
    "move": ("flowedu.tensor.devices.conversion", "f(x, device): x on another device, recorded"),
}


cdef make_default(str name):
    """Return the default of a slot: None, or an object that raises when it is used."""
    if name in ("pack", "line", "watch", "seed", "into", "node_name"):
        return None
    return {"Tensor": UnsetTensor, "Size": tuple}.get(name) or EmptySlot(name)


class EmptySlot(OpBase):
    """Placeholder of a function or an op, which raises an error when it is called."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args):
        module, purpose = HOOKS[self.name]
        raise errors.empty_slot(self.name, purpose, module)

    infer = __call__                               # the first step of a call of an op


class UnsetTensor:
    """Placeholder of the class Tensor."""

    def __new__(cls, *args):
        EmptySlot("Tensor")()


cdef class Slots:
    """The contents of the slots; `slots` is the only instance."""

    def __cinit__(self):
        for name in HOOKS:
            setattr(self, name, make_default(name))


cdef Slots filled = Slots()
slots = filled


def connect(**functions):
    """Fill slots; None restores the default. Return the old content, to pass to `connect` again."""
    for name in functions:
        if name not in HOOKS:
            raise errors.unknown_slot(name, HOOKS)
    old = {name: getattr(filled, name) for name in functions}
    for name, function in functions.items():
        setattr(filled, name, make_default(name) if function is None else function)
    return old
