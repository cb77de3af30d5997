"""Session: all jobs and all variables of a program.

The session is OPEN while the program defines jobs. The first call of a job (or of a checkpoint
function) compiles all jobs and creates the variables. Then the session is RUNNING: no job can be
added until `clear_default_session`.
"""
from __future__ import annotations

import atexit
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowedu.core import extensions
from flowedu.core.eager.arrays import copied
from flowedu.core.eager.dispatch import copy_to_device
from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers import context
from flowedu.core.values.dtype import dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import jobs as errors

Job = Any                                # JobFunction; function.py imports this file


@dataclass
class Variable:
    """A variable of the session. `tensor` shares the memory that the executors write to."""

    name: str
    spec: Spec
    trainable: bool
    tensor: Tensor
    job: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def dtype(self) -> dtype:
        return self.spec.dtype

    def numpy(self) -> np.ndarray:
        """Return a copy of the value, as float32 if the dtype is bfloat16."""
        return self.tensor._on_host().peek().copy()


class Session:
    """Jobs and variables by name, and the state: OPEN, compiling, or RUNNING."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.variables: dict[str, Variable] = {}
        self.running = False
        self.compiling = False
        self.declared: dict[str, tuple] = {}
        self.lock = threading.RLock()          # held while jobs are compiled, and while a plan runs

    def add(self, job: Job) -> None:
        """Register a job. It replaces a job of the same name if the session does not run yet."""
        if self.compiling:
            raise errors.job_in_body(job.name)
        if self.running and not self.can_replace(job):
            raise errors.late_job(job.name, self.jobs)
        self.jobs[job.name] = job

    def can_replace(self, job: Job) -> bool:
        """Return True if a running session accepts a job of this name."""
        return False

    def declare(self, name: str, spec: Spec, initializer: context.Initializer,
                trainable: bool, seed: int | None, job: str) -> None:
        """Declare that a job uses variable `name`. The first declaration's initializer is used."""
        earlier = self.declared.get(name)
        if earlier is None:
            if initializer is None:
                raise context.missing_initializer(name)
            self.declared[name] = (spec, initializer, trainable, seed, job)
        elif earlier[0] != spec:
            raise errors.variable_differs(name, spec, job, earlier)

    def start(self, caller: str = "a function that needs the variables",
              called: object = None) -> None:
        """Compile all jobs and create the variables, once. caller: the caller's name, for errors.

        An exception in the body of a job propagates to the caller, and the session stays OPEN.
        """
        if self.running:
            return
        with self.lock:
            if self.compiling:
                raise errors.called_in_body(caller)
            if not self.running:                  # unless another thread has compiled meanwhile
                self.compile(called)

    def compile(self, called: object) -> None:
        if not self.jobs:
            raise errors.no_job()
        self.compiling, self.declared = True, {}
        try:
            self.link(self.build_jobs(called))
        except BaseException:
            for job in self.jobs.values():
                job.reset()
            self.variables, self.declared = {}, {}
            raise
        finally:
            self.compiling = False
        self.running = True

    def build_jobs(self, called: object) -> list:
        for job in self.jobs.values():
            job.build(self)
        return list(self.jobs.values())

    def link(self, jobs: Iterable) -> None:
        """Create missing variables, and plan the graphs with all variables."""
        for name, (spec, initializer, trainable, seed, job) in self.declared.items():
            if name not in self.variables:
                value = context.initial_value(initializer, spec, seed, name)
                t, place = copied(value, spec.dtype), self.home(name)
                self.variables[name] = Variable(name, spec, trainable,
                                                copy_to_device(t, place) if place else t, job)
        self.declared = {name: (entry[0], None, *entry[2:])
                         for name, entry in self.declared.items()}
        for job in jobs:
            job.link(self)

    def home(self, name: str) -> int:
        """Return the device of a variable (Block.device)."""
        return 0

    def close(self) -> None:
        for job in self.jobs.values():
            job.reset()


_default = Session()


def default_session() -> Session:
    return _default


def use_session(session: Session) -> None:
    global _default
    _default = session


def clear_default_session() -> None:
    """Discard all jobs, variables, and resource settings. A call in a job's body is an error."""
    global _default
    with _default.lock:
        if _default.compiling or context.current().in_job:
            raise errors.called_in_body("flow.clear_default_session")
        _default.close()
    for job in _default.jobs.values():
        job.session = None
    _default = type(_default)()
    context.EAGER.variables.clear()
    if extensions.reset_eager_sources:
        extensions.reset_eager_sources()


atexit.register(lambda: _default.close())
