"""nn with PyTorch's semantics: DataParallel, for programs that save `model.module`, and RMSNorm."""
from __future__ import annotations

from flowedu import nn
from flowedu.errors import ArgumentError
from flowedu.nn import Module


class DataParallel(Module):
    """Module that runs `module` on the device of its parameters.

    The batch is not split among GPUs, because this would not change the results. Attributes: module (names in
    state_dict start with "module.").
    """

    def __init__(self, module: Module, device_ids=None, output_device=None, dim: int = 0):
        super().__init__()
        if not isinstance(module, Module):
            raise ArgumentError("DataParallel: this is not a module", expected="an nn.Module",
                                got=type(module).__name__, fix="DataParallel(model)")
        self.module, self.device_ids = module, device_ids
        self.output_device, self.dim = output_device, dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module: Module, inputs, device_ids=None, output_device=None, dim: int = 0,
                  module_kwargs=None):
    """Return module(*inputs, **module_kwargs). inputs: a tuple, or a single input."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **module_kwargs or {})


class RMSNorm(nn.RMSNorm):
    """Root mean square norm over the last axes. eps=None uses the machine epsilon of the dtype."""

    def __init__(self, normalized_shape, eps: float | None = None, elementwise_affine: bool = True,
                 device=None, dtype=None):
        super().__init__(normalized_shape, eps, elementwise_affine, device, dtype)
