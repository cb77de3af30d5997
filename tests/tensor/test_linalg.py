"""flow.linalg: each function equals NumPy's up to signs of vectors, on batches, empty and 1 x 1 matrices,
eagerly and in graphs, with correct gradients and clear errors. Where PyTorch is installed, results equal
PyTorch's.
"""
import inspect
import re

import numpy as np
import pytest

import flowedu as flow
from common import flatten
from flowedu.errors import ArgumentError, DTypeError, FlowError, LinAlgError, ShapeError, UnsupportedError

rng = np.random.default_rng(11)
N = np.linalg
INPUTS = {"A": rng.standard_normal((3, 3)), "T": rng.standard_normal((5, 3)),
          "W": rng.standard_normal((3, 5)),
          "B": rng.standard_normal((2, 4, 4)), "R": rng.standard_normal((2, 2, 5, 3)),
          "v": rng.standard_normal(3), "S": np.diag([2.0, 3.0, 5.0]) + 0.3, "one": np.array([[-2.5]]),
          "P": np.eye(4) + np.ones((2, 4, 4)) * [[[0.2]], [[0.4]]]}


def size(x):
    """Drop the signs, which LAPACK chooses."""
    return tuple(map(size, x)) if isinstance(x, tuple) else x.abs()


def eliminated(a):
    """Return (P, L, U) by textbook elimination with partial pivoting, for each matrix of a batch."""
    if a.ndim > 2:
        return tuple(map(np.stack, zip(*map(eliminated, a))))
    m, n = a.shape
    k = min(m, n)
    u = a.copy()
    order = list(range(m))
    low = np.zeros((m, m))
    for j in range(k):
        best = max(range(j, m), key=lambda i: abs(u[i, j]))
        for x in (u, low):
            x[[j, best]] = x[[best, j]]
        order[j], order[best] = order[best], order[j]
        for i in range(j + 1, m):
            low[i, j] = u[i, j] / u[j, j]
            u[i] -= low[i, j] * u[j]
    return np.eye(m)[:, order], (low + np.eye(m))[:, :k], u[:k]


def packed(a):
    """Pack L and U into one matrix."""
    _, low, u = eliminated(a)
    m, n = a.shape[-2:]
    return np.tril(np.concatenate([low, np.zeros((*low.shape[:-1], max(n - m, 0)))], -1),
                   -1) + np.concatenate(
                       [np.triu(u), np.zeros((*u.shape[:-2], max(m - n, 0), n))], -2)


# line, with `m` for flow.linalg or torch.linalg: NumPy reference
LINES = {
    "m.cholesky(S)": lambda S: N.cholesky(S),
    "m.cholesky(P, upper=True)": lambda P: N.cholesky(P).swapaxes(1, 2),
    "m.cholesky_ex(P)": lambda P: (N.cholesky(P), np.zeros(2, np.int32)),
    "m.cholesky(-one)": lambda one: (-one) ** 0.5,
    "m.eigvalsh(A)": lambda A: N.eigvalsh(A, "L"), "m.eigvalsh(A, UPLO='U')": lambda A: N.eigvalsh(A, "U"),
    "size(m.eigh(S))": lambda S: tuple(map(np.abs, N.eigh(S))), "m.eigvalsh(one)": lambda one: one[0],
    "m.svdvals(R)": lambda R: N.svd(R, compute_uv=False),
    "size(m.svd(T, full_matrices=False))": lambda T: tuple(map(np.abs, N.svd(T, full_matrices=False))),
    "size(m.svd(B))": lambda B: tuple(map(np.abs, N.svd(B))),
    "size(m.qr(R))": lambda R: tuple(map(np.abs, N.qr(R))),
    "size(m.qr(W))": lambda W: tuple(map(np.abs, N.qr(W))),
    "size(m.qr(W, mode='complete'))": lambda W: tuple(map(np.abs, N.qr(W, "complete"))),
    "size(m.qr(T, mode='r')[1])": lambda T: np.abs(N.qr(T, "r")),
    "size(m.qr(one))": lambda one: (one / one, np.abs(one)),
    "m.solve_triangular(A, W, upper=True)": lambda A, W: N.solve(np.triu(A), W),
    "m.solve_triangular(A, T, upper=False, left=False)": lambda A, T: T @ N.inv(np.tril(A)),
    "m.solve_triangular(B, P[0], upper=False, unitriangular=True)":
        lambda B, P: N.solve(np.tril(B, -1) + np.eye(4), np.stack([P[0]] * 2)),
    "m.lu(A)": lambda A: eliminated(A), "m.lu(B)": lambda B: eliminated(B),
    "m.lu(W)": lambda W: eliminated(W), "m.lu(R[0])": lambda R: eliminated(R[0]),
    "m.lu(one)": lambda one: (one / one, one / one, one),
    "m.lu_factor(B)[0] # eager": lambda B: packed(B), "m.lu_factor(T).LU # eager": lambda T: packed(T),
    "m.lu_factor(W).LU # eager": lambda W: packed(W),
    "m.lu_factor_ex(P) # eager": lambda P: (
        packed(P), np.tile(np.arange(1, 5, dtype=np.int32), (2, 1)), np.zeros(2, np.int32)),
    "m.lu_solve(*m.lu_factor(A), W) # eager": lambda A, W: N.solve(A, W),
    "m.lu_solve(*m.lu_factor(A), T, left=False) # eager": lambda A, T: T @ N.inv(A),
    "m.lu_solve(*m.lu_factor(B), P, adjoint=True) # eager": lambda B, P: N.solve(B.swapaxes(1, 2), P),
    "m.lu_solve(*m.lu_factor(A), T, left=False, adjoint=True) # eager": lambda A, T: T @ N.inv(A.T),
    "m.solve(A, T, left=False)": lambda A, T: T @ N.inv(A),
    "m.lstsq(T, T[:, :2] ** 2).solution": lambda T: N.lstsq(T, T[:, :2] ** 2)[0],
    "m.lstsq(T, T[:, 1] ** 2).solution": lambda T: N.lstsq(T, T[:, 1] ** 2)[0],
    "m.lstsq(W, A, driver='gelsd')": lambda W, A: (N.lstsq(W, A)[0], np.zeros(0), np.array(3), N.svd(W)[1]),
    "m.lstsq(T, T ** 2, driver='gels')[:2]": lambda T: N.lstsq(T, T ** 2)[:2],
    "m.pinv(R)": lambda R: N.pinv(R), "m.pinv(W, rtol=0.8)": lambda W: N.pinv(W, 0.8),
    "m.pinv(S, hermitian=True)": lambda S: N.inv(S), "m.pinv(T, 0.5)": lambda T: N.pinv(T, 0.5),
    "m.matrix_rank(R)": lambda R: N.matrix_rank(R),
    "m.matrix_rank(A, atol=1.0)": lambda A: N.matrix_rank(A, 1.0),
    "m.matrix_rank(S, hermitian=True, rtol=0.5)": lambda S: N.matrix_rank(S, hermitian=True, rtol=0.5),
    "m.matrix_rank(A, 1.0)": lambda A: N.matrix_rank(A, 1.0),
    "m.slogdet(B)": lambda B: tuple(N.slogdet(B)),
    "m.slogdet(one)": lambda one: (np.array(-1.0), np.array(np.log(2.5))),
    "m.inv_ex(B)": lambda B: (N.inv(B), np.zeros(2, np.int32)),
    "m.cond(R)": lambda R: N.cond(R), "m.cond(B, -2)": lambda B: N.cond(B, -2),
    "m.cond(B, 'nuc')": lambda B: N.cond(B, "nuc"),
    **{f"m.cond(A, {p!r}) # eager": lambda A, p=p: N.cond(A, p) for p in ("fro", 1, -1)},
    **{f"m.matrix_norm(R, {p!r})": lambda R, p=p: N.norm(R, p, (-2, -1)) for p in ("nuc", 2, -2)},
    "m.matrix_norm(R, 'nuc', dim=(0, 2), keepdim=True)": lambda R: N.norm(R, "nuc", (0, 2), True),
    "m.norm(T, 2)": lambda T: N.norm(T, 2), "m.norm(T, 'nuc')": lambda T: N.norm(T, "nuc"),
    "m.multi_dot([v, A, W, T, v])": lambda v, A, W, T: v @ A @ W @ T @ v,
    "m.multi_dot([T, W, T])": lambda T, W: T @ W @ T,
    "m.vander(v)": lambda v: np.vander(v, increasing=True),
    "m.vander(A, N=4)": lambda A: A[..., None] ** np.arange(4),
    "m.vecdot(T, T * 2, dim=0)": lambda T: (T * T * 2).sum(0),
    "m.matrix_exp(S)": lambda S: (lambda w, q: q * np.exp(w) @ q.T)(*N.eigh(S)),
    "m.tensorinv(P[0].reshape(2, 2, 4))": lambda P: N.tensorinv(P[0].reshape(2, 2, 4)),
    "m.tensorsolve(P[0].reshape(2, 2, 4), A[:2, :2])": lambda P, A: N.tensorsolve(P[0].reshape(2, 2, 4),
                                                                                  A[:2, :2]),
}


def names_in(line: str) -> list[str]:
    return [n for n in INPUTS if re.search(rf"\b{n}\b", line)]


def results(line: str, module, values: dict) -> list:
    return flatten(eval(line.partition("#")[0], {"m": module.linalg, "size": size, **values}))


def make_inputs(line: str, module, grad=False, change=lambda a: a) -> dict:
    return {n: module.tensor(change(INPUTS[n]), requires_grad=grad) for n in names_in(line)}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_results_equal_numpys(line, kind):
    arrays = {n: INPUTS[n].astype(kind) for n in names_in(line)}
    with np.errstate(all="ignore"):
        want = flatten(LINES[line](**{n: a.astype("f8") for n, a in arrays.items()}))
    got = results(line, flow, {n: flow.tensor(a) for n, a in arrays.items()})
    assert len(got) == len(want)
    for x, y in zip(got, map(np.asarray, want)):
        assert x.dtype.name == {"f": {"f4": "float32", "f8": "float64"}[kind]}.get(y.dtype.kind, x.dtype.name)
        assert x.dtype.is_floating_point == (y.dtype.kind == "f") and tuple(x.shape) == y.shape
        np.testing.assert_allclose(x.numpy(), y, rtol=2e-3 if kind == "f4" else 1e-8,
                                   atol=2e-3 if kind == "f4" else 1e-9)


class Line(flow.nn.Graph):
    """Graph that runs one line of text."""

    def __init__(self, line):
        super().__init__()
        self.line = line

    def build(self, *values):
        return tuple(results(self.line, flow, dict(zip(names_in(self.line), values))))


@pytest.mark.parametrize("line", [line for line in LINES if "eager" not in line])
def test_a_graph_gives_the_same(line):
    values = make_inputs(line, flow)
    for a, b in zip(Line(line)(*values.values()), results(line, flow, values), strict=True):
        assert a.dtype is b.dtype
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-9)


def total(line, module, values):
    """Return the weighted sum of the floating results, with a seed for each."""
    y = [x for x in results(line, module, values) if x.requires_grad]
    parts = [(x * module.tensor(np.cos(np.arange(x.numel()) + i).reshape(tuple(x.shape)),
                                dtype=x.dtype)).sum()
             for i, x in enumerate(y)]
    return sum(parts[1:], parts[0]) if parts else None


@pytest.mark.parametrize("line", [line for line in LINES if not re.match(r"m.pinv\(\w, ", line)
                                  or "hermitian" in line])
def test_the_gradient_is_the_derivative(line):
    """The gradient of pinv assumes constant rank, so cutoffs that change the rank are left out."""
    values = make_inputs(line, flow, True)
    y = total(line, flow, values)
    if y is None:
        assert "rank" in line
        return
    y.backward()
    for n, x in values.items():
        v = np.random.default_rng(5).standard_normal(x.shape)
        v = (v + v.swapaxes(-1, -2)) / 2 if "hermitian" in line or "cholesky" in line or "eig" in line else v

        def f(h, n=n, v=v):
            return total(line, flow, {**make_inputs(line, flow, True), n: flow.tensor(
INPUTS[n] + h * v, requires_grad=True)}).item()

        h = 1e-4
        slope = (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)
        got = float((x.grad.numpy() * v).sum())
        assert abs(got - slope) <= 1e-6 * max(1.0, abs(slope)), (n, got, slope)


@pytest.mark.torch
@pytest.mark.parametrize("line", LINES)
def test_results_equal_pytorchs(line):
    torch = pytest.importorskip("torch")
    learns = "cond(A" not in line and "'r'" not in line           # PyTorch has no gradient of these
    ours, theirs = make_inputs(line, flow, learns), make_inputs(line, torch, learns)
    for x, y in zip(results(line, flow, ours), results(line, torch, theirs), strict=True):
        assert x.dtype.name == str(y.dtype).removeprefix("torch.") and tuple(x.shape) == tuple(y.shape)
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-7, atol=1e-8)
    y, z = total(line, flow, ours), total(line, torch, theirs)
    assert (y is None) == (z is None)
    if y is not None:
        y.backward(), z.backward()
        for n in ours:
            np.testing.assert_allclose(ours[n].grad.numpy(), theirs[n].grad.numpy(), rtol=1e-6, atol=1e-7)


def test_every_function_is_tested():
    """Older functions are tested in cases.py."""
    from .cases import EVERY
    text = " ".join([*LINES, *EVERY])
    public = {n for n, x in vars(flow.linalg).items() if n[0] != "_" and callable(x)
              and not inspect.isclass(x)}
    assert {n for n in public if f"m.{n}(" not in text and f"linalg.{n}(" not in text} <= {
        "diagonal", "matmul"}


EMPTY = {
    "cholesky(x)": (0, 0), "eigh(x)": (2, 0, 0), "eigvalsh(x)": (0, 3, 3), "svd(x)": (0, 3),
    "svdvals(x)": (3, 0),
    "svd(x, False)": (2, 0, 3), "qr(x)": (3, 0), "qr(x, 'complete')": (3, 0), "pinv(x)": (0, 3),
    "matrix_rank(x)": (2, 3, 0),
    "lu(x)": (0, 0), "lu_factor(x)": (0, 2, 2), "lu_factor_ex(x)": (2, 0, 3),
    "slogdet(x)": (0, 0), "inv_ex(x)": (0, 2, 2), "matrix_exp(x)": (0, 0), "matrix_norm(x, 'nuc')": (0, 3),
    "lstsq(x, x).solution": (3, 0), "cholesky_ex(x)": (0, 2, 2), "solve_triangular(x, x, upper=True)": (0, 0),
    "vecdot(x, x)": (2, 0), "multi_dot([x, x.mT, x])": (0, 3),
}


@pytest.mark.torch
@pytest.mark.parametrize("line", EMPTY)
def test_empty_inputs_equal_pytorchs(line):
    torch = pytest.importorskip("torch")
    ours, theirs = (flatten(eval(f"m.linalg.{line}", {"m": m, "x": m.ones(*EMPTY[line])}))
                    for m in (flow, torch))
    for x, y in zip(ours, theirs, strict=True):
        assert tuple(x.shape) == tuple(y.shape) and x.dtype.name == str(y.dtype).removeprefix("torch.")
        np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_only_one_triangle_is_read_and_both_have_gradients():
    a, other = flow.tensor(INPUTS["S"], requires_grad=True), flow.tensor(np.triu(np.full((3, 3), 9.0), 1))
    for f in (flow.linalg.cholesky, flow.linalg.eigvalsh, lambda x: flow.linalg.eigh(x)[1].abs(),
              lambda x: flow.linalg.cholesky(x.mT, upper=True)):
        assert flow.equal(f(a + other), f(a))
        a.grad = None
        (f(a) ** 3).sum().backward()
        assert flow.allclose(a.grad, a.grad.mT, atol=1e-12)


def test_equal_values_have_finite_gradients():
    """Functions that do not depend on LAPACK's choice of vectors, at a multiple of the identity."""
    x = (flow.eye(3, dtype=flow.float64) * 2).requires_grad_()
    for f, slope in ((lambda a: flow.linalg.svdvals(a).sum(), 1),
                     (lambda a: flow.linalg.matrix_norm(a, "nuc"), 1),
                     (lambda a: flow.linalg.eigvalsh(a).square().sum(), 4),
                     (lambda a: flow.linalg.pinv(a).sum(), None),
                     (lambda a: (flow.linalg.svd(a)[0] @ flow.linalg.svd(a)[0].mT).sum(), 0)):
        grad, = flow.grad(f(x), [x])
        want = np.full((3, 3), -0.25) if slope is None else np.eye(3) * slope
        np.testing.assert_allclose(grad.numpy(), want, atol=1e-12)


def test_singular_matrices():
    x = flow.tensor(np.stack([np.eye(3), np.ones((3, 3))]))
    inverse, info = flow.linalg.inv_ex(x)
    assert info.tolist() == [0, 3] and flow.equal(inverse[0], x[0]) and flow.isinf(inverse[1]).all()
    assert (flow.linalg.cond(x, 1)[1].item() == float("inf")
            and flow.linalg.slogdet(x)[1].tolist() == [0, -float("inf")])
    assert flow.linalg.matrix_rank(x).tolist() == [3, 1] and flow.logdet(-x[0]).isnan()
    for f in (lambda: flow.linalg.inv(x), lambda: flow.linalg.inv_ex(x, check_errors=True),
              lambda: flow.linalg.solve_triangular(flow.zeros(2, 2), flow.eye(2), upper=True)):
        with pytest.raises(LinAlgError, match="singular"):
            f()
    assert flow.linalg.LinAlgError is LinAlgError and issubclass(LinAlgError, RuntimeError)


def test_matrices_that_are_not_positive_definite():
    x = flow.tensor(np.stack([np.eye(3), np.diag([1.0, -1.0, 1.0])]))
    y, info = flow.linalg.cholesky_ex(x)
    assert info.tolist() == [0, 2] and info.dtype is flow.int32 and flow.equal(y[0], x[0])
    for f in (lambda: flow.linalg.cholesky(x), lambda: flow.linalg.cholesky_ex(x, check_errors=True),
              x.cholesky):
        with pytest.raises(LinAlgError, match="not positive definite(.|\n)*order 2(.|\n)*matrix 1"):
            f()


def test_a_complete_q_has_no_gradient():
    x = flow.tensor(INPUTS["T"], requires_grad=True)
    q, r = flow.linalg.qr(x, "complete")
    assert q.shape == (5, 5)
    with pytest.raises(UnsupportedError, match='mode="complete" has no gradient'):
        (q.sum() + r.sum()).backward()


REFUSED = {
    "cholesky(T)": ShapeError, "eigh(v)": ShapeError, "eigh(A, 'X')": ArgumentError, "svd(v)": ShapeError,
    "svd(A, driver='gesvd')": ArgumentError, "qr(A, 'full')": ArgumentError, "qr(v)": ShapeError,
    "pinv(v)": ShapeError,
    "lu(A, pivot=False)": UnsupportedError, "lu(v)": ShapeError, "lu_factor(A * 0)": LinAlgError,
    "lu_solve(A, A.int() * 0, A)": ArgumentError, "slogdet(T)": ShapeError,
    "lstsq(A, A, driver='gelsx')": ArgumentError, "multi_dot([A])": ArgumentError,
    "multi_dot([A, B])": ShapeError, "vander(v, N=1)": ArgumentError, "matrix_norm(A, 3)": ArgumentError,
    "matrix_norm(v, 2)": ShapeError, "tensorinv(A, ind=0)": ShapeError, "tensorsolve(T, v)": ShapeError,
    "solve_triangular(A, T, upper=True)": ShapeError, "matrix_exp(T)": ShapeError, "lstsq(T, A)": ShapeError,
}


@pytest.mark.parametrize("line", REFUSED)
def test_invalid_calls_raise_with_these_words(line):
    with pytest.raises(REFUSED[line], match="(?s)expected.*got.*fix"):
        eval(f"flow.linalg.{line}", {"flow": flow, **make_inputs(line, flow)})


@pytest.mark.parametrize("kind", [flow.float16, flow.bfloat16, flow.int64])
@pytest.mark.parametrize("name", "cholesky cholesky_ex eigh eigvalsh svd svdvals qr pinv slogdet matrix_exp "
                         "lu".split())
def test_dtypes_without_lapack_are_refused(name, kind):
    with pytest.raises(DTypeError, match="float32 or float64"):
        getattr(flow.linalg, name)(flow.eye(3).to(kind))


def test_under_the_mock_results_have_pytorchs_names():
    from flowedu import mock
    with mock.enable("torch"):
        import torch
        a = torch.tensor(INPUTS["S"])
        assert torch.linalg.eigh(a).eigenvalues.shape == (3,) and torch.linalg.svd(a).Vh.shape == (3, 3)
        assert (torch.linalg.qr(A=a).Q.shape == (3, 3) and torch.svd(a).V.shape == (3, 3)
                and torch.slogdet(a).sign == 1)
        assert torch.linalg.cholesky(a, upper=True).shape == torch.triangular_solve(a, a).solution.shape == (
            3, 3)
        assert torch.linalg.lstsq(a, a).rank == 3 and torch.cholesky(input=a).equal(a.cholesky())
        assert (torch.linalg.eigvalsh(input=a).shape == (3,) and torch.linalg.lstsq(a, b=a).solution.shape
                == (3, 3))
        with pytest.raises(torch.linalg.LinAlgError):
            torch.linalg.cholesky(-a)
        with pytest.raises(FlowError):
            torch.linalg.eig(a)
