"""SBP signatures of an op, read off its axis equation and its linear groups.

A signature says how each input and output lies on a row of devices: "B", every device has all of it; "S0", "S1" ..., cut
along an axis; "P", every device has an array and the value is their sum. For an equation:

- all "B" is always legal;
- a lower-case letter may be cut: it is S wherever it appears, B where it does not, and an output that lacks it is P;
- an op that is linear in a group of inputs takes P there, B elsewhere, and gives P.
"""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.blob.spec import Spec
from flowedu.ops.axes import parse
from flowedu.ops.define import Op

Signature = tuple[str, ...]  # one entry per input, then one per output


def signatures(op: Op, specs: Sequence[Spec], attrs: tuple) -> set[Signature]:
    """All legal 1-D signatures of a call."""
    ins, outs = parse(op.equation(specs, attrs), len(specs))
    found = {("B",) * (len(ins) + len(outs))}
    for letter in sorted({c for t in ins + outs for c in t if c.islower()}):
        left = tuple(f"S{t.index(letter)}" if letter in t else "B" for t in ins)
        right = tuple(f"S{t.index(letter)}" if letter in t else "P" for t in outs)
        found.add(left + right)
    for group in op.linear:
        inputs, outputs = group
        left = tuple("P" if op.variadic or op.inputs[i] in inputs else "B" for i in range(len(ins)))
        found.add(left + tuple("P" if n in outputs else "B" for n in op.outputs))
    return found
