"""Transforms of tensors (..., C, H, W), made of ops, so they have gradients and can be used in graphs."""
from __future__ import annotations

from typing import Any

import numpy as np

from flowedu.tensor import Tensor, from_numpy
from flowedu.vision.transforms.hue import turned
from flowedu.vision.transforms.resample import InterpolationMode, nearest, weights

GREY = (0.2989, 0.587, 0.114)           # torchvision's weights for tensors


def dimensions(img: Tensor) -> tuple[int, int, int]:
    """Return (channels, height, width)."""
    return img.shape[-3] if img.ndim > 2 else 1, img.shape[-2], img.shape[-1]


def hflip(img: Tensor) -> Tensor:
    return img.flip(-1)


def vflip(img: Tensor) -> Tensor:
    return img.flip(-2)


def crop(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """Crop the image; pixels outside it are 0."""
    h, w = img.shape[-2:]
    y, x = min(max(top, 0), h), min(max(left, 0), w)
    inside = img[..., y:max(min(top + height, h), y), x:max(min(left + width, w), x)]
    if inside.shape[-2:] == (height, width):
        return inside
    y, x = min(max(-top, 0), height), min(max(-left, 0), width)
    return pad(inside, x, y, width - x - inside.shape[-1], height - y - inside.shape[-2], 0, "constant")


def _take(img: Tensor, dim: int, index: np.ndarray) -> Tensor:
    return img.index_select(img.ndim + dim, from_numpy(np.ascontiguousarray(index, np.int64)))


def through_float(img: Tensor, f) -> Tensor:
    """Apply f to the image as floats. Integer results are rounded (half to even) and clipped."""
    if img.dtype.is_floating_point:
        return f(img)
    limits = np.iinfo(img.dtype.numpy)
    return f(img.float()).round().clamp(float(limits.min), float(limits.max)).to(img.dtype)


def resize(img: Tensor, height: int, width: int, mode: InterpolationMode, antialias: bool) -> Tensor:
    h, w = img.shape[-2:]
    if mode is InterpolationMode.NEAREST:
        return _take(_take(img, -2, nearest(h, height, False)), -1, nearest(w, width, False))

    def product(x: Tensor) -> Tensor:
        if w != width:
            x = x.matmul(from_numpy(np.ascontiguousarray(weights(w, width, mode, antialias).T)).to(x.dtype))
        if h != height:
            x = from_numpy(weights(h, height, mode, antialias).copy()).to(x.dtype).matmul(x)
        return x

    return through_float(img, product)


def pad(img: Tensor, left: int, top: int, right: int, bottom: int, fill, mode: Any) -> Tensor:
    if mode == "constant":
        from flowedu.nn import functional
        if not isinstance(fill, (tuple, list)):
            return functional.pad(img, (left, right, top, bottom), "constant", fill)
        colour = from_numpy(np.array(fill, img.dtype.numpy).reshape(-1, 1, 1))      # added to zero padding
        hole = 1 - functional.pad(img[..., :1, :, :].detach() * 0 + 1, (left, right, top, bottom),
                                  "constant", 0)
        return functional.pad(img, (left, right, top, bottom), "constant", 0) + colour * hole
    for dim, low, high in ((-2, top, bottom), (-1, left, right)):
        if low or high:
            img = _take(img, dim, np.pad(np.arange(img.shape[dim]), (low, high), mode=mode))
    return img


def grayscale(img: Tensor, channels: int) -> Tensor:
    if dimensions(img)[0] == 1:
        grey = img
    else:
        r, g, b = (img[..., i:i + 1, :, :] for i in range(3))
        grey = (GREY[0] * r + GREY[1] * g + GREY[2] * b).to(img.dtype)
    if channels == 1:
        return grey
    return grey.expand(*grey.shape[:-3], 3, *grey.shape[-2:])


def _blend(img: Tensor, other, factor: float) -> Tensor:
    limit = 1.0 if img.dtype.is_floating_point else 255.0
    return (factor * img + (1.0 - factor) * other).clamp(0.0, limit).to(img.dtype)


def brightness(img: Tensor, factor: float) -> Tensor:
    return _blend(img, img * 0, factor)


def contrast(img: Tensor, factor: float) -> Tensor:
    grey = grayscale(img, 1)
    grey = grey if grey.dtype.is_floating_point else grey.float()
    return _blend(img, grey.mean((-3, -2, -1), keepdim=True), factor)


def saturation(img: Tensor, factor: float) -> Tensor:
    return _blend(img, grayscale(img, 1), factor)


def hue(img: Tensor, factor: float) -> Tensor:
    if dimensions(img)[0] == 1:
        return img
    if img.dtype.is_floating_point:
        return turned(img, factor)
    top = float(np.iinfo(img.dtype.numpy).max)
    return (turned(img.float() / top, factor) * (top + 1.0 - 1e-3)).to(img.dtype)
