"""The widgets of the book in a real browser: dragging with the mouse changes the displayed text, and the text
is true.
"""
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow

from .browser import Browser, find_browser, read_integers

ROOT = Path(__file__).parents[2]
WIDGETS = ROOT / "book" / "widgets"
sys.path.insert(0, str(ROOT / "book"))
import tables  # noqa: E402

pytestmark = pytest.mark.skipif(not find_browser(),
                                reason="there is no chromium here: apt-get install chromium")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    tables.write_all(folder)
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as b:
        yield b


@pytest.fixture
def opened(browser, written, tmp_path):
    """Return a function that opens a widget by name, without the surrounding page of the book."""
    def open_page(name):
        raw = re.search(r"```\{raw\} html\n(.*?)```", (ROOT / "book" / f"{name}.md").read_text("utf-8"),
                        re.DOTALL)[1]
        for file in re.findall(r'"\.\./_static/([^"]+)"', raw):
            home = written if file.endswith("-table.js") else WIDGETS
            raw = raw.replace(f"../_static/{file}", (home / file).as_uri())
        page = tmp_path / f"{name}.html"
        style = (WIDGETS / "book.css").as_uri()
        page.write_text(f'<!doctype html><meta charset="utf-8"><link rel="stylesheet" '
                        f'href="{style}"><body>{raw}</body>', encoding="utf-8")
        browser.faults.clear()
        browser.asked.clear()
        browser.open(page)
        return browser
    yield open_page
    assert not browser.faults, browser.faults
    assert all(url.startswith("file:") for url in browser.asked), "a widget asks the network"


@pytest.mark.parametrize("path", sorted(WIDGETS.glob("*.js")), ids=lambda p: p.name)
def test_a_widget_is_small_and_plain(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300 and max(map(len, text.splitlines())) <= 124
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "") and "import " not in text


# ---- strides
def view(b):
    """Return the cells that the view shows, as a matrix."""
    flat = b.js("[...document.querySelectorAll('.view text')].map(t => Number(t.textContent))")
    rows, columns = state(b)[:2]
    return np.array(flat, int).reshape(rows, columns)


def state(b):
    return b.js("[...document.querySelectorAll('.number')].map(n => Number(n.textContent))")


def test_a_view_shows_the_cells_that_numpy_shows(opened):
    b = opened("strides")
    block = np.arange(24)
    assert (view(b) == block.reshape(4, 6)).all() and "contiguous" in b.text(".said")
    names = b.js("[...document.querySelectorAll('option')].map(o => o.value)")
    assert len(names) == 5
    for name in names:
        b.choose("select", name)
        rows, columns, down, right, offset = state(b)
        want = np.lib.stride_tricks.as_strided(block[offset:], (rows, columns), (8 * down, 8 * right))
        assert (view(b) == want).all(), name


def test_numbers_are_dragged_and_keys_change_them(opened):
    b = opened("strides")
    b.drag("[data-name='column stride']", 16, 0)
    b.drag("[data-name='columns']", -48, 0)
    assert (state(b) == [4, 3, 6, 2, 0] and view(b)[1].tolist() == [6, 8, 10]
            and "not contiguous" in b.text(".said"))
    b.drag("[data-name='offset']", 16, 0)
    assert view(b)[0].tolist() == [1, 3, 5] and b.text(".code") == "cell of [i, j] = 1 + i * 6 + j * 2"
    b.drag("[data-name='row stride']", -6 * 16, 0)
    assert "several elements share a cell" in b.text(".said")
    b.key("ArrowUp")                                           # the number that was dragged has the focus
    assert state(b)[2] == 1
    b.drag("[data-name='rows']", -400, 0)
    assert state(b)[0] == 0 and "size 0" in b.text(".said")


def test_cells_outside_the_memory_are_reported(opened):
    b = opened("strides")
    b.drag("[data-name='offset']", 16, 0)
    assert ("cell 24 lies outside" in b.text(".said")
            and "bad" in b.js("document.querySelector('.said').className"))
    red = b.js("[...document.querySelectorAll('.view rect')].filter(r => r.getAttribute('stroke') === "
               "'#c02f1d').length")
    assert red == 1


# ---- boxing
def test_routes_match_the_library(opened):
    """Compare bytes, hops, and the image of some routes."""
    b, draw = opened("boxing"), random.Random(0)
    flow.distributed.set_virtual_devices(4)
    try:
        for _ in range(12):
            (a, src), (c, dst) = draw.sample(sorted(tables.LAYOUTS.items(), key=str), 2)
            k, n = draw.choice(tables.DEVICES), draw.choice(tables.DEVICES)
            for name, value in (("source", a), ("from devices", k), ("target", c), ("to devices", n)):
                b.choose(f"[data-name='{name}']", str(value))
            places = [flow.placement("cpu", [*range(d)]) for d in (k, n)]
            r = flow.boxing.route(tables.SHAPE, places[1], dst, src=(places[0], src))
            said = b.text(".said")
            assert read_integers(said)[0] == r.bytes and all(h.name in said for h in r.hops)
            assert b.text(".others b") == str(r.bytes) == b.text(f"[data-to='{n} {c}']")
            assert b.js("document.querySelectorAll('.picture .tip').length") == len(r.messages())
    finally:
        flow.distributed.set_virtual_devices(1)


def test_a_cell_of_the_table_selects_a_route(opened):
    b = opened("boxing")
    b.js("document.querySelector('[data-to=\"4 S(1)\"]').click()")
    assert b.js("[...document.querySelectorAll('select')].map(s => s.value)") == ["P", "2", "S(1)", "4"]
    b.choose("[data-name='source']", "S(1)")
    b.choose("[data-name='from devices']", "4")
    assert b.text(".said").startswith("0 bytes")


# ---- arena
def bound(b):
    return read_integers(re.search(r"bound of ([\d,]+)", b.text(".said"))[1])[0]


def test_the_library_meets_the_bound_and_stacking_does_not(opened):
    b = opened("arena")
    table = tables.arena()
    whole = sum(x["bytes"] for x in table["buffers"])
    assert f"needs {whole:,} bytes" in b.text(".said") and bound(b) == table["bound"] < whole
    b.choose("select", "as the library")
    assert f"needs {table['arena']:,} bytes" in b.text(".said") and "overlap" not in b.text(".said")
    b.choose("select", "as they are born, in the lowest gap")
    assert "overlap" not in b.text(".said")


def test_rectangles_are_dragged(opened):
    """Dragging onto the lowest rectangle reports an overlap at a shared step; dragging back restores the
    original text.
    """
    b = opened("arena")
    before, pixels = b.text(".said"), 520 / sum(x["bytes"] for x in tables.arena()["buffers"])
    size = tables.arena()["buffers"][0]["bytes"] * pixels
    b.drag("[data-buffer='1']", 0, size)
    assert ("live together and overlap" in b.text(".said")
            and "bad" in b.js("document.querySelector('.said').className"))
    b.drag("[data-buffer='1']", 0, -size)
    assert b.text(".said") == before
    last = len(tables.arena()["buffers"]) - 1
    b.drag(f"[data-buffer='{last}']", 0, -5000)                  # not above the sum of all sizes
    assert b.text(".said") == before
    b.drag(f"[data-buffer='{last}']", 0, 64 * pixels)
    b.key("ArrowUp")
    assert b.text(".said") == before
