"""Law: from 1e-30 to 1e19 (float32 ends at 3.4e38), a representable result is computed without overflow or
underflow in intermediate squares, powers, or sums. Results and slopes are compared with float64 formulas.
"""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow

ROOMY = {  # f(x, y): flowedu's in float32; slopes are compared for x
    "std": lambda x, y: x.std(), "std of rows": lambda x, y: x.reshape(-1, 2).std(1),
    "mean": lambda x, y: x.mean(),
    "std, biased": lambda x, y: x.std(unbiased=False), "std_mean": lambda x, y: flow.std_mean(x)[0],
    "norm": lambda x, y: x.norm(), "norm of rows": lambda x, y: x.reshape(-1, 2).norm(dim=1),
    "norm 1": lambda x, y: x.norm(1),
    "norm 3": lambda x, y: x.norm(3), "vector_norm": lambda x, y: flow.linalg.vector_norm(x, float("inf")),
    "hypot": lambda x, y: flow.hypot(x, y), "logsumexp": lambda x, y: x.logsumexp(0),
    "softmax": lambda x, y: x.softmax(0),
    "log_softmax": lambda x, y: x.log_softmax(0), "logaddexp": lambda x, y: flow.logaddexp(x, y)}
SQUARED = {"var": lambda x, y: x.var(), "var of rows": lambda x, y: x.reshape(-1, 2).var(1),
           "var_mean": lambda x, y: flow.var_mean(x)[0]}


def compute_value_and_slope(f, a, b, kind):
    x, y = (flow.tensor(t, dtype=kind) for t in (a, b))
    x.requires_grad = True
    z = f(x, y)
    z.backward(flow.ones_like(z) * flow.arange(1, z.numel() + 1, dtype=kind).reshape(z.shape))
    return z.detach().double().numpy(), x.grad.double().numpy()


def assert_float32_near_float64(f, a, b, least=1e-37):
    a, b = (np.asarray(t, np.float32) for t in (a, b))
    got, slope = compute_value_and_slope(f, a, b, flow.float32)
    want, right = compute_value_and_slope(f, a, b, flow.float64)
    for p, q in ((got, want), (slope, right)):
        fits = np.abs(q) < 3.4e38
        near = np.maximum(1e-5 * np.abs(q), 1e-6 * np.abs(q).max(initial=0))
        assert (np.abs(p - q) <= np.maximum(near, least))[fits].all(), (p, q)
        assert np.isinf(p[~fits]).all()


@st.composite
def spaced_elements(draw):
    """Draw 16 elements of one magnitude, spaced so that the slope of std survives rounding."""
    rng = np.random.default_rng(draw(st.integers(0, 2 ** 32 - 1)))
    a = rng.uniform(0.1, 1, 16) * rng.choice([-1, 1], 16)
    return np.where(np.abs(a - np.roll(a, 1)) < 0.01, 0.5 * a, a)


@pytest.mark.parametrize("name", ROOMY)
@settings(max_examples=25)
@given(a=spaced_elements(), b=spaced_elements(), power=st.integers(-30, 19))
def test_representable_results_do_not_overflow(name, a, b, power):
    size = 10.0 ** power
    least = {"softmax": 1e-4, "mean": 1e-6 * size}.get(name, 1e-37)        # between 0 and 1; sums may cancel
    assert_float32_near_float64(ROOMY[name], a * size, b * size, least)


@pytest.mark.parametrize("name", SQUARED)
@settings(max_examples=25)
@given(a=spaced_elements(), power=st.integers(-15, 19))
def test_representable_variances_do_not_overflow(name, a, power):
    assert_float32_near_float64(SQUARED[name], a * 10.0 ** power, a)


def test_a_variance_near_the_end_of_float32():
    x = flow.tensor([1e19, -1e19] * 8, requires_grad=True)
    assert x.var().item() == pytest.approx(16 / 15 * 1e38, rel=1e-6)
    x.std().backward()
    want = 1 / 15 / np.sqrt(16 / 15)
    np.testing.assert_allclose(x.grad.numpy(), [want, -want] * 8, rtol=1e-5)
    assert flow.tensor([1e-30, -1e-30] * 8).std().item() == pytest.approx(np.sqrt(16 / 15) * 1e-30, rel=1e-6)
