"""`make from-scratch`: LeNet on all answers of chapters 1 to 4. Every answer runs, executed lines are
counted, and open exercises are named in one line.
"""
import os
import re
import subprocess
import sys

import pytest

from common import HANGS
from flowedu_course import course, milestone, scratch
from flowedu_course.runner import Runner
from flowedu_course.teach import stubs
from flowedu_course.teach.tree import export

NEEDED = scratch.holes(course.HOME)
CORE = sum(len(h.objects) for h in NEEDED if h.module.startswith("flowedu.core."))
BESIDE = sum(len(h.objects) for h in NEEDED) - CORE


@pytest.fixture
def runner(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path)
    return Runner(course.HOME, tmp_path / "work")


def answered(work, holes):
    """Write the library's code as answers."""
    for h in holes:
        (work / h.file).write_text(stubs.answer_text(h), encoding="utf-8")


def counts(said):
    """Return (student's in core, all in core, student's outside, all outside)."""
    found = re.search(r"^(\d+) of the (\d+) .* and (\d+) of the (\d+) in other packages$", said, re.MULTILINE)
    return tuple(map(int, found.groups()))


def test_all_answers_run_and_are_counted(runner, monkeypatch, capfd):
    # Each is judged in tests/learn/test_holes.py.
    monkeypatch.setattr(milestone, "missing", lambda *a: [])
    answered(runner.work, NEEDED)
    assert scratch.run(runner) == 0
    said = capfd.readouterr().out
    mine, core, more, beside = counts(said)
    assert (mine, more) == (CORE,
                            BESIDE) and core > 5 * mine and beside > 5 * more and "not called" not in said
    assert "from scratch: reached" in said and float(re.search(r"reads ([\d.]+)%", said)[1]) > 90


@pytest.mark.slow
def test_library_code_is_not_counted_as_the_students(runner, monkeypatch, capfd):
    monkeypatch.setattr(milestone, "missing", lambda *a: [])
    some = [course.find(id) for id in ("1.1", "2.3", "2.5", "3.2")]    # 1, 5, 2 in core, 1 outside
    answered(runner.work, some)
    assert scratch.run(runner) == 0
    said = capfd.readouterr().out
    assert counts(said)[::2] == (8, 1)
    idle = said.partition("answers were not called: ")[2].partition("\n")[0].split(", ")
    assert len(idle) == len(NEEDED) - 4 and "1.1" not in idle and "4.3" in idle


@pytest.mark.slow
def test_on_the_librarys_lines(runner, capfd):
    assert scratch.run(runner, library=True) == 0
    said = capfd.readouterr().out
    assert "the library's code ran" in said and "were yours" not in said and "from scratch: reached" in said


def test_open_exercises_are_named_in_one_line(runner, monkeypatch, capfd):
    rows = {"1.1": ("right", 0), "4.3": ("right", 0), "4.4": ("right", 1), "2.1": ("wrong", 0)}

    def check(hole, fresh):
        state, stars = rows.get(hole.id, ("right", 1))
        runner.progress.row(hole.id).update(state=state, stars=stars)
        return state == "right", []

    monkeypatch.setattr(runner, "check", check)
    assert scratch.run(runner) == 1
    said = capfd.readouterr().out
    assert said.count("\n") == 1 and f"{len(NEEDED) - 2} of {len(NEEDED)} exercises" in said
    assert "still open: 2.1, 4.3 (no star yet); `make list`" in said


def test_a_failing_answer_is_reported_without_a_traceback(runner, monkeypatch, capfd):
    monkeypatch.setattr(milestone, "missing", lambda *a: [])
    place = course.find("4.3")
    (runner.work / place.file).write_text("def place(buffers):\n    return buffers[10 ** 6]\n")
    assert scratch.run(runner) == 1
    said = "".join(capfd.readouterr())
    assert ("IndexError" in said and "buffers[10 ** 6]" in said and "Traceback" not in said
            and "reached" not in said)


@pytest.mark.slow
def test_in_a_students_tree(tmp_path):
    """In an exported tree, where the library has stubs, no code counts as the student's before the answers
    are written, and all of it does afterwards.
    """
    tree = tmp_path / "tree"
    export(tree, scratch.LAST, built=True)
    env = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'course'}",
           "FLOWEDU_NUM_THREADS": "2"}

    def typed():
        return subprocess.run([sys.executable, "-m", "flowedu_course", "scratch"], cwd=tree, env=env,
                              encoding="utf-8", capture_output=True, timeout=2 * HANGS)

    done = typed()
    assert done.returncode == 1 and "from scratch: 0 of" in done.stdout and "Traceback" not in done.stderr
    (tree / "work").mkdir()
    answered(tree / "work", NEEDED)
    done = typed()
    assert done.returncode == 0, done.stdout + done.stderr
    assert counts(done.stdout)[::2] == (CORE, BESIDE) and "not called" not in done.stdout
