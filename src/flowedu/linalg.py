"""flow.linalg: matmul (of blobs too, from OneFlow 0.4), and for tensors inv, det, solve and norms."""
from flowedu.tensor.linalg import (
    cross,
    det,
    diagonal,
    inv,
    matrix_norm,
    matrix_power,
    norm,
    solve,
    vector_norm,
)
from flowedu.tensor.linear import matmul

__all__ = ["cross", "det", "diagonal", "inv", "matmul", "matrix_norm", "matrix_power", "norm", "solve", "vector_norm"]
