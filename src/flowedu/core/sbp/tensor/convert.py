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
from flowedu.core.sbp.tensor.interpreter import assembled, moved, parts_of
from flowedu.core.sbp.tensor.lay import Lay, kept, with_texts

_routes: dict[tuple, Route] = {}


def recorded(y: Tensor, x: Tensor, node: Custom) -> Tensor:
    """y came about from x by `node`, if anybody asks for gradients."""
    if is_grad_enabled() and x.requires_grad and y._can_track:
        set_history(y, custom_node(node, (x,)))
    return y


def boxed_to(x: Tensor, lay: Lay) -> Tensor:
    """The same logical value in another layout, in memory of its own unless nothing has to be done. No history."""
    if x.lay is lay:
        return x
    key = (x.lay, lay, x._sizes(), x.dtype)
    r = _routes.get(key)
    if r is None:
        r = kept(_routes, key, route(x.lay.layout, lay.layout, x.spec))
    old = parts_of(x)
    new = moved(r, old, r.spec, lay.placement)
    if r.hops and new and len(current().owned) > 1:    # virtual devices see each other's memory: a slice may be a view
        own: dict[int, Tensor] = {}
        for t in new.values():
            if id(t) not in own:
                own[id(t)] = copy_of(t) if any(t.shares_block(q) for q in old.values()) else t
        new = {rank: own[id(t)] for rank, t in new.items()}
    return assembled(r.spec, lay, new)


def boxed(x: Tensor, lay: Lay, grad_lay: Lay | None = None) -> Tensor:
    if x.lay is lay and grad_lay is None:
        return x
    y = labelled(x, lay) if x.lay is lay else boxed_to(x, lay)
    return recorded(y, x, Boxed(x, lay, grad_lay)) if x.requires_grad else y


class Boxed(Custom):
    """From one layout to another. The gradient goes back to the placement it came from, in `grad_lay`, or as it lies."""

    def __init__(self, x: Tensor, lay: Lay, grad_lay: Lay | None):
        super().__init__("global_to_global", (x,))
        self.src, self.dst, self.grad_lay = x.lay, lay, grad_lay

    def backward(self, node, douts):
        g, = douts
        if g is None:
            return [None]
        if g.lay is None:
            g = from_logical(g, self.dst.whole)
        if self.grad_lay is not None:
            return [boxed(g, self.grad_lay)]
        if g.lay.placement == self.src.placement:
            return [g]
        return [boxed(g, with_texts(self.src, ["B" if s[0] == "P" else s for s in self.src.layout.sbp]))]


def from_logical(t: Tensor, lay: Lay) -> Tensor:
    """A global tensor from its logical value, which every rank has in full."""
    parts = {d: labelled(t, None) for d in lay.layout.devices if d in current().owned}
    if lay.placement.type == "cuda" or t._device:       # cut where it is, so that each device is brought its part alone
        return assembled(t.spec, lay, moved(route(lay.whole.layout, lay.layout, t.spec), parts, t.spec, lay.placement))
    return boxed_to(assembled(t.spec, lay.whole, dict.fromkeys(parts, labelled(t, None))), lay)


def logical(x: Tensor) -> Tensor:
    """The whole value as a local tensor in main memory, on every rank of the world: all of them must call it."""
    engine = current()
    if x.has_memory and len(engine.owned) == engine.size:
        return labelled(x._on_host(), None)
    parts = moved(route(x.lay.layout, layout("B", world()), x.spec), parts_of(x), x.spec, placement.all())
    return next(iter(parts.values()))
