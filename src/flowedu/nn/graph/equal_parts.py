"""Split of a call into k equal local calls, one per device, if k divides the split axes.

rows.py compares the call of a micro-batch with such a local call. The rules are those of core/sbp for one row
of devices. They are used in one direction only, from the layouts of the inputs to those of the outputs.
Gradient accumulation belongs to chapter 5, so this file uses no function of core/sbp that is an exercise of
chapter 6.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flowedu.core.ops.axes import parse
from flowedu.core.ops.define import Op
from flowedu.core.sbp.local import LocalCall, device_call, logical_call
from flowedu.core.sbp.signature import extra
from flowedu.core.values.dtype import bool_, dtype
from flowedu.core.values.spec import Spec

Layouts = tuple[str, ...]                              # "B", "P", "Pmax", "S0", "S1", ... for each value


def keeps_factors(a: dtype, y: dtype) -> bool:
    """Return True if a cast from dtype `a` to `y` preserves factors; rounding to integers does not."""
    return y.is_floating_point or not (a.is_floating_point or y is bool_)


def output_layouts(op: Op, specs: Sequence[Spec], attrs: tuple, inputs: Layouts) -> Iterator[Layouts]:
    """Yield the layouts that the outputs can have if the inputs have the layouts `inputs`, best first."""
    if op.random or op.axes is None:
        return
    terms, results = parse(op.equation(specs, attrs), len(specs))
    results = results[:len(op.outputs)]
    letters = sorted({c for term in (*results, *terms) for c in term if c.islower()})
    for c in letters:
        if inputs == tuple(_layout(term, c, "B") for term in terms):
            yield tuple(_layout(term, c, f"P{op.fold}") for term in results)
    yield from _linear_layouts(op, specs, attrs, inputs)
    for signature in extra(op, specs, attrs):
        if tuple(signature[:len(specs)]) == inputs:
            yield tuple(signature[len(specs):])
    if set(inputs) <= {"B"}:
        yield ("B",) * len(op.outputs)


def _layout(term: str, letter: str, without: str) -> str:
    """Return the layout of the axes `term` if `letter` is split, or `without` if they do not contain it."""
    place = term.find(letter)
    return without if place < 0 else f"S{place}"


def _linear_layouts(op: Op, specs: Sequence[Spec], attrs: tuple, inputs: Layouts) -> Iterator[Layouts]:
    """Yield partial-sum layouts for ops that are linear in a group of inputs that are partial sums."""
    if set(inputs) != {"P"} and set(inputs) != {"P", "B"}:
        return
    summed = {i for i, layout in enumerate(inputs) if layout == "P"}
    out_types = [s.dtype for s in op.infer(specs, attrs)]
    for group, outputs in op.linear:
        members = set(range(len(inputs))) if op.variadic else {op.inputs.index(name) for name in group}
        types = [t for t, name in zip(out_types, op.outputs) if name in outputs]
        if summed == members and all(keeps_factors(specs[i].dtype, t) for i in summed for t in types):
            yield tuple("P" if name in outputs else "B" for name in op.outputs)


def split_equally(op: Op, specs: Sequence[Spec], attrs: tuple, layouts: Layouts,
                  k: int) -> list[LocalCall] | None:
    """Return the calls of k devices with equal parts, or None if the parts do not add up to the result.

    Args:
        specs, attrs: specs and attributes of the call of all devices together.
        layouts: layouts of the inputs, then of the outputs.
    """
    call = logical_call(op, specs, attrs)
    values = (*call.ins, *call.outs)
    split = [(int(layout[1:]), value.shape) for layout, value in zip(layouts, values) if layout[0] == "S"]
    if any(axis >= len(shape) or shape[axis] < k or shape[axis] % k for axis, shape in split):
        return None
    parts = [_part(value, layout, k) for layout, value in zip(layouts, values)]
    special = extra(op, specs, attrs).get(layouts)
    size = split[0][1][split[0][0]] // k if split else 0
    calls: list[Any] = [
        device_call(call, tuple(parts[:len(specs)]), tuple(parts[len(specs):]), special,
                    (i * size, (i + 1) * size))
        for i in range(k if special else 1)]
    return None if None in calls else calls


def _part(value: Spec, layout: str, k: int) -> Spec:
    if layout[0] != "S":
        return value
    axis = int(layout[1:])
    return Spec((*value.shape[:axis], value.shape[axis] // k, *value.shape[axis + 1:]), value.dtype)
