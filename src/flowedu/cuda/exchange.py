"""Exchange of GPU memory with other libraries, by DLPack and __cuda_array_interface__ (version 3).

Both protocols pass an address and a stream. The consumer names the stream on which it will use the array; the
producer makes this stream wait for all work that is queued so far.
"""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import row_major
from flowedu.cuda.machine import machine
from flowedu.cuda.streams import current_stream
from flowedu.errors import ArgumentError, DeviceError, ShapeError
from flowedu.tensor.dlpack import on_gpu

DEFAULT = 1                                              # the number of the default stream
ORDINAL = 9                                              # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


def here(index: int) -> int:
    """The current stream of a device, as others are told of it."""
    return current_stream(index).cuda_stream or DEFAULT


def handed_over(index: int, stream: int | None) -> None:
    """What is queued on a device is done before what will be queued on another's stream (None: the default one)."""
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int) or stream < 1):
        raise ArgumentError("__dlpack__: stream is not a stream of CUDA", got=repr(stream),
                            expected="1 (the default stream), 2 (that of a thread), a stream's number, None or -1",
                            fix="0 could mean either of the first two: pass 1")
    own, its = here(index), DEFAULT if stream is None else stream
    if own != its and its != DEFAULT:                    # the default one waits for all others by itself
        current_stream(index).synchronize()              # PyCUDA cannot let a stream that is not its own wait


def taken(x: Any) -> Tensor:
    """A tensor over the memory of an object with __cuda_array_interface__, which it keeps alive.

    Raises DeviceError: the memory is of no GPU; ShapeError, ArgumentError, DTypeError: what it describes
    is no tensor.
    """
    at = x.__cuda_array_interface__
    given = np.dtype(at["typestr"])
    if not given.isnative or at.get("mask") is not None:
        raise ArgumentError("as_tensor: an array with a mask, or of another byte order", got=f"{at['typestr']}, mask="
                            f"{at.get('mask')!r}", expected="plain numbers", fix="take a copy without it")
    dtype, shape = as_dtype(given, "as_tensor: typestr"), tuple(int(n) for n in at["shape"])
    told = at.get("strides")
    strides = row_major(shape) if told is None else tuple(s // given.itemsize for s in told)
    if len(shape) > 8 or min(strides, default=0) < 0 or told is not None and any(s % given.itemsize for s in told):
        raise ShapeError("as_tensor: these strides are no tensor's", expected="at most 8 axes, strides of 0 or more, in "
                         "whole elements", got=f"shape {shape}, strides {told}", fix="take a copy first")
    address, readonly = at["data"]
    index = device_of(int(address)) if address and 0 not in shape else machine().use()
    stream = at.get("stream")
    if stream is not None and stream != here(index):
        with machine().on(index):
            machine().driver.Context.synchronize()
    return on_gpu(int(address or 0), shape, strides, dtype, index, bool(readonly), x, Tensor)


def device_of(address: int) -> int:
    """The number of the GPU whose memory is at an address. Raises DeviceError."""
    m = machine()
    driver = m.library or ctypes.CDLL("libcuda.so.1")    # PyCUDA has no function for this
    index = ctypes.c_int(-1)
    if driver.cuPointerGetAttribute(ctypes.byref(index), ORDINAL, ctypes.c_uint64(address)) == 0 and index.value >= 0:
        return index.value
    raise DeviceError("as_tensor: this is not memory of a GPU", expected="an address on one of them", got=hex(address))
