"""front: makes a function written on values serve blobs and tensors alike.

    @front("Relu")
    def relu(x): return ops.relu(x)

gives `relu(x, name=None)`. Blobs are unwrapped, the body runs (each op call goes to the interpreter in charge), and the
result is wrapped and named. The body must build its result from ops.
"""
from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from flowedu.blob.blob import BlobDef
from flowedu.context import current, unique
from flowedu.errors import DTypeError


def unwrap(x):
    """The value inside a blob; lists and tuples of blobs too."""
    if isinstance(x, BlobDef):
        return current().value_of(x)
    if isinstance(x, (list, tuple)) and any(isinstance(i, BlobDef) for i in x):
        return type(x)(unwrap(i) for i in x)
    return x


def _blobs(arguments):
    """The blobs among the arguments of a call, those in lists too."""
    for x in arguments:
        yield from [x] if isinstance(x, BlobDef) else _blobs(x) if isinstance(x, (list, tuple)) else ()


def front(prefix: str, blob_name: str = "out_0") -> Callable:
    """Decorator. `prefix`: of the op's name when the user gives none; `blob_name`: of its result."""

    def decorate(f: Callable) -> Callable:
        @functools.wraps(f)
        def call(*args, name: str | None = None, **kwargs):
            context = current()
            if prefix != "Constant" and any(isinstance(a, np.ndarray) for a in (*args, *kwargs.values())):
                raise DTypeError(f"{call.__name__}: an argument is a NumPy array", expected="a blob, an int or a float" if
                                 context.graph is not None else "a tensor", got="numpy.ndarray",
                                 fix="feed it as an argument of the job" if context.graph is not None else "flow.tensor(x)")
            result = f(*map(unwrap, args), **{k: unwrap(v) for k, v in kwargs.items()})
            for x in _blobs([*args, *kwargs.values()]):
                if x.value is result:                   # nothing was done: the same blob comes back
                    return x
            label = context.full_name(name) if name else None
            if isinstance(result, (tuple, list)):
                return type(result)(context.wrap(r, f"{label}_{i}" if label else unique(prefix), blob_name)
                                    for i, r in enumerate(result))
            return context.wrap(result, label or unique(prefix), blob_name)

        return call

    return decorate
