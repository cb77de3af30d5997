"""Rule against import cycles between files, which could not be read one after the other.

Imports inside functions count, and files that a Cython file includes are part of it.
"""
import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from test_house import MODULES, ROOT, imports

COURSE = ROOT.parents[1] / "course"


def files_of(module: str) -> Iterator[Path]:
    """Yield the files of a module (a .pyx with its .pxd) and the files that they include."""
    stem = ROOT.joinpath(*module.split(".")[1:])
    for path in (stem.with_suffix(".py"), stem / "__init__.py", stem.with_suffix(".pyx"),
                 stem.with_suffix(".pxd")):
        if path.exists():
            yield path
            yield from _included(path)


def _included(path: Path) -> Iterator[Path]:
    for name in re.findall(r'^include "([\w./]+)"', path.read_text(encoding="utf-8"),
                           re.M) if path.suffix != ".py" else ():
        part = next(p for p in (path.parent / name, ROOT.parent / name) if p.exists())
        yield part
        yield from _included(part)


@functools.cache
def build_import_graph() -> dict[str, set[str]]:
    """Return {module: modules that it imports} for the whole package."""
    whole = {m for m in MODULES if next(files_of(m), None)}
    return {m: {other for path in files_of(m) for _, other in imports(path)} & whole - {m}
            for m in sorted(whole)}


def course_graph() -> dict[str, set[str]]:
    """Return {module: modules that it imports} for the package of the course."""
    files = {".".join(p.relative_to(COURSE).with_suffix("").parts).removesuffix(".__init__"): p
             for p in COURSE.rglob("*.py")}
    edges: dict[str, set[str]] = {}
    for module, path in files.items():
        edges[module] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                below = {f"{node.module}.{name.name}" for name in node.names} & files.keys()
                edges[module] |= below or {str(node.module)} & files.keys()
        edges[module].discard(module)
    return edges


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components with more than one node (Tarjan's algorithm)."""
    number = {}
    low = {}
    stack = []
    found = []

    def visit(v: str) -> None:
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in sorted(edges[v]):
            if w not in number:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == number[v]:
            at = stack.index(v)
            part, stack[at:] = sorted(stack[at:]), []
            if len(part) > 1:
                found.append(part)

    for v in edges:
        if v not in number:
            visit(v)
    return found


def test_no_files_import_each_other_in_a_circle():
    found = circles(build_import_graph())
    assert found == [], "move what these files share to a file that imports neither of them"


def test_no_files_of_the_course_import_each_other_in_a_circle():
    edges = course_graph()
    assert "flowedu_course.laws" in edges["flowedu_course.judge"] and len(edges) > 60
    assert circles(edges) == []


def test_a_circle_is_found():
    edges = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set(), "f": {"f"}}
    assert circles(edges) == [["a", "b", "c"]]
    assert "flowedu.core.eager.tensor" in build_import_graph()
    assert "flowedu.core.values.thread_state" in build_import_graph()["flowedu.core.eager.dispatch"]
    assert len(build_import_graph()) > 300 and sum(map(len, build_import_graph().values())) > 1000
