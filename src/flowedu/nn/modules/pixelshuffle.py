"""Layers that rearrange channels and pixels."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.nn import functional as F
from flowedu.tensor import Tensor


class PixelShuffle(Module):
    """Rearrangement of (*, C * r * r, H, W) to (*, C, H * r, W * r).

    Args:
        upscale_factor: the factor r.
    """

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Rearrangement of (*, C, H * r, W * r) to (*, C * r * r, H, W).

    Args:
        downscale_factor: the factor r.
    """

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Interleaving of the channel groups of (N, C, ...).

    Args:
        groups: number of groups, a divisor of C.
    """

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
