"""nn.modules.utils: functions that expand one value to a tuple of n equal ones."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat


def _ntuple(n: int, name: str = "parse") -> Callable[[object], tuple]:
    """Return a function that repeats a number n times; it converts an iterable to a tuple unchanged."""
    def parse(x) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Sequence, n: int) -> tuple:
    """Convert sizes per axis to the order of `pad`: (1, 2), 2 -> (2, 2, 1, 1)."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: Sequence[int | None], defaults: Sequence[int]) -> list[int]:
    """Return the sizes, with None replaced by the value at the same position from the end of `defaults`."""
    return [d if v is None else v for v, d in zip(out_size, defaults[-len(out_size):], strict=True)]
