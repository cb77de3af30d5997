"""Choice of the SBP signature of a call: the one whose inputs need the fewest bytes of boxing.

The choice is greedy, one call after the other, like OneFlow's SbpInferenceHint. It excludes ways
(candidates.py) that leave a device without elements, contradict a hint, or need partial sums of
an input that is not partial. The cheapest of the others wins. A rule (rules.py) decides ties.

The choice depends only on op, Specs, attributes, and layouts, and is cached.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from flowedu.core import extensions
from flowedu.core.ops.define import Op
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.core.sbp.boxing.primitives import route
from flowedu.core.sbp.candidates import GridSignature, Way, ways
from flowedu.core.sbp.local import UNEVEN, LocalCall
from flowedu.core.sbp.rules import RULES, Asked
from flowedu.core.sbp.sbp import Layout, pretty
from flowedu.core.sbp.signature import names_of
from flowedu.core.values.spec import Spec
from flowedu.errors import layouts as errors

Present = Sequence[Layout]           # the layouts that a value has already


@dataclass
class Candidate:
    """A way with its cost.

    `bytes` is the boxing cost of the inputs (inf: impossible). `matches` counts inputs that keep
    their layout. `fault` is the reason for an exclusion. `layouts` has one per value, and `routes`
    one per input (None: no boxing). `number` is the index among the ways. The rule compares `key`.
    """

    signature: GridSignature
    bytes: float
    matches: int
    fault: str = ""
    layouts: tuple[Layout, ...] = ()
    routes: tuple[Route | None, ...] = ()
    number: int = 0
    key: tuple = ()
    way: Way | Any = field(default=None, repr=False)


@dataclass
class Choice:
    """The chosen signature, and all candidates.

    `signature` has a tuple of SBPs per value. `layouts` has the inputs' layouts, then the outputs'.
    `routes` has one per input (None: no boxing). `bytes` is their cost. `calls` has a LocalCall per
    device (None: all B, one call). `candidates` start with the best one. `rule` is a key of RULES.
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
        """Return all candidates with their bytes, the winner, and the deciding reason, as text."""
        return extensions.choice_text(self)


def cheapest(present: Present, dst: Layout, spec: Spec) -> Route:
    """Return the cheapest route to `dst` from one of the layouts (the first of equals)."""
    return min((route(src, dst, spec) for src in present), key=lambda r: r.bytes)


def is_present(present: Present, dst: Layout) -> bool:
    """Return True if `dst` is present, or if it is whole and each of its devices has the value."""
    return dst in present or (dst.whole and any(p.whole and set(dst.devices) <= set(p.devices)
                                                for p in present))


class Question(NamedTuple):
    """The arguments of `choose`. same: for each input, the index of the first equal input."""

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


def choose(op: Op, specs: Sequence[Spec], attrs: tuple, present: Sequence[Present],
           devices: tuple[int, ...], hierarchy: tuple[int, ...] | None = None,
           hints: Sequence[str | tuple[str, ...] | None] = (), name: str = "", line: str = "", *,
           rule: str = "bytes", strict: bool = False) -> Choice:
    """Return the Choice for a call.

    Args:
        present: for each input, a list of its layouts. Equal inputs share one list object.
        devices, hierarchy: the grid of devices that runs the call; default: a row.
        hints: for each input, the SBP that the user requires (one text: along all axes), or None.
        rule: a key of RULES: "bytes", or "oneflow" (distributed/oneflow_rule.py).
        strict: exclude all ways that need boxing.

    Raises:
        JobBuildAndInferError: all ways are excluded. The message lists them.
    """
    hierarchy = (len(devices),) if hierarchy is None else tuple(hierarchy)
    hints = tuple((h,) * len(hierarchy) if isinstance(h, str) else h and tuple(h) for h in hints)
    first: dict[int, int] = {}
    same = tuple(first.setdefault(id(p), i) for i, p in enumerate(present))
    question = Question(op, tuple(specs), attrs, tuple(map(tuple, present)), same, tuple(devices),
                        hierarchy, hints or (None,) * len(specs), rule, strict)
    choice = _find_choice(question)
    if isinstance(choice, Choice):
        return replace(choice, name=name) if name and name != choice.name else choice
    make_error = extensions.no_layout_error or errors.no_signature
    raise make_error(question, choice, name or op.name, line)


@functools.lru_cache(maxsize=8192)
def _find_choice(question: Question) -> Choice | list[Candidate]:
    """Return the Choice, or all candidates if each has a fault."""
    op, specs, rule = question.op, question.specs, RULES[question.rule]
    judge = _Judge(question, rule.partial)
    candidates = [judge(way, i)
                  for i, way in enumerate(ways(op, specs, question.attrs, question.hierarchy))]
    asked = Asked(specs, [layouts[0] for layouts in question.present])
    for c in candidates:
        c.key = () if c.fault else rule.key(c, asked)
        if question.strict and not c.fault and c.matches < len(specs):
            c.fault = "not all inputs lie so"
    candidates.sort(key=lambda c: (bool(c.fault), c.key))
    for c in list(candidates):
        if c.fault:
            break
        calls = None if c.way.whole else c.way.calls
        if c.way.whole or calls is not None:
            candidates.sort(key=lambda c: bool(c.fault))
            return Choice(op, op.name, question.devices, question.hierarchy, c.signature, c.layouts,
                          c.routes, int(c.bytes), calls, candidates, question.rule)
        c.fault = UNEVEN
    return candidates


class _Judge:
    """A function from ways to Candidates that caches the route of each input to each layout."""

    def __init__(self, question: Question, partial: bool):
        self.specs, self.present, self.same = question.specs, question.present, question.same
        self.devices, self.hierarchy = question.devices, question.hierarchy
        self.hints, self.partial = question.hints, partial
        self.names = names_of(question.op, len(self.specs))
        self.known: dict[tuple, tuple[Layout, bool, Route | None]] = {}

    def __call__(self, way: Way, number: int) -> Candidate:
        def faulty(why: str) -> Candidate:
            return Candidate(way.signature, math.inf, 0, why, number=number, way=way)
        if way.fault:
            return faulty(way.fault)
        if way.mixed:
            return faulty("partial in two ways")
        for n, s, hint in zip(self.names, way.signature, self.hints):
            if hint is not None and s != hint:
                return faulty(f"the hint says {n}={pretty(hint)}")
        total = matches = 0
        routes, paid = [], set()
        for i, n in enumerate(self.names):
            sbp = way.signature[i]
            dst, in_place, r = self._find_route(self.same[i], sbp)
            if in_place:
                matches += dst in self.present[i] or all(s == "B" for s in sbp)
            elif r is None:
                return faulty(f"{n} is no partial {_reduction_name(sbp)}")
            elif (self.same[i], sbp) not in paid:
                paid.add((self.same[i], sbp))
                total += r.bytes
            routes.append(r)
        layouts = tuple(Layout(s, self.devices, self.hierarchy) for s in way.signature)
        return Candidate(way.signature, total, matches, "", layouts, tuple(routes), number, (), way)

    def _find_route(self, i: int, sbp: tuple[str, ...]) -> tuple[Layout, bool, Route | None]:
        """Return (layout, True if input i has it, the route to it or None)."""
        if (i, sbp) not in self.known:
            dst, present = Layout(sbp, self.devices, self.hierarchy), self.present[i]
            in_place, r = is_present(present, dst), None
            if not in_place:
                partial = [a for a, s in enumerate(sbp) if s[0] == "P"]
                sources = present if not partial or self.partial else [
                    p for p in present if p.devices == dst.devices and p.hierarchy == dst.hierarchy
                    and all(p.sbp[a] == sbp[a] for a in partial)]
                if sources:
                    r = cheapest(sources, dst, self.specs[i])
            self.known[i, sbp] = dst, in_place, r
        return self.known[i, sbp]


def _reduction_name(sbp: tuple) -> str:
    return {"P": "sum", "Pmax": "maximum", "Pmin": "minimum"}[next(s for s in sbp if s[0] == "P")]
