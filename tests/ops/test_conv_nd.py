"""Convolution over one and three axes, and transposed convolution, against explicit windows in NumPy and
against PyTorch, eagerly and as jobs.
"""
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import flowedu as flow
from common import f32, fresh_session, refused, run, run_eagerly_and_as_job  # noqa: F401
from flowedu.errors import CheckError

nn = flow.nn
CONV = {1: nn.conv1d, 3: nn.conv3d}
FIRST, LAST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}, {1: "NWC", 2: "NHWC", 3: "NDHWC"}


def last(a):
    return np.ascontiguousarray(np.moveaxis(a, 1, -1))


def pads(mode, size, k, stride, dilation=1):
    """Return the padding (before, after) by OneFlow 0.4's rule."""
    if mode == "VALID":
        return 0, 0
    need = max(0, (-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size)
    return (need // 2, need - need // 2) if mode == "SAME_UPPER" else (need - need // 2, need // 2)


def by_hand(x, w, strides, padding, dilations, groups):
    """Sum over every window of the padded x; padding is one pair per spatial axis."""
    axes = x.ndim - 2
    x = np.pad(x, ((0, 0), (0, 0), *padding))
    extent = tuple((k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations))
    view = np.lib.stride_tricks.sliding_window_view(x, extent, tuple(range(2, 2 + axes)))
    view = view[(slice(None), slice(None), *[slice(None, None, s) for s in strides], *[slice(None, None, d)
                                                                                        for d in dilations])]
    c, o, over = x.shape[1] // groups, w.shape[0] // groups, [1, *range(2 + axes, 2 + 2 * axes)]
    parts = [np.tensordot(view[:, g * c:(g + 1) * c], w[g * o:(g + 1) * o], (over, list(range(1, 2 + axes))))
             for g in range(groups)]
    return np.moveaxis(np.concatenate(parts, -1), -1, 1)


@st.composite
def convolutions(draw, axes=None):
    """Draw (axes, x, w, strides, mode, dilations, groups) of a valid convolution."""
    axes = axes or draw(st.sampled_from([1, 3]))

    def each(lo, hi):
        return tuple(draw(st.lists(st.integers(lo, hi), min_size=axes, max_size=axes)))

    groups, c, o = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    sizes = each(1, 6)
    kernel = each(1, 3)
    strides = each(1, 3)
    dilations = each(1, 2)
    mode = draw(st.sampled_from(["VALID", "SAME", "SAME_UPPER", "explicit"]))
    if mode == "explicit":
        mode = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(axes))
        total = [n + sum(p) for n, p in zip(sizes, mode)]
    else:
        total = [n + sum(pads(mode, n, k, s, d)) for n, k, s, d in zip(sizes, kernel, strides, dilations)]
    assume(all(n >= (k - 1) * d + 1 for n, k, d in zip(total, kernel, dilations)))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    x, w = rng.standard_normal((2, groups * c, *sizes)), rng.standard_normal((groups * o, c, *kernel))
    return axes, x, w, strides, mode, dilations, groups


def padding_pairs(x, w, strides, mode, dilations):
    if not isinstance(mode, str):
        return mode
    return [pads(mode, n, k, s, d) for n, k, s, d in zip(x.shape[2:], w.shape[2:], strides, dilations)]


@given(convolutions(), st.booleans())
def test_convolution_equals_explicit_sums(drawn, turned):
    axes, x, w, strides, mode, dilations, groups = drawn
    want = by_hand(x, w, strides, padding_pairs(x, w, strides, mode, dilations), dilations, groups)
    padding = mode if isinstance(mode, str) else [(0, 0), *mode, (0, 0)] if turned else [0, 0, *mode]
    layout = (LAST if turned else FIRST)[axes]

    def f(a, b):
        return CONV[axes](a, b, strides, padding, layout, list(dilations), groups)

    got = run_eagerly_and_as_job(f, last(x), last(w)) if turned else run_eagerly_and_as_job(f, x, w)
    np.testing.assert_allclose(np.moveaxis(got, -1, 1) if turned else got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.peer
@given(convolutions())
def test_gradients_equal_pytorchs(drawn):
    torch = pytest.importorskip("torch")
    axes, x, w, strides, mode, dilations, groups = drawn
    around = [n for pair in reversed(padding_pairs(x, w, strides, mode, dilations)) for n in pair]
    tx, tw = (torch.tensor(a, requires_grad=True) for a in (x, w))
    want = getattr(torch.nn.functional, f"conv{axes}d")(torch.nn.functional.pad(tx, around), tw, None,
                                                        strides, 0, dilations, groups)
    dy = np.random.default_rng(1).standard_normal(want.shape)
    want.backward(torch.tensor(dy))
    fx, fw = (flow.tensor(a, requires_grad=True) for a in (x, w))
    padding = mode if isinstance(mode, str) else [0, 0, *mode]
    (CONV[axes](fx, fw, strides, padding, FIRST[axes].lower(), dilations,
                groups) * flow.tensor(dy)).sum().backward()
    np.testing.assert_allclose(fx.grad.numpy(), tx.grad.numpy(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fw.grad.numpy(), tw.grad.numpy(), rtol=1e-9, atol=1e-9)


def test_an_int_stands_for_all_axes():
    x, w = f32(1, 2, 5, 5, 5), f32(3, 2, 3, 3, 3, seed=1)
    np.testing.assert_array_equal(run_eagerly_and_as_job(lambda a, b: nn.conv3d(a, b, 2, "same", dilations=2),
                                                         x, w), run_eagerly_and_as_job(
        lambda a, b: nn.conv3d(a, b, (2, 2, 2), "SAME_LOWER", "ncdhw", [2, 2, 2]), x, w))


@pytest.mark.parametrize("mode, want", [("SAME", [1, 3, 5, 7]), ("SAME_UPPER", [3, 5, 7, 4]),
                                        ("VALID", [3, 5, 7])])
def test_odd_same_padding_is_before_the_input(mode, want):
    x = np.arange(1, 5, dtype=np.float32)
    got = run_eagerly_and_as_job(lambda a, b: nn.conv1d(a, b, 1, mode), x.reshape(1, 1, 4),
                                 np.ones((1, 1, 2), np.float32))
    assert got.ravel().tolist() == want
    deep, kernel = x.reshape(1, 1, 4, 1, 1), np.ones((1, 1, 2, 1, 1), np.float32)
    assert (run_eagerly_and_as_job(lambda a, b: nn.conv3d(a, b, 1, mode), deep, kernel).ravel().tolist()
            == want)


def test_a_gradient_of_a_gradient_of_conv3d():
    """Compare d/dw of sum(g * dx), where dx is the gradient of a squared output, with a difference
    quotient.
    """
    x, w, g = (np.random.default_rng(i).standard_normal(s)
               for i, s in enumerate([(1, 2, 3, 3, 3), (2, 2, 2, 2, 2),
                                       (1, 2, 3, 3, 3)]))

    def inner(weights):
        tx, tw = flow.tensor(x, requires_grad=True), flow.tensor(weights, requires_grad=True)
        y = nn.conv3d(tx, tw, 2, "SAME")
        dx, = flow.grad((y * y).sum(), [tx], create_graph=True)
        return (dx * flow.tensor(g)).sum(), tw

    total, tw = inner(w)
    ddw, = flow.grad(total, [tw])
    v = np.random.default_rng(9).standard_normal(w.shape)
    slope = (inner(w + 1e-4 * v)[0].numpy() - inner(w - 1e-4 * v)[0].numpy()) / 2e-4
    np.testing.assert_allclose((ddw.numpy() * v).sum(), slope, rtol=1e-7)


@pytest.mark.parametrize("axes", [1, 3])
@pytest.mark.parametrize("options, error, words", [
    (dict(padding="FULL"), AssertionError, ["SAME_UPPER"]), (dict(padding=3), ValueError, ["list"]),
    (dict(padding=[[1, 1]] * 5), AssertionError, ["padding"]), (dict(strides="2"), ValueError, ["strides"]),
    (dict(strides=(1, 1)), AssertionError, ["strides", "wrong length"]), (dict(strides=0), ValueError,
                                                                          ["strides", "1 or"]),
    (dict(dilations=0), ValueError, ["dilations"]), (dict(data_format="NCHW"), ValueError, ["data_format"]),
    (dict(data_format=None), ValueError, ["data_format"]), (dict(groups=2), AssertionError, ["groups"]),
    (dict(groups=0), AssertionError, ["groups"]), (dict(dilations=3, padding="VALID"), ValueError,
                                                   ["does not fit"])])
def test_convolution_refuses_invalid_arguments(axes, options, error, words):
    x, w = f32(1, 3, *[4] * axes), f32(2, 3, *[3] * axes, seed=1)
    with refused(error, f"conv{axes}d" if "padding" not in options or "dilations" in options else "", *words,
                 fix=False):
        run(lambda a, b: CONV[axes](a, b, **{"strides": 1, "padding": "SAME", **options}), x, w)


@pytest.mark.parametrize("axes", [1, 3])
def test_shapes_that_do_not_fit_are_refused(axes):
    x = f32(1, 3, *[4] * axes)
    with refused(AssertionError, "filters has", "axes instead of"):
        run(lambda a, b: CONV[axes](a, b, 1, "SAME"), x, f32(2, 3, 3, 3))
    with refused(AssertionError, "input channels"):
        run(lambda a, b: CONV[axes](a, b, 1, "SAME"), x, f32(2, 2, *[3] * axes))
    with refused(AssertionError, "input has"):
        CONV[axes](flow.tensor(f32(3, 3)), flow.tensor(f32(2, 3, *[3] * axes)), 1, "SAME")


# --- transposed
# ------------------------------------------------------------------------------------------------------

@given(convolutions(axes=2), st.booleans(), st.booleans())
def test_transposed_convolution_is_the_adjoint(drawn, turned, named):
    """<conv2d(x), y> = <x, conv2d_transpose(y)> for the same strides, padding, dilations and groups."""
    _, x, w, strides, mode, dilations, groups = drawn
    padding = mode if isinstance(mode, str) else [0, 0, *mode]
    forward = nn.compat_conv2d if mode == "SAME" else nn.conv2d
    made = forward(flow.tensor(x), flow.tensor(w), strides, padding, dilations=dilations,
                   groups=groups).numpy()
    y = np.random.default_rng(1).standard_normal(made.shape)
    if turned:
        padding = mode if isinstance(mode, str) else [0, *mode, 0]
    options = dict(output_shape=last(x).shape if turned else list(x.shape), strides=list(strides),
                   padding=padding,
                   data_format="NHWC" if turned else "NCHW", dilations=list(dilations), groups=groups)

    def f(a, b):
        return (nn.conv2d_transpose(input=a, filters=b, **options) if named
                else nn.conv2d_transpose(a, b, **options))

    got = run_eagerly_and_as_job(f, last(y), last(w)) if turned else run_eagerly_and_as_job(f, y, w)
    got = np.moveaxis(got, -1, 1) if turned else got
    assert got.shape == x.shape
    np.testing.assert_allclose((got * x).sum(), (made * y).sum(), rtol=1e-8, atol=1e-8)


@pytest.mark.peer
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(0, 2), st.integers(1, 2))
def test_transposed_convolution_equals_pytorchs(k, stride, dilation, extra, groups):
    torch = pytest.importorskip("torch")
    extra = min(extra, stride - 1)
    x, w = f32(2, 4, 3, 5).astype(np.float64), f32(4, 2, k, k, seed=1).astype(np.float64)
    tx, tw = torch.tensor(x, requires_grad=True), torch.tensor(w, requires_grad=True)
    want = torch.nn.functional.conv_transpose2d(tx, tw, None, stride, 0, extra, groups, dilation)
    fx, fw = flow.tensor(x, requires_grad=True), flow.tensor(w, requires_grad=True)
    got = nn.conv2d_transpose(fx, fw, tuple(want.shape), stride, "VALID", dilations=dilation, groups=groups)
    np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-9)
    (want * want).sum().backward()
    (got * got).sum().backward()
    np.testing.assert_allclose(fx.grad.numpy(), tx.grad.numpy(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fw.grad.numpy(), tw.grad.numpy(), rtol=1e-9, atol=1e-9)


def test_the_output_shape_may_be_left_out():
    x, w = f32(1, 2, 3, 4), f32(2, 5, 3, 3, seed=1)
    assert run_eagerly_and_as_job(lambda a, b: nn.conv2d_transpose(a, b, None, 2), x, w).shape == (1, 5, 7, 9)
    assert (run_eagerly_and_as_job(lambda a, b: nn.conv2d_transpose(a, b, None, [2, 3], "same"), x, w).shape
            == (1, 5, 6, 12))
    assert (run_eagerly_and_as_job(lambda a, b: nn.conv2d_transpose(a, b, None, 2, [0, 0, 1, 1]), x, w).shape
            == (1, 5, 5, 7))
    assert run_eagerly_and_as_job(lambda a, b: nn.conv2d_transpose(a, b, None, 2, data_format="nhwc"),
                                  last(x), last(w)).shape == (1, 7, 9, 5)


def test_same_of_the_transposed_convolution_cuts_at_the_bottom_right():
    """A 1 spreads over 3 x 3, and 2 of 3 rows are kept; SAME (= SAME_UPPER) drops the last row, SAME_LOWER
    the first.
    """
    x, w = np.ones((1, 1, 1, 1), np.float32), np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    for mode, want in (("SAME", [[0, 1], [3, 4]]), ("SAME_UPPER", [[0, 1], [3, 4]]),
                       ("SAME_LOWER", [[4, 5], [7, 8]])):
        got = run_eagerly_and_as_job(lambda a, b, m=mode: nn.conv2d_transpose(a, b, (1, 1, 2, 2), 2, m), x, w)
        np.testing.assert_array_equal(got[0, 0], want)


@pytest.mark.parametrize("options, error, words", [
    (dict(filter=None), AssertionError, ["filter", "neither"]), (dict(input=f32(1)), AssertionError,
                                                                 ["both"]),
    (dict(strides=None), ValueError, ["strides"]), (dict(strides=[1]), AssertionError, ["strides"]),
    (dict(padding="FULL"), ValueError, ["padding"]), (dict(data_format="NCW"), ValueError, ["data_format"]),
    (dict(dilations=[1]), AssertionError, ["dilations"]), (dict(groups=3), AssertionError, ["groups"]),
    (dict(output_shape=(1, 5, 9, 9)), AssertionError, ["no conv2d makes", "leave output_shape out"]),
    (dict(output_shape=(1, 4, 7, 9)), AssertionError, ["(1, 5, H, W)"]),
    (dict(output_shape=7), AssertionError, ["output_shape"])])
def test_transposed_convolution_refuses_invalid_arguments(options, error, words):
    x, w = flow.tensor(f32(1, 2, 3, 4)), flow.tensor(f32(2, 5, 3, 3, seed=1))
    with refused(error, *words, fix=False):
        nn.conv2d_transpose(**{"value": x, "filter": w, "output_shape": (1, 5, 7, 9), "strides": 2,
                               **options})


def test_refusals_are_check_errors_with_a_fix():
    with pytest.raises(CheckError) as info:
        nn.conv2d_transpose(flow.tensor(f32(1, 2, 3, 4)), flow.tensor(f32(3, 5, 3, 3)), None, 2)
    assert "filter is (in, out // groups, kh, kw)" in str(info.value)
