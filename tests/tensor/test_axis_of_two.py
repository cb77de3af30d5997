"""Functions of two tensors along an axis: the axis refers to the broadcast shape, or different ranks are
refused.
"""
import itertools

import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import ShapeError

SHAPES = [(1,), (3,), (3, 1), (3, 3), (1, 3, 3), (2, 1, 3), (2, 3, 3)]
BROADCAST = {"cross": flow.cross, "linalg.cross": flow.linalg.cross, "linalg.vecdot": flow.linalg.vecdot,
             "cosine_similarity": flow.nn.functional.cosine_similarity}
AREA = np.trapezoid if hasattr(np, "trapezoid") else np.trapz      # noqa: NPY201  (NumPy 1)


@pytest.mark.parametrize("name", BROADCAST)
@pytest.mark.parametrize("one, two", [*itertools.product(SHAPES, repeat=2)])
def test_the_axis_refers_to_the_broadcast_shape(name, one, two):
    f, shape = BROADCAST[name], np.broadcast_shapes(one, two)
    x, y = (flow.tensor(np.random.default_rng(len(s)).normal(size=s)) for s in (one, two))
    for dim in range(-len(shape), len(shape)):
        sizes = [(*(1,) * (len(shape) - len(s)), *s)[dim] for s in (one, two)]
        if name.endswith("cross") and sizes != [3, 3]:
            with pytest.raises(ShapeError):
                f(x, y, dim=dim)
            continue
        whole = f(*flow.broadcast_tensors(x, y), dim=dim)
        result = f(x, y, dim=dim)
        assert result.shape == whole.shape
        # float64 products of three numbers below 5 in another order: 3 * 25 * 2**-53 < 1e-13
        np.testing.assert_allclose(result.numpy(), whole.numpy(), atol=1e-13)
        if name == "linalg.cross":
            np.testing.assert_allclose(result.numpy(), np.moveaxis(np.cross(*(
                np.moveaxis(np.broadcast_to(t.numpy(), shape), dim, -1) for t in (x, y))), -1, dim),
                                       atol=1e-13)


@pytest.mark.parametrize("one, two", [*itertools.permutations(SHAPES, 2)])
def test_indices_along_an_axis_have_the_rank_of_the_input(one, two):
    x, i = flow.ones(one), flow.zeros(two, dtype=flow.int64)
    for dim in range(-len(one), len(one)):
        if len(one) != len(two):
            with pytest.raises(ShapeError, match="same number of dimensions"):
                flow.take_along_dim(x, i, dim)
        else:
            expected = [max(pair) for pair in zip(one, two)]
            expected[dim] = two[dim]
            assert flow.take_along_dim(x, i, dim).shape == tuple(expected)


@pytest.mark.parametrize("one, two", [*itertools.product([(2,), *SHAPES], repeat=2)])
def test_trapezoid_needs_a_point_for_each_value(one, two):
    y, x = (flow.tensor(np.random.default_rng(len(s)).normal(size=s)) for s in (one, two))
    for dim in range(len(one)):
        points = two if len(two) == 1 else (1,) * (len(one) - len(two)) + two
        axis = -1 if len(two) == 1 else dim
        if len(two) > len(one) or points[axis] != one[dim]:
            with pytest.raises(ShapeError):
                flow.trapezoid(y, x, dim=dim)
        else:
            shaped = x.numpy() if len(two) == 1 else x.numpy().reshape(points)
            # float64 sums of at most two products of numbers below 10: 2 * 100 * 2**-53 < 1e-13
            expected = AREA(y.numpy(), shaped, axis=dim)
            np.testing.assert_allclose(flow.trapezoid(y, x, dim=dim).numpy(), expected, atol=1e-13)
