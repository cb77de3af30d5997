"""JobContext: the context in which the body of a job runs and builds the graph."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.job.blob import JobBlob
from flowedu.core.job.session import Session
from flowedu.core.job.values import flat, shaped_like
from flowedu.core.layers.context import Context, Initializer, blobs_in
from flowedu.core.values.blob import BlobDef
from flowedu.core.values.spec import Spec
from flowedu.errors import jobs as errors


class Goal(NamedTuple):
    """Arguments of a `minimize` call: `optimizer.training(context)`, and the values of each loss.

    `training.names` are the trained variables. `training.step(context)` returns an object with two
    methods. `seed(Spec of a loss)` returns the first gradient of the backward pass. `append` gets
    the gradients by name and the number of elements of the loss, and appends the updates.
    """

    training: Any
    losses: list[tuple[GraphValue, ...]]


class JobContext(Context):
    """Context that builds the graph of one job, with variables of the session.

    `trainable` is {name: (value, regularizer)}. `blobs` is {op name: value}. `rates` has a pair
    (scheduler, host value to set before each run) per rate. `home`: devices that update variables.
    """

    in_job = True
    blob_type = JobBlob
    home: Any = None
    place = 0                          # the device that plans run on (Block.device)

    def __init__(self, session: Session, name: str, training: bool, config: Any):
        super().__init__()
        self.session, self.name = session, name
        self.training, self.config = training, config
        self.graph = Graph(name)
        self.trainable: dict[str, tuple[GraphValue, object]] = {}
        self.blobs: dict[str, GraphValue] = {}
        self.goal: Goal | Any = None
        self.rates: list[tuple[Any, GraphValue]] = []
        self.default_initializer = config.default_initializer if config else None

    def computing(self) -> AbstractContextManager:
        """Return the context manager in which the body runs."""
        return nullcontext()

    # ---- calls of front-end functions
    def value_of(self, blob: BlobDef) -> GraphValue:
        """Return the value of a blob of this job on one device."""
        return self.check_blob(blob).value

    def check_blob(self, blob: BlobDef) -> JobBlob:
        """Return the blob, or raise CheckError if it is not a blob of this job."""
        if not isinstance(blob, BlobDef):
            raise errors.not_a_blob(self.name, blob)
        if not isinstance(blob, JobBlob) or blob.context is not self:
            raise errors.foreign_blob(blob, f"in job {self.name}")
        return blob

    def apply(self, f: Callable, args: tuple, kwargs: dict, label: str, blob_name: str) -> Any:
        """Call a front-end function (ops/front.py) on blobs. label: the op's name."""
        inputs = [self.check_blob(b) for b in blobs_in((*args, *kwargs.values()))]
        args, kwargs = self.unwrap(args, kwargs, self.value_of)
        result, labels = self.call(f, args, kwargs, label)
        return shaped_like(result, [self.wrap(v, n, blob_name, inputs)
                                    for v, n in zip(flat(result), labels)])

    def unwrap(self, args: tuple, kwargs: dict,
               value: Callable[[BlobDef], GraphValue]) -> tuple[tuple, dict]:
        def replace(x: Any) -> Any:
            if isinstance(x, BlobDef):
                return value(x)
            if isinstance(x, (list, tuple)) and any(True for _ in blobs_in(x)):
                return type(x)(replace(y) for y in x)
            return x
        return tuple(map(replace, args)), {k: replace(v) for k, v in kwargs.items()}

    def call(self, f: Callable, args: tuple, kwargs: dict,
             label: str) -> tuple[object, tuple[str, ...]]:
        """Run a function on graph values; return its result and the names of the values in it."""
        start = len(self.graph.nodes)
        result = f(*args, **kwargs)
        labels: tuple[str, ...] = (label,)
        if isinstance(result, (list, tuple)):
            labels = tuple(f"{label}_{i}" for i in range(len(result)))
        self.name_nodes(flat(result), labels, self.graph.nodes[start:])
        return result, labels

    def name_nodes(self, results: Iterable[GraphValue], labels: Iterable[str],
                   nodes: Sequence[Node]) -> None:
        """Rename the nodes that computed the results to the names that the user passed."""
        for value, name in zip(results, labels):
            node = value.node
            if node in nodes and value is node.outputs[0] and node.name not in self.blobs:
                self.graph.rename(node, name)
                self.blobs[name] = value

    def wrap(self, value: GraphValue, name: str, blob_name: str,
             inputs: Sequence[BlobDef] = ()) -> BlobDef:
        """Return the input blob that has this value, or a new blob if none has it."""
        for b in inputs:
            if isinstance(b, self.blob_type) and b.value is value:
                return b
        return self.blob_type(value, name, blob_name, self, self.is_dynamic(value, inputs))

    def is_dynamic(self, value: GraphValue, inputs: Sequence[BlobDef]) -> bool:
        """Return True if the size of the value may vary from call to call."""
        return any(b.is_dynamic for b in inputs)

    # ---- variables
    def get_variable(self, name: str, spec: Spec, initializer: Initializer, trainable: bool,
                     regularizer: Any = None, reuse: bool = True,
                     seed: int | None = None) -> JobBlob:
        if name in self.graph.variables:
            if not reuse:
                raise errors.repeated_variable(name)
            return self.blob_type(self.graph.variables[name], name, "out", self)
        self.session.declare(name, spec, initializer, trainable, seed, self.name)
        value = self.graph.variable(name, spec)
        if trainable:
            self.trainable[name] = (value, regularizer)
        return self.blob_type(value, name, "out", self)

    # ---- training
    def minimize(self, optimizer: Any, losses: list) -> None:
        if not self.training:
            raise errors.minimize_in_predict_job(self.name)
        for loss in losses:
            if not isinstance(loss, BlobDef):
                raise errors.loss_not_a_blob(loss)
            if not loss.dtype.is_floating_point:
                raise errors.loss_not_floating(loss)
        if len({loss.shape for loss in losses}) > 1:
            raise errors.losses_differ(losses)
        training = optimizer.training(self)
        values = [self.check_blob(b).values for b in losses]
        self.goal = Goal(training, values)

    def check_goal(self) -> None:
        """Raise JobBuildAndInferError if the body of a train job has not called `minimize`."""
        if self.training and self.goal is None:
            raise errors.no_loss(self.name)

    def finish(self) -> list:
        """Append the backward pass and updates. Return pairs (values, their watch handler)."""
        if self.training:
            self.train()
        return []

    def train(self, wanted: Sequence[GraphValue] = ()) -> list[GraphValue | None]:
        """Append the backward pass and updates, and return the gradients of `wanted`."""
        training, losses = self.goal
        step, names = training.step(self), training.names
        variables = [self.trainable[n][0] for n in names]
        grads = gradients(self.graph, [v for values in losses for v in values],
                          [*variables, *wanted], step.seed)
        updated = {n: g for n, g in zip(names, grads) if g is not None}
        if not updated:
            raise errors.loss_without_variables(self.name, names)
        self.graph.placement = self.home
        step.append(updated, sum(v.spec.size for v in losses[0]))
        return grads[len(variables):]
