"""Law: matrix factors satisfy their definitions. Signs, and vectors of equal values, are LAPACK's choice, so
the tests check properties: the product restores the matrix, factors are orthonormal, triangular, and
ordered; the pseudo-inverse satisfies Penrose's four equations. Covers any shape, including empty and
rank-deficient matrices, and LAPACK's errors.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.errors import DTypeError, LinAlgError, ShapeError
from flowedu.ops import REGISTRY

from .calls import run_eagerly, strided

SHAPES = st.sampled_from([(0, 0), (1, 1), (3, 3), (4, 2), (2, 5), (0, 3), (3, 0), (2, 3, 3), (2, 0, 4, 3),
                          (0, 2, 2), (2, 2, 6, 5)])


@st.composite
def matrices(draw, shapes=SHAPES):
    """Draw a batch of float32 or float64 matrices, of full or low rank, with small or large values, in any
    layout.
    """
    shape, rng = draw(shapes), np.random.default_rng(draw(st.integers(0, 2**31)))
    x = rng.standard_normal(shape)
    rank = draw(st.sampled_from([9, 9, 1, 0]))
    if rank < min(shape[-2:]):
        x = rng.standard_normal((*shape[:-1], rank)) @ rng.standard_normal((*shape[:-2], rank, shape[-1]))
    x = x * draw(st.sampled_from([1.0, 1e-3, 1e4]))
    return strided(x.astype(draw(st.sampled_from([np.float32, np.float64]))), draw(st.integers(0, 3)))


def transpose_matrices(a):
    return np.swapaxes(a, -1, -2)


def assert_near_for_lapack(a, b, dtype, size=1.0):
    """Assert equality up to LAPACK's error: a few roundings of the largest element."""
    assert a.dtype == b.dtype == dtype and a.shape == b.shape
    off = np.abs(a.astype(np.float64) - b.astype(np.float64))
    assert off.max(initial=0) <= 100 * np.finfo(dtype).eps * max(size, np.abs(b).max(initial=0))


def orthonormal(columns):
    eye = np.broadcast_to(np.eye(columns.shape[-1], dtype=columns.dtype), (*columns.shape[:-2],
                                                                           *columns.shape[-1:] * 2))
    assert_near_for_lapack(transpose_matrices(columns) @ columns, eye, columns.dtype)


def size_of(x) -> float:
    return float(np.abs(x).max(initial=0))


@given(x=matrices(), full=st.booleans())
def test_svd(x, full):
    u, s, vh = run_eagerly(REGISTRY["svd"], [x], (full,))
    m, n, k = *x.shape[-2:], min(x.shape[-2:])
    assert (u.shape[-2:] == (m, m if full else k) and vh.shape[-2:] == (n if full else k,
                                                                        n) and s.shape[-1] == k)
    orthonormal(u)
    orthonormal(transpose_matrices(vh))
    assert (s >= 0).all() and (np.diff(s, axis=-1) <= 0).all()
    assert_near_for_lapack(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, x.dtype, 3 * size_of(x))


@given(x=matrices(), complete=st.booleans())
def test_qr(x, complete):
    if x.shape[-2] < x.shape[-1]:
        x = transpose_matrices(x)
    q, r = run_eagerly(REGISTRY["qr"], [x], (complete,))
    assert q.shape[-1] == x.shape[-2 if complete else -1] == r.shape[-2]
    orthonormal(q)
    assert (np.tril(r, -1) == 0).all()
    assert_near_for_lapack(q @ r, x, x.dtype, 3 * size_of(x))


@given(x=matrices())
def test_lu(x):
    factors, p = run_eagerly(REGISTRY["lu"], [x], ())
    m, n = x.shape[-2:]
    k = min(m, n)
    low, up = np.tril(factors[..., :k], -1) + np.eye(m, k, dtype=x.dtype), np.triu(factors[..., :k, :])
    assert (p.sum(-1) == 1).all() and (p.sum(-2) == 1).all() and set(np.unique(p)) <= {0, 1}
    assert np.abs(low).max(initial=0) <= 1
    assert_near_for_lapack(p @ low @ up, x, x.dtype, 3 * size_of(x))


@given(x=matrices(st.sampled_from([(0, 0), (1, 1), (4, 4), (2, 3, 3), (0, 2, 2), (2, 0, 0)])))
def test_eigh(x):
    w, v = run_eagerly(REGISTRY["eigh"], [x], ())
    orthonormal(v)
    assert (np.diff(w, axis=-1) >= 0).all()
    assert_near_for_lapack(v * w[..., None, :] @ transpose_matrices(v), (x + transpose_matrices(x)) / 2,
                           x.dtype, 3 * size_of(x))


@given(x=matrices())
def test_pseudo_inverse(x):
    rtol = max(x.shape[-2:]) * np.finfo(x.dtype).eps * 10
    y, = run_eagerly(REGISTRY["pseudo_inverse"], [x], (0.0, float(rtol)))
    s = np.linalg.svd(x, compute_uv=False)
    kept = s[s > rtol * s.max(-1, keepdims=True)] if s.size else s
    worst = float(kept.max() / kept.min()) if kept.size else 1.0
    for got, want in ((x @ y @ x, x), (y @ x @ y, y), (transpose_matrices(x @ y), x @ y),
                      (transpose_matrices(y @ x), y @ x)):
        assert got.shape == want.shape
        assert np.abs(got - want).max(initial=0) <= 1e3 * np.finfo(x.dtype).eps * worst * max(1e-9,
                                                                                              size_of(want))


@pytest.mark.parametrize("name", ["svd", "eigh", "pseudo_inverse"])
def test_lapack_failures_are_reported(name):
    x = np.full((3, 3), np.nan)
    try:
        out = run_eagerly(REGISTRY[name], [x], REGISTRY[name].defaults)
    except LinAlgError as e:
        assert "9 numbers that are not finite" in str(e)
    else:
        assert all(np.isnan(y).all() for y in out)


def test_a_matrix_that_is_not_positive_definite_is_reported():
    bad = np.diag([1.0, 2.0, -1.0, 3.0])
    with pytest.raises(LinAlgError, match="not positive definite(.|\n)*minor of order 3(.|\n)*matrix 1 of "
                       "the batch"):
        REGISTRY["cholesky"](flow.tensor(np.stack([np.eye(4), bad])))
    y, = run_eagerly(REGISTRY["cholesky"], [np.stack([np.eye(4), bad])], (False,))
    assert (y[0] == np.eye(4)).all() and np.isnan(y[1]).all()


@pytest.mark.parametrize("name", ["cholesky", "leading_minor", "eigh", "svd", "qr", "lu", "pseudo_inverse",
                                  "slogdet"])
def test_invalid_matrices_are_refused(name):
    op = REGISTRY[name]
    with pytest.raises(ShapeError, match="not a (.*)matrix"):
        op(flow.ones(3))
    if name in ("cholesky", "leading_minor", "eigh", "qr", "slogdet"):
        with pytest.raises(ShapeError, match="not a (.*)matrix"):
            op(flow.ones(2, 3))
    for kind in (flow.float16, flow.bfloat16, flow.int64):
        with pytest.raises(DTypeError, match="float32 or float64"):
            op(flow.ones(3, 3).to(kind))
