"""Annotations of a job function, converted at decoration into a small tree that later checks use.

    return      None | MISSING (none written) | value | Callback[value] | Bundle[leaf]
    value       TupleOf(values) | ListOf(value) | DictOf(key, value) | leaf
    leaf        Numpy | ListNumpy | ListListNumpy
    parameter   a placeholder class | TupleOf(parameters)
"""
import contextlib
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable as Function
from dataclasses import dataclass
from typing import Any

from flowedu.core.values.signature import MISSING
from flowedu.core.values.typing import PlaceholderType
from flowedu.errors import CheckError, FlowError, UnsupportedError
from flowedu.oneflow04.typing import LEAVES, Bundle, Callback

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


@dataclass(frozen=True)
class TupleOf:
    """The annotation `Tuple[items]`."""

    items: tuple

    def part(self, key) -> Any:
        """Return the annotation of the element `key`; see core/values/signature.py:convert."""
        return self.items[key]

    def __repr__(self) -> str:
        return f"Tuple[{', '.join(map(show, self.items))}]"


@dataclass(frozen=True)
class _Of:
    """An annotation with one parameter."""

    item: Any

    def part(self, key) -> Any:
        return self.item

    def __repr__(self) -> str:
        return f"{type(self).__name__.removesuffix('Of')}[{show(self.item)}]"


class ListOf(_Of):
    """The annotation `List[item]`."""


class BundleOf(_Of):
    """The annotation `Bundle[item]`."""

    def part(self, key) -> Any:
        return self.item if key is None else self


class CallbackOf(_Of):
    """The annotation `Callback[item]`."""

    def part(self, key) -> Any:
        return self.item.part(key) if hasattr(self.item, "part") else self.item


@dataclass(frozen=True)
class DictOf:
    """The annotation `Dict[key, item]`."""

    key: Any
    item: Any

    def part(self, key) -> Any:
        return self.item

    def __repr__(self) -> str:
        return f"Dict[{show(self.key)}, {show(self.item)}]"


def show(annotation: Any) -> str:
    """Return an annotation as a user writes it."""
    if annotation is MISSING:
        return "(no annotation)"
    if isinstance(annotation, type) and not isinstance(annotation, (PlaceholderType, types.GenericAlias)):
        return annotation.__name__
    return repr(annotation).replace("typing.", "").replace("flowedu.core.values.",
                                                           "").replace("flowedu.oneflow04.", "")


def annotations(fn: Function) -> tuple[list[inspect.Parameter], Any]:
    """Return the parameters of `fn` and its return annotation, with string annotations (PEP 563) evaluated.

    Names in them are looked up in the module of the function, in its closure, and in the user's calling
    frame.
    """
    signature = inspect.signature(fn)
    parameters, returns = list(signature.parameters.values()), signature.return_annotation
    if not any(map(_has_string, [p.annotation for p in parameters] + [returns])):
        return parameters, returns
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    try:
        hints = typing.get_type_hints(fn, localns=dict(frame.f_locals) | _closure(inspect.unwrap(fn)))
    except FlowError:
        raise
    except (NameError, AttributeError, SyntaxError, TypeError) as e:
        raise UnsupportedError(f"{fn.__name__}: invalid annotation found: a string that cannot be evaluated",
                               expected="names that can be found from here", got=f"{type(e).__name__}: {e}",
                               fix="remove `from __future__ import annotations`, or make the names in it "
                               "global") from e
    return (([p.replace(annotation=hints.get(p.name, p.annotation)) for p in parameters],
             hints.get("return", returns)))


def _closure(fn: Function) -> dict[str, Any]:
    """Return the variables of enclosing functions that `fn` uses."""
    out, code = {}, getattr(fn, "__code__", None)
    for name, cell in zip(code.co_freevars, fn.__closure__ or ()) if code else ():
        with contextlib.suppress(ValueError):  # not assigned yet
            out[name] = cell.cell_contents
    return out


def _has_string(annotation: Any) -> bool:
    return (isinstance(annotation, (str, typing.ForwardRef))
            or any(map(_has_string, typing.get_args(annotation))))


def _is_any(annotation: Any, options: tuple) -> bool:
    return any(annotation is o for o in options)  # by identity: an annotation may be anything, even an array


def _generic(annotation: Any) -> tuple[Any, tuple]:
    """Return (origin, arguments): (tuple, (A, B)) for Tuple[A, B], (list, ()) for a bare List or list."""
    if _is_any(annotation, (tuple, list, dict, Callback, Bundle)):
        return annotation, ()
    return typing.get_origin(annotation), typing.get_args(annotation)


def _arguments(annotation: Any, args: tuple, count: int | None, where: str) -> tuple:
    """Return `args`. Raise CheckError if they are missing, or not `count` (None: any number)."""
    if not args or (count is not None and len(args) != count):
        text = {tuple: "T in typing.Tuple[T, ...]", list: "T in typing.List[T]",
                dict: "(K, V) in typing.Dict[K, V]",
                Callback: "T in tp.Callback[T]", Bundle: "T in tp.Bundle[T]"}
        origin = _generic(annotation)[0]
        example = {dict: "Dict[str, tp.Numpy]", tuple: "Tuple[tp.Numpy, tp.Numpy]", list: "List[tp.Numpy]"}
        raise CheckError(f"{where}: {text[origin]} cannot be omitted", expected="the types inside",
                         got=show(annotation),
                         fix=f"write {example.get(origin, f'{show(origin)}[tp.Numpy]')}, say")
    if Ellipsis in args:
        raise UnsupportedError(f"{where}: a tuple of open length", expected="one entry per element",
                               got=show(annotation), fix="write Tuple[tp.Numpy, tp.Numpy], or List[tp.Numpy]")
    return args


def parameter_tree(annotation: Any, where: str) -> Any:
    """Return the tree of a parameter's annotation: a placeholder class, or TupleOf such trees."""
    if isinstance(annotation, PlaceholderType) and hasattr(annotation, "shape"):
        return annotation
    origin, args = _generic(annotation)
    if origin is tuple:
        return TupleOf(tuple(parameter_tree(a, where) for a in _arguments(annotation, args, None, where)))
    kind = annotation.__name__ if _is_any(annotation, LEAVES) else "Numpy"
    raise UnsupportedError(f"{where}: invalid parameter annotation {show(annotation)} found",
                           expected="tp.Numpy.Placeholder(shape, dtype), or a Tuple of them",
                           got=show(annotation),
                           fix="put it into a Tuple[...]: a parameter takes no list or dict"
                           if origin in (list, dict)
                           else f"write tp.{kind}.Placeholder((100, 784), dtype=flow.float32), with "
                           f"your shape")


def return_tree(annotation: Any, name: str) -> Any:
    """Return the tree of a return annotation. None, Callback, and Bundle are allowed at the top only."""
    where = f"{name}: return annotation"
    if _is_any(annotation, (None, type(None))):
        return None
    origin, args = _generic(annotation)
    if origin is Callback:
        return CallbackOf(_value_tree(_arguments(annotation, args, 1, where)[0], where))
    if origin is Bundle:
        item = _arguments(annotation, args, 1, where)[0]
        if not _is_any(item, LEAVES):
            raise CheckError(f"{where}: T in tp.Bundle[T] must be one of the leaf types",
                             expected="tp.Numpy, tp.ListNumpy or tp.ListListNumpy", got=show(item),
                             fix="write -> tp.Bundle[tp.Numpy]: the nesting is free, the leaves are all "
                                 "alike")
        return BundleOf(item)
    return _value_tree(annotation, where)


def _value_tree(annotation: Any, where: str) -> Any:
    origin, args = _generic(annotation)
    if origin is tuple:
        return TupleOf(tuple(_value_tree(a, where) for a in _arguments(annotation, args, None, where)))
    if origin is list:
        return ListOf(_value_tree(_arguments(annotation, args, 1, where)[0], where))
    if origin is dict:
        key, item = _arguments(annotation, args, 2, where)
        return DictOf(key, _value_tree(item, where))
    if _is_any(annotation, LEAVES):
        return annotation
    fix = "write -> tp.Numpy for one array, -> Tuple[tp.Numpy, tp.Numpy] for two, -> None for nothing"
    if _is_any(origin, (Callback, Bundle)):
        fix = "Callback and Bundle stand alone, at the outermost place"
    elif isinstance(annotation, PlaceholderType):
        fix = "a Placeholder says what comes in; write -> tp.Numpy"
    raise UnsupportedError(f"{where}: invalid return annotation {show(annotation)} found",
                           expected="None, tp.Numpy, tp.ListNumpy, Tuple/List/Dict of them, tp.Bundle[...] "
                           "or tp.Callback[...]", got=show(annotation), fix=fix)
