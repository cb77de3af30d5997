"""JobContext: the context of a job's body while it is compiled."""
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
    """What minimize was asked, and for each loss its value on every device.

    training: what the optimizer's `training(context)` gave: `names` of the variables it trains, and `step(context)`, with
    `seed(Spec of a loss)`, the gradient the backward pass begins with, and `append(gradients by name, elements of the
    loss)`, which appends the updates.
    """

    training: object
    losses: list[tuple[GraphValue, ...]]


class JobContext(Context):
    """Builds one job's graph: variables come from the session, results become blobs, wishes are remembered.

    Attributes: graph; trainable {name: (value, regularizer)}; blobs {op name: value}; goal; rates, (scheduler, host value)
    pairs to be filled before every run; home: the devices where variables are updated (None: all there are).
    """

    in_job = True
    blob_type = JobBlob
    home = None
    place = 0                          # the device that plans run on (Block.device)

    def __init__(self, session, name: str, training: bool, config):
        super().__init__()
        self.session, self.name, self.training, self.config = session, name, training, config
        self.graph = Graph(name)
        self.trainable: dict[str, tuple[GraphValue, object]] = {}
        self.blobs: dict[str, GraphValue] = {}
        self.goal: Goal | None = None
        self.rates: list[tuple[object, GraphValue]] = []
        self.default_initializer = config.default_initializer if config else None

    def computing(self) -> AbstractContextManager:
        """The context manager that the body runs in."""
        return nullcontext()

    # ---- calls of front-end functions
    def value_of(self, blob: BlobDef) -> GraphValue:
        """The one value of a blob of this job."""
        return self.owned(blob).value

    def owned(self, blob: BlobDef) -> BlobDef:
        if not isinstance(blob, BlobDef):
            raise CheckError(f"{self.name}: not a blob", expected="an argument of the job, or what an op or a layer gave",
                             got=type(blob).__name__, fix="pass what flow.layers, flow.nn and flow.math return")
        if getattr(blob, "context", None) is not self:
            raise CheckError(f"a blob of job {blob.job_name} is used in job {self.name}", expected="blobs made in the body "
                             "that runs now", got=repr(blob), fix=BETWEEN_JOBS)
        return blob

    def apply(self, f: Callable, args: tuple, kwargs: dict, label: str, blob_name: str):
        """The answer of a front-end function (ops/front.py) that is given blobs of this job; label: the op's name."""
        given = [self.owned(b) for b in blobs_in((*args, *kwargs.values()))]
        args, kwargs = self.unwrapped(args, kwargs, self.value_of)
        result, labels = self.call(f, args, kwargs, label)
        return shaped_like(result, [self.wrapped(v, n, blob_name, given) for v, n in zip(flat(result), labels)])

    def unwrapped(self, args: tuple, kwargs: dict, value: Callable[[BlobDef], GraphValue]) -> tuple[tuple, dict]:
        def walk(x):
            if isinstance(x, BlobDef):
                return value(x)
            if isinstance(x, (list, tuple)) and any(True for _ in blobs_in(x)):
                return type(x)(walk(y) for y in x)
            return x
        return tuple(map(walk, args)), {k: walk(v) for k, v in kwargs.items()}

    def call(self, f: Callable, args: tuple, kwargs: dict, label: str) -> tuple[object, tuple[str, ...]]:
        """Run the body of a front-end function on graph values: what it gives, and the names of that."""
        start = len(self.graph.nodes)
        result = f(*args, **kwargs)
        labels = (label,) if not isinstance(result, (list, tuple)) else tuple(f"{label}_{i}" for i in range(len(result)))
        self.name_nodes(flat(result), labels, self.graph.nodes[start:])
        return result, labels

    def name_nodes(self, results: Iterable[GraphValue], labels: Iterable[str], nodes: Sequence[Node]) -> None:
        """Give the nodes that made the results the names the user asked for."""
        for value, name in zip(results, labels):
            node = value.node
            if node in nodes and value is node.outputs[0] and node.name not in self.blobs:
                self.graph.rename(node, name)
                self.blobs[name] = value

    def wrapped(self, value: GraphValue, name: str, blob_name: str, given: Sequence[BlobDef] = ()) -> BlobDef:
        """The blob of a result: one of the given blobs where nothing was done."""
        for b in given:
            if isinstance(b, self.blob_type) and b.value is value:
                return b
        return self.blob_type(value, name, blob_name, self, self.is_dynamic(value, given))

    def is_dynamic(self, value: GraphValue, given: Sequence[BlobDef]) -> bool:
        """Whether the value's size may vary from call to call."""
        return any(b.is_dynamic for b in given)

    # ---- variables
    def get_variable(self, name: str, spec: Spec, initializer, trainable: bool, regularizer=None, reuse: bool = True,
                     seed: int | None = None) -> JobBlob:
        if name in self.graph.variables:
            if not reuse:
                raise CheckError(f"variable {name!r} already exists, getting the same variable is not allowed when param "
                                 "reuse is False", expected="a name of its own for every layer in a job", got=name,
                                 fix=f"give the second layer another name, e.g. name={name.split('-')[0] + '2'!r}")
            return self.blob_type(self.graph.variables[name], name, "out", self)
        self.session.declare(name, spec, initializer, trainable, seed, self.name)
        value = self.graph.variable(name, spec)
        if trainable:
            self.trainable[name] = (value, regularizer)
        return self.blob_type(value, name, "out", self)

    def remembered(self, name: str, spec: Spec, initializer) -> GraphValue:
        """A variable of training itself, which another optimizer, or the body, may have asked for already."""
        found = self.graph.variables.get(name)
        if found is None:
            self.session.declare(name, spec, initializer, False, 0, self.name)
            return self.graph.variable(name, spec)
        if found.spec != spec:
            raise JobBuildAndInferError(f"variable {name!r}, which the optimizer needs, exists and is another",
                                        expected=str(spec), got=str(found.spec), at="",
                                        fix="rename the variable of the body: the optimizer's names end in what it "
                                            "remembers")
        return found

    # ---- training
    def minimize(self, optimizer, losses: list) -> None:
        if not self.training:
            raise JobBuildAndInferError(f"{self.name}: minimize in a predict job", expected='a job of type "train"',
                                        got='"predict"', fix='@flow.global_function("train")')
        for loss in losses:
            if not isinstance(loss, BlobDef):
                raise CheckError("minimize: the loss is not a blob", expected="a blob of the job", got=type(loss).__name__,
                                 fix="minimize(loss) with what a loss function of flow.nn gave")
            if not loss.dtype.is_floating_point:
                raise JobBuildAndInferError("minimize: the loss is not floating point", expected="float32 or float64",
                                            got=repr(loss), fix="cast it, or pass the loss rather than the labels")
        if len({loss.shape for loss in losses}) > 1:
            raise JobBuildAndInferError("minimize: the losses have different shapes", expected="one shape",
                                        got=", ".join(str(x.shape) for x in losses), fix="reduce each to its mean first")
        training = optimizer.training(self)
        self.goal = Goal(training, [self.owned(loss).values for loss in losses])

    def settle(self) -> None:
        """After the body."""
        if self.training and self.goal is None:
            raise JobBuildAndInferError(f"{self.name}: loss blob not found", expected="a minimize(loss) in a train job",
                                        got="none", fix="add flow.optimizer.SGD(flow.optimizer."
                                        'PiecewiseConstantScheduler([], [0.1])).minimize(loss), or type="predict"')

    def finish(self) -> list:
        """Append backward and updates. Returns (values, handler) pairs: each handler gets its values after each run."""
        if self.training:
            self.train()
        return []

    def train(self, wanted: Sequence[GraphValue] = ()) -> list[GraphValue | None]:
        """Append backward and updates; returns the gradients of `wanted`."""
        training, losses = self.goal
        step, names = training.step(self), training.names
        variables = [self.trainable[n][0] for n in names]
        grads = gradients(self.graph, [v for values in losses for v in values], [*variables, *wanted], step.seed)
        updated = {n: g for n, g in zip(names, grads) if g is not None}
        if not updated:
            raise JobBuildAndInferError(f"{self.name}: the loss does not depend on any trainable variable",
                                        expected="a loss made from a layer's output", got=f"variables {names}", at="",
                                        fix="make the loss from what the layers return, with trainable=True")
        self.graph.placement = self.home
        step.append(updated, sum(v.spec.size for v in losses[0]))
        return grads[len(variables):]
