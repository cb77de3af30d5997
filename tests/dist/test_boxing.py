"""Laws of boxing: every route keeps the value; its bytes are the sum of its messages and within the table's
limit; running all parts at once (`run`) equals running rank by rank over a communicator (`perform`).
"""
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import refused
from flowedu.core.sbp import ranks
from flowedu.core.sbp.boxing import geometry, inops, route
from flowedu.core.sbp.boxing.algebra import ANY
from flowedu.core.sbp.boxing.primitives import DIRECT, stops
from flowedu.core.sbp.sbp import fits, layout, pretty
from flowedu.core.values.place import bounds, parts
from flowedu.core.values.spec import Spec
from flowedu.distributed import perform
from flowedu.distributed.ranks.workers import VirtualEngine
from flowedu.errors import ArgumentError

from .boxing_common import bound, draw_integers, gather, layout_pairs, layouts, scatter

ROW, GRID = (0, 1), ((0, 1, 2, 3), (2, 2))


def performed(r, given, engine=VirtualEngine):
    """Return each rank's part, computed by one thread per rank."""
    have = dict(zip(r.src.devices, given))
    both = sorted({*r.src.devices, *r.dst.devices})
    made = engine(8).run({d: (lambda comm, d=d: r.perform(comm, have.get(d))) for d in both})
    assert all((made[d] is None) == (d not in r.dst.devices) for d in both)
    return [made[d] for d in r.dst.devices]


def assert_boxing_keeps_value(shape, src, dst, dtype=np.float64, seed=0):
    """Check the law for one pair."""
    x, rng = draw_integers(shape, dtype, seed), np.random.default_rng(seed)
    given = scatter(x, src, rng)
    np.testing.assert_array_equal(gather(given, src), x)             # the test's own scatter and gather
    before = [p.copy() for p in given]
    tensors = [flow.tensor(p) for p in given]
    spec = Spec(shape, tensors[0].dtype)
    r = route(src, dst, spec)
    at_once = [t.numpy() for t in r.run(tensors)]
    by_rank = performed(r, given)
    # core's own engine: the last rank to arrive computes for all
    meeting = performed(r, given, ranks.VirtualEngine)
    for got in (at_once, by_rank, meeting):
        assert [g.shape for g in got] == [dst.local_shape(shape, i) for i in range(dst.k)], r.describe()
        assert all(g.dtype == x.dtype for g in got)
        np.testing.assert_array_equal(gather(got, dst), x, err_msg=r.describe())
    if not dst.partial:
        for *made, want in zip(at_once, by_rank, meeting, scatter(x, dst, rng)):
            for a in made:
                np.testing.assert_array_equal(a, want)
    for p, q in zip(given, before):
        np.testing.assert_array_equal(p, q)                          # the input is not changed
    if r.hops:
        assert not any(np.shares_memory(a, b) for a in by_rank + meeting for b in given), r.describe()
    assert r.bytes == sum(n for _, _, n in r.messages()) <= bound(shape, src, dst, x.itemsize), r.describe()
    known = {*src.devices, *dst.devices}
    assert all(a != b and {a, b} <= known and n > 0 for a, b, n in r.messages())
    return r


@given(layout_pairs(), st.integers(0, 9))
def test_scatter_box_gather_is_identity(pair, seed):
    assert_boxing_keeps_value(*pair, seed=seed)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_boxing_between_all_layouts_of_a_row_keeps_the_value(k):
    for shape in ((5, 4), (7,)):
        at = layouts(shape, tuple(range(k)), (k,))
        for src, dst in itertools.product(at, at):
            assert_boxing_keeps_value(shape, src, dst)


def test_boxing_between_all_sums_of_a_grid_keeps_the_value():
    """Even and uneven splits, and to a row of the same devices and back."""
    at = layouts((5, 4), *GRID, partial=("P",))
    row = layouts((5, 4), GRID[0], (4,), partial=("P",))
    for src, dst in [*itertools.product(at, at), *itertools.product(at, row), *itertools.product(row, at)]:
        assert_boxing_keeps_value((5, 4), src, dst, np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.uint8, np.int8, np.bool_],
                         ids=lambda t: t.__name__)
def test_boxing_keeps_values_of_every_dtype(dtype):
    for a, b in itertools.product(["B", "S0", "Pmax", "Pmin"], repeat=2):
        if {a, b} == {"Pmax", "Pmin"} or dtype in (np.uint8, np.int8, np.bool_) and a[0] == "P":
            continue                                                  # the test's own parts would overflow
        x = draw_integers((4, 3), dtype)
        r = route(layout(a, ROW), layout(b, ROW), Spec(x.shape, flow.tensor(x).dtype))
        given = scatter(x, r.src, np.random.default_rng(0))
        for got in ([t.numpy() for t in r.run([flow.tensor(p) for p in given])], performed(r, given)):
            np.testing.assert_array_equal(gather(got, r.dst), x)


def test_boxing_keeps_empty_values_and_scalars():
    for src, dst in itertools.product(layouts((4, 0, 3), ROW, (2,)), layouts((4, 0, 3), (0, 1, 2), (3,))):
        if not (src.partial and src.reducer != "sum") and not (dst.partial and dst.reducer != "sum"):
            assert_boxing_keeps_value((4, 0, 3), src, dst)
    for src, dst in itertools.product(layouts((), *GRID), layouts((), (2, 3, 5), (3,))):
        assert_boxing_keeps_value((), src, dst)


# ---- bytes
@given(layout_pairs())
def test_every_device_receives_exactly_the_missing_elements(pair):
    """For whole or split values, counted element by element."""
    shape, src, dst = pair
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)

    def held(at):
        return {d: set(p.ravel()) for d, p in zip(at.devices, scatter(numbers, at, None))}

    if not (src.partial or dst.partial):
        r, has, needs = route(src, dst, Spec(shape, flow.float64)), held(src), held(dst)
        for device, wanted in needs.items():
            received = sum(n for _, to, n in r.messages() if to == device)
            assert received == 8 * len(wanted - has.get(device, set())), r.describe()


@pytest.mark.parametrize("k", [2, 3, 4])
def test_bytes_equal_the_table(k):
    row, spec = tuple(range(k)), Spec((6, 9, 5), flow.float32)
    n = 6 * 9 * 5 * 4

    def at(s):
        return layout(s, row)

    def cost(a, b):
        return route(at(a), at(b), spec).bytes

    for s in ("B", "P", "S0", "S1", "Pmax"):
        assert cost(s, s) == 0
    assert cost("B", "S0") == cost("B", "P") == cost("S1", "P") == cost("B", "Pmin") == 0
    assert cost("S0", "B") == cost("P", "S1") == cost("Pmax", "S1") == (k - 1) * n
    assert cost("P", "B") == cost("Pmin", "B") == 2 * (k - 1) * n
    assert cost("P", "Pmax") == (k - 1) * n
    stays = sum((b - a) * (d - c) * 5 * 4 for (a, b), (c, d) in zip(bounds(6, k), bounds(9, k)))
    assert cost("S0", "S1") == n - stays
    even = Spec((2 * k, 3 * k), flow.float64)
    assert route(at("S0"), at("S1"), even).bytes * k == (k - 1) * even.nbytes


def test_bytes_between_placements():
    spec = Spec((4, 4), flow.float32)

    def way(a, b):
        return route(layout(*a), layout(*b), spec)

    assert way(("B", (0, 1)), ("B", (1,))).bytes == 0                        # already on the device
    assert way(("B", (0,)), ("B", (1, 2, 3))).bytes == 3 * 64
    assert way(("S0", (0, 1)), ("B", (0,))).bytes == 32                      # half is already on the device
    assert way(("S0", (0, 1)), ("S0", (2, 3, 4, 5))).bytes == 64
    assert way(("S0", (0, 1)), ("S1", (2, 3))).bytes == 64
    assert way(("P", (0, 1)), ("P", (2, 3))).bytes == 2 * 64
    assert way(("P", (0, 1)), ("P", (1, 2))).bytes == 64                     # device 1 adds both
    assert way(("P", (0, 1)), ("B", (2,))).bytes == 64 + 64
    assert way(("P", (0, 1)), ("B", (0,))).bytes == 64
    assert way(("S0", (0, 1)), ("P", (1, 2))).bytes == 32
    # each keeps half of its own part
    assert route(layout("B", (0, 3)), layout(("P", "S0"), *GRID), spec).bytes == 0
    assert way(("B", (3,)), ("P", (0, 1))).bytes == 64  # one of them gets the value, the others zeros


def test_the_cheapest_route_on_a_grid():
    t, spec = 64, Spec((4, 4), flow.float32)

    def cost(a, b):
        return route(layout(a, *GRID), layout(b, *GRID), spec)

    assert cost(("P", "P"), ("B", "B")).bytes == 6 * t  # one all-reduce of four, not two of two (8 t)
    assert cost(("P", "P"), ("B", "B")).name == "all-reduce"
    assert cost(("P", "B"), ("B", "B")).bytes == 4 * t                       # two all-reduces of two
    assert cost(("P", "P"), ("B", "P")).bytes == 4 * t
    assert cost(("P", "S0"), ("B", "S0")).bytes == 2 * t
    assert cost(("P", "P"), ("S0", "B")).bytes == 4 * t  # 3 t for the sum, t for the copies
    assert cost(("S0", "S1"), ("B", "S1")).bytes == t                        # each device needs a quarter
    assert cost(("S0", "B"), ("S0", "S1")).bytes == cost(("S0", "S1"), ("P", "P")).bytes == 0
    assert cost(("S0", "S1"), ("S1", "S0")).bytes == t // 2  # the devices on the diagonal keep theirs
    wide = tuple(range(16)), (4, 4)  # copies of an addend share the work
    r = route(layout(("P", "B"), *wide), layout(("B", "B"), *wide), Spec((16, 4), flow.float32))
    assert r.bytes == 18 * 256 and r.name == "reduce-scatter, all-gather"


def test_every_message_of_a_gather():
    r = route(layout("S0", (0, 1, 2)), layout("B", (0, 1, 2)), Spec((5, 2), flow.float32))
    assert sorted(r.messages()) == [(0, 1, 16), (0, 2, 16), (1, 0, 16), (1, 2, 16), (2, 0, 8), (2, 1, 8)]
    text = r.describe()
    assert "S(0) on 0-2 -> B on 0-2: all-gather, 80 bytes" in text and "device 2 sends 8 to 0, 8 to 1" in text


def test_senders_with_copies_are_balanced():
    """Any device with a copy may send it; none sends much more than another."""
    r = route(layout("B", (0, 1, 2)), layout("S0", (3, 4, 5)), Spec((6, 2), flow.float32))
    assert r.messages() == [(0, 5, 16), (1, 4, 16), (2, 3, 16)]
    r = route(layout(("S0", "B"), *GRID), layout("B", (4, 5)), Spec((4,), flow.float32))
    assert {a: n for a, _, n in r.messages()} == dict.fromkeys(range(4), 8)


# ---- names, descriptions
def test_hops_are_named_after_collectives():
    spec, row = Spec((6, 6), flow.float32), (0, 1, 2)

    def name(a, b):
        return route(layout(a, row), layout(b, row), spec).name

    assert name("B", "S1") == "slice" and name("S0", "B") == "all-gather" and name("S0", "S1") == "all-to-all"
    assert (name("P", "B") == "all-reduce" and name("P", "S0") == "reduce-scatter"
            and name("B", "P") == "keep-first")
    assert name("S0", "P") == "pad" and name("P", "P") == "nothing" and name("B", "Pmax") == "keep-all"
    assert name("P", "Pmax") == "reduce-scatter, pad"

    def way(a, b):
        return route(layout(*a), layout(*b), spec).name

    assert way(("B", (0,)), ("B", (0, 1, 2))) == "broadcast" and way(("P", (0, 1)), ("B", (1,))) == "reduce"
    assert way(("S0", (0, 1)), ("B", (0,))) == "copy" and way(("B", (0, 1)), ("B", (1,))) == "keep"


def test_equivalent_layouts_are_equal():
    """(B, B) on 2x2 is B on four devices; two grid axes that split one tensor axis evenly are one split."""
    spec = Spec((8, 4), flow.float32)
    for grid, row in [(("B", "B"), "B"), (("P", "P"), "P"), (("S0", "S0"), "S0")]:
        assert route(layout(grid, *GRID), layout(row, GRID[0]), spec).name == "nothing"
    uneven = route(layout(("S0", "S0"), *GRID), layout("S0", GRID[0]), Spec((6, 4), flow.float32))
    assert uneven.bytes == 16  # rows 2, 1, 2, 1 become 2, 2, 1, 1
    assert route(layout(("S0", "B"), (0, 1), (2, 1)), layout("S0", (0, 1)), spec).name == "nothing"
    r = route(layout("S0", (0, 1)), layout("S0", (1, 0)), spec)
    assert r.bytes == spec.nbytes                                            # another order is another layout
    b = route(layout("B", (0, 1)), layout("B", (1, 0)), spec)
    assert b.name == "nothing" and b.run(("a", "b")) == ("b", "a")


def test_a_route_describes_itself():
    spec = Spec((4, 4), flow.float32)
    text = route(layout(("P", "S0"), *GRID), layout(("B", "B"), *GRID), spec).describe()
    assert "(P, S(0)) on 0-3 (2x2) -> (B, B) on 0-3 (2x2)" in text and "256 bytes" in text, text


@given(layout_pairs())
def test_the_route_is_the_cheapest_and_deterministic(pair):
    """Cheapest of all routes of one or two hops, with no route pruned by cost here."""
    shape, src, dst = pair
    spec = Spec(shape, flow.float32)
    one = route(src, dst, spec)
    route.cache_clear()
    two = route(src, dst, spec)
    assert one.describe() == two.describe() and one.messages() == two.messages()
    for m in stops(src, dst, spec):
        a, b = DIRECT.best(src, m, spec, ANY), DIRECT.best(m, dst, spec, ANY)
        assert (a is None or b is None or a.bytes + b.bytes >= one.bytes), (one.describe(), a.describe(),
                                                                            b.describe())


GRIDS = [((0, 1, 2, 3), (2, 2)), ((1, 2, 4, 5), (2, 2)), ((0, 1, 2, 3, 4, 5), (2, 3)),
         (tuple(range(8)), (2, 2, 2))]


@given(layout_pairs(GRIDS))
def test_no_route_of_three_hops_is_cheaper(pair):
    """Compares the route with all routes of up to three hops through the layouts of both grids, including
    partial ones.
    """
    shape, src, dst = pair
    shape, cut = shape[:2], lambda at: at._replace(sbp=tuple("B" if s == "S2" else s for s in at.sbp))
    src, dst = cut(src), cut(dst)
    spec = Spec(shape, flow.float32)
    kind = next((s for at in (src, dst) for s in at.sbp if s[0] == "P"), "P")
    middles = dict.fromkeys(m for at in (src, dst) for m in layouts(shape, at.devices, at.hierarchy, (kind,)))

    def cost(a, b):
        hop = DIRECT.best(a, b, spec, ANY)
        return ANY if hop is None else hop.bytes

    least = route(src, dst, spec).bytes
    first = {m: c for m in middles if (c := cost(src, m)) < least}
    last = {m: c for m in middles if (c := cost(m, dst)) < least}
    for m, n in itertools.product(first, last):
        if first[m] + last[n] < least:                       # a hop between them could still be free
            assert first[m] + cost(m, n) + last[n] >= least, (str(src), str(dst), str(m), str(n))


@pytest.mark.parametrize("shape, grid, src, dst, elements", [
    ((6,), (2, 2), ("P", "P"), ("B", "S0"), 24),  # (P, S0) first: 12, and 12 to reduce and copy that
    ((8, 8), (2, 2, 2), ("P", "B", "P"), ("B", "S0", "S1"), 256),
    ((8, 8), (2, 2, 2), ("P", "P", "S0"), ("B", "S1", "B"), 384),
])
def test_a_sum_is_reduced_along_one_axis_of_the_grid_first(shape, grid, src, dst, elements):
    """The intermediate layout is partial along the other axis."""
    devices = tuple(range(np.prod(grid)))
    r = assert_boxing_keeps_value(shape, layout(src, devices, grid), layout(dst, devices, grid), np.float32)
    assert r.bytes == 4 * elements, r.describe()
    assert r.hops[0].dst.partial, r.describe()


# ---- tables of the specification
A = np.arange(16, dtype=np.float32).reshape(4, 4)


def one_at_a_time(a, src, dst, hierarchy=None):
    k = len(a)
    r = route(layout(src, range(k), hierarchy), layout(dst, range(k), hierarchy), Spec((4, 4), flow.float32))
    found = performed(r, a)
    for p, q in zip(found, r.run([flow.tensor(x) for x in a])):
        np.testing.assert_array_equal(p, q.numpy())
    return found


def test_two_ranks_of_the_specification():
    """Table A.6: a partial source holds A on rank 0 and 2 A on rank 1."""
    z, rows, cols = np.zeros_like(A), [A[:2], A[2:]], [A[:, :2], A[:, 2:]]

    def padded(i, cut):
        return np.where(np.isin(np.arange(16).reshape(4, 4), cut[i]), A, z)

    p, total = [A, 2 * A], 3 * A
    vectors = [([A, A], "B", "S0", rows), ([A, A], "B", "S1", cols), ([A, A], "B", "P", [A, z]),
               (rows, "S0", "B", [A, A]),
               (cols, "S1", "B", [A, A]), (rows, "S0", "S1", cols), (rows, "S0", "P",
                                                                     [padded(0, rows), padded(1, rows)]),
               (cols, "S1", "P", [padded(0, cols), padded(1, cols)]), (p, "P", "B", [total, total]),
               (p, "P", "S0", [total[:2], total[2:]]), (p, "P", "S1", [total[:, :2], total[:, 2:]]),
               (p, "P", "P", p), (rows, "S0", "S0", rows)]
    for have, src, dst, want in vectors:
        for got, w in zip(one_at_a_time(have, src, dst), want):
            np.testing.assert_array_equal(got, w, err_msg=f"{src} -> {dst}")


def test_grids_of_the_specification():
    whole = [A] * 4

    def at(dst):
        return one_at_a_time(whole, ("B", "B"), dst, (2, 2))

    found = at(("S0", "S1"))
    assert found[0].tolist() == [[0, 1], [4, 5]] and found[3].tolist() == [[10, 11], [14, 15]]
    found = at(("S0", "S0"))
    assert found[0].tolist() == [[0, 1, 2, 3]] and found[3].tolist() == [[12, 13, 14, 15]]
    found = at(("B", "S0"))
    for i in range(4):
        np.testing.assert_array_equal(found[i], A[2:] if i % 2 else A[:2])
    found = at(("P", "S0"))
    np.testing.assert_array_equal(found[0], A[:2])
    np.testing.assert_array_equal(found[1], A[2:])
    assert not found[2].any() and not found[3].any()
    quarters = at(("S0", "S1"))
    assert one_at_a_time(quarters, ("S0", "S1"), ("S1", "S0"), (2, 2))[0].tolist() == [[0, 1], [4, 5]]
    assert (layout(("S0", "S0"), *GRID).box((6,), 1) == ((2, 3),)
            and layout("S0", GRID[0]).box((6,), 1) == ((2, 4),))


# ---- layouts and errors
@given(st.integers(0, 40), st.integers(1, 9))
def test_splits_are_balanced(n, k):
    sizes = parts(n, k)
    assert sum(sizes) == n and len(sizes) == k and max(sizes) - min(sizes) <= 1
    assert list(sizes) == sorted(sizes, reverse=True) == [len(c) for c in np.array_split(np.arange(n), k)]
    assert bounds(n, k)[-1][1] == n


def test_layouts_on_a_grid():
    at = layout(("P", "S0", "B"), range(12), (2, 3, 2))
    assert (at.coords(7) == (1, 0, 1) and at.slots == 2 and at.slot(7) == 1 and at.reducer == "sum"
            and at.partial == (0,))
    assert str(at) == "(P, S(0), B) on 0-11 (2x3x2)" and not at.whole and at.k == 12
    assert layout(("S0", "P"), (3,), (1, 1)).plain == layout("B", (3,))
    assert layout(("S0", "B", "S1"), (3, 4), (1, 1, 2)).plain == layout("S1", (3, 4))
    assert layout(("S0", "S0"), range(4), (2, 2)).local_shape((7, 2), 2) == (2, 2)
    assert layout("S1", ROW).local_shape((3, 5), 1) == (3, 2)


def test_a_split_must_leave_every_device_an_element():
    assert fits(("S0",), (3,), (3,)) and not fits(("S0",), (2,), (3,))
    assert not fits(("S1",), (9,), (2,)) and fits(("P",), (), (2,))
    assert (fits(("S0", "S0"), (4,), (2, 2)) and not fits(("S0", "S0"), (3,), (2, 2))
            and fits(("S0", "S0"), (3,), (2, 1)))
    spec = Spec((2, 9), flow.float32)
    with refused(ArgumentError, "S(0)", "axis of 3", "(2, 9)"):
        route(layout("B", (0, 1, 2)), layout("S0", (0, 1, 2)), spec)
    with refused(ArgumentError, "(S(0), S(0))", "a device would get nothing", "not 1"):
        route(layout(("S0", "S0"), *GRID), layout(("B", "B"), *GRID), spec)
    with refused(ArgumentError, "splits axis 2", "an axis of 2"):
        route(layout("B", ROW), layout("S2", ROW), spec)
    with refused(ArgumentError, "splits axis 0", "a number cannot be split"):
        route(layout("B", ROW), layout("S0", ROW), Spec((), flow.float32))
    assert pretty("S12") == "S(12)" and pretty(("S0", "B")) == "(S(0), B)" and pretty(("P",)) == "P"


def test_invalid_layouts():
    with refused(ArgumentError, "not a layout", "'S'"):
        layout("S", ROW)
    with refused(ArgumentError, "2 SBPs for a hierarchy of 1 axes (2 vs 1)"):
        layout(("S0", "B"), ROW)
    with refused(ArgumentError, "not a grid of these devices", "(2, 2)"):
        layout(("S0", "B"), (0, 1, 2), (2, 2))
    with refused(ArgumentError, "every device once"):
        layout("S0", (0, 0))
    with refused(ArgumentError, "partial in two ways", "(P, Pmax)"):
        layout(("P", "Pmax"), *GRID)


@pytest.mark.parametrize("src, dst", [("S0", "S1"), ("S0", "B"), ("P", "S1"), ("P", "B"), ("B", "P"),
                                      ("Pmax", "B")])
def test_a_route_computes_its_geometry_once(monkeypatch, src, dst):
    """The second run has the same result, without geometry computations."""
    r = route(layout(src, (0, 1, 2)), layout(dst, (0, 1, 2)), Spec((5, 4), flow.float64))
    shapes = [r.src.local_shape((5, 4), i) for i in range(3)]

    def draw(seed):
        return [flow.tensor(np.random.default_rng([seed, i]).standard_normal(s))
                for i, s in enumerate(shapes)]

    wants = [[y.numpy() for y in route.__wrapped__(r.src, r.dst, r.spec).run(draw(seed))] for seed in (1, 2)]
    found = [[y.numpy() for y in r.run(draw(1))]]
    monkeypatch.setattr(inops, "transfer", None)
    monkeypatch.setattr(inops, "inside", None)
    found.append([y.numpy() for y in r.run(draw(2))])
    for got, want in zip(found, wants):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


# ---- the laws can fail
def forgetful(src, groups, rank):
    """All-reduce that ignores the parts of other ranks."""
    return lambda comm, part, what: part.copy()


@pytest.mark.parametrize("mutant", [
    lambda m: m.setitem(inops.COMBINE, "sum", "sub"),
    lambda m: m.setitem(perform.COMBINE, "sum", np.subtract),
    lambda m: m.setattr(inops, "identity", lambda reducer, of: 1),
    lambda m: m.setattr(perform, "identity", lambda reducer, of: 1),
    lambda m: m.setattr(perform, "all_reduced", forgetful),
    lambda m: m.setattr(inops, "inside", lambda box, whole: tuple(slice(0, b - a) for a, b in box)),
    lambda m: m.setattr(perform, "inside", lambda box, whole: tuple(slice(0, b - a) for a, b in box)),
    lambda m: m.setattr(geometry, "size", lambda box: 1),
], ids=["ops subtract", "ranks subtract", "ops fill with 1", "ranks fill with 1", "ranks forget",
        "ops cut wrongly", "ranks cut wrongly", "bytes are miscounted"])
def test_faulty_boxing_is_detected(monkeypatch, mutant):
    at = layouts((5, 4), (0, 1, 2), (3,))
    mutant(monkeypatch)
    route.cache_clear()                                      # a route caches the operations of its ranks
    geometry.transfer.cache_clear()
    try:
        with pytest.raises(AssertionError):
            for src, dst in itertools.product(at, at):
                assert_boxing_keeps_value((5, 4), src, dst)
    finally:
        route.cache_clear()
        geometry.transfer.cache_clear()
