"""The book: pages of chapters/ with the output of their code, exercises with their tasks and without answers.
Reading it needs no network.
"""
import importlib.util
import io
import itertools
import json
import re
import subprocess
import sys
import time
import zlib
from html import unescape
from pathlib import Path

import pytest

from common import HANGS
from flowedu_course import course
from flowedu_course.blocks import blocks, unbroken
from flowedu_course.language import tr

from .browser import Browser, find_browser

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))
import outputs  # noqa: E402
import pages  # noqa: E402

LESSONS = sorted((ROOT / "chapters").glob("*/*.md"))
ENGLISH = [p for p in LESSONS if not p.name.endswith(".zh.md")]
PAGE = """# One

```python
print(1)
```
```text output
...
```

```python error=ValueError
x = 3
```

```python needs=sim
print(2)
```
```text output
2
```

```toml
a = 1
```
"""


@pytest.fixture
def lesson(tmp_path):
    path = tmp_path / "01_one" / "README.md"
    path.parent.mkdir()
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_outputs_follow_their_blocks(lesson):
    text = pages.page(lesson, ["1\n`````\n", "", None])
    said = [(b.language, b.text) for b in blocks(re.sub("`{8}{code-block} text\n:class: printed\n",
                                                        "```out", text)
                                                .replace("`" * 8, "```"))]
    assert "\n1\n`````\n" + "`" * 8 in text and text.count("{code-block} text") == 2
    assert text.index("print(1)") < text.index("`````") < text.index("x = 3") < text.index("not run here: it "
                                                                                           "needs sim")
    assert "..." not in text and "a = 1" in text and said[0] == ("python", "print(1)\n")
    assert text.rstrip().endswith("a = 1\n```")                       # a chapter without exercises


def test_long_outputs_scroll(lesson):
    assert ":class: printed long" in pages.page(lesson, ["line\n" * 50, "", None])
    assert "long" not in pages.page(lesson, ["line\n" * 5, "", None])


BOOK = [*LESSONS, *sorted((ROOT / "book").glob("*.md"))]
COMMAND = re.compile(r"(\$ )?(make|python|pip|git|bash|cd|mpiexec|echo)\b")


@pytest.mark.parametrize("path", BOOK, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_shell_commands_are_highlighted_as_shell(path):
    inside = False
    for line, following in itertools.pairwise(path.read_text(encoding="utf-8").splitlines()):
        if line.startswith("```"):
            inside = not inside
            if inside and COMMAND.match(following):
                assert line == ("```console" if following.startswith("$ ") else "```bash"), following


def test_blocks_without_a_language_are_plain_text():
    """Sphinx would highlight text blocks as Python by default, and drawings contain many Python keywords."""
    assert re.search(r'^highlight_language = "text"$',
                     (ROOT / "book" / "conf.py").read_text(encoding="utf-8"), re.M)


def test_joined_chinese_lines_have_no_blank():
    assert unbroken("在第一步\n之前，\n`x` 是 x。\n  是") == "在第一步之前，`x` 是 x。是"
    assert unbroken("> 是\n> **值**\n> 它") == "> 是**值**它"
    for same in ("one\ntwo", "中文\n\n段落", "中文\n- 一项", "中文 `x`\n中文", "| 表 |\n| 表 |", "中文\n    画",
                 "中\n## 题", "- 一\n- 二", "**值。**\n它"):           # in the last one, the bold text would not end
        assert unbroken(same) == same


@pytest.mark.parametrize("path", [p for p in LESSONS if p.name.endswith(".zh.md")],
                         ids=lambda p: p.parent.name + p.name)
def test_a_chinese_page_has_no_stray_blanks(path):
    """No Chinese character is lost."""
    count = sum(b.language == "python" for b in blocks(path.read_text(encoding="utf-8")))
    text = pages.page(path, [""] * count)
    assert not re.findall(r"[\u4e00-\u9fff，。；：、]\n[\u4e00-\u9fff]", text)

    def letters(t):
        return "".join(re.findall(r"[\u4e00-\u9fff]", t))

    own = pages.TONGUES.sub("", path.read_text(encoding="utf-8"))
    assert letters(text).removeprefix(letters(pages.LANGUAGES[""])).startswith(letters(own))


@pytest.mark.parametrize("path", LESSONS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_a_language_is_offered_once(path):
    count = sum(b.language == "python" for b in blocks(path.read_text(encoding="utf-8")))
    text = pages.page(path, [""] * count)
    assert len(re.findall(r"\[(?:English|中文)\]\(", text)) == any(
        p != path and p.exists() for p in (pages.original(path), pages.original(path).with_suffix(".zh.md")))


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [True, False])
def test_building_the_book_shows_progress_on_a_terminal(terminal, lesson, tmp_path, monkeypatch):
    err = type("Terminal", (io.StringIO,), {"isatty": lambda self: terminal})()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(outputs, "_run", lambda page, out, cuda: outputs.write_text(out, "[]") and "")
    outputs.all_outputs([lesson], tmp_path / "kept")
    assert ("1/1" in err.getvalue()) == terminal == bool(err.getvalue())


def test_the_languages_link_each_other(lesson):
    other = lesson.with_name("README.zh.md")
    other.write_text(PAGE, encoding="utf-8")
    assert "[中文](README.zh.md)" in pages.page(lesson, ["", "", ""])
    text = pages.page(other, ["", "", None])
    assert "[English](README.md)" in text and text.startswith("---\norphan: true") and "没有运行" in text
    assert pages.original(other) == lesson == pages.original(lesson)


@pytest.mark.parametrize("hole", course.holes(), ids=lambda h: h.id)
def test_an_exercise_shows_its_task_and_no_answer(hole):
    text = unescape(re.sub(r"\\(.)", r"\1", pages.exercise(hole)))
    assert hole.task.strip() in text and hole.example.strip() in text and f"make check EX={hole.id}" in text
    assert hole.why in text and not any(hint in text for hint in hole.hints)
    text = unescape(re.sub(r"\\(.)", r"\1", pages.exercise(hole, ".zh")))
    assert unbroken(tr(hole.task, "zh").strip()) in text and tr(hole.title, "zh") in text and "分钟" in text
    assert not any(tr(hint, "zh") in text for hint in hole.hints)


def test_output_of_a_page_is_cached(lesson, tmp_path, monkeypatch):
    kept, ran = tmp_path / "kept", []

    def run(page, out, cuda):
        ran.append(page)
        outputs.write_text(out, json.dumps(["1", "", None]))
        return ""

    monkeypatch.setattr(outputs, "_run", run)
    assert outputs.all_outputs([lesson], kept) == {lesson: ["1", "", None]} and ran == [lesson]
    outputs.all_outputs([lesson], kept)
    assert len(ran) == 1
    lesson.write_text(PAGE + "more", encoding="utf-8")
    outputs.all_outputs([lesson], kept)
    assert len(ran) == 2 and len([*kept.glob("*.json")]) == 1
    lesson.write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(outputs, "_run", lambda page, out, cuda: "it fails")
    with pytest.raises(RuntimeError, match="it fails"):
        outputs.all_outputs([lesson], kept)


def test_a_page_runs_in_a_separate_process(lesson, tmp_path):
    lesson.write_text("```python\nprint('here', globals().get('__file__', ''))\n```\n```python "
                      "needs=cuda\n1\n```\n")
    assert outputs._run(lesson, tmp_path / "out.json") == ""
    first, second = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert first == "here \n" and second is None
    lesson.write_text("```python\n1 / 0\n```\n")
    assert "ZeroDivisionError" in outputs._run(lesson, tmp_path / "out.json")


# ---- the first page, titles, and wide tables
def test_the_first_page_says_truthfully_which_blocks_ran():
    text = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    gpu, plan = ROOT / "chapters/08_kernels/gpu.md", ROOT / "chapters/04_job_functions/plan.md"
    assert pages.ALL_RAN in text and pages.index(text, {gpu: ["1", ""], plan: [""]}) == text
    said = pages.index(text, {gpu: ["1", None, None], plan: [""]})
    assert "Every code block was run" not in said
    assert "2 blocks need a GPU or the simulator and were not run: 08_kernels/gpu (2)." in said


def test_building_the_book_sets_up_the_simulator():
    """The recipe goes on without the simulator, and prints that blocks are not run."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nbook:")[2].partition("\n\n")[0]
    set_up, build = recipe.index("$(CUDA) ||"), recipe.index("-m sphinx")
    assert set_up < build and "are not run" in recipe[set_up:build]


def test_the_first_page_links_every_chinese_page():
    text = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    links = dict(re.findall(r"^- \[(.*)\]\(\.\./(.*)\)$", text, re.M))
    chinese = [p for p in LESSONS if p.name.endswith(".zh.md")]
    titles = {p.read_text(encoding="utf-8").splitlines()[0].lstrip("# "): p for p in chinese}
    assert links == {title: str(p.relative_to(ROOT)) for title, p in titles.items()}


def test_titles_of_the_book_differ():
    """An entry of the contents has the title of its page."""
    found = [*ENGLISH, *(ROOT / "book").glob("*.md"), *(ROOT / "book/reference").glob("*.md"),
             *(ROOT / "docs").glob("*.md"), *(ROOT / "chapters").glob("*.md")]
    titles = [re.search(r"^# (.*)", p.read_text(encoding="utf-8"), re.M)[1] for p in found]
    assert len(titles) > 60 and not [t for t in titles if titles.count(t) > 1]


def test_a_plan_fits_into_a_window_of_1280_pixels(capsys):
    """At 1280 pixels the theme gives text 46 em and a margin of 3 em. A monospaced letter takes 0.602 em."""
    block = next(b for b in blocks((ROOT / "chapters/04_job_functions/plan.md").read_text("utf-8"))
                 if b.language == "python")
    exec(compile(block.text, "plan.md", "exec", dont_inherit=True), {})
    plan = capsys.readouterr().out
    table = [line for line in plan.splitlines() if re.match(r"step |\s*\d+  ", line)]
    css = (ROOT / "book/widgets/book.css").read_text(encoding="utf-8")
    size = float(re.search(r"\.printed\.wide pre \{ font-size: ([\d.]+)rem", css)[1])
    assert "(min-width: 63em) { .printed.wide { margin-right: -3em; } }" in css
    room = (46 + 3 - 2 * 0.875) * 16 - 3                         # without the padding and the green bar
    assert len(table) > 5 and pages.WIDE < max(map(len, table)) <= room / (0.602 * 16 * size)
    assert pages.WIDE <= (46 - 2 * 0.875) * 16 / (0.602 * 13)    # the ordinary size of code is 13 pixels
    assert ":class: printed wide" in pages._output(plan) and "wide" not in pages._output("a\n" * 9)


# ---- the whole
@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("sphinx"),
                    reason="Sphinx is not here: make book installs it")
def test_the_book_is_complete_and_self_contained(tmp_path):
    """The build has no warnings (-W), all pages, exercises, and widgets, no files from the network, and no
    answers.
    """
    done = subprocess.run(["make", "-s", "book", f"BOOK={tmp_path}"], cwd=ROOT, capture_output=True,
                          encoding="utf-8", timeout=HANGS)
    assert done.returncode == 0, done.stderr + done.stdout
    html = {p: p.read_text(encoding="utf-8") for p in (tmp_path / "html").rglob("*.html")}
    for p in LESSONS:
        assert tmp_path / "html" / p.relative_to(ROOT).with_suffix(".html") in html
    for path, text in html.items():
        loaded = re.findall(r'<(?:script|img|iframe|source)[^>]*\bsrc="([^"]+)"', text) + \
            re.findall(r'<link[^>]*\bhref="([^"]+)"', text)
        for url in loaded:
            assert not re.match("(https?:)?//", url), f"{path.name} loads {url}"
        assert str(ROOT) not in text, f"{path}: a path of this machine"
    for style in (tmp_path / "html").rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import [\"']?(https?:)?//",
                             style.read_text("utf-8")), style
    for chapter in course.chapters():
        text = unescape(re.sub("<[^>]+>", "",
                               html[tmp_path / "html" / "chapters" / chapter.folder.name / "README.html"]))
        assert all(f"{h.id} " in text and f"make check EX={h.id}" in text for h in chapter.holes)
    for name in ("strides", "boxing", "arena"):
        assert f'id="{name}"' in html[tmp_path / "html" / "book" / f"{name}.html"]
        assert (tmp_path / "html" / "_static" / f"{name}.js").exists()
    inventory = zlib.decompress((tmp_path / "html" / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    listed = {line.split()[0] for line in inventory.splitlines()}
    assert not [n for n in (ROOT / "tests"
                            / "public_names.txt").read_text("utf-8").split() if f"flowedu.{n}" not in listed]
    copied = {p.name for p in (tmp_path / "html").rglob("*")}
    assert not copied & {"solutions.py", "stubs", "wrong"} and (tmp_path / "html" / "index.html").exists()
    if find_browser():
        searched(tmp_path)


def searched(folder: Path) -> None:
    """Check that the search of the book finds a word when it is opened as a file."""
    with Browser(folder / "profile") as b:
        b.open(folder / "html" / "search.html", "?q=strides")
        end = time.monotonic() + HANGS
        while "chapter 1" not in b.text("#search-results").lower():
            assert time.monotonic() < end, b.text("#search-results")
            time.sleep(0.05)
        away = [u for u in b.asked if not u.startswith(("file:", "data:", "blob:"))]
        assert not away, away
