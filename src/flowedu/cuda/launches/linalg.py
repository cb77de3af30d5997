"""Launches of determinants, inverses, linear solves, and searches in rows.

Their records have a Python function instead of a CPU kernel, so their `pack` functions are defined here.
"""
from __future__ import annotations

import math

from flowedu.cuda.launch import Call, blocks, flag, kernel
from flowedu.cuda.launches.reduce import extent, row_threads
from flowedu.errors import DTypeError

MOST = 1024  # limit of blocks, as each has its own scratch
WHOLE = (*range(7), 9)                                                # all but the half types


def _work(call: Call) -> int:
    """Return the bytes of scratch: for each block, a matrix and its right-hand side."""
    a = call.args[0]
    n, k = a.shape[-1], 0 if call.name == "det" else call.args[-1].shape[-1]
    return 8 * _blocks(call) * n * (n + k)


def _blocks(call: Call) -> int:
    return min(max(math.prod(call.args[0].shape[:-2]), 1), MOST)


@kernel("det", file="linalg.cu", work=_work, pack=lambda names: ((), ()))
def det(call: Call) -> None:
    a, y = call.args
    if y.size:
        call.run("det", y.size, a.shape[-1], a.pointer, y.pointer, call.work, blocks=_blocks(call),
                 threads=128)


@kernel("inverse", "solve", file="linalg.cu", work=_work, pack=lambda names: ((), ()))
def solve(call: Call) -> None:
    """Launch solve: a -> y, or a, b -> y."""
    a, y = call.args[0], call.args[-1]
    b = call.args[1].pointer if len(call.args) > 2 else 0
    if y.size:
        call.run("solve", math.prod(a.shape[:-2]), *y.shape[-2:], a.pointer, b, y.pointer, call.work, flag(),
                 blocks=_blocks(call), threads=128)


@kernel("searchsorted", file="places.cu", types=WHOLE, pack=lambda names: ((int(names["right"]),), ()))
def searchsorted(call: Call) -> None:
    """ints: [right]. rows, values -> y."""
    rows, values, y = call.args
    if values.dtype is not rows.dtype:
        raise DTypeError("searchsorted: rows and values of one element type on cuda",
                         expected=rows.dtype.name,
                         got=values.dtype.name, fix=f"values.to(flow.{rows.dtype.name})")
    per = values.shape[-1] if rows.ndim > 1 else 0
    call.each("searchsorted", y.size, rows.shape[-1], per, call.ints[0], rows.pointer, values.pointer,
              y.pointer, n=y.size)


@kernel("extreme_place", file="places.cu", types=WHOLE,
        pack=lambda names: ((names["axis"], int(names["smallest"])), ()))
def extreme_place(call: Call) -> None:
    """ints: [axis, smallest]."""
    x, y = call.args
    outer, n, inner = extent(x.shape, call.ints[0])
    if x.size:
        call.each("extreme_place", outer, n, inner, call.ints[1], x.pointer, y.pointer, n=outer * inner,
                  threads=128)


@kernel("mode_place", file="places.cu", types=WHOLE, pack=lambda names: ((), ()))
def mode_place(call: Call) -> None:
    x, y = call.args
    n = x.shape[-1]
    if y.size:
        call.run("mode_place", y.size, n, x.pointer, y.pointer, blocks=blocks(y.size, 1),
                 threads=row_threads(n))
