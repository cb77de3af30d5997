"""Swapping: another function runs wherever the library calls one of its own. install.py does so for a folder of answers.

    with swapped(memory.place, mine): ...                 a function, wherever it was imported to
    with replaced(ops.sigmoid, grad={"x": mine}): ...     fields of a record

A function keeps its identity and gets another's code, so tables of passes, caches of names and `from ... import place`
elsewhere are right without being touched.
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
RUNNING: dict[str, Path] = {}                     # {object: the file whose code runs in its place}
SKIPPED: dict[Path, str] = {}                     # {file that cannot be loaded: why}


def plain(f: Callable) -> types.FunctionType:
    """The Python function behind decorators. Raises ArgumentError: there is none."""
    g = inspect.unwrap(f.fget if isinstance(f, property) else f)
    g = getattr(g, "__func__", g)
    if not isinstance(g, types.FunctionType):
        raise ArgumentError("only Python functions are swapped", expected="a function written with def or lambda",
                            got=repr(f))
    return g


@contextmanager
def swapped(original: Callable, mine: Callable) -> Iterator[None]:
    """Inside, `mine` runs wherever `original` is called. Raises ArgumentError: one of them is no plain function."""
    f, g = plain(original), plain(mine)
    if f.__code__.co_freevars or g.__code__.co_freevars:
        raise ArgumentError(f"{f.__qualname__}: a function that uses variables of the function around it cannot be swapped",
                            expected="functions at the top of a file, or methods",
                            got=", ".join(f.__code__.co_freevars or g.__code__.co_freevars))
    before = {part: getattr(f, part) for part in _PARTS}
    own = f.__globals__
    if _means_the_same(g, own):
        helpers = {} if g.__globals__ is own else {                  # what the other file made for itself
            n: v for n, v in g.__globals__.items() if n not in own and not n.startswith("__")}
    else:
        helpers = {f"_other_{id(g)}": g}
        g = _calling(g.__name__, *helpers)
    own.update(helpers)
    _put(f, {part: getattr(g, part) for part in _PARTS}, original)
    try:
        yield
    finally:
        _put(f, before, original)
        for n in helpers:
            own.pop(n, None)


def _means_the_same(g: types.FunctionType, own: dict[str, Any]) -> bool:
    """Whether every name in a function's code, were it run among those of `own`, is what it is in its own file."""
    def used(code: types.CodeType) -> set[str]:
        inner = (used(c) for c in code.co_consts if isinstance(c, types.CodeType))
        return {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}.union(*inner)

    missing, its = object(), g.__globals__
    return its is own or all(its.get(n, getattr(builtins, n, missing)) is own[n] for n in used(g.__code__) if n in own)


def _calling(name: str, other: str) -> types.FunctionType:
    """A function that only calls another, among the names of its own file."""
    space: dict[str, Any] = {}
    exec(f"def {name}(*args, **named):\n    return {other}(*args, **named)\n", space)
    return space[name]


def _put(f: types.FunctionType, parts: dict[str, Any], original: Callable) -> None:
    for part, value in parts.items():
        setattr(f, part, value)
    clear = getattr(original, "cache_clear", None)
    if clear is not None:
        clear()


def remade(op, grad: dict[str, Callable] | None = None, **fields: Any) -> tuple:
    """Give a record other fields, for good; gives what it was made from. Raises ArgumentError: it has no such field."""
    from flowedu.core.ops.record import KINDS, Meaning

    signature, meaning, parts, rules, doc = before = op.made
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
        rules = {**(rules if isinstance(rules, dict) else {"*": rules} if rules else {}), **grad}
    op.__init__(signature, meaning, *parts.values(), grad=rules, doc=doc)
    return before


@contextmanager
def replaced(op, grad: dict[str, Callable] | None = None, **fields: Any) -> Iterator[None]:
    """Inside, a record has other fields: those of core/ops/record.py, and of its gradients those given. What is ready to
    run of the op is forgotten. Raises ArgumentError: a record has no such field."""
    signature, meaning, parts, rules, doc = remade(op, grad, **fields)
    try:
        yield
    finally:
        op.__init__(signature, meaning, *parts, grad=rules, doc=doc)


# ---- answers
def load(file: Path, module: types.ModuleType) -> dict[str, Any]:
    """The names a file makes when it is run with those of `module` at hand."""
    space = names(module)
    exec(compile(file.read_bytes(), str(file), "exec"), space)      # bytes: Python itself reads marks of the encoding
    return space


def names(module: types.ModuleType) -> dict[str, Any]:
    """What a module offers to an answer. `sum` and `range` are Python's, whatever ops the module has under these names."""
    return {n: v for n, v in vars(module).items() if n.startswith("_") or not hasattr(builtins, n)}


def target(module: types.ModuleType, path: str) -> tuple[Any, str, str]:
    """(owner, field, key): what a dotted path below a module names. key: of a record's grad, the input."""
    owner, parts = module, path.split(".")
    while len(parts) > 1 and not hasattr(owner, "rules"):
        owner = getattr(owner, parts.pop(0))
    return owner, parts[0], parts[1] if len(parts) > 1 else ""


@contextmanager
def taking(hole, space: dict[str, Any]) -> Iterator[None]:
    """Inside, the library runs the functions of `space` in the places of a hole."""
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
    """A field that is no function, such as `linear`: what the student's function gives."""
    value = f()
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(f"{name}() gives {value!r}, not a list", expected="a list, which may be empty", got=repr(value))
    return value


def elsewhere(error: BaseException) -> bool:
    """Whether another answer raised it, one that the library runs."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename in map(str, RUNNING.values())


def inside(error: BaseException, yours: Callable) -> bool:
    """Whether it was raised by this answer, or by what that called."""
    file = plain(yours).__code__.co_filename
    return any(f.filename == file for f in traceback.extract_tb(error.__traceback__))


def whose(name: str = "") -> str:
    """Whose code runs: one line for demos, or of one object."""
    if name:
        found = [f"{path}: {file}" for path, file in RUNNING.items() if f".{path}".endswith(f".{name}")]
        return found[0] if found else f"{name}: the library's"
    yours = ", ".join(sorted(f.stem for f in set(RUNNING.values())))
    without = "".join(f"; not {file.name}: {why}" for file, why in SKIPPED.items())
    return (f"yours: {yours}" if yours else "all of it the library's") + without
