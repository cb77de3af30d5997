"""`make watch` in a terminal: whatever work file is saved is judged, and any exercise can be chosen."""
import os
import pty
import re
import select
import subprocess
import sys

from common import HANGS
from flowedu.learn import course
from flowedu.learn.runner import Runner

RIGHT = "def row_major(shape):\n    out, step = [], 1\n    for n in reversed(shape):\n        out.append(step)\n" \
        "        step *= max(n, 1)\n    return tuple(reversed(out))\n"


def test_any_exercise_is_judged_when_it_is_saved(tmp_path):
    """Another than the one it stands at; one that is asked for by EX=; one by a key, of a chapter that was not begun."""
    runner = Runner(course.HOME, tmp_path / "work")
    runner.start(1)
    terminal, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-m", "flowedu.learn", "watch", "1.3", "--work", str(runner.work)],
                             stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "NO_COLOR": "1"})
    os.close(theirs)
    seen = ""

    def until(pattern):
        nonlocal seen
        seen = ""
        while not re.search(pattern, seen):
            assert select.select([terminal], [], [], HANGS)[0], seen
            seen += os.read(terminal, 4096).decode()

    try:
        until(r"1\.3 [^\n]*not begun[^\0]*q quit")
        runner.file(course.find("1.1")).write_text(RIGHT)
        until(r"1\.1 strides[^\n]*right\.[^\0]*q quit")
        os.write(terminal, b"e1.4\n")
        until(r"1\.4 [^\n]*not begun[^\0]*q quit")
        os.write(terminal, b"e2.1\n")
        until(r"\n2\.1 [^\0]*q quit")
        os.write(terminal, b"e7.7\nl")                 # there is none: it stays where it is
        until("chapter 1: [^\0]*q quit")
        assert not re.search(r"\n2\.[2-9] [^\n]*not begun", seen)
        os.write(terminal, b"q")
        assert child.wait(HANGS) == 0
    finally:
        child.kill()
        child.wait()
        os.close(terminal)
