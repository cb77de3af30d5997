"""How a lesson looks in a terminal: in reading order, in 100 columns, plain where it should be; and how demos begin."""
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flowedu as flow
from common import HANGS
from flowedu.learn import course, reader
from flowedu.learn.demo import opening
from flowedu.learn.lesson import main, pages, promised, run_lesson
from flowedu.learn.reader import Reader, brief

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(p.parent for p in (ROOT / "chapters").glob("*/README.md"))
PAGE = """# Two and two

**The idea: addition.** A second sentence about it, with a [link](other.md).

| a | table |
|---|---|

## Sums

A first paragraph, which is left out where code follows.

The last one leads to the code:

```python
x = 2 + 2
print("a long line", "-" * 120)
print(x)
```
```text output
a long line ...
4
```

```
a drawing
```

## The end

Nothing follows here. It says so.
"""


def shown(path, **options):
    lines = []
    r = Reader(path, lines.append, **options)
    count = run_lesson(path, r.printed, r.before)
    return count, lines


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(PAGE)
    return path


def test_text_code_and_output_in_reading_order(page):
    count, lines = shown(page)
    assert count == 1
    marks = ["# Two and two", "The idea: addition. A second sentence about it, with a link.", "## Sums",
             "The last one leads to the code:", "  | x = 2 + 2", "  > 4", "## The end", "Nothing follows here. It says so."]
    places = [lines.index(m) for m in marks]
    assert places == sorted(places)
    assert not any("table" in line or "first paragraph" in line or "drawing" in line or "..." in line for line in lines)
    assert "  > a long line " + "-" * 84 in lines and "  > " + "-" * 36 in lines          # longer than a line: it goes on


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.name)
def test_every_page_fits_into_100_columns(chapter):
    """Read without running: every heading is there, every block's code, and no more than two lines of text at a place."""
    for path in pages(chapter):
        lines, text = [], path.read_text(encoding="utf-8")
        r = Reader(path, lines.append)
        import flowedu.learn.lesson as lesson
        read = 0
        for match in lesson.BLOCK.finditer(text):
            r.before(text[read:match.start()], lesson._block(match))
            read = match.end()
        r.before(text[read:], None)
        assert max(map(len, lines)) <= reader.WIDTH, max(lines, key=len)
        headings = re.findall(r"^#+ .*$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
        assert [x for x in lines if x.startswith("#")] == headings
        assert not re.search(r"\n\n\n", "\n".join(lines))
        prose = [len(run.splitlines()) for run in re.findall(r"(?:^(?!  [|>] |#).+\n?)+", "\n".join(lines), re.M)]
        assert max(prose) <= 2, path


def test_a_long_sentence_is_cut():
    words = " ".join(["word"] * 100)
    end, beginning = brief(words + ":", True), brief(words, False)
    assert end[1].startswith("... ") and end[-2].endswith("word:") and len(end) == 4
    assert beginning[-2].endswith("word ...") and len(beginning) == 4


def test_pace_asks_where_an_output_is_promised(page, monkeypatch):
    asked = []
    monkeypatch.setattr("builtins.input", asked.append)
    assert [*promised(PAGE)] == [PAGE[:PAGE.index("x = 2")].count("\n") + 1]
    shown(page, paced=True)
    assert len(asked) == 1 and "what will be printed?" in asked[0]
    monkeypatch.setenv("PACE", "1")                             # nobody is there to press Enter
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    shown(page)
    assert len(asked) == 1


def test_colours_only_on_a_terminal(page, monkeypatch):
    monkeypatch.setattr(sys, "stdout", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})())
    for variable, colored in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", variable)
        assert any("\033[" in line for line in shown(page)[1]) == colored


def test_a_chapter_is_a_folder(tmp_path, capsys):
    for name in ("a.md", "b.md", "0.md", "b.zh.md"):
        (tmp_path / name).write_text("")
    (tmp_path / "README.md").write_text("[b](b.md) and [a](a.md#x)")
    assert [p.name for p in pages(tmp_path)] == ["README.md", "b.md", "a.md", "0.md"]
    assert main([str(tmp_path)]) == 0 and capsys.readouterr().out.count("0 code blocks ran") == 4
    assert main([str(tmp_path / "c.md")]) == 2 and main([]) == 2 and main([str(tmp_path / "none")]) == 2


def test_a_reader_that_goes_away_is_no_error():
    done = subprocess.run(f"{sys.executable} -m flowedu.learn.lesson {CHAPTERS[0]} | head -1", shell=True, text=True,
                          capture_output=True, timeout=HANGS,
                          env={**os.environ, "PYTHONPATH": str(Path(flow.__file__).parents[1])})
    assert not done.stderr, done.stderr


# ---- demos
def test_every_demo_says_how_long_it_takes():
    for c in course.chapters():
        assert 0 < c.demo_seconds <= 300, f"{c.folder.name}/chapter.toml: how long does its demo take? demo_seconds = ..."
    for demo in ROOT.glob("chapters/*/demo.py"):
        assert re.search(r"^ +opening\(__file__", demo.read_text(), re.M), demo


def test_what_a_demo_says_first(tmp_path, capsys, monkeypatch):
    (tmp_path / "chapter.toml").write_text("demo_seconds = 20\n")
    demo = str(tmp_path / "demo.py")
    opening(demo)
    assert "about 20 s on two cores" in capsys.readouterr().out
    opening(demo, quick=True)
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("FLOWEDU_HOLES", str(tmp_path))
    opening(demo, quick=True)
    assert capsys.readouterr().out.startswith("whose code runs: ")
