"""Gradient clipping: scaling of all gradients together so that their norm does not exceed a bound.

The functions work on tensors and on values of a graph alike. OneFlow 0.4 (oneflow04/optim/clipping.py)
divides by the norm in another way than PyTorch, so there are two rules. Both use the same sum of squares.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import HALVES, float32


class ByNorm(NamedTuple):
    """All gradients times min(1, max_norm / (norm + 1e-6)). norm_type: 2, 1, any number above 0, or inf."""

    max_norm: float
    norm_type: float = 2.0

    def factor(self, gradients: Sequence[Any]) -> Any:
        """Return the factor of the gradients, 0-dim."""
        return self.share(total_norm(gradients, self.norm_type))

    def share(self, norm: Any) -> Any:
        """Return the factor of gradients with this norm."""
        return REGISTRY["minimum"](float(self.max_norm) / (norm + 1e-6), 1.0)


def power_sum(gradients: Sequence[Any], norm_type: float = 2.0) -> Any:
    """Return the sum of |x| to the power of norm_type over the values in all gradients, 0-dim; for inf the
    largest |x|.

    16-bit gradients are summed in float32, because 256 squared overflows float16.
    """
    e, total = REGISTRY, None
    for g in gradients:
        g = e["cast"](g, dtype=float32) if g.dtype in HALVES else g
        if norm_type == math.inf:
            part = e["max"](e["abs"](g), axis=tuple(range(g.ndim)), keepdims=False)
            total = part if total is None else e["maximum"](total, part)
        else:
            part = e["sum"](g * g if norm_type == 2 else e["abs"](g) ** float(norm_type), axis=tuple(range(g.ndim)),
                            keepdims=False)
            total = part if total is None else total + part
    return total


def total_norm(gradients: Sequence[Any], norm_type: float = 2.0) -> Any:
    """Return the norm of the values in all gradients together, 0-dim."""
    total = power_sum(gradients, norm_type)
    return total if norm_type == math.inf else REGISTRY["sqrt"](total) if norm_type == 2 else total ** (1.0 / norm_type)
