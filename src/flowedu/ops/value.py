"""What `a + 2` means: scalars become constants, unequal dtypes are promoted, then the op runs.

`Value` is the base of everything that stands for data without holding it (symbols of a formula, values of a graph).
It has every operator, so that a gradient rule reads the same for tensors and graphs. Tensors have theirs in C.
"""
from __future__ import annotations

from numbers import Real

from flowedu.blob import dtype as dt
from flowedu.ops.core import current_interpreter, scalar_tensor
from flowedu.ops.define import REGISTRY, Op

_RANK = {d: i for i, d in enumerate((dt.bool_, dt.uint8, dt.int8, dt.int32, dt.int64, dt.float16, dt.float32,
                                     dt.float64))}


def promote(a: dt.dtype, b: dt.dtype) -> dt.dtype:
    """The dtype of a result of both: floats win over integers, then the wider wins."""
    if {a, b} == {dt.uint8, dt.int8}:
        return dt.int32
    return a if _RANK[a] >= _RANK[b] else b


def scalar(value: Real, dtype: dt.dtype):
    """A 0-d value: a tensor when eager, a constant node otherwise."""
    if current_interpreter() is None:
        return scalar_tensor(value, dtype)
    return REGISTRY["constant"](shape=(), value=value, dtype=dtype)


def as_operand(x, like: dt.dtype):
    """`x` itself, or the number x as a 0-d value: an int keeps the dtype of `like`, a float makes it floating."""
    if hasattr(x, "spec"):
        return x
    if isinstance(x, Real) or (hasattr(x, "ndim") and x.ndim == 0 and hasattr(x, "item")):
        number = x.item() if hasattr(x, "item") else x
        whole = isinstance(number, (bool, int))
        return scalar(number, like if like.is_floating_point or whole and like is not dt.bool_
                      else dt.int64 if whole else dt.float32)
    return None


def with_scalars(inputs: tuple) -> tuple:
    """The same operands, numbers made values of the dtype of the first that has one."""
    like = next((x.dtype for x in inputs if hasattr(x, "spec")), dt.float32)
    return tuple(as_operand(x, like) for x in inputs)


def operate(op: Op, a, b, in_floats: bool = False):
    """`op(a, b)` for operands of which at least one has a spec. NotImplemented for foreign types. in_floats: integers
    become float32 first, as for a quotient."""
    like = (a if hasattr(a, "spec") else b).dtype
    a, b = as_operand(a, like), as_operand(b, like)
    if a is None or b is None:
        return NotImplemented
    if a.dtype is not b.dtype or (in_floats and not a.dtype.is_floating_point):
        if a.ndim == 0 and b.ndim and a.dtype.is_floating_point == b.dtype.is_floating_point:
            target = b.dtype
        elif b.ndim == 0 and a.ndim and a.dtype.is_floating_point == b.dtype.is_floating_point:
            target = a.dtype
        else:
            target = promote(a.dtype, b.dtype)
        if in_floats and not target.is_floating_point:
            target = dt.float32
        cast = REGISTRY["cast"]
        a = a if a.dtype is target else cast(a, dtype=target)
        b = b if b.dtype is target else cast(b, dtype=target)
    return op.call((a, b), ())


def matmul(a, b):
    """`a @ b`."""
    if not (hasattr(a, "spec") and hasattr(b, "spec")):
        return NotImplemented
    return REGISTRY["matmul"](a, b)


def _pair(name: str, in_floats: bool = False):
    def forward(self, other):
        return operate(REGISTRY[name], self, other, in_floats)

    def reflected(self, other):
        return operate(REGISTRY[name], other, self, in_floats)

    return forward, reflected


class Value:
    """Base class: a subclass has a `spec`."""

    __slots__ = ()
    __array_priority__ = 1000  # NumPy leaves `ndarray * value` to us

    __add__, __radd__ = _pair("add")
    __sub__, __rsub__ = _pair("sub")
    __mul__, __rmul__ = _pair("mul")
    __truediv__, __rtruediv__ = _pair("div", in_floats=True)
    __pow__, __rpow__ = _pair("pow")

    def __matmul__(self, other):
        return matmul(self, other)

    def __neg__(self):
        return REGISTRY["neg"](self)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def dtype(self) -> dt.dtype:
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        return len(self.spec.shape)
