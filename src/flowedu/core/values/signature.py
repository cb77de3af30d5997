"""Signatures of jobs: checks at decoration and at compile time, and conversion of results.

    check_signature(fn) -> CallSignature       at decoration
    signature.input_defs()                     at compile time: a definition per parameter
    signature.check_return(value, is_blob)     at compile time, on the value that the body returned
    convert(value, signature.returns, leaf)    at every call

In this file a job takes arrays, and returns one array or None. oneflow04/job/call_signature.py adds
containers, lists of arrays per device, callbacks, and older forms of annotations.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable as Function
from typing import Any, NamedTuple

from flowedu.core import extensions
from flowedu.core.values import placeholder as ph
from flowedu.core.values.typing import Numpy, PlaceholderType
from flowedu.errors import values as errors

MISSING = inspect.Signature.empty  # no annotation


class CallParameter(NamedTuple):
    """One parameter. tree: a placeholder class, a tree of such classes, or a default value."""

    name: str
    tree: Any
    annotated: bool


class CallSignature(NamedTuple):
    """Signature of a job. returns: Numpy, None, MISSING, or a tree of containers."""

    name: str
    parameters: tuple[CallParameter, ...]
    returns: Any

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    def input_defs(self) -> tuple:
        """Return a new definition for each parameter. Raises UnsupportedError."""
        return tuple(self.make_definition(p.tree, p.name) for p in self.parameters)

    def make_definition(self, tree: Any, name: str) -> Any:
        if isinstance(tree, PlaceholderType):
            return tree.NewInputBlobDef()  # type: ignore[attr-defined]  # of a placeholder
        raise errors.no_placeholder(self.name, name, tree, MISSING)

    def check_arguments(self, defs: tuple, args: tuple) -> list:
        """Check and cast the arguments of a call. Raises CheckError, DTypeError."""
        return ph.check_arguments(self.name, self.names, defs, args)

    def check_return(self, value: Any, is_blob: Function[[Any], bool]) -> None:
        """Raise CheckError (an AssertionError) if `value` does not match the annotation."""
        absent = value is None and (self.returns is None or self.returns is MISSING)
        if not absent and (self.returns is None or not is_blob(value)):
            raise errors.wrong_return(self.name, self.returns, value)


def check_signature(fn: Function) -> CallSignature:
    """Read and check the annotations of a job's function, at decoration.

    Raises: UnsupportedError (a NotImplementedError) for an annotation of the wrong kind; CheckError
    for *args, **kwargs, keyword-only parameters, and Tuple, List, ..., Callback without [T].
    """
    return (extensions.job_signature or read_plain_signature)(fn)


def read_plain_signature(fn: Function) -> CallSignature:
    """Read the signature of a job that takes arrays and returns one array or None."""
    signature = inspect.signature(fn)
    if signature.return_annotation not in (Numpy, None, MISSING):
        raise errors.return_annotation(fn.__name__, signature.return_annotation)
    parameters = [CallParameter(p.name, p.annotation, p.annotation is not MISSING)
                  for p in signature.parameters.values()]
    return CallSignature(fn.__name__, tuple(parameters), signature.return_annotation)


def convert(value: Any, annotation: Any, leaf: Function[[Any, Any], Any]) -> Any:
    """Return a copy of `value`, a result of the job, with each blob replaced by leaf(blob, kind).

    `kind` is Numpy, ListNumpy, ListListNumpy or MISSING (no annotation). The method `part(key)` of
    an annotation returns the annotation of an element, and `part(None)` returns the kind.
    """
    if value is None:
        return None
    part = getattr(annotation, "part", lambda key: annotation)
    if type(value) is dict:
        return {k: convert(v, part(k), leaf) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [convert(v, part(i), leaf) for i, v in enumerate(value)]
        return getattr(type(value), "_make", type(value))(parts)
    return leaf(value, part(None))


def leaves(value: Any) -> list:
    """Return the blobs of a returned value, in the order in which `convert` visits them."""
    if value is None:
        return []
    if isinstance(value, (list, tuple, dict)):
        return [x for v in (value.values() if isinstance(value, dict) else value)
                for x in leaves(v)]
    return [value]
