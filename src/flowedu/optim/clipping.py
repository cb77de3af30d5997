"""Gradient clipping: scaling of all gradients together so that their norm does not exceed a bound.

The functions work on tensors and on values of a graph alike. OneFlow 0.4 and PyTorch divide by
the norm in different ways, so there are two rules: that of oneflow04/optim/clipping.py, and ByNorm. Both use
the same sum of squares.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from flowedu.core.ops.elementwise import abs as abs_op
from flowedu.core.ops.elementwise import maximum, minimum, sqrt
from flowedu.core.ops.reduce import max as max_op
from flowedu.core.ops.reduce import sum as sum_op
from flowedu.core.ops.view import cast
from flowedu.core.values.dtype import HALVES, float32


class ByNorm(NamedTuple):
    """Factor min(1, max_norm / (norm + 1e-6)) for all gradients.

    norm_type is 2, 1, any number above 0, or inf.
    """

    max_norm: float
    norm_type: float = 2.0

    def factor(self, gradients: Sequence[Any]) -> Any:
        """Return the factor for the gradients, as a 0-dim value."""
        return self.share(total_norm(gradients, self.norm_type))

    def share(self, norm: Any) -> Any:
        """Return the factor for gradients with this norm."""
        return minimum(float(self.max_norm) / (norm + 1e-6), 1.0)


def power_sum(gradients: Sequence[Any], norm_type: float = 2.0) -> Any:
    """Return the sum of |x| to the power of norm_type over the values in all gradients.

    With norm_type inf, return the largest |x|. The result is a 0-dim value.

    16-bit gradients are summed in float32, because 256 squared overflows float16.
    """
    total = None
    for g in gradients:
        g = cast(g, dtype=float32) if g.dtype in HALVES else g
        if norm_type == math.inf:
            part = max_op(abs_op(g), axis=tuple(range(g.ndim)), keepdims=False)
            total = part if total is None else maximum(total, part)
        else:
            powers = g * g if norm_type == 2 else abs_op(g) ** float(norm_type)
            part = sum_op(powers, axis=tuple(range(g.ndim)), keepdims=False)
            total = part if total is None else total + part
    return total


def total_norm(gradients: Sequence[Any], norm_type: float = 2.0) -> Any:
    """Return the norm of the values in all gradients together, as a 0-dim value."""
    total = power_sum(gradients, norm_type)
    if norm_type == math.inf:
        return total
    return sqrt(total) if norm_type == 2 else total ** (1.0 / norm_type)
