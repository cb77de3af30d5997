"""Sources with holes, in which a stub replaces each answer.

The lines between BEGIN YOUR TURN and END YOUR TURN are a stub, all other lines are unchanged.

    blank(sources, hole)        {file: text} without the lines of a hole's answer
    own_lines(holes)            lines that must not occur in a tree that is handed out
"""
from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from flowedu.errors import ArgumentError
from flowedu.swap import plain, target
from flowedu_course import course, kernels

LONG = 20                                          # shorter lines are too common to identify an answer
TURN = "your turn"


class Cut(NamedTuple):
    """A replacement of a file's contents from `start` to `end`, each (line, byte), by `text`.

    own: True if the replaced contents are a part of the answer.
    """

    file: Path
    start: tuple[int, int]
    end: tuple[int, int]
    text: str
    own: bool


def module_of(hole):
    return importlib.import_module(hole.module)


def function_of(hole, path: str) -> Callable:
    """Return the library's function at a path, or the value of a record's field."""
    owner, field, key = target(module_of(hole), path)
    if not hasattr(owner, "rules"):
        value = inspect.getattr_static(owner, field)
    elif key:
        value = owner.rules[key].f
    else:
        value = getattr(owner, field)
    return plain(value) if callable(value) or isinstance(value, property) else value


def cuts(hole) -> list[Cut]:
    """Return the cuts that replace a hole's answer by its stub.

    Raises ArgumentError if the answer cannot be found.

    A kernel has no cuts, because its source is needed to build the library. A hunt has none, because it is no
    part of the library.
    """
    found = []
    if hole.is_separate:
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
    """Return the def or lambda that a code object was compiled from."""
    starts = {(line, column) for line, _, column, _ in code.co_positions() if line and column is not None}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if node.name == code.co_name and first == code.co_firstlineno:
                return node
        elif isinstance(node,
                        ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            inside = (node.body.lineno, node.body.col_offset), (node.body.end_lineno,
                                                                node.body.end_col_offset)
            # The entry has column 0.
            if all(inside[0] <= at <= inside[1] for at in starts - {(node.lineno, 0)}):
                return node
    raise ArgumentError(f"{code.co_filename}:{code.co_firstlineno}: no def or lambda on this line",
                        got=code.co_name)


def _own_body(node: ast.FunctionDef) -> list[ast.stmt]:
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


def stub_body(hole, name: str) -> list[str]:
    """Return the unindented body that replaces the answer: wasteful, plain, or one that raises."""
    stand_in = hole.stub or hole.plain
    if not stand_in:
        return [f'raise NotImplementedError("{hole.id}: {TURN}")']
    text = (hole.folder / stand_in).read_text(encoding="utf-8")
    tree, out = ast.parse(text), []
    for node in tree.body:                         # the stub's imports and helpers go into the body
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = _own_body(node)[0].lineno
            lines = textwrap.dedent("\n".join(text.splitlines()[first - 1:node.end_lineno])).splitlines()
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            out += text.splitlines()[node.lineno - 1:node.end_lineno]
    return out + lines


def answer_text(hole) -> str:
    """Return the text of the library's answer as a work file."""
    out = []
    for path, name in zip(hole.objects, hole.functions):
        f = function_of(hole, path)
        if not inspect.isfunction(f):
            word = _word(hole, path)[1]
            out.append(f"def {name}():\n    return {ast.unparse(word.value) if word else '[]'}")
            continue
        text = Path(f.__code__.co_filename).read_text(encoding="utf-8")
        node = _node(ast.parse(text), f.__code__)
        # Variables of the enclosing function.
        for free, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            if isinstance(cell.cell_contents, (int, float, str, tuple)):
                out.append(f"{free} = {cell.cell_contents!r}")
        if isinstance(node, ast.Lambda):
            out.append(f"def {name}({ast.unparse(node.args)}):\n    return {ast.unparse(node.body)}")
        else:
            lines = textwrap.dedent("\n".join(text.splitlines()[node.lineno - 1:node.end_lineno]))
            out.append(lines.replace(f"def {node.name}(", f"def {name}(", 1))
    return "\n\n\n".join(out) + "\n"


def library(hole) -> str:
    """Return the library's answer as a work file; for a separate answer, its whole file."""
    return kernels.answer(hole) if hole.is_separate else answer_text(hole)


def _marked(hole, lines: Iterable[str], indent: str = "") -> str:
    lines = (f"# BEGIN YOUR TURN {hole.id}", *lines, f"# END YOUR TURN {hole.id}")
    return "\n".join(indent + t if t else "" for t in lines)


def _of_def(hole, file: Path, node: ast.FunctionDef, name: str) -> list[Cut]:
    body = _own_body(node)
    if body[0].lineno == node.lineno:              # def f(x): return x
        raise ArgumentError(f"{hole.id}: {node.name} must have its body on lines of its own", got=file.name)
    text = _marked(hole, stub_body(hole, name), " " * body[0].col_offset)
    return [Cut(file, (body[0].lineno, 0), (node.end_lineno, node.end_col_offset), text, True)]


def _of_lambda(hole, file: Path, tree: ast.Module, node: ast.Lambda, path: str, name: str,
               given: str | None) -> list[Cut]:
    """Return the cuts that insert a def before the statement and its name in place of the lambda."""
    new = "_your_" + path.replace(".", "_")
    made = _marked(hole, [f"def {new}({given or ast.unparse(node.args)}):",
                          *("    " + t for t in stub_body(hole, name))])
    return [_before(file, tree, node, made + "\n\n\n"), _instead(file, node, new)]


def _of_data(hole, path: str) -> list[Cut]:
    """Return the cuts that empty a data field of a record, which stays valid with less information.

    A field that the source does not set has no cuts.
    """
    name, field = path.split(".")
    file = hole.source
    tree, word = _word(hole, path)
    if word is None:
        return []
    return [_before(file, tree, word.value,
                    _marked(hole, [f"# your task: fill in `{field}` of {name}, which is empty here"]) + "\n"),
            _instead(file, word.value, "[]")]


def _word(hole, path: str) -> tuple[ast.Module, ast.keyword | None]:
    """Return (syntax tree, the keyword that sets a record's field, or None)."""
    name, field = path.split(".")
    tree = ast.parse(hole.source.read_text(encoding="utf-8"))
    statement = next((s for s in tree.body if isinstance(s, ast.Assign) and any(
        isinstance(t, ast.Name) and t.id == name for t in s.targets)), None)
    return (tree, statement and next((k for k in ast.walk(statement) if isinstance(k, ast.keyword)
                                      and k.arg == field), None))


def _before(file: Path, tree: ast.Module, node: ast.expr, text: str) -> Cut:
    line = next(s.lineno for s in tree.body if s.lineno <= node.lineno <= s.end_lineno)
    return Cut(file, (line, 0), (line, 0), text, False)


def _instead(file: Path, node: ast.expr, text: str) -> Cut:
    return Cut(file, (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), text, True)


def blank(sources: dict[Path, str], holes: Iterable) -> dict[Path, str]:
    """Return {file: text} of the files with holes, with stubs in place of the answers."""
    by_file: dict[Path, list[Cut]] = {}
    for hole in holes:
        for cut in cuts(hole):
            by_file.setdefault(cut.file, []).append(cut)
    out = {}
    for file, some in by_file.items():
        data = (sources.get(file) or file.read_text(encoding="utf-8")).encode()
        starts = [0]
        for line in data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        at = lambda place, starts=starts: starts[place[0] - 1] + place[1]
        last = len(data)
        for cut in sorted(some, key=lambda c: (c.start, c.end), reverse=True):
            if at(cut.end) > last:
                raise ArgumentError(f"{file}:{cut.start[0]}: two holes share lines",
                                    got=cut.text.partition("\n")[0])
            last = at(cut.start)
            data = data[:last] + cut.text.encode() + data[at(cut.end):]
        out[file] = data.decode()
        ast.parse(out[file])
    return out


def without_marked(text: str, ids: set[str]) -> str:
    """Remove the lines between BEGIN SOLUTION and END SOLUTION of these holes, in sources of kernels."""
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
    """Return {line: hole} of all lines of answers longer than LONG that occur nowhere else in the library."""
    holes = list(holes)
    left = blank({}, holes)
    lines = {}
    for hole in holes:
        for cut in cuts(hole):
            for t in cut.file.read_text(
                    encoding="utf-8").splitlines()[cut.start[0] - 1:cut.end[0]] if cut.own else ():
                if len(t.strip()) > LONG and not t.strip().startswith("#"):
                    lines.setdefault(t.strip(), hole.id)
    for file in (*course.file_of("flowedu").parent.rglob("*.py"),
                 *Path(course.__file__).parent.rglob("*.py")):
        for t in left.get(file, "").splitlines() or file.read_text(encoding="utf-8").splitlines():
            lines.pop(t.strip(), None)
    return lines
