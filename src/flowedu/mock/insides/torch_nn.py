"""nn as PyTorch has it: DataParallel, asked for by programs that save `model.module`, wherever they run; RMSNorm."""
from __future__ import annotations

from flowedu import nn
from flowedu.errors import ArgumentError
from flowedu.nn import Module


class DataParallel(Module):
    """Module that runs `module` on the device of its parameters.

    The batch is not split among GPUs; results would be the same. Attributes: module (state_dict's names begin
    with "module.").
    """

    def __init__(self, module: Module, device_ids=None, output_device=None, dim: int = 0):
        super().__init__()
        if not isinstance(module, Module):
            raise ArgumentError("DataParallel: this is not a module", expected="an nn.Module", got=type(module).__name__,
                                fix="DataParallel(model)")
        self.module, self.device_ids, self.output_device, self.dim = module, device_ids, output_device, dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module: Module, inputs, device_ids=None, output_device=None, dim: int = 0, module_kwargs=None):
    """module(*inputs, **module_kwargs); inputs: a tuple, or the one input."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **module_kwargs or {})


class RMSNorm(nn.RMSNorm):
    """The last axes divided by the root of (the mean of their squares + eps). eps: None is the dtype's own."""

    def __init__(self, normalized_shape, eps: float | None = None, elementwise_affine: bool = True, device=None,
                 dtype=None):
        super().__init__(normalized_shape, eps, elementwise_affine, device, dtype)
