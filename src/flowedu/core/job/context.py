"""JobContext: the surroundings of a job's body while it is compiled."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph, GraphValue
from flowedu.oneflow04.job.blob import ConsistentBlob
from flowedu.oneflow04.job.placement import Placement
from flowedu.oneflow04.job.recording import Call, flat, replay, shaped_like
from flowedu.oneflow04.job.views import Views
from flowedu.core.layers.context import BETWEEN_JOBS, Context, blobs_in
from flowedu.core.ops.host import HostOp
from flowedu.core.shelves import shelf
from flowedu.core.values.blob import BlobDef
from flowedu.core.values.place import Place
from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError, DTypeError, JobBuildAndInferError, UnsupportedError
from flowedu.errors.once import say_once

LEGACY = {"train.primary_lr", "train.secondary_lr", "train.model_update_conf"}


class Goal(NamedTuple):
    """What minimize was asked, and for each loss its value on every device.

    training: what the optimizer's `training(context)` gave: `names` of the variables it trains, and `step(context)`, with
    `seed(Spec of a loss)`, the gradient the backward pass begins with, and `append(gradients by name, elements of the
    loss)`, which appends the updates.
    """

    training: object
    losses: list[tuple[GraphValue, ...]]


class Delivery(NamedTuple):
    """A watched value (on every device) and the function that takes it."""

    values: tuple[GraphValue, ...]
    handler: Callable


class JobContext(Context):
    """Builds one job's graph: variables come from the session, results become blobs, calls and wishes are remembered.

    Attributes: graph; calls, what the body did; trainable {name: (value, regularizer)}; watches, (values, is_diff,
    handler); goal; rates, (scheduler, host value) pairs to be filled before every run; views; blobs {op name: blob}.
    """

    in_job = True
    blob_type = ConsistentBlob

    def __init__(self, session, name: str, training: bool, config):
        super().__init__()
        self.session, self.name, self.training, self.config = session, name, training, config
        self.graph = Graph(name)
        self.calls: list[Call] = []
        self.trainable: dict[str, tuple[GraphValue, object]] = {}
        self.blobs: dict[str, BlobDef] = {}
        self.watches: list[tuple[tuple[GraphValue, ...], bool, Callable]] = []
        self.goal: Goal | None = None
        self.lists: set[GraphValue] = set()          # inputs that are TensorLists
        self.legacy_losses: list[BlobDef] = []
        self.rates: list[tuple[object, GraphValue]] = []
        self.default_initializer = config.default_initializer if config else None
        self.views = Views(self)
        self.placements = [session.placement(config)]

    # ---- where things are
    @property
    def placement(self) -> Placement:
        return self.placements[-1]

    @property
    def devices(self) -> int:
        return len(self.placement.devices)

    def value_of(self, blob: BlobDef) -> GraphValue:
        """The one value of a blob of this job."""
        if not isinstance(blob, ConsistentBlob) or blob.context is not self:
            blob = self.views.consistent(self.owned(blob))
        return blob.value

    def owned(self, blob: BlobDef) -> BlobDef:
        if not isinstance(blob, BlobDef):
            raise CheckError(f"{self.name}: not a blob", expected="an argument of the job, or what an op or a layer gave",
                             got=type(blob).__name__, fix="pass what flow.layers, flow.nn and flow.math return")
        if getattr(blob, "context", None) is not self:
            raise CheckError(f"a blob of job {blob.job_name} is used in job {self.name}", expected="blobs made in the body "
                             "that runs now", got=repr(blob), fix=BETWEEN_JOBS)
        return blob

    # ---- calls of front-end functions
    def apply(self, f: Callable, args: tuple, kwargs: dict, label: str, blob_name: str):
        """The answer of a front-end function (frontend.py) that is given blobs of this job; label: the op's name."""
        given = [self.owned(b) for b in blobs_in((*args, *kwargs.values()))]
        if self.views.mirrored:
            return self.views.apply(f, args, kwargs, label, blob_name, given)
        args, kwargs = self.unwrapped(args, kwargs, self.value_of)
        result, call = self.call(f, args, kwargs, label, self.placement.place)
        blobs = [self.wrapped(v, n, blob_name, given) for v, n in zip(flat(result), call.labels)]
        return shaped_like(result, blobs)

    def unwrapped(self, args: tuple, kwargs: dict, value: Callable[[BlobDef], GraphValue]) -> tuple[tuple, dict]:
        def walk(x):
            if isinstance(x, BlobDef):
                return value(x)
            if isinstance(x, (list, tuple)) and any(True for _ in blobs_in(x)):
                return type(x)(walk(y) for y in x)
            return x
        return tuple(map(walk, args)), {k: walk(v) for k, v in kwargs.items()}

    def call(self, f: Callable, args: tuple, kwargs: dict, label: str, placement: Place) -> tuple[object, Call]:
        """Run the body of a front-end function on graph values, and remember it."""
        graph, start = self.graph, len(self.graph.nodes)
        old, graph.placement = graph.placement, placement
        try:
            result = f(*args, **kwargs)
        finally:
            graph.placement = old
        values = flat(result)
        labels = (label,) if not isinstance(result, (list, tuple)) else tuple(f"{label}_{i}" for i in range(len(values)))
        call = Call(f, args, kwargs, values, labels, placement, tuple(graph.nodes[start:]))
        if call.nodes:
            self._check_kinds(call, label)
            self.calls.append(call)
            self._name(call)
        return result, call

    def _name(self, call: Call) -> None:
        """Give the nodes that made the results the names the user asked for."""
        for value, name in zip(call.results, call.labels):
            node = value.node
            if node in call.nodes and value is node.outputs[0] and node.name not in self.blobs:
                self.graph.rename(node, name)
                self.blobs[name] = value

    def _check_kinds(self, call: Call, label: str) -> None:
        if call.is_host:
            for node in [n for n in call.nodes if isinstance(n.op, HostOp)]:
                self.lists.update(v for v, name in zip(node.outputs, node.op.outputs) if name in node.op.lists)
        else:
            for value in call.inputs():
                if value in self.lists:
                    raise DTypeError(f"{label}: an input is a tensor list", expected="a blob of numbers", got=repr(value),
                                     fix="flow.tensor_list_to_tensor_buffer or flow.tensor_list_split takes it apart")
                if value.dtype.numpy is None:
                    raise DTypeError(f"{label}: an input is a {value.dtype.name}", expected="a blob of numbers",
                                     got=repr(value), fix="flow.tensor_buffer_to_tensor makes a tensor of buffers of one "
                                     "shape; records are read by flow.data.OFRecordRawDecoder and its family")

    def wrapped(self, value: GraphValue, name: str, blob_name: str, given: Sequence[BlobDef] = ()) -> BlobDef:
        """The blob of a result: one of the given blobs where nothing was done."""
        for b in given:
            if isinstance(b, ConsistentBlob) and b.value is value:
                return b
        return self.blob_type(value, name, blob_name, self, self.is_dynamic(value, given))

    def is_dynamic(self, value: GraphValue, given: Sequence[BlobDef]) -> bool:
        node = value.node
        if node is not None and isinstance(node.op, HostOp):
            on = node.op.outputs[value.index] in node.op.dynamic
            return on and dict(zip(node.op.attrs, node.attrs)).get("dynamic_out", True)
        return any(b.is_dynamic for b in given)

    def is_data(self, value: GraphValue) -> bool:
        """Whether the value depends on what a run brings: on an argument of the job, or on a source that is read."""
        seen, todo = set(), [value]
        while todo:
            v = todo.pop()
            if v.kind == "input" or (v.node is not None and isinstance(v.node.op, HostOp)):
                return True
            if v.node is not None and v.node not in seen:
                seen.add(v.node)
                todo += v.node.inputs
        return False

    # ---- variables
    def get_variable(self, name: str, spec: Spec, initializer, trainable: bool, regularizer=None, reuse: bool = True,
                     seed: int | None = None) -> ConsistentBlob:
        if name in self.graph.variables:
            if not reuse:
                raise CheckError(f"variable {name!r} already exists, getting the same variable is not allowed when param "
                                 "reuse is False", expected="a name of its own for every layer in a job", got=name,
                                 fix=f"give the second layer another name, e.g. name={name.split('-')[0] + '2'!r}")
            return ConsistentBlob(self.graph.variables[name], name, "out", self)
        self.session.declare(name, spec, initializer, trainable, seed, self.name)
        value = self.graph.variable(name, spec)
        if trainable:
            self.trainable[name] = (value, regularizer)
        return ConsistentBlob(value, name, "out", self)

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

    # ---- wishes
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

    def add_loss(self, loss: BlobDef) -> None:
        """flow.losses.add_loss: the loss of an optimizer that the function_config describes."""
        if not self.training:
            raise JobBuildAndInferError(f"{self.name}: add_loss in a predict job", expected='a job of type "train"',
                                        got='"predict"', fix='@flow.global_function("train")')
        self.legacy_losses.append(self.owned(loss))

    def watch(self, blob, handler, diff: bool) -> None:
        if not isinstance(blob, BlobDef):
            raise UnsupportedError("watch: not a blob", expected="a blob of this job", got=type(blob).__name__,
                                   fix="watch what an op or a layer returned")
        values = self.owned(blob).values
        if values[0].dtype.numpy is None or not self.lists.isdisjoint(values):
            raise UnsupportedError("watch: the blob holds no numbers", expected="a blob of numbers", got=repr(blob),
                                   fix="flow.tensor_buffer_to_tensor or flow.tensor_list_split first")
        self.watches.append((values, diff, handler))

    # ---- after the body
    def settle(self) -> None:
        """After the body: what the legacy configuration asked for becomes a goal."""
        if self.goal is None and self.legacy_losses:
            values = self.config.values if self.config else {}
            self.minimize(shelf("optimizer of a configuration")(values), self.legacy_losses)
        elif self.config:
            for name in LEGACY.intersection(self.config.values):
                say_once(f"function_config.{name}", "this job's optimizer is given to minimize; the setting is for "
                         "flow.losses.add_loss", 4)
        if self.training and self.goal is None:
            raise JobBuildAndInferError(f"{self.name}: loss blob not found", expected="a minimize(loss) in a train job",
                                        got="none", fix="add flow.optimizer.SGD(flow.optimizer."
                                        'PiecewiseConstantScheduler([], [0.1])).minimize(loss), or type="predict"')

    def finish(self) -> list[Delivery]:
        """Append backward and updates; returns what to deliver to which watch handler."""
        learned = self._learned()
        wanted = [v for values, diff, _ in self.watches if diff for v in values if v in learned]
        found: dict[GraphValue, GraphValue | None] = {}
        if self.training:
            training, losses = self.goal
            step, names = training.step(self), training.names
            variables = [self.trainable[n][0] for n in names]
            grads = gradients(self.graph, [v for values in losses for v in values], [*variables, *wanted], step.seed)
            found = dict(zip(wanted, grads[len(variables):]))
            updated = {n: g for n, g in zip(names, grads) if g is not None}
            if not updated:
                raise JobBuildAndInferError(f"{self.name}: the loss does not depend on any trainable variable",
                                            expected="a loss made from a layer's output", got=f"variables {names}", at="",
                                            fix="make the loss from what the layers return, with trainable=True")
            self.graph.placement = self.placements[0].place
            step.append(updated, sum(v.spec.size for v in losses[0]))
        deliveries = []
        for values, diff, handler in self.watches:
            sources = tuple(found.get(v) for v in values) if diff else values
            if all(s is not None for s in sources):
                deliveries.append(Delivery(sources, handler))
        return deliveries

    def _learned(self) -> set[GraphValue]:
        """Values that a trainable variable has a part in: OneFlow computes gradients of these only."""
        found = {value for value, _ in self.trainable.values()}
        for node in self.graph.nodes:
            if not found.isdisjoint(node.inputs):
                found.update(node.outputs)
        return found

    # ---- the same body on other shapes
    def resized(self, specs: dict[GraphValue, Spec]) -> tuple[JobContext, Callable[[GraphValue], GraphValue]]:
        """The same job where the given inputs of the graph have other shapes: (context, old value -> new)."""
        new = JobContext(self.session, self.name, self.training, self.config)
        known: dict[GraphValue, GraphValue] = {}

        def table(value: GraphValue) -> GraphValue:
            if value not in known and value.kind == "variable":
                known[value] = new.graph.variables.get(value.name) or new.graph.variable(value.name, value.spec)
            return known[value]

        for value in self.graph.inputs.values():
            known[value] = new.graph.input(value.name, specs.get(value, value.spec))
        new.trainable = {n: (table(v), r) for n, (v, r) in self.trainable.items()}
        new.model_names = self.model_names
        from flowedu.core.layers.context import pushed
        with pushed(new), new.graph.building():
            for call in self.calls:
                if call.is_host:                   # what it gives is an input by now
                    continue
                new.graph.placement = call.placement
                start = len(new.graph.nodes)
                results = replay(call, table)
                for node in new.graph.nodes[start:]:
                    node.line = call.line
                known.update(zip(call.results, results))
                new._name(call._replace(results=results, nodes=tuple(new.graph.nodes[start:])))
        if self.goal is not None:
            new.goal = self.goal._replace(losses=[tuple(map(table, values)) for values in self.goal.losses])
        new.watches = [(tuple(map(table, values)), diff, handler) for values, diff, handler in self.watches]
        return new, table
