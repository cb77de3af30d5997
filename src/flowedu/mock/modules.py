"""Mocked modules and their import hook: torch.nn is flowedu.nn plus the internal names of torch that programs import."""
from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections import Counter
from collections.abc import Iterable
from importlib.machinery import ModuleSpec

from flowedu.aliases import home
from flowedu.diagnostics.lazy_imports import imported
from flowedu.errors.nearest import UnknownNameError
from flowedu.mock.names import HOUSE, INSIDES, ROOTS, TORCHS, VERSIONS

MISSING: Counter[str] = Counter()                        # missing names that were used
OLD = "compatible.single_client"
FEW = 12                                                 # a module with at most so many names lists all
OUT = "docs/missing.md lists what flowedu does not have"


def wanted() -> dict[str, int]:
    """Return {missing name that was used: how often}."""
    return dict(MISSING)


class NoSuchModule(ModuleNotFoundError):
    """`import torch.fft`, `from torchvision.models import vit_b_16`: there is nothing of that name.

    Python would say only "cannot import name" of the second, if `name` were the whole path: it is the package's.
    """

    def __init__(self, path: str):
        owner, _, last = path.rpartition(".")
        module = sys.modules.get(owner)
        names = module._told() if isinstance(module, Mocked) else []
        error = UnknownNameError(owner, last, lambda: names, owner + ".")
        said = [f"No module named {path!r} in flowedu, which stands in for {path.partition('.')[0]}; {OUT}",
                f"  at:       {error.at}", f"  fix:      {error.fix}"]
        if 0 < len(names) <= FEW:
            said.insert(2, f"  expected: of {owner}: {', '.join(names)}")
        super().__init__("\n".join(said), name=path.partition(".")[0], path=path)


class Mocked(types.ModuleType):
    """A module torch.x.y whose names are those of flowedu.x.y and of what INSIDES has for x.y."""

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
        if _there(below) and not _plain(self._sources, name, bool(_insides(below))):
            return importlib.import_module(below)
        for source in self._sources:
            try:
                value = getattr(source, name)
            except AttributeError:
                continue
            if _ours(value) or name in self._hidden():
                if not self._shows(name):
                    continue
                value = importlib.import_module(below)
            vars(self)[name] = value
            return value
        MISSING[below] += 1
        raise UnknownNameError(f"{path}, for which flowedu stands in,", name, self._told, path + ".")

    def _told(self) -> list[str]:
        """Return the public names to suggest for a missing one, without a file's own imports."""
        shown = {n for s in self._sources for n in vars(s).get("__all__") or dir(s) if not _brought(vars(s).get(n))}
        return sorted(n for n in shown - self._hidden() if not n.startswith("_"))

    def __dir__(self) -> list[str]:
        names = {name for source in self._sources for name in dir(source)
                 if not _ours(vars(source).get(name)) or self._shows(name)} | set(vars(self))
        return sorted(names - self._hidden() - {"_sources"})

    def _hidden(self) -> set[str]:
        """Names that a module does not show: of flowedu's own top."""
        return HOUSE if any(source.__name__ == "flowedu" for source in self._sources) else set()

    def _shows(self, name: str) -> bool:
        """Whether flowedu's module of this name is one that programs know, not one that a file imports for itself."""
        return name not in self._hidden() and _there(f"{self.__name__}.{name}")

    @property
    def __all__(self) -> list[str]:                      # from torch import *
        return [name for name in dir(self) if not name.startswith("_")]


def _ours(value: object) -> bool:
    return isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] == "flowedu"


def _brought(value: object) -> bool:
    """Whether it is of Python or an error of ours."""
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return f"{home}".partition(".")[0] in sys.stdlib_module_names or f"{home}".startswith("flowedu.errors")


def _plain(sources: Iterable[types.ModuleType], name: str, listed: bool) -> bool:
    """Whether the first that has the name has something else than a module by it: utils.data.random_split, optim.sgd.

    listed: names.py has a module of this path, which is before what flowedu itself has there (backends.cuda).
    """
    for source in sources:
        found = vars(source).get(name)
        if found is not None and not (listed and not source.__name__.startswith("flowedu.mock")):
            return not isinstance(found, types.ModuleType)
    return False


def _below(path: str) -> str:
    """torch.nn.init -> nn.init, torchvision.models -> vision.models; how OneFlow since 0.5 spells 0.4,
    compatible.single_client.nn -> nn."""
    root, _, below = path.partition(".")
    below = ".".join(filter(None, (ROOTS[root], below)))
    return below[len(OLD):].lstrip(".") if below == OLD or below.startswith(OLD + ".") else below


def _real(below: str) -> types.ModuleType | None:
    """flowedu's module of that path; None: it has none, or none that users know."""
    if below.partition(".")[0] in HOUSE:
        return None
    name = f"flowedu.{below}" if below else "flowedu"
    if name in sys.modules:
        return sys.modules[name]
    try:
        spec = importlib.util.find_spec(home(name) or name)
    except ModuleNotFoundError:                           # its parent is not a package
        spec = None
    if spec:
        return importlib.import_module(name)
    parent, _, last = name.rpartition(".")                # a module that its parent knows by another name
    found = vars(sys.modules[parent]).get(last) if parent in sys.modules else None
    return found if isinstance(found, types.ModuleType) and found.__name__.startswith("flowedu") else None


def _tables(path: str) -> tuple[dict[str, str], ...]:
    return (TORCHS, INSIDES) if path.partition(".")[0] == "torch" else (INSIDES,)


def _insides(path: str) -> list[str]:
    """Return the mock's modules for this path, in order of precedence."""
    return [table[_below(path)] for table in _tables(path) if _below(path) in table]


def _there(path: str) -> bool:
    below = _below(path)
    return bool(_insides(path)) or _real(below) is not None or \
        any(p.startswith(below + ".") for table in _tables(path) for p in table)


class Finder:
    """Import hook for torch and its submodules."""

    def __init__(self, names: tuple[str, ...]):
        self.names = names

    def find_spec(self, path: str, folders=None, target=None) -> ModuleSpec | None:
        if path.partition(".")[0] not in self.names:
            return None
        if _there(path):
            return ModuleSpec(path, self, is_package=True)
        MISSING[path] += 1
        raise NoSuchModule(path)

    def create_module(self, spec: ModuleSpec) -> Mocked:
        below = _below(spec.name)
        sources = []
        for insides in _insides(spec.name):
            sources.append(importlib.import_module(insides))
            imported(insides)                             # errors of wrong calls are reported as flowedu's
        real = _real(below)
        if real is not None and real not in sources:
            sources.append(real)
        module = Mocked(spec.name, tuple(sources))
        if spec.name in VERSIONS:
            vars(module)["__version__"] = VERSIONS[spec.name]
        return module

    def exec_module(self, module: Mocked) -> None:
        pass
