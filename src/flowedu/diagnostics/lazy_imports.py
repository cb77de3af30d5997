"""Parts of the package that are imported at their first use, so that `import flowedu` stays fast."""
from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping

from flowedu import aliases
from flowedu.aliases import alias
from flowedu.errors.nearest import UnknownNameError

_tables: dict[str, dict[str, str]] = {}                  # {module: its names that are imported later}
_present: Callable = lambda found: found                 # diagnostics/present.py has the one that is used


def register_presenter(f: Callable) -> None:
    """f(what was imported): what its user gets."""
    global _present
    _present = f
    aliases.register_presenter(f)


def imported(module: str) -> None:
    """The last line of a module that programs import by its path, too, where no `__getattr__` is asked for it."""
    _present(sys.modules[module])


def lazy_import(module: str, names: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """A module's `__getattr__` and `__dir__`. names: {name: the module that has it, or is it if that ends in the name};
    "module:other" where it has another name there."""
    names = _tables[module] = dict(names)

    def __getattr__(name: str):
        if name not in names:
            path = alias(module)
            if name.startswith("__"):                                  # Python asks for many
                raise AttributeError(f"module {path!r} has no attribute {name!r}")
            raise UnknownNameError(f"module {path}", name, __dir__, path.replace("flowedu", "flow", 1) + ".")
        home, _, other = names[name].partition(":")
        found = _present(importlib.import_module(home))
        if other or not home.endswith("." + name):
            found = getattr(found, other or name)
        setattr(sys.modules[module], name, found)                      # asked for once
        return found

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[module]), *names})

    return __getattr__, __dir__


def add_names(module: str, names: Mapping[str, object], later: Mapping[str, str]) -> None:
    """Add names of another module to one that calls `lazy_import`. Names that it already has are kept.

    Args:
        later: names that are imported when they are used, as in `lazy_import`.
    """
    namespace = vars(importlib.import_module(module))
    for name, value in names.items():
        namespace.setdefault(name, value)
    _tables[module].update(later)
