"""The frontier: for each chapter k, a tree in which the exercises after k are stubs. Lessons 1 to k run there, and so do
the tests that say they need no more (tests/frontier.py).

    python -m flowedu.learn.teach.frontier                             all chapters that have later ones, all tests
    python -m flowedu.learn.teach.frontier --sample                    one of them, chosen by the commit: what CI runs
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


def steps(home: Path = course.HOME) -> list[int]:
    """Where there is a frontier: before the first chapter, and after each but the last."""
    return [0, *(c.number for c in course.chapters(home) if c.holes)][:-1]


def commit(home: Path = course.HOME) -> str:
    """Of the checkout; "" where there is none."""
    done = subprocess.run(["git", "-C", str(home), "rev-parse", "HEAD"], capture_output=True, encoding="utf-8")
    return done.stdout.strip() if done.returncode == 0 else ""


def sampled(commit: str, home: Path = course.HOME) -> int:
    """A chapter, the same whenever it is asked about this commit; over commits each has its turn. None but tests of later
    chapters say something: there is nothing to run before the first."""
    there = steps(home)[1:]
    return there[int(commit[:12] or "0", 16) % len(there)]


def step(upto: int, tests: Sequence[str], home: Path = course.HOME, quick: bool = False) -> Step:
    """Lessons and tests up to a chapter, with later exercises closed. quick: on two cores, without slow tests."""
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
        options = ["-n", "2", "-m", "not slow"] if quick else []
        passed, more = _tests(tree, upto, [*tests, *options]) if upto and tests else (0, [])
    return Step(upto, len(later), left, passed, failed + more, round(time.monotonic() - began, 1))


def _tests(tree: Path, upto: int, tests: Sequence[str]) -> tuple[int, list[str]]:
    done = _run(tree, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "--tb=line", "--upto", str(upto), *tests)
    failed = sorted(set(re.findall(r"^(?:FAILED|ERROR) ([^\s\[]*)", done.stdout, re.MULTILINE)))     # of cases, the test
    counted = re.search(r"(\d+) passed", done.stdout)
    dots = sum(line.count(".") for line in done.stdout.splitlines() if line.endswith("%]"))
    passed = int(counted[1]) if counted else dots
    if done.returncode not in (0, 1, 5):
        failed.append((done.stdout + done.stderr).strip()[-300:])
    return passed, failed


def _run(tree: Path, *arguments: str) -> subprocess.CompletedProcess:
    env = {"HYPOTHESIS_PROFILE": "debug", **os.environ, "PYTHONPATH": str(tree / "src"), "FLOWEDU_NUM_THREADS": "1"}
    for name in ("FLOWEDU_HOLES", "CI"):               # in CI skips must be on a list: a tree without git has others
        env.pop(name, None)
    try:
        return subprocess.run([sys.executable, *arguments], cwd=tree, capture_output=True, encoding="utf-8", env=env,
                              timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 124, "", f"no end after {SECONDS} s")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu.learn.teach.frontier", description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", type=int)
    parser.add_argument("--tests", nargs="*", default=["tests"], help="which tests; --tests alone: lessons only")
    parser.add_argument("--sample", nargs="?", const="HEAD", metavar="COMMIT",
                        help="one chapter, chosen by the commit; no slow tests")
    options = parser.parse_args(arguments)
    bad, chapters = 0, options.chapters or steps()
    if options.sample:
        which = commit() if options.sample == "HEAD" else options.sample
        chapters = [sampled(which)]
        print(f"commit {which[:12] or 'unknown'}: the frontier after chapter {chapters[0]}", flush=True)
    for k in chapters:
        s = step(k, options.tests, quick=bool(options.sample))
        bad += len(s.failed)
        print(f"up to chapter {k}: {s.holes} later exercises are stubs, {s.passed} tests passed, {s.left_out} blocks of "
              f"lessons left out, {s.seconds:g} s", flush=True)
        for line in s.failed:
            print(f"   {line}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
