"""Layers on feature maps (conv1d, conv3d, prelu, upsample_2d), group and instance normalization, and pixel
shuffle: variables and formulas as in OneFlow 0.4, values and gradients against NumPy and PyTorch.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import (  # noqa: F401
    constant,
    constant_rate,
    f32,
    fresh_session,
    job,
    refused,
    run,
    run_eagerly_and_as_job,
)

layers, nn = flow.layers, flow.nn


def train_one_step(body, *arrays):
    """Return {variable: gradient} of the sum of body's result, from one step of plain gradient descent in a
    train job.
    """
    before = {}

    def step(*blobs):
        y = body(*blobs)
        flow.optimizer.SGD(constant_rate(1.0), momentum=0).minimize(flow.math.reduce_sum(y))
        return y

    flow.clear_default_session()
    flow.random.seed(1)
    train = job(step, *arrays, type="train")
    before = {name: v.numpy() for name, v in flow.get_all_variables().items()}
    y = train(*arrays)
    return (y, before, {n: before[n] - v.numpy() for n, v in flow.get_all_variables().items()
                        if not n.startswith("System")})


# --- convolutions
# ----------------------------------------------------------------------------------------------------

@pytest.mark.peer
@pytest.mark.parametrize("axes, last", [(1, False), (1, True), (2, False), (2, True), (3, False), (3, True)])
def test_a_convolution_layer_and_its_gradients(axes, last):
    torch = pytest.importorskip("torch")
    x, conv = f32(2, 4, *[5, 4, 6][:axes]), getattr(layers, f"conv{axes}d")
    layout = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[axes][last]
    fed = np.moveaxis(x, 1, -1).copy() if last else x
    groups, w_shape = (1, (6, *[3] * axes, 4)) if last else (2, (6, 2, *[3] * axes))
    y, before, grads = train_one_step(lambda t: conv(t, 6, 3, 2, "SAME_UPPER", layout.lower(),
                                                     activation=nn.relu, groups=groups,
                                                     bias_initializer=flow.random_normal_initializer()), fed)
    assert {n: v.shape for n, v in grads.items()} == {f"Conv{axes}d-weight": w_shape,
                                                      f"Conv{axes}d-bias": (6,)}
    w, b = (torch.tensor(before[f"Conv{axes}d-{part}"], requires_grad=True) for part in ("weight", "bias"))
    kernel = torch.movedim(w, -1, 1) if last else w
    around = []
    for n in reversed(x.shape[2:]):
        need = (-(-n // 2) - 1) * 2 + 3 - n
        around += [need // 2, need - need // 2]
    want = torch.relu(getattr(torch.nn.functional, f"conv{axes}d")(
        torch.nn.functional.pad(torch.tensor(x), around), kernel, b, 2, 0, 1, groups))
    want.sum().backward()
    got = np.moveaxis(y, -1, 1) if last else y
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(grads[f"Conv{axes}d-weight"], w.grad.numpy(), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(grads[f"Conv{axes}d-bias"], b.grad.numpy(), rtol=1e-3, atol=1e-4)


def test_defaults_and_names():
    x = f32(2, 3, 4)
    run(lambda t: layers.conv1d(t, 5), x)
    assert {n: v.numpy().shape for n, v in flow.get_all_variables().items()} == {"Conv1d-weight": (5, 3, 1),
                                                                                "Conv1d-bias": (5,)}
    assert not flow.get_all_variables()["Conv1d-bias"].numpy().any()
    limit = np.sqrt(3 / ((3 + 5) / 2))
    assert 0 < np.abs(flow.get_all_variables()["Conv1d-weight"].numpy()).max() <= limit, "xavier_uniform"
    run(lambda t: layers.conv3d(t, 2, [1, 2, 3], use_bias=False, name="c", weight_name="w"),
        f32(1, 2, 3, 3, 3))
    assert [(n, v.numpy().shape) for n, v in flow.get_all_variables().items()] == [("w", (2, 2, 1, 2, 3))]
    with refused(AssertionError, "Conv1d-weight", "already exists", fix=False):
        run(lambda t: layers.conv1d(layers.conv1d(t, 3), 3), x)


def test_the_activation_gets_a_name():
    names = []

    def act(y, name):
        names.append(name)
        return y

    run(lambda t: layers.conv1d(t, 5, activation=act, name="first"), f32(2, 3, 4))
    assert names == ["first-activation"]


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("options, error, words", [
    (dict(groups=2), AssertionError, ["groups"]), (dict(groups=1.0), AssertionError, ["groups"]),
    (dict(filters=0), ValueError, ["filters"]), (dict(kernel_size=[1] * 4), AssertionError, ["kernel_size"]),
    (dict(kernel_size=0), ValueError, ["kernel_size"]), (dict(data_format="NC"), ValueError, ["data_format"]),
    (dict(activation="relu"), AssertionError, ["flow.nn.relu"]),
    (dict(activation=lambda b: b), TypeError, ["activation takes no name", "lambda x, name:"])])
def test_a_convolution_layer_refuses_invalid_arguments(axes, options, error, words):
    with refused(error, f"layers.conv{axes}d", *words, fix="kernel_size" not in options):
        run(lambda t: getattr(layers, f"conv{axes}d")(t, **{"filters": 4, **options}), f32(2, 3, *[4] * axes))
    with refused(AssertionError, f"layers.conv{axes}d", "axes instead of"):
        run(lambda t: getattr(layers, f"conv{axes}d")(t, 4), f32(2, 3))


def test_groups_need_channels_first():
    with refused(AssertionError, "1 for NWC"):
        run(lambda t: layers.conv1d(t, 4, data_format="NWC", groups=2), f32(2, 5, 4))


# --- prelu
# -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("shared, shape", [(None, (3, 2, 4)), ([2, 3], (3, 1, 1)), ((1,), (1, 2, 4)),
                                           ([], (3, 2, 4))])
def test_prelu(shared, shape):
    x, alpha = f32(5, 3, 2, 4), f32(*shape, seed=1)
    y, before, grads = train_one_step(lambda t: layers.prelu(t, constant(alpha), shared_axes=shared), x)
    np.testing.assert_allclose(y, np.where(x > 0, x, alpha * x), rtol=1e-6)
    assert before["PRelu-alpha"].shape == shape
    over = tuple(i for i in range(4) if i == 0 or shape[i - 1] != x.shape[i])
    want = np.where(x > 0, 0, x).sum(over, keepdims=True)[0]
    np.testing.assert_allclose(grads["PRelu-alpha"], want, rtol=1e-4, atol=1e-5)


def test_prelu_starts_as_relu_and_its_input_has_a_gradient():
    x = np.array([[-2, 0, 3]], np.float32)
    assert run(layers.prelu, x).tolist() == [[0, 0, 3]]
    t = flow.tensor(x, requires_grad=True)
    nn.prelu(t, flow.tensor(np.float32([0.25]))).sum().backward()
    assert t.grad.numpy().tolist() == [[0.25, 0.25, 1]]


def test_prelu_refuses_invalid_arguments():
    for shared in ([0], [3], [-1], [1.0]):
        with refused(AssertionError, "shared_axes", "[1, 2]"):
            run(lambda t, s=shared: layers.prelu(t, shared_axes=s), f32(2, 3, 4))
    with refused(AssertionError, "shared_axes=[1]"):
        run(lambda t: layers.prelu(t, shared_axes=1), f32(2, 3, 4))
    with refused(AssertionError, "flow.cast"):
        nn.prelu(flow.tensor(f32(2)), flow.tensor(np.ones(1)))


# --- upsampling
# ------------------------------------------------------------------------------------------------------

def test_upsample_vectors():
    x = np.array([[1, 2], [3, 4]], np.float32).reshape(1, 1, 2, 2)
    want = [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]
    np.testing.assert_array_equal(run_eagerly_and_as_job(layers.upsample_2d, x)[0, 0], want)
    line = x[:, :, :1]

    def up(**o):
        return run_eagerly_and_as_job(lambda t: layers.upsample_2d(t, (1, 2), interpolation="bilinear", **o),
                                      line).ravel()

    np.testing.assert_allclose(up(), [1, 1.25, 1.75, 2])
    np.testing.assert_allclose(up(align_corners=True), [1, 4 / 3, 5 / 3, 2], rtol=1e-6)


@pytest.mark.peer
@given(st.sampled_from([1, 2, 3, (2, 1), (1, 4), 1.5, (2.5, 0.5)]),
       st.sampled_from(["nearest", "bilinear", "corners"]), st.booleans(), st.integers(2, 5))
def test_upsampling_is_that_of_pytorch(size, how, turned, width):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(width).standard_normal((2, 3, 4, width))
    mode, corners = ("nearest", False) if how == "nearest" else ("bilinear", how == "corners")
    a, b = torch.tensor(x, requires_grad=True), flow.tensor(x, requires_grad=True)
    want = torch.nn.functional.interpolate(a, scale_factor=size, mode=mode, align_corners=corners if corners
                                           else None)
    fed = flow.transpose(b, [0, 2, 3, 1]) if turned else b
    got = layers.upsample_2d(fed, size, corners, "nhwc" if turned else "NCHW", mode)
    got = flow.transpose(got, [0, 3, 1, 2]) if turned else got
    np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-9)
    (want * want).sum().backward()
    (got * got).sum().backward()
    np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options, error, words", [
    (dict(interpolation="cubic"), ValueError, ["bilinear"]), (dict(align_corners=True), ValueError,
                                                              ["nearest"]),
    (dict(data_format="NCW"), ValueError, ["data_format"]), (dict(size=(2, 2, 2)), AssertionError, ["size"]),
    (dict(size=0), AssertionError, ["size"]), (dict(size="2"), AssertionError, ["size"])])
def test_upsampling_refuses_invalid_arguments(options, error, words):
    with refused(error, "upsample_2d", *words):
        run(lambda t: layers.upsample_2d(t, **options), f32(1, 2, 3, 3))
    with refused(AssertionError, "x has 3 axes"):
        run(layers.upsample_2d, f32(1, 2, 3))


def test_upsampling_to_nothing_is_refused():
    with refused(ValueError, "without pixels", fix=False):
        run(lambda t: layers.upsample_2d(t, 0.1), f32(1, 2, 3, 3))


# --- group and instance normalisation
# --------------------------------------------------------------------------------

def normalised(x, groups, eps):
    rows = x.astype(np.float64).reshape(x.shape[0], groups, -1)
    return ((rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + eps)).reshape(x.shape)


INSTANCE = {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d, 3: nn.InstanceNorm3d}


@given(st.integers(1, 3), st.sampled_from([1, 2, 3, 6]), st.booleans(), st.sampled_from([1e-5, 0.1]))
def test_normalisation(axes, groups, affine, eps):
    x = f32(2, 6, *[3, 4, 2][:axes]) * 3 + 1
    got = run_eagerly_and_as_job(lambda t: nn.GroupNorm(t, groups, eps, affine, name="g"), x)
    np.testing.assert_allclose(got, normalised(x, groups, eps), rtol=1e-3, atol=1e-4)
    flow.clear_default_session()
    got = run_eagerly_and_as_job(lambda t: INSTANCE[axes](t, eps, affine, name="i"), x)
    np.testing.assert_allclose(got, normalised(x, 6, eps), rtol=1e-3, atol=1e-4)


@pytest.mark.peer
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_gradients_of_group_norm(groups):
    """Gamma and beta have one element per channel, as in the paper and in PyTorch."""
    torch = pytest.importorskip("torch")
    x, weight = f32(3, 4, 2, 5), f32(3, 4, 2, 5, seed=1)

    def body(t, u):
        entry = flow.get_variable("x", x.shape, initializer=constant(x))
        return nn.GroupNorm(entry, groups, name="norm") * u + t * 0

    y, _, grads = train_one_step(body, x, weight)
    assert {n: g.shape for n, g in grads.items()} == {"x": x.shape, "norm_gamma": (1, 4, 1),
                                                      "norm_beta": (1, 4, 1)}
    a, gamma, beta = (torch.tensor(v, requires_grad=True) for v in (x, np.ones(4, np.float32),
                                                                    np.zeros(4, np.float32)))
    want = torch.nn.functional.group_norm(a, groups, gamma, beta) * torch.tensor(weight)
    want.sum().backward()
    np.testing.assert_allclose(y, want.detach().numpy(), rtol=1e-4, atol=1e-5)
    for name, tensor in (("x", a), ("norm_gamma", gamma), ("norm_beta", beta)):
        np.testing.assert_allclose(grads[name].ravel(), tensor.grad.numpy().ravel(), rtol=1e-3, atol=1e-4)


def test_unnamed_normalisations_have_variables_of_their_own_and_named_ones_share():
    x = f32(2, 4, 3)
    run(lambda t: nn.InstanceNorm1d(nn.InstanceNorm1d(t)), x)
    assert len(flow.get_all_variables()) == 4
    run(lambda t: nn.GroupNorm(t, 2, affine=False), x)
    assert not flow.get_all_variables()

    flow.clear_default_session()

    def step(t):
        flow.optimizer.SGD(constant_rate(1.0), momentum=0).minimize(nn.InstanceNorm1d(t, name="n"))
        return t

    train = job(step, x, type="train", name="train")
    predict = job(lambda t: nn.InstanceNorm1d(t, name="n"), x, name="predict")
    before = predict(x)
    train(x)
    assert sorted(n for n in flow.get_all_variables() if "System" not in n) == ["n_beta", "n_gamma"]
    np.testing.assert_allclose(predict(x), before - 1 / 4, atol=1e-5,
                               err_msg="beta moved by its mean gradient")


def test_normalisation_refuses_invalid_arguments():
    with refused(AssertionError, "GroupNorm", "three axes"):
        run(nn.GroupNorm, f32(2, 32))
    for groups in (4, 0, 2.0):
        with refused(AssertionError, "num_groups"):
            run(lambda t, g=groups: nn.GroupNorm(t, g), f32(2, 6, 3))
    for axes, norm in INSTANCE.items():
        with refused(AssertionError, f"InstanceNorm{axes}d", "axes instead of"):
            run(norm, f32(2, 6, *[3] * (axes + 1)))


# --- pixel shuffle
# ---------------------------------------------------------------------------------------------------

@given(st.integers(1, 3), st.integers(1, 3))
def test_pixel_shuffle(r, s):
    x = f32(2, 2 * r * s, 3, 4)
    got = run_eagerly_and_as_job(lambda t: nn.PixelShufflev2(t, r, s), x)
    want = np.empty((2, 2, 3 * r, 4 * s), np.float32)
    for i in range(r):
        for j in range(s):
            want[:, :, i::r, j::s] = x[:, i * s + j::r * s]
    np.testing.assert_array_equal(got, want)


@pytest.mark.peer
def test_pixel_shuffle_and_its_gradient_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    x, dy = f32(2, 8, 3, 4), f32(2, 2, 6, 8, seed=1)
    a, b = torch.tensor(x, requires_grad=True), flow.tensor(x, requires_grad=True)
    want, got = torch.nn.functional.pixel_shuffle(a, 2), nn.PixelShuffle(b, 2)
    np.testing.assert_array_equal(got.numpy(), want.detach().numpy())
    want.backward(torch.tensor(dy))
    (got * flow.tensor(dy)).sum().backward()
    np.testing.assert_array_equal(b.grad.numpy(), a.grad.numpy())


def test_pixel_shuffle_refuses_invalid_arguments():
    with refused(AssertionError, "divisible", "2 * 2"):
        run(lambda t: nn.PixelShuffle(t, 2), f32(1, 6, 2, 2))
    for factor in (0, -1, 1.5):
        with refused(AssertionError, "upscale factor"):
            run(lambda t, f=factor: nn.PixelShuffle(t, f), f32(1, 4, 2, 2))
    with refused(AssertionError, "input has 3 axes"):
        run(lambda t: nn.PixelShuffle(t, 2), f32(4, 2, 2))
