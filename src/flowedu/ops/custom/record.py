"""Conversion of Python functions to op records: names, shapes, and the axis equation."""
from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Sequence
from typing import Any

from flowedu.core.ops import axes
from flowedu.core.ops.define import Op, enter
from flowedu.core.ops.record import REQUIRED, Effects, Kernel, Laws, Meaning, Signature, Split
from flowedu.core.values.dtype import as_dtype, dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, FlowError
from flowedu.ops.types import Shape

CUSTOM: dict[str, Op] = {}                 # records made here, gradients included


def signature_of(name: str, ins: Sequence[str], outs: Sequence[str], attrs: dict) -> Signature:
    """Return the signature of a custom op.

    attrs: {name: default or REQUIRED}; a default may be any object.
    """
    listed = [n if v is REQUIRED else f"{n}={v!r}" for n, v in attrs.items()]
    if listed:
        listed.insert(0, "*")
    tail = outs[0] if len(outs) == 1 else f"({', '.join(outs)})"
    return Signature(name, tuple(ins), False, attrs, tuple(outs),
                     f"{name}({', '.join([*ins, *listed])}) -> {tail}")


def make_record(signature: Signature, role: str, meaning: Meaning, *parts: Split | Effects | Laws,
                grad: dict[str, Callable] | Callable | None = None, doc: str = "") -> Op:
    """Define an op whose kernel is its `ref`. `role` names that function in messages."""
    op = CUSTOM[signature.name] = enter(Op(signature, meaning, Kernel(role=role), *parts, grad=grad, doc=doc))
    return op


# ---- names
def identifiers(op: str, what: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names as distinct Python identifiers; a keyword gets an underscore ("in" becomes "in_")."""
    given = (names,) if isinstance(names, str) else tuple(names)
    found = tuple(f"{n}_" if keyword.iskeyword(n) else n for n in given)
    if any(not str(n).isidentifier() or n == "name" for n in found) or len(set(found)) < len(found):
        raise ArgumentError(f"custom_op {op}: {what} are not names",
                            expected="Python names, each once, other than `name`",
                            got=str(given), fix='such as ("x", "w")')
    return found


def parameters_of(op: str, forward: Callable, inputs: Sequence[str] | None,
                  attrs: dict[str, Any] | None) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return (names of inputs, {attribute: default}), by default from the parameters of `forward`."""
    ins, found = [], {}
    if inspect.isfunction(forward):
        for p in inspect.signature(forward).parameters.values():
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                if inputs is None:
                    raise ArgumentError(f"custom_op {op}: forward does not say what its inputs are",
                                        got=f"*{p.name}",
                                        expected="forward(x, w, *, attribute=default)",
                                        fix='name them: inputs=("x", "w")')
            elif p.kind is p.KEYWORD_ONLY or p.default is not p.empty:
                found[p.name] = REQUIRED if p.default is p.empty else p.default
            else:
                ins.append(p.name)
    elif inputs is None:
        raise ArgumentError(f"custom_op {op}: the names of forward's inputs are unknown",
                            expected="a Python function, or inputs=", got=repr(forward), fix='inputs=("x",)')
    names = identifiers(op, "inputs", ins if inputs is None else inputs)
    found = {k: tuple(v) if isinstance(v, list) else v for k, v in {**found, **(attrs or {})}.items()
             if k not in names}
    identifiers(op, "inputs and attributes", (*names, *found))
    return names, found


def named(f: Callable, names: Sequence[str], positional: int | None = None) -> Callable:
    """Return `f` as a function that records call by position, with parameters of these names.

    Parameters from index `positional` on are passed to `f` by keyword.
    """
    n = len(names) if positional is None else positional
    keys = tuple(names[n:])

    def call(*values: Any) -> Any:
        return f(*values[:n], **dict(zip(keys, values[n:])))

    params = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    call.__signature__ = inspect.Signature(params)  # type: ignore[attr-defined]  # an attribute of a function
    return call


def asking(op: str, what: str, f: Callable, known: Sequence[str]) -> tuple[tuple[str, ...], Callable]:
    """Return the parameter names of `f`, which select its arguments, and a function of them for records."""
    ps = list(inspect.signature(f).parameters.values())
    bad = [p.name for p in ps if p.name not in known or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if bad:
        raise ArgumentError(f"custom_op {op}: {what} asks for {', '.join(map(repr, bad))}",
                            expected="some of "
                            + ", ".join(known), got=f"{what}({', '.join(p.name for p in ps)})",
                            fix=f"rename the parameters of {what}: their names are the names of its inputs")
    names = tuple(p.name for p in ps)
    return names, named(f, names, sum(p.kind is not p.KEYWORD_ONLY for p in ps))


# ---- shapes
def shape_rules(op: str, infer: Callable | None, ins: Sequence[str], outs: Sequence[str],
                attrs: dict[str, Any]) -> tuple[Callable, Callable | None]:
    """Return (shape rule, dtype rule) of a record, from `infer` or, by default, from the first input."""
    one = len(outs) == 1
    if infer is None:
        if not ins:
            raise ArgumentError(f"custom_op {op}: without inputs, nothing says what the result is",
                                expected="infer=", got="no infer", fix="infer=lambda: ((2, 3), flow.float32)")
        return named(lambda x: x.shape if one else (x.shape,) * len(outs), ins[:1]), None
    names, ask = asking(op, "infer", infer, (*ins, *attrs))
    asked = (*names, *[n for n in ins[:1] if n not in names])        # the first input's dtype is the default

    def specs(*values: Any) -> list[Spec]:
        return _as_specs(op, ask(*values[:len(names)]), len(outs), dict(zip(asked, values))[ins[0]].dtype
                         if ins else None)

    def shape(*values: Any) -> Shape | tuple[Shape, ...]:
        shapes = tuple(s.shape for s in specs(*values))
        return shapes[0] if one else shapes

    return named(shape, asked), named(lambda *values: tuple(s.dtype for s in specs(*values)), asked)


def _as_specs(op: str, found: Any, count: int, dtype: dtype | None) -> list[Spec]:
    """Convert the result of `infer` to Specs."""
    try:
        out = []
        for y in [found] if count == 1 else list(found):
            pair = len(y) == 2 and isinstance(y[0], (tuple, list)) and not isinstance(y[1], (tuple, list))
            shape, kind = y if pair else (y, dtype)
            if kind is None:
                raise ValueError
            out.append(Spec(tuple(int(n) for n in shape), as_dtype(kind, f"custom_op {op}: infer's dtype")))
        if len(out) != count or any(n < 0 for s in out for n in s.shape):
            raise ValueError
    except (TypeError, ValueError) as error:
        if isinstance(error, FlowError):
            raise
        raise ArgumentError(f"custom_op {op}: infer did not return "
                            f"{'a shape' if count == 1 else f'{count} shapes'}",
                            expected="a shape, or (shape, dtype)" + ("" if count == 1
                                                                     else ", for each output"),
                            got=repr(found), fix="return x.shape, or (x.shape, flow.float32)") from None
    return out


# ---- axis equations
def whole(ins: Sequence[str], attrs: dict[str, Any], shape: Callable, one: bool) -> Callable:
    """Return a function that returns the axis equation of an op without axes that may be split."""
    wants = tuple(inspect.signature(shape).parameters)
    names = tuple(dict.fromkeys([*ins, *wants]))

    def equation(*values: Any) -> str:
        given = dict(zip(names, values))
        outs = shape(*[given[n] for n in wants])
        terms = [given[n].shape for n in ins], [outs] if one else outs
        return "->".join(",".join(axes.same(len(t), range(len(t))) for t in side) for side in terms)

    return named(equation, names)


def checked_equation(op: str, sbp: str, ins: Sequence[str], outs: Sequence[str], read_shapes: bool) -> str:
    """Return `sbp` without spaces; raise ArgumentError unless it has a term per input and output."""
    left, right = (axes.parse(sbp.replace(" ", ""), len(ins)) if isinstance(sbp, str) and "->" in sbp
                   else ([], []))
    new = set("".join(right)) - set("".join(left)) | ({"1"} & set("".join(right)))
    odd = [c for t in (*left, *right) for c in t if not (c.isascii() and c.isalpha() or c == "1")]
    if len(left) != len(ins) or len(right) != len(outs) or odd or (read_shapes and new):
        more = ", no new letters on the right unless infer= is given" if read_shapes else ""
        raise ArgumentError(f"custom_op {op}: sbp is not an axis equation for it", got=repr(sbp),
                            expected=f"a letter per axis, {len(ins)} inputs -> {len(outs)} outputs{more}",
                            fix='"ab,b->ab" for a matrix and a row')
    return ",".join(left) + "->" + ",".join(right)
