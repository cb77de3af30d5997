"""An RNN, LSTM, or GRU layer as one op equals the same layer step by step: results, first and second
derivatives, eagerly and in a graph, whose size does not depend on the number of steps.
"""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.core.eager.dispatch import get_num_threads, set_num_threads
from flowedu.nn.functional import rnn

from .formulas.table import Draw

few = settings(max_examples=max(8, settings().max_examples // 3))
MODES = ("RNN_TANH", "RNN_RELU", "LSTM", "GRU")


def draw_arguments(d, mode):
    """Draw (x, states, weights, reverse flag, lengths) as arguments of rnn.layer, including hidden sizes that
    are not multiples of the vector width.
    """
    steps = d.one_of(1, 2, 5)
    rows = d.one_of(1, 3, 17)
    size = d.one_of(1, 3)
    hidden = d.one_of(1, 4, 19)
    gates = rnn.GATES[mode] * hidden
    x, states = (d.floats(steps, rows, size), [d.floats(rows, hidden)
                                               for _ in range(2 if mode == "LSTM" else 1)])
    real = d.one_of(hidden, max(hidden - 1, 1)) if mode == "LSTM" else hidden
    states[0] = states[0][:, :real]
    projection = [(real, hidden)] * (real < hidden)
    weights = [d.rng.normal(0, 0.4, s) for s in ((gates, size), (gates, real), *projection, (gates,),
                                                 (gates,))]
    lengths = d.rng.integers(1, steps + 1, (rows, 1)) if d.one_of(True, False) else None
    return x, states, weights, d.one_of(True, False), lengths, d.one_of(True, False)


def split_leaves(x, states, weights, backwards, lengths, biased):
    """Return the tensors that require a gradient, and the remaining arguments of a call of either form."""
    weights = weights if biased else weights[:-2]
    leaves = [flow.tensor(a, requires_grad=True) for a in (x, *states, *weights)]
    return leaves, len(states), backwards, None if lengths is None else flow.tensor(lengths)


def call_layer(layer, mode, leaves, states, backwards, lengths):
    """Return outputs, with zeros after the end of each sequence, and last states."""
    x, *rest = leaves
    w_ih, w_hh, *more = rest[states:]
    w_hr = more.pop(0) if more and more[0].ndim == 2 else None
    y, ends = layer(mode, x, tuple(rest[:states]), (w_ih, w_hh, *(more or (None, None)), w_hr), backwards,
                    lengths)
    if lengths is not None:
        y = y * (flow.arange(len(y)).reshape(-1, 1, 1) < lengths)
    return y, *ends


def run_both_forms(mode, given, make):
    """Return the results of `make` on the outputs of both forms, each a list of arrays."""
    for layer in (rnn._at_once, rnn._step_by_step):
        leaves, *rest = split_leaves(*given)
        yield [t.detach().numpy() for t in make(call_layer(layer, mode, leaves, *rest), leaves)]


def assert_close(found, rtol=1e-9):
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-10)


def weighed(ys, rng):
    return sum((y * flow.tensor(rng.standard_normal(tuple(y.shape)))).sum() for y in ys)


@pytest.mark.parametrize("mode", MODES)
@few
@given(data=st.data())
def test_results_and_gradients_equal_step_by_step(mode, data):
    d = Draw(data)
    given, seed = draw_arguments(d, mode), d.one_of(1, 2)
    which = d.one_of(slice(None), slice(0, 1), slice(1, None))     # outputs that the loss depends on
    assert_close(list(run_both_forms(mode, given, lambda ys, leaves: [
        *ys, *flow.autograd.grad(weighed(ys[which], np.random.default_rng(seed)), leaves,
                                 allow_unused=True)])))


@pytest.mark.parametrize("mode", MODES)
@few
@given(data=st.data())
def test_second_derivatives_equal_step_by_step(mode, data):
    d = Draw(data)
    given = draw_arguments(d, mode)

    def second(ys, leaves):
        rng = np.random.default_rng(3)
        first = flow.autograd.grad(weighed(ys, rng), leaves, create_graph=True)
        found = flow.autograd.grad(weighed(first, rng), leaves, allow_unused=True)
        return [flow.zeros(1) if g is None else g for g in found]

    one, other = run_both_forms(mode, given, second)
    other = [np.broadcast_to(b, a.shape) if not b.any() else b for a, b in zip(one, other)]
    assert_close([one, other], rtol=1e-7)


class Loss(nn.Module):
    def __init__(self, name, **options):
        super().__init__()
        self.net = getattr(nn, name)(3, 5, num_layers=2, bidirectional=True, **options)

    def forward(self, x):
        y, ends = self.net(x)
        return y.sum() + sum((e * e).sum() for e in (ends if isinstance(ends, tuple) else (ends,)))


class Training(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.01))

    def build(self, x):
        loss = self.model(x)
        loss.backward()
        return loss


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_graph_trains_as_eagerly_and_does_not_grow_with_the_steps(name):
    rng, sizes = np.random.default_rng(0), set()
    for steps in (2, 9):
        eager = Loss(name).double()
        twin = Loss(name).double()
        twin.load_state_dict(eager.state_dict())
        graph, rule = Training(twin), flow.optim.SGD(eager.parameters(), lr=0.01)
        for _ in range(3):
            x = flow.tensor(rng.standard_normal((steps, 4, 3)))
            rule.zero_grad()
            loss = eager(x)
            loss.backward()
            rule.step()
            np.testing.assert_allclose(graph(x).item(), loss.item(), rtol=1e-12)
        for p, q in zip(eager.parameters(), twin.parameters(), strict=True):
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-11, atol=1e-14)
        sizes.add(len(graph._compiled.graph.nodes))
    assert len(sizes) == 1


@pytest.mark.parametrize("mode", MODES)
def test_rows_do_not_depend_on_the_number_of_threads(mode):
    """Rows are independent; 31 rows of 300 elements are enough work for several threads."""
    rng = np.random.default_rng(1)
    gates = 300 * rnn.GATES[mode]
    shapes = (4, 31, 8), (31, 300), (31, 300), (gates, 8), (gates, 300), (gates,), (gates,)
    arrays = [rng.normal(0, 0.1, s) for s in shapes]
    arrays = arrays if mode == "LSTM" else arrays[:2] + arrays[3:]
    before, found = get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            leaves = [flow.tensor(a.astype(np.float32), requires_grad=True) for a in arrays]
            ys = call_layer(rnn._at_once, mode, leaves, len(arrays) - 5, False, None)
            found.append([t.detach().numpy() for t in (*ys, *flow.autograd.grad(ys[0].sum(), leaves[:1]))])
    finally:
        set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_invalid_arguments_are_refused():
    ops = flow.ops
    given = flow.zeros(2, 3, 12)
    w = flow.zeros(12, 4)
    b = flow.zeros(12)
    h = flow.zeros(3, 4)
    lengths = flow.zeros(3).long()
    for wrong, name in (((given, w, flow.zeros(11), lengths, h), "b does not fit"),
                        ((given, w, b, lengths, h[:2]), "h0 does not fit"),
                        ((given, w.T, b, lengths, h), "w does not fit"),
                        ((given, w, b, lengths[:2], h), "lengths does not fit"),
                        ((given, w, b, lengths.float(), h), "lengths have the wrong"),
                        ((given, w.double(), b, lengths, h), "w float64")):
        with pytest.raises(RuntimeError, match=name):
            ops.REGISTRY["gru"](*wrong)
    with pytest.raises(ValueError, match="'tanh' or 'relu'"):
        ops.REGISTRY["rnn"](given, w, b, lengths, h, nonlinearity="elu")
