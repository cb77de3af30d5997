"""`flow.onnx.export`, which writes a module or the forward part of a called nn.Graph as an ONNX model.

The export needs the package onnx. module.py and graph.py make the model.
"""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import IO, Any

from flowedu.core.layers.module import Module
from flowedu.core.trace.graph import TracedGraph
from flowedu.errors import CallError, UnsupportedError
from flowedu.errors.files import replacing
from flowedu.onnx import graph, module
from flowedu.onnx.graph import import_onnx
from flowedu.onnx.ops import OPSET
from flowedu.tensor import Tensor


def export(model: TracedGraph | Module, path: str | os.PathLike | IO[bytes], *, args: Tensor | Sequence = (),
           kwargs: Mapping[str, Any] | None = None, input_names: Sequence[str] | None = None,
           output_names: Sequence[str] | None = None, dynamic_axes: Mapping[str, Any] | None = None,
           opset: int | None = None) -> None:
    """Write a module, in eval() mode, or a called nn.Graph as an ONNX model. onnx checks the model first.

    Only the forward part of a training graph is written, in the mode in which it was traced. Call eval() on
    its modules before its first call. Random ops draw new numbers in each run, from the generator of the
    runtime.

    Args:
        path: path of the file, or a file opened for writing bytes.
        args, kwargs: arguments of one call of a module: a tensor or a sequence of arguments. The file has the
            sizes of these tensors. Not allowed for graphs.
        input_names, output_names: names of inputs and outputs in the model, in order. Default: INPUT_0,
            INPUT_1, ... and OUTPUT_0, ...
        dynamic_axes: axes of a module's inputs and outputs that may have any size when the file is used, as
            {name: {axis: its name}} or {name: [axis]}. The model is traced at four sizes or more, including 1
            if it accepts size 1. Ops that cannot follow the size are rejected (axes.py).
        opset: version of ONNX's ops, 18 by default. The converter of onnx writes other versions, if it can.

    Raises:
        UnsupportedError: ops without a rule in onnx/ops.py (all are listed), axes that cannot be dynamic, or
            an opset that onnx cannot write.
        CallError, ArgumentError: the arguments are invalid.
        GraphError: the graph was not called yet.
    """
    onnx = import_onnx()
    names = input_names, output_names
    if isinstance(model, Module):
        proto = module.model_of(model, args, kwargs, names, dynamic_axes)
    elif not isinstance(model, TracedGraph):
        raise CallError("onnx.export: not an nn.Graph and no module",
                        expected="an nn.Module, or an nn.Graph that was called once",
                        got=type(model).__name__, fix='export(model, "model.onnx", args=batch)')
    elif dynamic_axes or kwargs or isinstance(args, Tensor) or len(args):
        raise CallError("onnx.export: a graph is of one size, that of its first call",
                        expected="a graph alone",
                        got="dynamic_axes" if dynamic_axes else "args", fix="give the module, with args=")
    else:
        proto = graph.model_of(model, names)
    _write(path, (proto if opset in (None, OPSET) else _convert(onnx, proto, opset)).SerializeToString())


def _convert(onnx, model, opset: int):
    """Return the model in another opset."""
    try:
        converted = onnx.version_converter.convert_version(model, opset)
        onnx.checker.check_model(converted, full_check=True)
        return converted
    except Exception as e:                         # onnx's C++ converter raises various types
        raise UnsupportedError(f"onnx.export: the model cannot be written in opset {opset}",
                               expected=f"{OPSET}, or one that onnx's converter reaches",
                               got=" ".join(str(e).split())[:200],
                               fix=f"leave opset out: the file has opset {OPSET}") from None


def _write(path: Any, data: bytes) -> None:
    """Write `data` to an open file, or atomically to a path."""
    if callable(getattr(path, "write", None)):
        path.write(data)
        return
    with replacing(path) as f:
        f.write(data)
