"""What users see of the tape's nodes: names as OneFlow prints them, next_functions, hooks."""
from __future__ import annotations

import itertools
from collections.abc import Callable

from flowedu.core.ops.dispatch import connect
from flowedu.errors import CallError

OP_TYPES = {                       # record: OneFlow's op, where the names differ
    "add": "broadcast_add", "sub": "broadcast_sub", "mul": "broadcast_mul", "div": "broadcast_div",
    "pow": "broadcast_pow", "maximum": "broadcast_maximum", "minimum": "broadcast_minimum", "sum": "reduce_sum",
    "max": "reduce_max", "min": "reduce_min", "prod": "reduce_prod", "contiguous": "copy", "neg": "negative",
    "batch_norm": "normalization", "batch_norm_infer": "normalization_infer", "batch_norm_grad": "normalization_grad",
    "max_pool2d": "max_pool_2d", "avg_pool2d": "avg_pool_2d", "eq": "broadcast_equal", "ne": "broadcast_not_equal",
    "lt": "broadcast_less", "le": "broadcast_less_equal", "gt": "broadcast_greater", "ge": "broadcast_greater_equal",
    "reshape": "view::reshape", "transpose": "view::transpose", "slice": "view::slice", "expand": "view::expand",
}
_SCALAR = {"add", "sub", "mul", "div", "pow"}
_ids = itertools.count()


class AccumulateGrad:
    """The end of a path: where a leaf's gradient is added to its `.grad`. `variable` is the leaf."""

    next_functions = ()

    def __init__(self, variable):
        self.variable = variable

    def name(self) -> str:
        return "accumulate_grad"

    def __repr__(self) -> str:
        return "<accumulate_grad>"

    def __eq__(self, other) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return hash((AccumulateGrad, id(self.variable)))

    def register_hook(self, hook: Callable) -> Handle:
        """Call `hook(grad_inputs, grad_outputs)` when the leaf's gradient is there."""
        return self.variable.register_post_accumulate_grad_hook(lambda leaf: hook((), (leaf.grad,)))


class Handle:
    """What registering a hook returns: `remove()` takes it away, and so does leaving a `with` block."""

    def __init__(self, table: dict, hook: Callable, key: int | None = None):
        if not callable(hook):
            raise CallError("register_hook: the hook is not a function", expected="a function of the gradient",
                            got=type(hook).__name__)
        self.table, self.id = table, next(_ids) if key is None else key
        table[self.id] = hook

    def remove(self) -> None:
        self.table.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc) -> None:
        self.remove()


def node_name(node) -> str:
    """`broadcast_add_backward`; of a number and a tensor `scalar_add_backward`; of a Function `<its name>_backward`."""
    if node.entry is None:
        return f"{node.custom.name}_backward"
    name = node.op.name
    if name in _SCALAR and None in node.edges and () in node.shapes:
        i = node.edges.index(None)
        if node.shapes[i] == ():
            return f"scalar_{name}_backward"
    return f"{OP_TYPES.get(name, name)}_backward"


def next_functions(node) -> tuple:
    out = []
    for i, e in enumerate(node.edges):
        leaf = e is not None and type(e) is not type(node)
        out.append((AccumulateGrad(e) if leaf else e, 0 if leaf or e is None else node.slot(i)))
    return tuple(out)


def hook_table(node, key) -> dict:
    """The hooks of a node under `key`: an output's number, "before" or "after"."""
    if node.hooks is None:
        node.hooks = {}
    return node.hooks.setdefault(key, {})


connect(node_name=node_name, node_next=next_functions,
        node_hook=lambda node, key, hook: Handle(hook_table(node, key), hook))
