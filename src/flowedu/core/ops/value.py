"""Value, the base class of symbolic values (symbols of a formula, values of a graph).

Its operators have the same meaning as those of tensors (core/ops/promote.py), so that a gradient
rule works for tensors and graphs. Tensors have operators in C.
"""
from __future__ import annotations

from collections.abc import Callable

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import is_value, operate
from flowedu.core.ops.record import Operand
from flowedu.core.values import dtype as dt


def matmul(a: Operand, b: Operand) -> Operand:
    """Return `a @ b`, or NotImplemented."""
    if not (is_value(a) and is_value(b)):
        return NotImplemented
    return REGISTRY["matmul"](a, b)


def make_operators(name: str) -> tuple[Callable, Callable]:
    """Return the methods for `x op y` and, reflected, `y op x`."""
    op = REGISTRY[name]
    return (lambda self, other: operate(op, self, other),
            lambda self, other: operate(op, other, self))


class Value:
    """Base class of symbolic values; a subclass has a `spec`."""

    __slots__ = ()
    __array_priority__ = 1000  # NumPy calls __rmul__ for `ndarray * value`

    __add__, __radd__ = make_operators("add")
    __sub__, __rsub__ = make_operators("sub")
    __mul__, __rmul__ = make_operators("mul")
    __truediv__, __rtruediv__ = make_operators("div")
    __pow__, __rpow__ = make_operators("pow")

    def __matmul__(self, other: Operand) -> Operand:
        return matmul(self, other)

    def __neg__(self) -> Operand:
        return REGISTRY["neg"](self)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape  # type: ignore[attr-defined]  # of the subclass

    @property
    def dtype(self) -> dt.dtype:
        return self.spec.dtype  # type: ignore[attr-defined]  # of the subclass

    @property
    def ndim(self) -> int:
        return len(self.spec.shape)  # type: ignore[attr-defined]  # of the subclass
