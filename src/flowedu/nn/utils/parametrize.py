"""Parametrizations: a parameter that is computed from one or more other parameters whenever it is read.

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

    register_parametrization(layer, "weight", Symmetric())           # layer.weight is always symmetric

The module gets its own class, in which the name is a property. The trained parameter is
parametrizations.weight.original.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flowedu.core.layers.module import Module
from flowedu.core.layers.parameter import Parameter
from flowedu.errors import ArgumentError, NameKeyError, UnsupportedError
from flowedu.nn.containers import ModuleDict, ModuleList
from flowedu.tensor import Tensor, no_grad

# {(id of a module, name): (the module, the value)}; the module is held, so that no other takes its id.
_kept: dict[tuple[int, str], tuple[Module, Tensor]] = {}
_keeping = 0


def computed(module: Module, name: str, read: Callable, write: Callable | None = None,
             prefix: str = "") -> None:
    """Make module.name a property of read(module) and write(module, value), also in copies of the module."""
    _give(module, {**_properties(module), name: property(read, write)}, prefix)


def uncomputed(module: Module, name: str) -> None:
    """Remove a property of `computed`; without any, the module has its original class again."""
    _give(module, {key: value for key, value in _properties(module).items() if key != name}, "Parametrized")


def _properties(module: Module) -> dict[str, property]:
    return vars(type(module)).get("_computed", {})


def _give(module: Module, names: dict[str, property], prefix: str) -> None:
    """Give the module a new class with these properties; copies of the module keep their class."""
    cls = type(module).__mro__[1] if _properties(module) else type(module)
    module.__class__ = type(prefix + cls.__name__, (cls,), {
        **names, "_computed": names, "__module__": cls.__module__, "__doc__": cls.__doc__}) if names else cls


class ParametrizationList(ModuleList):
    """Parametrizations of one tensor and their inputs.

    The inputs are `original`, or `original0`, `original1`, ... if the last right_inverse returns several
    tensors.

    Args:
        modules: parametrizations, applied in order.
        original: initial value of the parametrized tensor.
        unsafe: allow results of another shape or dtype.
    """

    def __init__(self, modules: list[Module], original: Tensor, unsafe: bool = False):
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            new = original
            for m in reversed(modules):
                new = m.right_inverse(new) if hasattr(m, "right_inverse") else new
        self.is_tensor = isinstance(new, Tensor)
        wanted = isinstance(original, Parameter)
        if self.is_tensor:
            if new is not original:
                original.data = new.detach()
            self._register("original", original, wanted)
        else:
            self.ntensors = len(new)
            for i, part in enumerate(new):
                self._register(f"original{i}", Parameter(part, original.requires_grad) if wanted else part,
                               wanted)

    def _register(self, name: str, t: Any, wanted: bool) -> None:
        (self.register_parameter if wanted else self.register_buffer)(name, t)

    def originals(self) -> list[Tensor]:
        return ([self.original] if self.is_tensor
                else [getattr(self, f"original{i}") for i in range(self.ntensors)])

    def forward(self) -> Tensor:
        first, *rest = self
        x = first(*self.originals())
        for m in rest:
            x = m(x)
        return x

    def right_inverse(self, value: Tensor) -> None:
        """Change the originals so that the parametrized tensor becomes `value`."""
        with no_grad():
            for m in reversed(list(self)):
                if not hasattr(m, "right_inverse"):
                    raise UnsupportedError(f"parametrize: {type(m).__name__} has no right_inverse, so the "
                                           f"tensor cannot be set", expected="def right_inverse(self, value)",
                                           got="a value for it",
                                           fix="define it: the value from which forward computes the "
                                           "parameter")
                value = m.right_inverse(value)
            for own, new in zip(self.originals(), [value] if self.is_tensor else value):
                own.copy_(new)


def _read(name: str) -> Callable:
    def read(module: Module) -> Tensor:
        if not _keeping:
            return module.parametrizations[name]()
        key = id(module), name
        if key not in _kept:
            _kept[key] = module, module.parametrizations[name]()
        return _kept[key][1]

    return read


def _check_fits(what: str, made, original: Tensor) -> None:
    if (not isinstance(made, Tensor) or made.dtype is not original.dtype
        or tuple(made.shape) != tuple(original.shape)):
        got = f"{made.dtype.name}{list(made.shape)}" if isinstance(made, Tensor) else type(made).__name__
        raise ArgumentError(f"register_parametrization: {what} gives something else than the tensor was",
                            got=got, expected=f"{original.dtype.name}{list(original.shape)}",
                            fix="return a tensor of that shape and dtype; unsafe=True takes others")


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *,
                             unsafe: bool = False) -> Module:
    """Replace a parameter or buffer by parametrization(original).

    Several parametrizations of one tensor are applied in order. A method right_inverse(value) of the
    parametrization computes the initial original and allows assignments to the tensor.

    Args:
        module: module to change.
        tensor_name: name of the parameter or buffer.
        parametrization: module whose forward computes the tensor.
        unsafe: allow a result of another shape or dtype.

    Returns:
        The module.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before = getattr(module, tensor_name)
            _check_fits(type(parametrization).__name__, parametrization(before), before)
        module.parametrizations[tensor_name].append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise NameKeyError(f"register_parametrization: {type(module).__name__} has no parameter, "
                           f"parametrized tensor or buffer with name '{tensor_name}'", got=tensor_name,
                           fix="dict(module.named_parameters())",
                           expected=", ".join([*module._parameters, *module._buffers]))
    original = getattr(module, tensor_name)
    shape = original.detach().clone()
    parts = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        with no_grad():
            _check_fits(type(parametrization).__name__, parts(), shape)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = parts
    computed(module, tensor_name, _read(tensor_name), lambda self, value: self.parametrizations[
        tensor_name].right_inverse(value), "Parametrized")
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return True if the module has a parametrization.

    Args:
        module: module to test.
        tensor_name: name of a parameter or buffer; default: any name.
    """
    table = module._modules.get("parametrizations")
    return isinstance(table, ModuleDict) and (len(table) > 0 if tensor_name is None else tensor_name in table)


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Remove the parametrizations of a tensor and return the module.

    Args:
        module: module to change.
        tensor_name: name of the parameter or buffer.
        leave_parametrized: keep the computed value; False: restore the original.
    """
    if not is_parametrized(module, tensor_name):
        raise NameKeyError(f"remove_parametrizations: module {type(module).__name__} does not have a "
                           f"parametrization on {tensor_name}", expected="a parametrized name",
                           got=tensor_name, fix="is_parametrized(module)")
    parts = module.parametrizations[tensor_name]
    if not leave_parametrized and not parts.is_tensor:
        raise ArgumentError("remove_parametrizations: leaving what several tensors make up unparametrized is "
                            "not supported",
                            expected="leave_parametrized=True", got="False", fix="leave it out")
    original = parts.originals()[0]
    with no_grad():
        value = getattr(module, tensor_name).detach().clone()
    if leave_parametrized:
        wanted = isinstance(original, Parameter)
        if parts.is_tensor:
            original.data = value                       # the same object, which optimizers refer to
        else:
            original = Parameter(value, original.requires_grad) if wanted else value
    uncomputed(module, tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    return module


@contextmanager
def cached() -> Iterator[None]:
    """Return a context manager in which each parametrized tensor is computed once, at its first read."""
    global _keeping
    _keeping += 1
    try:
        yield
    finally:
        _keeping -= 1
        if not _keeping:
            _kept.clear()


def type_before_parametrizations(module: Module) -> type:
    """Return the class of the module without its parametrizations.

    Args:
        module: module.
    """
    return type(module).__mro__[1] if is_parametrized(module) else type(module)


__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization",
           "remove_parametrizations", "type_before_parametrizations"]
