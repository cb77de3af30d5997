"""Reductions of the standard, and functions that select, sort, and count elements."""
from __future__ import annotations

import builtins
from collections import namedtuple

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast
from flowedu.core.values.dtype import bool_ as bool
from flowedu.core.values.dtype import int64
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments import dims
from flowedu.tensor.arguments.types import Axes, Number
from flowedu.tensor.array_api.adapters import (
    call_reduction,
    make_reduction,
    make_running,
    make_spread,
    make_total,
    only_axis,
    promote,
)
from flowedu.tensor.indexing import nonzero_positions, sort_and_search
from flowedu.tensor.reductions import cumulative
from flowedu.tensor.reductions import reduce as R
from flowedu.tensor.shapes import join_and_pad as J
from flowedu.tensor.shapes import reshape_and_permute as S

argmax, argmin = make_reduction(R.argmax), make_reduction(R.argmin)
max, min, mean = make_reduction(R.amax), make_reduction(R.amin), make_reduction(R.mean)
all, any = (make_reduction(lambda x, *rest, f=f: f(cast(x, bool), *rest)) for f in (E.all, E.any))
prod, sum = make_total(R.prod), make_total(R.sum)
std, var = make_spread(R.std), make_spread(R.var)
cumulative_prod, cumulative_sum = make_running(cumulative.cumprod, 1), make_running(cumulative.cumsum, 0)


def count_nonzero(x: Tensor, /, *, axis: Axes | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Return the number of elements other than 0."""
    return call_reduction(R.sum, E.ne(x, 0), axis, keepdims)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """Return the n-th differences of neighbors along an axis."""
    return cumulative.diff(x, n, axis, prepend, append)


# ---- indices, order, sets
def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Return the elements at indices of an axis."""
    return x[(slice(None),) * (only_axis(axis, x) % x.ndim) + (cast(indices, int64),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the elements at an index of their own for each position along an axis."""
    return J.take_along_dim(x, cast(indices, int64) % x.shape[axis], axis)


def sort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False,
         stable: builtins.bool = True) -> Tensor:
    """Return x sorted along an axis."""
    return sort_and_search.sort(x, axis, descending, stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: builtins.bool = False,
            stable: builtins.bool = True) -> Tensor:
    """Return the indices that sort x along an axis."""
    return sort_and_search.argsort(x, axis, descending, stable)


def isin(x1: Tensor | Number, x2: Tensor | Number, /, *, invert: builtins.bool = False) -> Tensor:
    """Return True for each element of x1 that is in x2."""
    return sort_and_search.isin(*promote(x1, x2), invert=invert)


def searchsorted(x1: Tensor, x2: Tensor | Number, /, *, side: str = "left",
                 sorter: Tensor | None = None) -> Tensor:
    """Return the indices at which x2 can be inserted into the sorted array x1."""
    return sort_and_search.searchsorted(*promote(x1, x2), side=side, sorter=sorter)


unique_all_result = namedtuple("unique_all_result", "values indices inverse_indices counts")
unique_counts_result = namedtuple("unique_counts_result", "values counts")
unique_inverse_result = namedtuple("unique_inverse_result", "values inverse_indices")


def unique_counts(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the unique elements, and how often each occurs."""
    return unique_counts_result(*sort_and_search.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the unique elements, and the index of each element of x among them."""
    return unique_inverse_result(*sort_and_search.unique(x, return_inverse=True))


def unique_values(x: Tensor, /) -> Tensor:
    """Return the unique elements."""
    return sort_and_search.unique(x)


def unique_all(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the unique elements, the index where each first occurs, the inverse indices, and the counts."""
    values, inverse, counts = sort_and_search.unique(x, True, True, True)
    order = sort_and_search.argsort(S.ravel(inverse))
    return unique_all_result(values, order[cumulative.cumsum(counts, 0) - counts], inverse, counts)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the indices of the elements other than 0, an array per axis; raise AxisError if 0-dim."""
    dims.real_dim(0, x.ndim, "nonzero")
    return nonzero_positions.nonzero(x, as_tuple=True)
