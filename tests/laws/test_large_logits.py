"""Law: adding a number to all logits does not change softmax or the losses based on it: 4096 + x and x have
equal results to the last digit, with x of few digits so that the sum is exact. (The largest logit is
subtracted first, and must not be added back later.)
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu.ops import REGISTRY

from .draws import ONE_BY_ONE

ROOM = 8 if ONE_BY_ONE else 1
SHAPES = [(3, 5), (70, 10), (2, 64), (2, 65), (3, 700), (2, 2049)]
TYPES = (np.float32, np.float64)


def logits(shape, dtype, rng):
    return (rng.integers(-40, 40, shape) / 8).astype(dtype)


def log_softmax(x, axis):
    x = x.astype(np.longdouble)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_is_shift_invariant(name, axis, dtype, shape):
    x = logits(shape, dtype, np.random.default_rng(0))
    want = log_softmax(x, axis) if name == "log_softmax" else np.exp(log_softmax(x, axis))
    for offset in (0, 4096, -4096):
        got = REGISTRY[name](flow.from_numpy(x + dtype(offset)), axis=axis).numpy()
        np.testing.assert_allclose(got, want.astype(dtype), rtol=4 * ROOM * np.finfo(dtype).eps,
                                   atol=8 * ROOM * np.finfo(dtype).eps)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_cross_entropy_is_shift_invariant(dtype, shape):
    rng = np.random.default_rng(0)
    x, labels = logits(shape, dtype, rng), rng.integers(0, shape[1], shape[0])
    p = rng.dirichlet(np.ones(shape[1]), shape[0])
    sparse = -log_softmax(x, 1)[np.arange(shape[0]), labels]
    dense = -(p * log_softmax(x, 1)).sum(1)
    for offset in (0, 4096, -4096):
        t = flow.from_numpy(x + dtype(offset))
        got = REGISTRY["sparse_softmax_cross_entropy"](flow.tensor(labels), t)[0].numpy()
        np.testing.assert_allclose(got, sparse.astype(dtype), rtol=8 * ROOM * np.finfo(dtype).eps,
                                   atol=8 * ROOM * np.finfo(dtype).eps)
        got = REGISTRY["softmax_cross_entropy"](flow.from_numpy(p.astype(dtype)), t)[0].numpy()
        np.testing.assert_allclose(got, dense.astype(dtype), rtol=16 * ROOM * np.finfo(dtype).eps)
