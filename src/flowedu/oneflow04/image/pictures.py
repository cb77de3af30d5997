"""Argument checks and output arrays shared by the image ops."""
from __future__ import annotations

import numpy as np

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.values import dtype as dt
from flowedu.core.values.storage import empty
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.oneflow04.functions.tensor_buffers import need_value, number_type

_PIXELS = (dt.uint8, dt.float32)


def allocate_output(shape: tuple[int, ...], dtype: dt.dtype) -> np.ndarray:
    """Return an uninitialized array, in memory of an earlier batch if possible.

    The first access to new pages of memory would take as long as the image op itself.
    """
    return np.asarray(empty(shape, dtype))


def check_pictures(what: str, x: TensorBuffer, channels: int | None = None) -> None:
    """Raise ShapeError unless every tensor has the shape (height, width, channels) and is not empty."""
    for i, a in enumerate(x.items):
        if a.ndim != 3 or not a.size or channels not in (None, a.shape[2]):
            raise ShapeError(f"{what}: {x.where(i)} is not such an image", got=str(a.shape),
                             expected=f"(height, width, {channels or 'channels'})",
                             fix="decode with the color_space that has these channels: GRAY has 1, RGB and "
                             "BGR have 3" if a.ndim == 3 else
                             "flow.image.decode gives images; a grey one of (h, w) is x[:, :, None]")


def pixel_type(what: str, d) -> dt.dtype:
    """Return the dtype `d`. Raise DTypeError unless it is uint8 or float32."""
    d = number_type(what, "dtype", d)
    if d not in _PIXELS:
        raise DTypeError(f"{what}: images have no such element type", expected="flow.uint8 or flow.float32",
                         got=d.name, fix="flow.cast the result")
    return d


def channel_numbers(what: str, name: str, numbers, channels: int) -> tuple[float, ...]:
    """Return one float per channel. A single number is repeated.

    Raise ArgumentError if the length is not the number of channels. With channels=0 any length is valid.
    """
    if not isinstance(numbers, (list, tuple)) or not numbers or (name == "std" and 0 in numbers) or (
            channels and len(numbers) not in (1, channels)):
        raise ArgumentError(f"{what}: {name} does not fit", expected=f"a list of 1 or {channels} floats"
                            if channels else
                            "a list of floats, one per channel" + ", none of them 0" * (name == "std"),
                            got=repr(numbers), fix="one number per channel, in the order of color_space")
    return tuple(map(float, numbers)) * (channels if len(numbers) == 1 and channels else 1)


FLIPS = {0: (), 1: (1,), 16: (0,), 17: (0, 1)}        # axes of an image: 0 is height, 1 is width


def flip_codes(what: str, flip_code, count: int) -> list[int]:
    """Return one flip code per image, from one int or an array. Raise ArgumentError for invalid codes."""
    codes = [flip_code] * count if isinstance(flip_code, int) else [int(c) for c in np.ravel(flip_code)]
    if len(codes) != count or set(codes) - set(FLIPS):
        raise ArgumentError(f"{what}: flip_code does not fit",
                            expected=f"{count} codes: 0 (none), 1 (left-right), 16 (upside down), 17 (both)",
                            got=str(codes[:20]), fix="one int for all, or int8 of shape (N,)")
    return codes


def with_codes(what: str, op, inputs: tuple, flip_code):
    """Call `op` with the flip code as an attribute if it is an int, else as another input."""
    if isinstance(flip_code, (int, np.integer)):
        flip_codes(what, int(flip_code), 1)
        return op(*inputs, code=int(flip_code))
    need_value(what, flip_code)
    return op(*inputs, flip_code, code=None)
