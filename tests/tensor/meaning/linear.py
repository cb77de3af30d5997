"""Reference for matrix products and linear algebra."""
import numpy as np

from .kinds import T, operate
from .reductions import LINALG, counting


def product(f):
    return lambda *xs: operate(f, *xs)


def einsum(equation, *xs):
    left, arrow, right = equation.partition("->")
    summed = len(xs) == 1 and (set(left) - set(right) if arrow else any(left.count(c) > 1 for c in left))
    return operate(lambda *arrays: np.einsum(equation, *arrays), *xs, kind=counting(xs[0].kind) if summed
                   else None)


def scaled(f):
    """Return beta * x + alpha * f(y, z)."""
    return lambda x, y, z, beta=1, alpha=1: operate(lambda a, b, c: beta * a + alpha * f(b, c), x, y, z)


def tensordot(x, y, dims):
    dims = dims.a.tolist() if isinstance(dims, T) else dims
    return operate(lambda a, b: np.tensordot(a, b, dims), x, y)


def cross(x, y, dim=None):
    dim = x.shape.index(3) if dim is None else dim
    return operate(lambda a, b: np.cross(a, b, axis=dim), x, y)


def matrix_power(x, n):
    return operate(lambda a: np.linalg.matrix_power(a, n), x)


def solve(x, y):
    return operate(np.linalg.solve, x, y)


def cdist(x, y, p=2.0):
    d = np.abs(x.a[..., :, None, :] - y.a[..., None, :, :])
    return T(d.max(-1) if p == float("inf") else (d ** p).sum(-1) ** (1 / p))


def chain_matmul(*xs):
    return operate(lambda *arrays: np.linalg.multi_dot(arrays), *xs)


def transpose_matrices(a):
    return np.swapaxes(a, -1, -2)


def cholesky(x, upper=False):
    return operate(lambda a: transpose_matrices(np.linalg.cholesky(a)) if upper else np.linalg.cholesky(a), x)


def cholesky_solve(x, y):
    return operate(lambda b, low: np.linalg.solve(low @ transpose_matrices(low), b), x, y)


def triangular_solve(x, y, upper=True, transpose=False, unitriangular=False):
    def solved(b, a):
        a = np.triu(a) if upper else np.tril(a)
        a = a - np.diag(np.diag(a)) + np.eye(len(a)) if unitriangular else a
        return np.linalg.solve(a.T if transpose else a, b)
    return operate(solved, x, y), y


def svd(x):
    u, s, vh = np.linalg.svd(x.a, full_matrices=False)
    return T(u), T(s), T(vh.T)


def matrix_exp(x):
    """Compute in a basis of eigenvectors, which exists for random matrices."""
    w, v = np.linalg.eig(x.a)
    return T((v * np.exp(w) @ np.linalg.inv(v)).real)


FUNCTIONS = {n: product(np.matmul) for n in ("matmul", "mm", "bmm", "mv")}
FUNCTIONS |= {n: product(np.dot) for n in ("dot", "vdot")}
FUNCTIONS |= {"outer": product(np.outer), "ger": product(np.outer), "inner": product(np.inner),
              "kron": product(np.kron),
              "trace": product(np.trace), "inverse": product(np.linalg.inv), "det": product(np.linalg.det),
              "addmm": scaled(np.matmul), "addmv": scaled(np.matmul), "baddbmm": scaled(np.matmul),
              "addr": scaled(np.outer),
              "addbmm": scaled(lambda b, c: (b @ c).sum(0))}
FUNCTIONS |= {f.__name__: f for f in (einsum, tensordot, cross, matrix_power, cdist, chain_matmul)}
FUNCTIONS |= {f.__name__: f for f in (cholesky, cholesky_solve, triangular_solve, svd, matrix_exp)}
FUNCTIONS |= {"cholesky_inverse": lambda x: operate(lambda low: np.linalg.inv(low @ low.T), x),
              "qr": lambda x: tuple(map(T, np.linalg.qr(x.a))),
              "slogdet": lambda x: tuple(map(T, np.linalg.slogdet(x.a))),
              "logdet": lambda x: T(np.linalg.slogdet(x.a)[1]), "pinverse": product(np.linalg.pinv)}
LINALG |= {"cholesky": cholesky, "inv": FUNCTIONS["inverse"], "det": FUNCTIONS["det"], "solve": solve,
           "matrix_power": matrix_power, "cross": lambda x, y: cross(x, y, -1)}
T.__matmul__ = FUNCTIONS["matmul"]
