"""Settable, the base class of objects whose methods are the settings of a table (settings.py)."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowedu.errors import CheckError
from flowedu.errors.nearest import nearest, similar
from flowedu.errors.once import say_once
from flowedu.oneflow04.job.setting_kinds import ACTS, GONE, REFUSED, REQUIRED, WARNS, Setting
from flowedu.oneflow04.job.settings import ALIASES


class UnknownSettingError(CheckError, AttributeError):
    """An unknown setting. It is also an AttributeError, so that hasattr returns False."""


class Settable:
    """Base class of objects whose methods are the settings of a table.

    Subclasses have `_what`, the name in messages, `_table`, and `_store(name, value)`.
    """

    __slots__ = ()
    _what = ""
    _table: Mapping[str, Setting] = {}

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return _find(self, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *(n.split(".")[0] for n in [*self._table, *ALIASES]
                                             if n in self._table
                                             or ALIASES[n] in self._table)})

    def _call(self, setting: Setting, value: Any):
        value = setting.checked(self._what, value)
        if setting.notice:
            print(setting.notice)
        if setting.does == WARNS and value != setting.neutral:
            say_once(f"{self._what}.{setting.name}", setting.says, 4)
        return self._store(setting.name, value)


class Group:
    """The settings of one group, such as `config.train`."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: Settable, name: str):
        self._owner, self._name = owner, name

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return _find(self._owner, f"{self._name}.{name}")

    def __dir__(self):
        return [n.removeprefix(f"{self._name}.") for n in self._owner._table
                if n.startswith(f"{self._name}.")]

    def __call__(self, *args):
        what = f"{self._owner._what}.{self._name}"
        raise CheckError(f"{what}: a group of settings, not one",
                         expected=", ".join(f"{what}.{n}" for n in dir(self)),
                         got="a call", fix=f"{what}.{dir(self)[0]}(...)")


def _find(owner: Settable, name: str):
    """Return the function that sets `name`, or the group with this name."""
    setting = owner._table.get(ALIASES.get(name, name))
    if setting is not None:
        def setter(value: Any = REQUIRED):
            return owner._call(setting, value)
        setter.__name__, setter.__doc__ = name.split(".")[-1], setting.says
        return setter
    if any(n.startswith(f"{name}.") for n in owner._table):
        return Group(owner, name)
    known = [*owner._table, *(n for n in dir(type(owner)) if not n.startswith("_"))]
    close = nearest(name, known) or similar(name, known)     # names share words, so a weaker match also helps
    raise UnknownSettingError(f"{owner._what} has no setting {name!r}", expected="a setting of OneFlow 0.4" +
                              (f"; the nearest is {close!r}" if close else ""), got=name,
                              fix=f"{owner._what}.{close}(...)" if close else
                              f"dir({owner._what}) lists all settings")


TITLES = {ACTS: "Settings with an effect here", REFUSED: "Refused, for results would depend on them",
          WARNS: "Kept; results do not depend on them, and the first call says so",
          GONE: "Without effect, in OneFlow 0.4 as here"}


def described(settings: Mapping[str, Setting]) -> str:
    """Return a table as text for help()."""
    def line(s: Setting) -> str:
        return (f"    {s.name}({s.kind.__name__}{'' if s.default is REQUIRED else f' = {s.default}'})"
                + (f"\n        {s.says}" if s.does != GONE else ""))

    parts = {title: "\n".join(line(s) for s in settings.values() if s.does == does)
             for does, title in TITLES.items()}
    return "\n\n".join(f"{title}:\n{text}" for title, text in parts.items() if text) + "\n"
