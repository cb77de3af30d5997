"""Discrete distributions: Bernoulli, Geometric, Binomial, and Poisson."""
from __future__ import annotations

import math

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast
from flowedu.core.values.dtype import int64
from flowedu.distributions import constraints
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.special import (
    deviance,
    in_double,
    poisson_term,
    safe_log,
    safe_log1p,
    times,
    widen,
)
from flowedu.distributions.utils import (
    broadcast_all,
    draw_by_numpy,
    lazy_property,
    logits_to_probs,
    one_of,
    probs_to_logits,
    uniform,
)
from flowedu.errors import UnsupportedError
from flowedu.tensor import elementwise as E
from flowedu.tensor import no_grad
from flowedu.tensor.construction.creation import arange
from flowedu.tensor.construction.random import poisson
from flowedu.tensor.devices.conversion import use_device_of


class _OfTwo(Distribution):
    """`probs`, the probability of a 1, or `logits`, log(p / (1 - p)): one is given, the other worked out."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, probs=None, logits=None, validate_args: bool | None = None):
        name = one_of(type(self).__name__, probs=probs, logits=logits)
        self._with_parameters(validate_args, **{name: probs if logits is None else logits})

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, True)

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, True)

    @property
    def param_shape(self):
        return getattr(self, self._own[-1]).shape

    def probabilities(self):
        """Return (p, 1 - p, log(p), log(1 - p)) in float64."""
        if self._own[-1] == "probs":
            p = widen(self.probs)
            return p, 1 - p, safe_log(p), safe_log1p(-p)
        x = widen(self.logits)
        return x.sigmoid(), (-x).sigmoid(), -E.softplus(-x), -E.softplus(x)

    def _entropy_of_one(self):
        p, rest, log_p, log_rest = self.probabilities()
        return -times(p, log_p) - times(rest, log_rest)


def bernoulli_divergence(p, q):
    """Return the divergence of two Bernoulli distributions, without underflow.

    p and q are the results of their methods `probabilities()`.
    """
    a, rest_a, log_a, log_rest_a = p
    b, rest_b, log_b, log_rest_b = q
    gap = a - b
    return deviance(a, b, gap, log_a, log_b) + deviance(rest_a, rest_b, -gap, log_rest_a, log_rest_b)


class Bernoulli(_OfTwo):
    """Bernoulli distribution: 1 with probability p, else 0.

    Args:
        probs: probability of 1; default: None, use logits.
        logits: log(p / (1 - p)); default: None, use probs.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    support = constraints.boolean
    has_enumerate_support = True

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        y = cast(self.probs >= 0.5, self.probs.dtype)
        return E.where(self.probs == 0.5, math.nan, y)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        with no_grad():
            return cast(uniform(self._extended_shape(sample_shape), self.probs) < self.probs,
                        self.probs.dtype)

    @in_double
    def log_prob(self, value):
        x = widen(self._checked(value))
        log_p, log_rest = self.probabilities()[2:]
        return times(x, log_p) + times(1 - x, log_rest)

    @in_double
    def entropy(self):
        return self._entropy_of_one()

    def enumerate_support(self, expand: bool = True):
        return _whole(self, 2, expand)


def _whole(d: _OfTwo, n: int, expand: bool):
    """0 to n - 1 along a first axis, of the type of the probabilities; expand: for each of the batch."""
    with use_device_of(d.probs):
        values = arange(n, dtype=d.probs.dtype).reshape(n, *(1,) * len(d.batch_shape))
    return values.expand(n, *d.batch_shape) if expand else values


class Geometric(_OfTwo):
    """Distribution of the number k of failures before the first success: (1 - p)^k p.

    Args:
        probs: probability of 1; default: None, use logits.
        logits: log(p / (1 - p)); default: None, use probs.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args: bool | None = None):
        super().__init__(probs, logits, validate_args)
        if self._validate_args:
            self._check_parameter("probs", constraints.greater_than(0.0))

    @property
    def mean(self):
        return 1 / self.probs - 1

    @property
    def mode(self):
        return self.probs.detach() * 0

    @property
    def variance(self):
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape=()):
        with no_grad():
            return (uniform(self._extended_shape(sample_shape),
                            self.probs).log() / (-self.probs).log1p()).floor()

    @in_double
    def log_prob(self, value):
        _, _, log_p, log_rest = self.probabilities()
        return times(widen(self._checked(value)), log_rest) + log_p

    @in_double
    def entropy(self):
        p, rest, log_p, log_rest = self.probabilities()
        return -log_p - times(rest, log_rest) / p


class Binomial(_OfTwo):
    """Binomial distribution: the number of ones among total_count draws.

    Args:
        total_count: number of draws.
        probs: probability of 1; default: None, use logits.
        logits: log(p / (1 - p)); default: None, use probs.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, **_OfTwo.arg_constraints}
    has_enumerate_support = True
    total_count: Tensor

    def __init__(self, total_count=1, probs=None, logits=None, validate_args: bool | None = None):
        name = one_of("Binomial", probs=probs, logits=logits)
        given, total = broadcast_all(probs if logits is None else logits, total_count)
        self._with_parameters(validate_args, total_count=cast(total, given.dtype), **{name: given})

    @property
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return E.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        with no_grad():
            y = draw_by_numpy("binomial", self._extended_shape(sample_shape), cast(self.total_count, int64),
                              self.probs)
            return cast(y, self.probs.dtype)

    @in_double
    def log_prob(self, value):
        k, n = widen(self._checked(value)), widen(self.total_count)
        p, rest, log_p, log_rest = self.probabilities()
        log_n, gap = safe_log(n), k * rest - (n - k) * p                       # gap = k - n p
        ones, zeros = n * p, n * rest
        return (poisson_term(k, ones, log_n + log_p, gap) + poisson_term(n - k, zeros, log_n + log_rest, -gap)
                - poisson_term(n, n, log_n, n * 0))

    def _one_count(self) -> int:
        total = int(self.total_count.max().item())
        if not bool((self.total_count == total).all()):
            raise UnsupportedError("Binomial: its values differ in number",
                                   expected="one total_count for all",
                                   got=str(self.total_count), fix="a Binomial for each total_count")
        return total

    def entropy(self):
        p = self.log_prob(self.enumerate_support(False))
        return -(p.exp() * p).sum(0)

    def enumerate_support(self, expand: bool = True):
        return _whole(self, 1 + self._one_count(), expand)


class Poisson(Distribution):
    """Poisson distribution of a count k: rate^k exp(-rate) / k!.

    Args:
        rate: mean.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args: bool | None = None):
        self._with_parameters(validate_args, rate=rate)

    @property
    def mean(self):
        return self.rate

    @property
    def mode(self):
        return self.rate.floor()

    @property
    def variance(self):
        return self.rate

    def sample(self, sample_shape=()):
        with no_grad():
            return poisson(self.rate.expand(*self._extended_shape(sample_shape)))

    @in_double
    def log_prob(self, value):
        k, rate = widen(self._checked(value)), widen(self.rate)
        return poisson_term(k, rate, safe_log(rate), k - rate)


