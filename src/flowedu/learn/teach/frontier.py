"""The frontier: for each chapter k, a tree in which the exercises after k are stubs. Lessons 1 to k run there, and so do
the tests that say they need no more (tests/frontier.py).

    python -m flowedu.learn.teach.frontier 1 4 --tests tests/course
"""
from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from flowedu.learn import course
from flowedu.learn.teach.tree import export

SECONDS = 900


class Step(NamedTuple):
    """What a tree gave. left_out: blocks of lessons that need an open exercise; failed: tests and lessons, with why."""

    upto: int
    holes: int
    left_out: int
    passed: int
    failed: list[str]
    seconds: float


def step(upto: int, tests: Sequence[str], home: Path = course.HOME) -> Step:
    """Lessons and tests up to a chapter, with later exercises closed."""
    began = time.monotonic()
    later = [h for h in course.holes(home) if h.chapter > upto]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        last = max(c.number for c in course.chapters(home))
        export(tree, last, home=home, tests=True, built=True, holes=later)
        (tree / "student.json").unlink()               # its answers are those of src/
        left, failed = 0, []
        for chapter in course.chapters(home):
            if chapter.number <= upto:
                page = tree / "chapters" / chapter.folder.name / "README.md"
                done = _run(tree, "-m", "flowedu.learn.lesson", str(page))
                left += done.stdout.count(", which is open")
                if done.returncode:
                    failed.append(f"lesson {chapter.number}: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
        passed, more = _tests(tree, upto, tests) if upto else (0, [])
    return Step(upto, len(later), left, passed, failed + more, round(time.monotonic() - began, 1))


def _tests(tree: Path, upto: int, tests: Sequence[str]) -> tuple[int, list[str]]:
    if not tests:
        return 0, []
    done = _run(tree, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "--tb=line", "--upto", str(upto), *tests)
    failed = sorted(set(re.findall(r"^(?:FAILED|ERROR) ([^\s\[]*)", done.stdout, re.MULTILINE)))     # of cases, the test
    counted = re.search(r"(\d+) passed", done.stdout)
    dots = sum(line.count(".") for line in done.stdout.splitlines() if line.endswith("%]"))
    passed = int(counted[1]) if counted else dots
    if done.returncode not in (0, 1, 5):
        failed.append((done.stdout + done.stderr).strip()[-300:])
    return passed, failed


def _run(tree: Path, *arguments: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": str(tree / "src"), "FLOWEDU_NUM_THREADS": "1"}
    env.pop("FLOWEDU_HOLES", None)
    try:
        return subprocess.run([sys.executable, *arguments], cwd=tree, capture_output=True, text=True, env=env,
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 124, "", f"no end after {SECONDS} s")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu.learn.teach.frontier", description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", type=int)
    parser.add_argument("--tests", nargs="*", default=["tests"], help="which tests; --tests alone: lessons only")
    options = parser.parse_args(arguments)
    bad = 0
    for k in options.chapters or [0, *(c.number for c in course.chapters() if c.holes)]:
        s = step(k, options.tests)
        bad += len(s.failed)
        print(f"up to chapter {k}: {s.holes} later exercises are stubs, {s.passed} tests passed, {s.left_out} blocks of "
              f"lessons left out, {s.seconds:g} s", flush=True)
        for line in s.failed:
            print(f"   {line}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
