"""Views (ops without kernel and copy), and the ops that copy, convert, and fill."""
from __future__ import annotations

from math import isfinite, prod

import numpy as np

from flowedu._kernels import TABLE
from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Effects, Kernel, Laws, Meaning, Split, View
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Shape, Spec, broadcast, row_major
from flowedu.errors import ops as errors


def reshape_strides(shape: Shape, strides: Shape, new: Shape) -> Shape | None:
    """Return the strides of shape `new` over the same memory, or None if a copy is needed."""
    if prod(shape) == 0 or tuple(strides) == row_major(shape):  # contiguous memory fits every shape
        return row_major(new)
    runs: list[tuple[int, int]] = []              # merge adjacent axes that one stride covers
    for n, s in zip(shape, strides):
        if n != 1 and runs and runs[-1][1] == s * n:
            runs[-1] = runs[-1][0] * n, s
        elif n != 1:
            runs.append((n, s))
    out, room, step = [], 1, 1                    # size left of a run, and its stride
    for n in reversed(new):
        if n != 1 and room == 1 and runs:
            room, step = runs.pop()
        if room % n:
            return None
        out.append(step)
        room, step = room // n, step * n
    return tuple(reversed(out))


def reshape_axes(x: Spec, shape: Shape) -> str:
    """Return the axis equation. Of axes that are merged or divided, only the first may be split."""
    letters = iter(axes.LETTERS)
    old, new = ["Z"] * x.ndim, ["Z"] * len(shape)
    left = [i for i, n in enumerate(x.shape) if n != 1]
    right = [j for j, n in enumerate(shape) if n != 1]
    while left and right:                   # the smallest group with the same product on both sides
        i, j = left.pop(0), right.pop(0)
        a, b = x.shape[i], shape[j]
        while a != b:
            if not (left if a < b else right):    # an empty array
                return f"{''.join(old)}->{''.join(new)}"
            if a < b:
                a *= x.shape[left.pop(0)]
            else:
                b *= shape[right.pop(0)]
        old[i] = new[j] = next(letters)
    return f"{''.join(old)}->{''.join(new)}"


def _check_reshape(x: Spec, shape: Shape) -> None:
    if any(n < 0 for n in shape) or prod(shape) != x.size:
        raise errors.reshape_size(x, shape)


def _view_reshape(x: Spec, strides: Shape, shape: Shape) -> tuple[Shape, int] | None:
    new_strides = reshape_strides(x.shape, strides, shape)
    return None if new_strides is None else (new_strides, 0)


reshape = define(
    "reshape(x, *, shape) -> y",
    Meaning(reshape_axes, lambda x, shape: x.reshape(shape), shape=lambda shape: shape,
            check=_check_reshape),
    View(_view_reshape),
    Split(linear=["x"], rising=["x"], localize=lambda out: {"shape": out.shape}),
    Laws([dict(shapes=[(6, 12)], shape=(72,)), dict(shapes=[(12, 6)], shape=(12, 3, 2)),
          dict(shapes=[(6, 2, 3)], shape=(6, 6)), dict(shapes=[(1, 6)], shape=(6,)),
          dict(shapes=[(6,)], shape=(6, 1)), dict(shapes=[(6, 12)], shape=(1, 6, 1, 12))],
         float_only=False),
    grad={"x": lambda dy, x_shape: reshape(dy, shape=x_shape)})


def _check_transpose(x: Spec, perm: tuple[int, ...]) -> None:
    if sorted(perm) != list(range(x.ndim)):
        raise errors.not_a_permutation(x.ndim, perm)


def _transpose_axes(x: Spec, perm: tuple[int, ...]) -> str:
    return axes.same(x.ndim) + "->" + "".join(axes.LETTERS[p] for p in perm)


transpose = define(
    "transpose(x, *, perm) -> y",
    Meaning(_transpose_axes, lambda x, perm: x.transpose(perm),
            shape=lambda x, perm: tuple(x.shape[p] for p in perm), check=_check_transpose),
    View(lambda strides, perm: (tuple(strides[p] for p in perm), 0)),
    Split(linear=["x"], rising=["x"]),
    Laws([dict(shapes=[(6, 12)], perm=(1, 0)), dict(shapes=[(6, 2, 3)], perm=(2, 0, 1))],
         float_only=False),
    grad={"x": lambda dy, perm: transpose(dy, perm=tuple(int(i) for i in np.argsort(perm)))})


def _expand_axes(x: Spec, shape: Shape) -> str:
    last, out = slice(len(shape) - x.ndim, None), axes.same(len(shape))
    left = ["1" if n == 1 and m != 1 else s for n, m, s in zip(x.shape, shape[last], out[last])]
    return "".join(left) + "->" + out


def _check_expand(x: Spec, shape: Shape) -> None:
    if len(shape) < x.ndim or broadcast(x.shape, shape, what="expand") != tuple(shape):
        raise errors.expand_misfit(x.shape, shape)


expand = define(
    "expand(x, *, shape) -> y",
    Meaning(_expand_axes, lambda x, shape: np.broadcast_to(x, shape), shape=lambda shape: shape,
            check=_check_expand),
    View(lambda x, strides, shape: ((0,) * (len(shape) - x.ndim) + tuple(
             0 if n == 1 and shape[len(shape) - x.ndim + i] != 1 else s
             for i, (n, s) in enumerate(zip(x.shape, strides))), 0)),
    Split(linear=["x"], rising=["x"], localize=lambda out: {"shape": out.shape}),
    Laws([dict(shapes=[(6, 1)], shape=(6, 12)), dict(shapes=[(6,)], shape=(12, 6))],
         float_only=False),
    grad={"x": lambda dy: dy})        # `unbroadcast` sums it to x's shape


def _unchanged(x: Spec) -> str:
    return axes.same(x.ndim) + "->" + axes.same(x.ndim)


identity = define("identity(x) -> y", Meaning(_unchanged, lambda x: x.copy()),
                  View(lambda strides: (strides, 0)), Split(linear=["x"], rising=["x"]),
                  Laws([dict(shapes=[(6, 12)])], float_only=False), grad={"x": lambda dy: dy})
contiguous = define("contiguous(x) -> y", Meaning(_unchanged, lambda x: np.ascontiguousarray(x)),
                    Kernel("copy", contiguous=False), Split(linear=["x"], rising=["x"]),
                    Laws([dict(shapes=[(6, 12)])], float_only=False), grad={"x": lambda dy: dy},
                    doc="Return a contiguous copy.")


def _check_assign(value: Spec, ref: Spec) -> None:
    if value != ref:
        raise errors.assign_misfit(value, ref)


assign = define(
    "assign(value, ref) -> ()",
    Meaning(lambda value: "{0},{0}->".format(axes.same(value.ndim)), lambda value: (value,),
            shape=lambda: (), check=_check_assign),
    Kernel("copy", contiguous=False), Effects(mutates=lambda n: [1]),
    Laws([dict(shapes=[(6, 12), (6, 12)])], float_only=False), doc="Write value into ref.")


def _check_numeric(dtype: dt.dtype) -> dt.dtype:
    if hasattr(dtype, "code") and ("cast", dtype.code) not in TABLE:
        raise errors.no_array_form(dtype)
    return dtype


cast = define("cast(x, *, dtype) -> y",
              Meaning(_unchanged, lambda x, dtype: x.astype(dtype.numpy), dtype=_check_numeric),
              Kernel("cast", contiguous=False), Split(linear=["x"]),
              Laws([dict(shapes=[(6, 12)], dtype=dt.float32)], float_only=False),
              grad={"x": lambda dy, x_dtype: cast(dy, dtype=x_dtype)})
def check_number(what: str, value: float, dtype: dt.dtype) -> None:
    """Raise a DTypeError if an integer dtype cannot hold this number (1.5, or 300 for int8)."""
    low, high = dtype.limits
    if not dtype.is_floating_point and low < high and not (
            low <= value <= high and value == int(value)):
        whole = isfinite(value) and value == int(value)
        raise errors.not_a_number(what, value, dtype.name, low, high, whole)


constant = define(
    "constant(*, shape, value, dtype) -> y",
    Meaning(lambda shape: "->" + axes.same(len(shape)),
            lambda shape, value, dtype: np.full(shape, value, dtype.numpy),
            shape=lambda shape: shape, dtype=lambda dtype: dtype,
            check=lambda value, dtype: check_number("constant", value, dtype)),
    Kernel("fill", numbers=True,
           pack=lambda value: ((int(value) if -2 ** 63 <= value < 2 ** 63 else 0,), (value,))),
    Split(localize=lambda out: {"shape": out.shape}),
    Laws([dict(shapes=[], shape=(6, 12), value=2.5, dtype=dt.float32)], float_only=False))
