"""_utils: concatenation of tensors to one flat tensor, and back."""
from __future__ import annotations

from collections.abc import Sequence

import flowedu as flow


def _flatten_dense_tensors(tensors: Sequence[flow.Tensor]) -> flow.Tensor:
    return flow.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: flow.Tensor, tensors: Sequence[flow.Tensor]) -> tuple[flow.Tensor, ...]:
    """Split `flat` into tensors with the shapes of `tensors`."""
    return tuple(part.reshape(t.shape) for part, t in zip(flat.split([t.numel() for t in tensors]), tensors))
