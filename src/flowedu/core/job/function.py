"""flow.global_function: turns a Python function into a job, which runs as one plan."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flowedu.core import extensions
from flowedu.core.graph.plan import Plan
from flowedu.core.job.context import JobContext
from flowedu.core.job.program import CompiledJob
from flowedu.core.job.session import Session, default_session
from flowedu.core.job.values import aligned_array
from flowedu.core.values.signature import check_signature, convert, leaves
from flowedu.core.values.typing import Numpy
from flowedu.errors import jobs as errors


def global_function(type: str = "predict", function_config: Any = None,
                    kind: type[JobFunction] | None = None) -> Callable:
    """Return a decorator that turns a function into a job: `@global_function("train")`.

    flow.global_function (oneflow04/job/function04.py) passes a job class with more features.
    """
    if callable(type):
        raise errors.decorator_not_called(getattr(type, "__name__", ""))
    if type not in ("train", "predict"):
        raise errors.unknown_job_type(type)

    def decorate(fn: Callable) -> JobFunction:
        if not hasattr(fn, "__name__"):
            raise errors.not_a_function(fn)
        job = (kind or JobFunction)(fn, type, function_config)
        default_session().add(job)
        return job

    return decorate


class JobFunction:
    """A job. Call it with NumPy arrays, by position.

    Attributes: `name`, and `plan` (None before the first call), which `show()` returns as text.
    """

    program_type = CompiledJob

    def __init__(self, fn: Callable, type: str, config: Any):
        functools.update_wrapper(self, fn)
        self.fn, self.type, self.name = fn, type, fn.__name__
        self.config = config.copy() if config is not None else None   # later changes have no effect
        self.signature = check_signature(fn)
        self.__oneflow_function_signature__ = self.signature
        self.session = default_session()
        self.single = self.signature.returns is Numpy
        self.program: CompiledJob | Any = None
        self.compiled: Any = None           # for the last call; for all calls if no shape varies

    def reset(self) -> None:
        self.program = self.compiled = None

    # ---- compiling (the session calls these)
    def build(self, session: Session) -> None:
        """Run the body once on blobs."""
        self.program = self.program_type(self, session)

    def link(self, session: Session) -> None:
        """Plan the graph with the variables of the session."""
        self.program.link()
        self.compiled = self.program.only

    @property
    def plan(self) -> Plan | None:
        return self.compiled.program.plan if self.compiled is not None else None

    @property
    def executor(self) -> Any:
        return self.compiled.program.executor if self.compiled is not None else None

    @property
    def context(self) -> JobContext:
        return self.program.context

    # ---- running
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        compiled = self.compiled
        if compiled is None or kwargs or not self.program.plain:
            return self.call(args, kwargs)
        if not compiled.program.executor.accepts(args):
            args = self._arguments(args)
        outputs = compiled.run(args)
        if self.single:                              # the most frequent case: one array
            i = compiled.returned[0]
            return outputs[i] if i not in compiled.shared else outputs[i].copy()
        return self.value(self.program.result,
                          [[compiled.fetch(outputs, i)] for i in range(len(compiled.returned))],
                          self.program.dynamic)

    def call(self, args: tuple, kwargs: dict) -> Any:
        """Start the session and call again. `__call__` uses this for the first call."""
        self.start(kwargs)
        return self(*args)

    def start(self, kwargs: dict) -> None:
        """Start the session for a call. Raise CallError if the call has keywords."""
        if kwargs:
            raise errors.keyword_arguments(self.name, kwargs, self.signature.names)
        if self.session is not default_session() or self.session.jobs.get(self.name) is not self:
            raise errors.cleared_job(self.name)
        self.session.start(f"job {self.name}", self)

    def _arguments(self, args: tuple) -> tuple:
        """Check and convert the arguments. Return a flat tuple of contiguous, aligned arrays."""
        flat = leaves(self.signature.check_arguments(self.program.defs, args))
        return tuple(map(aligned_array, flat))

    def value(self, result: Any, fetched: list[list], dynamic: list[bool]) -> Any:
        """Return the job's result. fetched: for each returned blob, one array per device."""
        arrays = iter(fetched)
        if result is None:
            return None
        return convert(result, self.signature.returns, lambda leaf, kind: next(arrays)[0])

    def show(self) -> str:
        """Return the plan as text (ops, buffers, offsets, bytes). This starts the session."""
        if self.compiled is None:
            self.start({})
        if self.compiled is None:
            raise errors.no_plan_yet(self.name)
        text = extensions.plan_text(self.plan, self.argument_names())
        spread = self.compiled.spread
        return text if spread is None else f"{text}\n\n{spread.describe()}"

    def argument_names(self) -> dict[str, str]:
        """Return {name of a graph input: name of its parameter}, for the text of the plan."""
        names: dict = {}
        for name, d in zip(self.signature.names, self.program.defs):
            arrays = leaves(d)
            names.update((a.op_name, f"{name}.{i}" if arrays[1:] else name)
                         for i, a in enumerate(arrays))
        return names

    def __repr__(self) -> str:
        return f"<job {self.name} ({self.type})>"
