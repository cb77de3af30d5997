"""Local tensors as shards of global ones, and back; what that means for gradients.

A conversion is an op of its own on the tape. The gradient of a conversion from local to global comes back in the dual
layout: what was split is split, the gradient of what was broadcast is partial, that of a partial sum is broadcast.
"""
from __future__ import annotations

from flowedu.core.eager.arrays import copy_of
from flowedu.core.eager.dispatch import GlobalLayout, copy_into, labelled, set_history, take_parts
from flowedu.core.eager.tensor import Tensor
from flowedu.core.extensions import extension
from flowedu.core.grad.custom import Custom
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.sbp.names import as_sbp
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.sbp import DUAL, Layout, split_axis
from flowedu.core.sbp.tensor.convert import boxed, from_logical, recorded
from flowedu.core.sbp.tensor.global_layout import check_placement, checked_layout, kept, layout_of, no_axis, with_texts
from flowedu.core.sbp.tensor.interpreter import assembled, housed, on, parts_of
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, CheckError, UnsupportedError


# ---- from local
class Joined(Custom):
    """Shards became a global tensor."""

    def __init__(self, x: Tensor, global_layout: GlobalLayout, spec: Spec):
        super().__init__("local_to_global", (x,))
        self.global_layout, self.spec, self.place = global_layout, spec, x._device

    def backward(self, node, douts):
        g = box_like(douts[0], with_texts(self.global_layout, [DUAL.get(s, s) for s in self.global_layout.layout.sbp]))
        parts = [on(p, self.place) for p in parts_of(g).values()]
        if not parts:                                  # a rank outside the placement: its tensor was not used
            return [on(REGISTRY["constant"](shape=self.shapes[0], value=0, dtype=self.spec.dtype), self.place)]
        total = parts[0]
        for p in parts[1:]:                            # one tensor stood for the shards of several ranks
            total = total + p
        return [total if len(parts) > 1 else labelled(total, None)]


def from_local(x: Tensor, p, sbps, check_meta: bool, copy: bool = False) -> Tensor:
    if p is None or sbps is None:
        raise CheckError("Converting a local tensor to global tensor must have placement and sbp parameters.",
                         expected="both", got=f"placement={p!r}, sbp={sbps!r}",
                         fix='x.to_global(placement=flow.placement("cpu", [0]), sbp=flow.sbp.split(0))')
    check_placement(p, "to_global")
    global_layout, engine = layout_of(p, as_sbp(sbps, len(p.hierarchy), "to_global")), current()
    alone = len(engine.owned) == engine.size           # all shards are here, and alike
    if x._device and p.type == "cuda" and not alone:
        extension("GPUs of ranks").check_own(x, p, engine.rank)
    others = None if alone else extension("shards of other ranks")
    spec = Spec(_logical_shape(x._sizes(), global_layout.layout), x.dtype) if alone else \
        others.logical_spec(x, global_layout, check_meta)
    own = copy_of(x.detach()) if copy else x.detach()
    parts = housed({d: own for d in p.devices if d in engine.owned}, p)
    if "B" in global_layout.layout.sbp and not alone:
        parts = others.of_first(global_layout.layout, parts)
    y = assembled(spec, global_layout, parts, None, engine.identify("joined", (global_layout, spec)))
    return recorded(y, x, Joined(x, global_layout, spec))


def _logical_shape(shape: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    """The shape of a value all of whose parts have this one."""
    sizes = list(shape)
    for s, n in zip(layout.sbp, layout.hierarchy):
        axis = split_axis(s)
        if axis is not None:
            if axis >= len(shape):
                raise no_axis("to_global", axis, shape, f"an axis of the local shape {shape}")
            sizes[axis] *= n
    return tuple(sizes)


# ---- to local
class Shard(Custom):
    """One rank's shard was taken out."""

    def __init__(self, x: Tensor, rank: int):
        super().__init__("global_to_local", (x,))
        self.global_layout, self.rank, self.spec = x.global_layout, rank, x.spec

    def backward(self, node, douts):
        texts = [DUAL.get(s, s) for s in self.global_layout.layout.sbp]
        parts = {self.rank: labelled(douts[0], None)}
        layout = self.global_layout.layout
        for i, d in enumerate(layout.devices):         # virtual devices: what was not taken out has no gradient
            if d in current().owned and d != self.rank:
                shape = tuple(layout.local_shape(self.spec.shape, i))
                zero = REGISTRY["constant"](shape=shape, value=0, dtype=self.spec.dtype)
                parts[d] = parts[self.rank] if "B" in texts and "P" not in texts else zero
        return [assembled(self.spec, with_texts(self.global_layout, texts), parts if self.rank in layout.devices else {})]


def to_local(self: Tensor, *, rank: int | None = None, copy: bool = False) -> Tensor:
    """This rank's shard, which shares its memory. On a rank outside the placement: an empty tensor.

    Args:
        rank: whose shard, where this process owns several virtual devices.

    Raises ArgumentError (a RuntimeError) for a local tensor, and where several shards are here and no rank is named.
    """
    if self.global_layout is None:
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


def box_like(g: Tensor, global_layout: GlobalLayout | None) -> Tensor:
    """g in a layout: a gradient in that of its leaf (arrive.pxi), a value in that of its target. None: a local tensor."""
    if global_layout is None:
        return to_local(g)
    if g.global_layout is None:
        g = from_logical(g, global_layout.whole)
    return boxed(g, global_layout)


def write_parts(x: Tensor, z: Tensor, history: bool) -> None:
    """x takes the value of z, boxed to x's own layout; history: and z's autograd history."""
    z = box_like(z, x.global_layout)
    if not x.has_memory:
        take_parts(x, z, history)
        return
    copy_into(x, z)
    if history:
        set_history(x, z.node, z.out_index)


# ---- both
_asked: dict[tuple, GlobalLayout] = {}           # what was asked for before, checked


def to_global(self: Tensor, placement=None, sbp=None, *, grad_sbp=None, check_meta: bool | None = None,
              copy: bool = False) -> Tensor:
    """A local tensor becomes this rank's shard of a global one; a global one is boxed to another placement or sbp.

    Args:
        placement: flow.placement; of a local tensor required, of a global one the present one by default.
        sbp: one flow.sbp, or one for each axis of the placement's hierarchy; as placement.
        grad_sbp: of a global tensor: how its gradient is to lie.
        check_meta: whether the ranks compare shapes and dtypes (local tensors; default: they do).
        copy: memory of its own, even where nothing has to be moved.

    From local: split(i) makes shards parts along axis i (sizes equal, or those of the balanced split), of broadcast rank
    0's numbers win, with partial_sum the shards are summed. Every rank of the world must call it. A process that owns
    several virtual devices stands for all of them: the tensor is the shard of each.

    Raises ArgumentError (a RuntimeError) for shapes, axes and ranks that do not fit; CheckError where placement or sbp is
    missing.
    """
    if self.global_layout is None and self.is_lazy or current_interpreter() is not None:
        top = current_interpreter()
        if not hasattr(top, "to_global"):
            raise UnsupportedError("to_global: not inside a job function", expected="nn.Graph or eager tensors",
                                   got="a lazy tensor", fix="flow.parallel_cast, or scopes")
        return top.to_global(self, placement, sbp, grad_sbp)
    if self.global_layout is None:
        return from_local(self, placement, sbp, check_meta is not False, copy)
    return box_to(self, placement, sbp, grad_sbp, copy)


def box_to(x: Tensor, p, sbps, grad_sbp, copy: bool) -> Tensor:
    if p is None and sbps is None and grad_sbp is None:
        return x
    key = (x.global_layout, p, tuple(sbps) if type(sbps) is list else sbps, x._sizes(), current().size)
    try:
        global_layout = _asked.get(key)
    except TypeError:                              # something unhashable: no placement or sbp
        global_layout = _checked(x, p, sbps)
    if global_layout is None:
        global_layout = kept(_asked, key, _checked(x, p, sbps))
    grad_layout = None
    if grad_sbp is not None:
        grad_layout = checked_layout(x.global_layout.placement, grad_sbp, x._sizes(), "to_global: grad_sbp")
    y = boxed(x, global_layout, grad_layout)
    return copy_of(y) if copy and y is x else y


def _checked(x: Tensor, p, sbps) -> GlobalLayout:
    """The layout that to_global is asked for."""
    p = x.global_layout.placement if p is None else p
    check_placement(p, "to_global")
    if sbps is None and len(p.hierarchy) != len(x.global_layout.sbp):
        raise ArgumentError("to_global: another hierarchy needs an sbp", expected=f"{len(p.hierarchy)} of them",
                            got=f"sbp=None, and the present one is {x.global_layout.sbp}", fix="pass sbp=")
    return checked_layout(p, x.global_layout.sbp if sbps is None else sbps, x._sizes(), "to_global")
