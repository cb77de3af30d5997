"""What a job takes and returns: checked at decoration and at compile, and used to shape the result of every call.

    check_signature(fn) -> CallSignature           at decoration
    signature.input_defs()                     at compile: a definition per parameter
    signature.check_return(value, is_blob)     at compile, on what the body returned
    convert(value, signature.returns, leaf)    at every call

Here a job takes arrays, and returns one or none. Containers of them, lists of arrays per device, callbacks and old ways of
saying so: oneflow04/job/signature.py.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable as Function
from typing import Any, NamedTuple

import numpy as np

from flowedu.core.extensions import extension
from flowedu.core.values import placeholder as ph
from flowedu.core.values.typing import Numpy, PlaceholderType
from flowedu.errors import CheckError, UnsupportedError, told_value

MISSING = inspect.Signature.empty  # no annotation was written


class CallParameter(NamedTuple):
    """`tree`: a placeholder class, or a tree of them; the default value where nothing was annotated (before tp)."""

    name: str
    tree: Any
    annotated: bool


class CallSignature(NamedTuple):
    """What a job takes and returns (`returns`: Numpy, None, MISSING, or a tree of containers).

    Attribute calls_back: the job returns a function that wants a handler of the result.
    """

    name: str
    parameters: tuple[CallParameter, ...]
    returns: Any
    calls_back = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    def input_defs(self) -> tuple:
        """Fresh definitions, one per parameter. Raises UnsupportedError (a NotImplementedError)."""
        return tuple(self.definition(p.tree, p.name) for p in self.parameters)

    def definition(self, tree: Any, name: str) -> Any:
        """The definition of parameter `name`."""
        if isinstance(tree, PlaceholderType):
            return tree.NewInputBlobDef()
        raise UnsupportedError(f"{self.name}: parameter {name} does not say what it takes",
                               expected="a placeholder as its annotation",
                               got="no annotation" if tree is MISSING else f"the default value {tree!r}",
                               fix=f"write {name}: tp.Numpy.Placeholder(shape, dtype); bring constants in from outside")

    def check_arguments(self, defs: tuple, args: tuple) -> list:
        """The arguments of a call as their definitions want them. Raises CheckError, DTypeError."""
        return ph.check_arguments(self.name, self.names, defs, args)

    def check_return(self, value: Any, is_blob: Function[[Any], bool]) -> None:
        """Raise CheckError (an AssertionError) unless the body returned what it was annotated with."""
        if not (value is None if self.returns is None else is_blob(value) or value is None and self.returns is MISSING):
            raise CheckError(f"{self.name}: the returned value does not match the return annotation",
                             expected="None" if self.returns is None else "a blob", got=told_value(value),
                             fix=blob_advice(value))


def blob_advice(value: Any) -> str:
    """What to return instead of something that is no blob."""
    if isinstance(value, (bool, int, float, np.ndarray, np.generic)):
        return "the body runs once, at compile: return a blob, such as flow.constant(...), not a value"
    return "forgot `return`?" if value is None else "return what flow's ops give"


def check_signature(fn: Function) -> CallSignature:
    """Reads and checks the annotations of a job's function, at decoration.

    Raises: UnsupportedError (a NotImplementedError) for an annotation of the wrong kind; CheckError (an AssertionError)
    for *args, **kwargs, keyword-only parameters, and for Tuple, List, Dict, Bundle, Callback without their [T].
    """
    return extension("signature of a job", plain_signature)(fn)


def plain_signature(fn: Function) -> CallSignature:
    """Of a job that takes arrays and returns one, or none."""
    read = inspect.signature(fn)
    if read.return_annotation not in (Numpy, None, MISSING):
        raise UnsupportedError(f"{fn.__name__}: return annotation", expected="tp.Numpy or None", fix="write -> tp.Numpy",
                               got=repr(read.return_annotation))
    return CallSignature(fn.__name__, tuple(CallParameter(p.name, p.annotation, p.annotation is not MISSING)
                                        for p in read.parameters.values()), read.return_annotation)


def convert(value: Any, annotation: Any, leaf: Function[[Any, Any], Any]) -> Any:
    """`value`, which `check_return` accepted, with leaf(blob, kind) in place of each blob, in fresh containers.

    `kind` is Numpy, ListNumpy or ListListNumpy; MISSING where there is no annotation. An annotation of a container has
    `part(key)`: that of what stands there (key None: of the value itself).
    """
    if value is None:
        return None
    part = getattr(annotation, "part", lambda key: annotation)
    if type(value) is dict:
        return {k: convert(v, part(k), leaf) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [convert(v, part(i), leaf) for i, v in enumerate(value)]
        return type(value)._make(parts) if hasattr(value, "_fields") else type(value)(parts)
    return leaf(value, part(None))


def leaves(value: Any) -> list:
    """The blobs of a returned value, in the order in which `convert` meets them."""
    if value is None:
        return []
    if isinstance(value, (list, tuple, dict)):
        return [x for v in (value.values() if isinstance(value, dict) else value) for x in leaves(v)]
    return [value]
