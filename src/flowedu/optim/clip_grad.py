"""Gradient clipping in place, between the backward pass and the optimizer's step."""
from __future__ import annotations

import math
from collections.abc import Iterable

from flowedu.core.ops.promote import cast
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import GradientError
from flowedu.optim.clipping import ByNorm, total_norm
from flowedu.tensor import Tensor, no_grad, tensor
from flowedu.tensor.reductions.reduce import vector_norm
from flowedu.tensor.shapes.join_and_pad import stack


def _as_list(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _eager_only(what: str) -> None:
    if thread_state.tracer is not None:
        raise GradientError(f"{what}: parameters have no gradients in nn.Graph.build",
                            expected="a call outside a graph",
                            got="one in build()", fix="give the optimizer the options clip_grad_max_norm and "
                            "clip_grad_norm_type: the graph clips by itself")


def get_total_norm(tensors: Iterable[Tensor], norm_type: float = 2.0,
                   error_if_nonfinite: bool = False) -> Tensor:
    """Return the norm of all values in several tensors together, as a 0-dim tensor.

    Args:
        tensors: tensors of any shapes.
        norm_type: 2, 1, any number above 0, or inf (the largest absolute value). As in PyTorch and OneFlow,
            other values give the norm of the tensors' norms. For example, -inf gives the smallest absolute
            value, and 0 the number of tensors with a nonzero element.
        error_if_nonfinite: raise GradientError if the norm is infinite or NaN.
    """
    p = float(norm_type)
    with no_grad():
        found = [t.detach() for t in _as_list(tensors) if t.numel()]
        if not found:
            return tensor(0.0)
        norm = _in_one_pass(found) if p == 2 and found[0]._device else None
        if p <= 0:
            norm = vector_norm(stack([vector_norm(t, p) for t in found]), p)
        norm = total_norm(found, p) if norm is None else norm
        # Broadcast on all devices, so that x.to_local() is the norm.
        if norm.global_layout is not None:
            norm = norm.to_global(sbp=norm.global_layout.whole.sbp)
    if error_if_nonfinite and not math.isfinite(float(norm)):
        raise GradientError(f"The total norm of order {norm_type} for gradients from `parameters` is "
                            f"non-finite, so it cannot be clipped", expected="finite gradients",
                            got=str(float(norm)),
                            fix="a smaller learning rate; or error_if_nonfinite=False to go on anyway")
    return norm


def _in_one_pass(tensors: list[Tensor]) -> Tensor | None:
    """Return the 2-norm of tensors that one GPU kernel can read together, or None."""
    from flowedu.cuda.launches.many import norm
    return norm(tensors)


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False) -> Tensor:
    """Scale the gradients by min(1, max_norm / (norm + 1e-6)), and return the norm before scaling.

    Args:
        parameters: parameters whose gradients are clipped, by the norm of all their values together.
        max_norm: largest norm.
        norm_type: order of the norm.
        error_if_nonfinite: raise an error if the norm is infinite or NaN.

    Raises:
        GradientError (a RuntimeError): the norm is not finite.
    """
    _eager_only("clip_grad_norm_")
    grads = [p.grad for p in _as_list(parameters) if p.grad is not None]
    norm = get_total_norm(grads, norm_type, error_if_nonfinite)
    with no_grad():
        share = ByNorm(max_norm).share(norm)
        for g in grads:
            g.mul_(cast(share, g.dtype))
    return norm


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Limit every element of the gradients to [-clip_value, clip_value].

    Args:
        parameters: parameters whose gradients are changed.
        clip_value: largest absolute value.
    """
    _eager_only("clip_grad_value_")
    bound = float(clip_value)
    with no_grad():
        for p in _as_list(parameters):
            if p.grad is not None:
                p.grad.clamp_(-bound, bound)
