"""ctc_loss: the loss of a sequence of labels whose positions in time are unknown (Graves et al., 2006).

_kernels/ops/ctc.pyx explains the states, alpha, and beta, and computes the first derivative. The second
derivative is that of `unrolled`, the same recursion written in ops, with a few ops per time step.
"""
from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops.concat import concat, slice
from flowedu.core.ops.define import define
from flowedu.core.ops.elementwise import add, exp, greater, less, log, maximum, neg, not_equal, where
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.ops.reduce import sum
from flowedu.core.ops.reverse import vjp
from flowedu.core.ops.view import cast, constant, expand, reshape
from flowedu.core.values import dtype as dt
from flowedu.core.values.dtype import float32, float64, int32, int64
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.ops.order import range as positions
from flowedu.ops.scatter import dim_gather
from flowedu.ops.types import AnyTensor

register("ctc")

_NEVER = -1e30            # log of a probability of 0 in `unrolled`: it must have derivatives


def _check(name: str) -> Callable[..., None]:
    def check(log_probs: Spec, targets: Spec, input_lengths: Spec, target_lengths: Spec, blank: int) -> None:
        x = log_probs
        if x.dtype not in (float32, float64):
            raise DTypeError(f"{name}: log_probs have the wrong element type", expected="float32 or float64",
                             got=x.dtype.name, fix="flow.cast(log_probs, flow.float32)")
        for what, v in (("targets", targets), ("input_lengths", input_lengths),
                        ("target_lengths", target_lengths)):
            if v.dtype not in (int32, int64):
                raise DTypeError(f"{name}: {what} have the wrong element type", expected="int32 or int64",
                                 got=v.dtype.name, fix=f"flow.cast({what}, flow.int32)")
        if x.ndim != 3 or targets.ndim != 2 or targets.shape[0] != x.shape[1] or not (
                input_lengths.shape == target_lengths.shape == (x.shape[1],)):
            raise ShapeError(f"{name}: the inputs do not fit",
                             got=f"log_probs {x.shape}, targets {targets.shape}, input_lengths "
                             f"{input_lengths.shape}, target_lengths {target_lengths.shape}",
                             expected="log_probs (time, batch, classes), targets (batch, longest), two "
                             "lengths (batch,)",
                             fix="log_probs with the batch first: flow.transpose(log_probs, [1, 0, 2])")
        if not 0 <= blank < x.shape[2]:
            raise ArgumentError(f"{name}: blank is not a class", expected=f"0 <= blank < {x.shape[2]}",
                                got=str(blank), fix="blank=0, or the last class")
    return check


def _check_grad(dloss: Spec, log_probs: Spec, targets: Spec, input_lengths: Spec, target_lengths: Spec,
                blank: int) -> None:
    _check("ctc_loss_grad")(log_probs, targets, input_lengths, target_lengths, blank)
    if dloss.dtype is not log_probs.dtype:
        raise DTypeError("ctc_loss_grad: the element types differ", expected="equal types",
                         got=f"dloss {dloss}, log_probs {log_probs}", fix="convert one with flow.cast")


def _alphas(x: np.ndarray, labels: np.ndarray, blank: int) -> tuple[np.ndarray, np.ndarray]:
    """(states, alpha after each time step) of one sequence; x: (time, classes)."""
    states = np.full(2 * len(labels) + 1, blank)
    states[1::2] = labels
    skips = np.zeros(len(states), bool)
    skips[2:] = (states[2:] != states[:-2]) & (states[2:] != blank)
    alpha = np.full((len(x) + 1, len(states)), -np.inf)
    alpha[0, 0] = 0
    for t, row in enumerate(x):
        ways = np.full((3, len(states)), -np.inf)
        ways[0], ways[1, 1:], ways[2, 2:] = alpha[t], alpha[t, :-1], np.where(skips[2:], alpha[t, :-2],
                                                                              -np.inf)
        alpha[t + 1] = row[states] + np.logaddexp.reduce(ways, axis=0)
    return states, alpha


def _ref(log_probs: np.ndarray, targets: np.ndarray, input_lengths: np.ndarray, target_lengths: np.ndarray,
         blank: int, zero_infinity: bool) -> np.ndarray:
    loss = np.zeros(log_probs.shape[1], log_probs.dtype)
    for n, (steps, count) in enumerate(zip(input_lengths, target_lengths)):
        _, alpha = _alphas(log_probs[:steps, n].astype(np.float64), targets[n, :count], blank)
        loss[n] = -np.logaddexp.reduce(alpha[-1, -2:])
    return np.where(np.isinf(loss), 0, loss).astype(loss.dtype) if zero_infinity else loss


def _grad_ref(dloss: np.ndarray, log_probs: np.ndarray, targets: np.ndarray, input_lengths: np.ndarray,
              target_lengths: np.ndarray, blank: int) -> np.ndarray:
    """Compute the gradient with respect to log_probs.

    `back` is the alpha of the reversed sequence. beta is `back` without the emission of the step,
    x[t, states].
    """
    dx = np.zeros_like(log_probs)
    for n, (steps, count) in enumerate(zip(input_lengths, target_lengths)):
        x, labels = log_probs[:steps, n].astype(np.float64), targets[n, :count]
        states, alpha = _alphas(x, labels, blank)
        _, back = _alphas(x[::-1], labels[::-1], blank)
        total = np.logaddexp.reduce(alpha[-1, -2:])
        for t in range(steps if total > -np.inf else 0):
            weight = np.exp(alpha[t + 1] + back[steps - t, ::-1] - x[t, states] - total)
            np.subtract.at(dx[t, n], states, dloss[n] * weight)
    return dx


# ---- the same in ops
def unrolled(log_probs: AnyTensor, targets: AnyTensor, input_lengths: AnyTensor, target_lengths: AnyTensor,
             blank: int) -> AnyTensor:
    """Compute the loss by ops with derivatives of every order; 0 if the labels cannot be emitted."""
    steps, batch, _ = log_probs.shape
    longest, dtype = targets.shape[1], log_probs.dtype
    width = 2 * longest + 1

    def full(n: int, value: float, dtype: dt.dtype) -> AnyTensor:
        return constant(shape=(batch, n), value=value, dtype=dtype)

    def columns(x: AnyTensor, start: int, stop: int) -> AnyTensor:
        return slice(x, start=(0, start), stop=(batch, stop), step=(1, 1))

    def behind(x: AnyTensor, n: int) -> AnyTensor:
        """Move x by n states towards the end; the first n states become impossible."""
        return (concat(full(n, _NEVER, dtype), columns(x, 0, width - n), axis=1) if n < width
                else full(width, _NEVER, dtype))

    lengths, counts = [reshape(cast(n, dtype=int64), shape=(batch, 1))
                       for n in (input_lengths, target_lengths)]
    blanks = full(longest, blank, int64)
    labels = where(less(positions(size=longest, dtype=int64), counts), cast(targets, dtype=int64), blanks)
    pairs = concat(*[reshape(x, shape=(batch, longest, 1)) for x in (blanks, labels)], axis=2)
    states = concat(reshape(pairs, shape=(batch, 2 * longest)), full(1, blank, int64), axis=1)
    skips = not_equal(columns(states, 2, width), columns(states, 0, width - 2)) if longest else None
    emitted = dim_gather(log_probs, expand(states, shape=(steps, batch, width)), axis=2)
    alpha = where(less(positions(size=width, dtype=int64), full(1, 1, int64)), full(width, 0.0, dtype),
                  full(width, _NEVER, dtype))
    for t in range(steps):
        ways = [alpha, behind(alpha, 1)]
        if longest:
            two = where(skips, columns(alpha, 0, width - 2), full(width - 2, _NEVER, dtype))
            ways.append(concat(full(2, _NEVER, dtype), two, axis=1))
        top = functools.reduce(maximum, ways)
        total = top + log(functools.reduce(add, [exp(w - top) for w in ways]))
        row = reshape(slice(emitted, start=(t, 0, 0), stop=(t + 1, batch, width), step=(1, 1, 1)),
                      shape=(batch, width))
        alpha = where(greater(lengths, full(1, t, int64)), total + row, alpha)
    last = dim_gather(alpha, counts * 2, axis=1)
    label = where(greater(counts, full(1, 0, int64)),
                  dim_gather(alpha, maximum(counts * 2 - 1, full(1, 0, int64)), axis=1),
                  full(1, _NEVER, dtype))
    top = maximum(last, label)
    loss = where(greater(top, full(1, _NEVER / 10, dtype)),
                 neg(top + log(exp(last - top) + exp(label - top))), full(1, 0.0, dtype))
    return reshape(loss, shape=(batch,))


def _double(ddx: AnyTensor, dloss: AnyTensor, log_probs: AnyTensor, targets: AnyTensor,
            input_lengths: AnyTensor, target_lengths: AnyTensor, blank: int) -> AnyTensor:
    """<ddx, gradient> differentiated by log_probs."""
    def gradient(x: AnyTensor) -> AnyTensor:
        return vjp(lambda x: unrolled(x, targets, input_lengths, target_lengths, blank), (x,), (dloss,))[0]

    return vjp(gradient, (log_probs,), (ddx,))[0]


_EXAMPLES = [[(4, 6, 5), (6, 2), (6,), (6,)], [(3, 11, 4), (11, 4), (11,), (11,)]]
_RANGES = ("0 <= input_length <= time, 0 <= target_length <= longest, and below a target's length labels "
           "that are classes but not the blank")
_DOMAIN = {"input_lengths": "index:4", "target_lengths": "index:3"}

ctc_loss = define(
    "ctc_loss(log_probs, targets, input_lengths, target_lengths, *, blank=0, zero_infinity=False) -> loss",
    Meaning("TnC,nS,n,n->n", _ref, check=_check("ctc_loss")),
    Kernel("ctc_loss", pack=lambda blank, zero_infinity: ((blank, int(zero_infinity)), ()),
           range_help=_RANGES),
    Laws([dict(shapes=s, blank=s[0][2] - 1, zero_infinity=True) for s in _EXAMPLES],
         domain={"targets": "index:3", **_DOMAIN}),
    grad={"log_probs": lambda dloss, log_probs, targets, input_lengths, target_lengths, blank: ctc_loss_grad(
        dloss, log_probs, targets, input_lengths, target_lengths, blank=blank)},
    doc="-log of the probability of each sequence of labels, summed over all its alignments in time.")
ctc_loss_grad = define(
    "ctc_loss_grad(dloss, log_probs, targets, input_lengths, target_lengths, *, blank=0) -> dlog_probs",
    Meaning("n,TnC,nS,n,n->TnC", _grad_ref, dtype=lambda log_probs: log_probs.dtype, check=_check_grad),
    Kernel("ctc_loss_grad", key="log_probs", pack=lambda blank: ((blank, 0), ()), range_help=_RANGES),
    Split(linear=["dloss"]),
    Laws([dict(shapes=[s[2], *s], blank=s[0][2] - 1) for s in _EXAMPLES],
         domain={"targets": "index:3", **_DOMAIN}),
    grad={"dloss": lambda ddlog_probs, dloss, log_probs, targets, input_lengths, target_lengths, blank: sum(
              ddlog_probs * ctc_loss_grad(constant(shape=dloss.shape, value=1.0, dtype=dloss.dtype),
                                          log_probs, targets,
                                          input_lengths, target_lengths, blank=blank), axis=(0, 2)),
          "log_probs": lambda ddlog_probs, dloss, log_probs, targets, input_lengths, target_lengths,
          blank: _double(
              ddlog_probs, dloss, log_probs, targets, input_lengths, target_lengths, blank)},
    doc="Minus dloss times the probability, given the labels, of each class at each time; 0 where there is "
    "no alignment.")
