"""Differentiable conversion of local tensors to shards of global tensors, and back.

A conversion is one node of the autograd graph. The gradient of a global tensor arrives in the dual
layout: split for a split value, partial for a broadcast one, broadcast for a partial sum.
"""
from __future__ import annotations

from flowedu.core import extensions
from flowedu.core.eager.arrays import copy_of
from flowedu.core.eager.dispatch import GlobalLayout, copy_into, labelled, set_history, take_parts
from flowedu.core.eager.tensor import Tensor
from flowedu.core.grad.custom import Custom, TapeNode
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.sbp.names import Sbps, as_sbp, placement
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.sbp import DUAL, Layout, split_axis
from flowedu.core.sbp.tensor import global_layout as layouts
from flowedu.core.sbp.tensor.convert import box, from_logical, record
from flowedu.core.sbp.tensor.global_layout import check_placement, layout_of, make_layout
from flowedu.core.sbp.tensor.interpreter import assemble, on, parts_of, place_on_devices
from flowedu.core.values.spec import Spec
from flowedu.errors import layouts as errors


# ---- from local
class Joined(Custom):
    """The node of a conversion from local shards to a global tensor."""

    def __init__(self, x: Tensor, global_layout: GlobalLayout, spec: Spec):
        super().__init__("local_to_global", (x,))
        self.global_layout, self.spec, self.place = global_layout, spec, x._device

    def backward(self, node: TapeNode, douts: list[Tensor]) -> list[Tensor]:
        dual = [DUAL.get(s, s) for s in self.global_layout.layout.sbp]
        g = box_like(douts[0], layouts.with_texts(self.global_layout, dual))
        parts = [on(p, self.place) for p in parts_of(g).values()]
        if not parts:                                  # a rank outside the placement
            zero = REGISTRY["constant"](shape=self.shapes[0], value=0, dtype=self.spec.dtype)
            return [on(zero, self.place)]
        total = parts[0]
        for p in parts[1:]:                            # x was the shard of several ranks
            total = total + p
        return [total if len(parts) > 1 else labelled(total, None)]


def from_local(x: Tensor, p: placement | None, sbps: Sbps | None, check_meta: bool,
               copy: bool = False) -> Tensor:
    if p is None or sbps is None:
        raise errors.no_placement(p, sbps)
    check_placement(p, "to_global")
    global_layout, engine = layout_of(p, as_sbp(sbps, len(p.hierarchy), "to_global")), current()
    alone = len(engine.owned) == engine.size          # this thread owns all shards, which are equal
    if x._device and p.type == "cuda" and not alone:
        extensions.rank_gpus.check_own(x, p, engine.rank)
    others = None if alone else extensions.remote_shards
    spec = Spec(_logical_shape(x._sizes(), global_layout.layout), x.dtype) if others is None else \
        others.logical_spec(x, global_layout, check_meta)
    shard = copy_of(x.detach()) if copy else x.detach()
    parts = place_on_devices({d: shard for d in p.devices if d in engine.owned}, p)
    if "B" in global_layout.layout.sbp and others is not None:
        parts = others.of_first(global_layout.layout, parts)
    y = assemble(spec, global_layout, parts, None, engine.identify("joined", (global_layout, spec)))
    return record(y, x, Joined(x, global_layout, spec))


def _logical_shape(shape: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    """Return the logical shape of a value whose parts all have this shape."""
    sizes = list(shape)
    for s, n in zip(layout.sbp, layout.hierarchy):
        axis = split_axis(s)
        if axis is not None:
            if axis >= len(shape):
                raise errors.axis_error("to_global", axis, shape,
                                        f"an axis of the local shape {shape}")
            sizes[axis] *= n
    return tuple(sizes)


# ---- to local
class Shard(Custom):
    """The node of a conversion from a global tensor to one rank's shard."""

    def __init__(self, x: Tensor, rank: int):
        super().__init__("global_to_local", (x,))
        self.global_layout, self.rank, self.spec = x.global_layout, rank, x.spec

    def backward(self, node: TapeNode, douts: list[Tensor]) -> list[Tensor]:
        texts = [DUAL.get(s, s) for s in self.global_layout.layout.sbp]
        parts = {self.rank: labelled(douts[0], None)}
        layout = self.global_layout.layout
        for i, d in enumerate(layout.devices):         # the gradient of other virtual devices is 0
            if d in current().owned and d != self.rank:
                shape = tuple(layout.local_shape(self.spec.shape, i))
                zero = REGISTRY["constant"](shape=shape, value=0, dtype=self.spec.dtype)
                parts[d] = parts[self.rank] if "B" in texts and "P" not in texts else zero
        return [assemble(self.spec, layouts.with_texts(self.global_layout, texts),
                         parts if self.rank in layout.devices else {})]


def to_local(self: Tensor, *, rank: int | None = None, copy: bool = False) -> Tensor:
    """Return this rank's shard, in the same memory, or an empty tensor outside the placement.

    Args:
        rank: the rank of the shard, required if this process owns several virtual devices.

    Raises ArgumentError (a RuntimeError) for a local tensor, and for several shards without a rank.
    """
    if self.global_layout is None:
        raise errors.already_local()
    if self.is_lazy:
        raise errors.to_local_in_build()
    parts, owned = parts_of(self), current().owned
    if rank is None and len(parts) > 1:
        raise errors.which_shard(parts)
    if rank is not None and rank not in owned:
        raise errors.foreign_rank(rank, owned)
    rank = next(iter(parts), owned[0]) if rank is None else rank
    part = parts.get(rank)
    if part is None:
        part = REGISTRY["constant"](shape=(0,) * self.ndim, value=0, dtype=self.dtype)
    elif copy or sum(q is part for q in parts.values()) > 1:      # devices may share a tensor
        part = copy_of(part)
    return record(labelled(part, None), self, Shard(self, rank))


def box_like(g: Tensor, global_layout: GlobalLayout | None) -> Tensor:
    """Return g, a local or global tensor, boxed to a layout (None: its local shard)."""
    if global_layout is None:
        return to_local(g)
    if g.global_layout is None:
        g = from_logical(g, global_layout.whole)
    return box(g, global_layout)


def write_parts(x: Tensor, z: Tensor, history: bool) -> None:
    """Write z, boxed to the layout of x, into x. history: also set the autograd history of z."""
    z = box_like(z, x.global_layout)
    if not x.has_memory:
        take_parts(x, z, history)
        return
    copy_into(x, z)
    if history:
        set_history(x, z.node, z.out_index)


# ---- both
_layouts: dict[tuple, GlobalLayout] = {}         # a cache of checked layouts


def to_global(self: Tensor, placement: placement | None = None, sbp: Sbps | None = None, *,
              grad_sbp: Sbps | None = None, check_meta: bool | None = None,
              copy: bool = False) -> Tensor:
    """Convert a local tensor, this rank's shard, to a global one, or box a global tensor.

    Args:
        placement: flow.placement, required for a local tensor; default: the tensor's placement.
        sbp: one flow.sbp, or one for each axis of the hierarchy; required for a local tensor.
        grad_sbp: the sbp of the gradient (global tensors).
        check_meta: if False, ranks compare only shapes, not dtypes (local tensors); default: True.
        copy: return new memory even if no boxing is needed.

    For split(i), local tensors are the parts of a balanced split along axis i. For partial_sum,
    they are addends. For broadcast, the first rank's values are used. Every rank of the world must
    call this. On virtual devices, the local tensor is every device's shard.

    Raises ArgumentError for invalid shapes, axes, and ranks; CheckError if the layout is missing.
    """
    if self.global_layout is None and self.is_lazy or current_interpreter() is not None:
        top = current_interpreter()
        if not hasattr(top, "to_global"):
            raise errors.to_global_in_job()
        return top.to_global(self, placement, sbp, grad_sbp)
    if self.global_layout is None:
        return from_local(self, placement, sbp, check_meta is not False, copy)
    return box_to(self, placement, sbp, grad_sbp, copy)


def box_to(x: Tensor, p: placement | None, sbps: Sbps | None, grad_sbp: Sbps | None,
           copy: bool) -> Tensor:
    if p is None and sbps is None and grad_sbp is None:
        return x
    key = (x.global_layout, p, tuple(sbps) if type(sbps) is list else sbps, x._sizes(),
           current().size)
    try:
        global_layout = _layouts.get(key)
    except TypeError:                              # unhashable, so not a placement or sbp
        global_layout = _target_layout(x, p, sbps)
    if global_layout is None:
        global_layout = layouts.remember(_layouts, key, _target_layout(x, p, sbps))
    grad_layout = None
    if grad_sbp is not None:
        grad_layout = make_layout(x.global_layout.placement, grad_sbp, x._sizes(),
                                  "to_global: grad_sbp")
    y = box(x, global_layout, grad_layout)
    return copy_of(y) if copy and y is x else y


def _target_layout(x: Tensor, p: placement | None, sbps: Sbps | None) -> GlobalLayout:
    """Return the layout that the arguments of to_global specify."""
    p = x.global_layout.placement if p is None else p
    check_placement(p, "to_global")
    if sbps is None and len(p.hierarchy) != len(x.global_layout.sbp):
        raise errors.sbp_for_hierarchy(p.hierarchy, x.global_layout.sbp)
    return make_layout(p, x.global_layout.sbp if sbps is None else sbps, x._sizes(), "to_global")
