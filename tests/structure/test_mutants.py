"""Rules for the table of `make mutants`: every fault can be planted, and its tests exist."""
import os
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression
from tools import mutants

ROWS = mutants.read_mutants()
ROOT = mutants.ROOT


def test_at_least_120_mutants_and_no_duplicates():
    assert len(ROWS) >= 120
    twice = [m for m, n in Counter((m.file, m.before, m.after) for m in ROWS).items() if n > 1]
    assert not twice


def test_every_part_of_the_package_has_mutants():
    parts = {Path(m.file).parts[2] for m in ROWS}
    folders = {p.name for p in (ROOT / "src" / "flowedu").iterdir() if p.is_dir() and any(p.glob("*.py"))}
    assert not folders - parts, "folders without a planted fault"


def test_every_mutant_can_be_planted():
    for row in ROWS:
        text = (ROOT / row.file).read_text(encoding="utf-8")
        assert text.count(
            row.before) == 1, f"{row}: 'before' must stand there exactly once: mend the row, or take it out"
        assert row.before != row.after, row
        files = [a.partition("::")[0] for a in shlex.split(row.tests) if a.startswith("tests/")]
        assert files and all((ROOT / f).exists() for f in files), row


@pytest.mark.slow
def test_every_selection_of_tests_contains_a_test():
    """A renamed test, or one that gets the mark slow, must not leave a fault without tests."""
    files = sorted({a for row in ROWS for a in shlex.split(row.tests) if a.startswith("tests/")})
    for slow in (False, True):
        arguments = [] if slow else ["-m", "not slow"]
        done = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0",
                               "-o", "addopts=", *arguments, *files],
                              cwd=ROOT, capture_output=True, encoding="utf-8",
                              env={**os.environ, "CI": "", "HYPOTHESIS_PROFILE": "mutant"})
        collected = [line for line in done.stdout.splitlines() if "::" in line]
        assert collected, done.stdout + done.stderr
        files_of: dict[str, list[str]] = {}
        for test in collected:
            files_of.setdefault(test.partition("::")[0], []).append(test)
        for selection in {row.selection for row in ROWS if row.slow == slow and not row.needs}:
            assert _selects_any(selection.tests, files_of), selection


def _selects_any(arguments: str, files_of: dict[str, list[str]]) -> bool:
    """Return True if pytest's arguments select one of the collected tests, {file: node ids}."""
    words = shlex.split(arguments)
    names = [a for a in words if a.startswith("tests/")]
    keywords = Expression.compile(words[words.index("-k") + 1] if "-k" in words else "")
    tests = [test for file, ids in files_of.items() for name in names
             if name.startswith(file) or file.startswith(name) for test in ids
             if test == name or test.startswith((name + "::", name + "[", name.rstrip("/") + "/"))]
    return bool(tests) and ("-k" not in words or any(
        keywords.evaluate(lambda word, test=test: word.lower() in test.lower()) for test in tests))
