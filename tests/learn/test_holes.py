"""Exercises that are holes in the library: every wrong answer fails the law it names, with a message in a
student's terms.
"""
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import flowedu as flow
from common import HANGS, few
from flowedu import swap
from flowedu.core.graph import memory, passes
from flowedu.core.ops.define import REGISTRY
from flowedu.errors import ArgumentError
from flowedu_course import authors, course, limits
from flowedu_course.laws import Law
from flowedu_course.runner import Runner, main

HOLES = course.holes()
OF_EACH_KIND = ("1.1", "5.5", "8.3", "2.h1")


@pytest.mark.slow
@pytest.mark.parametrize("hole", few(HOLES, lambda h: h.id in OF_EACH_KIND), ids=lambda h: h.id)
def test_a_hole_is_consistent(hole, tmp_path):
    assert list(authors.problems(hole, Runner(course.HOME, tmp_path), cases=100)) == []


@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_the_texts_of_an_exercise_are_consistent(hole):
    assert list(authors.check_texts(hole)) == []


def test_points_and_titles():
    for c in course.chapters():
        assert sum(h.points for h in c.exercises) == 100 and not any(h.points for h in c.hunts)
    assert len({h.id for h in HOLES}) == len({h.title
                                              for h in HOLES}) == len({h.file for h in HOLES}) == len(HOLES)
    # names need no shell quoting
    assert all(re.fullmatch(r"[1-9]\.h?\d+_\w+\.(py|pyx|cu|h)", h.file) for h in HOLES)


# ---- the runner
@pytest.fixture
def runner(tmp_path):
    r = Runner(course.HOME, tmp_path / "work")
    r.start(1)
    return r


STRIDES = course.find("1.1")
RIGHT = "def row_major(shape):\n    out, step = [], 1\n    for n in reversed(shape):\n        out.append(step)\n" \
        "        step *= max(n, 1)\n    return tuple(reversed(out))\n"


def answer(runner, text, hole=STRIDES):
    runner.file(hole).write_text(text, encoding="utf-8")
    right, lines = runner.check(hole)
    return right, "\n".join(lines)


def test_from_the_stub_to_the_solution(runner):
    right, lines = runner.check(STRIDES)
    assert not right and "not begun" in lines[0] and "10 minutes" in lines[0]
    assert "not right yet" in runner.solution(STRIDES)[0]
    assert "hint 1 of 3" in runner.hint(STRIDES)[0] and "hint 2 of 3" in runner.hint(STRIDES)[0]
    right, said = answer(runner, RIGHT)
    assert right and said.endswith("right.")
    assert any("def row_major" in line for line in runner.solution(STRIDES))
    again = Runner(course.HOME, runner.work)                           # the result is stored
    assert again.progress.row("1.1")["hints"] == 2 and again.current().id == "1.2"
    assert "[*] 1.1" in "\n".join(again.list())
    assert again.start(1) == runner.start(1)                           # existing files are unchanged
    assert runner.file(STRIDES).read_text(encoding="utf-8") == RIGHT


def test_failures_use_the_students_terms(runner):
    right, said = answer(runner, "def row_major(shape):\n    return tuple(shape)\n")
    assert not right and said.splitlines() == [
        "1.1 strides                                   law 1 of 2: the strides are NumPy's, in elements",
        "  smallest case   shape (0,)", "  yours           (0,)", "  should be       (1,)",
        "  why   chapters/01_blob/README.md#memory-a-block-a-shape-and-strides", "  h: hint 1 of 3"]


@pytest.mark.parametrize("text, words", few([
    ("def row_major(shape)\n    return ()\n", ("SyntaxError", "line 1      def row_major(shape)")),
    ("def row_major():\n    return ()\n", ("is called with (shape)", "keep the parameters")),
    ("def other(shape):\n    return ()\n", ("has no function row_major",)),
    ("def row_major(shape):\n    return shape[9]\n", ("IndexError", "line 2      return shape[9]")),
    ("import sys\nsys.exit(0)\n", ("SystemExit", "line 2      sys.exit(0)")),
    ("import os\nos._exit(0)\n", ("exited with status 0",)),
    ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", ("ended by SIGSEGV",)),
    ("def row_major(shape):\n    x = bytearray(8 << 30)\n    return ()\n", ("MemoryError", "line 2")),
    ("def row_major(shape):\n    while True:\n        print('flood ' * 9)\n",
     ("more lines", "printed more than")),
    ("raise ValueError('at the top')\n", ("ValueError: at the top", "line 1")),
], lambda row: row[1][0] in ("SyntaxError", "exited with status 0", "ended by SIGSEGV", "more lines")))
def test_the_runner_survives_hostile_answers(runner, text, words):
    right, said = answer(runner, text)
    assert not right and all(w in said for w in words), said
    assert "Traceback" not in said and len([t for t in said.splitlines() if not t.startswith("  | ")]) <= 13
    assert answer(runner, RIGHT)[0]                                    # the next check works


def test_an_endless_loop_is_stopped_and_located(runner):
    file = runner.file(STRIDES)
    file.write_text("def row_major(shape):\n    n = 0\n    while n < 1:\n        n -= 1\n")
    verdict = limits.judged(STRIDES, file, course.HOME, seconds=6.0)
    assert verdict.state == "wrong" and "no result after 6 seconds" in verdict.lines[0]
    assert verdict.lines[1].split()[1] in ("3", "4"), verdict


def test_subprocesses_of_an_answer_end_with_it(runner, tmp_path):
    mark = tmp_path / "pid"
    _, said = answer(runner, "import subprocess\np = subprocess.Popen(['sleep', '1000'])\n"
                             f"open({str(mark)!r}, 'w').write(str(p.pid))\n" + RIGHT)
    ended = Path(f"/proc/{mark.read_text(encoding='utf-8')}")
    limit = time.monotonic() + HANGS
    while ended.exists() and ") Z " not in ended.joinpath("stat").read_text(encoding="utf-8"):
        assert time.monotonic() < limit, said
        time.sleep(0.02)


def test_a_broken_state_file_is_put_aside(runner):
    answer(runner, RIGHT)
    runner.progress.file.write_text('{"holes": {"1.1": ')
    again = Runner(course.HOME, runner.work)
    assert "could not be read" in again.progress.note and again.progress.row("1.1")["state"] == "open"
    assert again.check(STRIDES)[0] and runner.file(STRIDES).read_text(encoding="utf-8") == RIGHT


def test_a_finished_exercise_is_not_checked_again(runner, monkeypatch):
    answer(runner, RIGHT)
    monkeypatch.setattr(limits, "judged", lambda *a, **k: pytest.fail("checked again"))
    assert runner.check(STRIDES, fresh=False)[0]


def test_stars(runner):
    place = course.find("4.3")
    runner.start(4)
    right, lines = runner.check(place)                                 # the unchanged stub
    assert not right and "not yet better than the initial code" in lines[0]
    assert ("half of the points: arena <= 2 * bound" in lines[1]
            and runner.progress.row("4.3")["state"] == "open")
    right, said = answer(runner, "\n".join(runner.solution(place, force=True)), place)
    assert right and runner.progress.row("4.3")["stars"] >= 1


def test_the_commands(tmp_path, capsys):
    work = str(tmp_path / "work")
    assert main(["start", "1", "--work", work]) == 0 and "5 exercises" in capsys.readouterr().out
    assert main(["check", "1.1", "--work", work]) == 1 and "not begun" in capsys.readouterr().out
    assert main(["list", "--work", work]) == 0 and "4.3" in capsys.readouterr().out
    assert main(["hint", "1.2", "--work", work]) == 0 and "hint 1 of 3" in capsys.readouterr().out
    assert (main(["check", "9.9", "--work", work]) == 2
            and "there is no exercise 9.9" in capsys.readouterr().err)
    assert main(["start", "9", "--work", work]) == 0 and "has no exercises" in capsys.readouterr().out


def test_watch_checks_saved_files(tmp_path):
    """In a terminal, save the stub, then a right answer, then go to the next exercise and quit."""
    terminal, theirs = pty.openpty()
    work = tmp_path / "work"
    child = subprocess.Popen([sys.executable, "-m", "flowedu_course", "watch", "--work", str(work)],
                             stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "NO_COLOR": "1"})
    os.close(theirs)
    seen = ""

    def until(word):
        nonlocal seen
        while word not in seen:
            seen += os.read(terminal, 4096).decode()
        seen = seen.partition(word)[2]

    try:
        until("not begun")
        (work / STRIDES.file).write_text(RIGHT, encoding="utf-8")
        until("n: the next exercise")
        os.write(terminal, b"n")
        until("1.2 broadcasting")
        os.write(terminal, b"h")
        until("hint 1 of 3")
        os.write(terminal, b"q")
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.wait()
        os.close(terminal)


# ---- swapping
def test_a_swapped_function_runs_wherever_it_was_imported_to():
    from flowedu.core.graph.passes import cse

    def mine(graph):
        return f"mine {graph}"

    with swap.swapped(passes.cse, mine):
        assert cse(3) == "mine 3" and passes.PASSES[passes.PASSES.index(cse)](4) == "mine 4"
    with pytest.raises(AttributeError):
        cse(3)


def test_unsupported_swaps_are_refused():
    k = 2
    with pytest.raises(ArgumentError, match="variables of the function around it"), swap.swapped(memory.place,
                                                                                                 lambda b: k):
        pass
    with pytest.raises(ArgumentError, match="only Python functions"), swap.swapped(len, memory.place):
        pass


def test_a_replaced_field_is_used_and_restored():
    op, x = REGISTRY["sigmoid"], flow.tensor([0.5], requires_grad=True)
    before = flow.autograd.grad(flow.sigmoid(x).sum(), x)[0].item()
    with swap.replaced(op, grad={"x": lambda dy: dy * 7}):
        assert flow.autograd.grad(flow.sigmoid(x).sum(), x)[0].item() == 7
    assert flow.autograd.grad(flow.sigmoid(x).sum(), x)[0].item() == before
    with pytest.raises(ArgumentError, match="no field colour"), swap.replaced(op, colour=1):
        pass


def test_the_library_runs_on_answers(tmp_path):
    """With FLOWEDU_HOLES, the student's place() sets the arena of a job, and swap.whose names its file."""
    place = course.find("4.3")
    (tmp_path / place.file).write_text("def place(buffers):\n    end = 64\n    for b in buffers:\n        if "
                                       "b.in_arena:\n            b.offset = end\n            end += "
                                       "rounded(b.nbytes)\n    return end\n")
    program = """
import flowedu as flow
from flowedu.swap import whose
class G(flow.nn.Graph):
    def build(self, x):
        return (x * 2 + 1).exp()
print(G()(flow.ones(3)).tolist(), whose(), "|", whose("place"))
from flowedu.core.graph.memory import Buffer, place
print(place([Buffer("a", "temp", 64)]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8",
                          env={**os.environ, "FLOWEDU_HOLES": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert ("20.08" in done.stdout and "yours: 4.3_place" in done.stdout
            and done.stdout.splitlines()[-1] == "128")


def test_a_law_shrinks_to_the_smallest_case():
    law = Law("below ten", lambda rng, size: rng.randint(0, 100 * size), lambda n, f: None if f(n)
              else [f"{n}"], lambda n: [m for m in (n // 2, n - 1) if m >= 0])
    assert law.broken(lambda n: n < 10) == ["10"] and law.broken(lambda n: True) is None


# Writes the files of the course whose functions a process and its children call.
TRACE = """
import atexit, os, sys
names = set()
def note(frame, event, _):
    path, found, name = frame.f_code.co_filename.partition("/flowedu_course/")
    if found and frame.f_code.co_flags & 1:                     # a function, not a module or a class body
        names.add(name.partition("/")[0])
atexit.register(lambda: open(os.path.join(os.path.dirname(__file__), f"{os.getpid()}.txt"), "w").write(" ".join(names)))
sys.setprofile(note)
"""


def test_a_check_is_followed_through_six_files(runner, tmp_path):
    """`runner` -> course, limits -> judge (in its own process) -> laws -> language, for its lines."""
    Path(tmp_path, "sitecustomize.py").write_text(TRACE, encoding="utf-8")
    runner.start(4)
    file = runner.file(course.find("4.3"))
    file.write_text("def place(buffers):\n    return 0\n", encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "flowedu_course", "check", "4.3", "--work",
                           str(runner.work)],
                          capture_output=True, encoding="utf-8", env={**os.environ,
                                                                      "PYTHONPATH": str(tmp_path)})
    assert "no two live results overlap" in done.stdout and done.returncode == 1
    files = {name for f in tmp_path.glob("*.txt") for name in f.read_text(encoding="utf-8").split()}
    assert files == {"runner.py", "course.py", "language.py", "limits.py", "judge.py", "laws"}
