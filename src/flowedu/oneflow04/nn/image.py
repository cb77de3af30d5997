"""flow.nn.image: the functions of flow.image as modules, as OneFlow 0.7 and later have them."""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.module import Module
from flowedu.core.values import dtype as dt
from flowedu.oneflow04.image import image


class Resize(Module):
    """(pictures, scale, new size), see flow.image.Resize. target_size: (width, height), or with keep_aspect_ratio one
    number."""

    def __init__(self, target_size: int | Sequence[int] | None = None, min_size: int | None = None,
                 max_size: int | None = None, keep_aspect_ratio: bool = False, resize_side: str = "shorter",
                 channels: int = 3, dtype: dt.dtype | None = None, interpolation_type: str = "auto",
                 name: str | None = None):
        super().__init__()
        self.name = name
        self.options = {"target_size": target_size, "min_size": min_size, "max_size": max_size,
                        "keep_aspect_ratio": keep_aspect_ratio, "resize_side": resize_side, "channels": channels,
                        "dtype": dtype, "interpolation_type": interpolation_type}

    def forward(self, image_) -> tuple:
        return image.Resize(image_, **self.options)


class batch_align(Module):  # noqa: N801  (OneFlow's name)
    """Pictures of many sizes in one tensor, zeros around them. See flow.image.batch_align."""

    def __init__(self, shape: Sequence[int], dtype: dt.dtype, alignment: int):
        super().__init__()
        self.shape, self.dtype, self.alignment = shape, dtype, alignment

    def forward(self, input: TensorBuffer) -> Tensor:
        return image.batch_align(input, self.shape, self.dtype, self.alignment)


class decode(Module):  # noqa: N801
    """Bytes of PNG, JPEG or BMP files as pictures. See flow.image.decode."""

    def __init__(self, dtype: dt.dtype = dt.uint8, color_space: str = "BGR"):
        super().__init__()
        self.dtype, self.color_space = dtype, color_space

    def forward(self, input: TensorBuffer) -> TensorBuffer:
        return image.decode(input, self.dtype, self.color_space)


class normalize(Module):  # noqa: N801
    """(picture - mean) / std. Mind the order: std comes first. See flow.image.normalize."""

    def __init__(self, std: Sequence[float], mean: Sequence[float]):
        super().__init__()
        self.std, self.mean = std, mean

    def forward(self, input: TensorBuffer) -> TensorBuffer:
        return image.normalize(input, self.std, self.mean)


class flip(Module):  # noqa: N801
    """Pictures mirrored as flip_code says. See flow.image.flip."""

    def forward(self, images: TensorBuffer, flip_code) -> TensorBuffer:
        return image.flip(images, flip_code)


__all__ = ["Resize", "batch_align", "decode", "flip", "normalize"]
