"""The call of an op on one device: the op, its attributes, and the Specs of its inputs and outputs.

`split_call` splits a call along one axis of the grid of devices; the next axis splits the results.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flowedu.core.ops.define import Op
from flowedu.core.sbp.sbp import boxes, fits, shape_of, split_axis
from flowedu.core.sbp.signature import Signature, extra, names_of
from flowedu.core.values.place import bounds
from flowedu.core.values.spec import Spec
from flowedu.errors import FlowError

UNEVEN = "the devices' parts do not make up the result: the cut is uneven"


class LocalCall(NamedTuple):
    """Attributes, output Specs, op (a `spread` signature may replace it), and input Specs."""

    attrs: tuple
    outs: tuple[Spec, ...]
    op: Op
    ins: tuple[Spec, ...]


def logical_call(op: Op, specs: Sequence[Spec], attrs: tuple) -> LocalCall:
    """Return the call on the logical values."""
    return LocalCall(attrs, op.infer(specs, attrs), op, tuple(specs))


def describe_misfit(call: LocalCall, signature: Signature, k: int) -> str:
    """Return the axis that is too short for `signature` on k devices, as text; "" if none is."""
    names = [*names_of(call.op, len(call.ins)), *call.op.outputs]
    for n, s, value in zip(names, signature, (*call.ins, *call.outs)):
        if not fits((s,), value.shape, (k,)):
            size = value.shape[split_axis(s)]
            elements = f"{size} element{'s' * (size != 1)}"
            return f"axis {split_axis(s)} of {n} has {elements} for {k} devices"
    return ""


def split_call(call: LocalCall, signature: Signature, k: int) -> tuple[LocalCall, ...] | None:
    """Return one call for each of k devices, or None if the output parts do not form the result.

    Uneven splits can cause that. An example is a reshape (5, 12) -> (60,) on two devices: they have
    36 and 24 elements of the input, but 30 and 30 of the output, so elements would have to move.
    """
    if k == 1 or all(s == "B" for s in signature):
        return (call,) * k
    values = (*call.ins, *call.outs)
    special = extra(call.op, call.ins, call.attrs).get(signature)
    cuts: list = [None] * k
    if special is not None:
        axis, value = next((split_axis(s), v) for s, v in zip(signature, values) if s[0] == "S")
        cuts = bounds(value.shape[axis], k)
    known: dict[tuple, LocalCall] = {}
    calls = []
    for i, cut in enumerate(cuts):
        specs = tuple(Spec(shape_of(boxes((s,), (k,), v.shape)[i]), v.dtype)
                      for s, v in zip(signature, values))
        if (specs, cut) not in known:
            part = device_call(call, specs[:len(call.ins)], specs[len(call.ins):], special, cut)
            if part is None:
                return None
            known[specs, cut] = part
        calls.append(known[specs, cut])
    return tuple(calls)


def device_call(call: LocalCall, ins: tuple[Spec, ...], outs: tuple[Spec, ...],
                special: tuple | None, cut: tuple[int, int] | None) -> LocalCall | None:
    op, attrs = call.op, call.attrs
    try:
        if special is not None and cut is not None:
            op = special[0]
            attrs = op.complete(special[1](*cut))
        elif op.localize is not None:
            names = op.bind(ins, attrs, out=outs[0] if outs else None,
                            full=call.ins[0].shape if ins else (),
                            full_out=call.outs[0].shape if outs else ())
            changed = op.ask(op.localize, names)
            attrs = tuple(changed.get(n, v) for n, v in zip(op.attrs, attrs))
        return LocalCall(attrs, outs, op, ins) if op.infer(ins, attrs) == outs else None
    except FlowError:
        return None
