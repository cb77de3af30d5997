"""onnx as PyTorch has it: export(model, args, path). What flow.onnx.export does, of an nn.Graph made for it."""
from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import flowedu as flow
from flowedu import Tensor
from flowedu.errors import CallError, UnsupportedError, user_place
from flowedu.nn import Module

# of what else export takes: what changes nothing, and what would change the file (its name, and the value that is fine)
WITHOUT_EFFECT = {"verbose", "do_constant_folding", "keep_initializers_as_inputs", "dynamo", "external_data", "report",
                  "optimize", "verify", "profile", "dump_exported_program", "artifacts_dir", "fallback",
                  "autograd_inlining", "export_modules_as_functions"}
REFUSED = {"export_params": True, "operator_export_type": 0, "custom_opsets": None, "custom_translators": None,
           "training": 0}


class TrainingMode(IntEnum):
    """In which mode a model is exported: only EVAL."""

    EVAL, PRESERVE, TRAINING = range(3)


class OperatorExportTypes(IntEnum):
    """How ops are written: only ONNX."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK = range(3)


class _Exported(flow.nn.Graph):
    def __init__(self, model: Module):
        super().__init__()
        self.model = model

    def build(self, *args, **kwargs):
        return self.model(*args, **kwargs)


def export(model: Module, args: Tensor | Sequence = (), f: str | os.PathLike | None = None, *,
           kwargs: Mapping[str, Any] | None = None, input_names: Sequence[str] | None = None,
           output_names: Sequence[str] | None = None, opset_version: int | None = None,
           dynamic_axes: Any = None, dynamic_shapes: Any = None, **options) -> None:
    """Write `model`, as it is in eval(), as an ONNX model at f. Shapes in it are those of args.

    args: a tensor, or a tuple of what the model is called with; a dict at its end is its keywords, as kwargs are.

    opset_version: the file's is flowedu's own, whatever is asked for (with a warning). dynamic_axes and dynamic_shapes are
    refused: a file is of one size. Needs the package onnx. Errors: CallError, UnsupportedError.
    """
    if not isinstance(model, Module):
        raise CallError("onnx.export: this is not a module", expected="an nn.Module", got=type(model).__name__,
                        fix="export(model, args, path)")
    if not isinstance(f, (str, os.PathLike)):
        raise CallError("onnx.export: no path to write to", expected="a path", got=type(f).__name__,
                        fix='export(model, args, "model.onnx")')
    _checked({"dynamic_axes": dynamic_axes, "dynamic_shapes": dynamic_shapes, **options}, opset_version)
    args = (args,) if isinstance(args, Tensor) else tuple(args)
    kwargs = dict(kwargs or {})
    if args and isinstance(args[-1], dict):
        args, kwargs = args[:-1], {**args[-1], **kwargs}
    training = {m: m.training for m in model.modules()}
    try:
        model.eval()
        graph = _Exported(model)
        with flow.no_grad():
            graph(*args, **kwargs)
        flow.onnx.export(graph, f, input_names=input_names, output_names=output_names)
    finally:
        for module, mode in training.items():
            module.training = mode


def _checked(options: dict[str, Any], opset: int | None) -> None:
    for name, given in options.items():
        if name.startswith("dynamic_") and given:
            raise UnsupportedError(f"onnx.export: {name} cannot be followed: shapes in the file are those of args",
                                   expected=f"{name}=None", got=repr(given)[:80], fix=f"leave {name} out, and export "
                                   "once for each size, each to its own file")
        if name in REFUSED and given not in (None, REFUSED[name]):
            raise UnsupportedError(f"onnx.export: {name} cannot be followed", expected=f"{name}={REFUSED[name]!r}",
                                   got=repr(given)[:80], fix=f"leave {name} out")
        if name not in REFUSED and name not in WITHOUT_EFFECT and not name.startswith("dynamic_"):
            raise CallError(f"onnx.export: there is no argument {name!r}", expected="an argument of torch.onnx.export",
                            got=f"{name}={given!r}"[:80], fix="leave it out")
    from flowedu.onnx.ops import OPSET
    if opset not in (None, OPSET):
        file, line = user_place() or (__file__, 1)
        warnings.warn_explicit(f"onnx.export: the model is written in opset {OPSET}, not {opset}", UserWarning, file, line)
