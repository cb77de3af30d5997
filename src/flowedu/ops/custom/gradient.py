"""Gradients of custom ops: `backward` becomes a separate record, which the gradient rule calls."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from flowedu.core.ops import axes
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.record import REQUIRED, Meaning
from flowedu.core.values.dtype import as_dtype, dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, GradientError
from flowedu.ops.custom.record import asking, make_record, named, signature_of
from flowedu.ops.types import AnyTensor, Gradients, Shape


def gradient_record(op: str, name: str, backward: Callable, sbp: str | None, ins: Sequence[str],
                    outs: Sequence[str], attrs: dict[str, Any]) -> Op:
    """Return the record `name`, the gradient of `op`.

    Its kernel is `backward`, and its outputs are the gradients of all inputs. Its attribute `shapes` contains
    the shapes of the forward inputs, because `backward` may not use all of these inputs.
    """
    grads = [f"d{n}" for n in outs]
    asked, ask = asking(op, "backward", backward, (*grads, *ins, *outs, *attrs))
    arrays = tuple(n for n in asked if n not in attrs)
    own = {n: attrs[n] for n in asked if n in attrs} | {"shapes": REQUIRED}
    if not any(n in grads for n in asked):
        raise ArgumentError(f"custom_op {op}: backward does not ask for a gradient",
                            expected=" or ".join(grads),
                            got=f"backward({', '.join(asked)})",
                            fix=f"backward({', '.join([grads[0], *ins[:1]])})")
    terms = None
    equation: Any = None
    if sbp is None:
        equation = named(_whole, (*arrays, "shapes"))
    else:
        equation = gradient_equation(sbp, ins, outs, arrays)
        terms = axes.parse(equation, len(arrays))

    def shapes_of(specs: Sequence[Spec], shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
        if terms is None:
            return shapes
        size = {c: n for t, s in zip(terms[0], specs) for c, n in zip(t, s.shape) if c != "1"}
        # On a shard: smaller.
        return tuple(tuple(size.get(c, n) for c, n in zip(t, s)) for t, s in zip(terms[1], shapes))

    def dtypes_of(specs: Sequence[Spec]) -> tuple[dtype, ...]:
        given = dict(zip(arrays, specs))
        first = next(s.dtype for n, s in given.items() if n in grads)
        return tuple(given[n].dtype if n in given else first for n in ins)

    def ref(*values: Any) -> tuple[np.ndarray, ...]:
        given = dict(zip((*arrays, *own), values))
        found = ask(*[given[n] for n in asked])
        found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        if len(found) != len(ins) or all(g is not None for g in found):
            return found                                            # the kernel checks the others
        specs = [Spec(given[n].shape, as_dtype(given[n].dtype)) for n in arrays]
        likes = zip(found, shapes_of(specs, given["shapes"]), dtypes_of(specs))
        return tuple(np.zeros(s, d.numpy) if g is None else g for g, s, d in likes)

    def shape(*values: Any) -> Shape | tuple[Shape, ...]:
        shapes = shapes_of(values[:-1], values[-1])
        return shapes if len(ins) > 1 else shapes[0]

    def no_second() -> NoReturn:
        raise GradientError(f"{op}: backward is a Python function, which cannot be differentiated",
                            expected="first derivatives only", got="a derivative of a derivative",
                            fix="give grad={...}, written in ops, or as backward a custom op that has a "
                            "backward itself")

    return make_record(
        signature_of(name, arrays, [f"d{n}" for n in ins], own), f"{op}: backward",
        Meaning(equation, named(ref, (*arrays, *own)), shape=named(shape, (*arrays, "shapes")),
                dtype=named(lambda *specs: dtypes_of(specs), arrays)), grad=no_second,
        doc=f"The gradient of {op}.")


def _whole(*values: Any) -> str:
    """Return the equation of a gradient none of whose axes may be split.

    The last value is the attribute `shapes`.
    """
    ranks = [s.ndim for s in values[:-1]], [len(s) for s in values[-1]]
    return "->".join(",".join(axes.same(n, range(n)) for n in side) for side in ranks)


def gradient_equation(sbp: str, ins: Sequence[str], outs: Sequence[str], arrays: Sequence[str]) -> str:
    """Return the axis equation of the gradient, with the letters of `sbp`.

    A gradient without one of the letters is a partial sum over the axis of this letter.

    Axes of two kinds cannot be split, so their letters become upper case. The first kind are axes that no
    array argument of `backward` has. The second kind are axes that were summed in an output that `backward`
    receives, because each device would have only a partial sum of this output.
    """
    left, right = axes.parse(sbp, len(ins))
    term = {**dict(zip(outs, right)), **{f"d{n}": t for n, t in zip(outs, right)}, **dict(zip(ins, left))}
    summed = [term[a] for a in arrays if a in outs and a not in ins]
    kept = {c for a in arrays for c in term[a]}
    fixed = {c for c in "".join(left) if c not in kept or any(c not in t for t in summed)}
    return (",".join(term[a] for a in arrays) + "->" + ",".join(left)).translate({ord(c): c.upper()
                                                                                  for c in fixed})


def rule(op: str, made: Op, ins: Sequence[str], outs: Sequence[str], attrs: dict[str, Any]) -> Callable:
    """Return the gradient rule (`grad` of flow.ops.define) that calls the record `made`."""
    known = (*[f"d{n}" for n in outs], *ins, *outs)
    wrong = [n for n in made.inputs if n not in known] + [n for n in made.required if n not in attrs
                                                          and n != "shapes"]
    if wrong or len(made.outputs) != len(ins):
        raise ArgumentError(f"custom_op {op}: {made.name} does not fit as its backward", got=made.signature,
                            expected=f"inputs and attributes among {', '.join([*known, *attrs])}; {len(ins)} "
                            f"outputs",
                            fix="name its inputs after the gradients, inputs and outputs they are")
    saved = tuple(dict.fromkeys([*made.inputs, *(ins if len(outs) > 1 else ())]))   # inputs: see _zeros
    names = (*saved, *attrs, *[f"{n}_shape" for n in ins])

    def gradient(*values: Any) -> Gradients:
        given = dict(zip(names, values))
        more = {n: given[n] for n in made.attrs if n in attrs}
        if "shapes" in made.attrs:
            more["shapes"] = tuple(tuple(given[f"{n}_shape"]) for n in ins)
        found = made(*[_zeros(op, n[1:], given, ins) if given[n] is None else given[n] for n in made.inputs],
                     **more)
        return dict(zip(ins, found if isinstance(found, tuple) else (found,)))

    return named(gradient, names)


def _zeros(op: str, output: str, given: dict[str, Any], ins: Sequence[str]) -> AnyTensor:
    """Return the gradient of an output that the loss does not depend on."""
    record = REGISTRY[op]
    spec = record.infer([given[n].spec for n in ins],
                        tuple(given[n] for n in record.attrs))[record.outputs.index(output)]
    return REGISTRY["constant"](shape=spec.shape, value=0.0, dtype=spec.dtype)
