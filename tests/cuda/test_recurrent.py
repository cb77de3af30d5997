"""Recurrent networks on a GPU, where a layer runs step by step, match the CPU, where it is one op."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.nn.utils.rnn import pack_padded_sequence


def results(net, x, place, packed):
    """Return outputs, last states, and all gradients as arrays; `net` is a function that creates the
    network.
    """
    flow.manual_seed(3)
    net, x = net().to(place), x.detach().to(place).requires_grad_()
    y, ends = net(pack_padded_sequence(x, [4, 3, 1]) if packed else x)
    found = [y.data if packed else y, *(ends if isinstance(ends, tuple) else (ends,))]
    sum((t * t).sum() for t in found).backward()
    return [t.detach().cpu().numpy() for t in (*found, x.grad, *(p.grad for p in net.parameters()))]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("net", [
    lambda: nn.RNN(3, 5, nonlinearity="relu"), lambda: nn.GRU(3, 5, bidirectional=True),
    lambda: nn.LSTM(3, 5, proj_size=2, bidirectional=True)], ids=["RNN", "GRU", "LSTM"])
def test_recurrent_layers_match_the_cpu(net, packed):
    x = flow.tensor(np.random.default_rng(0).standard_normal((4, 3, 3)).astype(np.float32))
    for a, b in zip(results(net, x, "cuda", packed), results(net, x, "cpu", packed), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_recurrent_layers_run_in_a_graph():
    class Last(nn.Graph):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def build(self, x):
            return self.net(x)[1][0]

    net, x = nn.LSTM(3, 5), flow.randn(4, 3, 3)
    want = net(x)[1][0].detach().numpy()
    np.testing.assert_allclose(Last(net.to("cuda"))(x.to("cuda")).cpu().numpy(), want, rtol=1e-4, atol=1e-5)
