"""Export of a module as an ONNX model: traced at the sizes of one call, or at several for dynamic axes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowedu.core.layers.module import Module
from flowedu.core.trace import io
from flowedu.errors import CallError, UnsupportedError
from flowedu.nn.graph.graph import Graph
from flowedu.onnx import axes as free
from flowedu.onnx.graph import model_of as of_graph
from flowedu.tensor import Tensor, no_grad
from flowedu.tensor.construction.generator import fork_rng

Names = tuple[Sequence[str] | None, Sequence[str] | None]


class _Exported(Graph):
    def __init__(self, model: Module):
        super().__init__()
        self.model = model

    def build(self, *args, **kwargs):
        return self.model(*args, **kwargs)


def model_of(module: Module, args: Tensor | Sequence, kwargs: Mapping[str, Any] | None, names: Names,
             dynamic_axes: Mapping[str, Any] | None = None):
    """Return a checked onnx.ModelProto of `module` in eval() mode; modes are restored. See export()."""
    args, kwargs = (args,) if isinstance(args, Tensor) else tuple(args), dict(kwargs or {})
    if not args and not kwargs:
        raise CallError("onnx.export: a module is written at the sizes of a call",
                        expected="args=, what it is called with",
                        got="no arguments", fix='export(model, "model.onnx", args=batch)')
    training = {m: m.training for m in module.modules()}
    try:
        module.eval()
        if dynamic_axes:
            return _with_axes(module, args, kwargs, names, dynamic_axes)
        return _of_call(module, args, kwargs, names)
    finally:
        for m, mode in training.items():
            m.training = mode


def _of_call(module: Module, args: tuple, kwargs: dict, names: Names, lines: dict[str, str] | None = None):
    graph = _Exported(module)
    with no_grad():
        graph(*args, **kwargs)
    return of_graph(graph, names, lines)


def _with_axes(module: Module, args: tuple, kwargs: dict, names: Names, axes: Mapping[str, Any]):
    arguments = [*args, *kwargs.values()]
    if not all(x is None or isinstance(x, (Tensor, bool, int, float, str)) for x in arguments):
        raise UnsupportedError("onnx.export: dynamic_axes cannot be followed: tensors lie in lists or dicts",
                               expected="tensors as arguments",
                               got=", ".join(type(x).__name__ for x in arguments),
                               fix="leave dynamic_axes out, and export once for each size, each to its "
                               "own file")
    inputs = names[0] or [f"INPUT_{i}" for i in range(sum(isinstance(x, Tensor) for x in arguments))]
    named_axes = free.symbols(axes, [*inputs, *(names[1] or [])])

    def export(args: tuple, kwargs: dict) -> free.Export:
        lines: dict[str, str] = {}
        return _of_call(module, args, kwargs, names, lines), lines

    def eager(args: tuple, kwargs: dict) -> list[Tensor] | None:
        try:
            with no_grad(), fork_rng():
                out = module(*args, **kwargs)
        except Exception:                         # the module does not accept this size
            return None
        return [x for _, x in io.leaves("", out if type(out) is tuple else (out,),
                                        {}) if isinstance(x, Tensor)]

    return free.exported(export, eager, args, kwargs, inputs, named_axes)
