"""torch.utils._pytree: a tree is split into leaves and structure and restored from them."""
import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowedu.mock.insides import pytree as ours

Pair = namedtuple("Pair", "a b")
leaf = st.one_of(st.none(), st.integers(), st.text(max_size=2), st.booleans())
keys = st.text("xyz", min_size=1, max_size=2)


def grown(part):
    named = st.dictionaries(keys, part, max_size=3)
    return st.one_of(st.lists(part, max_size=3), st.lists(part, max_size=3).map(tuple), named,
                     named.map(OrderedDict),
                     named.map(lambda d: defaultdict(list, d)), st.builds(Pair, part, part),
                     st.lists(part, max_size=3).map(lambda x: deque(x, 4)))


trees = st.recursive(leaf, grown, max_leaves=8)


def walked(tree) -> list:
    """Return the leaves by recursion."""
    if isinstance(tree, (list, tuple, deque)):
        return [x for part in tree for x in walked(part)]
    return [x for part in tree.values() for x in walked(part)] if isinstance(tree, dict) else [tree]


@given(trees, trees)
def test_a_tree_round_trips(tree, other):
    leaves, spec = ours.tree_flatten(tree)
    again = spec.unflatten(leaves)
    assert leaves == walked(tree) == ours.tree_leaves(tree) and again == tree and repr(again) == repr(tree)
    assert spec.num_leaves == len(leaves) and spec == ours.tree_structure(ours.tree_map(lambda x: 0, tree))
    assert walked(ours.tree_map(lambda x, y: f"{x}{y}", tree, tree)) == [f"{x}{x}" for x in leaves]
    assert ours.tree_map_only(str, str.upper, tree) == ours.tree_map(lambda x: x.upper() if type(x) is str
                                                                     else x, tree)
    assert ours.tree_any(lambda x: x is None, tree) == (None in leaves)
    assert ours.tree_all(lambda x: x is not None, tree) == (None not in leaves)
    if ours.tree_structure(other) != spec:
        with pytest.raises(ValueError, match="different forms"):
            ours.tree_map(min, tree, other)
    with pytest.raises(ValueError, match="number of leaves"):
        ours.tree_unflatten([*leaves, 1], spec)
    cut = ours.tree_flatten(tree, is_leaf=lambda x: isinstance(x, list))[0]
    assert walked(cut) == leaves and ours.tree_leaves([tree, 3], is_leaf=lambda x: True) == [[tree, 3]]


def test_custom_types():
    class Box:
        def __init__(self, *inside):
            self.inside = inside

    class Shape(tuple):
        """Not a container, because it is not registered."""

    assert ours.tree_leaves(Box(1)) != [1] and ours.tree_leaves([Shape((1, 2))]) == [(1, 2)]
    try:
        ours.register_pytree_node(Box, lambda b: (b.inside, "c"), lambda parts, c: Box(*parts))
        assert ours.tree_map(lambda x: x + 1, [Box(1, (2,))])[0].inside == (2, (3,))
        with pytest.raises(ValueError, match="registered already"):
            ours.register_pytree_node(Box, lambda b: (b.inside, "c"), lambda parts, c: Box(*parts))
    finally:
        ours._NODES.pop(Box, None)


@pytest.mark.torch
@given(trees, trees)
def test_traversal_matches_pytorch(tree, other):
    pytest.importorskip("torch")
    theirs = importlib.import_module("torch.utils._pytree")
    leaves, spec = theirs.tree_flatten(tree)
    assert leaves == ours.tree_leaves(tree) and spec.num_leaves == len(leaves)
    assert (spec == theirs.tree_structure(other)) == (ours.tree_structure(tree) == ours.tree_structure(other))
