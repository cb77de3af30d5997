"""onnx: flow.onnx.export with PyTorch's signature, export(model, args, path)."""
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

# other arguments of export: without effect, and those with one accepted value, {name: value}
WITHOUT_EFFECT = {"verbose", "do_constant_folding", "keep_initializers_as_inputs", "dynamo", "external_data",
                  "report",
                  "optimize", "verify", "profile", "dump_exported_program", "artifacts_dir", "fallback",
                  "autograd_inlining", "export_modules_as_functions"}
REFUSED = {"export_params": True, "operator_export_type": 0, "custom_opsets": None,
           "custom_translators": None, "training": 0, "dynamic_shapes": None}


class TrainingMode(IntEnum):
    """Mode in which a model is exported. Only EVAL is supported."""

    EVAL, PRESERVE, TRAINING = range(3)


class OperatorExportTypes(IntEnum):
    """Format of exported ops. Only ONNX is supported."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK = range(3)


def export(model: Module, args: Tensor | Sequence = (), f: str | os.PathLike | IO[bytes] | None = None, *,
           kwargs: Mapping[str, Any] | None = None, input_names: Sequence[str] | None = None,
           output_names: Sequence[str] | None = None, opset_version: int | None = None,
           dynamic_axes: Any = None, dynamic_shapes: Any = None, **options) -> None:
    """Write `model` in eval mode as an ONNX file `f`, with the shapes of `args` except for dynamic_axes.

    args: a tensor, or a tuple of the model's arguments. A dict at its end contains keyword arguments, like
    kwargs.

    dynamic_axes: {name: {axis: name of the size}} with names of input_names and output_names. These sizes may
    differ when the file is used, if the model allows it (onnx/axes.py). opset_version: 18, or a version that
    onnx's converter can write. For other versions, 18 is used, with a warning. The package onnx is required.
    Errors: CallError, ArgumentError, UnsupportedError.
    """
    if not isinstance(model, Module):
        raise CallError("onnx.export: this is not a module", expected="an nn.Module",
                        got=type(model).__name__, fix="export(model, args, path)")
    if f is None or not isinstance(f, (str, os.PathLike)) and not callable(getattr(f, "write", None)):
        raise CallError("onnx.export: no path to write to",
                        expected="a path, or a file that is open for bytes",
                        got=type(f).__name__, fix='export(model, args, "model.onnx")')
    _check_options({"dynamic_shapes": dynamic_shapes, **options})
    args = (args,) if isinstance(args, Tensor) else tuple(args)
    kwargs = dict(kwargs or {})
    if args and isinstance(args[-1], dict):
        args, kwargs = args[:-1], {**args[-1], **kwargs}
    call = dict(args=args, kwargs=kwargs, input_names=input_names, output_names=output_names,
                dynamic_axes=dynamic_axes)
    try:
        flow.onnx.export(model, f, opset=opset_version, **call)
    except UnsupportedError as e:
        if "in opset" not in e.problem:
            raise
        file, line = user_place() or (__file__, 1)
        message = f"onnx.export: the model is written in opset {OPSET}, not {opset_version}"
        warnings.warn_explicit(message, UserWarning, file, line)
        flow.onnx.export(model, f, **call)


def _check_options(options: dict[str, Any]) -> None:
    for name, value in options.items():
        if name in REFUSED and value not in (None, REFUSED[name]):
            raise UnsupportedError(f"onnx.export: {name} cannot be followed",
                                   expected=f"{name}={REFUSED[name]!r}",
                                   got=repr(value)[:80], fix=f"leave {name} out" + (
                                       ': dynamic_axes={"x": {0: "batch"}} of input_names=["x"] is followed'
                                       if name == "dynamic_shapes" else ""))
        if name not in REFUSED and name not in WITHOUT_EFFECT:
            raise CallError(f"onnx.export: there is no argument {name!r}",
                            expected="an argument of torch.onnx.export",
                            got=f"{name}={value!r}"[:80], fix="leave it out")
