"""Errors of modules, parameters, and variables, for core to raise."""
from __future__ import annotations

from typing import Any

from flowedu.errors import (
    CallError,
    DTypeError,
    JobBuildAndInferError,
    LazyTensorError,
    MissingAttributeError,
    NameKeyError,
    UnsupportedError,
)


def no_forward(module: Any) -> UnsupportedError:
    return UnsupportedError(f'Module [{type(module).__name__}] is missing the required "forward" function',
                            expected="def forward(self, x): ... in the class", fix="define it",
                            got=type(module).__name__)


def not_a_parameter(got: Any, name: str) -> DTypeError:
    return DTypeError(f"cannot assign '{got}' as parameter '{name}' (nn.Parameter or None expected)",
                      expected="an nn.Parameter or None", got=got, fix=f"self.{name} = nn.Parameter(value); "
                      f"to change its values: with flow.no_grad(): self.{name}.copy_(value)")


def not_a_module(got: Any, name: str) -> DTypeError:
    return DTypeError(f"cannot assign '{got}' as child module '{name}' (nn.Module or None expected)",
                      expected="an nn.Module or None", got=got, fix=f"del self.{name} first")


def not_a_buffer(got: Any, name: str) -> DTypeError:
    return DTypeError(f"cannot assign '{got}' as buffer '{name}' (flowedu.Tensor or None expected)",
                      expected="a tensor or None", got=got, fix=f"del self.{name} first")


def module_not_initialized(assignment: str, module: Any) -> MissingAttributeError:
    return MissingAttributeError(f"cannot assign {assignment} before Module.__init__() call",
                                 expected="super().__init__() as the first line of "
                                 f"{type(module).__name__}.__init__", fix="add that line",
                                 got=type(module).__name__)


def mode_not_a_bool(mode: Any) -> CallError:
    return CallError("train: mode is not a bool", expected="True or False", got=repr(mode),
                     fix="model.train() or model.eval()")


def attribute_exists(name: str) -> NameKeyError:
    return NameKeyError(f"attribute '{name}' already exists", expected="a name that is not a property of the "
                        "class", got=name, fix="another name, or remove_parametrizations(module, name) first")


def data_not_a_tensor(data: Any) -> DTypeError:
    return DTypeError("Parameter: data is not a tensor", expected="a flow.Tensor", got=type(data).__name__,
                      fix="nn.Parameter(flow.tensor(data))")


def lazy_data() -> LazyTensorError:
    return LazyTensorError("Parameter: data is a value of a graph that is being built", expected="an eager "
                           "tensor", got="a lazy tensor", fix="make parameters in the __init__ of a module")


def missing_initializer(name: str) -> JobBuildAndInferError:
    return JobBuildAndInferError(f"variable {name!r} has no initializer", expected="initializer=...",
                                 got="None", fix="pass one, e.g. flow.zeros_initializer(), or set the job's "
                                 "default_initializer_conf")
