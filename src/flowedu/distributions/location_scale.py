"""Distributions over all real numbers with a place and a width: Normal, Laplace, Cauchy, Gumbel, StudentT; and Uniform."""
from __future__ import annotations

import math

from flowedu.distributions import constraints
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.gamma import gamma_draw
from flowedu.distributions.utils import euler_constant, normal
from flowedu.tensor import elementwise as E


class _LocationScale(Distribution):
    """`loc` and `scale`, which broadcast."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args: bool | None = None):
        self._with_parameters(validate_args, loc=loc, scale=scale)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    def _standard(self, value):
        """How many widths from the place a value is."""
        return (self._checked(value) - self.loc) / self.scale


class Normal(_LocationScale):
    """The normal distribution with mean `loc` and standard deviation `scale`."""

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale.square()

    def rsample(self, sample_shape=()):
        return self.loc + self.scale * normal(self._extended_shape(sample_shape), self.loc)

    def log_prob(self, value):
        return self._standard(value).square() * -0.5 - self.scale.log() - math.log(2 * math.pi) / 2

    def cdf(self, value):
        return E.erfc(self._standard(value) * -math.sqrt(0.5)) * 0.5

    def icdf(self, value):
        return self.loc + self.scale * E.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class Laplace(_LocationScale):
    """The density exp(-|x - loc| / scale) / (2 scale)."""

    @property
    def variance(self):
        return 2 * self.scale.square()

    def log_prob(self, value):
        return -(self._standard(value).abs()) - (2 * self.scale).log()

    def cdf(self, value):
        x = self._standard(value)
        return 0.5 - 0.5 * x.sign() * (-x.abs()).expm1()

    def icdf(self, value):
        # of the tail itself: the distance from 1/2 would round the smallest probabilities to 0, and the result to -inf
        tail = value.minimum(1 - value)
        return self.loc - self.scale * (value - 0.5).sign() * (2 * tail).log()

    def entropy(self):
        return 1 + (2 * self.scale).log()


class Cauchy(_LocationScale):
    """The density 1 / (pi scale (1 + ((x - loc) / scale)^2)), which has no mean."""

    @property
    def mean(self):
        return self.loc.detach() * 0 + math.nan

    @property
    def variance(self):
        return self.loc.detach() * 0 + math.inf

    def log_prob(self, value):
        return -self._standard(value).square().log1p() - self.scale.log() - math.log(math.pi)

    def cdf(self, value):
        return self._standard(value).atan() / math.pi + 0.5

    def icdf(self, value):
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()

    def entropy(self):
        return self.scale.log() + math.log(4 * math.pi)


class Gumbel(_LocationScale):
    """The largest of many: cdf exp(-exp(-(x - loc) / scale))."""

    @property
    def mean(self):
        return self.loc + self.scale * euler_constant

    @property
    def stddev(self):
        return self.scale * (math.pi / math.sqrt(6))

    @property
    def variance(self):
        return self.stddev.square()

    def log_prob(self, value):
        x = -self._standard(value)
        return x - x.exp() - self.scale.log()

    def cdf(self, value):
        return (-(-self._standard(value)).exp()).exp()

    def icdf(self, value):
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)


class StudentT(Distribution):
    """Student's t with `df` degrees of freedom, moved by `loc` and stretched by `scale`."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args: bool | None = None):
        self._with_parameters(validate_args, df=df, loc=loc, scale=scale)

    @property
    def mean(self):
        return E.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        y = self.scale.square() * self.df / E.where(self.df > 2, self.df - 2, 1.0)
        return E.where(self.df > 2, y, E.where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        chi2 = 2 * gamma_draw(self.df / 2, shape)
        return self.loc + self.scale * normal(shape, self.df) * E.rsqrt(chi2 / self.df)

    def log_prob(self, value):
        x = (self._checked(value) - self.loc) / self.scale
        half = 0.5 * self.df
        constant = half.lgamma() - (half + 0.5).lgamma() + 0.5 * (self.df.log() + math.log(math.pi)) + self.scale.log()
        return -(half + 0.5) * (x.square() / self.df).log1p() - constant

    def entropy(self):
        half = 0.5 * self.df
        beta = half.lgamma() + math.lgamma(0.5) - (half + 0.5).lgamma()
        return self.scale.log() + (half + 0.5) * ((half + 0.5).digamma() - half.digamma()) + 0.5 * self.df.log() + beta


class Uniform(Distribution):
    """Equally likely from `low` to `high`."""

    arg_constraints = {"low": constraints.dependent, "high": constraints.dependent}
    has_rsample = True

    def __init__(self, low, high, validate_args: bool | None = None):
        self._with_parameters(validate_args, low=low, high=high)
        if self._validate_args:
            self._check_parameter("high", constraints.greater_than(self.low.detach()))

    @property
    def support(self):
        return constraints.interval(self.low.detach(), self.high.detach())

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def mode(self):
        return self.high.detach() * math.nan

    @property
    def stddev(self):
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self):
        return (self.high - self.low).square() / 12

    def log_prob(self, value):
        x = self._checked(value)
        return E.where((x >= self.low) & (x < self.high), -(self.high - self.low).log(), -math.inf)

    def cdf(self, value):
        return ((self._checked(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        return self.low + value * (self.high - self.low)

    def entropy(self):
        return (self.high - self.low).log()
