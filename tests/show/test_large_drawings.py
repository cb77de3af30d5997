"""Drawings of something large: at most MOST boxes, counts that add up, and a linear number of steps."""
import random
import re
import sys
from collections import Counter
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from dist.boxing_common import layout_pairs
from flowedu import nn
from flowedu.core.graph.memory import Buffer, rounded
from flowedu.core.sbp.boxing import route
from flowedu.core.sbp.sbp import layout
from flowedu.core.values.spec import Spec
from flowedu.show import device_groups
from flowedu.show.boxes import Box
from flowedu.show.collapse import collapsed
from flowedu.show.device_groups import count_messages, make_rows
from flowedu.show.graph import LINES, drawing
from flowedu.show.picture import COLORS as KINDS
from flowedu.show.picture import COLUMNS, Rectangle, gather_cells
from flowedu.show.plan import live_bytes
from flowedu.show.svg import BOXES, MOST
from flowedu.show.trace import Span, Trace, gather
from svg_text import misplaced

SVG = "{http://www.w3.org/2000/svg}"


def count_lines(f, folder="flowedu/show"):
    """Return the result of f() and the number of lines of the library that it runs."""
    steps = 0

    def trace(frame, event, _):
        nonlocal steps
        if folder not in frame.f_code.co_filename:
            return None
        steps += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = f()
    finally:
        sys.settrace(before)
    return result, steps


def check_growth(make, n):
    """Run make(n) and make(2 * n), and check that the number of steps at most doubles.

    Sorted lists and heaps of the standard library run no lines of their own. A drawing has a constant part,
    so the steps grow by less than a factor of 2. The margin of 10 % is for the random shape of the input.
    """
    one, a = count_lines(lambda: make(n))
    two, b = count_lines(lambda: make(2 * n))
    assert b <= 2.2 * a, (a, b)
    return one, two


# ---- graphs
def make_boxes(n, modules, far, seed=0):
    """Return n ops that read the previous op and `far` random earlier ones, of a nested or a flat model."""
    rng = random.Random(seed)
    made = [Box("x", "float32 2", "input", ""), Box("w", "float32 2", "variable", "")]
    for i in range(n):
        reads = {id(b): b for b in [made[-1], *(rng.choice(made) for _ in range(far))]}
        module = ("model", f"layer{i // modules}", f"{i % modules // 4}") if modules else ()
        kind = "forward" if i < n // 2 else "backward"
        made.append(Box(f"op{i % 5}", "float32 2", kind, f"tip {i}", module, list(reads.values())))
    return [*made, Box("y", "float32 2", "output", "", reads=[made[-1]])]


def count_ops(boxes):
    kinds = "forward", "backward", "update"
    counts = [re.match(r"(\d+) ops", b.subtitle) for b in boxes if b.kind in kinds]
    return sum(int(m[1]) if m else 1 for m in counts)


@pytest.mark.parametrize("modules", [0, 12, 400])
@pytest.mark.parametrize("far", [0, 3])
@pytest.mark.parametrize("most", [BOXES, MOST])
def test_a_graph_of_any_size_is_drawn_with_few_boxes(modules, far, most):
    def draw(n):
        small = collapsed(made[n], most)
        return small, drawing("a graph", small).svg()

    n = 4000
    made = {k: make_boxes(k, modules, far) for k in (n, 2 * n)}
    for k, (small, text) in zip((n, 2 * n), check_growth(draw, n)):
        root = ElementTree.fromstring(text)
        assert len(small) <= most and count_ops(small) == k
        assert sum(bool(r.get("stroke")) for r in root.iter(SVG + "rect")) == len(small)
        lines = len(list(root.iter(SVG + "path")))
        hidden = sum(map(int, re.findall(r"reads (\d+) more boxes", text)))
        assert lines <= LINES and lines + hidden == sum(len(b.reads) for b in small)


def test_a_graph_of_36_000_nodes_has_few_boxes():
    small = collapsed(make_boxes(36_000, 9, 1), MOST)
    assert len(small) <= MOST and count_ops(small) == 36_000


# ---- routes
@given(layout_pairs(), st.integers(1, 4))
def test_messages_between_groups_are_sums_of_messages(pair, n):
    """With single devices they are the messages, so the choice of senders is that of geometry.transfer."""
    shape, src, dst = pair
    for hop in route(src, dst, Spec(shape, flow.float32)).hops:
        devices = sorted({*src.devices, *dst.devices, *hop.src.devices, *hop.dst.devices})
        for rows in (make_rows(devices, len(devices)), make_rows(devices, min(n, len(devices)))):
            row_of = {d: i for i, row in enumerate(rows) for d in row.devices}
            counts, sizes = Counter(), Counter()
            for p, q, nbytes in hop.messages():
                counts[row_of[p], row_of[q]] += 1
                sizes[row_of[p], row_of[q]] += nbytes
            assert count_messages(hop, rows) == {pair: (counts[pair], sizes[pair]) for pair in sorted(counts)}


GRID = (10, 100)
LAYOUTS = [("S0", "B", None), ("P", "B", None), ("S0", "S1", None), ("P", "S0", None), ("B", "P", None),
           (("S0", "B"), ("B", "S1"), GRID), (("P", "S0"), ("S0", "B"), GRID)]


@pytest.mark.parametrize("src, dst, grid", LAYOUTS, ids=str)
def test_a_route_over_1000_devices_has_few_boxes(src, dst, grid):
    spec = Spec((2000, 2000), flow.float32)
    r = route(layout(src, range(1000), grid), layout(dst, range(1000), grid), spec)
    text = r.draw()
    root = ElementTree.fromstring(text)
    assert len([e for e in root.iter(SVG + "rect") if e.get("class") == "block"]) <= MOST
    assert len([e for e in root.iter(SVG + "path") if e.get("class") == "tip"]) <= MOST
    tips = [e.text for e in root.iter(SVG + "title")]
    devices = [int(m[1]) for t in tips if (m := re.match(r"devices [\d-]+: (\d+) devices", t))]
    assert sum(devices) == 1000 * (len(r.hops) + 1)
    assert not misplaced(root)
    lines = [re.search(r": ([\d,]+) messages?, ([\d,]+) bytes", line) for line in r.describe().splitlines()]
    shown = [[int(number.replace(",", "")) for number in m.groups()] for m in lines if m]
    counts = [m for t in tips[1:] for m in re.findall(r": ([\d,]+) messages?, ", t)]
    assert sum(nbytes for _, nbytes in shown) == r.bytes
    assert sum(count for count, _ in shown) == sum(int(m.replace(",", "")) for m in counts)
    if src == "S0":
        assert sum(count for count, _ in shown) == 1000 * 999         # each part goes to all other devices


@pytest.mark.parametrize("src, dst", [("S0", "B"), ("P", "B"), ("P", "S0")])
def test_the_steps_of_a_route_grow_with_its_devices(src, dst):
    def make(n):
        r = route(layout(src, range(n)), layout(dst, range(n)), Spec((2000, 8), flow.float32))
        return count_messages(r.hops[0], make_rows(range(n), 8))

    check_growth(make, 200)


@pytest.mark.parametrize("k", [2, 5, 12])
def test_few_devices_have_a_row_each(k):
    root = ElementTree.fromstring(route(layout("S0", range(k)), layout("B", range(k)),
                                        Spec((k, 3), flow.float32)).draw())
    labels = [e.text for e in root.iter(SVG + "text") if re.fullmatch(r"device \d+", e.text or "")]
    assert labels == [f"device {i}" for i in range(k)]
    assert device_groups.SINGLE <= MOST


# ---- plans
def make_rectangles(n, seed=0):
    rng = random.Random(seed)
    rectangles = []
    for i in range(n):
        stop = rng.choice((i + 1 + rng.randrange(5), 2 * n - i))
        rectangles.append(Rectangle(rng.choice(list(KINDS)), i, min(stop, 2 * n), 64 * rng.randrange(n),
                                    64 * rng.randrange(4)))
    return rectangles, 2 * n, 64 * (n + 4)


@pytest.mark.parametrize("n", [1, 301, 36_000])
def test_a_plan_of_any_size_has_few_cells(n):
    rectangles, steps, arena = make_rectangles(n)
    cells = gather_cells(rectangles, steps, arena)
    assert len(cells) <= MOST and sum(c.buffers for c in cells) == n
    held = sum(c.share * (c.steps[1] - c.steps[0]) * (c.bytes[1] - c.bytes[0]) for c in cells)
    assert held <= sum((r.stop - r.start) * r.nbytes for r in rectangles) * (1 + 1e-9)      # float64 sums
    assert all(0 <= c.share <= 1 and c.kind in KINDS for c in cells)


def test_the_steps_of_a_plan_grow_with_its_buffers():
    def make(n):
        rectangles, steps, arena = made[n]
        plan = SimpleNamespace(steps=[None] * steps, buffers=[
            Buffer("", "temp", r.nbytes, r.start, r.stop - 1, r.offset) for r in rectangles])
        return gather_cells(rectangles, steps, arena), live_bytes(plan)

    made = {n: make_rectangles(n) for n in (1000, 2000)}
    check_growth(make, 1000)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 200)), max_size=20))
def test_live_bytes_are_those_of_the_buffers_in_use(rows):
    buffers = [Buffer("", "temp", n, min(a, b), max(a, b)) for a, b, n in rows]
    plan = SimpleNamespace(steps=[None] * 8, buffers=[b for b in buffers if b.first < 8])
    assert live_bytes(plan) == [sum(rounded(b.nbytes) for b in plan.buffers if b.first <= i <= b.last)
                                for i in range(8)]


def test_a_plan_with_many_buffers_is_drawn(tmp_path):
    layers = nn.Sequential(*[nn.Linear(3, 3) for _ in range(120)])

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.layers = layers
            self.add_optimizer(flow.optim.SGD(layers.parameters(), lr=0.1))

        def build(self, x):
            loss = self.layers(x).sin().exp().sum()
            loss.backward()
            return loss

    graph = Train()
    graph(flow.ones(2, 3))
    assert sum(b.in_arena for b in graph._compiled.program.plan.buffers) > MOST
    text = graph.draw(tmp_path / "m.svg", "memory").read_text(encoding="utf-8")
    # the cells, and the curve below them
    assert COLUMNS < text.count("PolyCollection_") <= MOST + 1


# ---- timelines
def make_timeline(n, seed=0):
    rng, now, spans = random.Random(seed), 0, []
    for i in range(n):
        end = now + rng.randrange(10**6)
        spans.append(Span(f"call {i}", 0, now, end, "call", 24, "matmul",
                          rng.choice(("forward", "backward", "update")), "2x3", i))
        now = end
    live = [(s.begin, rng.randrange(1000)) for s in spans]
    return Trace("Train", ["thread 0"], spans, "1 thread", live, 1000)


def test_a_timeline_of_any_size_has_few_boxes():
    made = {n: make_timeline(n) for n in (2000, 4000)}
    for n, text in zip((2000, 4000), check_growth(lambda n: made[n]._repr_svg_(), 2000)):
        root = ElementTree.fromstring(text)
        drawn = [g for g in root.iter(SVG + "g") if g.find(SVG + "rect") is not None]
        points = root.find(SVG + "polyline").get("points").split()
        assert len(drawn) <= BOXES and len(points) <= 2 * MOST + 2
        counts = [re.match(r"(\d+) (calls|spans)", g.find(SVG + "title").text) for g in drawn]
        assert sum(int(m[1]) if m else 1 for m in counts) == n


def test_a_timeline_of_36_000_calls_has_few_boxes():
    spans = make_timeline(36_000).spans
    few = gather(spans, BOXES)
    assert 0 < len(few) <= BOXES and sum(s.count for s in few) == 36_000
    assert [s.begin for s in few] == sorted(s.begin for s in few)
