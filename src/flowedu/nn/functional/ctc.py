"""Loss of label sequences that are not aligned with their inputs (ctc_loss)."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu.core.ops.elementwise import maximum
from flowedu.core.ops.promote import cast
from flowedu.errors import DTypeError, ShapeError
from flowedu.nn.functional.common import ValueT, check_floats, reduced
from flowedu.ops.ctc import ctc_loss as ctc_loss_op
from flowedu.tensor import Tensor, from_numpy, tensor
from flowedu.tensor.devices.conversion import beside


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int],
             target_lengths: Tensor | Sequence[int], blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Tensor:
    """Return -log(p), where p is the total probability of all alignments of a label sequence.

    This is the loss of connectionist temporal classification (Graves et al. 2006).

    Args:
        log_probs: log-probabilities, (time, batch, classes) or (time, classes).
        targets: labels, (batch, longest), or all sequences concatenated in one vector (eager mode only).
        input_lengths: (batch,) tensor or list, the number of time steps of each sample.
        target_lengths: (batch,) tensor or list, the number of labels of each sample.
        blank: class index of the blank label.
        reduction: "mean" (each loss divided by the length of its target, at least 1), "sum", or "none".
        zero_infinity: return a loss of 0 instead of infinity for targets that are too long for their inputs.
    """
    check_floats("ctc_loss", log_probs, "log_probs")
    one = log_probs.ndim == 2
    if one:
        log_probs, targets = log_probs.unsqueeze(1), targets.unsqueeze(0) if targets.ndim == 1 else targets
    inputs, lengths = _lengths(input_lengths, "input_lengths"), _lengths(target_lengths, "target_lengths")
    if targets.ndim == 1:
        targets = _rows(targets, lengths)
    targets, inputs, lengths = (beside(t, log_probs) for t in (targets, inputs, lengths))
    if targets.dtype.name not in ("int32", "int64"):
        raise DTypeError("ctc_loss: targets must be integral", expected="int32 or int64",
                         got=repr(targets.dtype), fix="targets.long()")
    loss = ctc_losses(log_probs, targets, inputs, lengths, blank, zero_infinity, reduction == "mean")
    return loss.reshape(()) if one and reduction == "none" else reduced("ctc_loss", loss, reduction)


def ctc_losses(log_probs: ValueT, targets: ValueT, inputs: ValueT, lengths: ValueT, blank: int,
               zero_infinity: bool, per_label: bool) -> ValueT:
    """Return the loss of each sequence, divided by the length of its target (at least 1) if `per_label`."""
    loss = ctc_loss_op(log_probs, targets, inputs, lengths, blank=int(blank),
                       zero_infinity=bool(zero_infinity))
    return loss / cast(maximum(lengths, 1), loss.dtype) if per_label else loss


def _lengths(n: Tensor | Sequence[int], name: str) -> Tensor:
    x = n if isinstance(n, Tensor) else tensor(n)
    if x.dtype.is_floating_point:
        raise DTypeError(f"ctc_loss: {name} must be integral", expected="int64", got=repr(x.dtype),
                         fix=f"{name}.long()")
    return x.reshape(-1) if x.ndim != 1 else x


def _rows(targets: Tensor, lengths: Tensor) -> Tensor:
    """Return the labels of a flat vector as (batch, longest)."""
    flat, counts = targets.peek(), lengths.peek()
    if flat.size != counts.sum():
        raise ShapeError("ctc_loss: the target lengths do not add up to the number of labels",
                         expected=str(flat.size),
                         got=str(int(counts.sum())),
                         fix="pass each target's own length, or targets as (batch, longest)")
    rows, at = np.zeros((counts.size, int(counts.max(initial=0))), flat.dtype), 0
    for i, n in enumerate(counts):
        rows[i, :n] = flat[at:at + n]
        at += n
    return from_numpy(rows)


__all__ = ["ctc_loss"]
