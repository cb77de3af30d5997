"""Image layouts and window counts, shared by convolution and pooling over one, two, and three axes.

The ops work with channels first. Channels-last arrays are permuted before the op and back after it.
"""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.ops.view import contiguous, transpose
from flowedu.errors import ArgumentError, CheckError, ShapeError
from flowedu.ops.padding import out_size

FORMATS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def channels_last(what: str, data_format: str, axes: int, error: type = ArgumentError) -> bool:
    """Return True for the channels-last layout of `axes` spatial axes; raise `error` for unknown layouts."""
    first, last = FORMATS[axes]
    if not isinstance(data_format, str) or data_format.upper() not in (first, last):
        raise error(f"{what}: unknown data_format", expected=f"{first} or {last}", got=repr(data_format),
                    fix=f'leave it out: "{first}" is the default')
    return data_format.upper() == last


def check_rank(what: str, name: str, x, layout: str) -> None:
    """Raise an error unless x has an axis for every letter of the layout."""
    if len(x.shape) != len(layout):
        raise CheckError(f"{what}: {name} has {len(x.shape)} axes instead of {len(layout)}", got=str(x.shape),
                         expected=f"({', '.join(layout)})",
                         fix="flow.reshape it, or use the function for as many axes as it has")


def to_first(x):
    """Permute (N, ..., C) to (N, C, ...), contiguous."""
    return contiguous(transpose(x, perm=(0, x.ndim - 1, *range(1, x.ndim - 1))))


def to_last(x):
    """Permute (N, C, ...) to (N, ..., C), a view."""
    return transpose(x, perm=(0, *range(2, x.ndim), 1))


def check_positive(what: str, **named: Sequence[int]) -> None:
    """Raise an error for a stride, window, or dilation below 1."""
    for name, value in named.items():
        if min(value) < 1:
            raise ArgumentError(f"{what}: {name} is below 1", expected="1 or more", got=str(tuple(value)),
                                fix=f"{name}=1, say")


def count_windows(what: str, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
                  pads: Sequence[int], dilations: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the number of windows along each spatial axis; raise if no window fits."""
    spread = dilations or (1,) * len(sizes)
    counts = tuple(out_size(n, pads[2 * i], pads[2 * i + 1], kernel[i], strides[i], spread[i])
                   for i, n in enumerate(sizes))
    if min(counts) < 1:
        raise ShapeError(f"{what}: the window does not fit into the padded input",
                         expected=f"sizes of {tuple((k - 1) * d + 1 for k, d in zip(kernel, spread))} or "
                         f"more, padding included", got=f"{tuple(sizes)} with pads {tuple(pads)}",
                         fix='padding="SAME", or a smaller window' + (" or dilation" if dilations else ""))
    return counts
