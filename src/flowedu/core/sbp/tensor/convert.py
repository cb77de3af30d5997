"""Differentiable boxing of global tensors, and conversion from and to their logical values."""
from __future__ import annotations

from flowedu.core.eager.arrays import copy_of
from flowedu.core.eager.dispatch import is_grad_enabled, labelled, make_custom_node, set_history
from flowedu.core.eager.tensor import Tensor
from flowedu.core.grad.custom import Custom, TapeNode
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.core.sbp.boxing.primitives import route
from flowedu.core.sbp.names import placement
from flowedu.core.sbp.ranks import current, world
from flowedu.core.sbp.sbp import layout
from flowedu.core.sbp.tensor.global_layout import GlobalLayout, remember, with_texts
from flowedu.core.sbp.tensor.interpreter import apply_route, assemble, parts_of

_routes: dict[tuple, Route] = {}


def record(y: Tensor, x: Tensor, node: Custom) -> Tensor:
    """Set `node` with input x as the history of y, if gradients are recorded, and return y."""
    if is_grad_enabled() and x.requires_grad and y._can_track:
        set_history(y, make_custom_node(node, (x,)))
    return y


def box_without_history(x: Tensor, global_layout: GlobalLayout) -> Tensor:
    """Return the value in another layout, in new memory unless the route is empty."""
    if x.global_layout is global_layout:
        return x
    key = (x.global_layout, global_layout, x._sizes(), x.dtype)
    r = _routes.get(key)
    if r is None:
        r = remember(_routes, key, route(x.global_layout.layout, global_layout.layout, x.spec))
    old = parts_of(x)
    new = apply_route(r, old, r.spec, global_layout.placement, old.identity)
    if r.hops and new and len(current().owned) > 1:    # virtual devices share memory: copy views
        distinct = {id(t): t for t in new.values()}
        copies = {i: copy_of(t) if any(map(t.shares_block, old.values())) else t
                  for i, t in distinct.items()}
        new = {rank: copies[id(t)] for rank, t in new.items()}
    return assemble(r.spec, global_layout, new, r if r.hops else None,
                    old.identity or current().identify("moved", key))


def box(x: Tensor, global_layout: GlobalLayout, grad_layout: GlobalLayout | None = None) -> Tensor:
    if x.global_layout is global_layout and grad_layout is None:
        return x
    convert = labelled if x.global_layout is global_layout else box_without_history
    y = convert(x, global_layout)
    return record(y, x, BoxingNode(x, global_layout, grad_layout)) if x.requires_grad else y


class BoxingNode(Custom):
    """A change of layout. The gradient is boxed to `grad_layout`, or to the source's placement."""

    def __init__(self, x: Tensor, global_layout: GlobalLayout, grad_layout: GlobalLayout | None):
        super().__init__("global_to_global", (x,))
        self.src, self.dst, self.grad_layout = x.global_layout, global_layout, grad_layout

    def backward(self, node: TapeNode, douts: list[Tensor | None]) -> list[Tensor | None]:
        g, = douts
        if g is None:
            return [None]
        if g.global_layout is None:
            g = from_logical(g, self.dst.whole)
        if self.grad_layout is not None:
            return [box(g, self.grad_layout)]
        if g.global_layout.placement == self.src.placement:
            return [g]
        sbp = ["B" if s[0] == "P" else s for s in self.src.layout.sbp]
        return [box(g, with_texts(self.src, sbp))]


def from_logical(t: Tensor, global_layout: GlobalLayout) -> Tensor:
    """Return the global tensor of a logical value that every rank has in full."""
    parts = {d: labelled(t, None) for d in global_layout.layout.devices if d in current().owned}
    identity = current().identify("created", (global_layout, t.spec))
    if global_layout.placement.type == "cuda" or t._device:      # slice first, then copy to devices
        to_parts = route(global_layout.whole.layout, global_layout.layout, t.spec)
        parts = apply_route(to_parts, parts, t.spec, global_layout.placement)
        return assemble(t.spec, global_layout, parts, None, identity)
    whole = assemble(t.spec, global_layout.whole, dict.fromkeys(parts, labelled(t, None)), None,
                     identity)
    return box_without_history(whole, global_layout)


def logical(x: Tensor) -> Tensor:
    """Return the whole value as a local tensor in main memory. All ranks of the world call this."""
    engine = current()
    if x.has_memory and len(engine.owned) == engine.size:
        return labelled(x._on_host(), None)
    parts, to_all = parts_of(x), route(x.global_layout.layout, layout("B", world()), x.spec)
    return next(iter(apply_route(to_all, parts, x.spec, placement.all(), parts.identity).values()))
