"""Display in notebooks: small tensors and plans as tables of their values, graphs and routes as images.
flow.show writes the same to files and prints text outside of notebooks.
"""
import re
import sys
import types
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import flowedu as flow
from common import f32, fresh_session, job  # noqa: F401
from flowedu import nn
from flowedu.show.notebook import MOST, html_table, plan_html
from flowedu.show.plan import rows
from flowedu.show.svg import BOXES

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
DTYPES = (flow.float32, flow.float64, flow.float16, flow.bfloat16, flow.int32, flow.int8, flow.uint8,
          flow.bool)
shapes = st.lists(st.integers(0, MOST + 2), max_size=3).map(tuple)


@pytest.fixture
def two(fresh_session):  # noqa: F811
    """Set two devices, and clear the jobs of earlier tests."""
    flow.distributed.set_virtual_devices(2)
    yield
    flow.distributed.set_virtual_devices(1)


def cells(html, tag="td"):
    """Return the rows of the table as texts."""
    root = ElementTree.fromstring(f"<all>{html}</all>")
    assert [e.tag for e in root] == ["table", *(["pre"] if root.find("pre") is not None else [])]
    return [[c.text or "" for c in row.findall(tag)] for row in root.find("table").iter("tr")]


@given(shapes, st.sampled_from(DTYPES), st.booleans(), st.integers(0, 2**31))
@example((MOST + 1, 2), flow.float32, False, 0)
def test_a_small_tensor_is_a_table_of_its_values(shape, dtype, grad, seed):
    a = np.random.default_rng(seed).normal(size=shape) * 20
    t = flow.tensor(a.astype(np.float32)).to(dtype)
    t.requires_grad_(grad and dtype.name.startswith(("float", "bfloat")))
    html = t._repr_html_()
    if not 1 <= len(shape) <= 2 or not t.numel() or max(shape) > MOST:
        assert html is None
        return
    said = [row for row in cells(html) if row]
    want = t.detach().double().numpy() if dtype is not flow.bool else t.numpy()
    numbers = np.array([[w == "True" if dtype is flow.bool else float(w) for w in row] for row in said])
    np.testing.assert_allclose(numbers.reshape(shape), want, rtol=1e-3, atol=6e-5)
    assert f"dtype={dtype!r}" in html and ("requires_grad" in html) == t.requires_grad
    words = {w for row in said for w in row}
    assert all(w in repr(t) for w in words) or t.numel() > 100, "the same digits as in its text"


def test_tensors_without_local_values_are_text(two):
    seen = []

    class Looks(nn.Graph):
        def build(self, x):
            seen.append(x._repr_html_())
            return x + 1

    Looks()(flow.ones(2, 2))
    spread = flow.ones(2, 2).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
    assert seen == [None] and spread._repr_html_() is None


@given(st.lists(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"])),
                         min_size=2, max_size=2), max_size=3))
def test_texts_in_a_table_are_escaped(texts):
    assert cells(html_table(texts, under="<a & b>")) == texts
    assert cells(html_table(texts, ("x", "<"), left=1), "th") == [["x", "<"], *(row[:1] for row in texts)]


# ---- graphs, plans, jobs, routes
def called(depth):
    layers = [nn.Sequential(nn.Linear(3, 3), nn.ReLU()) for _ in range(depth)]

    class Net(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = nn.Sequential(*layers)

        def build(self, x):
            return self.model(x)

    graph = Net()
    assert graph._repr_svg_() is None
    graph(flow.ones(2, 3))
    return graph


@pytest.mark.parametrize("depth", [1, 40])
def test_a_graph_is_displayed_as_an_image(depth, tmp_path):
    graph = called(depth)
    root = ElementTree.fromstring(graph._repr_svg_())
    boxes = [r for r in root.iter(SVG + "rect") if r.get("stroke")]
    assert "as traced" in root.get("aria-label") and 4 < len(boxes) <= BOXES
    drawn = graph.draw(tmp_path / "a.svg")
    assert len(boxes) == sum(bool(r.get("stroke"))
                             for r in ElementTree.parse(drawn).getroot().iter(SVG + "rect"))
    assert "href" not in graph._repr_svg_(), "there is no file beside it"


def test_a_plan_and_its_job_are_the_table_of_the_plan(fresh_session):  # noqa: F811
    step = job(lambda a: flow.math.relu(flow.matmul(a, a)) + 1.0, f32(4, 4))
    assert step._repr_html_() is None
    step(f32(4, 4))
    table = rows(step.plan, step.argument_names())
    said = cells(step._repr_html_())
    assert step.plan._repr_html_() == plan_html(step.plan) and len(said) == len(table) + 1
    assert [row[1] for row in said[1:]] == [r.result for r in table]
    assert [row[5] for row in said[1:]] == [f"{r.nbytes:,}" for r in table]


def test_a_route_is_displayed_as_an_image(two):
    at = flow.placement("cpu", [0, 1])
    route = flow.boxing.route((4, 4), at, flow.sbp.broadcast, src=(at, flow.sbp.split(0)))
    assert route._repr_svg_() == route.draw() and ElementTree.fromstring(route.draw()).tag == SVG + "svg"


# ---- flow.show
def displayable_objects():
    step = job(lambda a: flow.math.relu(a), f32(2, 2))
    step(f32(2, 2))
    at = flow.placement("cpu", [0, 1])
    return [called(1), step, step.plan, flow.boxing.route((4,), at, flow.sbp.broadcast,
                                                          src=(at, flow.sbp.split(0))),
            flow.ones(2, 3)]


def test_show_prints_where_there_is_no_notebook(two, capsys):
    for thing, words in zip(displayable_objects(),
                            ("(GRAPH:Net_", "plan of ", "plan of ", "all-gather", "tensor([[1.")):
        assert flow.show(thing) is None and words in capsys.readouterr().out


def test_show_writes_files(two, tmp_path):
    for i, thing in enumerate(displayable_objects()):
        page = flow.show(thing, tmp_path / "deep" / f"{i}.html").read_text(encoding="utf-8")
        root = ElementTree.fromstring(re.sub(r"<!DOCTYPE html>", "", page))
        picture = hasattr(thing, "_repr_svg_")
        assert (root.find(f"body/{SVG}svg") is not None) == picture == (root.find("body/table") is None)
        if picture:
            assert flow.show(thing,
                             str(tmp_path / f"{i}.svg")).read_text(encoding="utf-8") == thing._repr_svg_()
        else:
            with pytest.raises(flow.errors.ArgumentError, match=r"it is a table: \.html"):
                flow.show(thing, tmp_path / f"{i}.svg")
    with pytest.raises(flow.errors.ArgumentError, match=r"show: path"):
        flow.show(thing, tmp_path / "a.png")
    with pytest.raises(flow.errors.ArgumentError, match="no such image of this Tensor"):
        flow.show(flow.ones(2, 3, 4), tmp_path / "a.html")


@pytest.mark.parametrize("shell, displays", [(None, False), (types.SimpleNamespace(), False),
                                             (types.SimpleNamespace(kernel=1), True)],
                         ids=["none", "terminal", "notebook"])
def test_show_displays_in_a_notebook(shell, displays, monkeypatch, capsys):
    shown = []
    inside = types.SimpleNamespace(display=shown.append)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell,
                                                                      display=inside))
    monkeypatch.setitem(sys.modules, "IPython.display", inside)
    t = flow.ones(2)
    flow.show(t)
    assert (shown == [t], "tensor" in capsys.readouterr().out) == (displays, not displays)


# ---- bars
def test_progress_bars_support_notebooks():
    """tqdm.auto selects widgets in a notebook and text on a terminal."""
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "chapters").rglob("*.py")]
    users = {p: re.findall(r"from (tqdm[.\w]*) import", p.read_text(encoding="utf-8")) for p in files}
    found = [(p, home) for p, homes in users.items() for home in homes]
    assert len(found) > 10 and not [p for p, home in found if home != "tqdm.auto"]
