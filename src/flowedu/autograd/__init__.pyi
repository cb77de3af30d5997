"""Written by `make stubs`: do not edit."""
from collections.abc import Callable, Mapping, Sequence
from flowedu.autograd import function as function, functional as functional, graph as graph
from flowedu.autograd.anomaly import detect_anomaly as detect_anomaly, set_detect_anomaly as set_detect_anomaly
from flowedu.autograd.function import Function as Function
from flowedu.autograd.gradcheck import GradcheckError as GradcheckError
from flowedu.autograd.variable import Variable as Variable
from flowedu.core.eager.tensor import Tensor
from flowedu.tensor.gradients.grad_mode import (
    enable_grad as enable_grad, inference_mode as inference_mode, no_grad as no_grad, set_grad_enabled as set_grad_enabled)

def backward(tensors: Sequence[Tensor] | Tensor, grad_tensors: Sequence[Tensor] | Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Sequence[Tensor] | Tensor | None = None) -> None:
    """Add the gradients of several tensors to `.grad` of every leaf; see Tensor.backward."""
def grad(outputs: Sequence[Tensor] | Tensor, inputs: Sequence[Tensor] | Tensor, grad_outputs: Sequence[Tensor] | Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple[Tensor, ...]:
    """Return a tuple of the gradients of outputs with respect to inputs; `.grad` is not changed."""
def gradcheck(func: Callable, inputs: Tensor | Sequence, *, eps: float = 1e-06, atol: float = 1e-05, rtol: float = 0.001, raise_exception: bool = True, nondet_tol: float = 0.0) -> bool:
    """Return True if the backward pass of `func` computes its derivatives."""
def gradgradcheck(func: Callable, inputs: Tensor | Sequence, grad_outputs=None, *, eps: float = 1e-06, atol: float = 1e-05, rtol: float = 0.001, raise_exception: bool = True) -> bool:
    """Return True if the second derivatives of `func` are correct, by gradcheck of its gradients."""
def is_anomaly_enabled() -> bool: """Return True if anomaly mode is enabled."""
def is_grad_enabled() -> bool: """Return True if eager calls of this thread are recorded for backward."""
def is_inference_mode_enabled() -> bool: ...
def lazy_import(module: str, names: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return a module's `__getattr__` and `__dir__`."""
__all__ = ['Function', 'GradcheckError', 'Variable', 'backward', 'detect_anomaly', 'enable_grad', 'function', 'functional', 'grad', 'gradcheck', 'gradgradcheck', 'graph', 'inference_mode', 'is_anomaly_enabled', 'is_grad_enabled', 'is_inference_mode_enabled', 'lazy_import', 'no_grad', 'set_detect_anomaly', 'set_grad_enabled']
