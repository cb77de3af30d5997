"""Losses for regression and for probabilities; class_losses.py contains the classification losses.

`reduction` is "mean" (the default) or "sum" for a 0-dim result, or "none" for one loss per element or sample.
In all functions `input` is the prediction of the model and `target` the true value.
"""
from __future__ import annotations

import warnings

from flowedu.core.ops import elementwise
from flowedu.core.ops.elementwise import abs as abs_op
from flowedu.core.ops.elementwise import exp, greater, log, maximum, minimum, neg, softplus, where, xlogy
from flowedu.core.ops.promote import cast, run, scalar
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.common import ValueT, check_floats, check_tensor, reduced, reshaped, total
from flowedu.ops import functions
from flowedu.ops.checks import require_range
from flowedu.ops.softmax import binary_cross_entropy as binary_cross_entropy_op
from flowedu.ops.softmax import sigmoid_cross_entropy
from flowedu.tensor import Tensor


# ---- regression losses
def _same_shape(what: str, input: Tensor, target: Tensor) -> None:
    check_tensor(what, input)
    check_tensor(what, target, "target")
    if input.shape != target.shape:
        warnings.warn(f"Using a target size ({list(target.shape)}) that is different to the input size "
                      f"({list(input.shape)}). This will likely lead to incorrect results due to "
                      f"broadcasting. Please ensure they have the same size.", stacklevel=4)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return the squared error (input - target)^2.

    Args:
        input: predictions, of any shape.
        target: true values of the same shape; another shape is broadcast, with a warning.
        reduction: "mean", "sum", or "none".
    """
    _same_shape("mse_loss", input, target)
    if input.dtype is target.dtype and input.dtype.is_floating_point:
        return reduced("mse_loss", functions.squared_difference.call((input, target), ()), reduction)
    d = input - target
    return reduced("mse_loss", d * d, reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return the absolute error |input - target|.

    Args:
        input: predictions, of any shape.
        target: true values of the same shape; another shape is broadcast, with a warning.
        reduction: "mean", "sum", or "none".
    """
    _same_shape("l1_loss", input, target)
    return reduced("l1_loss", abs_op(input - target), reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Return 0.5 * d^2 / beta where d = |input - target| is below beta, d - 0.5 * beta elsewhere.

    Args:
        input: predictions, of any shape.
        target: true values of the same shape.
        reduction: "mean", "sum", or "none".
        beta: difference at which the loss becomes linear; 0 gives l1_loss.
    """
    _same_shape("smooth_l1_loss", input, target)
    if beta < 0:
        raise ArgumentError("smooth_l1_loss does not support negative values for beta", expected="beta >= 0",
                            got=str(beta), fix="beta=0.0 is l1_loss")
    d = abs_op(input - target)
    if beta > 0:
        d = huber(d, beta) * (1.0 / beta)
    return reduced("smooth_l1_loss", d, reduction)


def huber(d: ValueT, delta: float) -> ValueT:
    """Return 0.5 * d^2 where d is below delta, delta * (d - 0.5 * delta) elsewhere, for any value d >= 0."""
    small = minimum(d, float(delta))
    return small * (d - small * 0.5)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
    """Return 0.5 * d^2 where d = |input - target| is below delta, delta * (d - 0.5 * delta) elsewhere.

    Args:
        input: predictions, of any shape.
        target: true values of the same shape.
        reduction: "mean", "sum", or "none".
        delta: difference at which the loss becomes linear.
        weight: weight of each element; default: 1.
    """
    _same_shape("huber_loss", input, target)
    if delta <= 0:
        raise ArgumentError("huber_loss does not support non-positive values for delta.",
                            expected="delta > 0", got=str(delta), fix="delta=1.0 is the default")
    loss = huber(abs_op(input - target), delta)
    return reduced("huber_loss", loss if weight is None else loss * weight, reduction)


# ---- losses of probabilities and counts
def _check_pair(what: str, input: Tensor, target: Tensor) -> None:
    check_floats(what, input)
    check_tensor(what, target, "target")
    if input.shape != target.shape:
        raise ShapeError(f"{what}: Using a target size ({list(target.shape)}) that is different to the "
                         f"input size ({list(input.shape)}) is deprecated. Please ensure they have the "
                         f"same size.", expected=str(tuple(input.shape)), got=str(tuple(target.shape)),
                         fix="target.reshape(input.shape), or input.squeeze(1)")


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                         reduction: str = "mean") -> Tensor:
    """Return -(target * log(input) + (1 - target) * log(1 - input)).

    Args:
        input: probabilities in [0, 1], of any shape; their logarithms are clamped at -100.
        target: probabilities of the same shape.
        weight: weight of each loss, of a shape that broadcasts with the input; default: 1.
        reduction: "mean", "sum", or "none".
    """
    _check_pair("binary_cross_entropy", input, target)
    target = cast(target, input.dtype)
    loss = run(binary_cross_entropy_op, (input, target))
    # The check follows the loss, so that the ops that compute the input stay one fused chain, and a plan
    # copies nothing.
    loss = require_range(loss, 0, 1, tested=input.detach(), expected="probabilities",
                         problem="binary_cross_entropy: all elements of input should be between 0 and 1",
                         fix="binary_cross_entropy_with_logits takes any numbers")
    return reduced("binary_cross_entropy", loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:
    """Return the binary_cross_entropy of sigmoid(input), without overflow.

    Args:
        input: logits, of any shape.
        target: probabilities of the same shape.
        weight: weight of each loss, of a shape that broadcasts with the input; default: 1.
        reduction: "mean", "sum", or "none".
        pos_weight: weight of positive targets, of a shape that broadcasts with the input (usually one weight
            per class, the last axis); default: 1.
    """
    _check_pair("binary_cross_entropy_with_logits", input, target)
    target = cast(target, input.dtype)
    loss = sigmoid_cross_entropy(target, input) if pos_weight is None else weighted_logits(
        input, target, (pos_weight - 1) * target + 1)
    return reduced("binary_cross_entropy_with_logits", loss if weight is None else loss * weight, reduction)


def weighted_logits(x: ValueT, target: ValueT, scale: ValueT) -> ValueT:
    """Return (1 - target) * x + softplus(-x) * scale, the weighted cross entropy of sigmoid(x)."""
    return (1 - target) * x + softplus(neg(x)) * scale


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Return the Kullback-Leibler divergence target * (log(target) - input), 0 where target is 0.

    Args:
        input: log-probabilities, of any shape.
        target: probabilities of the same shape.
        reduction: "batchmean", "mean", "sum", or "none". "batchmean" divides the sum by the batch size and is
            the mathematical definition. "mean" divides it by the number of elements, with a warning as in
            PyTorch.
        log_target: the target contains log-probabilities.
    """
    check_floats("kl_div", input)
    check_tensor("kl_div", target, "target")
    if log_target:
        loss = exp(target) * (target - input)
    else:
        loss = xlogy(target, target) - target * input
    if reduction == "batchmean":
        return total(loss) / input.shape[0] if input.ndim else total(loss)
    if reduction == "mean":
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size. "
                      "'batchmean' divides only by the batch size, and aligns with the KL div math "
                      "definition.", stacklevel=2)
    return reduced("kl_div", loss, reduction)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     eps: float = 1e-8, reduction: str = "mean") -> Tensor:
    """Return the negative log likelihood of a Poisson distribution: exp(input) - target * input.

    Args:
        input: logarithms of the rates, or the rates, of any shape; see `log_input`.
        target: counts of the same shape.
        log_input: the input contains logarithms of rates. False: the input contains rates, and the loss is
            input - target * log(input + eps).
        full: add Stirling's approximation of log(target!).
        eps: number added to the rate before the logarithm, if log_input is False.
        reduction: "mean", "sum", or "none".
    """
    check_floats("poisson_nll_loss", input)
    check_tensor("poisson_nll_loss", target, "target")
    loss = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        sure = maximum(target, 1.0)
        stirling = target * log(sure) - target + log(sure * 6.283185307179586) * 0.5
        loss = loss + where(greater(target, 1.0), stirling, target * 0)
    return reduced("poisson_nll_loss", loss, reduction)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    """Return the negative log likelihood of a normal distribution.

    The loss is 0.5 * (log(var) + (input - target)^2 / var).

    Args:
        input: means, of any shape.
        target: samples of the same shape, or of a shape that broadcasts with it.
        var: variances, of the input's shape; the last axis may have size 1 or be missing.
        full: add the constant 0.5 * log(2 pi).
        eps: lower limit of the variance. The backward pass ignores this limit, as in PyTorch.
        reduction: "mean", "sum", or "none".
    """
    check_floats("gaussian_nll_loss", input)
    check_tensor("gaussian_nll_loss", target, "target")
    if not hasattr(var, "shape"):
        var = scalar(var, input.dtype)
    if var.shape != input.shape and var.ndim == input.ndim - 1 and var.ndim:
        var = reshaped(var, (*var.shape, 1))
    given = var.detach()
    small = elementwise.less.call((var.detach(), scalar(eps, var.dtype)), ())
    var = var + where(small, eps - var.detach(), var.detach() * 0)
    d = input - target
    loss = (log(var) + d * d / var) * 0.5
    loss = require_range(loss, 0, tested=given, nan=True,
                         problem="gaussian_nll_loss: var has negative entry/entries",
                         expected="0 or more", fix="predict log(var) and pass its exp()")
    return reduced("gaussian_nll_loss", loss + 0.9189385332046727 if full else loss, reduction)


__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss", "huber_loss",
           "kl_div", "l1_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss"]
