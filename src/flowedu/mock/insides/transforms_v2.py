"""torchvision.transforms.v2: the same transforms, and the two that replace ToTensor in its recipes."""
from __future__ import annotations

from flowedu import Tensor
from flowedu.vision.transforms import *  # noqa: F403
from flowedu.vision.transforms import functional
from flowedu.vision.transforms.fixed import Transform


class ToImage(Transform):
    """Convert a Pillow image or an ndarray (H, W, C) to a tensor (C, H, W) of the same values; keep a tensor."""

    def forward(self, img):
        if isinstance(img, Tensor):
            return img
        return functional.pil_to_tensor(img if functional.is_pil(img) else functional.to_pil_image(img))


class ToDtype(Transform):
    """Convert a tensor to another dtype; scale: integers use their full range, floats 0 to 1. Keep other images."""

    shown = ("dtype", "scale")

    def __init__(self, dtype, scale: bool = False):
        self.dtype, self.scale = dtype, scale

    def forward(self, img):
        if not isinstance(img, Tensor):
            return img
        return functional.convert_image_dtype(img, self.dtype) if self.scale else img.to(self.dtype)
