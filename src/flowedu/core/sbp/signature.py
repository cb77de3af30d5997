"""SBP signatures of an op on a row of devices, derived from its record.

A signature has one SBP (core/sbp/sbp.py) for each input and output. On a grid of devices, there is
one signature for each axis of the grid (candidates.py). Signatures follow from

- the axis equation: for each lower-case letter, the values with that letter are split along it,
  inputs without it are B, and outputs without it are P (Pmax for an op that takes maxima: `fold`);
- `linear`: an op that is linear in a group of inputs maps P to P, if all other inputs are B and the
  cast to the output dtype keeps sums (not float to int);
- `rising`: a nondecreasing op maps Pmax to Pmax, and Pmin to Pmin, if all other inputs are B;
- `spread`: signatures under which a device needs the position of its part (as in `slice_part`);
- all "B", which is always legal.
"""
from __future__ import annotations

import functools
from collections.abc import Iterator, KeysView, Sequence

from flowedu.core.ops.axes import parse
from flowedu.core.ops.define import Op
from flowedu.core.sbp.sbp import pretty
from flowedu.core.values.dtype import bool_, dtype
from flowedu.core.values.spec import Spec

Signature = tuple[str, ...]  # one entry per input, then one per output


def signatures(op: Op, specs: Sequence[Spec], attrs: tuple | dict) -> KeysView[Signature]:
    """Return all legal signatures of a call on a row of devices, as an ordered set."""
    # In order: output letters from the left, contracted letters, partial inputs, `spread`, all B.
    attrs = op.complete(attrs) if isinstance(attrs, dict) else attrs
    if op.random or op.axes is None:       # a host op has no equation and is not split
        return {whole(op, specs): None}.keys()
    return _derived(op, tuple(specs), attrs)


@functools.lru_cache(maxsize=4096)
def _derived(op: Op, specs: tuple[Spec, ...], attrs: tuple) -> KeysView[Signature]:
    ins, outs = parse(op.equation(specs, attrs), len(specs))
    outs = outs[:len(op.outputs)]                            # an op without outputs: one empty term
    result: dict[Signature, None] = {}
    contracted = f"P{op.fold}"
    for letter in dict.fromkeys(c for t in outs + ins for c in t if c.islower()):
        left = [f"S{t.index(letter)}" if letter in t else "B" for t in ins]
        right = [f"S{t.index(letter)}" if letter in t else contracted for t in outs]
        result[(*left, *right)] = None
    for partial, inputs, outputs in _partial_groups(op):
        left = [partial if op.variadic or op.inputs[i] in inputs else "B" for i in range(len(ins))]
        right = [partial if n in outputs else "B" for n in op.outputs]
        if partial != "P" or _sums_kept(op, specs, attrs, left, right):
            result[(*left, *right)] = None
    for signature in extra(op, specs, attrs):
        result[signature] = None
    result.pop(whole(op, specs), None)
    result[whole(op, specs)] = None
    return result.keys()


def _partial_groups(op: Op) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """Yield (SBP, the inputs that must all have it, the outputs that get it)."""
    for inputs, outputs in op.linear:
        yield "P", inputs, outputs
    if op.fold:
        yield f"P{op.fold}", op.inputs, op.outputs
    for inputs in op.rising:
        for partial in ("Pmax", "Pmin"):
            yield partial, inputs, op.outputs


def _sums_kept(op: Op, specs: tuple, attrs: tuple, left: list, right: list) -> bool:
    """Return True if the conversion from input to output dtypes preserves sums of parts."""
    def keeps_sums(a: dtype, y: dtype) -> bool:
        return y.is_floating_point or not (a.is_floating_point or y is bool_)
    types = [s.dtype for s in op.infer(specs, attrs)]
    partial = [t for t, r in zip(types, right) if r == "P"]
    return all(keeps_sums(a.dtype, t) for a, s in zip(specs, left) if s == "P" for t in partial)


def extra(op: Op, specs: Sequence[Spec], attrs: tuple) -> dict:
    """Return the record's `spread`: {signature: (op of a device, f(start, stop) -> attributes)}."""
    if op.spread is None or any(s.dtype is bool_ or s.dtype.numpy is None for s in specs):
        return {}
    return op.ask(op.spread, op.bind(specs, attrs))


def whole(op: Op, specs: Sequence) -> Signature:
    """Return the signature in which every SBP is B."""
    return ("B",) * (len(specs) + len(op.outputs))


def names_of(op: Op, inputs: int) -> list[str]:
    """Return the names of the inputs: "x", "y", or "xs[0]", "xs[1]"."""
    return [f"{op.inputs[0]}[{i}]" for i in range(inputs)] if op.variadic else list(op.inputs)


def text(op: Op, signature: Sequence) -> str:
    """Return "x=S(0), w=B -> y=S(0)"; on a grid of devices "x=(S(0), B), ..."."""
    n = len(signature) - len(op.outputs)
    terms = [f"{a}={pretty(s)}" for a, s in zip((*names_of(op, n), *op.outputs), signature)]
    return f"{', '.join(terms[:n])} -> {', '.join(terms[n:])}".strip()
