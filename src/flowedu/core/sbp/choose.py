"""The choice of the way in which a call runs: that whose inputs take the fewest bytes to bring into place.

Greedy, one call after the other, in the spirit of OneFlow's SbpInferenceHint: of the ways there are (candidates.py), those
go that leave a device nothing of a split axis, that contradict a hint, or that would turn a value into a partial sum. Of
the others the cheapest wins, and among equals what a rule says (rules.py).

The choice depends on op, Specs, attributes and layouts alone, and is remembered: a repeated call is a look-up.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from flowedu.core.extensions import extension
from flowedu.core.ops.define import Op
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.core.sbp.boxing.primitives import route
from flowedu.core.sbp.candidates import GridSignature, Way, ways
from flowedu.core.sbp.local import UNEVEN, LocalCall
from flowedu.core.sbp.rules import RULES, Asked
from flowedu.core.sbp.sbp import Layout, pretty
from flowedu.core.sbp.signature import names_of, text
from flowedu.core.values.spec import Spec
from flowedu.errors import JobBuildAndInferError

Present = Sequence[Layout]           # the layouts a value is in already


@dataclass
class Candidate:
    """A way, judged.

    Attributes: signature; bytes to bring the inputs into place (inf: impossible); matches, inputs that lie right already;
    fault, why it is out of the question; layouts of all values; routes of the inputs (None: in place); number among the
    ways; key, what the rule compares.
    """

    signature: GridSignature
    bytes: float
    matches: int
    fault: str = ""
    layouts: tuple[Layout, ...] = ()
    routes: tuple[Route | None, ...] = ()
    number: int = 0
    key: tuple = ()
    way: Way | None = field(default=None, repr=False)


@dataclass
class Choice:
    """The way that was chosen, and the candidates.

    Attributes: signature, one tuple of SBPs per value; layouts, of the inputs, then the outputs; routes of the inputs
    (None: in place); bytes they move; calls, one LocalCall per device (None: all B, one call serves all); candidates, the
    best first; rule, the name of the rule.
    """

    op: Op
    name: str
    devices: tuple[int, ...]
    hierarchy: tuple[int, ...]
    signature: GridSignature
    layouts: tuple[Layout, ...]
    routes: tuple[Route | None, ...]
    bytes: int
    calls: tuple[LocalCall, ...] | None
    candidates: list[Candidate]
    rule: str = "bytes"

    def explain(self) -> str:
        """All candidates with their bytes, the winner, and what decided."""
        return extension("choice of a layout")(self)


def cheapest(present: Present, dst: Layout, spec: Spec) -> Route:
    """The cheapest route to `dst` from one of the layouts present (the first of equals)."""
    return min((route(src, dst, spec) for src in present), key=lambda r: r.bytes)


def is_present(present: Present, dst: Layout) -> bool:
    """Whether the value already has layout `dst`, or lies whole on its devices."""
    return dst in present or (dst.whole and any(p.whole and set(dst.devices) <= set(p.devices) for p in present))


class Question(NamedTuple):
    """A call to be chosen for. same: for each input, the first that is the same value; the rest as for `choose`."""

    op: Op
    specs: tuple[Spec, ...]
    attrs: tuple
    present: tuple[tuple[Layout, ...], ...]
    same: tuple[int, ...]
    devices: tuple[int, ...]
    hierarchy: tuple[int, ...]
    hints: tuple
    rule: str
    strict: bool


def choose(op: Op, specs: Sequence[Spec], attrs: tuple, present: Sequence[Present], devices: tuple[int, ...],
           hierarchy: tuple[int, ...] | None = None, hints: Sequence[str | tuple[str, ...] | None] = (), name: str = "",
           line: str = "", *, rule: str = "bytes", strict: bool = False) -> Choice:
    """Choose.

    Args:
        present: for each input, the layouts it is in; one value given twice is one object twice. Of an eager tensor there
            is one layout.
        devices, hierarchy: where the call runs; default: in a row.
        hints: for each input, the SBP that the user wants it in (one text holds along all axes of a grid), or None.
        rule: one of RULES: "bytes", or "oneflow" (distributed/oneflow_rule.py).
        strict: only a way that takes all inputs as they lie will do: nothing is boxed.

    Raises:
        JobBuildAndInferError: no way survives. The message names those there are, and the legal partners.
    """
    hierarchy = (len(devices),) if hierarchy is None else tuple(hierarchy)
    wanted = tuple((h,) * len(hierarchy) if isinstance(h, str) else h and tuple(h) for h in hints) or (None,) * len(specs)
    first: dict[int, int] = {}
    same = tuple(first.setdefault(id(p), i) for i, p in enumerate(present))
    question = Question(op, tuple(specs), attrs, tuple(map(tuple, present)), same, tuple(devices), hierarchy, wanted, rule,
                        strict)
    found = _chosen(question)
    if isinstance(found, Choice):
        return replace(found, name=name) if name and name != found.name else found
    raise extension("why no layout will do", otherwise=_refusal)(question, found, name or op.name, line)


@functools.lru_cache(maxsize=8192)
def _chosen(question: Question) -> Choice | list[Candidate]:
    """The Choice, or all candidates where none will do."""
    op, specs, attrs, present, same, devices, hierarchy, hints, rule, strict = question
    judge = _Judge(op, specs, present, same, devices, hierarchy, hints, RULES[rule].partial)
    found = [judge(way, i) for i, way in enumerate(ways(op, specs, attrs, hierarchy))]
    asked, key = Asked(specs, [p[0] for p in present]), RULES[rule].key
    for c in found:
        c.key = () if c.fault else key(c, asked)
        if strict and not c.fault and c.matches < len(specs):
            c.fault = "not all inputs lie so"
    found.sort(key=lambda c: (bool(c.fault), c.key))
    for c in list(found):
        if c.fault:
            break
        calls = None if c.way.whole else c.way.calls
        if c.way.whole or calls is not None:
            found.sort(key=lambda c: bool(c.fault))
            return Choice(op, op.name, devices, hierarchy, c.signature, c.layouts, c.routes, int(c.bytes), calls, found,
                          rule)
        c.fault = UNEVEN
    return found


class _Judge:
    """Gives ways their bytes or their fault; what an input costs is worked out once for each layout."""

    def __init__(self, op, specs, present, same, devices, hierarchy, hints, partial):
        self.op, self.specs, self.present, self.same, self.hints = op, specs, present, same, hints
        self.devices, self.hierarchy, self.partial = devices, hierarchy, partial
        self.names = names_of(op, len(specs))
        self.known: dict[tuple, tuple[Layout, bool, Route | None]] = {}

    def __call__(self, way: Way, number: int) -> Candidate:
        def faulty(why):
            return Candidate(way.signature, math.inf, 0, why, number=number, way=way)
        if way.fault:
            return faulty(way.fault)
        if way.mixed:
            return faulty("partial in two ways")
        for n, s, hint in zip(self.names, way.signature, self.hints):
            if hint is not None and s != hint:
                return faulty(f"the hint says {n}={pretty(hint)}")
        total, matches, routes, paid = 0, 0, [], set()
        for i, n in enumerate(self.names):
            sbp = way.signature[i]
            dst, there, r = self._reached(self.same[i], sbp)
            if there:
                matches += dst in self.present[i] or all(s == "B" for s in sbp)     # S(0) of one device is B, and is not
            elif r is None:
                return faulty(f"{n} is no partial {_sum_or(sbp)}")
            elif (self.same[i], sbp) not in paid:
                paid.add((self.same[i], sbp))
                total += r.bytes
            routes.append(r)
        layouts = tuple(Layout(s, self.devices, self.hierarchy) for s in way.signature)
        return Candidate(way.signature, total, matches, "", layouts, tuple(routes), number, (), way)

    def _reached(self, i: int, sbp: tuple[str, ...]) -> tuple[Layout, bool, Route | None]:
        """(layout, whether input i is in it, the route to it, None where there is none or none is needed)"""
        if (i, sbp) not in self.known:
            dst, present = Layout(sbp, self.devices, self.hierarchy), self.present[i]
            there, r = is_present(present, dst), None
            if not there:
                partial = [a for a, s in enumerate(sbp) if s[0] == "P"]
                sources = present if not partial or self.partial else [
                    p for p in present if p.devices == dst.devices and p.hierarchy == dst.hierarchy
                    and all(p.sbp[a] == sbp[a] for a in partial)]
                if sources:
                    r = cheapest(sources, dst, self.specs[i])
            self.known[i, sbp] = dst, there, r
        return self.known[i, sbp]


def _refusal(question: Question, found: Sequence[Candidate], name: str, line: str) -> JobBuildAndInferError:
    """The error of a call for which none of the candidates will do. show/choice.py says it better."""
    said = "; ".join(f"{text(question.op, c.signature)}: {c.fault}" for c in found)
    return JobBuildAndInferError(f"{name}: no signature of {question.op.name} will do", expected="one that is legal here",
                                 got=said, fix="bring an input into another layout before the op", at=line)


def _sum_or(sbp) -> str:
    return {"P": "sum", "Pmax": "maximum", "Pmin": "minimum"}[next(s for s in sbp if s[0] == "P")]
