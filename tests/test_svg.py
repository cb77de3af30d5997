"""The one writer of SVG, and the pictures that the lessons show: valid, of at most 60 boxes."""
import ast
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowedu.show.svg import BOXES, Drawing, element, write

ROOT = Path(__file__).parents[1]
SVG = "{http://www.w3.org/2000/svg}"
PICTURES = sorted((ROOT / "chapters").glob("*/pictures/*.svg"))
numbers = st.floats(-1e4, 1e4)
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), max_size=8)


@given(words, words, numbers, numbers)
def test_what_is_written_can_be_read(title, text, x, y):
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
    assert [e.get("class") for e in root.iter(SVG + "path")] == [None, "a"]              # of the hatching, and of the path


def test_names_of_attributes():
    assert element("a", "<", class_="b", stroke_width=2.0, x=None) == '<a class="b" stroke-width="2">&lt;</a>'
    assert element("rect", x=1 / 3) == '<rect x="0.33"/>'


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    path = write(tmp_path / "deep" / "a.svg", "first")
    with pytest.raises(UnicodeEncodeError):
        write(path, "second \ud800")
    assert path.read_text() == "first"


def test_only_one_file_writes_svg():
    """Nobody puts elements together by hand. (Charts are matplotlib's.)"""
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "chapters").rglob("*.py")]:
        strings = [n.value for n in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                   if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        by_hand = [s for s in strings if "<svg" in s or "<rect" in s or "<polyline" in s]
        assert not by_hand or path.name == "svg.py", (path, by_hand)


@pytest.mark.parametrize("path", PICTURES, ids=lambda p: f"{p.parts[-3]}/{p.name}")
def test_a_lessons_picture_is_valid_and_of_few_boxes(path):
    root = ElementTree.parse(path).getroot()
    assert root.tag == SVG + "svg"
    assert sum(bool(r.get("stroke")) or r.get("class") == "block" for r in root.iter(SVG + "rect")) <= BOXES
