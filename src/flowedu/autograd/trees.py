"""Flattening and unflattening of nested tuples, lists, and dicts of tensors."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


def leaves(tree: Any) -> list:
    """Return the elements that are not tuples, lists, or dicts, from left to right."""
    if isinstance(tree, dict):
        return [x for value in tree.values() for x in leaves(value)]
    return [x for part in tree for x in leaves(part)] if isinstance(tree, (tuple, list)) else [tree]


def mapped(f: Callable, tree: Any) -> Any:
    """Return the same tree with f(leaf) for each leaf."""
    if isinstance(tree, dict):
        return type(tree)((key, mapped(f, value)) for key, value in tree.items())
    if isinstance(tree, (tuple, list)):
        parts = [mapped(f, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return f(tree)


def rebuilt(tree: Any, values: list) -> Any:
    """Return the same tree with other leaves, in the given order."""
    rest = iter(values)
    return mapped(lambda _: next(rest), tree)


def spread(prefix: Any, tree: Any) -> list | None:
    """Return the value of `prefix` for each leaf of `tree`, or None if `prefix` does not match.

    `prefix` is a truncated tree, in which a leaf applies to all leaves below its position.
    """
    if isinstance(prefix, dict) and isinstance(tree, dict) and prefix.keys() == tree.keys():
        parts: list[Any] = [spread(prefix[key], value) for key, value in tree.items()]
    elif isinstance(prefix, (tuple, list)) and isinstance(tree, (tuple, list)) and len(prefix) == len(tree):
        parts = [*map(spread, prefix, tree)]
    elif isinstance(prefix, (dict, tuple, list)):
        return None
    else:
        return [prefix] * len(leaves(tree))
    return None if None in parts else [x for part in parts for x in part]
