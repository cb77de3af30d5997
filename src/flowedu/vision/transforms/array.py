"""Transforms of NumPy images, (H, W) or (H, W, C), with Pillow's results for uint8.

A program thus gives the same results with and without Pillow. Resizing may differ by one level of 255 where
Pillow's fixed-point arithmetic rounds differently. Bicubic resizing may also differ where values overshoot 0
to 255, because Pillow chooses by the sizes which axis it resizes first.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flowedu.tensor import from_numpy
from flowedu.vision.transforms import tensor
from flowedu.vision.transforms.resample import InterpolationMode, nearest, weights


def dimensions(img: np.ndarray) -> tuple[int, int, int]:
    """Return (channels, height, width)."""
    return img.shape[2] if img.ndim == 3 else 1, img.shape[0], img.shape[1]


def hflip(img: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(img[:, ::-1])


def vflip(img: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(img[::-1])


def crop(img: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    """Crop the image; pixels outside it are 0."""
    h, w = img.shape[:2]
    inside = img[max(top, 0):max(top + height, 0), max(left, 0):max(left + width, 0)]
    if inside.shape[:2] == (height, width):
        return inside
    out = np.zeros((height, width, *img.shape[2:]), img.dtype)
    y, x = max(-top, 0), max(-left, 0)
    out[y:y + inside.shape[0], x:x + inside.shape[1]] = inside
    return out


def rounded(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `a` in `dtype`; values are rounded and clipped to the range of an integer dtype."""
    if dtype.kind not in "iu":
        return a.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    return np.clip(np.floor(a + 0.5), limits.min, limits.max).astype(dtype)


def resize(img: np.ndarray, height: int, width: int, mode: InterpolationMode, antialias: bool) -> np.ndarray:
    h, w = img.shape[:2]
    if mode is InterpolationMode.NEAREST:
        return img[nearest(h, height, True)][:, nearest(w, width, True)]
    flat = img.reshape(h, w, -1)
    if w != width:          # columns first, then rounding, as in Pillow
        flat = rounded(np.einsum("ow,hwc->hoc", weights(w, width, mode, antialias), flat, optimize=True),
                       img.dtype)
    if h != height:
        flat = rounded(np.einsum("oh,hwc->owc", weights(h, height, mode, antialias), flat, optimize=True),
                       img.dtype)
    return flat.reshape(height, width, *img.shape[2:])


def pad(img: np.ndarray, left: int, top: int, right: int, bottom: int, fill, mode: Any) -> np.ndarray:
    edges = ((top, bottom), (left, right)) + ((0, 0),) * (img.ndim - 2)
    if mode != "constant":
        return np.pad(img, edges, mode=mode)
    out = np.empty((img.shape[0] + top + bottom, img.shape[1] + left + right, *img.shape[2:]), img.dtype)
    out[...] = fill         # a number, or one for each channel
    out[top:top + img.shape[0], left:left + img.shape[1]] = img
    return out


def grayscale(img: np.ndarray, channels: int) -> np.ndarray:
    if dimensions(img)[0] == 1:
        grey = img.reshape(img.shape[:2])
    elif img.dtype == np.uint8:         # Pillow's integer weights, times 2**16
        total = img[..., :3].astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32)
        grey = ((total + 0x8000) >> 16).astype(np.uint8)
    else:
        grey = rounded(img[..., :3] @ np.array([0.299, 0.587, 0.114], np.float32), img.dtype)
    return grey if channels == 1 else np.repeat(grey[..., None], 3, axis=2)


def _blend(img: np.ndarray, other, factor: float) -> np.ndarray:
    """Return other + factor * (img - other), clipped to 0 to 255, or 0 to 1 for floats.

    Integer results are truncated, as in Pillow.
    """
    out = np.float32(1 - factor) * other + np.float32(factor) * img
    return np.clip(out, 0, 255 if img.dtype.kind in "iu" else 1).astype(img.dtype)


def brightness(img: np.ndarray, factor: float) -> np.ndarray:
    return _blend(img, 0, factor)


def contrast(img: np.ndarray, factor: float) -> np.ndarray:
    mean = grayscale(img, 1).mean(dtype=np.float64)
    return _blend(img, np.floor(mean + 0.5) if img.dtype.kind in "iu" else mean, factor)


def saturation(img: np.ndarray, factor: float) -> np.ndarray:
    grey = grayscale(img, 1)
    return _blend(img, grey if img.ndim == 2 else grey[..., None], factor)


def hue(img: np.ndarray, factor: float) -> np.ndarray:
    """Shift the hue as for tensors; Pillow's hue has steps of 1/255."""
    if dimensions(img)[0] == 1:
        return img
    return tensor.hue(from_numpy(np.ascontiguousarray(img.transpose(2, 0, 1))),
                      factor).numpy().transpose(1, 2, 0)
