"""Weight decay of update rules, with patterns for the names of variables."""
from __future__ import annotations

import re
from collections.abc import Sequence

from flowedu.errors import ArgumentError, CheckError
from flowedu.optim.checks import number


class WeightDecay:
    """The weight-decay factor of each variable: `rate`, or 0 for names that are not selected.

    Args:
        what: the name of the optimizer in messages.
        rate: the factor; None is no decay.
        includes: a regular expression or a list of them. Only variables whose names contain a match
            (re.search) decay.
        excludes: the same for variables that do not decay. Only one of the two may be given.
    """

    def __init__(self, what: str, rate: float | None = None, includes: str | Sequence[str] | None = None,
                 excludes: str | Sequence[str] | None = None):
        if includes is not None and excludes is not None:
            raise CheckError(f"{what}: weight_decay_includes and weight_decay_excludes exclude each other",
                             expected="one of them, or none",
                             got=f"includes={includes!r}, excludes={excludes!r}",
                             fix="leave one out: names that match no pattern of includes do not decay")
        self.factor = 0.0 if rate is None else number(what, "weight_decay", rate, least=0)
        self.includes = _patterns(what, "weight_decay_includes", includes)
        self.excludes = _patterns(what, "weight_decay_excludes", excludes)

    def __call__(self, name: str) -> float:
        """Return the factor of the variable `name`."""
        if self.includes is not None:
            chosen = any(p.search(name) for p in self.includes)
        else:
            chosen = not any(p.search(name) for p in self.excludes or ())
        return self.factor if chosen else 0.0


def _patterns(what: str, argument: str, value: str | Sequence[str] | None) -> list[re.Pattern] | None:
    if value is None:
        return None
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)) or not all(isinstance(p, str) for p in listed):
        raise ArgumentError(f"{what}: {argument} is not a list of patterns",
                            expected="a regular expression, or a list of them", got=repr(value),
                            fix=f'{argument}=["bias", "gamma"]')
    try:
        return [re.compile(p) for p in listed]
    except re.error as e:
        raise ArgumentError(f"{what}: {argument} is not a regular expression",
                            expected="a pattern that re.compile takes",
                            got=f"{e.pattern!r}: {e}",
                            fix="write names plainly, and a \\ before . * ( ) [ ]") from None
