"""Losses. reduction: "mean" (the default) and "sum" give one number, 0-dim; "none" a loss for each element or sample.

In all of them `input` is what the model said and `target` what is right.
"""
from __future__ import annotations

import warnings

from flowedu.blob import dtype as dt
from flowedu.errors import ArgumentError, DTypeError, KernelError, OutOfRangeError, ShapeError
from flowedu.nn.functional.common import check_floats, check_tensor, reduced, reshaped, times, total
from flowedu.ops.define import REGISTRY
from flowedu.tensor import Tensor
from flowedu.tensor.promote import cast, run, scalar

_r = REGISTRY
_CROSS_ENTROPY, _SQUARED = REGISTRY["sparse_softmax_cross_entropy"], REGISTRY["squared_difference"]


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
        bent = _r["minimum"](d, float(beta))              # below beta: d; above: beta
        d = bent * (d - bent * 0.5) * (1.0 / beta)
    return reduced("smooth_l1_loss", d, reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
    """0.5 * d^2 where d = |input - target| is below delta, else delta * (d - 0.5 * delta)."""
    _same_shape("huber_loss", input, target)
    if delta <= 0:
        raise ArgumentError("huber_loss does not support non-positive values for delta.", expected="delta > 0",
                            got=str(delta), fix="delta=1.0 is the default")
    d = _r["abs"](input - target)
    bent = _r["minimum"](d, float(delta))
    loss = bent * (d - bent * 0.5)
    return reduced("huber_loss", loss if weight is None else loss * weight, reduction)


# ---- of classes
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """-log softmax(input) at the target class; or -sum(target * log softmax(input)) where target holds probabilities.

    Args:
        input: logits (N, C, ...), or (C,). target: classes, whole numbers (N, ...) or (); or probabilities like input.
        weight: (C,) how much each class counts. The mean is weighted too (not for probabilities).
        ignore_index: samples of this class do not count.
        label_smoothing: this share of the target is spread evenly over all classes.

    Raises:
        OutOfRangeError (an IndexError and RuntimeError): a class outside [0, C).
        DTypeError, ShapeError (RuntimeErrors): what does not fit.
    """
    check_floats("cross_entropy", input)
    check_tensor("cross_entropy", target, "target")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(f"cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}",
                            expected="a share", got=str(label_smoothing), fix="label_smoothing=0.1 is usual")
    if not input.ndim:
        raise ShapeError("cross_entropy: the input has no classes", expected="(N, C, ...) or (C,)", got="a 0-dim tensor",
                         fix="input.reshape(1, -1)")
    axis = 1 if input.ndim > 1 else 0
    classes = input.shape[axis]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise ShapeError(f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes "
                         f"but got weight tensor of shape: {list(weight.shape)}", expected=f"({classes},)",
                         got=str(tuple(weight.shape)), fix="flow.ones(classes) counts all alike")
    rows = _classes_last(input, axis)
    if target.dtype.is_floating_point:
        return _of_probabilities(rows, target, axis, weight, reduction, label_smoothing, input)
    labels = _labels("cross_entropy", target, (*input.shape[:axis], *input.shape[axis + 1:]), input)
    try:
        loss = _CROSS_ENTROPY.call((labels, rows), (ignore_index,))[0]
    except KernelError as e:
        raise _no_such_class("cross_entropy", e, input, classes, ignore_index) from None
    if label_smoothing == 0.0 and weight is None:
        if reduction != "mean":
            return reduced("cross_entropy", loss, reduction)
        return _r["div"].call((total(loss), total(_counted(labels, ignore_index, loss.dtype))), ())
    counts = _counted(labels, ignore_index, loss.dtype)
    if weight is not None:
        safe = _r["mul"](labels, cast(counts, labels.dtype))
        counts = counts * _r["gather"].call((cast(weight, loss.dtype), safe), (0,))
        loss = loss * counts
    if label_smoothing:
        logs = _r["log_softmax"].call((rows,), (-1,))
        logs = logs if weight is None else logs * cast(weight, logs.dtype)
        even = _r["neg"](_r["sum"](logs, axis=(logs.ndim - 1,))) * _counted(labels, ignore_index, loss.dtype)
        loss = loss * (1 - label_smoothing) + even * (label_smoothing / classes)
    return total(loss) / total(counts) if reduction == "mean" else reduced("cross_entropy", loss, reduction)


def _classes_last(x, axis: int):
    if axis == x.ndim - 1:
        return x
    return _r["transpose"].call((x,), ((*(i for i in range(x.ndim) if i != axis), axis),))


def _labels(what: str, target, shape: tuple, input):
    """target as int32 or int64, of this shape."""
    if target.dtype is dt.bool_:
        raise DTypeError(f"{what}: expected target being integer type, but got {target.dtype!r}", expected="int64",
                         got=repr(target.dtype), fix="target.long()")
    if tuple(target.shape) != shape:
        raise ShapeError(f"{what}: Expected target size {list(shape)}, got {list(target.shape)}", expected=f"a class for "
                         f"each sample of the input {tuple(input.shape)}: {shape}", got=str(tuple(target.shape)),
                         fix="target.argmax(1) of one-hot targets, or target.float() for probabilities"
                         if target.shape == input.shape else "classes of the input lie along axis 1")
    return target


def _counted(labels, ignore_index: int, dtype):
    """1 for each label that counts, 0 for each that does not."""
    return cast(_r["not_equal"].call((labels, scalar(ignore_index, labels.dtype)), ()), dtype)


def _no_such_class(what: str, e: KernelError, input, classes: int, ignore_index: int) -> OutOfRangeError:
    return OutOfRangeError(f"{what}: a target class is out of range ({e.problem})", got=f"input {tuple(input.shape)}",
                           expected=f"0 <= class < {classes}, or ignore_index={ignore_index}",
                           fix="count classes from 0; as many outputs as classes")


def _of_probabilities(rows, target, axis, weight, reduction, label_smoothing, input):
    if target.shape != input.shape:
        raise DTypeError("cross_entropy: expected target being integer type, or probabilities of the input's shape",
                         expected=f"int64 {(*input.shape[:axis], *input.shape[axis + 1:])}, or floats {tuple(input.shape)}",
                         got=f"{target.dtype!r} {tuple(target.shape)}", fix="target.long() for classes")
    target = _classes_last(cast(target, rows.dtype), axis)
    classes = rows.shape[-1]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    if weight is not None:
        target = target * cast(weight, rows.dtype)
    loss = _r["softmax_cross_entropy"](target, rows)[0]
    return reduced("cross_entropy", loss, reduction)


def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """-log softmax(logits) at the label, for each sample: (...,) labels, (..., C) logits. OneFlow's name and order."""
    return _CROSS_ENTROPY.call((labels, logits), (None,))[0]


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
             reduction: str = "mean") -> Tensor:
    """-input at the target class. input: (N, C, ...) or (C,), logarithms of probabilities; all else as cross_entropy."""
    check_floats("nll_loss", input)
    check_tensor("nll_loss", target, "target")
    axis = 1 if input.ndim > 1 else 0
    if target.dtype.is_floating_point:
        raise DTypeError("nll_loss: expected target being integer type", expected="int64", got=repr(target.dtype),
                         fix="target.long()")
    classes = input.shape[axis]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise ShapeError(f"nll_loss: weight tensor should be defined either for all {classes} classes or no classes",
                         expected=f"({classes},)", got=str(tuple(weight.shape)), fix="flow.ones(classes) counts all alike")
    labels = _labels("nll_loss", target, (*input.shape[:axis], *input.shape[axis + 1:]), input)
    rows = _classes_last(input, axis)
    counts = _counted(labels, ignore_index, input.dtype)
    safe = _r["mul"](labels, cast(counts, labels.dtype))
    if weight is not None:
        counts = counts * _r["gather"].call((cast(weight, counts.dtype), safe), (0,))
    try:
        picked = _r["dim_gather"](rows, reshaped(safe, (*safe.shape, 1)), axis=rows.ndim - 1)
    except KernelError as e:
        raise _no_such_class("nll_loss", e, input, classes, ignore_index) from None
    loss = _r["neg"](reshaped(picked, tuple(safe.shape))) * counts
    return total(loss) / total(counts) if reduction == "mean" else reduced("nll_loss", loss, reduction)


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
    return reduced("binary_cross_entropy", loss if weight is None else loss * weight, reduction)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:
    """binary_cross_entropy of sigmoid(input), without overflow.

    pos_weight: how much positive targets count, broadcasts over the classes (the last axes).
    """
    _check_pair("binary_cross_entropy_with_logits", input, target)
    target = cast(target, input.dtype)
    if pos_weight is None:
        loss = _r["sigmoid_cross_entropy"](target, input)
    else:
        scale = (pos_weight - 1) * target + 1
        loss = (1 - target) * input + _r["softplus"](_r["neg"](input)) * scale
    return reduced("binary_cross_entropy_with_logits", loss if weight is None else loss * weight, reduction)


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
        return times(total(loss), 1.0 / input.shape[0]) if input.ndim else total(loss)
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
    if not var.is_lazy and float(var.numpy().min(initial=0.0)) < 0:
        raise ArgumentError("gaussian_nll_loss: var has negative entry/entries", expected="0 or more",
                            got=f"{float(var.numpy().min())}", fix="predict log(var) and pass its exp()")
    small = _r["less"].call((var.detach(), scalar(eps, var.dtype)), ())
    var = var + _r["where"](small, eps - var.detach(), var.detach() * 0)
    d = input - target
    loss = (_r["log"](var) + d * d / var) * 0.5
    return reduced("gaussian_nll_loss", loss + 0.9189385332046727 if full else loss, reduction)


__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "gaussian_nll_loss", "huber_loss",
           "kl_div", "l1_loss", "mse_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss",
           "sparse_softmax_cross_entropy"]
