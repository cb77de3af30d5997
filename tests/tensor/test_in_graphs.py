"""Law: a tensor function has the same result on lazy tensors in nn.Graph.build as eagerly."""
import numpy as np
import pytest

import flowedu as flow
from common import flatten

from .cases import EVERY
from .inputs import INPUTS, split
from .lines import evaluate_line, names_in

CASES = [c for c in EVERY if "eager" not in split(c)[1]]


class Line(flow.nn.Graph):
    """Graph that runs one line of text."""

    def __init__(self, text, names):
        super().__init__()
        self.text, self.names = text, names

    def build(self, *values):
        out = flatten(evaluate_line(self.text, flow, dict(zip(self.names, values))))
        assert all(y.is_lazy for y in out)
        return tuple(out)


@pytest.mark.parametrize("case", CASES)
def test_a_graph_gives_the_same(case):
    text, flags = split(case)
    names = names_in(text)
    if not names or any(INPUTS[n].size == 0 for n in names):
        return
    values = [flow.tensor(INPUTS[n]) for n in names]
    want = flatten(evaluate_line(text, flow, dict(zip(names, values))))
    got = flatten(Line(text, names)(*values))
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.dtype is b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9 if b.dtype is flow.float64 else 1e-3,
                                   atol=1e-9)


@pytest.mark.parametrize("text", ["m.nonzero(a)", "a[q]", "m.unique(a)", "m.masked_select(a, q)",
                                  "m.bincount(k[0])"])
def test_ops_that_need_the_data_raise_in_a_graph(text):
    names = names_in(text)
    with pytest.raises(flow.errors.LazyTensorError, match="lazy|data"):
        Line(text, names)(*[flow.tensor(INPUTS[n]) for n in names])
