"""Conversion of the user arguments `padding`, `strides`, `ksize`, and `dilations` to plain tuples of ints.

The ops have an attribute `pads`: the padding before and after each spatial axis in turn, for example (top,
bottom, left, right) for two axes. All functions support any number of spatial axes.
"""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.errors import ArgumentError, CheckError

Padding = str | Sequence[int | Sequence[int]]          # a name, or an entry for each axis


def conv_ints(value: int | Sequence[int], name: str, axes: int = 2) -> tuple[int, ...]:
    """Convert an int for all axes, or a list or tuple of one int per axis, to one int per axis.

    Raises CheckError if a list has the wrong length.
    """
    if isinstance(value, (list, tuple)):
        if len(value) != axes:
            raise CheckError(f"{name} has the wrong length", expected=f"an int or {axes} ints",
                             got=repr(value), fix=f"one int, or {axes}: {[value[0] if value else 1] * axes}")
        return tuple(map(int, value))
    if isinstance(value, int):
        return (value,) * axes
    raise ArgumentError(f"{name} must be an int or a list", expected=f"an int or {axes} ints",
                        got=repr(value), fix=f"{name.rpartition(' ')[2]}=2, say")


def pool_ints(value: int | Sequence[int], name: str, axes: int = 2) -> tuple[int, ...]:
    """Convert an int, or a list or tuple of ints, to one int per axis.

    An int, or a list of one int, applies to all axes. Otherwise the list must have one int per axis. Raises
    ArgumentError for anything else.
    """
    if isinstance(value, int):
        return (value,) * axes
    if isinstance(value, (list, tuple)) and len(value) in (1, axes):
        return tuple(map(int, value)) if len(value) == axes else (int(value[0]),) * axes
    raise ArgumentError(f"{name} does not fit", expected=f"an int, or a list of 1 or {axes} ints",
                        got=repr(value), fix=f"{name.rpartition(' ')[2]}=2, say, or {[2] * axes}")


def conv_padding(padding: Padding, hw: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
                 dilations: Sequence[int] | None = None, data_format: str = "NCHW") -> tuple[int, ...]:
    """Return the pads of a convolution over spatial sizes `hw`.

    Args:
        padding: "VALID", "SAME_LOWER" (an odd pixel is added at the top or left), its alias "SAME", or
            "SAME_UPPER" (bottom or right), in upper or lower case. Or a list with an int or a pair (before,
            after) for every axis of `data_format`, zero for batch and channels.
    """
    axes = len(hw)
    dilations = (1,) * axes if dilations is None else dilations
    if not isinstance(padding, (str, list, tuple)):
        raise ArgumentError("padding must be a string or a list", got=repr(padding),
                            expected='"SAME", "SAME_LOWER", "SAME_UPPER", "VALID" or a list of pairs',
                            fix=f"padding={[[0, 0]] * 2 + [[1, 1]] * axes} pads every spatial axis of NC... "
                            f"by one")
    if not isinstance(padding, str):
        return _explicit(padding, axes, data_format.upper())
    mode = padding.upper()
    if mode not in ("SAME", "SAME_LOWER", "SAME_UPPER", "VALID"):
        raise CheckError("padding has an unknown name", got=repr(padding),
                         expected='"SAME" (= "SAME_LOWER"), "SAME_UPPER" or "VALID"',
                         fix='padding="SAME" keeps the size where strides are 1')
    pads: list = []
    for size, k, stride, dilation in zip(hw, kernel, strides, dilations):
        pads += (0, 0) if mode == "VALID" else same_pads(size, k, stride, dilation, mode == "SAME_UPPER")
    return tuple(pads)


def same_pads(size: int, kernel: int, stride: int, dilation: int, upper: bool) -> tuple[int, int]:
    """Return the padding (before, after) for ceil(size / stride) windows.

    An odd pixel is added after the axis if `upper`, else before it.
    """
    windows = -(-size // stride)
    need = max(0, (windows - 1) * stride + (kernel - 1) * dilation + 1 - size)
    small, large = need // 2, need - need // 2
    return (small, large) if upper else (large, small)


def _explicit(padding: Sequence[int | Sequence[int]], axes: int, data_format: str) -> tuple[int, ...]:
    example = f"{axes + 2} entries in the order of {data_format}, zero for batch and channels"
    if len(padding) != axes + 2:
        raise CheckError("padding has the wrong length", expected=example, got=repr(padding),
                         fix=f"padding={[[0, 0]] * (axes + 2)}, or the name \"SAME\" or \"VALID\"")
    pairs = []
    for p in padding:
        pair = tuple(p) if isinstance(p, (list, tuple)) else ()
        if isinstance(p, int):
            pair = (p, p)
        if len(pair) != 2 or not all(isinstance(n, int) for n in pair) or min(pair) < 0:
            raise CheckError("padding has an entry that is neither an int nor a pair", got=repr(p),
                             expected="n or (before, after), not negative",
                             fix="(1, 1), say; flow.slice cuts a border off")
        pairs.append(pair)
    first = 1 if data_format.endswith("C") else 2            # N, spatial axes, C; or N, C, spatial axes
    if any(pair != (0, 0) for pair in [*pairs[:first], *pairs[first + axes:]]):
        raise CheckError("padding is not zero for batch and channels", expected=example, got=repr(padding),
                         fix="check the order: data_format says which entry is which axis")
    return tuple(n for pair in pairs[first:first + axes] for n in pair)


def pool_padding(padding: Padding, hw: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
                 data_format: str = "NCHW", ceil_mode: bool = False) -> tuple[int, ...]:
    """Return the pads of a pooling window, as for a convolution.

    ceil_mode has an effect only with an explicit list.
    """
    pads = conv_padding(padding, hw, kernel, strides, None, data_format)
    return ceil_pads(pads, hw, kernel, strides) if ceil_mode and not isinstance(padding, str) else pads


def ceil_pads(pads: Sequence[int], hw: Sequence[int], kernel: Sequence[int],
              strides: Sequence[int]) -> tuple[int, ...]:
    """Return pads with the effect of ceil_mode: enough after each axis for a last, partly filled window.

    No padding is added for a window that would be completely inside the padding.
    """
    out = []
    for i, (size, k, stride) in enumerate(zip(hw, kernel, strides)):
        before, after = pads[2 * i:2 * i + 2]
        windows = -(-(size + before + after - k) // stride) + 1
        if (windows - 1) * stride >= size + before:
            windows -= 1
        out += [before, max(after, (windows - 1) * stride + k - size - before)]
    return tuple(out)


def used_stride(size: int, before: int, after: int, kernel: int, stride: int, dilation: int = 1) -> int:
    """Return the stride, or, if only one window fits, the smallest stride that leaves one window.

    Kernels divide the pixels into `stride` parts, so an unnecessarily large stride is avoided.
    """
    return min(stride, max(size + before + after - (kernel - 1) * dilation, 1))


def out_size(size: int, before: int, after: int, kernel: int, stride: int, dilation: int = 1) -> int:
    """Return the number of windows that fit along one axis; it is less than 1 if none fits."""
    return (size + before + after - (kernel - 1) * dilation - 1) // stride + 1
