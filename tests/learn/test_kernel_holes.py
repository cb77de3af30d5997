"""Exercises that are Cython kernels: checks of wrong work files and reports on right ones."""
import os
import subprocess
import sys

import pytest

import flowedu as flow
from common import few
from flowedu._kernels import TABLE
from flowedu_course import course, handout, kernels, limits
from flowedu_course.runner import Runner

SUMS, SOFTMAX = course.find("8.3"), course.find("8.2")
RIGHT = (SUMS.folder / "right" / "8.3_unit_by_unit.pyx").read_text(encoding="utf-8")


@pytest.fixture
def runner(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADE_SPEED", "0")             # tests do not depend on the speed of the machine
    r = Runner(course.HOME, tmp_path / "work")
    r.start(8)
    return r


def answer(runner, *changes, text=RIGHT, hole=SUMS):
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    runner.file(hole).write_text(text, encoding="utf-8")
    right, lines = runner.check(hole)
    assert len(lines) <= 13 and all(len(t) <= 100 for t in lines), lines
    return right, "\n".join(lines)


def test_every_kernel_exercise_is_exported(runner):
    for hole in course.holes():
        if hole.kind == "kernel":
            text = runner.file(hole).read_text(encoding="utf-8")
            assert handout.untouched(hole, text) and hole.title in text and f"{hole.id}: your turn" in text
            assert handout.untouched(hole, text.replace("your turn", "my turn")), "a comment is no beginning"
            assert not handout.untouched(hole, kernels.answer(hole))
            assert hole.file.endswith((".pyx", ".cu", ".h")) and kernels.answer_lines(hole)


def test_a_function_of_the_contract_that_a_task_names_is_shown_with_its_arguments():
    """The arguments are in the task or its hints, because the page that explains the function may come
    later.
    """
    for hole in course.holes():
        for name in ("fe_split", "fe_wait"):
            text = " ".join([hole.task, *hole.hints])
            assert name not in hole.task or f"{name}(" in text, (hole.id, name)


def test_from_the_stub_to_the_solution(runner):
    right, lines = runner.check(SUMS)
    assert not right and "not begun" in lines[0] and "30 minutes" in lines[0]
    right, said = answer(runner)
    assert right and "right. ** 2 of 3 stars" in said.splitlines()[0]
    shown = runner.solution(SUMS)
    assert shown[0] == "# src/flowedu/_kernels/ops/scan.pyx" and shown[1].startswith("cdef int cumsum(")
    assert not any("linear_scan" in t for t in shown)


@pytest.mark.parametrize("changes, words", few([
    ([("cdef double total", "cdef object total")], ("does not compile", "line 16     total = 0")),
    ([("<float>total", "nothing")], ("undeclared name not builtin: nothing", "line 20     y[at] = nothing")),
    ([("y[at] = <float>total", "y[at] = <float>total + ")], ("does not compile", "line 20 ")),
    ([("def table()", "def tables()")], ("the file has no kernel cumsum",)),
    ([("{FE_F32", "{FE_F64")], ("the file has no kernel cumsum",)),
    ([("    return FE_OK\n\n\ndef", "    return 7\n\n\ndef")], ("law 1 of 5", "returns 7",
                                                                "FE_OK, which is 0")),
    ([("y[at] =", "(<float *>8)[at] =")], ("SIGSEGV", "case            x (", "memory outside its arrays")),
    ([("from libc.stdint", 'cdef extern from "nowhere.h":\n    int nothing\nfrom libc.stdint')],
     ("nowhere.h",)),
    ([("def table():", "import os\nos._exit(0)\ndef table():")], ("exited with status 0",)),
    ([("def table():", "raise SystemExit(3)\ndef table():")], ("SystemExit: 3",)),
], lambda row: row[1][0] == "law 1 of 5"))
def test_faults_are_reported(runner, changes, words):
    right, said = answer(runner, *changes)
    assert not right and all(w in said for w in words), said
    assert "Traceback" not in said
    assert answer(runner)[0]                           # the next check works


@pytest.mark.slow
def test_a_kernel_that_never_ends_is_ended(runner):
    runner.file(SUMS).write_text(RIGHT.replace("for i in range(e.n):", "i = 0\n        while i == 0:"),
                                 encoding="utf-8")
    verdict = limits.judged(SUMS, runner.file(SUMS), course.HOME, seconds=4.0)
    assert verdict.state == "wrong" and "no result after 4 seconds" in verdict.lines[0]
    assert verdict.lines[1].startswith("  case            x ("), verdict


@pytest.mark.slow
def test_compilers_that_take_too_long_are_ended(runner, monkeypatch, tmp_path):
    slow = tmp_path / "slow-cc"
    slow.write_text("#!/bin/sh\nsleep 1000\n")
    slow.chmod(0o755)
    monkeypatch.setenv("CC", str(slow))
    monkeypatch.setattr(kernels, "SECONDS", 6.0)
    right, said = answer(runner, ("cdef double total", "cdef double total, other"))
    assert not right and "it did not compile within 6 seconds" in said, said


def test_a_killed_compiler_is_reported(runner, monkeypatch, tmp_path):
    dead = tmp_path / "dead-cc"
    dead.write_text("#!/bin/sh\necho 'gcc: fatal error: Killed signal terminated program cc1' >&2\nexit 1\n")
    dead.chmod(0o755)
    monkeypatch.setenv("CC", str(dead))
    right, said = answer(runner, ("cdef double total", "cdef double total, more"))
    assert not right and "Killed signal terminated program cc1" in said, said


def test_without_a_compiler_nothing_is_judged(runner, monkeypatch):
    monkeypatch.setenv("CC", "no-such-gcc")
    right, said = answer(runner, ("cdef double total", "cdef double total, none"))
    assert not right and "cannot be judged here" in said and "no C compiler" in said
    assert runner.progress.row("8.3")["state"] == "open"


@pytest.mark.slow
def test_lines_that_call_python_are_reported(runner):
    loop = """from math import exp
from flowedu._kernels.core.abi cimport *


cdef int softmax(fe_call *call, const fe_team *team, void *tag) noexcept with gil:
    cdef const float *x = <const float *>call.args[0].data
    cdef float *y = <float *>call.args[1].data
    cdef int64_t n = call.args[0].shape[call.args[0].ndim - 1], lo, hi
    cdef double top, total
    if n == 0:
        return FE_OK
    fe_split(fe_numel(&call.args[0]) // n, 1, team, &lo, &hi)
    for r in range(lo, hi):
        top, total = x[r * n], 0
        for j in range(n):
            top = x[r * n + j] if x[r * n + j] > top or x[r * n + j] != x[r * n + j] else top
        for j in range(n):
            y[r * n + j] = exp(x[r * n + j] - top)
            total += y[r * n + j]
        for j in range(n):
            y[r * n + j] /= total
    return FE_OK


def table():
    return {"softmax": {FE_F32: (<size_t><void *>softmax, 0)}}
""".replace("from flowedu", "from libc.stdint cimport int64_t\nfrom flowedu", 1)
    right, said = answer(runner, text=loop, hole=SOFTMAX)
    lines = said.splitlines()
    assert right and "* 1 of 3 stars" in lines[0]
    assert (lines[1].startswith("  line 14   for r in range(lo, hi):")
            and lines[1].endswith("cdef Py_ssize_t r"))
    assert "score" in lines[1] and "r is a Python object" in lines[1] and "more lines" in lines[4]
    assert "2 stars: score 0 in every loop line" in lines[-2]
    typed = loop.replace("lo, hi\n", "lo, hi, r, j\n")
    right, said = answer(runner, text=typed, hole=SOFTMAX)
    assert "exp is a Python function   from libc.math cimport exp" in said and "line 19" in said, said
    right, said = answer(runner, text=typed.replace("from math import", "from libc.math cimport"),
                         hole=SOFTMAX)
    assert "2 of 3 stars" in said.splitlines()[0] and "score" not in said, said


@pytest.mark.slow
def test_speed_is_reported_but_not_graded(runner, monkeypatch):
    _, said = answer(runner)
    assert "µs" not in said
    monkeypatch.delenv("GRADE_SPEED")
    _, said = answer(runner)
    assert "speed     yours" in said and "; NumPy" in said and "; library" in said, said


def test_speed_must_be_reached_in_two_of_three_runs(monkeypatch):
    tries = [{"right": True, "score": 0, "yours": t, "NumPy": 2, "library": 1} for t in (1.0, 9.0, 1.0)]
    monkeypatch.setenv("GRADE_SPEED", "1")
    assert kernels.stars(SUMS, tries, RIGHT).stars == 3
    assert kernels.stars(SUMS, [*tries[:2], tries[1]], RIGHT).stars == 2
    assert kernels.stars(SUMS, [{**t, "score": 3} for t in tries], RIGHT).stars == 1
    monkeypatch.delenv("GRADE_SPEED")                  # as in a grade
    verdict = kernels.stars(SUMS, tries[1:2], RIGHT)
    assert (verdict.stars, verdict.of) == (2, 2)


def test_an_op_runs_another_kernel_and_its_own_again():
    from flowedu_course.laws.called import Compiled
    before, x = TABLE["cumsum", 0], flow.tensor([1.0, 2.0, 3.0])
    wrong = Compiled("cumsum", RIGHT.replace("<float>total", "<float>(2 * total)"))
    assert flow.cumsum(x, 0).tolist() == [1, 3, 6]
    with kernels.entered("cumsum", wrong.address):
        assert flow.cumsum(x, 0).tolist() == [2, 6, 12] and flow.cumsum(x.double(), 0).tolist() == [1, 3, 6]
    assert flow.cumsum(x, 0).tolist() == [1, 3, 6] and TABLE["cumsum", 0] == before


def test_the_library_runs_on_answers(runner):
    """With FLOWEDU_HOLES, the op runs the student's kernel, also in a graph; kernels that are not begun stay
    the library's.
    """
    runner.file(SUMS).write_text(RIGHT.replace("<float>total", "<float>(2 * total)"), encoding="utf-8")
    program = """
import flowedu as flow
from flowedu.swap import whose
class G(flow.nn.Graph):
    def build(self, x):
        return flow.cumsum(x, 0) + 1
print(G()(flow.ones(3)).tolist(), flow.softmax(flow.zeros(1, 2), 1).tolist(), whose())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8",
                          env={**os.environ, "FLOWEDU_HOLES": str(runner.work)})
    assert done.stdout == "[3.0, 5.0, 7.0] [[0.5, 0.5]] yours: 8.3_running_sums\n", done


def test_the_library_handles_cases_outside_the_exercise(runner):
    """Exercise 8.6 covers products of two contiguous matrices; batched and transposed products use the
    library's kernel.
    """
    product = course.find("8.6")
    text = kernels.answer(product)
    assert text.count("y[i * n + j] = sum0[j]") == 1
    runner.file(product).write_text(text.replace("y[i * n + j] = sum0[j]", "y[i * n + j] = 2 * sum0[j]"),
                                    encoding="utf-8")
    program = """
import flowedu as flow
from flowedu_course import fallback, kernels
a, b = flow.arange(6.0).reshape(2, 3), flow.ones(3, 2)
def products():
    return [(a @ b).tolist(), (b.permute(1, 0) @ a.permute(1, 0)).tolist(), flow.bmm(a[None], b[None]).tolist()]
mine, n = products(), fallback.times("matmul")
with kernels.libraries():
    own = products()
print(n, [m == o for m, o in zip(mine, own)], mine[0][0][0] == 2 * own[0][0][0], fallback.times("matmul") == n)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8",
                          env={**os.environ, "FLOWEDU_HOLES": str(runner.work)})
    assert done.stdout == "1 [False, True, True] True True\n", done


@pytest.mark.slow
def test_the_milestone_runs_on_answers(runner):
    for id in ("8.2", "8.3", "8.4", "8.6"):
        hole = course.find(id)
        runner.file(hole).write_text(kernels.answer(hole), encoding="utf-8")
    program = course.HOME / "chapters" / "08_kernels" / "milestone.py"

    def ran(**environment):
        return subprocess.run([sys.executable, program], capture_output=True, encoding="utf-8", timeout=300,
                              env={**os.environ, **environment})
    done = ran(FLOWEDU_HOLES=str(runner.work))
    assert (done.returncode == 0 and done.stdout.count("yours ran") == 4
            and "milestone 8 reached" in done.stdout), done
    softmax = kernels.answer(SOFTMAX)
    runner.file(SOFTMAX).write_text(softmax.replace("    forward(call, team, tag, False)\n    return FE_OK",
                                                    "    forward(call, team, tag, True)\n    return FE_OK"),
                                    encoding="utf-8")
    done = ran(FLOWEDU_HOLES=str(runner.work))
    assert done.returncode == 1 and "milestone 8 missed" in done.stdout and not done.stderr, done
