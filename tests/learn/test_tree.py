"""The exported tree: it works by itself, its exercises are open, and it contains no line of an answer."""
import ast
import json
import os
import subprocess
import sys

import pytest

from common import HANGS, few
from flowedu.errors import ArgumentError
from flowedu_course import course
from flowedu_course.teach import stubs, tree

HOLES = [h for h in course.holes() if not h.is_separate]


@pytest.fixture(scope="module", ids=["open", "closed"],
                params=[pytest.param(False, marks=pytest.mark.slow), True])
def handout(request, tmp_path_factory):
    made = tree.export(tmp_path_factory.mktemp("made") / "handout", 4, closed=request.param, built=True)
    return made, request.param


def inside(folder, *arguments, **environment):
    paths = os.pathsep.join(str(folder / part) for part in ("src", "course"))
    env = {**os.environ, "PYTHONPATH": paths, "FLOWEDU_NUM_THREADS": "1", "COLUMNS": "200", **environment}
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True,
                          encoding="utf-8", timeout=HANGS, env=env)


def learn(folder, *arguments):
    done = inside(folder, "-m", "flowedu_course", *arguments)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def test_the_tree_has_stubs_and_no_answers(handout):
    made, closed = handout
    assert made.found == []
    files = [f for part in ("src", "course") for f in (made.folder / part).rglob("*.py")]
    marked = {t.split()[-1] for f in files for t in f.read_text("utf-8").splitlines()
              if "# BEGIN YOUR TURN" in t}
    assert marked == {h.id for h in HOLES if closed or h.chapter <= 4}
    names = {str(p.relative_to(made.folder)) for p in made.folder.rglob("*")}
    for gone in ("wrong", "right", "alternatives.py", "solutions.py", "exam_answers.md", "mutants", "teach",
                 "authors.py", ".git", "tests"):
        assert not [n for n in names if gone in n.split("/")], gone
    assert {"Makefile", "chapters/exam.md", "student.json", ".github/workflows/exercises.yml"} <= names
    assert [c.number for c in course.chapters(made.folder)] == [c.number for c in course.chapters()
                                                                if c.number <= 4]


@pytest.mark.slow
def test_the_exported_tree_works_by_itself(handout):
    """Start exercises, check a right answer and one that needs an earlier one, get stars from stored figures,
    and run lessons.
    """
    folder = handout[0].folder
    assert ("exercises in work/" in learn(folder, "start",
                                          "1") and "exercises in" in learn(folder, "start", "4"))
    assert "not begun" in learn(folder, "check", "1.1")
    first = course.find("1.1")
    (folder / "work" / first.file).write_text(stubs.answer_text(first), encoding="utf-8")
    assert "right" in learn(folder, "check", "1.1")
    said = learn(folder, "check", "4.3")
    assert "not yet better than the initial code" in said and "bound" in said
    place = course.find("4.3")
    (folder / "work" / place.file).write_text(stubs.answer_text(place), encoding="utf-8")
    assert "*" in learn(folder, "check", "4.3")
    lesson = inside(folder, "-m", "flowedu_course.lesson", "chapters/01_blob/README.md", FLOWEDU_HOLES="work")
    assert (lesson.returncode == 0
            and "left out: it needs exercise 1.3, which is open" in lesson.stdout), lesson.stdout
    assert "needs exercise 1.1" not in lesson.stdout


@pytest.mark.slow
def test_an_unchanged_stand_in_counts_as_not_begun(handout):
    """The stand-in of an exercise that the library needs is correct and counts as not begun."""
    folder = handout[0].folder
    for hole in (h for h in HOLES if h.plain and h.chapter <= 4):
        learn(folder, "start", str(hole.chapter))
        (folder / "work" / hole.file).write_text((hole.folder / hole.plain).read_text(encoding="utf-8"),
                                                 encoding="utf-8")
        assert "not begun" in learn(folder, "check", hole.id)


@pytest.mark.slow
def test_with_all_answers_the_lessons_run(tmp_path):
    made = tree.export(tmp_path / "handout", 2, built=True)
    work = made.folder / "work"
    work.mkdir()
    for hole in (h for h in HOLES if h.chapter <= 2):
        (work / hole.file).write_text(stubs.answer_text(hole), encoding="utf-8")
    for chapter in ("01_blob", "02_ops"):
        done = inside(made.folder, "-m", "flowedu_course.lesson", f"chapters/{chapter}/README.md",
                      FLOWEDU_HOLES="work")
        assert (done.returncode == 0
                and "left out" not in done.stdout), done.stdout[-2000:] + done.stderr[-2000:]


def test_only_requested_exercises_are_open(tmp_path, capsys):
    out = tmp_path / "handout"
    assert tree.main(["8", str(out), "--only", "4.3", "8"]) == 0 and "open 4.3 8" in capsys.readouterr().out
    text = "\n".join(f.read_text(encoding="utf-8") for f in (out / "src").rglob("*.py"))
    marked = {t.split()[-1] for t in text.splitlines() if "# BEGIN YOUR TURN" in t}
    assert marked == {"4.3"} and {h.id for h in course.holes(out)} == {h.id for h in course.holes()}
    assert [h.id for h in course.holes(out) if h.first] == ["5.3", "5.4"]            # these run 4.3
    assert tree.main(["4", str(tmp_path / "other"), "--only", "5.1"]) == 2
    assert "exercise or chapter 5.1" in capsys.readouterr().err


def test_a_line_of_an_answer_is_found(tmp_path):
    own = stubs.own_lines(HOLES)
    line = next(t for t, i in own.items() if i == "4.3")
    assert len(own) > 50 and all(len(t) > stubs.LONG for t in own)
    (tmp_path / "page.md").write_text(f"some text\n    {line}\n", encoding="utf-8")
    (tmp_path / "some.bin").write_bytes(b"\x00" + max(own, key=len).encode() + b"\x00")
    assert len([*tree.answers_in(tmp_path, own)]) == 2


def test_impossible_exports_are_refused(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    for out, upto, words in ((tmp_path / "full", 4, "not empty"), (tmp_path / "new", 99, "no chapter 99"),
                             (course.HOME / "src" / "new", 4, "inside the tree")):
        with pytest.raises(ArgumentError, match=words):
            tree.export(out, upto)
    assert tree.main(["99", str(tmp_path / "new")]) == 2 and not (tmp_path / "new").exists()


@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_a_file_with_an_exercise_differs_only_there(hole):
    for file, text in stubs.blank({}, [hole]).items():
        ast.parse(text)
        lines = text.splitlines()
        inside, outside = 0, []
        for t in lines:
            inside += "BEGIN YOUR TURN" in t
            if not inside:
                outside.append(t)
            inside -= "END YOUR TURN" in t
        before = file.read_text(encoding="utf-8").splitlines()
        assert inside == 0 and len(outside) <= len(before) + 6
        assert sum(t not in before for t in outside) <= len(hole.objects), hole.id  # the line of a lambda


def test_sources_that_are_not_python():
    text = "a\n  // BEGIN SOLUTION 8.9\n  x = 1;\n  // END SOLUTION 8.9\nb\n"
    assert stubs.without_marked(text, {"8.9"}) == "a\n  // BEGIN YOUR TURN 8.9\n  // END YOUR TURN 8.9\nb\n"
    assert stubs.without_marked(text, {"8.8"}) == text


def test_the_workflow_has_a_step_for_each_hole(handout):
    text = (handout[0].folder / ".github/workflows/exercises.yml").read_text(encoding="utf-8")
    for hole in (h for h in HOLES if h.chapter <= 4):
        assert (f"run: make -s check EX={hole.id}\n" in text
                and f'"{hole.short} ({hole.points} points)"' in text)
    assert "5.1" not in text and "\t" not in text and course.file_of("flowedu")


@pytest.mark.parametrize("closed", few([False, True], lambda closed: False))
def test_the_whole_course_is_exported_without_answers(tmp_path, closed):
    """The tree of the whole course, which includes kernels, has their stubs and not their answers."""
    made = tree.export(tmp_path / "handout", course.chapters()[-1].number, closed=closed)
    there = {p.name for p in (made.folder / "chapters" / "08_kernels").iterdir()}
    assert not made.found and "stubs" in there and not there & {"answers", "wrong"}
    figures = json.loads((made.folder / "student.json").read_text(encoding="utf-8"))["figures"]
    assert {h.id for h in course.holes() if h.stars and not h.is_separate} == set(figures)
