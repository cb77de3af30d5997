"""matmul_packed: the product with a weight that is packed once. The pass `packed` puts it in graphs that predict."""
from __future__ import annotations

from flowedu._kernels import register
from flowedu.core.ops.define import define
from flowedu.core.ops.matmul import check_matmul, flat, matmul
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.errors import ShapeError
from flowedu.ops.kept import KEPT

register("matmul_packed")


def _check(x, w):
    check_matmul(x, w, False, True, "matmul_packed")
    if w.ndim != 2:
        raise ShapeError("matmul_packed: w is one matrix", expected="w (n, k)", got=f"w {w.shape}", fix="flow.matmul")


matmul_packed = define(
    "matmul_packed(x, w) -> y",
    Meaning(lambda x, w: matmul.axes(x, w, False, True), lambda x, w: matmul.ref(x, w, False, True), check=_check),
    Kernel("matmul_packed", pack=lambda: ((False, True), ())),         # of matmul: transpose_a, transpose_b
    Split(linear=["x", "w"]),
    Laws([dict(shapes=[(6, 12), (18, 12)]), dict(shapes=[(6, 6, 12), (66, 12)])]),
    grad={"x": lambda dy, w: matmul(dy, w), "w": lambda dy, x: matmul(flat(dy), flat(x), transpose_a=True)},
    doc="x (..., k) times the transpose of w (n, k).")
KEPT[matmul_packed] = (1,)
