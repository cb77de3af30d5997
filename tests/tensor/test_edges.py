"""Expected values at the edges of functions: poles, NaN, infinities, ties, 0-dim and empty tensors, narrow
dtypes whose intermediate results must not wrap, and rare arguments.
"""
import numpy as np
import pytest

import flowedu as flow

F = flow.nn.functional
nan, inf = float("nan"), float("inf")
t, i64 = flow.tensor, flow.int64


def u8(*x):
    return t(x, dtype=flow.uint8)


def i8(*x):
    return t(x, dtype=flow.int8)


M = t([[1.0, 2.0], [3.0, 4.0]])
LINE = t(np.arange(6.0).reshape(1, 1, 6))
# name -> (call, dtype, values)
VALUES = {
    "digamma at its poles": (lambda: flow.digamma(t([-1.0, -2.0, 0.0, -0.0, inf])), "float32",
                             [nan, nan, -inf, inf, inf]),
    "digamma of whole numbers": (lambda: flow.digamma(t([-1, -7])), "float32", [nan, nan]),
    "argmax of a number": (lambda: t(3.0).argmax(dim=0, keepdim=True), "int64", 0),
    "argmin of a number": (lambda: t(3.0).argmin(keepdim=True), "int64", 0),
    "the inverse of unique_consecutive": (lambda: flow.unique_consecutive(t(1.0), return_inverse=True)[1],
                                          "int64", 0),
    "relu6 of whole numbers": (lambda: F.relu6(t([-1, 3, 9])), "int64", [0, 3, 6]),
    "hardtanh of whole numbers": (lambda: F.hardtanh(t([-3, 0, 9])), "int64", [-1, 0, 1]),
    "hinge of other targets": (lambda: F.hinge_embedding_loss(t([1.0, 0.25, 3.0]), t([1.0, 0.0, -1.0]),
                                                              reduction="none"),
                               "float32", [1, 0.25 + 0.75, 0]),
    "addmv with a fraction": (lambda: flow.addmv(t([10, 20]), t([[1, 2], [3, 4]]), t([1, 1]), beta=0.2),
                              "int64", [3, 7]),
    "addbmm with a fraction": (lambda: flow.addbmm(t([[10]]), t([[[2]]]), t([[[3]]]), beta=1.9), "int64",
                               [[16]]),
    "addr of bools": (lambda: flow.addr(t([[True, False]]), t([True]), t([False, True]), beta=3, alpha=2),
                      "bool", [[1, 1]]),
    "add of bools": (lambda: flow.add(t([True, False]), t([True, True]), alpha=7), "bool", [1, 1]),
    "add of a number": (lambda: flow.add(t(1.0, dtype=flow.float64), i8(1, 2), alpha=0.5), "float64",
                        [1.5, 2]),
    "addcmul": (lambda: flow.addcmul(i8(1, 2), i8(100, 100), i8(1, 1).long(), value=3), "int64", [301, 302]),
    "arange of whole": (lambda: flow.arange(1.0, 5.000001, 2.0, dtype=i64), "int64", [1, 3]),
    "arange of cut": (lambda: flow.arange(1.7, 5.2, 1.5, dtype=i64), "int64", [1, 2, 3, 4]),
    "linspace of whole": (lambda: flow.linspace(1.7, 9.9, 7, dtype=i64), "int64", [1, 2, 3, 5, 6, 7, 9]),
    "logspace of whole": (lambda: flow.logspace(0, 3, 4, dtype=i64), "int64", [1, 10, 100, 1000]),
    "logspace of cut": (lambda: flow.logspace(0.7, 3.2, 5, base=2, dtype=i64), "int64", [1, 1, 2, 4, 8]),
    "hypot of int8": (lambda: flow.hypot(i8(67, -86), t([1.0, 0.0])), "float32", [np.hypot(67, 1), 86]),
    "hypot of the large": (lambda: flow.hypot(t([1e30, inf, 0.0]), t([1e30, 1.0, -0.0])), "float32",
                           [2 ** 0.5 * 1e30, inf, 0]),
    "logit of uint8": (lambda: flow.logit(u8(0, 5)), "float32", [-inf, nan]),
    "logaddexp of uint8": (lambda: flow.logaddexp(u8(3), u8(5)), "float32", [np.logaddexp(3, 5)]),
    "threshold of nan": (lambda: F.threshold(t([nan, 1.0, 0.0]), 0.5, 2.0), "float32", [nan, 1, 2]),
    "hardshrink of nan": (lambda: F.hardshrink(t([nan, 1.0, 0.5])), "float32", [nan, 1, 0]),
    "softmax in another dtype": (lambda: t([0, 0]).softmax(0, dtype=flow.float64), "float64", [0.5, 0.5]),
    "log_softmax in another dtype": (lambda: t([0, 0]).log_softmax(0, flow.float64), "float64",
                                     [-np.log(2)] * 2),
    "reflect, cut off": (lambda: F.pad(LINE, (-1, 2), mode="reflect"), "float64", [[[1, 2, 3, 4, 5, 4, 3]]]),
    "replicate, cut off": (lambda: F.pad(LINE, (2, -3), mode="replicate"), "float64", [[[0, 0, 0, 1, 2]]]),
    "circular, cut off": (lambda: F.pad(LINE, (-1, 2), mode="circular"), "float64",
                          [[[1, 2, 3, 4, 5, 1, 2]]]),
    "circular, cut off behind": (lambda: F.pad(LINE, (2, -3), mode="circular"), "float64",
                                 [[[1, 2, 0, 1, 2]]]),
    "cosine similarity of numbers": (lambda: F.cosine_similarity(t(2.0), t(-3.0), dim=0), "float32", -1),
    "a quantile of a number": (lambda: flow.quantile(t(2.0), t([0.5, 0.2]), dim=0, keepdim=True), "float32",
                               [2, 2]),
    "diff with ends": (lambda: flow.diff(t([1, 4, 9]), 1, 0, t([0]), t([10])), "int64", [1, 3, 5, 1]),
    "searchsorted of the unsorted": (lambda: flow.searchsorted(t([3.0, 1.0, 2.0]), t([2.5, 0.0]),
                                                               sorter=t([1, 2, 0])),
                                     "int64", [2, 0]),
    "tensordot that stretches": (lambda: flow.tensordot(flow.ones(1, 3, 2), flow.full((2, 4, 5), 2.0),
                                                        ([0, 2], [1, 0])),
                                 "float32", np.full((3, 5), 16.0)),
    "take_along_dim from the end": (lambda: flow.take_along_dim(t([[1.0, 2.0, 3.0]]), t([[-1, 0]]), 1),
                                    "float32", [[3, 1]]),
    "take_along_dim of all": (lambda: flow.take_along_dim(M, t([-1, 0])), "float32", [4, 1]),
    "index_fill from the end": (lambda: flow.index_fill(M, 1, t([-1]), 9.0), "float32", [[1, 9], [3, 9]]),
    "a split at a tensor": (lambda: flow.tensor_split(flow.arange(7), t([2, 3]))[1], "int64", [2]),
    "a split by a tensor": (lambda: flow.tensor_split(flow.arange(7), t(3))[0], "int64", [0, 1, 2]),
    "full of bools": (lambda: flow.full_like(t([True]), -1), "bool", [1]),
    "trapezoid along another axis": (lambda: flow.trapezoid(t([[0.0, 0.0], [1.0, 1.0]]),
                                                            t([[0.0, 0.0], [5.0, 3.0]]),
                                                            dim=0), "float32", [2.5, 1.5]),
    "trapezoid at places": (lambda: flow.trapezoid(t([[0.0, 0.0], [1.0, 1.0]]), t([0.0, 4.0]), dim=0),
                            "float32", [2, 2]),
    "batch norm of nothing": (lambda: F.batch_norm(flow.ones(0, 3, 2), flow.zeros(3), flow.ones(3),
                                                   training=True),
                              "float32", np.zeros((0, 3, 2))),
    "batch norm without channels": (lambda: F.batch_norm(flow.ones(2, 0), flow.zeros(0), flow.ones(0),
                                                         training=True),
                                    "float32", np.zeros((2, 0))),
    "group norm of nothing": (lambda: F.group_norm(flow.ones(0, 2), 1), "float32", np.zeros((0, 2))),
    "tril_indices with a device": (lambda: flow.tril_indices(2, 2, device="cpu"), "int64",
                                   [[0, 1, 1], [0, 0, 1]]),
    "a number where True": (lambda: t(3.0)[t(True)], "float32", [3]),
    "rows where False": (lambda: M[t(False)], "float32", np.zeros((0, 2, 2))),
    "a column where True": (lambda: M[t(True), 1], "float32", [[3, 4]]),
    "unique nans": (lambda: flow.unique(t([nan, nan, 1.0])), "float32", [1, nan, nan]),
    "places of unique nans": (lambda: flow.unique(t([nan, nan, 1.0]), return_inverse=True)[1], "int64",
                              [1, 2, 0]),
    "the place of a number": (lambda: flow.unique(t(5), return_inverse=True)[1], "int64", 0),
    "cdist with its mode": (lambda: flow.cdist(M, M * 0, compute_mode="donot_use_mm_for_euclid_dist"),
                            "float32", [[5 ** 0.5] * 2, [5.0] * 2]),
}


@pytest.mark.parametrize("correction", [0, 1, 1.5, 2, 3, 4, 7])
@pytest.mark.parametrize("values", [[], [2.0], [1.0, 2.0], [3.0, 3.0, 3.0], [1.0, 2.0, 4.0]])
def test_variance_divides_by_the_corrected_count(values, correction):
    """The divisor may be zero: the result is infinite, or NaN if all elements are equal."""
    gaps = np.array(values) - np.mean(values) if values else np.zeros(0)
    with np.errstate(all="ignore"):
        want = np.float64(np.sum(gaps ** 2)) / np.float64(max(len(values) - correction, 0))
    x = t(values, dtype=flow.float64)
    np.testing.assert_allclose(flow.var(x, correction=correction).item(), want, rtol=1e-12)
    np.testing.assert_allclose(flow.std(x, correction=correction).item(), np.sqrt(want), rtol=1e-12)


def test_masks_of_no_axes_are_written():
    x = t([[1.0, 2.0], [3.0, 4.0]])
    x[t(False)] = 9.0
    assert x.tolist() == [[1, 2], [3, 4]]
    x[t(True)] = 7.0
    assert x.tolist() == [[7, 7], [7, 7]]


@pytest.mark.parametrize("what", VALUES)
def test_values_at_edges_are_as_listed(what):
    call, dtype, want = VALUES[what]
    got = call()
    assert got.dtype is getattr(flow, dtype)
    assert tuple(got.shape) == np.shape(want)
    np.testing.assert_allclose(got.numpy().astype(float), np.asarray(want, float), rtol=1e-6)


# name -> (function, inputs, gradients)
SLOPES = {
    "0 ** 0": (lambda x, y: x ** y, [[0.0, 0.0, 2.0], [0.0, 1.0, 0.0]], [[0, 1, 0], [0, 0, np.log(2)]]),
    "inf ** 0": (lambda x, y: x ** y, [[inf], [0.0]], [[0], [inf]]),
    "x ** 0.0": (lambda x: x ** 0.0, [[0.0, 3.0]], [[0, 0]]),
    "xlogy at 0": (flow.xlogy, [[0.0, 0.0, 2.0], [0.0, -1.0, 0.5]], [[0, 0, np.log(0.5)], [0, 0, 4]]),
    "atan2 at 0": (flow.atan2, [[0.0, 1.0], [0.0, 1.0]], [[0, 0.5], [0, -0.5]]),
    "hypot at 0": (flow.hypot, [[0.0, 3.0, 1.0], [0.0, 4.0, 1.0]], [[0, 0.6, 0.5 ** 0.5],
                                                                    [0, 0.8, 0.5 ** 0.5]]),
    "norm of zeros, -1": (lambda x: flow.linalg.norm(x, -1), [[0.0, 0.0]], [[0, 0]]),
    "norm with a zero, 0.5": (lambda x: flow.linalg.norm(x, 0.5), [[0.0, 4.0]], [[0, 1]]),
    "norm of zeros": (lambda x: flow.linalg.norm(x), [[0.0, 0.0]], [[0, 0]]),
    "matrix_power 0": (lambda x: flow.linalg.matrix_power(x, 0), [[[inf, 2.0], [3.0, 4.0]]],
                       [[[0, 0], [0, 0]]]),
    "hardshrink at its ends": (F.hardshrink, [[0.5, -0.5, 0.6]], [[0, 0, 1]]),
}


@pytest.mark.parametrize("what", SLOPES)
def test_slopes_at_edges_are_as_listed(what):
    f, inputs, want = SLOPES[what]
    leaves = [t(x, dtype=flow.float64, requires_grad=True) for x in inputs]
    f(*leaves).sum().backward()
    for leaf, w in zip(leaves, want, strict=True):
        np.testing.assert_allclose(leaf.grad.numpy(), w, rtol=1e-12)


@pytest.mark.parametrize("make", [lambda **k: flow.nn.BatchNorm1d(3, **k),
                                  lambda **k: flow.nn.BatchNorm2d(3, **k),
                                  lambda **k: flow.nn.BatchNorm3d(3, **k),
                                  lambda **k: flow.nn.GroupNorm(1, 3, **k),
                                  lambda **k: flow.nn.InstanceNorm2d(3, affine=True, **k)])
def test_norms_without_bias(make):
    m = make(bias=False)
    assert m.bias is None and "bias" not in m.state_dict() and m.weight.tolist() == [1, 1, 1]
    assert make().bias.tolist() == [0, 0, 0]
    x = flow.randn(*{"BatchNorm1d": (4, 3), "BatchNorm3d": (4, 3, 2, 2,
                                                            2)}.get(type(m).__name__, (4, 3, 2, 2)))
    np.testing.assert_allclose(m(x).detach().numpy(), make()(x).detach().numpy(), rtol=1e-6, atol=1e-6)
