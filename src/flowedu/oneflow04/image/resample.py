"""Resizing of images with the rules of OpenCV, which OneFlow's kernels use.

Every output pixel is a weighted sum of a few input pixels, along one axis at a time. `taps` returns their
indices and weights: for a row of 4 pixels resized to 2, "area" gives the indices [[0, 2], [1, 3], [2, 3]] and
the weights [[.5, .5], [.5, .5], [0, 0]]. `blended` computes the sum in NumPy. Its loops run over the taps
(usually two to four), not over pixels. For uint8 and float32 `_pixels.blend` computes bitwise the same result
in C, without intermediate arrays.
"""
from __future__ import annotations

from functools import lru_cache

import numpy as np

from flowedu.errors import ArgumentError
from flowedu.oneflow04.image import _pixels

KINDS = ("auto", "bilinear", "nearest_neighbor", "nn", "bicubic", "area")


def check_kind(what: str, kind: str) -> str:
    """Return `kind`. Raise ArgumentError unless it is one of KINDS."""
    if kind not in KINDS:
        raise ArgumentError(f"{what}: unknown interpolation_type", expected=", ".join(KINDS), got=repr(kind),
                            fix='leave it out: "auto" takes area to shrink and bilinear to enlarge')
    return kind


@lru_cache(maxsize=4096)
def taps(source: int, target: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices, weights), each (taps, target), that resize `source` pixels to `target`.

    Pixel i covers [i, i + 1).

    nearest_neighbor uses the input pixel at i * source / target. bilinear and bicubic (a = -0.75) interpolate
    between pixel centers at (i + 0.5) * source / target - 0.5, with the edge repeated. They use 2 and 4
    pixels, also when the image shrinks. area is the mean over the area of an output pixel when the image
    shrinks, and bilinear when it grows.
    """
    step, i = source / target, np.arange(target)
    if kind == "area" and target < source:
        start, stop = i * step, (i + 1) * step
        index = np.floor(start) + np.arange(int(np.ceil(step)) + 1)[:, None]
        weight = np.clip(np.minimum(index + 1, stop) - np.maximum(index, start), 0, None) / step
    elif kind in ("nearest_neighbor", "nn"):
        index, weight = (i * source // target)[None], np.ones((1, target))     # exact
    else:
        at = (i + 0.5) * step - 0.5
        low = np.floor(at)
        f = at - low
        if kind == "bicubic":
            index = low + np.arange(-1, 3)[:, None]
            weight = _cubic(np.abs(at - index))
        else:
            index, weight = np.stack([low, low + 1]), np.stack([1 - f, f])
    return np.clip(index, 0, source - 1).astype(np.intp), weight.astype(np.float32)


def _cubic(d: np.ndarray, a: float = -0.75) -> np.ndarray:
    """Return Keys' kernel at distances 0 to 2."""
    near, far = ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, far)


@lru_cache(maxsize=4096)
def _axis(source: int, target: int, kind: str) -> _pixels.Axis:
    return _pixels.Axis(source, *taps(source, target, kind))


def blended(image: np.ndarray, height: int, width: int, kind: str) -> np.ndarray:
    """Return `image` (H, W, C) as (height, width, C) of the same dtype, by the taps of `kind` (not auto)."""
    h, w, _ = image.shape
    index, weight = taps(h, height, kind)
    rows = sum(image[i] * c[:, None, None] for i, c in zip(index, weight))
    index, weight = taps(w, width, kind)
    out = sum(np.take(rows, i, axis=1) * c[:, None] for i, c in zip(index, weight))
    return rounded(out, image.dtype)


def rounded(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `a` as `dtype`. Conversion to integers rounds and clips."""
    if a.dtype != dtype and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        a = np.clip(np.rint(a), limits.min, limits.max)
    return a.astype(dtype, copy=False)


def resize(image: np.ndarray, height: int, width: int, kind: str = "auto",
           out: np.ndarray | None = None) -> np.ndarray:
    """Resize `image` (H, W, C) to (height, width, C) in the same dtype. Integers are rounded and clipped.

    Args:
        image: an array of shape (H, W, C).
        height: the new height.
        width: the new width.
        kind: one of KINDS; "auto" is area if the result has fewer pixels, else bilinear.
        out: an array for the result, or None. Values are rounded to its dtype.
    """
    h, w, channels = image.shape
    if out is None:
        out = np.empty((height, width, channels), image.dtype)
    if kind == "auto":
        kind = "bilinear" if height * width >= h * w else "area"
    if (h, w) == (height, width):
        out[...] = rounded(image, out.dtype)
    elif kind in ("nearest_neighbor", "nn"):
        rows, columns = taps(h, height, kind)[0][0], taps(w, width, kind)[0][0]
        out[...] = rounded(image[rows][:, columns], out.dtype)
    elif {image.dtype.char, out.dtype.char} <= {"B", "f"} and out.flags.c_contiguous:
        _pixels.blend(np.ascontiguousarray(image), out, _axis(h, height, kind), _axis(w, width, kind))
    else:
        out[...] = rounded(blended(image, height, width, kind), out.dtype)
    return out


def fit_in_proportion(height: int, width: int, target: int, shortest: int, longest: int,
                      longer: bool) -> tuple[int, int]:
    """Return the (height, width) that scales the shorter side (or the longer one) to `target`, in proportion.

    Args:
        height: the old height.
        width: the old width.
        target: the new size of the shorter side, or of the longer side with `longer`.
        shortest: with `longer`, a lower limit of the shorter side; 0 is no limit. If the shorter side would
            be smaller, the limit determines the scale.
        longest: without `longer`, an upper limit of the longer side; 0 is no limit. If the longer side would
            be larger, the limit determines the scale.
        longer: scale the longer side.
    """
    small, large = min(height, width), max(height, width)
    if longer:
        new_large, new_small = target, round(target * small / large)
        if shortest > 0 and new_small < shortest:
            new_large, new_small = round(shortest * large / small), shortest
    else:
        new_small, new_large = target, round(target * large / small)
        if 0 < longest < new_large:
            new_small, new_large = round(longest * small / large), longest
    new_small, new_large = max(new_small, 1), max(new_large, 1)
    return (new_large, new_small) if width < height else (new_small, new_large)
