"""The session of OneFlow 0.4: settings, machines, virtual devices, snapshots of initial values, failed jobs.

The import makes a Session04 the default session.
"""
from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.eager.dispatch import copy_into
from flowedu.core.eager.tensor import Tensor
from flowedu.core.job.session import Session, Variable, default_session, use_session
from flowedu.core.ops.promote import cast
from flowedu.core.values.dtype import bfloat16
from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError, DeviceError, JobBuildAndInferError
from flowedu.errors import nearest as similar
from flowedu.errors.jobs import called_in_body
from flowedu.oneflow04.job import debug, env
from flowedu.oneflow04.job.placement import Placement
from flowedu.tensor.devices.device import device_of


class Session04(Session):
    """A session with the features of OneFlow 0.4.

    Attributes, in addition to those of Session:
        config: the settings of flow.config.
        eager: True if bodies run in each call.
        failed: {name: (job, error)} of the jobs whose body raised an error.
    """

    def __init__(self):
        super().__init__()
        # Open directories that variables start from, while jobs are compiled.
        self.snapshots: dict[str, Any] = {}
        self.failed: dict[str, tuple] = {}
        self.config: dict[str, Any] = {}
        self.eager = False
        self.states: dict[str, object] = {}       # of host ops, in eager execution mode

    # ---- devices
    @property
    def machines(self) -> int:
        return env.machine_num()

    @property
    def per_machine(self) -> int:
        """The number of virtual devices of one machine."""
        return int(self.config.get("cpu_device_num", 1))

    @property
    def device_count(self) -> int:
        return self.machines * self.per_machine

    def locate(self, placement: Placement) -> Placement:
        """Return the placement with the indices of its devices."""
        return placement.locate(self.machines, self.per_machine)

    def placement(self, config=None) -> Placement:
        """Return the default placement of a job's config, or all devices."""
        wanted = config.values.get("default_placement_scope") if config else None
        if isinstance(wanted, str):                # the deprecated device tag
            wanted = None
        last = self.per_machine - 1
        return self.locate(wanted or Placement("cpu", [f"{m}:0-{last}" for m in range(self.machines)]))

    # ---- jobs
    def can_replace(self, job) -> bool:
        return job.name in self.failed

    def declare(self, name: str, spec: Spec, initializer, trainable: bool, seed: int | None,
                job: str) -> None:
        config = getattr(self.jobs.get(job), "config", None)
        path = config.values.get("default_initialize_with_snapshot_path") if config else None
        if path is not None and name not in self.declared:
            from flowedu.oneflow04.job import checkpoint_files
            opened = self.snapshots.get(str(path)) or checkpoint_files.snapshot(path)
            self.snapshots[str(path)] = opened
            initializer = checkpoint_files.initializer_from(opened, name, initializer)
        super().declare(name, spec, initializer, trainable, seed, job)

    def start(self, what: str = "a function that needs the variables", asked: Any = None) -> None:
        """Compile all jobs and create the variables, once.

        If the body of a job raises an error, the job is skipped with a warning. The other jobs run without it
        and without its own variables, and it may be defined again. If that job is called, or all variables
        are requested, its error is raised and the session stays OPEN.

        In eager execution mode the method does nothing, because bodies create their variables when they run.
        """
        if self.eager:
            return
        super().start(what, asked)
        if not self.failed:
            return
        with self.lock:
            if self.compiling:
                raise called_in_body(what)
            changed = [name for name, (old, _) in self.failed.items() if self.jobs[name] is not old]
            for job in [self.jobs[name] for name in changed]:
                if asked is None or asked is job:
                    self._start_late(job)
        if asked is not None and asked.name in self.failed:
            raise self.failed[asked.name][1]

    def compile(self, asked: object) -> None:
        self.failed = {}
        try:
            super().compile(asked)
        except BaseException:
            self.failed = {}
            raise
        finally:
            self.snapshots = {}

    def build_jobs(self, asked: object) -> list:
        env.settle()
        for job in self.jobs.values():
            self._build(job)
        for job, error in self.failed.values():
            if asked is None or asked is job:
                raise error
            warnings.warn(f"job {job.name} is left out, for its body raised {type(error).__name__}: {error}",
                          stacklevel=10)
        return [job for name, job in self.jobs.items() if name not in self.failed]

    def _start_late(self, job) -> None:
        """Compile a job that replaces a failed one."""
        known, self.compiling = set(self.variables), True
        failed = self.failed.pop(job.name)
        try:
            self._build(job)
            if job.name in self.failed:
                raise self.failed[job.name][1]
            self.link([job])
        except BaseException:
            job.reset()
            self.variables = {name: v for name, v in self.variables.items() if name in known}
            self.failed[job.name] = failed
            raise
        finally:
            self.compiling, self.snapshots = False, {}

    def _build(self, job) -> None:
        """Run the body of a job. Store an error in `failed` and remove the variables of the body."""
        before = dict(self.declared)
        try:
            job.build(self)
        except Exception as error:
            error.add_note(f"in the body of job {job.name}")
            self.failed[job.name], self.declared = (job, error), before
            job.reset()

    def home(self, name: str) -> int:
        """Return the GPU of the jobs that use the variable. Step counters stay in main memory."""
        users = [c for c in (job.program.context for job in self.jobs.values() if job.program is not None)
                 if name in c.graph.variables and not name.startswith("System-Train-TrainStep-")]
        apart = next((c for c in users if c.place != users[0].place), None)
        if apart is not None:
            raise DeviceError(f"variable {name!r} is used on two devices",
                              expected="jobs with the same variables on one",
                              got=", ".join(f"{c.name} runs on {device_of(c.place)}"
                                            for c in (users[0], apart)),
                              fix='with flow.scope.placement("gpu", "0:0"): in the body of both')
        return users[0].place if users else 0

    def link(self, jobs: Iterable) -> None:
        super().link(jobs)
        if self.config.get("enable_debug_mode"):
            for job in jobs:
                if job.compiled is not None:
                    debug.start(job)

    def close(self) -> None:
        debug.flush()
        super().close()


def get_all_variables() -> dict[str, Variable]:
    """Return {name: live variable} with .shape, .dtype, and .numpy(), including optimizer state.

    Start the session.
    """
    session = default_session()
    session.start()
    return dict(session.variables)


use_session(Session04())


def sync_default_session() -> None:
    """Wait for launched jobs and callbacks.

    Jobs run synchronously, so only lines of the debug mode can be pending.
    """
    debug.flush()


def load_variables(value_dict: dict, ignore_mismatch: bool = True) -> None:
    """Copy values into variables of the same name. Start the session.

    All values are checked before the first variable changes.

    Args:
        value_dict: {name: array, tensor, or variable of a checkpoint}.
        ignore_mismatch: False raises an error for unknown names, with the most similar variable.

    Raises:
        CheckError: a shape or dtype differs. The error is an AssertionError.
        JobBuildAndInferError: a name is unknown and ignore_mismatch is False. The error is a RuntimeError.
    """
    session = default_session()
    session.start()
    if not isinstance(value_dict, Mapping):
        raise CheckError("load_variables: value_dict is not a dictionary", expected="{name: array}",
                         got=repr(value_dict),
                         fix='load_variables(flow.checkpoint.get(path)), or load_variables({"dense1-weight": '
                         'array})')
    pairs = []
    for name, value in value_dict.items():
        variable = session.variables.get(name)
        if variable is None:
            if not ignore_mismatch:
                raise JobBuildAndInferError(f'"{name}" is not a variable name',
                                            expected=nearest(name, session.variables),
                                            got=name, fix="rename the entry, or pass ignore_mismatch=True")
            continue
        value = value.peek() if isinstance(value, Tensor) else value
        array = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
        if array.dtype.name == "bfloat16":               # of the package ml_dtypes
            array = array.astype(np.float32)
        if array.shape != variable.shape or array.dtype != (variable.dtype.numpy or np.float32):
            raise CheckError(f"load_variables: {name}: {array.shape} {array.dtype} vs {variable.shape} "
                             f"{variable.dtype.name}", expected=str(variable.spec),
                             got=f"{array.dtype}{list(array.shape)}",
                             fix="the layer that made the checkpoint had other sizes"
                             if array.shape != variable.shape
                             else f"array.astype(np.{variable.dtype.name})")
        pairs.append((variable, array))
    with session.lock:
        for variable, array in pairs:
            if variable.tensor._device or variable.dtype is bfloat16:
                copy_into(variable.tensor, cast(from_numpy(np.asarray(array, order="C")), variable.dtype))
            else:
                variable.tensor.numpy()[...] = array


def nearest(name: str, names) -> str:
    """Return the text `expected` of an error for an unknown name, with the most similar of `names`."""
    close = similar.nearest(name, names)
    return (f"one of the session's variables; the nearest is {close!r}" if close
            else "one of the session's variables")
