"""Value: the base of everything that stands for data without holding it (symbols of a formula, values of a graph).

It has every operator, with the meaning it has for tensors (core/ops/promote.py), so that a gradient rule reads the same for
tensors and graphs. Tensors have theirs in C.
"""
from __future__ import annotations

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import is_value, operate
from flowedu.core.values import dtype as dt


def matmul(a, b):
    """`a @ b`."""
    if not (is_value(a) and is_value(b)):
        return NotImplemented
    return REGISTRY["matmul"](a, b)


def _pair(name: str):
    def forward(self, other):
        return operate(REGISTRY[name], self, other)

    def reflected(self, other):
        return operate(REGISTRY[name], other, self)

    return forward, reflected


class Value:
    """Base class: a subclass has a `spec`."""

    __slots__ = ()
    __array_priority__ = 1000  # NumPy leaves `ndarray * value` to us

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
