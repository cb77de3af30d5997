"""The matrix product."""
from __future__ import annotations

from math import prod

import numpy as np

from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.errors import DTypeError, ShapeError
from flowedu.errors.element_types import mixed


def _axes(a, b, transpose_a, transpose_b):
    batch = axes.LETTERS[:a.ndim - 2]
    return f"{batch}{'km' if transpose_a else 'mk'},{batch if b.ndim > 2 else ''}{'nk' if transpose_b else 'kn'}->{batch}mn"


def check_matmul(a, b, transpose_a, transpose_b, name="matmul"):
    if a.dtype is not b.dtype:
        raise DTypeError(f"{name}: expected a and b to have the same dtype", expected="equal types", got=f"a {a}, b {b}",
                         fix=mixed("convert one with flow.cast (or .to)", a.dtype, b.dtype))
    if a.ndim < 2 or b.ndim < 2:
        raise ShapeError(f"{name}: a and b need two axes or more", expected="a (m, k), b (k, n)",
                         got=f"a {a.shape}, b {b.shape}", fix="reshape a vector to (1, k) or (k, 1)")
    if b.ndim != a.ndim and (b.ndim != 2 or transpose_a):
        raise ShapeError(f"{name}: the batch axes do not fit", got=f"a {a.shape}, b {b.shape}",
                         expected="equal numbers of axes, or an n-d a with a matrix b (and no transpose_a)",
                         fix="expand b to a's batch axes")
    left, right = _matrix_shape(a.shape, transpose_a), _matrix_shape(b.shape, transpose_b)
    if left[-1] != right[-2]:
        shapes = " and ".join("x".join(map(str, shape)) for shape in (left, right))
        fix = f"transpose_b={not transpose_b}, or the transpose of b, makes them fit" if right[-1] == left[-1] else \
            "make the k axes equal: transpose or reshape one of the two"
        raise ShapeError(f"{name}: axis k has two sizes, {left[-1]} and {right[-2]}: mat1 and mat2 shapes cannot be "
                         f"multiplied ({shapes})", expected=_axes(a, b, transpose_a, transpose_b),
                         got=f"a {a.shape}, b {b.shape}", fix=fix)


def _matrix_shape(shape, transpose):
    return (*shape[:-2], shape[-1], shape[-2]) if transpose else shape


def _ref(a, b, transpose_a, transpose_b):
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    return np.matmul(a, b)


# `call` with positional attributes is faster; every eager training step runs these gradients.
def _grad_a(dy, b, transpose_a, transpose_b):
    return matmul.call((b, dy), (transpose_b, True)) if transpose_a else matmul.call((dy, b), (False, not transpose_b))


def _grad_b(dy, a, transpose_a, transpose_b, b_shape):
    if len(b_shape) == 2 and a.ndim > 2:          # (..., m, k) x (k, n): contract the batch axes
        a, dy = flat(a), flat(dy)
    return matmul.call((dy, a), (True, transpose_a)) if transpose_b else matmul.call((a, dy), (not transpose_a, False))


def flat(x):
    """Return x with all axes except the last merged into one."""
    from flowedu.core.ops.view import reshape
    return reshape(x, shape=(prod(x.shape[:-1]), x.shape[-1]))


matmul = define(
    "matmul(a, b, *, transpose_a=False, transpose_b=False) -> y",
    Meaning(_axes, _ref, check=lambda a, b, transpose_a, transpose_b: check_matmul(a, b, transpose_a, transpose_b)),
    Kernel("matmul", pack=lambda transpose_a, transpose_b: ((transpose_a, transpose_b), ()), contiguous=False),
    Split(linear=["a", "b"]),
    Laws([dict(shapes=[(6, 12), (12, 18)]), dict(shapes=[(12, 6), (6, 18)], transpose_a=False),
          dict(shapes=[(12, 6), (18, 12)], transpose_a=True, transpose_b=True),
          dict(shapes=[(6, 6, 12), (6, 12, 6)]), dict(shapes=[(6, 6, 12), (12, 6)]),
          dict(shapes=[(6, 12), (6, 12)], transpose_b=True)]),
    grad={"a": _grad_a, "b": _grad_b})
