"""Dropout layers. They return their input unchanged in eval mode."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.errors import ArgumentError
from flowedu.nn import functional as F
from flowedu.tensor import Tensor


class _Dropout(Module):
    """Base class of the dropout layers, with the options `p` and `inplace`."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ArgumentError(f"dropout probability has to be between 0 and 1, but got {p}",
                                expected="a probability",
                                got=f"{type(self).__name__}(p={p})", fix="p=0.5 drops half")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Dropout: random elements are set to zero in training mode.

    Each element becomes 0 with probability p. The other elements are divided by 1 - p.

    Args:
        p: probability, 0 to 1.
        inplace: write the result into the memory of the input.
        generator: flow.Generator that draws the mask; default: the generator that flow.manual_seed seeds.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False, generator=None):
        super().__init__(p, inplace)
        self.generator = generator

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace, generator=self.generator)


class Dropout1d(_Dropout):
    """Dropout of channels: random channels of (N, C, L) are set to zero in training mode.

    Args:
        p: probability that a channel is set to zero, 0 to 1; the other channels are divided by 1 - p.
        inplace: write the result into the memory of the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Dropout of channels: random channels of (N, C, H, W) are set to zero in training mode.

    Args:
        p: probability that a channel is set to zero, 0 to 1; the other channels are divided by 1 - p.
        inplace: write the result into the memory of the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Dropout of channels: random channels of (N, C, D, H, W) are set to zero in training mode.

    Args:
        p: probability that a channel is set to zero, 0 to 1; the other channels are divided by 1 - p.
        inplace: write the result into the memory of the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that preserves the mean 0 and variance 1 of SELU outputs (Klambauer et al. 2017).

    Args:
        p: probability that an element is dropped, 0 to 1.
        inplace: write the result into the memory of the input.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)
