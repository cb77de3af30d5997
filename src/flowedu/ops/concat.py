"""concat, and the gradient of slice: bands of one array."""
from __future__ import annotations

import builtins

import numpy as np

from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.ops import axes
from flowedu.ops.define import define
from flowedu.ops.view import slice


def _band_axes(xs, axis):
    """"aBc,aBc->aBc": the joined axis must stay whole, all others may be split together."""
    term = axes.same(xs[0].ndim, [axis])
    return ",".join([term] * len(xs)) + "->" + term


def _check_concat(xs, axis):
    if not xs:
        raise ArgumentError("concat: nothing to join", expected="one value or more", got="none")
    rank = xs[0].ndim
    if not 0 <= axis < rank:
        raise ShapeError("concat: axis is out of range", expected=f"an axis in [0, {rank - 1}]", got=str(axis),
                         fix="join along an axis the values have, or reshape them first")
    if len({x.dtype for x in xs}) > 1:
        raise DTypeError("concat: the element types differ", expected=f"all {xs[0].dtype.name}",
                         got=", ".join(x.dtype.name for x in xs), fix="cast the others")
    for i, x in enumerate(xs):
        if x.ndim != rank or any(x.shape[d] != xs[0].shape[d] for d in range(rank) if d != axis):
            want = ", ".join("any" if d == axis else str(n) for d, n in enumerate(xs[0].shape))
            raise ShapeError(f"concat: value {i} does not fit the first one", expected=f"({want})", got=str(x.shape),
                             fix=f"only axis {axis} may differ")


def _concat_shape(xs, axis):
    shape = list(xs[0].shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    return tuple(shape)


def _concat_grad(dy, xs_shape, axis):
    """Each input's gradient is its band of dy."""
    start, stop, grads = [0] * len(xs_shape[0]), list(dy.shape), []
    for shape in xs_shape:
        stop[axis] = start[axis] + shape[axis]
        grads.append(slice(dy, start=tuple(start), stop=tuple(stop), step=(1,) * len(start)))
        start[axis] = stop[axis]
    return grads


concat = define("concat(*xs, axis) -> y", _band_axes, shape=_concat_shape, check=_check_concat, linear=["xs"],
                rising=["xs"], ref=lambda xs, axis: np.concatenate(xs, axis), cpu="concat", pack=lambda axis: ((axis,), ()),
                contiguous=False, float_only=False, grad={"xs": _concat_grad},
                examples=[dict(shapes=[(6, 12), (6, 6)], axis=1), dict(shapes=[(2, 6), (3, 6), (1, 6)], axis=0),
                          dict(shapes=[(6, 2, 6), (6, 0, 6)], axis=1)],
                doc="Values side by side along `axis`.")


def _full(shape, start, stop, step):
    """The axes of which the slice takes everything."""
    return [i for i, n in enumerate(shape) if (start[i], stop[i], step[i]) == (0, n, 1)]


def _slice_grad_axes(shape, start, stop, step):
    keep = _full(shape, start, stop, step)
    term = axes.same(len(shape), [i for i in range(len(shape)) if i not in keep])
    return f"{term}->{term}"


def _check_slice_grad(dy, shape, start, stop, step):
    if not len(shape) == len(start) == len(stop) == len(step) == dy.ndim:
        raise ShapeError("slice_grad: shape, start, stop and step need one entry for each axis",
                         expected=f"{dy.ndim} entries", got=f"{len(shape)}, {len(start)}, {len(stop)}, {len(step)}")
    want = tuple(len(range(n)[builtins.slice(a, b, s)]) for n, a, b, s in zip(shape, start, stop, step))
    if any(s < 1 for s in step) or any(not 0 <= a <= b <= n for a, b, n in zip(start, stop, shape)) or want != dy.shape:
        raise ShapeError("slice_grad: dy does not fit the slice", expected=f"dy of shape {want}, 0 <= start <= stop <= "
                         "shape, step of 1 or more", got=f"dy {dy.shape}, shape={shape}, start={start}, stop={stop}, "
                         f"step={step}")


def _slice_grad_ref(dy, shape, start, stop, step):
    dx = np.zeros(shape, dy.dtype)
    dx[tuple(map(builtins.slice, start, stop, step))] = dy
    return dx


def _localize_slice_grad(out, shape, start, stop, step):
    keep = _full(shape, start, stop, step)
    return {"shape": out.shape, "stop": tuple(out.shape[i] if i in keep else b for i, b in enumerate(stop))}


slice_grad = define("slice_grad(dy, *, shape, start, stop, step) -> dx", _slice_grad_axes, shape=lambda shape: shape,
                    check=_check_slice_grad, linear=["dy"], ref=_slice_grad_ref, cpu="slice_grad", contiguous=False,
                    pack=lambda start, step: ((*start, *step), ()), numbers=True, float_only=False,
                    localize=_localize_slice_grad,
                    grad={"dy": lambda ddx, start, stop, step: slice(ddx, start=start, stop=stop, step=step)},
                    examples=[dict(shapes=[(6, 3)], shape=(6, 12), start=(0, 2), stop=(6, 9), step=(1, 3)),
                              dict(shapes=[(12,)], shape=(15,), start=(2,), stop=(14,), step=(1,)),
                              dict(shapes=[(0, 6)], shape=(3, 6), start=(2, 0), stop=(2, 6), step=(1, 1))],
                    doc="Zeros of `shape`, with dy where slice(start, stop, step) reads. With step 1: zero padding.")
