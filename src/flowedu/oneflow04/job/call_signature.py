"""Signatures of jobs with other arguments and results than arrays (for arrays: core/values/signature.py).

They cover containers of arrays, lists of arrays per device, callbacks, and the style before flowedu.typing,
in which the default of a parameter declares its type.
"""
from __future__ import annotations

from collections.abc import Callable as Function
from typing import Any, NamedTuple

from flowedu.core.values.placeholder import ArgBlobDef
from flowedu.core.values.signature import MISSING, CallParameter, CallSignature
from flowedu.core.values.typing import Numpy
from flowedu.errors import CheckError, UnsupportedError, format_value
from flowedu.errors.values import suggest_return
from flowedu.oneflow04.job.annotation import (
    BundleOf,
    CallbackOf,
    DictOf,
    ListOf,
    TupleOf,
    parameter_tree,
    return_tree,
    show,
)
from flowedu.oneflow04.job.annotation import annotations as read_annotations
from flowedu.oneflow04.job.arguments import check_arguments


class JobSignature(CallSignature):
    """The parameters and results of a job (`returns` is a tree of annotation.py)."""

    __slots__ = ()

    @property
    def calls_back(self) -> bool:
        """True if the job returns a function whose argument is a handler of the result."""
        return isinstance(self.returns, CallbackOf)

    def input_defs(self) -> tuple:
        """Return new definitions, one tree per parameter.

        Raise CheckError, or UnsupportedError (a NotImplementedError), for parameters that are not valid.
        """
        bare = [p.name for p in self.parameters if not p.annotated]
        if 0 < len(bare) < len(self.parameters):
            raise UnsupportedError(f"{self.name}: All parameters of global function should be annotated",
                                   expected="a placeholder on every parameter",
                                   got=f"none on {', '.join(bare)}",
                                   fix=f"write {bare[0]}: tp.Numpy.Placeholder(shape, dtype)")
        return super().input_defs()

    def make_definition(self, tree: Any, name: str) -> Any:
        if isinstance(tree, TupleOf):
            return tuple(self.make_definition(t, name) for t in tree.items)
        if isinstance(tree, ArgBlobDef):
            return tree.clone()
        if isinstance(tree, dict):
            return {k: self.make_definition(t, name) for k, t in tree.items()}
        if isinstance(tree, (list, tuple)):
            return type(tree)(self.make_definition(t, name) for t in tree)
        return super().make_definition(tree, name)

    def check_arguments(self, defs: tuple, args: tuple, devices: int = 1) -> list:
        return check_arguments(self.name, self.names, defs, args, devices)

    def check_return(self, value: Any, is_blob: Function[[Any], bool]) -> None:
        check_return(value, self.returns, is_blob, self.name)


_strict = False


def enable_typing_check(value: bool = True) -> None:
    """Raise an error (a NotImplementedError) at decoration for each missing annotation from now on.

    Args:
        value: False accepts missing annotations again.
    """
    global _strict
    _strict = value


def job_signature(fn: Function) -> JobSignature:
    """Read and check the annotations of a job's function, at decoration.

    Raises:
        UnsupportedError: an annotation of the wrong kind. The error is a NotImplementedError.
        CheckError: *args, **kwargs, keyword-only parameters, or Tuple, List, Dict, Bundle, Callback without
            [T]. The error is an AssertionError.
    """
    name = fn.__name__
    parameters, returns = read_annotations(fn)
    if _strict and (missing := [p.name for p in parameters if p.annotation is MISSING]):
        raise UnsupportedError(f"{name}: parameter {missing[0]} is not annotated",
                               expected="an annotation on everything, after enable_typing_check()",
                               got=f"none on {', '.join(missing)}",
                               fix=f"write {missing[0]}: tp.Numpy.Placeholder(shape, dtype)")
    if _strict and returns is MISSING:
        raise UnsupportedError(f"{name}: no return annotation found",
                               expected="one, after enable_typing_check()",
                               got="none", fix="write -> tp.Numpy, say")
    written = all(p.annotation is not MISSING for p in parameters)
    for p in parameters if written else ():
        if p.kind is not p.POSITIONAL_OR_KEYWORD:
            raise CheckError(f"{name}: no parameters like *args or **kwargs supported",
                             expected="plain parameters, one per input", got=str(p),
                             fix="take a Tuple[...] of placeholders for a group of inputs")
    trees = [parameter_tree(p.annotation, f"{name}: parameter {p.name}") if written else p.default
             for p in parameters]
    read = tuple(CallParameter(p.name, t, p.annotation is not MISSING) for p, t in zip(parameters, trees))
    return JobSignature(name, read,
                        MISSING if returns is MISSING else return_tree(returns, name))


def check_return(value: Any, annotation: Any, is_blob: Function[[Any], bool], where: str) -> None:
    """Check the result of a body against its return annotation, when the job is compiled.

    Args:
        value: the result of the body.
        annotation: `JobSignature.returns`.
        is_blob: a predicate for blobs, whose `is_dynamic` is read.
        where: the start of the message, the name of the job.

    Raises:
        CheckError: the result does not match the annotation. The error is an AssertionError.
        UnsupportedError: without an annotation, or with a Bundle, a value is neither a blob nor a container.
            The error is a NotImplementedError.
    """
    if annotation is not MISSING or value is not None:
        _Check(is_blob, where, annotation).value(value, annotation, "")


class _Check(NamedTuple):
    """The check of one result."""

    is_blob: Function[[Any], bool]
    where: str
    annotation: Any

    def value(self, value: Any, want: Any, at: str) -> None:
        """Check `value` against `want`, its part of the annotation; `at` is its position in the result."""
        if want is None:
            self.need(value is None, value, at, "None", "remove the `return`, or annotate -> tp.Numpy")
        elif isinstance(want, CallbackOf):
            self.value(value, want.item, at)
        elif want is MISSING or isinstance(want, BundleOf):
            self.nest(value, want, at)
        elif isinstance(want, TupleOf):
            n = len(want.items)
            self.need(type(value) is tuple, value, at, f"a tuple of {n}",
                      "return (a, b) with round brackets, or annotate what is returned")
            self.need(len(value) == n, value, at, f"a tuple of {n}",
                      "write one type in Tuple[...] per element")
            for i, (v, w) in enumerate(zip(value, want.items)):
                self.value(v, w, f"{at}[{i}]")
        elif isinstance(want, ListOf):
            self.need(type(value) is list, value, at, "a list",
                      "return [a, b] with square brackets, or annotate Tuple[...]")
            for i, v in enumerate(value):
                self.value(v, want.item, f"{at}[{i}]")
        elif isinstance(want, DictOf):
            self.need(type(value) is dict, value, at, "a dict",
                      "return {'loss': loss}, say, or annotate tp.Numpy")
            for k, v in value.items():
                self.need(type(k) is want.key, k, at, f"keys of type {show(want.key)}",
                          "change it or the K of Dict")
                self.value(v, want.item, f"{at}[{k!r}]")
        else:
            self.need(self.is_blob(value), value, at, "a blob", suggest_return(value))
            self.need(want is not Numpy or not getattr(value, "is_dynamic", False), value, at,
                      "a blob of fixed shape", "annotate tp.ListNumpy: only fixed-shape blobs fit tp.Numpy")

    def nest(self, value: Any, want: Any, at: str) -> None:
        """Check any nesting of list, tuple, and dict; `want` is a BundleOf or MISSING."""
        if self.is_blob(value):
            if want is not MISSING:
                self.value(value, want.item, at)
        elif isinstance(value, (list, tuple)) or type(value) is dict:
            for k, v in value.items() if type(value) is dict else enumerate(value):
                self.nest(v, want, f"{at}[{k!r}]")
        else:
            self.need(False, value, at, "a blob, or a list, tuple or dict of blobs", suggest_return(value),
                      UnsupportedError, "global_function returns RemoteBlob or list/tuple/dict nested "
                      "RemoteBlob only")

    def need(self, holds: bool, value: Any, at: str, expected: str, fix: str, error: type = CheckError,
             problem: str = "the returned value does not match the return annotation") -> None:
        if not holds:
            got = "a blob" if self.is_blob(value) else format_value(value)
            if self.is_blob(value) and getattr(value, "is_dynamic", False):
                got = "a blob of dynamic shape"
            raise error(f"{self.where}: {problem}", got=got + (f" at result{at}" if at else ""), fix=fix,
                        expected=f"{expected}, for {show(self.annotation)}")
