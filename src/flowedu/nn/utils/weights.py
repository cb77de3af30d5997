"""Older forms of weight_norm and spectral_norm, which register new parameters in the module itself."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.core.layers.parameter import Parameter
from flowedu.errors import NameKeyError
from flowedu.nn.functional import normalize
from flowedu.nn.utils.parametrizations import as_matrix, default_dim, norm_except, tensor_of
from flowedu.nn.utils.parametrize import computed, uncomputed
from flowedu.tensor import Tensor, no_grad
from flowedu.tensor.construction.random import randn


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Make a weight the function g * v / |v| of the parameters weight_g and weight_v.

    Args:
        module: layer to change.
        name: name of the weight.
        dim: axis along which each position has its own length; None uses one length for the whole weight.

    Returns:
        The module.
    """
    weight = tensor_of(module, name, "weight_norm")
    dim = None if dim == -1 else dim
    delattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(norm_except(weight.detach(), dim)))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))

    def read(self: Module) -> Tensor:
        v = getattr(self, f"{name}_v")
        return v * (getattr(self, f"{name}_g") / norm_except(v, dim))

    computed(module, name, read)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight one parameter again and return the module.

    Args:
        module: layer to change.
        name: name of the weight.
    """
    return _plain(module, name, f"{name}_g", f"{name}_v", "weight_norm")


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """Make a weight the parameter weight_orig divided by its largest singular value.

    The buffers weight_u and weight_v contain its singular vectors.

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
    dim = default_dim(module, dim)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", Parameter(weight.detach()))
    for part, n in zip("uv", as_matrix(weight.detach(), dim).shape):
        module.register_buffer(f"{name}_{part}", normalize(randn(n, dtype=weight.dtype), dim=0, eps=eps))

    def read(self: Module) -> Tensor:
        whole, u, v = (getattr(self, f"{name}_{part}") for part in ("orig", "u", "v"))
        matrix = as_matrix(whole, dim)
        if self.training:
            with no_grad():
                for _ in range(n_power_iterations):
                    v.copy_(normalize(matrix.detach().T @ u, dim=0, eps=eps))
                    u.copy_(normalize(matrix.detach() @ v, dim=0, eps=eps))
        return whole / (u.clone() @ (matrix @ v.clone()))

    computed(module, name, read)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight one parameter again and return the module.

    Args:
        module: layer to change.
        name: name of the weight.
    """
    training, module.training = module.training, False
    try:
        return _plain(module, name, f"{name}_orig", f"{name}_u", f"{name}_v", "spectral_norm")
    finally:
        module.training = training


def _plain(module: Module, name: str, *parts: str) -> Module:
    *names, what = parts
    if names[0] not in module._parameters:
        raise NameKeyError(f"{what} of '{name}' not found in {type(module).__name__}",
                           expected=f"{what}(module)",
                           got=", ".join(module._parameters), fix=f"{what} it first")
    with no_grad():
        value = getattr(module, name).detach().clone()
    uncomputed(module, name)
    for part in names:
        delattr(module, part)
    module.register_parameter(name, Parameter(value))
    return module


__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]
