"""torchvision.transforms.v2: the same transforms, and ToImage and ToDtype, which replace ToTensor."""
from __future__ import annotations

from flowedu import Tensor
from flowedu.vision.transforms import *  # noqa: F403
from flowedu.vision.transforms import functional
from flowedu.vision.transforms.fixed import Transform


class ToImage(Transform):
    """Conversion of a Pillow image or ndarray (H, W, C) to a tensor (C, H, W). Tensors are unchanged."""

    def forward(self, img):
        if isinstance(img, Tensor):
            return img
        return functional.pil_to_tensor(img if functional.is_pil(img) else functional.to_pil_image(img))


class ToDtype(Transform):
    """Conversion of a tensor to another dtype. scale: integers use their full range, floats 0 to 1."""

    shown = ("dtype", "scale")

    def __init__(self, dtype, scale: bool = False):
        self.dtype, self.scale = dtype, scale

    def forward(self, img):
        if not isinstance(img, Tensor):
            return img
        return functional.convert_image_dtype(img, self.dtype) if self.scale else img.to(self.dtype)
