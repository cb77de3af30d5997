"""Initializers: their distributions and seeds, and the initial values of layers."""
import math

import numpy as np
import pytest

import flowedu as flow
from bounds import assert_mean, assert_rate, assert_std
from flowedu import nn
from flowedu.nn import init


@pytest.fixture(autouse=True)
def _seed():
    flow.manual_seed(11)


def initialize(f, shape=(200, 300), **kwargs):
    t = flow.empty(*shape)
    assert f(t, **kwargs) is t
    return t.numpy()


def test_constant_initializers():
    assert (initialize(init.ones_) == 1).all()
    assert (initialize(init.zeros_) == 0).all()
    assert (initialize(init.constant_, val=2.5) == 2.5).all()
    np.testing.assert_array_equal(initialize(init.eye_, (3, 4)), np.eye(3, 4))
    u = initialize(init.uniform_, a=-1.0, b=3.0)
    assert -1 <= u.min() < -0.99
    assert 2.99 < u.max() < 3
    assert_mean(u, 1, 4 / math.sqrt(12))
    n = initialize(init.normal_, mean=1.0, std=2.0)
    assert_mean(n, 1, 2)
    assert_std(n, 2)
    t = initialize(init.trunc_normal_, std=1.5, a=-1.0, b=2.0)
    assert t.min() >= -1
    assert t.max() <= 2
    assert_rate((t > -0.5) & (t < 0.5), (_below(1 / 3) - _below(-1 / 3)) / (_below(4 / 3) - _below(-2 / 3)))


def _below(x):
    return (1 + math.erf(x / math.sqrt(2))) / 2


@pytest.mark.parametrize(("f", "kwargs", "std", "uniform"), [
    (init.xavier_uniform_, {}, math.sqrt(2 / 500), True), (init.xavier_uniform_, {"gain": 2.0},
                                                           2 * math.sqrt(2 / 500), True),
    (init.xavier_normal_, {}, math.sqrt(2 / 500), False),
    (init.xavier_normal_, {"gain": 3.0}, 3 * math.sqrt(2 / 500), False),
    (init.kaiming_uniform_, {}, math.sqrt(2 / 300), True),
    (init.kaiming_uniform_, {"a": math.sqrt(5)}, math.sqrt(1 / 3 / 300), True),
    (init.kaiming_normal_, {"mode": "fan_out", "nonlinearity": "relu"}, math.sqrt(2 / 200), False),
    (init.kaiming_normal_, {"nonlinearity": "tanh"}, 5 / 3 / math.sqrt(300), False),
])
def test_the_deviation_follows_the_fan(f, kwargs, std, uniform):
    a = initialize(f, **kwargs)
    assert_std(a, std, 1.8 if uniform else 3.0)
    assert_mean(a, 0, std)
    edge = np.abs(a).max() / std
    assert (math.sqrt(3) * 0.99 < edge <= math.sqrt(3) * 1.0001) if uniform else edge > 3


def test_fan_of_a_convolution():
    a = initialize(init.kaiming_normal_, (40, 10, 5, 5), mode="fan_out")
    assert_std(a, math.sqrt(2 / (40 * 25)))
    a = initialize(init.kaiming_normal_, (40, 5, 5, 10), mode="fan_in", data_format="NHWC")
    assert_std(a, math.sqrt(2 / (10 * 25)))


@pytest.mark.parametrize("shape", [(5, 8), (8, 5), (6, 2, 2)])
def test_orthogonal(shape):
    a = initialize(init.orthogonal_, shape, gain=2.0).reshape(shape[0], -1)
    product = a @ a.T if a.shape[0] <= a.shape[1] else a.T @ a
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_dirac_and_sparse():
    w = flow.empty(4, 2, 3, 3)
    init.dirac_(w, groups=2)
    x = flow.randn(1, 4, 5, 5)
    np.testing.assert_allclose(nn.functional.conv2d(x, w, padding=1, groups=2).numpy(), x.numpy(), rtol=1e-6)
    a = initialize(init.sparse_, (50, 20), sparsity=0.3)
    assert ((a == 0).sum(0) == 15).all()


def test_gains_equal_their_definition():
    assert [init.calculate_gain(n) for n in ("linear", "conv2d", "sigmoid", "selu")] == [1, 1, 1, 0.75]
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / 1.04)
    assert init.calculate_gain("tanh") == 5 / 3


def test_seeds_repeat():
    flow.manual_seed(5)
    one = [p.numpy().copy() for p in nn.Sequential(nn.Linear(3, 4), nn.LSTM(4, 2)).parameters()]
    flow.manual_seed(5)
    two = [p.numpy() for p in nn.Sequential(nn.Linear(3, 4), nn.LSTM(4, 2)).parameters()]
    assert all(np.array_equal(a, b) for a, b in zip(one, two))
    assert not np.array_equal(nn.Linear(3, 4).weight.numpy(), nn.Linear(3, 4).weight.numpy())
    g = flow.Generator().manual_seed(3)
    a = initialize(init.normal_, (4,), generator=g)
    np.testing.assert_array_equal(a,
                                  initialize(init.normal_, (4,), generator=flow.Generator().manual_seed(3)))


@pytest.mark.parametrize(("make", "fan_in"), [
    (lambda: nn.Linear(200, 100), 200), (lambda: nn.Conv2d(16, 64, 3), 144),
    (lambda: nn.Conv2d(16, 64, 3, groups=4), 36),
    (lambda: nn.Conv1d(16, 64, 5), 80), (lambda: nn.ConvTranspose2d(64, 16, 3), 144),
])
def test_layers_start_uniform_by_fan_in(make, fan_in):
    layer = make()
    for p in (layer.weight, layer.bias):
        bound = 1 / math.sqrt(fan_in)
        a = p.numpy()
        assert np.abs(a).max() <= bound * 1.0001
        assert_std(a, bound / math.sqrt(3), 1.8)


def test_other_layers_have_the_documented_initial_values():
    assert (nn.BatchNorm2d(3).weight.numpy() == 1).all()
    e = nn.Embedding(300, 40, padding_idx=7).weight.numpy()
    assert_std(np.delete(e, 7, 0), 1)
    assert not e[7].any()
    assert np.abs(nn.GRU(3, 16).weight_hh_l0.numpy()).max() <= 0.25
    assert nn.PReLU().weight.tolist() == [0.25]


def test_parameters_stay_leaves():
    p = nn.Parameter(flow.ones(3, 3))
    for f in (init.uniform_, init.normal_, init.zeros_, init.eye_, init.xavier_uniform_, init.orthogonal_):
        f(p)
    assert p.is_leaf
    assert p.requires_grad


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: init.xavier_uniform_(flow.empty(3)), ValueError, "fewer than 2 dimensions"),
    (lambda: init.kaiming_normal_(flow.empty(3, 3), mode="fan"), ValueError, "Mode fan not supported"),
    (lambda: init.eye_(flow.empty(3)), ValueError, "Only tensors with 2 dimensions"),
    (lambda: init.dirac_(flow.empty(3, 3)), ValueError, "3, 4, or 5 dimensions"),
    (lambda: init.calculate_gain("swish"), ValueError, "Unsupported nonlinearity swish"),
    (lambda: init.orthogonal_(flow.empty(3)), ValueError, "2 or more dimensions"),
    (lambda: init.uniform_(flow.empty(3), 1.0, 0.0), RuntimeError, "from"),
    (lambda: init.normal_(flow.empty(3), std=-1.0), RuntimeError, "std >= 0.0"),
])
def test_invalid_calls_of_initializers_are_refused(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
