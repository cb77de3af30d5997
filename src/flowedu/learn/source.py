"""Positions and lines of objects in source files, found with `ast`, so that sources need no markers."""
from __future__ import annotations

import ast
import contextlib
import importlib.util
import textwrap
from collections.abc import Sequence
from pathlib import Path

from flowedu.errors import ArgumentError

HOME = Path(__file__).resolve().parents[3]         # of a checkout


def file_of(module: str) -> Path:
    """Of a dotted name; or, with a slash in it, of a path from the top of the checkout."""
    if "/" in module:
        return HOME / module
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ArgumentError(f"there is no module {module}", got=module)
    return Path(spec.origin)


def around(hole) -> Path:
    """The file that an answer is written into: the library's; of a kernel, whose answer is not in a student's tree, what is
    handed out."""
    return hole.folder / hole.stub if hole.kind == "kernel" else file_of(hole.module)


def function(source: str, path: str) -> ast.FunctionDef:
    """The def of a qualified name. Raises ArgumentError: there is none."""
    node: ast.AST = ast.parse(source)
    for name in path.split("."):
        node = next((n for n in node.body if getattr(n, "name", None) == name), None)
        if node is None:
            raise ArgumentError(f"there is no {path} in this file", got=name)
    return node


def _assigned(source: str, path: str) -> ast.AST:
    """The statement that makes a record: `sigmoid = unary(...)`."""
    name = path.split(".")[0]
    for n in ast.parse(source).body:
        if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in n.targets):
            return n
    raise ArgumentError(f"there is no {name} = ... in this file", got=path)


def is_function(module: str, path: str) -> bool:
    """Whether it is a function or a method, not a field of a record."""
    try:
        return isinstance(function(file_of(module).read_text(encoding="utf-8"), path), ast.FunctionDef)
    except ArgumentError:
        return False


def lines(module: str, path: str) -> list[str]:
    """The library's own lines: of a function, or of the record that a field belongs to."""
    text = file_of(module).read_text(encoding="utf-8")
    try:
        node = function(text, path)
    except ArgumentError:
        node = _assigned(text, path)
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return text.splitlines()[first - 1:node.end_lineno]


def body_lines(module: str, path: str) -> int:
    """How many lines a function's body has, without docstring and blank lines; of a record's field, those of the record."""
    found = lines(module, path)
    node = ast.parse(textwrap.dedent("\n".join(found))).body[0]
    if not isinstance(node, ast.FunctionDef):
        return len(found)
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return sum(bool(line.strip()) for line in found[body[0].lineno - 1:])


def same_code(one: str, other: str, name: str) -> bool:
    """Whether a function is the same in two sources, but for comments, spaces and docstrings."""
    def body(text: str) -> str:
        node = function(text, name)
        return ast.dump(ast.Module(node.body[ast.get_docstring(node) is not None:], []))
    try:
        return body(one) == body(other)
    except ArgumentError:                          # made in another way than by def
        return False


# ---- what is at hand there
def names_at_hand(source: str, paths: Sequence[str]) -> list[str]:
    """What the file around an answer offers it, of all that the library's own lines use: imports, functions, constants."""
    own = {path.partition(".")[0] for path in paths}
    there = {getattr(n, "asname", None) or n.name.partition(".")[0] if isinstance(n, ast.alias) else getattr(n, "name", "")
             or getattr(n, "id", "") for top in ast.parse(source).body for n in _makers(top)}
    used: set[str] = set()
    for path in paths:
        with contextlib.suppress(ArgumentError):   # a field of a record
            used |= {n.id for top in function(source, path).body for n in ast.walk(top) if isinstance(n, ast.Name)}
    return sorted(n for n in used & there - own if not n.startswith("_"))


def _makers(top: ast.stmt) -> list[ast.AST]:
    """What of a statement at the top of a file makes names."""
    if isinstance(top, ast.Import | ast.ImportFrom):
        return list(top.names)
    if isinstance(top, ast.FunctionDef | ast.ClassDef):
        return [top]
    return [t for t in getattr(top, "targets", [getattr(top, "target", None)]) if isinstance(t, ast.Name)]
