"""Lookup of the optional parts of the package: the `__getattr__` of core/extensions.py."""
from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from flowedu.errors import UnsupportedError

_import = functools.cache(importlib.import_module)        # import_module itself takes a lock on each call


def make_lookup(homes: Mapping[str, str], types: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that imports each part when it is used.

    Args:
        homes: {name: "module:function" or "module"} of the parts that the package contains.
        types: the annotations of the module. A missing part is None if its type includes None; otherwise the
            lookup raises UnsupportedError.
    """
    def look_up(name: str) -> Any:
        if name in homes:
            module, _, function = homes[name].partition(":")
            return getattr(_import(module), function) if function else _import(module)
        if name not in types:
            raise AttributeError(f"flowedu.core.extensions declares no attribute {name!r}")
        if types[name].endswith("| None"):
            return None
        raise UnsupportedError(f"{name}: not in this package",
                               expected="an extension of flowedu.core that does it",
                               got="none", fix="install all of flowedu")

    return look_up
