"""Pooling to a given output size.

Neighboring windows may overlap by one element if the output size does not divide the size of the axis.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from flowedu.core.ops import reduce
from flowedu.core.ops.concat import concat
from flowedu.core.ops.elementwise import floordiv
from flowedu.core.ops.promote import cast
from flowedu.core.ops.view import contiguous, expand
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.common import Ints, reshaped, times
from flowedu.nn.functional.pool import batched, maxima, means
from flowedu.ops.argmax import argmax
from flowedu.ops.bounds import straight
from flowedu.ops.index import gather
from flowedu.ops.order import range as range_op
from flowedu.ops.scatter import dim_gather
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.devices.conversion import use_device_of


def _sizes(what: str, output_size: Any, size: Ints) -> Ints:
    found = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * len(size)
    if len(found) != len(size) or any(o is not None and (not isinstance(o, int) or o < 0) for o in found):
        raise ArgumentError(f"{what}: output_size is not right",
                            expected=f"an int, or {len(size)} ints or Nones",
                            got=repr(output_size), fix="output_size=1 pools everything")
    if 0 in size:
        raise ShapeError(f"{what}: Expected input to have non-zero size for non-batch dimensions",
                         got=str(size), expected="sizes of 1 or more", fix="leave empty images out")
    return tuple(n if o is None else o for o, n in zip(found, size))


def _spans(n: int, out: int) -> list[tuple[int, int]]:
    """Return [(first, end)] of the elements that each of `out` results depends on."""
    return [(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]


def _pairs(x: Tensor, axis: int, out: int) -> list[Tensor]:
    """Return x at the first and at the last element of each of `out` windows, for more windows than elements.

    No window has a third element then.
    """
    with use_device_of(x):
        i, n = range_op(size=out, dtype=dt.int64), x.shape[axis]
    return [gather(x, floordiv(at, out), axis=axis) for at in (i * n, (i + 1) * n - 1)]


def _adaptive_avg(n: int) -> Callable[..., Tensor]:
    what = f"adaptive_avg_pool{n}d"

    def pool(input: Tensor, output_size: int | None | Sequence[int | None]) -> Tensor:
        x, single = batched(what, input, n, no_channels=True)
        size = tuple(x.shape[2:])
        out = _sizes(what, output_size, size)
        if all(o == 1 for o in out):
            y = times(reduce.sum.call((x,), (tuple(range(2, n + 2)), True)), 1.0 / math.prod(size))
        elif 0 not in out and all(s % o == 0 for s, o in zip(size, out)):
            kernel = tuple(s // o for s, o in zip(size, out))
            y = means(x, kernel, kernel, (0,) * (2 * n))
        else:
            y = x
            for i, o in enumerate(out):
                if o > size[i]:
                    first, last = _pairs(y, 2 + i, o)
                    y = times(first, 0.5) + times(last, 0.5)
                elif o != size[i]:
                    parts = [times(reduce.sum(y.narrow(2 + i, a, b - a), axis=(2 + i,), keepdims=True),
                                   1.0 / (b - a)) for a, b in _spans(size[i], o)]
                    y = concat(*parts, axis=2 + i) if parts else y.narrow(2 + i, 0, 0)
            y = straight(y)
        return reshaped(y, tuple(y.shape[1:])) if single else y

    pool.__name__ = pool.__qualname__ = what
    pool.__doc__ = f"""Return the means of windows that cover the spatial axes.

    Args:
        input: (N, C, {", ".join("DHW"[3 - n:])}) or without N.
        output_size: number of windows, an int or one per axis; None keeps the size of an axis.
    """
    return pool


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive_avg(1), _adaptive_avg(2),
                                                                 _adaptive_avg(3))


def _adaptive_max(n: int) -> Callable[..., Any]:
    what = f"adaptive_max_pool{n}d"

    def pool(input: Tensor, output_size: int | None | Sequence[int | None],
             return_indices: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        x, single = batched(what, input, n)
        size = tuple(x.shape[2:])
        out = _sizes(what, output_size, size)
        if all(s % o == 0 for s, o in zip(size, out) if o) and 0 not in out:
            kernel = tuple(s // o for s, o in zip(size, out))
            y, index = maxima(x, kernel, kernel, (0,) * (2 * n), return_indices)
        else:
            y, index = _by_parts(x, size, out)
        if single:
            y, index = (reshaped(y, tuple(y.shape[1:])), None if index is None
                        else reshaped(index, tuple(index.shape[1:])))
        return (y, index) if return_indices else y

    pool.__name__ = pool.__qualname__ = what
    pool.__doc__ = f"""Return the maxima of windows that cover the spatial axes.

    Args:
        input: (N, C, {", ".join("DHW"[3 - n:])}) or without N.
        output_size: number of windows, an int or one per axis; None keeps the size of an axis.
        return_indices: return (values, positions), where positions are int64 indices into the flattened
            spatial axes.
    """
    return pool


def _by_parts(x: Tensor, size: Ints, out: Ints) -> tuple[Tensor, Tensor]:
    """Return (maxima, positions), axis by axis from the last; of equal elements the first one."""
    with use_device_of(x):
        y, index = x, reshaped(range_op(size=math.prod(size), dtype=dt.int64), size)
    index = contiguous(expand(index, shape=(*x.shape[:2], *size)))
    for i in reversed(range(len(out))):
        axis, values, places = 2 + i, [], []
        if out[i] > size[i]:
            a, b = _pairs(y, axis, out[i])
            at, behind = _pairs(index, axis, out[i])
            # b is larger, or NaN and a is not
            later = E.logical_and(E.logical_not(E.ge(a, b)), E.eq(a, a))
            y, index = E.where(later, b, a), E.where(later, behind, at)
            continue
        for start, stop in _spans(size[i], out[i]):
            part, positions = y.narrow(axis, start, stop - start), index.narrow(axis, start, stop - start)
            best = cast(argmax(part, axis=axis), dt.int64).unsqueeze(axis)
            values.append(dim_gather(part, best, axis=axis))
            places.append(dim_gather(positions, best, axis=axis))
        y, index = concat(*values, axis=axis), concat(*places, axis=axis)
    result: Any = straight(y)
    return result, index


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive_max(1), _adaptive_max(2),
                                                                 _adaptive_max(3))

__all__ = [f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)]
