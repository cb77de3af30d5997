"""Positions and lines of objects in a source, found with `ast`, so that sources need no markers."""
from __future__ import annotations

import ast
import builtins
import contextlib
import sys
import textwrap
from collections.abc import Iterable, Sequence

from flowedu.errors import ArgumentError


def function(source: str, path: str) -> ast.FunctionDef:
    """Return the def of a qualified name. Raises ArgumentError if it does not exist."""
    node: ast.AST = ast.parse(source)
    for name in path.split("."):
        node = next((n for n in node.body if getattr(n, "name", None) == name), None)
        if node is None:
            raise ArgumentError(f"there is no {path} in this file", got=name)
    return node


def _assigned(source: str, path: str) -> ast.AST:
    """Return the statement that makes a record, such as `sigmoid = unary(...)`."""
    name = path.split(".")[0]
    for n in ast.parse(source).body:
        if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in n.targets):
            return n
    raise ArgumentError(f"there is no {name} = ... in this file", got=path)


def is_function(source: str, path: str) -> bool:
    """Return True for a function or a method, and False for a field of a record."""
    try:
        return isinstance(function(source, path), ast.FunctionDef)
    except ArgumentError:
        return False


def lines(source: str, path: str) -> list[str]:
    """Return the lines of a function, or of the record that a field belongs to."""
    try:
        node = function(source, path)
    except ArgumentError:
        node = _assigned(source, path)
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return source.splitlines()[first - 1:node.end_lineno]


def body_lines(source: str, path: str) -> int:
    """Count a function's lines without docstring and blank lines, or the lines of a field's record."""
    source_lines = lines(source, path)
    node = ast.parse(textwrap.dedent("\n".join(source_lines))).body[0]
    if not isinstance(node, ast.FunctionDef):
        return len(source_lines)
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return sum(bool(line.strip()) for line in source_lines[body[0].lineno - 1:])


def same_code(one: str, other: str, name: str) -> bool:
    """Return True if a function is the same in two sources, except for comments, spaces, and docstrings."""
    def body(text: str) -> str:
        node = function(text, name)
        return ast.dump(ast.Module(node.body[ast.get_docstring(node) is not None:], []))
    try:
        return body(one) == body(other)
    except ArgumentError:                          # not defined with def
        return False


# ---- names in scope of an answer
def names_at_hand(source: str, paths: Sequence[str]) -> list[str]:
    """Return the module-level names that the library's answer uses, without private names."""
    own = {path.partition(".")[0] for path in paths}
    there = {getattr(n, "asname", None) or n.name.partition(".")[0] if isinstance(n, ast.alias)
             else getattr(n, "name", "")
             or getattr(n, "id", "") for top in ast.parse(source).body for n in _makers(top)}
    used: set[str] = set()
    for path in paths:
        with contextlib.suppress(ArgumentError):   # a field of a record
            used |= {n.id for top in function(source, path).body for n in ast.walk(top)
                     if isinstance(n, ast.Name)}
    return sorted(n for n in used & there - own if not n.startswith("_"))


def _makers(top: ast.stmt) -> list[ast.AST]:
    """Return the nodes of a top-level statement that define names."""
    if isinstance(top, ast.Import | ast.ImportFrom):
        return list(top.names)
    if isinstance(top, ast.FunctionDef | ast.ClassDef):
        return [top]
    return [t for t in getattr(top, "targets", [getattr(top, "target", None)]) if isinstance(t, ast.Name)]


def free_names(text: str) -> set[str]:
    """Return the names that a file uses and does not define, also in annotations that are strings."""
    used: set[str] = set()
    bound = set(dir(builtins))
    trees = [ast.parse(text)]
    while trees:
        for n in ast.walk(trees.pop()):
            if isinstance(n, ast.Name):
                (used if isinstance(n.ctx, ast.Load) else bound).add(n.id)
            elif isinstance(n, ast.alias):
                bound.add((n.asname or n.name).partition(".")[0])
            elif isinstance(n, ast.FunctionDef | ast.ClassDef):
                bound.add(n.name)
            elif isinstance(n, ast.arg):
                bound.add(n.arg)
            hint = getattr(n, "annotation", None) or getattr(n, "returns", None)
            if isinstance(hint, ast.Constant) and isinstance(hint.value, str):
                trees.append(ast.parse(hint.value))
    return used - bound


def import_lines(source: str, module: str, names: Iterable[str]) -> list[str]:
    """Return statements that import names of a module, each from the module where `source` gets it."""
    places = {}
    tops = ast.parse(source).body
    inside = [n for choice in tops if isinstance(choice, ast.If) for n in choice.body]       # TYPE_CHECKING
    for top in [*tops, *inside]:
        if isinstance(top, ast.Import):
            places |= {a.asname or a.name.partition(".")[0]: ("", ast.unparse(a)) for a in top.names}
        elif isinstance(top, ast.ImportFrom) and not top.level:
            places |= {a.asname or a.name: (str(top.module), ast.unparse(a)) for a in top.names}
        else:
            places |= {getattr(n, "name", "") or n.id: (module, getattr(n, "name", "") or n.id)
                       for n in _makers(top) if not isinstance(n, ast.alias)}
    chosen: dict[str, set[str]] = {}
    for name in names:
        if name in places:
            chosen.setdefault(places[name][0], set()).add(places[name][1])
    plain = [f"import {part}" for part in sorted(chosen.pop("", ()))]
    own = [f"from {place} import {', '.join(sorted(parts))}" for place, parts in sorted(chosen.items())]
    return [*plain, *sorted(own, key=lambda t: t.split()[1].partition(".")[0] not in sys.stdlib_module_names)]
