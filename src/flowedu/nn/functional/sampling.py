"""Sampling of images at fractional positions: affine_grid and grid_sample."""
from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

from flowedu.core.ops.concat import concat
from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.elementwise import abs as abs_op
from flowedu.core.ops.elementwise import floor
from flowedu.core.ops.elementwise import round as round_op
from flowedu.core.ops.matmul import matmul
from flowedu.core.ops.promote import cast, scalar
from flowedu.core.ops.view import constant, contiguous, expand
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.common import check_tensor, reshaped
from flowedu.ops.order import range as range_op
from flowedu.ops.scatter import dim_gather
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.devices.conversion import use_device_of


def _line(n: int, corners: bool, dtype: dt.dtype) -> Tensor:
    """Return the centers of n pixels in [-1, 1]."""
    if not corners:
        step, first = 2.0 / n, 1.0 / n - 1.0
    elif n > 1:
        step, first = 2.0 / (n - 1), -1.0
    else:
        step = first = 0.0
    return cast(range_op(size=n, dtype=dt.int64), dtype) * step + first


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the sampling positions of an affine transform, for grid_sample.

    Args:
        theta: (N, 2, 3) matrices for images, (N, 3, 4) for volumes.
        size: size of the result of grid_sample, (N, C, H, W) or (N, C, D, H, W).
        align_corners: True: -1 and 1 are the centers of the outermost pixels. False: -1 and 1 are their
            outer edges. Default: False, with a warning.

    Returns:
        (N, H, W, 2) with (x, y) in [-1, 1], or (N, D, H, W, 3) with (x, y, z).
    """
    check_tensor("affine_grid", theta, "theta")
    size = tuple(size)
    k = len(size) - 2
    if k not in (2, 3) or tuple(theta.shape) != (size[0], k, k + 1):
        raise ShapeError(f"affine_grid: Expected a batch of {max(min(k, 3), 2)}D affine matrices for size "
                         f"{size}",
                         expected="theta (N, 2, 3), size (N, C, H, W); or theta (N, 3, 4), size (N, C, "
                         "D, H, W)", got=str(tuple(theta.shape)), fix="theta of shape (N, 2, 3)")
    if min(size) < 1:
        raise ShapeError("affine_grid: Expected non-zero, positive output size",
                         expected="sizes of 1 or more", got=str(size), fix="check the sizes")
    _say_corners(align_corners)
    n, sizes, points = size[0], size[2:], prod(size[2:])
    with use_device_of(theta):
        base = [constant(shape=(*sizes, 1), value=1.0, dtype=theta.dtype)]
        for axis, m in enumerate(sizes):                                   # x, the last axis, comes first
            line = reshaped(_line(m, bool(align_corners), theta.dtype),
                            (*(m if i == axis else 1 for i in range(k)), 1))
            base.insert(0, expand(line, shape=(*sizes, 1)))
    base = reshaped(concat(*base, axis=k), (1, points, k + 1))
    y = matmul(contiguous(expand(base, shape=(n, points, k + 1))), theta, transpose_b=True)
    return reshaped(y, (n, *sizes, k))


def _say_corners(align_corners: bool | None) -> None:
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior is align_corners=False. Please specify "
                      "align_corners=True if the old behavior is desired.", stacklevel=3)


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
    """Sample the input at the positions in a grid.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: (N, Ho, Wo, 2) with (x, y), or (N, Do, Ho, Wo, 3) with (x, y, z), in [-1, 1].
        mode: "bilinear" (trilinear for volumes), "nearest", or "bicubic" (images only).
        padding_mode: values used outside the input, "zeros", "border", or "reflection".
        align_corners: True: -1 and 1 are the centers of the outermost pixels. False: -1 and 1 are their
            outer edges. Default: False, with a warning.

    Returns:
        (N, C, Ho, Wo) or (N, C, Do, Ho, Wo).
    """
    check_tensor("grid_sample", input)
    k = input.ndim - 2
    if k not in (2, 3) or grid.ndim != k + 2 or grid.shape[k + 1] != k or grid.shape[0] != input.shape[0]:
        raise ShapeError(f"grid_sample(): expected grid to have size {min(max(k, 2), 3)} in last dimension, "
                         f"and one batch",
                         expected="input (N, C, H, W), grid (N, Ho, Wo, 2); or input (N, C, D, H, W), grid "
                         "(N, Do, Ho, Wo, 3)", got=f"{tuple(input.shape)}, {tuple(grid.shape)}",
                         fix="make the grid with F.affine_grid")
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in ("zeros", "border",
                                                                              "reflection") or (
                                                                                      mode == "bicubic"
                                                                                      and k == 3):
        raise ArgumentError("grid_sample(): mode or padding_mode is unknown",
                            expected="bilinear or nearest, of images also bicubic; zeros, border or "
                            "reflection", got=f"{mode!r}, {padding_mode!r}",
                            fix="leave them out: bilinear and zeros are the defaults")
    _say_corners(align_corners)
    corners, sizes = bool(align_corners), tuple(input.shape[2:])
    at = [_pixels(_coordinate(grid, k - 1 - axis), n, corners) for axis, n in enumerate(sizes)]    # (z,) y, x

    def move_inside(place: Tensor, size: int) -> Tensor:
        return _move_inside(place, size, corners, padding_mode)

    if mode == "nearest":
        return _read(input, [round_op(move_inside(a, n).detach()) for a, n in zip(at, sizes)])
    if mode != "bicubic":
        at = [move_inside(a, n) for a, n in zip(at, sizes)]
    low = [floor(a.detach()) for a in at]
    weights = [_cubic(a - b) if mode == "bicubic" else [(0, 1 - (a - b)), (1, a - b)]
               for a, b in zip(at, low)]
    total: Any = None
    for taps in itertools.product(*weights):
        places = [b + float(step) for b, (step, _) in zip(low, taps)]
        if mode == "bicubic":                                              # each of the 16 pixels separately
            places = [round_op(move_inside(p, n)) for p, n in zip(places, sizes)]
        weight = functools.reduce(lambda a, b: a * b, [w for _, w in taps])
        value = _read(input, places) * weight.unsqueeze(1)
        total = value if total is None else total + value
    return total


def _coordinate(grid: Tensor, i: int) -> Tensor:
    """Return grid[..., i]."""
    where = tuple(grid.shape[:-1])
    return reshaped(slice_op(grid, start=(*(0,) * len(where), i), stop=(*where, i + 1),
                             step=(1,) * grid.ndim), where)


def _cubic(t: Tensor) -> list[tuple[int, Tensor]]:
    """Return (step, weight) of the four pixels around a position t after the second one (Keys, a = -0.75)."""
    a = -0.75

    def near(d: Tensor) -> Tensor:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Tensor) -> Tensor:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [(-1, far(t + 1)), (0, near(t)), (1, near(1 - t)), (2, far(2 - t))]


def _pixels(u: Tensor, size: int, corners: bool) -> Tensor:
    """Convert coordinates in [-1, 1] to positions in pixels."""
    return (u + 1) * ((size - 1) / 2) if corners else ((u + 1) * size - 1) * 0.5


def _move_inside(at: Tensor, size: int, corners: bool, padding_mode: str) -> Tensor:
    """Clamp positions outside the input to the border, or reflect them."""
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, span = (0.0, size - 1.0) if corners else (-0.5, float(size))
        if span <= 0:
            return at * 0
        at = abs_op(at - low)
        turns = floor((at / span).detach())
        extra = at - turns * span
        odd = E.eq(turns - floor(turns * 0.5) * 2, 1)
        at = E.where(odd, span - extra, extra) + low
    return E.clamp(at, 0.0, float(size - 1))


def _read(image: Tensor, places: Sequence[Tensor]) -> Tensor:
    """Return image (N, C, ...) at integer positions along its axes, each (N, ...), with 0 outside."""
    n, c, *sizes = image.shape
    out = tuple(places[0].shape)
    inside: Any = None
    flat: Any = None
    for at, m in zip(places, sizes):
        here = E.logical_and(E.ge(at, scalar(0.0, at.dtype)), E.le(at, m - 1.0))
        inside = here if inside is None else E.logical_and(inside, here)
        step = cast(E.where(here, at, 0.0), dt.int64)                      # NaN and infinity count as outside
        flat = step if flat is None else flat * m + step
    points = prod(out[1:])
    index = contiguous(expand(reshaped(flat, (n, 1, points)), shape=(n, c, points)))
    got = reshaped(dim_gather(reshaped(image, (n, c, prod(sizes))), index, axis=2), (n, c, *out[1:]))
    return E.where(inside.unsqueeze(1), got, 0.0)


__all__ = ["affine_grid", "grid_sample"]
