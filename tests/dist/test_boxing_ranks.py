"""Boxing rank by rank: the messages on the communicator equal those of the route, and collectives are used
where they fit. Boxing as an op: on values of a graph, and differentiable.
"""
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.graph.ir import Graph
from flowedu.core.sbp.boxing import route
from flowedu.core.sbp.sbp import layout
from flowedu.core.values.place import bounds
from flowedu.core.values.spec import Spec
from flowedu.distributed.perform import perform
from flowedu.distributed.ranks.workers import VirtualEngine

from .boxing_common import draw_integers, gather, layout_pairs, layouts, scatter

GRID = ((0, 1, 2, 3), (2, 2))


class Spy:
    """Communicator that records the bytes of each message; collectives count as in textbook algorithms."""

    def __init__(self, comm):
        self.comm = comm
        self.rank = comm.rank
        self.sent = Counter()
        self.calls = []

    def note(self, to, n):
        if to != self.rank and n:
            self.sent[self.rank, to] += n

    def box(self, route, part, what=""):
        return perform(self, route, part, what)

    def exchange(self, sends, recvs, what=""):
        self.calls.append("exchange")
        assert all(to != self.rank and a.size for to, a in sends) and all(a != self.rank for a, _, _ in recvs)
        assert [to for to, _ in sends] == sorted({to for to, _ in sends})          # one message for each pair
        for to, a in sends:
            self.note(to, a.nbytes)
        return self.comm.exchange(sends, recvs, what)

    def all_reduce(self, a, group, op="sum", what="", out=None):
        self.calls.append("all_reduce")
        chunk = [(q - p) * a.itemsize for p, q in bounds(a.size, len(group))]
        for to, n in zip(group, chunk):
            self.note(to, n)  # to be summed at the receiver
            self.note(to, chunk[group.index(self.rank)])  # the sum of this rank's share
        return self.comm.all_reduce(a, group, op, what, out)

    def all_gather(self, a, group, what="", out=None):
        self.calls.append("all_gather")
        for to in group:
            self.note(to, a.nbytes)
        return self.comm.all_gather(a, group, what, out)

    def reduce_scatter(self, a, group, op="sum", what=""):
        self.calls.append("reduce_scatter")
        for to, piece in zip(group, a):
            self.note(to, piece.nbytes)
        return self.comm.reduce_scatter(a, group, op, what)

    def broadcast(self, a, root, group, what=""):
        self.calls.append("broadcast")
        for to in group if root == self.rank else ():
            self.note(to, a.nbytes)
        return self.comm.broadcast(a, root, group, what)


def spied(r, x):
    """Run a route; return (bytes between ranks, the calls of each rank, the value)."""
    have, spies = dict(zip(r.src.devices, scatter(x, r.src, np.random.default_rng(0)))), {}

    def program(comm):
        spies[comm.rank] = spy = Spy(comm)
        return r.perform(spy, have.get(comm.rank))

    made = VirtualEngine(6).run(dict.fromkeys(range(6), program))
    sent = sum((s.sent for s in spies.values()), Counter())
    return sent, {d: s.calls for d, s in spies.items()}, gather([made[d] for d in r.dst.devices], r.dst)


@given(layout_pairs())
def test_messages_equal_the_route(pair):
    shape, src, dst = pair
    x = draw_integers(shape, np.float32)
    r = route(src, dst, Spec(shape, flow.float32))
    sent, calls, y = spied(r, x)
    np.testing.assert_array_equal(y, x)
    said = Counter()
    for a, b, n in r.messages():
        said[a, b] += n
    assert sent == said, r.describe()
    assert all(not calls[d] for d in range(6) if d not in {*src.devices, *dst.devices})


@pytest.mark.parametrize("src, dst, shape, calls", [
    ("P", "B", (4, 3), ["all_reduce"]), ("P", "B", (), ["all_reduce"]), ("P", "B", (5,), ["all_reduce"]),
    ("S0", "B", (8, 3), ["all_gather"]), ("S1", "B", (3, 8), ["all_gather"]),
    ("S0", "B", (5, 3), ["exchange"]),
    ("P", "S0", (8, 3), ["reduce_scatter"]), ("P", "S1", (3, 8), ["reduce_scatter"]),
    ("P", "S0", (5,), ["exchange"]),
    ("Pmax", "B", (4, 3), ["all_reduce"]), ("Pmin", "S0", (4, 3), ["reduce_scatter"]),
    ("S0", "S1", (4, 4), ["exchange"]), ("B", "S0", (4,), []), ("S0", "P", (4,), []), ("B", "P", (4,), [])])
def test_collectives_are_used_where_they_fit(src, dst, shape, calls):
    row = (0, 1, 2, 3)
    sent, made, _ = spied(route(layout(src, row), layout(dst, row), Spec(shape, flow.float32)),
                          draw_integers(shape, np.float32))
    assert all(made[d] == calls for d in row) and not made[4]


@pytest.mark.parametrize("src, dst, calls", [
    (("P", "P"), ("B", "B"), ["all_reduce"]), (("P", "S0"), ("B", "S0"), ["all_reduce"]),
    (("S0", "P"), ("S0", "S1"), ["reduce_scatter"]), (("S0", "B"), ("B", "B"), ["all_gather"]),
    (("S0", "S1"), ("S0", "B"), ["all_gather"]), (("S0", "S0"), ("B", "B"), ["all_gather"]),
    (("P", "S0"), ("B", "B"), ["reduce_scatter", "exchange"])])
def test_collectives_are_used_along_one_axis_of_a_grid(src, dst, calls):
    r = route(layout(src, *GRID), layout(dst, *GRID), Spec((8, 8), flow.float32))
    assert all(spied(r, draw_integers((8, 8), np.float32))[1][d] == calls for d in GRID[0]), r.describe()


def test_one_device_to_many_is_a_broadcast():
    r = route(layout("B", (1,)), layout("B", (0, 2, 3)), Spec((4,), flow.float32))
    sent, calls, _ = spied(r, draw_integers((4,), np.float32))
    assert (sent == {(1, d): 16 for d in (0, 2, 3)} and [calls[d] for d in range(5)] == [["broadcast"]] * 4
            + [[]])


def test_parts_may_be_views():
    """Views with any strides: a transposed array, every other row."""
    x = draw_integers((6, 8), np.float32)
    for src, dst in itertools.product(layouts((6, 8), (0, 1), (2,), ("P",)), repeat=2):
        r = route(src, dst, Spec((6, 8), flow.float32))
        have = [np.repeat(p, 2, axis=0)[::2].T.copy().T for p in scatter(x, src, np.random.default_rng(0))]
        made = VirtualEngine(2).run(dict.fromkeys((0, 1),
                                                  lambda comm, r=r, have=have: r.perform(comm,
                                                                                         have[comm.rank])))
        np.testing.assert_array_equal(gather([made[0], made[1]], dst), x)


# ---- boxing as an op
@given(layout_pairs(), st.integers(0, 3))
def test_the_gradient_of_boxing(pair, seed):
    """For the sum of w * y, with y in the new layout, each part of the source gets the corresponding part of
    w.
    """
    shape, src, dst = pair
    if "max" in {src.reducer, dst.reducer} or "min" in {src.reducer, dst.reducer}:
        return
    x, w, rng = (draw_integers(shape, np.float64, seed), draw_integers(shape, np.float64, seed + 1),
                 np.random.default_rng(seed))
    given_parts = [flow.tensor(p, requires_grad=True) for p in scatter(x, src, rng)]
    made = route(src, dst, Spec(shape, flow.float64)).run(given_parts)

    def cut(at, i):
        return flow.tensor(np.ascontiguousarray(w[tuple(slice(a, b) for a, b in at.box(shape, i))]))

    seen, loss = set(), flow.zeros((), dtype=flow.float64)
    for i, y in enumerate(made):  # every element once: copies contribute nothing
        key = (dst.slot(i), dst.box(shape, i))
        if key not in seen:
            seen.add(key)
            loss = loss + (y * cut(dst, i)).sum()
    loss.backward()
    total = {}
    for i, p in enumerate(given_parts):                              # any of several copies may be read
        key = (src.slot(i), src.box(shape, i))
        g = np.zeros(p.shape) if p.grad is None else p.grad.numpy()
        total[key] = total.get(key, 0) + g
    for (_, box), g in total.items():
        np.testing.assert_array_equal(g, w[tuple(slice(a, b) for a, b in box)])


def test_values_of_a_graph():
    """On values of a graph, the same code appends nodes; a copy of a whole value needs none."""
    g = Graph("boxing")
    xs = [g.input(f"x{i}", Spec((4, 4), flow.float32)) for i in range(2)]
    spec = Spec((4, 4), flow.float32)
    with g.building():
        summed = route(layout("P", (0, 1)), layout("B", (0, 1)), spec).run(xs)
        assert summed[0] is summed[1] and [n.op.name for n in g.nodes] == ["add"]
        cut = route(layout("B", (0, 1)), layout("S0", (0, 1)), spec).run(summed)
        assert ([n.op.name for n in g.nodes] == ["add", "slice", "slice"]
                and [c.shape for c in cut] == [(2, 4)] * 2)
        whole = route(layout("S0", (0, 1)), layout("B", (0, 1)), spec).run(cut)
        assert whole[0] is whole[1] and g.nodes[-1].op.name == "concat"
        padded = route(layout("S1", (0, 1)), layout("P", (0, 1)), spec).run(
            route(layout("B", (0, 1)), layout("S1", (0, 1)), spec).run(summed))
    assert ([p.shape for p in padded] == [(4, 4)] * 2
            and [n.op.name for n in g.nodes[-2:]] == ["slice_grad"] * 2)
