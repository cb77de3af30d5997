"""Functions for log-densities, entropies, and divergences, without differences of large terms.

The textbook formulas subtract values of lgamma from each other, or logarithms of nearly equal numbers. For
large parameters these differences lose all digits. For example, lgamma(1e8) is 1.7e9, and the next float32
number is 128 larger. In the formulas here, the large terms have been canceled analytically. The formulas are
computed in float64 and follow Loader (Fast and accurate computation of binomial probabilities, 2000). They
are composed of ops, so they have gradients of every order.

For float32 parameters, the error of a result y is at most 2^-23 |y| + 2^-36. The first term is the rounding
of y to float32. The second term is the rounding error of the float64 terms, about ten logarithms of at most
104. `tests/distributions/test_precision.py` checks this bound against decimal arithmetic.
"""
from __future__ import annotations

import functools
import math

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.ops.promote import cast, default_float
from flowedu.core.values.dtype import float64
from flowedu.tensor import elementwise as E
from flowedu.tensor.dtypes.promotion import promote_types

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_STIRLING_FROM = 10.0            # from here on, 8 terms of Stirling's series are exact to 2e-18
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_NEAR = 0.1                      # |x - m| / (x + m) below which the deviance is computed by its series


def in_double(f):
    """Decorate a function that computes in float64, so that its result has the dtype of the arguments.

    Arguments are tensors and distributions. The parameters of a distribution count as arguments.
    """
    @functools.wraps(f)
    def run(*args):
        tensors = [x for x in args if isinstance(x, TensorBase)]
        tensors += [getattr(d, name) for d in args for name in getattr(d, "_own", ())]
        floats = [x.dtype for x in tensors if x.dtype.is_floating_point]
        return cast(f(*args), functools.reduce(promote_types, floats or [default_float()]))
    return run


def widen(x):
    """Return a tensor in float64."""
    return cast(x, float64)


def safe_log(x):
    """Return log(x), with gradient 0 instead of infinity where x is 0."""
    positive = x > 0
    return E.where(positive, E.where(positive, x, 1.0).log(), E.where(x == 0, -math.inf, math.nan))


def safe_log1p(x):
    """Return log(1 + x), with gradient 0 instead of infinity where x is -1."""
    inside = x != -1
    return E.where(inside, E.where(inside, x, 0.0).log1p(), -math.inf)


def log_ratio(x, y):
    """Return log(x / y) of positive numbers without the rounding error of the quotient x / y."""
    gap = (x - y) / y
    near = gap.abs() < 0.5
    return E.where(near, E.where(near, gap, 0.0).log1p(), x.log() - y.log())


def times(x, log):
    """Return x * log, or 0 where x is 0 and `log` is not finite."""
    return x * E.where((x == 0) & ~log.isfinite(), 0.0, log)


def deviance(x, m, gap=None, log_x=None, log_m=None):
    """Return x log(x / m) - x + m, the divergence of Poisson variables with means x and m.

    The result is never negative.

    Args:
        x, m: nonnegative numbers, float64.
        gap: x - m, for callers that can compute it more precisely than by subtraction.
        log_x, log_m: the logarithms of x and m, for callers whose x or m may underflow.
    """
    gap = x - m if gap is None else gap
    total = x + m
    near = gap.abs() < _NEAR * total
    x_near, v = E.where(near, x, 0.0), E.where(near, gap, 0.0) / E.where(near, total, 1.0)
    square, tail = v * v, 0.0
    for k in range(17, 1, -2):                    # 2 x (atanh(v) - v), to v^17: 0.1^18 is below 2^-53
        tail = (tail + 1 / k) * square
    direct = times(x, (safe_log(x) if log_x is None else log_x) - (safe_log(m) if log_m is None
                                                                   else log_m)) - gap
    return E.where(near, E.where(near, gap, 0.0) * v + 2 * x_near * v * tail, direct)


def excess(ratio):
    """Return ratio - 1 - log(ratio)."""
    return deviance(ratio * 0 + 1, ratio)


def log1p_excess(u):
    """Return log(1 + u) - u."""
    return -deviance(u * 0 + 1, 1 + u, -u, u * 0, u.log1p())


def _series(x):
    """Return the correction of Stirling's formula for x from _STIRLING_FROM on, and its derivative."""
    r = x.reciprocal()
    square, value, slope = r * r, 0.0, 0.0
    for k in range(len(_STIRLING) - 1, -1, -1):
        value = value * square + _STIRLING[k]
        slope = slope * square - (2 * k + 1) * _STIRLING[k]
    return value * r, slope * square


def stirling(x):
    """Return lgamma(x) - ((x - 1/2) log(x) - x + log(2 pi) / 2), which tends to 1 / (12 x)."""
    large = x >= _STIRLING_FROM
    small = E.where(large, 1.0, x)
    direct = small.lgamma() - (small - 0.5) * small.log() + small - HALF_LOG_2PI
    return E.where(large, _series(E.where(large, x, _STIRLING_FROM))[0], direct)


def stirling_slope(x):
    """Return the derivative of stirling."""
    large = x >= _STIRLING_FROM
    small = E.where(large, 1.0, x)
    direct = small.digamma() - small.log() + 0.5 / small
    return E.where(large, _series(E.where(large, x, _STIRLING_FROM))[1], direct)


def poisson_term(k, m, log_m, gap):
    """Return k log(m) - m - lgamma(k + 1).

    Args:
        k, m: nonnegative numbers, float64.
        log_m: log(m), which may be finite where m underflows.
        gap: k - m.
    """
    near = gap.abs() < _NEAR * (k + m)
    safe = E.where(near, k, 1.0)
    close = deviance(safe, E.where(near, m, 1.0), E.where(near, gap, 0.0)) + 0.5 * safe.log() + stirling(safe)
    return E.where(near, -close - HALF_LOG_2PI, times(k, log_m) - m - (k + 1).lgamma())


def log_beta(a, b):
    """Return lgamma(a) + lgamma(b) - lgamma(a + b)."""
    n = a + b
    return (-a * (b / a).log1p() - b * (a / b).log1p() + 0.5 * (n.log() - a.log() - b.log()) + HALF_LOG_2PI
            + stirling(a) + stirling(b) - stirling(n))


def lgamma_bregman(b, a):
    """Return lgamma(b) - lgamma(a) - (b - a) digamma(a) - deviance(b, a), which is never negative."""
    return 0.5 * excess(b / a) + stirling(b) - stirling(a) - (b - a) * stirling_slope(a)
