"""Replacement of library functions and of fields of op records.

    with swapped(memory.place, mine): ...                 a function, wherever it was imported
    with replaced(ops.sigmoid, grad={"x": mine}): ...     fields of a record

A swapped function keeps its identity and gets the code of the other one. Tables of passes, caches of names,
and `from ... import place` in other modules therefore need no change.
"""
from __future__ import annotations

import builtins
import dis
import importlib
import inspect
import traceback
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from flowedu.errors import ArgumentError

_PARTS = ("__code__", "__defaults__", "__kwdefaults__")
RUNNING: dict[str, Path] = {}                     # {path of an object: file whose code runs instead}
SKIPPED: dict[Path, str] = {}                     # {file that cannot be loaded: reason}


def plain(f: Callable) -> types.FunctionType:
    """Return the Python function behind decorators. Raises ArgumentError for anything else."""
    g = inspect.unwrap(f.fget if isinstance(f, property) else f)
    g = getattr(g, "__func__", g)
    if not isinstance(g, types.FunctionType):
        raise ArgumentError("only Python functions are swapped",
                            expected="a function written with def or lambda", got=repr(f))
    return g


@contextmanager
def swapped(original: Callable, mine: Callable) -> Iterator[None]:
    """Run `mine` wherever `original` is called, inside the context.

    Raises:
        ArgumentError: one of them is not a Python function, or uses variables of an enclosing function.
    """
    f, g = plain(original), plain(mine)
    if f.__code__.co_freevars or g.__code__.co_freevars:
        raise ArgumentError(f"{f.__qualname__}: a function that uses variables of the function around it "
                            f"cannot be swapped", expected="functions at the top of a file, or methods",
                            got=", ".join(f.__code__.co_freevars or g.__code__.co_freevars))
    before = {part: getattr(f, part) for part in _PARTS}
    namespace = f.__globals__
    if _means_the_same(g, namespace):
        helpers = {} if g.__globals__ is namespace else {    # names that only the other file defines
            n: v for n, v in g.__globals__.items() if n not in namespace and not n.startswith("__")}
    else:
        helpers = {f"_other_{id(g)}": g}
        g = _make_forwarder(g.__name__, *helpers)
    namespace.update(helpers)
    _set_code(f, {part: getattr(g, part) for part in _PARTS}, original)
    try:
        yield
    finally:
        _set_code(f, before, original)
        for n in helpers:
            namespace.pop(n, None)


def _means_the_same(g: types.FunctionType, namespace: dict[str, Any]) -> bool:
    """Return True if the global names that `g` uses have no other values in `namespace`."""
    def used(code: types.CodeType) -> set[str]:
        inner = (used(c) for c in code.co_consts if isinstance(c, types.CodeType))
        return {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL",
                                                                             "LOAD_NAME")}.union(*inner)

    missing, theirs = object(), g.__globals__
    return theirs is namespace or all(theirs.get(n, getattr(builtins, n, missing)) is namespace[n]
                                      for n in used(g.__code__) if n in namespace)


def _make_forwarder(name: str, other: str) -> types.FunctionType:
    """Return a function that only calls the global function `other`."""
    space: dict[str, Any] = {}
    exec(f"def {name}(*args, **named):\n    return {other}(*args, **named)\n", space)
    return space[name]


def _set_code(f: types.FunctionType, parts: dict[str, Any], original: Callable) -> None:
    for part, value in parts.items():
        setattr(f, part, value)
    clear = getattr(original, "cache_clear", None)
    if clear is not None:
        clear()


def remade(op, grad: dict[str, Callable] | None = None, **fields: Any) -> tuple:
    """Replace fields of an op record permanently, and return its old definition.

    Raises:
        ArgumentError: a record has no such field.
    """
    from flowedu.core.ops.record import KINDS, Meaning

    before = op.made
    signature, meaning = before[:2]
    parts, rules, doc = before[2:]
    parts = {type(p): p for p in parts}
    for name, value in fields.items():
        kind = next((k for k in (Meaning, *KINDS) if name in k._fields), None)
        if kind is None:
            raise ArgumentError(f"{op.name}: a record has no field {name}", got=name,
                                expected=", ".join(f for k in (Meaning, *KINDS) for f in k._fields))
        if kind is Meaning:
            meaning = meaning._replace(**{name: value})
        else:
            parts[kind] = parts.get(kind, kind())._replace(**{name: value})
    if grad is not None:
        if not isinstance(rules, dict):
            rules = {"*": rules} if rules else {}
        rules = {**rules, **grad}
    op.__init__(signature, meaning, *parts.values(), grad=rules, doc=doc)
    return before


@contextmanager
def replaced(op, grad: dict[str, Callable] | None = None, **fields: Any) -> Iterator[None]:
    """Replace fields of an op record (core/ops/record.py), and the gradients in `grad`, inside the context.

    Everything cached for the op is discarded.

    Raises:
        ArgumentError: a record has no such field.
    """
    before = remade(op, grad, **fields)
    try:
        yield
    finally:
        signature, meaning = before[:2]
        parts, rules, doc = before[2:]
        op.__init__(signature, meaning, *parts, grad=rules, doc=doc)


# ---- answers
def load(file: Path, module: types.ModuleType) -> dict[str, Any]:
    """Run a file in a copy of the names of `module`, and return all resulting names."""
    space = names(module)
    exec(compile(file.read_bytes(), str(file), "exec"), space)      # bytes, so that Python decodes the file
    return space


def names(module: types.ModuleType) -> dict[str, Any]:
    """Return the names of a module for an answer, except ops that would hide a builtin such as `sum`."""
    return {n: v for n, v in vars(module).items() if n.startswith("_") or not hasattr(builtins, n)}


def target(module: types.ModuleType, path: str) -> tuple[Any, str, str]:
    """Resolve a dotted path below a module to (owner, field, key). The key is the input of a gradient."""
    owner, parts = module, path.split(".")
    while len(parts) > 1 and not hasattr(owner, "rules"):
        owner = getattr(owner, parts.pop(0))
    return owner, parts[0], parts[1] if len(parts) > 1 else ""


@contextmanager
def taking(hole, space: dict[str, Any]) -> Iterator[None]:
    """Run the functions of `space` in place of the library's functions of a hole, inside the context."""
    module = importlib.import_module(hole.module)
    with ExitStack() as stack:
        for path, name in zip(hole.objects, hole.functions):
            owner, field, key = target(module, path)
            if hasattr(owner, "rules"):
                mine = space[name] if key or callable(getattr(owner, field)) else _data(space[name], name)
                stack.enter_context(replaced(owner, **{field: {key: mine} if key else mine}))
            else:
                stack.enter_context(swapped(inspect.getattr_static(owner, field), space[name]))
        yield


def _data(f: Callable, name: str) -> Any:
    """Return a field that is not a function, such as `linear`: the result of the student's function."""
    value = f()
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{name}() gives {value!r}, not a list", expected="a list, which may be empty",
                            got=repr(value))
    return value


def elsewhere(error: BaseException) -> bool:
    """Return True if another answer, which the library runs, raised the error."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename in map(str, RUNNING.values())


def inside(error: BaseException, yours: Callable) -> bool:
    """Return True if this answer, or code that it called, raised the error."""
    file = plain(yours).__code__.co_filename
    return any(f.filename == file for f in traceback.extract_tb(error.__traceback__))


def whose(name: str = "") -> str:
    """Describe in one line, for demos, which answers run, or whose code runs for the object `name`."""
    if name:
        matches = [f"{path}: {file}" for path, file in RUNNING.items() if f".{path}".endswith(f".{name}")]
        return matches[0] if matches else f"{name}: the library's"
    yours = ", ".join(sorted(f.stem for f in set(RUNNING.values())))
    skipped = "".join(f"; not {file.name}: {why}" for file, why in SKIPPED.items())
    return (f"yours: {yours}" if yours else "all of it the library's") + skipped
