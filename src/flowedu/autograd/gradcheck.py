"""gradcheck: comparison of computed gradients with finite differences."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.eager.tensor import Tensor
from flowedu.core.values.dtype import float64
from flowedu.errors import ArgumentError, FlowError
from flowedu.errors.once import inert
from flowedu.tensor.devices.conversion import beside
from flowedu.tensor.gradients.backward import grad
from flowedu.tensor.gradients.grad_mode import no_grad


class GradcheckError(FlowError, RuntimeError):
    """Error: the computed gradients of a function differ from finite differences."""


def _tensors(x) -> tuple:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def gradcheck(func: Callable, inputs: Tensor | Sequence, *, eps: float = 1e-6, atol: float = 1e-5,
              rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0) -> bool:
    """Return True if the backward pass of `func` computes its derivatives.

    Each entry of the Jacobian is compared with (f(x + eps) - f(x - eps)) / (2 eps).

    Args:
        func: function of tensors.
        inputs: arguments. Tensors that require a gradient are checked; they should be float64, because
            float32 has too few digits.
        eps: step of the finite differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise GradcheckError, which reports the first entry that differs, instead of
            returning False.
        nondet_tol: accepted for compatibility.
    """
    inert("autograd.gradcheck(nondet_tol)", nondet_tol, 0.0, "gradients have the same bits in every run")
    args = _tensors(inputs)
    checked = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x.requires_grad]
    if not checked:
        raise ArgumentError("gradcheck expects at least one input tensor to require gradient", got="none",
                            expected="requires_grad=True")
    outputs = [y for y in _tensors(func(*args)) if isinstance(y, Tensor) and y.dtype.is_floating_point]
    for o, y in enumerate(outputs):
        slopes = {i: _slopes(func, args, i, o, eps, int(np.prod(y.shape))) for i in checked}
        found = {i: np.zeros_like(s) for i, s in slopes.items()}
        if y.requires_grad:
            for k in range(y.numel()):
                seed = np.zeros(tuple(y.shape), y.dtype.numpy)
                seed.reshape(-1)[k] = 1
                row = grad(y, [args[i] for i in checked], beside(from_numpy(seed), y), retain_graph=True,
                           allow_unused=True)
                for i, g in zip(checked, row):
                    if g is not None:
                        found[i][:, k] = g.detach().peek().reshape(-1)
        for i in checked:
            if not np.allclose(found[i], slopes[i], rtol, atol, equal_nan=True):
                j, k = np.argwhere(~np.isclose(found[i], slopes[i], rtol, atol, equal_nan=True))[0]
                if not raise_exception:
                    return False
                raise GradcheckError(f"Jacobian mismatch for output {o} with respect to input {i}",
                                     expected=f"d output[{k}] / d input[{j}] = {slopes[i][j, k]:g} "
                                     f"(numerical)",
                                     got=f"{found[i][j, k]:g} (analytical)",
                                     fix="" if args[i].dtype is float64 else
                                     "give float64 inputs: float32 has too few digits for finite differences")
    return True


def _slopes(func: Callable, args: tuple, i: int, o: int, eps: float, size: int) -> np.ndarray:
    """Return finite differences, (elements of input i, elements of output o)."""
    out = np.zeros((args[i].numel(), size), np.float64)
    x = args[i].detach().contiguous().peek().astype(args[i].dtype.numpy)

    def value(j, step):
        moved = x.copy()
        moved.reshape(-1)[j] += step
        with no_grad():
            ys = [y for y in _tensors(func(*args[:i], beside(from_numpy(moved), args[i]), *args[i + 1:]))
                  if isinstance(y, Tensor) and y.dtype.is_floating_point]
        return ys[o].peek().astype(np.float64).reshape(-1)

    for j in range(x.size):
        out[j] = (value(j, eps) - value(j, -eps)) / (2 * eps)
    return out


def gradgradcheck(func: Callable, inputs: Tensor | Sequence, grad_outputs=None, *, eps: float = 1e-6,
                  atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True) -> bool:
    """Return True if the second derivatives of `func` are correct, by gradcheck of its gradients.

    Args:
        func: function of tensors.
        inputs: arguments; tensors that require a gradient are checked.
        grad_outputs: gradients of the outputs; default: random.
        eps: step of the finite differences.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise GradcheckError instead of returning False.
    """
    args = _tensors(inputs)
    outputs = [y for y in _tensors(func(*args)) if isinstance(y, Tensor) and y.requires_grad]
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        grad_outputs = [from_numpy(rng.normal(size=tuple(y.shape)).astype(y.dtype.numpy)) for y in outputs]
        for g in grad_outputs:
            g.requires_grad = True
    seeds, n = _tensors(grad_outputs), len(args)

    def gradients(*values):
        made = [y for y in _tensors(func(*values[:n])) if isinstance(y, Tensor) and y.dtype.is_floating_point]
        wanted = [x for x in values[:n] if isinstance(x, Tensor) and x.dtype.is_floating_point]
        leaves = [x if x.requires_grad else x.detach().requires_grad_() for x in wanted]
        if not all(x.requires_grad for x in wanted):
            leaf_of = {id(x): leaf for x, leaf in zip(wanted, leaves)}
            made = [y for y in _tensors(func(*[leaf_of.get(id(v), v) for v in values[:n]]))
                    if isinstance(y, Tensor)]
        found = grad(made, leaves, list(values[n:]), create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    def recorded(*values):
        from flowedu.tensor.gradients.grad_mode import enable_grad
        with enable_grad():
            return gradients(*values)

    return gradcheck(recorded, (*args, *seeds), eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception)


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
