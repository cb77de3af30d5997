"""Random layers: kept and dropped elements, rates, and gradients."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from bounds import assert_rate
from flowedu import nn
from flowedu.nn import functional as F

from .formulas.table import Draw

# function: number of leading axes of a batched input that are dropped separately
DROPPED = {"dropout": None, "dropout1d": 2, "dropout2d": 2, "dropout3d": 2}
MODULES = {"dropout": "Dropout", "dropout1d": "Dropout1d", "dropout2d": "Dropout2d", "dropout3d": "Dropout3d",
           "alpha_dropout": "AlphaDropout"}
SHAPES = {"dropout": (40, 60), "dropout1d": (30, 40, 2), "dropout2d": (30, 40, 2, 1),
          "dropout3d": (30, 40, 1, 2, 2), "alpha_dropout": (40, 60)}


def dropped(name, x, p, way, training=True):
    """Apply the function or the module to x, in place or not."""
    inplace = "place" in way
    if way.startswith("function"):
        return getattr(F, name)(x, p, training, inplace)
    return getattr(nn, MODULES[name])(p, inplace).train(training)(x)


WAYS = ["function", "function in place", "module", "module in place"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", DROPPED)
@given(data=st.data())
def test_dropped_or_scaled(name, way, data):
    """Each element or channel is 0 with probability p, and otherwise divided by 1 - p; so is the gradient."""
    d = Draw(data)
    p, dtype, shape = d.one_of(0.1, 0.5, 0.8), d.one_of(np.float32, np.float64), SHAPES[name]
    single = DROPPED[name] is not None and name != "dropout2d" and d.one_of(True, False)
    shape = shape[1:] if single else shape
    flow.manual_seed(d.whole(0, 1000))
    a = d.rng.uniform(0.5, 2, shape).astype(dtype)
    leaf = flow.tensor(a, requires_grad=True)
    x = leaf * 1                                         # a leaf must not be written in place
    y = dropped(name, x, p, way)
    assert (y is x) == ("place" in way)
    values = y.detach().numpy()
    assert values.dtype == dtype
    kept = values != 0
    np.testing.assert_allclose(values[kept], (a / (1 - p))[kept], rtol=1e-6)
    units = kept if DROPPED[name] is None else kept.reshape(*shape[:1 if single else 2], -1)
    if DROPPED[name] is not None:
        assert (units == units[..., :1]).all()
        units = units[..., 0]
    assert abs(units.mean() - (1 - p)) < 5 * np.sqrt(p * (1 - p) / units.size)
    y.sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), kept / (1 - p), rtol=1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODULES)
def test_probability_zero_and_one(name, way):
    """p=0 and evaluation mode change nothing; p=1 drops every element."""
    a = np.random.default_rng(0).standard_normal(SHAPES[name]).astype(np.float32)
    for p, training, want in ((0.0, True, a), (0.5, False, a), (1.0, False, a), (1.0, True, a * 0)):
        y = dropped(name, flow.tensor(a), p, way, training)
        np.testing.assert_array_equal(y.numpy(), want)
    with pytest.raises(ValueError, match="between 0 and 1"):
        dropped(name, flow.tensor(a), 1.5, way)


@pytest.mark.parametrize("name", MODULES)
def test_draws_follow_the_seed(name):
    x = flow.tensor(np.random.default_rng(0).uniform(1, 2, SHAPES[name]))
    module = getattr(nn, MODULES[name])(0.4)
    flow.manual_seed(3)
    one = module(x).numpy()
    two = module(x).numpy()
    flow.manual_seed(3)
    np.testing.assert_array_equal(module(x).numpy(), one)
    assert not np.array_equal(one, two)
    if name == "dropout":
        for f in (nn.Dropout(0.4, generator=flow.Generator().manual_seed(3)),
                  lambda x: F.dropout(x, 0.4, generator=flow.Generator().manual_seed(3))):
            np.testing.assert_array_equal(f(x).numpy(), one)


def test_dropout2d_treats_3d_input_as_a_batch_of_rows():
    """As in PyTorch."""
    flow.manual_seed(0)
    kept = F.dropout2d(flow.ones(40, 50, 3), 0.5).numpy() != 0
    assert (kept == kept[..., :1]).all() and not (kept == kept[:, :1]).all()
    assert_rate(kept[..., 0], 0.5)


def test_dropout2d_of_rows_drops_single_elements_and_warns():
    flow.manual_seed(0)
    with pytest.warns(UserWarning, match="2-D input"):
        y = F.dropout2d(flow.ones(60, 70), 0.25).numpy()
    np.testing.assert_allclose(y[y != 0], 1 / 0.75, rtol=1e-6)
    assert len({row.tobytes() for row in y}) == 60
    assert_rate(y == 0, 0.25)
    with pytest.warns(UserWarning, match="2-D input"):
        assert nn.Dropout2d(0.25).eval()(flow.ones(2, 3)).numpy().min() == 1


@pytest.mark.parametrize("way", WAYS)
@given(data=st.data())
def test_alpha_dropout(way, data):
    """Dropped elements become selu's lowest value, then an affine map restores mean 0 and variance 1."""
    d = Draw(data)
    p = d.one_of(0.1, 0.5, 0.8)
    flow.manual_seed(d.whole(0, 1000))
    least = -1.0507009873554805 * 1.6732632423543772
    a = 1 / np.sqrt((1 - p) * (1 + p * least ** 2))
    x = d.rng.standard_normal((40, 60))
    input_ = flow.tensor(x)
    y = dropped("alpha_dropout", input_, p, way)
    assert (y is input_) == ("place" in way)
    y = y.numpy()
    lost = np.isclose(y, a * least - a * least * p)
    np.testing.assert_allclose(y[~lost], (a * x - a * least * p)[~lost], rtol=1e-6, atol=1e-9)
    assert abs(lost.mean() - p) < 5 * np.sqrt(p * (1 - p) / x.size)


@pytest.mark.parametrize("way", WAYS)
@given(data=st.data())
def test_rrelu_draws_slopes(way, data):
    d = Draw(data)
    low, high = d.one_of((1 / 8, 1 / 3), (0.5, 0.9))
    flow.manual_seed(d.whole(0, 1000))
    a = d.rng.standard_normal((40, 60))
    x = flow.tensor(a)
    inplace = "place" in way
    y = (F.rrelu(x, low, high, True, inplace) if way.startswith("function")
         else nn.RReLU(low, high, inplace)(x))
    assert (y is x) == inplace
    y = y.numpy()
    np.testing.assert_array_equal(y[a >= 0], a[a >= 0])
    slopes = (y / a)[a < 0]
    assert low <= slopes.min() < low + 0.02 and high - 0.02 < slopes.max() <= high
    assert abs(slopes.mean() - (low + high) / 2) < 5 * (high - low) / np.sqrt(12 * slopes.size)


@given(data=st.data())
def test_gumbel_softmax(data):
    """hard: one-hot with probabilities softmax(logits); soft: rows sum to 1, and are more uniform for larger
    tau.
    """
    d = Draw(data)
    flow.manual_seed(d.whole(0, 1000))
    axis = d.one_of(0, 1, -1)
    p = np.array([0.1, 0.2, 0.7])
    logits = np.log(p)[None].repeat(2000, 0) + d.one_of(0.0, 3.0)
    logits = logits.T if axis == 0 else logits
    x = flow.tensor(logits, requires_grad=True)
    hard = F.gumbel_softmax(x, hard=True, dim=axis)
    values = hard.detach().numpy()
    np.testing.assert_allclose(np.sort(values, axis), np.sort(np.eye(3)[[0]] if axis else np.eye(3)[[0]].T,
                                                              axis) +
                               np.zeros_like(values), atol=1e-9)
    np.testing.assert_allclose(values.mean(1 - axis % 2), p, atol=0.06)
    (hard * flow.tensor(d.rng.standard_normal(logits.shape))).sum().backward()
    assert np.abs(x.grad.numpy()).max() > 1e-3           # of the soft sample
    spread = [F.gumbel_softmax(x, tau, dim=axis).detach().numpy() for tau in (0.5, 1.0, 5.0)]
    for y in spread:
        np.testing.assert_allclose(y.sum(axis), 1, rtol=1e-9)
    assert spread[0].std() > spread[1].std() > spread[2].std()


def test_attention_drops_weights():
    flow.manual_seed(0)
    q, eye = flow.zeros(1, 200, 4), flow.eye(200).reshape(1, 200, 200)
    y = F.scaled_dot_product_attention(q, q, eye, dropout_p=0.25).numpy()
    assert_rate(y == 0, 0.25)
    np.testing.assert_allclose(y[y != 0], 1 / 200 / 0.75, rtol=1e-5)
    m = nn.MultiheadAttention(4, 1, dropout=0.25).train()
    _, w = m(flow.zeros(200, 1, 4), flow.zeros(200, 1, 4), flow.zeros(200, 1, 4))
    w = w.detach().numpy()
    assert_rate(w == 0, 0.25)
    np.testing.assert_allclose(w[w != 0], 1 / 200 / 0.75, rtol=1e-5)
    assert (m.eval()(flow.zeros(200, 1, 4), flow.zeros(200, 1, 4),
                     flow.zeros(200, 1, 4))[1].numpy() != 0).all()
