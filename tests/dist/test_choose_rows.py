"""Choices on a row of devices: split data with broadcast weights; hints; the cheapest signature,
deterministically.
"""
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import refused
from flowedu.core.sbp.boxing import route
from flowedu.core.sbp.choose import choose
from flowedu.core.sbp.sbp import layout
from flowedu.core.values.spec import Spec
from flowedu.errors import JobBuildAndInferError

from .boxing_common import layouts

OPS = flow.ops.REGISTRY
ROW = (0, 1)


def choose_layouts(name, shapes, present, hints=(), row=ROW, **attrs):
    op = OPS[name]
    specs = [Spec(s, flow.float32) for s in shapes]
    lie = [[layout(s, row) for s in p] for p in present]
    return choose(op, specs, op.complete(attrs), lie, row, (len(row),), hints=hints, name="user_op",
                  line="f:1")


def signature(*args, **kwargs):
    return ",".join(s for s, in choose_layouts(*args, **kwargs).signature)


def test_split_data_with_broadcast_weights():
    assert signature("matmul", [(8, 4), (4, 6)], [["S0"], ["B"]]) == "S0,B,S0"
    assert signature("matmul", [(4, 8), (8, 6)], [["S1"], ["S0"]]) == "S1,S0,P"
    assert signature("matmul", [(8, 4), (4, 6)], [["B"], ["S1"]]) == "B,S1,S1"
    assert signature("matmul", [(8, 4), (4, 6)], [["P"], ["B"]]) == "P,B,P"
    assert signature("relu", [(8, 4)], [["P"]]) == "S0,S0"                   # cheaper than an all-reduce
    assert signature("relu", [(8, 4)], [["S1"]]) == "S1,S1"
    assert signature("relu", [(8, 4)], [["B"]]) == "B,B"                     # broadcast stays broadcast
    assert signature("constant", [], [], shape=(8,), value=1, dtype=flow.float32) == "B"
    assert signature("softmax", [(8, 4)], [["S1"]]) == "S0,S0"
    assert signature("add", [(8, 4), (8, 4)], [["P"], ["P"]]) == "P,P,P"
    assert signature("add", [(8, 4), (8, 4)], [["P"], ["S1"]]) == "S1,S1,S1"
    assert signature("concat", [(8, 4), (8, 4)], [["S0"], ["S1"]], axis=1) == "S0,S0,S0"


def test_a_partial_sum_is_not_cast_to_integers():
    """A cast from floats to integers is not linear, unlike casts between floats."""
    assert signature("cast", [(8, 4)], [["P"]], dtype=flow.float64) == "P,P"
    assert signature("cast", [(8, 4)], [["P"]], dtype=flow.int32) == "S0,S0"


def test_uneven_splits_must_match():
    """(6, 2) and (12,) are split equally on two devices; 5 rows of 2 are split into (3, 2) rows, but 10
    elements into (5, 5).
    """
    assert signature("reshape", [(6, 2)], [["S0"]], shape=(12,)) == "S0,S0"
    c = choose_layouts("reshape", [(5, 2)], [["S0"]], shape=(10,))
    assert c.signature == (("B",), ("B",)) and "uneven" in c.explain() and c.bytes == 40


def test_hints_decide_or_raise_with_a_reason():
    both = dict(shapes=[(8, 4), (4, 6)], present=[["S0"], ["B"]])
    assert signature("matmul", **both, hints=(None, "S1")) == "B,S1,S1"
    c = choose_layouts("matmul", **both, hints=(None, "S1"))
    assert c.bytes == 8 * 4 * 4
    assert "-> a=B, b=S(1) -> y=S(1): 128 bytes" in c.explain() and "the hint says b=S(1)" in c.explain()
    with refused(JobBuildAndInferError, "user_op", "matmul", "a=S(0), b=S(1)",
                 "b=S(1) goes with a=B, b=S(1) -> y=S(1)", at=False) as r:
        choose_layouts("matmul", **both, hints=("S0", "S1"))
    assert r.info.value.at == "f:1"
    with refused(JobBuildAndInferError, "x cannot be S(1) here", at=False):
        choose_layouts("softmax", [(8, 4)], [["B"]], hints=("S1",))
    with refused(JobBuildAndInferError, "x cannot be S(0) here", "(1, 4)", at=False):
        choose_layouts("relu", [(1, 4)], [["B"]], hints=("S0",))


@given(st.data())
def test_the_choice_is_the_cheapest_and_deterministic(data):
    name, shapes, attrs = data.draw(st.sampled_from([
        ("matmul", [(4, 5), (5, 6)], {}), ("add", [(4, 6), (6,)], {}), ("mul", [(4, 6), (4, 6)], {}),
        ("softmax", [(4, 6)], {}), ("transpose", [(4, 6)], {"perm": (1, 0)}),
        ("sum", [(4, 6)], {"axis": (0,)})]))
    k = data.draw(st.integers(2, 4))
    row = tuple(range(k))
    texts = [[x.sbp[0] for x in layouts(s, row, (k,), ("P",))] for s in shapes]
    present = [data.draw(st.lists(st.sampled_from(t), min_size=1, max_size=2, unique=True)) for t in texts]
    one = choose_layouts(name, shapes, present, row=row, **attrs)
    two = choose_layouts(name, shapes, present, row=row, **attrs)
    assert one.signature == two.signature and one.explain() == two.explain()
    for c in one.candidates:
        assert c.fault or c.bytes >= one.bytes
    again = sum(min(route(layout(p, row), layout(s, row), Spec(shape, flow.float32)).bytes for p in have)
                for s, shape, have in zip(one.signature, shapes, present))
    assert one.bytes == again
