"""Docstrings in the reference: the methods of a class, and the blocks of a text. No Sphinx is needed."""
from __future__ import annotations

import ast
import functools
import inspect
import re
from typing import NamedTuple

import names
from entries import signature


class Method(NamedTuple):
    """A method or property of a class: its name, its signature ("" for a property), and its docstring."""

    name: str
    signature: str
    text: str


def methods(path: str) -> list[Method]:
    """Return the methods of a class that have a docstring, without those that another entry has."""
    x = names.value(path)
    if not inspect.isclass(x) or names.originals().get(path, path) != path:
        return []
    found: dict[str, Method] = {}
    for base in x.__mro__:
        if base is not x and base in _classes() or not base.__module__.startswith("flowedu"):
            continue
        for name, member in vars(base).items():
            f = getattr(member, "__func__", member)
            known = name.startswith("_") or name in found or f"{path}.{name}" in names.places()
            shown, text = inspect.isroutine(f) or isinstance(f, property), inspect.getdoc(f) or ""
            if shown and not known and text.strip():
                said = "" if isinstance(f, property) else signature(f)
                found[name] = Method(name, re.sub(r"^\((self|cls)(, )?", "(", said), text)
    return sorted(found.values())


@functools.cache
def _classes() -> set[type]:
    return {x for x in map(names.value, names.places()) if inspect.isclass(x)}


def blocks(text: str) -> list[str]:
    """Return the paragraphs of a docstring. Indented paragraphs in a row are one block of code."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        inner = all(line.startswith(" ") for line in block.split("\n"))
        if inner and found and found[-1].startswith(" "):
            found[-1] += f"\n\n{block}"
        else:
            found.append(block)
    return found


def is_python(code: str) -> bool:
    """Return True if a block is Python, not a table or a formula."""
    try:
        return bool(ast.parse(code).body)
    except SyntaxError:
        return False
