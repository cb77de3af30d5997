"""Options taken for the sake of programs written for OneFlow or PyTorch that do nothing here say so, once each."""
from __future__ import annotations

import warnings

told: set[str] = set()


class OptionWarning(UserWarning):
    """An option was taken and does nothing."""


def say_once(option: str, why: str, level: int = 3) -> None:
    """Warn that `option` does nothing, and why, unless that was said in this process. level: frames up to the user's."""
    if option not in told:
        told.add(option)
        warnings.warn(f"{option} does nothing here: {why}. (Said once.)", OptionWarning, stacklevel=level + 1)


def inert(option: str, value, neutral, why: str) -> None:
    """say_once for a parameter whose value is not `neutral`; called by the function that has it."""
    if value is not neutral and value != neutral:
        say_once(option, why, 4)
