"""Exchange of GPU memory with other libraries, by DLPack and __cuda_array_interface__ (version 3).

Both protocols pass an address and a stream. The consumer names the stream on which it will use the array. The
protocols ask the producer to make that stream wait for the work queued so far. PyCUDA cannot make a foreign
stream wait, so this module waits on the host instead.
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
from flowedu.tensor.interop.dlpack import on_gpu

DEFAULT = 1                                              # the number of the default stream
ORDINAL = 9                                              # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


def current_handle(index: int) -> int:
    """Return the number of a device's current stream, as other libraries receive it."""
    return current_stream(index).cuda_stream or DEFAULT


def handed_over(index: int, stream: int | None) -> None:
    """Order a consumer's stream (None: the default one) after the work queued on a device."""
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int) or stream < 1):
        raise ArgumentError("__dlpack__: stream is not a stream of CUDA", got=repr(stream),
                            expected="1 (the default stream), 2 (that of a thread), a stream's number, "
                            "None or -1", fix="0 could mean either of the first two: pass 1")
    ours, theirs = current_handle(index), DEFAULT if stream is None else stream
    if ours != theirs and theirs != DEFAULT:             # the default stream waits for all others
        current_stream(index).synchronize()              # PyCUDA cannot make a foreign stream wait


def import_array(x: Any) -> Tensor:
    """Return a tensor over the memory of an object with __cuda_array_interface__, and keep the object alive.

    Raises DeviceError: the memory is not on a GPU; ShapeError, ArgumentError, DTypeError: a tensor cannot
    have this layout or dtype.
    """
    interface = x.__cuda_array_interface__
    array_dtype = np.dtype(interface["typestr"])
    if not array_dtype.isnative or interface.get("mask") is not None:
        raise ArgumentError("as_tensor: an array with a mask, or of another byte order",
                            expected="plain numbers",
                            got=f"{interface['typestr']}, mask={interface.get('mask')!r}",
                            fix="take a copy without it")
    dtype, shape = as_dtype(array_dtype, "as_tensor: typestr"), tuple(int(n) for n in interface["shape"])
    byte_strides = interface.get("strides")
    strides = (row_major(shape) if byte_strides is None else tuple(s // array_dtype.itemsize
                                                                   for s in byte_strides))
    uneven = byte_strides is not None and any(s % array_dtype.itemsize for s in byte_strides)
    if len(shape) > 8 or min(strides, default=0) < 0 or uneven:
        raise ShapeError("as_tensor: these strides are no tensor's",
                         expected="at most 8 axes, strides of 0 or more, in whole elements",
                         got=f"shape {shape}, strides {byte_strides}", fix="take a copy first")
    address, readonly = interface["data"]
    index = device_of(int(address)) if address and 0 not in shape else machine().use()
    stream = interface.get("stream")
    if stream is not None and stream != current_handle(index):
        with machine().on(index):
            machine().driver.Context.synchronize()
    return on_gpu(int(address or 0), shape, strides, dtype, index, bool(readonly), x, Tensor)


def device_of(address: int) -> int:
    """Return the index of the GPU that has the memory at an address. Raises DeviceError: none has it."""
    m = machine()
    driver = m.library or ctypes.CDLL("libcuda.so.1")    # PyCUDA has no function for this
    index = ctypes.c_int(-1)
    if (driver.cuPointerGetAttribute(ctypes.byref(index), ORDINAL, ctypes.c_uint64(address)) == 0
        and index.value >= 0):
        return index.value
    raise DeviceError("as_tensor: this is not memory of a GPU", expected="an address on one of them",
                      got=hex(address))
