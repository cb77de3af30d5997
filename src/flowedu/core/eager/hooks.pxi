# Chapter 2, hooks for later chapters, and the modules that fill them (part of dispatch.pyx).
#
# Ops and the tape call later chapters without knowing them, through the slots below. The module that has what belongs into a
# slot puts it there when it is imported: `connect(write=arithmetic)`. Nothing else in this folder looks upwards.

cdef dict HOOKS = {
    # slot: (the module that fills it, what for)
    "Tensor": ("flowedu.core.eager.tensor", "the class of what eager calls return"),
    "Size": ("flowedu.core.eager.tensor", "the class of shapes"),
    "add": ("flowedu.core.eager.tensor", "the op behind x + y; so sub, mul, div and matmul"),
    "sub": ("flowedu.core.eager.tensor", "x - y"),
    "mul": ("flowedu.core.eager.tensor", "x * y"),
    "div": ("flowedu.core.eager.tensor", "x / y"),
    "matmul": ("flowedu.core.eager.tensor", "x @ y"),
    "mixed": ("flowedu.core.eager.tensor", "x + y and the like of unequal dtypes, numbers, foreign objects"),
    "mixed_matmul": ("flowedu.core.eager.tensor", "x @ y of them, or of other than two matrices"),
    "write": ("flowedu.tensor.inplace", "x += y and the like"),
    "into": ("flowedu.tensor.writing", "f(op, inputs, attrs, x): run it in x's memory, if that is safe; nothing: never"),
    "renew": ("flowedu.tensor.writing", "f(x): the history of a view whose base was written since"),
    "node_name": ("flowedu.tensor.node_names", "what a recorded call is called; nothing: as its op"),
    "node_next": ("flowedu.tensor.hooks", "its next_functions"),
    "node_hook": ("flowedu.tensor.hooks", "puts a hook on it"),
    "leaf_hooks": ("flowedu.tensor.hooks", "f(leaf, gradient): what the leaf's hooks make of it"),
    "before_node": ("flowedu.tensor.hooks", "f(node, douts): hooks of its outputs change douts"),
    "after_node": ("flowedu.tensor.hooks", "f(node, grads, douts): what its hooks make of grads"),
    "pack": ("flowedu.autograd.graph", "what every tensor saved for backward is passed through; nothing: it is saved as it is"),
    "line": ("flowedu.autograd.anomaly", "anomaly mode: where a recorded call was made; nothing: that is not kept"),
    "watch": ("flowedu.autograd.anomaly", "anomaly mode: f(node, douts, grads or None, error or None) at every node"),
    "seed": ("flowedu.oneflow04.random", "f(seed): what else flow.manual_seed seeds; nothing: nothing else"),
    "run_global": ("flowedu.core.sbp.tensor", "run(op, inputs, attrs): a call with a global tensor, without recording it"),
    "bring": ("flowedu.core.sbp.tensor", "bring(x, global_layout): a gradient boxed to the layout of its leaf"),
    "logical": ("flowedu.core.sbp.tensor", "a global tensor as one local one"),
    "write_parts": ("flowedu.core.sbp.tensor", "writing in place into a global tensor"),
    "device_memory": ("flowedu.cuda.engine", "f(bytes, GPU): an object with an .address, which gives the memory back when it goes"),
    "launch": ("flowedu.cuda.engine", "f(entry, inputs, outputs, (seed, draw) or None): start the kernel on their device"),
    "carry": ("flowedu.cuda.engine", "f(x, y): copy x's values into y, of the same shape and dtype, wherever each is"),
    "move": ("flowedu.tensor.devices", "f(x, device): x on another device, recorded"),
}


cdef unset(str name):
    """The default of a slot: a value that does without, or a function whose error names the module that fills it."""
    if name in ("pack", "line", "watch", "seed", "into", "node_name"):
        return None
    if name in ("add", "sub", "mul", "div", "matmul"):
        return UnsetOp(name)
    return tuple if name == "Size" else UnsetTensor if name == "Tensor" else UnsetHook(name)


class UnsetHook:
    """A function that is still missing."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args):
        module, what = HOOKS[self.name]
        raise FlowError(f"ops: nobody has filled the slot {self.name!r}", expected=what, got="no module that does it",
                        fix=f"import {module}")


class UnsetOp(OpBase):
    """An op that is still missing."""

    def __init__(self, slot):
        self.slot = slot

    def infer(self, *args):
        UnsetHook(self.slot)()


class UnsetTensor:
    """The class of tensors, while it is still missing."""

    def __new__(cls, *args):
        UnsetHook("Tensor")()


cdef class Slots:
    """The contents of the slots; `slots` is the only instance."""

    def __cinit__(self):
        for name in HOOKS:
            setattr(self, name, unset(name))


cdef Slots filled = Slots()
slots = filled


def connect(**given):
    """Fill slots, or with None leave them open again; returns what was in them: {slot: ...}, which `connect` takes again."""
    for name in given:
        if name not in HOOKS:
            raise ArgumentError(f"connect: there is no slot {name!r}", expected=", ".join(HOOKS), got=name,
                                fix="a slot is a line of the table in core/eager/hooks.pxi")
    old = {name: getattr(filled, name) for name in given}
    for name, what in given.items():
        setattr(filled, name, unset(name) if what is None else what)
    return old
