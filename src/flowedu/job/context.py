"""JobContext: the surroundings of a job's body while it is compiled."""
from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from flowedu.blob.blob import BlobDef
from flowedu.blob.spec import Spec
from flowedu.blob.typing import ListNumpy, Numpy
from flowedu.context import Context
from flowedu.errors import CheckError, JobBuildAndInferError, UnsupportedError
from flowedu.graph.backward import gradients
from flowedu.graph.ir import Graph, GraphValue
from flowedu.job.blob import ConsistentBlob, LocalBlob
from flowedu.job.update import append_updates, choose_variables


class JobContext(Context):
    """Builds one job's graph: variables come from the session, results become blobs, `minimize` is remembered.

    Attributes: graph; trainable {name: (value, regularizer)}; watches, (value, is_diff, deliver).
    """

    def __init__(self, session, name: str, training: bool, config):
        super().__init__()
        self.session, self.name, self.training = session, name, training
        self.graph = Graph(name)
        self.trainable: dict[str, tuple[GraphValue, object]] = {}
        self.blobs: dict[str, ConsistentBlob] = {}
        self.watches: list[tuple[GraphValue, bool, Callable]] = []
        self.goal = None
        self.default_initializer = config.default_initializer if config else None
        self.rates: list[tuple[object, GraphValue]] = []

    # ---- names and variables
    def wrap(self, value, name: str, blob_name: str):
        if not isinstance(value, GraphValue):
            return value
        node = value.node
        if node is not None and value is node.outputs[0] and node.name not in self.blobs:
            self.graph.rename(node, name)
            self.blobs[name] = value
        return ConsistentBlob(value, name, blob_name, self.graph)

    def get_variable(self, name: str, spec: Spec, initializer, trainable: bool, regularizer=None, reuse: bool = True,
                     seed: int | None = None) -> ConsistentBlob:
        if name in self.graph.variables:
            if not reuse:
                raise CheckError(f"variable {name!r} already exists, getting the same variable is not allowed when param "
                                 "reuse is False", expected="a name of its own for every layer in a job", got=name,
                                 fix=f"give the second layer another name, e.g. name={name.split('-')[0] + '2'!r}")
            return ConsistentBlob(self.graph.variables[name], name, "out", self.graph)
        self.session.declare(name, spec, initializer, trainable, seed, self.name)
        value = self.graph.variable(name, spec)
        if trainable:
            self.trainable[name] = (value, regularizer)
        return ConsistentBlob(value, name, "out", self.graph)

    # ---- training
    def minimize(self, optimizer, losses: list) -> None:
        if not self.training:
            raise JobBuildAndInferError(f"{self.name}: minimize in a predict job", expected='a job of type "train"',
                                        got='"predict"', fix='@flow.global_function("train")')
        for loss in losses:
            if not isinstance(loss, BlobDef):
                raise CheckError("minimize: the loss is not a blob", expected="a blob of the job", got=type(loss).__name__,
                                 fix="minimize(loss) with what a loss function of flow.nn gave")
        if len({loss.shape for loss in losses}) > 1:
            raise JobBuildAndInferError("minimize: the losses have different shapes", expected="one shape",
                                        got=", ".join(str(x.shape) for x in losses), fix="reduce each to its mean first")
        self.goal = (choose_variables(optimizer, list(self.trainable)), [self.value_of(loss) for loss in losses])

    def watch(self, blob, handler, diff: bool) -> None:
        if not isinstance(blob, BlobDef):
            raise UnsupportedError("watch: not a blob", expected="a blob of this job", got=type(blob).__name__,
                                   fix="watch what an op or a layer returned")
        self.watches.append((self.value_of(blob), diff, handler))

    def finish(self) -> list[tuple[GraphValue, Callable]]:
        """After the body: append backward and updates; returns what to deliver to which watch handler."""
        learned = self._learned()
        wanted = [value for value, diff, _ in self.watches if diff and value in learned]
        found: dict[GraphValue, GraphValue | None] = {}
        if self.training:
            if self.goal is None:
                raise JobBuildAndInferError(f"{self.name}: loss blob not found", expected="a minimize(loss) in a train job",
                                            got="none", fix="add flow.optimizer.SGD(flow.optimizer."
                                            'PiecewiseConstantScheduler([], [0.1])).minimize(loss), or type="predict"',
                                            at="")
            groups, losses = self.goal
            names = list(dict.fromkeys(n for _, group in groups for n in group))
            variables = [self.trainable[n][0] for n in names]
            grads = gradients(self.graph, losses, [*variables, *wanted])
            found = dict(zip(wanted, grads[len(variables):]))
            pairs = [(n, v, g) for n, v, g in zip(names, variables, grads) if g is not None]
            if not pairs:
                raise JobBuildAndInferError(f"{self.name}: the loss does not depend on any trainable variable",
                                            expected="a loss made from a layer's output", got=f"variables {names}", at="",
                                            fix="make the loss from what the layers return, with trainable=True")
            append_updates(self, groups, {n: g for n, _, g in pairs}, losses[0].spec.size)
        deliveries = []
        for value, diff, handler in self.watches:
            source = found.get(value) if diff else value
            if source is not None:
                deliveries.append((source, handler))
        return deliveries

    def _learned(self) -> set[GraphValue]:
        """Values that a trainable variable has a part in: OneFlow computes gradients of these only."""
        found = {value for value, _ in self.trainable.values()}
        for node in self.graph.nodes:
            if not found.isdisjoint(node.inputs):
                found.update(node.outputs)
        return found


def deliverer(handler) -> Callable[[np.ndarray], None]:
    """What to call with a watched array, from the handler's signature or prompt."""
    if handler is None or isinstance(handler, str):
        return lambda a: print(*([handler] if handler else []), a, sep="\n")
    if not callable(handler):
        raise CheckError("watch: the handler is not callable", expected="a function of one parameter, a prompt, or None",
                         got=repr(handler), fix="def handler(x: tp.Numpy): print(x)")
    parameters = list(inspect.signature(handler, eval_str=True).parameters.values())
    if len(parameters) != 1:
        raise CheckError("watch callback should accept only one parameter", expected="def handler(x: tp.Numpy)",
                         got=f"{len(parameters)} parameters", fix="bring the rest in by a closure or functools.partial")
    kind = parameters[0].annotation
    if kind is inspect.Parameter.empty:
        return lambda a: handler(LocalBlob(a))
    if kind is Numpy:
        return handler
    if kind is ListNumpy:
        return lambda a: handler([a])
    raise UnsupportedError("invalid watch callback parameter annotation", expected="tp.Numpy, tp.ListNumpy or none",
                           got=repr(kind), fix="def handler(x: tp.Numpy)")
