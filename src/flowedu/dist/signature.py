"""SBP signatures of an op, read off its axis equation and its linear groups.

A signature says how each input and output lies on a row of devices: "B", every device has all of it; "S0", "S1" ..., cut
along an axis; "P", every device has an array and the value is their sum. For an equation:

- all "B" is always legal;
- a lower-case letter may be cut: it is S wherever it appears, B where it does not, and an output that lacks it is P;
- an op that is linear in a group of inputs takes P there, B elsewhere, and gives P. (Not where the element type changes
  so that a sum is lost: a cast of floats to integers rounds.)
"""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.blob.dtype import bool_
from flowedu.blob.spec import Spec
from flowedu.dist.sbp import pretty
from flowedu.ops.axes import parse
from flowedu.ops.define import Op

Signature = tuple[str, ...]  # one entry per input, then one per output


def signatures(op: Op, specs: Sequence[Spec], attrs: tuple) -> set[Signature]:
    """All legal 1-D signatures of a call."""
    if op.random or getattr(op, "axes", None) is None:       # a host op: it has no equation, and runs in one place
        return {whole(op, specs)}
    ins, outs = parse(op.equation(specs, attrs), len(specs))
    found = {("B",) * (len(ins) + len(outs))}
    for letter in sorted({c for t in ins + outs for c in t if c.islower()}):
        left = tuple(f"S{t.index(letter)}" if letter in t else "B" for t in ins)
        right = tuple(f"S{t.index(letter)}" if letter in t else "P" for t in outs)
        found.add(left + right)
    if op.linear:
        types = [s.dtype for s in op.infer(specs, attrs)]
    for group in op.linear:
        inputs, outputs = group
        left = tuple("P" if op.variadic or op.inputs[i] in inputs else "B" for i in range(len(ins)))
        right = tuple("P" if n in outputs else "B" for n in op.outputs)
        if all(_sum_kept(a.dtype, t) for a, s in zip(specs, left) if s == "P" for t, r in zip(types, right) if r == "P"):
            found.add(left + right)
    return found


def whole(op: Op, specs: Sequence[Spec]) -> Signature:
    """Every device has everything."""
    return ("B",) * (len(specs) + len(op.outputs))


def _sum_kept(a, y) -> bool:
    """Whether parts of dtype `a`, turned into dtype `y`, still sum to the value."""
    return y.is_floating_point or not (a.is_floating_point or y is bool_)


def names_of(op: Op, inputs: int) -> list[str]:
    """The inputs' names: "x", "y", or "xs[0]", "xs[1]"."""
    return [f"{op.inputs[0]}[{i}]" for i in range(inputs)] if op.variadic else list(op.inputs)


def text(op: Op, signature: Signature) -> str:
    """"x=S(0), w=B -> y=S(0)"."""
    n = len(signature) - len(op.outputs)
    say = lambda names, sbps: ", ".join(f"{a}={pretty(s)}" for a, s in zip(names, sbps))
    return f"{say(names_of(op, n), signature[:n])} -> {say(op.outputs, signature[n:])}".strip()
