"""View: an array on the device, as it is passed to kernels."""
from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from flowedu.core.values.dtype import dtype as Dtype
from flowedu.core.values.spec import row_major

MAX_DIM = 8                                                          # FE_MAX_DIM of _kernels/core/abi.h
_RAW = struct.Struct(f"=Qii{MAX_DIM}q{MAX_DIM}q")


class View:
    """Address of element [0, 0, ...], dtype, shape, and strides.

    Strides count elements. 0 stands for a broadcast axis. The default is row-major.
    """

    __slots__ = ("dtype", "pointer", "shape", "strides")

    def __init__(self, pointer: int, dtype: Dtype, shape: Sequence[int],
                 strides: Sequence[int] | None = None):
        self.pointer, self.dtype, self.shape = pointer, dtype, tuple(shape)
        self.strides = tuple(row_major(self.shape) if strides is None else strides)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def contiguous(self) -> bool:
        step = 1
        for n, s in zip(reversed(self.shape), reversed(self.strides)):
            if n != 1 and s != step:
                return n == 0 or 0 in self.shape
            step *= n
        return True

    def band(self, axis: int, start: int, size: int) -> View:
        """Return the elements start ... start + size of one axis, as a view of the same memory."""
        shape = (*self.shape[:axis], size, *self.shape[axis + 1:])
        return View(self.pointer + start * self.strides[axis] * self.dtype.bytes, self.dtype, shape,
                    self.strides)

    def raw(self) -> bytes:
        """Return the C struct (fe_view)."""
        pad = (0,) * (MAX_DIM - len(self.shape))
        return _RAW.pack(self.pointer, self.dtype.code if self.dtype else 0, len(self.shape), *self.shape,
                         *pad, *self.strides, *pad)

    def __repr__(self) -> str:
        return f"View({self.pointer:#x}, {self.dtype.name}{list(self.shape)}, strides {list(self.strides)})"
