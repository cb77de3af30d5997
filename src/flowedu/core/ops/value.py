"""Value, the base class of symbolic values (symbols of a formula, values of a graph).

Its operators have the same meaning as those of tensors (core/ops/promote.py), so that a gradient rule works
for tensors and graphs. Tensors have operators in C.
"""
from __future__ import annotations

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import is_value, operate
from flowedu.core.values import dtype as dt


def matmul(a, b):
    """Return `a @ b`, or NotImplemented."""
    if not (is_value(a) and is_value(b)):
        return NotImplemented
    return REGISTRY["matmul"](a, b)


def _pair(name: str):
    def forward(self, other):
        return operate(REGISTRY[name], self, other)

    def reverse(self, other):
        return operate(REGISTRY[name], other, self)

    return forward, reverse


class Value:
    """Base class of symbolic values; a subclass has a `spec`."""

    __slots__ = ()
    __array_priority__ = 1000  # NumPy calls __rmul__ for `ndarray * value`

    __add__, __radd__ = _pair("add")
    __sub__, __rsub__ = _pair("sub")
    __mul__, __rmul__ = _pair("mul")
    __truediv__, __rtruediv__ = _pair("div")
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
