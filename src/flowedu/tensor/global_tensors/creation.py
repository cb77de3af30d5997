"""Creation of global tensors, such as flow.ones(2, 3, placement=..., sbp=...), and queries of existing ones.

The logical value does not depend on the devices. The queries return the shards of a global tensor, and check
that the tensors of all ranks have the same dtype, shape, and layout.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.call import current_interpreter, interpreter
from flowedu.core.sbp.names import placement as Placement
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.tensor.convert import from_logical
from flowedu.core.sbp.tensor.global_layout import make_layout
from flowedu.core.sbp.tensor.interpreter import parts_of
from flowedu.core.sbp.tensor.shards import box_to, from_local
from flowedu.errors import ArgumentError, CheckError
from flowedu.tensor.arguments.types import Device, Sbp
from flowedu.tensor.construction.generator import Generator, default_generator


def spread_out(t: Tensor, placement: Placement | None, sbp: Sbp | None,
               device: Device | None = None) -> Tensor:
    """Return the global tensor with the logical value t, which must be the same on every rank.

    Raises:
        CheckError: only one of placement and sbp is passed.
        ArgumentError: device is also passed.
    """
    if placement is None or sbp is None:
        raise CheckError(f"a global tensor needs placement and sbp: {'sbp' if sbp is None else 'placement'}: "
                         f"None", expected="both", got=f"placement={placement!r}, sbp={sbp!r}",
                         fix='placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.broadcast')
    if device is not None:
        raise ArgumentError("device and placement together", expected="one of them", got=f"device={device!r}",
                            fix="leave device out: the placement determines the device")
    if t.is_lazy:
        placing: Any = getattr(current_interpreter(), "placing", None)
        return (placing.spread(t, placement, sbp) if hasattr(placing, "spread")
                else t.to_global(placement, sbp))
    global_layout = make_layout(placement, sbp, t._sizes(), "placement, sbp")
    # The data is final, not a node of a graph under construction.
    with interpreter(None):
        return from_logical(t, global_layout)


def of_kind(p: Placement, kind: str) -> Placement:
    """Return the placement with the ranks of `p` and devices of the kind "cpu" or "cuda"."""
    return p if p.type == kind else Placement(kind, p.ranks)


def shared_generator(placement: Placement | None, generator: Any) -> Any:
    """Return a generator for a global tensor; on every rank it has the state of rank 0's default generator.

    Args:
        placement: flow.placement of the tensor. If it is None, `generator` is returned.
        generator: the caller's Generator, which is returned unchanged. If it is None, a new one is created.
    """
    engine = current()
    if placement is None or generator is not None or len(engine.owned) == engine.size:
        return generator
    comm: Any = engine.comm(engine.rank)
    group = tuple(range(engine.size))
    own = default_generator
    state = comm.broadcast(own.get_state().numpy() if engine.rank == 0 else None, 0, group, "random numbers")
    shared = Generator()
    shared._seed, shared._draws = (int(x) for x in state.copy().view("<u8"))
    own.next()                                     # and advances
    return shared


def check_meta_consistency(self: Tensor) -> None:
    """Raise an error on every rank if the tensors of the ranks differ in dtype, shape, placement, or sbp.

    All ranks must call this method.
    """
    engine = current()
    if len(engine.owned) == engine.size:
        return
    at = "local" if self.global_layout is None else f"{self.placement}, {self.sbp}"
    mine = [self.dtype.name, str(tuple(self.shape)), at]
    comm: Any = engine.comm(engine.rank)
    everyone = comm.all_gather_object(mine)
    if any(m != everyone[0] for m in everyone):
        raise ArgumentError("check_meta_consistency: the ranks' tensors differ",
                            expected="the same dtype, shape and layout",
                            got="; ".join(f"rank {r}: {', '.join(m)}" for r, m in enumerate(everyone)),
                            fix="look at x.dtype, x.shape, x.placement and x.sbp on every rank")


def shards(xs: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
    """Return the local parts of tensors with the same layout, one tuple per rank.

    Devices that share one part are listed once.
    """
    found, seen = [], set()
    tables = [parts_of(x) for x in xs]
    for rank, part in tables[0].items():
        if id(part) not in seen:
            seen.add(id(part))
            found.append(tuple(t[rank] for t in tables))
    return found


def global_to_global(self: Tensor, placement: Placement | None = None, sbp: Sbp | None = None, *,
                     grad_sbp: Sbp | None = None, check_meta: bool | None = None,
                     copy: bool = False) -> Tensor:
    """Convert a global tensor to another placement or sbp; see Tensor.to_global.

    Args:
        placement: flow.placement of the result; default: that of the tensor.
        sbp: flow.sbp of the result, or one per axis of the hierarchy; default: that of the tensor.
        grad_sbp: sbp of the gradient; default: chosen by the conversion's gradient rule.
        check_meta: accepted for compatibility and ignored.
        copy: copy the memory even if it could be shared; default: False.

    Raises:
        ArgumentError: the tensor is local.
    """
    if self.global_layout is None:
        raise ArgumentError("global_to_global: input must be a global tensor", expected="a global tensor",
                            got="a local one", fix="local_to_global, or to_global, which does both")
    return box_to(self, placement, sbp, grad_sbp, copy)


def local_to_global(self: Tensor, placement: Placement | None = None, sbp: Sbp | None = None, *,
                    check_meta: bool | None = True, copy: bool = False) -> Tensor:
    """Return the global tensor whose shard on this rank is a local tensor; see Tensor.to_global.

    Args:
        placement: flow.placement of the result.
        sbp: flow.sbp of the result, or one per axis of the hierarchy.
        check_meta: check that the shapes and dtypes of all ranks fit together; default: True.
        copy: copy the memory even if it could be shared; default: False.

    Raises:
        ArgumentError: the tensor is global.
    """
    if self.global_layout is not None:
        raise ArgumentError("local_to_global: input must be a local tensor", expected="a local tensor",
                            got="a global one", fix="global_to_global, or to_global, which does both")
    return from_local(self, placement, sbp, check_meta is not False, copy)
