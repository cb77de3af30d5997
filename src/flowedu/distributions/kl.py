"""kl_divergence: E[log p(x) - log q(x)] for x drawn from p, with one formula per pair of classes."""
from __future__ import annotations

import math
from collections.abc import Callable

from flowedu.distributions.categorical import Categorical, OneHotCategorical
from flowedu.distributions.composed import Independent, TransformedDistribution
from flowedu.distributions.discrete import Bernoulli, Binomial, Geometric, Poisson, bernoulli_divergence
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.gamma import Beta, Dirichlet, Gamma, dirichlet_divergence
from flowedu.distributions.location_scale import Cauchy, Gumbel, Laplace, Normal, Uniform
from flowedu.distributions.multivariate_normal import MultivariateNormal, log_det, mahalanobis
from flowedu.distributions.positive import Exponential, HalfNormal, Pareto
from flowedu.distributions.special import (
    HALF_LOG_2PI,
    deviance,
    excess,
    in_double,
    lgamma_bregman,
    log_ratio,
    times,
    widen,
)
from flowedu.distributions.transforms import sum_rightmost
from flowedu.distributions.utils import euler_constant
from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.tensor import elementwise as E
from flowedu.tensor.construction.creation import ones_like
from flowedu.tensor.linalg.factorizations import solve_triangular

_TABLE: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """Return a decorator that registers f(p, q) as the divergence of two classes and their subclasses.

    If several formulas fit two distributions, the one for the most derived classes is used.

    Args:
        type_p: class of p.
        type_q: class of q.
    """
    if not all(isinstance(t, type) and issubclass(t, Distribution) for t in (type_p, type_q)):
        raise ArgumentError("register_kl: this is no class of distributions",
                            expected="two subclasses of Distribution",
                            got=f"{type_p!r}, {type_q!r}", fix="@register_kl(Normal, Normal)")

    def register(f: Callable) -> Callable:
        _TABLE[type_p, type_q] = f
        return f

    return register


def kl_divergence(p: Distribution, q: Distribution):
    """Return the divergence of each distribution in batch p from the corresponding one in batch q.

    Args:
        p: the distribution that x is drawn from.
        q: the distribution that p is compared with.

    Raises:
        UnsupportedError: no formula is registered for the two classes.
    """
    found = [pair for pair in _TABLE if isinstance(p, pair[0]) and isinstance(q, pair[1])]
    if not found:
        raise UnsupportedError(f"kl_divergence: there is no formula for {type(p).__name__} and "
                               f"{type(q).__name__}",
                               expected="classes that are registered", got=f"{p!r}, {q!r}",
                               fix="x = p.sample((1000,)), and (p.log_prob(x) - q.log_prob(x)).mean(0); or "
                               "@register_kl")
    best = min(found, key=lambda pair: (type(p).__mro__.index(pair[0]), type(q).__mro__.index(pair[1])))
    return _TABLE[best](p, q)


def _infinite_unless(inside, y):
    return E.where(inside, y, math.inf)


def _wide(*tensors):
    return map(widen, tensors)


# ---- sums of nonnegative terms, see special.py
@register_kl(Bernoulli, Bernoulli)
@in_double
def _bernoulli(p, q):
    return bernoulli_divergence(p.probabilities(), q.probabilities())


@register_kl(Binomial, Binomial)
@in_double
def _binomial(p, q):
    y = widen(p.total_count) * bernoulli_divergence(p.probabilities(), q.probabilities())
    return _infinite_unless(p.total_count <= q.total_count, y)


@register_kl(Categorical, Categorical)
@in_double
def _categorical(p, q):
    log_p, log_q = _wide(p.logits, q.logits)
    return times(widen(p.probs), log_p - log_q).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p, q)


@register_kl(Geometric, Geometric)
@in_double
def _geometric(p, q):
    a, b = p.probabilities(), q.probabilities()
    return bernoulli_divergence(a, b) / a[0]


@register_kl(Poisson, Poisson)
@in_double
def _poisson(p, q):
    return deviance(widen(p.rate), widen(q.rate))


@register_kl(Normal, Normal)
@in_double
def _normal(p, q):
    m, s, n, t = _wide(p.loc, p.scale, q.loc, q.scale)
    return 0.5 * (excess((s / t).square()) + ((m - n) / t).square())


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    spread = solve_triangular(q.scale_tril, p.scale_tril, upper=False).square().sum((-2, -1))
    return (log_det(q.scale_tril) - log_det(p.scale_tril)
            + 0.5 * (spread + mahalanobis(q.scale_tril, q.loc - p.loc) - p.event_shape[0]))


@register_kl(Laplace, Laplace)
@in_double
def _laplace(p, q):
    m, s, n, t = _wide(p.loc, p.scale, q.loc, q.scale)
    gap, ratio = (m - n).abs(), s / t
    off = gap / s
    small = off < 1
    near, far = E.where(small, off, 0.0), (-off).expm1()
    return excess(ratio) + E.where(small, ratio * (near + (-near).expm1()), gap / t + ratio * far)


@register_kl(Cauchy, Cauchy)
@in_double
def _cauchy(p, q):
    m, s, n, t = _wide(p.loc, p.scale, q.loc, q.scale)
    return (((s - t).square() + (m - n).square()) / (4 * s * t)).log1p()


@register_kl(Gumbel, Gumbel)
@in_double
def _gumbel(p, q):
    m, s, n, t = _wide(p.loc, p.scale, q.loc, q.scale)
    ratio, places = s / t, (n - m) / t
    return -ratio.log() - places + (ratio - 1) * euler_constant + (places + (1 + ratio).lgamma()).expm1()


@register_kl(HalfNormal, HalfNormal)
@in_double
def _half_normal(p, q):
    return 0.5 * excess((widen(p.scale) / widen(q.scale)).square())


@register_kl(Exponential, Exponential)
@in_double
def _exponential(p, q):
    return excess(widen(q.rate) / widen(p.rate))


def _gamma_divergence(a, rate_p, b, rate_q):
    """Return the divergence of gamma variables of concentrations a and b."""
    a, rate_p, b, rate_q = _wide(a, rate_p, b, rate_q)
    return deviance(b, a * (rate_q / rate_p), (b * rate_p - a * rate_q) / rate_p) + lgamma_bregman(b, a)


@register_kl(Gamma, Gamma)
@in_double
def _gamma(p, q):
    return _gamma_divergence(p.concentration, p.rate, q.concentration, q.rate)


@register_kl(Exponential, Gamma)
@in_double
def _exponential_gamma(p, q):
    return _gamma_divergence(ones_like(p.rate), p.rate, q.concentration, q.rate)


@register_kl(Gamma, Exponential)
@in_double
def _gamma_exponential(p, q):
    return _gamma_divergence(p.concentration, p.rate, ones_like(q.rate), q.rate)


@register_kl(Beta, Beta)
@in_double
def _beta(p, q):
    return dirichlet_divergence(p.stacked(), q.stacked())


@register_kl(Dirichlet, Dirichlet)
@in_double
def _dirichlet(p, q):
    return dirichlet_divergence(widen(p.concentration), widen(q.concentration))


@register_kl(Uniform, Uniform)
@in_double
def _uniform(p, q):
    inside = (q.low <= p.low) & (q.high >= p.high)
    low, high, lower, higher = _wide(p.low, p.high, q.low, q.high)
    return _infinite_unless(inside, (((low - lower) + (higher - high)) / (high - low)).log1p())


@register_kl(Uniform, Normal)
@in_double
def _uniform_normal(p, q):
    low, high, loc, scale = _wide(p.low, p.high, q.loc, q.scale)
    middle, width = (high + low) / 2, high - low
    return (math.sqrt(2 * math.pi) * scale / width).log() + 0.5 * (
        (width / scale).square() / 12 + ((middle - loc) / scale).square())


@register_kl(Normal, Laplace)
@in_double
def _normal_laplace(p, q):
    m, s, n, t = _wide(p.loc, p.scale, q.loc, q.scale)
    off = (m - n) / s
    middle = math.sqrt(2 / math.pi) * (-0.5 * off.square()).exp() + off * E.erf(off * math.sqrt(0.5))
    return (2 * t / s).log() - 0.5 * math.log(2 * math.pi * math.e) + s / t * middle


@register_kl(Laplace, Normal)
@in_double
def _laplace_normal(p, q):
    m, s, n, t = _wide(p.loc, p.scale, q.loc, q.scale)
    return (t / s).log() - math.log(2) - 1 + HALF_LOG_2PI + 0.5 * (2 * (s / t).square() + (
        (m - n) / t).square())


@register_kl(Pareto, Pareto)
@in_double
def _pareto(p, q):
    s, a, t, b = _wide(p.scale, p.alpha, q.scale, q.alpha)
    return _infinite_unless(p.scale >= q.scale, b * log_ratio(s, t) + excess(b / a))


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise UnsupportedError("kl_divergence: two Independent of different events",
                               expected="as many axes in both",
                               got=f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}",
                               fix="Independent(q, the same number)")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise UnsupportedError("kl_divergence: two distributions that are not transformed alike",
                               expected="equal transforms", got=f"{p.transforms!r} and {q.transforms!r}",
                               fix="estimate it from samples")
    return kl_divergence(p.base_dist, q.base_dist)
