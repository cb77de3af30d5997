"""Tracer: the interpreter that runs `build`. Ops on lazy tensors append nodes to a graph.

The `symbol` of a lazy tensor is its GraphValue. Eager tensors that ops read become variables of the graph, which share
their memory. The name of a parameter or buffer is its path, that of another tensor `FreeEagerTensor-n`.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

from flowedu.core import extensions
from flowedu.core.eager.dispatch import is_grad_enabled, lazy_tensor
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.backward import ones
from flowedu.core.graph.devices import OneDevice
from flowedu.core.graph.ir import Building, Graph, GraphValue, Node
from flowedu.core.ops.call import interpreter
from flowedu.core.ops.reverse import reverse
from flowedu.core.trace import io
from flowedu.core.trace.blocks import ModuleBlock
from flowedu.core.trace.names import grad_name, op_type
from flowedu.errors import GradientError, JobBuildAndInferError, ShapeError, UnsupportedError

FREE = "FreeEagerTensor-"            # prefix for the names of tensors that no module has


class Watch(NamedTuple):
    """A value that `handler` receives after every run, or its gradient."""

    value: GraphValue
    handler: Callable
    gradient: bool


class Tracer:
    """Builder of one graph.

    Attributes: graph (graph.ir.Graph); variables {name: tensor}; goal, the (loss, its gradient or None) of backward;
    watches; say, a function that is called with each line of debug output.
    """

    def __init__(self, name: str, blocks: dict[str, ModuleBlock], paths: dict[int, str], say: Callable[[int, str], None]):
        self.graph = Graph(name)
        self.blocks = {id(b.origin): b for top in blocks.values() for b in reversed(list(top.walk()))}
        self.by_path = {b.path: b for b in self.blocks.values()}
        self.paths, self.say = paths, say
        self.variables: dict[str, Tensor] = {}
        self.values: dict[int, GraphValue] = {}          # id of an eager tensor -> current value
        self.written: dict[GraphValue, GraphValue] = {}  # variable -> its value after a run
        self.goal: tuple[GraphValue, GraphValue | None] | None = None
        self.watches: list[Watch] = []
        self.scope: list[ModuleBlock] = []
        self.owner: dict[Node, ModuleBlock | None] = {}
        self.frozen: set[Node] = set()                   # nodes appended under no_grad
        self.called: set[int] = set()
        self.count = self.free = 0
        self.checkpoints: dict[Node, object] = {}        # node -> the Checkpoint that recomputes it
        self.passes: dict[Node, tuple[int, bool]] = {}   # node -> (micro-batch, is backward)
        self.placing = (extensions.global_placing or OneDevice)(self)

    # ---- the interpreter
    def raw(self) -> interpreter:
        """Return a context manager for op calls on GraphValues, as in gradient rules."""
        return interpreter(Building(self))

    def run(self, op, inputs: tuple, attrs: tuple):
        values = [self.value_of(x, op) for x in inputs]
        self.placing.check(op, inputs, values)
        outputs = self.append(op, values, attrs)
        self.placing.follow(values, outputs)
        node = outputs[0].node if outputs else self.graph.nodes[-1]
        grad = is_grad_enabled()
        if not grad:
            self.frozen.add(node)
        wants = grad and any(x.requires_grad and (op.any_rule or op.inputs[0 if op.variadic else i] in op.rules)
                             for i, x in enumerate(inputs))
        tensors = tuple(self.lazy(y, wants, grad_name(node)) for y in outputs)
        return tensors[0] if len(tensors) == 1 else tensors

    def append(self, op, values, attrs: tuple, name: str | None = None, reseed: bool = True) -> tuple[GraphValue, ...]:
        """Append a node named `name`. Default: OneFlow's name, `<module path>-<op type>-<number>`.

        reseed: give a random op another seed than the ops before it.
        """
        outputs = self.graph.append(op, values, attrs, reseed)
        node, block = self.graph.nodes[-1], self.scope[-1] if self.scope else None
        kind = op_type(node)
        self.graph.rename(node, name or (f"{block.path}-{kind}-{self.count}" if block else f"{kind}-{self.count}"))
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

    def to_global(self, x: Tensor, placement=None, sbp=None, grad_sbp=None) -> Tensor:
        """Implement Tensor.to_global inside build."""
        return self.placing.to_global(x, placement, sbp, grad_sbp)

    def value_of(self, x, op=None) -> GraphValue:
        """Return the GraphValue of a tensor. Eager tensors become variables of the graph."""
        if not isinstance(x, Tensor):
            raise JobBuildAndInferError(f"{op.name if op else 'nn.Graph'}: an input is not a tensor", expected="tensors",
                                        got=type(x).__name__, fix="flow.tensor(x), made in __init__")
        x.refresh_view()                   # update a view whose base was written in place
        if x.symbol is not None:
            if x.symbol.node is not None and x.symbol.node not in self.owner or x.symbol.kind == "input" and \
                    self.graph.inputs.get(x.symbol.name) is not x.symbol:
                raise JobBuildAndInferError("nn.Graph: a lazy tensor of another graph, or of an earlier build, is used",
                                            expected="tensors made in this build", got=repr(x),
                                            fix="return it from build, and pass the result of the call on")
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
    def call_module(self, module, args: tuple, kwargs: dict):
        """Implement Module.__call__ inside build. Hooks do not run, as in OneFlow."""
        block = self.blocks.get(id(module))
        if block is None:
            if id(module) not in self.called:
                warnings.warn(f"{module._shallow_repr()} is called in a nn.Graph, but not registered into a nn.Graph: "
                              "assign it to an attribute in __init__", stacklevel=3)
            self.called.add(id(module))
            return self.call_unregistered(module, args, kwargs)
        if block.placement is not None and self.placing.active:
            args, kwargs = io.map_leaves("", args, kwargs, lambda _, x: self.placing.on_stage(x, block.placement))
        first = id(module) not in self.called
        self.called.add(id(module))
        self.scope.append(block)
        try:
            return self.call_first_time(block, args, kwargs) if first else self.forward(block, args, kwargs)
        finally:
            self.scope.pop()

    def call_first_time(self, block: ModuleBlock, args: tuple, kwargs: dict):
        """Call a module for the first time. nn.Graph logs inputs and outputs."""
        return self.forward(block, args, kwargs)

    def forward(self, block: ModuleBlock, args: tuple, kwargs: dict):
        """Call `forward` of a registered module."""
        return _forward(block.origin, args, kwargs)

    def call_unregistered(self, module, args: tuple, kwargs: dict):
        """Call `forward` of a module that is not registered."""
        return _forward(module, args, kwargs)

    # ---- methods of tensors
    def backward(self, loss: Tensor, gradient: Tensor | None = None) -> None:
        """Record `loss.backward()`. The backward nodes are appended after build returns."""
        check_seed("backward", loss, gradient)
        if self.goal is not None:
            raise JobBuildAndInferError("nn.Graph: backward is called twice in one build", expected="one backward()",
                                        got="a second one", fix="add the losses up: (loss1 + loss2).backward()")
        self.goal = self.value_of(loss), None if gradient is None else self.value_of(gradient)

    def gradients(self, nodes: Sequence[Node], loss: GraphValue, gradient: GraphValue | None,
                  targets: Sequence[GraphValue]) -> list[GraphValue | None]:
        """Append the backward pass of a loss over `nodes`. gradient: its seed (None: ones)."""
        self.graph.training = True

        def visit(node):
            self.scope[:] = [self.owner[node]] if self.owner.get(node) else []
            return self._recompute(node)

        with self.raw():
            if gradient is None:
                gradient = ones(loss.spec)
            try:
                return reverse([n for n in nodes if n not in self.frozen], [(loss, gradient)], targets, visit)
            finally:
                self.scope.clear()

    def _recompute(self, node: Node):
        """Return recomputed values for a node whose activations are not stored, or None."""
        return self.checkpoints[node].again(node) if node in self.checkpoints else None

    def watch(self, x: Tensor, handler: Callable, gradient: bool) -> None:
        self.watches.append(Watch(self.value_of(x), handler, gradient))

    def refuse(self, action: str) -> None:
        raise UnsupportedError(f"nn.Graph: {action} inside build", expected="a description of one step",
                               fix="the graph clears gradients and updates by itself: add_optimizer in __init__ and "
                                   "loss.backward() in build are all it needs")


def _forward(module, args: tuple, kwargs: dict):
    try:
        return module.forward(*args, **kwargs)
    except TypeError as e:
        if extensions.raise_misfit:
            extensions.raise_misfit(module, args, kwargs, e)
        raise


def check_seed(op: str, loss: Tensor, gradient: Tensor | None) -> None:
    if not loss.requires_grad:
        raise GradientError(f"{op}: element 0 of tensors does not require grad and does not have a grad_fn",
                            expected="a loss computed from parameters", got="a loss without a history",
                            fix="compute the loss from parameters, outside no_grad()")
    if gradient is None and loss.numel() != 1:
        raise GradientError(f"{op}: grad can be implicitly created only for scalar outputs", got=f"a loss of shape "
                            f"{tuple(loss.shape)}", fix="loss.mean().backward() or loss.sum().backward()")
    if gradient is not None and gradient.shape != loss.shape:
        raise ShapeError(f"{op}: out_grad's shape must be same as output's ({tuple(gradient.shape)} vs "
                         f"{tuple(loss.shape)})", expected=str(tuple(loss.shape)), got=str(tuple(gradient.shape)))
