"""flow.custom_op: an op whose kernel and gradient are Python functions of NumPy arrays.

    @flow.custom_op("cube", backward=lambda dy, x: 3 * x * x * dy)
    def cube(x):
        return x ** 3

`cube` then takes blobs and tensors, has a gradient, and runs in a plan between compiled kernels
(ops/custom/pykernel.pyx). The function is the `ref` of an ordinary record. The gradient has a record of its
own, `cube_grad`.
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

    Return the function that users call with blobs or tensors. Its attribute `op` is the record.

    Without `forward`, return a decorator: `@flow.custom_op("cube")`.

    Args:
        name: the op type, a Python name that no other op has.
        forward: function that receives one ndarray per input, and the attributes by keyword. It returns one
            ndarray per output. The inputs are read-only and may be strided; copy arrays that must outlive
            the call.
        backward: function whose parameter names select its arguments: `d<output>` (the gradient of an
            output), inputs, outputs, and attributes. It returns one gradient per input, in order, or None for
            an input without a gradient. `backward` can also be another custom op with inputs of these names.
            If that op has a backward itself, second derivatives exist.
        infer: function that returns a shape, or (shape, dtype), for each output. Its parameter names select
            attributes and inputs, which are passed as Specs (.shape, .dtype). Default: shapes follow from the
            equation `sbp`; if `sbp` is None, every output has the shape of the first input.
        sbp: axis equation, such as "ab,b->ab". Axes with lower-case letters may be split over devices (see
            flow.ops.define). Default: None, no axis may be split.
        inputs, attrs: names of the inputs, and {attribute: default}. Default: the parameters of `forward`;
            parameters with a default value or after `*` are attributes. A name that is a Python keyword
            ("in") is written with an underscore ("in_") in functions.
        outputs: names of the outputs.
        grad: alternative to `backward`: {input: function}, written in ops as in flow.ops.define.
        linear: groups of inputs in which `forward` is jointly linear, so that they may be partial sums (see
            flow.ops.define).
        examples, domain, float_only: calls that the tests of the registry make (see flow.ops.define).
        random: True if results differ between calls with the same inputs. Passes then neither merge calls
            nor precompute them.
        library: stem of the C++ library that contains this op in OneFlow, for flow.config.load_library.
        gradient_name: op type of the gradient. Default: `<name>_grad`.
        replace: replace an existing custom op of this name.

    Raises:
        ArgumentError: a name is invalid or already used, or `backward` has a parameter with an unknown name.
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
        if len(own) == 2 and backward is not None:
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
    """Raise ArgumentError if `name` is not a Python name, or an op with a name of `own` exists."""
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
