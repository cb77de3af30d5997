"""Messages for students: failures, hints, next steps, and the origin of running code; exit statuses, SEED,
and DEBUG.
"""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flowedu import swap
from flowedu.errors import ArgumentError
from flowedu_course import course
from flowedu_course.handout import stub
from flowedu_course.judge import judged
from flowedu_course.laws import BLOCKED, Verdict, law
from flowedu_course.runner import Runner, main
from flowedu_course.source import names_at_hand

HOLES = course.holes()
ENDS_MEET = """
def place(buffers):
    placed, size = [], 0
    for b in buffers:
        if b.in_arena:
            b.offset = 0
            for o in sorted(placed, key=lambda o: o.offset):
                if o.first < b.last and b.first < o.last and b.offset < o.offset + rounded(o.nbytes):
                    b.offset = o.offset + rounded(o.nbytes)
            placed.append(b)
            size = max(size, b.offset + rounded(b.nbytes))
    return size
"""
DETACHED = """
def sigmoid_x(dy, y):
    return dy * y.detach() * (1 - y)


def tanh_x(dy, y):
    return dy * (1 - square(y))


def softplus_x(dy, x):
    return dy * sigmoid(x)
"""
TRANSPOSED = """
def da(dy, b, transpose_a, transpose_b):
    return matmul(b, dy, transpose_a=transpose_b, transpose_b=True) if transpose_a else matmul(
        dy, b, transpose_b=not transpose_b)


def db(dy, a, transpose_a, transpose_b):
    return matmul(a, dy, transpose_a=not transpose_a)
"""
TEXTS = [("4.3", ENDS_MEET, """
4.3 place                                     law 1 of 2: no two live results overlap
  smallest case   a: 64 bytes, steps 0 to 0   b: 64 bytes, steps 0 to 0
  yours           a at 0, b at 0
  both are alive at step 0: a kernel would overwrite what it is reading
  why   chapters/04_job_functions/plan.md#the-arena
  h: hint 1 of 3"""), ("2.4", DETACHED, """
2.4 the gradients of sigmoid, tanh, softplus  law 3 of 5: the gradient has a correct gradient
  smallest case   sigmoid at x = 0.5, dy = 1.0
  first gradient  yours 0.2350, by differences 0.2350   ok
  second          yours -0.1463, by differences -0.0576
  a factor has no history: values that went through numpy() or detach() are constants
  why   chapters/02_ops/gradients.md#gradients-are-written-in-ops
  h: hint 1 of 3"""), ("2.5", TRANSPOSED, """
2.5 the gradient of matmul                    law 1 of 3: the gradient equals finite differences
  smallest case   a (1, 2), b (1, 2), transpose_b
  yours           db has the shape (2, 1), b has (1, 2)
  in letters      mk,kn->mn: dy is mn; which letters have da and db?
  why   chapters/02_ops/gradients.md#gradients-are-written-in-ops
  h: hint 1 of 3""")]


@pytest.fixture
def runner(tmp_path):
    return Runner(course.HOME, tmp_path / "work")


@pytest.mark.parametrize("id, answer, text", TEXTS, ids=[t[0] for t in TEXTS])
def test_the_smallest_case_is_shown_in_the_lessons_terms(runner, id, answer, text):
    hole = course.find(id)
    runner.work.mkdir()
    runner.file(hole).write_text(answer, encoding="utf-8")
    right, lines = runner.check(hole)
    assert not right and lines == text.strip().splitlines()


@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_headlines_are_complete(runner, hole):
    for i, name in enumerate(hole.laws, 1):
        title = f"law {i} of {len(hole.laws)}: {law(name).title}"
        verdict = Verdict("wrong", title=title)
        assert runner.format_verdict(hole, verdict, runner.file(hole))[0].endswith(title)


@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_a_work_file_contains_the_task(hole):
    text = stub(hole)
    assert hole.page in text and (course.HOME / hole.page.partition("#")[0]).exists()
    assert all(c.isalnum() or c in "._-" for c in hole.file), hole.file
    if not hole.is_compiled:
        compile(text, hole.file, "exec")


def test_available_names_are_listed():
    source = "import numpy as np\nfrom a import b, c as d\nK = 3\n" \
             "def f(x: d) -> 'Y':\n    return np.sum(b(x) + K) + _g(len(x))\n" \
             "def _g(x): return f(x)\nclass Y:\n    def m(self): return Y\n"
    assert (names_at_hand(source, ["f"]) == ["K", "b", "np"]
            and names_at_hand(source, ["f", "Y.m"]) == ["K", "b", "np"])
    assert names_at_hand(source, ["no_function.grad.x"]) == []


def test_check_prints_the_next_exercise_and_sets_the_exit_status(tmp_path, capsys):
    work = tmp_path / "work"
    main(["start", "1", "--work", str(work)])
    capsys.readouterr()
    (work / "1.1_strides.py").write_text("def row_major(shape):\n    return tuple(shape)\n")
    assert main(["check", "1.1", "--work", str(work)]) == 1 and "next: " not in capsys.readouterr().out
    (work / "1.1_strides.py").write_text("\n".join(Runner(course.HOME,
                                                          work).solution(course.find("1.1"), True)), "utf-8")
    assert main(["check", "1.1", "--work", str(work)]) == 0
    said = capsys.readouterr().out
    assert ("make solution EX=1.1" in said
            and f"next: 1.2 broadcasting (20 minutes)   {work}/1.2_broadcasting.py" in said)
    assert main(["solution", "1.2", "--work", str(work)]) == 0 and "FORCE=1" in capsys.readouterr().out


def test_hints_come_one_by_one_and_then_all(runner):
    runner.work.mkdir()
    hole = course.find("1.3")
    for i, text in enumerate(hole.hints, 1):
        assert runner.hint(hole) == [f"1.3 a slice is a view   hint {i} of 3", f"  {text}"]
    again = [f"  {i}. {t}" for i, t in enumerate(hole.hints, 1)]
    assert runner.hint(hole) == ["1.3 a slice is a view   all 3 hints", *again]
    assert runner.progress.row("1.3")["hints"] == 3


def test_another_seed_draws_other_cases(tmp_path):
    """The same seed draws the same cases, and another seed draws others."""
    file, hole = tmp_path / "answer.py", course.find("1.1")

    def shapes(seed):
        seen = tmp_path / f"{seed}.txt"
        file.write_text(f"def row_major(shape):\n    open({str(seen)!r}, 'a').write(repr(tuple(shape)))\n"
                        "    out, step = [], 1\n    for n in reversed(shape):\n        out.append(step)\n"
                        "        step *= max(n, 1)\n    return tuple(reversed(out))\n", encoding="utf-8")
        assert judged(hole, file, seed).state == "right"
        found = seen.read_text(encoding="utf-8")
        seen.unlink()
        return found

    assert shapes(0) == shapes(0) != shapes(5)


def test_debug_runs_in_the_foreground(tmp_path):
    """breakpoint() receives the input, and no time limit applies."""
    (tmp_path / "1.1_strides.py").write_text("def row_major(shape):\n    mine = 6 * 7\n    breakpoint()\n    "
                                             "return ()\n")
    done = subprocess.run([sys.executable, "-m", "flowedu_course", "check", "1.1", "--work", str(tmp_path)],
                          encoding="utf-8",
                          input="p mine\np shape\nq\n", capture_output=True, env={**os.environ, "DEBUG": "1"})
    assert (done.returncode == 1 and "42" in done.stdout and "(Pdb)" in done.stdout
            and "Traceback" not in done.stderr)


def test_running_answers_are_found_by_whole_names_only(tmp_path, monkeypatch):
    monkeypatch.setattr(swap, "RUNNING", {"flowedu.core.graph.memory.place": tmp_path / "4.3_place.py"})
    assert swap.whose("place") == swap.whose(
        "memory.place") == f"flowedu.core.graph.memory.place: {tmp_path}/4.3_place.py"
    assert swap.whose("ace") == "ace: the library's" and swap.whose() == "yours: 4.3_place"
    monkeypatch.setattr(swap, "RUNNING", {})
    assert swap.whose() == "all of it the library's"


def test_an_exercise_that_needs_another_one_is_reported_once(runner, monkeypatch):
    """The verdict names the missing exercise in one line and offers no hint, which would not help."""
    hole, verdict = course.find("5.3"), Verdict("wrong", lines=[f"  do 4.3{BLOCKED}"])
    monkeypatch.setattr(runner, "unmet", lambda hole: ["4.3"])
    lines = runner.format_verdict(hole, verdict, Path("5.3.py"))
    assert [t for t in lines if "4.3" in t] == [lines[1]] and lines[1].startswith("  do first    4.3: ")
    assert not [t for t in lines if "hint" in t]
    monkeypatch.setattr(runner, "unmet", lambda hole: [])
    lines = runner.format_verdict(hole, verdict, Path("5.3.py"))
    assert lines[1] == f"  do 4.3{BLOCKED}" and "hint 1" in lines[-1]


@pytest.mark.parametrize("id, expected", [("4.99", "4.1, 4.2, "), ("foo", "a number such as 4.3"),
                                          ("9", "a number")])
def test_an_unknown_exercise_is_answered_in_a_line(id, expected):
    with pytest.raises(ArgumentError) as caught:
        course.find(id)
    assert expected in caught.value.expected and len(caught.value.expected) < 90
