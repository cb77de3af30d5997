"""Reference for reductions and for functions along an axis."""
import math
from collections import namedtuple

import numpy as np

from .kinds import T, as_kind, category, operate, wide

Pair = namedtuple("Pair", "values indices")


def axes(dim):
    return tuple(dim) if isinstance(dim, (tuple, list)) else dim


def reduction(f, kind_of=lambda k: k):
    """Wrap f(array, axis=, keepdims=) as a function of (x, dim, keepdim, dtype); () stands for all axes."""
    def function(x, dim=None, keepdim=False, dtype=None):
        kind = dtype or kind_of(x.kind)
        return as_kind(f(x.a.astype(wide(kind)), axis=axes(dim) if dim != () else None, keepdims=keepdim),
                       kind)
    return function


def counting(kind):
    return kind if category(kind) == 2 else "int64"


def truth(f):
    return lambda x, dim=None, keepdim=False: T(f(x.a != 0, axis=axes(dim), keepdims=keepdim))


def logsumexp(x, dim, keepdim=False):
    with np.errstate(all="ignore"):
        top = x.a.max(axes(dim), keepdims=True)
        top = np.where(np.isfinite(top), top, 0)
        y = np.log(np.exp(x.a - top).sum(axes(dim), keepdims=True)) + top
    return as_kind(y if keepdim else y.squeeze(axes(dim)), x.kind)


FUNCTIONS = {"sum": reduction(np.sum, counting), "prod": reduction(np.prod, counting),
             "mean": reduction(np.mean),
             "nansum": reduction(np.nansum), "nanmean": reduction(np.nanmean), "amax": reduction(np.max),
             "amin": reduction(np.min), "any": truth(np.any), "all": truth(np.all), "logsumexp": logsumexp}


def place(best):
    def function(x, dim=None, keepdim=False):
        a = best(x.a, axis=dim, keepdims=keepdim)
        return T(np.asarray(a, np.int64))
    return function


def extreme(reduce, best):
    def function(x, dim=None, keepdim=False):
        if isinstance(dim, T):
            return T(np.where(reduce([x.a, dim.a], axis=0) == x.a, x.a, dim.a), x.kind)
        if dim is None:
            return T(reduce(x.a), x.kind)
        return Pair(T(reduce(x.a, axis=dim, keepdims=keepdim), x.kind), place(best)(x, dim, keepdim))
    return function


FUNCTIONS |= {"argmax": place(np.argmax), "argmin": place(np.argmin), "max": extreme(np.max, np.argmax),
              "min": extreme(np.min, np.argmin)}


def aminmax(x, dim=None, keepdim=False):
    return FUNCTIONS["amin"](x, dim, keepdim), FUNCTIONS["amax"](x, dim, keepdim)


def var(x, dim=None, unbiased=True, keepdim=False, correction=None):
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    less = int(unbiased) if correction is None else correction
    return operate(lambda a: np.var(a, axis=axes(dim), ddof=less, keepdims=keepdim), x)


def std(x, *args, **kwargs):
    return operate(np.sqrt, var(x, *args, **kwargs))


def var_mean(x, *args, **kwargs):
    return var(x, *args, **kwargs), FUNCTIONS["mean"](x, *args)


def std_mean(x, *args, **kwargs):
    return std(x, *args, **kwargs), FUNCTIONS["mean"](x, *args)


def vector_norm(x, ord=2, dim=None, keepdim=False):
    a = np.abs(x.a)
    ord = 2 if ord == "fro" else ord
    if abs(ord) == float("inf"):
        return T((a.max if ord > 0 else a.min)(axes(dim), keepdims=keepdim))
    if ord == 0:
        return T(np.asarray((a != 0).sum(axes(dim), keepdims=keepdim), a.dtype))
    return T((a ** ord).sum(axes(dim), keepdims=keepdim) ** (1 / ord))


def matrix_norm(x, ord="fro", keepdim=False):
    return T(np.linalg.norm(x.a, ord, (-2, -1), keepdim))


def linalg_norm(x, ord=None, dim=None):
    return vector_norm(x, 2, dim) if ord is None else matrix_norm(x, ord)


def renorm(x, p, dim, maxnorm):
    other = tuple(d for d in range(x.ndim) if d != dim)
    norm = vector_norm(x, p, other, True).a
    return T(np.where(norm > maxnorm, x.a * (maxnorm / (norm + 1e-7)), x.a))


def count_nonzero(x, dim=None):
    return T(np.asarray(np.count_nonzero(x.a, axes(dim)), np.int64))


def running(f, kind_of=counting):
    return lambda x, dim, dtype=None: operate(lambda a: f(a, axis=dim).reshape(a.shape), x,
                                              kind=dtype or kind_of(x.kind))


def cumextreme(better):
    """Return the running maximum or minimum and the index of its last occurrence so far."""
    def function(x, dim):
        a = np.moveaxis(x.a, dim, 0) if x.ndim else x.a[None]
        values, places = a.copy(), np.zeros(a.shape, np.int64)
        for k in range(1, len(a)):
            new = better(a[k], values[k - 1])
            values[k], places[k] = np.where(new, a[k], values[k - 1]), np.where(new, k, places[k - 1])
        back = (lambda b: np.moveaxis(b, 0, dim)) if x.ndim else (lambda b: b[0])
        return Pair(T(back(values)), T(back(places)))
    return function


FUNCTIONS |= {"cumsum": running(np.cumsum), "cumprod": running(np.cumprod),
              "cummax": cumextreme(np.greater_equal),
              "cummin": cumextreme(np.less_equal), "logcumsumexp": running(np.logaddexp.accumulate,
                                                                           lambda k: k)}


def diff(x, n=1, dim=-1, prepend=None, append=None):
    more = {k: v.a for k, v in (("prepend", prepend), ("append", append)) if v is not None}
    return T(np.diff(x.a, n=n, axis=dim, **more), x.kind)


def trapezoid(y, x=None, dx=1.0, dim=-1):
    a = np.moveaxis(y.a, dim, -1)
    return T(((a[..., 1:] + a[..., :-1]) / 2 * (dx if x is None else np.diff(x.a))).sum(-1))


def quantile(x, q, dim=None, keepdim=False, interpolation="linear"):
    """Interpolate between two sorted elements. An infinity next to the position is ignored; a NaN anywhere
    gives NaN.
    """
    q = np.asarray(q.a if isinstance(q, T) else q)
    a = np.sort(x.a.ravel() if dim is None else np.moveaxis(x.a, dim, -1), -1)

    def one(q):
        place = q * (a.shape[-1] - 1)
        low, high = math.floor(place), math.ceil(place)
        weight = {"linear": place - low, "lower": 0, "higher": high - low, "midpoint": (high - low) / 2,
                  "nearest": round(place) - low}[interpolation]
        y = a[..., low] if low == high or not weight else a[..., low] + (a[..., high] - a[..., low]) * weight
        return np.where(np.isnan(x.a).any() if dim is None else np.isnan(a).any(-1), np.nan, y)

    y = np.stack([one(v) for v in q.ravel()]).reshape((*q.shape, *a.shape[:-1]))
    return T(y if not keepdim else y.reshape([1] * x.ndim) if dim is None
             else np.expand_dims(y, dim % x.ndim + q.ndim))


def cov(x, correction=1, fweights=None, aweights=None):
    kind = x.kind if category(x.kind) == 2 else "float32"
    seen, counts = (None if w is None else w.a for w in (fweights, aweights))
    if seen is None:
        return as_kind(np.cov(x.a, ddof=correction, aweights=counts), kind)
    rows = np.repeat(x.a, seen, -1)                            # repeat each observation by its frequency
    return as_kind(np.cov(rows, ddof=correction, aweights=None if counts is None
                          else np.repeat(counts, seen)), kind)


def corrcoef(x):
    return as_kind(np.corrcoef(x.a), x.kind)


FUNCTIONS |= {f.__name__: f for f in (aminmax, var, std, var_mean, std_mean, renorm, count_nonzero, diff,
                                      trapezoid, quantile, cov, corrcoef)}
FUNCTIONS["norm"] = lambda x, p=2, dim=None, keepdim=False: vector_norm(x, p, dim, keepdim)
LINALG = {"vector_norm": vector_norm, "matrix_norm": matrix_norm, "norm": linalg_norm}
