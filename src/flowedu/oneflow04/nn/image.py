"""Modules for the functions of flow.image, with the names of OneFlow 0.7 and later: flow.nn.image."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.module import Module
from flowedu.core.values import dtype as dt
from flowedu.oneflow04.image import image


class Resize(Module):
    """A module that resizes images and returns (images, scale, new size), see flow.image.Resize.

    Args:
        target_size: (width, height), or the size of one side with keep_aspect_ratio.
        min_size: the smallest shorter side, or None.
        max_size: the largest longer side, or None.
        keep_aspect_ratio: scale both sides by the same factor.
        resize_side: the side that becomes target_size, "shorter" or "longer".
        channels: the number of channels.
        dtype: uint8 or float32; None is uint8.
        interpolation_type: "auto", "bilinear", "nearest_neighbor", "bicubic", or "area".
        name: a name of the module.
    """

    def __init__(self, target_size: int | Sequence[int] | None = None, min_size: int | None = None,
                 max_size: int | None = None, keep_aspect_ratio: bool = False, resize_side: str = "shorter",
                 channels: int = 3, dtype: dt.dtype | None = None, interpolation_type: str = "auto",
                 name: str | None = None):
        super().__init__()
        self.name = name
        self.options: dict[str, Any] = {
            "target_size": target_size, "min_size": min_size, "max_size": max_size,
            "keep_aspect_ratio": keep_aspect_ratio, "resize_side": resize_side,
            "channels": channels, "dtype": dtype, "interpolation_type": interpolation_type}

    def forward(self, image_) -> tuple:
        return image.Resize(image_, **self.options)


class batch_align(Module):  # noqa: N801  (OneFlow's name)
    """A module that stores images of several sizes in one tensor, padded with zeros.

    See flow.image.batch_align.

    Args:
        shape: the largest size of an image, (H, W, C).
        dtype: the dtype of the images.
        alignment: the sizes are rounded up to a multiple of this power of two; 0 does not round.
    """

    def __init__(self, shape: Sequence[int], dtype: dt.dtype, alignment: int):
        super().__init__()
        self.shape, self.dtype, self.alignment = shape, dtype, alignment

    def forward(self, input: TensorBuffer) -> Tensor:
        return image.batch_align(input, self.shape, self.dtype, self.alignment)


class decode(Module):  # noqa: N801
    """A module that decodes the bytes of PNG, JPEG, or BMP files. See flow.image.decode.

    Args:
        dtype: uint8 or float32.
        color_space: "BGR", "RGB", or "GRAY".
    """

    def __init__(self, dtype: dt.dtype = dt.uint8, color_space: str = "BGR"):
        super().__init__()
        self.dtype, self.color_space = dtype, color_space

    def forward(self, input: TensorBuffer) -> TensorBuffer:
        return image.decode(input, self.dtype, self.color_space)


class normalize(Module):  # noqa: N801
    """A module that computes (image - mean) / std. See flow.image.normalize.

    Args:
        std: one standard deviation per channel. It is the first argument.
        mean: one mean per channel.
    """

    def __init__(self, std: Sequence[float], mean: Sequence[float]):
        super().__init__()
        self.std, self.mean = std, mean

    def forward(self, input: TensorBuffer) -> TensorBuffer:
        return image.normalize(input, self.std, self.mean)


class flip(Module):  # noqa: N801
    """A module that flips images. See flow.image.flip."""

    def forward(self, images: TensorBuffer, flip_code) -> TensorBuffer:
        return image.flip(images, flip_code)


__all__ = ["Resize", "batch_align", "decode", "flip", "normalize"]
