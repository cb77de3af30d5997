"""front: a decorator with which a function of values accepts both blobs and tensors.

    @front("Relu")
    def relu(x): return ops.relu(x)

defines `relu(x, name=None)`. Outside jobs it calls the original function. In a job the context unwraps the
blobs, calls the function (the current interpreter handles each op call), and wraps and names the result. The
function must build its result from ops and receive its blobs as arguments, because a job may call it again
with other values.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu.core.layers.context import blobs_in, current, unique_name
from flowedu.errors import DTypeError
from flowedu.errors.jobs import foreign_blob


def front(prefix: str, blob_name: str = "out_0", arrays: bool = False) -> Callable:
    """Return a decorator that lets a function run in jobs and outside, with an argument `name`.

    prefix: prefix of the op's name if the user passes no name. blob_name: name of the result. arrays: True if
    arguments may be NumPy arrays.
    """

    def decorate(f: Callable) -> Callable:
        signature, count = _with_name(f)

        @functools.wraps(f)
        def call(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
            if len(args) == count + 1 and name is None and isinstance(args[-1], str):
                args, name = args[:-1], args[-1]
            context = current()
            if not arrays and any(isinstance(a, np.ndarray) for a in (*args, *kwargs.values())):
                raise DTypeError(f"{call.__name__}: an argument is a NumPy array",
                                 expected="a blob, an int or a float" if
                                 context.in_job else "a tensor", got="numpy.ndarray",
                                 fix="feed it as an argument of the job" if context.in_job
                                 else "flow.tensor(x)")
            if context.in_job:
                label = context.full_name(name) if name else unique_name(prefix)
                return context.apply(f, args, kwargs, label, blob_name)
            for x in blobs_in((*args, *kwargs.values())):
                raise foreign_blob(x, "outside any job")
            return f(*args, **kwargs)

        call.__signature__ = signature  # type: ignore[attr-defined]  # an attribute of a function
        return call

    return decorate


def _with_name(f: Callable) -> tuple[inspect.Signature, int]:
    """Return the signature of `f` with a parameter `name`, and the number of parameters before it.

    `name` is the last positional parameter, as in OneFlow. The number is -2 if `f` takes any number of
    arguments.
    """
    own = list(inspect.signature(f).parameters.values())
    kinds = [p.kind for p in own]
    starred = inspect.Parameter.VAR_POSITIONAL in kinds
    kind = inspect.Parameter.KEYWORD_ONLY if starred else inspect.Parameter.POSITIONAL_OR_KEYWORD
    name = inspect.Parameter("name", kind, default=None)
    signature = inspect.Signature(sorted([*own, name], key=lambda p: p.kind))
    return signature, -2 if starred else kinds.count(kind)
