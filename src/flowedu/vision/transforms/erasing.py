"""RandomErasing: covers a random rectangle of the image."""
from __future__ import annotations

import math

import numpy as np

from flowedu.errors import ArgumentError
from flowedu.tensor import Tensor, from_numpy
from flowedu.tensor.construction.random import randn
from flowedu.vision.transforms import draw
from flowedu.vision.transforms import functional as F
from flowedu.vision.transforms.fixed import Transform
from flowedu.vision.transforms.random import _probability


class RandomErasing(Transform):
    """Replacement of a random rectangle by other pixels, with probability p.

    If ten random rectangles do not fit, the image is unchanged.

    Args:
        p: probability.
        scale: range of the rectangle's share of the area.
        ratio: range of height / width.
        value: number, one number per channel, or "random" for normal random numbers.
        inplace: change the given image (not a Pillow image).
    """

    shown = ("p", "scale", "ratio", "value", "inplace")

    def __init__(self, p: float = 0.5, scale: tuple[float, float] = (0.02, 0.33),
                 ratio: tuple[float, float] = (0.3, 3.3), value=0, inplace: bool = False):
        for name, (low, high) in (("scale", scale), ("ratio", ratio)):
            if not 0 <= low <= high or name == "scale" and high > 1 or name == "ratio" and low == 0:
                raise ArgumentError(f"RandomErasing: {name} does not fit", got=repr((low, high)),
                                    expected="(low, high) with 0 <= low <= high"
                                    + " <= 1" * (name == "scale"), fix="leave it out")
        numbers = value if isinstance(value, (tuple, list)) else [value]
        if value != "random" and not all(isinstance(v, (int, float)) for v in numbers):
            raise ArgumentError("RandomErasing: value does not fit",
                                expected='a number, a number for each channel, or "random"',
                                got=repr(value)[:60], fix="value=0")
        self.p, self.scale, self.ratio = _probability("RandomErasing", p), tuple(scale), tuple(ratio)
        self.value, self.inplace = value, inplace

    @staticmethod
    def get_params(img, scale: tuple[float, float],
                   ratio: tuple[float, float]) -> tuple[int, int, int, int] | None:
        """Return (top, left, height, width) of a rectangle, or None if none fits."""
        _, h, w = F.get_dimensions(img)
        for _ in range(10):
            area, shape = h * w * draw.uniform(*scale), draw.log_uniform(*ratio)
            height, width = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if height < h and width < w:
                return draw.whole(0, h - height + 1), draw.whole(0, w - width + 1), height, width
        return None

    def forward(self, img):
        place = self.get_params(img, self.scale, self.ratio) if draw.chance(self.p) else None
        if place is None:
            return img
        if F.is_pil(img):
            return F.to_pil_image(self._erase(np.array(img), *place), img.mode)
        if not self.inplace:
            img = img.clone() if isinstance(img, Tensor) else img.copy()
        return self._erase(img, *place)

    def _erase(self, img, top: int, left: int, height: int, width: int):
        channels = F.get_dimensions(img)[0]
        if isinstance(img, Tensor):
            img[..., top:top + height, left:left + width] = self._pixels(channels, height,
                                                                         width).to(img.dtype)
        else:
            pixels = self._pixels(channels, height, width).numpy().transpose(1, 2, 0)
            img[top:top + height, left:left + width] = (pixels if img.ndim == 3
                                                        else pixels[:, :, 0]).astype(img.dtype)
        return img

    def _pixels(self, channels: int, height: int, width: int) -> Tensor:
        """Return the new pixels (channels, height, width)."""
        if self.value == "random":
            return randn(channels, height, width)
        numbers = np.array(self.value, np.float32).reshape(-1, 1, 1)
        if len(numbers) not in (1, channels):
            raise ArgumentError("RandomErasing: value does not fit the image", got=repr(self.value)[:60],
                                expected=f"a number, or {channels} of them", fix="value=0")
        return from_numpy(np.broadcast_to(numbers, (channels, height, width)).copy())
