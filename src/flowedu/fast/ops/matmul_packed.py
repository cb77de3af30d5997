"""matmul_packed: product with a weight that is packed once, with optional additions before the store.

The pass `packed` inserts the op into inference graphs.
"""
from __future__ import annotations

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops.define import define
from flowedu.core.ops.matmul import check_matmul, flat, matmul
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.ops.reduce import sum
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, ShapeError
from flowedu.ops.kept import KEPT
from flowedu.ops.types import Packed, Spread

register("matmul_packed")


def _check(x: Spec, w: Spec, name: str = "matmul_packed") -> None:
    check_matmul(x, w, False, True, name)
    if w.ndim != 2:
        raise ShapeError(f"{name}: w is one matrix", expected="w (n, k)", got=f"w {w.shape}",
                         fix="flow.matmul")


def _check_terms(x: Spec, w: Spec, name: str, **terms: Spec) -> None:
    _check(x, w, name)
    for (n, term), shape in zip(terms.items(), ((w.shape[0],), (*x.shape[:-1], w.shape[0]))):
        if term.shape != shape:
            raise ShapeError(f"{name}: {n} does not fit", expected=f"{n} {shape}", got=f"{n} {term.shape}")
        if term.dtype is not x.dtype:
            raise DTypeError(f"{name}: expected equal dtypes", expected=f"{n}: {x.dtype}",
                             got=f"{n}: {term.dtype}")


def _ref(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return matmul.ref(x, w, False, True)


def _transposed() -> Packed:
    """Return matmul's parameters transpose_a and transpose_b."""
    return (False, True), ()


def _whole(x: Spec, w: Spec, terms: int) -> str:
    """Return the axes with a bias (terms=1) or a bias and a residual (2). `_parts` adds the splits over k."""
    left, right = matmul.axes(x, w, False, True).replace("k", "K").split("->")
    return f"{left},{','.join((right[-1], right)[:terms])}->{right}"


def _parts(x: Spec, terms: int) -> Spread:
    """Return the SBP signature split over k. The terms are partial sums, so that they are added once."""
    op = (matmul_packed_bias, matmul_packed_residual)[terms - 1]
    return {(f"S{x.ndim - 1}", "S1", *"P" * terms, "P"): (op, lambda start, stop: {})}


GRAD = {"x": lambda dy, w: matmul(dy, w), "w": lambda dy, x: matmul(flat(dy), flat(x), transpose_a=True)}
GRAD_BIAS = GRAD | {"b": lambda dy: sum(dy, axis=tuple(range(dy.ndim - 1)), keepdims=False)}

matmul_packed = define(
    "matmul_packed(x, w) -> y",
    Meaning(lambda x, w: matmul.axes(x, w, False, True), _ref, check=lambda x, w: _check(x, w)),
    Kernel("matmul_packed", pack=_transposed),
    Split(linear=["x", "w"]),
    Laws([dict(shapes=[(6, 12), (18, 12)]), dict(shapes=[(6, 6, 12), (66, 12)])]),
    grad=GRAD, doc="x (..., k) times the transpose of w (n, k).")

matmul_packed_bias = define(
    "matmul_packed_bias(x, w, b) -> y",
    Meaning(lambda x, w: _whole(x, w, 1), lambda x, w, b: _ref(x, w) + b,
            check=lambda x, w, b: _check_terms(x, w, "matmul_packed_bias", b=b)),
    Kernel("matmul_packed_bias", pack=_transposed),
    Split(linear=[("x", "b"), ("w", "b")], spread=lambda x: _parts(x, 1)),
    Laws([dict(shapes=[(6, 12), (18, 12), (18,)]), dict(shapes=[(6, 6, 12), (66, 12), (66,)])]),
    grad=GRAD_BIAS, doc="matmul_packed(x, w) + b, with one number of b for each column.")

matmul_packed_residual = define(
    "matmul_packed_residual(x, w, b, z) -> y",
    Meaning(lambda x, w: _whole(x, w, 2), lambda x, w, b, z: _ref(x, w) + b + z,
            check=lambda x, w, b, z: _check_terms(x, w, "matmul_packed_residual", b=b, z=z)),
    Kernel("matmul_packed_residual", pack=_transposed),
    Split(linear=[("x", "b", "z"), ("w", "b", "z")], spread=lambda x: _parts(x, 2)),
    Laws([dict(shapes=[(6, 12), (18, 12), (18,), (6, 18)]), dict(shapes=[(6, 6, 12), (66, 12), (66,),
                                                                         (6, 6, 66)])]),
    grad=GRAD_BIAS | {"z": lambda dy: dy}, doc="matmul_packed_bias(x, w, b) + z, with z as large as the "
    "result.")

for op in (matmul_packed, matmul_packed_bias, matmul_packed_residual):
    KEPT[op] = (1,)
