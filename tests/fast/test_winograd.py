"""Convolution by Winograd's method: within its error bound for every supported shape and any number of
threads.
"""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu.ops import REGISTRY

# relative to the largest element; measured: 1.3e-5 (outputs, inputs), 1.7e-5 (weights), 2e-6 (direct sums)
BOUND = 3e-5


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    before = flow.get_num_threads()
    flow.set_num_threads(request.param)
    yield request.param
    flow.set_num_threads(before)


def calls(shape, outs, kernel, pads, seed=0):
    """Yield the three ops of a convolution: (name, inputs, attributes)."""
    r = np.random.default_rng(seed)
    n, c, h, w = shape

    def draw(*s):
        return r.standard_normal(s).astype(np.float32)

    dy = (n, outs, h + pads[0] + pads[1] - kernel + 1, w + pads[2] + pads[3] - kernel + 1)
    yield "conv2d", (draw(*shape), draw(outs, c, kernel, kernel)), {}
    yield "conv2d_input_grad", (draw(*dy), draw(outs, c, kernel, kernel)), {"hw": (h, w)}
    yield "conv2d_weight_grad", (draw(*dy), draw(*shape)), {"kernel": (kernel, kernel)}


def convolve(name, inputs, attrs, pads):
    return REGISTRY[name](*[flow.tensor(a) for a in inputs], pads=pads, **attrs).numpy()


def assert_close_to_direct_sum(shape, outs, kernel, pads):
    for name, inputs, attrs in calls(shape, outs, kernel, pads):
        got = convolve(name, inputs, attrs, pads)
        # float64 uses the direct sum
        want = convolve(name, [a.astype(np.float64) for a in inputs], attrs, pads)
        error = np.abs(got - want).max() / np.abs(want).max()
        assert error < BOUND, (name, error)


@pytest.mark.parametrize(("shape", "outs", "kernel", "pads"), [
    ((12, 32, 14, 14), 64, 5, (2, 2, 2, 2)),          # LeNet
    ((4, 17, 40, 100), 33, 3, (1, 0, 2, 1)),          # ragged in all dimensions; rows of many tiles
    ((30, 40, 9, 7), 130, 3, (1, 1, 1, 1)),           # three slabs of output channels, small images
    ((2, 64, 30, 40), 18, 4, (2, 1, 0, 3)),
    ((2, 24, 50, 81), 18, 5, (0, 0, 4, 4)),           # no padding, full padding
])
def test_winograd_equals_the_direct_sum_in_float64(shape, outs, kernel, pads, threads):
    assert_close_to_direct_sum(shape, outs, kernel, pads)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_winograd_equals_the_direct_sum_for_any_shape(data):
    kernel = data.draw(st.integers(3, 5))
    pads = data.draw(st.tuples(*[st.integers(0, kernel - 1)] * 4))
    h, w = data.draw(st.integers(8, 40)), data.draw(st.integers(8, 40))
    n, c, o = data.draw(st.integers(1, 30)), data.draw(st.integers(16, 40)), data.draw(st.integers(16, 70))
    assert_close_to_direct_sum((n, c, h, w), o, kernel, pads)


def test_winograd_is_used_where_it_is_faster():
    """Small integers show the method: the direct float sum of their products is exact, and multiples of
    thirds and fifths are not.
    """
    r = np.random.default_rng(0)
    for kernel, shape, taken in ((5, (12, 32, 14, 14), True), (3, (12, 32, 14, 14), True),
                                 (3, (1, 256, 7, 7), False),
                                 (7, (4, 32, 14, 14), False), (5, (12, 4, 14, 14), False)):
        x, w = (r.integers(-4, 5, s).astype(np.float32) for s in (shape, (64, shape[1], kernel, kernel)))
        got, want = (convolve("conv2d", (x.astype(t), w.astype(t)), {}, (1, 1, 1, 1))
                     for t in (np.float32, np.float64))
        assert (got != want).any() == taken, (kernel, shape)


def test_constants_are_exact():
    """The transforms consist of sums and powers of two, so products of ones are exact counts."""
    x, w = np.ones((12, 32, 14, 14), np.float32), np.ones((64, 32, 5, 5), np.float32)
    y = convolve("conv2d", (x, w), {}, (0, 0, 0, 0))
    np.testing.assert_allclose(y, 800.0, rtol=1e-5)


def test_infinite_inputs_stay_in_their_image():
    x, w = np.ones((12, 32, 14, 14), np.float32), np.ones((64, 32, 5, 5), np.float32)
    x[3, 5, 7, 7] = np.inf
    y = convolve("conv2d", (x, w), {}, (2, 2, 2, 2))
    assert np.isfinite(np.delete(y, 3, axis=0)).all()
    assert not np.isfinite(y[3, :, 7, 7]).any()
