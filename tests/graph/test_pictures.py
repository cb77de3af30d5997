"""draw, report, profile: diagrams and statistics of a graph."""
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.core.graph.passes import PASSES
from flowedu.show.boxes import Box
from flowedu.show.collapse import collapsed
from flowedu.show.graph import drawing, layout
from flowedu.show.plan import parts
from flowedu.show.svg import BOXES, MOST

from .making import batch, copy_state, make_graph, make_mlp, trainer

X, Y = batch()
SVG = "{http://www.w3.org/2000/svg}"


def make_trained_graph():
    model = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 3))
    g = trainer(model, flow.optim.Adam(model.parameters()))
    g(X, Y)
    return g


def read_svg(path):
    root = ElementTree.parse(path).getroot()
    boxes = list(root.iter(SVG + "g"))
    return root, [b.find(SVG + "title").text for b in boxes], [b.findall(SVG + "text")[0].text for b in boxes]


def test_a_drawing_of_the_graph(tmp_path):
    g = make_trained_graph()
    path = g.draw(tmp_path / "deep" / "graph.svg")
    root, tips, labels = read_svg(path)
    for want in (f"_{g.name}_input.0.0_2", "model.0.weight", "matmul", "gelu", f"_{g.name}_output.0.0_2"):
        assert want in labels, labels
    assert any("model.0-matmul-" in t and "making.py" in t for t in tips)              # the line in user code
    assert "as traced" in root.find(SVG + "text").text
    n = len(g._compiled.operators)
    drawn = [t for t in tips if not re.match("(input|variable|host|output) ", t)]
    assert len(drawn) == n


def test_a_drawing_after_the_passes(tmp_path):
    g = make_trained_graph()
    _, _, before = read_svg(g.draw(tmp_path / "a.svg"))
    root, tips, after = read_svg(g.draw(tmp_path / "b.svg", "optimized"))
    assert len(after) < len(before) and "after the passes" in root.find(SVG + "text").text
    assert f"_{g.name}_output.0.0_2" in after


def test_boxes_do_not_overlap_and_lines_go_down(tmp_path):
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
    g = trainer(model, flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    g(flow.randn(2, 1, 8, 8), flow.tensor([0, 1]))
    for what in ("graph", "optimized"):
        root, _, _ = read_svg(g.draw(tmp_path / "g.svg", what))
        rects = [tuple(float(r.get(k)) for k in ("x", "y", "width", "height"))
                 for r in root.iter(SVG + "rect")
                 if r.get("x")]
        for i, (x, y, w, h) in enumerate(rects):
            assert x >= 0 and x + w <= float(root.get("width")) and y + h <= float(root.get("height"))
            assert not any(abs(x - x2) < w and abs(y - y2) < h for x2, y2, _, _ in rects[:i])
        for p in root.iter(SVG + "path"):
            numbers = [float(v) for v in re.findall(r"-?[\d.]+", p.get("d"))]
            assert numbers[1] < numbers[-1]


def test_boxes_are_in_the_layer_after_their_inputs():
    a, b = Box("a", "", "input", ""), Box("b", "", "input", "")
    c = Box("c", "", "forward", "", reads=[a])
    d = Box("d", "", "forward", "", reads=[c, b])
    assert [sorted(x.title for x in layer) for layer in layout([a, b, c, d])] == [["a"], ["b", "c"], ["d"]]
    assert (a.layer, b.layer, c.layer, d.layer) == (0, 1, 1, 2)
    assert layout([]) == []


KINDS = ("input", "variable", "forward", "backward", "update")


@st.composite
def draw_boxes(draw):
    """Return a graph in execution order, where boxes read earlier ones."""
    made = []
    for i in range(draw(st.integers(0, 120))):
        kind = draw(st.sampled_from(KINDS if i > 3 else KINDS[:2]))
        reads = (draw(st.lists(st.sampled_from(made), max_size=3, unique_by=id)) if made
                 and kind not in KINDS[:2] else [])
        module = tuple(draw(st.lists(st.sampled_from("ab"), max_size=3)))
        made.append(Box(draw(st.sampled_from("xyz")), f"float32 {i}", kind, f"tip {i}", module, reads))
    outputs = min(draw(st.integers(0, 5)), len(made))
    return [*made, *(Box(f"out {i}", "", "output", "", reads=[made[-1 - i]]) for i in range(outputs))]


@given(draw_boxes(), st.integers(4, 60))
def test_a_collapsed_graph_is_small_and_runs_in_the_same_order(made, most):
    small = collapsed(made, most)
    assert len(small) <= most
    if len(made) <= most:
        assert small == made
        return
    seen = set()
    for b in small:
        assert all(id(r) in seen
                   for r in b.reads), "a box reads what comes later: no picture without a circle"
        seen.add(id(b))
    counted = sum(int(b.subtitle.split()[0]) if re.match(r"\d+ (ops|of them)", b.subtitle) else 1
                  for b in small)
    assert counted == sum(b.kind != "variable" for b in made)                       # no node is lost
    root = ElementTree.fromstring(drawing("any", small).svg())
    assert len(root.findall(f".//{SVG}g")) == len(small)


@given(st.lists(st.sampled_from(KINDS[2:]), min_size=61, max_size=100))
def test_a_collapsed_chain_is_a_chain(kinds):
    """Each op reads the one before, and so does each box, even with an update in the middle."""
    made = [Box("x", "", "input", "")]
    for i, kind in enumerate(kinds):
        made.append(Box(f"op {i}", "", kind, "", ("ab"[i % 2], str(i % 3)), [made[-1]]))
    small = collapsed(made, 20)
    assert [b.reads for b in small] == [[], *([b] for b in small[:-1])]


@pytest.mark.parametrize("what", ["graph", "optimized"])
def test_a_large_graph_is_drawn_collapsed_twice(what, tmp_path):
    model = flow.vision.models.mobilenet_v2(num_classes=10, width_mult=0.35)
    g = trainer(model, flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    g(flow.randn(2, 3, 32, 32), flow.tensor([0, 1]))
    root, _, labels = read_svg(g.draw(tmp_path / "g.svg", what))
    rects = [r for r in root.iter(SVG + "rect") if r.get("stroke")]
    assert len(rects) <= BOXES and {"features.0", "features.18", "classifier.1", "updates"} <= set(labels)
    assert root.find(f"{SVG}a").get("href") == "g-parts.svg"
    root, tips, _ = read_svg(tmp_path / "g-parts.svg")
    assert BOXES < len(tips) <= MOST


@pytest.mark.parametrize("what", ["graph", "optimized"])
def test_a_graph_of_medium_size_is_drawn_collapsed_and_in_full(what, tmp_path):
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(12)])
    g = trainer(model, flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    g(X, Y)
    root, _, _ = read_svg(g.draw(tmp_path / "g.svg", what))
    assert root.find(f"{SVG}a").get("href") == "g-all.svg"
    _, tips, _ = read_svg(tmp_path / "g-all.svg")
    nodes = g._compiled.operators if what == "graph" else g._compiled.program.graph.nodes
    assert len([t for t in tips if not re.match("(input|variable|host|output) ", t)]) == len(nodes)


def test_a_drawing_of_memory(tmp_path):
    g = make_trained_graph()
    assert g.draw(tmp_path / "m.png", "memory").stat().st_size > 5000
    assert "<svg" in g.draw(tmp_path / "m.svg", "memory").read_text(encoding="utf-8")[:600]


def test_drawable_objects():
    g = make_trained_graph()
    with pytest.raises(ValueError, match='"graph", "optimized" or "memory"'):
        g.draw("x.svg", "plan")


def test_report_and_profile():
    g = make_trained_graph()
    text = g.report()
    for name in ("simplify", "cse", "dead", "fuse", "update", "memory"):
        assert re.search(rf"\b{name}\b", text), text
    assert re.search(r"\d+ -> +\d+ nodes", text) and "MB for" in text
    lines = {line.partition(" ")[0]: line for line in text.splitlines()}
    made, first = map(float, re.findall(r"([\d.]+) ms", lines["time"]))
    stages, passes = ({k: float(v) for k, v in re.findall(r"(\w+) ([\d.]+)", lines[name].partition(" ")[2])}
                      for name in ("making", "passes"))
    assert (list(stages) == ["trace", "derivative", "updates", "passes", "plan", "memory", "executor", "rest"]
            and first > 0)
    assert list(passes) == [f.__name__ for f in PASSES]
    assert abs(sum(stages.values()) - made) < 0.05 and abs(sum(passes.values()) - stages["passes"]) < 0.1
    assert all(stages[k] > 0 for k in ("trace", "derivative", "passes", "plan", "executor"))
    model = g.model.to(nn.Module)
    before, state = copy_state(model), g.state_dict()["model.0.weight-m"].numpy().copy()
    rows = g.profile(X, Y).splitlines()
    assert rows[0].split() == ["call", "op", "us", "share"] and "calls," in rows[-1]
    shares = [float(r.rpartition(" ")[2].rstrip("%")) for r in rows[1:-1]]
    assert shares == sorted(shares, reverse=True) and abs(sum(shares) - 100) < 3
    # profiling is not a training step
    assert all(np.array_equal(v, before[k]) for k, v in copy_state(model).items())
    assert np.array_equal(g.state_dict()["model.0.weight-m"].numpy(), state)
    assert g.state_dict()["System-Train-TrainStep"].tolist() == [1]


def test_only_compiled_graphs_have_a_report():
    g = make_graph(lambda self, x: self.m(x), m=make_mlp())
    for use in (g.report, lambda: g.profile(X), lambda: g.draw("x.svg")):
        with pytest.raises(RuntimeError, match="is not compiled yet"):
            use()


@pytest.mark.parametrize("optimizer", [flow.optim.SGD, flow.optim.Adam, flow.optim.RMSprop])
def test_a_plan_distinguishes_backward_from_updates(optimizer):
    model = make_mlp()
    g = trainer(model, optimizer(model.parameters(), lr=0.01))
    g(X, Y)
    found = parts(g._compiled.program.plan)
    assert list(dict.fromkeys(found)) == ["forward", "backward", "update"]
