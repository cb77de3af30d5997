"""Modules that contain modules: Sequential, ModuleList, and ModuleDict."""
from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from flowedu.core.layers.module import Module
from flowedu.core.values import thread_state as ambient
from flowedu.errors import AxisError, CallError, DTypeError

M = TypeVar("M")


class _Numbered(Module):
    """Base class of containers whose children have the names "0", "1", ... and that are used like lists."""

    _uncalled = ("_get_abs_string_index", "_get_item_by_idx")

    def _key(self, index) -> str:
        n = len(self)
        i = operator.index(index)
        if not -n <= i < n:
            raise AxisError(f"{type(self).__name__}: index {i} is out of range",
                            expected=f"an index in [{-n}, {n - 1}]", got=str(i), fix="-1 is the last one")
        return list(self._modules)[i]

    def _renumber(self, modules: Iterable[Module]) -> None:
        modules = list(modules)
        self._modules.clear()
        ambient.changes += 1
        for i, m in enumerate(modules):
            self.add_module(str(i), m)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._part(list(self._modules.items())[index])
        return self._modules[self._key(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index) -> None:
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            del self._modules[key]
            ambient.changes += 1
        if all(k.isdigit() for k in self._modules):
            self._renumber(list(self._modules.values()))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(list(self._modules.values()))

    def __contains__(self, module) -> bool:
        return any(m is module for m in self._modules.values())

    def append(self, module: Module):
        """Append a module and return self."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]):
        """Append modules and return self."""
        if not isinstance(modules, Iterable):
            raise CallError(f"{type(self).__name__}.extend should be called with an iterable, but got "
                            f"{type(modules).__name__}", expected="a list of modules", got=repr(modules)[:60],
                            fix="append(module) adds one")
        for m in list(modules):
            self.append(m)
        return self

    def insert(self, index: int, module: Module):
        """Insert a module before position `index` and return self."""
        if not isinstance(module, Module):
            raise DTypeError(f"{type(module).__name__} is not a Module subclass", expected="an nn.Module",
                             got=type(module).__name__, fix="pass an instance, such as nn.ReLU()")
        listed = list(self._modules.values())
        listed.insert(index, module)
        self._renumber(listed)
        return self

    def pop(self, index: int = -1) -> Module:
        """Remove the module at `index` and return it."""
        module = self[index]
        del self[index]
        return module


class Sequential(_Numbered):
    """Chain of modules; each is called with the result of the previous one.

    It supports indices, slices, len, and iteration; a slice is a Sequential that keeps the names.

    Args:
        *args: modules, or one dict {name: module}.

    Example:
        >>> model = flow.nn.Sequential(flow.nn.Linear(3, 4), flow.nn.ReLU())
        >>> model(flow.zeros(2, 3)).shape
        oneflow.Size([2, 4])
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            named = args[0].items()
        else:
            named = ((str(i), m) for i, m in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input):
        for module in self:
            input = module(input)
        return input

    def _part(self, items) -> Sequential:
        return Sequential(OrderedDict(items))

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            return NotImplemented
        return Sequential(*self, *other)


class ModuleList(_Numbered):
    """List of modules whose parameters are registered.

    It has no forward method: the owner indexes it or iterates over it.

    Args:
        modules: initial modules; default: none.
    """

    def __init__(self, modules: Iterable[Module] | None = None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _part(self, items) -> ModuleList:
        return ModuleList([m for _, m in items])

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    __iadd__ = _Numbered.extend


class NamedMembers(Module, Generic[M]):
    """Base class of containers that are used like dicts. `_members` has their modules or parameters."""

    @property
    def _members(self) -> dict[str, M]:
        raise NotImplementedError

    def __getitem__(self, key: str) -> M:
        return self._members[key]

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._members))

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def keys(self):
        """Return the names."""
        return self._members.keys()

    def values(self):
        """Return the modules or parameters."""
        return self._members.values()

    def items(self):
        """Return the (name, module or parameter) pairs."""
        return self._members.items()

    def pop(self, key: str) -> M:
        """Remove the module or parameter of a name and return it."""
        ambient.changes += 1
        return self._members.pop(key)

    def clear(self) -> None:
        """Remove everything."""
        ambient.changes += 1
        self._members.clear()


class ModuleDict(NamedMembers[Module]):
    """Dict of modules whose parameters are registered.

    Args:
        modules: dict {name: module} or (name, module) pairs; default: empty.
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable | None = None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    @property
    def _members(self) -> dict[str, Module]:
        return self._modules

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def update(self, modules: Mapping[str, Module] | Iterable) -> None:
        """Add the modules of a dict, or of (name, module) pairs."""
        if not isinstance(modules, (Mapping, ModuleDict, Iterable)):
            raise CallError(f"ModuleDict.update should be called with an iterable of key/value pairs, "
                            f"but got {type(modules).__name__}", expected="a dict of modules",
                            got=repr(modules)[:60], fix="nn.ModuleDict({'name': module})")
        pairs: Any = modules.items() if hasattr(modules, "items") else modules
        for key, module in pairs:
            self[key] = module
