"""front: makes a function written on values serve blobs and tensors alike.

    @front("Relu")
    def relu(x): return ops.relu(x)

gives `relu(x, name=None)`. The context in charge unwraps the blobs, runs the body (each op call goes to the interpreter
in charge), and wraps and names the result. The body must build its result from ops, and take its blobs as arguments: a
job may run it again, on other values.
"""
from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from flowedu.context import current
from flowedu.errors import DTypeError


def front(prefix: str, blob_name: str = "out_0", arrays: bool = False) -> Callable:
    """Decorator. `prefix`: of the op's name when the user gives none; `blob_name`: of its result; `arrays`: NumPy arrays
    may be among the arguments."""

    def decorate(f: Callable) -> Callable:
        @functools.wraps(f)
        def call(*args, name: str | None = None, **kwargs):
            context = current()
            if not arrays and any(isinstance(a, np.ndarray) for a in (*args, *kwargs.values())):
                raise DTypeError(f"{call.__name__}: an argument is a NumPy array", expected="a blob, an int or a float" if
                                 context.in_job else "a tensor", got="numpy.ndarray",
                                 fix="feed it as an argument of the job" if context.in_job else "flow.tensor(x)")
            return context.apply(f, args, kwargs, name, prefix, blob_name)

        return call

    return decorate
