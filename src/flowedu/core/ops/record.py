"""The parts of an op's record, one small class each.

    matmul = define("matmul(a, b, *, transpose_a=False, transpose_b=False) -> y",
                    Meaning(_axes, np.matmul, check=_check), Kernel("matmul", contiguous=False),
                    Split(linear=["a", "b"]), Laws([dict(shapes=[(6, 12), (12, 18)])]),
                    grad={"a": lambda dy, b: dy @ b.T, "b": lambda dy, a: a.T @ dy})

A record has a `Meaning`, and any of the other parts, in any order. A missing part has the defaults.
The op has the fields of all parts as attributes, such as `op.linear` and `op.examples`.

**The parameter names of each function in a record select its arguments:**

| field | input name | output name | attribute | other names |
|---|---|---|---|---|
| axes, shape, dtype, check, pack, localize, spread | its Spec | - | value | localize: see `Split` |
| view | its Spec | - | value | `strides` of the input, in elements; `out`: the output's Spec |
| ref | its ndarray | - | value | |
| grad[input] | its value | its value | value | `dy`: an output's gradient; `x_shape`, `x_dtype` |

(Functions of the first three rows may also take `attributes`, {name: value} of all attributes.)

The parameter names of a gradient thus determine which values are saved for the backward pass.
"""
from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowedu.core.ops.call import Rule
from flowedu.errors import ops as errors

REQUIRED = object()               # marks an attribute without default
Operand = Any                     # a tensor, a value of a graph (value.py), or a number


class Signature(NamedTuple):
    """A parsed signature. attrs: {attribute: default or REQUIRED}; signature: the whole text."""

    name: str
    inputs: tuple[str, ...]
    variadic: bool                # one input of any number of values
    attrs: dict[str, Any]
    outputs: tuple[str, ...]
    signature: str


class Meaning(NamedTuple):
    """The meaning of the op, independent of its kernel.

    axes: the axis equation, `"mk,kn->mn"`, or a function that returns it. A lower-case letter may
        be split over devices; upper case must stay whole. `1` is a broadcast axis. A lower-case
        letter absent from an output is contracted; if it is split, that output is a partial sum.
        None: a host op (ops/host.py), which is not split.
    ref: the result in NumPy, an array or a tuple of arrays.
    shape: output shape (a tuple of shapes for several outputs), if the letters do not determine it.
    dtype: output dtype (or tuple of them); default: that of the first input.
    check: raises a FlowError for invalid inputs; runs before `shape`.
    """

    axes: str | Callable[..., str] | None
    ref: Callable | None = None
    shape: Callable | None = None
    dtype: Callable | None = None
    check: Callable | None = None


class Kernel(NamedTuple):
    """The kernel of the op. By default `ref` is the kernel, in Python (ops/custom/pykernel.pyx).

    cpu: name of the kernel, as in the `table()` of a module of _kernels.
    pack: returns (ints, reals) for the kernel, in the order in which it reads them.
    numbers: True if the integers of `pack` may be any int64, not only sizes and steps.
    contiguous: True if all inputs must be contiguous (the engine copies strided ones), False if
        none must, or the names of the inputs that must be contiguous.
    key: the input whose dtype selects the kernel version (default: the first; without inputs, the
    output). inplace: inputs whose buffer the first output may reuse if they are not read later.
    program: an elementwise formula (ops/formula.py), which allows fusion. range_help: text with
        the valid indices, for the error of an invalid index, or a function that returns this error.
        The function gets the rejected value, the line or None, and the attributes.
    role: the name of `ref` in messages ("cube: backward"). trusted: `ref` may use its inputs in
        other threads, if those threads finish before it returns.
    """

    cpu: str | None = None
    pack: Callable | None = None
    numbers: bool = False
    contiguous: bool | Sequence[str] = True
    key: str | None = None
    inplace: Sequence[str] = ()
    program: Any = None
    range_help: str | Callable | None = None
    role: str | None = None
    trusted: bool = False


class View(NamedTuple):
    """An output that shares the first input's memory. `view` returns (strides, offset) or None."""

    view: Callable | None = None


class Split(NamedTuple):
    """Splits over devices in addition to those of the axis equation (core/sbp/signature.py).

    linear: groups of inputs in which the op is jointly linear, `[("a", "b")]` for add. Matmul has
        `["a", "b"]`, as it is linear in each input. `"gamma,beta->y"` names the outputs that become
        partial; the other outputs do not depend on the group.
    fold: "max" or "min" for ops that take the largest or smallest element. An output without a
        split letter is "Pmax" or "Pmin", not "P" (a partial sum). Pmax inputs give Pmax outputs.
    rising: inputs, or groups as in `linear`, in which the op is nondecreasing, element by element.
        If they are partial maxima (minima), the output is a partial maximum (minimum).
    spread: returns {signature: (op of a device, f)} for signatures under which attributes depend on
        the position of a device's part. f(start, stop) returns the attributes for this part.
    localize: returns the attributes that change on one shard, as a dict. Arguments: local Specs of
        inputs and of `out`; `full` and `full_out`, the whole shapes of the first input and output.
    group: the number of inputs per variable of an op that changes many variables (ops/update.py).
    The inputs of a variable are split alike. whole: True if the variables must not be split.
    """

    linear: Sequence = ()
    fold: str = ""
    rising: Sequence = ()
    spread: Callable | None = None
    localize: Callable | None = None
    group: int | None = None
    whole: bool = False


class Effects(NamedTuple):
    """Side effects. The passes of a graph do not move or remove calls with side effects.

    mutates: mutates(number of inputs) returns the indices of the inputs that change. `ref` returns
    the new values in that order. random: the result depends on a seed; the laws compare it to `ref`
    but do not split it. fresh: equal calls may have unequal results. effect: unused calls must run.
    """

    mutates: Callable[[int], Sequence[int]] | None = None
    random: bool = False
    fresh: bool = False
    effect: bool = False


class Laws(NamedTuple):
    """Examples for the laws of the tests.

    examples: calls, as dicts with "shapes" (one per input) and any attributes.
    domain: {input name: values to draw}: "any" (default), "positive", "unit" (-1, 1), "nonzero",
        "above_one", "index:N" (integers in [0, N)), "mask" (int8 zeros and ones), "few" (-1, 0 and
        1), "matrix" (far from singular), "definite" (a matrix whose symmetric part is positive
        definite), "sorted" (along the last axis).
    float_only: True for float32 and float64; False also for int32 and int64.
    """

    examples: Sequence[dict] = ()
    domain: dict[str, str] | None = None
    float_only: bool = True


KINDS: set[Any] = {Kernel, View, Split, Effects, Laws}
DEFAULTS = {name: value for kind in KINDS for name, value in kind._field_defaults.items()}
FUNCTIONS = ("ref", "shape", "dtype", "check", "pack", "view", "localize", "spread")


def read(signature: str) -> Signature:
    """Parse "name(a, b, *, required, attr=0) -> y", or "name(*xs, attr=0) -> y"."""
    head, arrow, tail = signature.partition("->")
    name, bracket, listed = (part.strip() for part in head.partition("("))
    try:
        if not name.isidentifier():
            raise SyntaxError
        inputs, variadic, attrs = _read_parameters(bracket + listed)
    except SyntaxError:
        raise errors.unreadable_signature(signature) from None
    tail = tail if arrow else "y"
    outputs = tuple(n.strip() for n in tail.strip().strip("()").split(",") if n.strip())
    return Signature(name, inputs, variadic, dict(attrs), outputs, signature)


@functools.cache                                      # many ops share "(x)" or "(x, y)"
def _read_parameters(listed: str) -> tuple[tuple[str, ...], bool, dict[str, Any]]:
    """Return (inputs, variadic, attributes) of "(a, b, *, attr=0)"."""
    a = ast.parse(f"def f{listed}: pass").body[0].args  # type: ignore[attr-defined]  # of a def
    attrs = {k.arg: REQUIRED if d is None else ast.literal_eval(d)
             for k, d in zip(a.kwonlyargs, a.kw_defaults)}
    inputs = (a.vararg.arg,) if a.vararg else tuple(p.arg for p in a.args)
    return inputs, a.vararg is not None, attrs


# ---- derived fields
def derive_fields(f: dict[str, Any]) -> dict[str, Any]:
    """Return normalized fields, and fields that follow from others."""
    equation, attrs, outputs = f["axes"], f["attrs"], f["outputs"]
    dense = f["inputs"] if f["contiguous"] is True else f["contiguous"] or ()
    if f["cpu"] is None and f["view"] is None:                # a kernel in Python takes any strides
        dense = ()
    fields = {"axes": (lambda: equation) if isinstance(equation, str) else equation,
              "attr_index": {n: i for i, n in enumerate(attrs)}, "defaults": tuple(attrs.values()),
              "required": tuple([n for n, v in attrs.items() if v is REQUIRED]),
              "linear": tuple([linear_group(g, outputs) for g in f["linear"]]),
              "rising": tuple([linear_group(g, outputs)[0] for g in f["rising"]]),
              "contiguous": frozenset(dense), "inplace": tuple(f["inplace"]),
              "elementwise": f["program"] is not None, "examples": tuple(f["examples"]),
              "domain": f["domain"] or {}}
    functions = [fields["axes"], *[f[n] for n in FUNCTIONS]]
    return {**fields, "params": {g: parameters(g) for g in functions if g is not None}}


def linear_group(group: str | Sequence[str],
                 outputs: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (inputs that may be partial together, outputs that then are partial) for a group."""
    if not isinstance(group, str):
        return tuple(group), outputs
    left, arrow, right = group.partition("->")
    return tuple(left.split(",")), tuple(right.split(",")) if arrow else outputs


def derive_gradients(grad: dict[str, Callable] | Callable | None,
                     signature: Signature) -> dict[str, Any]:
    """Return the gradient Rules, and the saved values: i for input i, ~i for output i."""
    table = {"*": grad} if callable(grad) else grad or {}
    saved: list[int] = []
    rules = {target: Rule(f, [_need(p, signature, saved) for p in parameters(f)])
             for target, f in table.items()}
    return {"rules": rules, "saved": tuple(saved), "saved_inputs": any(s >= 0 for s in saved),
            "any_rule": grad is None or "*" in rules or all(n in rules for n in signature.inputs)}


def _need(p: str, signature: Signature, saved: list[int]) -> tuple[str, int]:
    """Return (kind, index), the source of gradient argument `p`. Add saved values to `saved`."""
    inputs, outputs = signature.inputs, signature.outputs
    if p[0] == "d" and p[1:] in outputs:
        return "grad", outputs.index(p[1:])
    if p in signature.attrs:
        return "attr", list(signature.attrs).index(p)
    if p[-6:] in ("_shape", "_dtype") and p[:-6] in inputs:
        return p[-5:], inputs.index(p[:-6])
    if p not in inputs and p not in outputs:
        raise errors.unknown_gradient_name(signature, p)
    slot = inputs.index(p) if p in inputs else ~outputs.index(p)
    if slot not in saved:
        saved.append(slot)
    return "saved", saved.index(slot)


def parameters(f: Callable) -> tuple[str, ...]:
    code = getattr(f, "__code__", None)
    starred = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is not None and not f.__dict__ and not code.co_flags & starred:
        return code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]    # faster than inspect
    return tuple(inspect.signature(f).parameters)
