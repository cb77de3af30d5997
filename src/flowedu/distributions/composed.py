"""Distributions based on others: Independent, TransformedDistribution, and LogNormal."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.distributions import constraints
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.location_scale import Normal
from flowedu.distributions.transforms import ComposeTransform, ExpTransform, Transform, sum_rightmost
from flowedu.distributions.utils import as_size
from flowedu.errors import ArgumentError
from flowedu.tensor import no_grad


class Independent(Distribution):
    """Distribution that treats the last batch axes of another distribution as part of each event.

    log_prob sums over these axes.

    Args:
        base_distribution: the other distribution.
        reinterpreted_batch_ndims: number of batch axes that become event axes.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int,
                 validate_args: bool | None = None):
        n = reinterpreted_batch_ndims
        if not 0 <= n <= len(base_distribution.batch_shape):
            raise ArgumentError("Independent: reinterpreted_batch_ndims is out of range", got=str(n),
                                expected=f"0 to {len(base_distribution.batch_shape)}, the axes of the batch",
                                fix="reinterpreted_batch_ndims=1")
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        cut = len(base_distribution.batch_shape) - n
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        super().__init__(shape[:cut], shape[cut:], validate_args)

    def expand(self, batch_shape: Sequence[int]) -> Independent:
        n = self.reinterpreted_batch_ndims
        inner = self.base_dist.expand((*as_size(batch_shape), *self.event_shape[:n]))
        return Independent(inner, n, validate_args=False)._validating(self)

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @property
    def support(self):
        inner = self.base_dist.support
        return (constraints.independent(inner, self.reinterpreted_batch_ndims)
                if self.reinterpreted_batch_ndims else inner)

    @property
    def mean(self):
        return self.base_dist.mean

    @property
    def mode(self):
        return self.base_dist.mode

    @property
    def variance(self):
        return self.base_dist.variance

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """Distribution of transformed samples of a base distribution.

    Args:
        base_distribution: distribution of the samples before the transforms.
        transforms: a transform, or a list of transforms in order of application.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    def __init__(self, base_distribution: Distribution, transforms: Transform | Sequence[Transform],
                 validate_args: bool | None = None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ArgumentError("TransformedDistribution: this is no transform",
                                expected="a Transform, or a list of some",
                                got=repr(transforms), fix="flow.distributions.transforms has them")
        whole = ComposeTransform(self.transforms)
        own = len(base_distribution.event_shape)
        more = whole.domain.event_dim - own
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        base = (*base_distribution.batch_shape, *base_distribution.event_shape)
        shape = whole.forward_shape(base)
        events = max(whole.codomain.event_dim, own + whole.codomain.event_dim - whole.domain.event_dim)
        super().__init__(shape[:len(shape) - events], shape[len(shape) - events:], validate_args)

    def expand(self, batch_shape: Sequence[int]) -> TransformedDistribution:
        inner = self.base_dist.expand(as_size(batch_shape))
        return TransformedDistribution(inner, self.transforms, validate_args=False)._validating(self)

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @property
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        more = len(self.event_shape) - last.event_dim
        return constraints.independent(last, more) if more else last

    def sample(self, sample_shape=()):
        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._through(self.base_dist.rsample(sample_shape))

    def _through(self, x):
        for t in self.transforms:
            x = t(x)
        return x

    def log_prob(self, value):
        y, total, events = self._checked(value), 0.0, len(self.event_shape)
        for t in reversed(self.transforms):
            x = t.inv(y)
            events += t.domain.event_dim - t.codomain.event_dim
            total = total - sum_rightmost(t.log_abs_det_jacobian(x, y), events - t.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), events - len(self.base_dist.event_shape))

    def _sign(self):
        sign = 1
        for t in self.transforms:
            sign = sign * t.sign
        return sign

    def cdf(self, value):
        y = self._checked(value)
        for t in reversed(self.transforms):
            y = t.inv(y)
        return self._turned(self.base_dist.cdf(y))

    def icdf(self, value):
        return self._through(self.base_dist.icdf(self._turned(value)))

    def _turned(self, p):
        """p, of a falling transform 1 - p."""
        sign = self._sign()
        return p if isinstance(sign, int) and sign == 1 else sign * (p - 0.5) + 0.5

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.transforms!r})"


class LogNormal(TransformedDistribution):
    """Distribution of exp(x) for a normal x.

    Args:
        loc: mean of x.
        scale: standard deviation of x.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    arg_constraints = Normal.arg_constraints

    def __init__(self, loc, scale, validate_args: bool | None = None):
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    def expand(self, batch_shape: Sequence[int]) -> LogNormal:
        wide: Any = self.base_dist.expand(batch_shape)
        return LogNormal(wide.loc, wide.scale, validate_args=False)._validating(self)

    @property
    def loc(self):
        return self.base_dist.loc

    @property
    def scale(self):
        return self.base_dist.scale

    @property
    def mean(self):
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self):
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self):
        return self.scale.square().expm1() * (2 * self.loc + self.scale.square()).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc
