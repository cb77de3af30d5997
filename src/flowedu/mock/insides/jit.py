"""jit: names without effect, because functions remain Python functions. nn.Graph compiles networks."""
from __future__ import annotations

from flowedu.nn import Module


def script(obj, *args, **kwargs):
    """Return obj, without compiling it."""
    return obj


def ignore(drop=False, **kwargs):
    """Return the decorated function; with a bool argument, return a decorator."""
    return drop if callable(drop) else lambda f: f


def unused(fn):
    """Return fn."""
    return fn


export = script_method = _script_if_tracing = script_if_tracing = _overload = _overload_method = unused


def is_scripting() -> bool:
    """Return False: flowedu does not compile Python source."""
    return False


is_tracing = is_scripting


def trace(func, example_inputs=None, *args, **kwargs):
    """Return func, without tracing it. flow.nn.Graph traces networks."""
    return func


class Final:
    """Annotation: Final[int] is int."""

    def __class_getitem__(cls, kind):
        return kind


class ScriptModule(Module):
    """Base class for isinstance checks; `script` does not return instances."""


class ScriptFunction:
    """Class without instances, for isinstance checks."""


def annotate(the_type, the_value):
    """Return the_value."""
    return the_value


def Attribute(value, type):  # noqa: N802
    """Return value."""
    return value
