"""flow.math.reduce_* over any axes of any array against NumPy; a scalar result has shape (1,) instead of
().
"""
import itertools
import warnings

import numpy as np
import pytest

import flowedu as flow
from common import f32, fresh_session, job, refused, run  # noqa: F401
from flowedu.errors import CheckError, DTypeError, ShapeError


def mask(f):
    return lambda a, **axes: f(a, **axes).astype(np.int8)


def logsumexp(a, **axes):
    return np.log(np.exp(a).sum(**axes))


REFERENCE = {
    "sum": np.sum, "mean": np.mean, "min": np.min, "max": np.max, "prod": np.prod, "std": np.std,
    "variance": np.var,
    "any": mask(np.any), "all": mask(np.all),
    "euclidean_norm": lambda a, **axes: np.sqrt((a * a).sum(**axes)), "logsumexp": logsumexp}
FLOATS_ONLY = ("euclidean_norm", "logsumexp")
FLOATS = ("mean", "std", "variance")                   # also of integers
SHAPES = [(), (1,), (5,), (2, 3), (3, 1, 4)]


def function(name):
    return getattr(flow.math, f"reduce_{name}")


def axes_of(rank):
    """Return every way to specify axes."""
    sets = [list(c) for n in range(rank + 1) for c in itertools.combinations(range(rank), n)]
    return [None, *range(-rank, rank), *sets, *map(tuple, sets), [i - rank for i in reversed(range(rank))]]


def wanted(name, a, axis, keepdims):
    y = np.asarray(REFERENCE[name](a, axis=tuple(axis) if isinstance(axis, list) else axis,
                                   keepdims=keepdims))
    return y.reshape(y.shape or (1,))


def cases(name):
    """Yield (array, axis, keepdims) cases."""
    kinds = "float32 float64" if name in FLOATS_ONLY else "float32 float64 int32 int64"
    for dtype in kinds.split() + (["int8", "uint8", "bool"] if name in ("any", "all") else []):
        for shape in SHAPES:
            a = np.random.default_rng(len(shape)).integers(0, 3, shape).astype(dtype)
            yield from itertools.product([a], axes_of(a.ndim), (False, True))


def assert_same_reduction(name, got, want, a, axis):
    assert got.shape == want.shape
    # over no axes the result is the input, as in OneFlow
    itself = name == "mean" and a.ndim and axis in ([], ())
    real = name in FLOATS and a.dtype.kind == "i" and not itself
    assert got.dtype == (np.int8 if name in ("any", "all") else np.float32 if real else a.dtype)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", REFERENCE)
def test_reductions_equal_numpys_for_every_axis_shape_and_dtype(name):
    for a, axis, keepdims in cases(name):
        got = function(name)(flow.from_numpy(a), axis, keepdims).numpy()
        assert_same_reduction(name, got, wanted(name, a, axis, keepdims), a, axis)


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("name", REFERENCE)
def test_reductions_in_jobs_equal_numpys(name, devices):
    for dtype in ("float32", "float64", *(() if name in FLOATS_ONLY else ("int32",))):
        a = np.random.default_rng(0).integers(0, 3, (5, 2, 3)).astype(dtype)
        for axis, keepdims in [(None, False), (0, False), ([0, -1], True), ([], False), ((1, 2), False)]:
            def body(x, axis=axis, keepdims=keepdims):
                return function(name)(x, axis, keepdims)

            flow.clear_default_session()
            flow.config.cpu_device_num(devices)
            got = job(body, a)(a)
            assert_same_reduction(name, got, wanted(name, a, axis, keepdims), a, axis)


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_reductions_of_empty_arrays(name, shape):
    """Sums are 0, products 1, means nan; max and min raise."""
    a = np.zeros(shape, np.float32)
    for axis in axes_of(len(shape)):
        over = axis if isinstance(axis, (list, tuple)) else range(len(shape)) if axis is None else [axis]
        if (name in ("min", "max", "logsumexp") and any(shape[i] == 0 for i in over)
            and np.sum(a, axis=tuple(over)).size):
            with refused(ShapeError, "zero elements"):
                function(name)(flow.from_numpy(a), axis)
            continue
        with warnings.catch_warnings(action="ignore"):                     # NumPy warns about empty means
            want = np.zeros(np.sum(a, axis=tuple(over)).shape, np.float32) if name in ("min", "max") else \
                wanted(name, a, axis, False)
        assert_same_reduction(name, function(name)(flow.from_numpy(a), axis, False).numpy(), want, a, axis)


def test_reductions_propagate_nan_and_infinity():
    a = np.array([[np.nan, 1], [np.inf, 1], [-np.inf, -np.inf], [np.inf, -np.inf], [1000, 1000]], np.float32)
    with np.errstate(all="ignore"):
        want = {n: wanted(n, a, 1, False) for n in REFERENCE}
    # logsumexp does not overflow
    want["logsumexp"] = np.array([np.nan, np.inf, -np.inf, np.inf, 1000 + np.log(2)], np.float32)
    want["std"][4], want["variance"][4] = 0, 0
    for name in REFERENCE:
        for got in (function(name)(flow.tensor(a), 1).numpy(), run(lambda x, n=name: function(n)(x, 1), a)):
            np.testing.assert_allclose(got, want[name], rtol=1e-6, err_msg=name)


def test_a_variance_does_not_cancel():
    """Computing E[x^2] - E[x]^2 would lose the result to cancellation."""
    x = f32(1000) + 1e4
    np.testing.assert_allclose(flow.math.reduce_variance(flow.tensor(x)).numpy(), [x.astype(float).var()],
                               rtol=1e-3)


@pytest.mark.parametrize("name", [n for n in REFERENCE if n not in ("any", "all")])
def test_gradients_of_reductions_equal_pytorchs(name):
    """Compare with PyTorch, except for ties of min and max."""
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).permutation(24).reshape(2, 3, 4) / 8 + 0.1
    t = torch.tensor(x, requires_grad=True)
    mine = flow.tensor(x, requires_grad=True)
    for axis in (1, (0, 2)):
        theirs = {"min": torch.amin, "max": torch.amax, "variance": lambda a, d: a.var(d, unbiased=False),
                  "std": lambda a, d: a.std(d, unbiased=False),
                  "euclidean_norm": lambda a, d: a.square().sum(d).sqrt(),
                  "prod": lambda a, d: a.prod(d) if isinstance(d, int) else a.prod(2).prod(0)}
        y = theirs.get(name, getattr(torch, name, None))(t, axis)
        weights = np.cos(np.arange(y.numel())).reshape(tuple(y.shape))
        want, = torch.autograd.grad((y * torch.tensor(weights)).sum(), t)
        got, = flow.grad((function(name)(mine, axis) * flow.tensor(weights)).sum(), [mine])
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("axis", [2, -3, [0, 2], 1.0, True, "0", [None], [[0]]])
def test_invalid_axes_are_refused(axis):
    x = flow.tensor(f32(2, 3))
    for name in REFERENCE:
        with refused(CheckError, f"math.reduce_{name}: axis is out of range"):
            function(name)(x, axis)


def test_numpy_integers_are_valid_axes():
    x = f32(2, 3)
    np.testing.assert_allclose(flow.math.reduce_sum(flow.tensor(x), np.int64(1)).numpy(), x.sum(1), rtol=1e-6)


def test_masks_are_counted_as_another_type():
    x = flow.tensor(np.ones(300, np.int8))
    with refused(DTypeError, "sum", "int8", "flow.cast"):
        flow.math.reduce_sum(x)
    assert flow.math.reduce_sum(flow.cast(x, flow.int32)).numpy() == [300]
