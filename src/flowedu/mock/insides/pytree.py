"""utils._pytree: flattens nested containers into leaves, and rebuilds them from leaves.

Containers are instances of registered types (not of subclasses): list, tuple, dicts, deque, namedtuples.
None is a leaf.
"""
from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from flowedu.errors import ArgumentError, CallError

# container type: (flatten: x -> (parts, context), unflatten: (parts, context) -> x)
_NODES: dict[type, tuple[Callable[[Any], tuple], Callable[[Iterable, Any], Any]]] = {
    list: (lambda x: (x, None), lambda parts, _: [*parts]),
    tuple: (lambda x: (x, None), lambda parts, _: (*parts,)),
    dict: (lambda x: (x.values(), [*x]), lambda parts, keys: dict(zip(keys, parts))),
    OrderedDict: (lambda x: (x.values(), [*x]), lambda parts, keys: OrderedDict(zip(keys, parts))),
    defaultdict: (lambda x: (x.values(), [x.default_factory, [*x]]),
                  lambda parts, c: defaultdict(c[0], zip(c[1], parts))),
    deque: (lambda x: (x, x.maxlen), lambda parts, length: deque(parts, length)),
}
_NAMED = (lambda x: (x, type(x)), lambda parts, kind: kind(*parts))


def register_pytree_node(cls: type, flatten_fn: Callable, unflatten_fn: Callable, **others) -> None:
    """Register a container type: flatten_fn(x) -> (parts, context), unflatten_fn(parts, context) -> x."""
    if cls in _NODES:
        raise ArgumentError(f"{cls.__name__} is registered already", got=repr(cls), fix="leave this call out")
    _NODES[cls] = flatten_fn, unflatten_fn


def _node(tree: Any, is_leaf: Callable[[Any], bool] | None) -> tuple | None:
    if is_leaf is not None and is_leaf(tree):
        return None
    return (_NODES.get(type(tree)) or (_NAMED if isinstance(tree, tuple) and hasattr(tree, "_fields")
                                       else None))


class TreeSpec(NamedTuple):
    """Structure of a tree, without its leaves. type: None for a leaf."""

    type: type | None
    context: Any
    children: list[TreeSpec]

    @property
    def num_leaves(self) -> int:
        return 1 if self.type is None else sum(child.num_leaves for child in self.children)

    def is_leaf(self) -> bool:
        return self.type is None

    def unflatten(self, leaves: Iterable) -> Any:
        return tree_unflatten(leaves, self)


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list, TreeSpec]:
    """Return (leaves from left to right, structure of the tree)."""
    node = _node(tree, is_leaf)
    if node is None:
        return [tree], TreeSpec(None, None, [])
    parts, context = node[0](tree)
    both = [tree_flatten(part, is_leaf) for part in parts]
    return ([x for leaves, _ in both for x in leaves], TreeSpec(type(tree), context,
                                                                [spec for _, spec in both]))


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> Any:
    """Build a tree with these leaves. Raise ArgumentError (a ValueError) if their number is wrong."""
    if not isinstance(treespec, TreeSpec):
        raise CallError("tree_unflatten: no TreeSpec", expected="what tree_flatten gave",
                        got=type(treespec).__name__)
    leaves = [*leaves]
    if len(leaves) != treespec.num_leaves:
        raise ArgumentError("tree_unflatten: another number of leaves", expected=str(treespec.num_leaves),
                            got=str(len(leaves)))
    return _build(iter(leaves), treespec)


def _build(leaves: Iterator, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    unflatten = (_NODES.get(spec.type) or _NAMED)[1]
    return unflatten([_build(leaves, child) for child in spec.children], spec.context)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list:
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Apply func to each leaf, with the matching leaves of other trees of the same structure."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_flatten(rest, is_leaf) for rest in rests]
    if any(other != spec for _, other in others):
        raise ArgumentError("tree_map: the trees have different forms", expected=str(spec),
                            got=str([o for _, o in others]))
    return _build(map(func, leaves, *(more for more, _ in others)), spec)


def tree_map_only(kinds: type | tuple, func: Callable, tree: Any,
                  is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Apply func to the leaves of some types."""
    return tree_map(lambda x: func(x) if isinstance(x, kinds) else x, tree, is_leaf=is_leaf)


def tree_all(pred: Callable, tree: Any) -> bool:
    return all(map(pred, tree_leaves(tree)))


def tree_any(pred: Callable, tree: Any) -> bool:
    return any(map(pred, tree_leaves(tree)))
