"""Laws of memory plans: live buffers do not overlap, nothing is read before it is written, and sharing never
costs memory.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph
from flowedu.core.graph.memory import Buffer, lower_bound, place, rounded, total
from flowedu.core.graph.passes import run_passes
from flowedu.core.graph.plan import make_plan
from flowedu.core.values.spec import Spec

from .graphs import run_graph
from .test_modes import evaluate, expression


def overlaps(a: Buffer, b: Buffer) -> bool:
    together = a.first <= b.last and b.first <= a.last
    return together and a.offset < b.offset + rounded(b.nbytes) and b.offset < a.offset + rounded(a.nbytes)


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 20), st.integers(0, 10)), max_size=40))
def test_no_two_live_buffers_overlap(lifetimes):
    buffers = [Buffer(str(i), "temp", n, first=a, last=a + d) for i, (n, a, d) in enumerate(lifetimes)]
    size = place(buffers)
    for i, a in enumerate(buffers):
        assert a.offset % 64 == 0
        assert a.offset + a.nbytes <= size
        for b in buffers[:i]:
            assert not overlaps(a, b)
    assert lower_bound(buffers, 31) <= size <= total(buffers)


def training_plan(steps, inplace=True, reuse=True):
    g = Graph("law")
    x, b = g.input("x", Spec((6, 6), flow.float64)), g.input("b", Spec((6,), flow.float64))
    with g.building():
        loss = evaluate(steps, x, b)[0]
    g.outputs = [loss, *[y for y in gradients(g, [loss], [x, b]) if y is not None]]
    run_passes(g)
    return make_plan(g, {}, inplace=inplace, reuse=reuse)


@given(expression())
def test_plans_of_programs_are_sound(steps):
    plan = training_plan(steps)
    live = [b for b in plan.buffers if b.in_arena]
    for i, a in enumerate(live):
        for b in live[:i]:
            assert not overlaps(a, b)
    written = {id(b) for b in plan.buffers if not b.in_arena}
    for number, step in enumerate(plan.steps):
        n = len(step.places) - len(step.entry.specs)
        for p in step.places[:n]:
            assert id(p.buffer) in written, f"{step.name} reads {p.buffer.name} before it is written"
            assert p.buffer.first <= number <= p.buffer.last
        for p in step.places[n:]:
            written.add(id(p.buffer))
    assert plan.bound_bytes <= plan.arena <= plan.sum_bytes


@given(expression(), st.integers(0, 2**31))
def test_memory_passes_do_not_change_values(steps, seed):
    from flowedu.core.graph.executor import Executor
    rng = np.random.default_rng(seed)
    arrays = (rng.standard_normal((6, 6)), rng.standard_normal(6))
    results = []
    for inplace in (True, False):
        for reuse in (True, False):
            executor = Executor(training_plan(steps, inplace, reuse))
            executor.run(arrays)
            results.append(executor.run(arrays))  # twice: a second run must not read leftovers of the first
    for other in results[1:]:
        for a, b in zip(results[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("view", [dict(op="reshape", shape=(12,)), dict(op="identity"),
                                  dict(op="reshape", shape=(2, 2, 3))], ids=str)
@pytest.mark.parametrize("later", ["base", "view", "both"])
def test_no_in_place_op_overwrites_memory_that_a_view_reads_later(view, later):
    view = dict(view)
    x = np.random.default_rng(0).standard_normal((3, 4))
    op = flow.ops.REGISTRY[view.pop("op")]

    def f(x):
        y = flow.ops.REGISTRY["exp"](x)
        v = op(y, **view)
        first = flow.ops.REGISTRY["neg"](v if later == "base" else y)        # may it reuse y's memory?
        return [first, *([flow.ops.REGISTRY["sqrt"](y)] if later != "view" else []),
                *([flow.ops.REGISTRY["sqrt"](v)] if later != "base" else [])]
    g = Graph("law")
    gx = g.input("x", Spec(x.shape, flow.float64))
    with g.building():
        g.outputs = f(gx)
    for got, want in zip(run_graph(g, [x], passes=False), [t.numpy() for t in f(flow.tensor(x))],
                         strict=True):
        np.testing.assert_array_equal(got, want)
