"""The display of lessons in a terminal: order, width, breaks between sentences and tokens, and plain output
where needed; and the opening lines of demos.
"""
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import HANGS
from flowedu_course import course, reader
from flowedu_course.blocks import BLOCK, block_of, blocks, pages, promised
from flowedu_course.demo import opening
from flowedu_course.lesson import main, run_lesson
from flowedu_course.reader import Reader, brief

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(p.parent for p in (ROOT / "chapters").glob("*/README.md"))
LONG = {n for n, name in tokenize.tok_name.items() if name in ("COMMENT", "STRING", "FSTRING_MIDDLE")}
PAGE = """# Two and two

**The idea: addition.** A second sentence about it, with a [link](other.md).

| a | table |
|---|---|

## Sums

A first paragraph. It says what follows.

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


def answer_lines(path, **options):
    lines = []
    r = Reader(path, lines.append, **options)
    count = run_lesson(path, r.printed, r.before)
    return count, lines


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_text_code_and_output_in_reading_order(page, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    count, lines = answer_lines(page)
    assert count == 1
    marks = ["# Two and two", "The idea: addition. A second sentence about it, with a link.", "## Sums",
             "A first paragraph. It says what follows.", "  | x = 2 + 2", "  > 4", "## The end",
             "Nothing follows here. It says so."]
    places = [lines.index(m) for m in marks]
    assert places == sorted(places)
    assert not any("table" in line or "last one" in line or "drawing" in line or "..." in line
                   for line in lines)
    assert "  > a long line" in lines and "  :     " + "-" * 112 in lines  # longer than a line: it continues


def read(path, width, monkeypatch):
    """Return the lines of a page that is displayed without being run."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines, text, at = [], path.read_text(encoding="utf-8"), 0
    r = Reader(path, lines.append)
    for match in BLOCK.finditer(text):
        r.before(text[at:match.start()], block_of(match))
        at = match.end()
    r.before(text[at:], None)
    return lines


@pytest.mark.parametrize("width", [40, 80, 100, 200])
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.name)
def test_every_page_fits_into_the_terminal(chapter, width, monkeypatch):
    """Every heading is shown; only text without blanks exceeds the line width, and prose has a maximum
    width.
    """
    for path in pages(chapter):
        lines = read(path, width, monkeypatch)
        for line in lines:
            mark, body = re.fullmatch(r"(  [|:] )?(.*)", line).groups()
            assert len(line) <= (width if mark else min(width, reader.PROSE)) or " " not in body.strip(), line
        headings = re.findall(r"^#+ .*$", re.sub(r"^```.*?^```", "", path.read_text("utf-8"),
                                                 flags=re.M | re.S), re.M)
        unbroken = " ".join(lines)
        assert all(h in unbroken for h in headings) and not re.search(r"\n\n\n", "\n".join(lines))


@pytest.mark.parametrize("width", [36, 60, 96, 130])
def test_code_is_broken_between_tokens_without_loss(width):
    """A string or comment is broken only at a blank, and only if it is too long by itself."""
    count = 0
    for b in (b for c in CHAPTERS for p in pages(c) for b in blocks(p.read_text(encoding="utf-8"))):
        if b.language != "python":
            continue
        shown = reader.code_lines(b.text, width)
        found = [t for t in tokenize.generate_tokens(io.StringIO(b.text).readline) if t.string.strip()]
        for n, (line, pieces) in enumerate(zip(b.text.rstrip("\n").split("\n"), shown, strict=True), 1):
            assert "".join("".join(pieces).split()) == "".join(line.split())
            at, room = 0, width - min(len(line) - len(line.lstrip()) + 4, width // 2)
            for before, after in itertools.pairwise(pieces):
                count += 1
                at = line.index(before.strip(), at) + len(before.strip())       # the position of the break
                for t in (t for t in found if t.start < (n, at) < t.end):
                    assert line[at] == " ", (before, after)
                    assert (t.start[0] < t.end[0] or t.type in LONG
                            and len(t.string) + 9 > room), (before, after)
    assert count > (0 if width > 100 else 30)


@given(st.lists(st.text("ab(),=#'\" ", max_size=40), max_size=4), st.integers(20, 30))
def test_any_text_is_shown_completely(lines, width):
    text = "\n".join(lines)
    for cut in (reader.code_lines, reader.output_lines):
        pieces = [p for line in cut(text, width) for p in line]
        if not any("…" in p for p in pieces):
            assert "".join("".join(pieces).split()) == "".join(text.split())
        assert cut is reader.code_lines or all(len(p) <= width for p in pieces)


def test_a_table_row_is_not_wrapped():
    table = "step  op      result          memory\n   0  matmul  first-matmul    @0\n"
    assert reader.output_lines(table, 30) == [[row[:29] + "…"] for row in table.splitlines()]
    assert [len(x) for x in reader.output_lines("fix: " + "words " * 12, 30)] == [3]  # a sentence continues


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.name)
def test_shown_prose_consists_of_complete_sentences(chapter):
    """Shown parts begin with a paragraph and end with a sentence, and a colon is followed by its block."""
    said = 0
    for path in pages(chapter):
        text, at = path.read_text(encoding="utf-8"), 0
        for match in [*BLOCK.finditer(text), None]:
            part = text[at:match.start() if match else None]
            at = match.end() if match else 0
            plain = [" ".join(re.sub(r"\*\*|\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or "", p).split())
                     for p in re.split(r"\n\s*\n|^#.*$", part, flags=re.M)]
            lines = [x for x in brief(part, bool(match)) if x and not x.startswith("#")]
            for i, line in enumerate(lines):
                said += 1
                body = line.rstrip(".:")
                assert any(p.startswith(body) for p in plain), line
                leads = match and i == len(lines) - 1 and part.strip().endswith(":")
                assert line[-1] in ".!?" or line[-1] == ":" and leads, line
                assert line.count("`") % 2 == 0 and line.count("(") == line.count(")"), line
                assert (not re.match(r"[-*] |\d+\. ", line) and not re.search(r"[.:] (-|\d\.)( |$)",
                                                                              line)), line
                assert line[0] not in "`" or len(line) > 20
    assert said > 5


def test_a_paragraph_shows_its_first_sentences():
    page = "[中文](README.zh.md)\n\n## Why\n\nThere are rules:\n1. One.\n2. Two.\n\nIt leads on:\n"
    assert brief(page, True) == ["", "## Why", "", "There are rules.", ""]
    assert brief("A first. It has a second. These lead on:",
                 True) == ["", "A first. It has a second. These lead on:", ""]
    assert brief("A first. It has a second. These lead on:", False) == ["", "A first. It has a second.", ""]
    long = " ".join(["word"] * 100)
    assert brief(f"A{long}. And {long}.", True) == ["", f"A{long}.", ""]


def test_pace_pauses_before_a_promised_output(page, monkeypatch):
    asked = []
    monkeypatch.setattr("builtins.input", asked.append)
    assert [*promised(PAGE)] == [PAGE[:PAGE.index("x = 2")].count("\n") + 1]
    answer_lines(page, paced=True)
    assert len(asked) == 1 and "what will be printed?" in asked[0]
    monkeypatch.setenv("PACE", "1")                             # continues without Enter
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    answer_lines(page)
    assert len(asked) == 1


def test_colours_only_on_a_terminal(page, monkeypatch):
    monkeypatch.setattr(sys, "stdout", type("Terminal", (io.StringIO,), {"isatty": lambda self: True})())
    for variable, colored in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", variable)
        assert any("\033[" in line for line in answer_lines(page)[1]) == colored


def test_a_chapter_is_a_folder(tmp_path, capsys):
    for name in ("a.md", "b.md", "0.md", "b.zh.md"):
        (tmp_path / name).write_text("")
    (tmp_path / "README.md").write_text("[b](b.md) and [a](a.md#x)")
    assert [p.name for p in pages(tmp_path)] == ["README.md", "b.md", "a.md", "0.md"]
    assert main([str(tmp_path)]) == 0 and capsys.readouterr().out.count("0 code blocks ran") == 4
    assert main([str(tmp_path / "c.md")]) == 2 and main([]) == 2 and main([str(tmp_path / "none")]) == 2


def test_a_closed_output_is_no_error():
    lesson = [sys.executable, "-m", "flowedu_course.lesson", str(CHAPTERS[0])]
    done = subprocess.run(f"{shlex.join(lesson)} | head -1", shell=True, encoding="utf-8",
                          capture_output=True, timeout=HANGS,
                          env={**os.environ, "PYTHONPATH": str(Path(flow.__file__).parents[1])})
    assert not done.stderr, done.stderr


# ---- demos
def test_every_demo_declares_its_duration():
    for c in course.chapters():
        assert 0 < c.demo_seconds <= 300, f"{c.folder.name}/chapter.toml: how long does its demo take? demo_seconds = ..."
    for demo in ROOT.glob("chapters/*/demo.py"):
        assert re.search(r"^ +opening\(__file__", demo.read_text(encoding="utf-8"), re.M), demo


def test_opening_lines_of_a_demo(tmp_path, capsys, monkeypatch):
    (tmp_path / "chapter.toml").write_text("demo_seconds = 20\n")
    demo = str(tmp_path / "demo.py")
    opening(demo)
    assert "about 20 s on two cores" in capsys.readouterr().out
    opening(demo, quick=True)
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("FLOWEDU_HOLES", str(tmp_path))
    opening(demo, quick=True)
    assert capsys.readouterr().out.startswith("whose code runs: ")
