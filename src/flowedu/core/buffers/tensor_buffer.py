"""TensorBuffer: an array whose elements are tensors, each with its own shape, dtype, and memory.

    TensorBuffer([image of 28x31, image of 40x22, ...])      shape (N,), dtype flow.tensor_buffer

Each tensor has its own allocation, so a tensor can be replaced by a tensor of another size without
moving the others. In exchange, a read follows one of N pointers, and no kernel can process the
buffer as one array. TensorList (tensor_list.py) is the other way to store such data.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from flowedu.core.values.dtype import as_dtype, dtype, tensor_buffer
from flowedu.core.values.spec import Spec
from flowedu.errors import buffers as errors


class TensorBlock(NamedTuple):
    """Memory of one tensor: its address, size in bytes, shape, and dtype."""

    address: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: dtype


class TensorBuffer:
    """Tensors of any shapes and dtypes.

    Args:
        arrays: one per tensor, in row-major order. A contiguous array that owns its memory is used
            without a copy. Views, nested lists, and bytes are copied.
        shape: shape of the buffer, such as (2, 3) for six tensors. Default: (N,).

    Attributes: shape; spec; items (the flat list of arrays). An index for each axis (`b[i]`, or
    `b[i, j]` with two axes) gives an array. A slice, or fewer indices, gives a buffer.
    """

    __slots__ = ("items", "shape")
    dtype = tensor_buffer

    def __init__(self, arrays: Sequence, shape: Sequence[int] | None = None):
        self.items = [make_owned(a, i) for i, a in enumerate(arrays)]
        self.shape = (len(self.items),) if shape is None else tuple(map(int, shape))
        if math.prod(self.shape) != len(self.items) or min(self.shape, default=0) < 0:
            raise errors.wrong_number_of_arrays(self.items, self.shape)

    # ---- shape and size
    @property
    def spec(self) -> Spec:
        return Spec(self.shape, tensor_buffer)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of tensors."""
        return len(self.items)

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors together."""
        return sum(a.nbytes for a in self.items)

    def memory(self) -> list[TensorBlock]:
        """Return the address and size of each tensor."""
        return [TensorBlock(a.ctypes.data, a.nbytes, a.shape, as_dtype(a.dtype))
                for a in self.items]

    def where(self, i: int) -> str:
        """Name tensor `i` of `items` in an error message: "instance 3" or "instance (1, 0)"."""
        index = i if self.ndim == 1 else tuple(map(int, np.unravel_index(i, self.shape)))
        return f"instance {index}"

    # ---- its tensors
    def __len__(self) -> int:
        if not self.shape:
            raise errors.no_length()
        return self.shape[0]

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: int) -> np.ndarray | TensorBuffer:
        if type(index) is int and len(self.shape) == 1 and -self.size <= index < self.size:
            return self.items[index]
        chosen = np.arange(self.size).reshape(self.shape)[index]
        if np.ndim(chosen) == 0:
            return self.items[int(chosen)]
        return TensorBuffer([self.items[i] for i in chosen.ravel()], chosen.shape)

    def map(self, f: Callable[[np.ndarray], np.ndarray]) -> TensorBuffer:
        """Return a buffer of the same shape with `f` applied to each tensor."""
        return TensorBuffer([f(a) for a in self.items], self.shape)

    # ---- to and from arrays
    @classmethod
    def from_array(cls, x: np.ndarray, instance_dims: int) -> TensorBuffer:
        """Return a buffer of tensors with the last `instance_dims` axes of `x`, as a copy."""
        split = x.ndim - instance_dims
        return cls([*x.reshape(math.prod(x.shape[:split]), *x.shape[split:])], x.shape[:split])

    def to_array(self, d: Any, instance_shape: Sequence[int], op: str = "to_array") -> np.ndarray:
        """Return one array of shape `self.shape + instance_shape`.

        Raises ShapeError or DTypeError for the first tensor with another shape or dtype.
        """
        shape = tuple(instance_shape)
        out = np.empty((self.size, *shape), d.numpy)
        for i, a in enumerate(self.items):
            if a.shape != shape:
                raise errors.wrong_instance_shape(op, self.where(i), shape, a.shape)
            if a.dtype != d.numpy:
                raise errors.wrong_dtype(op, self.where(i), d, a.dtype)
            out[i] = a
        return out.reshape(self.shape + shape)

    def numpy(self) -> NoReturn:
        """Raise UnsupportedError, which names two functions to use instead."""
        raise errors.not_one_array(self)

    def __repr__(self) -> str:
        first = ", ".join(f"{a.dtype.name}{list(a.shape)}" for a in self.items[:4])
        return f"TensorBuffer(shape={self.shape}: {first}{', ...' if self.size > 4 else ''})"


def make_owned(a: np.ndarray, i: int) -> np.ndarray:
    """Return `a` as a contiguous array that owns its memory, after a check of its dtype."""
    if type(a) is not np.ndarray or not a.flags.owndata or not a.flags.c_contiguous:
        if isinstance(a, (bytes, bytearray)):
            a = np.frombuffer(a, np.uint8)
        a = np.array(a.numpy() if hasattr(a, "numpy") else a, order="C")
    as_dtype(a.dtype, f"TensorBuffer: array {i}")
    return a
