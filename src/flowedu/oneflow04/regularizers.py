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
    """The penalty l1 * |w| + l2 * w^2 / 2.

    Args:
        l1: the factor of the absolute values.
        l2: the factor of the squares.
    """

    l1: float = 0.0
    l2: float = 0.0

    def gradient(self, w: Any, sign=np.sign) -> Any:
        """Return l1 * sign(w) + l2 * w, with sign(0) = 0, or None if both factors are 0.

        Args:
            w: an array, or any value with * and +.
            sign: a function that returns the sign of such a value.
        """
        parts = ([sign(w) * self.l1] if self.l1 else []) + ([w * self.l2] if self.l2 else [])
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def l1(l: float = 0.01) -> Regularizer:  # noqa: E741
    """Return a regularizer that adds l * sign(w) to the gradient, which moves small weights to 0.

    Args:
        l: the factor of the penalty, 0 or more.
    """
    return Regularizer(l1=_factor("l1", "l", l))


def l2(l: float = 0.01) -> Regularizer:  # noqa: E741
    """Return a regularizer that adds l * w to the gradient (with plain SGD: weight decay).

    Args:
        l: the factor of the penalty, 0 or more.
    """
    return Regularizer(l2=_factor("l2", "l", l))


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> Regularizer:
    """Return a regularizer with the penalties of l1 and l2.

    Args:
        l1: the factor of the absolute values, 0 or more.
        l2: the factor of the squares, 0 or more.
    """
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
