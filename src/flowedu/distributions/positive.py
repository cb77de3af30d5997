"""Distributions of positive numbers: Exponential, HalfNormal, HalfCauchy, Weibull, and Pareto."""
from __future__ import annotations

import math

from flowedu.distributions import constraints
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.special import in_double, log_ratio, widen
from flowedu.distributions.utils import euler_constant, normal
from flowedu.tensor import elementwise as E


class Exponential(Distribution):
    """Exponential distribution: rate exp(-rate x).

    Args:
        rate: inverse of the mean.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate, validate_args: bool | None = None):
        self._with_parameters(validate_args, rate=rate)

    @property
    def mean(self):
        return self.rate.reciprocal()

    @property
    def mode(self):
        return self.rate.detach() * 0

    @property
    def stddev(self):
        return self.rate.reciprocal()

    @property
    def variance(self):
        return self.rate.square().reciprocal()

    @in_double
    def log_prob(self, value):
        rate = widen(self.rate)
        return rate.log() - rate * widen(self._checked(value))

    def cdf(self, value):
        return -(-self.rate * self._checked(value)).expm1()

    def icdf(self, value):
        return -(-value).log1p() / self.rate

    @in_double
    def entropy(self):
        return 1 - widen(self.rate).log()


class _Half(Distribution):
    """The size of a number that is distributed around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args: bool | None = None):
        self._with_parameters(validate_args, scale=scale)

    @property
    def mode(self):
        return self.scale.detach() * 0

    @in_double
    def log_prob(self, value):
        x = self._checked(value)
        scale = widen(self.scale)
        return E.where(x >= 0, self._log_density(widen(x) / scale) - scale.log(), -math.inf)

    @in_double
    def entropy(self):
        return widen(self.scale).log() + self._entropy_at_scale_one


class HalfNormal(_Half):
    """Distribution of |x| for a normal x with mean 0.

    Args:
        scale: standard deviation of x.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    _entropy_at_scale_one = 0.5 * math.log(math.pi / 2) + 0.5

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale.square() * (1 - 2 / math.pi)

    def rsample(self, sample_shape=()):
        return (self.scale * normal(self._extended_shape(sample_shape), self.scale)).abs()

    def _log_density(self, x):
        return x.square() * -0.5 + 0.5 * math.log(2 / math.pi)

    def cdf(self, value):
        return E.erf(self._checked(value) / self.scale * math.sqrt(0.5))

    def icdf(self, prob):
        return self.scale * math.sqrt(2) * E.erfinv(prob)


class HalfCauchy(_Half):
    """Distribution of |x| for a Cauchy variable x around 0.

    Args:
        scale: scale of x.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    _entropy_at_scale_one = math.log(2 * math.pi)

    @property
    def mean(self):
        return self.scale.detach() * 0 + math.inf

    @property
    def variance(self):
        return self.scale.detach() * 0 + math.inf

    def _log_density(self, x):
        return math.log(2 / math.pi) - x.square().log1p()

    def cdf(self, value):
        return (self._checked(value) / self.scale).atan() * (2 / math.pi)

    def icdf(self, prob):
        return self.scale * (prob * (math.pi / 2)).tan()


class Weibull(Distribution):
    """Weibull distribution: cdf 1 - exp(-(x / scale)^concentration).

    Args:
        scale: scale.
        concentration: shape parameter.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale, concentration, validate_args: bool | None = None):
        self._with_parameters(validate_args, scale=scale, concentration=concentration)

    def _moment(self, n):
        return (1 + n / self.concentration).lgamma().exp()

    @property
    def mean(self):
        return self.scale * self._moment(1)

    @property
    def mode(self):
        k = self.concentration
        return self.scale * ((k - 1).clamp(min=0) / k) ** k.reciprocal()

    @property
    def variance(self):
        return self.scale.square() * (self._moment(2) - self._moment(1).square())

    @in_double
    def log_prob(self, value):
        k, scale = widen(self.concentration), widen(self.scale)
        x = log_ratio(widen(self._checked(value)), scale)
        return k.log() - scale.log() + (k - 1) * x - (k * x).exp()

    def cdf(self, value):
        return -(-((self._checked(value) / self.scale) ** self.concentration)).expm1()

    def icdf(self, value):
        return self.scale * (-(-value).log1p()) ** self.concentration.reciprocal()

    @in_double
    def entropy(self):
        k = widen(self.concentration)
        return euler_constant * (1 - k.reciprocal()) + widen(self.scale).log() - k.log() + 1


class Pareto(Distribution):
    """Pareto distribution: cdf 1 - (scale / x)^alpha for x >= scale.

    Args:
        scale: smallest value.
        alpha: shape parameter.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, scale, alpha, validate_args: bool | None = None):
        self._with_parameters(validate_args, scale=scale, alpha=alpha)

    @property
    def support(self):
        return constraints.greater_than_eq(self.scale.detach())

    @property
    def mean(self):
        a = self.alpha.clamp(min=1)
        return E.where(a > 1, a * self.scale / E.where(a > 1, a - 1, 1.0), math.inf)

    @property
    def mode(self):
        return self.scale

    @property
    def variance(self):
        a = self.alpha.clamp(min=2)
        finite = a > 2
        return E.where(finite, self.scale.square() * a / ((a - 1).square() * E.where(finite, a - 2, 1.0)),
                       math.inf)

    @in_double
    def log_prob(self, value):
        x, scale, alpha = widen(self._checked(value)), widen(self.scale), widen(self.alpha)
        return alpha.log() + alpha * log_ratio(scale, x) - x.log()

    @in_double
    def cdf(self, value):
        return -(widen(self.alpha) * log_ratio(widen(self.scale), widen(self._checked(value)))).expm1()

    @in_double
    def icdf(self, value):
        return widen(self.scale) * (-(-widen(value)).log1p() / widen(self.alpha)).exp()

    @in_double
    def entropy(self):
        alpha = widen(self.alpha)
        return widen(self.scale).log() - alpha.log() + 1 + alpha.reciprocal()
