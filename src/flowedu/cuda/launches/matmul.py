"""Launches of matrix products."""
from __future__ import annotations

import math

from flowedu.cuda import blas
from flowedu.cuda.launch import Call, blocks, kernel
from flowedu.cuda.machine import machine
from flowedu.cuda.view import View
from flowedu.cuda.walk import joined, packed

TILE = 64                                                            # side of a tile in product.h
LARGE = 128                                                          # side of a tile in tile.h


def tiles(rows: int, cols: int, side: int = TILE) -> int:
    return -(-rows // side) * -(-cols // side)


def _processors() -> int:
    """Return the number of blocks that occupy the device. With fewer large tiles, small ones are used."""
    return machine().limits()["MULTIPROCESSOR_COUNT"]


def _matrix(v: View, transposed: int) -> tuple[int, int, int, int]:
    """Return (rows, columns, stride of rows, stride of columns)."""
    rows, cols = v.shape[-2:]
    down, right = v.strides[-2:]
    return (cols, rows, right, down) if transposed else (rows, cols, down, right)


def _batches(v: View, y: View) -> list[int]:
    """Return the strides of v over y's batch axes. Its own are the last of these, or broadcast."""
    strides = [s if n != 1 else 0 for n, s in zip(v.shape[:-2], v.strides[:-2])]
    return [0] * (y.ndim - v.ndim) + strides


@kernel("matmul_packed_bias", "matmul_packed_residual", file="matmul.cu")
def matmul_and_terms(call: Call) -> None:
    """args: x, w, a bias, an optional residual, y."""
    *_, y = call.args
    bias, *residual = call.args[2:-1]
    matmul(call)
    if y.size:
        call.run("add_terms", y.size, bias.size, bias.pointer, residual[0].pointer if residual else 0,
                 y.pointer, blocks=blocks(y.size))


@kernel("matmul", "matmul_packed", file="matmul.cu")
def matmul(call: Call) -> None:
    """ints: [transpose_a, transpose_b]. Other args than a, b, and y are ignored."""
    a, b, *_, y = call.args
    if y.size == 0:
        return
    rows, depth, *a_steps = _matrix(a, call.ints[0])
    _, cols, *b_steps = _matrix(b, call.ints[1])
    batches = math.prod(y.shape[:-2])
    if batches > 1 and not any(_batches(b, y)) and a_steps[0] * rows == a.strides[-3] and y.ndim == 3:
        rows, batches = rows * batches, 1                            # (n, m, k) x (k, n): one tall product
    shape, strides = (joined(y.shape[:-2], [_batches(a, y), _batches(b, y)]) if batches > 1
                      else ([1], [[0], [0]]))
    size = batches, packed(shape, strides), rows, cols, depth
    if blas.chosen == "cublas" and len(shape) == 1:
        product = blas.product(a, b, y, (rows, depth, cols),
                               (a_steps[0], a_steps[1], b_steps[0], b_steps[1]), batches,
                               (strides[0][0], strides[1][0]))
        if product is not None:
            call.other(blas.gemm, *product)
            return
    large = batches * tiles(rows, cols, LARGE)
    fits = call.row.t == "float" and min(rows, cols) >= LARGE and 1 in a_steps and 1 in b_steps
    if fits and large >= _processors() and not blas.tf32:
        along_rows = a_steps[1] == 1, b_steps[1] == 1
        call.run("matmul_tiles_" + "".join("n" if along else "t" for along in along_rows), *size,
                 a.pointer, a_steps[not along_rows[0]], b.pointer, b_steps[not along_rows[1]], y.pointer,
                 blocks=blocks(large, 1), file="matmul_tiles.cu")
    else:
        by_tf32 = blas.tf32 and call.row.code == 0
        call.run("matmul_tf32" if by_tf32 else "matmul", *size, a.pointer, *a_steps, b.pointer, *b_steps,
                 y.pointer,
                 blocks=blocks(batches * tiles(rows, cols), 1), file="matmul_tf32.cu" if by_tf32 else "")


@kernel("matmul_update", file="matmul.cu")
def matmul_update(call: Call) -> None:
    """Subtract lr * scale * (a b) from w.

    Arguments: a, b, lr, w. ints: [transpose_a, transpose_b]; reals: [scale].
    """
    a, b, lr, w = call.args
    rows, depth, *a_steps = _matrix(a, call.ints[0])
    _, cols, *b_steps = _matrix(b, call.ints[1])
    if w.size:
        call.run("matmul_update", rows, cols, depth, a.pointer, *a_steps, b.pointer, *b_steps, lr.pointer,
                 call.reals[0], w.pointer, blocks=blocks(tiles(rows, cols), 1))
