"""The diagram of a route: valid XML with every block, message, and hop."""
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given

import flowedu as flow
from flowedu.core.sbp.boxing import route
from flowedu.core.sbp.sbp import layout
from flowedu.core.values.spec import Spec
from svg_text import misplaced

from .boxing_common import layout_pairs

SVG = "{http://www.w3.org/2000/svg}"
GRID = ((0, 1, 2, 3), (2, 2))


def parts_of(r):
    """Return (root, blocks, texts, tooltips) of a diagram."""
    root = ET.fromstring(r.draw())
    assert root.tag == SVG + "svg"
    blocks = [e for e in root.iter(SVG + "rect") if e.get("class") == "block"]
    return root, blocks, [e.text for e in root.iter(SVG + "text")], [e.text for e in root.iter(SVG + "title")]


@given(layout_pairs())
def test_any_route_can_be_drawn(pair):
    shape, src, dst = pair
    r = route(src, dst, Spec(shape, flow.float32))
    root, blocks, texts, tips = parts_of(r)
    assert tips[0] == r.describe().splitlines()[0]
    assert sum(" sends " in t for t in tips) == len(r.messages())
    assert len([e for e in root.iter(SVG + "path") if e.get("class") == "tip"]) == len(r.messages())
    for h in r.hops:
        assert h.name in texts and any(t.startswith(f"{h.bytes} byte") or "B" in t for t in texts)
    width, height = float(root.get("width")), float(root.get("height"))
    for e in root.iter(SVG + "rect"):                                   # no element is outside of the canvas
        x, y, w, h = (float(e.get(n)) for n in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= width and 0 <= y <= y + h <= height
    assert r.draw() == r.draw() and not misplaced(root)


def test_blocks_show_their_position_in_the_value():
    r = route(layout("S0", (0, 1)), layout("S1", (0, 1)), Spec((4, 4), flow.float32))
    root, blocks, texts, tips = parts_of(r)
    assert len(blocks) == 8                                              # four quarters, before and after
    letters = [t for t in texts if len(t) == 1]
    assert letters == ["a", "b", "c", "d", "a", "c", "b", "d"]
    fills = [b.get("fill") for b in blocks]
    assert fills[:4] == [fills[4], fills[6], fills[5], fills[7]] and len(set(fills)) == 4
    assert "device 0: [0:2, 0:4]" in tips and "device 1: [0:4, 2:4]" in tips
    assert "device 0 sends 16 bytes to device 1" in tips and texts.count("16") == 2


def test_addends_are_hatched_and_zeros_are_empty():
    r = route(layout("S0", (0, 1)), layout("P", (0, 1)), Spec((4, 4), flow.float32))
    root, blocks, texts, tips = parts_of(r)
    hatched = [e.get("fill") for e in root.iter(SVG + "rect") if (e.get("fill") or "").startswith("url(#")]
    assert len(blocks) == 4 and len(hatched) == 2 and len(set(hatched)) == 2 and texts.count("0") == 2
    patterns = {e.get("id") for e in root.iter(SVG + "pattern")}
    assert {h[5:-1] for h in hatched} <= patterns
    assert "device 1: [0:4, 0:4], addend 1 of 2 (sum)" in tips


def test_grids_several_hops_other_devices_and_many_axes():
    spec = Spec((4, 4), flow.float32)
    _, _, texts, _ = parts_of(route(layout(("P", "S0"), *GRID), layout(("B", "B"), *GRID), spec))
    assert {"reduce-scatter", "all-gather", "(P, S(0)) (2x2)", "(S(1), S(0)) (2x2)",
            "(B, B) (2x2)"} <= set(texts)
    assert [t for t in texts if t.startswith("at ")] == ["at (0, 0)", "at (0, 1)", "at (1, 0)", "at (1, 1)"]
    _, _, texts, _ = parts_of(route(layout("S0", (0, 1)), layout("B", (5,)), spec))
    assert [t for t in texts if t.startswith("device ")] == ["device 0", "device 1", "device 5"]
    _, _, texts, _ = parts_of(route(layout("S2", (0, 1)), layout("S0", (0, 1)),
                                    Spec((4, 5, 6), flow.float32)))
    assert any("axes 0 and 2 of it" in t for t in texts)
    r = route(layout(("S0", "S1"), *GRID), layout(("S2", "P"), *GRID), Spec((4, 4, 4), flow.float32))
    _, blocks, texts, _ = parts_of(r)
    assert len(blocks) == 12 and texts.count("axis 2: 0:2") == texts.count("axis 2: 2:4") == 2
    for shape, where in [((), (0, 1)), ((4, 0, 3), (0, 1)), ((5,), (2, 3))]:
        parts_of(route(layout("P", (0, 1)), layout("B", where), Spec(shape, flow.float32)))
    _, blocks, _, tips = parts_of(route(layout("B", (0, 1)), layout("B", (0, 1)), spec))
    assert len(blocks) == 2 and "nothing" in tips[0]


@pytest.mark.parametrize("name", ["route.svg", "deep/er/route.svg"])
def test_the_diagram_is_written(tmp_path, name):
    r = route(layout("P", (0, 1)), layout("B", (0, 1)), Spec((4, 4), flow.float32))
    text = r.draw(tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8") == text and "prefers-color-scheme: dark" in text
