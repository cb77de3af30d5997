"""Layers that resize images."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.nn import functional as F
from flowedu.tensor import Tensor


class Upsample(Module):
    """Layer that resizes the one to three spatial axes of (N, C, ...); see F.interpolate.

    Args:
        size: spatial size of the output, an int or a tuple. Give `size` or `scale_factor`.
        scale_factor: ratio of the output size to the input size, a number or a tuple.
        mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", or "area".
        align_corners: align the centers of the corner pixels of input and output; default: False.
        recompute_scale_factor: use the ratio of the rounded sizes instead of scale_factor; default: False.
    """

    def __init__(self, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool | None = None,
                 recompute_scale_factor: bool | None = None):
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
                             self.recompute_scale_factor)

    def extra_repr(self) -> str:
        info = f"scale_factor={self.scale_factor}" if self.scale_factor is not None else f"size={self.size}"
        return f"{info}, mode={self.mode}"


class UpsamplingNearest2d(Upsample):
    """Layer that resizes (N, C, H, W) by copying the nearest pixels.

    Args:
        size: (H, W) of the output, or an int. Give `size` or `scale_factor`.
        scale_factor: ratio of the output size to the input size, a number or a pair.
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Layer that resizes (N, C, H, W) by bilinear interpolation with aligned corners.

    Args:
        size: (H, W) of the output, or an int. Give `size` or `scale_factor`.
        scale_factor: ratio of the output size to the input size, a number or a pair.
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", align_corners=True)
