"""Milestones: a chapter's program runs on a student's answers, refuses to run while one is open, and ends
with its own check.
"""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from common import HANGS, few
from flowedu_course import authors, course, milestone
from flowedu_course.language import spans
from flowedu_course.runner import Runner, main

WITH = [c for c in course.chapters() if c.milestone is not None]
OPEN = "milestone {}, {}: it needs exercises that are still open"


def command(folder, *arguments):
    return subprocess.run([sys.executable, "-m", "flowedu_course", *arguments], capture_output=True,
                          encoding="utf-8", cwd=folder,
                          timeout=HANGS, env={**os.environ, "FLOWEDU_NUM_THREADS": "2"})


def answered(runner, holes):
    """Write the library's code as answers."""
    for h in holes:
        runner.file(h).parent.mkdir(parents=True, exist_ok=True)
        runner.file(h).write_text(authors.library(h), encoding="utf-8")


@pytest.mark.parametrize("chapter", WITH, ids=lambda c: c.folder.name)
def test_prerequisites_of_a_milestone_exist(chapter):
    wanted = chapter.milestone
    assert (chapter.folder / "milestone.py").exists() and wanted.seconds <= 60 and wanted.title
    needed = [course.find(id) for id in wanted.needs]
    assert needed and all(h.id in wanted.needs and h.chapter <= chapter.number for h in needed)


@pytest.mark.slow
@pytest.mark.parametrize("chapter", WITH, ids=lambda c: c.folder.name)
def test_a_milestone_passes_on_the_librarys_code(chapter, tmp_path):
    done = command(tmp_path, "milestone", str(chapter.number), "--library")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all of it the library's" in done.stdout and f"milestone {chapter.number} reached" in done.stdout


@pytest.mark.parametrize("chapter", few(WITH, lambda c: False), ids=lambda c: c.folder.name)
def test_a_milestone_runs_on_answers(chapter, tmp_path):
    runner = Runner(course.HOME, tmp_path / "work")
    answered(runner, [course.find(id) for id in chapter.milestone.needs])
    done = command(tmp_path, "milestone", str(chapter.number))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"milestone {chapter.number} reached" in done.stdout
    assert f"\nyours: {spans(chapter.milestone.needs)}; all else is the library's\n" in done.stdout


@pytest.mark.slow
def test_it_refuses_while_a_hole_is_open(tmp_path, capsys):
    four = next(c for c in WITH if c.number == 4)
    work = str(tmp_path / "work")
    assert main(["milestone", "4", "--work", work]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == OPEN.format(4, four.milestone.title)
    assert [line.split()[0] for line in said[1:]] == list(four.milestone.needs)
    assert all(line.endswith("make start CH=4") for line in said[1:])
    main(["start", "4", "--work", work])
    capsys.readouterr()
    place, bound = course.find("4.3"), course.find("4.2")
    Path(work, bound.file).write_text(authors.library(bound), encoding="utf-8")
    assert main(["milestone", "4", "--work", work]) == 1  # the stub of a target is right, but counts as open
    said = capsys.readouterr().out
    assert "4.2" not in said and f"{place.short:40s}   open  make check EX=4.3".split() == next(
        line.split() for line in said.splitlines() if "4.3" in line)


def test_a_failing_answer_in_a_milestone_is_reported_without_a_traceback(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    place = course.find("4.3")
    (work / place.file).write_text("def place(buffers):\n    return buffers[10 ** 6]\n")
    program = tmp_path / "milestone.py"
    program.write_text("from flowedu.core.graph.memory import place\n\n\ndef main():\n    place([1])\n")
    done = subprocess.run([sys.executable, "-m", "flowedu_course.milestone", str(program)],
                          capture_output=True, encoding="utf-8",
                          env={**os.environ, "FLOWEDU_HOLES": str(work)}, timeout=HANGS)
    assert done.returncode == 1 and "Traceback" not in done.stderr + done.stdout
    assert "IndexError" in done.stdout and "line 2" in done.stdout and "buffers[10 ** 6]" in done.stdout


@pytest.mark.parametrize("body, said", few([("while True:\n        pass", "not finished after"),
                                        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
                                         "ended by SIGSEGV"),
                                        ("raise SystemExit(1)", "")], lambda row: "SIGSEGV" in row[1]))
def test_a_program_that_does_not_end_well(body, said, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(milestone, "PATIENCE", 5)
    (tmp_path / "milestone.py").write_text(f"def main():\n    {body}\n", encoding="utf-8")
    chapter = course.Chapter(4, "", 1, tmp_path, milestone=course.Milestone("a title", (), 1))
    assert milestone.run(Runner(course.HOME, tmp_path / "work"), chapter, library=True) != 0
    assert said in capfd.readouterr().out


def test_only_the_milestones_answers_are_used(tmp_path):
    """With FLOWEDU_HOLES_ONLY, answers that a milestone does not need are not used, finished or not."""
    place, bound = course.find("4.3"), course.find("4.2")
    (tmp_path / place.file).write_text("def place(buffers):\n    return 7\n")
    (tmp_path / bound.file).write_text("def lower_bound(buffers, steps):\n    return 8\n")
    program = "from flowedu.core.graph.memory import place, lower_bound; print(place([]), lower_bound([], 1))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8",
                          timeout=HANGS,
                          env={**os.environ, "FLOWEDU_HOLES": str(tmp_path), "FLOWEDU_HOLES_ONLY": "4.2"})
    assert done.stdout.split() == ["0", "8"], done.stderr


def test_a_milestone_uses_the_other_right_kernels_of_its_chapter(tmp_path):
    """Milestone 8 runs 8.9 and 8.11 if they are right. Other milestones run no kernels."""
    runner = Runner(course.HOME, tmp_path / "work")
    for id in ("1.1", "8.9", "8.11"):
        runner.progress.row(id)["state"] = "right"
    used = {c.number: milestone._used(runner, c.milestone) for c in WITH}
    assert used == {c.number: [*c.milestone.needs, *(["8.9", "8.11"] if c.number == 8 else [])] for c in WITH}


def test_a_chapter_without_a_milestone(tmp_path, capsys):
    assert (main(["milestone", "99", "--work", str(tmp_path)]) == 2
            and "no milestone" in capsys.readouterr().err)
