"""Rules for the table of `make mutants`: every fault can be planted, and its tests exist."""
import shlex
from collections import Counter
from pathlib import Path

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
