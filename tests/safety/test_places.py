"""tril_indices, triu_indices, combinations, and the adaptive pools, compared with plain Python."""
import itertools

import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import ArgumentError

F = flow.nn.functional


def test_triangle_indices():
    for row, col, offset in itertools.product(range(5), range(5), range(-7, 8)):
        below = [(i, j) for i in range(row) for j in range(col) if j - i <= offset]
        above = [(i, j) for i in range(row) for j in range(col) if j - i >= offset]
        for f, want in ((flow.tril_indices, below), (flow.triu_indices, above)):
            got = f(row, col, offset).numpy()
            np.testing.assert_array_equal(got, np.array(want, np.int64).reshape(-1, 2).T,
                                          err_msg=f"{row, col, offset}")
            assert got.dtype == np.int64 and f(row, col, offset, dtype=flow.int32).dtype is flow.int32
    with pytest.raises(ArgumentError, match="non-negative"):
        flow.tril_indices(-1, 2)


def test_combinations():
    x = flow.arange(16) * 10
    for n, r in itertools.product(range(7), range(7)):
        for again, choose in ((False, itertools.combinations),
                              (True, itertools.combinations_with_replacement)):
            want = list(choose(range(0, 10 * n, 10), r))
            got = flow.combinations(x[:n], r, again).numpy()
            np.testing.assert_array_equal(got, np.array(want, np.int64).reshape(len(want), r))
    assert flow.combinations(x, 5).shape == (4368, 5)                     # more than one block of 4096 rows
    np.testing.assert_array_equal(flow.combinations(x, 5)[-1].numpy(), [110, 120, 130, 140, 150])


@pytest.mark.parametrize("size", range(1, 6))
@pytest.mark.parametrize("out", [1, 2, 3, 5, 6, 11, 12])
def test_adaptive_pools(size, out):
    x = np.random.default_rng(size).integers(0, 4, (2, 3, size)).astype(np.float32)
    x[0, 0, size // 2] = np.nan
    spans = [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]
    at = np.stack([a + x[..., a:b].argmax(-1) for a, b in spans], -1)
    mean = np.stack([x[..., a:b].mean(-1) for a, b in spans], -1)
    t = flow.tensor(x, requires_grad=True)
    y, places = F.adaptive_max_pool1d(t, out, return_indices=True)
    np.testing.assert_array_equal(places.numpy(), at)
    np.testing.assert_array_equal(y.detach().numpy(), np.take_along_axis(x, at, -1))
    np.testing.assert_allclose(F.adaptive_avg_pool1d(t, out).detach().numpy(), mean, rtol=1e-6)
    y.sum().backward()
    want = np.zeros_like(x)
    for n, c in np.ndindex(2, 3):
        np.add.at(want[n, c], at[n, c], 1)
    np.testing.assert_array_equal(t.grad.numpy(), want)
    big = flow.full((1, 1, size), 3e38)
    assert np.isfinite(F.adaptive_avg_pool1d(big, size + 1).numpy()).all()
