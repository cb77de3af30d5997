"""SBP signatures of an op on a row of devices, read off its record.

A signature says how each input and output lies: "B", every device has all of it; "S0", "S1" ..., cut along an axis; "P",
every device has an array and the value is their sum ("Pmax", "Pmin": their maximum, minimum). They come from

- the axis equation: a lower-case letter may be cut: it is S wherever it appears, B where it does not, and an output that
  lacks it is P (of an op that takes maxima, Pmax; field `fold`);
- `linear`: an op that is linear in a group of inputs takes P there, B elsewhere, and gives P. (Not where the element type
  changes so that a sum is lost: a cast of floats to integers rounds.) `rising` says the same of Pmax and Pmin;
- `spread`: what no letter says, because a device has to know which part it has (`slice_part`, say);
- all "B", which is always legal.

On a grid of devices there is one signature for each axis of the grid (candidates.py).
"""
from __future__ import annotations

import functools
from collections.abc import KeysView, Sequence

from flowedu.core.ops.axes import parse
from flowedu.core.ops.define import Op
from flowedu.core.sbp.sbp import pretty
from flowedu.core.values.dtype import bool_
from flowedu.core.values.spec import Spec

Signature = tuple[str, ...]  # one entry per input, then one per output


def signatures(op: Op, specs: Sequence[Spec], attrs: tuple | dict) -> KeysView[Signature]:
    """Return all legal signatures of a call on a row of devices, as an ordered set: letters of the outputs from the left,
    contracted letters, partial inputs, extra ones, all B. `attrs`: a dict may leave out attributes with defaults."""
    attrs = op.complete(attrs) if isinstance(attrs, dict) else attrs
    if op.random or op.axes is None:       # a host op: it has no equation, and runs in one place
        return {whole(op, specs): None}.keys()
    return _derived(op, tuple(specs), attrs)


@functools.lru_cache(maxsize=4096)
def _derived(op: Op, specs: tuple[Spec, ...], attrs: tuple) -> KeysView[Signature]:
    ins, outs = parse(op.equation(specs, attrs), len(specs))
    outs = outs[:len(op.outputs)]                            # an op without outputs: one empty term
    found: dict[Signature, None] = {}
    contracted = f"P{op.fold}"
    for letter in dict.fromkeys(c for t in outs + ins for c in t if c.islower()):
        left = [f"S{t.index(letter)}" if letter in t else "B" for t in ins]
        right = [f"S{t.index(letter)}" if letter in t else contracted for t in outs]
        found[(*left, *right)] = None
    for partial, inputs, outputs in _partial_groups(op):
        left = [partial if op.variadic or op.inputs[i] in inputs else "B" for i in range(len(ins))]
        right = [partial if n in outputs else "B" for n in op.outputs]
        if partial != "P" or _sums_kept(op, specs, attrs, left, right):
            found[(*left, *right)] = None
    for signature in extra(op, specs, attrs):
        found[signature] = None
    found.pop(whole(op, specs), None)
    found[whole(op, specs)] = None
    return found.keys()


def _partial_groups(op: Op):
    """(SBP, inputs that are so together, outputs that are so then)"""
    for inputs, outputs in op.linear:
        yield "P", inputs, outputs
    if op.fold:
        yield f"P{op.fold}", op.inputs, op.outputs
    for inputs in op.rising:
        for partial in ("Pmax", "Pmin"):
            yield partial, inputs, op.outputs


def _sums_kept(op, specs, attrs, left, right) -> bool:
    """Whether parts of the inputs' dtypes, turned into the outputs', still sum to the value."""
    def kept(a, y):
        return y.is_floating_point or not (a.is_floating_point or y is bool_)
    types = [s.dtype for s in op.infer(specs, attrs)]
    return all(kept(a.dtype, t) for a, s in zip(specs, left) if s == "P" for t, r in zip(types, right) if r == "P")


def extra(op: Op, specs: Sequence[Spec], attrs: tuple) -> dict:
    """What the record's `spread` says: {signature: (op a device calls, f(start, stop) -> its attributes)}."""
    if op.spread is None or any(s.dtype is bool_ or s.dtype.numpy is None for s in specs):    # no sums; no arrays for NumPy
        return {}
    return op.ask(op.spread, op.bind(specs, attrs))


def whole(op: Op, specs: Sequence[Spec]) -> Signature:
    """Every device has everything."""
    return ("B",) * (len(specs) + len(op.outputs))


def names_of(op: Op, inputs: int) -> list[str]:
    """The inputs' names: "x", "y", or "xs[0]", "xs[1]"."""
    return [f"{op.inputs[0]}[{i}]" for i in range(inputs)] if op.variadic else list(op.inputs)


def text(op: Op, signature: Sequence) -> str:
    """"x=S(0), w=B -> y=S(0)"; on a grid of devices "x=(S(0), B), ..."."""
    n = len(signature) - len(op.outputs)
    say = lambda names, sbps: ", ".join(f"{a}={pretty(s)}" for a, s in zip(names, sbps))
    return f"{say(names_of(op, n), signature[:n])} -> {say(op.outputs, signature[n:])}".strip()
