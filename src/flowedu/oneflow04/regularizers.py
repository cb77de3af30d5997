"""Regularizers: the gradient of a penalty on a variable. The reported loss does not change.

Use `flow.get_variable(..., regularizer=flow.regularizers.l2(0.01))`. The penalty is l1 * |w| + l2 * w^2 / 2,
so that the gradient has no factor 2.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowedu.errors import ArgumentError


@dataclass(frozen=True)
class Regularizer:
    """The penalty l1 * |w| + l2 * w^2 / 2."""

    l1: float = 0.0
    l2: float = 0.0

    def gradient(self, w: Any, sign=np.sign) -> Any:
        """l1 * sign(w) + l2 * w, with sign(0) = 0; None when both factors are 0.

        Args:
            w: an array, or any value with * and +.
            sign: how to take the sign of such a value.
        """
        parts = ([sign(w) * self.l1] if self.l1 else []) + ([w * self.l2] if self.l2 else [])
        return None if not parts else parts[0] if len(parts) == 1 else parts[0] + parts[1]


def l1(l: float = 0.01) -> Regularizer:  # noqa: E741
    """Adds l * sign(w) to the gradient: pulls small weights to 0."""
    return Regularizer(l1=_factor("l1", "l", l))


def l2(l: float = 0.01) -> Regularizer:  # noqa: E741
    """Adds l * w to the gradient: pulls all weights towards 0 (weight decay, under plain SGD)."""
    return Regularizer(l2=_factor("l2", "l", l))


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> Regularizer:
    """The sum of both."""
    return Regularizer(_factor("l1_l2", "l1", l1), _factor("l1_l2", "l2", l2))


def _factor(what: str, name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ArgumentError(f"regularizers.{what}: {name} is not a factor", expected="a finite number >= 0",
                            got=repr(value), fix=f"write {what}({name}=0.01), say")
    return number
