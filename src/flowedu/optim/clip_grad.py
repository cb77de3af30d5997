"""Gradients made smaller, in place, between backward and the optimizer's step."""
from __future__ import annotations

import math
from collections.abc import Iterable

from flowedu.core.ops.promote import cast
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import GradientError
from flowedu.optim.clipping import ByNorm, total_norm
from flowedu.tensor import Tensor, no_grad, tensor
from flowedu.tensor.joining import stack
from flowedu.tensor.reductions import vector_norm


def _listed(parameters) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _eager_only(what: str) -> None:
    if thread_state.tracer is not None:
        raise GradientError(f"{what}: parameters have no gradients in nn.Graph.build", expected="a call outside a graph",
                            got="one in build()", fix="give the optimizer the options clip_grad_max_norm and "
                            "clip_grad_norm_type: the graph clips by itself")


def get_total_norm(tensors: Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    """Return the norm of all values in these tensors together, 0-dim.

    norm_type: 2, 1, any number above 0, or inf (the largest absolute value). For other values it is, as in
    PyTorch and OneFlow, the norm of the tensors' norms: -inf is the smallest absolute value, 0 counts tensors
    that are not all 0.
    """
    p = float(norm_type)
    with no_grad():
        found = [t.detach() for t in _listed(tensors) if t.numel()]
        if not found:
            return tensor(0.0)
        norm = _in_one_pass(found) if p == 2 and found[0]._device else None
        if p <= 0:
            norm = vector_norm(stack([vector_norm(t, p) for t in found]), p)
        norm = total_norm(found, p) if norm is None else norm
        if norm.global_layout is not None:               # on every device the whole of it: x.to_local() is the norm
            norm = norm.to_global(sbp=norm.global_layout.whole.sbp)
    if error_if_nonfinite and not math.isfinite(float(norm)):
        raise GradientError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
                            "cannot be clipped", expected="finite gradients", got=str(float(norm)),
                            fix="a smaller learning rate; or error_if_nonfinite=False to go on anyway")
    return norm


def _in_one_pass(tensors: list[Tensor]) -> Tensor | None:
    """Their norm of order 2, where a kernel of a GPU reads them all; None: it does not."""
    from flowedu.cuda.launches.many import norm
    return norm(tensors)


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False) -> Tensor:
    """Scale the gradients by max_norm / (norm + 1e-6) where that is below 1. Returns the norm they had, 0-dim.

    The norm is that of all gradients together. Raises GradientError (a RuntimeError) for error_if_nonfinite.
    """
    _eager_only("clip_grad_norm_")
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    norm = get_total_norm(grads, norm_type, error_if_nonfinite)
    with no_grad():
        share = ByNorm(max_norm).share(norm)
        for g in grads:
            g.mul_(cast(share, g.dtype))
    return norm


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Keep every number of the gradients inside [-clip_value, clip_value]."""
    _eager_only("clip_grad_value_")
    bound = float(clip_value)
    with no_grad():
        for p in _listed(parameters):
            if p.grad is not None:
                p.grad.clamp_(-bound, bound)
