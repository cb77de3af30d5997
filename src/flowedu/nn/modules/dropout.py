"""Dropout and its kinds. They act while training; in eval() they give the input back."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.errors import ArgumentError
from flowedu.nn import functional as F
from flowedu.tensor import Tensor


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ArgumentError(f"dropout probability has to be between 0 and 1, but got {p}", expected="a probability",
                                got=f"{type(self).__name__}(p={p})", fix="p=0.5 drops half")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Each element is 0 with probability p while training, the others are divided by 1 - p.

    generator: a flow.Generator to draw from.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False, generator=None):
        super().__init__(p, inplace)
        self.generator = generator

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace, generator=self.generator)


class Dropout1d(_Dropout):
    """Whole channels of (N, C, L) are 0 with probability p while training."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Whole channels of (N, C, H, W) are 0 with probability p while training."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Whole channels of (N, C, D, H, W) are 0 with probability p while training."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1 of SELU's outputs."""

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)
