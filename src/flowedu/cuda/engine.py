"""Engine of eager calls on a GPU, for the hooks of core/eager/later/device.pxi.

A call has an Entry, which selects a kernel of the table. The kernel is launched on the current stream, and
the call returns without waiting for it.

    memory of the outputs    memory.py
    the kernel               table.py, by kernel name and dtype, with ints and reals as on the CPU
    copies                   carry(): to a device, from it, within it, and between devices

Errors of a kernel are raised at the next synchronization, or at the op itself with FLOWEDU_CUDA_BLOCKING=1.
"""
from __future__ import annotations

import os
from typing import Any

from flowedu._kernels import TABLE as CPU
from flowedu.core.eager.arrays import tensor_alias
from flowedu.core.eager.dispatch import (
    Entry,
    call_seeded,
    connect,
    copy_to_device,
    index_error,
    set_amp,
    unrecorded,
)
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import BY_CODE, HALVES, float32
from flowedu.core.values.spec import Spec
from flowedu.core.values.thread_state import thread_state
from flowedu.cuda import again
from flowedu.cuda.faults import check, raise_driver_error
from flowedu.cuda.launch import CHECK, SINGULAR
from flowedu.cuda.machine import machine
from flowedu.cuda.memory import device_memory
from flowedu.cuda.streams import current_stream
from flowedu.cuda.table import TABLE, View, fault
from flowedu.errors import LinAlgError, UnsupportedError
from flowedu.errors.element_types import no_kernel
from flowedu.ops.checks import CHECKS, value_error
from flowedu.tensor.interop.protocols import memory_of

BLOCKING = os.environ.get("FLOWEDU_CUDA_BLOCKING", "0") not in ("", "0")
FEW = 64  # bytes that are copied without waiting, as for a learning rate
_numbers: dict[tuple[int, int, bytes], Tensor] = {}  # {(GPU, dtype code, bits): tensor on that GPU}
_readers: dict[int, dict[str, Any]] = {}  # {GPU: {name: op}}: ops that read indices since the last look()


class Ready:
    """Cached data of all calls with one Entry: the row of the table, and the packed attributes."""

    __slots__ = ("again", "formula", "indexes", "ints", "reals", "row")
    row: Any                                                 # a Launch; None for calls computed in float32

    def __init__(self, entry: Entry):
        op = entry.op
        specs = [Spec(shape, dtype) for shape, dtype in zip(entry.in_shapes, entry.in_dtypes)]
        names = op.bind(specs, entry.attrs, outs=entry.specs)
        key = op.leading(specs, entry.specs, names)
        kernel = op.name if entry.python else op.cpu
        row = TABLE.get((kernel, key.code))
        if entry.python and row is not None and row.pack is None:
            row = None                                       # a user's op with the name of a built-in kernel
        if row is None and key in HALVES and (kernel, 0) in TABLE and not op.mutates:
            self.row = None                                  # computed in float32
            return
        if row is None and not entry.python and (op.cpu, key.code) not in CPU:
            raise no_kernel(op, specs, entry.attrs, entry.specs, BY_CODE)                       # on no device
        if row is None:
            raise UnsupportedError(f"{op.name}: there is no CUDA kernel for {key.name}",
                                   expected="a row of flowedu.cuda.table.TABLE" if not entry.python else
                                   "an op with a kernel; this one is a Python function of NumPy arrays",
                                   got=", ".join(map(str, specs)),
                                   fix="compute it on the CPU: x.cpu(), and .to(\"cuda\") brings the "
                                   "result back")
        self.row, self.formula = row, op.program or names.get("formula")
        ints: Any = ()
        reals: Any = ()
        if row.pack:
            ints, reals = row.pack(names)
        elif op.pack:
            ints, reals = op.ask(op.pack, names)
        self.ints, self.reals = [int(i) for i in ints], [float(x) for x in reals]
        self.indexes = bool(op.range_help or row.pack)
        self.again: dict[Any, again.Again | None] = {}             # {layout of the arrays: launches}


def _view(x: Tensor) -> View:
    return View(x.address, x.dtype, x._sizes(), x.strides)


def launch(entry: Entry, inputs: list[Tensor], outputs: list[Tensor],
           drawn: tuple[int, int] | None) -> None:
    """Start the kernel of a call. All tensors are on one device. drawn: a random op's seed and draw."""
    ready = entry.launched
    if ready is None:
        ready = entry.launched = Ready(entry)
    if ready.row is None:
        _by_float32(entry, inputs, outputs, drawn)
        return
    place = outputs[0]._device if outputs else max([x._device for x in inputs])
    if ready.indexes:
        note_readers(place - 1, {entry.op.name: entry.op})
    held = thread_state.gpu
    if held is None or held.index != place - 1:
        with machine().on(place - 1):
            _start(entry, ready, inputs, outputs, drawn, place)
    else:
        _start(entry, ready, inputs, outputs, drawn, place)


def _by_float32(entry: Entry, inputs: list[Tensor], outputs: list[Tensor],
                drawn: tuple[int, int] | None) -> None:
    """Compute a call with 16-bit floats by a float32 kernel, without autocast, and round the results once."""
    cast, amp = REGISTRY["cast"], set_amp(False)
    try:
        with unrecorded():
            xs = tuple([cast.call((x,), (float32,)) if x.dtype in HALVES else x for x in inputs])
            results = (entry.op.call(xs, entry.attrs) if drawn is None
                       else call_seeded(entry.op, xs, entry.attrs, *drawn))
            for y, z in zip(outputs, results if isinstance(results, tuple) else (results,)):
                carry(cast.call((z,), (y.dtype,)) if z.dtype is not y.dtype else z, y)
    finally:
        set_amp(amp)


def _start(entry: Entry, ready: Ready, inputs: list, outputs: list, drawn: tuple[int, int] | None,
           place: int) -> None:
    """Start the kernel of a call on the current device of this thread."""
    addresses, bits, row_major = [], 0, True
    for x in inputs:
        if not x._device:
            x = _number(x, place - 1)
        elif not x._is_row_major():
            row_major = False
        addresses.append(x.address)
        bits |= x.address
    for y in outputs:
        addresses.append(y.address)
        bits |= y.address
    key: Any = place + 1024 * again.epoch
    if not row_major or bits & 15:
        key = key, *[(x.address & 15, x.strides) for x in (*inputs, *outputs)]
    try:
        launches = (ready.again[key] if key in ready.again else _rehearse(ready, key, inputs, outputs,
                                                                          drawn, place))
        if launches is not None:
            launches(addresses if drawn is None else [*addresses, *drawn], current_stream(place - 1).handle)
        else:
            ready.row([_view(x) if x._device else _view(_number(x, place - 1)) for x in (*inputs, *outputs)],
                      ready.ints if drawn is None else [*drawn, *ready.ints[2:]], ready.reals,
                      current_stream(place - 1).handle, formula=ready.formula)
        if BLOCKING:
            machine().driver.Context.synchronize()
            look(place - 1)
    except BaseException as e:
        raise_driver_error(entry.op.name, e)
        raise


def _rehearse(ready: Ready, key: Any, inputs: list, outputs: list, drawn: Any,
              place: int) -> again.Again | None:
    """Record and cache the launches of a call for the layout of these arrays."""
    if len(ready.again) >= 16:                               # strides may change with every call
        ready.again.clear()
    args = [_view(x if x._device else _number(x, place - 1)) for x in (*inputs, *outputs)]
    launches = again.rehearsed(ready.row, args, ready.ints, ready.reals, ready.formula, drawn is not None)
    ready.again[key] = launches
    return launches


def _number(x: Tensor, index: int) -> Tensor:
    """Return a copy of a 0-d CPU tensor on a device, cached, as programs reuse the same few values."""
    key = index, x.dtype.code, bytes(memory_of(x))
    copy = _numbers.get(key)
    if copy is None:
        if len(_numbers) >= 4096:
            _numbers.clear()
        copy = _numbers[key] = copy_to_device(x, index + 1)
    return copy


def wait(index: int | None) -> None:
    """Wait until a device (None: the current one) has finished, and raise the errors of its kernels."""
    m = machine()
    with m.on(index) as index, check("synchronize"):
        m.driver.Context.synchronize()
        look(index)


def note_readers(index: int, ops: dict[str, Any]) -> None:
    """Record ops that read indices on the device, {name: op}, so that the errors of `look` name them."""
    if ops:
        _readers.setdefault(index, {}).update(ops)


def readers(index: int, back: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the ops recorded so far, and replace them by `back` (None: by no ops)."""
    noted, _readers[index] = _readers.get(index, {}), back or {}
    return noted


def numbers() -> list[Tensor]:
    """Return the copies of 0-d CPU tensors, whose addresses launches may contain."""
    return [*_numbers.values()]


def look(index: int) -> None:
    """Raise the error that kernels of the current device reported since the last call, if any.

    These are an index out of range, a singular matrix, and a value that failed a check (ops/checks.py).
    """
    noted = _readers.pop(index, {})
    # The error names the public op of a partial one.
    readers = [REGISTRY.get(name.removesuffix("_part"), op) for name, op in noted.items()]
    status = fault() if readers else None
    if status is not None and status[0] == SINGULAR:
        from flowedu.ops.linalg import inverse, solve
        names = " or ".join(op.name for op in readers if op is inverse or op is solve)
        raise LinAlgError(f"{names}: the matrix is singular", expected="a matrix with an inverse",
                          got=f"matrix {status[1]} of the batch",
                          fix="solve a least-squares problem instead, or add a small multiple of flow.eye(n)")
    if status is not None and status[0] >= CHECK:
        raise value_error(status[1], None, *CHECKS[status[0] - CHECK])
    if status is not None:
        readers = [op for op in readers if not callable(op.range_help)] or [REGISTRY["gather"]]
        error = index_error(readers[-1], (), status[1])
        if len(readers) > 1:
            names = ", ".join(op.name for op in readers)
            error.with_texts(problem=f"{names}: in one of these an index is out of range: {status[1]}",
                             fix="FLOWEDU_CUDA_BLOCKING=1 tells which, where it is called")
        raise error


# ---- copies
def carry(x: Tensor, y: Tensor) -> None:
    """Copy x into y, which has the same shape and dtype. Both may have any device and any strides."""
    if not x._numel:
        return
    if x._device == y._device:
        _copy_within(x, y)
    elif not x._is_row_major():
        carry(copy_to_device(x, x._device), y)
    elif not y._is_row_major():
        carry_into(y, copy_to_device(x, y._device))
    else:
        m = machine()
        with m.on((x._device or y._device) - 1), check("copy"):
            if not x._device:
                s = current_stream(y._device - 1)
                # A copy of so few bytes on the default stream has read them when it returns.
                if x._numel * x.dtype.bytes <= FEW and s.handle is None:
                    m.driver.memcpy_htod_async(y.address, bytes(memory_of(x)), None)
                else:
                    m.driver.memcpy_htod_async(y.address, memory_of(x), s.handle)
                    s.synchronize()
            elif not y._device:
                look(x._device - 1)
                s = current_stream(x._device - 1)
                m.driver.memcpy_dtoh_async(memory_of(y), x.address, s.handle)
                s.synchronize()
            else:                                            # between devices, in order with the work of both
                look(x._device - 1)
                m.driver.memcpy_peer(y.address, x.address, x._numel * x.dtype.bytes, m.context(y._device - 1),
                                     m.context(x._device - 1))
                if BLOCKING:
                    wait(y._device - 1)


def carry_into(y: Tensor, x: Tensor) -> None:
    """Copy x's values into y on the same device, with any strides."""
    if y._device:
        _copy_within(x, y)
    else:
        from flowedu.core.eager.dispatch import copy_into
        with unrecorded():
            copy_into(tensor_alias(y), x)


def _copy_within(x: Tensor, y: Tensor) -> None:
    """Copy x into y by the copy kernel of their device."""
    with machine().on(x._device - 1), check("copy"):
        TABLE["copy", x.dtype.code]([_view(x), _view(y)], stream=current_stream(x._device - 1).handle)
        if BLOCKING:
            machine().driver.Context.synchronize()


def started() -> int:
    """Return the number of devices that tensors can be on."""
    return machine().count


connect(device_memory=device_memory, launch=launch, carry=carry)
