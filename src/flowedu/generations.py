"""Names that both generations have: `flow.transpose` takes a blob and a permutation, or a tensor and two axes.

`both` picks by what comes in. A tensor among the arguments: the tensor function, unless the call can only mean the older
one (a keyword or an argument that only OneFlow 0.4 knows: perm=, axis=, "DESCENDING"). A blob, or a job body and no tensor:
the blob function. Outside jobs, what makes tensors of nothing (zeros, eye) is the tensor function's.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from flowedu import array_ops, index_ops, math, matrix_ops, shape_ops, sort_ops
from flowedu.blob.blob import BlobDef
from flowedu.blob.dtype import bool_, dtype
from flowedu.context import current
from flowedu.ops.core import TensorBase
from flowedu.tensor import creation, elementwise, joining, linear, scatters, search, shapes


def _keywords(f: Callable) -> tuple[frozenset, float]:
    """(the names of its parameters, how many positional arguments it takes)"""
    parameters = inspect.signature(f).parameters.values()
    star = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    return frozenset(p.name for p in parameters), float("inf") if star else count


def both(blob_function: Callable, tensor_function: Callable, older: Callable[[tuple], bool] | None = None) -> Callable:
    """One function of two. `older(args)`: whether a call with a tensor in front still means the blob function."""
    names, most = _keywords(tensor_function)

    def fits(args, kwargs) -> bool:
        return not (kwargs and not kwargs.keys() <= names or len(args) > most or older is not None and older(args))

    def choose(args, kwargs):
        first = args[0] if args else None
        if type(first) is tuple and first:
            first = first[0]
        if type(first) is int and not current().in_job:           # zeros(2, 3): sizes
            return tensor_function if fits(args, kwargs) else blob_function
        values = [*args, *kwargs.values()]
        values += [y for x in values if isinstance(x, (list, tuple)) for y in x]
        if any(isinstance(x, BlobDef) for x in values):
            return blob_function
        if current().in_job and not any(isinstance(x, TensorBase) for x in values):
            return blob_function
        return tensor_function if fits(args, kwargs) else blob_function

    @functools.wraps(blob_function)
    def f(*args, **kwargs):
        if args and isinstance(args[0], TensorBase) and not kwargs and len(args) <= most and (
                older is None or not older(args)):
            return tensor_function(*args)
        return choose(args, kwargs)(*args, **kwargs)

    f.__signature__ = inspect.signature(blob_function)
    f.chosen = choose                                     # for errors: which of the two a call meant
    f.__doc__ = (f"Of blobs (OneFlow 0.4): {blob_function.__doc__}\n\nOf tensors: {tensor_function.__name__}"
                 f"{inspect.signature(tensor_function)}. {tensor_function.__doc__ or ''}")
    return f


def _second(*kinds) -> Callable[[tuple], bool]:
    """Whether the second argument is of one of these types."""
    return lambda args: len(args) > 1 and isinstance(args[1], kinds)


def _a_word(args) -> bool:
    return any(isinstance(a, str) for a in args)


def _dtype_second(args) -> bool:
    return len(args) > 1 and isinstance(args[1], (dtype, type))


def _pairs(args) -> bool:
    return len(args) > 1 and (not isinstance(args[1], (list, tuple)) or not args[1] or not isinstance(args[1][0], int))


def _no_sizes(args) -> bool:
    sizes = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else ()
    return any(type(n) in (bool, float, str) for n in sizes)


def _not_a_mask(args) -> bool:
    return len(args) > 1 and getattr(args[1], "dtype", bool_) is not bool_


argsort = both(sort_ops.argsort, search.argsort, _a_word)
argwhere = both(index_ops.argwhere, search.argwhere)
clamp = clip = both(math.clip_by_value, elementwise.clamp)
concat = both(array_ops.concat, joining.cat)
diag = both(matrix_ops.diag, joining.diag)
eye = both(matrix_ops.eye, creation.eye)
flatten = both(array_ops.flatten, shapes.flatten)
gather = both(index_ops.gather, scatters.gather, lambda args: len(args) > 1 and not isinstance(args[1], int))
masked_fill = both(array_ops.masked_fill, scatters.masked_fill, _not_a_mask)
matmul = both(math.matmul, linear.matmul)
nonzero = both(index_ops.nonzero, search.nonzero)
ones = both(array_ops.ones, creation.ones, _dtype_second)
ones_like = both(array_ops.ones_like, creation.ones_like)
pad = both(shape_ops.pad, joining.pad, _pairs)
reshape = both(array_ops.reshape, shapes.reshape, _no_sizes)
sort = both(sort_ops.sort, search.sort, _a_word)
squeeze = both(array_ops.squeeze, shapes.squeeze, _second(list))
stack = both(array_ops.stack, joining.stack)
swapaxes = both(shape_ops.swapaxes, shapes.swapaxes)
transpose = both(array_ops.transpose, shapes.transpose, _second(list, tuple))
tril = both(matrix_ops.tril, joining.tril)
triu = both(matrix_ops.triu, joining.triu)
where = both(array_ops.where, elementwise.where)
zeros = both(array_ops.zeros, creation.zeros, _dtype_second)
zeros_like = both(array_ops.zeros_like, creation.zeros_like)
