"""Entries of the reference: facts about a public name.

They come from the object itself, the record of its op, the tables of differences, and the lessons. This
module does not use Sphinx. book/names_directive.py puts entries on pages.
"""
from __future__ import annotations

import ast
import functools
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import defaults
import names
import records

from flowedu.mock.differences import ANY, FACES, IDLE, OTHERS, PLACES, RENAMED
from flowedu.mock.differs_optim import DIFFERS
from flowedu_course.blocks import pages

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "book" / "reference" / "examples").glob("*.txt"))
# words: of names without docstring; chapters: {name, or file of the package: its page}; none: what is left
# out stands for; the longest that fits counts
TABLES = tomllib.loads((ROOT / "book" / "reference" / "words.toml").read_text(encoding="utf-8"))
LINES = 3                                      # of pages that use a name


class Entry(NamedTuple):
    """Entry of a public name.

    path: below flowedu. kind: "function", "class", "module" or "data". text: the docstring. original: the
    name whose entry has the rest, or "". facts: {kind of fact: text}. example: lines of a session, or "".
    """

    path: str
    kind: str
    signature: str
    text: str
    original: str
    facts: dict[str, str]
    example: str


@functools.cache
def entry(path: str) -> Entry:
    """The entry of a name."""
    x = names.value(path)
    original = names.originals().get(path, path)
    said = facts(path, x)
    return Entry(path, kind(x), signature(x), text(path, x), original if original != path else "", said,
                 examples().get(path) or examples().get(original, ""))


def kind(x: Any) -> str:
    if inspect.ismodule(x):
        return "module"
    if inspect.isclass(x):
        return "class"
    return "function" if inspect.isroutine(x) or type(x).__name__ in ("PublicFunction", "_Any") else "data"


# ---- how it is called
def signature(x: Any) -> str:
    """"(input, dim=None)"; "" of what is not called, or where Python does not know."""
    if inspect.isclass(x) or callable(x) and kind(x) == "function":
        try:
            found = inspect.signature(x)
        except (ValueError, TypeError):
            return "(...)"
        if inspect.isclass(x) and str(found) == "(*args, **kwargs)" and "__init__" in vars(x):
            found = inspect.signature(x.__init__)
            found = found.replace(parameters=[*found.parameters.values()][1:])
        parts = [p.replace(annotation=_hint(p.annotation), default=p.default if p.default is p.empty
                           else _shown(p.default))
                 for p in found.parameters.values()]
        return str(found.replace(parameters=parts,
                                 return_annotation=_hint(found.return_annotation))).replace("'", '"')
    return ""


class _Word:
    """Its repr is the word itself."""

    def __init__(self, word: str):
        self.word = word

    def __repr__(self) -> str:
        return self.word


def _shown(default: Any) -> _Word:
    """A default as a reader would write it."""
    if isinstance(default, type) or inspect.isroutine(default):
        return _Word(default.__name__)
    said = repr(default)
    return _Word("..." if "<" in said or "\n" in said or len(said) > 60 else said)


def _hint(annotation: Any) -> Any:
    """An annotation without quotation marks, and without the module name of dtype."""
    return _Word(annotation.replace("dt.dtype", "dtype")) if isinstance(annotation, str) else annotation


# ---- what it is
def text(path: str, x: Any) -> str:
    """The docstring; of a value that has none of its own, the words of words.toml."""
    said = TABLES["words"].get(path, "")
    if said:
        return said
    if isinstance(x, property) or inspect.isgetsetdescriptor(x):
        return inspect.getdoc(x) or ""
    if kind(x) == "data":
        return inspect.getdoc(x) or "" if "__doc__" in getattr(x, "__dict__", {}) else ""
    if inspect.isclass(x):
        return inspect.cleandoc(x.__doc__ or "")
    return inspect.getdoc(x) or ""


def facts(path: str, x: Any) -> dict[str, str]:
    """What its record, its file, the lessons and the tables say of it."""
    said: dict[str, str] = {}
    op = records.record(x) if kind(x) == "function" else None
    if op is not None:
        said |= records.facts(op)
    shapes = TABLES["shapes"]
    page = names.places().get(path, ("",))[0]
    if path in shapes or "Axes" not in said and kind(x) == "function" and page in shapes:
        said["Shapes"] = shapes.get(path) or shapes[page]
    if left_out := defaults.of(path, x, text(path, x), TABLES["none"]):
        said["Left out"] = "; ".join(f"`{name}`: {words}" for name, words in left_out.items())
    if raised := raises(x):
        said["Raises"] = ", ".join(raised) + (", CallError" if kind(x) == "function" else "")
    file, line = source(x)
    if op is not None and records.home(op)[0]:
        said["Record"] = "{}:{}".format(*records.home(op))
    if file:
        said["Source"] = f"{file}:{line}"
    said["Chapter"] = chapter(path, x, op)
    if used := lessons(path):
        said["Used in"] = " ".join(used)
    if other := differences(path):
        said["Not as in PyTorch"] = "; ".join(other)
    return said


def source(x: Any) -> tuple[str, int]:
    """(file below the repository, line); of Cython's the file alone."""
    inner = inspect.unwrap(getattr(x, "function", x)) if kind(x) == "function" else x
    inner = (inner if inspect.ismodule(inner) or inspect.isclass(inner) or inspect.isroutine(inner)
             else type(inner))
    home = inner.__name__ if inspect.ismodule(inner) else \
        getattr(inner, "__module__", None) or getattr(inner, "__objclass__", type(None)).__module__
    code = getattr(inner, "__code__", None)
    base = ROOT / "src" / Path(*home.split("."))
    own = Path(getattr(code, "co_filename", ""))
    for file in (own, base.with_suffix(".py"), base.with_suffix(".pyx"), base / "__init__.py"):
        if file.is_file() and file.is_relative_to(ROOT):
            if code is not None and file.suffix == ".py":
                line = code.co_firstlineno
            elif inspect.ismodule(inner):
                line = 1
            else:
                line = _line(file, inner.__qualname__.partition(".")[0])
            return str(file.relative_to(ROOT)), line
    return "", 0


@functools.cache
def _tree(file: Path) -> ast.Module | None:
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, OSError, UnicodeDecodeError):
        return None


@functools.cache
def _line(file: Path, name: str) -> int:
    """Where a class is defined."""
    found = re.search(rf"^\s*(?:cdef |cpdef )?class {re.escape(name)}\b", file.read_text(encoding="utf-8"),
                      re.M)
    return found.string.count("\n", 0, found.end()) + 1 if found else 1


@functools.cache
def _raised(file: Path) -> dict[str, tuple[set[str], set[str]]]:
    """{function or class of a file: (the errors that its lines raise, the names that it calls)}."""
    found = {}
    for node in (_tree(file) or ast.Module([], [])).body:
        for top in (node, *(node.body if isinstance(node, ast.ClassDef) else ())):
            if isinstance(top, (ast.FunctionDef, ast.ClassDef)):
                called = {n.func.id for n in ast.walk(top) if isinstance(n, ast.Call)
                          and isinstance(n.func, ast.Name)}
                errors = {c for c in called if c.endswith("Error")}
                found[top.name] = errors, called - errors
    return found


def raises(x: Any) -> list[str]:
    """The errors that its lines raise, and those of the functions of its file that it calls."""
    file, _ = source(x)
    if not file or inspect.ismodule(x):
        return []
    known = _raised(ROOT / file)
    inner = inspect.unwrap(getattr(x, "function", x))
    seen, left = set(), [getattr(inner, "__name__", "")]
    found: set[str] = set()
    while left:
        name = left.pop()
        if name in known and name not in seen:
            seen.add(name)
            found |= known[name][0]
            left += known[name][1]
    return sorted(found)


# ---- where it is explained, and where it differs
def chapter(path: str, x: Any, op: Any) -> str:
    """The page of chapters/ that explains it: by the name, then by its op's file, then by its own."""
    by_name, by_home = TABLES["chapters"]["names"], TABLES["chapters"]["files"]
    best = max((n for n in by_name if path == n or path.startswith(n + ".")), key=len, default="")
    if best:
        return by_name[best]
    for file in (records.home(op)[0] if op is not None else "", source(x)[0]):
        below = file.removeprefix("src/flowedu/")
        best = max((n for n in by_home if below.startswith(n)), key=len, default="") if file else ""
        if best:
            return by_home[best]
    return by_home["tensor"]


@functools.cache
def _lessons() -> dict[str, set[str]]:
    """{page: the dotted words of its code}."""
    code = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.M | re.S)
    return {f"{c.name}/{p.stem}": {w for b in code.findall(p.read_text(encoding="utf-8"))
                                   for w in re.findall(r"[\w.]+", b)}
            for c in sorted((ROOT / "chapters").glob("[0-9]*_*")) for p in pages(c)}


def lessons(path: str) -> list[str]:
    """The pages whose code names it."""
    said = {path, path.replace("nn.functional.", "F."), f"flow.{path}"} if "." in path else {f"flow.{path}"}
    return [page for page, words in _lessons().items() if said & words][:LINES]


@functools.cache
def _different() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}

    def say(which: str, words: str) -> None:
        for n in re.findall(r"[\w.]+", which):
            found.setdefault(n, []).append(words)

    for which, pairs in RENAMED.items():
        if which != "*":
            say(which, "PyTorch's " + ", ".join(f"`{a}` is `{b}`" if b != "*" else f"`{a}` comes by its place"
                                                for a, b in pairs.items()))
    for row in IDLE:
        if row.names != "*":
            values = "any value" if row.values is ANY else ", ".join(f"`{v}`" for v in row.values)
            fix = f"; {row.fix}" if row.fix else ""
            say(row.names, f"no `{row.argument}` (without effect: {values}): {row.why}{fix}")
    for which, order in PLACES.items():
        say(which, f"PyTorch's places are ({', '.join(order.split())})")
    for row in (*FACES, *OTHERS):
        say(row.names, f"{row.argument}: {row.ours}; PyTorch: {row.theirs} ({row.why})" if row.why else
            f"{row.argument}: {row.ours}; PyTorch: {row.theirs}")
    for which, rows in DIFFERS.items():
        for row in rows:
            say(which, (f"`{row.parameter}`: " if row.parameter else "") + f"{row.oneflow or 'not there'}; "
                f"PyTorch: {row.torch or 'not there'}")
    return found


def differences(path: str) -> list[str]:
    """The rows of the tables of differences that name it."""
    return _different().get(path, [])


# ---- examples
@functools.cache
def examples() -> dict[str, str]:
    """Return {name: its session}, from reference/examples/*.txt. `# name name` is above the lines."""
    return {name: text for file in EXAMPLES for name, text in examples_of(file).items()}


def examples_of(file: Path) -> dict[str, str]:
    """Those of one file."""
    found: dict[str, str] = {}
    for heading, body in re.findall(r"^# ([^\n]+)\n(.*?)(?=^# |\Z)", file.read_text(encoding="utf-8"),
                                    re.M | re.S):
        found.update(dict.fromkeys(heading.split(), body.strip() + "\n"))
    return found
