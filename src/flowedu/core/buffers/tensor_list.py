"""TensorList: tensors of one rank and dtype and of different shapes, end to end in one allocation.

    data     [ a a a a a a | b b | c c c c ]         one allocation
    offsets  [ 0, 6, 8, 12 ]                         tensor i is data[offsets[i]:offsets[i + 1]]
    shapes   [[1, 2, 3], [1, 1, 2], [1, 2, 2]]

The list has one pointer, so it can be copied, sent, or freed at once. Reading it in order is as
fast as memory allows. In exchange, a tensor cannot grow without moving all tensors after it.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from flowedu.core.buffers.tensor_buffer import TensorBlock
from flowedu.core.values.dtype import as_dtype, dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import buffers as errors


class TensorList:
    """Tensors of different shapes in one allocation.

    Args:
        arrays: the tensors, of one rank (1 or more) and one dtype. The list copies them.
        dtype: dtype of the list. Default: that of the arrays. Required for an empty list.
        rank: rank of the tensors of an empty list.

    Attributes: data, offsets (N + 1 integers), and shapes (N, rank), as drawn above; dtype. `t[i]`
    is a view, so writing into it writes into the list.

    In OneFlow, a tensor of a list holds one sample, so its first axis is 1 (tp.ListListNumpy). The
    `shape` of the list is that of all tensors joined along axis 0, with padding along the others.
    """

    __slots__ = ("data", "dtype", "offsets", "shapes")

    def __init__(self, arrays: Sequence, dtype: dtype | None = None, rank: int = 1):
        arrays = [a.numpy() if hasattr(a, "numpy") else np.asarray(a) for a in arrays]
        if not arrays and dtype is None:
            raise errors.empty_list()
        rank = arrays[0].ndim if arrays else rank
        for i, a in enumerate(arrays):
            if a.ndim != rank or not a.ndim:
                raise errors.mixed_ranks(i, a, rank)
            if dtype is None and a.dtype != arrays[0].dtype:
                raise errors.mixed_dtypes(i, a.dtype.name, arrays[0].dtype.name)
        self.dtype = as_dtype(arrays[0].dtype if dtype is None else dtype, "TensorList")
        self.shapes = np.array([a.shape for a in arrays], np.int64).reshape(len(arrays), rank)
        self.offsets = np.zeros(len(arrays) + 1, np.int64)
        np.cumsum(self.shapes.prod(axis=1), out=self.offsets[1:])
        self.data = np.empty(int(self.offsets[-1]), self.dtype.numpy)
        for i, a in enumerate(arrays):
            self[i][...] = a

    # ---- shape and size
    @property
    def shape(self) -> tuple[int, ...]:
        """(Sum of the first axes, largest of each other axis), such as (N, H, W, C)."""
        if not len(self):
            return (0,) * self.shapes.shape[1]
        return (int(self.shapes[:, 0].sum()), *map(int, self.shapes[:, 1:].max(axis=0)))

    @property
    def spec(self) -> Spec:
        return Spec(self.shape, self.dtype)

    @property
    def nbytes(self) -> int:
        return self.data.nbytes

    def memory(self) -> list[TensorBlock]:
        """Return the address and size of each tensor. Each begins where the one before ends."""
        base, step = self.data.ctypes.data, self.data.itemsize
        return [TensorBlock(base + int(a) * step, int(b - a) * step, tuple(map(int, s)), self.dtype)
                for a, b, s in zip(self.offsets, self.offsets[1:], self.shapes)]

    # ---- its tensors
    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, i: int) -> np.ndarray:
        """Return tensor `i`, a view."""
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"tensor {i} of a TensorList of {n}")
        i %= n
        return self.data[self.offsets[i]:self.offsets[i + 1]].reshape(self.shapes[i])

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[i] for i in range(len(self)))

    def arrays(self) -> list[np.ndarray]:
        """Return a copy of each tensor, which remains valid after the list is freed."""
        return [a.copy() for a in self]

    def __repr__(self) -> str:
        shapes = ", ".join(str(tuple(map(int, s))) for s in self.shapes[:4])
        rest = ", ..." if len(self) > 4 else ""
        return f"TensorList({len(self)} x {self.dtype.name}: {shapes}{rest})"
