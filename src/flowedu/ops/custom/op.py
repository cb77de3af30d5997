"""flow.custom_op: an op whose kernel and gradient are Python functions of NumPy arrays.

    @flow.custom_op("cube", backward=lambda dy, x: 3 * x * x * dy)
    def cube(x):
        return x ** 3

`cube` then takes blobs and tensors, has a gradient, and runs in a plan between compiled kernels
(ops/custom/pykernel.pyx). Its record is an ordinary one with the function as `ref`, and so is the record of
its gradient, `cube_grad`.
"""
from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Sequence
from typing import Any

from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.record import Effects, Laws, Meaning, Split
from flowedu.errors import ArgumentError
from flowedu.ops.custom.gradient import gradient_record, rule
from flowedu.ops.custom.record import (
    CUSTOM,
    checked_equation,
    identifiers,
    make_record,
    named,
    parameters_of,
    shape_rules,
    signature_of,
    whole,
)
from flowedu.ops.front import front
from flowedu.ops.host import HOST

LIBRARIES: dict[str, set[str]] = {}        # {stem of a C++ library: op types that replace it}


def custom_op(name: str, forward: Callable | None = None, backward: Callable | None = None,
              infer: Callable | None = None,
              sbp: str | None = None, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] = ("y",),
              attrs: dict | None = None, grad: dict | None = None, linear: Sequence = (),
              examples: Sequence[dict] = (),
              domain: dict | None = None, float_only: bool = True, random: bool = False,
              library: str | None = None,
              gradient_name: str | None = None, replace: bool = False, doc: str = "") -> Callable:
    """Make an op from Python functions.

    Returns the function to call on blobs or tensors; its record is `.op`.

    Without `forward` it is a decorator: `@flow.custom_op("cube")`.

    Args:
        name: the op type: a Python name that no other op has.
        forward: called with an ndarray per input, and the attributes by keyword; returns an ndarray, or one
            per output. The arrays are read-only and may be strided; copy arrays that must outlive the call.
        backward: names what it needs by its parameters: `d<output>` (the gradient of an output), inputs,
            outputs, attributes. Returns one gradient per input, in order; None for an input that has none. Or
            another custom op with such inputs, which may have a backward itself: so there are higher
            derivatives.
        infer: asks for inputs' Specs (.shape, .dtype) and attributes by name; returns a shape, or (shape,
            dtype), for each output. Default: read off the equation `sbp` if there is one, else as the first
            input.
        sbp: axis equation, "ab,b->ab": axes with small letters may be cut over devices (flow.ops.define).
            Default: none.
        inputs, attrs: names of inputs, {attribute: default}. Default: forward's parameters, of which those
            with a default and those after `*` are attributes. Names that are Python keywords ("in") are
            written "in_" in functions.
        outputs: names of outputs.
        grad: in place of backward: {input: function}, written in ops as in flow.ops.define.
        linear: groups of inputs that forward is linear in together; they may be partial sums
            (flow.ops.define).
        examples, domain, float_only: calls that the tests of the registry try (flow.ops.define).
        random: the result differs from call to call, so passes neither merge calls nor compute them
            beforehand.
        library: stem of the C++ library that holds this op elsewhere, for flow.config.load_library.
        gradient_name: op type of backward. Default: `<name>_grad`.
        replace: take the place of the custom op of this name.

    Raises ArgumentError for names that do not fit or are taken, and for a backward that asks for unknown
    names.
    """
    options: dict[str, Any] = dict(infer=infer, sbp=sbp, inputs=inputs, outputs=outputs, attrs=attrs,
                                   grad=grad, linear=linear,
                   examples=examples, domain=domain, float_only=float_only, random=random, library=library,
                   gradient_name=gradient_name, replace=replace, doc=doc)
    if forward is None:
        return lambda f: custom_op(name, f, backward, **options)
    if grad is not None and backward is not None:
        raise ArgumentError(f"custom_op {name}: both backward and grad", expected="one of them", got="two",
                            fix="backward is a function of arrays; grad is written in ops")
    made: Any = getattr(backward, "op", backward)
    gradient_name = gradient_name or f"{name}_grad"
    own = (name,) if backward is None or isinstance(made, Op) else (name, gradient_name)
    check_name(name, own, replace)
    ins, attributes = parameters_of(name, forward, inputs, attrs)
    outs = identifiers(name, "outputs", outputs)
    if {*outs} & {*ins, *attributes}:
        raise ArgumentError(f"custom_op {name}: an output has the name of an input or attribute",
                            expected="different names",
                            got=f"inputs {ins}, outputs {outs}, attributes {(*attributes,)}",
                            fix='outputs=("out",)')
    equation = None if sbp is None else checked_equation(name, sbp, ins, outs, infer is None)
    shape, dtype = shape_rules(name, infer, ins, outs, attributes)
    replaced = {n: REGISTRY.pop(n) for n in old_records(name)}
    try:
        if len(own) == 2:
            made = gradient_record(name, gradient_name, backward, equation, ins, outs, attributes)
        op = make_record(
            signature_of(name, ins, outs, attributes), f"{name}: forward",
            Meaning(equation or whole(ins, attributes, shape, len(outs) == 1),
                    named(forward, (*ins, *attributes), len(ins)),
                    shape=None if equation and infer is None else shape, dtype=dtype),
            Split(linear=linear), Effects(random=random), Laws(examples, domain=domain,
                                                               float_only=float_only),
            grad=rule(name, made, ins, outs, attributes) if backward is not None else grad,
            doc=doc or inspect.getdoc(forward) or "")
    except BaseException:                      # nothing is half registered
        for n in own:
            REGISTRY.pop(n, None), CUSTOM.pop(n, None)
        REGISTRY.update(replaced), CUSTOM.update(replaced)
        raise
    if library is not None:
        LIBRARIES.setdefault(library, set()).add(name)
    return caller(op)


def check_name(name: str, own: Sequence[str], replace: bool) -> None:
    """Raise unless `name` is a Python name, and the record and its gradient are new."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ArgumentError("custom_op: the op type is not a name", expected="a Python name", got=repr(name),
                            fix='flow.custom_op("my_op", ...)')
    for n in own:
        if (n in REGISTRY or n in HOST) and not (replace and n in old_records(name)):
            raise ArgumentError(f"custom_op: an op named {n!r} exists already", got=repr(name),
                                expected="a name of its own",
                                fix="pass replace=True to take its place" if n in CUSTOM
                                else "choose another name")


def old_records(name: str) -> list[str]:
    """Return the names of the custom op `name` and of the gradient that was made with it."""
    return [n for n, op in CUSTOM.items() if op.role in (f"{name}: forward", f"{name}: backward")]


def caller(op: Op) -> Callable:
    """Return the function that users call."""
    def call(*inputs: Any, **more: Any) -> Any:
        rest = [more.pop(n) for n in op.inputs[len(inputs):] if n in more]
        for n, v in more.items():
            try:
                hash(tuple(v) if isinstance(v, list) else v)
            except TypeError:
                raise ArgumentError(f"{op.name}: the attribute {n} is not a constant", got=type(v).__name__,
                                    expected="a number, a string, a tuple",
                                    fix="pass arrays as inputs") from None
        return op(*inputs, *rest, **more)

    call.__name__ = call.__qualname__ = op.name
    call.__doc__ = f"{op.signature}\n\n{op.doc}".rstrip()
    made = front(op.name.capitalize())(call)
    made.op = op
    return made
