"""Gradient clipping."""
from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

from flowedu.errors import ArgumentError


@dataclass(frozen=True)
class ByGlobalNorm:
    """All gradients times min(1, clip_norm / norm of all of them together)."""

    clip_norm: float = 1.0

    def __post_init__(self):
        if not self.clip_norm > 0:
            raise ArgumentError("grad_clipping.by_global_norm: clip_norm is not positive", expected="a number above 0",
                                got=repr(self.clip_norm), fix="by_global_norm(1.0)")


grad_clipping = SimpleNamespace(by_global_norm=ByGlobalNorm)
