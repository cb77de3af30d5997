"""MixtureSameFamily: one of several components, selected by a Categorical."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.distributions.categorical import Categorical
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.utils import as_size
from flowedu.errors import ArgumentError, ShapeError
from flowedu.tensor import no_grad


class MixtureSameFamily(Distribution):
    """Mixture of components of one family; log_prob sums over the components.

    Samples have no gradient, because the selection of a component is not smooth. log_prob has a gradient.

    Args:
        mixture_distribution: Categorical whose batch shape is that of the components without its last axis.
        component_distribution: distribution whose last batch axis has one component for each class of the
            Categorical.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    has_rsample = False

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution,
                 validate_args: bool | None = None):
        what = "MixtureSameFamily"
        for name, d, kind in (("mixture_distribution", mixture_distribution, Categorical),
                              ("component_distribution", component_distribution, Distribution)):
            if not isinstance(d, kind):
                raise ArgumentError(f"{what}: the {name} is none", expected=f"a {kind.__name__}",
                                    got=type(d).__name__,
                                    fix="a Categorical, and a distribution with one more axis in its batch")
        outer, batch = tuple(mixture_distribution.batch_shape), tuple(component_distribution.batch_shape)
        count = mixture_distribution.probs.shape[-1]
        if (not batch or batch[-1] != count or any(m != n and 1 not in (m, n)
                                                   for m, n in zip(outer[::-1], batch[-2::-1]))):
            raise ShapeError(f"{what}: the components do not fit the mixture", got=f"a batch {batch}",
                             expected=f"a batch {(*outer, count)}: the last axis has a component for "
                             f"each class", fix="component.expand(batch_shape)")
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        self._events = len(component_distribution.event_shape)
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    def expand(self, batch_shape: Sequence[int]) -> MixtureSameFamily:
        batch = as_size(batch_shape)
        count = self.component_distribution.batch_shape[-1]
        components = self.component_distribution.expand((*batch, count))
        mixture: Any = self.mixture_distribution.expand(batch)
        return MixtureSameFamily(mixture, components, validate_args=False)._validating(self)

    @property
    def support(self):
        return self.component_distribution.support

    def _weights(self):
        """Probabilities (..., components, 1 for each axis of an event)."""
        p = self.mixture_distribution.probs
        return p.reshape(*p.shape, *(1,) * self._events)

    @property
    def mean(self):
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._events)

    @property
    def variance(self):
        """The mean of the components' variances plus the variance of their means."""
        p, axis, mean = self._weights(), -1 - self._events, self.component_distribution.mean
        spread = mean - (p * mean).sum(axis, True)
        return (p * self.component_distribution.variance).sum(axis) + (p * spread.square()).sum(axis)

    def sample(self, sample_shape=()):
        with no_grad():
            which = self.mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            which = which.reshape(*which.shape, *(1,) * (1 + self._events))
            axis = drawn.ndim - 1 - self._events
            return drawn.gather(axis, which.expand(*which.shape[:axis + 1], *self.event_shape)).squeeze(axis)

    def _each(self, value):
        """Return the checked value with an axis for the components."""
        return self._checked(value).unsqueeze(-1 - self._events)

    def log_prob(self, x):
        logs = self.component_distribution.log_prob(self._each(x))
        return (logs + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def cdf(self, x):
        return (self.component_distribution.cdf(self._each(x)) * self.mixture_distribution.probs).sum(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution!r},\n  {self.component_distribution!r})"
