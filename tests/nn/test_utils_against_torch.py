"""nn.utils against PyTorch: clipping, and recurrent networks on packed sequences."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.nn import utils

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from .peers import modules  # noqa: E402


def make_parameter_pairs(seed=0):
    rng = np.random.default_rng(seed)
    ours, theirs = [], []
    for shape in ((3, 4), (5,), (2, 1, 2)):
        a, g = rng.normal(size=shape), rng.normal(size=shape)
        f, t = nn.Parameter(flow.tensor(a)), torch.nn.Parameter(torch.tensor(a))
        f.grad, t.grad = flow.tensor(g), torch.tensor(g)
        ours.append(f)
        theirs.append(t)
    return ours + [nn.Parameter(flow.ones(1))], theirs + [torch.nn.Parameter(torch.ones(1))]


@pytest.mark.parametrize("p", [2.0, 1.0, 3.0, float("inf")])
@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_clip_grad_norm(p, limit):
    ours, theirs = make_parameter_pairs()
    got, want = utils.clip_grad_norm_(ours, limit, p), torch.nn.utils.clip_grad_norm_(theirs, limit, p)
    np.testing.assert_allclose(float(got), float(want), rtol=1e-9)
    for f, t in zip(ours[:3], theirs):
        np.testing.assert_allclose(f.grad.numpy(), t.grad.numpy(), rtol=1e-9)
    assert ours[3].grad is None


def test_clip_grad_value():
    ours, theirs = make_parameter_pairs(1)
    utils.clip_grad_value_(ours, 0.3)
    torch.nn.utils.clip_grad_value_(theirs, 0.3)
    for f, t in zip(ours[:3], theirs):
        np.testing.assert_array_equal(f.grad.numpy(), t.grad.numpy())


@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_packed_sequences(sort, first):
    rng = np.random.default_rng(0)
    lengths = [5, 3, 2] if sort else [3, 5, 2]
    a = rng.normal(size=(3, 5, 4) if first else (5, 3, 4))
    ours = utils.rnn.pack_padded_sequence(flow.tensor(a), lengths, batch_first=first, enforce_sorted=sort)
    theirs = torch.nn.utils.rnn.pack_padded_sequence(torch.tensor(a), torch.tensor(lengths),
                                                     batch_first=first, enforce_sorted=sort)
    np.testing.assert_array_equal(ours.data.numpy(), theirs.data.numpy())
    np.testing.assert_array_equal(ours.batch_sizes.numpy(), theirs.batch_sizes.numpy())
    y, n = utils.rnn.pad_packed_sequence(ours, batch_first=first, padding_value=-1.0, total_length=6)
    z, m = torch.nn.utils.rnn.pad_packed_sequence(theirs, batch_first=first, padding_value=-1.0,
                                                  total_length=6)
    np.testing.assert_array_equal(y.numpy(), z.numpy())
    np.testing.assert_array_equal(n.numpy(), m.numpy())
    for text in ("nn.LSTM(4, 3, 2, bidirectional=True)", "nn.GRU(4, 3)", "nn.RNN(4, 3, bidirectional=True)"):
        f, t = modules(text)
        (out, state), (peer, last) = f(ours), t(theirs)
        np.testing.assert_allclose(out.data.detach().numpy(), peer.data.detach().numpy(), rtol=1e-9,
                                   atol=1e-12)
        for s, q in zip(state if isinstance(state, tuple) else [state], last if isinstance(last, tuple)
                        else [last]):
            np.testing.assert_allclose(s.detach().numpy(), q.detach().numpy(), rtol=1e-9, atol=1e-12)
