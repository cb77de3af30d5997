"""Eager execution mode: the body of a job runs on data in each call, so that values can be inspected.

The body is the same, and so are variables (they persist by name), namespaces, minimize, and watch. The mode
has no graph, no plan, and no session to start. Arguments must have the dtype of their placeholder.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu.core.eager.dispatch import set_grad_enabled
from flowedu.core.grad.tape import run_backward
from flowedu.core.job import session as sessions
from flowedu.core.job.blob import JobBlob
from flowedu.core.job.values import flat
from flowedu.core.layers.context import EAGER, current, initial_value, use_context
from flowedu.core.values import placeholder as ph
from flowedu.core.values.place import Place
from flowedu.core.values.signature import MISSING, convert, leaves
from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError, DTypeError, UnsupportedError
from flowedu.errors.jobs import called_in_body
from flowedu.oneflow04.job.containers import (
    as_numpy_dtype,
    check_returned,
    copy_for_caller,
    flatten_values,
    split_per_device,
)
from flowedu.oneflow04.job.context04 import Context04, Delivery
from flowedu.oneflow04.job.placed_blobs import EagerConsistentBlob, MirroredBlob
from flowedu.ops.host import States
from flowedu.tensor import Tensor, no_grad, tensor


def enable_eager_execution(value: bool = True) -> None:
    """Run jobs eagerly from now on, or compiled. Call it before the first job is defined.

    Args:
        value: False returns to compiled jobs.

    Raises:
        UnsupportedError: jobs are already defined.
    """
    session: Any = sessions.default_session()       # a Session04
    if session.jobs and bool(value) != session.eager:
        raise UnsupportedError("enable_eager_execution: jobs are defined already",
                               expected="a call before the first @flow.global_function",
                               got=f"jobs {', '.join(session.jobs)}",
                               fix="move it up, or call flow.clear_default_session() first")
    session.eager = bool(value)


def eager_execution_enabled() -> bool:
    """Return True if jobs run eagerly."""
    session: Any = sessions.default_session()       # a Session04
    return session.eager


class Store:
    """A replacement for the graph: the variables of the session by name, created on first use."""

    def __init__(self, session):
        self.session = session
        self.variables: dict[str, Tensor] = {}
        self.hosts: dict[str, Tensor] = {}
        self.inputs: dict[str, Tensor] = {}

    def variable(self, name: str, spec: Spec) -> Tensor:
        found = self.session.variables.get(name)
        if found is None:
            declared = self.session.declared[name]
            spec, initializer = declared[:2]
            trainable, seed, job = declared[2:]
            value = initial_value(initializer, spec, seed, name)
            found = sessions.Variable(name, spec, trainable, tensor(value, dtype=spec.dtype), job)
            self.session.variables[name] = found
        self.variables[name] = found.tensor
        return found.tensor

    def host(self, name: str, spec: Spec) -> Tensor:
        self.hosts[name] = tensor(np.zeros(spec.shape, spec.dtype.numpy))
        return self.hosts[name]

    def building(self):
        return contextlib.nullcontext()


class Rates(list):
    """A list of (scheduler, host value) pairs. `append` also writes the value."""

    def __init__(self, step: Callable[[], int]):
        super().__init__()
        self.step = step

    def append(self, pair) -> None:
        super().append(pair)
        scheduler, value = pair
        value.numpy()[0] = scheduler(self.step())


class EagerContext(Context04):
    """The context of a body that runs on data."""

    blob_type = EagerConsistentBlob
    graph: Any                          # a Store

    def __init__(self, job):
        super().__init__(job.session, job.name, job.type == "train", job.config)
        self.graph = Store(job.session)
        self.rates = Rates(self.step)

    def step(self) -> int:
        found = self.session.variables.get(f"System-Train-TrainStep-{self.name}")
        return int(found.tensor.numpy()[0]) if found else 0

    def call(self, f: Callable, args: tuple, kwargs: dict, label: str, placement: Place | None = None):
        result = f(*args, **kwargs)
        values = flat(result)
        labels = ((label,) if not isinstance(result, (list, tuple))
                  else tuple(f"{label}_{i}" for i in range(len(values))))
        self.blobs.update(zip(labels, values))
        return result, labels

    def is_dynamic(self, value, given) -> bool:
        return any(b.is_dynamic for b in given)

    def is_data(self, value) -> bool:
        return all(value is not v for v in self.graph.variables.values())

    def get_variable(self, name, spec, initializer, trainable, regularizer=None, reuse=True, seed=None):
        blob = super().get_variable(name, spec, initializer, trainable, regularizer, reuse, seed)
        if self.training and trainable and spec.dtype.is_floating_point:
            blob.value.requires_grad = True
        return EagerConsistentBlob(blob.value, name, "out", self)

    def watch(self, blob, handler, diff: bool) -> None:
        super().watch(blob, handler, diff)
        if not diff:
            self._deliver(handler, blob.values)

    @staticmethod
    def _deliver(handler: Callable, tensors) -> None:
        """Call a watch handler outside of the job's context, so that it may call other jobs."""
        with use_context(EAGER), no_grad():
            handler([as_numpy_dtype(t).numpy().copy() for t in tensors])

    def finish(self) -> list[Delivery]:
        """Compute gradients, call watch_diff handlers, and update variables. Return no deliveries."""
        if not self.training or self.goal is None:
            return []
        training = self.goal.training
        losses: Any = self.goal.losses          # Tensors instead of GraphValues
        names = training.names
        wanted = [v for values, diff, _ in self.watches if diff for v in values]
        outputs = [v for values in losses for v in values]
        with no_grad():
            step = training.step(self)
            seeds = [step.seed(v.spec) for v in outputs]
        grads = run_backward(outputs, seeds, [*(self.trainable[n][0] for n in names), *wanted], False, False)
        found = {id(v): g for v, g in zip(wanted, grads[len(names):])}
        for values, diff, handler in self.watches:
            if diff and all(found[id(v)] is not None for v in values):
                self._deliver(handler, [found[id(v)] for v in values])
        old = set_grad_enabled(False)
        try:
            updated = {n: g for n, g in zip(names, grads) if g is not None}
            step.append(updated, sum(v.numel() for v in losses[0]))
        finally:
            set_grad_enabled(old)
        self.session.variables[f"System-Train-TrainStep-{self.name}"].tensor.numpy()[0] += 1
        return []


def run(job, args: tuple) -> tuple[object, list[list], list[bool]]:
    """Run one call of a job.

    Return (result of the body, arrays of each blob in it, True for each dynamic blob).
    """
    session = job.session
    registered: Any = session.jobs.get(job.name)
    if session is not sessions.default_session() or registered is not job:
        raise CheckError(f"{job.name}: the job does not belong to the current session",
                         expected="a job defined after the last flow.clear_default_session(), and not "
                         "replaced by one of the same name",
                         got="a job that was cleared or replaced", fix="define it again")
    if current().in_job:
        raise called_in_body(f"job {job.name}")
    context = EagerContext(job)
    defs = job.signature.input_defs()
    trees = job.signature.check_arguments(defs, args, context.devices)
    _check_types(job.name, leaves(defs), flatten_values(defs, args))
    blobs = iter([_blob(context, d, v) for d, v in zip(leaves(defs), flatten_values(defs, trees))])
    arguments = [convert(d, MISSING, lambda leaf, _: next(blobs)) for d in defs]
    old = set_grad_enabled(context.training)
    try:
        with use_context(context), _states(session, job.name):
            with context.computing():
                result = job.fn(*arguments)
            job.signature.check_return(result, lambda x: isinstance(x, JobBlob))
            context.check_goal()
            returned = [context.check_blob(b) for b in leaves(result)]
            check_returned(job.name, [v for b in returned for v in b.values])
            fetched = [[copy_for_caller(as_numpy_dtype(v)) for v in b.values] for b in returned]
            context.finish()
    finally:
        set_grad_enabled(old)
    return result, fetched, [b.is_dynamic for b in returned]


def _blob(context: EagerContext, d: ph.ArgBlobDef, value) -> JobBlob:
    if isinstance(d, ph.FixedTensorDef):
        value = context.graph.inputs[d.op_name] = tensor(value)
        return EagerConsistentBlob(value, d.op_name, "out", context)
    values = tuple(v if d.is_tensor_list else tensor(v) for v in split_per_device(d, value))
    return MirroredBlob(values, d.op_name, "out", context, True)


def _states(session, name: str) -> States:
    """Return the states of the host ops of job `name`."""
    if name not in session.states:
        session.states[name] = States(eager=True)
    return session.states[name]


def _check_types(name: str, defs: list, values: list) -> None:
    for d, value in zip(defs, values):
        for a in leaves(value):
            if a.dtype != d.numpy_dtype:
                raise DTypeError(f"{name}: an argument has another element type", got=a.dtype.name,
                                 expected=f"{d.dtype.name}: nothing is cast in eager execution mode",
                                 fix=f"x.astype(np.{d.dtype.name})")
