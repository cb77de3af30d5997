"""jit: a function stays the Python function it is. A compiled network is an nn.Graph."""
from __future__ import annotations


def script(obj, *args, **kwargs):
    """obj: nothing is compiled."""
    return obj


def ignore(obj=None, drop: bool = False, **kwargs):
    """obj; without one, a decorator that returns it."""
    return obj if obj is not None and not isinstance(obj, bool) else lambda f: f


unused = export = _script_if_tracing = script_if_tracing = _overload = _overload_method = script


def is_scripting() -> bool:
    """False: nothing is ever compiled from Python's source."""
    return False


is_tracing = is_scripting


def trace(func, example_inputs=None, **kwargs):
    """func: nothing is recorded. flow.nn.Graph records a network."""
    return func


class Final:
    """Final[int]: int."""

    def __class_getitem__(cls, kind):
        return kind


class ScriptModule:
    """Nothing is an instance of it."""


class ScriptFunction:
    """Nothing is an instance of it."""


Attribute = annotate = lambda value, kind=None: value
