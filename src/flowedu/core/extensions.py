"""Extensions: parts of the package that core calls by name, without importing them: pictures and tables, graphs of global
tensors, plans on a GPU.

    extension("plan as text")(plan)      calls the function registered as "plan as text" (in flowedu/__init__.py)

Nothing is imported before it is called. Without the extension the rest of the course runs, and the call says what is
missing.
"""
from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any

from flowedu.errors import UnsupportedError

_homes: dict[str, str] = {}
_module = functools.cache(importlib.import_module)            # which asks for a lock every time


def register_extension(homes: Mapping[str, str]) -> None:
    """{what: "module:function", or "module"}."""
    _homes.update(homes)


def extension(what: str, otherwise: Any = None) -> Any:
    """The function, class or module that does it; `otherwise` where there is none."""
    if what not in _homes:
        if otherwise is not None:
            return otherwise
        raise UnsupportedError(f"{what}: not in this package", expected="an extension beside flowedu.core that does it",
                               got="none", fix="install all of flowedu")
    module, _, name = _homes[what].partition(":")
    found = _module(module)
    return getattr(found, name) if name else found
