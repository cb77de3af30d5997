"""Built-in parametrizations: weight_norm, spectral_norm, and orthogonal."""
from __future__ import annotations

import numpy as np

from flowedu.core.layers.module import Module
from flowedu.errors import ArgumentError, NameKeyError, ShapeError, UnsupportedError
from flowedu.nn.functional import normalize
from flowedu.nn.utils.parametrize import register_parametrization
from flowedu.tensor import Tensor, no_grad, tensor
from flowedu.tensor.construction.creation import eye, zeros
from flowedu.tensor.construction.random import randn
from flowedu.tensor.linalg.inverse_and_norms import solve
from flowedu.tensor.reductions.reduce import vector_norm
from flowedu.tensor.shapes.join_and_pad import cat


# ---- weight_norm: separate length and direction
def norm_except(v: Tensor, dim: int | None) -> Tensor:
    """Return the norm of v over all axes except `dim`, with keepdim, or of all elements for None."""
    if dim is None:
        return vector_norm(v)
    return vector_norm(v, 2, tuple(i for i in range(v.ndim) if i != dim % v.ndim), True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None):
        super().__init__()
        self.dim = None if dim == -1 else dim

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        return v * (g / norm_except(v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrize a weight as g * v / |v|, with separate length g and direction v (Salimans and Kingma 2016).

    The trained parameters are parametrizations.weight.original0 (g) and original1 (v).

    Args:
        module: layer to change.
        name: name of the weight.
        dim: axis along which each position has its own length; None uses one length for the whole weight.

    Returns:
        The module.
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


# ---- spectral_norm: the largest singular value is 1
def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """Return the weight as a matrix whose rows are the positions along axis `dim`."""
    return weight.movedim(dim, 0).flatten(1)


def power_iteration(matrix: Tensor, u: Tensor, v: Tensor, times: int, eps: float) -> None:
    """Move u and v in place towards the singular vectors of the largest singular value."""
    with no_grad():
        for _ in range(times):
            u.copy_(normalize(matrix @ v, dim=0, eps=eps))
            v.copy_(normalize(matrix.T @ u, dim=0, eps=eps))


def default_dim(module: Module, dim: int | None) -> int:
    """Return the axis of a layer's outputs, unless `dim` is given."""
    if dim is not None:
        return dim
    return 1 if "ConvTranspose" in type(module).__name__ else 0


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, times: int, dim: int, eps: float):
        super().__init__()
        if times <= 0:
            raise ArgumentError("spectral_norm: Expected n_power_iterations to be positive",
                                expected="1 or more", got=str(times), fix="n_power_iterations=1")
        self.n_power_iterations, self.dim, self.eps = times, dim, eps
        if weight.ndim > 1:
            matrix = as_matrix(weight.detach(), dim)
            for name, n in (("_u", matrix.shape[0]), ("_v", matrix.shape[1])):
                self.register_buffer(name, normalize(randn(n, dtype=weight.dtype), dim=0, eps=eps))
            power_iteration(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iteration(matrix.detach(), self._u, self._v, self.n_power_iterations, self.eps)
        u, v = self._u.clone(), self._v.clone()
        return weight / (u @ (matrix @ v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """Parametrize a weight as the weight divided by its largest singular value (Miyato et al. 2018).

    Args:
        module: layer to change.
        name: name of the weight.
        n_power_iterations: steps of the power iteration at each read of the weight in training.
        eps: lower limit of norms.
        dim: axis that forms the rows of the matrix; default: the axis of the layer's outputs.

    Returns:
        The module.
    """
    weight = tensor_of(module, name, "spectral_norm")
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations,
                                                                default_dim(module, dim), eps))


def tensor_of(module: Module, name: str, what: str) -> Tensor:
    found = getattr(module, name, None)
    if not isinstance(found, Tensor):
        raise NameKeyError(f"{what}: Module '{type(module).__name__}' has no parameter or buffer with name "
                           f"'{name}'", expected=", ".join(module._parameters), got=name, fix='name="weight"')
    return found


# ---- orthogonal: orthonormal columns or rows
def matrix_exp(a: Tensor) -> Tensor:
    """Return the exponential of square matrices: the series of a / 2^s, squared s times."""
    size = 100.0
    if not a.is_lazy:
        size = float(vector_norm(a.detach(), 1, (-2, -1)).max()) if a.numel() else 0.0
    # The values are unknown in a graph.
    squarings = max(0, int(np.ceil(np.log2(max(size, 1e-30)))) + 1)
    x = a / 2.0 ** squarings
    y = term = eye(a.shape[-1], dtype=a.dtype).expand(a.shape)
    for k in range(1, 15):
        term = term @ x / k
        y = y + term
    for _ in range(squarings):
        y = y @ y
    return y


def _multiply_reflections(a: Tensor, tau: Tensor) -> Tensor:
    """Return the first columns of the product of the reflections 1 - tau v v^T.

    The vectors v are the columns of a with 1 on the diagonal.
    """
    n, k = a.shape[-2:]
    v = a.tril(-1) + eye(n, k, dtype=a.dtype)
    q = eye(n, k, dtype=a.dtype).expand(a.shape)
    for i in reversed(range(k)):
        column = v[..., :, i:i + 1]
        q = q - tau[..., i:i + 1, None] * column @ (column.transpose(-2, -1) @ q)
    return q


def _orthogonalize(a: Tensor) -> Tensor:
    q, r = np.linalg.qr(a.detach().numpy())
    return tensor(q * np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0, -1, 1)[..., None, :], dtype=a.dtype)


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    off = (q.transpose(-2, -1) @ q - eye(k, dtype=q.dtype)).abs().max()
    return float(off) < 10.0 * n * float(np.finfo(q.dtype.numpy).eps)


class _Orthogonal(Module):
    def __init__(self, weight: Tensor, kind: str, use_trivialization: bool):
        super().__init__()
        if kind == "householder" and not use_trivialization:
            raise UnsupportedError("orthogonal: householder without use_trivialization needs reflections "
                                   "read off a matrix, for which there is no op",
                                   expected="use_trivialization=True", got="False", fix="leave it out")
        self.kind, self.shape = kind, tuple(weight.shape)
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.shape[-2] < x.shape[-1]
        x = x.transpose(-2, -1) if wide else x
        n, k = x.shape[-2:]
        if self.kind == "householder":
            a = x.tril(-1)
            signs = x.diagonal(0, -2, -1).detach().trunc().unsqueeze(-2)
            q = _multiply_reflections(a, 2.0 / (1.0 + (a * a).sum(-2))) * signs
        else:
            x = x.tril()
            if n != k:
                x = cat([x, zeros(*x.shape[:-2], n, n - k, dtype=x.dtype)], -1)
            a, one = x - x.transpose(-2, -1), eye(n, dtype=x.dtype).expand(*x.shape[:-2], n, n)
            q = (matrix_exp(a) if self.kind == "matrix_exp" else solve(one - 0.5 * a, one + 0.5 * a))[..., :k]
        if getattr(self, "base", None) is not None:
            q = self.base @ q
        return q.transpose(-2, -1) if wide else q

    def right_inverse(self, q: Tensor) -> Tensor:
        if tuple(q.shape) != self.shape:
            raise ShapeError(f"orthogonal: Expected a matrix or batch of matrices of shape {self.shape}",
                             expected=str(self.shape), got=str(tuple(q.shape)),
                             fix="a value of the weight's shape")
        if "base" not in self._buffers:
            raise UnsupportedError("orthogonal: it is not possible to assign to the matrix_exp or the Cayley "
                                   "parametrizations when use_trivialization=False",
                                   expected="use_trivialization=True", got="False", fix="leave it out")
        first = q
        q = q.transpose(-2, -1) if q.shape[-2] < q.shape[-1] else q
        n, k = q.shape[-2:]
        if n != k:
            q = _orthogonalize(cat([q, randn(*q.shape[:-2], n, n - k, dtype=q.dtype)], -1))
        self.base = q.clone() if _is_orthogonal(q) else _orthogonalize(q)
        return first * 0 - eye(*first.shape[-2:], dtype=q.dtype)


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> Module:
    """Parametrize a weight so that its columns (or rows, for a wide matrix) are orthonormal.

    Args:
        module: layer to change.
        name: name of the weight.
        orthogonal_map: function of the trained parameter: "matrix_exp", "cayley", or "householder"; default:
            "matrix_exp" for a square weight, else "householder".
        use_trivialization: start at the present weight, orthogonalized if necessary.

    Returns:
        The module.
    """
    weight = tensor_of(module, name, "orthogonal")
    if weight.ndim < 2:
        raise ShapeError(f"orthogonal: Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} "
                         f"dimensions",
                         expected="two axes or more", got=str(tuple(weight.shape)),
                         fix="a weight, not a bias")
    kind = orthogonal_map or ("matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder")
    if kind not in ("matrix_exp", "cayley", "householder"):
        raise ArgumentError("orthogonal: orthogonal_map has to be one of matrix_exp, cayley, householder",
                            got=repr(kind),
                            expected='"matrix_exp", "cayley" or "householder"', fix="leave it out")
    return register_parametrization(module, name, _Orthogonal(weight, kind, use_trivialization), unsafe=True)


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
