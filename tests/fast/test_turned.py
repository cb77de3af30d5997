"""Depthwise convolution of NCHW images in blocks of transposed channels has the same sums."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu.ops import REGISTRY

# above 20x20: if it has strides
PLANES = [(1, 1), (2, 2), (3, 1), (7, 5), (8, 8), (16, 16), (20, 20), (21, 20), (40, 33)]


@pytest.fixture(autouse=True)
def _threads():
    before = flow.get_num_threads()
    yield
    flow.set_num_threads(before)


@st.composite
def convolutions(draw):
    """Draw (images, channels, plane, kernel, attributes) of a valid depthwise convolution; the last blocks
    may be partial.
    """

    def pick(lo, hi):
        return draw(st.integers(lo, hi))

    plane, n, c = (draw(st.sampled_from(PLANES)), pick(1, 9),
                   draw(st.one_of(st.integers(16, 40), st.integers(130, 270))))
    kernel, dilations, strides = ((pick(1, 4), pick(1, 4)), (pick(1, 2), pick(1, 2)),
                                  (pick(1, 3), pick(1, 3)))
    pads = tuple(pick(0, 3) for _ in range(4))
    assume(all(plane[i] + sum(pads[2 * i:2 * i + 2]) >= (kernel[i] - 1) * dilations[i] + 1 for i in (0, 1)))
    return n, c, plane, kernel, dict(strides=strides, pads=pads, dilations=dilations, groups=c)


def calls(n, c, plane, kernel, attrs, dtype, numbers):
    """Return (op, inputs, attributes) of the convolution and its two gradients."""
    x, w = numbers((n, c, *plane)).astype(dtype), numbers((c, 1, *kernel)).astype(dtype)
    dy = numbers(REGISTRY["conv2d"](flow.tensor(x), flow.tensor(w), **attrs).shape).astype(dtype)
    return [("conv2d", (x, w), attrs), ("conv2d_input_grad", (dy, w), {**attrs, "hw": plane}),
            ("conv2d_weight_grad", (dy, x), {**attrs, "kernel": kernel})]


def run_with_threads(name, inputs, attrs, threads):
    flow.set_num_threads(threads)
    return REGISTRY[name](*[flow.tensor(a) for a in inputs], **attrs).numpy()


@settings(max_examples=40, deadline=None)
@given(convolutions(), st.sampled_from([np.float32, np.float64]), st.sampled_from([1, 2, 3]),
       st.integers(0, 2 ** 31))
def test_small_integers_are_exact(drawn, dtype, threads, seed):
    """Sums of products of small integers have no rounding in any order, so they equal NumPy's."""
    r = np.random.default_rng(seed)
    for name, inputs, attrs in calls(*drawn, dtype, lambda shape: r.integers(-4, 5, shape)):
        got, op = run_with_threads(name, inputs, attrs, threads), REGISTRY[name]
        want = op.ref(*inputs, **{k: attrs.get(k, v) for k, v in zip(op.attr_index, op.defaults)})
        np.testing.assert_array_equal(got, want, err_msg=name)


@settings(max_examples=15, deadline=None)
@given(convolutions(), st.integers(0, 2 ** 31))
def test_bits_do_not_depend_on_threads(drawn, seed):
    r = np.random.default_rng(seed)
    cases = calls(*drawn, np.float32, r.standard_normal)
    assume(drawn[-1]["strides"][1] > 1 or np.prod(drawn[2]) <= 400 and cases[1][1][0][0, 0].size <= 400)
    for name, inputs, attrs in cases:
        one = run_with_threads(name, inputs, attrs, 1)
        for threads in (2, 3):
            np.testing.assert_array_equal(run_with_threads(name, inputs, attrs, threads), one, err_msg=name)


def test_no_images_and_strided_ones():
    w = flow.ones(32, 1, 3, 3)

    def conv(x):
        return REGISTRY["conv2d"](x, w, pads=(1, 1, 1, 1), groups=32)

    assert conv(flow.zeros(0, 32, 4, 4)).shape == (0, 32, 4, 4)
    x = flow.tensor(np.random.default_rng(0).integers(-4, 5,
                                                      (2, 4, 4, 32)).astype(np.float32)).permute(0, 3, 1, 2)
    np.testing.assert_array_equal(conv(x).numpy(), conv(x.contiguous()).numpy())
