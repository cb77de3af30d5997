"""Places of public names in the reference. Each block ```{names} of book/reference/*.md is a section.

`linalg.*` in a block stands for every public name directly below `linalg` that no block names.
"""
from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path
from typing import Any

import flowedu as flow

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "book" / "reference").glob("*.md"))
# what the engine keeps in a tensor, no part of what users call
INSIDE = set("""address check_meta_consistency epoch global_layout has_memory inference link node out_index
    parts rare spec peek refresh_view shares_block symbol tracked uniform""".split())
BLOCK = re.compile(r"^```\{names\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@functools.cache
def public() -> tuple[str, ...]:
    """The names that tests/public_names.txt keeps, and those of Tensor."""
    methods = [f"Tensor.{name}" for name in sorted(dir(flow.Tensor)) if name[0] != "_" and name not in INSIDE]
    return (*(ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").split(), *methods)


@functools.cache
def written() -> dict[str, list[list[str]]]:
    """{page: the words of each of its blocks}."""
    return {p.stem: [b.split() for b in BLOCK.findall(p.read_text(encoding="utf-8"))] for p in PAGES}


def listed(words: list[str]) -> list[str]:
    """The names of a block, in its order, those of a `*` in that of the alphabet."""
    said = {w for blocks in written().values() for b in blocks for w in b}
    found = []
    for word in words:
        home, _, last = word.rpartition(".")
        found += [word] if last != "*" else sorted(
            (n for n in public() if n.rpartition(".")[0] == home and n not in said),
            key=lambda n: (n.lower(), n))
    return found


@functools.cache
def places() -> dict[str, list[str]]:
    """{name: the pages it stands on}."""
    found: dict[str, list[str]] = {}
    for page, blocks in written().items():
        for words in blocks:
            for name in listed(words):
                found.setdefault(name, []).append(page)
    return found


def value(path: str) -> Any:
    """What the name stands for; a method as its class has it."""
    found: Any = flow
    for name in path.split("."):
        found = getattr(found, name)
    later = getattr(found, "later", None) if callable(found) and not isinstance(found, type) else None
    # tensor/global_tensors/functions.py: imported when it is first called
    if isinstance(later, str):
        module, _, name = later.rpartition(".")
        return getattr(importlib.import_module(f"flowedu.{module}"), name)
    return found


@functools.cache
def originals() -> dict[str, str]:
    """Return {name: first name of the same object}: the one it was defined with, else the shortest."""
    same: dict[int, list[str]] = {}
    for name in places():
        x = value(name)
        x = getattr(x, "function", x) if type(x).__name__ == "PublicFunction" and x.choice is None else x
        if callable(x):
            same.setdefault(id(x), []).append(name)
    first = {}
    for names in same.values():
        own = getattr(value(names[0]), "__name__", "")
        best = min(names, key=lambda n: (n.rpartition(".")[2] != own, n.startswith("Tensor."), n.count("."),
                                         len(n), n))
        first.update(dict.fromkeys(names, best))
    return first
