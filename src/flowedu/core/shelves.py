"""What the course leaves to the shelves beside it, by name: pictures and tables, graphs of global tensors, plans on a GPU.

    shelf("plan as text")(plan)      calls what `register_shelf` was told of "plan as text" (flowedu/__init__.py tells it)

Nothing is imported before it is called. Without the shelf the rest of the course runs, and the call says what is missing.
"""
from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from flowedu.errors import UnsupportedError

_homes: dict[str, str] = {}


def register_shelf(homes: Mapping[str, str]) -> None:
    """{what: "module:function", or "module"}."""
    _homes.update(homes)


def shelf(what: str, otherwise: Any = None) -> Any:
    """The function, class or module that does it; `otherwise` where there is none."""
    if what not in _homes:
        if otherwise is not None:
            return otherwise
        raise UnsupportedError(f"{what}: not in this package", expected="a shelf beside flowedu.core that does it",
                               got="none", fix="install all of flowedu")
    module, _, name = _homes[what].partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found
