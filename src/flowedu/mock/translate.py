"""Translator of calls written for PyTorch that do not fit flowedu's function.

It handles an argument that has another name in flowedu, has no effect, is positional in PyTorch, or is
`out=`. Only calls that would raise a TypeError are translated, so other calls have no overhead. The tables
are in mock/differences.py.
"""
from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TypeVar

from flowedu.diagnostics.explain import binds
from flowedu.diagnostics.habits import again, habitual, into
from flowedu.errors import UnsupportedError, format_value
from flowedu.mock.differences import ANY, IDLE, PLACES, RENAMED, Idle

T = TypeVar("T")


def _by_name(table: Mapping[str, T]) -> dict[str, T]:
    return {_short(name): value for names, value in table.items() for name in names.split()}


def _short(name: str) -> str:
    """Shorten a name: nn.functional.normalize -> normalize, nn.Embedding.from_pretrained stays a method."""
    parts = name.split(".")
    return ".".join(parts[-2:] if len(parts) > 1 and parts[-2][0].isupper() else parts[-1:])


_RENAMED, _PLACES = _by_name(RENAMED), _by_name(PLACES)
_IDLE: dict[tuple[str, str], Idle] = {(_short(n), row.argument): row for row in IDLE
                                      for n in row.names.split()}


def translated(function, args: tuple, kwargs: dict) -> tuple[object] | None:
    """Return a tuple with the result of the call in PyTorch's meaning, or None if it cannot be translated.

    function: the PublicFunction whose call raised a TypeError. Arguments that would change the result and
    are not supported raise UnsupportedError.
    """
    try:
        signature = inspect.signature(function.function)
    except (TypeError, ValueError):
        return None
    if binds(signature, args, kwargs):                   # the signature fits; the error was raised inside
        return None
    parameters = signature.parameters
    names, hidden = _names(function, args), int(function.owner is not None)
    positional, keywords = list(args), dict(kwargs)
    _by_place(names, positional, keywords, parameters, hidden)
    _rename(names, positional, keywords, parameters)
    for argument in [k for k in keywords if k not in parameters]:
        row = next((_IDLE[n, argument] for n in (*names, "*") if (n, argument) in _IDLE), None)
        if row is not None:
            _leave(names[0], row, keywords.pop(argument))
    if "out" in keywords and "out" not in parameters and function.owner is None:
        out = keywords.pop("out")
        if out is None:
            return (again(function, positional, keywords),)
        return (into(out, function, positional, keywords, parameters),)
    if keywords.keys() == kwargs.keys() and len(positional) == len(args):
        return habitual(function, args, kwargs)
    return (again(function, positional, keywords),)


def _names(function, args: tuple) -> list[str]:
    """Return the names that the tables may use for a function; for a method, one per class of its MRO."""
    if function.owner is None:
        return [function.name]
    kinds = type(args[0]).__mro__ if args and isinstance(args[0], function.owner) else (function.owner,)
    last = "" if function.name in ("__init__", "__new__") else f".{function.name}"
    return list(dict.fromkeys(("Tensor" if k.__name__ == "TensorBase" else k.__name__) + last for k in kinds))


def _by_place(names: list[str], positional: list, keywords: dict, parameters: Mapping, hidden: int) -> None:
    """Turn excess positional arguments into keyword arguments by PyTorch's positions."""
    places = next((_PLACES[n].split() for n in names if n in _PLACES), None)
    most = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters.values())
    if places is not None and len(positional) > most and len(positional) - hidden <= len(places):
        both = zip(places, [*parameters][hidden:most])
        first = next((i for i, (theirs, ours) in enumerate(both) if theirs != ours), most - hidden)
        for name, value in zip(places[first:], positional[hidden + first:]):
            keywords.setdefault(name, value)
        del positional[hidden + first:]


def _rename(names: list[str], positional: list, keywords: dict, parameters: Mapping) -> None:
    for name in (*names, "*"):
        for theirs, ours in _RENAMED.get(name, {}).items():
            taken = ours in keywords or ours in [*parameters][:len(positional)]
            known = (ours == "*" or ours in parameters) and (name != "*" or theirs not in parameters)
            if theirs in keywords and known and not taken:
                value = keywords.pop(theirs)
                if ours != "*":
                    keywords[ours] = value
                elif value is not None:
                    positional.append(value)


def _leave(name: str, row: Idle, value) -> None:
    """Drop an argument: raise UnsupportedError if this value would have an effect."""
    if row.values is not ANY and not any(value is v or type(value) is type(v) and value == v
                                         or repr(value) == v or
                                         str(value).replace("flowedu.", "torch.") == v for v in row.values):
        known = " or ".join(str(v) for v in row.values)
        raise UnsupportedError(f"{name}: {row.argument} cannot be followed",
                               expected=f"{row.argument}={known}: {row.why}",
                               got=format_value(value), fix=row.fix)
