"""Aliases: short import paths of modules that are deeper in the package.

`import flowedu.typing` imports flowedu/oneflow04/typing.py.

An alias is the same module object under a second name, so a module is loaded only once, when it is first
used. Code inside the package imports a module from its own location.
"""
from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

# {public path below flowedu: location of the module or folder}
ALIASES = {
    "__main__": "show.about",
    "advanced": "oneflow04.advanced",
    "amp": "nn.amp",
    "array_api": "tensor.array_api",
    "backends": "cuda.backends",
    "boxing": "distributed.boxing",
    "comm": "distributed.comm",
    "core.record": "oneflow04.record",
    "custom": "oneflow04.custom",
    "data": "oneflow04.data",
    "deprecated": "oneflow04.deprecated",
    "distribute": "oneflow04.distribute",
    "env": "oneflow04.job.env",
    "experimental": "oneflow04.experimental",
    "fft": "tensor.fft",
    "func": "autograd.func",
    "layers": "oneflow04.layers",
    "linalg": "oneflow04.linalg",
    "losses": "oneflow04.losses",
    "math": "oneflow04.math",
    "optimizer": "oneflow04.optimizer",
    "profiler": "utils.profiler",
    "random": "oneflow04.random",
    "regularizers": "oneflow04.regularizers",
    "scope": "oneflow04.job.scope",
    "sysconfig": "oneflow04.sysconfig",
    "typing": "oneflow04.typing",
    "unittest": "oneflow04.unittest",
}
_PACKAGE = __name__.rpartition(".")[0]


def _return_unchanged(module: object) -> object:
    return module


# function called with a module that users import (diagnostics/present.py)
_present: Callable = _return_unchanged


def register_presenter(f: Callable) -> None:
    """Register a function f(module), which is called with every module that is imported by an alias."""
    global _present
    _present = f


def _replace_prefix(path: str, table: dict[str, str]) -> str | None:
    """Replace the longest beginning of the path that `table` lists; None if it lists none."""
    if not path.startswith(_PACKAGE + "."):
        return None
    head, rest = path[len(_PACKAGE) + 1:], ""
    while head and head not in table:
        head, _, last = head.rpartition(".")
        rest = f".{last}{rest}"
    return f"{_PACKAGE}.{table[head]}{rest}" if head else None


def home(path: str) -> str | None:
    """Return the location of the module of a public path, such as flowedu.oneflow04.data for flowedu.data.

    Return None if the path is not an alias.
    """
    return _replace_prefix(path, ALIASES)


def alias(module: str) -> str:
    """Return the path by which users import a module: the inverse of `home`."""
    return _replace_prefix(module, {there: path for path, there in ALIASES.items()}) or module


class _Loader:
    """Loads an alias: the module that lives at `spec`."""

    def __init__(self, spec: ModuleSpec):
        self.spec = spec

    def create_module(self, spec: ModuleSpec):
        return importlib.import_module(self.spec.name)

    def exec_module(self, module) -> None:
        module.__spec__ = self.spec                    # the import system has put the alias's there
        _present(module)

    def get_code(self, name: str):                     # for python -m
        loader: Any = self.spec.loader
        return loader.get_code(self.spec.name)


class _Finder:
    """First import finder; Python's own finder would load flowedu.data.mnist again as another module."""

    @staticmethod
    def find_spec(path: str, folders=None, target=None) -> ModuleSpec | None:
        there = home(path)
        spec = importlib.util.find_spec(there) if there else None
        if spec is None:
            return None
        # It has the methods of importlib.abc.Loader, whose import takes long.
        loader: Any = _Loader(spec)
        return ModuleSpec(path, loader, origin=spec.origin,
                          is_package=spec.submodule_search_locations is not None)


sys.meta_path.insert(0, _Finder)
