"""Hooks of tensors and tape nodes, and the node attribute next_functions.

The backward pass calls this module when it reaches a hook (core/grad/arrive.pxi).
"""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from flowedu.core.eager.dispatch import TapeNode, TensorBase, connect
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops import view
from flowedu.errors import CallError, GradientError

_COPY = view.contiguous
_ids = itertools.count()


class AccumulateGrad:
    """Last node of a path to a leaf; it adds the gradient to `.grad` of the leaf, `variable`."""

    next_functions = ()

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def name(self) -> str:
        return "accumulate_grad"

    def __repr__(self) -> str:
        return "<accumulate_grad>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return hash((AccumulateGrad, id(self.variable)))

    def register_hook(self, hook: Callable) -> Handle:
        """Register a hook that is called as `hook(grad_inputs, grad_outputs)` after `.grad` was changed."""
        return self.variable.register_post_accumulate_grad_hook(lambda leaf: hook((), (leaf.grad,)))


class Handle:
    """Handle of a registered hook, which is unregistered by `remove()` or at the end of a `with` block."""

    def __init__(self, table: dict, hook: Callable, key: int | None = None) -> None:
        if not callable(hook):
            raise CallError("register_hook: the hook is not a function",
                            expected="a function of the gradient", got=type(hook).__name__)
        self.table, self.id = table, next(_ids) if key is None else key
        table[self.id] = hook

    def remove(self) -> None:
        self.table.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def next_functions(node: TapeNode) -> tuple:
    out = []
    for i, e in enumerate(node.edges):
        leaf = e is not None and type(e) is not type(node)
        out.append((AccumulateGrad(e) if leaf else e, 0 if leaf or e is None else node.slot(i)))
    return tuple(out)


def hook_table(node: TapeNode, key: int | str) -> dict:
    """Return the hooks of a node under `key`, which is the number of an output, "before", or "after"."""
    if node.hooks is None:
        node.hooks = {}
    return node.hooks.setdefault(key, {})


# ---- during backward
def leaf_hooks(leaf: TensorBase, gradient: Tensor) -> Tensor:
    """Return the leaf's gradient after calling the leaf's hooks."""
    for f in list((leaf.rare.hooks or {}).values()):
        gradient = _checked(f(gradient), gradient)
    return gradient


def before_node(node: TapeNode, douts: list) -> None:
    """Run the tensor hooks and retain_grad of the node's outputs, then the node's prehooks."""
    for slot, g in enumerate(douts):
        if g is None:
            continue
        for f in list(node.hooks.get(slot, {}).values()):
            douts[slot] = _checked(f(douts[slot]), douts[slot])
        weak = node.hooks.get(("keep", slot))
        t = weak() if weak is not None else None
        if t is not None:
            g = _COPY.call((douts[slot],), ())
            t._grad = g if t._grad is None else t._grad + g
    for f in list(node.hooks.get("before", {}).values()):
        new = f(tuple(douts))
        if new is not None:
            douts[:] = new if isinstance(new, (tuple, list)) else (new,)


def after_node(node: TapeNode, grads: list, douts: list) -> list:
    """Return the gradients of the node's inputs after calling the node's hooks."""
    for f in list(node.hooks.get("after", {}).values()):
        new = f(tuple(grads), tuple(douts))
        if new is not None:
            grads = list(new) if isinstance(new, (tuple, list)) else [new]
    return grads


def _checked(new: Tensor | None, old: Tensor) -> Tensor:
    """Check a hook's replacement for the gradient `old`; None keeps it."""
    if new is None:
        return old
    if not isinstance(new, TensorBase):
        raise GradientError("register_hook: the hook returned something else than a tensor",
                            expected="a tensor or None", got=type(new).__name__)
    if new._sizes() != old._sizes():
        raise GradientError("register_hook: the hook changed the shape of the gradient",
                            expected=str(old._sizes()), got=str(new._sizes()))
    return new


connect(node_next=next_functions, node_hook=lambda node, key, hook: Handle(hook_table(node, key), hook),
        leaf_hooks=leaf_hooks, before_node=before_node, after_node=after_node)
