"""TensorBuffer: an array whose elements are tensors, each with its own shape, dtype, and memory.

    TensorBuffer([image of 28x31, image of 40x22, ...])      shape (N,), dtype flow.tensor_buffer

Each tensor has its own allocation, so a tensor can be replaced by a tensor of another size without moving the others.
In exchange, a read follows one of N pointers, and no kernel can process the buffer as one array. TensorList
(tensor_list.py) is the other way to store such data.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from flowedu.core.values.dtype import as_dtype, dtype, tensor_buffer
from flowedu.core.values.spec import Spec
from flowedu.errors import DTypeError, ShapeError, UnsupportedError


class TensorBlock(NamedTuple):
    """Memory of one tensor: its address, size in bytes, shape, and dtype."""

    address: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: dtype


class TensorBuffer:
    """Tensors of any shapes and dtypes.

    Args:
        arrays: one per tensor, in row-major order. A contiguous array that owns its memory is used without a copy.
            Views, nested lists, and bytes are copied.
        shape: shape of the buffer, such as (2, 3) for six tensors. Default: (N,).

    Attributes: shape; spec; items (the flat list of arrays). An index for each axis (`b[i]`, or `b[i, j]` with two axes)
    gives an array. A slice, or fewer indices, gives a buffer over the same arrays.
    """

    __slots__ = ("items", "shape")
    dtype = tensor_buffer

    def __init__(self, arrays: Sequence, shape: Sequence[int] | None = None):
        self.items = [make_owned(a, i) for i, a in enumerate(arrays)]
        self.shape = (len(self.items),) if shape is None else tuple(map(int, shape))
        if math.prod(self.shape) != len(self.items) or min(self.shape, default=0) < 0:
            raise ShapeError("TensorBuffer: the number of arrays does not fit the shape", got=f"{len(self.items)} arrays",
                             expected=f"{math.prod(self.shape)} arrays for the shape {self.shape}",
                             fix="leave shape out for one axis, or pass as many arrays as it counts")

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
        return [TensorBlock(a.ctypes.data, a.nbytes, a.shape, as_dtype(a.dtype)) for a in self.items]

    def where(self, i: int) -> str:
        """Name tensor `i` of `items` in an error message: "instance 3" or "instance (1, 0)"."""
        return f"instance {i if self.ndim == 1 else tuple(map(int, np.unravel_index(i, self.shape)))}"

    # ---- its tensors
    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("len() of a TensorBuffer of shape ()", expected="at least one axis", got="()",
                             fix="buffer.items[0] is its only array")
        return self.shape[0]

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index) -> np.ndarray | TensorBuffer:
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
        """Return a buffer whose tensors have the last `instance_dims` axes of `x`; the other axes are its shape."""
        split = x.ndim - instance_dims
        return cls(x.reshape(math.prod(x.shape[:split]), *x.shape[split:]), x.shape[:split])

    def to_array(self, d: dtype, instance_shape: Sequence[int], op: str = "to_array") -> np.ndarray:
        """Return one array of shape `self.shape + instance_shape`.

        Raises ShapeError or DTypeError for the first tensor whose shape is not `instance_shape` or whose dtype is not `d`.
        """
        shape = tuple(instance_shape)
        out = np.empty((self.size, *shape), d.numpy)
        for i, a in enumerate(self.items):
            if a.shape != shape:
                raise ShapeError(f"{op}: {self.where(i)} has another shape", expected=str(shape), got=str(a.shape),
                                 fix="resize or pad the tensors to one shape first: flow.image.Resize, batch_align")
            if a.dtype != d.numpy:
                raise wrong_dtype(op, self.where(i), d, a.dtype)
            out[i] = a
        return out.reshape(self.shape + shape)

    def numpy(self):
        """Raise UnsupportedError: the tensors are not one array. The error names two functions to use instead."""
        raise UnsupportedError("a TensorBuffer is not one array: its tensors differ in shape", expected="a tensor",
                               got=repr(self), fix="flow.tensor_buffer_to_tensor once all have one shape, "
                               "flow.tensor_buffer_to_list_of_tensors otherwise")

    def __repr__(self) -> str:
        first = ", ".join(f"{a.dtype.name}{list(a.shape)}" for a in self.items[:4])
        return f"TensorBuffer(shape={self.shape}: {first}{', ...' if self.size > 4 else ''})"


def make_owned(a, i: int) -> np.ndarray:
    """Return `a` as a contiguous array that owns its memory, and check that flowedu has its dtype."""
    if type(a) is not np.ndarray or not a.flags.owndata or not a.flags.c_contiguous:
        if isinstance(a, (bytes, bytearray)):
            a = np.frombuffer(a, np.uint8)
        a = np.array(a.numpy() if hasattr(a, "numpy") else a, order="C")
    as_dtype(a.dtype, f"TensorBuffer: array {i}")
    return a


def wrong_dtype(op: str, where: str, expected: dtype, got: np.dtype) -> DTypeError:
    name = as_dtype(got).name
    return DTypeError(f"{op}: {where} has another element type", expected=expected.name, got=name,
                      fix=f"ask for dtype=flow.{name}, or make them {expected.name} where they come from: "
                          f"flow.image.decode(..., dtype=flow.{expected.name}), say")
