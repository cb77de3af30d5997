"""Warnings, once per process, for options of OneFlow or PyTorch that have no effect in flowedu."""
from __future__ import annotations

import warnings

told: set[str] = set()


class OptionWarning(UserWarning):
    """An option without effect."""


def say_once(option: str, why: str, level: int = 3) -> None:
    """Warn once per process that `option` has no effect, and why.

    The user's frame is `level` calls above this function.
    """
    if option not in told:
        told.add(option)
        warnings.warn(f"{option} does nothing here: {why}. (Said once.)", OptionWarning, stacklevel=level + 1)


def inert(option: str, value, neutral, why: str) -> None:
    """Warn once about a parameter without effect if its value is not `neutral`.

    `inert` must be called directly by the function that has the parameter.
    """
    if value is not neutral and value != neutral:
        say_once(option, why, 4)
