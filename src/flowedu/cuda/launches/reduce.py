"""Launches of sum, prod, max, min and argmax."""
from __future__ import annotations

import math

from flowedu.cuda.launch import NUMBERS, Call, blocks, kernel
from flowedu.cuda.walk import joined, packed

FEW, LONG = 64, 8192                   # fewer blocks leave a device idle; longer sums are split among blocks


def extent(shape, axis: int) -> tuple[int, int, int]:
    """Return (outer, n, inner): the number of elements before, along, and after an axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:])


def _plan(call: Call):
    """Return (outputs, elements of each, kept axes, folded axes, columns, units, parts).

    columns: True if adjacent outputs are adjacent in x; a unit is an output, or 32 columns; a unit is split
        into parts.
    """
    x, y = call.args
    kept = [d for d in range(x.ndim) if not call.ints[d] and x.shape[d] != 1]
    folded = [d for d in range(x.ndim) if call.ints[d] and x.shape[d] != 1]
    walks = [joined([x.shape[d] for d in axes], [[x.strides[d] for d in axes]]) for axes in (kept, folded)]
    outs, n = y.size, math.prod(x.shape[d] for d in folded)
    columns = bool(kept) and (not folded or kept[-1] > folded[-1])
    units = -(-outs // 32) if columns else outs
    parts = min(-(-n // LONG), 256) if units < FEW else 1
    return outs, n, *[packed(*w) for w in walks], columns, units, max(parts, 1)


def _work(call: Call) -> int:
    columns, units, parts = _plan(call)[4:]
    if parts <= 1:
        return 0
    return 8 * units * parts * (32 if columns else 1) + 4 * units


@kernel("sum", "prod", "max", "min", file="reduce.cu", types=NUMBERS, work=_work)
def reduce(call: Call) -> None:
    """ints: a 1 for every reduced axis, a 0 for the others."""
    x, y = call.args
    plan = _plan(call)
    outs, n, kept, folded = plan[:4]
    columns, units, parts = plan[4:]
    if outs == 0:
        return
    if x.size == 0:
        n = 0
    arrived = call.work + 8 * units * parts * (32 if columns else 1)
    if parts > 1:
        call.clear(arrived, 4 * units)
    call.run(f"{call.name}_{'columns' if columns else 'rows'}", outs, n, kept, folded, parts, x.pointer,
             y.pointer,
             call.work, arrived, blocks=blocks(units * parts, 1), threads=(32, 8, 1) if columns
             else row_threads(n))


def row_threads(n: int) -> int:
    """Return the number of threads of a block that processes n elements, in full warps."""
    return min(max(32, -(-n // 128) * 32), 256)


@kernel("argmax", file="argmax.cu", types=NUMBERS)
def argmax(call: Call) -> None:
    """ints: [axis]."""
    x, y = call.args
    outer, n, inner = extent(x.shape, call.ints[0])
    if y.size:
        call.run("argmax", outer, n, inner, x.pointer, y.pointer, blocks=blocks(y.size, 1),
                 threads=row_threads(n))
