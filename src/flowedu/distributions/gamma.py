"""Gamma and what is made of gamma variables: Chi2, Beta, Dirichlet.

A gamma variable is drawn by rejection (NumPy's), and so is no function of its concentration that could be differentiated.
But where it lies among all variables of that concentration, its probability, may be held fast while the concentration
moves: that is the gradient rsample has (Figurnov, Mohamed, Mnih: Implicit reparameterization gradients, 2018).
"""
from __future__ import annotations

import numpy as np

from flowedu.autograd.function import Function
from flowedu.core.eager.arrays import from_numpy
from flowedu.distributions import constraints
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.utils import broadcast_all, drawn_by_numpy
from flowedu.tensor import elementwise as E
from flowedu.tensor.devices import beside
from flowedu.tensor.elementwise import digamma, lgamma
from flowedu.tensor.factors import identity
from flowedu.tensor.joining import stack
from flowedu.tensor.limits import finfo


def slope(a: np.ndarray, z: np.ndarray) -> np.ndarray:
    """dz / da of a gamma variable z, at equal probability: -(dF / da) / (dF / dz), F(a, z) the probability of at most z.

    F is z^a exp(-z) times the sum of z^k / gamma(a + k + 1); so dF / da over the density is the sum of the terms
    z^(k + 1) gamma(a) / gamma(a + k + 1), each times log(z) - digamma(a + k + 1).
    """
    term, psi, total, k = z / a, digamma(from_numpy(np.asarray(a + 1, order="C"))).numpy(), np.zeros_like(z), 0
    log = np.log(z)
    while term.size and (term > 1e-18 * (1 + np.abs(total))).any():
        total = total - term * (log - psi)
        k += 1
        term, psi = term * z / (a + k), psi + 1 / (a + k)
    return total


def below(a: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The probability that a gamma variable of concentration a and rate 1 is at most z: by its series where z is below
    a + 1; elsewhere 1 less the continued fraction of what lies above (Lentz's way)."""
    a, z = np.broadcast_arrays(a, np.maximum(z, 0.0))
    with np.errstate(all="ignore"):
        front = np.exp(a * np.log(z) - z - lgamma(from_numpy(np.asarray(a, order="C"))).numpy())
        near, x = z < a + 1, np.where(z < a + 1, z, 0.0)
        term = total = 1 / a
        k = 0
        while (np.abs(term) > 1e-17 * np.abs(total)).any():
            k += 1
            term = term * x / (a + k)
            total = total + term
        x = np.where(near, a + 1, z)
        b = x + 1 - a
        c, d, h, k, moved = np.full_like(b, 1e300), 1 / b, 1 / b, 0, np.inf
        while np.nanmax(np.abs(np.subtract(moved, 1)), initial=0) > 1e-15 and k < 100000:
            k += 1
            b = b + 2
            turn = -k * (k - a)
            d, c = 1 / (turn * d + b), b + turn / c
            moved = c * d
            h = h * moved
        return np.where(z == np.inf, 1.0, np.where(z == 0, 0.0, np.where(near, front * total, 1 - front * h)))


class _Below(Function):
    """below(concentration, z), with its gradient: the density; and what keeps it equal while the concentration moves."""

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


class _Draw(Function):
    """Gamma variables of rate 1, one for each concentration, with the gradient of a variable that keeps its probability."""

    @staticmethod
    def forward(ctx, concentration):
        y = drawn_by_numpy("standard_gamma", concentration.shape, concentration)
        y = y.clamp(min=finfo(y.dtype).tiny)
        ctx.save_for_backward(concentration, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        a, y = (x.detach().double().cpu().numpy() for x in ctx.saved_tensors)
        return dy * beside(from_numpy(slope(a, y)), dy).to(dy.dtype)


def gamma_draw(concentration, shape):
    """Gamma variables of rate 1."""
    return _Draw.apply(concentration.expand(*shape))


class Gamma(Distribution):
    """The density rate^a x^(a - 1) exp(-rate x) / gamma(a), a the concentration."""

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
        return gamma_draw(self.concentration, self._extended_shape(sample_shape)) / self.rate

    def log_prob(self, value):
        x, a = self._checked(value), self.concentration
        return E.xlogy(a, self.rate) + E.xlogy(a - 1, x) - self.rate * x - a.lgamma()

    def cdf(self, value):
        a, z = broadcast_all(self.concentration, self._checked(value) * self.rate)
        return _Below.apply(a, z)

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()


class Chi2(Gamma):
    """The sum of `df` squares of standard normal variables."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args: bool | None = None):
        df, = broadcast_all(df)
        super().__init__(0.5 * df, 0.5, False)
        self.df, self._own = df, ("df",)
        Distribution.__init__(self, df.shape, (), validate_args)


def _log_norm(a):
    """The logarithm of what makes a Dirichlet density's integral 1."""
    return a.sum(-1).lgamma() - a.lgamma().sum(-1)


class Dirichlet(Distribution):
    """Over vectors of shares, which are not negative and sum to 1."""

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
        """Where every concentration is below 1, and the density infinite in every corner: the first corner."""
        a = (self.concentration - 1).clamp(min=0)
        total, corner = a.sum(-1, True), identity(a, a.shape[-1])[0]
        return E.where((self.concentration < 1).all(-1, True), corner, a / E.where(total == 0, 1.0, total))

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape=()):
        y = gamma_draw(self.concentration, self._extended_shape(sample_shape))
        return y / y.sum(-1, True)

    def log_prob(self, value):
        a = self.concentration
        return E.xlogy(a - 1, self._checked(value)).sum(-1) + _log_norm(a)

    def entropy(self):
        a = self.concentration
        total = a.sum(-1)
        return -_log_norm(a) - (a.shape[-1] - total) * total.digamma() - ((a - 1) * a.digamma()).sum(-1)


class Beta(Distribution):
    """Shares from 0 to 1, of density x^(concentration1 - 1) (1 - x)^(concentration0 - 1)."""

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
        """1 where both concentrations are below 1, and the density infinite at both ends; nan where both are 1."""
        a, b = self.concentration1 - 1, self.concentration0 - 1
        below, a, b = (a < 0) & (b < 0), a.clamp(min=0), b.clamp(min=0)
        return E.where(below, 1.0, a / (a + b))

    @property
    def variance(self):
        return self.concentration1 * self.concentration0 / (self._total.square() * (self._total + 1))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        x, y = (gamma_draw(a, shape) for a in (self.concentration1, self.concentration0))
        return x / (x + y)

    def _both(self):
        return stack([self.concentration1, self.concentration0], -1)

    def log_prob(self, value):
        x, a, b = self._checked(value), self.concentration1, self.concentration0
        return E.xlogy(a - 1, x) + E.xlogy(b - 1, 1 - x) + _log_norm(self._both())

    def entropy(self):
        a, b, total = self.concentration1, self.concentration0, self._total
        return -_log_norm(self._both()) - (a - 1) * a.digamma() - (b - 1) * b.digamma() + (total - 2) * total.digamma()
