"""From one layout to another: boxing with a history, and between a global tensor and its logical value."""
from __future__ import annotations

from flowedu.core.eager.arrays import copy_of
from flowedu.core.eager.dispatch import custom_node, is_grad_enabled, labelled, set_history
from flowedu.core.eager.tensor import Tensor
from flowedu.core.grad.custom import Custom
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.core.sbp.boxing.primitives import route
from flowedu.core.sbp.names import placement
from flowedu.core.sbp.ranks import current, world
from flowedu.core.sbp.sbp import layout
from flowedu.core.sbp.tensor.global_layout import GlobalLayout, kept, with_texts
from flowedu.core.sbp.tensor.interpreter import assembled, moved, parts_of

_routes: dict[tuple, Route] = {}


def recorded(y: Tensor, x: Tensor, node: Custom) -> Tensor:
    """y, with the history that `node` made it from x, if gradients are recorded."""
    if is_grad_enabled() and x.requires_grad and y._can_track:
        set_history(y, custom_node(node, (x,)))
    return y


def boxed_to(x: Tensor, global_layout: GlobalLayout) -> Tensor:
    """The same logical value in another layout, in memory of its own unless nothing has to be done. No history."""
    if x.global_layout is global_layout:
        return x
    key = (x.global_layout, global_layout, x._sizes(), x.dtype)
    r = _routes.get(key)
    if r is None:
        r = kept(_routes, key, route(x.global_layout.layout, global_layout.layout, x.spec))
    old = parts_of(x)
    new = moved(r, old, r.spec, global_layout.placement, old.identity)
    if r.hops and new and len(current().owned) > 1:    # virtual devices see each other's memory: a slice may be a view
        distinct = {id(t): t for t in new.values()}
        own = {i: copy_of(t) if any(map(t.shares_block, old.values())) else t for i, t in distinct.items()}
        new = {rank: own[id(t)] for rank, t in new.items()}
    return assembled(r.spec, global_layout, new, r if r.hops else None, old.identity or current().identify("moved", key))


def boxed(x: Tensor, global_layout: GlobalLayout, grad_layout: GlobalLayout | None = None) -> Tensor:
    if x.global_layout is global_layout and grad_layout is None:
        return x
    y = labelled(x, global_layout) if x.global_layout is global_layout else boxed_to(x, global_layout)
    return recorded(y, x, Boxed(x, global_layout, grad_layout)) if x.requires_grad else y


class Boxed(Custom):
    """From one layout to another. The gradient goes back to the placement it came from, in `grad_layout`, or as it lies."""

    def __init__(self, x: Tensor, global_layout: GlobalLayout, grad_layout: GlobalLayout | None):
        super().__init__("global_to_global", (x,))
        self.src, self.dst, self.grad_layout = x.global_layout, global_layout, grad_layout

    def backward(self, node, douts):
        g, = douts
        if g is None:
            return [None]
        if g.global_layout is None:
            g = from_logical(g, self.dst.whole)
        if self.grad_layout is not None:
            return [boxed(g, self.grad_layout)]
        if g.global_layout.placement == self.src.placement:
            return [g]
        return [boxed(g, with_texts(self.src, ["B" if s[0] == "P" else s for s in self.src.layout.sbp]))]


def from_logical(t: Tensor, global_layout: GlobalLayout) -> Tensor:
    """A global tensor from its logical value, which every rank has in full."""
    parts = {d: labelled(t, None) for d in global_layout.layout.devices if d in current().owned}
    identity = current().identify("created", (global_layout, t.spec))
    if global_layout.placement.type == "cuda" or t._device:       # cut where it is: each device gets its part alone
        cut = route(global_layout.whole.layout, global_layout.layout, t.spec)
        return assembled(t.spec, global_layout, moved(cut, parts, t.spec, global_layout.placement), None, identity)
    whole = assembled(t.spec, global_layout.whole, dict.fromkeys(parts, labelled(t, None)), None, identity)
    return boxed_to(whole, global_layout)


def logical(x: Tensor) -> Tensor:
    """The whole value as a local tensor in main memory, on every rank of the world: all of them must call it."""
    engine = current()
    if x.has_memory and len(engine.owned) == engine.size:
        return labelled(x._on_host(), None)
    parts, to_all = parts_of(x), route(x.global_layout.layout, layout("B", world()), x.spec)
    return next(iter(moved(to_all, parts, x.spec, placement.all(), parts.identity).values()))
