"""flow.global_function: turns a Python function into a job, which is compiled once and runs as one plan."""
from __future__ import annotations

import functools
from collections.abc import Callable

from flowedu.core import extensions
from flowedu.core.job.program import CompiledJob
from flowedu.core.job.session import default_session
from flowedu.core.job.values import aligned_array
from flowedu.core.values.signature import check_signature, convert, leaves
from flowedu.core.values.typing import Numpy
from flowedu.errors import CallError, CheckError


def global_function(type: str = "predict", function_config=None, kind: type[JobFunction] | None = None) -> Callable:
    """Return a decorator that turns a function into a job: `@global_function("train")`. kind: class of the job.

    flow.global_function (oneflow04/job/function.py) calls it with the job class that has all features of OneFlow 0.4.
    """
    if callable(type):
        raise CheckError("global_function: the decorator was not called", expected='@flow.global_function() or '
                         '@flow.global_function("train")', got=f"@flow.global_function on {type.__name__}",
                         fix="add the parentheses")
    if type not in ("train", "predict"):
        raise CheckError("global_function: unknown type", expected='"train" or "predict"', got=repr(type),
                         fix='@flow.global_function("train") to train, @flow.global_function() for anything else')

    def decorate(fn: Callable) -> JobFunction:
        if not hasattr(fn, "__name__"):
            raise CheckError("global_function: not a function", expected="a function made with def", got=repr(fn),
                             fix="decorate a def; for a callable object: def job(x: ...): return it(x)")
        job = (kind or JobFunction)(fn, type, function_config)
        default_session().add(job)
        return job

    return decorate


class JobFunction:
    """A job. Call it with NumPy arrays, by position.

    Attributes: name; plan (after the first call), whose `show()` is also `job.show()`.
    """

    program_type = CompiledJob

    def __init__(self, fn: Callable, type: str, config):
        functools.update_wrapper(self, fn)
        self.fn, self.type, self.name = fn, type, fn.__name__
        self.config = config.copy() if config is not None else None     # later settings apply to later jobs
        self.signature = check_signature(fn)
        self.__oneflow_function_signature__ = self.signature
        self.session = default_session()
        self.single = self.signature.returns is Numpy
        self.program: CompiledJob | None = None
        self.compiled = None                # of the last call; of all calls if no shape varies

    def reset(self) -> None:
        """Discard the compiled graphs."""
        self.program = self.compiled = None

    # ---- compiling (the session calls these)
    def build(self, session) -> None:
        """Run the body once on blobs."""
        self.program = self.program_type(self, session)

    def link(self, session) -> None:
        """Plan the graph with the variables of the session."""
        self.program.link()
        self.compiled = self.program.only

    @property
    def plan(self):
        return self.compiled.program.plan if self.compiled is not None else None

    @property
    def executor(self):
        return self.compiled.program.executor if self.compiled is not None else None

    @property
    def context(self):
        return self.program.context

    # ---- running
    def __call__(self, *args, **kwargs):
        compiled = self.compiled
        if compiled is None or kwargs or not self.program.plain:
            return self.call(args, kwargs)
        if not compiled.program.executor.accepts(args):
            args = self._arguments(args)
        outputs = compiled.run(args)
        if self.single:                              # the most frequent case: one array
            i = compiled.returned[0]
            return outputs[i] if i not in compiled.shared else outputs[i].copy()
        return self.value(self.program.result, [[compiled.fetch(outputs, i)] for i in range(len(compiled.returned))],
                          self.program.dynamic)

    def call(self, args: tuple, kwargs: dict):
        """Start the session and call again. The first call comes here."""
        self.start(kwargs)
        return self(*args)

    def start(self, kwargs: dict) -> None:
        """Start the session for a call. Raise CallError if the call has keywords."""
        if kwargs:
            raise CallError(f"{self.name}: jobs take positional arguments only", expected="arrays, in the order of the "
                            "parameters", got=f"the keyword(s) {', '.join(kwargs)}",
                            fix=f"{self.name}({', '.join(self.signature.names)})")
        if self.session is not default_session() or self.session.jobs.get(self.name) is not self:
            raise CheckError(f"{self.name}: the job does not belong to the current session", expected="a job defined after "
                             "the last flow.clear_default_session(), and not replaced by one of the same name",
                             got="a job that was cleared or replaced", fix="define it again")
        self.session.start(f"job {self.name}", self)

    def _arguments(self, args) -> tuple:
        """Check and convert the arguments. Return a flat tuple of contiguous, aligned arrays."""
        flat = leaves(self.signature.check_arguments(self.program.defs, args))
        return tuple(map(aligned_array, flat))

    def value(self, result, fetched: list[list], dynamic: list[bool]):
        """Return the result of the job for the caller. `fetched`: for each returned blob its arrays, one per device."""
        arrays = iter(fetched)
        return None if result is None else convert(result, self.signature.returns, lambda leaf, kind: next(arrays)[0])

    def show(self) -> str:
        """Return the plan as text (ops, buffers, offsets, bytes). This starts the session."""
        if self.compiled is None:
            self.start({})
        if self.compiled is None:
            raise CheckError(f"{self.name}: there is no plan yet", expected="a call: the shapes of a job with tp.ListNumpy "
                             "arguments or sources are known only then", got="none so far",
                             fix="call the job once, then show it")
        text = extensions.plan_text(self.plan, self.argument_names())
        return text if self.compiled.spread is None else f"{text}\n\n{self.compiled.spread.describe()}"

    def argument_names(self) -> dict[str, str]:
        """Return {name of a graph input: name of its parameter}, for the text of the plan."""
        names = {}
        for name, d in zip(self.signature.names, self.program.defs):
            arrays = leaves(d)
            names.update((a.op_name, f"{name}.{i}" if arrays[1:] else name) for i, a in enumerate(arrays))
        return names

    def __repr__(self) -> str:
        return f"<job {self.name} ({self.type})>"
