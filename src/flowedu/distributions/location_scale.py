"""Distributions of real numbers: Normal, Laplace, Cauchy, Gumbel, StudentT, and Uniform."""
from __future__ import annotations

import math

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast
from flowedu.distributions import constraints
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.gamma import log_gamma_draw
from flowedu.distributions.special import (
    HALF_LOG_2PI,
    in_double,
    log1p_excess,
    stirling,
    stirling_slope,
    widen,
)
from flowedu.distributions.utils import euler_constant, normal
from flowedu.tensor import elementwise as E
from flowedu.tensor.dtypes.numeric_limits import finfo


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
        """Return (value - loc) / scale."""
        return (self._checked(value) - self.loc) / self.scale

    @in_double
    def log_prob(self, value):
        scale = widen(self.scale)
        return self._log_density((widen(self._checked(value)) - widen(self.loc)) / scale) - scale.log()

    @in_double
    def entropy(self):
        return widen(self.scale).log() + self._entropy_at_scale_one


class Normal(_LocationScale):
    """Normal distribution.

    Args:
        loc: mean.
        scale: standard deviation; broadcasts with loc.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    _entropy_at_scale_one = 0.5 + HALF_LOG_2PI

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale.square()

    def rsample(self, sample_shape=()):
        return self.loc + self.scale * normal(self._extended_shape(sample_shape), self.loc)

    def _log_density(self, x):
        return x.square() * -0.5 - HALF_LOG_2PI

    def cdf(self, value):
        return E.erfc(self._standard(value) * -math.sqrt(0.5)) * 0.5

    def icdf(self, value):
        return self.loc + self.scale * E.erfinv(2 * value - 1) * math.sqrt(2)


class Laplace(_LocationScale):
    """Laplace distribution: exp(-|x - loc| / scale) / (2 scale).

    Args:
        loc: location.
        scale: scale; broadcasts with loc.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    _entropy_at_scale_one = 1 + math.log(2)

    @property
    def variance(self):
        return 2 * self.scale.square()

    def _log_density(self, x):
        return -x.abs() - math.log(2)

    def cdf(self, value):
        x = self._standard(value)
        return 0.5 - 0.5 * x.sign() * (-x.abs()).expm1()

    def icdf(self, value):
        # of the tail itself: the distance from 1/2 would round the smallest probabilities to 0, and the
        # result to -inf
        tail = value.minimum(1 - value)
        return self.loc - self.scale * (value - 0.5).sign() * (2 * tail).log()


class Cauchy(_LocationScale):
    """Cauchy distribution: 1 / (pi scale (1 + ((x - loc) / scale)^2)), which has no mean.

    Args:
        loc: location.
        scale: scale; broadcasts with loc.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    _entropy_at_scale_one = math.log(4 * math.pi)

    @property
    def mean(self):
        return self.loc.detach() * 0 + math.nan

    @property
    def variance(self):
        return self.loc.detach() * 0 + math.inf

    def _log_density(self, x):
        return -x.square().log1p() - math.log(math.pi)

    def cdf(self, value):
        return self._standard(value).atan() / math.pi + 0.5

    def icdf(self, value):
        return self.loc + self.scale * (math.pi * (value - 0.5)).tan()


class Gumbel(_LocationScale):
    """Gumbel distribution, a limit distribution of maxima: cdf exp(-exp(-(x - loc) / scale)).

    Args:
        loc: location.
        scale: scale; broadcasts with loc.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    _entropy_at_scale_one = 1 + euler_constant

    @property
    def mean(self):
        return self.loc + self.scale * euler_constant

    @property
    def stddev(self):
        return self.scale * (math.pi / math.sqrt(6))

    @property
    def variance(self):
        return self.stddev.square()

    def _log_density(self, x):
        return -x - (-x).exp()

    def cdf(self, value):
        return (-(-self._standard(value)).exp()).exp()

    def icdf(self, value):
        return self.loc - self.scale * (-value.log()).log()


class StudentT(Distribution):
    """Student's t-distribution.

    Args:
        df: degrees of freedom.
        loc: location.
        scale: scale; broadcasts with loc.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

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
        half, dtype = 0.5 * widen(self.df), self.df.dtype
        # the bound keeps exp finite, so that no gradient is 0 times infinity
        spread = (0.5 * (half.log() - log_gamma_draw(half, shape))).clamp(max=700.0).exp()
        y = widen(self.loc) + widen(self.scale) * widen(normal(shape, self.df)) * spread
        return cast(y.clamp(-finfo(dtype).max, finfo(dtype).max), dtype)

    @in_double
    def log_prob(self, value):
        df, scale = widen(self.df), widen(self.scale)
        half, square = 0.5 * df, ((widen(self._checked(value)) - widen(self.loc)) / scale).square()
        u, power = square / df, half + 0.5
        near = u < 0.1
        exponent = E.where(near, 0.5 * (square + u) + power * log1p_excess(E.where(near, u, 0.0)),
                           power * u.log1p())
        # lgamma(half + 1/2) - lgamma(half) - log(half) / 2
        rise = half * log1p_excess(0.5 / half) + stirling(power) - stirling(half)
        return rise - HALF_LOG_2PI - scale.log() - exponent

    @in_double
    def entropy(self):
        half = 0.5 * widen(self.df)
        w, power = 0.5 / half, half + 0.5
        return (widen(self.scale).log() + HALF_LOG_2PI + 0.5 + w + 0.5 * log1p_excess(w)
                + power * (stirling_slope(power) - stirling_slope(half)) - stirling(power) + stirling(half))


class Uniform(Distribution):
    """Uniform distribution on [low, high).

    Args:
        low: lower limit.
        high: upper limit.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    arg_constraints = {"low": constraints.dependent, "high": constraints.dependent}
    has_rsample = True
    low: Tensor
    high: Tensor

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

    def rsample(self, sample_shape=()):
        """Draw from [low, high). A value that is rounded to `high` is replaced by a number below it."""
        y, low, high = super().rsample(sample_shape), self.low.detach(), self.high.detach()
        limits = finfo(y.dtype)
        below = E.maximum(low, high - high.abs() * limits.eps - limits.tiny)
        return y + (below - y.detach()).clamp(max=0)

    @in_double
    def log_prob(self, value):
        x = self._checked(value)
        return E.where((x >= self.low) & (x < self.high), -self._log_width(), -math.inf)

    def _log_width(self):
        return (widen(self.high) - widen(self.low)).log()

    @in_double
    def cdf(self, value):
        low = widen(self.low)
        return ((widen(self._checked(value)) - low) / (widen(self.high) - low)).clamp(0, 1)

    @in_double
    def icdf(self, value):
        low = widen(self.low)
        return low + widen(value) * (widen(self.high) - low)

    @in_double
    def entropy(self):
        return self._log_width()
