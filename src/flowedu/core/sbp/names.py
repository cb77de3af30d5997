"""The types flow.placement (the devices of a global tensor) and flow.sbp (its layout on them).

Names, texts, and checks are those of OneFlow 0.9. Boxing uses the layouts of core/sbp/sbp.py.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flowedu.core import extensions
from flowedu.core.values.size import Size
from flowedu.errors import ArgumentError, DTypeError, FlowError

_TYPES = ("cpu", "cuda")


class placement:
    """The ranks of a global tensor: `placement("cpu", [0, 1])`, or a grid [[0, 1], [2, 3]].

    Ranks are sorted, as in OneFlow: [1, 0] becomes [0, 1]. Placements with equal type and ranks are equal.

    Args:
        type: "cpu" or "cuda" (rank r of a process has cuda:r).
        ranks: distinct ranks in a list, in nested lists of equal length, or as {machine: [ids]}.

    Raises:
        ArgumentError: no ranks, a repeated or negative rank, ragged lists, or another type.
    """

    __slots__ = ("_devices", "_hierarchy", "type")

    def __init__(self, type: str, ranks: Sequence):
        if type not in _TYPES:
            raise ArgumentError("placement: type is not a kind of device", expected='"cpu" or "cuda"', got=repr(type),
                                fix='flow.placement("cpu", [0, 1])')
        if isinstance(ranks, Mapping):
            ranks = [r for ids in ranks.values() for r in (ids if isinstance(ids, (list, tuple, range)) else [ids])]
        try:
            a = np.asarray(ranks.ranks if isinstance(ranks, placement) else list(ranks))
        except (TypeError, ValueError):
            a = np.empty(0, object)
        if not a.size or a.dtype.kind not in "iu" or a.min() < 0:
            raise ArgumentError("placement: ranks are not device numbers", got=repr(ranks),
                                expected="a list of ranks, 0 or more, or nested lists of equal length", fix="[0, 1]")
        flat = sorted(a.ravel().tolist())
        twice = {r for r in flat if flat.count(r) > 1}
        if twice:
            raise ArgumentError(f"placement: rank {min(twice)} is there twice", expected="every rank once", got=repr(ranks),
                                fix="leave the second one out")
        self.type, self._devices, self._hierarchy = type, tuple(flat), tuple(a.shape)

    @staticmethod
    def all(type: str = "cpu") -> placement:
        """Return all ranks in a row; for "cuda" in a single process, all GPUs."""
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

    Attributes: text, the SBP as core/sbp/sbp.py writes it: "S0", "B", "P", "Pmax", "Pmin".
    """

    __slots__ = ("_name", "text")

    def __init__(self, text: str, name: str):
        self.text, self._name = text, name

    def __call__(self) -> sbp:
        """Return self: flow.sbp.broadcast() is flow.sbp.broadcast."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, sbp) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"flowedu.sbp.{self._name}"

    def __copy__(self) -> sbp:
        return self

    def __deepcopy__(self, memo) -> sbp:
        return self


class _Split(sbp):
    __slots__ = ()

    def __call__(self) -> sbp:
        raise DTypeError(f"{self!r} is an sbp already", expected="flow.sbp.split(dim)", got="a call",
                         fix="leave the () out")


BROADCAST, PARTIAL = sbp("B", "broadcast"), sbp("P", "partial_sum")
PARTIAL_MAX, PARTIAL_MIN = sbp("Pmax", "partial_max"), sbp("Pmin", "partial_min")
_OTHERS = {s.text: s for s in (BROADCAST, PARTIAL, PARTIAL_MAX, PARTIAL_MIN)}
_splits: dict[int, sbp] = {}


def split(dim: int | None = None, *, axis: int | None = None) -> sbp:
    """Return the sbp of a value split along `dim` (`axis` in OneFlow 0.7)."""
    dim = axis if dim is None else dim
    if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)):
        raise DTypeError("sbp.split: dim is not the number of an axis", expected="an int of 0 or more", got=repr(dim),
                         fix="flow.sbp.split(0)")
    if dim < 0:
        raise ArgumentError(f"Split axis must not be negative, but got {dim}!", expected="an axis counted from the front",
                         got=str(dim), fix="split(x.ndim - 1) is the last one")
    return _splits.setdefault(int(dim), _Split(f"S{dim}", f"split(dim={dim})"))


def of_text(text: str) -> sbp:
    """Return the sbp with this text."""
    return _OTHERS.get(text) or split(int(text[1:]))


def as_sbp(value, ndim: int, what: str) -> tuple[sbp, ...]:
    """Return a tuple of one sbp for each of the `ndim` axes of a placement's grid, checked."""
    result = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not all(isinstance(s, sbp) for s in result) or not result:
        raise DTypeError(f"{what}: sbp parameter must be type of flowedu.sbp.sbp or list/tuple of flowedu.sbp.sbp",
                         expected="flow.sbp.split(0), flow.sbp.broadcast, flow.sbp.partial_sum", got=repr(value),
                         fix=_advice(value))
    if len(result) != ndim:
        raise ArgumentError(f"{what}: one sbp for each axis of the placement's hierarchy ({len(result)} vs {ndim})",
                         expected=f"{ndim} of them", got=repr(value), fix="[" + ", ".join(["flow.sbp.broadcast"] * ndim)
                         + "], say")
    return result


def _advice(value) -> str:
    text = str(value).strip().upper()
    if text in ("B", "BROADCAST"):
        return "flow.sbp.broadcast"
    if text in ("P", "PARTIAL", "PARTIAL_SUM"):
        return "flow.sbp.partial_sum"
    axis = text.strip("SPLIT()[] ")                       # of "S0", "S(0)", "split(0)", 0
    return f"flow.sbp.split({axis if axis.isdecimal() and len(axis) < 3 else 0})"


def world_error(p: placement, size: int) -> FlowError:
    """Return the error for a placement with a rank outside the world."""
    return ArgumentError("Placement is invalid because rank must be less than world size!", expected=f"ranks below {size}",
                      got=repr(p), fix=f"flow.distributed.set_virtual_devices({max(p.devices) + 1}) at the start of the "
                      f"script (or FLOWEDU_DEVICES={max(p.devices) + 1}), or run it with python -m "
                      f"flowedu.distributed.launch --nproc_per_node {max(p.devices) + 1}")
