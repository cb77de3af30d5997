"""Grids of images, and image files of them: `utils.save_image(samples, "samples.png", nrow=4)`.

Names, arguments, and results are torchvision's (flowvision has the same).
"""
from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from flowedu.errors import ArgumentError, NotATensorError, ShapeError
from flowedu.errors.files import replacing
from flowedu.tensor import Tensor, from_numpy
from flowedu.vision.transforms.functional import pillow

__all__ = ["make_grid", "save_image"]


def make_grid(tensor: Tensor | Sequence[Tensor], nrow: int = 8, padding: int = 2, normalize: bool = False,
              value_range: tuple[float, float] | None = None, scale_each: bool = False, pad_value: float = 0.0) -> Tensor:
    """One picture (C, H', W') of many: rows of nrow, `padding` pixels of pad_value around each.

    tensor: (B, C, H, W), (C, H, W), (H, W), or a list of pictures of one size; one channel becomes three. A single picture
    comes back without a frame.

    normalize: bring the numbers from value_range (default: from their least to their largest) to 0 to 1; scale_each: each
    picture by its own. The result has no gradient. Errors: DTypeError, ShapeError, ArgumentError.
    """
    x = _batch(tensor)
    for name, n, least in (("nrow", nrow, 1), ("padding", padding, 0)):
        if isinstance(n, bool) or not isinstance(n, int) or n < least:
            raise ArgumentError(f"make_grid: {name} does not fit", expected=f"an int of {least} or more", got=repr(n),
                                fix=f"{name}={8 if least else 2}")
    if value_range is not None and not (isinstance(value_range, tuple) and len(value_range) == 2):
        raise ArgumentError("make_grid: value_range is no range", expected="(least, largest)", got=repr(value_range),
                            fix="value_range=(-1, 1)")
    if normalize:
        x = np.stack([_scaled(each, value_range) for each in x]) if scale_each else _scaled(x, value_range)
    n, channels, h, w = x.shape
    if n == 1:
        return from_numpy(x[0].copy())
    across = min(nrow, n)
    down = -(-n // across)
    grid = np.full((channels, down * (h + padding) + padding, across * (w + padding) + padding), pad_value, x.dtype)
    for i, each in enumerate(x):
        top, left = (k * (size + padding) + padding for k, size in zip(divmod(i, across), (h, w)))
        grid[:, top:top + h, left:left + w] = each
    return from_numpy(grid)


def _batch(given) -> np.ndarray:
    """(B, C, H, W) with C of at least 3."""
    pictures = given if isinstance(given, (list, tuple)) else [given]
    for each in pictures:
        if not isinstance(each, Tensor):
            raise NotATensorError("make_grid", each, "tensor")
    arrays = [each.detach().cpu().numpy() for each in pictures]
    if len({a.shape for a in arrays}) != 1:
        raise ShapeError("make_grid: the images differ in size", expected="a list of images of one shape",
                         got=", ".join(str(a.shape) for a in arrays) or "not an image", fix="transforms.Resize before")
    x = np.stack(arrays) if pictures is given else arrays[0]
    if x.ndim not in (2, 3, 4):
        raise ShapeError("make_grid: these are not images", expected="(B, C, H, W), (C, H, W) or (H, W)",
                         got=str(x.shape), fix="x.view(-1, 1, 28, 28)")
    x = x.reshape((1,) * (4 - x.ndim) + x.shape)
    return np.repeat(x, 3, 1) if x.shape[1] == 1 else x


def _scaled(x: np.ndarray, limits: tuple[float, float] | None) -> np.ndarray:
    low, high = limits or (float(x.min()), float(x.max()))
    return (np.clip(x, low, high) - x.dtype.type(low)) / x.dtype.type(max(high - low, 1e-5))


def save_image(tensor: Tensor | Sequence[Tensor], fp: str | os.PathLike, format: str | None = None, **options) -> None:
    """Write a picture, or a grid of many, as a file. Numbers are 0 to 1; others are cut off there.

    fp: a path (its ending says the format), or a file that is open for writing, with `format`. options: make_grid's.
    """
    a = make_grid(tensor, **options).numpy()
    a = np.clip(a * 255 + 0.5, 0, 255).astype(np.uint8).transpose(1, 2, 0)
    image = pillow()[0].fromarray(np.ascontiguousarray(a))
    if not isinstance(fp, (str, os.PathLike)):
        image.save(fp, format)
        return
    if format is None:
        format = pillow()[0].registered_extensions().get(Path(fp).suffix.lower())
        if format is None:
            image.save(fp)                                   # raises Pillow's error for an ending that it does not know
    save_whole(fp, image, format)


def save_whole(path: str | os.PathLike, image, format: str, **options) -> None:
    """Save a picture of Pillow. It is encoded in memory: on a full disk Pillow's own writes stop without an error."""
    encoded = io.BytesIO()
    image.save(encoded, format, **options)
    with replacing(path) as f:
        f.write(encoded.getbuffer())
