"""Tensors (chapters 2 and 5), one module per topic; the modules attach methods to core's class."""
from flowedu.core.eager.tensor import Tensor, attach
from flowedu.tensor.creation import empty, from_numpy, full, ones_like, tensor, zeros_like
from flowedu.tensor import attributes, indexing, methods
from flowedu.tensor import node_names  # noqa: F401  (what the tape's nodes are called)
from flowedu.tensor import devices, global_methods, inplace_methods, interop
from flowedu.tensor.autograd import grad, is_grad_enabled, no_grad, tensor_alias
from flowedu.tensor.inplace import write_into
from flowedu.tensor.interop import from_dlpack
from flowedu.tensor.modes import enable_grad, inference_mode, is_inference_mode_enabled, set_grad_enabled
from flowedu.core.values.size import Size

__all__ = ["Size", "Tensor", "attach", "attributes", "devices", "empty", "enable_grad", "from_dlpack",
           "from_numpy", "full", "global_methods", "grad", "indexing", "inference_mode",
           "inplace_methods", "interop", "is_grad_enabled", "is_inference_mode_enabled", "methods",
           "no_grad", "ones_like", "set_grad_enabled", "tensor", "tensor_alias", "write_into", "zeros_like"]
