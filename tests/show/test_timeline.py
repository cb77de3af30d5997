"""The timeline of a step: calls in order and without gaps, on all threads that run them, in Chrome's format
and as an image.
"""
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import f32, fresh_session, job  # noqa: F401
from flowedu import nn
from flowedu.core.graph import executor
from flowedu.show.plan import live_bytes
from flowedu.show.profile import Timing
from flowedu.show.svg import BOXES
from flowedu.show.timeline import COLORS, SPLIT, Call, Timeline, _gathered
from svg_text import misplaced

SVG = "{http://www.w3.org/2000/svg}"
calls = st.tuples(st.sampled_from([*COLORS]), st.floats(0, 1e-2), st.integers(0, 10**9), st.booleans())
parts = st.lists(calls, max_size=150)


def make_timeline(rows, threads=4, arena=10**9):
    """Return a timeline of calls from rows of (part, seconds, bytes, True if all threads run it)."""
    order, calls, now = list(COLORS), [], 0.0
    for i, (part, seconds, live, split) in enumerate(sorted(rows, key=lambda r: order.index(r[0]))):
        calls.append(Call(Timing(f"call <{i}>", "matmul", part, "2x3", seconds, 24), now,
                          threads if split else 1, live))
        now = calls[-1].end
    return Timeline("Train", calls, threads, arena)


@given(parts)
def test_a_trace_has_each_call_on_each_of_its_threads(rows):
    t = make_timeline(rows)
    events = json.loads(json.dumps(t.chrome()))["traceEvents"]
    spans, counts = ([e for e in events if e["ph"] == kind] for kind in "XC")
    assert [(e["name"], e["tid"]) for e in spans] == [(c.timing.name, i) for c in t.calls
                                                      for i in range(c.threads)]
    for thread in range(t.threads):
        mine = [e for e in spans if e["tid"] == thread]
        assert all(a["ts"] + a["dur"] <= b["ts"] + 0.01 for a, b in zip(mine,
                                                                        mine[1:])), "one thing at a time"
    assert [e["args"]["live"] for e in counts] == [c.live for c in t.calls]
    assert sum(e["dur"] for e in spans if e["tid"] == 0) == pytest.approx(1e6 * t.seconds,
                                                                          abs=0.1 + len(rows) * 1e-3)
    assert {e["args"]["name"] for e in events if e["ph"] == "M"} == {"Train",
                                                                     *(f"thread {i}" for i in range(4))}


@given(parts)
def test_widths_in_the_image_are_proportional_to_durations(rows):
    t = make_timeline(rows)
    root = ElementTree.fromstring(t._repr_svg_())
    boxes = [r for g in root.iter(SVG + "g") for r in g.findall(SVG + "rect")]
    assert len(boxes) == len(_gathered(t.calls, BOXES - 3)) <= max(BOXES - 3, 3)
    assert sum(float(b.get("width")) for b in boxes) == pytest.approx(900 * bool(t.seconds), abs=1)
    assert {float(b.get("height")) for b in boxes} <= {26.0, 4 * 26.0} and not misplaced(root)
    assert all(float(b.get("width")) >= 0 for b in boxes)


@given(parts, st.integers(3, 20))
def test_adjacent_calls_of_one_part_are_merged(rows, most):
    calls = make_timeline(rows).calls
    few = _gathered(calls, most)
    assert len(few) <= most and sum(c.count for c in few) == len(calls)
    assert sum(c.timing.nbytes for c in few) == sum(c.timing.nbytes for c in calls)
    assert all(a.end == pytest.approx(b.start, abs=1e-9) for a, b in zip(few, few[1:]))
    for part in COLORS:
        whole, left = (sum(c.timing.seconds for c in cs if c.timing.part == part) for cs in (calls, few))
        assert left == pytest.approx(whole)


def test_the_executor_divides_calls_of_the_same_cost():
    source = Path(executor.__file__).parent / "bind.pxi"
    assert re.findall(r"^ +SPLIT = (\d+)", source.read_text(encoding="utf-8"), re.M) == [str(SPLIT)]


# ---- of graphs and jobs
def train_once(width):
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))
    loss = nn.CrossEntropyLoss()

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model, self.loss = model, loss
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

        def build(self, x, y):
            out = self.loss(self.model(x), y)
            out.backward()
            return out

    data = flow.randn(64, width), flow.zeros(64, dtype=flow.int64)
    graph = Train()
    graph(*data)
    return graph, model, data


def test_a_timeline_of_a_graph_has_its_calls(tmp_path):
    flow.set_num_threads(2)
    try:
        graph, model, data = train_once(256)
        before = [p.numpy().copy() for p in model.parameters()]
        t = graph.timeline(*data)
    finally:
        flow.set_num_threads(1)
    plan = graph._compiled.program.plan
    assert [c.timing.name for c in t.calls] == [s.name for s in plan.steps]
    assert [c.live for c in t.calls] == live_bytes(plan)
    assert ({c.timing.part for c in t.calls} == {*COLORS} and {c.threads for c in t.calls} == {1, 2}
            and t.threads == 2)
    assert all((p.numpy() == b).all() for p, b in zip(model.parameters(), before)), "no variable changes"
    read = json.loads(t.save(tmp_path / "deep" / "step.json").read_text(encoding="utf-8"))
    assert read["traceEvents"] == t.chrome()["traceEvents"]
    assert t.save(tmp_path / "step.svg").read_text("utf-8") == t._repr_svg_()
    assert t._repr_svg_() == flow.show(t, tmp_path / "b.svg").read_text("utf-8")
    with pytest.raises(flow.errors.ArgumentError, match=r"timeline.save: path"):
        t.save(tmp_path / "step.png")


def test_a_timeline_of_a_job_has_its_calls(fresh_session):  # noqa: F811
    step = job(lambda a: flow.math.relu(flow.matmul(a, a)) + 1.0, f32(4, 4))
    t = step.timeline(f32(4, 4), repeats=2)
    assert [c.timing.name for c in t.calls] == [s.name for s in step.plan.steps]
    assert repr(t).startswith(f"{step.plan.graph.name}: {len(t.calls)} calls, ") and "on 1 thread," in repr(t)
