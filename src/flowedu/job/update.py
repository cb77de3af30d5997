"""From gradients to updates: the last part of a train job's graph.

Raw gradients (of the sum of the loss's elements) are multiplied by 1/count, penalties are added, the norm is clipped,
then one update op per optimizer writes all its variables.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu.blob import dtype as dt
from flowedu.blob.spec import Spec
from flowedu.errors import CheckError
from flowedu.graph.ir import GraphValue
from flowedu.ops import REGISTRY


def choose_variables(optimizer, trainable: Sequence[str]) -> list[tuple[object, list[str]]]:
    """[(optimizer, names of the variables it trains)], at the time minimize is called."""
    names = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
    unknown = [n for n in names or () if n not in trainable]
    if unknown:
        raise CheckError(f"minimize: unknown variables {unknown}", expected=f"some of {sorted(trainable)}",
                         got=str(unknown), fix="name trainable variables that exist when minimize is called")
    return [(optimizer, list(trainable if names is None else names))]


def append_updates(job, groups: Sequence[tuple[object, list[str]]], grads: dict[str, GraphValue], count: int) -> None:
    """Append the updates to `job.graph`.

    Args:
        job: the JobContext: graph, session, name, trainable {name: (value, regularizer)}; `job.rates` takes
            (scheduler, host value) pairs, which the job function fills before every run.
        groups: from choose_variables.
        grads: {name: raw gradient}; variables the loss does not depend on are absent.
        count: number of elements of the loss: the objective is their mean.
    """
    step_name = f"System-Train-TrainStep-{job.name}"
    job.session.declare(step_name, Spec((1,), dt.int64), zeros, False, 0, job.name)
    step = job.graph.variable(step_name, Spec((1,), dt.int64))
    for i, (optimizer, names) in enumerate(groups):
        pairs = [(n, job.trainable[n][0], grads[n]) for n in names if n in grads]
        if pairs:
            _append(job, optimizer, pairs, step, 1.0 / max(count, 1), f"System-Train-LearningRate{i or ''}")


def _append(job, optimizer, pairs, step: GraphValue, scale: float, rate_name: str) -> None:
    rate = job.graph.host(rate_name, Spec((1,), dt.float32))
    job.rates.append((optimizer.lr_scheduler, rate))
    operands = [rate, step]
    penalties = [job.trainable[n][1] for n, _, _ in pairs]
    with job.graph.building():
        if optimizer.grad_clipping is not None:
            pairs, scale = clip(pairs, penalties, scale, optimizer.grad_clipping.clip_norm), 1.0
            penalties = [None] * len(pairs)
        for name, value, grad in pairs:
            operands += [value, grad]
            for slot in optimizer.slots:
                slot_name = f"{name}-{slot}"
                job.session.declare(slot_name, value.spec, zeros, False, 0, job.name)
                operands.append(job.graph.variable(slot_name, value.spec))
        names = [n for n, _, _ in pairs]
        optimizer.update(*operands, scale=scale, l1=[getattr(p, "l1", 0.0) for p in penalties],
                         l2=[getattr(p, "l2", 0.0) for p in penalties], **optimizer.attributes(names))


def zeros(shape, dtype, seed) -> np.ndarray:
    """The initializer of optimizer state."""
    return np.zeros(shape)


def clip(pairs, penalties, scale: float, clip_norm: float):
    """Gradients of the mean loss with those of the penalties, made smaller together so that their norm is clip_norm at
    most."""
    e = REGISTRY
    grads, total = [], None
    for (name, value, grad), penalty in zip(pairs, penalties):
        grad, extra = grad * scale, penalty.gradient(value, e["sign"]) if penalty is not None else None
        grad = grad if extra is None else grad + extra
        grads.append((name, value, grad))
        square = e["reshape"](e["sum"](grad * grad, axis=tuple(range(grad.ndim)), keepdims=False), shape=(1,))
        total = square if total is None else total + square
    factor = e["minimum"](e["rsqrt"](e["maximum"](total, 1e-30)) * float(clip_norm), 1.0)
    return [(n, v, g * (factor if factor.dtype is g.dtype else e["cast"](factor, dtype=g.dtype))) for n, v, g in grads]
