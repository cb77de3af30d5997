"""All the ways a call may lie on a grid of devices.

Along the first axis of the grid the call has the signatures of its op. Under each of them its devices make calls of their
own, smaller ones, and along the second axis those have signatures, read off their own equations; and so on. On a grid a
signature is thus one SBP per axis of the grid, for every value: x=(S(0), B), w=(B, S(1)) -> y=(S(0), S(1)).

So a way is sound if every step is, and what only the parts allow is found: (2, 2, 3) -> (4, 3) may be cut ("S0", "S1") ->
("S0", "S0") on 2x2.
"""
from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from flowedu.core.ops.define import Op
from flowedu.core.sbp.local import UNEVEN, LocalCall, logical_call, split_call, unfit
from flowedu.core.sbp.signature import Signature, signatures
from flowedu.core.values.spec import Spec

GridSignature = tuple[tuple[str, ...], ...]      # for each input, then each output: one SBP per axis of the grid


class Way:
    """One way.

    Attributes: signature; fault: why it is out of the question ("" where it is not); then it may have SBPs for the first
    axes of the grid only.
    """

    def __init__(self, path: Sequence[Signature], fault: str = "", calls: Sequence[LocalCall] = (), k: int = 1):
        self.path, self.fault, self._before, self._k = tuple(path), fault, calls, k
        self.signature: GridSignature = tuple(zip(*path))
        self.whole = all(s == "B" for p in path for s in p)
        self.mixed = any(len({s for s in sbps if s[0] == "P"}) > 1 for sbps in self.signature)

    @functools.cached_property
    def calls(self) -> tuple[LocalCall, ...] | None:
        """One call for each device; None where their parts do not make up the result."""
        return None if self.fault else _all_split(self._before, self.path[-1], self._k)


def _all_split(calls: Sequence[LocalCall], signature: Signature, k: int) -> tuple[LocalCall, ...] | None:
    """The calls, each split over k devices."""
    known: dict[int, tuple[LocalCall, ...] | None] = {}
    for call in calls:
        if id(call) not in known:
            known[id(call)] = split_call(call, signature, k)
    if None in known.values():
        return None
    return tuple(c for call in calls for c in known[id(call)])


@functools.lru_cache(maxsize=2048)
def ways(op: Op, specs: tuple[Spec, ...], attrs: tuple, hierarchy: tuple[int, ...]) -> tuple[Way, ...]:
    """All ways of a call, in the order of `signatures` along each axis, the last axis changing fastest; those with a fault
    too."""
    return tuple(_grown((logical_call(op, specs, attrs),), hierarchy, ()))


def _grown(calls: tuple[LocalCall, ...], hierarchy: tuple[int, ...], path: tuple[Signature, ...]) -> Iterator[Way]:
    k, rest = hierarchy[0], hierarchy[1:]
    different = list({id(c): c for c in calls}.values())
    legal = [signatures(c.op, c.ins, c.attrs) for c in different]
    for s in legal[0]:
        if any(s not in other for other in legal[1:]):           # only some devices could
            continue
        fault = next(filter(None, (unfit(c, s, k) for c in different)), "")
        if fault or not rest:
            yield Way((*path, s), fault, calls, k)
            continue
        smaller = _all_split(calls, s, k)
        if smaller is None:
            yield Way((*path, s), UNEVEN)
        else:
            yield from _grown(smaller, rest, (*path, s))
