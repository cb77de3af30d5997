"""flow.global_function: a Python function becomes a job, compiled once and run as one plan."""
from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable

import numpy as np

from flowedu import context
from flowedu.blob import placeholder as ph
from flowedu.blob.annotation import MISSING, CallbackOf
from flowedu.blob.signature import check_return, check_signature, convert, leaves
from flowedu.blob.spec import Spec
from flowedu.blob.typing import Numpy
from flowedu.errors import CheckError
from flowedu.graph.executor import Executor, scratch_bytes
from flowedu.graph.ir import GraphValue
from flowedu.graph.passes import run_passes
from flowedu.graph.plan import Plan, make_plan
from flowedu.job.blob import ConsistentBlob, LocalBlob
from flowedu.job.config import FunctionConfig
from flowedu.job.context import JobContext
from flowedu.job.session import default_session
from flowedu.ops.core import get_num_threads
from flowedu.tensor import tensor


def global_function(type: str = "predict", function_config: FunctionConfig | None = None) -> Callable:
    """Decorator that makes a function a job: `@flow.global_function("train")`.

    Args:
        type: "predict", or "train" (the body must call an optimizer's minimize).
        function_config: a flow.function_config().

    The parameters are annotated with placeholders, the return value with tp.Numpy and containers of it. The body runs
    once, on blobs, when the session starts; a call then runs the compiled plan.
    """
    if isinstance(type, FunctionConfig):
        print("global_function: pass the config as the second argument: global_function(type, config)")
        type, function_config = type.job_type or "predict", type
    if callable(type):
        raise CheckError("global_function: the decorator was not called", expected='@flow.global_function() or '
                         '@flow.global_function("train")', got=f"@flow.global_function on {type.__name__}",
                         fix="add the parentheses")
    if type not in ("train", "predict"):
        raise CheckError("global_function: unknown type", expected='"train" or "predict"', got=repr(type),
                         fix='@flow.global_function("train") to train, @flow.global_function() for anything else')

    def decorate(fn: Callable) -> JobFunction:
        job = JobFunction(fn, type, function_config)
        default_session().add(job)
        return job

    return decorate


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
        callback(self.get())


class JobFunction:
    """A job. Call it with NumPy arrays, by position.

    Attributes: name; plan (after the first call), whose `show()` is also `job.show()`.
    """

    def __init__(self, fn: Callable, type: str, config: FunctionConfig | None):
        functools.update_wrapper(self, fn)
        self.fn, self.type, self.config, self.name = fn, type, config, fn.__name__
        self.signature = check_signature(fn)
        self.__oneflow_function_signature__ = self.signature
        self.session = default_session()
        self.reset()

    def reset(self) -> None:
        """Forget everything compiled."""
        self.executor = self.plan = self.context = self.built = None

    # ---- compiling
    def build(self, session) -> None:
        """Run the body once on blobs; leaves the graph with backward and updates."""
        self.context = job = JobContext(session, self.name, self.type == "train", self.config)
        self.defs = self.signature.input_defs()
        self.flat_defs = leaves(self.defs)
        for d in self.flat_defs:
            if not isinstance(d, ph.FixedTensorDef):
                raise CheckError(f"{self.name}: {type(d).__name__} needs flow.scope.mirrored_view", got=repr(d),
                                 expected="tp.Numpy placeholders in a consistent view",
                                 fix="use tp.Numpy.Placeholder; the mirrored view is not available yet")
        blobs = {id(d): ConsistentBlob(job.graph.input(d.op_name, Spec(d.shape, d.dtype)), d.op_name, "out", job.graph)
                 for d in self.flat_defs}
        arguments = [convert(d, MISSING, lambda leaf, _: blobs[id(leaf)]) for d in self.defs]
        with context.pushed(job), job.graph.building():
            result = self.fn(*arguments)
            check_return(result, self.signature.returns, lambda x: isinstance(x, ConsistentBlob), self.name)
            self.result = result
            returned = [job.value_of(b) for b in leaves(result)]
            deliveries = job.finish()
        unique = list(dict.fromkeys([*returned, *[value for value, _ in deliveries]]))
        job.graph.outputs = list(unique)
        self.returned = [unique.index(v) for v in returned]
        self.deliveries = [(unique.index(v), handler) for v, handler in deliveries]
        asked = Counter([*self.returned, *[i for i, _ in self.deliveries]])
        self.shared = {i for i, n in asked.items() if n > 1}      # every receiver gets an array of its own
        self.off = tuple(self.config.passes_off) if self.config else ()
        self.report = run_passes(job.graph, self.off)

    def link(self, session) -> None:
        """Plan the graph over the session's variables."""
        graph = self.context.graph
        self.rates = [(schedule, tensor(np.zeros(1, np.float32)), value) for schedule, value in self.context.rates]
        self.arrays: dict[GraphValue, object] = {v: session.variables[n].tensor for n, v in graph.variables.items()}
        self.arrays.update({value: rate for _, rate, value in self.rates})
        step = session.variables.get(f"System-Train-TrainStep-{self.name}")
        self.step = step.tensor.numpy() if step is not None else None
        self.varying = []
        for schedule, rate, _ in self.rates:
            rate.numpy()[0] = schedule(0)
            if not schedule.is_constant:
                self.varying.append((schedule, rate.numpy()))
        self.plain = self.signature.returns is Numpy
        self.nodes, self.outputs = list(graph.nodes), list(graph.outputs)
        self._lay_out()

    def _lay_out(self) -> None:
        graph = self.context.graph
        graph.nodes, graph.outputs = list(self.nodes), list(self.outputs)
        runs = self.executor.runs if self.executor else 0
        self.plan: Plan = make_plan(graph, self.arrays, scratch_bytes, self.report, inplace="inplace" not in self.off,
                                    reuse="reuse" not in self.off)
        self.executor = Executor(self.plan)
        self.executor.runs = runs

    # ---- running
    def __call__(self, *args, **kwargs):
        if self.executor is None or kwargs:
            self._start(kwargs)
        executor = self.executor
        if executor.nt != get_num_threads():
            self._lay_out()
            executor = self.executor
        if not executor.accepts(args):
            args = self._arguments(args)
        step = self.step
        if step is not None:
            for schedule, rate in self.varying:
                rate[0] = schedule(int(step[0]))
            if executor.random:
                executor.runs = int(step[0])       # a reloaded checkpoint goes on with the same dropout masks
            outputs = executor.run(args)
            step[0] += 1
        else:
            outputs = executor.run(args)
        if self.deliveries:
            for i, handler in self.deliveries:
                handler(outputs[i].copy() if i in self.shared else outputs[i])
        if self.plain:
            return outputs[self.returned[0]]
        return self._result(outputs)

    def _start(self, kwargs) -> None:
        if kwargs:
            raise TypeError(f"{self.name}: jobs take positional arguments only; got the keyword(s) {', '.join(kwargs)}. "
                            f"Call {self.name}({', '.join(self.signature.names)}).")
        if self.session is not default_session() or self.session.jobs.get(self.name) is not self:
            raise CheckError(f"{self.name}: the job does not belong to the current session", expected="a job defined after "
                             "the last flow.clear_default_session(), and not replaced by one of the same name",
                             got="a job that was cleared or replaced", fix="define it again")
        self.session.start()

    def _arguments(self, args) -> tuple:
        """The checked, converted arrays, flat, contiguous and aligned."""
        flat = leaves(ph.check_arguments(self.name, self.signature.names, self.defs, args))
        return tuple(a if a.flags.aligned else a.copy() for a in [np.asarray(a, order="C") for a in flat])

    def _result(self, outputs):
        returns = self.signature.returns
        arrays = iter([outputs[i].copy() if i in self.shared else outputs[i] for i in self.returned])
        if self.result is None:
            return None
        if returns is MISSING:
            return Future(convert(self.result, returns, lambda _, kind: LocalBlob(next(arrays))))
        value = convert(self.result, returns, lambda _, kind: next(arrays) if kind is Numpy else [next(arrays)])
        if not isinstance(returns, CallbackOf):
            return value

        def register(callback: Callable) -> None:
            callback(value)
        return register

    def show(self) -> str:
        """The plan as text (ops, buffers, offsets, bytes). Starts the session."""
        if self.executor is None:
            self._start({})
        from flowedu.graph.show import describe
        return describe(self.plan, self.argument_names())

    def argument_names(self) -> dict[str, str]:
        """{name of an input of the graph: the parameter it is}, for those who print the plan."""
        found = {}
        for name, d in zip(self.signature.names, self.defs):
            arrays = leaves(d)
            found.update((a.op_name, f"{name}.{i}" if arrays[1:] else name) for i, a in enumerate(arrays))
        return found

    def __repr__(self) -> str:
        return f"<job {self.name} ({self.type})>"
