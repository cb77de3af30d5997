"""Positions of the elements that are not 0, and reads of data that determine the size of a result."""
from __future__ import annotations

from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast
from flowedu.core.values import dtype as dt
from flowedu.errors import LazyTensorError
from flowedu.tensor.construction.destination import spread_as
from flowedu.tensor.interop.protocols import alike


def is_lazy(x: object) -> bool:
    return getattr(x, "is_lazy", False)


def data(what: str, x: Tensor) -> np.ndarray:
    """Return the data of a tensor, on which the size of a result depends.

    Raises LazyTensorError for a tensor of a graph, which has no data.
    """
    if is_lazy(x):
        raise LazyTensorError(f"{what}: the shape of its result depends on the data, which a graph has not "
                              f"while it is built", expected="an eager tensor",
                              got=f"a lazy tensor of shape {tuple(x.shape)}",
                              fix="call it outside nn.Graph, or use flow.where(mask, x, y), whose shape is "
                                  "known")
    return x.peek()


def from_data(x: Tensor, a: np.ndarray, dtype: dt.dtype | None = None) -> Tensor:
    """Return an array computed from x as a tensor on the device of x."""
    return spread_as(alike(a, x) if dtype is None else cast(alike(a, x), dtype), x)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the positions of the elements that are not 0, as an int64 tensor (count, axes).

    Args:
        input: tensor of any shape.
        as_tuple: if True, return a tuple with one vector per axis.
    """
    a = data("nonzero", input)
    if as_tuple:
        return tuple(from_data(input, i.astype(np.int64)) for i in np.nonzero(a if a.ndim else a.reshape(1)))
    return from_data(input, np.argwhere(a).astype(np.int64))


def argwhere(input: Tensor) -> Tensor:
    """Return the positions of the elements that are not 0, as an int64 tensor (count, axes).

    Args:
        input: tensor of any shape.
    """
    return nonzero(input)
