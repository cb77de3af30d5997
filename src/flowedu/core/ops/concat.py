"""The ops slice, slice_grad, and concat."""
from __future__ import annotations

import builtins

import numpy as np

from flowedu.core import extensions
from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Kernel, Laws, Meaning, Operand, Split, View
from flowedu.core.values.spec import Shape, Spec
from flowedu.errors import ops as errors


# ---- slice
def _check_slice(x: Spec, start: Shape, stop: Shape, step: Shape) -> None:
    if not len(start) == len(stop) == len(step) == x.ndim or any(s < 1 for s in step) or any(
            not 0 <= a <= b <= n for a, b, n in zip(start, stop, x.shape)):
        raise errors.slice_ranges(x.shape, start, stop, step)


def slice_shape(start: Shape, stop: Shape, step: Shape) -> Shape:
    return tuple(-(-(b - a) // s) for a, b, s in zip(start, stop, step))


slice = define(
    "slice(x, *, start, stop, step) -> y",
    Meaning(lambda x, start, stop, step: band_equation(
                x.ndim, full_axes(x.shape, start, stop, step)),
            lambda x, start, stop, step: x[tuple(map(builtins.slice, start, stop, step))],
            shape=slice_shape, check=_check_slice),
    View(lambda strides, start, step: (tuple(s * t for s, t in zip(strides, step)),
                                       sum(s * a for s, a in zip(strides, start)))),
    Split(linear=["x"], rising=["x"],
          spread=lambda x, start, stop, step: (
              extensions.spread_slice(x, start, stop, step) if extensions.spread_slice else {}),
          localize=lambda x, start, stop, step, full: localize_slice(x, start, stop, step, full)),
    Laws([dict(shapes=[(6, 12)], start=(0, 2), stop=(6, 9), step=(1, 3)),
          dict(shapes=[(12,)], start=(3,), stop=(3,), step=(1,))], float_only=False),
    grad={"x": lambda dy, x_shape, start, stop, step: slice_grad(
        dy, shape=x_shape, start=start, stop=stop, step=step)})


def full_axes(shape: Shape, start: Shape, stop: Shape, step: Shape) -> list[int]:
    """Return the axes that the slice takes completely."""
    return [i for i, n in enumerate(shape) if (start[i], stop[i], step[i]) == (0, n, 1)]


def band_equation(rank: int, keep: list[int]) -> str:
    """Return the equation of an op that changes the sizes of all axes except those in `keep`."""
    term = axes.same(rank, [i for i in range(rank) if i not in keep])
    return f"{term}->{term}"


def localize_slice(x: Spec, start: Shape, stop: Shape, step: Shape, full: Shape) -> dict:
    """Return the attributes on one device: full axes take all elements of the local part."""
    keep = full_axes(full, start, stop, step)
    return {"stop": tuple(n if i in keep else b for i, (n, b) in enumerate(zip(x.shape, stop)))}


def _check_slice_grad(dy: Spec, shape: Shape, start: Shape, stop: Shape, step: Shape) -> None:
    if not len(shape) == len(start) == len(stop) == len(step) == dy.ndim:
        raise errors.slice_grad_entries(dy.ndim, shape, start, stop, step)
    want = tuple(len(range(n)[builtins.slice(a, b, s)])
                 for n, a, b, s in zip(shape, start, stop, step))
    inside = all(0 <= a <= b <= n for a, b, n in zip(start, stop, shape))
    if any(s < 1 for s in step) or not inside or want != dy.shape:
        raise errors.slice_grad_misfit(want, dy.shape, shape, start, stop, step)


def _slice_grad_ref(dy: np.ndarray, shape: Shape, start: Shape, stop: Shape,
                    step: Shape) -> np.ndarray:
    dx = np.zeros(shape, dy.dtype)
    dx[tuple(map(builtins.slice, start, stop, step))] = dy
    return dx


slice_grad = define(
    "slice_grad(dy, *, shape, start, stop, step) -> dx",
    Meaning(lambda shape, start, stop, step: band_equation(
                len(shape), full_axes(shape, start, stop, step)),
            _slice_grad_ref, shape=lambda shape: shape, check=_check_slice_grad),
    Kernel("slice_grad", pack=lambda start, step: ((*start, *step), ()), numbers=True,
           contiguous=False),
    Split(linear=["dy"], localize=lambda out, shape, start, stop, step: {
        "shape": out.shape, **localize_slice(out, start, stop, step, shape)}),
    Laws([dict(shapes=[(6, 3)], shape=(6, 12), start=(0, 2), stop=(6, 9), step=(1, 3)),
          dict(shapes=[(12,)], shape=(15,), start=(2,), stop=(14,), step=(1,)),
          dict(shapes=[(0, 6)], shape=(3, 6), start=(2, 0), stop=(2, 6), step=(1, 1))],
         float_only=False),
    grad={"dy": lambda ddx, start, stop, step: slice(ddx, start=start, stop=stop, step=step)},
    doc="Zeros of `shape`, with dy at the elements of slice(start, stop, step).")


# ---- concat
def _band_axes(xs: tuple[Spec, ...], axis: int) -> str:
    """Return "aBc,aBc->aBc": the joined axis must stay whole, and the others may be split."""
    term = axes.same(xs[0].ndim, [axis])
    return ",".join([term] * len(xs)) + "->" + term


def _check_concat(xs: tuple[Spec, ...], axis: int) -> None:
    if not xs:
        raise errors.nothing_to_join()
    rank = xs[0].ndim
    if not 0 <= axis < rank:
        raise errors.concat_axis(rank, axis)
    if len({x.dtype for x in xs}) > 1:
        raise errors.concat_dtypes(xs)
    for i, x in enumerate(xs):
        if x.ndim != rank or any(x.shape[d] != xs[0].shape[d] for d in range(rank) if d != axis):
            want = ", ".join("any" if d == axis else str(n) for d, n in enumerate(xs[0].shape))
            raise errors.concat_misfit(i, want, x.shape, axis)


def _concat_shape(xs: tuple[Spec, ...], axis: int) -> Shape:
    shape = list(xs[0].shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    return tuple(shape)


def _concat_grad(dy: Operand, xs_shape: tuple[Shape, ...], axis: int) -> list:
    """Return the slice of dy that belongs to each input."""
    start, stop, grads = [0] * len(xs_shape[0]), list(dy.shape), []
    for shape in xs_shape:
        stop[axis] = start[axis] + shape[axis]
        grads.append(slice(dy, start=tuple(start), stop=tuple(stop), step=(1,) * len(start)))
        start[axis] = stop[axis]
    return grads


concat = define(
    "concat(*xs, axis) -> y", Meaning(_band_axes, lambda xs, axis: np.concatenate(xs, axis),
                                      shape=_concat_shape, check=_check_concat),
    Kernel("concat", pack=lambda axis: ((axis,), ()), contiguous=False),
    Split(linear=["xs"], rising=["xs"]),
    Laws([dict(shapes=[(6, 12), (6, 6)], axis=1), dict(shapes=[(2, 6), (3, 6), (1, 6)], axis=0),
          dict(shapes=[(6, 2, 6), (6, 0, 6)], axis=1)], float_only=False),
    grad={"xs": _concat_grad}, doc="Concatenate values along `axis`.")
