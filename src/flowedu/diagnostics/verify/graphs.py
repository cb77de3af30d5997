"""Checks of a graph after each pass, by comparison with the graph before the pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from weakref import WeakKeyDictionary

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.values.spec import Spec
from flowedu.errors import FlowError, GraphError

CORRECT = ("correct the pass, or leave it out: config.disable_pass(name) of a graph, "
           "config.without_passes(name) of a job")

# {graph: {node: (op, inputs, attrs, input Specs, output Specs) of its last inference}}
_inferred: WeakKeyDictionary[Graph, dict[Node, tuple]] = WeakKeyDictionary()


class Interface:
    """The properties of a graph that a pass must preserve.

    Attributes:
        sources: the inputs, variables, and host values.
        outputs: the Specs of the outputs.
        results: {node: the Specs of its results}.
        writes: {variable: number of nodes that write it}.
        effects: the nodes that write variables or have other effects, in order.
        open: values that nodes read but do not compute. A job computes them before its plan runs.
    """

    def __init__(self, graph: Graph):
        self.sources = _sources(graph)
        self.specs = {value: value.spec for value in self.sources.values()}
        self.outputs = [value.spec for value in graph.outputs]
        self.results = {node: [y.spec for y in node.outputs] for node in graph.nodes}
        self.effects = [node for node in graph.nodes if node.op.effect or node.op.mutates is not None]
        self.writes = Counter(name for node in self.effects for name in _find_written_names(node))
        self.messages = Counter(node.op.name for node in self.effects if node.op.effect)
        self.lines = {name: node.line for node in self.effects for name in _find_written_names(node)}
        self.open = {x for node in graph.nodes for x in node.inputs}.difference(
            self.sources.values(), *[node.outputs for node in graph.nodes]
        )


def _sources(graph: Graph) -> dict[tuple[str, str], GraphValue]:
    tables = ("inputs", "variables", "hosts")
    return {(table, name): value for table in tables for name, value in getattr(graph, table).items()}


def _find_written_names(node: Node) -> list[str]:
    return [node.inputs[k].name for k in node.mutates if k < len(node.inputs)]


def fault(
    who: str, problem: str, *, expected: str, got: str, line: str = "", fix: str = CORRECT
) -> GraphError:
    """Return the error for a graph or plan that breaks a rule.

    `who` is the pass or planner that created it.
    """
    return GraphError(f"{who}: {problem}", expected=expected, got=got, fix=fix, at=line)


def check_graph(graph: Graph, who: str, before: Interface | None = None) -> None:
    """Check the rules for all graphs and, if `before` is given, that a pass preserved the interface.

    Args:
        graph: the graph after the pass.
        who: the pass, for messages, such as `pass "fuse"`.
        before: the graph's interface before the pass.

    Raises:
        GraphError: a rule is broken. The message contains the pass, the node, and the line that created it.
    """
    names = _check_order(graph, who, before.open if before is not None else set())
    known = _inferred.setdefault(graph, {})
    for node in graph.nodes:
        _check_call(node, who, known, before)
        if names[node.name] > 1:
            raise fault(
                who,
                f"two nodes have the name {node.name!r}",
                expected="unique names",
                got=f"{names[node.name]} nodes named {node.name!r}",
                line=node.line,
            )
    if before is not None:
        _check_interface(graph, who, before)


def _check_order(graph: Graph, who: str, known: Collection[GraphValue]) -> Counter[str]:
    """Check that values are defined before they are read, and that no node is listed twice.

    Returns: the number of occurrences of each name.
    """
    listed, known = set(graph.nodes), {*known, *_sources(graph).values()}
    seen: set[Node] = set()
    for node in graph.nodes:
        if node in seen:
            raise fault(
                who,
                f"node {node.name} is in the graph twice",
                expected="each node once",
                got=f"{node!r} twice",
                line=node.line,
            )
        seen.add(node)
        if not known.issuperset(node.inputs):
            value = next(x for x in node.inputs if x not in known)
            raise _unknown(who, f"{node.name} reads", value, listed, node.line)
        for i, y in enumerate(node.outputs):
            if y.node is not node or y.index != i:
                raise fault(
                    who,
                    f"output {i} of {node.name} belongs to another node",
                    line=node.line,
                    expected=f"a value made by {node.name}",
                    got=f"{y!r} of {y.node!r}",
                )
        known.update(node.outputs)
    for i, value in enumerate(graph.outputs):
        if value not in known:
            raise _unknown(
                who, f"output {i} of the graph is", value, listed, value.node.line if value.node else ""
            )
    # Kernels of `fuse` have the names of their ops, so several may have the same name.
    return Counter([node.name for node in graph.nodes if "formula" not in node.op.attr_index])


def _unknown(who: str, subject: str, value: GraphValue, listed: set[Node], line: str) -> GraphError:
    if value.node in listed:
        return fault(
            who,
            f"{subject} {value.name} before it is computed",
            expected=f"{value.node!r} earlier in the list",
            got="a later position",
            line=line,
        )
    source = (
        f"{value.node!r}, which is not in the graph"
        if value.node is not None
        else f"{value!r} of another graph"
    )
    return fault(
        who,
        f"{subject} {value.name}, which no node computes",
        expected="a value of this graph",
        got=source,
        line=line,
    )


def _check_call(node: Node, who: str, known: dict[Node, tuple], before: Interface | None) -> None:
    """Check that the output Specs of a node equal the Specs that its op infers from the inputs.

    Each call is inferred once.
    """
    last, outputs = known.get(node, ()), [y.spec for y in node.outputs]
    same = bool(last) and last[0] is node.op and last[2] is node.attrs and last[4] == outputs
    if same and last[1] is node.inputs:
        return
    inputs = [x.spec for x in node.inputs]
    if not same or last[3] != inputs:
        unchanged = before is not None and before.results.get(node) == outputs
        _infer(node, who, inputs, outputs, unchanged)
    known[node] = node.op, node.inputs, node.attrs, inputs, outputs


def _infer(node: Node, who: str, inputs: Sequence[Spec], outputs: Sequence[Spec], unchanged: bool) -> None:
    """Raise an error if the op infers other Specs than `outputs`.

    If the node had these Specs before the pass, they are right, and its op or inputs have become wrong.
    """
    try:
        want = node.op.infer(inputs, node.attrs)
    except FlowError as e:
        raise fault(
            who,
            f"the inputs of {node.name} do not fit: {e.problem}",
            expected=e.expected,
            got=e.got,
            line=node.line,
        ) from e
    if tuple(want) != tuple(outputs):
        reference = "before the pass" if unchanged else "its op infers"
        expected, got = (outputs, want) if unchanged else (want, outputs)
        raise fault(
            who,
            f"the result of {node.name} has another shape or dtype than {reference}",
            line=node.line,
            expected=_text(expected),
            got=_text(got),
        )


def _check_interface(graph: Graph, who: str, before: Interface) -> None:
    """Check that the pass preserved inputs, variables, outputs, updates, and other effects."""
    now = Interface(graph)
    if now.sources != before.sources or now.specs != before.specs:
        changed = {
            key
            for key in now.sources.keys() | before.sources.keys()
            if now.sources.get(key) is not before.sources.get(key)
        } or {key for key, value in now.sources.items() if value.spec != before.specs[value]}
        raise fault(
            who,
            f"the graph's {' and '.join(sorted({table for table, _ in changed}))} changed",
            expected="those of the graph before the pass",
            got=f"changes of {', '.join(sorted(n for _, n in changed))}",
        )
    if len(now.outputs) != len(before.outputs):
        raise fault(
            who,
            "the number of outputs changed",
            expected=f"{len(before.outputs)} outputs",
            got=f"{len(now.outputs)}: {_text(now.outputs)}",
        )
    for i, (value, spec) in enumerate(zip(graph.outputs, before.outputs)):
        if value.spec != spec:
            raise fault(
                who,
                f"output {i} has another shape or dtype than traced",
                expected=str(spec),
                got=f"{value.spec}, the value {value.name}",
                line=value.node.line if value.node else "",
            )
    _check_effects(who, before, now)


def _check_effects(who: str, before: Interface, now: Interface) -> None:
    """Check that no update or other effect is lost, duplicated, or moved across another effect."""
    for name in before.writes.keys() | now.writes.keys():
        if before.writes[name] != now.writes[name]:
            raise fault(
                who,
                f"the updates of {name} changed",
                expected=f"{before.writes[name]} nodes that write {name}",
                got=str(now.writes[name]),
                line=before.lines.get(name, now.lines.get(name, "")),
            )
    for name in before.messages.keys() | now.messages.keys():
        if before.messages[name] != now.messages[name]:
            raise fault(
                who,
                f"calls of {name}, an op with effects, were added or lost",
                got=str(now.messages[name]),
                expected=f"{before.messages[name]} calls",
                line="",
            )
    survivors = set(before.effects).intersection(now.effects)
    pairs = zip((n for n in before.effects if n in survivors), (n for n in now.effects if n in survivors))
    for first, other in pairs:
        if first is not other:
            raise fault(
                who,
                f"{other.name} was moved before {first.name}",
                expected="nodes with effects in the order traced",
                got=f"{other!r} first",
                line=other.line,
            )


def _text(specs: Iterable[Spec]) -> str:
    return ", ".join(map(str, specs)) or "none"
