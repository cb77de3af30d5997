"""Classification losses: cross_entropy, nll_loss, and margins for cosines."""
from __future__ import annotations

import math

from flowedu.core.ops import elementwise, view
from flowedu.core.ops.elementwise import cos, equal, mul, neg, where
from flowedu.core.ops.promote import cast, scalar
from flowedu.core.ops.reduce import sum as sum_op
from flowedu.core.ops.view import cast as cast_op
from flowedu.core.ops.view import reshape
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CheckError, DTypeError, KernelError, OutOfRangeError, ShapeError
from flowedu.nn.functional.common import Ints, ValueT, check_floats, check_tensor, reduced, reshaped, total
from flowedu.ops import index
from flowedu.ops import softmax as softmax_ops
from flowedu.ops.bounds import straight
from flowedu.ops.functions import acos
from flowedu.ops.order import range as range_op
from flowedu.ops.scatter import dim_gather
from flowedu.ops.softmax import softmax_cross_entropy
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.devices.conversion import use_device_of


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """Return the cross entropy of logits and targets, which are class indices or class probabilities.

    The loss is -log softmax(input) at the target class. For targets that are probabilities, it is
    -sum(target * log softmax(input)).

    Args:
        input: logits (N, C, ...) or (C,).
        target: class indices, integers (N, ...) or (), or probabilities of the input's shape.
        weight: (C,) weight of each class; default: 1. For class indices, "mean" divides the sum of the
            weighted losses by the sum of the weights of the target classes.
        ignore_index: targets of this class contribute neither a loss nor a gradient.
        reduction: "mean", "sum", or "none".
        label_smoothing: part of the target, 0 to 1, that is spread evenly over all classes.

    Raises:
        OutOfRangeError (an IndexError and RuntimeError): a target class is outside [0, C).
        DTypeError, ShapeError (RuntimeErrors): an argument has a wrong dtype or shape.

    Example:
        >>> flow.nn.functional.cross_entropy(flow.zeros(1, 2), flow.tensor([0])).item()
        0.6931471824645996
    """
    check_floats("cross_entropy", input)
    check_tensor("cross_entropy", target, "target")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ArgumentError(f"cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: "
                            f"{label_smoothing}",
                            expected="a share", got=str(label_smoothing), fix="label_smoothing=0.1 is usual")
    if not input.ndim:
        raise ShapeError("cross_entropy: the input has no classes", expected="(N, C, ...) or (C,)",
                         got="a 0-dim tensor", fix="input.reshape(1, -1)")
    axis = 1 if input.ndim > 1 else 0
    classes = input.shape[axis]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise ShapeError(f"cross_entropy: weight tensor should be defined either for all {classes} classes "
                         f"or no classes but got weight tensor of shape: {list(weight.shape)}",
                         expected=f"({classes},)",
                         got=str(tuple(weight.shape)), fix="flow.ones(classes) counts all alike")
    rows = _classes_last(input, axis)
    if target.dtype.is_floating_point:
        return _of_probabilities(rows, target, axis, weight, reduction, label_smoothing, input)
    labels = _labels("cross_entropy", target, (*input.shape[:axis], *input.shape[axis + 1:]), input)
    try:
        loss = softmax_ops.sparse_softmax_cross_entropy.call((labels, rows), (ignore_index,))[0]
    except KernelError as e:
        raise _no_such_class("cross_entropy", e, input, classes, ignore_index) from None
    if label_smoothing == 0.0 and weight is None:
        if reduction != "mean":
            return reduced("cross_entropy", loss, reduction)
        return elementwise.div.call((total(loss), total(_counted(labels, ignore_index, loss.dtype))), ())
    counts = _counted(labels, ignore_index, loss.dtype)
    if weight is not None:
        safe = _safe(labels, counts)
        counts = counts * index.gather.call((cast(weight, loss.dtype), safe), (0,))
        loss = loss * counts
    if label_smoothing:
        logs = softmax_ops.log_softmax.call((rows,), (-1,))
        logs = logs if weight is None else logs * cast(weight, logs.dtype)
        even = neg(sum_op(logs, axis=(logs.ndim - 1,))) * _counted(labels, ignore_index, loss.dtype)
        loss = loss * (1 - label_smoothing) + even * (label_smoothing / classes)
    return _mean(loss, counts) if reduction == "mean" else reduced("cross_entropy", loss, reduction)


def _classes_last(x: Tensor, axis: int) -> Tensor:
    if axis == x.ndim - 1:
        return x
    return view.transpose.call((x,), ((*(i for i in range(x.ndim) if i != axis), axis),))


def _labels(what: str, target: Tensor, shape: Ints, input: Tensor) -> Tensor:
    """Return target, checked to be integers of this shape."""
    if target.dtype is dt.bool_:
        raise DTypeError(f"{what}: expected target being integer type, but got {target.dtype!r}",
                         expected="int64", got=repr(target.dtype), fix="target.long()")
    if tuple(target.shape) != shape:
        raise ShapeError(f"{what}: Expected target size {list(shape)}, got {list(target.shape)}",
                         expected=f"a class for each sample of the input {tuple(input.shape)}: {shape}",
                         got=str(tuple(target.shape)),
                         fix="target.argmax(1) of one-hot targets, or target.float() for probabilities"
                         if target.shape == input.shape else "axis 1 of the input is the axis of classes")
    return target


def _counted(labels: Tensor, ignore_index: int, dtype: dt.dtype) -> Tensor:
    """Return 1 for each label that counts, 0 for each ignored one."""
    return cast(E.ne(labels, ignore_index), dtype)         # uint8 labels cannot be -100


def _safe(labels: Tensor, counts: Tensor) -> Tensor:
    """Return the labels as indices: 0 for ignored ones."""
    labels = labels if labels.dtype in (dt.int32, dt.int64) else cast(labels, dt.int64)
    return mul(labels, cast(counts, labels.dtype))


def _mean(loss: Tensor, counts: Tensor) -> Tensor:
    """Return sum(loss) / sum(counts).

    If nothing counts, the mean is NaN, but the gradients of the samples are 0.
    """
    n = total(counts)
    nothing, zero, one = E.eq(n, 0.0), scalar(0.0, loss.dtype), scalar(1.0, loss.dtype)
    return total(loss) / E.where(nothing, one, n) + E.where(nothing, scalar(math.nan, loss.dtype), zero)


def _no_such_class(what: str, e: KernelError, input: Tensor, classes: int,
                   ignore_index: int) -> OutOfRangeError:
    return OutOfRangeError(f"{what}: a target class is out of range ({e.problem})",
                           got=f"input {tuple(input.shape)}",
                           expected=f"0 <= class < {classes}, or ignore_index={ignore_index}",
                           fix="count classes from 0; as many outputs as classes")


def _of_probabilities(rows: Tensor, target: Tensor, axis: int, weight: Tensor | None, reduction: str,
                      label_smoothing: float, input: Tensor) -> Tensor:
    if target.shape != input.shape:
        raise DTypeError("cross_entropy: expected target being integer type, or probabilities of the "
                         "input's shape",
                         expected=f"int64 {(*input.shape[:axis], *input.shape[axis + 1:])}, or floats "
                         f"{tuple(input.shape)}",
                         got=f"{target.dtype!r} {tuple(target.shape)}", fix="target.long() for classes")
    target = _classes_last(cast(target, rows.dtype), axis)
    classes = rows.shape[-1]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    if weight is not None:
        target = target * cast(weight, rows.dtype)
    loss = softmax_cross_entropy(target, rows)[0]
    return reduced("cross_entropy", loss, reduction)


def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Return -log softmax(logits) at the label of each sample.

    Args:
        labels: integers (...,).
        logits: (..., C).

    Note:
        The name and the order of the arguments follow OneFlow.
    """
    return softmax_ops.sparse_softmax_cross_entropy.call((labels, logits), (None,))[0]


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
             reduction: str = "mean") -> Tensor:
    """Return the negative log likelihood, which is -input at the target class.

    Args:
        input: log-probabilities (N, C, ...) or (C,).
        target: class indices, integers (N, ...) or ().
        weight: (C,) weight of each class; default: 1. "mean" divides the sum of the weighted losses by the
            sum of the weights of the target classes.
        ignore_index: targets of this class contribute neither a loss nor a gradient.
        reduction: "mean", "sum", or "none".
    """
    check_floats("nll_loss", input)
    check_tensor("nll_loss", target, "target")
    axis = 1 if input.ndim > 1 else 0
    if target.dtype.is_floating_point:
        raise DTypeError("nll_loss: expected target being integer type", expected="int64",
                         got=repr(target.dtype), fix="target.long()")
    classes = input.shape[axis]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise ShapeError(f"nll_loss: weight tensor should be defined either for all {classes} classes or no "
                         f"classes",
                         expected=f"({classes},)", got=str(tuple(weight.shape)),
                         fix="flow.ones(classes) counts all alike")
    labels = _labels("nll_loss", target, (*input.shape[:axis], *input.shape[axis + 1:]), input)
    rows = _classes_last(input, axis)
    counts = _counted(labels, ignore_index, input.dtype)
    safe = _safe(labels, counts)
    if weight is not None:
        counts = counts * index.gather.call((cast(weight, counts.dtype), safe), (0,))
    try:
        picked = dim_gather(rows, reshaped(safe, (*safe.shape, 1)), axis=rows.ndim - 1)
    except KernelError as e:
        raise _no_such_class("nll_loss", e, input, classes, ignore_index) from None
    # The gradient of a gather has no derivative of its own.
    picked = straight(picked)
    loss = neg(reshaped(picked, tuple(safe.shape))) * counts
    return _mean(loss, counts) if reduction == "mean" else reduced("nll_loss", loss, reduction)


# ---- margins
def label_scores(what: str, labels: ValueT, x: ValueT) -> tuple[ValueT, ValueT]:
    """Return the labels as a column, and x[i, labels[i]], the score of the label of each row i.

    The labels have the shape (n,) or (n, 1).
    """
    if labels.dtype not in (dt.int32, dt.int64):
        raise DTypeError(f"{what}: labels have the wrong element type", expected="int32 or int64",
                         got=labels.dtype.name,
                         fix="flow.cast(labels, flow.int32); check the order of the arguments")
    if labels.shape not in (x.shape[:-1], (*x.shape[:-1], 1)) or not x.ndim:
        raise CheckError(f"{what}: the labels do not fit",
                         expected=f"labels {x.shape[:-1]}, one for each row of {x.shape}",
                         got=str(labels.shape), fix="check the order of the arguments")
    column = reshape(labels, shape=(*x.shape[:-1], 1))
    return column, dim_gather(x, column, axis=x.ndim - 1)


def combined_margin_loss(x: Tensor, label: Tensor, m1: float = 1.0, m2: float = 0.0,
                         m3: float = 0.0) -> Tensor:
    """Return x, with the cosine of each row's label replaced by cos(m1 * acos(x) + m2) - m3.

    To get a loss, scale the result and pass it to a softmax cross entropy. If m1 is not 1 or m2 is not 0,
    cosines of labels are first clamped to slightly less than 1 in absolute value, because rounding may move
    them to 1 or beyond. OneFlow 0.4 does not clamp, and its result is NaN for such cosines.

    Args:
        x: cosines, (n, classes).
        label: class indices, integers (n,).
        m1: factor of the angle (SphereFace).
        m2: number added to the angle, in radians (ArcFace).
        m3: number subtracted from the cosine (CosFace).
    """
    if x.ndim != 2:
        raise ShapeError("combined_margin_loss: x does not fit", expected="(n, classes)", got=str(x.shape),
                         fix="flow.flatten or flow.reshape it")
    column, score = label_scores("combined_margin_loss", label, x)
    if (m1, m2) != (1, 0):
        top = 1 - (1e-7 if x.dtype is dt.float32 else 1e-15)
        angle = acos(E.clamp(score, -top, top))
        score = cos(angle * float(m1) + float(m2))
    with use_device_of(x):
        hot = equal(cast_op(column, dtype=dt.int64), range_op(size=x.shape[1], dtype=dt.int64))
    return where(hot, score - float(m3), x)


__all__ = ["combined_margin_loss", "cross_entropy", "nll_loss", "sparse_softmax_cross_entropy"]
