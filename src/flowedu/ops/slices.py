"""Split of a call with 16-bit floats into slices, each of which is widened, computed, and rounded in cache.

An axis can be cut if it can be split over devices, that is, if its letter in the op's axis equation is lower
case. A slice is computed like the local call of one device, with the attributes that `localize` returns. A
result without the letter is partial, and the partial results are combined (`fold`).
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, prod
from typing import Any, NamedTuple

from flowedu.core.ops import axes
from flowedu.core.ops.define import Op
from flowedu.core.values.dtype import HALVES, float32
from flowedu.core.values.spec import Spec
from flowedu.errors import FlowError

ROOM = 1 << 18            # bytes of float32 that a slice may take: it stays in a core's cache
SLICES = 16               # at least as many, so that all threads have some
RUN = 64                  # adjacent elements in a slice, at least: two cache lines


class Slices(NamedTuple):
    """Division of a call into slices.

    loops: (size, step) of the axes that are cut, outer axes first; only the last has a step above 1. where:
    for each axis of each input and output, the index of the loop that cuts it, or -1. ints, last_ints: the
    packed attributes of a slice, and of a slice at the end of the last loop. fold: "sum", "max", or "min",
    the operation that combines partial results.
    """

    loops: tuple[tuple[int, int], ...]
    where: tuple[tuple[int, ...], ...]
    ints: tuple[int, ...]
    last_ints: tuple[int, ...]
    fold: str


def slices(op: Op, specs: Sequence[Spec], outs: Sequence[Spec], attrs: tuple,
           written: Iterable[int] = ()) -> Slices | None:
    """Return the division of a call into slices, or None if it is small or cannot be cut."""
    values = (*specs, *outs)
    if op.axes is None or op.random or op.group is not None or sum(map(_bytes, values)) <= ROOM:
        return None
    call = _Call(op, specs, outs, attrs)
    loops = call.choose()
    if not loops or any(not call.cuts(loops, i) for i in written):
        return None
    (last, step), order = list(loops.items())[-1], list(loops)
    parts: list[Any] = [call.pack(steps) for steps in ({}, loops,
                                                       {**loops, last: call.size[last] % step or step})]
    if None in parts or len({reals for _, reals in parts}) > 1 or not call.dense(loops):
        return None
    where = tuple([tuple([order.index(c) if c in loops else -1 for c in term]) for term in call.terms])
    return Slices(tuple([(call.size[c], n) for c, n in loops.items()]), where, parts[1][0], parts[2][0],
                  op.fold or "sum")


def _bytes(spec: Spec) -> int:
    """Return the bytes of a 16-bit value in float32."""
    return 4 * spec.size if spec.dtype in HALVES else 0


class _Call:
    """A call, the letters of its values, and the results of cutting them."""

    def __init__(self, op: Op, specs: Sequence[Spec], outs: Sequence[Spec], attrs: tuple) -> None:
        self.op, self.specs, self.outs = op, specs, outs
        self.attrs, self.values = attrs, (*specs, *outs)
        left, right = axes.parse(op.equation(specs, attrs), len(specs))
        self.terms = [*left, *right]
        self.size = {c: n for t, v in zip(self.terms, self.values) for c, n in zip(t, v.shape) if c != "1"}
        self.large = max(range(len(self.values)), key=lambda i: _bytes(self.values[i]))

    def cuts(self, loops: Iterable[str], i: int) -> bool:
        return all(c in self.terms[i] for c in loops)

    def covered(self, letter: str) -> int:
        return sum(_bytes(v) for t, v in zip(self.terms, self.values) if letter in t)

    def fits(self, loops: Iterable[str]) -> bool:
        """Each output is divided by all loops, or by none, and is then a partial result in float32."""
        outs = list(zip(self.terms[len(self.specs):], self.outs))
        return all(set(loops) <= set(t) or v.dtype in (*HALVES, float32) and set(loops).isdisjoint(t)
                   for t, v in outs)

    def least(self, letter: str) -> int:
        """Return the shortest step that leaves runs of RUN elements."""
        runs = [prod(v.shape[t.index(letter) + 1:]) for t, v in zip(self.terms, self.values) if letter in t
                and _bytes(v)]
        return min(self.size[letter], ceil(RUN / max(1, min(runs))))

    def choose(self) -> dict[str, int]:
        """{letter: step}.

        The letter that most of the call has, outer ones first; more while a slice is too large.
        """
        loops: dict[str, int] = {}
        order = [c for c in self.terms[self.large] if c.islower() and self.size[c] > 1]
        whole, room = sum(map(_bytes, self.values)), ROOM
        while True:
            left = [c for c in order if c not in loops and self.fits([*loops, c])]
            most = max(map(self.covered, left), default=0)
            if 2 * most < whole:
                return loops
            letter = next(c for c in left if self.covered(c) >= 0.9 * most)
            if not loops:                         # inputs used by all slices should not weigh much
                room = max(ROOM, 4 * (whole - most))
            loops[letter] = least = self.least(letter)
            one = sum(_bytes(v) // prod([self.size[c] for c in t if c in loops])
                      for t, v in zip(self.terms, self.values) if not loops.keys().isdisjoint(t))
            if least > 1 or one * 2 <= room:
                others = prod([self.size[c] for c in loops if c != letter])
                loops[letter] = min(max(room // max(one, 1), least),
                                    max(least, self.size[letter] * others // SLICES))
                return loops

    def pack(self, steps: dict[str, int]) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
        """Return the attributes of the call with these sizes, as the kernel reads them.

        None: these sizes are not a valid call.
        """
        op, attrs = self.op, self.attrs
        parts = [Spec(tuple([min(steps.get(c, n), n) for c, n in zip(t, v.shape)]), v.dtype)
                 for t, v in zip(self.terms, self.values)]
        ins, outs = parts[:len(self.specs)], tuple(parts[len(self.specs):])
        try:
            if op.localize is not None:
                changed = op.ask(op.localize, op.bind(ins, attrs, out=outs[0], full=self.specs[0].shape,
                                                      full_out=self.outs[0].shape))
                attrs = tuple([changed.get(n, v) for n, v in zip(op.attrs, attrs)])
            if op.infer(ins, attrs) != outs:
                return None
        except FlowError:
            return None
        ints, reals = op.ask(op.pack, op.bind(ins, attrs, outs=outs)) if op.pack is not None else ((), ())
        return tuple(map(int, ints)), tuple(map(float, reals))

    def dense(self, loops: dict[str, int]) -> bool:
        """Return True if slices are contiguous in all values that are read or written without widening."""
        for i, (t, v) in enumerate(zip(self.terms, self.values)):
            strided = (i < len(self.specs)
                       and self.op.inputs[0 if self.op.variadic else i] not in self.op.contiguous)
            if v.dtype in HALVES or strided or i >= len(self.specs) and loops.keys().isdisjoint(t):
                continue
            sizes = [loops.get(c, n) for c, n in zip(t, v.shape)]
            inner = max([d for d, n in enumerate(sizes) if n != v.shape[d]], default=0)
            if any(n != 1 for n in sizes[:inner]):
                return False
        return True
