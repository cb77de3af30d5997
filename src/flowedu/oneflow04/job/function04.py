"""flow.global_function of 0.4: jobs with settings, sources, varying sizes, devices, and nested results."""
from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any

from flowedu.core.job import function
from flowedu.core.job.function import JobFunction
from flowedu.core.values.signature import MISSING, convert
from flowedu.core.values.typing import Numpy
from flowedu.errors import CheckError
from flowedu.oneflow04.job import debug
from flowedu.oneflow04.job.call_signature import JobSignature
from flowedu.oneflow04.job.config import FunctionConfig
from flowedu.oneflow04.job.containers import join_devices
from flowedu.oneflow04.job.placed_blobs import LocalBlob
from flowedu.oneflow04.job.program04 import Program04
from flowedu.oneflow04.job.session04 import Session04


def global_function(type: str = "predict", function_config=None) -> Callable:
    """Return a decorator that turns a function into a job: `@flow.global_function("train")`.

    The parameters are annotated with placeholders, the return value with tp.Numpy, tp.ListNumpy, and
    containers of them. The body runs once, on blobs, when the session starts; a call then runs the compiled
    plan. In eager execution mode (flow.enable_eager_execution(True)) each call runs the body on data.

    Args:
        type: "predict", or "train", whose body must call an optimizer's minimize.
        function_config: a flow.function_config(), or None.
    """
    if isinstance(type, FunctionConfig):
        print("global_function: pass the config as the second argument: global_function(type, config)")
        type, function_config = type.job_type or "predict", type
    if not isinstance(function_config, (FunctionConfig, NoneType)):
        raise CheckError("global_function: function_config is not a configuration",
                         expected="a flow.function_config()",
                         got=repr(function_config), fix='config = flow.function_config(); '
                         '@flow.global_function("predict", config)')

    return function.global_function(type, function_config, Job04)


def check_callback(callback) -> None:
    """Raise CheckError (an AssertionError) unless `callback` can be called."""
    if not callable(callback):
        raise CheckError("a job's callback cannot be called", expected="a function that takes the result",
                         got=repr(callback), fix="job(x)(print), say")


class Future:
    """The result of a job without return annotation."""

    def __init__(self, value):
        self._value, self._taken = value, False

    def get(self):
        """Return the result. A second call raises CheckError."""
        if self._taken:
            raise CheckError("get: the result was taken already", expected="one get() per call of the job",
                             got="a second one", fix="store the result of the first get()")
        self._taken = True
        return self._value

    def async_get(self, callback: Callable) -> None:
        """Call `callback` with the result.

        Args:
            callback: a function of one argument.
        """
        check_callback(callback)
        callback(self.get())


class Job04(JobFunction):
    """A job with the features of OneFlow 0.4."""

    program_type = Program04
    __qualname__: str
    session: Session04
    signature: JobSignature
    program: Program04                  # None before the body ran
    compiled: Any                       # a LoggedPlan, or None before the first call

    def reset(self) -> None:
        if self.program is not None:
            self.program.close()
        super().reset()

    def call(self, args: tuple, kwargs: dict):
        if self.compiled is None or kwargs:
            if not kwargs and self.session is not None and self.session.eager:
                from flowedu.oneflow04.job.eager import run  # rarely used, and slow to import
                return self.value(*run(self, args))
            self.start(kwargs)
        if self.program.plain:
            return self(*args)
        first = self.compiled is None
        self.compiled, fetched = self.program.run(args)
        if first and debug.enabled():                # the plan exists now
            debug.start(self)
        return self.value(self.program.result, fetched, self.program.dynamic)

    def value(self, result, fetched: list[list], dynamic: list[bool]):
        """Return the result for the caller.

        `fetched` has the arrays of each returned blob, one per device.
        """
        returns = self.signature.returns
        arrays = iter(fetched)
        if result is None:
            return None
        if returns is MISSING:
            flags = iter(dynamic)
            return Future(convert(result, returns, lambda _, kind: LocalBlob(next(arrays), next(flags))))
        value = convert(result, returns, lambda _, kind: join_devices(next(arrays)) if kind is Numpy
                        else next(arrays))
        if not self.signature.calls_back:
            return value

        def register(callback: Callable) -> None:
            check_callback(callback)
            callback(value)
        return register

    def _repr_html_(self) -> str | None:
        """Return the plan as HTML for a notebook, or None before the job is compiled."""
        from flowedu.show.notebook import plan_html
        return None if self.plan is None else plan_html(self.plan, self.argument_names())

    def __reduce__(self) -> str:
        """Return the name for pickling, so that copies are the job itself, as for functions."""
        return self.__qualname__

    def check(self) -> None:
        """Check the graph and the plan of this job, as `nn.Graph.check` does for a graph. Start the session.

        Raises:
            GraphError: a rule is broken. With `FLOWEDU_CHECK_GRAPH=1` the error names the pass that broke it.
        """
        from flowedu.diagnostics.verify import check_program
        self.show()
        check_program(self.compiled.program)

    def profile(self, *args, repeats: int = 10):
        """Measure the time of each call of the plan. Variables keep their values.

        The job is called once (a training job trains one step), and then each call of its plan is timed.

        Args:
            *args: the arguments of the job.
            repeats: the number of measurements per call.

        Returns: a flowedu.show.profile.Profile, which can be printed.
        """
        from flowedu.show.recording import profile
        return profile(self._measurable(args), args, repeats)

    def timeline(self, *args, repeats: int = 10):
        """Record when each call of the plan runs, and on which thread. Variables keep their values.

        Args:
            *args: the arguments of the job.
            repeats: the number of runs, of which the shortest is returned.

        Returns: a flowedu.show.trace.Trace.
        """
        from flowedu.show.recording import timeline
        return timeline(self._measurable(args), args, repeats)

    def _measurable(self, args: tuple):
        """Call the job and return its program."""
        self(*args)
        obstacle = self.program.obstacle()
        if obstacle is None and not self.executor.accepts(args):
            obstacle = "an argument that is no C-contiguous array of its placeholder's dtype and shape"
        if obstacle is not None:
            raise CheckError(f"{self.name}: this job cannot be profiled", got=obstacle,
                             expected="tp.Numpy arguments, as C-contiguous arrays of their dtype, one "
                             "device, and nothing that runs before the plan",
                             fix="profile a job around the part that has arrays as arguments")
        return self.compiled.program
