"""Corners and ends of formulas: slopes at clip points, ties, zeros, extreme inputs; and options that only
affect gradients or parameters.
"""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.nn import functional as F

from .formulas.table import Draw

few = settings(max_examples=max(8, settings().max_examples // 3))

# name, options, [(x, slope)]: as in PyTorch and OneFlow
SLOPES = [
    ("relu", {}, [(0, 0)]), ("relu6", {}, [(0, 0), (6, 0)]), ("hardsigmoid", {}, [(-3, 0), (3, 0)]),
    ("hardswish", {}, [(-3, 0), (3, 1)]), ("hardtanh", {}, [(-1, 0), (1, 0)]),
    ("hardtanh", {"min_val": 0.0, "max_val": 2.0}, [(0, 0), (2, 0)]), ("leaky_relu", {"negative_slope": 0.3},
                                                                       [(0, 0.3)]),
    ("elu", {"alpha": 2.0}, [(0, 2)]), ("celu", {"alpha": 2.0}, [(0, 1)]), ("selu", {},
                                                                            [(0, 1.7580993408473766)]),
    ("rrelu", {"lower": 0.2, "upper": 0.4}, [(0, 0.3)]), ("softshrink", {}, [(-0.5, 0), (0.5, 0)]),
    ("hardshrink", {}, [(-0.5, 0), (0.5, 0)]), ("threshold", {"threshold": 1.0, "value": 5.0}, [(1, 0)]),
    ("softsign", {}, [(0, 1)]),
]


def gradient_of_sum(f, x, dtype=np.float64):
    """Return the gradient of the sum of f(x)."""
    x = flow.tensor(np.asarray(x, dtype), requires_grad=True)
    f(x).sum().backward()
    return x.grad.numpy()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", SLOPES, ids=lambda c: c[0])
def test_slope_at_a_corner(case, dtype):
    name, options, points = case
    got = gradient_of_sum(lambda x: getattr(F, name)(x, **options), [x for x, _ in points], dtype)
    np.testing.assert_allclose(got, [s for _, s in points], rtol=1e-6)


@pytest.mark.parametrize(("loss", "want"), [
    (lambda x: F.l1_loss(x, x.detach()), [0, 0]),
    (lambda x: F.smooth_l1_loss(x, x.detach(), beta=0.0), [0, 0]),
    (lambda x: F.huber_loss(x, x.detach() - 1), [0.5, 0.5]),
    (lambda x: F.margin_ranking_loss(x, x.detach(), flow.tensor([1.0, -1.0])), [-0.5, 0.5]),
    (lambda x: F.hinge_embedding_loss(x, -flow.ones(2), margin=1.0), [-0.5, 0]),
    (lambda x: F.pairwise_distance(x, x.detach(), eps=0.0), [0, 0]),
    (lambda x: F.pairwise_distance(x, x.detach(), 3.0, eps=0.0), [0, 0]),
    (lambda x: F.triplet_margin_loss(x, x.detach(), x.detach() - 1, margin=2.0, eps=0.0), [-0.5 ** 0.5] * 2),
], ids=range(8))
def test_slope_of_a_loss_at_a_corner(loss, want):
    np.testing.assert_allclose(gradient_of_sum(loss, [1.0, 2.0], np.float32), want, rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_ties_choose_the_first_element(n):
    first = np.zeros((1, 2, 2, 3, 4)[:2 + n])
    whole = first.shape[2:]
    first[(0, slice(None), *(0,) * n)] = 1
    np.testing.assert_array_equal(gradient_of_sum(lambda x: getattr(F, f"adaptive_max_pool{n}d")(x, 1),
                                                  first * 0), first)
    np.testing.assert_array_equal(gradient_of_sum(lambda x: getattr(F, f"max_pool{n}d")(x, whole), first * 0),
                                  first)


# ---- extreme inputs
def test_huge_logits():
    x = flow.tensor([[1e4, 0.0], [0.0, 1e4]], requires_grad=True)
    loss = F.cross_entropy(x, flow.tensor([0, 0]))
    assert float(loss) == 5000.0
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0, 0], [-0.5, 0.5]])


def test_the_mean_loss_of_no_elements_is_nan():
    x, ignored = flow.randn(2, 3), flow.tensor([-100, -100])
    for f in (F.cross_entropy, F.nll_loss):
        assert np.isnan(float(f(x, ignored)))
        assert float(f(x, ignored, reduction="sum")) == 0
    for f in (F.mse_loss, F.l1_loss):
        assert (np.isnan(float(f(flow.zeros(0, 3), flow.zeros(0, 3)))) and f(flow.zeros(0), flow.zeros(0),
                                                                             "sum").item() == 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_certain_probabilities(dtype):
    """Logarithms are clamped at -100, and slopes are finite: sigmoid returns exactly 1 from 17 on."""
    p, t = np.array([0, 1, 0, 1], dtype), flow.tensor(np.array([1, 0, 0, 1], dtype))
    np.testing.assert_array_equal(F.binary_cross_entropy(flow.tensor(p), t, reduction="none").numpy(),
                                  [100, 100, 0, 0])
    np.testing.assert_allclose(gradient_of_sum(lambda x: F.binary_cross_entropy(x, t), p, dtype),
                               [-2.5e11, 2.5e11, 0, 0], rtol=1e-6)
    x = np.array([40.0, -800.0, 0.0], dtype)
    got = gradient_of_sum(lambda x: F.binary_cross_entropy(F.sigmoid(x),
                                                           flow.tensor(np.array([1, 0, 1], dtype))), x, dtype)
    np.testing.assert_allclose(got, [0, 0, -1 / 6], atol=1e-6)
    got = gradient_of_sum(
        lambda x: F.binary_cross_entropy_with_logits(x, flow.tensor(np.array([0, 1, 1], dtype))), x, dtype)
    np.testing.assert_allclose(got, [1 / 3, -1 / 3, -1 / 6], rtol=1e-6)


def test_extreme_arguments_of_smooth_functions():
    x = np.array([-1e4, -200.0, 200.0, 1e4])
    for name, want in (("softplus", [0, 0, 200, 1e4]), ("logsigmoid", [-1e4, -200, 0, 0]),
                       ("silu", [0, 0, 200, 1e4]),
                       ("mish", [0, 0, 200, 1e4]), ("sigmoid", [0, 0, 1, 1]), ("gelu", [0, 0, 200, 1e4])):
        for dtype in (np.float32, np.float64):
            y = getattr(F, name)(flow.tensor(x.astype(dtype))).numpy()
            np.testing.assert_allclose(y, want, atol=1e-30, rtol=1e-6, err_msg=name)
            assert np.isfinite(gradient_of_sum(getattr(F, name), x, dtype)).all(), name
    np.testing.assert_array_equal(F.softmax(flow.tensor(x), 0).numpy(), [0, 0, 0, 1])


def test_gaussian_nll_of_a_variance_below_eps():
    """The variance is clamped to eps, and so is its slope."""
    var = np.array([1e-9, 0.5])
    x, t = flow.ones(2).double(), flow.zeros(2).double()
    got = gradient_of_sum(lambda v: F.gaussian_nll_loss(x, t, v, eps=0.1, reduction="sum"), var)
    np.testing.assert_allclose(got, 0.5 * (1 / np.array([0.1, 0.5]) - 1 / np.array([0.1, 0.5]) ** 2))


def test_ctc_without_a_path():
    logs, targets = F.log_softmax(flow.randn(1, 1, 3), -1), flow.tensor([[1, 1]])
    assert F.ctc_loss(logs, targets, [1], [2]).item() == np.inf
    assert F.ctc_loss(logs, targets, [1], [2], zero_infinity=True).item() == 0
    x = flow.randn(1, 1, 3)
    x.requires_grad = True
    F.ctc_loss(F.log_softmax(x, -1), targets, [1], [2], zero_infinity=True).backward()
    assert not x.grad.numpy().any()


# ---- embeddings
@few
@given(data=st.data())
def test_gradient_of_an_embedding(data):
    """Each row gets the sum of its gradients; padding_idx gets none, and scale_grad_by_freq takes the
    mean.
    """
    d = Draw(data)
    rows, padding, mean = d.one_of(2, 5), d.one_of(None, 1, -1), d.one_of(True, False)
    a, index = d.floats(rows, 3), d.labels(rows, *d.shape(0, 2))
    w = d.rng.standard_normal((*index.shape, 3))
    want = np.zeros((rows, 3))
    np.add.at(want, index.ravel(), w.reshape(-1, 3))
    want = want / np.maximum(np.bincount(index.ravel(), minlength=rows), 1)[:, None] if mean else want
    if padding is not None:
        want[padding] = 0
    options = {"padding_idx": padding, "scale_grad_by_freq": mean}
    table = flow.tensor(a, requires_grad=True)
    y = F.embedding(flow.tensor(index), table, **options)
    np.testing.assert_allclose(y.detach().numpy(), a[index], rtol=1e-15)
    (y * flow.tensor(w)).sum().backward()
    np.testing.assert_allclose(table.grad.numpy(), want, rtol=1e-9, atol=1e-12)
    layer = nn.Embedding(rows, 3, **options).double()
    assert padding is None or not layer.weight.numpy()[padding].any()
    layer.weight.data.copy_(flow.tensor(a))
    (layer(flow.tensor(index)) * flow.tensor(w)).sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), want, rtol=1e-9, atol=1e-12)


@few
@given(data=st.data())
def test_embedding_rows_are_renormalized(data):
    """Used rows longer than max_norm are scaled in place."""
    d = Draw(data)
    p, limit = d.one_of(1.0, 2.0, 3.0), d.one_of(0.5, 2.0)
    a, index = d.rng.standard_normal((5, 3)), d.labels(5, 3)
    norm = (np.abs(a) ** p).sum(1, keepdims=True) ** (1 / p)
    used = np.isin(np.arange(5), index)[:, None]
    want = np.where(used & (norm > limit), a * limit / (norm + 1e-7), a)
    table = flow.tensor(a)
    y = F.embedding(flow.tensor(index), table, max_norm=limit, norm_type=p)
    np.testing.assert_allclose(table.numpy(), want, rtol=1e-9)
    np.testing.assert_allclose(y.numpy(), want[index], rtol=1e-9)
    layer = nn.Embedding(5, 3, max_norm=limit, norm_type=p, _weight=flow.tensor(a))
    np.testing.assert_allclose(layer(flow.tensor(index)).detach().numpy(), want[index], rtol=1e-9)


def test_pretrained_embeddings():
    a = flow.randn(4, 3)
    layer = nn.Embedding.from_pretrained(a, padding_idx=1)
    assert not layer.weight.requires_grad and layer.padding_idx == 1
    np.testing.assert_array_equal(layer(flow.tensor([3, 1])).numpy(), a.numpy()[[3, 1]])
    assert nn.Embedding.from_pretrained(a, freeze=False).weight.requires_grad


# ---- losses as modules
@pytest.mark.parametrize(("old", "reduction"), [({"reduce": False}, "none"), ({"size_average": False}, "sum"),
                                                ({"size_average": True, "reduce": True}, "mean"),
                                                ({"reduce": False, "size_average": False}, "none")])
def test_legacy_reduction_arguments(old, reduction):
    for kind in (nn.MSELoss, nn.CrossEntropyLoss, nn.BCEWithLogitsLoss, nn.TripletMarginLoss, nn.KLDivLoss):
        assert kind(**old).reduction == reduction


def test_weights_are_buffers():
    for loss in (nn.CrossEntropyLoss(flow.ones(2)), nn.NLLLoss(flow.ones(2)), nn.BCELoss(flow.ones(2)),
                 nn.MultiLabelSoftMarginLoss(flow.ones(2))):
        assert list(loss.state_dict()) == ["weight"] and not list(loss.parameters())
        assert loss.double().weight.dtype is flow.float64
    both = nn.BCEWithLogitsLoss(flow.ones(2), pos_weight=flow.ones(2))
    assert list(both.state_dict()) == ["weight", "pos_weight"]


# ---- size options
@few
@given(data=st.data())
def test_transposed_convolution_to_a_size(data):
    """output_size selects one of the sizes that the stride allows."""
    d = Draw(data)
    n, extra = d.one_of(1, 2, 3), d.one_of(0, 1, 2)
    make = getattr(nn, f"ConvTranspose{n}d")
    layer = make(2, 1, 3, stride=3, padding=1).double()
    x = flow.tensor(d.floats(1, 2, *(3,) * n))
    least = layer(x).shape[-1]
    other = make(2, 1, 3, stride=3, padding=1, output_padding=extra).double()
    other.load_state_dict(layer.state_dict())
    size = (least + extra,) * n
    got = layer(x, output_size=size if d.one_of(True, False) else (1, 1, *size))
    np.testing.assert_array_equal(got.detach().numpy(), other(x).detach().numpy())
    with pytest.raises(ValueError, match="valid sizes range"):
        layer(x, output_size=(least + 3,) * n)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("n", [1, 2, 3])
@few
@given(data=st.data())
def test_padding_modes_of_convolutions(mode, n, data):
    """F.pad followed by a convolution without padding."""
    d = Draw(data)
    kernel = tuple(d.one_of(1, 2, 3) for _ in range(n))
    padding = d.one_of(1, tuple(d.one_of(0, 1, 2) for _ in range(n)), "same")
    layer = getattr(nn, f"Conv{n}d")(2, 3, kernel, padding=padding, padding_mode=mode).double()
    a = d.floats(2, 2, *(d.one_of(3, 4) for _ in range(n)))
    if padding == "same":
        sides = [((k - 1) // 2, k // 2) for k in kernel]
    else:
        sides = [(p, p) for p in (padding if isinstance(padding, tuple) else (padding,) * n)]
    name = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    padded = np.pad(a, [(0, 0), (0, 0), *sides], mode=name)
    want = getattr(F, f"conv{n}d")(flow.tensor(padded), layer.weight, layer.bias)
    np.testing.assert_allclose(layer(flow.tensor(a)).detach().numpy(), want.detach().numpy(), rtol=1e-9,
                               atol=1e-12)


@pytest.mark.parametrize("n", [14, 26, 30, 49])
def test_nearest_interpolation_is_not_affected_by_rounding(n):
    """`i * n / size` may be an integer, and a ratio of floats may round below it."""
    x = flow.arange(n).double().reshape(1, 1, n)
    for size in range(1, 60):
        i = np.arange(size)
        for mode, want in (("nearest", i * n // size), ("nearest-exact", (2 * i + 1) * n // (2 * size))):
            np.testing.assert_array_equal(F.interpolate(x, size, mode=mode).numpy()[0, 0], want,
                                          err_msg=f"{mode} {size}")


def test_softmax_converts_first():
    x = flow.tensor([1, 2, 4])
    for f in (F.softmax, F.log_softmax, F.softmin):
        y = f(x, 0, dtype=flow.float64)
        assert y.dtype is flow.float64
        np.testing.assert_array_equal(y.numpy(), f(x.double(), 0).numpy())
    with pytest.warns(UserWarning, match="Implicit dimension"):
        np.testing.assert_array_equal(F.softmax(flow.ones(2, 3)).numpy(),
                                      F.softmax(flow.ones(2, 3), 1).numpy())
