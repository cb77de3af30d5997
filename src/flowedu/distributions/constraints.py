"""Constraints: the allowed values of a parameter, or the support of a distribution.

`constraint.check(x)` returns one bool per event of x. The attribute event_dim is the number of last axes that
form one event (1 for vectors). The attribute is_discrete is True if the values are countable.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowedu.core.eager.dispatch import TensorBase
from flowedu.tensor.linalg.factorizations import cholesky_ex


class Constraint:
    """Base class of the constraints. A subclass defines `check`, or it is an argument of the constructor."""

    is_discrete = False
    event_dim = 0

    def __init__(self, name: str, check: Callable | None = None, event_dim: int = 0,
                 is_discrete: bool = False):
        self.name, self.event_dim, self.is_discrete = name, event_dim, is_discrete
        if check is not None:
            self.check = check

    def check(self, value):
        """Return one bool per event of `value`: True if the event is allowed."""
        raise NotImplementedError(f"the constraint {self!r} has no check")

    def __repr__(self) -> str:
        return self.name


class _Between(Constraint):
    """Numbers from one bound to another; whether the bounds belong to them, and whether they are whole."""

    def __init__(self, name, lower=None, upper=None, *, low_in=True, high_in=True, whole=False):
        self.lower_bound, self.upper_bound = lower, upper
        self.low_in, self.high_in = low_in, high_in
        bounds = {"lower_bound": lower, "upper_bound": upper}
        said = ", ".join(f"{n}={v}" for n, v in bounds.items() if v is not None
                         and not isinstance(v, TensorBase))
        super().__init__(f"{name}({said})" if said else name, is_discrete=whole)

    def check(self, value):
        good = value == value
        if self.lower_bound is not None:
            good = good & (value >= self.lower_bound if self.low_in else value > self.lower_bound)
        if self.upper_bound is not None:
            good = good & (value <= self.upper_bound if self.high_in else value < self.upper_bound)
        return good & (value % 1 == 0) if self.is_discrete else good


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Return the constraint lower_bound <= x <= upper_bound.

    Args:
        lower_bound: number or tensor.
        upper_bound: number or tensor.
    """
    return _Between("Interval", lower_bound, upper_bound)


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Return the constraint lower_bound <= x < upper_bound.

    Args:
        lower_bound: number or tensor.
        upper_bound: number or tensor.
    """
    return _Between("HalfOpenInterval", lower_bound, upper_bound, high_in=False)


def greater_than(lower_bound: Any) -> Constraint:
    return _Between("GreaterThan", lower_bound, low_in=False)


def greater_than_eq(lower_bound: Any) -> Constraint:
    return _Between("GreaterThanEq", lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    return _Between("LessThan", None, upper_bound, high_in=False)


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Return the constraint of integers from lower_bound to upper_bound.

    Args:
        lower_bound: number or tensor.
        upper_bound: number or tensor.
    """
    return _Between("IntegerInterval", lower_bound, upper_bound, whole=True)


class independent(Constraint):
    """Constraint on events that holds if all elements along their last axes satisfy another constraint."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        super().__init__(f"Independent({base_constraint!r}, {reinterpreted_batch_ndims})", None,
                         base_constraint.event_dim + reinterpreted_batch_ndims, base_constraint.is_discrete)

    def check(self, value):
        good = self.base_constraint.check(value)
        return (good.flatten(good.ndim - self.reinterpreted_batch_ndims).all(-1)
                if self.reinterpreted_batch_ndims else good)


def multinomial(upper_bound: int) -> Constraint:
    """Return the constraint of vectors of counts whose sum is upper_bound."""
    return Constraint("Multinomial()",
                      lambda x: ((x >= 0) & (x % 1 == 0)).all(-1) & (x.sum(-1) == upper_bound), 1, True)


def _lower_cholesky(x):
    return (x.tril() == x).flatten(-2).all(-1) & (x.diagonal(0, -2, -1) > 0).all(-1)


def _positive_definite(x):
    symmetric = ((x - x.mT).abs() <= 1e-6 * (1 + x.abs())).flatten(-2).all(-1)
    # a distribution computes the Cholesky factor, which raises for other matrices
    if x.is_lazy:
        return symmetric
    return symmetric & (cholesky_ex(x).info == 0)


real = Constraint("Real()", lambda x: x == x)
real_vector = independent(real, 1)
boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
positive, nonnegative = greater_than(0.0), greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
nonnegative_integer = _Between("IntegerGreaterThan", 0, whole=True)
positive_integer = _Between("IntegerGreaterThan", 1, whole=True)
simplex = Constraint("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), 1)
one_hot = Constraint("OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, True)
lower_cholesky = Constraint("LowerCholesky()", _lower_cholesky, 2)
positive_definite = Constraint("PositiveDefinite()", _positive_definite, 2)
# Depends on other parameters, so the class has no constraint.
dependent = Constraint("Dependent()")
