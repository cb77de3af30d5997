"""Launches of pooling."""
from __future__ import annotations

import struct

from flowedu.cuda.launch import Call, flag, kernel
from flowedu.cuda.view import View


def _pool(call: Call, x: View, y: View) -> bytes:
    """Return struct Pool of pool.cu. ints: window h, w; stride h, w; pad top, bottom, left, right."""
    a = call.ints
    return struct.pack("=11q", x.shape[0] * x.shape[1], *x.shape[2:], *y.shape[2:], *a[:4], a[4], a[6])


@kernel("max_pool2d", file="pool.cu")
def max_pool2d(call: Call) -> None:
    x, y, index = call.args
    call.each("max_pool2d", _pool(call, x, y), x.pointer, y.pointer, index.pointer, n=y.size)


@kernel("max_pool2d_grad", file="pool.cu")
def max_pool2d_grad(call: Call) -> None:
    dy, index, dx = call.args
    call.clear(dx.pointer, dx.size * dx.dtype.bytes)
    call.each("max_pool2d_grad", dy.size, dy.shape[2] * dy.shape[3], dx.shape[2] * dx.shape[3], dy.pointer,
              index.raw(), dx.pointer, flag(), n=dy.size)


@kernel("max_pool2d_gather", file="pool.cu")
def max_pool2d_gather(call: Call) -> None:
    x, index, y = call.args
    call.each("max_pool2d_gather", y.size, y.shape[2] * y.shape[3], x.shape[2] * x.shape[3], x.pointer,
              index.raw(), y.pointer, flag(), n=y.size)


@kernel("avg_pool2d", file="pool.cu")
def avg_pool2d(call: Call) -> None:
    x, y = call.args
    call.each("avg_pool2d", _pool(call, x, y), x.pointer, y.pointer, n=y.size)


@kernel("avg_pool2d_grad", file="pool.cu")
def avg_pool2d_grad(call: Call) -> None:
    dy, dx = call.args
    call.each("avg_pool2d_grad", _pool(call, dx, dy), dy.pointer, dx.pointer, n=dx.size)
