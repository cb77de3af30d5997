"""Sources with holes: the lines between BEGIN YOUR TURN and END YOUR TURN are a stub, all other lines are unchanged.

    blank(sources, hole)        {file: text} with a hole's own lines taken out
    own_lines(holes)            lines that must not occur anywhere in a tree that is handed out
"""
from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from flowedu.core.ops.record import parameters
from flowedu.errors import ArgumentError
from flowedu.learn import kernels, source
from flowedu.learn.swap import plain, target

LONG = 20                                          # a shorter line may be anybody's
TURN = "your turn"


class Cut(NamedTuple):
    """What stands between two places of a file, (line, byte) each, becomes `text`. own: it is the answer."""

    file: Path
    start: tuple[int, int]
    end: tuple[int, int]
    text: str
    own: bool


def module_of(hole):
    return importlib.import_module(hole.module)


def function_of(hole, path: str) -> Callable:
    """What the library runs there: the function itself, or that of a record's field."""
    owner, field, key = target(module_of(hole), path)
    found = inspect.getattr_static(owner, field) if not hasattr(owner, "rules") else (
        owner.rules[key].f if key else getattr(owner, field))
    return plain(found) if callable(found) or isinstance(found, property) else found


def cuts(hole) -> list[Cut]:
    """Where a hole's own lines stand, and what stands there afterwards. Raises ArgumentError: they cannot be found.

    Of a kernel none: its source is needed to build the library."""
    found = []
    if hole.kind == "kernel":
        return found
    for path, name, given in zip(hole.objects, hole.functions, hole.parameters or [None] * len(hole.objects)):
        f = function_of(hole, path)
        if not inspect.isfunction(f):
            found += _of_data(hole, path)
            continue
        file = Path(f.__code__.co_filename)
        tree = ast.parse(file.read_text(encoding="utf-8"))
        node = _node(tree, f.__code__)
        found += _of_def(hole, file, node, name) if isinstance(node, ast.FunctionDef) else \
            _of_lambda(hole, file, tree, node, path, name, given)
    return found


def _node(tree: ast.Module, code) -> ast.FunctionDef | ast.Lambda:
    """The def or lambda that became a code object."""
    starts = {(line, column) for line, _, column, _ in code.co_positions() if line and column is not None}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if node.name == code.co_name and first == code.co_firstlineno:
                return node
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            inside = (node.body.lineno, node.body.col_offset), (node.body.end_lineno, node.body.end_col_offset)
            if all(inside[0] <= at <= inside[1] for at in starts - {(node.lineno, 0)}):      # entering has the column 0
                return node
    raise ArgumentError(f"{code.co_filename}:{code.co_firstlineno}: there is no function", got=code.co_name)


def _own_body(node: ast.FunctionDef) -> list[ast.stmt]:
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


def stub_body(hole, name: str) -> list[str]:
    """The lines of a body that stands in for the answer, without indentation: wasteful, plain, or one that raises."""
    stand_in = hole.stub or hole.plain
    if not stand_in:
        return [f'raise NotImplementedError("{hole.id}: {TURN}")']
    text = (hole.folder / stand_in).read_text(encoding="utf-8")
    tree, out = ast.parse(text), []
    for node in tree.body:                         # what the stub brings along goes inside
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = _own_body(node)[0].lineno
            lines = textwrap.dedent("\n".join(text.splitlines()[first - 1:node.end_lineno])).splitlines()
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            out += text.splitlines()[node.lineno - 1:node.end_lineno]
    return out + lines


def answer_text(hole) -> str:
    """The library's answer as a work file would have it."""
    out = []
    for path, name in zip(hole.objects, hole.functions):
        f = function_of(hole, path)
        if not inspect.isfunction(f):
            word = _word(hole, path)[1]
            out.append(f"def {name}():\n    return {ast.unparse(word.value) if word else '[]'}")
            continue
        text = Path(f.__code__.co_filename).read_text(encoding="utf-8")
        node = _node(ast.parse(text), f.__code__)
        for free, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):      # of the function around it
            if isinstance(cell.cell_contents, (int, float, str, tuple)):
                out.append(f"{free} = {cell.cell_contents!r}")
        if isinstance(node, ast.Lambda):
            out.append(f"def {name}({ast.unparse(node.args)}):\n    return {ast.unparse(node.body)}")
        else:
            lines = textwrap.dedent("\n".join(text.splitlines()[node.lineno - 1:node.end_lineno]))
            out.append(lines.replace(f"def {node.name}(", f"def {name}(", 1))
    return "\n\n\n".join(out) + "\n"


def library(hole) -> str:
    """The library's answer as a work file would have it: of a record, the functions of its fields under those names."""
    if hole.kind == "kernel":
        return kernels.answer(hole)
    module, out = module_of(hole), []
    for path, name in zip(hole.objects, hole.functions):
        if source.is_function(hole.module, path):
            called = path.rpartition(".")[2]
            out += [textwrap.dedent("\n".join(source.lines(hole.module, path))), *[f"{name} = {called}"] * (name != called)]
            continue
        record, field, key = target(module, path)
        if not key and not callable(getattr(record, field)):           # data: as it is written
            written = next(getattr(part, field) for part in record.made[2] if field in part._fields)
            out.append(f"def {name}():\n    return {written!r}")
            continue
        f, own = (record.rules[key].f, f".rules[{key!r}].f") if key else (getattr(record, field), f".{field}")
        given = ", ".join(parameters(f))
        one = path.split(".")[0]
        out += [f"from {hole.module} import {one}\n\n_{name} = {one}{own}",
                f"def {name}({given}):\n    return _{name}({given})"]
    return "\n\n\n".join(out)


def _marked(hole, lines: Iterable[str], indent: str = "") -> str:
    lines = (f"# BEGIN YOUR TURN {hole.id}", *lines, f"# END YOUR TURN {hole.id}")
    return "\n".join(indent + t if t else "" for t in lines)


def _of_def(hole, file: Path, node: ast.FunctionDef, name: str) -> list[Cut]:
    body = _own_body(node)
    if body[0].lineno == node.lineno:              # def f(x): return x
        raise ArgumentError(f"{hole.id}: {node.name} stands on one line", got=file.name)
    text = _marked(hole, stub_body(hole, name), " " * body[0].col_offset)
    return [Cut(file, (body[0].lineno, 0), (node.end_lineno, node.end_col_offset), text, True)]


def _of_lambda(hole, file: Path, tree: ast.Module, node: ast.Lambda, path: str, name: str, given: str | None) -> list[Cut]:
    """A def in front of the statement, its name where the lambda was."""
    new = "_your_" + path.replace(".", "_")
    made = _marked(hole, [f"def {new}({given or ast.unparse(node.args)}):", *("    " + t for t in stub_body(hole, name))])
    return [_before(file, tree, node, made + "\n\n\n"), _instead(file, node, new)]


def _of_data(hole, path: str) -> list[Cut]:
    """A field that is no function becomes empty: less is known, nothing is wrong. One that is not written down stays."""
    name, field = path.split(".")
    file = source.file_of(hole.module)
    tree, word = _word(hole, path)
    if word is None:
        return []
    return [_before(file, tree, word.value, _marked(hole, [f"# `{field}` of {name} is yours: here it is empty"]) + "\n"),
            _instead(file, word.value, "[]")]


def _word(hole, path: str) -> tuple[ast.Module, ast.keyword | None]:
    """Where a record says its field."""
    name, field = path.split(".")
    tree = ast.parse(source.file_of(hole.module).read_text(encoding="utf-8"))
    statement = next((s for s in tree.body if isinstance(s, ast.Assign) and any(
        isinstance(t, ast.Name) and t.id == name for t in s.targets)), None)
    return tree, statement and next((k for k in ast.walk(statement) if isinstance(k, ast.keyword) and k.arg == field), None)


def _before(file: Path, tree: ast.Module, node: ast.expr, text: str) -> Cut:
    line = next(s.lineno for s in tree.body if s.lineno <= node.lineno <= s.end_lineno)
    return Cut(file, (line, 0), (line, 0), text, False)


def _instead(file: Path, node: ast.expr, text: str) -> Cut:
    return Cut(file, (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), text, True)


def blank(sources: dict[Path, str], holes: Iterable) -> dict[Path, str]:
    """The texts of those files that have one of the holes, with stubs in their places."""
    found: dict[Path, list[Cut]] = {}
    for hole in holes:
        for cut in cuts(hole):
            found.setdefault(cut.file, []).append(cut)
    out = {}
    for file, some in found.items():
        data = (sources.get(file) or file.read_text(encoding="utf-8")).encode()
        starts = [0]
        for line in data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        at = lambda place, starts=starts: starts[place[0] - 1] + place[1]
        last = len(data)
        for cut in sorted(some, key=lambda c: (c.start, c.end), reverse=True):
            if at(cut.end) > last:
                raise ArgumentError(f"{file}:{cut.start[0]}: two holes share lines", got=cut.text.partition("\n")[0])
            last = at(cut.start)
            data = data[:last] + cut.text.encode() + data[at(cut.end):]
        out[file] = data.decode()
        ast.parse(out[file])
    return out


def without_marked(text: str, ids: set[str]) -> str:
    """A text without what stands between BEGIN SOLUTION and END SOLUTION of these holes: sources that are no Python."""
    if "BEGIN SOLUTION" not in text:
        return text
    out, hidden = [], ""
    for line in text.splitlines():
        words = line.split()
        begins = "BEGIN SOLUTION" in line and words[-1] in ids
        if begins:
            hidden = words[-1]
            out += [line.replace("BEGIN SOLUTION", "BEGIN YOUR TURN")]
        elif hidden and "END SOLUTION" in line:
            hidden = ""
            out += [line.replace("END SOLUTION", "END YOUR TURN")]
        elif not hidden:
            out.append(line)
    return "\n".join(out) + "\n"


def own_lines(holes: Iterable) -> dict[str, str]:
    """{line: hole} of all lines of solutions that are longer than LONG and stand nowhere else in the library."""
    holes = list(holes)
    left = blank({}, holes)
    lines = {}
    for hole in holes:
        for cut in cuts(hole):
            for t in cut.file.read_text(encoding="utf-8").splitlines()[cut.start[0] - 1:cut.end[0]] if cut.own else ():
                if len(t.strip()) > LONG and not t.strip().startswith("#"):
                    lines.setdefault(t.strip(), hole.id)
    package = source.file_of("flowedu").parent
    for file in package.rglob("*.py"):
        for t in left.get(file, "").splitlines() or file.read_text(encoding="utf-8").splitlines():
            lines.pop(t.strip(), None)
    return lines
