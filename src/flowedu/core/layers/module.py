"""Module: base class of networks and their parts, with parameters, buffers, and child modules.

Assigning a Parameter or a Module as an attribute registers it; other values are ordinary
attributes. parameters(), buffers(), and state_dict() start with the entries of the module, in the
order of assignment; entries of its children follow. nn/methods has further methods.
"""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from flowedu.core import extensions
from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.parameter import Parameter
from flowedu.core.values import thread_state as ambient
from flowedu.errors import layers as errors
from flowedu.errors.nearest import UnknownNameError

ambient.register_fields(tracer=None)                     # the nn.Graph that is built (chapter 5)
_set = object.__setattr__


class Module:
    """Base class of all modules.

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 2)

            def forward(self, x):
                return self.fc(x).relu()

    Attributes: training (see train and eval).
    """

    training: bool
    _hooks = None                    # functions called around forward, if any (nn/methods/hooks.py)

    def __init__(self) -> None:
        _set(self, "training", True)
        for name in ("_parameters", "_buffers", "_modules"):
            _set(self, name, OrderedDict())
        _set(self, "_non_persistent_buffers_set", set())

    # ---- calling
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output of the module. Subclasses define this method."""
        raise errors.no_forward(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if ambient.building and ambient.thread_state.tracer is not None:    # in nn.Graph.build
            return ambient.thread_state.tracer.call_module(self, args, kwargs)
        if self._hooks is not None:
            return self._hooks.call(self, args, kwargs)
        try:
            return self.forward(*args, **kwargs)
        except TypeError as e:
            if extensions.raise_misfit:
                extensions.raise_misfit(self, args, kwargs, e)
            raise

    # ---- registration
    def __setattr__(self, name: str, value: object) -> None:
        attributes = self.__dict__
        if isinstance(value, (Parameter, Module)):
            is_module = isinstance(value, Module)
            table = "_modules" if is_module else "_parameters"
            self._need_init("module" if is_module else "parameters")
            _forget(self, name, table)
            attributes[table][name] = value
        elif name in attributes.get("_parameters", ()):
            if value is not None:
                raise errors.not_a_parameter(name_of(value), name)
            attributes["_parameters"][name] = None
        elif name in attributes.get("_modules", ()):
            if value is not None:
                raise errors.not_a_module(name_of(value), name)
            attributes["_modules"][name] = None
        elif name in attributes.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise errors.not_a_buffer(name_of(value), name)
            attributes["_buffers"][name] = value
        else:
            _set(self, name, value)
        ambient.changes += 1

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__            # Python calls this only for names missing in __dict__
        if "_modules" in attributes:
            for table in ("_parameters", "_modules", "_buffers"):
                if name in attributes[table]:
                    return attributes[table][name]
        raise UnknownNameError(f"'{type(self).__name__}' object", name, lambda: dir(self), "x.")

    def __delattr__(self, name: str) -> None:
        ambient.changes += 1
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = self.__dict__
        return sorted({*dir(type(self)), *names, *names.get("_parameters", ()),
                       *names.get("_buffers", ()), *names.get("_modules", ())})

    def _need_init(self, assignment: str) -> None:
        if "_modules" not in self.__dict__:
            raise errors.module_not_initialized(assignment, self)

    # ---- traversal; a shared part is visited once, where it occurs first
    def named_modules(self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
                      ) -> Iterator[tuple[str, Module]]:
        """Yield (path, module) for this module and all modules below it, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(memo, f"{prefix}{'.' if prefix else ''}{name}",
                                               remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """Yield this module and all modules below it, each once."""
        return (m for _, m in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) for the direct children, each once."""
        seen = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator[Module]:
        """Yield the direct children, each once."""
        return (m for _, m in self.named_children())

    def _named_members(self, get_members_fn: Callable, prefix: str, recurse: bool,
                       remove_duplicate: bool) -> Iterator[tuple[str, Tensor]]:
        seen = set()
        below = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in below if recurse else [(prefix, self)]:
            for name, t in get_members_fn(module):
                if t is None or id(t) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(t))
                yield (f"{path}.{name}" if path else name), t

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
                         ) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter) once per parameter; with `recurse`, also of modules below."""
        return self._named_members(lambda module: module._parameters.items(), prefix=prefix,
                                   recurse=recurse, remove_duplicate=remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, for example for an optimizer."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
                      ) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, buffer) in the order of named_parameters."""
        return self._named_members(lambda module: module._buffers.items(), prefix=prefix,
                                   recurse=recurse, remove_duplicate=remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    # ---- changes of all parts
    def train(self, mode: bool = True) -> Module:
        """Set training mode (False: evaluation mode) here and in all children. Return self."""
        if not isinstance(mode, bool):
            raise errors.mode_not_a_bool(mode)
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Module:
        """Set evaluation mode, as `train(False)`."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Delete the gradients, or fill them with zeros (the default of OneFlow 0.9)."""
        for p in self.parameters():
            if p.grad is None:
                continue
            p.grad = None if set_to_none else p.grad.detach() * 0

    # ---- printing
    def extra_repr(self) -> str:
        """Return the text between the parentheses of the printed module."""
        return ""

    def _get_name(self) -> str:
        return self.__class__.__name__

    def _shallow_repr(self) -> str:
        """Return the text of the module without its children: `Linear(in_features=4, ...)`."""
        return f"{self._get_name()}({self.extra_repr()})"

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + repr(child).replace("\n", "\n  ")
                    for name, child in self._modules.items()]
        if lines and not children and len(lines) == 1:
            return f"{self._get_name()}({lines[0]})"
        body = [*lines, *children]
        return f"{self._get_name()}(" + ("\n  " + "\n  ".join(body) + "\n" if body else "") + ")"


def _forget(module: Module, name: str, keep: str) -> None:
    """Remove `name` from the attributes and from all tables except `keep`."""
    attributes = module.__dict__
    if isinstance(getattr(type(module), name, None), property):
        raise errors.attribute_exists(name)
    for table in ("_parameters", "_buffers", "_modules"):
        if table != keep:
            attributes[table].pop(name, None)
    attributes.pop(name, None)
    attributes["_non_persistent_buffers_set"].discard(name)


def name_of(value: object) -> str:
    cls = type(value)
    package = "" if cls.__module__ == "builtins" else cls.__module__.split(".")[0] + "."
    return package + cls.__name__
