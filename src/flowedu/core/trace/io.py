"""What goes into a graph's build and what comes out: nested containers of tensors, each leaf with a name.

The name is OneFlow's: the way to the leaf from the root (arguments, keyword arguments), then its number in depth-first
order, or its key where a dict holds it: `_G_0_input.0.1_3` is the second argument of graph G_0.
"""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import count

from flowedu.core.eager.tensor import Tensor
from flowedu.errors import UnsupportedError


def map_leaves(prefix: str, args: tuple, kwargs: dict, f: Callable) -> tuple[tuple, dict]:
    """(args, kwargs) with every leaf replaced by f(name, leaf); containers keep their types."""
    numbers = count()
    next(numbers)                                                       # 0: the root

    def walk(x, path: str, key: str | None):
        number = next(numbers)
        children = _children(x)
        if children is None:
            return f(f"{prefix}{path}_{number if key is None else key}", x)
        return _rebuilt(x, [walk(v, f"{path}.{i}", k) for i, (k, v) in enumerate(children)])

    new_args = walk(tuple(args), ".0", None)
    return new_args, walk(dict(kwargs), ".1", None) if kwargs else {}


def leaves(prefix: str, args: tuple, kwargs: dict) -> list[tuple[str, object]]:
    """[(name, leaf)] in depth-first order."""
    found: list[tuple[str, object]] = []
    map_leaves(prefix, args, kwargs, lambda name, x: found.append((name, x)))
    return found


def _children(x) -> list[tuple[str | None, object]] | None:
    """[(key or None, child)] of a container; None: a leaf."""
    if isinstance(x, dict):
        return [(str(k), v) for k, v in x.items()]
    if isinstance(x, (list, tuple)):
        return [(None, v) for v in x]
    return None


def _rebuilt(x, children: list):
    if isinstance(x, dict):
        pairs = zip(x, children)
        return OrderedDict(pairs) if isinstance(x, OrderedDict) else dict(pairs)
    if hasattr(x, "_fields"):                                           # a namedtuple
        return type(x)(*children)
    return list(children) if isinstance(x, list) else tuple(children)


def check_leaf(graph, kind: str, name: str, x) -> None:
    """Tensors and None may go in and out of build. Raises UnsupportedError (a NotImplementedError)."""
    if x is not None and not isinstance(x, Tensor):
        print(f"[ERROR]({kind}:{name}:{type(x)})")
        remedy = "return tensors, and compute the rest from them after the call; a constant: flow.tensor(value)"
        if kind == "INPUT":
            remedy = f"make it an attribute in {graph.class_name}.__init__, or pass flow.tensor(value)"
        raise UnsupportedError(f"nn.Graph.build()'s {kind.lower()} item only supports types: Tensor/None",
                               got=f"{name} of type {type(x).__name__}", expected="a Tensor, None, or lists, tuples and "
                               "dicts of them", fix=remedy)
