"""Argument checks and output arrays shared by the image ops."""
from __future__ import annotations

import numpy as np

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.values import dtype as dt
from flowedu.core.values.storage import empty
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.oneflow04.buffers import need_value, number_type

_PIXELS = (dt.uint8, dt.float32)


def room(shape: tuple[int, ...], dtype: dt.dtype) -> np.ndarray:
    """An array to be filled, in memory that the last batch let go of: fresh pages take as long as the work on them."""
    return np.asarray(empty(shape, dtype))


def check_pictures(what: str, x: TensorBuffer, channels: int | None = None) -> None:
    """Raise ShapeError unless every tensor is (height, width, channels) and has pixels."""
    for i, a in enumerate(x.items):
        if a.ndim != 3 or not a.size or channels not in (None, a.shape[2]):
            raise ShapeError(f"{what}: {x.where(i)} is not such an image", got=str(a.shape),
                             expected=f"(height, width, {channels or 'channels'})", fix="decode with the color_space that "
                             "has these channels: GRAY has 1, RGB and BGR have 3" if a.ndim == 3 else
                             "flow.image.decode gives images; a grey one of (h, w) is x[:, :, None]")


def pixel_type(what: str, d) -> dt.dtype:
    """uint8 or float32; else a DTypeError."""
    d = number_type(what, "dtype", d)
    if d not in _PIXELS:
        raise DTypeError(f"{what}: images have no such element type", expected="flow.uint8 or flow.float32", got=d.name,
                         fix="flow.cast the result")
    return d


def channel_numbers(what: str, name: str, numbers, channels: int) -> tuple[float, ...]:
    """`numbers` as floats, one per channel: one stands for all. channels 0: any number of them. Raises ArgumentError."""
    if not isinstance(numbers, (list, tuple)) or not numbers or (name == "std" and 0 in numbers) or (
            channels and len(numbers) not in (1, channels)):
        raise ArgumentError(f"{what}: {name} does not fit", expected=f"a list of 1 or {channels} numbers" if channels else
                            "a list of numbers, one per channel" + ", none of them 0" * (name == "std"), got=repr(numbers),
                            fix="one number per channel, in the order of color_space")
    return tuple(map(float, numbers)) * (channels if len(numbers) == 1 and channels else 1)


FLIPS = {0: (), 1: (1,), 16: (0,), 17: (0, 1)}        # the axes of a picture: 0 is height, 1 is width


def flip_codes(what: str, flip_code, count: int) -> list[int]:
    """A flip code per instance, from one int or an array of them. Raises ArgumentError."""
    codes = [flip_code] * count if isinstance(flip_code, int) else [int(c) for c in np.ravel(flip_code)]
    if len(codes) != count or set(codes) - set(FLIPS):
        raise ArgumentError(f"{what}: flip_code does not fit", expected=f"{count} codes: 0 (none), 1 (left-right), 16 "
                            "(upside down), 17 (both)", got=str(codes[:20]), fix="one int for all, or int8 of shape (N,)")
    return codes


def with_codes(what: str, op, inputs: tuple, flip_code):
    """Call `op` with the flip code as an attribute if it is an int, else as one more input."""
    if isinstance(flip_code, (int, np.integer)):
        flip_codes(what, int(flip_code), 1)
        return op(*inputs, code=int(flip_code))
    need_value(what, flip_code)
    return op(*inputs, flip_code, code=None)
