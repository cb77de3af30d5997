"""Local tensors as shards of global ones, and back; what that means for gradients.

A conversion is an op of its own on the tape. The gradient of a conversion from local to global comes back in the dual
layout: what was split is split, the gradient of what was broadcast is partial, that of a partial sum is broadcast.
"""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.grad.custom import Custom
from flowedu.core.ops.arrays import copy_of, from_numpy
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.dispatch import Lay, labelled
from flowedu.core.ops.tensor import Tensor
from flowedu.core.sbp.names import as_sbp, placement, sbp
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.sbp import Layout
from flowedu.core.sbp.tensor.convert import brought, recorded
from flowedu.core.sbp.tensor.interpreter import Parts, assembled, parts_of
from flowedu.core.sbp.tensor.lay import check_placement, lay_of, with_texts
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, CheckError, DTypeError, UnsupportedError, user_line

_DUAL = {"B": "P", "P": "B"}


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


def from_local(x: Tensor, p, sbps, check_meta: bool, copy: bool = False) -> Tensor:
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
    own = copy_of(x.detach()) if copy else x.detach()
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
        raise DTypeError("to_global: Expected all tensors on each rank to be the same dtype, but found at least two "
                         f"dtypes, {' and '.join(types)}!", expected="one dtype on all ranks", fix="x.to(flow.float32)",
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


def check_meta_consistency(self: Tensor) -> None:
    """Raise on every rank where the ranks' tensors differ in dtype, or in shape (of local ones) or placement and sbp. All
    ranks must call it."""
    engine = current()
    if len(engine.owned) == engine.size:
        return
    at = "local" if self.lay is None else f"{self.placement}, {self.sbp}"
    mine = [self.dtype.name, str(tuple(self.shape)), at]
    everyone = engine.comm(engine.rank).all_gather_object(mine)
    if any(m != everyone[0] for m in everyone):
        raise ArgumentError("check_meta_consistency: the ranks' tensors differ",
                            expected="the same dtype, shape and layout",
                            got="; ".join(f"rank {r}: {', '.join(m)}" for r, m in enumerate(everyone)),
                            fix="look at x.dtype, x.shape, x.placement and x.sbp on every rank")


# ---- to local
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
        part = copy_of(part)
        part = part.clone() if part is parts[rank] else part
    return recorded(labelled(part, None), self, Shard(self, rank))


def shards(xs: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
    """The parts of tensors of one layout that lie here, rank by rank; devices that share memory once."""
    found, seen = [], set()
    tables = [parts_of(x) for x in xs]
    for rank, part in tables[0].items():
        if id(part) not in seen:
            seen.add(id(part))
            found.append(tuple(t[rank] for t in tables))
    return found
