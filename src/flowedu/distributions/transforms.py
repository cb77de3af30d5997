"""Transforms of random variables: invertible functions with the logarithm of their Jacobian determinant."""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from flowedu.distributions import constraints
from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.nn.functional import softplus
from flowedu.tensor import elementwise as E
from flowedu.tensor.shapes.join_and_pad import stack


def sum_rightmost(value, dim: int):
    """Return the sum over the last `dim` axes."""
    return value.sum(tuple(range(value.ndim - dim, value.ndim))) if dim else value


class Transform:
    """Base class of the transforms. A subclass defines _call, _inverse, and log_abs_det_jacobian(x, y).

    Attributes:
        domain: the constraint of x.
        codomain: the constraint of y.
        bijective: True if every y has exactly one x.
        sign: 1 for increasing functions, -1 for decreasing functions.

    Args:
        cache_size: accepted for compatibility.
    """

    bijective = False
    domain = codomain = constraints.real
    sign = 1

    def __init__(self, cache_size: int = 0):
        self.cache_size = cache_size

    @property
    def inv(self) -> Transform:
        """Inverse transform."""
        return _Inverse(self)

    def __call__(self, x):
        return self._call(x)

    def _call(self, x):
        raise self._none("_call")

    def _inverse(self, y):
        raise self._none("_inverse")

    def log_abs_det_jacobian(self, x, y):
        """Return log |det(dy / dx)| of each event."""
        raise self._none("log_abs_det_jacobian")

    def _none(self, what: str):
        return UnsupportedError(f"{type(self).__name__}: there is no {what}",
                                expected="a transform that has it",
                                got=type(self).__name__, fix=f"define {what} in a subclass")

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of y for a shape of x."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of x for a shape of y."""
        return tuple(shape)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """A transform the other way round."""

    def __init__(self, transform: Transform):
        super().__init__()
        self._transform = transform
        self.domain, self.codomain = transform.codomain, transform.domain
        self.bijective, self.sign = transform.bijective, transform.sign

    @property
    def inv(self) -> Transform:
        return self._transform

    def _call(self, x):
        return self._transform._inverse(x)

    def _inverse(self, y):
        return self._transform(y)

    def log_abs_det_jacobian(self, x, y):
        return -self._transform.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._transform.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._transform.forward_shape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Inverse) and self._transform == other._transform

    __hash__ = Transform.__hash__

    def __repr__(self) -> str:
        return f"{self._transform!r}.inv"


class _Plain(Transform):
    """One of a kind: two of them are equal."""

    bijective = True

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = Transform.__hash__


class ExpTransform(_Plain):
    """Transform y = exp(x).

    Args:
        cache_size: accepted for compatibility.
    """

    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class SigmoidTransform(_Plain):
    """Transform y = 1 / (1 + exp(-x)).

    Args:
        cache_size: accepted for compatibility.
    """

    codomain = constraints.unit_interval

    def _call(self, x):
        return x.sigmoid()

    def _inverse(self, y):
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x) - softplus(x)


class TanhTransform(_Plain):
    """Transform y = tanh(x).

    Args:
        cache_size: accepted for compatibility.
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        return 2 * (math.log(2) - x - softplus(-2 * x))


class SoftplusTransform(_Plain):
    """Transform y = log(1 + exp(x)).

    Args:
        cache_size: accepted for compatibility.
    """

    codomain = constraints.positive

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


class AbsTransform(_Plain):
    """Transform y = |x|; the inverse returns the nonnegative x.

    Args:
        cache_size: accepted for compatibility.
    """

    bijective = False
    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class SoftmaxTransform(_Plain):
    """Transform y = softmax(x); the inverse is the logarithm.

    Args:
        cache_size: accepted for compatibility.
    """

    bijective = False
    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        return x.softmax(-1)

    def _inverse(self, y):
        return y.log()


class PowerTransform(Transform):
    """Transform y = x^exponent of positive x.

    Args:
        exponent: number or tensor.
        cache_size: accepted for compatibility.
    """

    bijective = True
    domain = codomain = constraints.positive

    def __init__(self, exponent, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = exponent

    def _call(self, x):
        return x ** self.exponent

    def _inverse(self, y):
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()


def _is_equal(a, b) -> bool:
    """Return True if two numbers are equal, or all elements of two tensors."""
    return bool((a == b).all()) if hasattr(a == b, "all") else a == b


class AffineTransform(Transform):
    """Transform y = loc + scale * x.

    Args:
        loc: number or tensor.
        scale: number or tensor.
        event_dim: number of last axes that form one event.
        cache_size: accepted for compatibility.
    """

    bijective = True

    def __init__(self, loc, scale, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim
        self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    @property
    def sign(self):
        return E.sign(self.scale) if hasattr(self.scale, "sign") else (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        size = self.scale.abs().log() if hasattr(self.scale, "log") else math.log(abs(self.scale))
        return sum_rightmost(x * 0 + size, self.event_dim)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, AffineTransform) and _is_equal(self.loc, other.loc)
                and _is_equal(self.scale, other.scale))

    __hash__ = Transform.__hash__


class ComposeTransform(Transform):
    """Composition of transforms.

    Args:
        parts: transforms, in order of application.
        cache_size: accepted for compatibility.
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = list(parts)
        self.bijective = all(p.bijective for p in parts)

    def _dims(self) -> tuple[int, int]:
        """How many axes an event has before, and behind."""
        before = behind = 0
        for p in reversed(self.parts):
            before = max(p.domain.event_dim, before + p.domain.event_dim - p.codomain.event_dim)
        for p in self.parts:
            behind = max(p.codomain.event_dim, behind + p.codomain.event_dim - p.domain.event_dim)
        return before, behind

    @property
    def domain(self):
        first = self.parts[0].domain if self.parts else constraints.real
        return constraints.independent(first, self._dims()[0] - first.event_dim) if self._dims()[
            0] > first.event_dim else first

    @property
    def codomain(self):
        last = self.parts[-1].codomain if self.parts else constraints.real
        return constraints.independent(last, self._dims()[1] - last.event_dim) if self._dims()[
            1] > last.event_dim else last

    @property
    def sign(self):
        return functools.reduce(lambda a, b: a * b, (p.sign for p in self.parts), 1)

    def _call(self, x):
        for p in self.parts:
            x = p(x)
        return x

    def _inverse(self, y):
        for p in reversed(self.parts):
            y = p._inverse(y)
        return y

    def log_abs_det_jacobian(self, x, y):
        total, events = x * 0, self.domain.event_dim
        total = sum_rightmost(total, events)
        for p in self.parts:
            y = p(x)
            total = total + sum_rightmost(p.log_abs_det_jacobian(x, y), events - p.domain.event_dim)
            events += p.codomain.event_dim - p.domain.event_dim
            x = y
        return total

    def forward_shape(self, shape):
        return functools.reduce(lambda s, p: p.forward_shape(s), self.parts, tuple(shape))

    def inverse_shape(self, shape):
        return functools.reduce(lambda s, p: p.inverse_shape(s), reversed(self.parts), tuple(shape))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


class IndependentTransform(Transform):
    """Transform whose last batch axes are part of each event. Log-determinants are summed over these axes.

    Args:
        base_transform: transform of the elements.
        reinterpreted_batch_ndims: number of batch axes that become event axes.
        cache_size: accepted for compatibility.
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims
        self.bijective, self.sign = base_transform.bijective, base_transform.sign
        self.domain = constraints.independent(base_transform.domain, reinterpreted_batch_ndims)
        self.codomain = constraints.independent(base_transform.codomain, reinterpreted_batch_ndims)

    def _call(self, x):
        return self.base_transform(x)

    def _inverse(self, y):
        return self.base_transform._inverse(y)

    def log_abs_det_jacobian(self, x, y):
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)


class StackTransform(Transform):
    """Different transforms for the positions along an axis.

    Args:
        tseq: transforms, one per position.
        dim: the axis.
        cache_size: accepted for compatibility.
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.bijective = all(t.bijective for t in tseq)

    def _each(self, f, *xs):
        parts = [x.unbind(self.dim) for x in xs]
        if any(len(p) != len(self.transforms) for p in parts):
            raise ArgumentError("StackTransform: not a transform for each place",
                                expected=f"{len(self.transforms)} places",
                                got=str([tuple(x.shape) for x in xs]),
                                fix=f"dim={self.dim} is the axis of the places")
        return stack([f(t, *args) for t, *args in zip(self.transforms, *parts)], self.dim)

    def _call(self, x):
        return self._each(lambda t, x: t(x), x)

    def _inverse(self, y):
        return self._each(lambda t, y: t._inverse(y), y)

    def log_abs_det_jacobian(self, x, y):
        return self._each(lambda t, x, y: t.log_abs_det_jacobian(x, y), x, y)


identity_transform = ComposeTransform([])
