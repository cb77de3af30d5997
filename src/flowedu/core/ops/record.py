"""The parts of an op's record, a small class each.

    matmul = define("matmul(a, b, *, transpose_a=False, transpose_b=False) -> y",
                    Meaning(_axes, np.matmul, check=_check), Kernel("matmul", contiguous=False),
                    Split(linear=["a", "b"]), Laws([dict(shapes=[(6, 12), (12, 18)])]),
                    grad={"a": lambda dy, b: dy @ b.T, "b": lambda dy, a: a.T @ dy})

An op has a `Meaning`, and of the others those that say something other than the defaults, in any order. The fields of all
parts are read off the op itself: `op.linear`, `op.examples`.

**Every function in a record asks for what it needs by parameter name** and is given just that:

| field | input name | output name | attribute | other names |
|---|---|---|---|---|
| axes, shape, dtype, check, pack, localize, spread | its Spec | - | value | localize: see `Split` |
| view | its Spec | - | value | `strides` of the input, in elements; `out`: the output's Spec |
| ref | its ndarray | - | value | |
| grad[input] | its value | its value | value | `dy` (`d` + output name): its gradient; `x_shape`, `x_dtype`: only those |

(`attributes`: all of them, {name: value}; those of the first three rows may ask for it.)

So the parameter names of a gradient say what backward must keep alive: that list is written once.
"""
from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowedu.core.ops.call import Rule
from flowedu.errors import ArgumentError

REQUIRED = object()               # the default of an attribute that has none


class Signature(NamedTuple):
    """The form of a call: names of inputs and outputs, and {attribute: default or REQUIRED} in the order values are
    kept. variadic: the one input stands for any number of them. signature: the text, for messages."""

    name: str
    inputs: tuple[str, ...]
    variadic: bool
    attrs: dict[str, Any]
    outputs: tuple[str, ...]
    signature: str


class Meaning(NamedTuple):
    """The meaning of the op, independent of what computes it.

    axes: the axis equation, `"mk,kn->mn"`, or a function that returns it. A lower-case letter may be split over devices;
        upper case must stay whole; `1` is a broadcast axis. A lower-case letter absent from an output is contracted:
        splitting it makes that output a partial sum. (None: a host op, ops/host.py, which runs in one place.)
    ref: the result, in NumPy: an array or a tuple of arrays.
    shape: output shape (or tuple of shapes when there are several outputs), where letters alone do not give it.
    dtype: output dtype (or tuple of them); default: that of the first input.
    check: raises a FlowError when the inputs do not fit; runs before `shape`.
    """

    axes: str | Callable[..., str] | None
    ref: Callable | None = None
    shape: Callable | None = None
    dtype: Callable | None = None
    check: Callable | None = None


class Kernel(NamedTuple):
    """How it is computed: by default by `ref`, called as a kernel in Python (ops/custom/pykernel.pyx).

    cpu: name of the kernel, as in the `table()` of a module of _kernels.
    pack: (ints, reals) for the kernel, in the order it reads them.
    numbers: the integers of `pack` are numbers, not sizes or steps: any int64.
    contiguous: the kernel wants contiguous inputs (the engine packs strided ones). False: any strides. Or a list of input
        names that must be contiguous.
    key: the input whose dtype picks the kernel version (default: the first; for sources, the output).
    inplace: inputs whose buffer the first output may reuse when they are not read later.
    program: an elementwise formula (ops/formula.py), which lets the plan fuse this op.
    range_help: which indices the kernel takes, for the message about one out of range; or a function that makes the error,
        of (`detail` of the call, the line or None, *attributes).
    role: what messages call `ref` ("cube: backward"). trusted: `ref` may lend its inputs to other threads, and sees to it
        that they are done when it returns.
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
    """No kernel: `view` returns (strides, offset) in elements for the output over the first input's memory, or None where
    its strides do not allow that."""

    view: Callable | None = None


class Split(NamedTuple):
    """How it may be split over devices, beside what the axis equation says (core/sbp/signature.py).

    linear: groups of inputs the op is linear in together: `[("a", "b")]` for add, `["a", "b"]` for matmul, which is
        linear in each alone. `"gamma,beta->y"` names the outputs that become partial; the others do not depend on it.
    fold: "max" or "min" for ops that take the largest or smallest: an output that lacks a split letter is then a partial
        maximum ("Pmax"), not a partial sum, and parts of a maximum in all inputs make one.
    rising: inputs, or groups of them as in `linear`, in which the op is nondecreasing, element by element: of parts of a
        maximum or minimum there it makes parts of one.
    spread: signatures that no letter says, because a device must know which part it has: returns {signature: (op that a
        device calls, f)}, where f(start, stop) gives that op's attributes for the device that has the elements
        [start, stop) of the split axis.
    localize: attributes on one shard: gets Specs of local inputs and `out`, the local output Spec, `full` and `full_out`,
        the whole shapes of the first input and output; returns a dict of changed attributes.
    group: of an op that changes many variables, how many inputs belong to each (core/ops/update.py); they are split alike.
    whole: ... and none of them may be split.
    """

    linear: Sequence = ()
    fold: str = ""
    rising: Sequence = ()
    spread: Callable | None = None
    localize: Callable | None = None
    group: int | None = None
    whole: bool = False


class Effects(NamedTuple):
    """Its effects beside its outputs; the passes of a graph leave such calls where they are.

    mutates: which of n inputs are changed, in order: a function of n. `ref` returns their new values in that order.
    random: the result depends on a seed; the laws compare it with `ref` but do not split it.
    fresh: two calls with the same inputs are not the same.
    effect: it must run even if its outputs are not read.
    """

    mutates: Callable[[int], Sequence[int]] | None = None
    random: bool = False
    fresh: bool = False
    effect: bool = False


class Laws(NamedTuple):
    """The examples that the laws of the tests try.

    examples: calls: dicts with "shapes" (one per input) and any attributes.
    domain: {input name: values to draw}: "any" (default), "positive", "unit" (-1, 1), "nonzero", "above_one", "index:N"
        (integers in [0, N)), "mask" (int8 zeros and ones), "few" (-1, 0 and 1), "matrix" (far from singular),
        "definite" (a matrix, the mean of whose triangles is positive definite), "sorted" (along the last axis).
    float_only: float32 and float64; otherwise also int32 and int64.
    """

    examples: Sequence[dict] = ()
    domain: dict[str, str] | None = None
    float_only: bool = True


KINDS = {Kernel, View, Split, Effects, Laws}
DEFAULTS = {name: value for kind in KINDS for name, value in kind._field_defaults.items()}
FUNCTIONS = ("ref", "shape", "dtype", "check", "pack", "view", "localize", "spread")


def read(signature: str) -> Signature:
    """A Signature from its text, written as Python writes one: inputs, then after `*` the attributes with their defaults,
    then the outputs. A bare attribute is required; `*xs` takes any number of inputs."""
    head, arrow, tail = signature.partition("->")
    name, bracket, listed = (part.strip() for part in head.partition("("))
    try:
        if not name.isidentifier():
            raise SyntaxError
        inputs, variadic, attrs = _read_parameters(bracket + listed)
    except SyntaxError:
        raise ArgumentError("define: the signature is not Python", expected='"name(a, b, *, attr=0) -> y"',
                            got=repr(signature)) from None
    outputs = tuple(n.strip() for n in tail.strip().strip("()").split(",") if n.strip()) if arrow else ("y",)
    return Signature(name, inputs, variadic, dict(attrs), outputs, signature)


@functools.cache                                                     # a hundred ops are "(x)" or "(x, y)"
def _read_parameters(listed: str) -> tuple[tuple[str, ...], bool, dict[str, Any]]:
    """(inputs, whether the one input stands for any number, attributes) of "(a, b, *, attr=0)"."""
    a = ast.parse(f"def f{listed}: pass").body[0].args
    attrs = {k.arg: REQUIRED if d is None else ast.literal_eval(d) for k, d in zip(a.kwonlyargs, a.kw_defaults)}
    return (a.vararg.arg,) if a.vararg else tuple(p.arg for p in a.args), a.vararg is not None, attrs


# ---- derived fields, worked out once
def derived(f: dict[str, Any]) -> dict[str, Any]:
    """The fields that are read in another form than they are written in, and those that follow from others."""
    equation, attrs, outputs = f["axes"], f["attrs"], f["outputs"]
    dense = f["inputs"] if f["contiguous"] is True else f["contiguous"] or ()
    if f["cpu"] is None and f["view"] is None:                      # a kernel in Python takes any strides
        dense = ()
    found = {
        "axes": (lambda: equation) if isinstance(equation, str) else equation,
        "attr_index": {n: i for i, n in enumerate(attrs)}, "defaults": tuple(attrs.values()),
        "required": tuple([n for n, v in attrs.items() if v is REQUIRED]),
        "linear": tuple([linear_group(g, outputs) for g in f["linear"]]),
        "rising": tuple([linear_group(g, outputs)[0] for g in f["rising"]]),
        "contiguous": frozenset(dense), "inplace": tuple(f["inplace"]), "elementwise": f["program"] is not None,
        "examples": tuple(f["examples"]), "domain": f["domain"] or {}}
    asked = [found["axes"], *[f[n] for n in FUNCTIONS]]
    return {**found, "params": {g: parameters(g) for g in asked if g is not None}}


def linear_group(group: str | Sequence[str], outputs: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(inputs that may be partial together, outputs that are partial then) of an entry of `linear`."""
    if not isinstance(group, str):
        return tuple(group), outputs
    left, arrow, right = group.partition("->")
    return tuple(left.split(",")), tuple(right.split(",")) if arrow else outputs


def gradients(grad: dict[str, Callable] | Callable | None, signature: Signature) -> dict[str, Any]:
    """What the gradient functions need, worked out from their parameter names: `rules` {input or "*": Rule}, and `saved`,
    the inputs i and outputs ~i to keep."""
    table = grad if isinstance(grad, dict) else {"*": grad} if grad else {}
    saved: list[int] = []
    rules = {target: Rule(f, [_need(p, signature, saved) for p in parameters(f)]) for target, f in table.items()}
    return {"rules": rules, "saved": tuple(saved), "saved_inputs": any(s >= 0 for s in saved),
            "any_rule": grad is None or "*" in rules or all(n in rules for n in signature.inputs)}


def _need(p: str, signature: Signature, saved: list[int]) -> tuple[str, int]:
    """Where the argument `p` of a gradient comes from; what has to be kept for it joins `saved`."""
    inputs, outputs = signature.inputs, signature.outputs
    if p[0] == "d" and p[1:] in outputs:
        return "grad", outputs.index(p[1:])
    if p in signature.attrs:
        return "attr", list(signature.attrs).index(p)
    if p[-6:] in ("_shape", "_dtype") and p[:-6] in inputs:
        return p[-5:], inputs.index(p[:-6])
    if p not in inputs and p not in outputs:
        raise ArgumentError(f"define {signature.name}: a gradient asks for an unknown name", got=p,
                            expected=f"names of {signature.signature}, d<output>, <input>_shape or <input>_dtype")
    slot = inputs.index(p) if p in inputs else ~outputs.index(p)
    if slot not in saved:
        saved.append(slot)
    return "saved", saved.index(slot)


def parameters(f: Callable) -> tuple[str, ...]:
    """The parameter names of a record's function."""
    code = getattr(f, "__code__", None)
    if code is not None and not f.__dict__ and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]      # at once; there are a thousand of them
    return tuple(inspect.signature(f).parameters)
