"""flow.save(graph, path) and flow.load_graph(path), which need no code of the model to load a graph.

    path/model.mlir        the forward graph as text: one op per line, in MLIR syntax, attributes as JSON
    path/<variable>/       meta and out, as in every checkpoint

Two regular expressions parse the text; ops are looked up in the registry. Nothing in it is executed.
"""
from __future__ import annotations

import json
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

from flowedu.core.graph.ir import Graph, GraphValue
from flowedu.core.graph.program import Program
from flowedu.core.ops.define import REGISTRY
from flowedu.core.trace import io
from flowedu.core.trace.graph import TracedGraph
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError, CheckpointError, DeviceError, GraphError, UnsupportedError
from flowedu.saving.state import register_saver
from flowedu.tensor import Tensor
from flowedu.tensor.devices.device import device_of, place_of
from flowedu.tensor.inplace.packed_weights import Kept, find_kept

TEXT = "model.mlir"
SHORT = {dt.float32: "f32", dt.float64: "f64", dt.float16: "f16", dt.int8: "si8", dt.uint8: "ui8",
         dt.int16: "si16", dt.int32: "si32", dt.int64: "si64", dt.bool_: "i1", dt.bfloat16: "bf16"}
LONG = {v: k for k, v in SHORT.items()}
NAMED = {d.name: d for d in SHORT}
LINE = re.compile(r'^\s*(?:(?P<results>%[\w, %]+) = )?"flowedu\.(?P<op>\w+)"\((?P<inputs>[%\w, ]*)\) '
                  r"(?P<attrs>\{.*\}) : \(.*\) -> (?P<types>.+)$")
HEAD = re.compile(r'^\s*flowedu\.job @(?P<name>\w+) attributes (?P<attrs>\{.*\}) \{$')


class ProxyState(OrderedDict):
    """Result of state_dict() of a proxy, which represents a module inside an nn.Graph.

    flow.save rejects it, because a graph has more state than its modules.
    """


def refuse_proxy_state(state, path) -> None:
    """Raise an error for flow.save(graph.model.state_dict(), path).

    The state of the modules is only a part of the state of a graph.
    """
    raise CheckError("flow.save: this state_dict is that of a module inside an nn.Graph (a proxy), not the "
                     "graph's",
                     expected="the graph's own state", got="graph.<module>.state_dict()", fix="flow.save("
                     "graph.state_dict(), path), which keeps the optimizers' states too; or save the "
                     "module's own")


# ---- to text
def forward_part(compiled) -> tuple[list, list[GraphValue]]:
    """Return the operators that compute the outputs of a compiled nn.Graph, and the variables they read.

    The operators are those of the trace, before graph optimizations.
    """
    if compiled.owner.config.accumulation > 1:
        raise UnsupportedError(f"nn.Graph {compiled.owner.name}: a graph with gradient accumulation cannot "
                               f"be saved or exported",
                               expected="a graph that computes its outputs in one go", got="micro-batches",
                               fix="make a graph over the same modules that only predicts")
    if compiled.spread is not None:
        raise UnsupportedError(f"nn.Graph {compiled.owner.name}: a graph of global tensors cannot be saved "
                               f"or exported",
                               expected="a graph on one device", got="parameters or inputs on a placement",
                               fix="load the state into local modules, and make a graph over those")
    forward = [o for o in compiled.operators[:compiled.graph.forward] if not o.node.mutates]
    needed = _find_needed(forward, compiled.fetched)
    forward = [o for o in forward if o.node in needed]
    read = dict.fromkeys(x for o in forward for x in o.inputs if x.kind == "variable")
    read.update(dict.fromkeys(v for v in compiled.fetched if v.kind == "variable"))
    return forward, list(read)


def to_text(compiled) -> tuple[str, list[str]]:
    """Return the forward graph of a compiled nn.Graph as text, and the names of its variables."""
    graph, owner = compiled.graph, compiled.owner
    forward, read = forward_part(compiled)
    names: dict[GraphValue, str] = {}
    lines = []

    def emit(op, inputs, attrs, outputs):
        for y in outputs:
            names[y] = f"%{len(names)}"
        left = ", ".join(names[y] for y in outputs)
        types = ", ".join(_type(x.spec) for x in inputs)
        results = ", ".join(_type(y.spec) for y in outputs)
        text = json.dumps(attrs, default=_plain)
        lines.append(f'    {left} = "flowedu.{op}"({", ".join(names[x] for x in inputs)}) {text} : ({types}) '
                     f'-> {results}')

    for value in graph.inputs.values():
        emit("input", (), {"op_name": value.name}, (value,))
    for value in read:
        emit("variable", (), {"op_name": value.name}, (value,))
    for o in forward:
        attrs = dict(zip(o.node.op.attrs, o.node.attrs))
        emit(o.node.op.name, o.inputs, {"op_name": o.node.name, **attrs}, o.node.outputs)
    result = ", ".join(names[v] for v in compiled.fetched)
    header = {"inputs": [n for n, s in compiled.specs if s is not None],
              "outputs": _tree(compiled.tree[0] if compiled.single else compiled.tree)}
    return "\n".join(["module {", f"  flowedu.job @{owner.name} attributes {json.dumps(header)} {{", *lines,
                      f"    flowedu.return {result}", "  }", "}", ""]), [v.name for v in read]


def _find_needed(operators, outputs) -> set:
    needed, nodes = set(outputs), set()
    for o in reversed(operators):
        if any(y in needed for y in o.node.outputs):
            nodes.add(o.node)
            needed.update(o.inputs)
    return nodes


def _type(spec: Spec) -> str:
    return f"tensor<{'x'.join([*map(str, spec.shape), SHORT[spec.dtype]])}>"


def _plain(x):
    if isinstance(x, dt.dtype):
        return {"dtype": x.name}
    raise TypeError(f"an attribute of type {type(x).__name__} cannot be written as text")


def _tree(tree):
    """Return the containers of the outputs; an int is the index of a result."""
    if isinstance(tree, dict):
        return {"dict": [[k, _tree(v)] for k, v in tree.items()]}
    if isinstance(tree, (list, tuple)):
        return {"tuple" if isinstance(tree, tuple) else "list": [_tree(v) for v in tree]}
    return tree


def save_graph(graph, path) -> None:
    """Write the forward part of an nn.Graph, and the variables that it reads, for deployment.

    Args:
        graph: nn.Graph that was called at least once.
        path: folder to write; an existing checkpoint is replaced.

    Raises:
        GraphError: the graph was not compiled yet.
    """
    from flowedu.saving.folder import write
    if graph._compiled is None:
        raise GraphError("flow.save: graph must be compiled first", expected="a graph that was called once",
                         got="a new graph", fix="call it on a batch, or on zeros of the batch's shape, then "
                         "save it")
    graph._compiled.sync()
    (text, names), tensors = to_text(graph._compiled), graph._compiled.tracer.variables
    write(path, {n: tensors[n] for n in names}, texts={TEXT: text}, replace=True)


# ---- from text
class LoadedGraph:
    """A saved graph that is called like the original nn.Graph.

    Args:
        path: the directory that flow.save(graph, path) wrote.
        device: the device of the variables; None is the CPU.

    Attributes:
        name: the name of the graph.
        inputs: {name: Spec}.
        outputs: the Specs of the outputs.
        variables: {name: tensor}. The tensors may be modified between calls.
    """

    def __init__(self, path, device=None):
        from flowedu.saving.folder import opened
        self.place = place_of(device)
        if not Path(path).is_dir():
            raise _no_graph(path, "nothing there")
        self.graph, self._tree, self.name, file = opened(path, lambda folder: self._read(path, folder))
        self.inputs = {n: v.spec for n, v in self.graph.inputs.items()}
        self.outputs = [v.spec for v in self.graph.outputs]
        try:
            self.graph.keeps = True
            self.program = Program(self.graph, place=self.place)
            weights = find_kept(self.program)
            self.program.link({v: self.variables[n] for n, v in self.graph.variables.items()})
            self.program.before += (Kept(self.program, weights).look,) if weights else ()
        except Exception as e:
            raise CheckpointError(f"flow.load_graph: {file} describes a graph that cannot run",
                                  expected="what flow.save wrote", got=f"{type(e).__name__}: {e}"[:200],
                                  fix="save the graph again") from e

    def _read(self, path, folder):
        from flowedu.saving.folder import read_opened
        if not folder.is_file(TEXT):
            raise _no_graph(path, "other files")
        self.variables: dict[str, Tensor] = {}
        stored, file = read_opened(path, folder), str(Path(path) / TEXT)
        with folder.open(TEXT) as f:
            return *self._parse(f.read().decode("utf-8", "replace"), stored, file), file

    def _parse(self, text: str, stored: dict, where: str):
        graph: Any = None
        values: dict[str, GraphValue] = {}
        tree, name = None, ""
        for number, line in enumerate(text.splitlines(), 1):
            try:
                if match := HEAD.match(line):
                    name, tree = match["name"], json.loads(match["attrs"])["outputs"]
                    graph = Graph(name)
                elif match := LINE.match(line):
                    self._line(graph, values, match, stored)
                elif line.strip().startswith("flowedu.return"):
                    graph.outputs = [values[v.strip()] for v in line.split("flowedu.return", 1)[1].split(",")
                                     if v.strip()]
                elif line.strip() not in ("module {", "}", ""):
                    raise ValueError("not a line of a graph")
            except Exception as e:
                raise CheckpointError(f"flow.load_graph: {where}, line {number} cannot be read",
                                      expected='%2 = "flowedu.op"(%0, %1) {attributes} : (types) -> type',
                                      got=f"{line.strip()[:100]} ({e})",
                                      fix="the file is damaged, or from another version; save the graph again"
                                      ) from e
        if graph is None or not graph.outputs:
            raise CheckpointError(f"flow.load_graph: {where} is cut off",
                                  expected='a job that ends in "flowedu.return"',
                                  got=f"{len(text)} characters", fix="save the graph again")
        if not _fits(tree, len(graph.outputs)):
            raise CheckpointError(f"flow.load_graph: {where} does not say what the graph returns",
                                  got=f"{tree!r}"[:100],
                                  expected=f'"outputs": containers of numbers from 0 to '
                                  f'{len(graph.outputs) - 1}', fix="save the graph again")
        return graph, tree, name

    def _line(self, graph: Graph, values: dict, match, stored: dict) -> None:
        attrs = json.loads(match["attrs"], object_hook=_special)
        label = attrs.pop("op_name")
        if not isinstance(label, str):
            raise ValueError(f"{label!r} is no name")
        inputs = [values[v.strip()] for v in match["inputs"].split(",") if v.strip()]
        names = [v.strip() for v in match["results"].split(",")]
        if match["op"] in ("input", "variable"):
            *shape, short = match["types"].strip()[7:-1].split("x")
            spec = Spec(tuple(map(int, shape)), LONG[short])
            if match["op"] == "variable":
                tensor = self.variables[label] = stored[label].tensor().to(device_of(self.place))
                if tensor.spec != spec:
                    raise ValueError(f"variable {label} is {tensor.spec} on disk, {spec} in the text")
            values[names[0]] = getattr(graph, match["op"])(label, spec)
            return
        op = REGISTRY[match["op"]]
        if op.mutates:
            raise ValueError(f"{op.name} would write its inputs")
        outputs = graph.append(op, inputs, op.complete({k: _tuples(v) for k, v in attrs.items()}),
                               reseed=False)
        if (types := ", ".join(_type(y.spec) for y in outputs)) != match["types"].strip():
            raise ValueError(f"the result is {types}")
        if len(names) != len(outputs):
            raise ValueError(f"there are {len(outputs)} results")
        graph.rename(graph.nodes[-1], label)
        values.update(zip(names, outputs))

    def __call__(self, *args: Tensor):
        """Run the graph and return the result of build.

        Args:
            *args: tensors in the order of `inputs`; containers are flattened.
        """
        tensors: list[Any] = [x for _, x in io.leaves("", args, {}) if x is not None]
        specs = list(self.inputs.items())
        if len(tensors) != len(specs):
            raise GraphError(f"{self.name}: wrong number of inputs",
                             expected=", ".join(f"{n} {s}" for n, s in specs), got=f"{len(tensors)} inputs")
        for x, (name, spec) in zip(tensors, specs):
            if not isinstance(x, Tensor) or x.spec != spec:
                raise GraphError(f"{self.name}: input {name} does not fit", expected=str(spec),
                                 fix="the graph was saved for one batch size",
                                 got=str(getattr(x, "spec", type(x).__name__)))
            if x._device != self.place:
                raise DeviceError(f"{self.name}: input {name} is on another device than the graph",
                                  got=str(x.device),
                                  expected=str(device_of(self.place)),
                                  fix=f'x.to("{device_of(self.place)}"), or flow.load_graph(path, '
                                  f'"{x.device}")')
        inputs = tuple(x if x.is_contiguous() else x.contiguous() for x in tensors)
        return _fill(self._tree, self.program.run(inputs))

    def check(self) -> None:
        """Check the graph and its plan, as `nn.Graph.check` does.

        Raises:
            GraphError: a check failed.
        """
        from flowedu.diagnostics.verify import check_program
        check_program(self.program)

    def __repr__(self) -> str:
        return f"<graph {self.name}: {', '.join(f'{n} {s}' for n, s in self.inputs.items())} -> " \
               f"{', '.join(map(str, self.outputs))}>"


def _no_graph(path, got: str) -> CheckpointError:
    return CheckpointError(f"flow.load_graph: {path} holds no graph",
                           expected=f"a directory with {TEXT}, written by flow.save(graph, path)", got=got,
                           fix="flow.load reads states; save the graph itself to load it without its code")


def _special(d: dict):
    return NAMED[d["dtype"]] if list(d) == ["dtype"] else d


def _tuples(x):
    return tuple(map(_tuples, x)) if isinstance(x, list) else x


def _fits(tree, count: int) -> bool:
    """Return True if `_fill` can create the tree from `count` results."""
    if isinstance(tree, dict) and len(tree) == 1:
        (kind, items), = tree.items()
        if kind == "dict":
            return isinstance(items, list) and all(
                isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], (str, int, float))
                and _fits(pair[1], count) for pair in items)
        return kind in ("tuple", "list") and isinstance(items, list) and all(_fits(v, count) for v in items)
    return tree is None or type(tree) is int and 0 <= tree < count


def _fill(tree, results: list):
    if isinstance(tree, dict):
        (kind, items), = tree.items()
        if kind == "dict":
            return {k: _fill(v, results) for k, v in items}
        return (tuple if kind == "tuple" else list)(_fill(v, results) for v in items)
    return None if tree is None else results[tree]


def load_graph(path, device=None) -> LoadedGraph:
    """Load a graph that flow.save(graph, path) wrote. The code of the model is not needed.

    Args:
        path: the directory that flow.save wrote.
        device: the device of the variables; None is the CPU.

    Returns: a LoadedGraph, which can be called.
    """
    return LoadedGraph(path, device)


register_saver(TracedGraph, save_graph)
register_saver(ProxyState, refuse_proxy_state)
