"""Laws in a student's words: each draws cases from small to large, judges one, and knows smaller ones.

A failure is a few lines: the smallest case, what came and what should have come, only where they differ.
"""
from __future__ import annotations

import importlib
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

NOTE: Path | None = None                           # where the case that runs now is noted, for a kernel that never returns
CASES, TRIES, PATIENCE = 60, 200, 2.0              # cases drawn; steps and seconds spent on making a failing one smaller


class Law:
    """A title, and three functions.

    draw(rng, size): a case; size grows from 1. judge(case, yours): None, or the lines of a failure. smaller(case): cases
    with less in them, best first. told(case): it, in words, for when `yours` raises; "": there is only this one.
    """

    def __init__(self, title: str, draw: Callable[[random.Random, int], Any], judge: Callable[[Any, Any], list[str] | None],
                 smaller: Callable[[Any], Iterable] = lambda case: (), cases: int = CASES,
                 told: Callable[[Any], str] = lambda case: ""):
        self.title, self.draw, self.judge, self.smaller, self.cases, self.told = title, draw, judge, smaller, cases, told

    def broken(self, yours: Any, seed: int = 0, cases: int = 0) -> list[str] | None:
        """The lines of the smallest failure found, or None. What `yours` raises comes through."""
        rng = random.Random(seed)
        many = min(cases, 4 * self.cases) or self.cases                # a law of few cases has dear ones
        for i in range(many):
            case = self.draw(rng, 1 + i * 5 // many)
            found = self._tried(case, yours)
            if found is not None:
                return self._smallest(case, found, yours)
        return None

    def _tried(self, case: Any, yours: Any) -> list[str] | Exception | None:
        try:
            return self.judge(case, yours)
        except Exception as error:                 # whatever a student's code may raise is a failure of this case
            if "your turn" in str(error):
                raise
            error.case = self.told(case)
            return error

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


def law(name: str) -> Law:
    """`plans.no_overlap`: what of flowedu/learn/laws/plans.py."""
    module, _, one = name.partition(".")
    return getattr(importlib.import_module(f"flowedu.learn.laws.{module}"), one)


# ---- what several families draw
def shape(rng: random.Random, size: int, rank: int = 3, zero: bool = True) -> tuple[int, ...]:
    least = 0 if zero and rng.random() < 0.15 else 1
    return tuple(rng.randint(least, 1 + size) for _ in range(rng.randint(0, min(rank, size))))


def smaller_shapes(s: tuple[int, ...]) -> list[tuple[int, ...]]:
    """One axis less, then one axis shorter."""
    return [s[:i] + s[i + 1:] for i in range(len(s))] + [(*s[:i], n - 1, *s[i + 1:]) for i, n in enumerate(s) if n > 0]


def smaller_programs(nodes: tuple, outs: tuple, first: int = 2,
                     may: Callable[[int, int], bool] = lambda gone, other: True) -> Iterator[tuple[tuple, tuple]]:
    """Programs with one call less: who read it reads its first input instead; then with one result less.

    nodes: (op, indices of values) of each call, whose results are numbered from `first`, after what is given. outs: values
    that are wanted. may(gone, other): whether value `other` can stand for `gone`."""
    for i in range(len(nodes) - 1, -1, -1):
        gone, other = first + i, nodes[i][1][0]
        move = lambda x, gone=gone, other=other: other if x == gone else x - (x > gone)
        rest = tuple((name, tuple(map(move, ins))) for k, (name, ins) in enumerate(nodes) if k != i)
        left = tuple(dict.fromkeys(m for o in outs if (m := move(o)) >= first))
        if rest and left and may(gone, other):
            yield rest, left
    if len(outs) > 1:
        yield from ((nodes, (o,)) for o in outs)


class Words(str):
    """What a law says in words where an answer would have a value: shown without quotes."""

    __repr__ = str.__str__


def case_of(said: Callable[[Any], str | list[str]]) -> Callable[[Any], str]:
    """`told` of a law whose failures begin with what `said` makes: the line with the smallest case."""
    def told(case: Any) -> str:
        lines = said(case)
        return (lines if isinstance(lines, str) else lines[0]).partition("case")[2].strip()
    return told


def pair(label: str, yours: Any, right: Any) -> list[str]:
    return [f"  yours           {_shown(yours)}", f"  {label:15s} {_shown(right)}"]


def _shown(value: Any) -> str:
    return short(repr(value))


def short(text: str) -> str:
    """In one line of a failure."""
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."


def same(yours: Any, right: Any) -> bool:
    """Sequences as sequences: a list will do for a tuple."""
    try:
        return tuple(yours) == tuple(right)
    except TypeError:
        return yours == right


def counted(yours: Any, names: Sequence[str]) -> list[str]:
    """A line unless `yours` has an entry for each of these: a loop over both would end with the shorter."""
    many = len(yours) if hasattr(yours, "__len__") else None
    if many == len(names):
        return []
    return [f"  yours           {_shown(yours) if many is None else f'{many} of them'}, should be {len(names)}: "
            f"{', '.join(names)}"[:100]]


def where_differ(name: str, yours: np.ndarray, right: np.ndarray, digits: int = 4) -> list[str]:
    """The shapes, or the first element in which two arrays differ more than rounding makes them; or nothing."""
    if yours.shape != right.shape:
        return [f"  {name:15s} yours has the shape {yours.shape}, should be {right.shape}"]
    bad = np.argwhere(~np.isclose(yours, right, rtol=1e-3, atol=1e-5, equal_nan=True))
    if not bad.size:
        return []
    at = tuple(map(int, bad[0]))
    place = f"{name}[{', '.join(map(str, at))}]" if at else name
    return [f"  {place:15s} yours {yours[at]:.{digits}f}, should be {right[at]:.{digits}f}"]
