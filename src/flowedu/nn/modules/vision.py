"""Pads, upsampling, pixel shuffle, unfold and fold; and similarities of vectors."""
from __future__ import annotations

from flowedu.errors import ArgumentError
from flowedu.nn import functional as F
from flowedu.nn.module import Module
from flowedu.tensor import Tensor


class _Pad(Module):
    """axes: how many are padded; mode: of F.pad."""

    axes, mode = 2, "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != 2 * self.axes:
            raise ArgumentError(f"{type(self).__name__}: padding has the wrong length",
                                expected=f"an int or {2 * self.axes} "
                                "ints, those of the last axis first", got=repr(padding), fix="padding=1 pads all sides")

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


def _pads(mode: str, names: tuple[str, ...], what: str) -> list[type]:
    made = []
    for name in names:
        axes = int(name[-2])
        doc = f"{what} around the last {axes} axes. padding: an int, or (before, after) of the last axis, ..."
        made.append(type(name, (_Pad,), {"axes": axes, "mode": mode, "__doc__": doc, "__module__": __name__}))
    return made


ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _pads(
    "reflect", ("ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d"), "A mirror image without the border")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _pads(
    "replicate", ("ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d"), "The border, repeated")
CircularPad1d, CircularPad2d, CircularPad3d = _pads(
    "circular", ("CircularPad1d", "CircularPad2d", "CircularPad3d"), "The other side")
ZeroPad1d, ZeroPad2d, ZeroPad3d = _pads("constant", ("ZeroPad1d", "ZeroPad2d", "ZeroPad3d"), "Zeros")


class ConstantPad1d(_Pad):
    """`value` around the last axis. padding: an int, or (before, after)."""

    axes = 1

    def __init__(self, padding, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad2d(ConstantPad1d):
    """`value` around the last two axes."""

    axes = 2


class ConstantPad3d(ConstantPad1d):
    """`value` around the last three axes."""

    axes = 3


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


class PixelShuffle(Module):
    """(*, C * r * r, H, W) to (*, C, H * r, W * r)."""

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(*, C, H * r, W * r) to (*, C * r * r, H, W)."""

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """(N, C, ...) with the channels of the groups taken in turn."""

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Unfold(Module):
    """im2col; see F.unfold."""

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """col2im; see F.fold."""

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
                f"padding={self.padding}, stride={self.stride}")


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along `dim`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
