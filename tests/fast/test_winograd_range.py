"""Winograd's convolution with large values: an output, and its error, depend only on the values it reads."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.ops import REGISTRY
from graph.making import make_graph

ROLES = ["conv2d", "conv2d_input_grad", "conv2d_weight_grad"]
# Relative to |x| |w|, the Euclidean norms of the pixels that an output reads and of its kernel. The
# transforms of a tile and of a kernel have a rounding error of about 20 eps |tile| |w| (eps = 6e-8).
# winograd.h takes a direct sum where |tile| is more than 8 |x|, which leaves 1e-5. The bound in
# chapters/05_nn_graph/differences.md has a margin of ten.
BOUND = 1e-4
SPECIALS = [np.nan, np.inf, -np.inf, 1e25, -1e25]


def random(seed: int, shape, decades: float = 0.0) -> np.ndarray:
    r = np.random.default_rng(seed)
    return (r.standard_normal(shape) * 10 ** r.uniform(-decades, decades, shape)).astype(np.float32)


def inputs_of(name: str, n: int, c: int, o: int, hw: tuple[int, int], k: int, pad: int, decades=(0.0, 0.0),
              seed: int = 0):
    """Return the two inputs of a call and its attributes other than pads."""
    x, w = (n, c, *hw), (o, c, k, k)
    dy = (n, o, hw[0] + 2 * pad - k + 1, hw[1] + 2 * pad - k + 1)
    first, second = {"conv2d": (x, w), "conv2d_input_grad": (dy, w), "conv2d_weight_grad": (dy, x)}[name]
    attrs = {"conv2d": {}, "conv2d_input_grad": {"hw": hw}, "conv2d_weight_grad": {"kernel": (k, k)}}[name]
    return random(seed, first, decades[0]), random(seed + 1, second, decades[1]), attrs


def convolve(name: str, a, b, attrs, pad: int) -> np.ndarray:
    return REGISTRY[name](flow.tensor(a), flow.tensor(b), pads=(pad,) * 4, **attrs).numpy()


def meaning(name: str, a, b, attrs, pad: int) -> np.ndarray:
    """Compute the direct sum of products; Winograd's method is never used for float64."""
    return convolve(name, a.astype(np.float64), b.astype(np.float64), attrs, pad)


def where_special(x: np.ndarray) -> np.ndarray:
    return (~np.isfinite(x)).astype(x.dtype)


def squared_norms_of_kernels(name: str, w) -> np.ndarray:
    """Return the sum of squares of all weights of an output's kernel, including weights on padding."""
    axes = (1, 2, 3) if name == "conv2d" else (0, 2, 3)
    return (w * w).sum(axes)[:, None, None]


def assert_each_output_close_to_direct_sum(name: str, a, b, attrs, pad: int,
                                           whole_kernel: bool = False) -> None:
    """Assert that each output agrees with the direct sum, including infinities and NaNs, with an error of its
    own magnitude.

    Padding zeros do not count as read: an infinite weight is not multiplied by them. The error is relative to
    the weights that are read or, with `whole_kernel`, to all weights: at the border, an output may read only
    its smallest weights.
    """
    one, other = np.ones_like(a), np.ones_like(b)
    reads = meaning(name, where_special(a), other, attrs, pad) + meaning(name, one, where_special(b),
                                                                         attrs, pad)
    x, w = (np.nan_to_num(v, nan=0, posinf=0, neginf=0).astype(np.float64) for v in (a, b))
    want = np.where(reads > 0.5, meaning(name, a, b, attrs, pad), meaning(name, x, w, attrs, pad))
    weights = squared_norms_of_kernels(name, w) if whole_kernel else meaning(name, one, w * w, attrs, pad)
    scale = np.sqrt(meaning(name, x * x, other, attrs, pad) * weights)
    got = convolve(name, a, b, attrs, pad)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite].astype(np.float32))
    spread = int((~np.isfinite(got[finite])).sum())
    assert spread == 0, f"{name}: {spread} outputs that read finite numbers are not finite"
    error = np.abs(got[finite] - want[finite])
    worst = np.max(error / np.maximum(scale[finite], 1e-30), initial=0)
    assert worst <= BOUND, f"{name}: an error of {worst:.1e} of the norms of what an output reads"


NAMES, SEEDS = st.sampled_from(ROLES), st.integers(0, 10 ** 6)
# n, c, o, (h, w), kernel, padding: Winograd's method is faster for all of them, in all three ops
# (winograd_pays)
SHAPES = st.tuples(st.integers(8, 12), st.sampled_from([16, 17, 24]), st.sampled_from([16, 33]),
                   st.tuples(st.integers(18, 26), st.integers(18, 26)), st.integers(3, 5), st.integers(0, 2))


@settings(max_examples=40, deadline=None)
@given(NAMES, SHAPES, st.sampled_from(SPECIALS), st.integers(0, 1), SEEDS, st.integers(1, 3))
def test_one_special_value_reaches_only_its_readers(name, shape, special, where, seed, threads):
    before = flow.get_num_threads()
    a, b, attrs = inputs_of(name, *shape, seed=seed)
    (a, b)[where].reshape(-1)[np.random.default_rng(seed).integers((a, b)[where].size)] = special
    try:
        flow.set_num_threads(threads)
        assert_each_output_close_to_direct_sum(name, a, b, attrs, shape[-1])
    finally:
        flow.set_num_threads(before)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(ROLES[:2]), SHAPES, st.sampled_from([0.0, 1.0, 2.0, 6.0]), SEEDS)
def test_mixed_magnitudes(name, shape, decades, seed):
    a, b, attrs = inputs_of(name, *shape, decades=(decades, 0.0), seed=seed)
    assert_each_output_close_to_direct_sum(name, a, b, attrs, shape[-1])


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(ROLES[:2]), SHAPES, st.sampled_from([0.0, 1.0, 2.0, 3.0]), SEEDS)
def test_pixels_of_mixed_magnitudes(name, shape, decades, seed):
    a, b, attrs = inputs_of(name, *shape, seed=seed)
    r = np.random.default_rng(seed)
    assert_each_output_close_to_direct_sum(
        name, (a * 10 ** r.uniform(-decades, decades, (len(a), 1, *a.shape[2:]))).astype(np.float32), b,
        attrs, shape[-1])


@settings(max_examples=30, deadline=None)
@given(NAMES, SHAPES, st.sampled_from([30.0, 1e3, 1e6]), st.integers(0, 1), SEEDS)
def test_one_large_value(name, shape, large, where, seed):
    a, b, attrs = inputs_of(name, *shape, seed=seed)
    (a, b)[where].reshape(-1)[np.random.default_rng(seed).integers((a, b)[where].size)] = large
    assert_each_output_close_to_direct_sum(name, a, b, attrs, shape[-1])


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(ROLES[:2]), SHAPES, st.sampled_from([1.0, 3.0, 6.0]), SEEDS)
def test_weights_of_mixed_magnitudes(name, shape, decades, seed):
    a, b, attrs = inputs_of(name, *shape, decades=(0.0, decades), seed=seed)
    assert_each_output_close_to_direct_sum(name, a, b, attrs, shape[-1], whole_kernel=True)


@pytest.mark.parametrize("name", ["conv2d", "conv2d_input_grad"])
def test_a_window_of_zeros_gives_zero(name):
    """Sums of zeros are exact for any values in the rest of the tile."""
    a, b, attrs = inputs_of(name, 8, 16, 16, (24, 24), 3, 1)
    a[:, :, :, 11:] = 0
    assert_each_output_close_to_direct_sum(name, a, b, attrs, 1)
    assert (convolve(name, a, b, attrs, 1)[..., 12:] == 0).all()


@pytest.mark.parametrize("dtype", [flow.float32, flow.float16, flow.bfloat16])
def test_graphs_keep_special_values_separate(dtype):
    """Graphs with bias, norm, clipping, and a residual after the convolution, and with weights that an
    earlier call has transformed.
    """
    flow.manual_seed(0)
    layer, norm = nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32)
    model = nn.Sequential(layer, norm, nn.ReLU()).eval().to(dtype)
    predict = make_graph(lambda self, x: self.model(x) + x, model=model)
    x = flow.randn(8, 32, 18, 18).to(dtype)
    usual = predict(x).float().numpy()
    near = np.zeros((8, 1, 18, 18), bool)
    near[2, 0, 3:6, 7:10] = True
    apart = np.broadcast_to(~near, usual.shape)
    for special in (float("inf"), float("-inf")):
        x[2, 5, 4, 8] = special
        got = predict(x).float().numpy()
        np.testing.assert_allclose(got[apart], usual[apart], rtol=1e-2, atol=1e-4)  # two bfloat16 roundings
        # except where -inf + inf is correct
        assert not np.isnan(np.delete(got[2, :, 3:6, 7:10], 5, axis=0)).any()
    x[2, 5, 4, 8] = 0.0
    with flow.no_grad():
        layer.weight[3, 0, 1, 1] = float("nan")
    got = predict(x).float().numpy()
    assert np.isnan(got[:, 3]).all()
    assert np.isfinite(np.delete(got, 3, axis=1)).all()
