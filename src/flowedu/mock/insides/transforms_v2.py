"""torchvision.transforms.v2: the same transforms, and the two that its recipes have in the place of ToTensor."""
from __future__ import annotations

from flowedu import Tensor
from flowedu.vision.transforms import *  # noqa: F403
from flowedu.vision.transforms import functional
from flowedu.vision.transforms.fixed import Transform


class ToImage(Transform):
    """A Pillow image or an ndarray (H, W, C) as a tensor (C, H, W) of the same numbers; a tensor stays."""

    def forward(self, img):
        if isinstance(img, Tensor):
            return img
        return functional.pil_to_tensor(img if functional.is_pil(img) else functional.to_pil_image(img))


class ToDtype(Transform):
    """A tensor in another dtype; scale: whole numbers fill their range, floats are 0 to 1. Other pictures stay."""

    shown = ("dtype", "scale")

    def __init__(self, dtype, scale: bool = False):
        self.dtype, self.scale = dtype, scale

    def forward(self, img):
        if not isinstance(img, Tensor):
            return img
        return functional.convert_image_dtype(img, self.dtype) if self.scale else img.to(self.dtype)
