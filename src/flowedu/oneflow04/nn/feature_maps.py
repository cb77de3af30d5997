"""Functions of feature maps: pixel shuffle, upsampling, and prelu."""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.errors import ArgumentError, CheckError
from flowedu.nn.functional.pixelshuffle import shuffled
from flowedu.nn.functional.upsampling import resized
from flowedu.nn.layout import FORMATS, channels_last, check_rank, to_first, to_last
from flowedu.ops.activations import leaky_relu
from flowedu.ops.front import front


@front("PixelShuffle")
def PixelShufflev2(input, h_upscale_factor: int, w_upscale_factor: int):
    """Rearrange each group of r * s channels into blocks of r rows and s columns.

    Args:
        input: a blob of shape (N, C * r * s, H, W).
        h_upscale_factor: the factor r of the height.
        w_upscale_factor: the factor s of the width.

    Returns: a blob of shape (N, C, H * r, W * s).
    """
    factors = (h_upscale_factor, w_upscale_factor)
    if not all(isinstance(f, int) and f > 0 for f in factors):
        raise CheckError("PixelShuffle: an upscale factor is not above zero", expected="ints of 1 or more",
                         got=str(factors), fix="2 doubles the size")
    check_rank("PixelShuffle", "input", input, "NCHW")
    c = input.shape[1]
    r, s = factors
    if c % (r * s):
        raise CheckError("PixelShuffle: the channels are not divisible by the upscale factors",
                         got=f"{c} channels",
                         expected=f"a multiple of {r} * {s}",
                         fix="give the convolution before it that many filters")
    return shuffled(input, r, s)


def PixelShuffle(input, upscale_factor: int, name: str | None = None):
    """Rearrange each group of r * r channels into blocks of r rows and columns.

    Args:
        input: a blob of shape (N, C * r * r, H, W).
        upscale_factor: the factor r.

    Returns: a blob of shape (N, C, H * r, W * r).
    """
    return PixelShufflev2(input, upscale_factor, upscale_factor, name=name)


@front("PRelu", "y_0")
def prelu(x, alpha):
    """Return x where x > 0, and alpha * x elsewhere.

    Args:
        x: a blob or tensor.
        alpha: a blob that broadcasts against x.
    """
    if x.dtype is not alpha.dtype:
        raise CheckError("prelu: alpha has another dtype", expected=x.dtype.name, got=alpha.dtype.name,
                         fix=f"flow.cast(alpha, flow.{x.dtype.name})")
    return leaky_relu(x, alpha)


@front("Upsample2D", "y_0")
def upsample_2d(x, size: float | Sequence[float], align_corners: bool, data_format: str, interpolation: str):
    """Compute layers.upsample_2d, where OneFlow has the function."""
    what = "layers.upsample_2d"
    last = channels_last(what, data_format, 2)
    check_rank(what, "x", x, FORMATS[2][last])
    if interpolation not in ("nearest", "bilinear"):
        raise ArgumentError(f"{what}: unknown interpolation", expected='"nearest" or "bilinear"',
                            got=repr(interpolation), fix='leave it out: "nearest" is the default')
    if interpolation == "nearest" and align_corners:
        raise ArgumentError(f"{what}: nearest has no corners to align", expected="align_corners=False",
                            got="True", fix='interpolation="bilinear"')
    factors = tuple(size) if isinstance(size, (list, tuple)) else (size, size)
    if len(factors) != 2 or not all(isinstance(f, (int, float)) and 0 < f < float("inf") for f in factors):
        raise CheckError(f"{what}: size is not a pair of factors",
                         expected="a number above 0, or two: of height and width",
                         got=repr(size), fix="size=2 doubles both")
    image = to_first(x) if last else x
    out = tuple(int(n * f) for n, f in zip(image.shape[2:], factors))
    y = resized(image, out, tuple(map(float, factors)), interpolation, bool(align_corners))
    return to_last(y) if last else y


__all__ = ["PixelShuffle", "PixelShufflev2", "prelu"]
