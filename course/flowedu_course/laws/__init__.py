"""Laws: property tests that judge a student's answer, with cases drawn from small to large and then shrunk.

A failure is reported in a few lines: the smallest failing case, and the student's and the expected value
where they differ. A Verdict has the result: the judge makes it, commands print it, and grades record it.
"""
from __future__ import annotations

import importlib
import itertools
import json
import random
import time
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flowedu.errors.files import write_text

# File that records the running case, for a kernel that hangs.
NOTE: Path | None = None
CASES, TRIES, PATIENCE = 60, 200, 2.0              # cases drawn; shrink steps; seconds of shrinking
SMALLEST, CASE = "  smallest case   ", "  case            "            # begin the line of a case


class Rejected(Exception):
    """The lines of a failure that no judge returns: a changed argument, or a wrong result that was measured.

    law: the law that the result breaks (None: the law that is being checked).
    """

    def __init__(self, lines: list[str], law: Law | None = None):
        super().__init__("\n".join(lines))
        self.lines, self.law = lines, law


class Law:
    """A property of a correct answer: a title and the functions that test it.

    draw(rng, size) returns a case; size grows from 1. judge(case, yours) returns None or the lines of a
    failure, without the case unless a line begins with SMALLEST or CASE. smaller(case) yields simpler cases,
    best first. told(case) describes the case in one line or several; it returns "" if the law has only one
    case. label stands before the case. Every check and every grade tries the cases `edges` before those that
    are drawn, and the cases `large`, which have the size of a real program, after them.
    """

    def __init__(self, title: str, draw: Callable[[random.Random, int], Any],
                 judge: Callable[[Any, Any], list[str] | None],
                 smaller: Callable[[Any], Iterable] = lambda case: (), cases: int = CASES,
                 told: Callable[[Any], str | list[str]] = lambda case: "", label: str = "smallest case",
                 edges: Sequence = (), large: Sequence = ()):
        self.title, self.draw, self.judge, self.smaller = title, draw, judge, smaller
        self.cases, self.told, self.label, self.edges, self.large = cases, told, label, edges, large

    def broken(self, yours: Any, seed: int = 0, cases: int = 0) -> list[str] | None:
        """Return the lines of the smallest failure, or None. Exceptions of `yours` propagate."""
        rng = random.Random(seed)
        many = min(cases, 4 * self.cases) or self.cases                # few cases mean expensive cases
        drawn = (self.draw(rng, 1 + i * 5 // many) for i in range(many))
        for case in itertools.chain(self.edges, drawn, self.large):
            failure = self._tried(case, yours)
            if failure is not None:
                return self._smallest(case, failure, yours)
        return None

    def accept(self, case: Any, lines: list[str] | None) -> None:
        """Raise Rejected if `lines`, the judge's result for a case that is being measured, are a failure."""
        if lines:
            raise Rejected(self._with_case(case, lines), self)

    def _tried(self, case: Any, yours: Any) -> list[str] | Exception | None:
        try:
            return self._with_case(case, self.judge(case, yours))
        except Rejected as error:
            return self._with_case(case, error.lines)
        except Exception as error:                 # any exception of the student's code fails this case
            if "your turn" in str(error):
                raise
            error.case = self.describe(case)[0]
            return error

    def _with_case(self, case: Any, lines: list[str] | None) -> list[str] | None:
        if not lines or any(line.startswith((SMALLEST, CASE)) for line in lines):
            return lines or None                   # where_differ returns [] for equal arrays
        first, *more = self.describe(case)
        return [f"  {self.label:15s} {first}", *more, *lines] if first else lines

    def describe(self, case: Any) -> list[str]:
        """Return the lines that describe a case."""
        text = self.told(case)
        return [text] if isinstance(text, str) else text

    def _smallest(self, case: Any, found: Any, yours: Any) -> list[str]:
        end, tries, going = time.monotonic() + PATIENCE, 0, True
        while going:
            going = False
            for other in self.smaller(case):
                tries += 1
                if tries > TRIES or time.monotonic() > end:
                    break
                lines = self._tried(other, yours)
                if lines is not None and isinstance(lines, Exception) == isinstance(found, Exception):
                    case, found, going = other, lines, True
                    break
        if isinstance(found, Exception):
            raise found
        return found


def holds(title: str, draw: Callable, *how: Any, **more: Any) -> Callable[[Callable], Law]:
    """Return a decorator that makes a Law of its judge, a function of (case, yours)."""
    return lambda judge: Law(title, draw, judge, *how, **more)


def law(name: str) -> Law:
    """Return a law by its name; "plans.no_overlap" is `no_overlap` in flowedu_course/laws/plans.py."""
    module, _, one = name.partition(".")
    return getattr(importlib.import_module(f"flowedu_course.laws.{module}"), one)


def blocked_line(ids: str) -> str:
    """Return the line of a verdict that names the open exercises that a law needs."""
    return f"  do {ids} first: this law calls its function, which is still open"


BLOCKED = blocked_line("").removeprefix("  do ")        # the end of that line


@dataclass
class Verdict:
    """The verdict on one answer.

    Attributes:
        state: "open" (the stub is unchanged, or a target's answer is no better than it), "wrong", "right", or
            "unjudged" (the machine lacks what a kernel needs).
        stars: 1 for a right answer of an exercise without stars.
        law: the first law that does not hold, for example `plans.no_overlap`.
        title: the headline of a failure.
        lines: lines below the headline.
        extra: measures that stars depend on.
        seconds: duration of judging.
        output: text that the answer printed.
        of: number of stars that a kernel can get on this machine.
        trace: the traceback of an error of the answer.
    """

    state: str = "right"
    stars: int = 0
    law: str = ""
    title: str = ""
    lines: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    output: str = ""
    of: int = 0
    trace: str = ""

    @property
    def is_blocked(self) -> bool:
        """True if a law called the function of another exercise, which is open."""
        return bool(self.lines) and self.lines[0].endswith(BLOCKED)

    @classmethod
    def read(cls, file: Path) -> Verdict:
        """Read a file that `write` wrote. Raises OSError, or ValueError or TypeError for other contents."""
        return cls(**json.loads(file.read_text(encoding="utf-8")))

    def write(self, file: Path) -> None:
        """Write a JSON file, completely or not at all. Raises OSError."""
        write_text(file, json.dumps(asdict(self)))


# ---- cases that several modules draw
def shape(rng: random.Random, size: int, rank: int = 3, zero: bool = True) -> tuple[int, ...]:
    least = 0 if zero and rng.random() < 0.15 else 1
    return tuple(rng.randint(least, 1 + size) for _ in range(rng.randint(0, min(rank, size))))


def smaller_shapes(s: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the shapes with one axis removed, then those with one axis shorter by 1."""
    return [s[:i] + s[i + 1:] for i in range(len(s))] + [(*s[:i], n - 1, *s[i + 1:]) for i, n in enumerate(s)
                                                         if n > 0]


def put(items: Sequence, i: int, value: Any) -> Any:
    """Return a tuple or list with item i replaced."""
    return type(items)((*items[:i], value, *items[i + 1:]))


def fewer(items: Sequence) -> Iterator:
    """Yield the items without one of them, if there are several."""
    yield from (items[:i] + items[i + 1:] for i in range(len(items)) if len(items) > 1)


def less(least: int) -> Callable[[int], list[int]]:
    """Return a function that lists a smaller number, not below `least`."""
    return lambda n: [n - 1] if n > least else []


def half(least: int) -> Callable[[int], list[int]]:
    """Return a function that lists the half of a number, not below `least`."""
    return lambda n: [n // 2] if least <= n // 2 != n else []


def become(plain: Any) -> Callable[[Any], list]:
    """Return a function that lists `plain` for any other value."""
    return lambda value: [] if value == plain else [plain]


def each(simpler: Callable[[Any], Iterable]) -> Callable[[Sequence], Iterator]:
    """Return a function that yields the sequences with one simpler item."""
    return lambda items: (put(items, i, new) for i, item in enumerate(items) for new in simpler(item))


def simpler(*steps: tuple[int, Callable[[Any], Iterable]]) -> Callable[[Sequence], Iterator]:
    """Return a `smaller` of a Law, which replaces fields by values that functions list.

    For each (number of a field, function), in order, it yields the cases in which the field has a value that
    the function lists.
    """
    return lambda case: (put(case, i, new) for i, values in steps for new in values(case[i]))


def smaller_programs(nodes: tuple, outs: tuple, first: int = 2,
                     may: Callable[[int, int], bool] = lambda gone,
                     other: True) -> Iterator[tuple[tuple, tuple]]:
    """Yield the programs with one call removed, then the programs with only one output.

    Readers of a removed call read its first input instead. nodes: (op, indices of its inputs) of each call;
    results are numbered from `first`, after the program's inputs. outs: indices of the outputs. may(gone,
    other): True if value `other` can replace `gone`. A large program is cut in half before.
    """
    half = len(nodes) // 2
    if len(nodes) > 20:
        yield nodes[:half], tuple(o for o in outs if o < first + half) or (first + half - 1,)
    for i in range(len(nodes) - 1, -1, -1):
        gone, other = first + i, nodes[i][1][0]
        move = lambda x, gone=gone, other=other: other if x == gone else x - (x > gone)
        rest = tuple((name, tuple(map(move, ins))) for k, (name, ins) in enumerate(nodes) if k != i)
        left = tuple(dict.fromkeys(m for o in outs if (m := move(o)) >= first))
        if rest and left and may(gone, other):
            yield rest, left
    if len(outs) > 1:
        yield from ((nodes, (o,)) for o in outs)


def many_programs(draw: Callable, least: int, first: int = 2) -> tuple[tuple, tuple]:
    """Return a program as large as a network's training step: drawn ones side by side, on the same inputs.

    draw(rng, size) returns the (nodes, outs) of a program, as in smaller_programs. least: number of nodes.
    """
    rng, nodes, outs = random.Random(least), [], []
    while len(nodes) < least:
        (some, fetched), by = draw(rng, 3), len(nodes)
        move = lambda x, by=by: x + by if x >= first else x
        nodes += [(name, tuple(map(move, ins))) for name, ins in some]
        outs += map(move, fetched)
    return tuple(nodes), tuple(outs)


def copy_function(f: types.FunctionType) -> types.FunctionType:
    """Return a copy of a library function, to be made on import, before a student's function replaces it."""
    return types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__)


class Words(str):
    """Text that a failure shows, without quotes, where another value would be."""

    __repr__ = str.__str__


def pair(label: str, yours: Any, right: Any) -> list[str]:
    return [f"  yours           {_format(yours)}", f"  {label:15s} {_format(right)}"]


def _format(value: Any) -> str:
    return short(repr(value))


def short(text: str) -> str:
    """Return the text on one line, cut to 80 characters."""
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."


def same(yours: Any, right: Any) -> bool:
    """Return True if the values are equal; a list equals a tuple with the same elements."""
    try:
        return tuple(yours) == tuple(right)
    except TypeError:
        return yours == right


def counted(yours: Any, names: Sequence[str]) -> list[str]:
    """Return a failure line unless `yours` has one entry per name; zip() would drop the rest silently."""
    many = len(yours) if hasattr(yours, "__len__") else None
    if many == len(names):
        return []
    return [f"  yours           {_format(yours) if many is None else f'{many} of them'}, should be "
            f"{len(names)}: {', '.join(names)}"[:100]]


def where_differ(name: str, yours: np.ndarray, right: np.ndarray, digits: int = 4) -> list[str]:
    """Return [] if the arrays are equal up to rounding, or a line with the shapes or the first difference."""
    if yours.shape != right.shape:
        return [f"  {name:15s} yours has the shape {yours.shape}, should be {right.shape}"]
    bad = np.argwhere(~np.isclose(yours, right, rtol=1e-3, atol=1e-5, equal_nan=True))
    if not len(bad):                               # an array without axes has no indices, so its size is 0
        return []
    at = tuple(map(int, bad[0]))
    place = f"{name}[{', '.join(map(str, at))}]" if at else name
    return [f"  {place:15s} yours {yours[at]:.{digits}f}, should be {right[at]:.{digits}f}"]
