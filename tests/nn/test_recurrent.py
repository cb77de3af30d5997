"""RNN, LSTM, GRU, and their cells step by step in NumPy; each packed sequence is computed independently."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from bounds import assert_rate
from common import flatten
from flowedu import nn
from flowedu.nn.utils import rnn

from .formulas.recurrent import run_layers, step, weights_of
from .formulas.table import Draw, fill_parameters

few = settings(max_examples=max(8, settings().max_examples // 3))
MODES = {"RNN": ("tanh", "relu"), "LSTM": ("LSTM",), "GRU": ("GRU",)}


def network_of(d, name, batch_first=False):
    """Draw (module, its parameters, mode, layers, directions, sizes of its states)."""
    mode = d.one_of(*MODES[name])
    hidden = d.one_of(2, 3)
    layers = d.one_of(1, 2)
    ways = d.one_of(1, 2)
    options = {"nonlinearity": mode} if name == "RNN" else {}
    if name == "LSTM" and d.one_of(True, False):
        options["proj_size"] = hidden - 1
    if ways == 2:
        options["bidirectional"] = True
    module = getattr(nn, name)(3, hidden, num_layers=layers, bias=d.one_of(True, False),
                               batch_first=batch_first, **options)
    sizes = (options.get("proj_size", hidden), hidden)[:2 if name == "LSTM" else 1]
    return *fill_parameters(module, d, 0.6), mode, layers, ways, sizes


def assert_close(got, want):
    for y, z in zip(flatten(got), flatten(want), strict=True):
        np.testing.assert_allclose(y.detach().numpy(), z, rtol=1e-9, atol=1e-11)


def state_for(name, states):
    """Return states in the module's format: a pair for LSTM, else one tensor."""
    return states if name == "LSTM" else states[0]


@pytest.mark.parametrize("name", MODES)
@few
@given(data=st.data())
def test_recurrent_networks_equal_their_formula(name, data):
    d = Draw(data)
    first = d.one_of(True, False)
    module, own, mode, layers, ways, sizes = network_of(d, name, first)
    steps, batch, started = d.one_of(1, 2, 4), d.one_of(1, 3), d.one_of(True, False)
    x, states = d.floats(steps, batch, 3), tuple(d.floats(layers * ways, batch, n) * started for n in sizes)
    y, ends = run_layers(mode, x, states, own, layers, ways)
    begin = [flow.tensor(s) for s in states]
    start = [state_for(name, tuple(begin))] if started else []
    assert_close(module(flow.tensor(x.swapaxes(0, 1) if first else x), *start),
                 (y.swapaxes(0, 1) if first else y, state_for(name, ends)))
    if batch == 1:                                       # without a batch axis
        start = [state_for(name, tuple(s.squeeze(1) for s in begin))] if started else []
        want = y[:, 0], state_for(name, tuple(e[:, 0] for e in ends))
        assert_close(module(flow.tensor(x[:, 0]), *start), want)


@pytest.mark.parametrize(("name", "options"),
                         [("RNN", {}), ("GRU", {}), ("LSTM", {}), ("LSTM", {"proj_size": 2})])
def test_steps_of_a_gpu_equal_the_kernel_of_a_cpu(monkeypatch, name, options):
    """On a GPU, a network computes one step of the cell at a time. The steps also run on a CPU."""
    module = getattr(nn, name)(3, 4, num_layers=2, bidirectional=True, **options).to(flow.float64)
    x = flow.randn(5, 2, 3, dtype=flow.float64)
    want = [y.detach().numpy() for y in flatten(module(x))]
    monkeypatch.setattr("flowedu.nn.functional.rnn.place_at", lambda x: 1)
    assert_close(module(x), want)


@pytest.mark.parametrize("name", MODES)
@few
@given(data=st.data())
def test_gradients_equal_the_derivative_of_the_formula(name, data):
    """Compare with the derivative of the formula along a direction in all parameters and the input."""
    d = Draw(data, smooth=True)
    module, own, mode, layers, ways, sizes = network_of(d, name)
    x = flow.tensor(d.floats(3, 2, 3), requires_grad=True)
    states = tuple(np.zeros((layers * ways, 2, n)) for n in sizes)
    y = module(x)[0]
    w = d.rng.standard_normal(tuple(y.shape))
    (y * flow.tensor(w)).sum().backward()
    grads = {k: p.grad.numpy() for k, p in module.named_parameters()}
    direction = {k: d.rng.standard_normal(g.shape) for k, g in grads.items()}
    dx = d.rng.standard_normal(tuple(x.shape))

    def value(h):
        moved = {k: v + h * direction[k] for k, v in own.items()}
        return (run_layers(mode, x.detach().numpy() + h * dx, states, moved, layers, ways)[0] * w).sum()

    got = (x.grad.numpy() * dx).sum() + sum((grads[k] * v).sum() for k, v in direction.items())
    assert any(abs(got - (value(h) - value(-h)) / (2 * h)) <= 1e-5 * max(1, abs(got))
               for h in (1e-5, 1e-6, 1e-7))


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
@few
@given(data=st.data())
def test_recurrent_cells_equal_their_formula(name, data):
    d = Draw(data)
    mode = d.one_of(*MODES[name[:-4]])
    options = {"nonlinearity": mode} if name == "RNNCell" else {}
    module, own = fill_parameters(getattr(nn, name)(3, 2, bias=d.one_of(True, False), **options), d, 0.6)
    started = d.one_of(True, False)
    x, states = d.floats(4, 3), tuple(d.floats(4, 2) * started for _ in range(2 if name == "LSTMCell" else 1))
    want = step(mode, x, states, *weights_of(own, ""))
    start = (state_for(name[:-4], tuple(flow.tensor(s) for s in states)),) if started else ()
    assert_close(module(flow.tensor(x), *start), state_for(name[:-4], want))
    one = [state_for(name[:-4], tuple(flow.tensor(s[1]) for s in states))]
    assert_close(module(flow.tensor(x[1]), *one), state_for(name[:-4], tuple(s[1] for s in want)))


def test_dropout_acts_between_the_layers():
    """In training mode, dropout acts on the outputs of all layers except the last."""
    flow.manual_seed(0)
    module = nn.RNN(2, 300, num_layers=2, nonlinearity="relu", dropout=0.5)
    with flow.no_grad():
        for k, p in module.named_parameters():
            p.fill_(1.0 if k in ("weight_ih_l0", "bias_ih_l0") else 0.0)
        module.weight_ih_l1.copy_(flow.eye(300))
    x = flow.ones(1, 1, 2)
    y = module(x)[0].detach().numpy()
    assert set(np.unique(y)) == {0.0, 6.0}
    assert_rate(y == 0, 0.5)
    assert (module.eval()(x)[0].numpy() == 3).all()
    single = nn.RNN(2, 300, nonlinearity="relu", dropout=0.9)
    with flow.no_grad():
        for p in single.parameters():
            p.fill_(1.0)
    assert (single(x)[0].detach().numpy() == 4).all()


# ---- sequences of different lengths
def sequences(d):
    """Draw lists of arrays (length, 3), longest first or in any order."""
    lengths = [d.one_of(1, 2, 3, 5) for _ in range(d.one_of(1, 2, 4))]
    ordered = d.one_of(True, False)
    lengths = sorted(lengths, reverse=True) if ordered else lengths
    return [d.floats(n, 3) for n in lengths], lengths, ordered


def padded(parts, first, value=0.0, total=None):
    out = np.full((total or max(map(len, parts)), len(parts), *parts[0].shape[1:]), value)
    for i, p in enumerate(parts):
        out[:len(p), i] = p
    return out.swapaxes(0, 1) if first else out


@few
@given(data=st.data())
def test_packing_and_padding(data):
    d = Draw(data)
    parts, lengths, ordered = sequences(d)
    first, value, more = d.one_of(True, False), d.one_of(0.0, -3.0), d.one_of(0, 2)
    np.testing.assert_array_equal(
        rnn.pad_sequence([flow.tensor(p) for p in parts], first, value).numpy(), padded(parts, first, value))
    sizes = d.one_of(lengths, flow.tensor(lengths))
    packed = rnn.pack_padded_sequence(flow.tensor(padded(parts, first, 9.0)), sizes, first,
                                      enforce_sorted=ordered)
    order = sorted(range(len(parts)), key=lambda i: -lengths[i])
    want = [parts[i][t] for t in range(max(lengths)) for i in order if t < lengths[i]]
    np.testing.assert_array_equal(packed.data.numpy(), np.array(want))
    assert packed.batch_sizes.tolist() == [sum(t < n for n in lengths) for t in range(max(lengths))]
    if not ordered:
        assert packed.sorted_indices.tolist() == order
        assert packed.unsorted_indices.tolist() == [order.index(i) for i in range(len(order))]
    same_ = rnn.pack_sequence([flow.tensor(p) for p in parts], enforce_sorted=ordered)
    np.testing.assert_array_equal(same_.data.numpy(), packed.data.numpy())
    total = max(lengths) + more
    y, n = rnn.pad_packed_sequence(packed, first, value, total if more else None)
    np.testing.assert_array_equal(y.numpy(), padded(parts, first, value, total))
    assert n.tolist() == lengths


@pytest.mark.parametrize("name", MODES)
@few
@given(data=st.data())
def test_packed_sequences_are_independent(name, data):
    d = Draw(data)
    parts, lengths, ordered = sequences(d)
    module, own, mode, layers, ways, sizes = network_of(d, name)
    states = tuple(d.floats(layers * ways, len(parts), n) for n in sizes)
    want = [run_layers(mode, p[:, None], tuple(s[:, i:i + 1] for s in states), own, layers, ways)
            for i, p in enumerate(parts)]
    packed = rnn.pack_sequence([flow.tensor(p) for p in parts], enforce_sorted=ordered)
    out, ends = module(packed, state_for(name, tuple(flow.tensor(s) for s in states)))
    y, n = rnn.pad_packed_sequence(out)
    assert n.tolist() == lengths
    assert_close(y, padded([w[0][:, 0] for w in want], False))
    assert_close(ends, state_for(name, tuple(np.concatenate(s, 1) for s in zip(*(w[1] for w in want)))))


def test_invalid_arguments_are_refused():
    x = flow.ones(3, 2, 4)
    with pytest.raises(ValueError, match="decreasing order"):
        rnn.pack_padded_sequence(x, [1, 3])
    for lengths in ([3], [4, 1], [3, 0]):
        with pytest.raises(RuntimeError, match="lengths of 1 to 3"):
            rnn.pack_padded_sequence(x, lengths)
    with pytest.raises(ValueError, match="3 or more"):
        rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 1]), total_length=2)
