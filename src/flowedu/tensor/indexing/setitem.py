"""Writes to parts of a tensor: t[index] = value in place, or `put` out of place for graphs and gradients."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import REDUCING, cast, is_number, scalar
from flowedu.core.values import dtype as dt
from flowedu.errors import DTypeError, ShapeError
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments.dims import reshaped
from flowedu.tensor.arguments.types import Index, Number
from flowedu.tensor.devices.conversion import beside, use_device_of
from flowedu.tensor.indexing.getitem import Parts
from flowedu.tensor.indexing.nonzero_positions import is_lazy
from flowedu.tensor.shapes import reshape_and_permute as S

_op = REGISTRY.__getitem__
_RANGE, _ADD_AT = map(_op, ("range", "scatter_nd"))


def _value(x: Tensor, value: Any, shape: tuple[int, ...]) -> Tensor:
    """Return the value to write, in x's dtype and broadcast to `shape`."""
    if is_number(value):
        value = scalar(value.item() if isinstance(value, np.generic) else value, x.dtype, "setitem")
    elif not isinstance(value, Tensor):
        raise DTypeError(f"setitem: can't assign a {type(value).__name__} to a tensor",
                         expected="a tensor or a number",
                         got=type(value).__name__, fix="x[index] = flow.tensor(value)")
    value = cast(value, x.dtype)
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = reshaped(value, value.shape[1:])
    if value.shape == shape:
        return value
    lead = len(shape) - value.ndim
    if lead < 0 or any(m not in (1, n) for m, n in zip(value.shape, shape[lead:])):
        raise ShapeError(f"setitem: shape mismatch: value tensor of shape {list(value.shape)} cannot be "
                         f"broadcast to indexing result of shape {list(shape)}. The expanded size of the "
                         f"tensor must match the existing size",
                         expected=f"a value that broadcasts to {shape}", got=str(tuple(value.shape)),
                         fix="reshape or expand the value")
    return S.expand(value, *shape)


def put(x: Tensor, index: Index, value: Any, accumulate: bool = False) -> Tensor:
    """Return a copy of x after x[index] = value, or x[index] += value if `accumulate`; differentiable."""
    lazy_mask = _lazy_mask(index)
    if lazy_mask is not None and not accumulate and (is_number(value) or not value.ndim):
        mask = reshaped(lazy_mask, tuple(lazy_mask.shape) + (1,) * (x.ndim - lazy_mask.ndim))
        return cast(E.where(mask, _value(x, value, ()), x), x.dtype)
    parts = Parts(tuple(x.shape), index)
    if parts.basic and not accumulate:
        return _band(x, parts, value)
    with use_device_of(x):
        places = reshaped(_RANGE.call((), (0, 1, x._numel, dt.int64)), tuple(x.shape))
    places = parts.view(places) if parts.basic else parts.picked(parts.view(places))
    value = beside(_value(x, value, tuple(places.shape)), x)
    if not places._numel:
        return E.clone(x)
    rows, flat = (reshaped(S.contiguous(places), (places._numel, 1)),
                  S.contiguous(S.ravel(S.contiguous(value))))
    if accumulate:
        return E.add(x, reshaped(added(flat, rows, (x._numel,)), tuple(x.shape)))
    y = _op("scatter_nd_update").call((S.ravel(S.contiguous(x)), rows, flat), ())
    return reshaped(y, tuple(x.shape))


def _lazy_mask(index: Index) -> Tensor | None:
    index = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    return index if isinstance(index, Tensor) and is_lazy(index) and index.dtype is dt.bool_ else None


def _band(x: Tensor, parts: Parts, value: Tensor | Number) -> Tensor:
    """Return x with the value in a slice, as zeros with the value plus x elsewhere."""
    region = tuple(-(-(b - a) // c) for a, b, c in zip(parts.start, parts.stop, parts.step))
    value = parts.turn(_value(x, value, tuple(parts.sizes)))
    value = beside(reshaped(S.contiguous(value), region), x)
    if region == tuple(x.shape):
        return value
    if not value._numel:
        return E.clone(x)
    place = (tuple(x.shape), tuple(parts.start), tuple(parts.stop), tuple(parts.step))
    with use_device_of(x):
        mask = _op("slice_grad").call((_op("constant").call((), (region, 1, dt.int32)),), place)
    return _op("where").call((cast(mask, dt.bool_), _op("slice_grad").call((value,), place), x), ())


def setitem(self: Tensor, index: Index, value: Tensor | Number) -> None:
    """Write a tensor or number to x[index] in place; the value is cast to x's dtype and broadcast."""
    from flowedu.tensor.inplace.history import write_into
    if current_interpreter() is not None or is_lazy(self):
        write_into(self, put(self, index, value))
        return
    parts = Parts(tuple(self.shape), index)
    v = parts.unturned(self)
    if parts.basic:
        write_into(v, parts.turn(_value(self, value, tuple(v.shape))))
        return
    whole = (slice(None),) * v.ndim
    chosen = tuple(w if c is None else c for w, c in zip(whole, parts.chosen))
    write_into(v, parts.turn(put(parts.turn(v), chosen, value)))


def added(updates: Tensor, places: Tensor, shape: Sequence[int]) -> Tensor:
    """Return zeros of a shape with `updates` added at the positions `places`.

    16-bit floats and small integers are summed in a wider dtype.
    """
    c = REDUCING.get(updates.dtype.name)
    wide = updates if c is None else cast(updates, c)
    y = _ADD_AT(S.contiguous(wide), places, shape=shape)
    return y if c is None else cast(y, updates.dtype)
