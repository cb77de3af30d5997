"""Context of the body of a OneFlow 0.4 job: placements, views, watches, sources, and the optimizer.

Each call of a front-end function is recorded (recording.py). The host part runs some of the calls before the
plan. If shapes vary, the body is replayed on values of the actual sizes.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from flowedu.core.graph.ir import GraphValue
from flowedu.core.job.context import JobContext
from flowedu.core.job.values import flat
from flowedu.core.layers.context import Initializer, blobs_in, use_context
from flowedu.core.values.blob import BlobDef
from flowedu.core.values.dtype import float16
from flowedu.core.values.place import Place
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, JobBuildAndInferError, UnsupportedError
from flowedu.errors import jobs as errors
from flowedu.errors.once import say_once
from flowedu.nn.amp.casts import autocast
from flowedu.oneflow04.job.containers import as_numpy_dtype, has_numbers
from flowedu.oneflow04.job.placed_blobs import ConsistentBlob
from flowedu.oneflow04.job.placement import Placement
from flowedu.oneflow04.job.recording import Call, replay
from flowedu.oneflow04.job.views import Views
from flowedu.ops.host import HostOp
from flowedu.tensor.devices import device

LEGACY = {"train.primary_lr", "train.secondary_lr", "train.model_update_conf"}


class Delivery(NamedTuple):
    """A watched value (on every device) and the function that receives it."""

    values: tuple[GraphValue, ...]
    handler: Callable


class Context04(JobContext):
    """The context of one job's body.

    Attributes, in addition to those of JobContext:
        calls: the recorded calls of the body.
        watches: a list of (values, is_diff, handler).
        views: the views of the body.
        placements: the placements that were entered.
        lists: the inputs that are TensorLists.
    """

    blob_type = ConsistentBlob

    def __init__(self, session, name: str, training: bool, config):
        super().__init__(session, name, training, config)
        self.calls: list[Call] = []
        self.watches: list[tuple[tuple[GraphValue, ...], bool, Callable]] = []
        self.lists: set[GraphValue] = set()
        self.legacy_losses: list[BlobDef] = []
        self.views = Views(self)
        self.placements = [session.placement(config)]
        self.on_gpus: set[int] = set()             # devices of the "gpu" placements of calls

    def computing(self) -> AbstractContextManager:
        """Return autocast, if the settings enable it."""
        settings = self.config.values if self.config else {}
        return autocast("cpu", settings.get("auto_mixed_precision_data_type", float16),
                        settings.get("enable_auto_mixed_precision", False))

    # ---- placements
    @property
    def placement(self) -> Placement:
        return self.placements[-1]

    def _choose_device(self) -> int:
        """Return the device of the whole job: 0 for the CPU, n + 1 for GPU n.

        A job with a call in a "gpu" placement runs on one GPU, if the machine has one: the GPU of the
        placement, or the first GPU if the placement has several (virtual) devices.
        """
        count = device.gpus() if self.on_gpus else 0
        if not count:
            return 0
        return 1 + (min(self.on_gpus) if len(self.on_gpus) == 1 and max(self.on_gpus) < count else 0)

    # Any, because the base class has attributes of these names instead of properties.
    devices: Any = property(lambda self: len(self.placement.devices))
    home: Any = property(lambda self: self.placements[0].place)
    place: Any = property(_choose_device)

    def value_of(self, blob: BlobDef) -> GraphValue:
        if not isinstance(blob, ConsistentBlob) or blob.context is not self:
            blob = self.views.consistent(self.check_blob(blob))
        return blob.value

    # ---- calls of front-end functions
    def apply(self, f: Callable, args: tuple, kwargs: dict, label: str, blob_name: str):
        if self.views.mirrored:
            given = [self.check_blob(b) for b in blobs_in((*args, *kwargs.values()))]
            return self.views.apply(f, args, kwargs, label, blob_name, given)
        return super().apply(f, args, kwargs, label, blob_name)

    def call(self, f: Callable, args: tuple, kwargs: dict, label: str, placement: Place | None = None
             ) -> tuple[object, tuple[str, ...]]:
        """Call `f` on the devices of `placement` (None: the current placement), and record the call."""
        graph, start = self.graph, len(self.graph.nodes)
        placement = placement or self.placement.place
        old, graph.placement = graph.placement, placement
        try:
            result, labels = super().call(f, args, kwargs, label)
        finally:
            graph.placement = old
        call = Call(f, args, kwargs, flat(result), labels, placement, tuple(graph.nodes[start:]))
        if call.nodes:
            self._check_kinds(call, label)
            self.calls.append(call)
            if self.placement.on_gpu and not call.is_host:
                self.on_gpus.update(self.placement.devices)
        return result, labels

    def _check_kinds(self, call: Call, label: str) -> None:
        if call.is_host:
            for node in [n for n in call.nodes if isinstance(n.op, HostOp)]:
                self.lists.update(v for v, name in zip(node.outputs, node.op.outputs)
                                  if name in node.op.lists)
        else:
            for value in call.inputs():
                if value in self.lists:
                    raise DTypeError(f"{label}: an input is a tensor list", expected="a numeric blob",
                                     got=repr(value),
                                     fix="convert it with flow.tensor_list_to_tensor_buffer or "
                                     "flow.tensor_list_split")
                if not has_numbers(value.dtype):
                    raise DTypeError(f"{label}: an input is a {value.dtype.name}",
                                     expected="a blob of numbers",
                                     got=repr(value),
                                     fix="flow.tensor_buffer_to_tensor makes a tensor of buffers of one "
                                     "shape; records are read by flow.data.OFRecordRawDecoder and its family")

    def is_dynamic(self, value: GraphValue, given: Sequence[BlobDef]) -> bool:
        node = value.node
        if node is not None and isinstance(node.op, HostOp):
            on = node.op.outputs[value.index] in node.op.dynamic
            return on and dict(zip(node.op.attrs, node.attrs)).get("dynamic_out", True)
        return super().is_dynamic(value, given)

    def is_data(self, value: GraphValue) -> bool:
        """Return True if the value depends on an argument of the job, or on a source."""
        seen, todo = set(), [value]
        while todo:
            v = todo.pop()
            if v.kind == "input" or (v.node is not None and isinstance(v.node.op, HostOp)):
                return True
            if v.node is not None and v.node not in seen:
                seen.add(v.node)
                todo += v.node.inputs
        return False

    def state_variable(self, name: str, spec: Spec, initializer: Initializer) -> GraphValue:
        """Return a variable of the optimizer, which may exist already."""
        value = self.graph.variables.get(name)
        if value is None:
            self.session.declare(name, spec, initializer, False, 0, self.name)
            return self.graph.variable(name, spec)
        if value.spec != spec:
            raise errors.optimizer_variable(name, spec, value.spec)
        return value

    # ---- losses and watches
    def add_loss(self, loss: BlobDef) -> None:
        """Add a loss for the optimizer that the function_config describes (flow.losses.add_loss)."""
        if not self.training:
            raise JobBuildAndInferError(f"{self.name}: add_loss in a predict job",
                                        expected='a job of type "train"',
                                        got='"predict"', fix='@flow.global_function("train")')
        self.legacy_losses.append(self.check_blob(loss))

    def watch(self, blob, handler, diff: bool) -> None:
        if not isinstance(blob, BlobDef):
            raise UnsupportedError("watch: not a blob", expected="a blob of this job",
                                   got=type(blob).__name__, fix="watch what an op or a layer returned")
        values = self.check_blob(blob).values
        if not has_numbers(values[0].dtype) or not self.lists.isdisjoint(values):
            raise UnsupportedError("watch: the blob is not numeric", expected="a numeric blob",
                                   got=repr(blob),
                                   fix="flow.tensor_buffer_to_tensor or flow.tensor_list_split first")
        self.watches.append((values, diff, handler))

    # ---- after the body
    def check_goal(self) -> None:
        """Choose the optimizer and the losses of the job from its legacy settings, unless minimize did."""
        if self.goal is None and self.legacy_losses:
            from flowedu.oneflow04.optim.optimizer_conf import optimizer_from_conf  # it knows all optimizers
            self.minimize(optimizer_from_conf(self.config.values if self.config else {}), self.legacy_losses)
        elif self.config:
            for name in LEGACY.intersection(self.config.values):
                say_once(f"function_config.{name}",
                         "this job's optimizer is given to minimize; the setting is for flow.losses.add_loss",
                         4)
        super().check_goal()

    def finish(self) -> list[Delivery]:
        learned = self._learned()
        wanted = [v for values, diff, _ in self.watches if diff for v in values if v in learned]
        found = dict(zip(wanted, self.train(wanted))) if self.training else {}
        deliveries = []
        for values, diff, handler in self.watches:
            sources = tuple(found.get(v) for v in values) if diff else values
            if all(s is not None for s in sources):
                deliveries.append(Delivery(tuple(map(as_numpy_dtype, sources)), handler))
        return deliveries

    def _learned(self) -> set[GraphValue]:
        """Return the values that depend on a trainable variable. OneFlow computes gradients of these only."""
        found = {value for value, _ in self.trainable.values()}
        for node in self.graph.nodes:
            if not found.isdisjoint(node.inputs):
                found.update(node.outputs)
        return found

    # ---- the same body on other shapes
    def resized(self, specs: dict[GraphValue, Spec]) -> tuple[Context04, Callable[[GraphValue], GraphValue]]:
        """Return (the same job with other input shapes, a function from old values to new ones)."""
        new = Context04(self.session, self.name, self.training, self.config)
        known: dict[GraphValue, GraphValue] = {}

        def table(value: GraphValue) -> GraphValue:
            if value not in known and value.kind == "variable":
                known[value] = (new.graph.variables.get(value.name)
                                or new.graph.variable(value.name, value.spec))
            return known[value]

        for value in self.graph.inputs.values():
            known[value] = new.graph.input(value.name, specs.get(value, value.spec))
        new.on_gpus = self.on_gpus
        new.trainable = {n: (table(v), r) for n, (v, r) in self.trainable.items()}
        new.model_names = self.model_names
        with use_context(new), new.graph.building(), new.computing():
            for call in self.calls:
                if call.is_host:                   # its results are inputs of the graph
                    continue
                new.graph.placement = call.placement
                start = len(new.graph.nodes)
                results = replay(call, table)
                for node in new.graph.nodes[start:]:
                    node.line = call.line
                known.update(zip(call.results, results))
                new.name_nodes(results, call.labels, new.graph.nodes[start:])
        if self.goal is not None:
            new.goal = self.goal._replace(losses=[tuple(map(table, values)) for values in self.goal.losses])
        new.watches = [(tuple(map(table, values)), diff, handler) for values, diff, handler in self.watches]
        return new, table
