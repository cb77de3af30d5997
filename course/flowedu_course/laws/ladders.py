"""Ladders of the kernels that are exercises or hunts, and no steps of the library's ladders."""
from __future__ import annotations

from typing import Any

import numpy as np

from flowedu.cuda.lessons import Ladder, Step


def _add(start, memory, x, y):
    z = memory.allocate(x.size)
    start("add", -(-x.size // 64), 64, x.size, x, y, z)
    return x.shape, z


def _row_sum(start, memory, x):
    y = memory.allocate(len(x))
    start("row_sum", len(x), 64, x.shape[1], x, y)
    return (len(x),), y


def _product(start, memory, a, w):
    y = memory.allocate(len(a))
    start("product", -(-len(a) // 64), 64, *a.shape, a, w, y)
    return (len(a),), y


def _difference(start, memory, x):
    rows, cols = x.shape
    y = memory.allocate(rows, cols - 1)
    start("difference", (-(-cols // 16), -(-rows // 16)), (16, 16), rows, cols, x, y)
    return (rows, cols - 1), y


def _affine(start, memory, x, scale, shift):
    y = memory.allocate(*x.shape)
    start("affine", -(-x.size // 256), 256, *x.shape, x, scale, shift, y)
    return x.shape, y


def _ladder(name: str, size: tuple[int, ...], make: Any, answer: Any, launch: Any) -> Ladder:
    return Ladder(name, size, make, answer, (Step(name, name, "", launch),))


OWN = (_ladder("add", (1000,), lambda r, n: (r(n), r(n)), np.add, _add),
       _ladder("row_sum", (8, 1024), lambda r, rows, n: (r((rows, n)),), lambda x: x.sum(1), _row_sum),
       _ladder("product", (64, 256), lambda r, rows, n: (r((rows, n)), r(n)), np.dot, _product),
       _ladder("difference", (32, 64), lambda r, rows, cols: (r((rows, cols)),), np.diff, _difference),
       _ladder("affine", (64, 96), lambda r, rows, cols: (r((rows, cols)), r(rows), r(cols)),
               lambda x, scale, shift: x * scale[:, None] + shift, _affine))
