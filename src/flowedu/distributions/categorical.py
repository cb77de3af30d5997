"""Distributions over several outcomes: Categorical, OneHotCategorical, Multinomial, and relaxed ones."""
from __future__ import annotations

import math

import numpy as np

from flowedu.core.eager.arrays import from_numpy
from flowedu.core.ops.promote import cast
from flowedu.core.values.dtype import int64
from flowedu.distributions import constraints
from flowedu.distributions.discrete import Binomial, _OfTwo
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.special import in_double, poisson_term, safe_log, times, widen
from flowedu.distributions.utils import (
    as_size,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    numpy_generator,
    one_of,
    probs_to_logits,
    uniform,
)
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional import softplus
from flowedu.tensor import elementwise as E
from flowedu.tensor import no_grad
from flowedu.tensor.construction.creation import arange, eye
from flowedu.tensor.construction.random import multinomial
from flowedu.tensor.devices.conversion import beside, use_device_of
from flowedu.tensor.dtypes.numeric_limits import finfo
from flowedu.tensor.indexing.nonzero_positions import data


class _OfSeveral(Distribution):
    """`probs`, which need not sum to 1, or `logits`: the last axis is that of the outcomes."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _vector = True                                       # whether an event is a vector, not a number

    def __init__(self, probs=None, logits=None, validate_args: bool | None = None):
        name = one_of(type(self).__name__, probs=probs, logits=logits)
        given, = broadcast_all(probs if logits is None else logits)
        if not given.ndim:
            raise ShapeError(f"{type(self).__name__}: {name} has no axis",
                             expected="one axis or more; the last one is that of the outcomes",
                             got=str(given.shape), fix=f"{name}.unsqueeze(-1)")
        given = given - given.logsumexp(-1, True) if probs is None else given / given.sum(-1, True)
        self._with_parameters(validate_args, 1, **{name: given})
        if not self._vector:
            self._event_shape = as_size(())

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits)

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs)

    @property
    def param_shape(self):
        return getattr(self, self._own[0]).shape

    @property
    def _outcomes(self) -> int:
        return self.param_shape[-1]

    def _draw(self, sample_shape):
        """Draw the number of an outcome for each event."""
        n, batch = as_size(sample_shape), self._batch_shape
        drawn = (multinomial(self.probs.reshape(-1, self._outcomes), math.prod(n), True) if math.prod(n)
                 else self.probs)
        if not math.prod(n):
            return cast(drawn.reshape(-1)[:0], int64).reshape(*n, *batch)
        return drawn.t().reshape(*n, *batch)

    @in_double
    def entropy(self):
        p = widen(self.probs)
        return -times(p, widen(self.logits).clamp(min=finfo(self.logits.dtype).min)).sum(-1)


class Categorical(_OfSeveral):
    """Distribution of the int64 index of one of several outcomes.

    Args:
        probs: probabilities along the last axis, which need not sum to 1; default: None, use logits.
        logits: logarithms of the probabilities, up to an additive constant; default: None, use probs.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    has_enumerate_support = True
    _vector = False

    @property
    def support(self):
        return constraints.integer_interval(0, self._outcomes - 1)

    @property
    def mean(self):
        return self.probs.detach().sum(-1) * math.nan

    @property
    def variance(self):
        return self.mean

    @property
    def mode(self):
        return self.probs.argmax(-1)

    def sample(self, sample_shape=()):
        with no_grad():
            return self._draw(sample_shape)

    def log_prob(self, value):
        x = cast(self._checked(value), int64)
        shape = tuple((x.unsqueeze(-1) + cast(self.logits.detach()[..., :1] * 0, int64)).shape[:-1])
        logits = self.logits.expand(*shape, self._outcomes)
        return logits.gather(-1, x.expand(*shape).unsqueeze(-1)).squeeze(-1)

    def enumerate_support(self, expand: bool = True):
        n = self._outcomes
        with use_device_of(self.logits):
            values = arange(n).reshape(n, *(1,) * len(self._batch_shape))
        return values.expand(n, *self._batch_shape) if expand else values


def _one_hot(index, like):
    """1 at the index on a new last axis, of like's type and last axis."""
    with use_device_of(like):
        return cast(index.unsqueeze(-1) == arange(like.shape[-1]), like.dtype)


class OneHotCategorical(_OfSeveral):
    """Distribution of one of several outcomes as a one-hot vector.

    Args:
        probs: probabilities along the last axis, which need not sum to 1; default: None, use logits.
        logits: logarithms of the probabilities, up to an additive constant; default: None, use probs.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    support = constraints.one_hot
    has_enumerate_support = True

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return _one_hot(self.probs.argmax(-1), self.probs)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        with no_grad():
            return _one_hot(self._draw(sample_shape), self.probs)

    def log_prob(self, value):
        return Categorical(logits=self.logits, validate_args=False).log_prob(self._checked(value).argmax(-1))

    def enumerate_support(self, expand: bool = True):
        n = self._outcomes
        with use_device_of(self.probs):
            values = eye(n, dtype=self.probs.dtype).reshape(n, *(1,) * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose samples have the gradient of the probabilities.

    Args:
        probs: probabilities along the last axis, which need not sum to 1; default: None, use logits.
        logits: logarithms of the probabilities, up to an additive constant; default: None, use probs.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


_FEW = 1000            # total counts up to here are drawn one by one, which works in graphs


class Multinomial(_OfSeveral):
    """Distribution of the counts of the outcomes in total_count draws.

    Args:
        total_count: number of draws.
        probs: probabilities along the last axis, which need not sum to 1; default: None, use logits.
        logits: logarithms of the probabilities, up to an additive constant; default: None, use probs.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    def __init__(self, total_count: int = 1, probs=None, logits=None, validate_args: bool | None = None):
        if not isinstance(total_count, int):
            raise ArgumentError("Multinomial: inhomogeneous total_count is not supported", expected="an int",
                                got=repr(total_count), fix="a Multinomial for each total_count")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    def _more(self):
        return {"total_count": self.total_count}

    @property
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        n = as_size(sample_shape)
        with no_grad():
            if self.total_count > _FEW and not self.probs.is_lazy:
                return self._draw_counts(n)
            return _one_hot(self._draw((self.total_count, *n)), self.probs).sum(0)

    def _draw_counts(self, sample_shape):
        """Draw by NumPy, one binomial variable for each outcome."""
        p = data("Multinomial", self.probs).astype(np.float64)
        y = numpy_generator().multinomial(self.total_count, p / p.sum(-1, keepdims=True),
                                          (*sample_shape, *p.shape[:-1]))
        return cast(beside(from_numpy(y.astype(np.float64)), self.probs), self.probs.dtype)

    @in_double
    def log_prob(self, value):
        k, n = widen(self._checked(value)), float(self.total_count)
        if self._own[0] == "probs":
            p = widen(self.probs)
            # a sum of rounded probabilities is not 1: n times too much
            p = p / p.sum(-1, True)
            log_p = safe_log(p)
        else:
            log_p = widen(self.logits).log_softmax(-1)
            p = log_p.exp()
        log_n = math.log(n) if n else 0.0
        each = poisson_term(k, n * p, log_n + log_p, k - n * p)
        return each.sum(-1) - (n * log_n - n - math.lgamma(n + 1))

    def entropy(self):
        """Return the entropy, computed from the binomial distribution of each outcome's count."""
        counts = Binomial(self.total_count, probs=self.probs, validate_args=False)
        k = counts.enumerate_support(False)
        return (self.total_count * super().entropy() - math.lgamma(self.total_count + 1)
                + (counts.log_prob(k).exp() * (k + 1).lgamma()).sum((0, -1)))


# ---- relaxed: between the outcomes, the nearer to one of them the lower the temperature
class _Relaxed(Distribution):
    """A temperature in addition to the probabilities."""

    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args: bool | None = None):
        self.temperature, = broadcast_all(temperature)
        super().__init__(probs, logits, validate_args)

    def _more(self):
        return {"temperature": self.temperature}


class RelaxedBernoulli(_Relaxed, _OfTwo):
    """Relaxed Bernoulli distribution: sigmoid((logits + logistic noise) / temperature), in (0, 1).

    Args:
        temperature: temperature of the relaxation.
        probs: probability of 1; default: None, use logits.
        logits: log(p / (1 - p)); default: None, use probs.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    support = constraints.unit_interval

    def rsample(self, sample_shape=()):
        u = clamp_probs(uniform(self._extended_shape(sample_shape), self.probs))
        return ((self.logits + probs_to_logits(u, True)) / self.temperature).sigmoid()

    def log_prob(self, value):
        x = clamp_probs(self._checked(value))
        y = probs_to_logits(x, True)
        off = self.logits - y * self.temperature
        return self.temperature.log() + off - 2 * softplus(off) - x.log() - (-x).log1p()


class RelaxedOneHotCategorical(_Relaxed, _OfSeveral):
    """Relaxed one-hot distribution: softmax((logits + Gumbel noise) / temperature), in the simplex.

    Args:
        temperature: temperature of the relaxation.
        probs: probabilities along the last axis, which need not sum to 1; default: None, use logits.
        logits: logarithms of the probabilities, up to an additive constant; default: None, use probs.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    support = constraints.simplex

    def rsample(self, sample_shape=()):
        u = clamp_probs(uniform(self._extended_shape(sample_shape), self.probs))
        return ((self.logits - (-u.log()).log()) / self.temperature).softmax(-1)

    def log_prob(self, value):
        x, n = self._checked(value).clamp(min=finfo(self.logits.dtype).tiny).log(), self._outcomes
        score = self.logits - x * self.temperature
        score = (score - score.logsumexp(-1, True)).sum(-1)
        return score + math.lgamma(n) + (n - 1) * E.log(self.temperature) - x.sum(-1)
