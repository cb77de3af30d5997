"""Operands of update ops: those of one device, and the shards of global parameters."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from flowedu.core.eager.dispatch import copy_to_device
from flowedu.core.ops.define import Op
from flowedu.errors import ArgumentError
from flowedu.tensor import Tensor
from flowedu.tensor.global_tensors.functions import shards


def by_device(operands: Sequence[Tensor], width: int) -> Iterator[tuple[Tensor, ...]]:
    """Group the operands of an update (rate, count, then `width` per parameter) by device."""
    places: dict[int, list[Tensor]] = {}
    for i in range(2, len(operands), width):
        places.setdefault(operands[i]._device, []).extend(operands[i:i + width])
    for place, some in places.items():
        yield (*(copy_to_device(x, place) if place else x for x in operands[:2]), *some)


def on_parts(op: Op, *tensors: Tensor) -> list[Tensor]:
    """Return the shards of a global parameter, its gradient, and its states as operands, device by device."""
    p = tensors[0]
    if op.whole and any(s.text != "B" for s in p.sbp):
        raise ArgumentError(f"{op.name}: this rule needs the norm of a whole parameter, but one of shape "
                            f"{tuple(p.shape)} is split over devices",
                            expected="parameters with sbp broadcast", got=f"{p.sbp}",
                            fix="p.to_global(sbp=flow.sbp.broadcast), or another optimizer")
    return [part for row in shards(tensors) for part in row]
