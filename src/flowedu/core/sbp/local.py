"""The call one device makes of an op: which op, its attributes, and the Specs of what it reads and makes.

A call is cut along one axis of the grid of devices at a time; what comes out are calls, which the next axis cuts again.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flowedu.core.ops.define import Op
from flowedu.core.sbp.sbp import fits, local_shape, split_axis
from flowedu.core.sbp.signature import Signature, extra, names_of
from flowedu.core.values.place import bounds
from flowedu.core.values.spec import Spec
from flowedu.errors import FlowError

UNEVEN = "the devices' parts do not make up the result: the cut is uneven"


class LocalCall(NamedTuple):
    """Attributes and output Specs on one device; the op, which is another one where a device must know which part it has
    (`spread` of its record); input Specs."""

    attrs: tuple
    outs: tuple[Spec, ...]
    op: Op
    ins: tuple[Spec, ...]


def logical_call(op: Op, specs: Sequence[Spec], attrs: tuple) -> LocalCall:
    """The call of all devices together."""
    return LocalCall(attrs, op.infer(specs, attrs), op, tuple(specs))


def unfit(call: LocalCall, signature: Signature, k: int) -> str:
    """Why `signature` cannot be had on k devices: an axis that is too short. "" where it can."""
    names = [*names_of(call.op, len(call.ins)), *call.op.outputs]
    for n, s, value in zip(names, signature, (*call.ins, *call.outs)):
        if not fits(s, value.shape, k):
            size = value.shape[split_axis(s)]
            return f"axis {split_axis(s)} of {n} has {size} element{'s' * (size != 1)} for {k} devices"
    return ""


def split_call(call: LocalCall, signature: Signature, k: int) -> tuple[LocalCall, ...] | None:
    """One call for each of k devices, or None where their parts do not make up the result.

    The last happens when a cut is uneven: 5 rows of 12 numbers on two devices are 36 and 24 numbers, but 60 numbers
    are cut into 30 and 30, so a reshape from one to the other cannot be done in place.
    """
    if k == 1 or all(s == "B" for s in signature):
        return (call,) * k
    values = (*call.ins, *call.outs)
    special = extra(call.op, call.ins, call.attrs).get(signature)
    cuts = [None] * k
    if special is not None:
        axis, value = next((split_axis(s), v) for s, v in zip(signature, values) if s[0] == "S")
        cuts = bounds(value.shape[axis], k)
    known: dict[tuple, LocalCall | None] = {}
    calls = []
    for i, cut in enumerate(cuts):
        specs = tuple(Spec(local_shape(s, v.shape, k, i), v.dtype) for s, v in zip(signature, values))
        if (specs, cut) not in known:
            known[specs, cut] = device_call(call, specs[:len(call.ins)], specs[len(call.ins):], special, cut)
        if known[specs, cut] is None:
            return None
        calls.append(known[specs, cut])
    return tuple(calls)


def device_call(call: LocalCall, ins, outs, special, cut) -> LocalCall | None:
    op, attrs = call.op, call.attrs
    try:
        if special is not None:
            op = special[0]
            attrs = op.complete(special[1](*cut))
        elif op.localize is not None:
            names = op.bind(ins, attrs, out=outs[0] if outs else None, full=call.ins[0].shape if ins else (),
                            full_out=call.outs[0].shape if outs else ())
            changed = op.ask(op.localize, names)
            attrs = tuple(changed.get(n, v) for n, v in zip(op.attrs, attrs))
        return LocalCall(attrs, outs, op, ins) if op.infer(ins, attrs) == outs else None
    except FlowError:
        return None
