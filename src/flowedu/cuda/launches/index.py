"""Launches of indexing kernels: gather and related ops, their gradients and partial versions, and one_hot."""
from __future__ import annotations

import math
import struct

from flowedu.cuda.launch import ALL, NUMBERS, REALS, Call, flag, kernel
from flowedu.cuda.launches.reduce import extent
from flowedu.cuda.modules import TYPES
from flowedu.cuda.view import View


def _pack_part(names: dict) -> tuple:
    """Return the ints of a partial call (ops/part.py): axis, first element, size of the whole axis."""
    return (names["axis"], names["first"], names["size"]), ()


def _part(call: Call, x: View) -> bytes:
    """Return struct Part of view.h: the axis of x that is read, or a part of a longer axis."""
    rows = x.shape[call.ints[0]]
    first, size = call.ints[1:] or (0, rows)
    return struct.pack("=3q", size, first, rows)


@kernel("gather", file="gather.cu", types=ALL, moved=True)
@kernel("gather_part", file="gather.cu", types=ALL, moved=True, pack=_pack_part)
def gather(call: Call) -> None:
    """ints: [axis], or [axis, first, size] for a part. params, indices -> y."""
    params, index, y = call.args
    _, _, inner = extent(params.shape, call.ints[0])
    call.each("gather", y.size, index.size, _part(call, params), inner, params.pointer, index.raw(),
              y.pointer, flag(), n=y.size)


@kernel("gather_grad", file="scatter.cu", types=REALS)
@kernel("gather_part_grad", file="scatter.cu", types=NUMBERS, pack=_pack_part)
def gather_grad(call: Call) -> None:
    """ints: [axis], or [axis, first, size] for a part. dy, indices -> dparams."""
    dy, index, dx = call.args
    _, _, inner = extent(dx.shape, call.ints[0])
    call.clear(dx.pointer, dx.size * dx.dtype.bytes)
    call.each("gather_grad", dy.size, index.size, _part(call, dx), inner, dy.pointer, index.raw(),
              dx.pointer, flag(), n=dy.size)


@kernel("dim_gather", file="gather.cu", types=ALL, moved=True)
@kernel("dim_gather_part", file="gather.cu", types=ALL, moved=True, pack=_pack_part)
def dim_gather(call: Call) -> None:
    """ints: [axis], or [axis, first, size] for a part. x, index -> y."""
    x, index, y = call.args
    _, n, inner = extent(index.shape, call.ints[0])
    call.each("dim_gather", y.size, n, _part(call, x), inner, x.pointer, index.raw(), y.pointer, flag(),
              n=y.size)


@kernel("dim_gather_grad", file="scatter.cu", types=NUMBERS)
@kernel("dim_gather_part_grad", file="scatter.cu", types=NUMBERS, pack=_pack_part)
def dim_gather_grad(call: Call) -> None:
    """ints: [axis], or [axis, first, size] for a part. dy, index -> dx."""
    dy, index, dx = call.args
    _, n, inner = extent(index.shape, call.ints[0])
    call.clear(dx.pointer, dx.size * dx.dtype.bytes)
    call.each("dim_gather_grad", dy.size, n, _part(call, dx), inner, dy.pointer, index.raw(), dx.pointer,
              flag(), n=dy.size)


def _runs(v: View, index: View) -> tuple[int, int, int, int]:
    """Return (runs, length of a run, rows of indices, indices in a row) of an indexed array."""
    k = index.shape[-1]
    return math.prod(v.shape[:k]), math.prod(v.shape[k:]), math.prod(index.shape[:-1]), k


@kernel("gather_nd", file="gather.cu", types=ALL, moved=True)
def gather_nd(call: Call) -> None:
    """params, indices -> y."""
    params, index, y = call.args
    _, inner, _, k = _runs(params, index)
    call.each("gather_nd", y.size, inner, k, params.raw(), index.raw(), y.pointer, flag(), n=y.size)


@kernel("scatter_nd", file="scatter.cu", types=NUMBERS)
def scatter_nd(call: Call) -> None:
    """Launch scatter_nd: updates, indices -> y."""
    x, index, y = call.args
    _, inner, _, k = _runs(y, index)
    call.clear(y.pointer, y.size * y.dtype.bytes)
    call.each("scatter_nd", x.size, inner, k, x.pointer, index.raw(), y.raw(), flag(), n=x.size)


@kernel("scatter_nd_update", file="gather.cu", types=ALL, moved=True,
        work=lambda call: 8 * _runs(call.args[3], call.args[1])[0])
def scatter_nd_update(call: Call) -> None:
    """params, indices, updates -> y."""
    x, index, updates, y = call.args
    runs, inner, rows, k = _runs(y, index)
    if y.size == 0:
        return
    call.run("fill", runs, -1, call.work, blocks=-(-runs // 256), file="copy.cu", t="uint64_t")
    call.each("scatter_nd_owners", rows, k, y.raw(), index.raw(), call.work, flag(), n=rows)
    call.each("scatter_nd_update", y.size, inner, x.pointer, call.work, updates.pointer, y.pointer, n=y.size)


@kernel("one_hot", file="one_hot.cu", types=(2, 3, 4, 5, 9))
def one_hot(call: Call) -> None:
    """reals: [on, off]. The kernel is compiled for the output's dtype."""
    index, y = call.args
    call.each("one_hot", y.size, y.shape[-1], *call.reals, index.raw(), y.pointer, n=y.size,
              t=TYPES[y.dtype.code])
