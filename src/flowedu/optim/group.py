"""Parameter groups with options, the elements of an optimizer's param_groups, and checks of their members."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flowedu.core.values import thread_state as ambient
from flowedu.errors import ArgumentError, CallError, HyperparameterError
from flowedu.tensor import Tensor

_ITERABLE = "params argument given to the optimizer should be an iterable of Tensors or dicts"


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


# ---- members
def as_groups(name: str, params: Any) -> list[dict]:
    """Return the parameters of an optimizer as groups, dicts with the key "params". name: the optimizer's."""
    what, usage = f"{name}: {_ITERABLE}", f"{name}(model.parameters(), lr=0.1)"
    if isinstance(params, (int, float)):
        raise CallError(f"{what}, but got {params!r}",
                        expected="the parameters first, then the learning rate",
                        got=repr(params), fix=usage)
    if isinstance(params, Tensor):
        raise CallError(f"{what}, but got {type(params).__name__}",
                        expected="a list, or model.parameters()",
                        got="one tensor", fix="put it into a list: [w]")
    if isinstance(params, Mapping) or not isinstance(params, Iterable):
        given = type(params).__name__
        fix = "pass model.parameters()" if hasattr(params, "parameters") else usage
        if isinstance(params, Mapping):
            fix = "[{...}]"
        raise CallError(f"{what}, but got {given}", expected="model.parameters()", got=given, fix=fix)
    groups = list(params)
    if not groups:
        warnings.warn(f"{name}: optimizer got an empty parameter list, so it will train nothing. "
                      f"model.parameters() is an iterator: make it anew for each use; a module's "
                      f"parameters must be its attributes, not in a plain list.", stacklevel=4)
    return groups if groups and isinstance(groups[0], Mapping) else [{"params": groups}]


def check_member(name: str, i: int, p: Any, taken: set[int]) -> Tensor:
    """Return parameter `i` if it is a leaf tensor, and add its id to `taken`, the ids in other groups."""
    if not isinstance(p, Tensor):
        raise CallError(f"{name}: {_ITERABLE}, but item {i} is {type(p).__name__}", expected="tensors",
                        got=repr(p)[:80], fix="pass model.parameters()"
                        + ", not named_parameters()" * isinstance(p, tuple))
    if p.is_lazy or not p.is_leaf:
        raise HyperparameterError(f"{name}: can't optimize a non-leaf Tensor: parameters must be leaf "
                                  f"tensor", expected="a tensor made by you, with requires_grad=True",
                                  got=f"parameter {i}, which other tensors were computed into",
                                  fix="pass the tensors it was computed from, or "
                                  "x.detach().requires_grad_()")
    if id(p) in taken:
        raise ArgumentError(f"{name}: some parameters appear in more than one parameter group, or twice "
                            f"in one",
                            expected="every parameter once",
                            got=f"parameter {i} of shape {tuple(p.shape)} again",
                            fix="list(dict.fromkeys(params)) keeps the first of each")
    taken.add(id(p))
    return p
