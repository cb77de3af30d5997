"""The types flow.placement (the devices of a global tensor) and flow.sbp (its layout on them).

Names, texts, and checks are those of OneFlow 0.9. Boxing uses the layouts of core/sbp/sbp.py.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flowedu.core import extensions
from flowedu.core.values.size import Size
from flowedu.errors import layouts as errors

_TYPES = ("cpu", "cuda")


class placement:
    """The ranks of a global tensor: `placement("cpu", [0, 1])`, or a grid [[0, 1], [2, 3]].

    Ranks are sorted, as in OneFlow: [1, 0] becomes [0, 1].

    Args:
        type: "cpu" or "cuda" (if one process runs all ranks, rank r has cuda:r).
        ranks: distinct ranks in a list, in nested lists of equal length, or as {machine: [ids]}.

    Raises:
        ArgumentError: no ranks, a repeated or negative rank, ragged lists, or another type.
    """

    __slots__ = ("_devices", "_hierarchy", "type")

    def __init__(self, type: str, ranks: Sequence | np.ndarray):
        if type not in _TYPES:
            raise errors.placement_type(type)
        if isinstance(ranks, Mapping):
            ranks = [r for ids in ranks.values()
                     for r in (ids if isinstance(ids, (list, tuple, range)) else [ids])]
        try:
            a = np.asarray(ranks.ranks if isinstance(ranks, placement) else list(ranks))
        except (TypeError, ValueError):
            a = np.empty(0, object)
        if not a.size or a.dtype.kind not in "iu" or a.min() < 0:
            raise errors.not_ranks(ranks)
        flat = sorted(a.ravel().tolist())
        twice = {r for r in flat if flat.count(r) > 1}
        if twice:
            raise errors.repeated_rank(twice, ranks)
        self.type, self._devices, self._hierarchy = type, tuple(flat), tuple(a.shape)

    @staticmethod
    def all(type: str = "cpu") -> placement:
        """Return a row of all ranks. For "cuda" in a world of one rank: a row of all GPUs."""
        from flowedu.core.sbp.ranks import current
        size = current().size
        return placement(type, range(extensions.rank_gpus.all_of(size) if type == "cuda" else size))

    @property
    def ranks(self) -> np.ndarray:
        return np.array(self._devices).reshape(self._hierarchy)

    @property
    def hierarchy(self) -> Size:
        """The shape of the grid."""
        return Size(self._hierarchy)

    @property
    def device_type(self) -> str:
        """The old name of `type`."""
        return self.type

    @property
    def devices(self) -> tuple[int, ...]:
        """The ranks in a row."""
        return self._devices

    def __eq__(self, other: object) -> bool:
        return isinstance(other, placement) and (self.type, self._devices, self._hierarchy) == \
            (other.type, other._devices, other._hierarchy)

    def __hash__(self) -> int:
        return hash((self.type, self._devices, self._hierarchy))

    def __repr__(self) -> str:
        return f'flowedu.placement(type="{self.type}", ranks={self.ranks.tolist()})'


class sbp:
    """The layout along one axis of a placement's grid: flow.sbp.split(dim), broadcast, partial_sum.

    Each layout is one object, so that layouts are equal if they are the same object.

    Args:
        text: the SBP as core/sbp/sbp.py writes it: "S0", "B", "P", "Pmax", "Pmin".
    """

    __slots__ = ("_name", "text")

    def __init__(self, text: str, name: str):
        self.text, self._name = text, name

    def __call__(self) -> sbp:
        """Return self: flow.sbp.broadcast() is flow.sbp.broadcast."""
        return self

    def __repr__(self) -> str:
        return f"flowedu.sbp.{self._name}"

    def __reduce__(self) -> tuple:
        return _restore, (self.text,)                 # a copy is the same object


class _Split(sbp):
    __slots__ = ()

    def __call__(self) -> sbp:
        raise errors.sbp_called(self)


BROADCAST, PARTIAL = sbp("B", "broadcast"), sbp("P", "partial_sum")
PARTIAL_MAX, PARTIAL_MIN = sbp("Pmax", "partial_max"), sbp("Pmin", "partial_min")
_OTHERS = {s.text: s for s in (BROADCAST, PARTIAL, PARTIAL_MAX, PARTIAL_MIN)}
_splits: dict[int, sbp] = {}
Sbps = sbp | Sequence[sbp]               # a layout as users write it: one sbp, or one per axis


def split(dim: int | None = None, *, axis: int | None = None) -> sbp:
    """Return the sbp of a split value. Raises DTypeError, or ArgumentError for a negative axis.

    Args:
        dim, axis: index of the split axis, an int >= 0; `axis` is its name in OneFlow 0.7.
    """
    dim = axis if dim is None else dim
    if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)):
        raise errors.split_not_an_axis(dim)
    if dim < 0:
        raise errors.negative_split(dim)
    return _splits.setdefault(int(dim), _Split(f"S{dim}", f"split(dim={dim})"))


def of_text(text: str) -> sbp:
    return _OTHERS.get(text) or split(int(text[1:]))


def _restore(text: str) -> sbp:
    """Call of_text, which pickle rejects after diagnostics/present.py has wrapped it."""
    return of_text(text)


def as_sbp(value: Sbps, ndim: int, what: str) -> tuple[sbp, ...]:
    """Check `value` and return it as a tuple of `ndim` sbps, one per axis of a placement's grid."""
    result = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not all(isinstance(s, sbp) for s in result) or not result:
        raise errors.not_sbps(what, value)
    if len(result) != ndim:
        raise errors.wrong_number_of_sbps(what, result, ndim, value)
    return result
