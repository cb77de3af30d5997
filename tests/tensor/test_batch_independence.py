"""Law: the matrices of a batch are independent: changing one of them keeps the other results identical to the
bit.
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import FlowError

L = flow.linalg
FUNCTIONS = {
    "det": L.det, "slogdet": L.slogdet, "inv": L.inv, "inv_ex": L.inv_ex, "cholesky": L.cholesky,
    "cholesky_ex": L.cholesky_ex, "eigh": L.eigh, "eigvalsh": L.eigvalsh, "svd": L.svd, "svdvals": L.svdvals,
    "qr": L.qr,
    "pinv": L.pinv, "matrix_rank": L.matrix_rank, "cond": L.cond, "lu": L.lu, "matrix_exp": L.matrix_exp,
    "matrix_power": lambda a: L.matrix_power(a, 5), "negative power": lambda a: L.matrix_power(a, -2),
    "matrix_norm": L.matrix_norm, "nuclear norm": lambda a: L.matrix_norm(a, "nuc"),
    "solve": lambda a: L.solve(a, flow.ones(3, 2, dtype=a.dtype).expand(len(a), 3, 2)),
    "lstsq": lambda a: L.lstsq(a, flow.ones(len(a), 3, 2, dtype=a.dtype)).solution,
    "vector_norm": lambda a: L.vector_norm(a, dim=(-2, -1)), "matmul": lambda a: a @ a,
}
OTHERS = {"nan": np.nan, "infinite": np.inf, "singular": 0.0, "huge": 1e12, "tiny": 1e-30}


# refused as a batch: a matrix that is not positive definite, and a singular one
MAY_REFUSE = {"cholesky", "inv", "solve", "negative power"}


def results(f, a) -> tuple:
    y = f(a)
    return tuple(y) if isinstance(y, tuple) else (y,)


# number of rows and columns that are non-finite, singular, or large
@pytest.mark.parametrize("entries", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_matrix_does_not_change_the_others(name, other, dtype, entries):
    rng = np.random.default_rng(3)
    a = rng.standard_normal((3, 3, 3))
    # positive definite, so that every function accepts it
    a = (a @ a.transpose(0, 2, 1) + np.eye(3)).astype(dtype)
    expected = results(FUNCTIONS[name], flow.tensor(a))
    changed = a.copy()
    changed[1, :entries, :entries] = OTHERS[other]
    try:
        got = results(FUNCTIONS[name], flow.tensor(changed))
    except FlowError:                              # a matrix without such factors refuses the whole batch
        assert name in MAY_REFUSE
        with pytest.raises(FlowError):
            FUNCTIONS[name](flow.tensor(changed[1:2]))
        return
    for x, y in zip(expected, got):
        np.testing.assert_array_equal(x.numpy()[[0, 2]], y.numpy()[[0, 2]])


@pytest.mark.parametrize("norm", [1e-300, 1e-3, 0.1, 1.0, 10.0, 100.0])
def test_matrix_exp_against_its_eigenvalues(norm):
    """A symmetric matrix has exp(a) = q exp(w) q.T. Scaling and squaring has the error of about log2(norm) +
    3 matrix products, each at most n * eps relative to the norm of the result; eigh adds the error norm *
    eps of w.
    """
    rng = np.random.default_rng(5)
    s = rng.standard_normal((4, 5, 5))
    s = s + s.transpose(0, 2, 1)
    s *= norm / np.linalg.norm(s, 2, axis=(-2, -1))[:, None, None]
    w, q = np.linalg.eigh(s)
    expected = (q * np.exp(w)[:, None]) @ q.transpose(0, 2, 1)
    got = L.matrix_exp(flow.tensor(s)).numpy()
    products = max(np.log2(norm) + 3, 0) + 16
    bound = np.linalg.norm(expected, 2, axis=(-2, -1)) * np.finfo(np.float64).eps * 5 * (products + 2 ** max(
        np.log2(norm) + 3, 0) + norm)
    assert (np.abs(got - expected).max((-2, -1)) <= bound).all()
