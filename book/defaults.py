"""What a parameter that is left out stands for, where its default is None and the docstring does not say."""
from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from enum import EnumMeta
from fnmatch import fnmatchcase
from typing import Any


def unsaid(x: Any, text: str) -> list[str]:
    """The parameters of a class or function that may be None, of which its docstring says nothing."""
    if not (inspect.isclass(x) or callable(x)) or isinstance(x, EnumMeta):
        return []                                                     # the call of an Enum looks up a member
    try:
        parameters = inspect.signature(x).parameters.values()
    except (ValueError, TypeError):
        return []
    return [p.name for p in parameters if p.default is None and not re.search(rf"\b{p.name}\b", text)]


def of(path: str, x: Any, text: str, table: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """{parameter: what it is then}, as far as the table knows: {parameter: {pattern of names: words}}."""
    said = {}
    for name in unsaid(x, text):
        rows = table.get(name, {})
        best = max((pattern for pattern in rows if fnmatchcase(path, pattern)), key=len, default="")
        if rows.get(best):
            said[name] = rows[best]
    return said
