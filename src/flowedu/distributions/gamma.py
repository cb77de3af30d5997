"""Gamma and what is made of gamma variables: Chi2, Beta, Dirichlet.

A gamma variable is drawn by rejection (NumPy's), and so is no function of its concentration that could be differentiated:
rsample refuses a concentration that needs a gradient. A rate's gradient is there.
"""
from __future__ import annotations

from flowedu.core.eager.dispatch import is_grad_enabled
from flowedu.distributions import constraints
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.utils import broadcast_all, drawn_by_numpy
from flowedu.errors import UnsupportedError
from flowedu.tensor import elementwise as E
from flowedu.tensor.factors import identity
from flowedu.tensor.joining import stack
from flowedu.tensor.limits import finfo


def gamma_draw(what: str, concentration, shape):
    """Gamma variables of rate 1."""
    if is_grad_enabled() and concentration.requires_grad:
        raise UnsupportedError(f"{what}.rsample: a gamma variable has no gradient by its concentration here",
                               expected="a concentration without a gradient", got="requires_grad=True",
                               fix="d.sample(), and the gradient of d.log_prob(x); or concentration.detach()")
    y = drawn_by_numpy("standard_gamma", shape, concentration)
    return y.clamp(min=finfo(y.dtype).tiny)


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
        return gamma_draw(type(self).__name__, self.concentration, self._extended_shape(sample_shape)) / self.rate

    def log_prob(self, value):
        x, a = self._checked(value), self.concentration
        return E.xlogy(a, self.rate) + E.xlogy(a - 1, x) - self.rate * x - a.lgamma()

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
        y = gamma_draw("Dirichlet", self.concentration, self._extended_shape(sample_shape))
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
        x, y = (gamma_draw("Beta", a, shape) for a in (self.concentration1, self.concentration0))
        return x / (x + y)

    def _both(self):
        return stack([self.concentration1, self.concentration0], -1)

    def log_prob(self, value):
        x, a, b = self._checked(value), self.concentration1, self.concentration0
        return E.xlogy(a - 1, x) + E.xlogy(b - 1, 1 - x) + _log_norm(self._both())

    def entropy(self):
        a, b, total = self.concentration1, self.concentration0, self._total
        return -_log_norm(self._both()) - (a - 1) * a.digamma() - (b - 1) * b.digamma() + (total - 2) * total.digamma()
