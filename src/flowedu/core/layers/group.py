"""What optimizers are made of: groups of parameters with options, update rules, the states they want."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from flowedu.core.ops.define import Op


class State(NamedTuple):
    """A tensor of a parameter's shape that an update remembers.

    suffix: in a graph the variable is `<parameter>-<suffix>`. key: in `optimizer.state[parameter]`. initial: first value.
    single: one number, of shape (1,), whatever the parameter's shape.
    """

    suffix: str
    key: str = ""
    initial: float = 0.0
    single: bool = False


class UpdateRule(NamedTuple):
    """`op(lr, step, *[w, g, *states of each parameter], **attrs)` changes w and the states where they lie."""

    op: Op
    attrs: dict
    states: tuple[State, ...] = ()


class ParamGroup(dict):
    """{"params": list of parameters, "lr": ..., ...}. Options may be changed between steps."""

    ready = None                    # what `step` worked out from the options; None: to be done (again)

    def __reduce__(self):
        return ParamGroup, (dict(self),)


def _forgetting(name: str) -> Callable:
    plain = getattr(dict, name)

    def method(self, *args, **kwargs):
        self.ready = None
        return plain(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, plain.__doc__
    return method


for _name in ("__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(ParamGroup, _name, _forgetting(_name))


def _set(self, key, value):
    if key != "lr":                 # a schedule sets it at every step; `step` reads it itself
        self.ready = None
    dict.__setitem__(self, key, value)


ParamGroup.__setitem__ = _set


class BaseOptimizer:
    """What an nn.Graph asks of an optimizer.

    Attributes: param_groups, the parameters with their options.
    """

    param_groups: list[ParamGroup]

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        """The update of a group with these options."""
        raise NotImplementedError(f"{type(self).__name__}.update_of is not defined")

    def clipping_of(self, group: Mapping[str, Any]) -> Any:
        """None, or what makes the gradients of a group smaller: factor(gradients) says what to multiply them by."""
        return None
