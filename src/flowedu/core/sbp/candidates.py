"""All SBP signatures ("ways") of a call on a grid of devices.

Along the first axis of the grid, the call has the signatures of its op. Each signature splits the
call into smaller ones. Their signatures apply along the second axis, and so on. A signature on a
grid has one SBP per grid axis for every value: x=(S(0), B), w=(B, S(1)) -> y=(S(0), S(1)).

A way is correct if its signature along each axis is. It may use signatures that only the smaller
calls allow: a reshape (2, 2, 3) -> (4, 3) on 2x2 may be split ("S0", "S1") -> ("S0", "S0").
"""
from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from flowedu.core.ops.define import Op
from flowedu.core.sbp.local import UNEVEN, LocalCall, describe_misfit, logical_call, split_call
from flowedu.core.sbp.signature import Signature, signatures
from flowedu.core.values.spec import Spec

GridSignature = tuple[tuple[str, ...], ...]   # per input, then output: one SBP per axis of the grid


class Way:
    """One signature of a call on a grid.

    `fault` is the reason why the way cannot be used, or "". `signature` may then be incomplete.
    """

    def __init__(self, path: Sequence[Signature], fault: str = "", calls: Sequence[LocalCall] = (),
                 k: int = 1):
        self.path, self.fault = tuple(path), fault
        self._before, self._k = calls, k
        self.signature: GridSignature = tuple(zip(*path))
        self.whole = all(s == "B" for p in path for s in p)
        self.mixed = any(len({s for s in sbps if s[0] == "P"}) > 1 for sbps in self.signature)

    @functools.cached_property
    def calls(self) -> tuple[LocalCall, ...] | None:
        """One call for each device, or None if their parts do not form the result."""
        return None if self.fault else _split_all(self._before, self.path[-1], self._k)


def _split_all(calls: Sequence[LocalCall], signature: Signature, k: int) -> tuple | None:
    """Split each of the calls over k devices."""
    known: dict[int, tuple[LocalCall, ...]] = {}
    for call in calls:
        if id(call) not in known:
            if (parts := split_call(call, signature, k)) is None:
                return None
            known[id(call)] = parts
    return tuple(c for call in calls for c in known[id(call)])


@functools.lru_cache(maxsize=2048)
def ways(op: Op, specs: tuple[Spec, ...], attrs: tuple,
         hierarchy: tuple[int, ...]) -> tuple[Way, ...]:
    """Return all ways of a call, even faulty ones. The last axis of the grid changes fastest."""
    return tuple(_extend_ways((logical_call(op, specs, attrs),), hierarchy, ()))


def _extend_ways(calls: tuple[LocalCall, ...], hierarchy: tuple,
                 path: tuple[Signature, ...]) -> Iterator[Way]:
    k, rest = hierarchy[0], hierarchy[1:]
    different = list({id(c): c for c in calls}.values())
    legal = [signatures(c.op, c.ins, c.attrs) for c in different]
    for s in legal[0]:
        if any(s not in other for other in legal[1:]):           # illegal on other devices
            continue
        fault = next(filter(None, (describe_misfit(c, s, k) for c in different)), "")
        if fault or not rest:
            yield Way((*path, s), fault, calls, k)
            continue
        smaller = _split_all(calls, s, k)
        if smaller is None:
            yield Way((*path, s), UNEVEN)
        else:
            yield from _extend_ways(smaller, rest, (*path, s))
