"""Reading parts of a tensor: t[index].

setitem.py implements writes.

An index is processed in two steps, as in PyTorch. First, integers, slices, None, and `...` make a view
(`Parts.view`). Second, lists, arrays, index tensors, and masks are converted to one index tensor per axis of
that view, and the selected elements are copied.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, AxisError, DTypeError
from flowedu.ops.checks import require_range
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments.dims import transposed
from flowedu.tensor.arguments.types import Index
from flowedu.tensor.devices.conversion import beside
from flowedu.tensor.indexing.nonzero_positions import data, is_lazy
from flowedu.tensor.interop.protocols import alike
from flowedu.tensor.shapes import reshape_and_permute as S
from flowedu.tensor.shapes.split_and_flip import flip

_op = REGISTRY.__getitem__
_SLICE, _RESHAPE, _RANGE = _op("slice"), _op("reshape"), _op("range")
_GATHER, _GATHER_ND = _op("gather"), _op("gather_nd")
_KINDS = "integers, slices (`:`), ellipsis (`...`), None, bools, lists, arrays and integer or bool tensors"


def _index_of(value: Any) -> int:
    """Return the int of one bound of a slice. Raises TypeError if it is not an integer."""
    return int(value.item()) if isinstance(value, Tensor) else operator.index(value)


class Parts:
    """Parsed index of a tensor of `shape`.

    Attributes:
        start, stop, step: slice of each axis.
        sizes: sizes of the axes of the view.
        chosen: for each axis of the view, its index (an int64 array or a lazy tensor), or None.
        flipped: axes of the view that a negative step reverses.
    """

    def __init__(self, shape: tuple[int, ...], index: Index) -> None:
        self.shape = shape
        self.start, self.stop, self.step = [0] * len(shape), list(shape), [1] * len(shape)
        self.sizes: list[int] = []
        self.chosen: list = []
        self.flipped: list[int] = []
        self.axis = 0
        items = [self._plain(i) for i in (index if isinstance(index, tuple) else (index,))]
        taken = sum(self._takes(i) for i in items)
        if taken > len(shape):
            raise AxisError(f"index: Too many indices for tensor of dimension {len(shape)}",
                            expected=f"at most {len(shape)}", got=str(taken), fix="leave some out")
        dots = [k for k, i in enumerate(items) if i is Ellipsis]
        if len(dots) > 1:
            raise AxisError("index: an index can only have a single ellipsis ('...')", expected="one ...",
                            got="several", fix="write : for the other axes")
        rest = [slice(None)] * (len(shape) - taken)
        items = [*items[:dots[0]], *rest, *items[dots[0] + 1:]] if dots else items + rest
        for i in items:
            self._read(i)

    # ---- reading
    @staticmethod
    def _plain(i: Any) -> Any:
        """Convert lists and arrays to arrays, and 0-dim integer tensors to ints."""
        if isinstance(i, Tensor):
            if i.dtype is dt.uint8 or i.dtype is dt.bool_:
                mask = np.asarray(data("a mask as an index", i)).astype(bool)
                return mask if mask.ndim else bool(mask)
            if i.dtype not in (dt.int64, dt.int32):
                raise AxisError(f"index: tensors used as indices must be long, int, byte or bool "
                                f"tensors, not {i.dtype.name}", expected="an int64 tensor or a mask",
                                got=i.dtype.name, fix="i.long()")
            if is_lazy(i):
                return i
            return i.peek().astype(np.int64) if i.ndim else int(i.item())
        if isinstance(i, (list, tuple, range)):
            if any(isinstance(x, (slice, type(None), type(Ellipsis))) for x in i):
                raise AxisError("index: a list of slices is not an index", expected="a tuple",
                                got=repr(i)[:40], fix="x[tuple(index)]")
            i = np.asarray([x.tolist() if isinstance(x, Tensor) else x for x in i])
            if not i.size:
                i = i.astype(np.int64)
        if isinstance(i, np.ndarray) and i.ndim == 0:
            i = i[()]
        if isinstance(i, np.ndarray):
            if i.dtype.kind not in "iub":
                raise AxisError(f"index: Invalid index {i.dtype}", expected=_KINDS,
                                got=f"an array of {i.dtype}", fix="index.astype(int)")
            return i if i.dtype == bool else i.astype(np.int64)
        if isinstance(i, (bool, np.bool_)):
            return bool(i)
        if isinstance(i, (slice, type(None), type(Ellipsis))):
            return i
        try:
            return operator.index(i)
        except TypeError:
            raise AxisError(f"index: Invalid index {type(i).__name__}", expected=_KINDS, got=repr(i)[:40],
                            fix="int(i), if it is an integer") from None

    @staticmethod
    def _takes(i: object) -> int:
        if i is None or i is Ellipsis or isinstance(i, bool):
            return 0
        return i.ndim if isinstance(i, np.ndarray) and i.dtype == bool else 1

    def _keep(self, size: int, chosen: Any = None) -> None:
        self.sizes.append(size)
        self.chosen.append(chosen)

    def _read(self, i: Any) -> None:
        if i is None:
            self._keep(1)
        elif isinstance(i, bool):
            self._keep(1, np.zeros(int(i), np.int64))
        elif isinstance(i, slice):
            self._slice(i)
        elif isinstance(i, int):
            n = self.shape[self.axis]
            if not -n <= i < n:
                raise AxisError(f"index {i} is out of range: out of bounds for dimension {self.axis} with "
                                f"size {n}", expected=f"an index in [{-n}, {n - 1}]", got=str(i),
                                fix="count from 0, or from the end with -1")
            self.start[self.axis] = i % n
            self.stop[self.axis] = i % n + 1
            self.axis += 1
        elif isinstance(i, np.ndarray) and i.dtype == bool:
            self._mask(i)
        else:
            n = self.shape[self.axis]
            self._keep(n, self._checked(i, n, self.axis))
            self.axis += 1

    def _slice(self, s: slice) -> None:
        n = self.shape[self.axis]
        try:
            s = slice(*[v if v is None else _index_of(v) for v in (s.start, s.stop, s.step)])
        except TypeError:
            raise DTypeError("index: slice indices must be integers or None", expected="ints", got=str(s),
                             fix="int(i)") from None
        if s.step == 0:
            raise ArgumentError("index: slice step cannot be zero", got=str(s),
                                expected="a step above or below 0", fix="leave the step out")
        places = range(n)[s]
        if places.step < 0:
            self.flipped.append(len(self.sizes))
            places = places[::-1] if places else range(0)
        self.start[self.axis], self.step[self.axis] = places.start, places.step
        self.stop[self.axis] = min(max(places.start, places.stop), n)
        self._keep(len(places))
        self.axis += 1

    def _mask(self, mask: np.ndarray) -> None:
        for k, n in enumerate(mask.shape):
            if n not in (self.shape[self.axis + k], 0):          # the array API standard allows empty masks
                raise AxisError(f"index: The shape of the mask {list(mask.shape)} at index {k} does not "
                                f"match the shape of the indexed tensor {list(self.shape)} at index "
                                f"{self.axis + k}",
                                expected=f"{self.shape[self.axis:self.axis + mask.ndim]}",
                                got=str(mask.shape), fix="a mask with the shape of the axes that it replaces")
        for places in np.nonzero(mask):
            self._keep(self.shape[self.axis], places.astype(np.int64))
            self.axis += 1

    @staticmethod
    def _checked(a: Any, n: int, axis: int) -> Any:
        problem = f"index {{got}} is out of range: out of bounds for dimension {axis} with size {n}"
        expected, fix = f"indices in [{-n}, {n - 1}]", "check the indices before"
        if not isinstance(a, np.ndarray):
            return require_range(a, -n, n - 1, problem=problem, expected=expected, fix=fix, error=AxisError)
        if a.size and (a.max() >= n or a.min() < -n):
            bad = str(a.max() if a.max() >= n else a.min())
            raise AxisError(problem.replace("{got}", bad), expected=expected, got=bad, fix=fix)
        return np.where(a < 0, a + n, a) if a.size and a.min() < 0 else a

    # ---- evaluation
    def view(self, x: Tensor) -> Tensor:
        """Return the part of x that integers, slices, None, and ... select."""
        return self.turn(self.unturned(x))

    def turn(self, x: Tensor) -> Tensor:
        """Return a copy of x with the axes of negative steps reversed, or x itself without such axes."""
        return flip(x, self.flipped) if self.flipped else x

    def unturned(self, x: Tensor) -> Tensor:
        """Return the part of x that `view` returns, but without reversing the axes of negative steps."""
        if any(self.start) or self.stop != list(self.shape) or any(s != 1 for s in self.step):
            x = _SLICE.call((x,), (tuple(self.start), tuple(self.stop), tuple(self.step)))
        return _RESHAPE.call((x,), (tuple(self.sizes),)) if x.shape != tuple(self.sizes) or not x.ndim else x

    @property
    def basic(self) -> bool:
        return all(c is None for c in self.chosen)

    def picked(self, v: Tensor) -> Tensor:
        """Return a copy of the elements of the view v that `chosen` selects."""
        at = [i for i, c in enumerate(self.chosen) if c is not None]
        if len(at) == 1:
            return _GATHER.call((v, beside(_single(self.chosen[at[0]], v.shape[at[0]]), v)), (at[0],))
        rows = beside(_rows([self.chosen[i] for i in at], [v.shape[i] for i in at]), v)
        rest = [i for i in range(v.ndim) if i not in at]
        y = _GATHER_ND.call((S.contiguous(transposed(v, (*at, *rest))), rows), ())
        k = rows.ndim - 1
        if at[-1] - at[0] == len(at) - 1 and at[0]:              # adjacent axes keep their position
            y = transposed(y, (*range(k, k + at[0]), *range(k), *range(k + at[0], y.ndim)))
        return y


def _single(i: Any, n: int) -> Tensor:
    return alike(i) if isinstance(i, np.ndarray) else E.where(E.lt(i, 0), i + n, i)


def _rows(indices: list, sizes: Sequence[int]) -> Tensor:
    """Return the broadcast index tensors as one tensor, with one number per index tensor along its last axis.
    """
    if all(isinstance(i, np.ndarray) for i in indices):
        try:
            return alike(np.stack(np.broadcast_arrays(*indices), -1))
        except ValueError:
            raise AxisError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                            + ", ".join(str(list(i.shape)) for i in indices),
                            expected="shapes that broadcast", got=f"{len(indices)} index tensors",
                            fix="make the index tensors broadcast") from None
    from flowedu.tensor.shapes.join_and_pad import stack
    tensors = [cast(_single(i, n), dt.int64) for i, n in zip(indices, sizes)]
    return stack(S.broadcast_tensors(*tensors), -1)


def _key(index: Index) -> tuple | None:
    """Return a hashable form of an index of ints, slices of ints, None, and `...`; None for others."""
    out = []
    for i in index if type(index) is tuple else (index,):
        kind = type(i)
        if kind is slice:
            i = (i.start, i.stop, i.step)
            if not all(type(k) is int or k is None for k in i) or (i[2] or 1) < 0:
                return None
        elif kind is not int and i is not None and i is not Ellipsis:
            return None
        out.append(i)
    return tuple(out)


@functools.lru_cache(4096)
def _basic(shape: tuple, key: tuple) -> tuple[tuple | None, tuple | None]:
    """Return (attributes of the slice op or None, the shape after it or None) of a basic index."""
    parts = Parts(shape, tuple([slice(*i) if type(i) is tuple else i for i in key]))
    cut = (tuple(parts.start), tuple(parts.stop), tuple(parts.step))
    sliced = tuple([-(-(b - a) // c) for a, b, c in zip(*cut)])
    whole = cut == ((0,) * len(shape), shape, (1,) * len(shape))
    sizes = tuple(parts.sizes)
    return None if whole else cut, None if sizes == sliced else sizes


def getitem(self: Tensor, index: Index) -> Tensor:
    """Return x[index], which is a view for integers, slices, None, and `...`, and otherwise a copy."""
    key = _key(index)
    if key is not None:
        cut, sizes = _basic(self._sizes(), key)
        v = self if cut is None else _SLICE.call((self,), cut)
        if sizes is None and cut is not None:
            return v
        return _RESHAPE.call((v,), (self._sizes() if sizes is None else sizes,))
    parts = Parts(tuple(self.shape), index)
    v = parts.view(self)
    if parts.basic:
        return v if v is not self else _op("identity").call((self,), ())
    return parts.picked(v)
