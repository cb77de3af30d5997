"""Imports on first use, which keep `import flowedu` fast."""
from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping

from flowedu import aliases
from flowedu.aliases import alias
from flowedu.errors.nearest import UnknownNameError

_tables: dict[str, dict[str, str]] = {}                  # {module: names imported on first use}


def _return_unchanged(value: object) -> object:
    return value


_present: Callable = _return_unchanged                   # replaced by diagnostics/present.py


def register_presenter(f: Callable) -> None:
    """Register a function that returns the public form of an imported object."""
    global _present
    _present = f
    aliases.register_presenter(f)


def imported(module: str) -> None:
    """Wrap the functions of a module that programs import by its path instead of through `__getattr__`.

    The module calls this in its last line.
    """
    _present(sys.modules[module])


def lazy_import(module: str,
                names: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return a module's `__getattr__` and `__dir__`.

    Args:
        module: the name of the module.
        names: {name: path of the module that contains it, or of the module itself if the path ends in the
            name}. "module:other" is the object `other` of the module.
    """
    names = _tables[module] = dict(names)

    def __getattr__(name: str):
        if name not in names:
            path = alias(module)
            if name.startswith("__"):                                  # Python looks these up often
                raise AttributeError(f"module {path!r} has no attribute {name!r}")
            raise UnknownNameError(f"module {path}", name, __dir__, path.replace("flowedu", "flow", 1) + ".")
        home, _, other = names[name].partition(":")
        value = _present(importlib.import_module(home))
        if other or not home.endswith("." + name):
            value = getattr(value, other or name)
        setattr(sys.modules[module], name, value)                      # one lookup per name
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[module]), *names})

    return __getattr__, __dir__


def add_names(module: str, names: Mapping[str, object], later: Mapping[str, str]) -> None:
    """Add names of another module to one that calls `lazy_import`. Existing names do not change.

    Args:
        module: the name of the module.
        names: {name: object}.
        later: names that are imported on first use, as in `lazy_import`.
    """
    namespace = vars(importlib.import_module(module))
    for name, value in names.items():
        namespace.setdefault(name, value)
    _tables[module].update(later)
