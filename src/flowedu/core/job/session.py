"""The session: all jobs and all variables of a program.

It is OPEN while jobs are being defined. The first call of a job (or of a checkpoint function) compiles every job, makes
the variables, and the session is RUNNING: no job can be added any more until `clear_default_session`.
"""
from __future__ import annotations

import atexit
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flowedu.oneflow04.job.placement import Placement
from flowedu.oneflow04.job.values import debugging
from flowedu.core.layers import context
from flowedu.core.ops.arrays import copied
from flowedu.core.ops.host import forget_states
from flowedu.core.ops.tensor import Tensor
from flowedu.core.shelves import shelf
from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError, JobBuildAndInferError, UnsupportedError
from flowedu.errors import nearest as similar


@dataclass
class Variable:
    """A variable of the session. `array` shares memory with the tensor that the executors write to."""

    name: str
    spec: Spec
    trainable: bool
    tensor: Tensor
    job: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def dtype(self):
        return self.spec.dtype

    def numpy(self) -> np.ndarray:
        """The present value (a copy)."""
        return self.tensor.numpy().copy()


class Surroundings:
    """Where a session runs: on one machine. flow.env knows of more, and registers itself (a module of such functions)."""

    @staticmethod
    def machine_num() -> int:
        """How many machines there are."""
        return 1

    @staticmethod
    def settle() -> None:
        """The session starts."""


surroundings = Surroundings


def register_surroundings(found) -> None:
    global surroundings
    surroundings = found


class Session:
    """Jobs by name, variables by name, and whether it runs."""

    def __init__(self):
        self.jobs: dict[str, object] = {}
        self.variables: dict[str, Variable] = {}
        self.running = False
        self.compiling = False
        self.declared: dict[str, tuple] = {}
        self.snapshots: dict[str, object] = {}    # open directories that variables start from, while jobs are compiled
        self.failed: dict[str, tuple] = {}        # jobs that were left out, and what they raised
        self.config: dict[str, object] = {}
        self.eager = False
        self.states: dict[str, object] = {}       # of host ops, in eager execution mode
        self.lock = threading.RLock()             # held while jobs are compiled, and while a plan runs

    # ---- devices
    @property
    def machines(self) -> int:
        return surroundings.machine_num()

    @property
    def per_machine(self) -> int:
        """Virtual devices of one machine."""
        return int(self.config.get("cpu_device_num", 1))

    @property
    def device_count(self) -> int:
        return self.machines * self.per_machine

    def located(self, placement: Placement) -> Placement:
        """The placement with the numbers of its devices."""
        return placement.located(self.machines, self.per_machine)

    def placement(self, config=None) -> Placement:
        """Where a job runs: its config's default placement, or all devices."""
        wanted = config.values.get("default_placement_scope") if config else None
        if isinstance(wanted, str):                # the deprecated device tag
            wanted = None
        last = self.per_machine - 1
        return self.located(wanted or Placement("cpu", [f"{m}:0-{last}" for m in range(self.machines)]))

    def add(self, job) -> None:
        """Register a job. A second one of the same name replaces the first, until the session runs."""
        if self.compiling:
            raise UnsupportedError(f"global_function: {job.name} is defined inside the body of a job",
                                   expected="a definition at the top level",
                                   got=f"@flow.global_function on {job.name} while jobs are compiled",
                                   fix="move it out of the body")
        if self.running and job.name not in self.failed:
            raise UnsupportedError(f"global_function: {job.name} is defined after the session started",
                                   expected="all jobs defined before the first job call or checkpoint call",
                                   got=f"a session that already runs {', '.join(self.jobs)}",
                                   fix="define it earlier, or call flow.clear_default_session() to start over")
        self.jobs[job.name] = job

    def declare(self, name: str, spec: Spec, initializer, trainable: bool, seed: int | None, job: str) -> None:
        """A job says it uses variable `name`; the first one's initializer counts."""
        found = self.declared.get(name)
        if found is None:
            config = getattr(self.jobs.get(job), "config", None)
            path = config.values.get("default_initialize_with_snapshot_path") if config else None
            if path is not None:
                snapshots = shelf("snapshots of variables")
                opened = self.snapshots[str(path)] = self.snapshots.get(str(path)) or snapshots.snapshot(path)
                initializer = snapshots.initializer_from(opened, name, initializer)
            if initializer is None:
                raise context.missing_initializer(name)
            self.declared[name] = (spec, initializer, trainable, seed, job)
        elif found[0] != spec:
            raise JobBuildAndInferError(f"variable {name!r} differs between jobs", got=f"{spec} in job {job}",
                                        expected=f"{found[0]}, as in job {found[4]}", fix="rename one of the layers")

    def start(self, what: str = "a function that needs the variables", asked: object = None) -> None:
        """Compile all jobs and make the variables, once. `what`: who asks for it; asked: the job that is called.

        A job that raises is left out, with a warning: the others run without it, and without the variables that only it
        has, and it may be defined again. Where that job is asked for, or the variables are, its error is raised and the
        session stays OPEN.

        In eager execution mode there is nothing to do: bodies make their variables when they run.
        """
        if self.running and not self.failed or self.eager:
            return
        with self.lock:
            if self.compiling:
                raise in_a_body(what)
            if not self.running:                  # no other thread was faster
                self._start(asked)
            else:
                for job in [self.jobs[name] for name, (old, _) in self.failed.items() if self.jobs[name] is not old]:
                    if asked is None or asked is job:
                        self._start_late(job)

    def _start(self, asked: object) -> None:
        if not self.jobs:
            raise CheckError("the session has no job", expected="at least one function decorated with "
                             "@flow.global_function()", got="none",
                             fix="define the jobs before calling checkpoint functions")
        surroundings.settle()
        self.compiling, self.declared, self.failed = True, {}, {}
        try:
            for job in self.jobs.values():
                self._build(job)
            for job, error in self.failed.values():
                if asked is None or asked is job:
                    raise error
                warnings.warn(f"job {job.name} is left out, for its body raised {type(error).__name__}: {error}",
                              stacklevel=5)
            self._link([job for name, job in self.jobs.items() if name not in self.failed])
        except BaseException:
            for job in self.jobs.values():
                job.reset()
            self.variables, self.declared, self.failed = {}, {}, {}
            raise
        finally:
            self.compiling, self.snapshots = False, {}
        self.running = True

    def _start_late(self, job) -> None:
        """Compile a job that was defined in the place of one that was left out."""
        known, self.compiling = set(self.variables), True
        failed = self.failed.pop(job.name)
        try:
            self._build(job)
            if job.name in self.failed:
                raise self.failed[job.name][1]
            self._link([job])
        except BaseException:
            job.reset()
            self.variables = {name: v for name, v in self.variables.items() if name in known}
            self.failed[job.name] = failed
            raise
        finally:
            self.compiling, self.snapshots = False, {}

    def _build(self, job) -> None:
        """Run the body of a job. What it raises is kept in `failed`, and then it leaves no variables."""
        before = dict(self.declared)
        try:
            job.build(self)
        except Exception as error:
            error.add_note(f"in the body of job {job.name}")
            self.failed[job.name], self.declared = (job, error), before
            job.reset()

    def _link(self, jobs: list) -> None:
        """Make the variables that are not there yet, and plan the graphs over them."""
        for name, (spec, initializer, trainable, seed, job) in self.declared.items():
            if name not in self.variables:
                value = context.initial_value(initializer, spec, seed, name)
                self.variables[name] = Variable(name, spec, trainable, copied(value, spec.dtype), job)
        self.declared = {name: (found[0], None, *found[2:]) for name, found in self.declared.items()}
        for job in jobs:
            job.link(self)
        if self.config.get("enable_debug_mode"):
            for job in jobs:
                if job.compiled is not None:
                    debugging().start(job)

    def close(self) -> None:
        """End what jobs left running (threads that read ahead)."""
        sync_default_session()
        for job in self.jobs.values():
            job.reset()


def in_a_body(what: str) -> UnsupportedError:
    """The error of those that can only be called outside of jobs."""
    return UnsupportedError(f"{what} was called inside the body of a job", expected="blobs and ops in a body: it describes "
                            "a graph, or a step of it", got=f"a call of {what}",
                            fix="call it outside; what two jobs have in common can be a plain Python function")


_default = Session()


def default_session() -> Session:
    return _default


def use_session(session: Session) -> None:
    """Make `session` the one that jobs are added to."""
    global _default
    _default = session


def clear_default_session() -> None:
    """Forget all jobs, variables and resource settings, and start over. Not in the body of a job."""
    global _default
    with _default.lock:
        if _default.compiling or context.current().in_job:
            raise in_a_body("flow.clear_default_session")
        _default.close()
    for job in _default.jobs.values():
        job.session = None
    _default = type(_default)()
    context.EAGER.variables.clear()
    forget_states()


def sync_default_session() -> None:
    """Wait for launched jobs and callbacks. Jobs run inline here, so only the debug mode's last lines can be pending."""
    debugging().flush()


def get_all_variables() -> dict[str, Variable]:
    """Live handles with .shape, .dtype and .numpy(), optimizer state included. Starts the session."""
    _default.start()
    return dict(_default.variables)


def load_variables(value_dict: dict, ignore_mismatch: bool = True) -> None:
    """Copy values into variables of the same name. Starts the session.

    Unknown names are ignored, or with ignore_mismatch=False a RuntimeError that names the nearest variable. Shapes and
    dtypes must agree (AssertionError). Nothing is changed unless everything fits.
    """
    _default.start()
    if not isinstance(value_dict, Mapping):
        raise CheckError("load_variables: value_dict is not a dictionary", expected="{name: array}", got=repr(value_dict),
                         fix='load_variables(flow.checkpoint.get(path)), or load_variables({"dense1-weight": array})')
    pairs = []
    for name, value in value_dict.items():
        variable = _default.variables.get(name)
        if variable is None:
            if not ignore_mismatch:
                raise JobBuildAndInferError(f'"{name}" is not a variable name', expected=nearest(name, _default.variables),
                                            got=name, fix="rename the entry, or pass ignore_mismatch=True")
            continue
        array = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
        if array.shape != variable.shape or array.dtype != variable.dtype.numpy:
            raise CheckError(f"load_variables: {name}: {array.shape} {array.dtype} vs {variable.shape} "
                             f"{variable.dtype.name}", expected=str(variable.spec), got=f"{array.dtype}{list(array.shape)}",
                             fix="the layer that made the checkpoint had other sizes" if array.shape != variable.shape
                             else f"array.astype(np.{variable.dtype.name})")
        pairs.append((variable, array))
    with _default.lock:
        for variable, array in pairs:
            variable.tensor.numpy()[...] = array


def nearest(name: str, names) -> str:
    """A hint: the most similar of `names`."""
    close = similar.nearest(name, names)
    return f"one of the session's variables; the nearest is {close!r}" if close else "one of the session's variables"


atexit.register(lambda: _default.close())
