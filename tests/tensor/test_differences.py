"""chapters/05_nn_graph/differences.md is correct: the code of every row runs, with flowedu and with
PyTorch.
"""
import builtins
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow

FILE = Path(__file__).parents[2] / "chapters" / "05_nn_graph" / "differences.md"
ROWS = [[cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in FILE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]


def assert_code_returns_or_raises(module, code, said):
    def run():
        return eval(code.strip("`"), {"m": module, "np": np})

    if said.startswith("`"):
        assert f"`{run()}`" == said
    else:
        with pytest.raises(getattr(builtins, said)):
            run()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_flowedu_behaves_as_in_the_table(row):
    what, code, torch_, oneflow, ours, why = row
    assert what and why and oneflow
    assert_code_returns_or_raises(flow, code, ours)


@pytest.mark.torch
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_pytorch_behaves_as_in_the_table(row):
    torch = pytest.importorskip("torch")
    if row[2] == "AttributeError":
        assert not hasattr(torch, row[1].split("(")[0].split(".")[1])
    else:
        assert_code_returns_or_raises(torch, row[1], row[2])


def test_the_table_is_not_empty():
    assert len(ROWS) >= 25 and all(len(row) == 6 for row in ROWS)
