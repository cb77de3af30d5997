"""Checks of axis arguments in PyTorch's forms; `dim` may be an int (also negative), a tuple, or None."""
from __future__ import annotations

import operator
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops import view
from flowedu.core.values.dtype import bool_
from flowedu.errors import AxisError, CallError, DTypeError, ShapeError

_ALL = [tuple(range(n)) for n in range(9)]
_RESHAPE, _TRANSPOSE = view.reshape, view.transpose


def one_dim(dim: int, rank: int, what: str) -> int:
    """Return `dim` counted from the front; raise AxisError (an IndexError) if it is out of range.

    A 0-dim tensor counts as having one axis.
    """
    n = rank or 1
    if type(dim) is not int:
        try:
            number: Any = None if isinstance(dim, bool) else dim
            dim = operator.index(number)
        except TypeError:
            raise DTypeError(f"{what}: dim is not an integer", expected="an int", got=type(dim).__name__,
                             fix="dim=int(d)") from None
    if not -n <= dim < n:
        raise AxisError(f"{what}: Dimension out of range (expected to be in range of [{-n}, {n - 1}], but "
                        f"got {dim})", expected=f"an axis of a tensor that has {rank}", got=str(dim),
                        fix="count axes from 0, or from the end with -1")
    return dim + n if dim < 0 else dim


def check_int(what: str, name: str, value: Any) -> int:
    """Return the value of an argument that must be an int or a 0-dim integer tensor.

    Raises DTypeError (a TypeError) for other values, including bools.
    """
    if type(value) is int:
        return value
    is_tensor = isinstance(value, Tensor)
    if is_tensor and not (value.ndim or value.dtype.is_floating_point or value.dtype is bool_):
        return int(value.item())
    number: Any = None if is_tensor or isinstance(value, bool) else value
    try:
        return operator.index(number)
    except TypeError:
        got = f"a tensor {tuple(value.shape)} of {value.dtype}" if is_tensor else repr(value)
        raise DTypeError(f"{what}: {name} is not an integer",
                         expected="an int, or a 0-dim tensor of integers", got=got,
                         fix=f"{name}=int(n)") from None


def real_dim(dim: int, rank: int, what: str) -> int:
    """Return one_dim(dim), and reject 0-dim tensors, which have no axis."""
    if not rank:
        raise AxisError(f"{what}: a 0-dim tensor has no axis", expected="a tensor of one axis or more",
                        got="()", fix="x.reshape(1) gives it one")
    return one_dim(dim, rank, what)


def dims(dim: Any, rank: int, what: str) -> tuple[int, ...]:
    """Return the sorted axes; None and () mean all axes.

    Raises AxisError if an axis is out of range, and ShapeError if it is repeated.
    """
    if dim is None:
        return _ALL[rank]
    if type(dim) is int or type(dim) is bool:
        d = one_dim(dim, rank, what)
        return (d,) if rank else ()
    if not isinstance(dim, (tuple, list)):
        return dims(operator.index(dim), rank, what)
    if not dim:
        return _ALL[rank]
    found = sorted(one_dim(d, rank, what) for d in dim)
    if len(set(found)) != len(found):
        raise ShapeError(f"{what}: an axis appears multiple times in the list of dims",
                         expected="each axis once", got=str(tuple(dim)), fix="name each axis once")
    return tuple(found) if rank else ()


def sizes(shape: Any) -> tuple[int, ...]:
    """Return the sizes that were passed as *args in `f(2, 3)`, `f((2, 3))`, `f([2, 3])`, or `f(shape)`."""
    inside = len(shape) == 1 and isinstance(shape[0], (tuple, list))
    if inside:
        shape = shape[0]
    try:
        return tuple([operator.index(n) for n in shape])
    except TypeError:
        if inside and any(not isinstance(n, Tensor) and not hasattr(n, "__index__") for n in shape):
            raise CallError("the sizes of a shape are integers", expected="ints", got=f"{shape!r}"[:60],
                            fix="write each size as an int") from None
        return tuple([int(n.item()) if isinstance(n, Tensor) else operator.index(n) for n in shape])


def reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return x in another shape with the same number of elements."""
    return x if x.shape == shape else _RESHAPE.call((x,), (shape,))


def transposed(x: Tensor, perm: tuple[int, ...]) -> Tensor:
    """Return x with its axes in another order."""
    return x if perm == _ALL[len(perm)] else _TRANSPOSE.call((x,), (perm,))


def move_axis(x: Tensor, source: int, to: int) -> Tensor:
    """Return x with one axis moved to another position."""
    if source == to:
        return x
    order = [i for i in range(x.ndim) if i != source]
    order.insert(to, source)
    return transposed(x, tuple(order))


def keepdim_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape with 1 for every axis in `axes`."""
    return tuple([1 if i in axes else n for i, n in enumerate(shape)])
