"""Gradient clipping of OneFlow 0.4: all gradients are scaled down together if their norm exceeds a bound."""
from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from flowedu.core.ops.elementwise import maximum, minimum, rsqrt
from flowedu.errors import ArgumentError
from flowedu.optim.clipping import power_sum


class ByGlobalNorm(NamedTuple):
    """A clipping rule that multiplies all gradients by min(1, clip_norm / norm of all gradients together)."""

    clip_norm: float

    def factor(self, gradients: Sequence[Any]) -> Any:
        """Return the factor of the gradients, a 0-d value."""
        return minimum(rsqrt(maximum(power_sum(gradients), 1e-30)) * float(self.clip_norm), 1.0)


def by_global_norm(clip_norm: float = 1.0) -> ByGlobalNorm:
    """Return a rule that scales all gradients together so that their norm is at most `clip_norm`.

    Args:
        clip_norm: the largest norm, above 0.
    """
    if not clip_norm > 0:
        raise ArgumentError("grad_clipping.by_global_norm: clip_norm is not positive",
                            expected="a number above 0", got=repr(clip_norm), fix="by_global_norm(1.0)")
    return ByGlobalNorm(clip_norm)


grad_clipping = SimpleNamespace(by_global_norm=by_global_norm)
