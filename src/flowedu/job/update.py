"""From gradients to updates: the last part of a train job's graph.

Raw gradients (of the sum of the loss's elements) are multiplied by 1/count and divided by the loss scale, penalties are
added, the norm is clipped, then one update op per optimizer writes all its variables.
"""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.blob import dtype as dt
from flowedu.blob.spec import Spec
from flowedu.errors import CheckError, DTypeError, JobBuildAndInferError
from flowedu.graph.ir import GraphValue
from flowedu.initializers import zeros_initializer
from flowedu.job.scaling import Scaling
from flowedu.ops import REGISTRY
from flowedu.optim.schedule import LrScheduler

STEP = Spec((1,), dt.int64)


def choose_variables(optimizer, trainable: Sequence[str]) -> list[tuple[object, list[str]]]:
    """[(optimizer, names of the variables it trains)], at the time minimize is called; one entry for each optimizer of a
    CombinedOptimizer."""
    groups, owner = [], {}
    for number, part in enumerate(optimizer.parts):
        names = part.variables() if callable(part.variables) else part.variables
        names = list(dict.fromkeys(trainable if names is None else names))
        unknown = [n for n in names if n not in trainable]
        if unknown:
            raise CheckError(f"minimize: unknown variables {unknown}", expected=f"some of {sorted(trainable)}",
                             got=str(unknown), fix="name trainable variables that exist when minimize is called")
        shared = [n for n in names if n in owner]
        if shared:
            raise CheckError(f"minimize: optimizers {owner[shared[0]]} and {number} of the CombinedOptimizer share "
                             "variables", expected="every variable in one of them", got=", ".join(shared),
                             fix="give each optimizer its own variables=[...]")
        owner.update(dict.fromkeys(names, number))
        groups.append((part, names))
    return groups


def append_updates(job, groups: Sequence[tuple[object, list[str]]], grads: dict[str, GraphValue], count: int,
                   scaling: Scaling) -> None:
    """Append the updates to `job.graph`.

    Args:
        job: the JobContext: graph, session, name, blobs, trainable {name: (value, regularizer)}, model_names; `job.rates`
            takes (scheduler, host value) pairs, which the job function fills before every run.
        groups: from choose_variables.
        grads: {name: raw gradient}; variables the loss does not depend on are absent.
        count: number of elements of the loss: the objective is their mean.
        scaling: how the loss was scaled.
    """
    grads, scale = scaling.undo(grads, 1.0 / max(count, 1))
    steps = job.remembered(f"System-Train-TrainStep-{job.name}", STEP, zeros_initializer())
    for i, (optimizer, names) in enumerate(groups):
        pairs = [(n, job.trainable[n][0], grads[n]) for n in names if n in grads]
        if pairs:
            with job.graph.building():
                _append(job, optimizer, pairs, _counter(job, optimizer, steps), scaling, scale, i or "")
    with job.graph.building():
        scaling.finish()


def _append(job, optimizer, pairs, step: GraphValue, scaling: Scaling, scale: float, number: int | str) -> None:
    penalties = {n: job.trainable[n][1] for n, _, _ in pairs}
    if optimizer.grad_clipping is not None:
        pairs, scale = clip(pairs, penalties, scale, optimizer.grad_clipping.clip_norm), 1.0
        penalties = {}
    kinds = {n: optimizer.secondary is not None and job.model_names.get(n) == "bias" for n, _, _ in pairs}
    for second, scheduler, name in ((False, optimizer.lr_scheduler, "System-Train-LearningRate"),
                                    (True, optimizer.secondary, "System-Train-SecondaryLearningRate")):
        members = [p for p in pairs if kinds[p[0]] == second]
        if not members:
            continue
        operands = [_rate(job, optimizer, scheduler, f"{name}{number}", step), scaling.step(step)]
        for n, value, grad in members:
            operands += [value, grad]
            operands += [job.remembered(f"{n}-{suffix}", spec, first)
                         for suffix, (spec, first) in optimizer.state(value.spec).items()]
        own = [penalties.get(n) for n, _, _ in members]
        optimizer.update(*operands, scale=scale, **{"l1": [getattr(p, "l1", 0.0) for p in own],
                                                    "l2": [getattr(p, "l2", 0.0) for p in own],
                                                    **optimizer.attributes([n for n, _, _ in members])})


def clip(pairs, penalties: dict, scale: float, clip_norm: float):
    """Gradients of the mean loss with those of the penalties, made smaller together so that their norm is clip_norm at
    most."""
    e = REGISTRY
    grads, total = [], None
    for name, value, grad in pairs:
        penalty = penalties[name]
        grad, extra = grad * scale, penalty.gradient(value, e["sign"]) if penalty is not None else None
        grad = grad if extra is None else grad + extra
        grads.append((name, value, grad))
        square = e["reshape"](e["sum"](grad * grad, axis=tuple(range(grad.ndim)), keepdims=False), shape=(1,))
        total = square if total is None else total + square
    factor = e["minimum"](e["rsqrt"](e["maximum"](total, 1e-30)) * float(clip_norm), 1.0)
    return [(n, v, g * (factor if factor.dtype is g.dtype else e["cast"](factor, dtype=g.dtype))) for n, v, g in grads]


# ---- learning rates and steps
def rate_names(groups: Sequence[tuple[object, list[str]]]) -> list[str]:
    """The names of the blobs that the optimizers of `groups` take for learning rates."""
    return [_op_name(s.lr_lbn) for optimizer, _ in groups for s in (optimizer.lr_scheduler, optimizer.secondary)
            if s is not None and s.lr_lbn is not None]


def _rate(job, optimizer, scheduler: LrScheduler, name: str, step: GraphValue) -> GraphValue:
    """The learning rate: a number the host writes before every run, or a blob of the job."""
    if scheduler.lr_lbn is None:
        value = job.graph.host(name, Spec((1,), dt.float32))
        if optimizer.train_step_lbn is not None:
            scheduler = ScheduleByVariable(scheduler, job.session, _op_name(optimizer.train_step_lbn))
        job.rates.append((scheduler, value))
        return value
    what, lbn = type(scheduler).__name__, scheduler.lr_lbn
    tables = job.blobs, job.graph.variables, getattr(job.graph, "inputs", {})
    value = next((t[_op_name(lbn)] for t in tables if _op_name(lbn) in t), None)
    if value is None:
        known = [n for t in tables for n in t if not n.startswith("System-")]
        raise JobBuildAndInferError(f"{what}: the job has no blob {lbn!r}", expected="the logical_blob_name of a blob of "
                                    f"job {job.name}: " + ", ".join(f"{n}/..." for n in known[-12:]), got=lbn, at="",
                                    fix="pass blob.logical_blob_name, and name= to the op that computes the rate")
    if value.spec.size != 1 or not value.dtype.is_floating_point:
        raise DTypeError(f"{what}: blob {lbn!r} is not a learning rate", expected="one number, float32 or float64",
                         got=str(value.spec), fix="reduce and cast it", at="")
    if _op_name(lbn) in job.trainable:
        raise JobBuildAndInferError(f"{what}: blob {lbn!r} is a trainable variable", expected="a rate that no optimizer "
                                    "changes", got=lbn, fix="make the variable with trainable=False", at="")
    if value.dtype is not dt.float32:
        value = REGISTRY["cast"](value, dtype=dt.float32)
    return value if value.spec.shape == (1,) else REGISTRY["reshape"](value, shape=(1,))


def _counter(job, optimizer, own: GraphValue) -> GraphValue:
    """What counts the steps: the job's own variable, or the one train_step_lbn names."""
    lbn = optimizer.train_step_lbn
    if lbn is None:
        return own
    found = job.graph.variables.get(_op_name(lbn))
    if found is None or found.spec != STEP:
        raise JobBuildAndInferError(f"{optimizer.what}: train_step_lbn {lbn!r} is not a counter of job {job.name}",
                                    expected="the logical_blob_name of a variable, int64 of shape (1,)", at="",
                                    got="no such variable" if found is None else str(found.spec),
                                    fix='flow.get_variable("step", (1,), flow.int64, flow.zeros_initializer(), '
                                        'trainable=False).logical_blob_name')
    return found


def _op_name(lbn: str) -> str:
    return lbn.rpartition("/")[0] or lbn


class ScheduleByVariable:
    """A schedule that goes by a variable of the session instead of the number of the run."""

    def __init__(self, scheduler: LrScheduler, session, name: str):
        self.scheduler, self.session, self.name = scheduler, session, name

    @property
    def is_constant(self) -> bool:
        return self.scheduler.is_constant

    def __call__(self, step: int) -> float:
        return self.scheduler(int(self.session.variables[self.name].tensor.numpy()[0]))
