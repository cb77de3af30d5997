"""Layers that enlarge images."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.nn import functional as F
from flowedu.tensor import Tensor


class Upsample(Module):
    """F.interpolate with its options kept."""

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
    """Images of (N, C, H, W) enlarged by repeating pixels."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Images of (N, C, H, W) enlarged by bilinear interpolation, corners aligned."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", align_corners=True)
