"""Functions of the standard that change, join, and repeat shapes."""
from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.errors import ShapeError
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments import dims
from flowedu.tensor.arguments.types import Axes
from flowedu.tensor.array_api.adapters import promote
from flowedu.tensor.shapes import join_and_pad as J
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes import split_and_flip as P


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Return the arrays, broadcast to one shape."""
    return tuple(S.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """Return x, broadcast to a shape."""
    return S.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Join arrays along an axis; None: flatten them first."""
    return J.cat([S.ravel(x) if axis is None else x for x in promote(*arrays)], axis or 0)


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """Reverse the order of elements along axes."""
    return P.flip(x, dims.dims(axis, x.ndim, "flip"))


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Move axes to other positions."""
    return S.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """Return x with its axes in another order."""
    return S.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Repeat each element."""
    return S.repeat_interleave(x, repeats, axis)


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Shift the elements along axes; those that leave one end enter at the other."""
    return P.roll(x, shift, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Join arrays along a new axis."""
    return J.stack(promote(*arrays), axis)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """Repeat x along each axis."""
    return S.tile(x, tuple(repetitions))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Split x along an axis into arrays without it."""
    return P.unbind(x, axis)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """Return x with a new axis of size 1 at each position in `axis`, a number or a tuple."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    for i in dims.dims(axes, x.ndim + len(axes), "expand_dims") if axes else ():
        x = S.unsqueeze(x, i)
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return x without the given axes; raise ShapeError if one of them has a size other than 1."""
    axes = dims.dims(axis, x.ndim, "squeeze") if axis != () else ()
    if builtins.any(x.shape[i] != 1 for i in axes):
        raise ShapeError("squeeze: an axis has a size other than 1", got=str(tuple(x.shape)),
                         fix="leave it out of axis")
    return S.reshape(x, [n for i, n in enumerate(x.shape) if i not in axes])


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: builtins.bool | None = None) -> Tensor:
    """Return x in another shape; copy=False raises an error if the elements must be copied."""
    y = S.view(x, shape) if copy is False else S.reshape(x, shape)
    return E.clone(y) if copy else y
