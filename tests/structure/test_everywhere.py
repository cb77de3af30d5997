"""Coverage of tools/test_everywhere.py: all pairs of instruction set and threads, in thirds."""
import itertools
from pathlib import Path

import pytest

from common import load_tool

ROOT = Path(__file__).parents[2]
everywhere = load_tool("test_everywhere")
ROWS = everywhere.combinations()


def test_every_pair_of_instruction_set_and_threads_runs_once():
    pairs = [(row.isa, row.threads) for row in ROWS]
    assert sorted(pairs) == sorted(itertools.product(everywhere.ISAS, everywhere.THREADS))
    for factor in (0, 1):
        assert {(row[factor], row.hash_seed) for row in ROWS} == set(itertools.product(
            (everywhere.ISAS, everywhere.THREADS)[factor], everywhere.HASH_SEEDS))


@pytest.mark.parametrize("third", range(everywhere.THIRDS))
def test_a_third_has_every_instruction_set_and_number_of_threads(third):
    rows = [row for row in ROWS if row.third == third]
    assert ({row.isa for row in rows} == {*everywhere.ISAS} and {row.threads
                                                                 for row in rows} == {*everywhere.THREADS})
    assert len(rows) == 3


def test_commits_take_turns():
    assert {everywhere.choose_third(f"{n:040x}"[-12:]) for n in range(3)} == {0, 1, 2}
    assert everywhere.choose_third("") == 0


def test_the_sensitive_tests_exist_and_have_a_reason():
    assert [p for p, reason in everywhere.SENSITIVE.items() if not (ROOT / p).exists() or not reason] == []
