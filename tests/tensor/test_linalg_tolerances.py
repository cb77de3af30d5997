"""Laws of flow.linalg: a tolerance for each matrix; infinities and NaNs; gradients of lstsq, cov, and pinv
against differences; the stated bound of matrix_exp.
"""
import itertools
import math

import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import ArgumentError, LinAlgError

L = flow.linalg


def matrices(*shape: int, symmetric: bool = False) -> np.ndarray:
    """Return matrices whose singular values are 1, 0.1, 0.01 and so on, float64."""
    rng = np.random.default_rng(7)
    m, n = shape[-2:]
    u, _, vh = np.linalg.svd(rng.standard_normal(shape), full_matrices=False)
    if symmetric:
        vh = np.swapaxes(u, -1, -2)
    return u * 10.0 ** -np.arange(min(m, n)) @ vh


TOLERANCES = [0.0, 0.005, 0.05, 0.5]


@pytest.mark.parametrize("form", ["numbers", "one each", "wide"])
@pytest.mark.parametrize("name", ["atol", "rtol", "both"])
@pytest.mark.parametrize("hermitian", [False, True])
def test_a_tolerance_for_each_matrix(hermitian, name, form):
    a = matrices(4, 3, 3, symmetric=hermitian)
    scale = np.array([1.0, 10.0, 0.1, 1.0])
    x = flow.tensor(a * scale[:, None, None])
    cuts = {"numbers": np.array(0.05), "one each": np.array(TOLERANCES),
            "wide": np.array([[t] for t in TOLERANCES])}[form]
    options = {n: flow.tensor(cuts) for n in (["atol", "rtol"] if name == "both" else [name])}
    inverse, rank = (L.pinv(x, hermitian=hermitian, **options),
                     L.matrix_rank(x, hermitian=hermitian, **options))
    batch = np.broadcast_shapes(cuts.shape, (4,))
    assert tuple(inverse.shape) == (*batch, 3, 3) and tuple(rank.shape) == batch
    for i in np.ndindex(*batch):
        one = {n: float(np.broadcast_to(cuts, batch)[i]) for n in options}
        alone = x[i[-1]]
        assert rank[i].item() == L.matrix_rank(alone, hermitian=hermitian, **one).item()
        np.testing.assert_array_equal(inverse[i].numpy(), L.pinv(alone, hermitian=hermitian, **one).numpy())


def test_defaults_next_to_tensor_tolerances():
    """`rtol` defaults to the rounding error, but to 0 for matrices whose atol is positive, like with Python
    numbers.
    """
    a = flow.tensor(np.stack([np.diag([1.0, 1e-17]), np.diag([1.0, 1e-17])]))
    assert L.matrix_rank(a, atol=flow.tensor([0.0, 1e-20], dtype=flow.float64)).tolist() == [1, 2]
    assert [L.matrix_rank(a[0], atol=t).item() for t in (0.0, 1e-20)] == [1, 2]
    inverse = L.pinv(a, atol=flow.tensor([0.0, 1e-20], dtype=flow.float64))
    assert inverse[0, 1, 1].item() == 0 and inverse[1, 1, 1].item() > 1e16
    assert L.matrix_rank(a, flow.tensor([0.5, 2.0])).tolist() == [1, 0]  # tol is the older name of atol
    assert L.pinv(flow.zeros(0, 2, 3), rtol=flow.zeros(0)).shape == (0, 3, 2)
    assert L.pinv(flow.ones(2, 3, 3), rtol=flow.tensor(0.1)).shape == (2, 3, 3)
    for f, bad in itertools.product((L.pinv, L.matrix_rank), ("much", [0.1, 0.2], None)):
        if bad is not None:
            with pytest.raises(ArgumentError, match="tolerance is not a number"):
                f(flow.ones(2, 3, 3), rtol=bad)


def test_the_gradient_with_tensor_tolerances():
    x = flow.tensor(matrices(3, 4, 3), requires_grad=True)
    y = L.pinv(x, rtol=flow.tensor([0.0, 0.05, 0.5]))
    got, = flow.autograd.grad((y * y).sum(), x)
    for i, t in enumerate((0.0, 0.05, 0.5)):
        leaf = x.detach()[i].requires_grad_()
        want, = flow.autograd.grad((L.pinv(leaf, rtol=t) ** 2).sum(), leaf)
        np.testing.assert_array_equal(got[i].numpy(), want.numpy())


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("name", ["svd", "svdvals", "matrix_rank", "cond", "pinv", "eigh", "eigvalsh"])
def test_matrices_that_are_not_finite(name, n, bad):
    """A single matrix with an infinity or a NaN is refused before LAPACK, which may never return."""
    a = np.eye(n) + 1
    a[0, 0] = bad
    with pytest.raises(LinAlgError, match="not finite|finite numbers"):
        getattr(L, name)(flow.tensor(a))
    pair = getattr(L, name)(flow.tensor(np.stack([np.eye(n) + 1, a])))
    alone = getattr(L, name)(flow.tensor(np.eye(n) + 1))
    for y, want in zip(*(v if isinstance(v, tuple) else (v,) for v in (pair, alone))):
        np.testing.assert_array_equal(y[0].numpy(), want.numpy())
        assert name == "matrix_rank" or bool(y[1].isnan().all())


def test_singular_matrices_next_to_infinities():
    a = np.ones((2, 3, 3))
    a[1, 0, 0] = np.inf
    with pytest.raises(LinAlgError, match="singular"):
        L.inv(flow.tensor(a))


def differences(f, a: np.ndarray, changes) -> list[float]:
    """Return central differences of f at a for each change of a."""
    h = 1e-5
    return [(f(a + h * e) - f(a - h * e)) / (2 * h) for e in changes]


def units(shape: tuple[int, ...]):
    """Return perturbations of one entry each."""
    for i in np.ndindex(*shape):
        e = np.zeros(shape)
        e[i] = 1
        yield e


# central differences with h = 1e-5 have an error of 1e-7 if the third derivative is below 1e3
TOLERANCE = 1e-6


@pytest.mark.parametrize("driver", ["gels", "gelsd", "gelss"])
def test_the_gradient_of_residuals(driver):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((5, 3)), rng.standard_normal((5, 2))
    x, y = flow.tensor(a, requires_grad=True), flow.tensor(b, requires_grad=True)
    found = L.lstsq(x, y, driver=driver)
    weights = flow.tensor([1.0, -2.0], dtype=flow.float64)
    gradients = flow.autograd.grad((found.residuals * weights).sum(), [x, y])

    def total(m, n):
        return float(np.linalg.lstsq(m, n, rcond=None)[1] @ weights.numpy())

    by_a = differences(lambda m: total(m, b), a, units(a.shape))
    by_b = differences(lambda m: total(a, m), b, units(b.shape))
    np.testing.assert_allclose(gradients[0].numpy().ravel(), by_a, atol=TOLERANCE)
    np.testing.assert_allclose(gradients[1].numpy().ravel(), by_b, atol=TOLERANCE)
    empty = L.lstsq(x, y).residuals
    assert empty.shape == (0,) and empty.requires_grad


def test_the_gradient_of_a_symmetric_pseudo_inverse():
    """hermitian=True reads the lower triangle. The gradient G is that of the symmetric matrix: an entry below
    the diagonal changes two entries of it, so its difference is G[i, j] + G[j, i].
    """
    rng = np.random.default_rng(2)
    a, w = rng.standard_normal((3, 3)), rng.standard_normal((3, 3))
    x = flow.tensor(a, requires_grad=True)
    g = flow.autograd.grad((L.pinv(x, hermitian=True) * flow.tensor(w)).sum(), x)[0].numpy()

    def f(m):
        return float((np.linalg.pinv(np.tril(m) + np.tril(m, -1).T) * w).sum())

    want = np.array(differences(f, a, units(a.shape))).reshape(3, 3)
    # Inverse entries are about 5.
    np.testing.assert_allclose(np.tril(g + np.tril(g.T, -1)), want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("upper", [False, True])
def test_the_unread_triangle_has_no_gradient(upper):
    rng = np.random.default_rng(3)
    a = rng.standard_normal((3, 3)) + 3 * np.eye(3)
    for f in (lambda x: flow.cholesky_inverse(x, upper=upper),
              lambda x: flow.cholesky_solve(flow.ones(3, 2, dtype=flow.float64), x, upper=upper)):
        x = flow.tensor(a, requires_grad=True)
        g = flow.autograd.grad(f(x).square().sum(), x)[0].numpy()
        want = differences(lambda m, f=f: f(flow.tensor(m)).square().sum().item(), a, units(a.shape))
        np.testing.assert_allclose(g.ravel(), want, atol=TOLERANCE)
        assert (np.tril(g, -1) if upper else np.triu(g, 1)).any() == 0


@pytest.mark.parametrize("weights", ["aweights", "fweights", "both"])
@pytest.mark.parametrize("correction", [0, 1, 2])
def test_covariances_of_weighted_observations(correction, weights):
    """float32 values and gradients of x and the weights are within a few roundings of float64."""
    rng = np.random.default_rng(4)
    x, a, f = rng.standard_normal((3, 40)) + 100, rng.random(40) + 0.1, rng.integers(1, 4, 40)
    results = []
    for dtype in (flow.float32, flow.float64):
        leaf, w = (flow.tensor(v.astype(np.float32), dtype=dtype, requires_grad=True) for v in (x, a))
        options = {}
        if weights != "aweights":
            options["fweights"] = flow.tensor(f)
        if weights != "fweights":
            options["aweights"] = w
        y = flow.cov(leaf, correction=correction, **options)
        leaves = [leaf, w][:1 + (weights != "fweights")]
        assert y.dtype is dtype
        results.append([y.detach(), *flow.autograd.grad((y * flow.arange(9, dtype=dtype).reshape(3, 3)).sum(),
                                                        leaves)])
    for narrow, wide in zip(*results):
        # the covariance and each gradient are rounded to float32 once; 2^-22 leaves room for the product with
        # the weights
        np.testing.assert_allclose(narrow.numpy(), wide.numpy(), rtol=2.0 ** -22,
                                   atol=2.0 ** -22 * abs(wide.numpy()).max())


def test_vander_of_one_number():
    assert L.vander(flow.tensor(-8.5), N=2).tolist() == [[1.0, -8.5]]
    assert L.vander(flow.tensor([2.0, 3.0]), N=3).tolist() == [[1, 2, 4], [1, 3, 9]]


@pytest.mark.parametrize("norm", [1e-3, 1.0, 10.0])
def test_matrix_exp_is_rounded_once(norm):
    """float32 is computed in float64: one rounding, and the error that the docstring states for float64."""
    rng = np.random.default_rng(6)
    a = rng.standard_normal((5, 5, 5)).astype(np.float32)
    a *= np.float32(norm) / np.abs(a).sum(-1).max(-1)[:, None, None]
    got, want = L.matrix_exp(flow.tensor(a)).numpy(), L.matrix_exp(flow.tensor(a.astype(np.float64))).numpy()
    assert (np.abs(got - want) <= np.abs(want) * 2.0 ** -24 + 2.0 ** -149).all()
    # exp(A) exp(-A) = 1: two errors of the stated bound, each times the norm of the other factor
    back = L.matrix_exp(flow.tensor(-a.astype(np.float64))).numpy()
    bound = 2 * 5 * 2.0 ** -52 * (8 * norm + 20) * math.exp(2 * norm) * 5
    assert np.abs(want @ back - np.eye(5)).max() <= bound
