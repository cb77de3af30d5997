"""The functions of nn.functional against PyTorch's: values and gradients; what random ones promise; errors."""
import numpy as np
import pytest

import flowedu as flow
from flowedu.nn import functional as F

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from .peers import check_function  # noqa: E402

IMAGE, LINE, VOLUME = (2, 4, 7, 6), (2, 4, 9), (2, 4, 5, 6, 7)
FUNCTIONS = [
    ("F.linear(x, y, z)", (2, 3, 5), (4, 5), (4,)), ("F.linear(x, y)", (2, 5), (5,)), ("F.linear(x, y)", (5,), (4, 5)),
    ("F.bilinear(x, y, z)", (2, 3), (2, 4), (5, 3, 4)), ("F.embedding(x, y)", ("int", 5, (2, 3)), (5, 4)),
    ("F.embedding(x, y, padding_idx=1)", ("int", 3, (9,)), (5, 4)), ("F.one_hot(x)", ("int", 4, (3, 2))),
    ("F.one_hot(x, 6)", ("int", 4, (3, 2))),
    ("F.conv1d(x, y, z, 2, 1)", LINE, (6, 4, 3), (6,)), ("F.conv2d(x, y, padding='same')", IMAGE, (6, 4, 2, 3)),
    ("F.conv2d(x, y, z, (1, 2), (2, 0), (2, 1), 2)", IMAGE, (6, 2, 3, 3), (6,)),
    ("F.conv3d(x, y)", VOLUME, (2, 4, 2, 3, 1)),
    ("F.conv_transpose1d(x, y, z, stride=2)", LINE, (4, 3, 3), (3,)),
    ("F.conv_transpose2d(x, y, None, 2, 1, 1, 2)", IMAGE, (4, 3, 3, 3)),
    ("F.conv_transpose3d(x, y, z)", VOLUME, (4, 2, 2, 1, 2), (2,)),
    ("F.max_pool1d(x, 3, 1, 1)", LINE), ("F.max_pool2d(x, 2, return_indices=True)", IMAGE), ("F.max_pool3d(x, 2)", VOLUME),
    ("F.avg_pool1d(x, 3)", LINE), ("F.avg_pool2d(x, 3, 1, 1, False, False)", IMAGE), ("F.avg_pool3d(x, 2, 1)", VOLUME),
    ("F.adaptive_avg_pool1d(x, 2)", LINE), ("F.adaptive_avg_pool2d(x, (1, 1))", IMAGE),
    ("F.adaptive_max_pool2d(x, 3)", IMAGE),
    ("F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)", (2, 4, 6, 6)),
    ("F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2, output_size=(9,))", LINE),
    ("F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2)", (1, 2, 4, 4, 4)),
    ("F.batch_norm(x, y.detach(), z.detach(), u, v)", IMAGE, (4,), ("positive", (4,)), (4,), (4,)),
    ("F.batch_norm(x, None, None, training=True)", LINE), ("F.instance_norm(x, weight=y, bias=z)", IMAGE, (4,), (4,)),
    ("F.layer_norm(x, (6,), y)", IMAGE, (6,)), ("F.layer_norm(x, (7, 6), None, y)", IMAGE, (7, 6)),
    ("F.group_norm(x, 2, y, z)", IMAGE, (4,), (4,)), ("F.rms_norm(x, (6,), y)", IMAGE, (6,)),
    ("F.local_response_norm(x, 3)", IMAGE), ("F.normalize(x)", (3, 4)), ("F.normalize(x, p=1.0, dim=0)", (3, 4)),
    ("F.normalize(x, 3, dim=-1, eps=0.5)", (3, 4)),
    *[(f"F.{name}(x)", (3, 6)) for name in (
        "relu", "relu6", "selu", "silu", "mish", "hardsigmoid", "hardswish", "sigmoid", "tanh", "logsigmoid", "softsign",
        "tanhshrink", "gelu", "leaky_relu", "elu", "celu", "hardtanh", "softplus", "softshrink", "hardshrink", "softmax",
        "log_softmax", "softmin", "glu")],
    ("F.gelu(x, approximate='tanh')", (3, 6)), ("F.prelu(x, y)", LINE, (4,)), ("F.prelu(x, y)", LINE, (1,)),
    ("F.threshold(x, 0.2, -1.0)", (3, 6)), ("F.leaky_relu(x, 0.3)", (3, 6)), ("F.rrelu(x)", (3, 6)),
    ("F.softmax(x, dim=0)", (3, 6)), ("F.softmax(x.float(), dim=-2, dtype=flow.float64)", LINE),
    ("F.log_softmax(x, 1)", IMAGE),
    ("F.softmax(x, dim=0)", ()), ("F.glu(x, 0)", (4, 3)), ("F.softplus(x, 3.0, 0.5)", (3, 6)),
    ("F.dropout(x, 0.3, training=False)", (3, 6)), ("F.dropout(x, 0.0)", (3, 6)), ("F.dropout(x, 1.0)", (3, 6)),
    ("F.pad(x, (1, 2))", LINE), ("F.pad(x, (1, 2, 0, 1), 'constant', 2.5)", IMAGE), ("F.pad(x, (-1, 2))", LINE),
    ("F.pad(x, (2, 1), mode='reflect')", LINE), ("F.pad(x, (1, 1, 2, 0), mode='replicate')", IMAGE),
    ("F.pad(x, (3, 1), mode='circular')", LINE),
    ("F.interpolate(x, scale_factor=2)", IMAGE), ("F.interpolate(x, size=(3, 4), mode='bilinear')", IMAGE),
    ("F.interpolate(x, size=11, mode='linear', align_corners=True)", LINE),
    ("F.interpolate(x, size=(3, 2), mode='area')", IMAGE),
    ("F.interpolate(x, scale_factor=(1.5, 0.7), mode='bilinear', recompute_scale_factor=True)", IMAGE),
    ("F.interpolate(x, scale_factor=1.3, mode='bilinear', align_corners=False)", IMAGE),
    ("F.interpolate(x, (3, 4, 5), mode='nearest')", VOLUME),
    ("F.interpolate(x, scale_factor=2, mode='bicubic')", IMAGE), ("F.interpolate(x, (3, 11), mode='bicubic')", IMAGE),
    ("F.interpolate(x, (9, 4), mode='bicubic', align_corners=True)", IMAGE),
    ("F.interpolate(x, scale_factor=1.7, mode='nearest-exact')", IMAGE),
    ("F.interpolate(x, 4, mode='nearest-exact')", LINE),
    ("F.pixel_shuffle(x, 2)", (1, 4, 3, 3)), ("F.pixel_unshuffle(x, 2)", (3, 4, 6)), ("F.unfold(x, 3, stride=2)", IMAGE),
    ("F.fold(x, (5, 5), 3, padding=1, stride=2)", (2, 18, 9)), ("F.fold(x, (3, 3), 2)", (8, 4)),
    ("F.affine_grid(x, (2, 3, 4, 5), align_corners=False)", (2, 2, 3)),
    ("F.affine_grid(x, (2, 3, 4, 5), align_corners=True)", (2, 2, 3)),
    *[(f"F.grid_sample(x, y * 0.8, padding_mode='{p}', align_corners={c})", (2, 3, 5, 4), (2, 4, 3, 2))
      for p in ("zeros", "border", "reflection") for c in (False, True)],
    ("F.grid_sample(x, y * 0.8, mode='nearest', align_corners=False)", (2, 3, 5, 4), (2, 4, 3, 2)),
    ("F.cosine_similarity(x, y)", (4, 5), (4, 5)), ("F.cosine_similarity(x, y, dim=-1)", (2, 4, 5), (5,)),
    ("F.pairwise_distance(x, y)", (4, 5), (4, 5)), ("F.pairwise_distance(x, y, p=float('inf'))", (4, 5), (4, 5)),
    ("F.scaled_dot_product_attention(x, y, z)", (2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7)),
    ("F.scaled_dot_product_attention(x, y, z, is_causal=True)", (2, 4, 5), (2, 4, 5), (2, 4, 5)),
    ("F.scaled_dot_product_attention(x, y, z, is_causal=True)", (2, 4, 5), (2, 6, 5), (2, 6, 5)),
    ("F.scaled_dot_product_attention(x, y, z, u, scale=0.3)", (2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7), (4, 6)),
    ("F.scaled_dot_product_attention(x, y, z, u > 0.1)", (2, 4, 5), (2, 4, 5), (2, 4, 5),
     np.abs(np.random.default_rng(1).normal(size=(4, 4))) + np.eye(4)),
    ("F.scaled_dot_product_attention(x, y, z, enable_gqa=True)", (2, 4, 3, 5), (2, 2, 3, 5), (2, 2, 3, 5)),
]


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda c: f"{c[0]} {c[1]}")
def test_function(case):
    check_function(*case)


@pytest.mark.parametrize("name", ["relu", "relu6", "silu", "mish", "hardswish", "leaky_relu", "elu", "hardtanh", "selu",
                                  "celu",
                                  "hardsigmoid"])
def test_inplace_activation_writes_into_the_input(name):
    a = np.linspace(-3, 3, 7, dtype=np.float32)
    x, peer = flow.tensor(a), torch.tensor(a)
    y = getattr(F, name)(x, inplace=True)
    assert y is x
    np.testing.assert_allclose(x.numpy(), getattr(torch.nn.functional, name)(peer, inplace=True).numpy(), rtol=1e-6,
                               atol=1e-6)


def test_float16_activations_and_pools():
    a = np.random.default_rng(0).normal(size=(2, 4, 6, 6)).astype(np.float16)
    for text in ("F.relu(x)", "F.gelu(x)", "F.softmax(x, 1)", "F.leaky_relu(x, 0.2)", "F.max_pool2d(x, 2)",
                 "F.avg_pool2d(x, 2)",
                 "F.silu(x)"):
        got = eval(text, {"F": F, "x": flow.tensor(a)})
        want = eval(text, {"F": torch.nn.functional, "x": torch.tensor(a)})
        assert got.dtype is flow.float16
        np.testing.assert_allclose(got.numpy().astype(np.float32), want.numpy().astype(np.float32), rtol=2e-3, atol=2e-3)


# ---- random ones
def test_dropout_keeps_the_mean_and_scales():
    flow.manual_seed(3)
    x = flow.ones(200, 300)
    x.requires_grad = True
    y = F.dropout(x, 0.25)
    values = y.detach().numpy()
    assert set(np.unique(values)) == {0.0, np.float32(1 / 0.75)}
    assert abs((values == 0).mean() - 0.25) < 0.01
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values)
    flow.manual_seed(3)
    np.testing.assert_array_equal(F.dropout(x, 0.25).detach().numpy(), values)
    assert not np.array_equal(F.dropout(x, 0.25).detach().numpy(), values)


@pytest.mark.parametrize(("f", "shape"), [(F.dropout1d, (40, 50, 3)), (F.dropout2d, (40, 50, 2, 3)),
                                          (F.dropout3d, (40, 50, 2, 1, 2)), (F.dropout2d, (40, 50, 3))])
def test_dropout_of_channels(f, shape):
    flow.manual_seed(0)
    y = f(flow.ones(*shape), 0.5).numpy().reshape(40, 50, -1)
    assert (y == y[:, :, :1]).all()
    assert abs((y[:, :, 0] == 0).mean() - 0.5) < 0.05


def test_alpha_dropout_keeps_mean_and_variance():
    flow.manual_seed(0)
    y = F.alpha_dropout(flow.randn(400, 500), 0.3, training=True).numpy()
    assert abs(y.mean()) < 0.02
    assert abs(y.std() - 1) < 0.02


def test_rrelu_draws_slopes():
    flow.manual_seed(0)
    y = F.rrelu(flow.full((1000,), -1.0), 0.1, 0.3, training=True).numpy()
    assert -0.3 <= y.min() < -0.25
    assert -0.15 < y.max() <= -0.1


def test_gumbel_softmax():
    flow.manual_seed(0)
    logits = flow.tensor(np.log(np.array([[0.1, 0.2, 0.7]], np.float32).repeat(4000, 0)), requires_grad=True)
    hard = F.gumbel_softmax(logits, hard=True)
    values = hard.detach().numpy()
    np.testing.assert_allclose(values.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(values.mean(0), [0.1, 0.2, 0.7], atol=0.03)
    hard.sum().backward()
    assert logits.grad is not None
    soft = F.gumbel_softmax(logits, tau=5.0).detach().numpy()
    np.testing.assert_allclose(soft.sum(1), 1, rtol=1e-5)


def test_attention_drops_weights():
    flow.manual_seed(0)
    q, eye = flow.zeros(1, 200, 4), flow.eye(200).reshape(1, 200, 200)
    y = F.scaled_dot_product_attention(q, q, eye, dropout_p=0.5).numpy()
    assert abs((y == 0).mean() - 0.5) < 0.02


# ---- errors
X = np.zeros((2, 3, 5, 5), np.float32)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: F.linear(flow.ones(2, 3), flow.ones(4, 5)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 "
                                                                       "and 5x4)"),
    (lambda: F.linear(flow.ones(2, 3), flow.ones(4, 3).double()), RuntimeError, "same dtype"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 2, 3, 3)), RuntimeError, "to have 2 channels, but got 3 channels "
                                                                            "instead"),
    (lambda: F.conv2d(flow.ones(5, 5), flow.ones(4, 2, 3, 3)), RuntimeError, "Expected 3D (unbatched) or 4D"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 3, 7, 7)), RuntimeError, "Kernel size can't be greater"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 3, 3, 3), padding="same", stride=2), RuntimeError, "strided"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 3, 3, 3), padding="full"), RuntimeError, "Invalid padding string"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 3, 3, 3), stride=0), RuntimeError, "stride is not right"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 3, 3, 3).double()), RuntimeError, "should be the same"),
    (lambda: F.conv_transpose2d(flow.tensor(X), flow.ones(3, 4, 3, 3), output_padding=1), RuntimeError, "output padding "
                                                                                                        "must be"),
    (lambda: F.max_pool2d(flow.tensor(X), 2, padding=2), RuntimeError, "pad should be at most half"),
    (lambda: F.max_pool2d(flow.tensor(X), 9), RuntimeError, "Output size is too small"),
    (lambda: F.embedding(flow.tensor([0, 7]), flow.ones(5, 2)), IndexError, "embedding: index out of range"),
    (lambda: F.embedding(flow.tensor([0.0]), flow.ones(5, 2)), RuntimeError, "not whole numbers"),
    (lambda: F.softmax(flow.ones(2, 3), 2), IndexError, "Dimension out of range"),
    (lambda: F.softmax(flow.tensor([1, 2]), 0), RuntimeError, "not implemented"),
    (lambda: F.batch_norm(flow.ones(1, 3), None, None, training=True), ValueError,
     "Expected more than 1 value per channel"),
    (lambda: F.batch_norm(flow.ones(2, 3), flow.ones(4), flow.ones(4)), RuntimeError, "running_mean should contain 3 "
                                                                                      "elements"),
    (lambda: F.batch_norm(flow.ones(2, 3)), RuntimeError, "training=False"),
    (lambda: F.layer_norm(flow.ones(2, 3), (4,)), RuntimeError, "Given normalized_shape=(4,), expected input with shape "
                                                                "[*, 4]"),
    (lambda: F.group_norm(flow.ones(2, 3), 2), RuntimeError, "divisible by num_groups"),
    (lambda: F.dropout(flow.ones(2), 1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
    (lambda: F.glu(flow.ones(3)), RuntimeError, "Halving dimension must be even"),
    (lambda: F.interpolate(flow.tensor(X), size=3, scale_factor=2), ValueError, "only one of size or scale_factor"),
    (lambda: F.interpolate(flow.tensor(X), 3, mode="linear"), RuntimeError, "does not fit"),
    (lambda: F.interpolate(flow.tensor(X), 3, mode="bilinear", antialias=True), NotImplementedError, "antialias"),
    (lambda: F.linear([1.0], flow.ones(1, 1)), TypeError, "linear: input is not a tensor"),
    (lambda: F.conv2d([1.0], flow.ones(1, 1, 1, 1)), TypeError, "conv2d: input is not a tensor"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 3, 3, 3), flow.ones(3)), RuntimeError, "the bias does not fit"),
    (lambda: F.pixel_shuffle(flow.tensor(X), 2), RuntimeError, "divisible by the square"),
    (lambda: F.gelu(flow.ones(2), "sigmoid"), RuntimeError, "none or tanh"),
    (lambda: F.relu([1.0]), TypeError, "not a tensor"),
    (lambda: F.prelu(flow.ones(2, 3), flow.ones(2)), RuntimeError, "Mismatch of parameter numbers"),
    (lambda: F.scaled_dot_product_attention(*[flow.ones(2, 2)] * 4, is_causal=True), RuntimeError, "should not be set"),
])
def test_error(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
