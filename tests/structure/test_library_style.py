"""Style rules for all code: short lines, and, outside tests/ and chapters/, no nested conditional
expressions.
"""
import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/flowedu", "course", "tools", "benchmarks")
# Lines of more than 110 columns: tables, lists of names, texts, and first sentences. Lower a number, raise none.
LONG_LINES = {"src": 230, "course": 36, "tests": 143, "tools": 10, "benchmarks": 0, "book": 20,
              "chapters": 24}


def find_nested_conditionals(source: str) -> list[int]:
    """Return the lines of conditional expressions that contain another one."""
    return [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.IfExp)
            and any(isinstance(part, ast.IfExp) for part in ast.walk(node) if part is not node)]


def test_nested_conditional_expressions_are_found():
    source = "x = a if b else c\ny = a if b else (c if d else e)\nz = [a if b else c for d in e]"
    assert find_nested_conditionals(source) == [2]


def test_conditional_expressions_are_not_nested():
    nested = []
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            lines = find_nested_conditionals(file.read_text(encoding="utf-8"))
            nested += [f"{file.relative_to(ROOT)}:{line}" for line in lines]
    assert nested == [], "write if statements, or a helper"


@pytest.mark.parametrize("folder", LONG_LINES)
def test_few_lines_have_more_than_110_columns(folder):
    files = [p for p in sorted((ROOT / folder).rglob("*")) if p.suffix in (".py", ".pyx", ".pxd", ".pxi")]
    long = [f"{p.relative_to(ROOT)}:{i}" for p in files if not p.name.endswith("_pb2.py")
            for i, line in enumerate(p.read_text(encoding="utf-8").splitlines(), 1) if len(line) > 110]
    assert len(long) <= LONG_LINES[folder], f"wrap the new ones of these {len(long)} lines: {long}"
