"""Rearrangements of channels and pixels: pixel_shuffle, pixel_unshuffle, and channel_shuffle."""
from __future__ import annotations

import math

from flowedu.core.ops.view import reshape, transpose
from flowedu.errors import ShapeError
from flowedu.nn.functional.common import ValueT, check_tensor, reshaped
from flowedu.tensor import Tensor


def _check_planes(what: str, x: Tensor, factor: int) -> None:
    check_tensor(what, x)
    if x.ndim < 3 or not isinstance(factor, int) or factor < 1:
        raise ShapeError(f"{what}: expects input to have at least 3 dimensions and a positive factor",
                         expected="(*, C, H, W), a factor of 1 or more", got=f"{tuple(x.shape)}, {factor!r}",
                         fix="a factor of 2, say")


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearrange (*, C * r * r, H, W) to (*, C, H * r, W * r).

    Args:
        input: (*, C * r * r, H, W). The r * r values of a pixel in consecutive channels become r x r pixels.
        upscale_factor: the factor r.
    """
    _check_planes("pixel_shuffle", input, upscale_factor)
    *lead, c, h, w = input.shape
    r = upscale_factor
    if c % (r * r):
        raise ShapeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the "
                         "square of "
                         f"upscale_factor, but input.size(-3)={c} is not divisible by {r * r}",
                         expected=f"a multiple of {r * r}",
                         got=str(tuple(input.shape)),
                         fix="factor * factor times as many filters in the layer before it")
    y = shuffled(reshaped(input, (math.prod(lead), c, h, w)), r, r)
    return reshaped(y, (*lead, *y.shape[1:]))


def shuffled(x: ValueT, r: int, s: int) -> ValueT:
    """Rearrange (n, c * r * s, h, w) to (n, c, h * r, w * s), for a tensor or a value of a graph."""
    n, c, h, w = x.shape
    blocks = transpose(reshaped(x, (n, c // (r * s), r, s, h, w)), perm=(0, 1, 4, 2, 5, 3))
    return reshape(blocks, shape=(n, c // (r * s), h * r, w * s))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Rearrange (*, C, H * r, W * r) to (*, C * r * r, H, W), the inverse of pixel_shuffle.

    Args:
        input: (*, C, H * r, W * r).
        downscale_factor: the factor r.
    """
    _check_planes("pixel_unshuffle", input, downscale_factor)
    *lead, c, h, w = input.shape
    r = downscale_factor
    if h % r or w % r:
        raise ShapeError("pixel_unshuffle expects height and width to be divisible by downscale_factor",
                         expected=f"multiples "
                         f"of {r}", got=str(tuple(input.shape)), fix="crop or pad the image first")
    x = transpose(reshaped(input, (math.prod(lead), c, h // r, r, w // r, r)), perm=(0, 1, 3, 5, 2, 4))
    return reshape(x, shape=(*lead, c * r * r, h // r, w // r))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave the groups of channels: the first channel of each group, then the second, and so on.

    Args:
        input: (N, C, ...).
        groups: number of groups, a divisor of C.
    """
    _check_planes("channel_shuffle", input, groups)
    n, c, *rest = input.shape
    if c % groups:
        raise ShapeError("channel_shuffle: the channels are not divisible by groups",
                         expected=f"a multiple of {groups}",
                         got=str(tuple(input.shape)), fix="groups that divide the channels")
    x = transpose(reshaped(input, (n, groups, c // groups, math.prod(rest))), perm=(0, 2, 1, 3))
    return reshape(x, shape=(n, c, *rest))


__all__ = ["channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]
