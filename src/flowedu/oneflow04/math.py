"""Elementwise ops and reductions of flow.math with OneFlow 0.4's rules, for blobs and tensors.

Dtypes are never promoted, comparisons return int8, and a reduction over all axes has the shape (1,).
"""
from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan, prod

import numpy as np

from flowedu import ops as _ops
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.matmul import matmul as _matmul
from flowedu.core.ops.promote import DIVIDING, scalar
from flowedu.core.ops.reduce import max as _max
from flowedu.core.ops.reduce import min as _min
from flowedu.core.ops.reduce import prod as _prod
from flowedu.core.ops.reduce import sum as _sum
from flowedu.core.ops.view import cast as _cast
from flowedu.core.ops.view import check_number
from flowedu.core.ops.view import constant as _constant
from flowedu.core.ops.view import reshape as _reshape
from flowedu.core.values import dtype as dt
from flowedu.diagnostics.lazy_imports import lazy_import
from flowedu.errors import ArgumentError, CheckError, DTypeError, UnsupportedError
from flowedu.oneflow04.functions.axes import normal_axis

# F401: names of flow.math that this module does not use.
from flowedu.oneflow04.functions.gather_scatter import (  # noqa: F401
    unsorted_batch_segment_sum,
    unsorted_segment_sum,
    unsorted_segment_sum_like,
)
from flowedu.oneflow04.functions.gradients import gelu_grad, sigmoid_grad  # noqa: F401
from flowedu.oneflow04.functions.pad_slice_broadcast import broadcast_to_compatible_with  # noqa: F401
from flowedu.oneflow04.functions.ranges_and_triangles import tril, triu  # noqa: F401
from flowedu.oneflow04.functions.sort_and_top_k import in_top_k, top_k  # noqa: F401
from flowedu.ops.argmax import argmax as _argmax
from flowedu.ops.bounds import clamp_max as _clamp_max
from flowedu.ops.bounds import clamp_min as _clamp_min
from flowedu.ops.checks import nonzero
from flowedu.ops.front import front

_e, _functions = _ops.elementwise, _ops.functions


def _operands(what: str, a, b):
    """Return both operands as values of one dtype. A Python number takes the dtype of the other operand."""
    for x in (a, b):
        if not hasattr(x, "spec") and not isinstance(x, (int, float)):
            raise DTypeError(f"{what}: an operand is neither a blob nor a Python number",
                             got=type(x).__name__,
                             expected="a blob, an int or a float",
                             fix="use float(x) for a NumPy scalar; feed an array as an argument of the job")
    if not hasattr(a, "spec") and not hasattr(b, "spec"):
        raise DTypeError(f"{what}: both operands are Python numbers", expected="a blob among them",
                         got=f"{a!r} and {b!r}",
                         fix="flow.constant(x, flow.float32, shape=(1,)) makes a blob of a number")
    if not hasattr(a, "spec"):
        a = scalar(_number(what, a, b.dtype), b.dtype)
    if not hasattr(b, "spec"):
        b = scalar(_number(what, b, a.dtype), a.dtype)
    if a.dtype is not b.dtype:
        raise DTypeError(f"{what}: the dtypes differ", expected="equal dtypes (blobs are never promoted)",
                         got=f"{a.dtype.name} and {b.dtype.name}", fix=f"flow.cast(x, flow.{a.dtype.name})")
    return a, b


def _number(what: str, x, dtype):
    check_number(what, x, dtype)
    return float(x) if dtype.is_floating_point else int(x)


def _call(op, x, y):
    """Return op(x, y). Integer divisors are checked for zeros."""
    return op(x, nonzero(op.name, y) if op in DIVIDING and not y.dtype.is_floating_point else y)


def _make_binary(name: str, op: Op, prefix: str):
    @front(prefix)
    def f(x, y):
        return _call(op, *_operands(f"math.{name}", x, y))

    return _document(f, name, f"""Compute {name} elementwise, with broadcasting.

    Args:
        x: a blob, or a Python number.
        y: a blob, or a Python number. At least one operand is a blob; two blobs have one dtype.
    """)


def _document(f, name: str, doc: str):
    """Return `f` with a docstring, and with the name that help() and Python's errors show."""
    f.__name__ = f.__qualname__ = f.__wrapped__.__qualname__ = name
    f.__doc__ = doc
    return f


def _make_unary(name: str, op: Op):
    @front("".join(p.capitalize() for p in name.split("_")))
    def f(x):
        return op(x)

    return _document(f, name, f"Compute {name} elementwise.\n\n    Args:\n        x: a blob or tensor.\n    ")


add = _make_binary("add", _e.add, "Add")
multiply = _make_binary("multiply", _e.mul, "Multiply")
maximum = _make_binary("maximum", _e.maximum, "Maximum")
minimum = _make_binary("minimum", _e.minimum, "Minimum")
floordiv = _make_binary("floordiv", _e.floordiv, "FloorDiv")
squared_difference = _make_binary("squared_difference", _functions.squared_difference, "SquaredDifference")
subtract = _make_binary("subtract", _e.sub, "Subtract")
atan2 = _make_binary("atan2", _functions.atan2, "Atan2")
xdivy = _make_binary("xdivy", _e.xdivy, "Xdivy")
xlogy = _make_binary("xlogy", _e.xlogy, "Xlogy")
pow = _make_binary("pow", _e.pow, "Pow")
equal = _make_binary("equal", _e.equal, "Equal")
not_equal = _make_binary("not_equal", _e.not_equal, "NotEqual")
less = _make_binary("less", _e.less, "Less")
less_equal = _make_binary("less_equal", _e.less_equal, "LessEqual")
greater = _make_binary("greater", _e.greater, "Greater")
greater_equal = _make_binary("greater_equal", _e.greater_equal, "GreaterEqual")
logical_and = _make_binary("logical_and", _e.logical_and, "LogicalAnd")


@front("Divide")
def divide(x, y):
    """Compute x / y elementwise, with broadcasting.

    Args:
        x: a blob, or a Python number.
        y: a blob, or a Python number.

    Note:
        As in OneFlow 0.4, division by the Python number 0 returns 0, and a number divided by a blob returns 0
        where the blob is 0. The quotient of two blobs follows IEEE 754.
    """
    if not hasattr(y, "spec") and isinstance(y, (int, float)):
        # OneFlow multiplies by int(1 / y): mostly zeros
        if hasattr(x, "spec") and not x.dtype.is_floating_point:
            raise DTypeError("math.divide: the blob is of integers", expected="float32 or float64",
                             got=str(x), fix="flow.cast(x, flow.float32) / y, or flow.math.floordiv(x, y)")
        x, y = _operands("math.divide", x, 0 if y == 0 else 1 / y)
        return x * y
    if not hasattr(x, "spec") and hasattr(y, "spec"):
        return _operands("math.divide", x, y)[0] * _functions.reciprocal_no_nan(y)
    return _e.div(*_operands("math.divide", x, y))


@front("Mod")
def mod(x, y):
    """Compute the remainder of x / y elementwise, with the sign of the divisor.

    Args:
        x: a blob; Python numbers are not supported.
        y: a blob.
    """
    if not (hasattr(x, "spec") and hasattr(y, "spec")):
        raise UnsupportedError("math.mod: a number is not supported", expected="two blobs",
                               got="a Python number",
                               fix="make it a blob: flow.constant(n, dtype, shape=(1,))")
    return _call(_e.mod, *_operands("math.mod", x, y))


for _name in ("abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp expm1 floor lgamma log log1p "
              "log_sigmoid reciprocal reciprocal_no_nan round rsqrt sigmoid sign sin sinh softplus sqrt "
              "square tan tanh gelu relu").split():
    globals()[_name] = _make_unary(_name, REGISTRY[_name])
negative = _make_unary("negative", _e.neg)
rint = _make_unary("rint", _e.round)


@front("AddN")
def add_n(inputs: Sequence):
    """Return the sum of blobs.

    Args:
        inputs: a list of one or more blobs of one shape and dtype.
    """
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise CheckError("math.add_n: inputs is not a list of blobs", expected="one blob or more",
                         got=repr(inputs), fix="add_n([a, b])")
    total = inputs[0]
    for x in inputs[1:]:
        if x.shape != total.shape:
            raise CheckError("math.add_n: the shapes differ", got=f"{total.shape} and {x.shape}",
                             expected="one shape", fix="add with + to broadcast")
        total = _e.add(*_operands("math.add_n", total, x))
    return total


@front("Polyval")
def polyval(coeffs: Sequence[float], x):
    """Evaluate a polynomial elementwise: coeffs[0] * x^(n-1) + ... + coeffs[n-1].

    Args:
        coeffs: a list of coefficients, the highest power first.
        x: a blob or tensor.
    """
    if not isinstance(coeffs, (list, tuple)):
        raise ArgumentError("math.polyval: coeffs is not a list", got=type(coeffs).__name__,
                            expected="a list of coefficients, the highest power first",
                            fix="polyval([1.0, 0.0, 2.0], x) is x^2 + 2")
    y = _constant(shape=x.shape, value=coeffs[0] if coeffs else 0, dtype=x.dtype)
    for c in coeffs[1:]:
        y = y * x + c
    return y


# ---- reductions
def reduced_axes(what: str, axis, rank: int) -> tuple[int, ...]:
    """Return the axes as a sorted tuple.

    Args:
        what: the name of the function in messages.
        axis: an int or a list of ints; None is all axes.
        rank: the number of axes.
    """
    if axis is None:
        return tuple(range(rank))
    listed = axis if isinstance(axis, (list, tuple)) else [axis]
    for a in listed:
        if not isinstance(a, (int, np.integer)) or isinstance(a, bool) or not -rank <= a < rank:
            raise CheckError(f"{what}: axis is out of range", expected=f"integers in [{-rank}, {rank - 1}]",
                             got=repr(axis), fix="count axes from 0, or from the end with -1")
    return tuple(sorted({normal_axis(int(a), rank, what) for a in listed}))


def _make_reduction(name: str, prefix: str, f, plain: bool = True):
    """Make a public reduction. With `plain`, a reduction over no axes returns its input."""
    @front(prefix)
    def reduce(x, axis=None, keepdims=False):
        axes = reduced_axes(f"math.{name}", axis, x.ndim)
        if not axes and x.ndim and plain:
            return x
        y = f(x, axes, keepdims)
        return y if y.ndim else _reshape(y, shape=(1,))

    return _document(reduce, name, f"""Compute {name} over axes.

    Args:
        x: a blob or tensor.
        axis: an int or a list of ints; None reduces over all axes.
        keepdims: keep the reduced axes with size 1. Without it, a reduction over all axes has the shape (1,).
    """)


def mean_of(x, axes, keepdims):
    """Return the mean over axes; NaN if there are no elements.

    Args:
        x: a value.
        axes: a tuple of axes.
        keepdims: keep the reduced axes with size 1.
    """
    count = prod(x.shape[a] for a in axes)
    return _sum(x, axis=axes, keepdims=keepdims) * (1.0 / count if count else nan)


def variance_of(x, axes, keepdims):
    """Return the biased variance over axes.

    Args:
        x: a value.
        axes: a tuple of axes.
        keepdims: keep the reduced axes with size 1.
    """
    return mean_of(_e.square(x - mean_of(x, axes, True)), axes, keepdims)


def _logsumexp(x, axes, keepdims):
    top = _max(x, axis=axes, keepdims=True)
    if x.dtype.is_floating_point:
        top = _e.where(_e.less(_e.abs(top), inf), top, scalar(0.0, x.dtype))        # inf - inf would be nan
    y = _e.log(_sum(_e.exp(x - top), axis=axes, keepdims=True)) + top
    shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    return y if keepdims else _reshape(y, shape=shape)


def _make_simple_reduction(op: Op):
    return lambda x, axes, keepdims: op(x, axis=axes, keepdims=keepdims)


def _count_nonzero(x, axes, keepdims):
    """Return the number of elements that are not 0, and the number of all elements."""
    x = x if x.dtype.is_floating_point else _cast(x, dtype=dt.int32)         # masks are int8
    ones = _cast(_e.not_equal(x, x * 0), dtype=dt.int32)
    return _sum(ones, axis=axes, keepdims=keepdims), prod(x.shape[a] for a in axes)


def _any(x, axes, keepdims):
    return _e.greater(_count_nonzero(x, axes, keepdims)[0], 0)


def _all(x, axes, keepdims):
    return _e.equal(*_count_nonzero(x, axes, keepdims))


reduce_sum = _make_reduction("reduce_sum", "ReduceSum", _make_simple_reduction(_sum))
reduce_mean = _make_reduction("reduce_mean", "ReduceMean", mean_of)
reduce_max = _make_reduction("reduce_max", "ReduceMax", _make_simple_reduction(_max))
reduce_min = _make_reduction("reduce_min", "ReduceMin", _make_simple_reduction(_min))
reduce_prod = _make_reduction("reduce_prod", "ReduceProd", _make_simple_reduction(_prod))
reduce_variance = _make_reduction("reduce_variance", "ReduceVariance", variance_of, plain=False)
reduce_std = _make_reduction("reduce_std", "ReduceStd", lambda x, a, k: _e.sqrt(variance_of(x, a, k)),
                             plain=False)
reduce_euclidean_norm = _make_reduction("reduce_euclidean_norm", "ReduceEuclideanNorm",
                                   lambda x, a, k: _e.sqrt(_sum(_e.square(x), axis=a, keepdims=k)),
                                   plain=False)
reduce_logsumexp = _make_reduction("reduce_logsumexp", "ReduceLogSumExp", _logsumexp)
reduce_any = _make_reduction("reduce_any", "ReduceAny", _any, plain=False)
reduce_all = _make_reduction("reduce_all", "ReduceAll", _all, plain=False)


@front("ArgMax")
def argmax(x, axis: int = -1):
    """Return the index of the largest element along an axis, as int32.

    Args:
        x: a blob or tensor.
        axis: the axis to reduce.
    """
    y = _argmax(x, axis=normal_axis(axis, x.ndim, "math.argmax"))
    return _cast(y, dtype=dt.int32)


@front("ClipByValue")
def clip_by_value(values, min_value=None, max_value=None):
    """Clip elements to [min_value, max_value].

    Args:
        values: a blob or tensor.
        min_value: the lower bound, or None.
        max_value: the upper bound, or None. At least one bound is required.
    """
    if min_value is None and max_value is None:
        raise ArgumentError("math.clip_by_value: no bound is given", expected="min_value, max_value or both",
                            got="None", fix="clip_by_value(x, 0.0, 1.0)")
    if min_value is not None:
        values = _clamp_min(*_operands("math.clip_by_value", values, min_value))
    if max_value is not None:
        values = _clamp_max(*_operands("math.clip_by_value", values, max_value))
    return values


@front("L2Normalize")
def l2_normalize(x, axis: int, epsilon: float = 1e-12):
    """Return x / sqrt(max(sum(x^2, axis), epsilon)).

    Args:
        x: a blob or tensor.
        axis: the axis, or a list of axes, to sum over.
        epsilon: the smallest sum of squares to divide by.
    """
    axes = reduced_axes("math.l2_normalize", axis, x.ndim)
    return x * _e.rsqrt(_e.maximum(_sum(_e.square(x), axis=axes, keepdims=True), float(epsilon)))


@front("Matmul")
def matmul(a, b, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0):
    """Return alpha * op(a) @ op(b), where op transposes the last two axes if the flag is set.

    Args:
        a: a blob of shape (..., n, k).
        b: a blob of shape (..., k, m) with the same batch axes, or a matrix.
        transpose_a: transpose `a`.
        transpose_b: transpose `b`.
        alpha: a factor of the result.
    """
    y = _matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    return y if alpha == 1.0 else y * float(alpha)


# ---- aliases
sigmoid_v2, tanh_v2 = sigmoid, tanh  # noqa: F821  (defined by the loop above)
# Split values are always reduced in two steps.
two_stage_reduce_max, two_stage_reduce_min = reduce_max, reduce_min
__getattr__, __dir__ = lazy_import(__name__, dict.fromkeys(("fused_scale_tril",
                                                            "fused_scale_tril_softmax_dropout"),
                                                           "flowedu.oneflow04.nn.fused"))
