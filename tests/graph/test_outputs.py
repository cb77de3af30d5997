"""Outputs of graphs have their own memory, written by kernels or copied: views, parts, and values with later
readers.
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn

OUTPUTS = {
    "a value": lambda x: flow.exp(x),
    "twice": lambda x: (lambda y: (y, y))(flow.exp(x)),
    "read on": lambda x: (lambda y: (y, flow.sin(y) + 1))(flow.exp(x)),
    "written over, were it not fetched": lambda x: (lambda y: (y, y * 2, (y * 2).sqrt()))(flow.exp(x)),
    "its transpose, too": lambda x: (lambda y: (y.t(), y))(flow.exp(x)),
    "its transpose alone": lambda x: flow.exp(x).t(),
    "a part, and the whole after it": lambda x: (lambda y: (y[1:3, ::2], y, y[0]))(flow.exp(x)),
    "a part alone": lambda x: flow.exp(x)[1:],
    "the input": lambda x: (x, x.t(), flow.exp(x)),
    "reshaped": lambda x: (lambda y: (y.reshape(-1), y))(flow.exp(x)),
    "nothing at all": lambda x: flow.exp(x)[:0],
}


@pytest.mark.parametrize("what", OUTPUTS)
def test_outputs_are_correct_and_stable(what):
    f = OUTPUTS[what]

    class Graph(nn.Graph):
        def build(self, x):
            return f(x)

    graph, r = Graph(), np.random.default_rng(0)
    runs = []
    for _ in range(3):
        x = flow.tensor(r.standard_normal((4, 5)).astype(np.float32))
        got, want = graph(x), f(x)
        runs.append(list(zip(*(t if isinstance(t, (tuple, list)) else (t,) for t in (got, want)))))
    for got, want in (pair for run in runs for pair in run):      # outputs of all runs, after the last one
        assert got.is_contiguous() and got.shape == want.shape
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)
    kept = [want.numpy().copy() for _, want in runs[0]]
    for got, _ in runs[0]:
        got.add_(1.0)                                             # outputs of one run share no memory
    for (got, _), want in zip(runs[0], kept):
        np.testing.assert_allclose(got.numpy(), want + 1, rtol=1e-6)


def test_outputs_of_a_job_are_separate_arrays():
    import flowedu.typing as tp

    flow.clear_default_session()

    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((4, 5))) -> tuple[tp.Numpy, tp.Numpy, tp.Numpy]:
        y = flow.math.exp(x)
        return y, flow.transpose(y, [1, 0]), y

    xs = np.random.default_rng(0).standard_normal((2, 4, 5)).astype(np.float32)
    runs = [job(x) for x in xs]
    for x, (a, b, c) in zip(xs, runs):
        a += 1
        for got, want in ((a, np.exp(x) + 1), (b, np.exp(x).T), (c, np.exp(x))):
            np.testing.assert_allclose(got, want, rtol=1e-6)
