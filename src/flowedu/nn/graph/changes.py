"""Detection of changes in the Python state that `build` read, so that a stale trace is rebuilt.

A trace depends on values that Python code read: numbers, modes, and the tensors of attributes. Writes of
attributes, requires_grad, hooks, seeds, and options increment one counter (core/values/thread_state.py,
changes). A call of a graph compares this counter with the value of its last call. If it has
changed, the call compares the modules with a snapshot of their state. If they have changed as well, the call
traces `build` again.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from types import SimpleNamespace

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.module import Module
from flowedu.core.trace.blocks import ModuleBlock, make_block
from flowedu.core.values import dtype as dt
from flowedu.tensor.construction.generator import default_generator

TABLES = ("_parameters", "_buffers", "_modules")
# Attributes that modules themselves set.
OWN = {*TABLES, "_non_persistent_buffers_set", "_hooks", "_state_hooks"}
OF_GRAPH = {"class_name", "_name", "_blocks", "config", "_optimizers", "_compiled", "_states", "_is_building",
            "_level", "_rebound", "_retraced", "_scaler"}
RATES = {"lr", "initial_lr"}                 # options of an optimizer that are read at every call
MANY = 200                                   # longer lists: identity and length
CONTAINERS = (list, tuple, set, frozenset, dict)
MISSING = object()


class IdentityKey:
    """Key that compares objects by identity and keeps its object alive."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other) -> bool:
        return type(other) is IdentityKey and self.value is other.value


def fingerprint(x, depth: int = 4):
    """Return a fingerprint of x: the value of a number, string, or container, or the identity of x."""
    kind = type(x)
    if kind in (bool, int, str, bytes, type(None)):
        return kind, x
    if kind in (float, complex) or isinstance(x, np.generic):
        # Repr distinguishes 0.0 and -0.0, and NaN equals NaN.
        return kind, repr(x)
    if isinstance(x, Tensor):
        return IdentityKey(x), x.requires_grad
    if (kind in CONTAINERS or isinstance(x, tuple)) and depth:
        if len(x) > MANY:
            return IdentityKey(x), len(x)
        if kind is dict:
            return kind, [(fingerprint(k, depth - 1), fingerprint(v, depth - 1)) for k, v in x.items()]
        return (kind, [fingerprint(v, depth - 1) for v in (sorted(x, key=repr) if kind in (set, frozenset)
                                                           else x)])
    if kind is np.ndarray and x.size <= MANY and x.dtype != object:
        return kind, (x.shape, x.dtype.str, x.tobytes())
    if is_record(x) and depth:
        return IdentityKey(x), fingerprint(vars(x), depth - 1)
    return IdentityKey(x)


def is_record(x) -> bool:
    """Return True for an object that only stores values, such as a model's configuration."""
    return (type(x) is SimpleNamespace or is_dataclass(x) and not isinstance(x, type)
            and hasattr(x, "__dict__"))


def is_mutable(x) -> bool:
    """Return True if x can change without incrementing the change counter."""
    return (type(x) in (list, dict, set, np.ndarray) or is_record(x) or type(x) is tuple
            and any(map(is_mutable, x)))


def attributes(module) -> dict:
    """Return {name: value} of a module's ordinary attributes, or of a graph's user-defined attributes."""
    hidden = OWN if isinstance(module, Module) else OF_GRAPH
    return {name: x for name, x in vars(module).items() if name not in hidden}


def contents(module, rebound: set) -> dict:
    """Return {name: fingerprint} of all attributes of a module or a graph.

    `rebound` contains the attributes that are read at every call.
    """
    found = {name: (Tensor, x.spec) if isinstance(x, Tensor) and (id(module), name) in rebound
             else fingerprint(x)
             for name, x in attributes(module).items()}
    if isinstance(module, Module):
        for table in TABLES:
            found.update({name: fingerprint(x) for name, x in module.__dict__[table].items()})
        found["hooks"] = module._hooks is not None and module._hooks.any
    return found


def unregistered_modules(x, depth: int = 3) -> Iterator[Module]:
    """Yield the modules in a container."""
    if isinstance(x, Module):
        yield x
    elif is_record(x) and depth:
        yield from unregistered_modules(vars(x), depth - 1)
    elif type(x) in (list, tuple, dict) and depth and len(x) <= MANY:
        for v in x.values() if type(x) is dict else x:
            yield from unregistered_modules(v, depth - 1)


class StateSnapshot:
    """Snapshot of the state that the build of a graph can read.

    Attributes:
        parts: {id of a module: (its path, the module, its ordinary attributes, contents)}.
        mutable: (path, attribute, fingerprint) of lists, dicts, arrays, and records, which can change without
            a write of an attribute.
    """

    def __init__(self, graph):
        self.rebound = set(graph._rebound)
        self.parts: dict[int, tuple[str, object, dict, dict]] = {}
        self.mutable: dict[int, tuple[str, object, object]] = {}
        self.around = self._around(graph)
        self.seed = default_generator._seed, default_generator.seedings
        self.add(graph, graph.name)
        for block in graph._blocks.values():
            for part in block.walk():
                self.add(part.origin, part.path)

    def _around(self, graph) -> dict:
        return {"the default dtype": dt.get_default_dtype(), "the rule of the grad scaler": fingerprint(
            getattr(graph._scaler, "_rule", None)), **{
            f"config.{name}": fingerprint(x) for name, x in vars(graph.config).items()}, **{
            f"{type(optimizer).__name__}.param_groups[{i}][{name!r}]":
                [*map(IdentityKey, x)] if name == "params" else fingerprint(x)
            for optimizer, _ in graph._optimizers for i, group in enumerate(optimizer.param_groups)
            for name, x in group.items() if name not in RATES}}

    def add(self, module, path: str) -> None:
        """Add a module, and the unregistered modules in its attributes."""
        if id(module) in self.parts:
            return
        own = attributes(module)
        self.parts[id(module)] = path, module, own, contents(module, self.rebound)
        for name, x in own.items():
            if is_mutable(x):
                self.mutable.setdefault(id(x), (f"{path}.{name}", x, fingerprint(x)))
            for found in unregistered_modules(x):
                self.add(found, f"{path}.{name}: {type(found).__name__}")

    def find_mutation(self) -> str | None:
        """Describe the first change of a mutable attribute, or return None. This runs at every call."""
        return next((f"{path} changed" for path, x, before in self.mutable.values()
                     if fingerprint(x) != before), None)

    def change(self, graph, random: bool) -> str | None:
        """Describe the first change since the snapshot, or return None.

        `random` is True if the graph draws random numbers.
        """
        if (now := self._around(graph)) != self.around:
            return next(f"{name} changed" for name in {**now, **self.around}
                        if now.get(name, MISSING) != self.around.get(name, MISSING))
        if random and self.seed != (default_generator._seed, default_generator.seedings):
            return "the random seed changed"
        return next((f"{path} {describe_change(*values)}" for path, *values in self.differences()), None)

    def differences(self) -> Iterator[tuple[str, object, object]]:
        """Yield (path, fingerprint before, fingerprint now) for everything in the modules that has changed.
        """
        for path, module, _, before in self.parts.values():
            now = contents(module, self.rebound)
            for name in {**now, **before} if now != before else ():
                if now.get(name, MISSING) != before.get(name, MISSING):
                    yield f"{path}.{name}", before.get(name, MISSING), now.get(name, MISSING)

    def settle(self, module, name: str, x: Tensor) -> None:
        """Record that build only reads an attribute, so that assigning another tensor to it is a change."""
        self.rebound.discard((id(module), name))
        self.parts[id(module)][3][name] = fingerprint(x)


def describe_change(before, now) -> str:
    """Describe the change of an entry of `contents`."""
    if now is MISSING or before is MISSING:
        return "was removed" if now is MISSING else "was added"
    if type(now) is bool:
        return "were added" if now else "were removed"
    values = [x[1] for x in (before, now) if type(x) is tuple and isinstance(x[0], type)
              and x[0] is not Tensor]
    if len(values) == 2 and all(type(v) in (bool, int, str, type(None)) for v in values):
        return f"changed from {values[0]!r} to {values[1]!r}"
    if type(now) is type(before) is tuple and isinstance(now[0], IdentityKey) and now[0] == before[0]:
        return "now requires a gradient" if now[1] else "no longer requires a gradient"
    return "changed"


def refresh(block: ModuleBlock) -> None:
    """Update a block's children to those of its module, and keep the settings of unchanged children."""
    for name in [n for n, child in block.children.items()
                 if block.origin._modules.get(n) is not child.origin]:
        del block.children[name]
    for name, module in block.origin._modules.items():
        if module is not None and name not in block.children:
            block.children[name] = make_block(type(block), name, f"{block.path}.", module)
    block.children = {n: block.children[n] for n in block.origin._modules if n in block.children}
    for child in block.children.values():
        refresh(child)
