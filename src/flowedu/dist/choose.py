"""Which signature a call runs under: the one whose inputs take the fewest bytes to bring into place.

Greedy, one call after the other, in the spirit of OneFlow's SbpInferenceHint: of the op's signatures, those go that
split an axis shorter than the number of devices, that contradict a hint, or that would turn a value into a partial sum.
Of the others the cheapest wins; then one that leaves no partial sum, which would cost somebody later; then the one that
takes more inputs as they lie; then inputs in S(0) before S(1) ... before B before P. What has whole inputs only is made
once, whole: to cut it later costs nothing.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flowedu.blob.spec import Spec
from flowedu.dist.boxing import route
from flowedu.dist.local import LocalCall, local_calls
from flowedu.dist.sbp import Layout, fits, ids, pretty, split_axis
from flowedu.dist.signature import Signature, names_of, signatures, text
from flowedu.errors import JobBuildAndInferError
from flowedu.ops.define import Op

Present = Sequence[Layout]           # the layouts a value is in already


@dataclass
class Candidate:
    """A signature; `bytes` to bring the inputs into place (inf: impossible); `fault`, why it is out of the question."""

    signature: Signature
    bytes: float
    matches: int
    fault: str = ""


@dataclass
class Choice:
    """What was chosen, and from what.

    Attributes: signature; bytes; calls, one LocalCall per device (None: all B, the call is made once); candidates, the
    best first.
    """

    op: Op
    name: str
    devices: tuple[int, ...]
    signature: Signature
    bytes: int
    calls: list[LocalCall] | None
    candidates: list[Candidate]

    def explain(self) -> str:
        """All candidates with their bytes, and the winner."""
        lines = [f"{self.name} ({self.op.name}) on devices {ids(self.devices)}:"]
        for c in self.candidates:
            mark = "->" if c.signature == self.signature else "  "
            said = c.fault or f"{int(c.bytes)} bytes, inputs in place: {c.matches}"
            lines.append(f" {mark} {text(self.op, c.signature)}: {said}")
        return "\n".join(lines)


def cheapest(present: Present, dst: Layout, spec: Spec):
    """The cheapest route to `dst` from one of the layouts present (the first of equals)."""
    return min((route(src, dst, spec) for src in present), key=lambda r: r.bytes)


def is_present(present: Present, dst: Layout) -> bool:
    """Whether nothing has to be done: `dst` is there, or all of the value is on its devices."""
    return dst in present or any(p.sbp == "B" and set(dst.devices) <= set(p.devices) for p in present if dst.sbp == "B")


def choose(op: Op, specs: Sequence[Spec], attrs: tuple, present: Sequence[Present], devices: tuple[int, ...],
           hints: Sequence[str | None] = (), name: str = "", line: str = "") -> Choice:
    """Choose.

    Args:
        present: for each input, the layouts it is in; one value given twice is one object twice.
        devices: where the call runs.
        hints: for each input, the SBP that the user wants it in, or None.

    Raises:
        JobBuildAndInferError: no signature survives the hints.
    """
    k, outs = len(devices), op.infer(specs, attrs)
    hints = tuple(hints) or (None,) * len(specs)
    found = [_judged(op, s, specs, outs, present, devices, hints) for s in sorted(signatures(op, specs, attrs))]
    found.sort(key=lambda c: (bool(c.fault), c.bytes, "P" in c.signature[len(specs):], -c.matches,
                              _rank(c.signature, len(specs))))
    for c in found:
        if c.fault:
            break
        once = all(s == "B" for s in c.signature)
        calls = None if once else local_calls(op, specs, attrs, outs, c.signature, k)
        if once or calls is not None:
            return Choice(op, name or op.name, devices, c.signature, int(c.bytes), calls, found)
        c.fault = "the devices' parts do not make up the result: the cut is uneven"
    raise _refusal(op, name or op.name, line, specs, devices, hints, found)


def _judged(op, signature, specs, outs, present, devices, hints) -> Candidate:
    """A candidate with its bytes or its fault."""
    names = names_of(op, len(specs))
    for n, s, value in zip([*names, *op.outputs], signature, [*specs, *outs]):
        if not fits(s, value.shape, len(devices)):
            size = value.shape[split_axis(s)]
            return Candidate(signature, math.inf, 0, f"axis {split_axis(s)} of {n} has {size} elements for {len(devices)} "
                             "devices")
    for n, s, hint in zip(names, signature, hints):
        if hint is not None and s != hint:
            return Candidate(signature, math.inf, 0, f"the hint says {n}={pretty(hint)}")
    total, matches, paid = 0, 0, set()
    for n, s, spec, held in zip(names, signature, specs, present):
        dst = Layout(s, devices)
        if is_present(held, dst):
            matches += 1
        elif s == "P":
            return Candidate(signature, math.inf, 0, f"{n} is no partial sum")
        elif (id(held), s) not in paid:
            paid.add((id(held), s))
            total += cheapest(held, dst, spec).bytes
    return Candidate(signature, total, matches)


def _rank(signature: Signature, inputs: int) -> tuple:
    """Among equals: S(0), S(1) ..., B, P, first for the inputs; then outputs, where B comes first."""
    place = lambda s, whole: {"B": whole, "P": 2000}.get(s, split_axis(s))
    return tuple(place(s, 1000 if i < inputs else -1) for i, s in enumerate(signature))


def _refusal(op, name, line, specs, devices, hints, found) -> JobBuildAndInferError:
    """No candidate is left: what the hints leave of the op's signatures, one by one."""
    names = names_of(op, len(specs))
    wanted = [(n, h) for n, h in zip(names, hints) if h is not None]
    sizes = ", ".join(f"{n} {s.shape}" for n, s in zip(names, specs))
    asked = ", ".join(f"{n}={pretty(h)}" for n, h in wanted)
    partners = []
    possible = [c.signature for c in found if "P" not in c.signature[:len(specs)] and "elements for" not in c.fault
                and "uneven" not in c.fault]
    for n, h in wanted:
        legal = sorted(text(op, s) for s in possible if s[names.index(n)] == h)
        partners.append(f"{n}={pretty(h)} goes with {'; '.join(legal)}" if legal else f"{n} cannot be {pretty(h)} here")
    return JobBuildAndInferError(
        f"{name}: no signature of {op.name} on {len(devices)} devices has {asked}", at=line,
        expected="one of " + "; ".join(sorted(text(op, s) for s in possible)),
        got=f"{asked} ({sizes}): {'. '.join(partners)}",
        fix="leave a with_distribute out, ask for one of the above, or flow.parallel_cast the blob before the op")
