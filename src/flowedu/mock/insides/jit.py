"""jit: a function stays the Python function it is. A compiled network is an nn.Graph."""
from __future__ import annotations

from flowedu.nn import Module


def script(obj, *args, **kwargs):
    """obj: nothing is compiled."""
    return obj


def ignore(drop=False, **kwargs):
    """Return the decorated function; with a flag for `drop`, return a decorator that does so."""
    return drop if callable(drop) else lambda f: f


def unused(fn):
    """fn."""
    return fn


export = script_method = _script_if_tracing = script_if_tracing = _overload = _overload_method = unused


def is_scripting() -> bool:
    """False: nothing is ever compiled from Python's source."""
    return False


is_tracing = is_scripting


def trace(func, example_inputs=None, *args, **kwargs):
    """func: nothing is recorded. flow.nn.Graph records a network."""
    return func


class Final:
    """Final[int]: int."""

    def __class_getitem__(cls, kind):
        return kind


class ScriptModule(Module):
    """A Module. What `script` gives is none."""


class ScriptFunction:
    """Nothing is an instance of it."""


def annotate(the_type, the_value):
    """the_value."""
    return the_value


def Attribute(value, type):  # noqa: N802
    """value."""
    return value
