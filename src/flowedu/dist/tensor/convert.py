"""Local to global and back: to_global, to_local, and what they mean for gradients.

A conversion is an op of its own on the tape. The gradient of a conversion from local to global comes back in the dual
layout: what was split is split, the gradient of what was broadcast is partial, that of a partial sum is broadcast.
"""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.autograd.custom import Custom
from flowedu.blob.spec import Spec
from flowedu.dist.boxing import Route, route
from flowedu.dist.comm import current
from flowedu.dist.names import as_sbp, placement, sbp
from flowedu.dist.sbp import Layout
from flowedu.dist.tensor.interpreter import Parts, assembled, moved, parts_of
from flowedu.dist.tensor.lay import check_fits, check_placement, lay_of, with_texts
from flowedu.errors import ArgumentError, CheckError, DTypeError, UnsupportedError, user_line
from flowedu.ops.core import (
    Lay,
    copy_into,
    current_interpreter,
    custom_node,
    is_grad_enabled,
    labelled,
    set_history,
    take_parts,
)
from flowedu.ops.define import REGISTRY
from flowedu.tensor.base import Tensor
from flowedu.tensor.interop import from_numpy

_COPY = REGISTRY["contiguous"]
_DUAL = {"B": "P", "P": "B"}
_routes: dict[tuple, Route] = {}         # of (Lay, Lay, shape, dtype): found faster than by the layouts themselves
_asked: dict[tuple, Lay] = {}            # of what to_global was given before


def recorded(y: Tensor, x: Tensor, node: Custom) -> Tensor:
    """y came about from x by `node`, if anybody asks for gradients."""
    if is_grad_enabled() and x.requires_grad and y.differentiable_:
        set_history(y, custom_node(node, (x,)))
    return y


def boxed_to(x: Tensor, lay: Lay) -> Tensor:
    """The same logical value in another layout, in memory of its own unless nothing has to be done. No history."""
    if x.lay is lay:
        return x
    key = (x.lay, lay, x.shape_(), x.dtype)
    r = _routes.get(key)
    if r is None:
        if len(_routes) >= 4096:
            _routes.clear()
        r = _routes[key] = route(x.lay.layout, lay.layout, x.spec)
    old = parts_of(x)
    new = moved(r, old, r.spec)
    if r.hops and new and len(current().owned) > 1:    # virtual devices see each other's memory: a slice may be a view
        own: dict[int, Tensor] = {}
        for t in new.values():
            if id(t) not in own:
                own[id(t)] = _COPY.call((t,), ()) if any(t.shares_block(q) for q in old.values()) else t
        new = {rank: own[id(t)] for rank, t in new.items()}
    return assembled(r.spec, lay, new)


def brought(g: Tensor, lay: Lay | None) -> Tensor:
    """A gradient as its leaf lies (arrive.pxi). A local leaf's gradient is local."""
    if lay is None:
        return to_local(g)
    if g.lay is None:
        g = from_logical(g, lay.whole)
    return _boxed(g, lay)


def _boxed(x: Tensor, lay: Lay, grad_lay: Lay | None = None) -> Tensor:
    if x.lay is lay and grad_lay is None:
        return x
    if x.lay is lay:
        return recorded(labelled(x, lay), x, Boxed(x, lay, grad_lay))
    return recorded(boxed_to(x, lay), x, Boxed(x, lay, grad_lay))


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
            return [_boxed(g, self.grad_lay)]
        if g.lay.placement == self.src.placement:
            return [g]
        texts = [s.text for s in self.src.sbp]
        return [_boxed(g, with_texts(self.src, ["B" if t[0] == "P" else t for t in texts]))]


# ---- from local
class Joined(Custom):
    """Shards became a global tensor."""

    def __init__(self, x: Tensor, lay: Lay, spec: Spec):
        super().__init__("local_to_global", (x,))
        self.lay, self.spec = lay, spec

    def backward(self, node, douts):
        g = brought(douts[0], with_texts(self.lay, [_DUAL.get(s.text, s.text) for s in self.lay.sbp]))
        parts = list(parts_of(g).values())
        if not parts:                                  # a rank outside the placement: its tensor was not used
            return [REGISTRY["constant"](shape=self.shapes[0], value=0, dtype=self.spec.dtype)]
        total = parts[0]
        for p in parts[1:]:                            # one tensor stood for the shards of several ranks
            total = total + p
        return [total if len(parts) > 1 else labelled(total, None)]


def local_to_global(self: Tensor, placement=None, sbp=None, *, check_meta: bool | None = True,
                    copy: bool = False) -> Tensor:
    """The global tensor whose shard on this rank is this local one. See Tensor.to_global."""
    if self.lay is not None:
        raise ArgumentError("local_to_global: input must be a local tensor", expected="a local tensor", got="a global one",
                            fix="global_to_global, or to_global, which does both")
    return _from_local(self, placement, sbp, check_meta is not False, copy)


def _from_local(x: Tensor, p, sbps, check_meta: bool, copy: bool = False) -> Tensor:
    if p is None or sbps is None:
        raise CheckError("Converting a local tensor to global tensor must have placement and sbp parameters.",
                         expected="both", got=f"placement={p!r}, sbp={sbps!r}",
                         fix='x.to_global(placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0))')
    check_placement(p, "to_global")
    sbps = as_sbp(sbps, len(p.hierarchy), "to_global")
    engine = current()
    shape = x.shape_()
    if any(d not in engine.owned for d in p.devices) or len(engine.owned) < engine.size:
        shapes = _shapes_of_all(x, p, check_meta)
    else:
        shapes = [shape] * len(p.devices)
    spec = Spec(_logical_shape(shapes, sbps, tuple(p.hierarchy)), x.dtype)
    lay = lay_of(p, sbps)
    _check_balanced(lay.layout, spec.shape, shapes)
    own = _COPY(x.detach()) if copy else x.detach()
    parts = {d: own for d in p.devices if d in engine.owned}
    if "B" in lay.layout.sbp and len(parts) < len(p.devices):
        parts = _of_first(lay.layout, parts, spec)
    return recorded(assembled(spec, lay, parts), x, Joined(x, lay, spec))


def _shapes_of_all(x: Tensor, p: placement, check: bool) -> list[tuple[int, ...]]:
    """The local shapes on the placement's devices: every rank of the world must come by here."""
    engine = current()
    mine = [list(x.shape_()), x.dtype.name]
    all_meta = engine.comm(engine.rank).all_gather_object(mine)
    on = [all_meta[d] for d in p.devices]
    types = sorted({m[1] for m in on})
    if check and len(types) > 1:
        raise DTypeError("to_global: Expected all tensors on each rank to be the same dtype, but found at least two dtypes, "
                         + " and ".join(types) + "!", expected="one dtype on all ranks", fix="x.to(flow.float32)",
                         got=", ".join(f"rank {d}: {m[1]}" for d, m in zip(p.devices, on)))
    return [tuple(m[0]) for m in on]


def _logical_shape(shapes: list[tuple[int, ...]], sbps: tuple[sbp, ...], hierarchy: tuple[int, ...]) -> tuple[int, ...]:
    """Put together axis by axis of the grid, the innermost first."""
    for s, n in zip(reversed(sbps), reversed(hierarchy)):
        groups = [shapes[i:i + n] for i in range(0, len(shapes), n)]
        shapes = [_joined_shape(g, s) for g in groups]
    return shapes[0]


def _joined_shape(group: list[tuple[int, ...]], s: sbp) -> tuple[int, ...]:
    axis = int(s.text[1:]) if s.text[0] == "S" else None
    first = group[0]
    if axis is not None and axis >= len(first):
        raise ArgumentError(f"to_global: Split axis out of range (expected to be in range of [0, {len(first)}), but got "
                            f"{axis}!)", expected=f"an axis of the local shape {first}", got=repr(s),
                            fix="flow.sbp.split(0)")
    rest = [tuple(n for d, n in enumerate(shape) if d != axis) for shape in group]
    if any(r != rest[0] or len(shape) != len(first) for r, shape in zip(rest, group)):
        raise ArgumentError("to_global: Expected input of each rank must have the same size, but got at least two size, "
                            + " and ".join(str(s) for s in dict.fromkeys(group)), got=str(group), expected="equal shapes" +
                            (f" but for axis {axis}" if axis is not None else ""), fix="look at x.shape on every rank")
    if axis is None:
        return first
    return tuple(sum(shape[d] for shape in group) if d == axis else n for d, n in enumerate(first))


def _check_balanced(layout: Layout, shape: tuple[int, ...], shapes: list[tuple[int, ...]]) -> None:
    want = [layout.local_shape(shape, i) for i in range(layout.k)]
    if [tuple(w) for w in want] != [tuple(s) for s in shapes]:
        axis = next(d for w, s in zip(want, shapes) for d in range(len(w)) if w[d] != s[d])
        raise ArgumentError(f"to_global: Sizes of tensors in dimension {axis} must be same or match balanced split "
                            "distribution", expected=f"shards {', '.join(map(str, want))}",
                            got=", ".join(map(str, shapes)), fix="move rows between the ranks: the first have one more")


def _of_first(layout: Layout, parts: Parts, spec: Spec) -> Parts:
    """Along the broadcast axes of the grid everybody takes what the first one has."""
    engine, out = current(), dict(parts)
    for rank in parts:
        at = layout.coords(layout.devices.index(rank))
        group = tuple(d for i, d in enumerate(layout.devices)
                      if all(a == b for a, b, s in zip(layout.coords(i), at, layout.sbp) if s != "B"))
        first = group[0]
        mine = parts[rank].numpy() if rank == first else None
        got = engine.comm(rank).broadcast(mine, first, tuple(sorted(group)), f"to_global at {user_line()}")
        out[rank] = parts[rank] if rank == first else from_numpy(got)
    return out


def from_logical(t: Tensor, lay: Lay) -> Tensor:
    """A global tensor from its logical value, which every rank has in full."""
    here = [d for d in lay.layout.devices if d in current().owned]
    whole = assembled(t.spec, lay.whole, dict.fromkeys(here, labelled(t, None)))
    return boxed_to(whole, lay)


# ---- the methods
def to_global(self: Tensor, placement=None, sbp=None, *, grad_sbp=None, check_meta: bool | None = None,
              copy: bool = False) -> Tensor:
    """A local tensor becomes this rank's shard of a global one; a global one is brought to another placement or sbp.

    Args:
        placement: flow.placement; of a local tensor required, of a global one the present one by default.
        sbp: one flow.sbp, or one for each axis of the placement's hierarchy; as placement.
        grad_sbp: of a global tensor: how its gradient is to lie.
        check_meta: whether the ranks compare shapes and dtypes (local tensors; default: they do).
        copy: memory of its own, even where nothing has to be moved.

    From local: split(i) makes shards parts along axis i (sizes equal, or those of the balanced split), of broadcast rank
    0's numbers win, with partial_sum the shards are summed. Every rank of the world must call it. A process that owns several
    virtual devices stands for all of them: the tensor is the shard of each.

    Raises ArgumentError (a RuntimeError) for shapes, axes and ranks that do not fit; CheckError where placement or sbp is
    missing.
    """
    if self.lay is None and self.is_lazy or current_interpreter() is not None:
        top = current_interpreter()
        if not hasattr(top, "to_global"):
            raise UnsupportedError("to_global: not inside a job function", expected="nn.Graph or eager tensors",
                                   got="a lazy tensor", fix="flow.parallel_cast, or scopes")
        return top.to_global(self, placement, sbp, grad_sbp)
    if self.lay is None:
        return _from_local(self, placement, sbp, check_meta is not False, copy)
    return _to_global(self, placement, sbp, grad_sbp, copy)


def global_to_global(self: Tensor, placement=None, sbp=None, *, grad_sbp=None, check_meta: bool | None = None,
                     copy: bool = False) -> Tensor:
    """A global tensor in another placement or sbp. See Tensor.to_global."""
    if self.lay is None:
        raise ArgumentError("global_to_global: input must be a global tensor", expected="a global tensor",
                            got="a local one", fix="local_to_global, or to_global, which does both")
    return _to_global(self, placement, sbp, grad_sbp, copy)


def _to_global(x: Tensor, p, sbps, grad_sbp, copy: bool) -> Tensor:
    if p is None and sbps is None and grad_sbp is None:
        return x
    key = (x.lay, p, tuple(sbps) if type(sbps) is list else sbps, x.shape_(), current().size)
    lay = _asked.get(key)
    if lay is None:
        if len(_asked) >= 4096:
            _asked.clear()
        lay = _asked[key] = _checked(x, p, sbps)
    grad_lay = None
    if grad_sbp is not None:
        grad_sbps = as_sbp(grad_sbp, len(x.lay.sbp), "to_global: grad_sbp")
        check_fits(x.lay.placement, grad_sbps, x.shape_(), "to_global: grad_sbp")
        grad_lay = lay_of(x.lay.placement, grad_sbps)
    y = _boxed(x, lay, grad_lay)
    return _COPY(y) if copy and y is x else y


def _checked(x: Tensor, p, sbps) -> Lay:
    """The layout that to_global is asked for."""
    p = x.lay.placement if p is None else p
    check_placement(p, "to_global")
    if sbps is None and len(p.hierarchy) != len(x.lay.sbp):
        raise ArgumentError("to_global: another hierarchy needs an sbp", expected=f"{len(p.hierarchy)} of them",
                            got=f"sbp=None, and the present one is {x.lay.sbp}", fix="pass sbp=")
    sbps = x.lay.sbp if sbps is None else as_sbp(sbps, len(p.hierarchy), "to_global")
    check_fits(p, sbps, x.shape_(), "to_global")
    return lay_of(p, sbps)


class Shard(Custom):
    """One rank's shard was taken out."""

    def __init__(self, x: Tensor, rank: int):
        super().__init__("global_to_local", (x,))
        self.lay, self.rank, self.spec = x.lay, rank, x.spec

    def backward(self, node, douts):
        texts = [_DUAL.get(s.text, s.text) for s in self.lay.sbp]
        parts = {self.rank: labelled(douts[0], None)}
        layout = self.lay.layout
        for i, d in enumerate(layout.devices):         # virtual devices: what was not taken out has no gradient
            if d in current().owned and d != self.rank:
                shape = tuple(layout.local_shape(self.spec.shape, i))
                zero = REGISTRY["constant"](shape=shape, value=0, dtype=self.spec.dtype)
                parts[d] = parts[self.rank] if "B" in texts and "P" not in texts else zero
        return [assembled(self.spec, with_texts(self.lay, texts), parts if self.rank in layout.devices else {})]


def to_local(self: Tensor, *, rank: int | None = None, copy: bool = False) -> Tensor:
    """This rank's shard, which shares its memory. On a rank outside the placement: an empty tensor.

    Args:
        rank: whose shard, where this process owns several virtual devices.

    Raises ArgumentError (a RuntimeError) for a local tensor, and where several shards are here and no rank is named.
    """
    if self.lay is None:
        raise ArgumentError("to_local: Expected global tensor for to_local but got local tensor!", got="a local one",
                            expected="a global tensor", fix="it is local already")
    if self.is_lazy:
        raise UnsupportedError("to_local: not inside nn.Graph.build", expected="global tensors in a global graph",
                               got="a lazy tensor", fix="call it on what the graph returns")
    parts, owned = parts_of(self), current().owned
    if rank is None and len(parts) > 1:
        raise ArgumentError(f"to_local: this process owns ranks {', '.join(map(str, parts))}: which shard is meant?",
                            expected="one shard", got=f"{len(parts)} shards", fix="x.to_local(rank=0), or x.parts, which "
                            "has all; under flow.distributed.spawn or the launcher every rank has its own")
    if rank is not None and rank not in owned:
        raise ArgumentError(f"to_local: rank {rank} belongs to another process", expected=f"one of {owned}", got=str(rank),
                            fix="leave rank out")
    rank = next(iter(parts), owned[0]) if rank is None else rank
    part = parts.get(rank)
    if part is None:
        part = REGISTRY["constant"](shape=(0,) * self.ndim, value=0, dtype=self.dtype)
    elif copy or sum(q is part for q in parts.values()) > 1:      # devices of one process may share what they have alike
        part = _COPY.call((part,), ())
        part = part.clone() if part is parts[rank] else part
    return recorded(labelled(part, None), self, Shard(self, rank))


def write_parts(x: Tensor, z: Tensor, history: bool) -> None:
    """x takes the value of z, boxed to x's own layout; history: and came about as z did."""
    if z.lay is None:
        z = from_logical(z, x.lay.whole)
    z = _boxed(z, x.lay)
    if not x.has_memory:
        take_parts(x, z, history)
        return
    copy_into(x, z)
    if history:
        set_history(x, z.node, z.out_index)


def logical(x: Tensor) -> Tensor:
    """The whole value as a local tensor, on every rank of the world: all of them must call it."""
    engine = current()
    if x.has_memory and len(engine.owned) == engine.size:
        return labelled(x, None)
    world = Layout(("B",), tuple(range(engine.size)), (engine.size,))
    r = route(x.lay.layout, world.plain, x.spec)
    parts = moved(r, parts_of(x), x.spec)
    return next(iter(parts.values()))


def shards(xs: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
    """The parts of tensors of one layout that lie here, rank by rank; devices that share memory once."""
    found, seen = [], set()
    tables = [parts_of(x) for x in xs]
    for rank, part in tables[0].items():
        if id(part) not in seen:
            seen.add(id(part))
            found.append(tuple(t[rank] for t in tables))
    return found
