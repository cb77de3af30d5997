"""Margin losses, which penalize wrong classes with scores too close to the score of the right class."""
from __future__ import annotations

from flowedu.core.ops.promote import cast
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.nn.functional.common import Ints, check_floats, check_tensor, reduced
from flowedu.ops.checks import require_range
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.construction.creation import arange
from flowedu.tensor.devices.conversion import use_device_of
from flowedu.tensor.indexing.gather_scatter import gather


def _rows(what: str, input: Tensor, target: Tensor, shape: Ints) -> tuple[Tensor, Tensor]:
    """Return scores (n, classes) and targets (n, ...). `shape` is the expected shape of the targets."""
    check_floats(what, input)
    check_tensor(what, target, "target")
    if input.ndim not in (1, 2):
        raise ShapeError(f"{what}: Expected non-empty vector or matrix",
                         expected="(n, classes), or (classes,)",
                         got=str(tuple(input.shape)), fix="input.flatten(1)")
    if target.dtype not in (dt.int32, dt.int64):
        raise DTypeError(f"{what}: expected target being integer type", expected="int64",
                         got=repr(target.dtype), fix="target.long()")
    if tuple(target.shape) != shape:
        raise ShapeError(f"{what}: inconsistent target size", expected=str(shape),
                         got=str(tuple(target.shape)), fix="check the order of the arguments: input, target")
    return (input, target) if input.ndim == 2 else (input.unsqueeze(0), target.unsqueeze(0))


def _classes(n: int, like: Tensor) -> Tensor:
    with use_device_of(like):
        return arange(n)


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0,
                      weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """Return the sum over the wrong classes j of max(0, margin - x[target] + x[j])^p, divided by `classes`.

    Args:
        input: scores x, (n, classes) or (classes,).
        target: class indices, integers (n,) or ().
        p: 1 or 2.
        margin: smallest difference x[target] - x[j] for which a wrong class j adds no loss.
        weight: (classes,) weight of each class; default: 1.
        reduction: "mean", "sum", or "none".

    Note:
        The divisor is the number of all classes, including the target class.
    """
    x, y = _rows("multi_margin_loss", input, target, tuple(input.shape[:-1]))
    if p not in (1, 2):
        raise ArgumentError("multi_margin_loss: only p == 1 and p == 2 supported", expected="1 or 2",
                            got=repr(p), fix="p=1")
    classes, column = x.shape[1], y.unsqueeze(1)
    column = require_range(column, 0, classes - 1, problem="multi_margin_loss: target out of range",
                           expected=f"classes in [0, {classes})", fix="count classes from 0")
    d = E.clamp(x - gather(x, 1, column) + margin, min=0)
    d = d if p == 1 else d * d
    if weight is not None:
        if tuple(weight.shape) != (classes,):
            raise ShapeError("multi_margin_loss: inconsistent weight size", expected=f"({classes},)",
                             got=str(tuple(weight.shape)), fix="flow.ones(classes) counts all alike")
        d = d * gather(weight.unsqueeze(0), 1, column.reshape(1, -1)).reshape(-1, 1)
    loss = E.where(E.eq(_classes(classes, x), column), 0.0, d).sum(1) / classes
    return reduced("multi_margin_loss", loss if input.ndim == 2 else loss.squeeze(0), reduction)


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return sum(max(0, 1 - x[i] + x[j])) / classes over target classes i and other classes j.

    Args:
        input: scores x, (n, classes) or (classes,).
        target: class indices of each sample followed by -1, of the same shape; elements after -1 are ignored.
        reduction: "mean", "sum", or "none".

    Note:
        The sum over all pairs (i, j) is divided by the number of all classes.
    """
    x, y = _rows("multilabel_margin_loss", input, target, tuple(input.shape))
    y = require_range(y, -1, x.shape[1] - 1, problem="multilabel_margin_loss: invalid target",
                      expected=f"classes in [0, {x.shape[1]}), then -1",
                      fix="end the classes of each sample with -1")
    named = E.eq(cast(E.lt(y, 0), dt.int32).cumsum(1), 0)                # up to the first -1
    places = E.where(named, y, 0)
    hits = E.logical_and(E.eq(places.unsqueeze(2), _classes(x.shape[1], x)), named.unsqueeze(2))
    others = E.logical_not(hits.any(1)).unsqueeze(1)                     # (n, 1, classes)
    d = E.clamp(1 - gather(x, 1, places).unsqueeze(2) + x.unsqueeze(1), min=0)
    loss = E.where(E.logical_and(others, named.unsqueeze(2)), d, 0.0).sum((1, 2)) / x.shape[1]
    return reduced("multilabel_margin_loss", loss if input.ndim == 2 else loss.squeeze(0), reduction)


__all__ = ["multi_margin_loss", "multilabel_margin_loss"]
