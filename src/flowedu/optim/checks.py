"""Range checks of the arguments of optimizers and schedulers, which raise ArgumentError."""
from __future__ import annotations

import math
import operator
from typing import Any

from flowedu.errors import ArgumentError


def number(what: str, name: str, value: Any, least: float = -math.inf, below: float = math.inf,
           above: float = -math.inf) -> float:
    """Return a finite float with least <= value < below and above < value.

    Args:
        what: caller's name, for the error.
        name: argument's name, for the error.
        value: number, or an object that float() converts.
        least: smallest valid number; default: no bound.
        below: upper bound, which is excluded; default: no bound.
        above: lower bound, which is excluded; default: no bound.

    Raises:
        ArgumentError: the value is not a number, is not finite, or is out of range.
    """
    try:
        x = float(value)
    except (TypeError, ValueError):
        x = math.nan
    if not (math.isfinite(x) and least <= x < below and x > above):
        bounds = [f">= {least:g}"] * (least > -math.inf) + [f"> {above:g}"] * (above > -math.inf)
        bounds += [f"< {below:g}"] * (below < math.inf)
        raise ArgumentError(f"{what}: {name} is out of range", got=repr(value),
                            expected=" and ".join(["a finite number " + bounds[0], *bounds[1:]]) if bounds
                            else "a finite number", fix=f"change {name}")
    return x


def count(what: str, name: str, value: Any, least: int) -> int:
    """Return a number of steps as an int >= `least`.

    Args:
        what: caller's name, for the error.
        name: argument's name, for the error.
        value: int, or an object with `__index__`.
        least: smallest valid number.

    Raises:
        ArgumentError: the value is not an int >= `least`.
    """
    try:
        n = operator.index(value)
    except TypeError:
        n = least - 1
    if n < least:
        raise ArgumentError(f"{what}: {name} is not a number of steps", expected=f"an int >= {least}",
                            got=repr(value), fix=f"write {name}=int(...), steps and not epochs")
    return n
