"""Rule: every name that a file imports from the library or the course exists, also inside functions.

Imports inside functions run late, so a renamed function would otherwise be noticed in the first call.
"""
import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "course", "tools", "benchmarks", "chapters", "book")
LEFT_OUT = ("wrong", "right", "stubs", "programs")          # parts of files, and other people's programs


def imported_names(source: str) -> set[tuple[str, str]]:
    """Return (module, name) of each `from flowedu... import name`, relative imports excepted."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)
             and not node.level and node.module.partition(".")[0] in ("flowedu", "flowedu_course")]
    return {(node.module, name.name) for node in nodes for name in node.names if name.name != "*"}


def exists(module: str, name: str) -> bool:
    """Return True if the module has this attribute or submodule."""
    home = importlib.import_module(module)
    if hasattr(home, name):
        return True
    return hasattr(home, "__path__") and importlib.util.find_spec(f"{module}.{name}") is not None


def test_missing_names_are_found():
    names = imported_names("from os import no\ndef f():\n    from flowedu.errors import FlowError, Nothing")
    assert names == {("flowedu.errors", "FlowError"), ("flowedu.errors", "Nothing")}
    assert [name for name in sorted(names) if not exists(*name)] == [("flowedu.errors", "Nothing")]
    assert exists("flowedu", "tensor") and exists("flowedu.tensor.indexing", "sort_and_search")


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_imported_name_exists(folder):
    files = [p for p in sorted((ROOT / folder).rglob("*.py")) if not {*p.parts} & {*LEFT_OUT}]
    assert files
    missing = {}
    for file in files:
        names = imported_names(file.read_text(encoding="utf-8"))
        if unknown := sorted(f"{module}.{name}" for module, name in names if not exists(module, name)):
            missing[str(file.relative_to(ROOT))] = unknown
    assert missing == {}
