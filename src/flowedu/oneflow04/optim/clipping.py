"""Gradient clipping of OneFlow 0.4: gradients made smaller together, so that their norm is not above a bound."""
from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from flowedu.core.ops.define import REGISTRY
from flowedu.errors import ArgumentError
from flowedu.optim.clipping import power_sum


class ByGlobalNorm(NamedTuple):
    """All gradients times min(1, clip_norm / norm of all of them together)."""

    clip_norm: float

    def factor(self, gradients: Sequence[Any]) -> Any:
        """What to multiply them by, 0-dim."""
        e = REGISTRY
        return e["minimum"](e["rsqrt"](e["maximum"](power_sum(gradients), 1e-30)) * float(self.clip_norm), 1.0)


def by_global_norm(clip_norm: float = 1.0) -> ByGlobalNorm:
    """Make all gradients of an optimizer smaller together, so that their norm is at most clip_norm."""
    if not clip_norm > 0:
        raise ArgumentError("grad_clipping.by_global_norm: clip_norm is not positive", expected="a number above 0",
                            got=repr(clip_norm), fix="by_global_norm(1.0)")
    return ByGlobalNorm(clip_norm)


grad_clipping = SimpleNamespace(by_global_norm=by_global_norm)
