"""Graph type of job functions and nn.Graph: a list of nodes over values that are assigned once.

`Building` is the interpreter that builds a graph. It infers output Specs and appends nodes.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core.ops.call import interpreter
from flowedu.core.ops.define import Op
from flowedu.core.ops.value import Value
from flowedu.core.values.spec import Spec
from flowedu.errors import graphs as errors
from flowedu.errors import user_line


class GraphValue(Value):
    """A value of a graph. It has a shape and a dtype, but no data.

    kind: "node" (an op's output), "input" (fed by the caller), "variable" (kept between runs), or
    "host" (a scalar that the host writes before each run, such as the learning rate).
    """

    __slots__ = ("index", "kind", "name", "node", "spec")
    _version = 0

    def __init__(self, spec: Spec, kind: str, name: str, node: Node | Any = None, index: int = 0):
        self.spec, self.kind, self.name = spec, kind, name
        self.node, self.index = node, index

    @property
    def is_leaf(self) -> bool:
        """True for variables. Autocast casts a leaf once, for all nodes that read it."""
        return self.kind == "variable"

    requires_grad = is_leaf

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} {self.spec}>"


class Node:
    """One op call. line: its user code. placement: a tuple of devices, or a Place (None: all)."""

    __slots__ = ("attrs", "inputs", "line", "name", "op", "outputs", "placement")

    def __init__(self, op: Op, inputs: Sequence[GraphValue], attrs: tuple, specs: Sequence[Spec],
                 name: str, line: str, placement: Any = None):
        self.op, self.inputs, self.attrs = op, tuple(inputs), attrs
        self.name, self.line, self.placement = name, line, placement
        self.outputs = tuple(GraphValue(s, "node", name if i == 0 else f"{name}.{o}", self, i)
                             for i, (s, o) in enumerate(zip(specs, op.outputs)))

    @property
    def mutates(self) -> tuple[int, ...]:
        """Positions of the inputs that this node writes in place (variables)."""
        rule = self.op.mutates
        return tuple(rule(len(self.inputs))) if rule is not None else ()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.op.name}>"


def base(value: GraphValue) -> GraphValue:
    """Return the value whose memory `value` views, or `value` itself if it is not a view."""
    while value.node is not None and value.node.op.view is not None:
        value = value.node.inputs[0]
    return value


class Graph:
    """Nodes in build order, with the inputs, variables, and outputs of the computation.

    `inputs`, `variables`, and `hosts` are {name: GraphValue}, in order of creation. `outputs` are
    the values that a run returns. `training` is True if the graph contains a backward pass.
    """

    def __init__(self, name: str):
        self.name = name
        self.nodes: list[Node] = []
        self.inputs: dict[str, GraphValue] = {}
        self.variables: dict[str, GraphValue] = {}
        self.hosts: dict[str, GraphValue] = {}
        self.outputs: list[GraphValue] = []
        self.training = False
        self.forward: int | None = None                # number of nodes before the backward pass
        self.placement: Any = None                     # of the nodes that are appended next
        self.kept: frozenset[Node] = frozenset()       # nodes whose scratch memory outlives a run
        self.keeps = False                             # True if the caller supports `kept` nodes
        self.spent: dict[str, float] = {}              # seconds spent in each stage of compilation
        self._names: set[str] = set()
        self._draws = 0
        self._inferred: dict[tuple, tuple[Spec, ...]] = {}
        self._counts: dict[str, int] = {}

    # ---- building
    def input(self, name: str, spec: Spec) -> GraphValue:
        return self._enter(self.inputs, "input", name, spec)

    def variable(self, name: str, spec: Spec) -> GraphValue:
        return self._enter(self.variables, "variable", name, spec)

    def host(self, name: str, spec: Spec) -> GraphValue:
        return self._enter(self.hosts, "host", name, spec)

    def _enter(self, table: dict, kind: str, name: str, spec: Spec) -> GraphValue:
        self.claim(name)
        table[name] = GraphValue(spec, kind, name)
        return table[name]

    def claim(self, name: str) -> None:
        """Reserve a name. Names of ops and variables are unique in a graph."""
        if name in self._names:
            raise errors.repeated_name(self.name, name)
        self._names.add(name)

    def rename(self, node: Node, name: str) -> None:
        """Change the name of a node and of its outputs."""
        self.claim(name)
        self._names.discard(node.name)
        node.name = name
        for i, (v, o) in enumerate(zip(node.outputs, node.op.outputs)):
            v.name = name if i == 0 else f"{name}.{o}"

    def fresh_name(self, prefix: str) -> str:
        while True:
            n = self._counts[prefix] = self._counts.get(prefix, -1) + 1
            if f"{prefix}_{n}" not in self._names:
                return f"{prefix}_{n}"

    def append(self, op: Op, inputs: Sequence[GraphValue], attrs: tuple,
               reseed: bool = True) -> tuple[GraphValue, ...]:
        """Infer the output Specs and append a node. reseed: change the seed of a random op."""
        for i, x in enumerate(inputs):
            if not isinstance(x, GraphValue):
                raise errors.not_a_value(op.name, i, x)
        if reseed and op.random and op.cpu is not None:
            attrs = self._change_seed(op, attrs)
        name = self.fresh_name(op.name)
        self._names.add(name)
        call = op, tuple([x.spec for x in inputs]), attrs
        outs = self._inferred.get(call)
        if outs is None:
            outs = op.infer(*call[1:])
            op.need_kernel(call[1], outs, attrs)
            self._inferred[call] = outs                  # models contain many equal calls
        node = Node(op, inputs, attrs, outs, name, user_line(), self.placement)
        self.nodes.append(node)
        return node.outputs

    def _change_seed(self, op: Op, attrs: tuple) -> tuple:
        """Make the seed of the n-th random op depend on n, but not on passes and placement."""
        self._draws += 1
        i = op.attr_index["seed"]
        return (*attrs[:i], (attrs[i] + 7919 * self._draws) & 0x7FFFFFFFFFFFFFFF, *attrs[i + 1:])

    def building(self) -> interpreter:
        """Return a context manager. Op calls inside `with graph.building():` append nodes."""
        return interpreter(Building(self))

    # ---- queries
    def consumers(self) -> dict[GraphValue, list[Node]]:
        """Return {value: nodes that read it}."""
        table: dict[GraphValue, list[Node]] = {}
        for node in self.nodes:
            for x in node.inputs:
                table.setdefault(x, []).append(node)
        return table


class Building:
    """Lazy interpreter, which turns op calls into nodes of `graph`, a Graph or a Tracer."""

    def __init__(self, graph: Any):
        self.graph = graph

    def run(self, op: Op, inputs: tuple, attrs: tuple) -> GraphValue | tuple[GraphValue, ...]:
        outputs = self.graph.append(op, inputs, attrs)
        return outputs[0] if len(outputs) == 1 else outputs
