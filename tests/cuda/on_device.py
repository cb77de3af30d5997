"""Helpers that run calls of the kernel table: they copy arrays to the device with their memory layout and
return the results.
"""
from __future__ import annotations

import ctypes

import numpy as np

import flowedu as flow
from flowedu.core.eager.dispatch import check_limits
from flowedu.core.ops.define import Op
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.cuda.machine import machine
from flowedu.cuda.table import TABLE, View, fault


class Held:
    """An array on the device: its memory and a `view` of it."""

    def __init__(self, a: np.ndarray, dtype=None):
        driver = machine().driver
        low, high = np.lib.array_utils.byte_bounds(a) if a.size else (a.ctypes.data, a.ctypes.data)
        self.array, self.low, self.bytes = a, low, high - low
        self.memory = driver.mem_alloc(max(self.bytes, 1))
        if self.bytes:
            driver.memcpy_htod(self.memory, (ctypes.c_char * self.bytes).from_address(low))
        strides = [s // a.itemsize for s in a.strides]
        self.view = View(int(self.memory) + a.ctypes.data - low, dtype or as_dtype(a.dtype), a.shape, strides)

    def read(self) -> np.ndarray:
        """Return the current values in an array with the original memory layout."""
        room = bytearray(max(self.bytes, 1))
        if self.bytes:
            machine().driver.memcpy_dtoh(memoryview(room)[:self.bytes], self.memory)
        a = self.array
        return np.ndarray(a.shape, a.dtype, room, a.ctypes.data - self.low if a.size else 0, a.strides)


class Room:
    """Uninitialized device memory for a result."""

    def __init__(self, spec: Spec):
        self.spec = spec
        self.memory = machine().driver.mem_alloc(max(spec.nbytes, 1))
        self.view = View(int(self.memory), spec.dtype, spec.shape)

    def read(self) -> np.ndarray:
        y = np.empty(self.spec.shape, self.spec.dtype.numpy or np.uint16)
        if y.size:
            machine().driver.memcpy_dtoh(y, self.memory)
        return y


def key_of(op: Op, names: dict, specs, outs) -> tuple[str, int]:
    """Return the key of the kernel table for a call."""
    source = op.key or (op.inputs[0] if op.inputs and not op.variadic else None)
    key = names[source] if source else (specs[0] if specs else outs[0])
    return op.cpu or op.name, key.dtype.code


def raw(cast: Op, x: np.ndarray, *dtypes) -> np.ndarray:
    """Cast values on the CPU to each of these dtypes in turn; bfloat16 is returned as 16-bit integers."""
    t = flow.from_numpy(np.array(x))
    for d in dtypes:
        t = cast(t, dtype=d)
    if t.dtype.numpy is None:                                        # the upper half of a float32
        return (cast(t, dtype=flow.float32).numpy().view(np.uint32) >> 16).astype(np.uint16)
    return t.numpy()


def launched(op: Op, arrays, attrs, dtypes=None) -> list[np.ndarray]:
    """Run a call on the device and return its outputs, or, for an op that mutates its inputs, the inputs
    afterwards.

    dtypes: those of the inputs if they differ from the arrays' own (bfloat16 is stored in uint16).
    """
    specs = [Spec(a.shape, d) for a, d in zip(arrays, dtypes or [as_dtype(a.dtype) for a in arrays])]
    outs = op.infer(specs, attrs)
    names = op.bind(specs, attrs, outs=outs)
    row = TABLE[key_of(op, names, specs, outs)]
    ints, reals = (row.pack(names) if row.pack else check_limits(op, *op.ask(op.pack, names)) if op.pack
                   else ((), ()))
    dense = [(op.inputs[0] if op.variadic else op.inputs[i]) in op.contiguous for i in range(len(arrays))]
    held = [Held(np.array(a, order="C") if d else a, s.dtype) for a, d, s in zip(arrays, dense, specs)]
    rooms = [Room(s) for s in outs]
    row([h.view for h in (*held, *rooms)], ints, reals,
        formula=op.program or names.get("formula"))
    machine().driver.Context.synchronize()
    assert fault() is None
    return [held[i].read() for i in op.mutates(len(arrays))] if op.mutates else [r.read() for r in rooms]
