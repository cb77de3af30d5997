"""JobContext: the context in which the body of a job runs and builds the graph."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.job.blob import JobBlob
from flowedu.core.job.values import flat, shaped_like
from flowedu.core.layers.context import BETWEEN_JOBS, Context, blobs_in
from flowedu.core.values.blob import BlobDef
from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError, JobBuildAndInferError


class Goal(NamedTuple):
    """Arguments of a `minimize` call: the training of the optimizer, and the values of each loss, one per device.

    training: result of `optimizer.training(context)`. It has `names`, the trained variables, and `step(context)`. The step
    has `seed(Spec of a loss)`, the gradient that the backward pass starts with, and `append(gradients by name, elements
    of the loss)`, which appends the updates to the graph.
    """

    training: object
    losses: list[tuple[GraphValue, ...]]


class JobContext(Context):
    """Context that builds the graph of one job. Variables come from the session, and results become blobs.

    Attributes: graph; trainable {name: (value, regularizer)}; blobs {op name: value}; goal; rates, pairs (scheduler, host
    value) that are filled before each run; home: the devices that update variables (None: all devices).
    """

    in_job = True
    blob_type = JobBlob
    home = None
    place = 0                          # the device that plans run on (Block.device)

    def __init__(self, session, name: str, training: bool, config):
        super().__init__()
        self.session, self.name = session, name
        self.training, self.config = training, config
        self.graph = Graph(name)
        self.trainable: dict[str, tuple[GraphValue, object]] = {}
        self.blobs: dict[str, GraphValue] = {}
        self.goal: Goal | None = None
        self.rates: list[tuple[object, GraphValue]] = []
        self.default_initializer = config.default_initializer if config else None

    def computing(self) -> AbstractContextManager:
        """Return the context manager in which the body runs."""
        return nullcontext()

    # ---- calls of front-end functions
    def value_of(self, blob: BlobDef) -> GraphValue:
        """Return the value of a blob of this job on one device."""
        return self.check_blob(blob).value

    def check_blob(self, blob: BlobDef) -> BlobDef:
        """Return the blob, or raise CheckError if it is not a blob of this job."""
        if not isinstance(blob, BlobDef):
            raise CheckError(f"{self.name}: not a blob", expected="an argument of the job, or a result of an op or a layer",
                             got=type(blob).__name__, fix="pass a result of flow.layers, flow.nn, or flow.math")
        if getattr(blob, "context", None) is not self:
            raise CheckError(f"a blob of job {blob.job_name} is used in job {self.name}", expected="blobs made in the body "
                             "that runs now", got=repr(blob), fix=BETWEEN_JOBS)
        return blob

    def apply(self, f: Callable, args: tuple, kwargs: dict, label: str, blob_name: str):
        """Call a front-end function (ops/front.py) on blobs of this job and return blobs. label: name of the op."""
        inputs = [self.check_blob(b) for b in blobs_in((*args, *kwargs.values()))]
        args, kwargs = self.unwrap(args, kwargs, self.value_of)
        result, labels = self.call(f, args, kwargs, label)
        return shaped_like(result, [self.wrap(v, n, blob_name, inputs) for v, n in zip(flat(result), labels)])

    def unwrap(self, args: tuple, kwargs: dict, value: Callable[[BlobDef], GraphValue]) -> tuple[tuple, dict]:
        def replace(x):
            if isinstance(x, BlobDef):
                return value(x)
            if isinstance(x, (list, tuple)) and any(True for _ in blobs_in(x)):
                return type(x)(replace(y) for y in x)
            return x
        return tuple(map(replace, args)), {k: replace(v) for k, v in kwargs.items()}

    def call(self, f: Callable, args: tuple, kwargs: dict, label: str) -> tuple[object, tuple[str, ...]]:
        """Run a front-end function on graph values and return its result and the names of the result's values."""
        start = len(self.graph.nodes)
        result = f(*args, **kwargs)
        labels = (label,) if not isinstance(result, (list, tuple)) else tuple(f"{label}_{i}" for i in range(len(result)))
        self.name_nodes(flat(result), labels, self.graph.nodes[start:])
        return result, labels

    def name_nodes(self, results: Iterable[GraphValue], labels: Iterable[str], nodes: Sequence[Node]) -> None:
        """Rename the nodes that computed the results to the names that the user passed."""
        for value, name in zip(results, labels):
            node = value.node
            if node in nodes and value is node.outputs[0] and node.name not in self.blobs:
                self.graph.rename(node, name)
                self.blobs[name] = value

    def wrap(self, value: GraphValue, name: str, blob_name: str, inputs: Sequence[BlobDef] = ()) -> BlobDef:
        """Return the blob of a result: an input blob if the function returned its value, otherwise a new blob."""
        for b in inputs:
            if isinstance(b, self.blob_type) and b.value is value:
                return b
        return self.blob_type(value, name, blob_name, self, self.is_dynamic(value, inputs))

    def is_dynamic(self, value: GraphValue, inputs: Sequence[BlobDef]) -> bool:
        """Return True if the size of the value may vary from call to call."""
        return any(b.is_dynamic for b in inputs)

    # ---- variables
    def get_variable(self, name: str, spec: Spec, initializer, trainable: bool, regularizer=None, reuse: bool = True,
                     seed: int | None = None) -> JobBlob:
        if name in self.graph.variables:
            if not reuse:
                raise CheckError(f"variable {name!r} already exists, getting the same variable is not allowed when param "
                                 "reuse is False", expected="a separate name for each layer of a job", got=name,
                                 fix=f"give the second layer another name, e.g. name={name.split('-')[0] + '2'!r}")
            return self.blob_type(self.graph.variables[name], name, "out", self)
        self.session.declare(name, spec, initializer, trainable, seed, self.name)
        value = self.graph.variable(name, spec)
        if trainable:
            self.trainable[name] = (value, regularizer)
        return self.blob_type(value, name, "out", self)

    def state_variable(self, name: str, spec: Spec, initializer) -> GraphValue:
        """Return a variable of the optimizer. Another optimizer, or the body, may have created it before."""
        value = self.graph.variables.get(name)
        if value is None:
            self.session.declare(name, spec, initializer, False, 0, self.name)
            return self.graph.variable(name, spec)
        if value.spec != spec:
            raise JobBuildAndInferError(f"variable {name!r} of the optimizer exists with another shape or dtype",
                                        expected=str(spec), got=str(value.spec), at="",
                                        fix="rename the variable of the body; the optimizer appends the name of a "
                                            "state to the name of the variable")
        return value

    # ---- training
    def minimize(self, optimizer, losses: list) -> None:
        if not self.training:
            raise JobBuildAndInferError(f"{self.name}: minimize in a predict job", expected='a job of type "train"',
                                        got='"predict"', fix='@flow.global_function("train")')
        for loss in losses:
            if not isinstance(loss, BlobDef):
                raise CheckError("minimize: the loss is not a blob", expected="a blob of the job", got=type(loss).__name__,
                                 fix="minimize(loss) with the result of a loss function of flow.nn")
            if not loss.dtype.is_floating_point:
                raise JobBuildAndInferError("minimize: the loss is not floating point", expected="float32 or float64",
                                            got=repr(loss), fix="cast it, or pass the loss rather than the labels")
        if len({loss.shape for loss in losses}) > 1:
            raise JobBuildAndInferError("minimize: the losses have different shapes", expected="one shape",
                                        got=", ".join(str(x.shape) for x in losses), fix="reduce each to its mean first")
        training = optimizer.training(self)
        self.goal = Goal(training, [self.check_blob(loss).values for loss in losses])

    def check_goal(self) -> None:
        """Raise JobBuildAndInferError if the body of a train job has not called `minimize`."""
        if self.training and self.goal is None:
            raise JobBuildAndInferError(f"{self.name}: loss blob not found", expected="a minimize(loss) in a train job",
                                        got="none", fix="add flow.optimizer.SGD(flow.optimizer."
                                        'PiecewiseConstantScheduler([], [0.1])).minimize(loss), or type="predict"')

    def finish(self) -> list:
        """Append backward and updates. Return pairs (values, handler): a handler gets its values after each run."""
        if self.training:
            self.train()
        return []

    def train(self, wanted: Sequence[GraphValue] = ()) -> list[GraphValue | None]:
        """Append backward and updates, and return the gradients of `wanted`."""
        training, losses = self.goal
        step, names = training.step(self), training.names
        variables = [self.trainable[n][0] for n in names]
        grads = gradients(self.graph, [v for values in losses for v in values], [*variables, *wanted], step.seed)
        updated = {n: g for n, g in zip(names, grads) if g is not None}
        if not updated:
            raise JobBuildAndInferError(f"{self.name}: the loss does not depend on any trainable variable",
                                        expected="a loss made from a layer's output", got=f"variables {names}", at="",
                                        fix="compute the loss from results of layers with trainable=True")
        self.graph.placement = self.home
        step.append(updated, sum(v.spec.size for v in losses[0]))
        return grads[len(variables):]
