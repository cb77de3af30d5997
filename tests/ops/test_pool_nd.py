"""Pooling over one and three axes against explicit windows in NumPy (padding as NaN) and PyTorch's gradients,
eagerly and as jobs.
"""
import functools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import flowedu as flow
from common import f32, fresh_session, refused, run, run_eagerly_and_as_job  # noqa: F401

nn = flow.nn
run_both_ways = functools.partial(run_eagerly_and_as_job, tolerance=1e-6)
POOL = {("max", 1): nn.max_pool1d, ("avg", 1): nn.avg_pool1d, ("max", 3): nn.max_pool3d,
        ("avg", 3): nn.avg_pool3d}
FIRST, LAST = {1: "NCW", 3: "NCDHW"}, {1: "NWC", 3: "NDHWC"}


def pads(mode, size, k, stride):
    """Return the padding (before, after) by OneFlow 0.4's rule."""
    if mode == "VALID":
        return 0, 0
    need = max(0, (-(-size // stride) - 1) * stride + k - size)
    return (need // 2, need - need // 2) if mode == "SAME_UPPER" else (need - need // 2, need // 2)


@st.composite
def poolings(draw):
    """Draw (axes, x, ksize, strides, mode, padding): mode is "VALID", "SAME" ..., or (before, after) for
    every axis.
    """
    axes = draw(st.sampled_from([1, 3]))

    def each(lo, hi):
        return tuple(draw(st.lists(st.integers(lo, hi), min_size=axes, max_size=axes)))

    sizes, ksize, strides = each(1, 6), each(1, 3), each(1, 3)
    mode = draw(st.sampled_from(["VALID", "SAME", "SAME_UPPER", "explicit"]))
    if mode == "explicit":
        mode = tuple(draw(st.tuples(st.integers(0, k - 1), st.integers(0, k - 1))) for k in ksize)
    around = [pads(mode, *a) for a in zip(sizes, ksize, strides)] if isinstance(mode, str) else mode
    assume(all(n + sum(p) >= k for n, p, k in zip(sizes, around, ksize)))
    counts = [(n + sum(p) - k) // s + 1 for n, p, k, s in zip(sizes, around, ksize, strides)]
    assume(all((m - 1) * s - p[0] < n for m, s, p, n in zip(counts, strides, around, sizes)))
    x = np.random.default_rng(draw(st.integers(0, 2**31))).standard_normal((2, 3, *sizes))
    return axes, x, ksize, strides, mode, around


def windows(x, ksize, strides, around, fill=np.nan):
    """Return (n, c, outputs..., window...) views of the padded x."""
    axes = len(ksize)
    x = np.pad(x, ((0, 0), (0, 0), *around), constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, ksize, tuple(range(2, 2 + axes)))
    return view[(slice(None), slice(None), *[slice(None, None, s) for s in strides])]


@given(poolings(), st.booleans())
def test_pooling_equals_explicit_windows(drawn, turned):
    axes, x, ksize, strides, mode, around = drawn
    view = windows(x, ksize, strides, around)
    padding = mode if isinstance(mode, str) else [0, *mode, 0] if turned else [0, (0, 0), *mode]
    fed, layout = (np.moveaxis(x, 1, -1), LAST[axes]) if turned else (x, FIRST[axes])
    for kind, numpy in (("max", np.nanmax), ("avg", np.nanmean)):
        got = run_both_ways(lambda t, f=POOL[kind, axes]: f(t, ksize, list(strides), padding, layout), fed)
        want = numpy(view, tuple(range(2 + axes, 2 + 2 * axes)))
        np.testing.assert_allclose(np.moveaxis(got, -1, 1) if turned else got, want, rtol=1e-12, atol=1e-12)


@given(poolings())
def test_the_gradient_reaches_the_maximum_or_is_split_evenly(drawn):
    """The maximum passes its gradient to its position; the mean splits it evenly over the unpadded elements
    of the window.
    """
    axes, x, ksize, strides, mode, around = drawn
    place = np.arange(x.size, dtype=float).reshape(x.shape)
    views = [windows(a, ksize, strides, around) for a in (x, place)]
    values, places = (v.reshape(*v.shape[:-axes], -1) for v in views)
    dy = np.random.default_rng(1).standard_normal(values.shape[:-1])
    want = {"max": np.zeros(x.size), "avg": np.zeros(x.size)}
    best = np.nanargmax(values, -1)[..., None]
    np.add.at(want["max"], np.take_along_axis(places, best, -1)[..., 0].astype(int).ravel(), dy.ravel())
    real = ~np.isnan(places)
    share = (dy / real.sum(-1))[..., None] * np.ones_like(places)
    np.add.at(want["avg"], places[real].astype(int), share[real])
    padding = mode if isinstance(mode, str) else [0, 0, *mode]
    for kind in ("max", "avg"):
        t = flow.tensor(x, requires_grad=True)
        (POOL[kind, axes](t, ksize, strides, padding) * flow.tensor(dy)).sum().backward()
        np.testing.assert_allclose(t.grad.numpy().ravel(), want[kind], rtol=1e-10, atol=1e-12)


@pytest.mark.peer
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 1), st.sampled_from([1, 3]), st.booleans())
def test_gradients_equal_pytorchs(k, stride, pad, axes, ceil):
    torch = pytest.importorskip("torch")
    pad = min(pad, k // 2)
    x = np.random.default_rng(k).standard_normal((2, 2, *[7, 5, 6][:axes]))
    for kind in ("max", "avg"):
        f = getattr(torch.nn.functional, f"{kind}_pool{axes}d")
        options = {"count_include_pad": False} if kind == "avg" else {}
        a, b = torch.tensor(x, requires_grad=True), flow.tensor(x, requires_grad=True)
        want = f(a, k, stride, pad, ceil_mode=ceil, **options)
        got = POOL[kind, axes](b, [k], stride, [0, 0] + [pad] * axes, FIRST[axes].lower(), ceil)
        np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-12, atol=1e-12)
        (want * want).sum().backward()
        (got * got).sum().backward()
        np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_the_first_of_equal_maxima_gets_the_gradient():
    """In memory order: the first slice that has the maximum, and its first row."""
    x = np.zeros((1, 1, 2, 2, 4), np.float32)
    x[0, 0, :, 1, 2:] = 5                                       # the right window has its maximum four times
    t = flow.tensor(x, requires_grad=True)
    nn.max_pool3d(t, 2, 2, "VALID").sum().backward()
    assert np.argwhere(t.grad.numpy()[0, 0]).tolist() == [[0, 0, 0], [0, 1, 2]]
    line = flow.tensor(np.float32([[[3, 3, 1, 1]]]), requires_grad=True)
    nn.max_pool1d(line, 2, 2, "VALID").sum().backward()
    assert line.grad.numpy().ravel().tolist() == [1, 0, 1, 0]


def test_pooling_gives_the_values_of_the_specification():
    x = np.arange(1, 4, dtype=np.float32).reshape(1, 1, 3)
    for f, mode, want in ((nn.max_pool1d, "SAME", [1, 3]), (nn.max_pool1d, "SAME_UPPER", [2, 3]),
                          (nn.avg_pool1d, "same", [1, 2.5]), (nn.avg_pool1d, "SAME_UPPER", [1.5, 3])):
        assert run_both_ways(lambda t, f=f, m=mode: f(t, 2, 2, m), x).ravel().tolist() == want
    cube = np.ones((1, 1, 3, 3, 3), np.float32)
    np.testing.assert_allclose(run_both_ways(lambda t: nn.avg_pool3d(t, 3, 1, "SAME"), cube), cube, rtol=1e-6)
    assert run_both_ways(lambda t: nn.max_pool3d(t - 100, 3, 1, "SAME"),
                         cube).max() == -99, "padding never wins"


def test_nan_counts_as_the_largest():
    x = f32(1, 1, 4, 4, 4)
    x[0, 0, 3, 0, 1] = np.nan
    got = nn.max_pool3d(flow.tensor(x), 2, 2, "VALID").numpy()
    assert np.argwhere(np.isnan(got)[0, 0]).tolist() == [[1, 0, 0]]


def test_ceil_mode_counts_padding_only_if_explicit():
    x = f32(1, 2, 3, 3, 3)
    zero = [0] * 5
    assert run_both_ways(lambda t: nn.max_pool3d(t, 2, 2, zero, ceil_mode=True), x).shape == (1, 2, 2, 2, 2)
    assert run_both_ways(lambda t: nn.max_pool3d(t, 2, 2, zero), x).shape == (1, 2, 1, 1, 1)
    assert (run_both_ways(lambda t: nn.max_pool3d(t, 2, 2, "VALID", ceil_mode=True), x).shape
            == (1, 2, 1, 1, 1))


@pytest.mark.parametrize("key", POOL)
@pytest.mark.parametrize("options, error, words", [
    (dict(ksize=[2, 2]), ValueError, ["ksize"]), (dict(ksize="2"), ValueError, ["ksize"]),
    (dict(strides=[]), ValueError, ["strides"]), (dict(strides=0), ValueError, ["strides", "1 or more"]),
    (dict(data_format="NCHW"), AssertionError, ["data_format"]), (dict(padding="half"), AssertionError,
                                                                  ["padding"]),
    (dict(padding=1), ValueError, ["padding"]), (dict(ksize=9, padding="VALID"), ValueError,
                                                 ["does not fit", "SAME"])])
def test_pooling_refuses_invalid_arguments(key, options, error, words):
    with refused(error, *words, fix=False):
        run(lambda a: POOL[key](a, **{"ksize": 2, "strides": 2, "padding": "SAME", **options}),
            f32(1, 2, *[5] * key[1]))


@pytest.mark.parametrize("axes", [1, 3])
def test_max_pooling_of_windows_without_a_maximum_is_refused(axes):
    with refused(ValueError, f"max_pool{axes}d", "a window contains only padding"):
        run(lambda a: nn.max_pool3d(a, 2, 2, [0, 0, 0, 0, 2]) if axes == 3
            else nn.max_pool1d(a, 2, 2, [0, 0, 2]), f32(1, 1, *[4] * axes))
    with refused(AssertionError, f"max_pool{axes}d", "input has 4 axes"):
        run(lambda a: POOL["max", axes](a, 2, 2, "SAME"), f32(1, 1, 4, 4))
