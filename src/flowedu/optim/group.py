"""Parameter groups with options: the elements of an optimizer's param_groups."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowedu.core.values import thread_state as ambient


class ParamGroup(dict):
    """Group of parameters and options: {"params": [...], "lr": ...}. Options may be changed between steps."""

    ready: Any = None               # values that `step` computed from the options, or None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        ambient.changes += 1        # for graphs: an optimizer has an additional group

    def __setitem__(self, key: str, value: Any) -> None:
        if key != "lr":             # schedules set it at every step, and `step` always reads it
            self.ready = None
            ambient.changes += 1
        dict.__setitem__(self, key, value)

    def __reduce__(self) -> tuple:
        return ParamGroup, (dict(self),)


def _forgetting(name: str) -> Callable:
    plain = getattr(dict, name)

    def method(self: ParamGroup, *args: Any, **kwargs: Any) -> Any:
        self.ready = None
        ambient.changes += 1
        return plain(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, plain.__doc__
    return method


for _name in ("__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(ParamGroup, _name, _forgetting(_name))
