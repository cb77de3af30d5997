"""Parameter groups with options: the elements of an optimizer's param_groups."""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.values import thread_state as ambient


class ParamGroup(dict):
    """{"params": list of parameters, "lr": ..., ...}. Options may be changed between steps."""

    ready = None                    # what `step` worked out from the options; None: to be done (again)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        ambient.changes += 1        # for graphs: an optimizer has one group more

    def __reduce__(self):
        return ParamGroup, (dict(self),)


def _forgetting(name: str) -> Callable:
    plain = getattr(dict, name)

    def method(self, *args, **kwargs):
        self.ready = None
        ambient.changes += 1
        return plain(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, plain.__doc__
    return method


for _name in ("__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(ParamGroup, _name, _forgetting(_name))


def _set(self, key, value):
    if key != "lr":                 # a schedule sets it at every step; `step` reads it itself
        self.ready = None
        ambient.changes += 1
    dict.__setitem__(self, key, value)


ParamGroup.__setitem__ = _set
