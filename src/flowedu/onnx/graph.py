"""The forward part of a called nn.Graph as an ONNX model.

ops.py has the translation rule of each op.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowedu.core.graph.ir import GraphValue
from flowedu.core.ops.define import REGISTRY
from flowedu.core.trace.graph import TracedGraph
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, GraphError, UnsupportedError
from flowedu.errors.extras import install
from flowedu.onnx import attention, recurrent  # noqa: F401  (rules)
from flowedu.onnx.ops import OPSET, RULES, elementwise
from flowedu.saving.graph import forward_part
from flowedu.tensor import Tensor, from_numpy
from flowedu.tensor.dtypes.bfloat16 import bits_of

TYPES = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "FLOAT16", "bfloat16": "BFLOAT16",
         "int8": "INT8",
         "uint8": "UINT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "bool": "BOOL",
         "char": "INT8"}


def _numbers(x: Tensor) -> np.ndarray:
    return bits_of(x) if x.dtype is dt.bfloat16 else np.array(x.numpy())


def import_onnx():
    """Return the package onnx. Raise UnsupportedError if it is not installed."""
    try:
        import onnx
    except ImportError:
        raise UnsupportedError("onnx.export needs the package onnx", expected="onnx", got="not installed",
                               fix=install("onnx")) from None
    return onnx


class Builder:
    """ONNX graph under construction: its nodes and constants.

    Attributes: names, {value: its ONNX name}; op, out, line: record name, Spec of the first output, and line
    of user code of the current node; lines, {name of an ONNX node: line of user code}.
    """

    dtypes = {d.name: d for d in dt.dtypes()}

    def __init__(self, onnx):
        self.onnx, self.nodes, self.numbers = onnx, [], []
        self.names: dict[GraphValue, str | None] = {}
        self.known: dict[tuple, str] = {}
        self.booleans: set[str] = set()
        self.op, self.out, self.line = "", None, ""
        self.lines: dict[str, str] = {}

    def type(self, name: str) -> int:
        return getattr(self.onnx.TensorProto, TYPES[name])

    def add(self, kind: str, inputs: Sequence[str], results: int = 1, boolean: bool = False, **attrs):
        """Append a node, and return the name of its result, or a list of names for several results."""
        names = [f"{self.op}_{kind.lower()}_{len(self.nodes)}" + (f"_{i}" if i else "")
                 for i in range(results)]
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), names, name=names[0], **attrs))
        self.lines[names[0]] = self.line
        if boolean:
            self.booleans.update(names)
        return names if results > 1 else names[0]

    def array(self, a: np.ndarray, name: str = "") -> str:
        """Return the name of a constant. Equal constants are stored once.

        uint16 arrays contain the bits of bfloat16 values.
        """
        key = (a.dtype.name, a.shape, a.tobytes())
        if name or key not in self.known:
            name = name or f"constant_{len(self.known)}"
            self.known.setdefault(key, name)
            self.numbers.append(self.onnx.helper.make_tensor(name, self.type("bfloat16"), a.shape,
                                                             a.tobytes(), raw=True)
                                if a.dtype == np.uint16 else
                                self.onnx.numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape),
                                                                  name))
            return name
        return self.known[key]

    def ints(self, values) -> str:
        return self.array(np.array(list(values), np.int64))

    def number(self, value, dtype: dt.dtype) -> str:
        return self.array(_numbers(from_numpy(np.array(value, np.float64)).to(dtype)) if dtype is dt.bfloat16
                          else np.array(value, dtype.numpy))

    def reshaped(self, x: str, shape) -> str:
        return self.add("Reshape", [x, self.ints(shape)], allowzero=1 if 0 in tuple(shape) else 0)

    def cast(self, x: str, dtype: dt.dtype) -> str:
        return self.add("Cast", [x], boolean=dtype.name == "bool", to=self.type(dtype.name))

    def as_bool(self, x: str) -> str:
        return x if x in self.booleans else self.add("Cast", [x], boolean=True, to=self.type("bool"))

    def as_number(self, x: str, dtype: dt.dtype) -> str:
        return self.cast(x, dtype) if x in self.booleans and dtype.name != "bool" else x

    def node(self, operator) -> None:
        """Translate a node of the graph by the rule of its op."""
        node = operator.node
        op, self.op = node.op, node.op.name
        self.out, self.line = node.outputs[0].spec, node.line
        names: list[Any] = [self.names[x] for x in operator.inputs]
        if None in names:
            raise UnsupportedError(f"onnx.export: {op.name} reads a result that is not written yet", at="")
        specs = [x.spec for x in operator.inputs]
        if op.program is not None and op not in RULES:
            results: Any = elementwise(self, op, specs, names)
        elif op in RULES:
            results = RULES[op](self, dict(zip(op.attrs, node.attrs)), specs, names)
        else:
            raise UnsupportedError(f"onnx.export: {op.name} has no rule", at="")
        results = results if isinstance(results, list) else [results]
        if results[0] in self.booleans and self.out.dtype.name != "bool":
            results[0] = self.cast(results[0], self.out.dtype)
        self.names.update(zip(node.outputs, results))


def model_of(graph: TracedGraph, names: tuple[Sequence[str] | None, Sequence[str] | None],
             lines: dict[str, str] | None = None):
    """Return a called graph as a checked onnx.ModelProto. It raises the errors of `export`.

    Args:
        names: names of the inputs, names of the outputs.
        lines: filled with {name of an ONNX node: line of user code}.
    """
    onnx = import_onnx()
    if graph._compiled is None:
        raise GraphError("onnx.export: the graph is not compiled", expected="a graph that was called once",
                         got="a new graph", fix="call it on a batch, then export it")
    compiled = graph._compiled
    operators, variables = forward_part(compiled)
    b, helper = Builder(onnx), onnx.helper
    fed = list(compiled.graph.inputs.values())
    ins = _names("input_names", names[0], "INPUT", len(fed))
    outs = _names("output_names", names[1], "OUTPUT", len(compiled.fetched))
    b.names.update(zip(fed, ins))
    b.booleans.update(n for n, v in zip(ins, fed) if v.dtype.name == "bool")
    for value in variables:
        b.names[value] = b.array(_numbers(compiled.tracer.variables[value.name]), value.name)
        if value.dtype.name == "bool":
            b.booleans.add(value.name)
    refused: dict[str, str] = {}
    kept, consumers = {o.node for o in operators}, compiled.graph.consumers()
    for o in operators:
        try:
            if o.node.op is REGISTRY["batch_norm"] and any(      # it updates running statistics
                    n not in kept for y in o.node.outputs for n in consumers.get(y, ())):
                raise UnsupportedError("onnx.export: batch_norm in training", at="")
            b.node(o)
        except UnsupportedError as e:
            reason = f"{e.problem.removeprefix('onnx.export: ')} ({o.node.name}, {o.node.line})"
            refused.setdefault(o.node.op.name, reason)
            b.names.update(dict.fromkeys(o.node.outputs, "?"))
    if refused:
        raise UnsupportedError("onnx.export does not write yet: " + ", ".join(sorted(refused)),
                               expected="ops that have a rule: flowedu.onnx.ops.RULES",
                               got="; ".join(refused.values()), fix=_suggest_fix(set(refused)))
    b.op = "output"
    for name, value in zip(outs, compiled.fetched):
        b.nodes.append(helper.make_node("Identity", [b.names[value]], [name], name=name))

    def declare(names, values):
        return [helper.make_tensor_value_info(n, b.type(v.dtype.name), list(v.shape))
                for n, v in zip(names, values)]

    model = helper.make_model(
        helper.make_graph(b.nodes, graph.name, declare(ins, fed), declare(outs, compiled.fetched), b.numbers),
        opset_imports=[helper.make_opsetid("", OPSET)], producer_name="flowedu", ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    if lines is not None:
        lines.update(b.lines)
    return model


def _suggest_fix(refused: set[str]) -> str:
    """Return the fix of the error. eval() only omits ops that training needs."""
    training = refused & {"random_mask_like", "batch_norm", "batch_norm_clip"}
    rest = sorted(refused - training)
    return "; ".join(filter(None, (
        "model.eval() before the first call leaves out dropout and batch norm's statistics" if training
        else "", f"compute {', '.join(rest)} outside the graph, before or after the model" if rest else "")))


def _names(argument: str, names: Sequence[str] | None, kind: str, n: int) -> list[str]:
    names = [f"{kind}_{i}" for i in range(n)] if names is None else list(names)
    if len(names) != n or len(set(names)) != n:
        raise ArgumentError(f"onnx.export: {argument}", expected=f"{n} different names", got=repr(names))
    return names
