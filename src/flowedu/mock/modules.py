"""Mocked modules and their import hook. torch.nn is flowedu.nn plus internal names that programs import."""
from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import types
from collections import Counter
from collections.abc import Iterable
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from typing import Any

from flowedu.aliases import home
from flowedu.diagnostics.present import present
from flowedu.errors.nearest import UnknownNameError
from flowedu.mock.names import COMPANIONS, HOUSE, INSIDES, ROOTS, TABLES, VERSIONS

MISSING: Counter[str] = Counter()                        # {missing name: number of uses}
OLD = "compatible.single_client"
FEW = 12                                                 # errors list the names of a module with so few
OUT = "docs/missing.md lists what flowedu does not have"


def wanted() -> dict[str, int]:
    """Return {missing name: number of uses}."""
    return dict(MISSING)


class NoSuchModule(ModuleNotFoundError):
    """Error for a missing module: `import torch.fft`, `from torchvision.models import vit_b_16`.

    `name` is the package, because with the whole path Python would only report "cannot import name".
    """

    def __init__(self, path: str):
        owner, _, last = path.rpartition(".")
        module = sys.modules.get(owner)
        names = module._suggestions() if isinstance(module, Mocked) else []
        error = UnknownNameError(owner, last, lambda: names, owner + ".")
        lines = [f"No module named {path!r} in flowedu, which stands in for {path.partition('.')[0]}; {OUT}",
                f"  at:       {error.at}", f"  fix:      {error.fix}"]
        if 0 < len(names) <= FEW:
            lines.insert(2, f"  expected: of {owner}: {', '.join(names)}")
        super().__init__("\n".join(lines), name=path.partition(".")[0], path=path)


class Mocked(types.ModuleType):
    """Module torch.x.y with the names of flowedu.x.y and of its modules in INSIDES."""

    def __init__(self, path: str, sources: tuple[types.ModuleType, ...]):
        super().__init__(path, sources[0].__doc__ if sources else None)
        vars(self)["_sources"] = sources

    def __getattr__(self, name: str):
        path = self.__name__
        if name.startswith("__") and name != "__version__":
            for source in self._sources:
                if name in vars(source):
                    return vars(source)[name]
            raise AttributeError(f"module {path!r} has no attribute {name!r}")
        below = f"{path}.{name}"
        if _exists(below) and not _is_not_module(self._sources, name, bool(_insides(below))):
            return importlib.import_module(below)
        for source in self._sources:
            try:
                value = getattr(source, name)
            except AttributeError:
                continue
            if _is_ours(value) or name in self._names_to_hide():
                if not self._shows(name):
                    continue
                value = importlib.import_module(below)
            vars(self)[name] = value
            return value
        MISSING[below] += 1
        raise UnknownNameError(f"{path}, for which flowedu stands in,", name, self._suggestions, path + ".")

    def _suggestions(self) -> list[str]:
        """Return the public names to suggest for a missing name, without imported standard modules."""
        shown = {n for s in self._sources for n in vars(s).get("__all__") or dir(s)
                 if not _is_external(vars(s).get(n))}
        return sorted(n for n in shown - self._names_to_hide() if not n.startswith("_"))

    def __dir__(self) -> list[str]:
        names = set(vars(self))
        for source in self._sources:
            names |= {n for n in dir(source) if not _is_ours(vars(source).get(n)) or self._shows(n)}
        return sorted(names - self._names_to_hide() - {"_sources"})

    def _names_to_hide(self) -> set[str]:
        """Return the names to hide: internal packages, for the top-level module."""
        return HOUSE if any(source.__name__ == "flowedu" for source in self._sources) else set()

    def _shows(self, name: str) -> bool:
        """Return True if flowedu's module of this name is public, not an internal import of a file."""
        return name not in self._names_to_hide() and _exists(f"{self.__name__}.{name}")

    @property
    def __all__(self) -> list[str]:                      # from torch import *
        return [name for name in dir(self) if not name.startswith("_")]


def _is_ours(value: object) -> bool:
    return isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] == "flowedu"


def _is_external(value: object) -> bool:
    """Return True for values of the standard library and for errors of flowedu."""
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return f"{home}".partition(".")[0] in sys.stdlib_module_names or f"{home}".startswith("flowedu.errors")


def _is_not_module(sources: Iterable[types.ModuleType], name: str, listed: bool) -> bool:
    """Return True if the first source with `name` has no module there: utils.data.random_split, optim.sgd.

    listed: names.py has a module for this path, which precedes flowedu's own object (backends.cuda).
    """
    for source in sources:
        value = vars(source).get(name)
        if value is not None and not (listed and not source.__name__.startswith("flowedu.mock")):
            return not isinstance(value, types.ModuleType)
    return False


def _below(path: str) -> str:
    """Convert a mocked path: torch.nn.init -> nn.init, torchvision.models -> vision.models.

    OneFlow 0.5's path of 0.4's names is removed: oneflow.compatible.single_client.nn -> nn.
    """
    root, _, below = path.partition(".")
    below = ".".join(filter(None, (ROOTS[root], below)))
    return below[len(OLD):].lstrip(".") if below == OLD or below.startswith(OLD + ".") else below


def _find_module(below: str) -> types.ModuleType | None:
    """Return flowedu's public module at a path, or None."""
    if below.partition(".")[0] in HOUSE:
        return None
    name = f"flowedu.{below}" if below else "flowedu"
    if name in sys.modules:
        return sys.modules[name]
    try:
        spec = importlib.util.find_spec(home(name) or name)
    except ModuleNotFoundError:                           # the parent is not a package
        spec = None
    if spec:
        return importlib.import_module(name)
    parent, _, last = name.rpartition(".")                # a module under another name in its parent
    value = vars(sys.modules[parent]).get(last) if parent in sys.modules else None
    return value if isinstance(value, types.ModuleType) and value.__name__.startswith("flowedu") else None


def flowedus_name(path: str) -> str | None:
    """Return the name of flowedu's module for the path of a mocked module, or None if it is missing."""
    if path.partition(".")[0] not in ROOTS:
        return None
    module = _find_module(_below(path))
    return None if module is None else module.__name__


def _tables(path: str) -> tuple[dict[str, str], ...]:
    return TABLES.get(path.partition(".")[0], (INSIDES,))


def _insides(path: str) -> list[str]:
    """Return the mock's modules for this path, in order of precedence."""
    return [table[_below(path)] for table in _tables(path) if _below(path) in table]


def _load(path: str) -> types.ModuleType:
    """Return a module of the mock, or the one of a table ("flowedu.mock.insides.tables:cudnn")."""
    path, _, table = path.partition(":")
    module = importlib.import_module(path)
    return present(module.MODULES[table] if table else module)   # wraps its functions for error reports


def _exists(path: str) -> bool:
    below = _below(path)
    return bool(_insides(path)) or _find_module(below) is not None or \
        any(p.startswith(below + ".") for table in _tables(path) for p in table)


def _is_real_package(root: str) -> bool:
    """Return True if another importer finds the package, and it has no compiled modules.

    Compiled modules are linked to the package that flowedu replaces. Once a part of the package is imported,
    the other parts come from the same place.
    """
    if root in sys.modules:
        return not isinstance(sys.modules[root], Mocked)
    for finder in sys.meta_path:
        spec = None if isinstance(finder, Finder) else finder.find_spec(root, None)
        if spec is not None and spec.origin:              # a folder without __init__.py has no origin
            folders = spec.submodule_search_locations or ()
            return not any(name.endswith(tuple(EXTENSION_SUFFIXES))
                           for folder in folders for name in os.listdir(folder))
    return False


class Finder:
    """Import hook for torch and its submodules."""

    def __init__(self, names: tuple[str, ...]):
        self.names = names

    def find_spec(self, path: str, folders=None, target=None) -> ModuleSpec | None:
        root = path.partition(".")[0]
        if root not in self.names or root in COMPANIONS and _is_real_package(root):
            return None
        if _exists(path):
            loader: Any = self            # it has the methods of a loader
            return ModuleSpec(path, loader, is_package=True)
        MISSING[path] += 1
        raise NoSuchModule(path)

    def create_module(self, spec: ModuleSpec) -> Mocked:
        below = _below(spec.name)
        sources = []
        for insides in _insides(spec.name):
            sources.append(_load(insides))
        real = _find_module(below)
        if real is not None and real not in sources:
            sources.append(real)
        module = Mocked(spec.name, tuple(sources))
        if spec.name in VERSIONS:
            vars(module)["__version__"] = VERSIONS[spec.name]
        return module

    def exec_module(self, module: Mocked) -> None:
        pass
