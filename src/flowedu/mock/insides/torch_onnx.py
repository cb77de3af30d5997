"""onnx as PyTorch has it: export(model, args, path). What flow.onnx.export does, with PyTorch's words."""
from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import IO, Any

import flowedu as flow
from flowedu import Tensor
from flowedu.errors import CallError, UnsupportedError, user_place
from flowedu.nn import Module
from flowedu.onnx.ops import OPSET

# other arguments of export: those without effect, and those that would change the file {name: the accepted value}
WITHOUT_EFFECT = {"verbose", "do_constant_folding", "keep_initializers_as_inputs", "dynamo", "external_data", "report",
                  "optimize", "verify", "profile", "dump_exported_program", "artifacts_dir", "fallback",
                  "autograd_inlining", "export_modules_as_functions"}
REFUSED = {"export_params": True, "operator_export_type": 0, "custom_opsets": None, "custom_translators": None,
           "training": 0, "dynamic_shapes": None}


class TrainingMode(IntEnum):
    """In which mode a model is exported: only EVAL."""

    EVAL, PRESERVE, TRAINING = range(3)


class OperatorExportTypes(IntEnum):
    """How ops are written: only ONNX."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK = range(3)


def export(model: Module, args: Tensor | Sequence = (), f: str | os.PathLike | IO[bytes] | None = None, *,
           kwargs: Mapping[str, Any] | None = None, input_names: Sequence[str] | None = None,
           output_names: Sequence[str] | None = None, opset_version: int | None = None,
           dynamic_axes: Any = None, dynamic_shapes: Any = None, **options) -> None:
    """Write `model`, as it is in eval(), as an ONNX model at f. Shapes in it are those of args, where dynamic_axes do
    not say otherwise.

    args: a tensor, or a tuple of the model's arguments; a dict at its end holds keyword arguments, like
    kwargs.

    dynamic_axes: {name: {axis: name of the size}} of input_names and output_names: sizes that may differ when
    the file is used, if the model allows it (onnx/axes.py). opset_version: 18, or another one where onnx's
    converter writes it; else 18, with a warning. Needs the package onnx. Errors: CallError, ArgumentError,
    UnsupportedError.
    """
    if not isinstance(model, Module):
        raise CallError("onnx.export: this is not a module", expected="an nn.Module", got=type(model).__name__,
                        fix="export(model, args, path)")
    if not isinstance(f, (str, os.PathLike)) and not callable(getattr(f, "write", None)):
        raise CallError("onnx.export: no path to write to", expected="a path, or a file that is open for bytes",
                        got=type(f).__name__, fix='export(model, args, "model.onnx")')
    _checked({"dynamic_shapes": dynamic_shapes, **options})
    args = (args,) if isinstance(args, Tensor) else tuple(args)
    kwargs = dict(kwargs or {})
    if args and isinstance(args[-1], dict):
        args, kwargs = args[:-1], {**args[-1], **kwargs}
    call = dict(args=args, kwargs=kwargs, input_names=input_names, output_names=output_names, dynamic_axes=dynamic_axes)
    try:
        flow.onnx.export(model, f, opset=opset_version, **call)
    except UnsupportedError as e:
        if "in opset" not in e.problem:
            raise
        file, line = user_place() or (__file__, 1)
        told = f"onnx.export: the model is written in opset {OPSET}, not {opset_version}"
        warnings.warn_explicit(told, UserWarning, file, line)
        flow.onnx.export(model, f, **call)


def _checked(options: dict[str, Any]) -> None:
    for name, given in options.items():
        if name in REFUSED and given not in (None, REFUSED[name]):
            raise UnsupportedError(f"onnx.export: {name} cannot be followed", expected=f"{name}={REFUSED[name]!r}",
                                   got=repr(given)[:80], fix=f"leave {name} out" + (
                                       ': dynamic_axes={"x": {0: "batch"}} of input_names=["x"] is followed'
                                       if name == "dynamic_shapes" else ""))
        if name not in REFUSED and name not in WITHOUT_EFFECT:
            raise CallError(f"onnx.export: there is no argument {name!r}", expected="an argument of torch.onnx.export",
                            got=f"{name}={given!r}"[:80], fix="leave it out")
