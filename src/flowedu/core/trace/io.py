"""Inputs and outputs of `build`: nested containers of tensors, in which each leaf has a name.

OneFlow forms the name from the path of the leaf in (args, kwargs), and its key in a dict or else
its index in depth-first order. `_G_0_input.0.1_3` is the second argument of graph G_0.
"""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.errors import graphs as errors


def map_leaves(prefix: str, args: tuple, kwargs: dict, f: Callable) -> tuple[tuple, dict]:
    """Return (args, kwargs) with f(name, leaf) in place of each leaf, in the same containers."""
    numbers = count()
    next(numbers)                                                       # 0: the root

    def walk(x: Any, path: str, key: str | None) -> Any:
        number = next(numbers)
        children = _children(x)
        if children is None:
            return f(f"{prefix}{path}_{number if key is None else key}", x)
        return _rebuild(x, [walk(v, f"{path}.{i}", k) for i, (k, v) in enumerate(children)])

    new_args = walk(tuple(args), ".0", None)
    return new_args, walk(dict(kwargs), ".1", None) if kwargs else {}


def leaves(prefix: str, args: tuple, kwargs: dict) -> list[tuple[str, object]]:
    """Return [(name, leaf)] in depth-first order."""
    pairs: list[tuple[str, object]] = []
    map_leaves(prefix, args, kwargs, lambda name, x: pairs.append((name, x)))
    return pairs


def _children(x: object) -> list[tuple[str | None, object]] | None:
    """Return [(key or None, child)] of a container, or None for a leaf."""
    if isinstance(x, dict):
        return [(str(k), v) for k, v in x.items()]
    if isinstance(x, (list, tuple)):
        return [(None, v) for v in x]
    return None


def _rebuild(x: dict | list | tuple, children: list) -> dict | list | tuple:
    if isinstance(x, dict):
        pairs = zip(x, children)
        return OrderedDict(pairs) if isinstance(x, OrderedDict) else dict(pairs)
    if hasattr(x, "_fields"):                                           # a namedtuple
        return type(x)(*children)
    return list(children) if isinstance(x, list) else tuple(children)


def check_leaf(graph: Any, kind: str, name: str, x: object) -> None:
    """Raise UnsupportedError (a NotImplementedError) unless `x` is a tensor or None."""
    if x is not None and not isinstance(x, Tensor):
        print(f"[ERROR]({kind}:{name}:{type(x)})")
        raise errors.unsupported_item(graph.class_name, kind, name, x)
