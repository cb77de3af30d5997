"""Tensors that share memory with NumPy arrays or with other tensors."""
from __future__ import annotations

import numpy as np

from flowedu.core.eager.dispatch import labelled, scalar_tensor, set_data, unrecorded
from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.ops.call import engine
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import cast
from flowedu.core.values import dtype as dt
from flowedu.core.values.storage import from_numpy as over
from flowedu.core.values.storage import view
from flowedu.errors import tensors as errors

_COPY, _IDENTITY = REGISTRY["contiguous"], REGISTRY["identity"]


def from_numpy(a: np.ndarray) -> Tensor:
    """Return a tensor that shares the memory and strides of `a`; writes to either change both.

    Raises DTypeError, ShapeError (negative strides), or ArgumentError (foreign byte order).

    Args:
        a: ndarray of native byte order; if it is read-only, in-place ops on the tensor raise.
    """
    if not isinstance(a, np.ndarray):
        raise errors.not_an_array(a)
    if any(s < 0 for s in a.strides):
        raise errors.negative_strides(a.strides)
    if not a.dtype.isnative:
        raise errors.foreign_byte_order(a.dtype)
    return over(a, dt.as_dtype(a.dtype, "from_numpy: a.dtype"), Tensor)


def copied(a: list | np.ndarray, kind: dt.dtype | None = None) -> Tensor:
    """Return a tensor with a copy of the values of `a`, as dtype `kind` (None: that of `a`)."""
    a = np.asarray(a)
    kind = kind or dt.as_dtype(a.dtype)
    if kind.numpy is None or kind.code < 0:  # bfloat16 via float32; cast raises for char
        return cast(copied(a, dt.float32), kind)
    with np.errstate(all="ignore"):
        return over(np.array(a, dtype=kind.numpy, order="C", copy=True), kind, Tensor)


def tensor_alias(t: Tensor, cls: type = Tensor) -> Tensor:
    """Return another tensor of class `cls` over the same memory, without autograd history."""
    if t.global_layout is None:
        return view(t, t._sizes(), t.strides, 0, cls)
    if cls is Tensor:
        return labelled(t, t.global_layout)
    y = view(scalar_tensor(0, t.dtype), (), (), 0, cls)
    set_data(y, t)
    return y


def detach(self: Tensor) -> Tensor:
    """Return a tensor with the same memory (or lazy value), without autograd history."""
    if self.has_memory:
        return tensor_alias(self)
    with unrecorded():
        return _IDENTITY.call((self,), ())


def copy_of(t: Tensor) -> Tensor:
    """Return a contiguous copy, recorded for backward."""
    return _COPY.call((t,), ())


def make_contiguous(t: Tensor) -> Tensor:
    return t if t._is_row_major() else copy_of(t)


engine.number, engine.array = scalar_tensor, from_numpy
attach(Tensor, {"detach": detach})
