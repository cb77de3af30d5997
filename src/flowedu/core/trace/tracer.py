"""Tracer: the interpreter that runs `build`. Ops on lazy tensors append nodes to a graph.

The `symbol` of a lazy tensor is its GraphValue. Eager tensors that ops read become variables of the
graph, named by the path of the parameter or buffer, or `FreeEagerTensor-n`.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowedu.core import extensions
from flowedu.core.eager.dispatch import is_grad_enabled, lazy_tensor
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.backward import ones
from flowedu.core.graph.devices import OneDevice
from flowedu.core.graph.ir import Building, Graph, GraphValue, Node
from flowedu.core.layers.module import Module
from flowedu.core.ops.call import interpreter
from flowedu.core.ops.define import Op
from flowedu.core.ops.reverse import reverse
from flowedu.core.trace import io
from flowedu.core.trace.blocks import ModuleBlock
from flowedu.errors import graphs as errors

FREE = "FreeEagerTensor-"            # prefix for the names of tensors that no module has


def op_type(node: Node) -> str:
    """Return the op type that names of operators contain, such as `broadcast_add`."""
    return type_name(node.op).removeprefix("view::")


def grad_name(node: Node) -> str:
    """Return the name that grad_fn prints, such as `broadcast_add_backward`."""
    return f"{type_name(node.op)}_backward"


def type_name(op: Op) -> str:
    """Return the name of an op in a graph. gradients/node_names.py replaces it by OneFlow's."""
    return extensions.op_type_name(op) if extensions.op_type_name else op.name


class Watch(NamedTuple):
    """A value that `handler` receives after every run (if `gradient`: the value's gradient)."""

    value: GraphValue
    handler: Callable
    gradient: bool


class Tracer:
    """Builder of one graph.

    Attributes: graph (graph.ir.Graph); variables {name: tensor}; goal, the pair (loss, its gradient
    or None) of `loss.backward()`; watches; say, a function that prints a line of debug output.
    """

    def __init__(self, name: str, blocks: dict[str, ModuleBlock], paths: dict[int, str],
                 say: Callable[..., None]):
        self.graph = Graph(name)
        self.blocks = {id(b.origin): b for top in blocks.values()
                       for b in reversed(list(top.walk()))}
        self.by_path = {b.path: b for b in self.blocks.values()}
        self.paths, self.say = paths, say
        self.variables: dict[str, Tensor] = {}
        self.values: dict[int, GraphValue] = {}          # id of an eager tensor -> current value
        self.written: dict[GraphValue, GraphValue] = {}  # variable -> its value after a run
        self.goal: tuple[GraphValue, GraphValue | None] | None = None
        self.watches: list[Watch] = []
        self.scope: list[ModuleBlock] = []
        self.owner: dict[Node, ModuleBlock | Any] = {}
        self.frozen: set[Node] = set()                   # nodes appended under no_grad
        self.called: set[int] = set()
        self.count = self.free = 0
        self.checkpoints: dict[Node, Any] = {}           # node -> the Checkpoint that recomputes it
        self.passes: dict[Node, tuple[int, bool]] = {}   # node -> (micro-batch, is backward)
        self.placing: Any = (extensions.global_placing or OneDevice)(self)

    # ---- the interpreter
    def raw(self) -> interpreter:
        """Return a context manager for op calls on GraphValues, as in gradient rules."""
        return interpreter(Building(self))

    def run(self, op: Op, inputs: tuple, attrs: tuple) -> Tensor | tuple[Tensor, ...]:
        values = [self.value_of(x, op) for x in inputs]
        self.placing.check(op, inputs, values)
        outputs = self.append(op, values, attrs)
        self.placing.follow(values, outputs)
        node = outputs[0].node if outputs else self.graph.nodes[-1]
        grad = is_grad_enabled()
        if not grad:
            self.frozen.add(node)
        wants = grad and any(x.requires_grad
                             and (op.any_rule or op.inputs[0 if op.variadic else i] in op.rules)
                             for i, x in enumerate(inputs))
        tensors = tuple(self.lazy(y, wants, grad_name(node)) for y in outputs)
        return tensors[0] if len(tensors) == 1 else tensors

    def append(self, op: Op, values: Sequence, attrs: tuple, name: str | None = None,
               reseed: bool = True) -> tuple[GraphValue, ...]:
        """Append a node named `name`. Default: OneFlow's name, `<module path>-<op type>-<number>`.

        reseed: give a random op another seed than the ops before it.
        """
        outputs = self.graph.append(op, values, attrs, reseed)
        node, block = self.graph.nodes[-1], self.scope[-1] if self.scope else None
        kind = op_type(node)
        self.graph.rename(node, name or (f"{block.path}-{kind}-{self.count}" if block
                                         else f"{kind}-{self.count}"))
        self.count += 1
        self.owner[node] = block
        if block is not None:
            block.nodes.append(node)
        return outputs

    def lazy(self, value: GraphValue, requires_grad: bool = False, name: str = "") -> Tensor:
        wants = requires_grad and value.dtype.is_floating_point
        x = lazy_tensor(value, value.shape, value.dtype, wants, name if wants else "")
        if self.placing.active:
            x.global_layout = self.placing.layout_of(value)
        return x

    def to_global(self, x: Tensor, placement: object = None, sbp: object = None,
                  grad_sbp: object = None) -> Tensor:
        return self.placing.to_global(x, placement, sbp, grad_sbp)

    def value_of(self, x: object, op: Op | None = None) -> GraphValue:
        """Return the GraphValue of a tensor. Eager tensors become variables of the graph."""
        if not isinstance(x, Tensor):
            raise errors.not_a_tensor(op, x)
        x.refresh_view()                   # update a view whose base was written in place
        if x.symbol is not None:
            value, inputs = x.symbol, self.graph.inputs
            if value.node is not None and value.node not in self.owner \
                    or value.kind == "input" and inputs.get(value.name) is not value:
                raise errors.foreign_lazy_tensor(x)
            return x.symbol
        value = self.values.get(id(x))
        if value is None:
            name = self.paths.get(id(x))
            if name is None:
                name, self.free = f"{FREE}{self.free}", self.free + 1
            value = self.values[id(x)] = self.graph.variable(name, x.spec)
            self.variables[name] = x
            self.placing.enter(value, x)
            block = self.by_path.get(name.rpartition(".")[0])
            if block is not None:
                block.nodes.append(value)      # variables are listed where they are first used
        return value

    # ---- modules
    def call_module(self, module: Module, args: tuple, kwargs: dict) -> Any:
        """Implement Module.__call__ inside build. Hooks do not run, as in OneFlow."""
        block = self.blocks.get(id(module))
        if block is None:
            if id(module) not in self.called:
                warnings.warn(f"{module._shallow_repr()} is called in a nn.Graph, but not "
                              "registered into a nn.Graph: assign it to an attribute in __init__",
                              stacklevel=3)
            self.called.add(id(module))
            return self.call_unregistered(module, args, kwargs)
        if block.placement is not None and self.placing.active:
            args, kwargs = io.map_leaves("", args, kwargs,
                                         lambda _, x: self.placing.on_stage(x, block.placement))
        first = id(module) not in self.called
        self.called.add(id(module))
        self.scope.append(block)
        try:
            call = self.call_first_time if first else self.forward
            return call(block, args, kwargs)
        finally:
            self.scope.pop()

    def call_first_time(self, block: ModuleBlock, args: tuple, kwargs: dict) -> Any:
        """Call a module for the first time. nn.Graph logs inputs and outputs."""
        return self.forward(block, args, kwargs)

    def forward(self, block: ModuleBlock, args: tuple, kwargs: dict) -> Any:
        """Call `forward` of a registered module."""
        return _forward(block.origin, args, kwargs)

    def call_unregistered(self, module: Module, args: tuple, kwargs: dict) -> Any:
        """Call `forward` of a module that is not registered."""
        return _forward(module, args, kwargs)

    # ---- methods of tensors
    def backward(self, loss: Tensor, gradient: Tensor | None = None) -> None:
        """Record `loss.backward()`. The backward nodes are appended after build returns."""
        check_seed("backward", loss, gradient)
        if self.goal is not None:
            raise errors.second_backward()
        self.goal = self.value_of(loss), None if gradient is None else self.value_of(gradient)

    def gradients(self, nodes: Sequence[Node], loss: GraphValue, gradient: GraphValue | None,
                  targets: Sequence[GraphValue]) -> list[GraphValue | None]:
        """Append the backward pass of a loss over `nodes`. gradient: its seed (None: ones)."""
        self.graph.training = True

        def visit(node: Node) -> Any:
            self.scope[:] = [self.owner[node]] if self.owner.get(node) else []
            return self._recompute(node)

        with self.raw():
            if gradient is None:
                gradient = ones(loss.spec)
            try:
                return reverse([n for n in nodes if n not in self.frozen], [(loss, gradient)],
                               targets, visit)
            finally:
                self.scope.clear()

    def _recompute(self, node: Node) -> Any:
        """Return recomputed values for a node whose activations are not stored, or None."""
        return self.checkpoints[node].again(node) if node in self.checkpoints else None

    def watch(self, x: Tensor, handler: Callable, gradient: bool) -> None:
        self.watches.append(Watch(self.value_of(x), handler, gradient))

    def refuse(self, action: str) -> None:
        raise errors.action_in_build(action)


def _forward(module: Module, args: tuple, kwargs: dict) -> Any:
    try:
        return module.forward(*args, **kwargs)
    except TypeError as e:
        if extensions.raise_misfit:
            extensions.raise_misfit(module, args, kwargs, e)
        raise


def check_seed(op: str, loss: Tensor, gradient: Tensor | None) -> None:
    if not loss.requires_grad:
        raise errors.loss_without_history(op)
    if gradient is None and loss.numel() != 1:
        raise errors.loss_not_scalar(op, loss.shape)
    if gradient is not None and gradient.shape != loss.shape:
        raise errors.out_grad_shape(op, gradient.shape, loss.shape)
