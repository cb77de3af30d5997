"""Printed tables are aligned: whatever the names are, each column has the same position in every row."""
import re

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import fresh_session  # noqa: F401
from flowedu import models, nn

from .making import make_graph, trainer

LONG = "a_name_that_is_longer_than_any_column_of_the_table_is_wide"


def cut_apart(lines: list[str], head: str) -> bool:
    """Return True if between any two words of the head some position is blank in every row."""
    words = [m.span() for m in re.finditer(r"\S+(?: live)?", head)]
    rows = [line.ljust(len(head) + 40) for line in [head, *lines]]
    return all(any(all(row[at] == " " for row in rows) for at in range(start + 1, end))
               for (start, _), (_, end) in zip(words, words[1:]))


def in_line(lines: list[str]) -> bool:
    """Return True if numbers before `nodes`, arrows, and words are aligned, and no idle device has a line."""
    arrows = [re.fullmatch(r" *(\w+) +(\d+ -> +\d+) nodes.*", line) for line in lines if "->" in line]
    return (all(arrows) and len({m.start(2) + m[2].index("->") for m in arrows}) == 1
            and len({m.end(2) for m in arrows}) == 1 and not any(re.search(r"(\d+) -> +\1 nodes$", m[0])
                                                                 for m in arrows))


def pictures():
    m = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5))
    g = trainer(m, flow.optim.Adam(m.parameters(), lr=0.1))
    return g, (flow.randn(2, 1, 8, 8), flow.tensor([1, 2]))


def words():
    gpt = models.GPT(9, n_layer=1, n_head=2, d=8, block_size=4)
    return make_graph(lambda self, x: self.gpt(x), gpt=gpt), (flow.tensor([[1, 2, 3, 4]]),)


@pytest.mark.parametrize("make", [pictures, words])
def test_columns_of_a_report_and_a_profile_are_aligned(make):
    g, args = make()
    g(*args)
    assert in_line(g.report().splitlines()), g.report()
    head, *rows, _ = g.profile(*args).splitlines()
    assert len(rows) > 5 and cut_apart(rows, head), g.profile(*args)


@pytest.mark.parametrize("name", ["a", LONG])
@pytest.mark.usefixtures("fresh_session")
def test_columns_of_a_plan_are_aligned(name):
    @flow.global_function("train")
    def job(x: tp.Numpy.Placeholder((2, 1, 16, 16)), t: tp.Numpy.Placeholder((2,), flow.int32)) -> tp.Numpy:
        make = flow.truncated_normal(0.1)
        y = flow.layers.conv2d(x, 4, 3, activation=flow.nn.relu, kernel_initializer=make, name=name)
        y = flow.nn.max_pool2d(y, 2, 2, "VALID")
        y = flow.layers.dense(flow.reshape(y, (2, -1)), 5, kernel_initializer=make, name=f"{name}2")
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(t, y)
        flow.optimizer.Adam(flow.optimizer.PiecewiseConstantScheduler([], [0.1])).minimize(loss)
        return loss

    job(np.ones((2, 1, 16, 16), np.float32), np.ones(2, np.int32))
    above, head, below = re.fullmatch(r"(.*?)\n\n(step [^\n]*)\n(.*?)\n\n.*", job.show(), re.DOTALL).groups()
    rows = [line for line in below.splitlines() if not line.startswith("---- ")]
    assert len(rows) > 10 and cut_apart(rows, head), job.show()
    assert in_line(above.splitlines()[1:]), above


def test_misaligned_tables_are_detected():
    head = "step  op     bytes"
    assert cut_apart(["   1  add        4", "   2  matmul  4,000"], head)
    assert not cut_apart(["   1  add        4", "   2  matmul_grad 4"], head)
    assert in_line(["  simplify    19 ->   15 nodes", "  fuse        15 ->   14 nodes  1 ops"])
    assert not in_line(["  simplify  19 ->   15 nodes", "  pool_first   15 ->   14 nodes"])
    assert not in_line(["  dead      19 ->   19 nodes"])
