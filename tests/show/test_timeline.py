"""The value Trace: its table, its files, and its drawing. test_recording.py has the laws of recorded runs."""
import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import f32, fresh_session, job  # noqa: F401
from flowedu import nn
from flowedu.show.plan import live_bytes
from flowedu.show.svg import BOXES
from flowedu.show.trace import PER_LANE, WIDTH, Span, Trace, gather
from svg_text import misplaced

SVG = "{http://www.w3.org/2000/svg}"
PARTS = ("forward", "backward", "update")
rows = st.lists(st.tuples(st.sampled_from(["call", "message", "wait", "read"]), st.integers(0, 10**7),
                          st.integers(0, 10**6), st.integers(0, 10**9), st.integers(0, 3)), max_size=150)


def make_trace(rows, lanes=4):
    """Return a trace of rows (kind, duration, gap in front, bytes, lane)."""
    spans, now = [], [100] * lanes
    for i, (kind, duration, gap, nbytes, lane) in enumerate(rows):
        begin = now[lane] + gap
        now[lane] = begin + duration
        part = PARTS[i % 3] if kind in ("call", "message") else ""
        step = i if part else -1
        spans.append(Span(f"{kind} <{i}>", lane, begin, now[lane], kind, nbytes, "matmul", part, "2x3", step))
    return Trace("Train", [f"thread {i}" for i in range(lanes)], spans, f"{lanes} threads",
                 [(s.begin, s.nbytes) for s in spans], 10**9)


@given(rows)
def test_a_file_has_an_event_for_each_span(rows):
    t = make_trace(rows)
    events = json.loads(json.dumps(t.chrome()))["traceEvents"]
    spans, counts = ([e for e in events if e["ph"] == kind] for kind in "XC")
    start = min((s.begin for s in t.spans), default=0)
    # Microseconds with three decimals contain every nanosecond.
    assert [(e["name"], e["cat"], e["tid"], round(1e3 * e["ts"]), round(1e3 * e["dur"]), e["args"]["bytes"])
            for e in spans] == [(s.name, s.kind, s.lane, s.begin - start, s.end - s.begin, s.nbytes)
                                for s in t.spans]
    assert [e["args"]["live"] for e in counts] == [n for _, n in t.live]
    assert {e["args"]["name"] for e in events if e["ph"] == "M"} == {"Train", *t.lanes}


@given(rows)
def test_the_table_has_each_lane_and_its_sums(rows):
    t = make_trace(rows)
    lines = repr(t).split("\n")
    assert lines[0] == t.summary() and f"on {t.where}, arena" in lines[0]
    assert lines[0].startswith(f"Train: {len(t.calls)} call")
    for lane, line in zip(t.lanes, lines[3:]):
        mine = t.on(lane)
        messages = [s for s in mine if s.kind == "message"]
        words = line.removeprefix(lane).split()
        assert words[0] == str(sum(s.kind == "call" for s in mine)) and words[2] == str(len(messages))
        assert words[3] == f"{sum(s.nbytes for s in messages):,}"
    longest = max((s.seconds for s in t.spans), default=0)
    assert not t.spans or any(s.seconds == longest and lines[9].startswith(s.name[:20]) for s in t.spans)


@given(rows)
def test_widths_in_the_drawing_are_proportional_to_durations(rows):
    t = make_trace(rows)
    root = ElementTree.fromstring(t._repr_svg_())
    boxes = [r for g in root.iter(SVG + "g") for r in g.findall(SVG + "rect")]
    drawn = gather(t.spans, max(BOXES - len({s.color for s in t.spans}), 4 * PER_LANE))
    assert len(boxes) == len(drawn) and {float(b.get("height")) for b in boxes} <= {26.0}
    assert not misplaced(root) and all(float(b.get("width")) >= 0 for b in boxes)
    for box, s in zip(boxes, drawn):
        # Coordinates have two decimals, so a width is off by at most 0.01.
        assert float(box.get("width")) == pytest.approx(WIDTH * s.seconds / (t.seconds or 1), abs=0.011)


@given(rows, st.integers(4, 20))
def test_neighbors_of_one_lane_are_merged_first_those_of_one_color(rows, most):
    spans = make_trace(rows).spans
    few = gather(spans, most)
    assert len(few) <= most and sum(s.count for s in few) == len(spans)
    assert sum(s.nbytes for s in few) == sum(s.nbytes for s in spans)
    assert all(a.end <= b.begin for a, b in zip(few, few[1:]) if a.lane == b.lane)
    one_color = 1 + sum((a.lane, a.color) != (b.lane, b.color) for a, b in zip(spans, spans[1:]))
    at = iter(spans)
    for s in few:
        members = [next(at) for _ in range(s.count)]
        assert {m.lane for m in members} == {s.lane} and s.color in {m.color for m in members}
        assert (members[0].begin, members[-1].end) == (s.begin, s.end)
        assert one_color > most or len({m.color for m in members}) == 1


def test_a_drawing_of_many_spans_has_few_boxes():
    rows = [(("call", "wait")[i % 2], 10, 1, 0, 0) for i in range(20_000)]
    assert make_trace(rows, 1)._repr_svg_().count("<g>") <= BOXES


def test_unknown_lanes_and_file_types_are_refused(tmp_path):
    t = make_trace([("call", 1, 0, 0, 0)])
    with pytest.raises(flow.errors.ArgumentError, match=r"trace.on: no lane") as e:
        t.on("rank 9")
    assert "thread 3" in e.value.expected
    with pytest.raises(flow.errors.ArgumentError, match=r"timeline.save: path"):
        t.save(tmp_path / "step.png")
    with pytest.raises(flow.errors.ArgumentError, match=r"timeline.draw: path"):
        t.draw(tmp_path / "step.json")


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
    assert [s.name for s in t.calls] == [s.name for s in plan.steps]
    assert [n for _, n in t.live] == live_bytes(plan) and t.arena == plan.arena
    assert {s.part for s in t.calls} == {*PARTS} and t.lanes == ["thread 0", "thread 1"]
    assert set() < {s.step for s in t.on("thread 1")} < {s.step for s in t.on("thread 0")}
    assert all((p.numpy() == b).all() for p, b in zip(model.parameters(), before)), "no variable changes"
    read = json.loads(t.save(tmp_path / "deep" / "step.json").read_text(encoding="utf-8"))
    assert read["traceEvents"] == t.chrome()["traceEvents"]
    assert t.draw(tmp_path / "step.svg").read_text("utf-8") == t._repr_svg_()
    assert t._repr_svg_() == flow.show(t, tmp_path / "b.svg").read_text("utf-8")


def test_a_timeline_of_a_job_has_its_calls(fresh_session):  # noqa: F811
    step = job(lambda a: flow.math.relu(flow.matmul(a, a)) + 1.0, f32(4, 4))
    t = step.timeline(f32(4, 4), repeats=2)
    assert [s.name for s in t.calls] == [s.name for s in step.plan.steps]
    assert repr(t).startswith(f"{step.plan.graph.name}: {len(t.calls)} call") and "on 1 thread," in repr(t)
