"""flow.nn: convolution and pooling with OneFlow's paddings, dropout, softmax, and losses, against vectors of
the specification.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from bounds import assert_rate
from common import constant, constant_rate, f32, fresh_session, job, refused, run  # noqa: F401

nn = flow.nn
SQUARE = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
NINE = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)


def pads(mode, size, k, stride, dilation=1):
    """Return the padding (before, after) by the rule of the specification."""
    if mode == "VALID":
        return 0, 0
    need = max(0, (-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size)
    return (need // 2, need - need // 2) if mode == "SAME_UPPER" else (need - need // 2, need // 2)


def windows(a, k, stride, before, after, fill, dilation=1):
    """Return (N, C, H', W', k, k) views of a padded array."""
    a = np.pad(a, ((0, 0), (0, 0), *[(b, e) for b, e in zip(before, after)]), constant_values=fill)
    span = (k - 1) * dilation + 1
    w = np.lib.stride_tricks.sliding_window_view(a, (span, span), (2, 3))
    return w[:, :, ::stride, ::stride, ::dilation, ::dilation]


# --- convolution
# -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("k, stride, padding, want", [
    (3, 2, "SAME", [[14, 30], [57, 99]]), (3, 2, "SAME_LOWER", [[14, 30], [57, 99]]),
    (3, 2, "same", [[14, 30], [57, 99]]),
    (3, 2, "SAME_UPPER", [[54, 45], [72, 54]]), (3, 1, "VALID", [[54, 63], [90, 99]]),
    (3, 2, [[0, 0], [0, 0], [1, 0], [1, 0]], [[14, 30], [57, 99]]), (3, 1, (0, 0, [0, 0], 0),
                                                                     [[54, 63], [90, 99]])])
def test_convolution_gives_the_values_of_the_specification(k, stride, padding, want):
    def conv(a, w):
        return nn.conv2d(a, w, stride, padding)

    np.testing.assert_array_equal(run(conv, SQUARE, np.ones((1, 1, k, k), np.float32))[0, 0], want)


def test_the_odd_pixel_of_same_is_at_the_top_left():
    def conv(a, w):
        return nn.conv2d(a, w, 1, "SAME")

    assert run(conv, SQUARE, np.ones((1, 1, 2, 2), np.float32))[0, 0, 0].tolist() == [1, 3, 5, 7]

    def compat(a, w):
        return nn.compat_conv2d(a, w, 1, "SAME")

    assert run(compat, SQUARE, np.ones((1, 1, 2, 2), np.float32))[0, 0, 0].tolist() == [14, 18, 22, 12]


@given(st.sampled_from(["SAME_LOWER", "SAME_UPPER", "VALID"]), st.integers(1, 3), st.integers(1, 3),
       st.integers(1, 2), st.sampled_from([1, 2]), st.booleans())
def test_convolution_equals_explicit_sums(mode, k, stride, dilation, groups, last):
    a, w = f32(2, 4, 7, 6), f32(6, 4 // groups, k, k, seed=1)
    if last:
        groups, w = 1, f32(6, 4, k, k, seed=1)
    ph, pw = pads(mode, 7, k, stride, dilation), pads(mode, 6, k, stride, dilation)
    view = windows(a, k, stride, (ph[0], pw[0]), (ph[1], pw[1]), 0, dilation)
    n, g = view.shape[0], 4 // groups
    want = np.concatenate([np.einsum("nchwij,ocij->nohw", view[:, i * g:(i + 1) * g],
                                     w[i * 6 // groups:(i + 1) * 6 // groups])
                           for i in range(groups)], 1)
    if last:
        got = run(lambda p, q: nn.conv2d(p, q, [stride] * 2, mode, "NHWC", dilation), a.transpose(0, 2, 3, 1),
                  w.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    else:
        got = run(lambda p, q: nn.conv2d(p, q, (stride, stride), mode, "NCHW", [dilation] * 2, groups), a, w)
    assert got.shape[0] == n
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("options, error", [
    (dict(padding="FULL"), AssertionError), (dict(padding=3), ValueError),
    (dict(padding=[[1, 1], 0, 0, 0]), AssertionError),
    (dict(padding=[0, 0]), AssertionError), (dict(strides=[1]), AssertionError),
    (dict(strides="2"), ValueError),
    (dict(data_format="NC"), ValueError), (dict(dilations=(1, 1, 1)), AssertionError)])
def test_convolution_refuses_invalid_arguments(options, error):
    options = {"strides": 1, "padding": "SAME", **options}
    with refused(error, fix=False):
        run(lambda a, w: nn.conv2d(a, w, **options), SQUARE, f32(1, 1, 3, 3))


# --- pooling
# ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("f, padding, want", [
    (nn.max_pool2d, "SAME", [[1, 3], [7, 9]]), (nn.max_pool2d, "SAME_UPPER", [[5, 6], [8, 9]]),
    (nn.avg_pool2d, "SAME", [[1, 2.5], [5.5, 7]]), (nn.max_pool2d, "VALID", [[5]]),
    (nn.avg_pool2d, "VALID", [[3]]), (nn.max_pool2d, [0, 0, (0, 1), (0, 1)], [[5, 6], [8, 9]])])
def test_pooling_gives_the_values_of_the_specification(f, padding, want):
    np.testing.assert_array_equal(run(lambda a: f(a, 2, 2, padding), NINE)[0, 0], want)


def test_padding_affects_neither_maximum_nor_mean():
    assert run(lambda a: nn.max_pool2d(a - 100, 3, 1, "SAME"), NINE).max() == -91
    got = run(lambda a: nn.avg_pool2d(a * 0 + 1, 3, 1, "SAME"), NINE)
    np.testing.assert_allclose(got, np.ones_like(got), rtol=1e-6)


@given(st.sampled_from(["SAME_LOWER", "SAME_UPPER", "VALID"]), st.integers(1, 3), st.integers(1, 3),
       st.booleans())
def test_pooling_equals_explicit_windows(mode, k, stride, last):
    a = f32(2, 3, 7, 6)
    ph, pw = pads(mode, 7, k, stride), pads(mode, 6, k, stride)
    view = windows(a, k, stride, (ph[0], pw[0]), (ph[1], pw[1]), np.nan)
    for f, want in ((nn.max_pool2d, np.nanmax), (nn.avg_pool2d, np.nanmean)):
        fed = a.transpose(0, 2, 3, 1) if last else a
        got = run(lambda t, f=f: f(t, [k], (stride, stride), mode, "NHWC" if last else "NCHW"), fed)
        np.testing.assert_allclose(got.transpose(0, 3, 1, 2) if last else got, want(view, (4, 5)), rtol=1e-5,
                                   atol=1e-6)


def test_ceil_mode_counts_padding_only_if_explicit():
    zero = [0, 0, 0, 0]
    assert run(lambda a: nn.max_pool2d(a, 2, 2, zero, ceil_mode=True), NINE).shape == (1, 1, 2, 2)
    assert run(lambda a: nn.max_pool2d(a, 2, 2, zero), NINE).shape == (1, 1, 1, 1)
    assert run(lambda a: nn.max_pool2d(a, 2, 2, "VALID", ceil_mode=True), NINE).shape == (1, 1, 1, 1)


@pytest.mark.parametrize("options, error", [
    (dict(ksize=[2, 2, 2]), ValueError), (dict(ksize="2"), ValueError), (dict(strides=[]), ValueError),
    (dict(data_format="NCHW_VECT_C"), AssertionError), (dict(padding="half"), AssertionError)])
def test_pooling_refuses_invalid_arguments(options, error):
    options = {"ksize": 2, "strides": 2, "padding": "SAME", **options}
    with refused(error, fix=False):
        run(lambda a: nn.max_pool2d(a, **options), NINE)


# --- bias, moments, normalisation, activations
# -----------------------------------------------------------------------

def test_bias_add():
    a, b = f32(2, 3, 4, 3), f32(3, seed=1)
    for data_format in (None, "NCHW", "NC"):
        np.testing.assert_allclose(run(lambda t, u, d=data_format: nn.bias_add(t, u, d), a, b),
                                   a + b[:, None, None], rtol=1e-6)
    np.testing.assert_allclose(run(lambda t, u: nn.bias_add(t, u, "NHWC"), a, b), a + b, rtol=1e-6)
    with refused(ValueError, "data_format"):
        run(lambda t, u: nn.bias_add(t, u, "CHWN"), a, b)
    with refused(ValueError, "bias"):
        run(nn.bias_add, a, f32(4))


def test_moments_and_normalisation():
    a = f32(2, 3, 4)
    got = run(lambda t: flow.stack(list(nn.moments(t, [0, 2])), 0), a)
    np.testing.assert_allclose(got, [a.mean((0, 2)), a.var((0, 2))], rtol=1e-4, atol=1e-6)
    assert run(lambda t: nn.moments(t, [0], keepdims=True)[1], a).shape == (1, 3, 4)
    mean, var = a.mean((0, 2)), a.var((0, 2))
    want = (a - mean[:, None]) / np.sqrt(var[:, None] + 1e-5)
    np.testing.assert_allclose(run(nn.batch_normalization, a, mean, var), want, rtol=1e-4, atol=1e-5)
    got = run(lambda t, p, q: nn.batch_normalization(t, p, q, offset=p, scale=q, axis=1), a, mean, var)
    np.testing.assert_allclose(got, want * var[:, None] + mean[:, None], rtol=1e-4, atol=1e-5)
    got = run(lambda t: nn.layer_norm(t), a)
    np.testing.assert_allclose(got,
                               (a - a.mean((1, 2),
                                           keepdims=True)) / np.sqrt(a.var((1, 2), keepdims=True) + 1e-5),
                               rtol=1e-4, atol=1e-5)


ACTIVATIONS = {
    "relu": lambda a: np.maximum(a, 0), "relu6": lambda a: np.clip(a, 0, 6),
    "leaky_relu": lambda a: np.where(a > 0, a, 0.2 * a),
    "elu": lambda a: np.where(a > 0, a, np.expm1(a)), "swish": lambda a: a / (1 + np.exp(-a)),
    "mish": lambda a: a * np.tanh(np.log1p(np.exp(a))), "hardsigmoid": lambda a: np.clip(a / 6 + 0.5, 0, 1),
    "hardswish": lambda a: a * np.clip(a + 3, 0, 6) / 6, "hardtanh": lambda a: np.clip(a, -1, 1)}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    a = f32(3, 50) * 4
    np.testing.assert_allclose(run(getattr(nn, name), a), ACTIVATIONS[name](a.astype(np.float64)), rtol=1e-4,
                               atol=1e-5)


def test_activation_parameters():
    a = f32(20)
    np.testing.assert_allclose(run(lambda t: nn.leaky_relu(t, 0.5), a), np.where(a > 0, a, a / 2), rtol=1e-6)
    np.testing.assert_allclose(run(lambda t: nn.swish(t, 2.0), a), a / (1 + np.exp(-2 * a)), rtol=1e-5,
                               atol=1e-6)
    np.testing.assert_allclose(run(lambda t: nn.elu(t, 2.0), a), np.where(a > 0, a, 2 * np.expm1(a)),
                               rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run(lambda t: nn.hardtanh(t, -0.1, 0.2), a), np.clip(a, -0.1, 0.2), rtol=1e-6)


# --- dropout
# ---------------------------------------------------------------------------------------------------------

def dropping(rate, size=1000, **options):
    """Return (train job, its input). The loss is the dropped input times a variable of ones that is not
    updated.
    """
    a = np.ones((size,), np.float32)

    def body(t):
        kept = nn.dropout(t, rate, **options)
        loss = kept * flow.get_variable("w", (size,), initializer=flow.ones_initializer())
        flow.optimizer.SGD(constant_rate(1.0), momentum=0).minimize(loss)
        return kept

    flow.clear_default_session()
    return job(body, a, type="train"), a


@pytest.mark.parametrize("rate", [0.25, 0.5, 0.9])
def test_dropout_zeroes_a_fraction_and_scales_the_rest(rate):
    step, a = dropping(rate, 20000)
    first, second = step(a), step(a)
    for got in (first, second):
        assert set(np.unique(got)) == {0, np.float32(1 / (1 - rate))}
        assert_rate(got == 0, rate)
    assert (first != second).any(), "every run draws a new mask"


def test_dropout_backward_uses_the_forward_mask():
    step, a = dropping(0.5)
    kept = step(a)
    np.testing.assert_allclose(flow.get_all_variables()["w"].numpy(), 1 - kept / a.size, rtol=1e-6)


def test_two_dropouts_have_different_masks():
    a = np.ones(1000, np.float32)

    def body(t):
        y = nn.dropout(t, 0.5) - nn.dropout(t, 0.5)
        w = flow.get_variable("w", (1,), initializer=flow.ones_initializer())
        flow.optimizer.SGD(constant_rate(0.1)).minimize(y * w)
        return y

    assert run(body, a, type="train").any()


def test_dropout_does_nothing_in_a_predict_job_or_at_rate_0():
    same = []
    run(lambda t: (same.append(nn.dropout(t, 0.5) is t), t)[1], f32(3))
    run(lambda t: (same.append(nn.dropout(t, rate=0.0) is t), flow.optimizer.SGD(constant_rate(0.1)).minimize(
        t * flow.get_variable("w", (3,), initializer=flow.ones_initializer())), t)[2], f32(3), type="train")
    assert same == [True, True]


def test_dropout_refuses_invalid_arguments():
    for rate in (1.0, -0.1, None, "half"):
        with refused(AssertionError, "0 <= rate < 1"):
            run(lambda t, r=rate: nn.dropout(t, r), f32(3))
    with refused(NotImplementedError, "noise_shape"):
        run(lambda t: nn.dropout(t, 0.5, noise_shape=[3]), f32(3))
    with refused(AssertionError, "name"):
        run(lambda t: nn.dropout(t, 0.5, seed=1), f32(3))


def test_a_seed_determines_the_masks():
    def masks(seed, everything=None):
        flow.random.seed(everything)
        step, a = dropping(0.5, **({"seed": seed, "name": "drop"} if seed is not None else {}))
        return np.stack([step(a), step(a)])

    np.testing.assert_array_equal(masks(5), masks(5))
    assert (masks(5) != masks(6)).any() and (masks(None) != masks(None)).any()
    np.testing.assert_array_equal(masks(None, 1), masks(None, 1))
    assert (masks(None, 1) != masks(None, 2)).any()


# --- softmax and losses
# ----------------------------------------------------------------------------------------------

LOGITS = np.array([[1, 2, 3], [1, 1, 1]], np.float32)
LABELS = np.array([2, 0], np.int32)


def softmax(a, axis=-1):
    e = np.exp(a - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def test_softmax():
    a = f32(2, 3, 4) * 50
    for axis in (None, -1, 0, 1):
        np.testing.assert_allclose(run(lambda t, d=axis: nn.softmax(t, d), a),
                                   softmax(a, -1 if axis is None else axis), atol=1e-6)
        got = run(lambda t, d=axis: nn.logsoftmax(t, d), a)
        assert np.isfinite(got).all()
    with refused(AssertionError, "rank >= 2"):
        run(nn.softmax, f32(3))
    with refused(ValueError, "axis"):
        run(lambda t: nn.softmax(t, 3), a)


@pytest.mark.parametrize("labels", [LABELS, LABELS.astype(np.int64), LABELS[:, None]])
def test_sparse_cross_entropy(labels):
    got = run(nn.sparse_softmax_cross_entropy_with_logits, labels, LOGITS)
    assert got.shape == (2,) and got.dtype == np.float32
    np.testing.assert_allclose(got, [0.407606, 1.0986123], rtol=1e-6)


def test_the_gradient_of_sparse_cross_entropy():
    seen = []

    def keep(d: flow.typing.Numpy):
        seen.append(d)

    def body(labels, t):
        logits = t * flow.get_variable("w", (1,), initializer=flow.ones_initializer())
        flow.watch_diff(logits, keep)
        loss = nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        flow.optimizer.SGD(constant_rate(0.1)).minimize(loss)
        return loss

    run(body, LABELS, LOGITS, type="train")
    np.testing.assert_allclose(seen[0], [[.0900306, .2447285, -.334759], [-.6666667, .3333333, .3333333]],
                               rtol=1e-5)


def test_huge_logits_do_not_overflow():
    got = run(nn.sparse_softmax_cross_entropy_with_logits, LABELS, LOGITS * 1e4)
    np.testing.assert_allclose(got, [0, 1.0986123], rtol=1e-6, atol=1e-6)
    got = run(nn.sparse_softmax_cross_entropy_with_logits, LABELS, LOGITS * 0 + np.float32(1e8))
    np.testing.assert_allclose(got, np.full(2, np.log(3)), rtol=1e-6)


def test_losses_have_the_values_of_their_formulas():
    p = softmax(f32(2, 3, seed=3))
    want = -(p * np.log(softmax(LOGITS))).sum(-1)
    np.testing.assert_allclose(run(nn.softmax_cross_entropy_with_logits, p, LOGITS), want, rtol=1e-5)
    with refused(AssertionError, "one shape and dtype"):
        run(nn.softmax_cross_entropy_with_logits, LABELS, LOGITS)
    y = np.array([[0, 1, 0.5], [1, 0, 0]], np.float32)
    z = LOGITS.astype(np.float64)
    want = -(y * np.log(1 / (1 + np.exp(-z))) + (1 - y) * np.log(1 - 1 / (1 + np.exp(-z))))
    np.testing.assert_allclose(run(nn.sigmoid_cross_entropy_with_logits, y, LOGITS), want, rtol=1e-5)


def test_ties_of_relu_have_no_gradient():
    seen = []

    def body(t):
        v = flow.get_variable("v", (3,), initializer=constant(np.array([-1, 0, 2])))
        flow.watch_diff(v, seen.append)
        flow.optimizer.SGD(constant_rate(0.1)).minimize(nn.relu(v) * t)
        return t

    run(body, np.ones(3, np.float32), type="train")
    assert seen[0].numpy().tolist() == [0, 0, 1]
