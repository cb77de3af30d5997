"""The SVG writer and the images of the lessons, which are valid and have at most 60 boxes."""
import ast
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowedu.errors.files import write_text
from flowedu.show.boxes import Box
from flowedu.show.graph import drawing
from flowedu.show.svg import BOXES, Drawing, element
from flowedu.swap.build import Line
from flowedu.swap.cython_report import draw_lines
from svg_text import misplaced

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
PICTURES = sorted((ROOT / "chapters").glob("*/pictures/*.svg"))
numbers = st.floats(-1e4, 1e4)
PATHS = re.compile(r"([MCL])([-\d., ]+)")
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), max_size=8)


@given(words, words, numbers, numbers)
def test_written_elements_are_valid_xml(title, text, x, y):
    d = Drawing(100, 50, title, "some", "#some text { fill: red; }")
    d.hatching("h", 45)
    with d.group(tip=text, href=text):
        d.box(x, y, 10, 20, text)
        d.text(x, y, text)
    d.arrow(x, y, y, x)
    d.path(("M", (x, y)), ("C", (1, 2), (x, y), (3, 4)), ("Z",), class_="a", stroke_width=x)
    d.line((x, y), (y, x))
    root = ElementTree.fromstring(d.svg())
    said = [e.text or "" for e in root.iter(SVG + "text")]
    assert said.count(text) >= 1 and (root.get("aria-label") or "") == title
    box = next(e for e in root.iter(SVG + "rect") if e.get("stroke"))
    assert float(box.get("x")) == pytest.approx(x, abs=0.01) and box.get("rx") == "3"
    # the paths of the hatching and of the line
    assert [e.get("class") for e in root.iter(SVG + "path")] == [None, "a"]


def test_names_of_attributes():
    assert element("a", "<", class_="b", stroke_width=2.0, x=None) == '<a class="b" stroke-width="2">&lt;</a>'
    assert element("rect", x=1 / 3) == '<rect x="0.33"/>'


def test_a_file_is_written_atomically(tmp_path):
    path = write_text(tmp_path / "deep" / "a.svg", "first")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "second \ud800")
    assert path.read_text(encoding="utf-8") == "first"


def test_only_one_file_writes_svg():
    """No other file writes SVG elements by hand; matplotlib draws the charts."""
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "chapters").rglob("*.py")]:
        strings = [n.value for n in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                   if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        by_hand = [s for s in strings if "<svg" in s or "<rect" in s or "<polyline" in s]
        assert not by_hand or path.name == "svg.py", (path, by_hand)


@pytest.mark.parametrize("path", PICTURES, ids=lambda p: f"{p.parts[-3]}/{p.name}")
def test_a_lessons_image_is_valid_and_has_few_boxes(path):
    root = ElementTree.parse(path).getroot()
    assert root.tag == SVG + "svg"
    assert sum(bool(r.get("stroke")) or r.get("class") == "block" for r in root.iter(SVG + "rect")) <= BOXES
    assert not misplaced(path)


def test_misplaced_texts_are_found(tmp_path):
    for place, bad in (((10, 20), 0), ((60, 20), 1), ((10, 5), 1), ((-1, 20), 1), ((30, 58), 1),
                       ((10, 60), 1)):
        d = Drawing(100, 60)
        d.text(*place, "some text", 14, "start")
        d.text(20, 55, "more", 14, "start")
        assert bool(misplaced(d.save(tmp_path / "a.svg"))) == bad, place


@given(st.lists(st.lists(st.text("ab =()#", max_size=60), min_size=1, max_size=4), min_size=1, max_size=3))
def test_code_in_an_image_keeps_its_columns(tmp_path_factory, sources):
    lines = [(f"step {i}", [Line(n, 3, text) for n, text in enumerate(source, 1)])
             for i, source in enumerate(sources)]
    path = draw_lines(lines, tmp_path_factory.mktemp("yellow") / "a.svg")
    assert not misplaced(path)
    said = [e for e in ElementTree.parse(path).getroot().iter(SVG + "text")
            if "monospace" in (e.get("font-family") or "")]
    assert [(e.text or "").replace("\u00a0", " ") for e in said] == [t.rstrip() for source in sources
                                                                     for t in source]
    assert len({e.get("x") for e in said}) == len(sources)


@given(st.lists(st.lists(st.integers(0, 30), max_size=3), min_size=1, max_size=16))
def test_an_edge_goes_around_the_boxes_that_it_skips(reads):
    made = []
    for i, some in enumerate(reads):
        above = {n % i for n in some} if i else ()
        made.append(Box(f"op {i}", "float32 2x3", "forward", "", reads=[made[k] for k in above]))
    root = ElementTree.fromstring(drawing("a graph of a rather long name, after the passes: 1 op",
                                          made).svg())
    assert not misplaced(root)
    boxes = [[float(r.get(k)) for k in ("x", "y", "width", "height")] for r in root.iter(SVG + "rect")
             if r.get("rx")]
    paths = list(root.iter(SVG + "path"))
    assert len(boxes) == len(made) and len(paths) == sum(len(b.reads) for b in made)
    for path in paths:
        for x, y in points(path.get("d")):
            assert 0 <= x <= float(root.get("width"))
            assert not any(bx + 1 < x < bx + w - 1 and by + 1 < y < by + h - 1
                           for bx, by, w, h in boxes), path.get("d")


def points(d):
    """Yield some points of a path."""
    here = None
    for letter, numbers in PATHS.findall(d):
        places = [tuple(map(float, p.split(","))) for p in numbers.split()]
        if letter == "C":
            a, (b, c, e) = here, places
        else:
            a = b = here or places[0]
            c = e = places[0]
        for t in (0, 0.25, 0.5, 0.75, 1):
            u = 1 - t
            yield tuple(u ** 3 * p + 3 * u * u * t * q + 3 * u * t * t * r + t ** 3 * s
                        for p, q, r, s in zip(a, b, c, e))
        here = e
