"""Check that each chapter works while the exercises of later chapters are open.

For each chapter k, a separate tree has stubs for the exercises after k. Lessons 1 to k run in this tree, and
so do the tests that need no later exercise (tests/frontier.py).

    python -m flowedu_course.teach.frontier                         all chapters but the last, all tests
    python -m flowedu_course.teach.frontier --sample                one chapter, chosen by the commit, as in CI
    python -m flowedu_course.teach.frontier 1 4 --tests tests/course
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

from flowedu_course import course
from flowedu_course.teach.tree import export

SECONDS = 900


class Step(NamedTuple):
    """Results in one tree. left_out: lesson blocks that need an open exercise; failed: tests and lessons."""

    upto: int
    holes: int
    left_out: int
    passed: int
    failed: list[str]
    seconds: float


def steps(home: Path = course.HOME) -> list[int]:
    """Return 0 and the number of each chapter except the last."""
    return [0, *(c.number for c in course.chapters(home) if c.holes)][:-1]


def commit(home: Path = course.HOME) -> str:
    """Return the commit of the checkout, or "" without git."""
    done = subprocess.run(["git", "-C", str(home), "rev-parse", "HEAD"], capture_output=True,
                          encoding="utf-8")
    return done.stdout.strip() if done.returncode == 0 else ""


def sampled(commit: str, home: Path = course.HOME) -> int:
    """Return a chapter chosen by the commit. Step 0, which has no lessons to run, is left out."""
    there = steps(home)[1:]
    return there[int(commit[:12] or "0", 16) % len(there)]


def step(upto: int, tests: Sequence[str], home: Path = course.HOME, quick: bool = False) -> Step:
    """Run the lessons and tests up to a chapter, with later exercises as stubs.

    quick: two cores, no slow tests.
    """
    began = time.monotonic()
    later = [h for h in course.holes(home) if h.chapter > upto]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        last = max(c.number for c in course.chapters(home))
        export(tree, last, home=home, tests=True, built=True, holes=later)
        (tree / "student.json").unlink()               # the answers in src/ apply
        left, failed = 0, []
        for chapter in course.chapters(home):
            if chapter.number <= upto:
                page = tree / "chapters" / chapter.folder.name / "README.md"
                done = _run(tree, "-m", "flowedu_course.lesson", str(page))
                left += done.stdout.count(", which is open")
                if done.returncode:
                    failed.append(f"lesson {chapter.number}: "
                                  f"{(done.stdout + done.stderr).strip().splitlines()[-1]}")
        options = ["-n", "2", "-m", "not slow"] if quick else []
        passed, more = _tests(tree, upto, [*tests, *options]) if upto and tests else (0, [])
    return Step(upto, len(later), left, passed, failed + more, round(time.monotonic() - began, 1))


def _tests(tree: Path, upto: int, tests: Sequence[str]) -> tuple[int, list[str]]:
    done = _run(tree, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "--tb=line", "--upto",
                str(upto), *tests)
    # No parameters.
    failed = sorted(set(re.findall(r"^(?:FAILED|ERROR) ([^\s\[]*)", done.stdout, re.MULTILINE)))
    counted = re.search(r"(\d+) passed", done.stdout)
    dots = sum(line.count(".") for line in done.stdout.splitlines() if line.endswith("%]"))
    passed = int(counted[1]) if counted else dots
    if done.returncode not in (0, 1, 5):
        failed.append((done.stdout + done.stderr).strip()[-300:])
    return passed, failed


def _run(tree: Path, *arguments: str) -> subprocess.CompletedProcess:
    env = {"HYPOTHESIS_PROFILE": "debug", **os.environ, "FLOWEDU_NUM_THREADS": "1",
           "PYTHONPATH": os.pathsep.join(str(tree / part) for part in ("src", "course"))}
    # CI checks skips against a list; trees without git skip more
    for name in ("FLOWEDU_HOLES", "CI"):
        env.pop(name, None)
    try:
        return subprocess.run([sys.executable, *arguments], cwd=tree, capture_output=True, encoding="utf-8",
                              env=env, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 124, "", f"not finished after {SECONDS} s")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.teach.frontier",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", type=int)
    parser.add_argument("--tests", nargs="*", default=["tests"],
                        help="the tests to run; --tests without a value: lessons only")
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
        print(f"up to chapter {k}: {s.holes} later exercises are stubs, {s.passed} tests passed, "
              f"{s.left_out} blocks of lessons left out, {s.seconds:g} s", flush=True)
        for line in s.failed:
            print(f"   {line}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
