"""kl_divergence: E[log p(x) - log q(x)], x drawn from p, by the formula that is registered for the two classes."""
from __future__ import annotations

import math
from collections.abc import Callable

from flowedu.distributions.categorical import Categorical, OneHotCategorical
from flowedu.distributions.composed import Independent, TransformedDistribution
from flowedu.distributions.discrete import Bernoulli, Binomial, Geometric, Poisson
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.gamma import Beta, Dirichlet, Gamma
from flowedu.distributions.location_scale import Cauchy, Gumbel, Laplace, Normal, Uniform
from flowedu.distributions.multivariate_normal import MultivariateNormal, log_det, mahalanobis
from flowedu.distributions.positive import Exponential, HalfNormal, Pareto
from flowedu.distributions.transforms import sum_rightmost
from flowedu.distributions.utils import euler_constant
from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.tensor import elementwise as E
from flowedu.tensor.factors import solve_triangular

_TABLE: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """Decorator: f(p, q) is the divergence of distributions of these classes, and of their subclasses, unless nearer ones
    have one of their own."""
    if not all(isinstance(t, type) and issubclass(t, Distribution) for t in (type_p, type_q)):
        raise ArgumentError("register_kl: this is no class of distributions", expected="two subclasses of Distribution",
                            got=f"{type_p!r}, {type_q!r}", fix="@register_kl(Normal, Normal)")

    def register(f: Callable) -> Callable:
        _TABLE[type_p, type_q] = f
        return f

    return register


def kl_divergence(p: Distribution, q: Distribution):
    """The divergence of each pair of the batches. UnsupportedError where no formula is registered."""
    found = [pair for pair in _TABLE if isinstance(p, pair[0]) and isinstance(q, pair[1])]
    if not found:
        raise UnsupportedError(f"kl_divergence: there is no formula for {type(p).__name__} and {type(q).__name__}",
                               expected="classes that are registered", got=f"{p!r}, {q!r}",
                               fix="x = p.sample((1000,)), and (p.log_prob(x) - q.log_prob(x)).mean(0); or @register_kl")
    best = min(found, key=lambda pair: (type(p).__mro__.index(pair[0]), type(q).__mro__.index(pair[1])))
    return _TABLE[best](p, q)


def _infinite_unless(inside, y):
    return E.where(inside, y, math.inf)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    def part(a, b):
        y = a * (E.where(a == 0, 1.0, a) / E.where(b == 0, 1.0, b)).log()
        return E.where(a == 0, 0.0, _infinite_unless(b > 0, y))

    return part(p.probs, q.probs) + part(1 - p.probs, 1 - q.probs)


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    y = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return _infinite_unless(p.total_count <= q.total_count, y)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    y = p.probs * (p.logits - q.logits)
    y = E.where(q.probs == 0, math.inf, y)
    return E.where(p.probs == 0, 0.0, y).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p, q)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    spread = solve_triangular(q.scale_tril, p.scale_tril, upper=False).square().sum((-2, -1))
    return (log_det(q.scale_tril) - log_det(p.scale_tril)
            + 0.5 * (spread + mahalanobis(q.scale_tril, q.loc - p.loc) - p.event_shape[0]))


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    off, ratio = (p.loc - q.loc).abs(), p.scale / q.scale
    return -ratio.log() + off / q.scale + ratio * (-off / p.scale).exp() - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    return (((p.scale + q.scale).square() + (p.loc - q.loc).square()) / (4 * p.scale * q.scale)).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, places = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return -ratio.log() - places + (ratio - 1) * euler_constant + (places + (1 + ratio).lgamma()).exp() - 1


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio - 1 - ratio.log())


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    return (q.concentration * (p.rate / q.rate).log() + q.concentration.lgamma() - p.concentration.lgamma()
            + (p.concentration - q.concentration) * p.concentration.digamma()
            + (q.rate - p.rate) * p.concentration / p.rate)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p, q):
    ratio = q.rate / p.rate
    return -q.concentration * ratio.log() + ratio + q.concentration.lgamma() + q.concentration * euler_constant - (
        1 + euler_constant)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Beta, Beta)
def _beta(p, q):
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    norms = (c.lgamma() + d.lgamma() - (c + d).lgamma()) - (a.lgamma() + b.lgamma() - (a + b).lgamma())
    return norms + (a - c) * a.digamma() + (b - d) * b.digamma() - (a + b - c - d) * (a + b).digamma()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    norms = a.sum(-1).lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norms + ((a - b) * (a.digamma() - a.sum(-1, True).digamma())).sum(-1)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    inside = (q.low <= p.low) & (q.high >= p.high)
    return _infinite_unless(inside, ((q.high - q.low) / (p.high - p.low)).log())


@register_kl(Uniform, Normal)
def _uniform_normal(p, q):
    middle, width = (p.high + p.low) / 2, p.high - p.low
    return (math.sqrt(2 * math.pi) * q.scale / width).log() + 0.5 * (
        (width / q.scale).square() / 12 + ((middle - q.loc) / q.scale).square())


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    off = (p.loc - q.loc) / p.scale
    middle = math.sqrt(2 / math.pi) * (-0.5 * off.square()).exp() + off * E.erf(off * math.sqrt(0.5))
    return (2 * q.scale / p.scale).log() - 0.5 * math.log(2 * math.pi * math.e) + p.scale / q.scale * middle


@register_kl(Laplace, Normal)
def _laplace_normal(p, q):
    spread = 2 * p.scale.square() + (p.loc - q.loc).square()
    return -(2 * p.scale).log() - 1 + 0.5 * math.log(2 * math.pi) + q.scale.log() + 0.5 * spread / q.scale.square()


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    y = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _infinite_unless(p.scale >= q.scale, y)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise UnsupportedError("kl_divergence: two Independent of different events", expected="as many axes in both",
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
