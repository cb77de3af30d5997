"""Conversion of float images (..., 3, H, W) between RGB and HSV, made of ops."""
from __future__ import annotations

from flowedu.tensor import Tensor
from flowedu.tensor.elementwise import maximum, minimum, where
from flowedu.tensor.shapes.join_and_pad import stack


def to_hsv(img: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return (h, s, v) as in torchvision: gray has hue 0, black has saturation 0."""
    r, g, b = img.unbind(-3)
    top, low = maximum(maximum(r, g), b), minimum(minimum(r, g), b)
    range_, one = top - low, top * 0 + 1
    grey = range_ == 0
    over = where(grey, one, range_)
    h = where(top == r, (g - b) / over, where(top == g, 2 + (b - r) / over, 4 + (r - g) / over)) / 6
    return h - h.floor(), range_ / where(grey, one, top), top


def to_rgb(h: Tensor, s: Tensor, v: Tensor) -> Tensor:
    """Convert back to RGB. Each channel is at its maximum for a third of the circle, with ramps of 1/6."""
    def channel(first: int) -> Tensor:
        k = (h * 6 + first) % 6
        return v - v * s * minimum(k, 4 - k).clamp(0, 1)

    return stack([channel(5), channel(3), channel(1)], -3)


def turned(img: Tensor, factor: float) -> Tensor:
    """Return the image with its hue shifted by `factor`, a part of the color circle."""
    h, s, v = to_hsv(img)
    h = h + factor
    return to_rgb(h - h.floor(), s, v)
