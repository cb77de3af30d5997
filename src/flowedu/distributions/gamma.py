"""Gamma, and the distributions built from gamma variables: Chi2, Beta, Dirichlet.

Gamma variables are drawn by NumPy's rejection sampler, so they are not differentiable functions of the
concentration. rsample uses an implicit gradient: the value of the cumulative distribution function is held
constant while the concentration changes (Figurnov, Mohamed, Mnih: Implicit reparameterization gradients,
2018).
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.polynomial import polynomial

from flowedu.autograd.function import Function
from flowedu.core.eager.arrays import from_numpy
from flowedu.core.ops.promote import cast
from flowedu.distributions import constraints
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.special import (
    HALF_LOG_2PI,
    deviance,
    in_double,
    lgamma_bregman,
    log_beta,
    poisson_term,
    stirling,
    stirling_slope,
    widen,
)
from flowedu.distributions.utils import broadcast_all, numpy_generator
from flowedu.tensor import elementwise as E
from flowedu.tensor.devices.conversion import beside
from flowedu.tensor.dtypes.numeric_limits import finfo
from flowedu.tensor.elementwise import digamma, erfc, lgamma
from flowedu.tensor.indexing.nonzero_positions import data
from flowedu.tensor.linalg.factorizations import identity
from flowedu.tensor.shapes.join_and_pad import concat, stack

# From this concentration on, 10 terms of Temme's expansion are exact to 1e-14.
_LARGE = 20.0


@functools.cache
def _temme_coefficients(count: int = 11, degree: int = 40) -> np.ndarray:
    """Return the coefficients of C_0 to C_10 in powers of eta, lowest first (NIST DLMF 8.12.9 to 11)."""
    length = degree + 2 * count
    mu = [Fraction(0), Fraction(1)]                # z / a - 1 in powers of eta: mu mu' = eta (1 + mu)
    for n in range(2, length + 2):
        inner = sum((mu[i] * mu[n + 1 - i] for i in range(2, n)), Fraction(0))
        mu.append((2 * mu[n - 1] / (n + 1) - inner) / 2)
    inverse = [Fraction(1)]                        # eta / mu
    for n in range(1, length + 1):
        inverse.append(-sum((mu[i + 1] * inverse[n - i] for i in range(1, n + 1)), Fraction(0)))
    rows = [inverse[1:]]
    for _ in range(count - 1):
        last = rows[-1]
        rows.append([(n + 2) * last[n + 2] - last[1] * rows[0][n] for n in range(len(last) - 2)])
    return np.array([[float(x) for x in row[:degree]] for row in rows])


def _temme(a: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return (r, S, S without its first term C_0, dS/da at fixed z) for mu = z / a - 1.

    The probability of at most z is Phi(r) - phi(r) S / sqrt(a). S is computed for |r| of at most 3 sqrt(a),
    beyond which phi(r) is below 1e-39.
    """
    v = mu / (2 + mu)
    tail = sum(v ** (k - 1) / k for k in range(3, 19, 2))
    near = np.abs(mu) < 0.1
    half = np.where(near, mu * v - 2 * v * tail, mu - np.log1p(np.where(near, 0.0, mu)))
    eta = np.sign(mu) * np.sqrt(2 * half)
    bounded, safe = np.clip(eta, -3, 3), np.where(eta == 0, 1.0, eta)
    change = -np.where(eta == 0, 1.0, mu / safe) / a                                          # d eta / da
    total, slope = np.zeros_like(a), np.zeros_like(a)
    for k, row in reversed(list(enumerate(_temme_coefficients()))):
        c, dc = polynomial.polyval(bounded, row), polynomial.polyval(bounded, polynomial.polyder(row))
        rest = total / a
        total = rest + c
        slope = slope / a + dc * change - k * c / a
    return eta * np.sqrt(a), total, rest, slope


def _by_numpy(f: Callable, x: np.ndarray) -> np.ndarray:
    """Return f(x), f a function of tensors."""
    return f(from_numpy(np.ascontiguousarray(x, np.float64))).numpy()


def _log_slope_by_series(a: np.ndarray, log_z: np.ndarray) -> np.ndarray:
    """Compute `log_slope` by a series.

    F is z^a exp(-z) times the sum of z^k / gamma(a + k + 1), so dF / da over the density and z is the sum of
    z^k gamma(a) / gamma(a + k + 1), each times log(z) - digamma(a + k + 1).
    """
    z, term, psi = np.exp(log_z), 1 / a, _by_numpy(digamma, a + 1)
    total, k = np.zeros_like(a), 0
    while (term > 1e-18 * np.abs(total)).any():
        total = total - term * (log_z - psi)
        k += 1
        term, psi = term * z / (a + k), psi + 1 / (a + k)
    return total


def _log_slope_by_expansion(a: np.ndarray, log_z: np.ndarray) -> np.ndarray:
    """Return what `log_slope` does, with a cost that does not depend on a."""
    mu = np.exp(log_z - np.log(a)) - 1
    _, total, rest, slope = _temme(a, mu)
    log = np.log1p(mu)
    # log(1 + mu) / eta is computed with the pole of S, which is 1 / mu - 1 / eta at first: together they are
    # 1 / mu
    ratio = np.where(mu == 0, 1.0, log / np.where(mu == 0, 1.0, mu))
    return (ratio + log * rest - total / (2 * a) + slope) * np.exp(_by_numpy(stirling, a)) / a


def log_slope(a: np.ndarray, log_z: np.ndarray) -> np.ndarray:
    """Return d log(z) / da of a gamma variable z whose cumulative probability is held constant.

    The derivative is -(dF / da) / (z dF / dz), where F(a, z) is the probability of a value of at most z. For
    concentrations below 20 it is computed by a series of about 100 terms. The series loses digits in the
    upper tail, where its relative error is 2^-52 / (1 - F).
    """
    a, log_z = np.broadcast_arrays(a, log_z)
    y, large = np.empty_like(a), a >= _LARGE
    y[~large] = _log_slope_by_series(a[~large], log_z[~large])
    y[large] = _log_slope_by_expansion(a[large], log_z[large])
    return y


def slope(a: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return dz / da of a positive gamma variable z whose cumulative probability is held constant."""
    return z * log_slope(a, np.log(z))


def below(a: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the probability that a gamma variable of concentration a and rate 1 is at most z."""
    a, z = np.broadcast_arrays(a, np.maximum(z, 0.0))
    y, large = np.empty_like(a), a >= _LARGE
    y[~large] = _below_by_series(a[~large], z[~large])
    a, z = a[large], z[large]
    with np.errstate(all="ignore"):
        r, total, _, _ = _temme(a, np.minimum(z / a, 1e300) - 1)
        small = np.exp(-r * r / 2) / np.sqrt(2 * np.pi * a) * total
    y[large] = np.clip(_by_numpy(erfc, -r * math.sqrt(0.5)) / 2 - small, 0, 1)
    return y


def _below_by_series(a: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Compute `below` by a series where z is below a + 1, and by a continued fraction elsewhere.

    The continued fraction (Lentz's algorithm) is that of the upper tail, and the result is 1 less its value.
    """
    with np.errstate(all="ignore"):
        front = np.exp(a * np.log(z) - z - _by_numpy(lgamma, a))
        near, x = z < a + 1, np.where(z < a + 1, z, 0.0)
        term = total = 1 / a
        k = 0
        while (np.abs(term) > 1e-17 * np.abs(total)).any():
            k += 1
            term = term * x / (a + k)
            total = total + term
        x = np.where(near, a + 1, z)
        b = x + 1 - a
        c, d, h = np.full_like(b, 1e300), 1 / b, 1 / b
        k, moved = 0, np.inf
        while np.nanmax(np.abs(np.subtract(moved, 1)), initial=0) > 1e-15 and k < 1000:
            k += 1
            b = b + 2
            turn = -k * (k - a)
            d, c = 1 / (turn * d + b), b + turn / c
            moved = c * d
            h = h * moved
        return np.where(z == np.inf, 1.0, np.where(z == 0, 0.0, np.where(near, front * total, 1 - front * h)))


class _Below(Function):
    """below(concentration, z) with its gradients.

    The gradient for z is the density. The gradient for the concentration is found by implicit
    differentiation, from the slope of z at a constant value.
    """

    @staticmethod
    def forward(ctx, a, z):
        ctx.save_for_backward(a, z)
        arrays = (x.detach().double().cpu().numpy() for x in (a, z))
        return beside(from_numpy(np.asarray(below(*arrays), order="C")), z).to(z.dtype)

    @staticmethod
    def backward(ctx, dy):
        a, z = ctx.saved_tensors
        density = (E.xlogy(a - 1, z) - z - a.lgamma()).exp()
        inside = (z.detach() > 0) & z.detach().isfinite() & (density.detach() > 0)
        flat = np.where(inside.cpu().numpy(), z.detach().double().cpu().numpy(), 1.0)
        moved = beside(from_numpy(slope(a.detach().double().cpu().numpy(), flat)), dy).to(dy.dtype)
        return E.where(inside, -moved * density, 0.0) * dy, E.where(z < 0, 0.0, density) * dy


class _LogDraw(Function):
    """Logarithms of gamma variables of rate 1, float64, one for each concentration.

    The gradient is that of a variable that keeps its probability. The logarithm is finite where the variable
    underflows: for a < 1 it is log(g) + log(u) / a, with g of concentration a + 1 and u uniform.
    """

    @staticmethod
    def forward(ctx, concentration):
        a = np.asarray(data("gamma", concentration.detach()), np.float64)
        generator, small = numpy_generator(), a < 1
        y = np.log(generator.standard_gamma(np.where(small, a + 1, a)))
        y = np.where(small, y + np.log1p(-generator.random(a.shape)) / a, y)
        y = beside(from_numpy(np.asarray(y, order="C")), concentration)
        ctx.save_for_backward(concentration, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        concentration, y = ctx.saved_tensors
        a, log_z = (x.detach().double().cpu().numpy() for x in (concentration, y))
        return (dy * beside(from_numpy(log_slope(a, log_z)), dy)).to(concentration.dtype)


def log_gamma_draw(concentration, shape):
    """Draw gamma variables of rate 1 and return their logarithms, float64."""
    return _LogDraw.apply(concentration.expand(*shape))


class Gamma(Distribution):
    """Gamma distribution: rate^a x^(a - 1) exp(-rate x) / gamma(a), with concentration a.

    Args:
        concentration: the exponent a.
        rate: inverse scale.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration, rate, validate_args: bool | None = None):
        self._with_parameters(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape=()):
        y = log_gamma_draw(self.concentration, self._extended_shape(sample_shape)) - widen(self.rate).log()
        limits = finfo(self.rate.dtype)
        return cast(y.exp().clamp(limits.tiny, limits.max), self.rate.dtype)

    @in_double
    def log_prob(self, value):
        x, a, rate = widen(self._checked(value)), widen(self.concentration), widen(self.rate)
        inside = x > 0
        z = E.where(inside, x, 1.0)
        log_mean, mean = rate.log() + z.log(), rate * z
        y = poisson_term(a, mean, log_mean, a - mean) + a.log() - z.log()
        return E.where(inside, y, E.xlogy(a - 1, x) + rate.log())

    def cdf(self, value):
        a, z = broadcast_all(self.concentration, self._checked(value) * self.rate)
        return _Below.apply(a, z)

    @in_double
    def entropy(self):
        a, rate = widen(self.concentration), widen(self.rate)
        return _gamma_entropy(a) - rate.log()


def _gamma_entropy(a):
    """Return a + lgamma(a) + (1 - a) digamma(a)."""
    return 0.5 * a.log() + (HALF_LOG_2PI + 0.5) - 0.5 / a + stirling(a) + (1 - a) * stirling_slope(a)


class Chi2(Gamma):
    """Chi-squared distribution: the sum of `df` squares of standard normal variables.

    Args:
        df: degrees of freedom.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args: bool | None = None):
        df, = broadcast_all(df)
        super().__init__(0.5 * df, 0.5, False)
        self.df, self._own = df, ("df",)
        Distribution.__init__(self, df.shape, (), validate_args)


def dirichlet_entropy(a):
    """Return the entropy of Dirichlet distributions with concentrations a, float64, along the last axis."""
    total, n = a.sum(-1), a.shape[-1]
    each = 0.5 * a.log() + (HALF_LOG_2PI + 0.5) - 0.5 / a + stirling(a) - (a - 1) * stirling_slope(a)
    return (each.sum(-1) - (n - 0.5) * total.log() - (HALF_LOG_2PI + 0.5) + 0.5 * n / total
            - stirling(total) + (total - n) * stirling_slope(total))


def _sum_of_others(a):
    """Return the sum of all entries of the last axis but each one, without subtracting it."""
    zero = a[..., :1] * 0
    before = concat([zero, a[..., :-1]], -1).cumsum(-1)
    after = concat([zero, a.flip(-1)[..., :-1]], -1).cumsum(-1).flip(-1)
    return before + after


def dirichlet_divergence(a, b):
    """Return the float64 divergence of Dirichlet distributions with concentrations a and b (last axis)."""
    total_a, total_b = a.sum(-1, True), b.sum(-1, True)
    gap = (b * _sum_of_others(a) - a * _sum_of_others(b)) / total_a
    each = deviance(b, a * (total_b / total_a), gap) + lgamma_bregman(b, a)
    return each.sum(-1) - lgamma_bregman(total_b, total_a).squeeze(-1)


class Dirichlet(Distribution):
    """Dirichlet distribution of vectors of n nonnegative shares that sum to 1.

    Args:
        concentration: concentrations of shape (..., n).
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args: bool | None = None):
        self._with_parameters(validate_args, 1, concentration=concentration)

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        """The vector with the largest density.

        If every concentration is below 1, the density is infinite in every corner. The mode is then the
        first corner.
        """
        a = (self.concentration - 1).clamp(min=0)
        total, corner = a.sum(-1, True), identity(a, a.shape[-1])[0]
        return E.where((self.concentration < 1).all(-1, True), corner, a / E.where(total == 0, 1.0, total))

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape=()):
        y = log_gamma_draw(self.concentration, self._extended_shape(sample_shape)).softmax(-1)
        return cast(y.clamp(min=finfo(self.concentration.dtype).tiny), self.concentration.dtype)

    @in_double
    def log_prob(self, value):
        x, a = widen(self._checked(value)), widen(self.concentration)
        total, inside = a.sum(-1, True), x > 0
        z = E.where(inside, x, 0.5)
        mean, log_mean = total * z, total.log() + z.log()
        each = poisson_term(a, mean, log_mean, a - mean) + a.log() - z.log()
        edge = E.xlogy(a - 1, x) - (a + 1).lgamma() + a.log() + a * total.log()
        whole = poisson_term(total, total, total.log(), total * 0) + total.log()
        # the terms hold the sum of the means, which is the total only if the values sum to 1 exactly
        return (E.where(inside, each, edge).sum(-1) - whole.squeeze(-1)
                + total.squeeze(-1) * (E.where(inside, x, 0.0).sum(-1) - 1))

    @in_double
    def entropy(self):
        return dirichlet_entropy(widen(self.concentration))


class Beta(Distribution):
    """Beta distribution: x^(concentration1 - 1) (1 - x)^(concentration0 - 1) in [0, 1].

    Args:
        concentration1: the exponent of x, increased by 1.
        concentration0: the exponent of 1 - x, increased by 1.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args: bool | None = None):
        self._with_parameters(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def _total(self):
        return self.concentration1 + self.concentration0

    @property
    def mean(self):
        return self.concentration1 / self._total

    @property
    def mode(self):
        """The value with the largest density; nan where both concentrations are 1.

        If both concentrations are below 1, the density is infinite at 0 and at 1. The mode is then 1.
        """
        a, b = self.concentration1 - 1, self.concentration0 - 1
        below, a, b = (a < 0) & (b < 0), a.clamp(min=0), b.clamp(min=0)
        return E.where(below, 1.0, a / (a + b))

    @property
    def variance(self):
        return self.concentration1 * self.concentration0 / (self._total.square() * (self._total + 1))

    def rsample(self, sample_shape=()):
        shape, dtype = self._extended_shape(sample_shape), self.concentration1.dtype
        x, y = (log_gamma_draw(a, shape) for a in (self.concentration1, self.concentration0))
        return cast((x - y).sigmoid().clamp(finfo(dtype).tiny, 1 - finfo(dtype).eps / 2), dtype)

    def stacked(self):
        """Return the two concentrations along a new last axis, float64."""
        return stack([widen(self.concentration1), widen(self.concentration0)], -1)

    @in_double
    def log_prob(self, value):
        x, a, b = widen(self._checked(value)), widen(self.concentration1), widen(self.concentration0)
        inside = (x > 0) & (x < 1)
        z = E.where(inside, x, 0.5)
        rest, log, log_rest = 1 - z, z.log(), (-z).log1p()
        n, gap = a + b, a * rest - b * z                                       # gap = a - n z
        log_n = n.log()
        y = (poisson_term(a, n * z, log_n + log, gap) + a.log() - log
             + poisson_term(b, n * rest, log_n + log_rest, -gap) + b.log() - log_rest
             - poisson_term(n, n, log_n, n * 0) - log_n)
        return E.where(inside, y, E.xlogy(a - 1, x) + E.xlogy(b - 1, 1 - x) - log_beta(a, b))

    @in_double
    def entropy(self):
        return dirichlet_entropy(self.stacked())
