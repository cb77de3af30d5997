"""The matrix product."""
from __future__ import annotations

from math import prod

import numpy as np

from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Kernel, Laws, Meaning, Operand, Split
from flowedu.core.values.spec import Shape, Spec
from flowedu.errors import ops as errors


def _axes(a: Spec, b: Spec, transpose_a: bool, transpose_b: bool) -> str:
    batch = axes.LETTERS[:a.ndim - 2]
    left, right = "km" if transpose_a else "mk", "nk" if transpose_b else "kn"
    return f"{batch}{left},{batch if b.ndim > 2 else ''}{right}->{batch}mn"


def check_matmul(a: Spec, b: Spec, transpose_a: bool, transpose_b: bool,
                 name: str = "matmul") -> None:
    if a.dtype is not b.dtype:
        raise errors.mixed_dtypes(name, a, b)
    if a.ndim < 2 or b.ndim < 2:
        raise errors.few_axes(name, a.shape, b.shape)
    if b.ndim != a.ndim and (b.ndim != 2 or transpose_a):
        raise errors.batch_axes(name, a.shape, b.shape)
    left, right = _matrix_shape(a.shape, transpose_a), _matrix_shape(b.shape, transpose_b)
    if left[-1] != right[-2]:
        equation = _axes(a, b, transpose_a, transpose_b)
        raise errors.contracted_axes(name, a.shape, b.shape, left, right, equation, transpose_b)


def _matrix_shape(shape: Shape, transpose: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if transpose else shape


def _ref(a: np.ndarray, b: np.ndarray, transpose_a: bool, transpose_b: bool) -> np.ndarray:
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    return np.matmul(a, b)


# `call` with positional attributes is faster than keywords. Each training step runs these rules.
def _grad_a(dy: Operand, b: Operand, transpose_a: bool, transpose_b: bool) -> Operand:
    if transpose_a:
        return matmul.call((b, dy), (transpose_b, True))
    return matmul.call((dy, b), (False, not transpose_b))


def _grad_b(dy: Operand, a: Operand, transpose_a: bool, transpose_b: bool,
            b_shape: Shape) -> Operand:
    if len(b_shape) == 2 and a.ndim > 2:          # (..., m, k) x (k, n): contract the batch axes
        a, dy = flat(a), flat(dy)
    if transpose_b:
        return matmul.call((dy, a), (True, transpose_a))
    return matmul.call((a, dy), (not transpose_a, False))


def flat(x: Operand) -> Operand:
    """Return x with all axes except the last merged into one."""
    from flowedu.core.ops.view import reshape
    return reshape(x, shape=(prod(x.shape[:-1]), x.shape[-1]))


matmul = define(
    "matmul(a, b, *, transpose_a=False, transpose_b=False) -> y",
    Meaning(_axes, _ref, check=lambda a, b, transpose_a, transpose_b: check_matmul(
                a, b, transpose_a, transpose_b)),
    Kernel("matmul", pack=lambda transpose_a, transpose_b: ((transpose_a, transpose_b), ()),
           contiguous=False),
    Split(linear=["a", "b"]),
    Laws([dict(shapes=[(6, 12), (12, 18)]), dict(shapes=[(12, 6), (6, 18)], transpose_a=False),
          dict(shapes=[(12, 6), (18, 12)], transpose_a=True, transpose_b=True),
          dict(shapes=[(6, 6, 12), (6, 12, 6)]), dict(shapes=[(6, 6, 12), (12, 6)]),
          dict(shapes=[(6, 12), (6, 12)], transpose_b=True)]),
    grad={"a": _grad_a, "b": _grad_b})
