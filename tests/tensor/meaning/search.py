"""Reference for sorting, searching, gathering, and scattering: mostly loops over single elements."""
from collections import Counter

import numpy as np

from .kinds import T
from .reductions import Pair


def places(a, dim, descending):
    """Return the stable sorting order along an axis."""
    if not descending:
        return np.argsort(a, dim, kind="stable")
    return np.flip(a.shape[dim] - 1 - np.argsort(np.flip(a, dim), dim, kind="stable"), dim)


def argsort(x, dim=-1, descending=False, stable=False):
    return T(places(x.a, dim, descending))


def sort(x, dim=-1, descending=False, stable=False):
    order = places(x.a, dim, descending)
    return Pair(T(np.take_along_axis(x.a, order, dim), x.kind), T(order))


def msort(x):
    return T(np.sort(x.a, 0), x.kind)


def topk(x, k, dim=-1, largest=True, sorted=True):
    def cut(a):
        return np.take(a, range(k), dim)

    values, order = sort(x, dim, largest)
    return Pair(T(cut(values.a), x.kind), T(cut(order.a)))


def ranked(x, k, dim, keepdim):
    """Return the k-th smallest element along an axis, with k from 0, and its index."""
    values, order = sort(x, dim)
    at = [k] if keepdim else k
    return Pair(T(values.a.take(at, dim), x.kind), T(order.a.take(at, dim)))


def kthvalue(x, k, dim=-1, keepdim=False):
    return ranked(x, k - 1, dim, keepdim)


def median(x, dim=None, keepdim=False):
    """Return the lower of the two middle elements, or NaN and the index of the first NaN."""
    if dim is None:
        return T(np.sort(x.a.ravel())[(x.a.size - 1) // 2], x.kind)
    values, order = ranked(x, (x.shape[dim] - 1) // 2, dim, keepdim)
    nan = np.isnan(x.a) if x.a.dtype.kind == "f" else np.zeros(x.shape, bool)
    some, first = nan.any(dim, keepdims=keepdim), nan.argmax(dim)
    first = np.expand_dims(first, dim) if keepdim else first
    return Pair(T(np.where(some, np.nan, values.a) if some.any() else values.a, x.kind),
                T(np.where(some, first, order.a)))


def mode(x, dim=-1, keepdim=False):
    """Return the smallest of the most frequent elements, and its last index."""
    a = np.moveaxis(x.a, dim, -1)
    values, where = np.zeros(a.shape[:-1], a.dtype), np.zeros(a.shape[:-1], np.int64)
    for k in np.ndindex(*a.shape[:-1]):
        count = Counter(a[k].tolist())
        values[k] = min(v for v in count if count[v] == max(count.values()))
        where[k] = np.flatnonzero(a[k] == values[k])[-1]
    grown = (lambda b: np.expand_dims(b, dim)) if keepdim else (lambda b: b)
    return Pair(T(grown(values), x.kind), T(grown(where)))


def gather(x, dim, index):
    dim %= x.ndim
    out = np.zeros(index.shape, x.a.dtype)
    for k in np.ndindex(*index.shape):
        out[k] = x.a[(*k[:dim], index.a[k], *k[dim + 1:])]
    return T(out, x.kind)


REDUCE = {None: lambda old, new: new, "add": lambda old, new: old + new, "sum": lambda old, new: old + new,
          "multiply": lambda old, new: old * new, "prod": lambda old, new: old * new, "amax": max,
          "amin": min}


def scatter(x, dim, index, source, reduce=None, include_self=True):
    out, seen, dim = x.a.copy(), set(), dim % x.ndim
    for k in np.ndindex(*index.shape):
        at = (*k[:dim], index.a[k], *k[dim + 1:])
        new = source.a[k] if isinstance(source, T) else source
        out[at] = new if not include_self and at not in seen else REDUCE[reduce](out[at], new)
        seen.add(at)
    return T(out, x.kind)


def scatter_add(x, dim, index, source):
    return scatter(x, dim, index, source, "add")


def scatter_reduce(x, dim, index, source, reduce, include_self=True):
    return scatter(x, dim, index, source, reduce, include_self)


def index_select(x, dim, index):
    return T(np.take(x.a, index.a, dim), x.kind)


def rows(f):
    """Replace row index[k] of x, along an axis, by f(row, row k of the source)."""
    def function(x, dim, index, source, alpha=1):
        out = x.a.copy()
        moved = np.moveaxis(out, dim, 0)
        given = np.moveaxis(source.a, dim, 0) if isinstance(source, T) and source.ndim else None
        for k, at in enumerate(index.a):
            moved[at] = f(moved[at], source if given is None else given[k], alpha)
        return T(out, x.kind)
    return function


def take(x, index):
    return T(x.a.ravel()[index.a], x.kind)


def masked_select(x, mask):
    a, m = np.broadcast_arrays(x.a, mask.a)
    return T(a[m], x.kind)


def masked_fill(x, mask, value):
    return T(np.where(mask.a, np.asarray(value.a if isinstance(value, T) else value).astype(x.a.dtype), x.a),
             x.kind)


def masked_scatter(x, mask, source):
    out = x.a.copy()
    out[mask.a] = source.a.ravel()[:mask.a.sum()]
    return T(out, x.kind)


def nonzero(x, as_tuple=False):
    found = np.nonzero(x.a) if x.ndim else [np.zeros((int(x.a != 0)), np.int64)][:0]
    if not x.ndim:
        return T(np.zeros((int(x.a != 0), 0), np.int64))
    return tuple(map(T, found)) if as_tuple else T(np.stack(found, 1))


def unique(x, sorted=True, return_inverse=False, return_counts=False, dim=None):
    values, inverse, counts = np.unique(x.a, return_inverse=True, return_counts=True, axis=dim)
    more = [T(inverse.reshape(x.shape if dim is None else -1))] * return_inverse + [T(counts)] * return_counts
    return (T(values, x.kind), *more) if more else T(values, x.kind)


def unique_consecutive(x, return_inverse=False, return_counts=False, dim=0):
    new = np.r_[True, (x.a[1:] != x.a[:-1]).reshape(len(x.a) - 1, -1).any(1)]  # along dim 0, or of a vector
    counts = np.diff(np.r_[np.flatnonzero(new), len(x.a)])
    more = [T(np.cumsum(new) - 1)] * return_inverse + [T(counts)] * return_counts
    return (T(x.a[new], x.kind), *more) if more else T(x.a[new], x.kind)


def searchsorted(sequence, values, right=False, side=None, out_int32=False):
    """Return how many elements of the row are smaller (with right: not larger)."""
    less = np.less_equal if right or side == "right" else np.less
    values = values if isinstance(values, T) else T(values)
    row = sequence.a if sequence.ndim == 1 else sequence.a[..., None, :]
    return T(np.asarray(less(row, values.a[..., None]).sum(-1), "int32" if out_int32 else "int64"))


def bucketize(values, boundaries, right=False):
    return searchsorted(boundaries, values, right)


def bincount(x, weights=None, minlength=0):
    """Add up weights in their own dtype, or as float64."""
    counts = np.bincount(x.a, None if weights is None else weights.a, minlength)
    return T(counts.astype(np.float32) if weights is not None and weights.kind == "float32" else counts)


def isin(x, values, invert=False):
    return T(np.isin(*[v.a if isinstance(v, T) else v for v in (x, values)], invert=invert))


def histc(x, bins=100, min=0, max=0):
    return T(np.histogram(x.a, bins, (min, max) if min != max else None)[0].astype(x.kind))


def one_hot(x, num_classes=-1):
    return T(np.eye(x.a.max() + 1 if num_classes == -1 else num_classes, dtype=np.int64)[x.a])


def index_put(x, indices, values, accumulate=False):
    out, at = x.a.copy(), tuple(i.a for i in indices)
    if accumulate:
        np.add.at(out, at, values.a)
    else:
        out[at] = values.a
    return T(out, x.kind)


def in_top_k(targets, predictions, k):
    """Return True if fewer than k classes score above the target."""
    own = np.take_along_axis(predictions.a, targets.a[:, None], 1)
    return T((predictions.a > own).sum(1) < k)


FUNCTIONS = {f.__name__: f for f in (argsort, sort, msort, topk, kthvalue, median, mode, gather, scatter,
                                     scatter_add,
             scatter_reduce, index_select, take, masked_select, masked_fill, masked_scatter, nonzero, unique,
             unique_consecutive, searchsorted, bucketize, bincount, isin, histc, index_put, in_top_k)}
FUNCTIONS |= {"argwhere": nonzero, "index_add": rows(lambda old, new, alpha: old + alpha * new),
              "index_copy": rows(lambda old, new, alpha: new),
              "index_fill": rows(lambda old, new, alpha: new)}
