"""Law: scatter_reduce equals a loop over the elements, for all reductions, with and without the old
values.
"""
import itertools

import numpy as np
import pytest

import flowedu as flow
from graph.making import run_as_graph

FOLDS = {"sum": sum, "prod": np.prod, "mean": np.mean, "amax": max, "amin": min}
DTYPES = (flow.float32, flow.float64, flow.int32, flow.int64, flow.float16, flow.bfloat16, flow.int8,
          flow.uint8)


def by_loop(x, dim, index, src, reduce, include_self):
    """Collect the values that meet in each position; positions that no index names keep their old value."""
    met = {at: [] for at in np.ndindex(*x.shape)}
    for at in np.ndindex(*index.shape):
        met[(*at[:dim], int(index[at]), *at[dim + 1:])].append(src[at])
    y = x.copy()
    for at, values in met.items():
        if values:
            whole = FOLDS[reduce]([x[at], *values] if include_self else values)
            y[at] = np.floor(whole) if x.dtype.kind in "iu" else whole
    return y


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", FOLDS)
def test_scatter_reduce_equals_a_loop(reduce, include_self, dtype):
    """Small integers, so that every dtype holds every result: products of at most four factors from 1 to
    3.
    """
    rng = np.random.default_rng(1)
    for shape, rows, dim in itertools.product([(4, 5), (5, 4)], (1, 3), (0, 1)):
        size = list(shape)
        size[dim] = rows
        index = rng.integers(0, shape[dim] - 1, size)               # no index names the last row
        x, src = rng.integers(1, 4, shape), rng.integers(1, 4, [n + 1 for n in size])
        if dtype.is_signed:
            x, src = x * rng.choice([-1, 1], x.shape), src * rng.choice([-1, 1], src.shape)
        want = by_loop(x.astype(np.float64 if dtype.is_floating_point else np.int64), dim, index, src, reduce,
                       include_self)
        given = flow.tensor(x, dtype=dtype)
        got = flow.scatter_reduce(given, dim, flow.tensor(index), flow.tensor(src, dtype=dtype), reduce,
                                  include_self=include_self)
        assert got.dtype is dtype and given.double().tolist() == x.tolist()
        # means of up to four numbers below 3 are rounded once
        bound = flow.finfo(dtype).eps * 3 if dtype.is_floating_point and reduce == "mean" else 0
        np.testing.assert_allclose(got.double().numpy(), want, rtol=0, atol=bound)
        given.scatter_reduce_(dim, flow.tensor(index), flow.tensor(src, dtype=dtype), reduce,
                              include_self=include_self)
        np.testing.assert_array_equal(given.double().numpy(), got.double().numpy())


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", FOLDS)
def test_an_empty_index_changes_nothing(reduce, include_self):
    x = flow.tensor([[1.0, 2.0], [3.0, 4.0]])
    got = flow.scatter_reduce(x, 0, flow.zeros(0, 2, dtype=flow.int64), flow.zeros(0, 2), reduce,
                              include_self=include_self)
    assert got.tolist() == x.tolist()


@pytest.mark.parametrize("reduce, neutral", [("amax", -1e30), ("amin", 1e30), ("sum", 5.0), ("prod", 5.0),
                                             ("mean", 5.0)])
def test_include_self_false_ignores_the_old_value(reduce, neutral):
    """Old values include infinity and NaN."""
    for old in (neutral, np.inf, -np.inf, np.nan):
        x = flow.tensor([old, 7.0])
        assert flow.scatter_reduce(x, 0, flow.tensor([0]), flow.tensor([2.0]), reduce,
                                   include_self=False).tolist() == [2.0, 7.0]


@pytest.mark.parametrize("reduce", ["amax", "amin", "prod", "mean", "sum"])
def test_nan_propagates(reduce):
    x = flow.tensor([1.0, 2.0])
    got = flow.scatter_reduce(x, 0, flow.tensor([1, 1, 0]), flow.tensor([np.nan, 3.0, 5.0]), reduce)
    assert np.isnan(got.numpy()).tolist() == [False, True]


def test_gradients_of_sums():
    """Only positions that an index names are affected."""
    for scatter in (lambda x, i, s: flow.scatter_reduce(x, 0, i, s, "sum"),
                    lambda x, i, s: flow.scatter_add(x, 0, i, s)):
        x, src = flow.tensor([1.0, 2.0, 3.0], requires_grad=True), flow.tensor([4.0, 5.0], requires_grad=True)
        (scatter(x, flow.tensor([2, 2]), src) * flow.tensor([1.0, 10.0, 100.0])).sum().backward()
        assert x.grad.tolist() == [1, 10, 100] and src.grad.tolist() == [100, 100]


@pytest.mark.parametrize("reduce, include_self", [(r, s) for r in FOLDS for s in (True, False)
                                                  if (r, s) != ("sum", True)])
def test_reductions_without_a_gradient_raise(reduce, include_self):
    x, i = flow.ones(3), flow.tensor([0])
    for a, b in ((flow.ones(3, requires_grad=True), flow.ones(1)), (x, flow.ones(1, requires_grad=True))):
        with pytest.raises(ValueError, match="no gradient"):
            flow.scatter_reduce(a, 0, i, b, reduce, include_self=include_self)


def test_scatter_reduce_in_a_graph():
    x, i, s = (flow.tensor([[1.0, 2.0], [3.0, 4.0]]), flow.tensor([[1, 0], [1, 1]]),
               flow.tensor([[5.0, 6.0], [7.0, 8.0]]))
    want = by_loop(x.numpy(), 0, i.numpy(), s.numpy(), "sum", True)
    np.testing.assert_array_equal(run_as_graph(lambda x, i, s: flow.scatter_reduce(x, 0, i, s, "sum"), x, i,
                                               s).numpy(), want)
