"""Tensor methods for the layout of global tensors (chapter 6), implemented in core/sbp/tensor/."""
from __future__ import annotations

from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.sbp.names import sbp
from flowedu.errors import ArgumentError
from flowedu.tensor.arguments.types import Placement
from flowedu.tensor.global_tensors.functions import (
    check_meta_consistency,
    global_to_global,
    local_to_global,
    parts_of,
    to_global,
    to_local,
)


def _placement(self: Tensor) -> Placement:
    """Devices of a global tensor."""
    if self.global_layout is None:
        raise ArgumentError("Only global tensors have 'placement'. Please use '.device' for local tensors.",
                            expected="a global tensor", got="a local one",
                            fix="x.device, or x.to_global(...)")
    return self.global_layout.placement


def _sbp(self: Tensor) -> tuple[sbp, ...]:
    """Layout of a global tensor on its devices: one sbp for each axis of the placement's hierarchy."""
    if self.global_layout is None:
        raise ArgumentError("Local tensor has no sbp property. Only global tensors have 'sbp'.",
                            expected="a global tensor", got="a local one", fix="x.to_global(placement, sbp)")
    return self.global_layout.sbp


def _parts(self: Tensor) -> dict[int, Tensor]:
    """{rank: shard} of the ranks of this process; devices with equal shards may share one."""
    if self.global_layout is None:
        raise ArgumentError("parts: Only global tensors have parts", expected="a global tensor",
                            got="a local one", fix="it is all here")
    return dict(parts_of(self))


attach(Tensor, {"placement": property(_placement), "sbp": property(_sbp), "parts": property(_parts),
                "to_global": to_global,
                "to_local": to_local, "local_to_global": local_to_global,
                "global_to_global": global_to_global,
                "to_consistent": to_global, "check_meta_consistency": check_meta_consistency})
