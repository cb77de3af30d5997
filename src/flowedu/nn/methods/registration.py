"""Registration and lookup of parameters, buffers, and children by name, and functions applied to all."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.module import Module, name_of
from flowedu.core.layers.parameter import Parameter
from flowedu.core.values import thread_state as ambient
from flowedu.errors import DTypeError, MissingAttributeError, NameKeyError


class Registering:
    """Methods of Module that use names or paths."""

    # Attributes and methods of Module.
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _need_init: Callable[[str], None]
    children: Callable[..., Any]
    parameters: Callable[..., Any]

    def _check_name(self, what: str, kind: str, name, table: dict) -> None:
        self._need_init(what)
        if not isinstance(name, str):
            raise DTypeError(f"{kind} name should be a string. Got {type(name).__name__}", expected="a str",
                             got=repr(name), fix="str(name)")
        if "." in name:
            raise NameKeyError(f'{kind} name can\'t contain ".", got: {name!r}',
                               expected="a name without dots", fix=f"{name.replace('.', '_')!r}", got=name)
        if not name:
            raise NameKeyError(f'{kind} name can\'t be empty string ""', expected="a name",
                               got="an empty string", fix="a name such as 'weight'")
        if name not in table and (hasattr(type(self), name) or name in self.__dict__ or any(
                name in self.__dict__[t] for t in ("_parameters", "_buffers", "_modules"))):
            raise NameKeyError(f"attribute '{name}' already exists", expected="a name that is not in use",
                               got=name, fix="another name, or del the attribute first")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter.

        Args:
            name: attribute name, without dots.
            param: parameter, or None to reserve the name.

        Raises:
            NameKeyError (a KeyError): the name is invalid or taken.
            DTypeError (a TypeError): param is not a Parameter.
        """
        self._check_name("parameters", "parameter", name, self.__dict__.get("_parameters", {}))
        if param is not None and not isinstance(param, Parameter):
            raise DTypeError(f"cannot assign '{name_of(param)}' object to parameter '{name}' (nn.Parameter "
                             f"or None required)", expected="an nn.Parameter or None", got=name_of(param),
                             fix="nn.Parameter(tensor)")
        if param is not None and not param.is_leaf:
            raise DTypeError(f"cannot assign a non-leaf Tensor to parameter '{name}': model parameters must "
                             f"be created explicitly", expected="a leaf",
                             fix=f"compute '{name}' in forward from another parameter",
                             got=f"a result of {param.grad_fn}")
        self._parameters[name] = param
        ambient.changes += 1

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is part of the state but not trained.

        Args:
            name: attribute name, without dots.
            tensor: tensor, or None to reserve the name.
            persistent: include it in state_dict.
        """
        self._check_name("buffers", "buffer", name, self.__dict__.get("_buffers", {}))
        if tensor is not None and not isinstance(tensor, Tensor):
            raise DTypeError(f"cannot assign '{name_of(tensor)}' object to buffer '{name}' (flowedu.Tensor "
                             f"or None required)", expected="a tensor or None", got=name_of(tensor),
                             fix="flow.tensor(value)")
        self._buffers[name] = tensor
        ambient.changes += 1
        (self._non_persistent_buffers_set.discard if persistent
         else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Register a child module.

        Args:
            name: attribute name, without dots.
            module: module, or None to reserve the name.

        Raises:
            NameKeyError (a KeyError): the name is invalid or taken.
            DTypeError (a TypeError): module is not a Module.
        """
        if module is not None and not isinstance(module, Module):
            raise DTypeError(f"{name_of(module)} is not a Module subclass", expected="an nn.Module or None",
                             got=repr(module)[:60], fix="pass an instance, such as nn.ReLU()")
        self._check_name("module", "module", name, self.__dict__.get("_modules", {}))
        self._modules[name] = module
        ambient.changes += 1

    def register_module(self, name: str, module: Module | None) -> None:
        """Register a child module; see add_module."""
        self.add_module(name, module)

    # ---- lookup by path
    def get_submodule(self, target: str) -> Module:
        """Return the module at a path such as "features.0"; "" is the module itself.

        Raises:
            MissingAttributeError (an AttributeError): no such module.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            child = module._modules.get(name) if isinstance(module, Module) else None
            if child is None:
                raise MissingAttributeError(f"{type(module).__name__} has no submodule '{name}'",
                                            expected="one of "
                                            + ", ".join(module._modules), got=target,
                                            fix="see dict(model.named_modules())")
            module = child
        return module

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a path.

        Raises:
            MissingAttributeError (an AttributeError): no such parameter.
        """
        return self._get(target, "_parameters", "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a path.

        Raises:
            MissingAttributeError (an AttributeError): no such buffer.
        """
        return self._get(target, "_buffers", "buffer")

    def _get(self, target: str, table: str, what: str):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found = module.__dict__[table].get(name)
        if found is None:
            raise MissingAttributeError(f"{type(module).__name__} has no {what} '{name}'", got=target,
                                        expected="one of "
                                        + ", ".join(module.__dict__[table]),
                                        fix="see dict(model.named_parameters()) and named_buffers()")
        return found

    # ---- functions of all modules
    def apply(self, fn: Callable[[Module], None]) -> Module:
        """Call fn(module) for every descendant and then for the module itself; return the module."""
        for child in self.children():
            child.apply(fn)
        module: Any = self
        fn(module)
        return module

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Set requires_grad of all parameters and return the module."""
        for p in self.parameters():
            p.requires_grad = requires_grad
        module: Any = self
        return module
