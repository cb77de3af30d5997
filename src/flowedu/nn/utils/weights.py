"""weight_norm and spectral_norm as they were first: the parts are the module's own, weight_g and weight_v, weight_orig."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.core.layers.parameter import Parameter
from flowedu.errors import NameKeyError
from flowedu.nn.functional import normalize
from flowedu.nn.utils.parametrizations import as_matrix, default_dim, norm_except, tensor_of
from flowedu.nn.utils.parametrize import computed, uncomputed
from flowedu.tensor import Tensor, no_grad
from flowedu.tensor.random import randn


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """weight = g * v / |v|, computed whenever it is read; g and v are the parameters weight_g and weight_v. dim: the axis
    at whose places the length is one's own (None: one length). Returns the module."""
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
    """The weight as one parameter again. Returns the module."""
    return _plain(module, name, f"{name}_g", f"{name}_v", "weight_norm")


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """weight = weight_orig by its largest singular value, which is followed by n_power_iterations steps whenever the weight
    is read in training (buffers weight_u, weight_v). dim: the axis that is rows (None: the layer's outputs)."""
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
    """The weight as one parameter again. Returns the module."""
    training, module.training = module.training, False
    try:
        return _plain(module, name, f"{name}_orig", f"{name}_u", f"{name}_v", "spectral_norm")
    finally:
        module.training = training


def _plain(module: Module, name: str, *parts: str) -> Module:
    *parts, what = parts
    if parts[0] not in module._parameters:
        raise NameKeyError(f"{what} of '{name}' not found in {type(module).__name__}", expected=f"{what}(module)",
                           got=", ".join(module._parameters), fix=f"{what} it first")
    with no_grad():
        value = getattr(module, name).detach().clone()
    uncomputed(module, name)
    for part in parts:
        delattr(module, part)
    module.register_parameter(name, Parameter(value))
    return module


__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]
