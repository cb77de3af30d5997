"""Engine of eager calls on a GPU, for the hooks of core/eager/later/device.pxi.

A call has an Entry, which selects a kernel of the table. The kernel is launched on the current stream, and
the call returns without waiting for it.

    memory of the outputs    memory.py
    the kernel               table.py, by the record's kernel name and dtype; ints and reals are those of the CPU's kernel
    values that travel       carry(): to the device, back, within it, to another one

Errors of a kernel are raised at the next synchronization; with FLOWEDU_CUDA_BLOCKING=1 at the op itself.
"""
from __future__ import annotations

import os
from typing import Any

from flowedu._kernels import TABLE as CPU
from flowedu.core.eager.arrays import tensor_alias
from flowedu.core.eager.dispatch import (
    Entry,
    TensorBase,
    call_seeded,
    connect,
    copy_to_device,
    index_error,
    set_amp,
    unrecorded,
)
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import BY_CODE, HALVES, float32
from flowedu.core.values.spec import Spec
from flowedu.core.values.thread_state import thread_state
from flowedu.cuda import again
from flowedu.cuda.faults import check, said
from flowedu.cuda.launch import CHECK, SINGULAR
from flowedu.cuda.machine import machine
from flowedu.cuda.memory import device_memory
from flowedu.cuda.streams import current_stream
from flowedu.cuda.table import TABLE, View, fault
from flowedu.errors import LinAlgError, UnsupportedError
from flowedu.errors.element_types import no_kernel
from flowedu.ops.checks import CHECKS, value_error
from flowedu.tensor.interop import memory_of

BLOCKING = os.environ.get("FLOWEDU_CUDA_BLOCKING", "0") not in ("", "0")
FEW = 64                                                 # bytes that travel without waiting: an optimizer's rate, its step
_numbers: dict[tuple[int, int, bytes], TensorBase] = {}  # {(GPU, dtype code, bits): a tensor there}
_readers: dict[int, dict[str, Any]] = {}                 # {GPU: {name: op}}: what has read indices since somebody looked


class Ready:
    """What is known of all calls with one Entry: the row of the table, and what the record packs for the kernel."""

    __slots__ = ("again", "formula", "indexes", "ints", "reals", "row")

    def __init__(self, entry: Entry):
        op = entry.op
        specs = [Spec(shape, dtype) for shape, dtype in zip(entry.in_shapes, entry.in_dtypes)]
        names = op.bind(specs, entry.attrs, outs=entry.specs)
        key = op.leading(specs, entry.specs, names)
        kernel = op.name if entry.python else op.cpu
        row = TABLE.get((kernel, key.code))
        if entry.python and row is not None and row.pack is None:
            row = None                                       # a user's op that is called as one of our kernels
        if row is None and key in HALVES and (kernel, 0) in TABLE and not op.mutates:
            self.row = None                                  # by way of float32
            return
        if row is None and not entry.python and (op.cpu, key.code) not in CPU:
            raise no_kernel(op, specs, entry.attrs, entry.specs, BY_CODE)                       # nowhere
        if row is None:
            raise UnsupportedError(f"{op.name}: there is no CUDA kernel for {key.name}",
                                   expected="a row of flowedu.cuda.table.TABLE" if not entry.python else
                                   "an op with a kernel; this one is a Python function of NumPy arrays",
                                   got=", ".join(map(str, specs)),
                                   fix="compute it on the CPU: x.cpu(), and .to(\"cuda\") brings the result back")
        self.row, self.formula = row, op.program or names.get("formula")
        self.ints, self.reals = row.pack(names) if row.pack else op.ask(op.pack, names) if op.pack else ((), ())
        self.ints, self.reals = [int(i) for i in self.ints], [float(x) for x in self.reals]
        self.indexes = bool(op.range_help or row.pack)
        self.again: dict[tuple, again.Again | None] = {}           # {how the arrays of a call lie: its launches}


def _view(x: TensorBase) -> View:
    return View(x.address, x.dtype, x._sizes(), x.strides)


def launch(entry: Entry, inputs: list[TensorBase], outputs: list[TensorBase], drawn: tuple[int, int] | None) -> None:
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


def _by_float32(entry: Entry, inputs: list[TensorBase], outputs: list[TensorBase], drawn: tuple[int, int] | None) -> None:
    """A call with 16-bit floats where only float32 has a kernel: cast, computed, and rounded once, in autocast, too."""
    cast, amp = REGISTRY["cast"], set_amp(False)
    try:
        with unrecorded():
            xs = tuple([cast.call((x,), (float32,)) if x.dtype in HALVES else x for x in inputs])
            made = entry.op.call(xs, entry.attrs) if drawn is None else call_seeded(entry.op, xs, entry.attrs, *drawn)
            for y, z in zip(outputs, made if isinstance(made, tuple) else (made,)):
                carry(cast.call((z,), (y.dtype,)) if z.dtype is not y.dtype else z, y)
    finally:
        set_amp(amp)


def _start(entry: Entry, ready: Ready, inputs: list, outputs: list, drawn: tuple[int, int] | None, place: int) -> None:
    """The same with the device as this thread's."""
    given, apart, alike = [], 0, True
    for x in inputs:
        if not x._device:
            x = _number(x, place - 1)
        elif not x._is_row_major():
            alike = False
        given.append(x.address)
        apart |= x.address
    for y in outputs:
        given.append(y.address)
        apart |= y.address
    key = place + 1024 * again.epoch
    if not alike or apart & 15:
        key = key, *[(x.address & 15, x.strides) for x in (*inputs, *outputs)]
    try:
        known = ready.again[key] if key in ready.again else _rehearse(ready, key, inputs, outputs, drawn, place)
        if known is not None:
            known(given if drawn is None else [*given, *drawn], current_stream(place - 1).handle)
        else:
            ready.row([_view(x) if x._device else _view(_number(x, place - 1)) for x in (*inputs, *outputs)],
                      ready.ints if drawn is None else [*drawn, *ready.ints[2:]], ready.reals,
                      current_stream(place - 1).handle, formula=ready.formula)
        if BLOCKING:
            machine().driver.Context.synchronize()
            look(place - 1)
    except BaseException as e:
        said(entry.op.name, e)
        raise


def _rehearse(ready: Ready, key: Any, inputs: list, outputs: list, drawn: Any, place: int) -> again.Again | None:
    """What a call whose arrays lie so queues."""
    if len(ready.again) >= 16:                               # strides that change every call must not pile up
        ready.again.clear()
    args = [_view(x if x._device else _number(x, place - 1)) for x in (*inputs, *outputs)]
    ready.again[key] = found = again.rehearsed(ready.row, args, ready.ints, ready.reals, ready.formula, drawn is not None)
    return found


def _number(x: TensorBase, index: int) -> TensorBase:
    """A 0-d tensor of main memory, as it lies on a device: programs multiply by the same few numbers again and again."""
    key = index, x.dtype.code, bytes(memory_of(x))
    found = _numbers.get(key)
    if found is None:
        if len(_numbers) >= 4096:
            _numbers.clear()
        found = _numbers[key] = copy_to_device(x, index + 1)
    return found


def wait(index: int | None) -> None:
    """Until a device (None: the current one) has done all. Raises what went wrong in a kernel."""
    m = machine()
    with m.on(index) as index, check("synchronize"):
        m.driver.Context.synchronize()
        look(index)


def note_readers(index: int, ops: dict[str, Any]) -> None:
    """These ops, by name, read indices on the device: an error that `look` finds may be theirs."""
    if ops:
        _readers.setdefault(index, {}).update(ops)


def readers(index: int, back: dict[str, Any] | None = None) -> dict[str, Any]:
    """Those noted so far, which then are none, or `back`."""
    found, _readers[index] = _readers.get(index, {}), back or {}
    return found


def numbers() -> list[TensorBase]:
    """The numbers of main memory that launches may point to."""
    return [*_numbers.values()]


def look(index: int) -> None:
    """Raises KernelError: a kernel met an index out of range, or a singular matrix, on the device, the current one, since
    this was last asked."""
    noted = _readers.pop(index, {})
    readers = [REGISTRY.get(name.removesuffix("_part"), op) for name, op in noted.items()]           # as users know them
    found = fault() if readers else None
    if found is not None and found[0] == SINGULAR:
        from flowedu.ops.linalg import inverse, solve
        names = " or ".join(op.name for op in readers if op is inverse or op is solve)
        raise LinAlgError(f"{names}: the matrix is singular", expected="a matrix with an inverse",
                          got=f"matrix {found[1]} of the batch",
                          fix="solve a least-squares problem instead, or add a small multiple of flow.eye(n)")
    if found is not None and found[0] >= CHECK:
        raise value_error(found[1], None, *CHECKS[found[0] - CHECK])
    if found is not None:
        readers = [op for op in readers if not callable(op.range_help)] or [REGISTRY["gather"]]
        error = index_error(readers[-1], (), found[1])
        if len(readers) > 1:
            names = ", ".join(op.name for op in readers)
            error.told(problem=f"{names}: in one of these an index is out of range: {found[1]}",
                       fix="FLOWEDU_CUDA_BLOCKING=1 tells which, where it is called")
        raise error


# ---- values that travel
def carry(x: TensorBase, y: TensorBase) -> None:
    """Copy x's values into y, of the same shape and dtype; each may be anywhere, with any strides."""
    if not x._numel:
        return
    if x._device == y._device:
        _within(x, y)
    elif not x._is_row_major():
        carry(copy_to_device(x, x._device), y)
    elif not y._is_row_major():
        carry_into(y, copy_to_device(x, y._device))
    else:
        m = machine()
        with m.on((x._device or y._device) - 1), check("copy"):
            if not x._device:
                s = current_stream(y._device - 1)
                if x._numel * x.dtype.bytes <= FEW and s.handle is None:  # the driver takes such a copy before it returns
                    m.driver.memcpy_htod_async(y.address, bytes(memory_of(x)), None)
                else:
                    m.driver.memcpy_htod_async(y.address, memory_of(x), s.handle)
                    s.synchronize()
            elif not y._device:
                look(x._device - 1)
                s = current_stream(x._device - 1)
                m.driver.memcpy_dtoh_async(memory_of(y), x.address, s.handle)
                s.synchronize()
            else:                                            # over the link, in turn with all else that both devices do
                look(x._device - 1)
                m.driver.memcpy_peer(y.address, x.address, x._numel * x.dtype.bytes, m.context(y._device - 1),
                                     m.context(x._device - 1))
                if BLOCKING:
                    wait(y._device - 1)


def carry_into(y: TensorBase, x: TensorBase) -> None:
    """x's values into y on the same device, by strides."""
    if y._device:
        _within(x, y)
    else:
        from flowedu.core.eager.dispatch import copy_into
        with unrecorded():
            copy_into(tensor_alias(y), x)


def _within(x: TensorBase, y: TensorBase) -> None:
    """By the copy kernel of their device."""
    with machine().on(x._device - 1), check("copy"):
        TABLE["copy", x.dtype.code]([_view(x), _view(y)], stream=current_stream(x._device - 1).handle)
        if BLOCKING:
            machine().driver.Context.synchronize()


def started() -> int:
    """How many devices tensors can be on."""
    return machine().count


connect(device_memory=device_memory, launch=launch, carry=carry)
