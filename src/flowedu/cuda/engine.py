"""Eager calls on a GPU: what core/ops/elsewhere.pxi leaves open. A call comes with its Entry, which a kernel of the table
belongs to; it is started on the current stream and nobody waits for it.

    memory of the outputs    memory.py
    the kernel               table.py, by the record's kernel name and dtype; ints and reals are those of the CPU's kernel
    values that travel       carry(): to the device, back, within it, to another one

What goes wrong in a kernel is told when somebody waits for it; with FLOWEDU_CUDA_BLOCKING=1 at the op itself.
"""
from __future__ import annotations

import os
from functools import partial
from typing import Any

from flowedu._kernels import TABLE as CPU
from flowedu.core.ops.arrays import tensor_alias
from flowedu.core.ops.dispatch import Entry, TensorBase, carried, connect, index_error, no_kernel, unrecorded
from flowedu.core.values.spec import Spec
from flowedu.cuda.composed import COMPOSED
from flowedu.cuda.faults import raised
from flowedu.cuda.machine import machine
from flowedu.cuda.memory import device_memory
from flowedu.cuda.streams import current_stream
from flowedu.cuda.table import TABLE, View, fault
from flowedu.errors import UnsupportedError, user_line
from flowedu.tensor.devices import made_on
from flowedu.tensor.interop import memory_of

BLOCKING = os.environ.get("FLOWEDU_CUDA_BLOCKING", "0") not in ("", "0")
_numbers: dict[tuple[int, int, bytes], TensorBase] = {}  # {(GPU, dtype code, bits): a tensor there}
_readers: dict[int, dict[str, Any]] = {}                 # {GPU: {name: op}}: what has read indices since somebody looked


class check:
    """Errors of the driver as flowedu's, which say what was being done."""

    def __init__(self, what: str):
        self.what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc) -> None:
        e = exc[1]
        if e is not None and isinstance(e, machine().driver.Error):
            error = raised(e, machine())
            raise error.told(problem=f"{self.what}: {error.problem}", at=error.at or user_line()) from None


class Ready:
    """What is known of all calls with one Entry: the row of the table, and what the record packs for the kernel."""

    __slots__ = ("composed", "formula", "indexes", "ints", "reals", "row")

    def __init__(self, entry: Entry):
        op = entry.op
        made = COMPOSED.get(op)
        self.composed = made and partial(made, **dict(zip(op.attrs, entry.attrs)))
        if made:
            return
        specs = [Spec(shape, dtype) for shape, dtype in zip(entry.in_shapes, entry.in_dtypes)]
        names = op.bind(specs, entry.attrs, outs=entry.specs)
        source = op.key or (op.inputs[0] if op.inputs and not op.variadic else None)
        key = names[source] if source else (specs[0] if specs else entry.specs[0])
        row = None if entry.python else TABLE.get((op.cpu, key.dtype.code))
        if row is None and not entry.python and (op.cpu, key.dtype.code) not in CPU:
            raise no_kernel(op, specs)                       # nowhere
        if row is None:
            raise UnsupportedError(f"{op.name}: there is no CUDA kernel for {key.dtype.name}",
                                   expected="a row of flowedu.cuda.table.TABLE" if not entry.python else
                                   "an op with a kernel; this one is a Python function of NumPy arrays",
                                   got=", ".join(map(str, specs)),
                                   fix="compute it on the CPU: x.cpu(), and .to(\"cuda\") brings the result back")
        self.row, self.formula = row, op.program or names.get("formula")
        self.ints, self.reals = op.ask(op.pack, names) if op.pack is not None else ((), ())
        self.ints, self.reals = [int(i) for i in self.ints], [float(x) for x in self.reals]
        self.indexes = bool(op.range_help)


def _view(x: TensorBase) -> View:
    return View(x.address, x.dtype, x.shape_(), x.strides)


def launch(entry: Entry, inputs: list[TensorBase], outputs: list[TensorBase], drawn: tuple[int, int] | None) -> None:
    """Start the kernel of a call. All tensors are on one device. drawn: a random op's seed and draw."""
    ready = entry.launched
    if ready is None:
        ready = entry.launched = Ready(entry)
    if ready.composed is not None:
        with unrecorded(), made_on(outputs[0].place_):
            carry(ready.composed(*inputs), outputs[0])
        return
    ints = ready.ints if drawn is None else [*drawn, *ready.ints[2:]]
    place = outputs[0].place_ if outputs else max([x.place_ for x in inputs])
    if ready.indexes:
        _readers.setdefault(place - 1, {})[entry.op.name] = entry.op
    with machine().on(place - 1), check(entry.op.name):
        args = [_view(x) if x.place_ else _number(x, place - 1) for x in inputs]
        args += [_view(y) for y in outputs]
        ready.row(args, ints, ready.reals, current_stream(place - 1).handle, formula=ready.formula)
        if BLOCKING:
            machine().driver.Context.synchronize()
            look(place - 1)


def _number(x: TensorBase, index: int) -> View:
    """A 0-d tensor of main memory, as it lies on a device: programs multiply by the same few numbers again and again."""
    key = index, x.dtype.code, bytes(memory_of(x))
    found = _numbers.get(key)
    if found is None:
        if len(_numbers) >= 4096:
            _numbers.clear()
        found = _numbers[key] = carried(x, index + 1)
    return _view(found)


def wait(index: int | None) -> None:
    """Until a device (None: the current one) has done all. Raises what went wrong in a kernel."""
    m = machine()
    with m.on(index) as index, check("synchronize"):
        m.driver.Context.synchronize()
        look(index)


def look(index: int) -> None:
    """Raises KernelError: a kernel met an index out of range on the device, the current one, since this was last asked."""
    readers = [*_readers.pop(index, {}).values()]
    found = fault() if readers else None
    if found is not None:
        error = index_error(readers[-1], found[1])
        if len(readers) > 1:
            names = ", ".join(op.name for op in readers)
            error.told(problem=f"{names}: in one of these an index is out of range: {found[1]}",
                       fix="FLOWEDU_CUDA_BLOCKING=1 tells which, where it is called")
        raise error


# ---- values that travel
def carry(x: TensorBase, y: TensorBase) -> None:
    """Copy x's values into y, of the same shape and dtype; each may be anywhere, with any strides."""
    if not x.size_:
        return
    if x.place_ == y.place_:
        _within(x, y)
    elif not x.row_major_():
        carry(carried(x, x.place_), y)
    elif not y.row_major_():
        carry_into(y, carried(x, y.place_))
    else:
        m = machine()
        with m.on((x.place_ or y.place_) - 1), check("copy"):
            if not x.place_:
                m.driver.memcpy_htod_async(y.address, memory_of(x), current_stream(y.place_ - 1).handle)
                current_stream(y.place_ - 1).synchronize()
            elif not y.place_:
                look(x.place_ - 1)
                s = current_stream(x.place_ - 1)
                m.driver.memcpy_dtoh_async(memory_of(y), x.address, s.handle)
                s.synchronize()
            else:                                            # over the link, in turn with all else that both devices do
                look(x.place_ - 1)
                m.driver.memcpy_peer(y.address, x.address, x.size_ * x.dtype.bytes, m.context(y.place_ - 1),
                                     m.context(x.place_ - 1))
                if BLOCKING:
                    wait(y.place_ - 1)


def carry_into(y: TensorBase, x: TensorBase) -> None:
    """x's values into y on the same device, by strides."""
    if y.place_:
        _within(x, y)
    else:
        from flowedu.core.ops.dispatch import copy_into
        with unrecorded():
            copy_into(tensor_alias(y), x)


def _within(x: TensorBase, y: TensorBase) -> None:
    """By the copy kernel of their device."""
    with machine().on(x.place_ - 1), check("copy"):
        TABLE["copy", x.dtype.code]([_view(x), _view(y)], stream=current_stream(x.place_ - 1).handle)
        if BLOCKING:
            machine().driver.Context.synchronize()


def started() -> int:
    """How many devices tensors can be on."""
    return machine().count


connect(device_memory=device_memory, launch=launch, carry=carry)
