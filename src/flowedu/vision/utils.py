"""Image grids and image files: `utils.save_image(samples, "samples.png", nrow=4)`.

Names, arguments, and results are those of torchvision and flowvision.
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
              value_range: tuple[float, float] | None = None, scale_each: bool = False,
              pad_value: float = 0.0) -> Tensor:
    """Arrange images in a grid, and return it as one image (C, H', W') without a gradient.

    A single image is returned without padding. Images with one channel get three equal channels.

    Args:
        tensor: (B, C, H, W), (C, H, W), (H, W), or a list of images of one size.
        nrow: number of images in a row.
        padding: number of pixels around each image.
        normalize: scale the values from value_range to 0 to 1.
        value_range: (low, high); default: minimum and maximum of the values.
        scale_each: use the range of each image.
        pad_value: value of the padding.

    Raises:
        DTypeError, ShapeError, ArgumentError: arguments that do not fit.
    """
    x = _batch(tensor)
    for name, n, least in (("nrow", nrow, 1), ("padding", padding, 0)):
        if isinstance(n, bool) or not isinstance(n, int) or n < least:
            raise ArgumentError(f"make_grid: {name} does not fit", expected=f"an int of {least} or more",
                                got=repr(n), fix=f"{name}={8 if least else 2}")
    if value_range is not None and not (isinstance(value_range, tuple) and len(value_range) == 2):
        raise ArgumentError("make_grid: value_range is no range", expected="(least, largest)",
                            got=repr(value_range), fix="value_range=(-1, 1)")
    if normalize:
        x = np.stack([_rescale(each, value_range) for each in x]) if scale_each else _rescale(x, value_range)
    n, channels, h, w = x.shape
    if n == 1:
        return from_numpy(x[0].copy())
    across = min(nrow, n)
    down = -(-n // across)
    grid = np.full((channels, down * (h + padding) + padding, across * (w + padding) + padding), pad_value,
                   x.dtype)
    for i, each in enumerate(x):
        top, left = (k * (size + padding) + padding for k, size in zip(divmod(i, across), (h, w)))
        grid[:, top:top + h, left:left + w] = each
    return from_numpy(grid)


def _batch(images) -> np.ndarray:
    """Return images (B, C, H, W) with C of at least 3."""
    batch = images if isinstance(images, (list, tuple)) else [images]
    for each in batch:
        if not isinstance(each, Tensor):
            raise NotATensorError("make_grid", each, "tensor")
    arrays = [each.detach().cpu().numpy() for each in batch]
    if len({a.shape for a in arrays}) != 1:
        raise ShapeError("make_grid: the images differ in size", expected="a list of images of one shape",
                         got=", ".join(str(a.shape) for a in arrays) or "not an image",
                         fix="transforms.Resize before")
    x = np.stack(arrays) if batch is images else arrays[0]
    if x.ndim not in (2, 3, 4):
        raise ShapeError("make_grid: these are not images", expected="(B, C, H, W), (C, H, W) or (H, W)",
                         got=str(x.shape), fix="x.view(-1, 1, 28, 28)")
    x = x.reshape(*(1,) * (4 - x.ndim), *x.shape)
    return np.repeat(x, 3, 1) if x.shape[1] == 1 else x


def _rescale(x: np.ndarray, limits: tuple[float, float] | None) -> np.ndarray:
    low, high = limits or (float(x.min()), float(x.max()))
    return (np.clip(x, low, high) - x.dtype.type(low)) / x.dtype.type(max(high - low, 1e-5))


def save_image(tensor: Tensor | Sequence[Tensor], fp: str | os.PathLike, format: str | None = None,
               **options) -> None:
    """Write an image, or a grid of images, to a file. Values are clipped to 0 to 1.

    Args:
        tensor: image or images, see make_grid.
        fp: path, whose ending determines the format, or a writable file.
        format: name of the format; default: by the ending.
        **options: arguments of make_grid.
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
            image.save(fp)                                   # raises Pillow's error for an unknown ending
    save_whole(fp, image, format)


def save_whole(path: str | os.PathLike, image, format: str, **options) -> None:
    """Save a Pillow image; it is encoded in memory, because Pillow's own writes ignore a full disk."""
    encoded = io.BytesIO()
    image.save(encoded, format, **options)
    with replacing(path) as f:
        f.write(encoded.getbuffer())
