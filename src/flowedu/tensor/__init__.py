"""Tensors (chapters 2 and 5), one folder per topic; the modules attach methods to core's class.

    construction/     new tensors: from data, constants, ranges, random numbers, windows
    devices/          devices, conversion between devices and dtypes, memory formats
    dtypes/           limits, promotion, bfloat16
    shapes/           reshape, permute, expand; split, flip; join, pad
    indexing/         t[index] and t[index] = value; gather, scatter; sort, search
    elementwise/      functions of one or two elements
    reductions/       sum, max, norm ...; cumulative results; covariances
    linalg/           products, factorizations, systems of equations, norms
    inplace/          in-place methods, the memory that they write, and the history of the tensor
    gradients/        backward, grad, hooks, no_grad, names of tape nodes
    global_tensors/   creation and methods of global tensors
    interop/          NumPy, DLPack, copy, pickle, einops
    arguments/        checks and types of arguments

Each folder's __init__.py has only a docstring. `public.py` has the names of `flow`.
"""
from flowedu.core.eager.tensor import Tensor, attach
from flowedu.tensor.construction.creation import empty, from_numpy, full, ones_like, tensor, zeros_like
from flowedu.tensor import attributes, methods
from flowedu.tensor.gradients import node_names
from flowedu.tensor.devices import conversion
from flowedu.tensor.global_tensors import methods as _global_methods
from flowedu.tensor.inplace import methods as _inplace_methods
from flowedu.tensor.gradients.backward import grad, is_grad_enabled, no_grad, tensor_alias
from flowedu.tensor.inplace.history import write_into
from flowedu.tensor.interop.protocols import from_dlpack
from flowedu.tensor.gradients.grad_mode import (
    enable_grad, inference_mode, is_inference_mode_enabled, set_grad_enabled)
from flowedu.core.values.size import Size

__all__ = ["Size", "Tensor", "attach", "empty", "enable_grad", "from_dlpack", "from_numpy", "full", "grad",
           "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "ones_like",
           "set_grad_enabled", "tensor", "tensor_alias", "write_into", "zeros_like"]
