"""`make watch` in a terminal: every saved work file is judged, any exercise can be chosen by its number or in
the list, and each screen names the current and the next exercise. Without a terminal, it prints plain text
until the input ends.
"""
import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

from common import HANGS
from flowedu_course import course
from flowedu_course.limits import details
from flowedu_course.runner import Runner

RIGHT = """def row_major(shape):
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= max(n, 1)
    return tuple(reversed(out))
"""
RAISES = """def helper(shape):
    return shape[10 ** 6]


def row_major(shape):
    print('seen', shape)
    return helper(shape)
"""


class Screen:
    """The screen of `make watch` in a pseudo-terminal, with key presses."""

    def __init__(self, child, terminal):
        self.child, self.terminal, self.seen = child, terminal, ""

    def until(self, pattern):
        self.seen = ""
        while not re.search(pattern, self.seen):
            assert select.select([self.terminal], [], [], HANGS)[0], self.seen
            self.seen += os.read(self.terminal, 4096).decode().replace("\r", "")

    def press(self, text):
        os.write(self.terminal, text.encode())


@contextlib.contextmanager
def watching(work, exercise):
    terminal, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-m", "flowedu_course", "watch", exercise, "--work", str(work)],
                             stdin=theirs,
                             stdout=theirs, stderr=theirs, env={**os.environ, "NO_COLOR": "1", "LINES": "30"})
    os.close(theirs)
    try:
        yield Screen(child, terminal)
    finally:
        child.kill()
        child.wait()
        os.close(terminal)


@pytest.fixture
def runner(tmp_path):
    r = Runner(course.HOME, tmp_path / "work")
    r.start(1)
    return r


@pytest.mark.slow
def test_any_exercise_is_judged_when_it_is_saved(runner):
    """Judge an exercise other than the current one: one chosen with EX=, and one chosen by key from a chapter
    that is not begun.
    """
    with watching(runner.work, "1.3") as screen:
        screen.until(r"1\.3 [^\n]*not begun[^\0]*q quit")
        runner.file(course.find("1.1")).write_text(RIGHT, encoding="utf-8")
        screen.until(r"1\.1 strides[^\n]*right\.[^\0]*q quit")
        screen.press("e1.4\n")
        screen.until(r"1\.4 [^\n]*not begun[^\0]*q quit")
        screen.press("e2.1\n")
        screen.until(r"\n2\.1 [^\0]*q quit")
        screen.press("e7.7\nl")                        # no such exercise: the screen stays
        screen.until("chapter 1: [^\0]*q quit")
        assert not re.search(r"\n2\.[2-9] [^\n]*not begun", screen.seen)
        screen.press("q")
        assert screen.child.wait(HANGS) == 0


@pytest.mark.slow
def test_each_screen_names_the_exercise_at_hand_and_the_next(runner):
    def stands(at_hand, after):
        named = r"\n{} +{} [^\n]*min[^\n]*".format
        screen.until(named("current", re.escape(at_hand)) + named("next",
                                                                  re.escape(after)) + r"\n[^\0]*q quit")

    with watching(runner.work, "1.1") as screen:
        stands("1.1", "1.2")
        screen.press("h")
        screen.until(r"hint 1 of 3[^\0]*current +1\.1 [^\0]*q quit")
        runner.file(course.find("1.1")).write_text(RIGHT, encoding="utf-8")
        stands("1.1", "1.2")                           # passed: the screen stays until n is pressed
        screen.press("n")
        stands("1.2", "1.3")
        screen.press("e1.5\n")                         # the last exercise of its chapter
        stands("1.5", "2.1")


@pytest.mark.slow
def test_an_exercise_is_chosen_in_the_list(runner):
    with watching(runner.work, "1.2") as screen:
        screen.until(r"1\.2 [^\n]*not begun[^\0]*q quit")
        screen.press("l")
        screen.until(r"> \[ \] 1\.2 [^\0]*Enter: select[^\0]*q quit")
        screen.press("j")
        screen.until(r"> \[ \] 1\.3 [^\0]*q quit")
        screen.press("\x1b[B")                         # arrow down
        screen.until(r"> \[ \] 1\.4 [^\0]*q quit")
        screen.press("k\n")
        screen.until(r"1\.3 [^\n]*not begun[^\0]*current +1\.3 [^\0]*q quit")
        screen.press("l")
        screen.until(r"> \[ \] 1\.3 [^\0]*q quit")
        screen.press("kkkkkk")  # wraps around to the last entry: the list is longer than the screen
        screen.until(r"> \[ \] 8\.\d+ [^\0]*q quit")
        screen.press("\x1b")
        screen.until(r"current +1\.3 [^\0]*q quit")    # the screen stays
        screen.press("lq")
        assert screen.child.wait(HANGS) == 0


def _comes(file) -> bool:
    """Wait until a file exists, because the screen may be drawn first; return False after the time limit."""
    end = time.monotonic() + HANGS
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return file.exists()


@pytest.mark.slow
def test_debug_shows_the_whole_traceback(runner):
    file = runner.file(course.find("1.1"))
    file.write_text(RAISES, encoding="utf-8")
    with watching(runner.work, "1.1") as screen:
        screen.until(r"IndexError[^\0]*q quit")
        screen.press("d")
        screen.until(r"seen \(\)[^\0]*Traceback[^\0]*in helper[^\0]*\nIndexError[^\0]*breakpoint[^\0]*q quit")
        file.unlink()
        screen.press("x")                              # there is nothing to discard: the task is shown again
        screen.until(r"1\.1 [^\n]*not begun[^\0]*q quit")
        assert _comes(file)


@pytest.mark.slow
def test_debug_of_an_answer_that_raises_nothing_or_does_not_end(runner, monkeypatch):
    hole = course.find("1.1")
    runner.file(hole).write_text("def row_major(shape):\n    return ()\n")
    said = "\n".join(details(runner, hole))
    assert "wrong" in said and "no exception was raised" in said and "Traceback" not in said
    runner.file(hole).write_text("import os\n\n\ndef row_major(shape):\n    print('flood\\n' * 1000)\n    "
                                 "os._exit(3)\n")
    lines = details(runner, hole)
    assert ("exited with status 3" in "\n".join(lines[-3:]) and len(lines) < 250
            and "more lines" in lines[0])
    runner.file(hole).write_text(RIGHT, encoding="utf-8")
    assert "1.1 strides: right" in details(runner, hole)[0]
    runner.file(hole).unlink()
    assert "not begun" in details(runner, hole)[0]


@pytest.mark.slow
def test_without_a_terminal(runner):
    runner.file(course.find("1.1")).write_text(RAISES, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "flowedu_course", "watch", "1.1", "--work",
                           str(runner.work)],
                          encoding="utf-8",
                          input="h\nd\nl\n", capture_output=True, timeout=HANGS)
    assert done.returncode == 0 and "\x1b" not in done.stdout and "Traceback" not in done.stderr
    assert re.search(r"hint 1 of 3[^\0]*in helper[^\0]*\[ \] 8\.11 [^\0]*current +1\.1 ",
                     done.stdout), done.stdout
