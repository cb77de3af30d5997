"""Laws of boxing: every route keeps the value, its bytes are those of the table and of its messages."""
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import refused
from flowedu.blob.spec import Spec
from flowedu.dist.boxing import COPY, PRIMITIVES, route
from flowedu.dist.choose import choose
from flowedu.dist.sbp import Layout, bounds, fits, local_shape, parts, pretty
from flowedu.errors import ArgumentError, JobBuildAndInferError

OPS = flow.ops.REGISTRY
SHAPES = [(6, 4), (5, 7), (4,), (7, 3, 5)]
ROWS = [(0,), (0, 1), (0, 1, 2), (2, 3), (1, 0), (1, 2, 3, 4), (3,)]


def layouts(shape, devices):
    return [Layout(s, devices) for s in ["B", "P", *(f"S{i}" for i in range(len(shape)))] if fits(s, shape, len(devices))]


def scatter(x, layout, rng):
    """The parts of x in a layout, by NumPy alone."""
    k = layout.k
    if layout.sbp == "B" or k == 1:
        return [x] * k
    if layout.sbp == "P":
        some = [rng.integers(-9, 9, x.shape).astype(x.dtype) for _ in range(k - 1)]
        return [*some, x - sum(some)]
    return np.array_split(x, k, axis=int(layout.sbp[1:]))


def gather(pieces, layout):
    if layout.sbp == "P" and layout.k > 1:
        return sum(pieces)
    if layout.sbp[0] == "S" and layout.k > 1:
        return np.concatenate(pieces, axis=int(layout.sbp[1:]))
    for p in pieces:
        np.testing.assert_array_equal(p, pieces[0])
    return pieces[0]


def boxed(x, src, dst, rng):
    given = [flow.tensor(p) for p in scatter(x, src, rng)]
    r = route(src, dst, Spec(x.shape, given[0].dtype))
    return r, [t.numpy() for t in r.run(given)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_scatter_box_gather_is_identity(shape):
    """All pairs of layouts, on one row of devices and from one row to another of any length, even and uneven."""
    rng = np.random.default_rng(0)
    x = rng.integers(-50, 50, shape).astype(np.float64)            # whole numbers: sums are exact
    for a, b in itertools.product(ROWS, ROWS):
        for src, dst in itertools.product(layouts(shape, a), layouts(shape, b)):
            r, got = boxed(x, src, dst, rng)
            want = [local_shape(dst.plain.sbp, shape, dst.k, i) for i in range(dst.k)]
            assert [g.shape for g in got] == want, r.describe()
            np.testing.assert_array_equal(gather(got, dst), x, err_msg=r.describe())
            assert r.bytes == sum(n for _, _, n in r.messages()), r.describe()
            assert all(p != q and p in {*a, *b} and q in {*a, *b} and n > 0 for p, q, n in r.messages())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_device_receives_what_it_lacks(shape):
    """Of values that are whole or split: counted element by element."""
    numbers = np.arange(np.prod(shape)).reshape(shape)

    def held(layout):
        return {d: set(p.ravel()) for d, p in zip(layout.devices, scatter(numbers, layout, None))}

    for a, b in itertools.product(ROWS, ROWS):
        for src, dst in itertools.product(layouts(shape, a), layouts(shape, b)):
            if "P" not in (src.plain.sbp, dst.plain.sbp):
                r, has, needs = route(src, dst, Spec(shape, flow.float64)), held(src), held(dst)
                for device, wanted in needs.items():
                    received = sum(n for _, to, n in r.messages() if to == device)
                    assert received == 8 * len(wanted - has.get(device, set())), r.describe()


@pytest.mark.parametrize("k", [2, 3, 4])
def test_bytes_are_those_of_the_table(k):
    row, spec = tuple(range(k)), Spec((6, 9, 5), flow.float32)
    n = 6 * 9 * 5 * 4
    at = lambda s: Layout(s, row)
    cost = lambda a, b: route(at(a), at(b), spec).bytes
    for s in ("B", "P", "S0", "S1"):
        assert cost(s, s) == 0
    assert cost("B", "S0") == cost("B", "P") == cost("S1", "P") == 0
    assert cost("S0", "B") == cost("P", "S1") == (k - 1) * n
    assert cost("P", "B") == 2 * (k - 1) * n
    stays = sum((b - a) * (d - c) * 5 * 4 for (a, b), (c, d) in zip(bounds(6, k), bounds(9, k)))
    assert cost("S0", "S1") == n - stays
    even = Spec((2 * k, 3 * k), flow.float64)
    assert route(at("S0"), at("S1"), even).bytes * k == (k - 1) * even.nbytes


def test_bytes_between_placements():
    spec, copy = Spec((4, 4), flow.float32), lambda a, b: route(Layout(*a), Layout(*b), spec)
    assert copy(("B", (0, 1)), ("B", (1,))).bytes == 0                       # it is there
    assert copy(("B", (0,)), ("B", (1, 2, 3))).bytes == 3 * 64
    assert copy(("S0", (0, 1)), ("B", (0,))).bytes == 32                     # half is there
    assert copy(("S0", (0, 1)), ("S0", (2, 3, 4, 5))).bytes == 64
    assert copy(("S0", (0, 1)), ("S1", (2, 3))).bytes == 64
    assert copy(("P", (0, 1)), ("P", (2, 3))).bytes == 2 * 64
    assert copy(("P", (0, 1)), ("B", (2,))).name == "reduce-scatter, copy"
    assert copy(("P", (0, 1)), ("B", (2,))).bytes == 64 + 64


def test_every_message_of_a_gather():
    r = route(Layout("S0", (0, 1, 2)), Layout("B", (0, 1, 2)), Spec((5, 2), flow.float32))
    assert sorted(r.messages()) == [(0, 1, 16), (0, 2, 16), (1, 0, 16), (1, 2, 16), (2, 0, 8), (2, 1, 8)]
    text = r.describe()
    assert "S(0) on 0-2 -> B on 0-2: all-gather, 80 bytes" in text and "device 2 sends 8 to 0, 8 to 1" in text


def test_a_primitive_is_used_where_it_belongs():
    spec, row = Spec((6, 6), flow.float32), (0, 1, 2)
    names = {(a, b): route(Layout(a, row), Layout(b, row), spec).name for a in ("B", "P", "S0", "S1")
             for b in ("B", "P", "S0", "S1")}
    assert names["B", "S1"] == "slice" and names["S0", "B"] == "all-gather" and names["S0", "S1"] == "all-to-all"
    assert names["P", "B"] == "all-reduce" and names["P", "S0"] == "reduce-scatter" and names["B", "P"] == "keep-first"
    assert names["S0", "P"] == "pad" and names["P", "P"] == "nothing"
    assert {p.name for p in PRIMITIVES} == {n for n in names.values() if n != "nothing"} | {COPY.name}


def test_empty_values_can_be_boxed():
    rng = np.random.default_rng(0)
    x = np.zeros((4, 0, 3))
    for src, dst in itertools.product(layouts(x.shape, (0, 1)), layouts(x.shape, (0, 1, 2))):
        _, got = boxed(x, src, dst, rng)
        np.testing.assert_array_equal(gather(got, dst), x)


@given(st.integers(0, 40), st.integers(1, 9))
def test_cuts_are_balanced(n, k):
    sizes = parts(n, k)
    assert sum(sizes) == n and len(sizes) == k and max(sizes) - min(sizes) <= 1
    assert list(sizes) == sorted(sizes, reverse=True) == [len(c) for c in np.array_split(np.arange(n), k)]
    assert bounds(n, k)[-1][1] == n


def test_a_split_must_leave_every_device_something():
    assert fits("S0", (3,), 3) and not fits("S0", (2,), 3) and not fits("S1", (9,), 2) and fits("P", (), 2)
    with refused(ArgumentError, "S(0)", "axis of 3"):
        route(Layout("B", (0, 1, 2)), Layout("S0", (0, 1, 2)), Spec((2, 9), flow.float32))
    with refused(ArgumentError, "not a layout"):
        route(Layout("S", (0, 1)), Layout("B", (0, 1)), Spec((2, 9), flow.float32))
    assert pretty("S12") == "S(12)"


# ---- choosing
ROW = (0, 1)


def chosen(name, shapes, present, hints=(), row=ROW, **attrs):
    op = OPS[name]
    specs = [Spec(s, flow.float32) for s in shapes]
    layouts = [[Layout(s, row) for s in p] for p in present]
    return choose(op, specs, op.complete(attrs), layouts, row, hints, "user_op", "f:1")


def signature(*args, **kwargs):
    return ",".join(chosen(*args, **kwargs).signature)


def test_rows_of_data_meet_whole_weights():
    assert signature("matmul", [(8, 4), (4, 6)], [["S0"], ["B"]]) == "S0,B,S0"
    assert signature("matmul", [(4, 8), (8, 6)], [["S1"], ["S0"]]) == "S1,S0,P"
    assert signature("matmul", [(8, 4), (4, 6)], [["B"], ["S1"]]) == "B,S1,S1"
    assert signature("matmul", [(8, 4), (4, 6)], [["P"], ["B"]]) == "P,B,P"
    assert signature("relu", [(8, 4)], [["P"]]) == "S0,S0"                   # cheaper than an all-reduce
    assert signature("relu", [(8, 4)], [["S1"]]) == "S1,S1"
    assert signature("relu", [(8, 4)], [["B"]]) == "B,B"                     # whole stays whole
    assert signature("constant", [], [], shape=(8,), value=1, dtype=flow.float32) == "B"
    assert signature("softmax", [(8, 4)], [["S1"]]) == "S0,S0"
    assert signature("add", [(8, 4), (8, 4)], [["P"], ["P"]]) == "P,P,P"
    assert signature("add", [(8, 4), (8, 4)], [["P"], ["S1"]]) == "S1,S1,S1"
    assert signature("concat", [(8, 4), (8, 4)], [["S0"], ["S1"]], axis=1) == "S0,S0,S0"


def test_a_partial_sum_is_not_rounded():
    """A cast of floats to integers is not linear, though casts between floats are."""
    assert signature("cast", [(8, 4)], [["P"]], dtype=flow.float64) == "P,P"
    assert signature("cast", [(8, 4)], [["P"]], dtype=flow.int32) == "S0,S0"


def test_uneven_cuts_must_meet():
    """(6, 2) and (12,) are cut alike on two devices; 5 rows of 2 are (3, 2) rows, but 10 numbers are (5, 5)."""
    assert signature("reshape", [(6, 2)], [["S0"]], shape=(12,)) == "S0,S0"
    c = chosen("reshape", [(5, 2)], [["S0"]], shape=(10,))
    assert c.signature == ("B", "B") and "uneven" in c.explain() and c.bytes == 40


def test_hints_choose_and_say_why_not():
    both = dict(shapes=[(8, 4), (4, 6)], present=[["S0"], ["B"]])
    assert signature("matmul", **both, hints=(None, "S1")) == "B,S1,S1"
    c = chosen("matmul", **both, hints=(None, "S1"))
    assert c.bytes == 8 * 4 * 4
    assert "-> a=B, b=S(1) -> y=S(1): 128 bytes" in c.explain() and "the hint says b=S(1)" in c.explain()
    with refused(JobBuildAndInferError, "user_op", "matmul", "a=S(0), b=S(1)", "b=S(1) goes with a=B, b=S(1) -> y=S(1)",
                 at=False) as r:
        chosen("matmul", **both, hints=("S0", "S1"))
    assert r.info.value.at == "f:1"
    with refused(JobBuildAndInferError, "x cannot be S(1) here", at=False):
        chosen("softmax", [(8, 4)], [["B"]], hints=("S1",))
    with refused(JobBuildAndInferError, "x cannot be S(0) here", "(1, 4)", at=False):
        chosen("relu", [(1, 4)], [["B"]], hints=("S0",))


@given(st.data())
def test_the_choice_is_the_cheapest_and_always_the_same(data):
    name, shapes, attrs = data.draw(st.sampled_from([
        ("matmul", [(4, 5), (5, 6)], {}), ("add", [(4, 6), (6,)], {}), ("mul", [(4, 6), (4, 6)], {}),
        ("softmax", [(4, 6)], {}), ("transpose", [(4, 6)], {"perm": (1, 0)}), ("sum", [(4, 6)], {"axis": (0,)})]))
    k = data.draw(st.integers(2, 4))
    row = tuple(range(k))
    present = [data.draw(st.lists(st.sampled_from([x.sbp for x in layouts(s, row)]), min_size=1, max_size=2, unique=True))
               for s in shapes]
    one = chosen(name, shapes, present, row=row, **attrs)
    two = chosen(name, shapes, present, row=row, **attrs)
    assert one.signature == two.signature and one.explain() == two.explain()
    for c in one.candidates:
        assert c.fault or c.bytes >= one.bytes
    again = sum(min(route(Layout(p, row), Layout(s, row), Spec(shape, flow.float32)).bytes for p in have)
                for s, shape, have in zip(one.signature, shapes, present))
    assert one.bytes == again
