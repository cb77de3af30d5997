"""Setting, one setting of OneFlow 0.4: the type of its value, its default, and its effect.

settings.py lists all of them. Settings that take effect in flowedu have a text that describes the effect.
Settings that would change results in OneFlow, but cannot do so in flowedu, are rejected unless they request
the existing behaviour. Most settings only tuned OneFlow's runtime. Their values are checked and stored, and
the first call of each setting warns that it has no effect.
"""
from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any, NamedTuple

from flowedu.core.values.dtype import dtype
from flowedu.errors import CheckError, UnsupportedError

REQUIRED: Any = object()
_KINDS = {bool: ("True or False", "True"), int: ("an int", "1"), float: ("a number", "0.1"),
          str: ("a str", '"..."'), dict: ("a dict", "{}"),
          dtype: ("an element type such as flow.float", "flow.float")}
ACTS, REFUSED = "acts", "refused"
WARNS, GONE = "warns", "gone"


class Setting(NamedTuple):
    """One setting.

    Args:
        name: the name with its groups, "train.primary_lr".
        kind: the exact type of the value; float accepts any real number.
        says: the effect of the setting, or the reason why it has no effect.
        default: the value of a call without an argument; REQUIRED if a value must be given.
        notice: text printed in each call, for deprecated settings.
        least: the smallest accepted value.
        choices: the accepted values; () for all.
        does: ACTS has an effect. REFUSED rejects all values except `neutral`. WARNS warns once that the
            setting has no effect. GONE is for settings without effect in OneFlow 0.4, as `notice` explains.
        neutral: the value that requests the existing behaviour.
        fix: the fix in the error of a rejected setting.
    """

    name: str
    kind: type
    says: str
    default: Any = REQUIRED
    notice: str = ""
    least: float | None = None
    choices: tuple = ()
    does: str = ACTS
    neutral: Any = REQUIRED
    fix: str = ""

    def checked(self, what: str, value: Any) -> Any:
        """Return `value`, or the default if `value` is REQUIRED. Raise CheckError if it is not valid."""
        value = self.default if value is REQUIRED else value
        if value is not REQUIRED and self._fits(value):
            if self.does == REFUSED and value != self.neutral:
                raise UnsupportedError(f"{what}.{self.name}({value!r}): {self.says}", got=repr(value),
                                       fix=self.fix, expected=f"{self.neutral!r}, or no call")
            return float(value) if self.kind is float else value
        words, example = _KINDS[self.kind]
        if self.choices:
            words, example = " or ".join(map(repr, self.choices)), repr(self.choices[0])
        if self.least is not None:
            words, example = f"{words} of {self.least} or more", str(max(self.least, 1))
        raise CheckError(f"{what}.{self.name}: " + ("needs a value" if value is REQUIRED
                                                    else "not a value it takes"),
                         expected=words, got="none" if value is REQUIRED
                         else f"{value!r}, a {type(value).__name__}", fix=f"{what}.{self.name}({example})")

    def _fits(self, value: Any) -> bool:
        if self.kind is float:
            return isinstance(value, Real) and not isinstance(value, bool)
        value_type = type(value)
        return (value_type is self.kind and (self.least is None or value >= self.least)
                and (not self.choices or value in self.choices))


def table(*lines: Setting | Iterable[Setting]) -> dict[str, Setting]:
    """Return {name: setting} of single settings and groups of settings."""
    flat = [s for line in lines for s in ([line] if isinstance(line, Setting) else line)]
    return {s.name: s for s in flat}


def ignore(kind: type, names: str, why: str, group: str = "", default: Any = REQUIRED) -> list[Setting]:
    """Return settings of one type, without effect, which warn for the reason `why`."""
    default = True if kind is bool and default is REQUIRED else default
    return [Setting(group + n, kind, why, default, does=WARNS) for n in names.split()]


def refuse(names: str, why: str, kind: type = bool) -> list[Setting]:
    """Return settings whose only accepted value is the neutral one."""
    return [Setting(n, kind, why, True if kind is bool else REQUIRED, does=REFUSED, neutral=kind(),
                    fix="leave it out") for n in names.split()]


def retire(names: str, default: Any = True, kind: type = bool) -> list[Setting]:
    """Return settings that had no effect in OneFlow 0.4 either."""
    return [Setting(n, kind, "it did nothing in OneFlow 0.4, either", default,
                    f"'{n}' has been deprecated, has no effect and will be removed in the future.", does=GONE)
            for n in names.split()]
