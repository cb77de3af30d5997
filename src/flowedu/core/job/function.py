"""flow.global_function: a Python function becomes a job, compiled once and run as one plan."""
from __future__ import annotations

import functools
from collections.abc import Callable
from types import NoneType

from flowedu.oneflow04.job.blob import LocalBlob
from flowedu.core.job.program import CompiledJob
from flowedu.core.job.session import default_session
from flowedu.oneflow04.job.values import debugging, flat_array, joined
from flowedu.core.shelves import shelf
from flowedu.core.values import placeholder as ph
from flowedu.core.values.annotation import MISSING, CallbackOf
from flowedu.core.values.signature import check_signature, convert, leaves
from flowedu.core.values.typing import Numpy
from flowedu.errors import CallError, CheckError


def global_function(type: str = "predict", function_config=None) -> Callable:
    """Decorator that makes a function a job: `@flow.global_function("train")`.

    Args:
        type: "predict", or "train" (the body must call an optimizer's minimize).
        function_config: a flow.function_config().

    The parameters are annotated with placeholders, the return value with tp.Numpy, tp.ListNumpy and containers of them.
    The body runs once, on blobs, when the session starts; a call then runs the compiled plan. (In eager execution mode,
    flow.enable_eager_execution(True), every call runs the body, on data.)
    """
    if isinstance(type, shelf("settings of a job", NoneType)):
        print("global_function: pass the config as the second argument: global_function(type, config)")
        type, function_config = type.job_type or "predict", type
    if callable(type):
        raise CheckError("global_function: the decorator was not called", expected='@flow.global_function() or '
                         '@flow.global_function("train")', got=f"@flow.global_function on {type.__name__}",
                         fix="add the parentheses")
    if type not in ("train", "predict"):
        raise CheckError("global_function: unknown type", expected='"train" or "predict"', got=repr(type),
                         fix='@flow.global_function("train") to train, @flow.global_function() for anything else')
    if not isinstance(function_config, (shelf("settings of a job", NoneType), NoneType)):
        raise CheckError("global_function: function_config is not a configuration", expected="a flow.function_config()",
                         got=repr(function_config), fix='config = flow.function_config(); '
                         '@flow.global_function("predict", config)')

    def decorate(fn: Callable) -> JobFunction:
        if not hasattr(fn, "__name__"):
            raise CheckError("global_function: this is no function", expected="a function made with def", got=repr(fn),
                             fix="decorate a def; for a callable object: def job(x: ...): return it(x)")
        job = JobFunction(fn, type, function_config)
        default_session().add(job)
        return job

    return decorate


def check_callback(callback) -> None:
    """Raises CheckError (an AssertionError) unless it can be called."""
    if not callable(callback):
        raise CheckError("a job's callback cannot be called", expected="a function that takes the result",
                         got=repr(callback), fix="job(x)(print), say")


class Future:
    """Result of a job without return annotation."""

    def __init__(self, value):
        self._value, self._taken = value, False

    def get(self):
        """The result, once."""
        if self._taken:
            raise CheckError("get: the result was taken already", expected="one get() per call of the job",
                             got="a second one", fix="keep what the first get() returned")
        self._taken = True
        return self._value

    def async_get(self, callback: Callable) -> None:
        """Call `callback` with the result."""
        check_callback(callback)
        callback(self.get())


class JobFunction:
    """A job. Call it with NumPy arrays, by position.

    Attributes: name; plan (after the first call), whose `show()` is also `job.show()`.
    """

    def __init__(self, fn: Callable, type: str, config):
        functools.update_wrapper(self, fn)
        self.fn, self.type, self.name = fn, type, fn.__name__
        self.config = config.copy() if config is not None else None     # what is set later is for later jobs
        self.signature = check_signature(fn)
        self.__oneflow_function_signature__ = self.signature
        self.session = default_session()
        self.plain = self.signature.returns is Numpy
        self.program: CompiledJob | None = None
        self.compiled = None                # of the last call; of all calls where no shape varies

    def reset(self) -> None:
        """Forget everything compiled."""
        if self.program is not None:
            self.program.close()
        self.program = self.compiled = None

    # ---- compiling (the session calls these)
    def build(self, session) -> None:
        """Run the body once on blobs."""
        self.program = CompiledJob(self, session)

    def link(self, session) -> None:
        """Plan the graph over the session's variables."""
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
        if compiled is None or kwargs:
            if not kwargs and self.session is not None and self.session.eager:
                return self._value(*shelf("bodies run at every call")(self, args))
            self._start(kwargs)
            compiled = self.compiled
        if self.program.plain:                       # arrays in, one plan: the usual case
            if not compiled.program.executor.accepts(args):
                args = self._arguments(args)
            outputs = compiled.run(args)
            if self.plain:
                return compiled.fetch(outputs, 0)
            fetched = [[compiled.fetch(outputs, i)] for i in range(len(compiled.returned))]
        else:
            first = compiled is None
            self.compiled, fetched = self.program.run(args)
            if first and debugging().enabled():      # now there is a plan to show
                debugging().start(self)
        return self._value(self.program.result, fetched, self.program.dynamic)

    def _start(self, kwargs) -> None:
        if kwargs:
            raise CallError(f"{self.name}: jobs take positional arguments only", expected="arrays, in the order of the "
                            "parameters", got=f"the keyword(s) {', '.join(kwargs)}",
                            fix=f"{self.name}({', '.join(self.signature.names)})")
        if self.session is not default_session() or self.session.jobs.get(self.name) is not self:
            raise CheckError(f"{self.name}: the job does not belong to the current session", expected="a job defined after "
                             "the last flow.clear_default_session(), and not replaced by one of the same name",
                             got="a job that was cleared or replaced", fix="define it again")
        self.session.start(f"job {self.name}", self)
        if self.name in self.session.failed:
            raise self.session.failed[self.name][1]

    def _arguments(self, args) -> tuple:
        """The checked, converted arrays, flat, contiguous and aligned."""
        flat = leaves(ph.check_arguments(self.name, self.signature.names, self.program.defs, args))
        return tuple(map(flat_array, flat))

    def _value(self, result, fetched: list[list], dynamic: list[bool]):
        """What the caller gets. `fetched`: for each returned blob its arrays, one per device."""
        returns = self.signature.returns
        arrays = iter(fetched)
        if result is None:
            return None
        if returns is MISSING:
            flags = iter(dynamic)
            return Future(convert(result, returns, lambda _, kind: LocalBlob(next(arrays), next(flags))))
        value = convert(result, returns, lambda _, kind: joined(next(arrays)) if kind is Numpy else next(arrays))
        if not isinstance(returns, CallbackOf):
            return value

        def register(callback: Callable) -> None:
            check_callback(callback)
            callback(value)
        return register

    def show(self) -> str:
        """The plan as text (ops, buffers, offsets, bytes). Starts the session."""
        if self.compiled is None:
            self._start({})
        if self.compiled is None:
            raise CheckError(f"{self.name}: there is no plan yet", expected="a call: the shapes of a job with tp.ListNumpy "
                             "arguments or sources are known only then", got="none so far",
                             fix="call the job once, then show it")
        text = shelf("plan as text")(self.plan, self.argument_names())
        return text if self.compiled.spread is None else f"{text}\n\n{self.compiled.spread.describe()}"

    def profile(self, *args, repeats: int = 10):
        """Where the time of a call goes: a flowedu.show.profile.Profile, to be printed. Variables end as they were.

        Calls the job once (which trains, if it is a training job), then times every call of its plan `repeats` times.
        """
        self(*args)
        if not self.program.plain or not self.executor.accepts(args):
            raise CheckError(f"{self.name}: this job cannot be profiled", got="another", expected="tp.Numpy arguments, as "
                             "C-contiguous arrays of their dtype, one device, and nothing that runs before the plan",
                             fix="profile a job around the part that has arrays as arguments")
        return shelf("plan, timed")(self.executor, args, repeats)

    def argument_names(self) -> dict[str, str]:
        """{name of an input of the graph: the parameter it is}, for those who print the plan."""
        found = {}
        for name, d in zip(self.signature.names, self.program.defs):
            arrays = leaves(d)
            found.update((a.op_name, f"{name}.{i}" if arrays[1:] else name) for i, a in enumerate(arrays))
        return found

    def __repr__(self) -> str:
        return f"<job {self.name} ({self.type})>"
