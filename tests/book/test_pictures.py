"""The book's page of images: each is written by a block of the page, is readable, and appears where the page
names it.
"""
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from common import clean  # noqa: F401
from flowedu.show.svg import BOXES
from flowedu_course.lesson import run_lesson
from svg_text import misplaced

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))
import outputs  # noqa: E402
import pages  # noqa: E402

PAGE = ROOT / "book" / "pictures.md"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def made(clean, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    assert run_lesson(PAGE) == len(re.findall("^```python", PAGE.read_text(encoding="utf-8"), re.M))
    return {p.name: p.read_text(encoding="utf-8") for p in tmp_path.iterdir()
            if p.suffix in (".svg", ".html")}


def test_an_image_appears_where_the_page_names_it(made):
    text = PAGE.read_text(encoding="utf-8")
    named = pages.PICTURE.findall(text)
    assert sorted(named) == sorted(made) and len(named) == text.count("\n## ") > 4
    shown = pages.with_pictures(text, made)
    raw = re.findall(r"^```\{raw\} html\n(.*?)\n```$", shown, re.M | re.DOTALL)
    assert len(raw) == len(named) and not pages.PICTURE.search(shown)
    for name, piece in zip(named, raw):
        root = ElementTree.fromstring(piece)
        pictures = [*root.iter(SVG + "svg")]
        assert root.find("table") is not None or pictures, name
        for picture in pictures:
            boxes = [r for r in picture.iter(SVG + "rect") if r.get("stroke") or r.get("class") == "block"]
            assert len(boxes) <= BOXES and not misplaced(picture), name


def test_images_of_a_page_are_cached_with_its_output(tmp_path, monkeypatch):
    """A cached page restores its images together with its output, also after another page was requested.

    Another page removes nothing; a changed page replaces its own cache.
    """
    monkeypatch.setattr(outputs, "_cuda", lambda: "off")
    first, second, kept = (tmp_path / n for n in ("first.md", "second.md", "kept"))
    for path in (first, second):
        lines = ["from flowedu.errors.files import write_text",
                 f"print(write_text('{path.stem}.svg', 'drawn'))"]
        path.write_text("\n".join(["```python", *lines, "```", ""]), encoding="utf-8")
    assert outputs.all_outputs([first], kept) == {first: ["first.svg\n"]}
    assert outputs.pictures(first, kept) == {"first.svg": "drawn"}
    assert outputs.all_outputs([first], kept) == {first: ["first.svg\n"]} and outputs.pictures(first, kept)
    outputs.all_outputs([second], kept)
    assert outputs.pictures(second, kept) == {"second.svg": "drawn"} and len([*kept.iterdir()]) == 4
    assert outputs.pictures(first, kept) == {"first.svg": "drawn"}
    second.write_text(second.read_text(encoding="utf-8").replace("drawn", "changed"), encoding="utf-8")
    outputs.all_outputs([second], kept)
    assert outputs.pictures(second, kept) == {"second.svg": "changed"} and len([*kept.iterdir()]) == 4
