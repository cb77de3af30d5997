"""Launches of cumulative ops along an axis, and of sorting."""
from __future__ import annotations

from flowedu.cuda.launch import NUMBERS, Call, blocks, kernel
from flowedu.cuda.launches.reduce import extent, row_threads


@kernel("cumsum", file="scan.cu", types=NUMBERS)
def cumsum(call: Call) -> None:
    """ints: [axis, backwards]."""
    x, y = call.args
    outer, n, inner = extent(x.shape, call.ints[0])
    if x.size == 0:
        return
    if inner == 1:
        call.run("cumsum_rows", outer, n, call.ints[1], x.pointer, y.pointer, blocks=blocks(outer, 1),
                 threads=row_threads(n))
    else:
        call.each("cumsum_columns", outer, n, inner, call.ints[1], x.pointer, y.pointer, n=outer * inner,
                  threads=128)


@kernel("linear_scan", file="scan.cu", types=NUMBERS)
def linear_scan(call: Call) -> None:
    """ints: [axis, backwards]. a, b -> h."""
    a, b, h = call.args
    outer, n, inner = extent(a.shape, call.ints[0])
    if a.size:
        call.each("linear_scan", outer, n, inner, call.ints[1], a.pointer, b.pointer, h.pointer,
                  n=outer * inner, threads=128)


def _sort(call: Call, down: int) -> int:
    """Queue the sort of all rows. Returns the address of the positions, in one half of the scratch."""
    x = call.args[0]
    total, n, width = x.size, x.shape[-1], 1
    source, target = call.work, call.work + 4 * total
    call.each("sort_start", total, n, source, n=total)
    while width < n:
        call.each("sort_merge", total, n, width, down, x.pointer, source, target, n=total)
        source, target, width = target, source, 2 * width
    return source


def _work(call: Call) -> int:
    return 8 * call.args[0].size


@kernel("argsort", file="sort.cu", types=NUMBERS, work=_work)
def argsort(call: Call) -> None:
    """ints: [descending]."""
    x, y = call.args
    if x.size:
        call.each("sort_take", y.size, x.shape[-1], x.shape[-1], _sort(call, call.ints[0]), y.pointer,
                  n=y.size)


@kernel("top_k", file="sort.cu", types=NUMBERS, work=_work)
def top_k(call: Call) -> None:
    x, y = call.args
    if y.size:
        call.each("sort_take", y.size, x.shape[-1], y.shape[-1], _sort(call, 1), y.pointer, n=y.size)
