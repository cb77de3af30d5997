"""Updates of a train job, computed from gradients: variables per optimizer, learning rates, step counters.

Raw gradients (of the sum of the loss's elements) are multiplied by 1/count and divided by the loss scale.
core/graph/updates.py does the remaining work.
"""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.graph.ir import GraphValue
from flowedu.core.graph.updates import STEP, Group, Member, append_updates
from flowedu.core.ops.view import cast, reshape
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError, DTypeError, JobBuildAndInferError
from flowedu.oneflow04.initializers import constant_initializer, zeros_initializer
from flowedu.oneflow04.job.loss_scaling import Scaling, loss_scale_policy
from flowedu.oneflow04.optim.schedule import LrScheduler


def choose_variables(optimizer, trainable: Sequence[str]) -> list[tuple[object, list[str]]]:
    """Return [(optimizer, names of the variables it trains)] when minimize is called.

    A CombinedOptimizer has one entry for each of its optimizers.
    """
    groups: list[tuple[object, list[str]]] = []
    owner: dict[str, int] = {}
    for number, part in enumerate(optimizer.parts):
        names = part.variables() if callable(part.variables) else part.variables
        names = list(dict.fromkeys(trainable if names is None else names))
        unknown = [n for n in names if n not in trainable]
        if unknown:
            raise CheckError(f"minimize: unknown variables {unknown}",
                             expected=f"some of {sorted(trainable)}",
                             got=str(unknown),
                             fix="name trainable variables that exist when minimize is called")
        shared = [n for n in names if n in owner]
        if shared:
            raise CheckError(f"minimize: optimizers {owner[shared[0]]} and {number} of the CombinedOptimizer "
                             f"share variables", expected="every variable in one of them",
                             got=", ".join(shared), fix="give each optimizer its own variables=[...]")
        owner.update(dict.fromkeys(names, number))
        groups.append((part, names))
    return groups


class Training:
    """The optimizers of a job and their variables, fixed when minimize is called.

    Attributes:
        groups: the result of choose_variables.
        names: the names of all variables in them.
        policy: the loss-scale policy, or None.
    """

    def __init__(self, optimizer, job):
        self.groups = choose_variables(optimizer, list(job.trainable))
        self.names = list(dict.fromkeys(n for _, names in self.groups for n in names))
        self.policy = loss_scale_policy(optimizer, job.config)

    def rate_names(self) -> list[str]:
        """Return the names of the blobs that the optimizers use as learning rates."""
        return [_op_name(s.lr_lbn) for optimizer, _ in self.groups for s in (optimizer.lr_scheduler,
                                                                             optimizer.secondary)
                if s is not None and s.lr_lbn is not None]

    def step(self, job) -> TrainingStep:
        """Return a training step in the graph of `job`, which is that job, or the same body on other shapes.
        """
        return TrainingStep(job, self)


class TrainingStep:
    """One training step: `seed(Spec of a loss)` starts the backward pass, and `append` appends the updates.

    Args:
        job: the JobContext with graph, session, name, blobs, trainable {name: (value, regularizer)},
            model_names, and `rates`, a list of (scheduler, host value) pairs that the job function fills
            before each run.
        training: the optimizers and their variables.
    """

    def __init__(self, job, training: Training):
        self.job, self.groups, self.scaling = job, training.groups, Scaling(job, training.policy)
        self.seed = self.scaling.seed

    def append(self, grads: dict[str, GraphValue], count: int) -> None:
        """Append the updates to the job's graph.

        Args:
            grads: {name: raw gradient}, without variables that the loss does not depend on.
            count: the number of elements of the loss; the objective is their mean.
        """
        job, scaling = self.job, self.scaling
        grads, scale = scaling.undo(grads, 1.0 / max(count, 1))
        steps = self._remember(f"System-Train-TrainStep-{job.name}", STEP)
        with job.graph.building():
            append_updates([_group(job, optimizer, [n for n in names if n in grads], grads, scaling,
                                   (steps, i or ""))
                            for i, (optimizer, names) in enumerate(self.groups)
                            if any(n in grads for n in names)],
                           self._remember, scale)
            scaling.finish()

    def _remember(self, name: str, spec: Spec, initial: float = 0.0, _: str = "") -> GraphValue:
        return self.job.state_variable(name, spec, constant_initializer(initial) if initial
                                       else zeros_initializer())


def _group(job, optimizer, names: list[str], grads: dict[str, GraphValue], scaling: Scaling,
           counted: tuple) -> Group:
    """Return the variables of one optimizer. Variables with the model_name "bias" may have their own rate.

    `counted` is (the job's own step counter, the suffix of the names of this optimizer's rates).
    """
    step, number = _counter(job, optimizer, counted[0]), counted[1]
    second = [optimizer.secondary is not None and job.model_names.get(n) == "bias" for n in names]
    rates = {kind: _rate(job, optimizer, scheduler, f"{name}{number}", step) for kind, scheduler, name in (
        (False, optimizer.lr_scheduler, "System-Train-LearningRate"),
        (True, optimizer.secondary, "System-Train-SecondaryLearningRate")) if kind in second}
    members = [Member(n, job.trainable[n][0], grads[n], rates[kind], job.trainable[n][1])
               for n, kind in zip(names, second)]
    return Group(optimizer.update_of, scaling.step(step), members, optimizer.grad_clipping)


# ---- learning rates and steps
def _rate(job, optimizer, scheduler: LrScheduler, name: str, step: GraphValue) -> GraphValue:
    """Return the learning rate: a value that the host writes before each run, or a blob of the job."""
    if scheduler.lr_lbn is None:
        value = job.graph.host(name, Spec((1,), dt.float32))
        schedule: LrScheduler | ScheduleByVariable = scheduler
        if optimizer.train_step_lbn is not None:
            schedule = ScheduleByVariable(scheduler, job.session, _op_name(optimizer.train_step_lbn))
        job.rates.append((schedule, value))
        return value
    what, lbn = type(scheduler).__name__, scheduler.lr_lbn
    tables = job.blobs, job.graph.variables, getattr(job.graph, "inputs", {})
    value = next((t[_op_name(lbn)] for t in tables if _op_name(lbn) in t), None)
    if value is None:
        known = [n for t in tables for n in t if not n.startswith("System-")]
        raise JobBuildAndInferError(f"{what}: the job has no blob {lbn!r}",
                                    expected="the logical_blob_name of a blob of "
                                    f"job {job.name}: " + ", ".join(f"{n}/..." for n in known[-12:]),
                                    got=lbn, at="",
                                    fix="pass blob.logical_blob_name, and name= to the op that computes "
                                    "the rate")
    if value.spec.size != 1 or not value.dtype.is_floating_point:
        raise DTypeError(f"{what}: blob {lbn!r} is not a learning rate",
                         expected="one number, float32 or float64",
                         got=str(value.spec), fix="reduce and cast it", at="")
    if _op_name(lbn) in job.trainable:
        raise JobBuildAndInferError(f"{what}: blob {lbn!r} is a trainable variable",
                                    expected="a rate that no optimizer changes", got=lbn,
                                    fix="make the variable with trainable=False", at="")
    if value.dtype is not dt.float32:
        value = cast(value, dtype=dt.float32)
    return value if value.spec.shape == (1,) else reshape(value, shape=(1,))


def _counter(job, optimizer, own: GraphValue) -> GraphValue:
    """Return the step counter: the job's own variable, or the variable that train_step_lbn names."""
    lbn = optimizer.train_step_lbn
    if lbn is None:
        return own
    found = job.graph.variables.get(_op_name(lbn))
    if found is None or found.spec != STEP:
        raise JobBuildAndInferError(f"{optimizer.what}: train_step_lbn {lbn!r} is not a counter of job "
                                    f"{job.name}",
                                    expected="the logical_blob_name of a variable, int64 of shape (1,)",
                                    at="", got="no such variable" if found is None else str(found.spec),
                                    fix='flow.get_variable("step", (1,), flow.int64, '
                                    'flow.zeros_initializer(), trainable=False).logical_blob_name')
    return found


def _op_name(lbn: str) -> str:
    return lbn.rpartition("/")[0] or lbn


class ScheduleByVariable:
    """A schedule that reads its step from a variable of the session instead of the number of the run."""

    def __init__(self, scheduler: LrScheduler, session, name: str):
        self.scheduler, self.session, self.name = scheduler, session, name

    @property
    def is_constant(self) -> bool:
        return self.scheduler.is_constant

    def __call__(self, step: int) -> float:
        return self.scheduler(int(self.session.variables[self.name].tensor._on_host().numpy()[0]))
