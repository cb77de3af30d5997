"""Channels-last convolution, and batch norm with clipping, against PyTorch and against NumPy in float64."""
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import flowedu as flow
from common import refused
from flowedu.errors import ArgumentError, ShapeError
from laws.test_kernels import run_on

R = flow.ops.REGISTRY
LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


@st.composite
def convolution(draw):
    """Draw (x NCHW, w, dy, attributes) for everything that conv2d supports: depthwise, dense, grouped,
    1x1.
    """
    kind = draw(st.sampled_from(["depthwise", "dense", "grouped", "pointwise"]))

    def size(lo, hi):
        return draw(st.integers(lo, hi))

    groups = size(2, 40) if kind == "depthwise" else size(2, 3) if kind == "grouped" else 1
    c, o = (groups, groups) if kind == "depthwise" else (groups * size(1, 9), groups * size(1, 9))
    kernel = (1, 1) if kind == "pointwise" else (size(1, 4), size(1, 4))
    strides = (1, 1) if kind == "pointwise" and draw(st.booleans()) else (size(1, 3), size(1, 3))
    dilations, pads = (size(1, 2), size(1, 2)), (0, 0, 0,
                                                 0) if kind == "pointwise" else tuple(size(0, 2)
                                                                                      for _ in range(4))
    h, w = size(1, 9), size(1, 9)
    out = [(n + pads[2 * i] + pads[2 * i + 1] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
           for i, n in enumerate((h, w))]
    assume(min(out) >= 1)
    n = size(1, 4)
    r = np.random.default_rng(size(0, 2**31))
    x, k, dy = (r.standard_normal(s) for s in ((n, c, h, w), (o, c // groups, *kernel), (n, o, *out)))
    return x, k, dy, dict(strides=strides, pads=pads, dilations=dilations, groups=groups)


def lay(a):
    return np.ascontiguousarray(a.transpose(LAST))


@given(convolution(), st.sampled_from([np.float32, np.float64]), st.sampled_from([1, 2, 3]))
def test_the_three_convolutions_equal_nchw(call, dtype, threads):
    x, w, dy, attrs = call
    tol = 1e-4 if dtype is np.float32 else 1e-10

    def both(name, a, b, turn_a, turn_b, turn_y, **more):
        op, last = R[name], R[name.replace("conv2d", "conv2d_last")]
        want = op(flow.tensor(a), flow.tensor(b), **more, **attrs).numpy()
        values = [(lay(v) if t else v).astype(dtype) for v, t in ((a, turn_a), (b, turn_b))]
        got = run_on(last, values, last.complete({**more, **attrs}), threads)[0]
        np.testing.assert_allclose(got.transpose(FIRST) if turn_y else got, want, rtol=tol, atol=tol * 10,
                                   err_msg=name)

    both("conv2d", x, w, True, False, True)
    both("conv2d_input_grad", dy, w, True, False, True, hw=x.shape[2:])
    both("conv2d_weight_grad", dy, x, True, True, False, kernel=w.shape[2:])


@pytest.mark.peer
@given(convolution(), st.sampled_from(["relu", "relu6", ""]), st.sampled_from([1, 2]))
def test_folded_batch_norm_equals_pytorch(call, act, threads):
    torch = pytest.importorskip("torch")
    x, w, dy, attrs = call
    r = np.random.default_rng(0)
    gamma, beta, mean = r.standard_normal((3, w.shape[0]))
    var = r.random(w.shape[0]) + 0.2
    p, t = attrs["pads"], torch.tensor
    y = torch.nn.functional.conv2d(torch.nn.functional.pad(t(x), (p[2], p[3], p[0], p[1])), t(w), None,
                                   attrs["strides"], 0, attrs["dilations"], attrs["groups"])
    y = torch.nn.functional.batch_norm(y, t(mean), t(var), t(gamma), t(beta), eps=1e-3)
    y = getattr(torch.nn.functional, act)(y) if act else y
    low, high = {"relu": (0.0, np.inf), "relu6": (0.0, 6.0), "": (-np.inf, np.inf)}[act]
    op = R["conv2d_last_norm"]
    attrs = op.complete({**attrs, "epsilon": 1e-3, "low": low, "high": high})
    got, = run_on(op, [lay(x), w, gamma, beta, mean, var], attrs, threads)
    np.testing.assert_allclose(got.transpose(FIRST), y.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.peer
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("act", ["relu", "relu6"])
@pytest.mark.parametrize("shape", [(3, 5, 4, 7), (2, 40, 1, 1), (64, 300, 1, 1), (5, 17, 3, 2), (1, 3, 2, 2)])
def test_batch_norm_with_clipping_equals_pytorch(shape, act, threads):
    torch = pytest.importorskip("torch")
    r = np.random.default_rng(1)
    x, dy = r.standard_normal((2, *shape)) * 3 + 1
    gamma, beta = r.standard_normal((2, shape[1])) * 4
    tx, tg, tb = (torch.tensor(a, requires_grad=True) for a in (x, gamma, beta))
    want = getattr(torch.nn.functional, act)(torch.nn.functional.batch_norm(tx, None, None, tg, tb, True,
                                                                            eps=1e-3))
    want.backward(torch.tensor(dy))
    attrs = dict(epsilon=1e-3, low=0.0, high=np.inf if act == "relu" else 6.0)
    for axis, to, back in ((1, (0, 1, 2, 3), (0, 1, 2, 3)), (3, LAST, FIRST)):
        a, da = (np.ascontiguousarray(v.transpose(to)) for v in (x, dy))
        op, grad = R["batch_norm_clip"], R["batch_norm_clip_grad"]
        y, mean, var = run_on(op, [a, gamma, beta], op.complete({**attrs, "axis": axis}), threads)
        dx, dgamma, dbeta = run_on(grad, [da, a, gamma, beta, mean, var],
                                   grad.complete({**attrs, "axis": axis}), threads)
        np.testing.assert_allclose(y.transpose(back), want.detach().numpy(), rtol=1e-9, atol=1e-9)
        for got, t in ((dx.transpose(back), tx), (dgamma, tg), (dbeta, tb)):
            np.testing.assert_allclose(got, t.grad.numpy(), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("rows", "channels"), [(1000, 5), (4100, 300), (3, 16), (1, 4)])
def test_statistics_are_exact_where_the_mean_is_large(rows, channels, threads):
    """float32 with a mean of 3000 deviations: a plain sum of squares would lose all digits."""
    r = np.random.default_rng(2)
    x = (3000 + r.standard_normal((rows, channels)) * np.linspace(0.5, 2, channels)).astype(np.float32)
    op = R["batch_norm"]
    one = np.ones(channels, np.float32)
    y, mean, var = run_on(op, [x, one, one * 0], op.complete(dict(axis=1, epsilon=1e-5)), threads)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(0), rtol=3e-7)
    np.testing.assert_allclose(var, exact.var(0), rtol=1e-4, atol=1e-6)
    assert np.all(np.abs(y) < 10)


def test_relu6_has_no_gradient_where_it_clips():
    x = flow.tensor(np.array([-1.0, 0.0, 1e-6, 5.9, 6.0, 7.0]), requires_grad=True)
    flow.nn.functional.relu6(x).sum().backward() if hasattr(flow.nn,
                                                            "functional") else R["relu6"](x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0, 1, 1, 0, 0])         # as in PyTorch


def test_nan_is_not_clipped():
    x = np.ones((2, 1, 3, 16), np.float32)
    x[0, 0, 1, 3] = np.nan
    one, zero = np.ones(16, np.float32), np.zeros(16, np.float32)
    attrs = dict(epsilon=0.0, low=0.0, high=6.0)
    eye = np.eye(16, dtype=np.float32).reshape(16, 16, 1, 1)
    deep = np.ones((16, 1, 1, 1), np.float32)
    for w, groups in ((eye * 0 + 1, 1), (deep, 16)):
        y = R["conv2d_last_norm"](*map(flow.tensor, (x, w, one, zero, zero, one)), groups=groups,
                                  **attrs).numpy()
        assert np.isnan(y[0, 0, 1]).any() and not np.isnan(y[1]).any()
    y, mean, _ = R["batch_norm_clip"](*map(flow.tensor, (x, one, zero)), axis=3, **{**attrs, "epsilon": 1e-3})
    assert (np.isnan(y.numpy()[..., 3]).all() and np.isnan(mean.numpy()[3])
            and not np.isnan(y.numpy()[..., :3]).any())


def test_errors_name_the_mismatched_argument():
    x, w = flow.tensor(np.zeros((2, 5, 5, 4), np.float32)), flow.tensor(np.zeros((6, 3, 3, 3), np.float32))
    with refused(ShapeError, "conv2d_last: axis c has two sizes, 4 and 3", fix=True):
        R["conv2d_last"](x, w)
    with refused(ShapeError, "conv2d_last", "need four axes", fix=False):
        R["conv2d_last"](flow.tensor(np.zeros((5, 5, 4), np.float32)), w)
    with refused(ArgumentError, "conv2d_last_input_grad: groups must divide", fix=False):
        R["conv2d_last_input_grad"](x, flow.tensor(np.zeros((4, 3, 3, 3), np.float32)), hw=(7, 7), groups=3)
    v = flow.tensor(np.zeros(4, np.float32))
    with refused(ShapeError, "batch_norm_clip_grad: dy and x differ"):
        R["batch_norm_clip_grad"](x, flow.tensor(np.zeros((2, 5, 4, 4), np.float32)), v, v, v, v, axis=3,
                                  epsilon=0.1, low=0.0, high=6.0)
