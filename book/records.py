"""Facts from the record of an op (core/ops/record.py) about the function that users call.

They are its axes, element types, gradient, and file, for every function that is an op of its arguments.
"""
from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import Any

import flowedu as flow
from flowedu._kernels import NARROW, TABLE
from flowedu.core.ops.call import OpBase
from flowedu.core.ops.define import Op
from flowedu.core.ops.record import REQUIRED
from flowedu.core.values.dtype import BY_CODE, float32
from flowedu.core.values.spec import Spec
from flowedu.errors import FlowError

ROOT = Path(__file__).resolve().parents[1]
WHOLE = 4                                      # more axes than this are no example of an equation


def record(function: Any) -> Op | None:
    """Return the op that a function is of its arguments, or None.

    It is the op in its closure, or an op that its code calls and that has its name (`cat` is concat).
    """
    inner = inspect.unwrap(getattr(function, "function", function))
    quick = getattr(inner, "quick", None)
    if quick:
        return quick[0]
    if not inspect.isfunction(inner):
        return None
    kept = {x.name: x for x in inspect.getclosurevars(inner).nonlocals.values() if isinstance(x, OpBase)}
    if len(kept) == 1:
        return next(iter(kept.values()))
    return next((op for op in _called(inner) if op.name == inner.__name__
                 or op.name.endswith(inner.__name__)), None)


def _called(function: Any) -> list[Op]:
    """Ops that its code names, in its file or in a module of records (`_e.exp`)."""
    words, there = function.__code__.co_names, function.__globals__
    seen = [there[w] for w in words if w in there]
    for module in [m for m in seen if inspect.ismodule(m) and m.__name__.partition(".")[0] == "flowedu"]:
        seen += [vars(module)[w] for w in words if w in vars(module)]
    return [x for x in seen if isinstance(x, OpBase)]


@functools.cache
def equation(op: Op) -> str:
    """The axis equation, of the op's first example if it depends on shapes; "" where there is none."""
    if not op.examples or op.made[1].axes is None:
        return ""
    if isinstance(op.made[1].axes, str):
        return op.made[1].axes
    for example in op.examples:
        shapes = example.get("shapes", ())
        if any(len(s) > WHOLE for s in shapes):
            continue
        attrs = tuple(example.get(n, d) for n, d in op.attrs.items())
        try:
            return op.equation([Spec(tuple(s), _type(op, i)) for i, s in enumerate(shapes)], attrs)
        except (FlowError, TypeError, AttributeError):
            return ""
    return ""


def _type(op: Op, i: int):
    kind = op.domain.get(op.inputs[0 if op.variadic else i], "")
    if kind.startswith("index"):
        return flow.int32
    return flow.int8 if kind == "mask" else flow.float32


@functools.cache
def element_types(op: Op) -> tuple[str, ...]:
    """The dtypes of which it has a kernel; all that an op without kernel takes (a view, NumPy)."""
    if op.cpu is None:
        return ()
    there = [t for t in BY_CODE if (op.cpu, t.code) in TABLE
             or t.code in NARROW and (op.cpu, float32.code) in TABLE]
    return tuple(t.name for t in there)


def facts(op: Op) -> dict[str, str]:
    """{what: the words for it}, for the reference."""
    said = {"Op": f"`{op.signature}`"}
    if op.elementwise:
        said["Axes"] = "each element by itself" + ("; shapes broadcast" if len(op.inputs) > 1 else "")
    elif axes := equation(op):
        fixed = isinstance(op.made[1].axes, str)
        said["Axes"] = f"`{axes}`" + ("" if fixed else " (of the record's first example; other shapes, other "
                                      "letters)")
    if types := element_types(op):
        said["dtypes"] = ", ".join(types)
    elif op.view is not None:
        said["dtypes"] = "any: a view of the same memory where strides allow it"
    kept = [n for n in op.inputs if n in gradient_of(op)]
    said["Gradient"] = f"of {', '.join(kept)}" if kept else "none"
    if needed := [n for n, d in op.attrs.items() if d is REQUIRED]:
        said["Attributes without default"] = ", ".join(needed)
    return said


def gradient_of(op: Op) -> tuple[str, ...]:
    """The inputs that have a gradient."""
    grad = op.made[3]
    return tuple(op.inputs) if callable(grad) else tuple(grad or ())


def home(op: Op) -> tuple[str, int]:
    """Return (file below the repository, line) of the reference function, which is next to the record."""
    for f in (op.ref, op.made[1].axes, op.shape, op.check, op.view):
        if callable(f) and getattr(f, "__code__", None):
            path = Path(f.__code__.co_filename)
            if path.is_relative_to(ROOT):
                return str(path.relative_to(ROOT)), f.__code__.co_firstlineno
    return "", 0
