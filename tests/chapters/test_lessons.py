"""Lessons are true: their code runs and prints the promised output, the files and names they mention exist,
demos run without matplotlib, and exercises can be solved but are open.
"""
import operator
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flowedu as flow
from common import HANGS, clean, few  # noqa: F401
from custom_ops import own_registry  # noqa: F401
from flowedu.cuda import machine
from flowedu_course import course, exercises
from flowedu_course.blocks import pages
from flowedu_course.lesson import LessonError, run_lesson

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(p.parent for p in (ROOT / "chapters").glob("*/README.md"))
# Chinese pages have the same blocks: test_chinese.py
LESSONS = sorted(p for p in (ROOT / "chapters").glob("*/*.md") if not p.name.endswith(".zh.md"))
WITH_EXERCISES = [c for c in CHAPTERS if (c / "checks.py").exists()]
FIRST_THREE = {"01_blob": ["strides.svg"], "02_ops": ["tape.svg"], "03_layers": ["filters.png"]}


def name_of(path):
    return path.name


def lesson_name(path):
    return f"{path.parent.name}/{path.name}"


def python(*arguments, path="", **options):
    """Run Python with the package under test and `path` before it on the module search path."""
    package = str(Path(flow.__file__).parents[1])
    environment = {**os.environ, "FLOWEDU_NUM_THREADS": "1",
                   "PYTHONPATH": os.pathsep.join([p for p in (str(path), package) if p])}
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True,
                          timeout=HANGS, env=environment, **options)


def test_all_chapters_exist():
    assert set(FIRST_THREE) <= {c.name for c in CHAPTERS}


@pytest.mark.parametrize("lesson", LESSONS, ids=lesson_name)
def test_every_block_of_a_lesson_runs_and_prints_what_it_promises(lesson, clean):  # noqa: F811
    assert run_lesson(lesson) > 0               # blocks that need CUDA: tests/cuda/test_chapter8.py


@pytest.mark.parametrize(("page", "output"), [("README.md", "[2.0, -4.0]"), ("docs/tour.md", "plan of train"),
                                              ("docs/new_op.md", "[1.0, ")])
def test_the_code_of_a_page_runs(page, output, clean):  # noqa: F811
    printed = []
    assert run_lesson(ROOT / page, printed.append) == 1
    assert output in printed[0]


def test_names_of_the_tour_exist():
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    names = re.findall(r"`flow\.([\w.]+)`", text)
    assert len(names) > 10
    for name in names:
        operator.attrgetter(name)(flow)
    optimizers = re.search(r"`flow\.optimizer\.SGD`, ([\w, ]+);", text)[1].split(", ")
    assert all(issubclass(getattr(flow.optimizer, n), flow.optimizer.Optimizer) for n in optimizers)


@pytest.mark.parametrize("lesson", LESSONS, ids=lesson_name)
def test_a_lesson_points_to_files_and_names_that_exist(lesson):
    """Paths in backticks exist, and so do the names after them in lists such as "- `src/x.py`: `f`, `g`"."""
    text = lesson.read_text(encoding="utf-8")
    paths = re.findall(r"`((?:src|tests|chapters|benchmarks|tools)/[^`\s]*)`", text)
    assert paths
    for p in paths:
        assert (ROOT / p).exists(), p
    for p, rest in re.findall(r"^- `(src/[^`]*)`:(.*)$", text, re.MULTILINE):
        source = (ROOT / p).read_text(encoding="utf-8")
        for name in re.findall(r"`([A-Za-z_]\w*)`", rest):
            assert re.search(rf"\b{name}\b", source), f"{p} has no {name}"
    for p in re.findall(r"\]\(([^)#:\s]+)\)", text):
        assert (lesson.parent / p).exists(), f"a link to {p}"


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_a_page_names_files_that_exist(page):
    """Paths in backticks exist, relative to the root, to src/flowedu, or as a plain file name, and so do the
    folders of the drawing.
    """
    text = (ROOT / page).read_text(encoding="utf-8")
    known = {p.name for top in ("src", "course") for p in (ROOT / top).rglob("*")}
    paths = [p for p in re.findall(r"`([\w./]+(?:/|\.(?:py|pyx|pxi|h|txt)))`", text) if "NN" not in p]
    assert len(paths) > 5
    for p in paths:
        assert any((ROOT / top / p).exists() for top in ("", "src/flowedu", "course")) or p in known, p
    for line in re.findall(r"^  (\w[\w. /]*?)(?:  .*)?$", text.partition("```")[2].partition("```")[0],
                           re.MULTILINE):
        for p in line.split():
            assert (ROOT / "src/flowedu" / p).exists(), p
    assert len(text.splitlines()) <= 150
    for p in re.findall(r"\]\(([^)#:\s]+)\)", text):
        assert (ROOT / p).exists(), p


def test_every_chapter_points_to_its_folder_of_core():
    folders = {"01": ["values"], "02": ["ops", "grad"], "03": ["layers"], "04": ["graph", "job"],
               "05": ["trace"], "06": ["sbp"], "07": ["buffers"]}
    for chapter in CHAPTERS:
        text = (chapter / "README.md").read_text(encoding="utf-8")
        for folder in folders.get(chapter.name[:2], []):
            assert f"src/flowedu/core/{folder}/" in text, (chapter.name, folder)


def test_make_runs_every_lesson_of_a_chapter():
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nchapter-%:")[2].partition("\n\n")[0]
    assert 'flowedu_course.lesson "$$d" &&' in recipe
    for chapter in CHAPTERS:
        found = pages(chapter)
        assert found[0] == chapter / "README.md"
        assert sorted(found) == sorted(p for p in chapter.glob("*.md") if not p.name.endswith(".zh.md"))


# ---- demos: tests/doors/test_chapters.py
@pytest.mark.parametrize("chapter", few([*FIRST_THREE], lambda name: name == "03_layers"))
def test_a_demo_runs_without_matplotlib(chapter, tmp_path):
    missing = tmp_path / "matplotlib"
    missing.mkdir()
    (missing / "__init__.py").write_text("raise ModuleNotFoundError('No module named matplotlib')")
    done = python(ROOT / "chapters" / chapter / "demo.py", "--out", tmp_path / "out", path=tmp_path,
                  cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ("needs matplotlib" in done.stdout) == any(p.endswith(".png") for p in FIRST_THREE[chapter])


# ---- exercises
def test_every_chapter_has_exercises():
    """Exercises are holes in the library or separate functions."""
    found = {c.folder.name: len(c.holes) for c in course.chapters()}
    for chapter in CHAPTERS:
        assert found.get(chapter.name, 0) >= 2 or chapter in WITH_EXERCISES, chapter
    assert all(found[name] >= 5 for name in FIRST_THREE)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name_of)
def test_the_first_page_of_a_chapter_is_short(chapter):
    """The first page has one idea and at most 250 lines without the link to its translation; longer reading
    is on pages that say so at the top and are linked from the first.
    """
    text = (chapter / "README.md").read_text(encoding="utf-8")
    assert len([line for line in text.splitlines() if not line.startswith("[中文]")]) <= 250
    for page in (p for p in chapter.glob("*.md") if not p.name.endswith(".zh.md")):
        lines = page.read_text(encoding="utf-8").splitlines()
        if page.name != "README.md":
            marked = any("second reading" in line.lower() for line in lines[:10])
            assert marked or "second half" in lines[0] and len(lines) <= 250, page
            assert f"]({page.name})" in text, page


@pytest.mark.parametrize("chapter", WITH_EXERCISES, ids=name_of)
def test_the_solutions_are_right(chapter):
    wrong = [r for r in exercises.run(chapter, "solutions.py") if r.state != "right"]
    if not flow.cuda.is_available():                    # tests/cuda/test_chapter8.py judges all of them
        wrong = [r for r in wrong if r.state != "unjudged" or "CUDA C" not in r.text]
    assert not wrong


@pytest.mark.parametrize("chapter", WITH_EXERCISES, ids=name_of)
def test_the_exercises_are_open_and_the_lesson_names_them(chapter):
    results = list(exercises.run(chapter))
    lesson = (chapter / "README.md").read_text(encoding="utf-8")
    assert len(results) >= 3
    for r in results:
        assert r.state == "open" and r.text, r
        assert f"`{r.name}`" in lesson


@pytest.mark.parametrize("answer", [lambda *a, **k: None, lambda *a, **k: 0, lambda *a, **k: (),
                                    lambda *a, **k: a[0],
                                    dict], ids=["none", "zero", "empty", "first", "dict"])
@pytest.mark.parametrize("chapter", WITH_EXERCISES, ids=name_of)
def test_invalid_answers_are_wrong_and_explained(chapter, answer):
    checks = vars(exercises.load(chapter / "checks.py"))
    for name in [n for n in checks if n.startswith("check_")]:
        result = exercises.one(name[6:], checks[name], answer, chapter / "exercises.py")
        assert result.state == "wrong" and result.text


def write_chapter(folder, answer):
    (folder / "checks.py").write_text("from flowedu_course.exercises import expect\n"
                                      "def check_two(f):\n    expect('two()', f(), 2, 'count again')\n")
    (folder / "exercises.py").write_text(f"def two():\n    '''The number 2.'''\n    {answer}\n",
                                         encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize("answer, code, said", [
    ("return 2", 0, "ok    two"), ("return 3", 1, "hint: count again"), ("return 2.0", 1, "gives     2.0"),
    ("raise NotImplementedError('your turn')", 1, "todo  two: The number 2."),
    ("return 1 / 0", 1, "exercises.py:3"),
    ("raise NotImplementedError", 1, "no    two: NotImplementedError")])
def test_the_runner_reports_the_result(answer, code, said, tmp_path, capsys):
    assert exercises.main([write_chapter(tmp_path, answer)]) == code
    assert said in capsys.readouterr().out


def test_the_runner_as_a_program(tmp_path):
    """The runner as a program uses the same Wrong class as the checks; an exercise that cannot be judged is
    neither right nor wrong.
    """
    folder = write_chapter(tmp_path, "return 3")
    with open(tmp_path / "checks.py", "a", encoding="utf-8") as f:
        f.write("from flowedu_course.exercises import Unjudged\n"
                "def check_three(f):\n    f()\n    raise Unjudged('no judge here')\n")
    with open(tmp_path / "exercises.py", "a", encoding="utf-8") as f:
        f.write("def three():\n    return 3\n")
    done = python("-m", "flowedu_course.exercises", folder)
    assert done.returncode == 1 and not done.stderr
    lines = done.stdout.splitlines()
    assert (lines[0] == "no    two: two()" and lines[-2:] == ["?     three: no judge here",
                                                              "0 of 2 right"]), lines


def test_the_runner_checks_the_requested_exercises(tmp_path, capsys):
    folder = write_chapter(tmp_path, "return 2")
    with open(tmp_path / "checks.py", "a", encoding="utf-8") as f:
        f.write("def check_three(f):\n    expect('three()', f(), 3, 'one more')\n")
    assert exercises.main([folder]) == 1 and "1 of 2 right" in capsys.readouterr().out
    assert exercises.main([folder, "two"]) == 0 and "1 of 1 right: well done" in capsys.readouterr().out


def test_the_runner_refuses_unknown_exercises(tmp_path, capsys):
    assert exercises.main([str(tmp_path)]) == 2
    assert exercises.main([write_chapter(tmp_path, "return 2"), "three"]) == 2
    assert "no exercise three; available: two" in capsys.readouterr().out


# ---- the lesson runner
@pytest.mark.parametrize("lesson, complaint", [
    ("```python\nprint(1)\n```\n```text output\n2\n```\n",
     "lesson.md:5: the block above does not print this expected line"),
    ("\n```python error=ShapeError\nprint(1)\n```\n", "lesson.md:3: the block should raise ShapeError"),
    ("```python\n1 / 0\n```\n", "lesson.md:2: ZeroDivisionError"),
    ("```python needs=quantum\n1\n```\n", "unknown value needs='quantum' of a block")])
def test_a_wrong_promise_in_a_lesson_is_reported(lesson, complaint, tmp_path):
    path = tmp_path / "lesson.md"
    path.write_text(lesson, encoding="utf-8")
    with pytest.raises(LessonError, match=re.escape(complaint)):
        run_lesson(path)


def test_errors_in_a_lesson_show_its_own_lines(tmp_path):
    path = tmp_path / "lesson.md"
    line = "flow.ones((2, 3)) @ flow.ones((2, 3))"
    path.write_text(f"text\n\n```python error=ShapeError\nimport flowedu as flow\n{line}\n```\n"
                    f"```text output\n  at:       lesson.md:5: {line}\n```\n", encoding="utf-8")
    assert run_lesson(path) == 1


def test_blocks_that_need_cuda_are_left_out_without_it(tmp_path, monkeypatch):
    """Blocks that need CUDA are skipped with their promised output, and the others run."""
    path, said = tmp_path / "lesson.md", []
    path.write_text("```python needs=cuda\nprint('on cuda')\n```\n```text output\non "
                    "cuda\n```\n```python\nprint(1)\n```\n```text output\n1\n```\n")
    monkeypatch.setattr(flow.cuda, "is_available", lambda: False)
    assert run_lesson(path, said.append) == 1 and "lesson.md:2: left out" in said[0] and said[1:] == ["1\n"]
    monkeypatch.setattr(flow.cuda, "is_available", lambda: True)
    assert run_lesson(path, said.append) == 2 and said[2:] == ["on cuda\n", "1\n"]
    path.write_text(path.read_text(encoding="utf-8").replace("needs=cuda", "needs=sim"), encoding="utf-8")
    monkeypatch.setattr(machine, "kind", lambda: "gpu")
    assert run_lesson(path, said.append) == 1 and "left out: it needs FLOWEDU_CUDA=sim" in said[4]
    monkeypatch.setattr(machine, "kind", lambda: "sim")
    assert run_lesson(path, said.append) == 2
    path.write_text(path.read_text(encoding="utf-8").replace("\non cuda\n", "\nsomewhere else\n"),
                    encoding="utf-8")
    with pytest.raises(LessonError, match="somewhere else"):
        run_lesson(path)


def test_a_cuda_chapter_reports_its_device():
    """`make chapter-8` runs tools/choose_cuda.py, which never selects the simulator without a message."""
    def chosen(**environment):
        plain = {k: v for k, v in os.environ.items() if k != "FLOWEDU_CUDA"}
        there = {**plain, "PYTHONPATH": str(Path(flow.__file__).parents[1]), **environment}
        done = subprocess.run([sys.executable, ROOT / "tools" / "choose_cuda.py"], capture_output=True,
                              encoding="utf-8", timeout=HANGS, env=there)
        return done.stdout.strip(), done.stderr.strip()

    assert chosen() in (("sim", "no GPU here: kernels run in the simulator"), ("gpu", ""))
    assert chosen(FLOWEDU_CUDA="off") == ("off", "") and chosen(FLOWEDU_CUDA="sim") == ("sim", "")
    nothing, said = chosen(FLOWEDU_CUDA="on")
    assert not nothing and said.startswith("FLOWEDU_CUDA has a value") and "Traceback" not in said
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nchapter-%:")[2].partition("\n\n")[0]
    assert "tools/choose_cuda.py" in recipe and "needs=cuda" in recipe
