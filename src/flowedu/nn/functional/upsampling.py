"""Resizing of images: interpolate and upsample."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flowedu.core.ops.elementwise import abs as abs_op
from flowedu.core.ops.elementwise import floor
from flowedu.core.ops.promote import cast
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError, UnsupportedError
from flowedu.nn.functional.common import Ints, ValueT, check_tensor, ints, reshaped
from flowedu.ops import index
from flowedu.ops.order import range as range_op
from flowedu.ops.resize import NEARLY, resize2d
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.devices.conversion import use_device_of

_AXES = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,),
         "trilinear": (3,), "bicubic": (2,), "area": (1, 2, 3)}


def interpolate(input: Tensor, size: int | Sequence[int] | None = None,
                scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
    """Resize the spatial axes of the input.

    Args:
        input: (N, C, L), (N, C, H, W), or (N, C, D, H, W).
        size: spatial size of the result, an int or one per axis. Give `size` or `scale_factor`.
        scale_factor: ratio of the sizes, a number or one per axis; the size is floor(size * factor).
        mode: "nearest", "linear" (one axis), "bilinear" (two axes), "trilinear" (three axes), "bicubic" (two
            axes), "area" (means), or "nearest-exact" ("nearest", computed with the centers of the pixels).
        align_corners: align the centers of the outermost pixels of input and output, for linear and cubic
            modes; default: False.
        recompute_scale_factor: use the ratio of the rounded sizes instead of scale_factor; default: False.
        antialias: not supported.

    Raises:
        ArgumentError (a ValueError and RuntimeError): size, scale_factor, or mode does not fit the input.
        UnsupportedError: antialias=True.
    """
    check_tensor("interpolate", input)
    n = input.ndim - 2
    if antialias:
        raise UnsupportedError("interpolate: antialias is not supported", expected="antialias=False",
                               got="True", fix="mode='area' for smaller images")
    if mode not in _AXES or n not in _AXES[mode]:
        raise ArgumentError(f"interpolate: mode={mode!r} does not fit a {input.ndim}D input",
                            expected="nearest and area for "
                            "3D to 5D; linear for 3D, bilinear for 4D, trilinear for 5D",
                            got=f"{mode!r}, {tuple(input.shape)}", fix="mode='nearest' takes all ranks")
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ArgumentError("interpolate: align_corners option can only be set with the interpolating modes: "
                            "linear | bilinear | bicubic | trilinear", expected="None",
                            got=str(align_corners), fix="leave align_corners out")
    if (size is None) == (scale_factor is None):
        raise ArgumentError("interpolate: only one of size or scale_factor should be defined",
                            expected="one of the two",
                            got="neither" if size is None else "both",
                            fix="size=(height, width), or scale_factor=2")
    old = tuple(input.shape[2:])
    factors: tuple[Any, ...] | None = None
    if size is not None:
        new = ints(size, n, "interpolate", "size", 1)
    else:
        factors = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * n
        if len(factors) != n:
            raise ArgumentError("interpolate: Input and scale_factor must have the same number of spatial "
                                "dimensions",
                                expected=f"{n} factors", got=str(scale_factor), fix="one number for all axes")
        if not all(0 < s * float(f) < 2 ** 62 for s, f in zip(old, factors)):
            raise ArgumentError("interpolate: scale_factor is not right",
                                expected="a finite number above 0, and an image",
                                got=f"{scale_factor}, {old}", fix="scale_factor=2.0")
        new = tuple(int(math.floor(s * float(f))) for s, f in zip(old, factors))
    if 0 in old or 0 in new:
        raise ShapeError("interpolate: Input and output sizes should be greater than 0",
                         got=f"{old} to {new}", expected="sizes of 1 or more", fix="leave empty images out")
    if mode == "area":
        from flowedu.nn.functional import adaptive_pool
        return getattr(adaptive_pool, f"adaptive_avg_pool{n}d")(input, new)
    if factors is None or recompute_scale_factor:
        factors = tuple(b / a for a, b in zip(old, new))
    factors = tuple(map(float, factors))
    if mode in ("bicubic", "nearest-exact"):
        for i in range(n):
            read = _cubic if mode == "bicubic" else _middle
            input = read(input, 2 + i, new[i], factors[i], bool(align_corners))
        return input
    kind = "nearest" if mode == "nearest" else "bilinear"
    return resized(input, new, factors, kind, bool(align_corners))


def resized(x: ValueT, new: Ints, factors: Sequence[float], mode: str, corners: bool) -> ValueT:
    """Return a value (n, c, one to three axes) with the sizes `new`; mode is "nearest" or "bilinear"."""
    b, c, *old = x.shape
    if len(new) == 1:
        y = _plane(reshaped(x, (b, c, 1, old[0])), (1, *new), (1.0, *factors), mode, corners)
        return reshaped(y, (b, c, *new))
    if len(new) == 2:
        return _plane(x, new, factors, mode, corners)
    y = _plane(reshaped(x, (b, c * old[0], *old[1:])), new[1:], factors[1:], mode, corners)
    y = _plane(reshaped(y, (b, c, old[0], new[1] * new[2])), (new[0], new[1] * new[2]), (factors[0], 1.0),
               mode, corners)
    return reshaped(y, (b, c, *new))


def _plane(x: ValueT, size: Sequence[int], scale: Sequence[float], mode: str, corners: bool) -> ValueT:
    return resize2d(x, size=tuple(size), scale=tuple(scale), mode=mode, align_corners=corners
                    and mode != "nearest")


def _positions(n: int, out: int, factor: float, corners: bool, dtype: dt.dtype) -> Tensor:
    """Return the centers of `out` pixels as positions in a row of n pixels."""
    i = cast(range_op(size=out, dtype=dt.int64), dtype)
    if not corners:
        return (i + 0.5) * (1.0 / factor) - 0.5
    return i * ((n - 1) / (out - 1) if out > 1 else 0.0)


def _middle(x: Tensor, axis: int, out: int, factor: float, corners: bool) -> Tensor:
    with use_device_of(x):
        at = _positions(x.shape[axis], out, factor, False, dt.float64) + 0.5
    return _take_or_zero(x, axis, floor(at * NEARLY))


def _take_or_zero(x: Tensor, axis: int, places: Tensor) -> Tensor:
    """Return the elements of an axis at `places`; positions outside get the border's value."""
    return index.gather.call((x, cast(E.clamp(places, 0.0, x.shape[axis] - 1.0), dt.int64)), (axis,))


def _cubic(x: Tensor, axis: int, out: int, factor: float, corners: bool) -> Tensor:
    """Interpolate along one axis from four neighbors (Keys, a = -0.75)."""
    a = -0.75
    with use_device_of(x):
        at = _positions(x.shape[axis], out, factor, corners, dt.float64)
    first = floor(at)
    t = at - first
    total: Any = None
    for k in (-1, 0, 1, 2):
        d = abs_op(t - float(k))                      # the distance to that neighbour
        weight = ((a + 2) * d - (a + 3)) * d * d + 1 if k in (0, 1) else ((d - 5) * d + 8) * d * a - 4 * a
        weight = reshaped(cast(weight, x.dtype), (out, *(1,) * (x.ndim - axis - 1)))
        part = _take_or_zero(x, axis, first + float(k)) * weight
        total = part if total is None else total + part
    return total


def upsample(input: Tensor, size: int | Sequence[int] | None = None,
             scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:
    """Resize the spatial axes of the input (deprecated name of interpolate).

    Args:
        input: (N, C, L), (N, C, H, W), or (N, C, D, H, W).
        size: spatial size of the result, an int or one per axis. Give `size` or `scale_factor`.
        scale_factor: ratio of the sizes, a number or one per axis.
        mode: see interpolate.
        align_corners: align the centers of the outermost pixels of input and output; default: False.
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


__all__ = ["interpolate", "upsample"]
