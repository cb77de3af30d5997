"""Resizing as a product of matrices: rows @ image @ columns.

`weights(source, target, ...)` is the (target, source) matrix that computes `target` pixels from `source`.
Each of its rows sums to 1. With antialias, as in Pillow, the filter is widened when the image shrinks, so
that every input pixel counts; without it, as in OpenCV, only the nearest two (bilinear) or four (bicubic)
pixels count.
"""
from __future__ import annotations

from enum import Enum
from functools import lru_cache

import numpy as np

from flowedu.errors import ArgumentError
from flowedu.oneflow04.image.resample import taps


class InterpolationMode(Enum):
    """Interpolation between pixels. The last three are Pillow's, and always widen their filter.

    Args:
        value: "nearest", "bilinear", "bicubic", "box", "hamming", or "lanczos".
    """

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_BY_PIL_NUMBER = dict(enumerate(InterpolationMode[name]
                                for name in "NEAREST LANCZOS BILINEAR BICUBIC BOX HAMMING".split()))


def check_mode(what: str, mode) -> InterpolationMode:
    """Convert a mode, its name, or Pillow's number to an InterpolationMode; raise ArgumentError."""
    if isinstance(mode, InterpolationMode):
        return mode
    try:
        return InterpolationMode(mode) if isinstance(mode, str) else _BY_PIL_NUMBER[int(mode)]
    except (KeyError, ValueError, TypeError):
        raise ArgumentError(f"{what}: unknown interpolation", expected=", ".join(map(str, InterpolationMode)),
                            got=repr(mode), fix="InterpolationMode.BILINEAR, the default") from None


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.clip(1 - np.abs(x), 0, None)


def _cubic(x: np.ndarray) -> np.ndarray:
    """Return Keys' kernel with a = -0.5, Pillow's choice."""
    x = np.abs(x)
    return np.where(x < 1, (1.5 * x - 2.5) * x * x + 1, np.where(x < 2, ((-0.5 * x + 2.5) * x - 4) * x + 2,
                                                                 0))


def _box(x: np.ndarray) -> np.ndarray:
    return ((x > -0.5) & (x <= 0.5)).astype(x.dtype)


def _hamming(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 1, np.sinc(x) * (0.54 + 0.46 * np.cos(np.pi * x)), 0)


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


_FILTERS = {InterpolationMode.BILINEAR: (_triangle, 1.0), InterpolationMode.BICUBIC: (_cubic, 2.0),
            InterpolationMode.BOX: (_box, 0.5), InterpolationMode.HAMMING: (_hamming, 1.0),
            InterpolationMode.LANCZOS: (_lanczos, 3.0)}


@lru_cache(maxsize=512)
def weights(source: int, target: int, mode: InterpolationMode, antialias: bool) -> np.ndarray:
    """Return the float32 matrix (target, source) of a mode other than NEAREST."""
    out = np.zeros((target, source))
    if not antialias and mode in (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC):
        index, part = taps(source, target, mode.value)
        for i, w in zip(index, part):
            np.add.at(out, (np.arange(target), i), w)
        return out.astype(np.float32)
    kernel, support = _FILTERS[mode]
    step = source / target
    wide = max(step, 1.0)
    for i in range(target):
        centre = (i + 0.5) * step
        first = max(int(centre - support * wide + 0.5), 0)
        last = min(int(centre + support * wide + 0.5), source)
        w = kernel((np.arange(first, last) - centre + 0.5) / wide)
        out[i, first:last] = w / w.sum()
    return out.astype(np.float32)


def nearest(source: int, target: int, centred: bool) -> np.ndarray:
    """Return the input pixel of each output pixel.

    With `centred` it is the pixel under the center of the output pixel (Pillow's rule), otherwise the pixel
    under its left edge (the rule of interpolate(mode="nearest")).
    """
    if not centred:
        return np.arange(target) * source // target
    step = source / target
    # Sums like Pillow, for equal rounding.
    at = np.cumsum(np.r_[0.5 * step, np.full(target - 1, step)])
    return np.minimum(at.astype(np.intp), source - 1)


def new_size(height: int, width: int, size: int | tuple[int, int], max_size: int | None) -> tuple[int, int]:
    """Return (height, width) for `size`, which is this pair or the size of the shorter side.

    The longer side is in proportion. If it would exceed max_size, both sides are reduced.
    """
    if not isinstance(size, int):
        return size
    short, long = min(height, width), max(height, width)
    new_short, new_long = size, int(size * long / short)
    if max_size is not None and new_long > max_size:
        new_short, new_long = int(max_size * new_short / new_long), max_size
    return (new_long, new_short) if width <= height else (new_short, new_long)
