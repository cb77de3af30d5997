"""The page "From PyTorch" lists every difference that the library declares, and its printed output is
true.
"""
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from flowedu.mock import differences as table
from flowedu.mock.differs_optim import DIFFERS
from flowedu_course.lesson import run_lesson

BOOK = Path(__file__).parents[2] / "book"
sys.path.insert(0, str(BOOK))
PAGE = BOOK / "from_pytorch.md"


@pytest.fixture(scope="module")
def text():
    return importlib.import_module("compare").filled(PAGE.read_text(encoding="utf-8"))


def test_every_difference_has_a_row(text):
    rows = [line for line in text.splitlines() if line.startswith("|")]

    def has_row(*words):
        return any(all(w in row for w in words) for row in rows)

    for names, pairs in table.RENAMED.items():
        assert all(has_row(*(f"`{n}`" for n in names.split() if n != "*"), f"`{theirs}`")
                   for theirs in pairs), names
    for row in table.IDLE:
        assert has_row(*(f"`{n}`" for n in row.names.split() if n != "*"), f"`{row.argument}`", row.why,
                     row.fix), row
    for row in (*table.FACES, *table.OTHERS):
        assert has_row(row.argument, row.ours, row.theirs, row.why), row
    for name, differences in DIFFERS.items():
        assert all(has_row(f"`{name}`", d.parameter, d.oneflow, d.torch) for d in differences), name
    for names, places in table.PLACES.items():
        assert has_row(*(f"`{n}`" for n in names.split()), ", ".join(places.split()))


def test_the_tables_are_well_formed(text):
    assert not re.search(r"^% ", text, re.M)
    for rows in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert (len({len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()}) == 1
                and rows.count("\n") > 3), rows


def test_the_examples_of_the_page_are_true():
    printed = []
    run_lesson(PAGE, printed.append)
    numbers = [float(n) for n in re.findall(r"\d+\.", "".join(printed).replace("flowedu.float32", ""))]
    x = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    assert numbers == [*x.sum(0), *x.max(1)]
