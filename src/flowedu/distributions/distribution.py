"""Base class Distribution: a batch of distributions, each of which draws events.

A sample has the shape sample_shape + batch_shape + event_shape, and its log_prob has sample_shape +
batch_shape.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.eager.tensor import Tensor
from flowedu.distributions import constraints
from flowedu.distributions.utils import as_size, broadcast_all, uniform
from flowedu.errors import ArgumentError, NotATensorError, ShapeError, UnsupportedError
from flowedu.ops.checks import require_range
from flowedu.tensor import Size, no_grad


def _with_check(value: Tensor, constraint: constraints.Constraint, problem: str) -> Tensor:
    """Return the value; raise ArgumentError, now or when a graph runs, if it violates the constraint."""
    good = constraint.check(value.detach())
    expected, fix = (f"to satisfy the constraint {constraint!r}",
                     "validate_args=False, where the values are meant")
    if not good.is_lazy:
        if not bool(good.all()):
            raise ArgumentError(problem, expected=expected, got=str(value.detach()), fix=fix)
        return value
    wide = good.reshape(*good.shape, *(1,) * constraint.event_dim)
    if wide.ndim == value.ndim and all(m in (1, n) for m, n in zip(wide.shape, value.shape)):
        good = wide.expand(*value.shape)                   # equal shapes are split equally over devices
    return require_range(value, True, tested=good, problem=problem, expected=expected, fix=fix)


class Distribution:
    """Base class of the distributions.

    Attributes:
        arg_constraints: {name of a parameter: its constraint}.
        support: the constraint of samples.
        has_rsample: True if samples of rsample have gradients with respect to the parameters.
        has_enumerate_support: True if enumerate_support returns all values.

    Args:
        batch_shape: shape of the batch; default: ().
        event_shape: shape of one event; default: ().
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    has_rsample: Any = False
    has_enumerate_support = False
    arg_constraints: dict[str, constraints.Constraint] = {}
    support: Any = None
    _validate_args = True

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set the default of validate_args, which is True initially."""
        if value not in (True, False):
            raise ArgumentError("set_default_validate_args: this is no truth", expected="True or False",
                                got=repr(value), fix="set_default_validate_args(False)")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (),
                 validate_args: bool | None = None):
        self._batch_shape, self._event_shape = as_size(batch_shape), as_size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                if name in vars(self) and constraint is not constraints.dependent:
                    self._check_parameter(name, constraint)

    def _check_parameter(self, name: str, constraint: constraints.Constraint) -> None:
        vars(self)[name] = _with_check(getattr(self, name), constraint,
                                       f"{type(self).__name__}: the parameter {name} has invalid values")

    def _with_parameters(self, validate_args: bool | None, event_dims: int = 0, **parameters: Any) -> None:
        """Set parameters of one event each, which broadcast to the shape of the batch.

        event_dims: the number of their last axes that belong to an event.
        """
        for name, value in zip(parameters, broadcast_all(*parameters.values())):
            vars(self)[name] = value
        self._own = tuple(parameters)
        shape = value.shape
        cut = len(shape) - event_dims
        Distribution.__init__(self, shape[:cut], shape[cut:], validate_args)

    def expand(self, batch_shape: Sequence[int]) -> Distribution:
        """Return the same distributions, repeated to a larger batch."""
        batch = as_size(batch_shape)
        wide = {}
        for name in self._own:
            value = getattr(self, name)
            wide[name] = value.expand(*batch, *value.shape[len(self._batch_shape):])
        return type(self)(**wide, **self._more(), validate_args=False)._validating(self)

    def _more(self) -> dict[str, Any]:
        """Arguments that are no tensors."""
        return {}

    def _validating(self, other: Distribution) -> Self:
        self._validate_args = other._validate_args
        return self

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    # ---- properties of a distribution
    def _none(self, what: str):
        return UnsupportedError(f"{type(self).__name__}.{what}: it is not known",
                                expected="a distribution that has it",
                                got=type(self).__name__, fix="estimate it from samples: d.sample((1000,))")

    @property
    def mean(self):
        """The mean of each distribution."""
        raise self._none("mean")

    @property
    def mode(self):
        """The most likely event."""
        raise self._none("mode")

    @property
    def variance(self):
        """The variance of each distribution."""
        raise self._none("variance")

    @property
    def stddev(self):
        """The square root of the variance."""
        return self.variance.sqrt()

    def entropy(self):
        """Return the entropy -E[log p], in nats."""
        raise self._none("entropy")

    def perplexity(self):
        """Return exp(entropy)."""
        return self.entropy().exp()

    # ---- samples
    def sample(self, sample_shape: Sequence[int] = ()):
        """Draw events without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()):
        """Draw events as differentiable functions of the parameters."""
        if not self.has_rsample:
            raise UnsupportedError(f"{type(self).__name__}.rsample: samples are no smooth function of the "
                                   f"parameters",
                                   expected="a distribution with has_rsample", got=type(self).__name__,
                                   fix="d.sample(), and the gradient of d.log_prob(x)")
        return self.icdf(uniform(self._extended_shape(sample_shape), getattr(self, self._own[0])))

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        return as_size((*as_size(sample_shape), *self._batch_shape, *self._event_shape))

    # ---- functions of a value
    def log_prob(self, value):
        """Return the logarithm of the density, or of the probability, of each event."""
        raise self._none("log_prob")

    def cdf(self, value):
        """Return the probability of an event that is at most `value`."""
        raise self._none("cdf")

    def icdf(self, value):
        """Return the inverse of cdf: the quantile for the probability `value`."""
        raise self._none("icdf")

    def enumerate_support(self, expand: bool = True):
        """Return all values of the support, along a new first axis."""
        raise self._none("enumerate_support")

    def _checked(self, value):
        """Return the value; raise ArgumentError or ShapeError if there is no such event."""
        if not self._validate_args:
            return value
        name = type(self).__name__
        if not isinstance(value, TensorBase):
            raise NotATensorError(name, value, "value")
        wanted, shape = (*self._batch_shape, *self._event_shape), tuple(value.shape)
        events = len(self._event_shape)
        if shape[len(shape) - events:] != tuple(self._event_shape) or any(
                m != n and 1 not in (m, n) for m, n in zip(shape[::-1], wanted[::-1])):
            raise ShapeError(f"{name}: the value does not fit the distribution",
                             expected=f"to broadcast with {wanted}",
                             got=str(shape), fix="its last axes are batch_shape + event_shape")
        support = self.support
        return (value if support is None else _with_check(value, support,
                                                          f"{name}: the value is outside of the support"))

    def __repr__(self) -> str:
        shown = {n: vars(self)[n] for n in self.arg_constraints if n in vars(self)}
        return f"{type(self).__name__}(" + ", ".join(
            f"{n}: {v if v.numel() == 1 and not v.is_lazy else v.size()}" for n, v in shown.items()) + ")"
