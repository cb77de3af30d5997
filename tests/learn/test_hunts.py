"""Fault hunts: which changes count, how many are allowed, and that hunts are listed without points."""
import re

import pytest

from flowedu_course import course, handout, hunts
from flowedu_course.judge import judged
from flowedu_course.laws import Law
from flowedu_course.runner import Runner, _afterwards, main
from flowedu_course.teach import report, wrong

HUNTS = [h for h in course.holes() if h.is_hunt]
LINE = course.find("2.h1")
PROGRAM = '"""A task."""\nimport flowedu as flow\n\n\ndef f(x):\n    # a comment\n    return x + 1\n\n\n' \
          'if __name__ == "__main__":\n    print(f(1))\n'


@pytest.fixture
def check(tmp_path):
    def run(text, hole=LINE):
        file = tmp_path / hole.file
        file.write_text(text, encoding="utf-8")
        return judged(hole, file)
    return run


@pytest.mark.parametrize("text, changed", [
    (PROGRAM, []),
    (PROGRAM.replace("A task.", "My notes.\n\nMore of them."), []),
    (PROGRAM.replace("# a comment", "# another\n\n    # and one more"), []),
    (PROGRAM.replace("print(f(1))", "print(f(2))\n    print(f(3))"), []),
    (PROGRAM.replace("x + 1", "x + 2"), ["    return x + 2"]),
    (PROGRAM.replace("    return", "    x = 3\n    return"), ["    x = 3"]),
    (PROGRAM.replace("    return x + 1\n", ""), [""]),
    (PROGRAM.replace("f(x):\n", "f(y):\n    x = y\n"), ["def f(y):", "    x = y"]),
])
def test_lines_that_count_as_changed(text, changed, monkeypatch):
    monkeypatch.setattr(type(LINE.folder), "read_text", lambda path, encoding: PROGRAM)
    assert hunts.changed_lines(LINE, text) == changed


def test_comments_of_a_kernel_do_not_count():
    text = "/* A task.\n * More. */\n__global__ void f(float *x) {\n    x[0] = 1;   // one\n}\n"
    assert hunts.program_lines(".cu", text) == ["__global__ void f(float *x) {", "    x[0] = 1;", "}"]


def test_an_unchanged_program_is_open_and_too_many_changes_are_refused(check, tmp_path):
    text = handout.stub(LINE)
    assert check(text).state == "open" and check(text + "    print(w)\n").state == "open"
    loop = "    for _ in range(steps):"
    many = text.replace(loop, f"    a = 1\n    b2 = 2\n    c = 3\n{loop}")
    verdict = check(many)
    assert (verdict.state, verdict.law) == ("wrong", "")
    assert Runner(course.HOME, tmp_path).format_verdict(LINE, verdict, tmp_path / LINE.file) == [
        "2.h1 a line that does not fit                 3 lines changed; a repair changes at most 2",
        "  changed         a = 1", "  changed         b2 = 2", "  changed         c = 3",
        "  why   chapters/02_ops/hunts.md#which-instrument", "  h: hint 1 of 3"]


def test_any_repair_is_accepted_and_special_cases_are_not(check):
    text = handout.stub(LINE)
    other = text.replace("prediction = x @ w + b", "prediction = (x @ w + b).reshape(-1)")
    assert check(other).state == "right" and check(other + "\n# mine\n").state == "right"
    shown, = (a for a in wrong.answers(LINE) if a.name == "2.h1_shown_values")
    assert check(shown.text).law == "hunts.fit_values"


def test_a_law_judges_each_case():
    """A judge may return [] for a right case: where_differ does so."""
    judged_cases = []
    law = Law("equal", lambda rng, size: size, lambda case, f: f(case) or [], cases=5)
    assert law.broken(judged_cases.append) is None and judged_cases == [1, 2, 3, 4, 5]
    assert law.broken(lambda case: case > 3 and ["differs"]) == ["differs"]


@pytest.mark.parametrize("id, before, after", [
    ("2.h3", "total += loss.item()", "total += loss.detach()"),
    ("4.h1", "square(error)\n        scheduler = flow.optimizer.PiecewiseConstantScheduler([], [rate])",
     "square(error) / n\n        scheduler = flow.optimizer.PiecewiseConstantScheduler([], [rate * n])"),
    ("6.h1", "return bend(a @ b)", "return bend((a @ b).to_global(sbp=flow.sbp.broadcast))"),
    ("6.h2", "1000 * seed + flow.env.get_rank()", "seed + flow.env.get_rank()"),
])
def test_another_repair_with_the_same_effect_is_accepted(check, id, before, after):
    hole = course.find(id)
    text = hole.answer_file.read_text(encoding="utf-8")
    assert check(text.replace(before, after), hole).state == "right"


def test_a_hunt_has_no_points_and_is_listed_behind_the_exercises(tmp_path):
    runner = Runner(course.HOME, tmp_path / "work")
    mark = report.Mark(LINE, "right", 1, "", "", {})
    assert (mark.score, mark.most) == (0, 0)
    assert runner.start(2)[1] == "3 of them are fault hunts, without points"
    lines = [t for t in runner.list() if re.match(r"  \[| {6}|chapter", t)]
    at = next(i for i, t in enumerate(lines) if " 2.9 " in t)
    assert "milestone-2" in lines[at + 1] and lines[at + 2].strip() == "fault hunts, without points:"
    assert " 2.h1 " in lines[at + 3] and "chapter 2: An op is a record   0 of 9" in "\n".join(lines)


def test_lines_after_a_right_hunt(tmp_path, capsys):
    """They have a repair, and an earlier open exercise is not the next one."""
    work, last = tmp_path / "answers", HUNTS[-1]
    Runner(course.HOME, work).start(2)
    run = f"run    .venv/bin/python {work}/{LINE.file}"
    assert run in (work / LINE.file).read_text(encoding="utf-8")
    (work / LINE.file).write_text(LINE.answer_file.read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["check", LINE.id, "--work", str(work)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "  a repair: `make solution EX=2.h1`" and lines[2].startswith("  next: 2.h2 ")
    runner = Runner(course.HOME, work)
    runner.holes = [HUNTS[1], last]
    assert _afterwards(runner, last)[1].startswith("  still open: 2.h2 ")


@pytest.mark.parametrize("hole", HUNTS, ids=lambda h: h.id)
def test_a_hunt_shows_only_its_program(hole):
    """The work file has the program and how to run it. The text does not contain the repaired lines."""
    text = handout.stub(hole)
    assert text.endswith((hole.folder / hole.stub).read_text(encoding="utf-8"))
    assert hole.stub == f"hunts/{hole.file}" and "minutes, no points" in text
    assert hole.is_compiled or f".venv/bin/python work/{hole.file}" in text
    lines = hunts.changed_lines(hole, hole.answer_file.read_text(encoding="utf-8"))
    repaired, shown = [t.strip() for t in lines if t.strip()], " ".join([hole.task, hole.example, *hole.hints])
    assert repaired and not any(t in shown for t in repaired if len(t) > 12)
