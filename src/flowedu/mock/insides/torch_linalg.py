"""linalg as PyTorch has it: what flowedu and OneFlow have there is torch.cross and torch.diagonal, with other axes."""
from __future__ import annotations

import flowedu as flow
from flowedu import Tensor
from flowedu.tensor.linear import matmul  # noqa: F401


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product along dim."""
    return flow.linalg.cross(input, other, dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of the last two axes: a view."""
    return flow.linalg.diagonal(A, offset, dim1, dim2)


