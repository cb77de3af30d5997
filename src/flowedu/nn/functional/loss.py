"""Regression and probability losses; class_losses.py contains the classification losses.

`reduction` is "mean" (the default) or "sum" for a 0-dim result, or "none" for one loss per element or sample.
In all functions `input` is the prediction of the model and `target` the true value.
"""
from __future__ import annotations

import warnings

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast, run, scalar
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.common import check_floats, check_tensor, reduced, reshaped, total
from flowedu.ops.checks import require_range
from flowedu.tensor import Tensor

_r = REGISTRY
_SQUARED = REGISTRY["squared_difference"]


# ---- of numbers
def _same_shape(what: str, input, target) -> None:
    check_tensor(what, input)
    check_tensor(what, target, "target")
    if input.shape != target.shape:
        warnings.warn(f"Using a target size ({list(target.shape)}) that is different to the input size "
                      f"({list(input.shape)}). This will likely lead to incorrect results due to broadcasting. Please "
                      "ensure they have the same size.", stacklevel=4)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(input - target)^2. Shapes that differ broadcast, with a warning."""
    _same_shape("mse_loss", input, target)
    if input.dtype is target.dtype and input.dtype.is_floating_point:
        return reduced("mse_loss", _SQUARED.call((input, target), ()), reduction)
    d = input - target
    return reduced("mse_loss", d * d, reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """|input - target|. Shapes that differ broadcast, with a warning."""
    _same_shape("l1_loss", input, target)
    return reduced("l1_loss", _r["abs"](input - target), reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """0.5 * d^2 / beta where d = |input - target| is below beta, else d - 0.5 * beta. beta=0: l1_loss."""
    _same_shape("smooth_l1_loss", input, target)
    if beta < 0:
        raise ArgumentError("smooth_l1_loss does not support negative values for beta", expected="beta >= 0", got=str(beta),
                            fix="beta=0.0 is l1_loss")
    d = _r["abs"](input - target)
    if beta > 0:
        d = bent(d, beta) * (1.0 / beta)
    return reduced("smooth_l1_loss", d, reduction)


def bent(d, delta: float):
    """0.5 * d^2 where d is below delta, else delta * (d - 0.5 * delta). d: any value of 0 or more."""
    small = _r["minimum"](d, float(delta))
    return small * (d - small * 0.5)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
    """0.5 * d^2 where d = |input - target| is below delta, else delta * (d - 0.5 * delta)."""
    _same_shape("huber_loss", input, target)
    if delta <= 0:
        raise ArgumentError("huber_loss does not support non-positive values for delta.", expected="delta > 0",
                            got=str(delta), fix="delta=1.0 is the default")
    loss = bent(_r["abs"](input - target), delta)
    return reduced("huber_loss", loss if weight is None else loss * weight, reduction)


# ---- of probabilities
def _check_pair(what: str, input, target) -> None:
    check_floats(what, input)
    check_tensor(what, target, "target")
    if input.shape != target.shape:
        raise ShapeError(f"{what}: Using a target size ({list(target.shape)}) that is different to the input size "
                         f"({list(input.shape)}) is deprecated. Please ensure they have the same size.",
                         expected=str(tuple(input.shape)), got=str(tuple(target.shape)),
                         fix="target.reshape(input.shape), or input.squeeze(1)")


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)); the logarithms are kept at -100 or more.

    input: probabilities, in [0, 1]. weight: broadcasts over the losses.
    """
    _check_pair("binary_cross_entropy", input, target)
    target = cast(target, input.dtype)
    loss = run(_r["binary_cross_entropy"], (input, target))
    # The check follows the loss, so that the ops that compute the input stay one fused chain, and a plan
    # copies nothing.
    loss = require_range(loss, 0, 1, tested=input.detach(), expected="probabilities",
                         problem="binary_cross_entropy: all elements of input should be between 0 and 1",
                         fix="binary_cross_entropy_with_logits takes any numbers")
    return reduced("binary_cross_entropy", loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:
    """binary_cross_entropy of sigmoid(input), without overflow.

    pos_weight: how much positive targets count, broadcasts over the classes (the last axes).
    """
    _check_pair("binary_cross_entropy_with_logits", input, target)
    target = cast(target, input.dtype)
    loss = _r["sigmoid_cross_entropy"](target, input) if pos_weight is None else weighted_logits(
        input, target, (pos_weight - 1) * target + 1)
    return reduced("binary_cross_entropy_with_logits", loss if weight is None else loss * weight, reduction)


def weighted_logits(x, target, scale):
    """(1 - target) * x + softplus(-x) * scale: the cross entropy of sigmoid(x), the positives weighed. Any values."""
    return (1 - target) * x + _r["softplus"](_r["neg"](x)) * scale


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target * (log(target) - input), 0 where target is 0; with log_target exp(target) * (target - input).

    input: logarithms of probabilities. reduction: also "batchmean", the sum divided by the size of the batch, which is the
    divergence; "mean" divides by the number of elements (with a warning, as in PyTorch).
    """
    check_floats("kl_div", input)
    check_tensor("kl_div", target, "target")
    if log_target:
        loss = _r["exp"](target) * (target - input)
    else:
        loss = _r["xlogy"](target, target) - target * input
    if reduction == "batchmean":
        return total(loss) / input.shape[0] if input.ndim else total(loss)
    if reduction == "mean":
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' "
                      "divides only by the batch size, and aligns with the KL div math definition.", stacklevel=2)
    return reduced("kl_div", loss, reduction)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                     reduction: str = "mean") -> Tensor:
    """exp(input) - target * input; with log_input=False input - target * log(input + eps). full: with Stirling's term."""
    check_floats("poisson_nll_loss", input)
    check_tensor("poisson_nll_loss", target, "target")
    loss = _r["exp"](input) - target * input if log_input else input - target * _r["log"](input + eps)
    if full:
        sure = _r["maximum"](target, 1.0)
        stirling = target * _r["log"](sure) - target + _r["log"](sure * 6.283185307179586) * 0.5
        loss = loss + _r["where"](_r["greater"](target, 1.0), stirling, target * 0)
    return reduced("poisson_nll_loss", loss, reduction)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    """0.5 * (log(var) + (input - target)^2 / var), var kept at eps or more (without a gradient there)."""
    check_floats("gaussian_nll_loss", input)
    check_tensor("gaussian_nll_loss", target, "target")
    if not hasattr(var, "shape"):
        var = scalar(var, input.dtype)
    if var.shape != input.shape and var.ndim == input.ndim - 1 and var.ndim:
        var = reshaped(var, (*var.shape, 1))
    given = var.detach()
    small = _r["less"].call((var.detach(), scalar(eps, var.dtype)), ())
    var = var + _r["where"](small, eps - var.detach(), var.detach() * 0)
    d = input - target
    loss = (_r["log"](var) + d * d / var) * 0.5
    loss = require_range(loss, 0, tested=given, nan=True, problem="gaussian_nll_loss: var has negative entry/entries",
                         expected="0 or more", fix="predict log(var) and pass its exp()")
    return reduced("gaussian_nll_loss", loss + 0.9189385332046727 if full else loss, reduction)


__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss", "huber_loss", "kl_div",
           "l1_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss"]
