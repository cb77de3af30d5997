"""flow.math: elementwise ops and reductions with OneFlow 0.4's rules, for blobs and tensors.

No dtype promotion; comparisons give int8; a reduction over all axes has shape (1,).
"""
from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan, prod

import numpy as np

from flowedu import ops as _ops
from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import DIVIDING, scalar
from flowedu.core.ops.view import check_number
from flowedu.core.values import dtype as dt
from flowedu.diagnostics.lazy_imports import lazy_import
from flowedu.errors import ArgumentError, CheckError, DTypeError, UnsupportedError
from flowedu.oneflow04.axes import normal_axis
from flowedu.oneflow04.gradients import gelu_grad, sigmoid_grad  # noqa: F401  (math.gelu_grad, math.sigmoid_grad)
from flowedu.oneflow04.index_ops import (  # noqa: F401  (math.unsorted_segment_sum and its kin)
    unsorted_batch_segment_sum,
    unsorted_segment_sum,
    unsorted_segment_sum_like,
)
from flowedu.oneflow04.matrix_ops import tril, triu  # noqa: F401  (math.tril, math.triu)
from flowedu.oneflow04.shape_ops import broadcast_to_compatible_with  # noqa: F401  (and its second name)
from flowedu.oneflow04.sort_ops import in_top_k, top_k  # noqa: F401  (math.in_top_k, math.top_k)
from flowedu.ops.checks import nonzero
from flowedu.ops.front import front

_e = _ops.elementwise


def _operands(what: str, a, b):
    """Both as values of one dtype; a Python number takes the other's."""
    for x in (a, b):
        if not hasattr(x, "spec") and not isinstance(x, (int, float)):
            raise DTypeError(f"{what}: an operand is neither a blob nor a Python number", got=type(x).__name__,
                             expected="a blob, an int or a float", fix="use float(x) for a NumPy scalar; feed an array as "
                             "an argument of the job")
    if not hasattr(a, "spec") and not hasattr(b, "spec"):
        raise DTypeError(f"{what}: both operands are Python numbers", expected="a blob among them", got=f"{a!r} and {b!r}",
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
    """op(x, y); divisors of whole numbers are checked for zeros."""
    return op(x, nonzero(op.name, y) if op in DIVIDING and not y.dtype.is_floating_point else y)


def _binary(name: str, op_name: str, prefix: str):
    op = REGISTRY[op_name]

    @front(prefix)
    def f(x, y):
        return _call(op, *_operands(f"math.{name}", x, y))

    return _titled(f, name, f"Elementwise {name}, broadcasting. x, y: blobs or Python numbers of one dtype.")


def _titled(f, name: str, doc: str):
    """f with the name that help() and Python's own errors show."""
    f.__name__ = f.__qualname__ = f.__wrapped__.__qualname__ = name
    f.__doc__ = doc
    return f


def _unary(name: str, op_name: str | None = None):
    op = REGISTRY[op_name or name]

    @front("".join(p.capitalize() for p in name.split("_")))
    def f(x):
        return op(x)

    return _titled(f, name, f"Elementwise {name}.")


add = _binary("add", "add", "Add")
multiply = _binary("multiply", "mul", "Multiply")
maximum = _binary("maximum", "maximum", "Maximum")
minimum = _binary("minimum", "minimum", "Minimum")
floordiv = _binary("floordiv", "floordiv", "FloorDiv")
squared_difference = _binary("squared_difference", "squared_difference", "SquaredDifference")
subtract = _binary("subtract", "sub", "Subtract")
atan2 = _binary("atan2", "atan2", "Atan2")
xdivy = _binary("xdivy", "xdivy", "Xdivy")
xlogy = _binary("xlogy", "xlogy", "Xlogy")
pow = _binary("pow", "pow", "Pow")
equal = _binary("equal", "equal", "Equal")
not_equal = _binary("not_equal", "not_equal", "NotEqual")
less = _binary("less", "less", "Less")
less_equal = _binary("less_equal", "less_equal", "LessEqual")
greater = _binary("greater", "greater", "Greater")
greater_equal = _binary("greater_equal", "greater_equal", "GreaterEqual")
logical_and = _binary("logical_and", "logical_and", "LogicalAnd")


@front("Divide")
def divide(x, y):
    """x / y. A division by the Python number 0 gives 0, and a number divided by a blob gives 0 where the blob is 0
    (OneFlow 0.4); blob / blob is IEEE division."""
    if not hasattr(y, "spec") and isinstance(y, (int, float)):
        if hasattr(x, "spec") and not x.dtype.is_floating_point:          # OneFlow multiplies by int(1 / y): mostly zeros
            raise DTypeError("math.divide: the blob is of integers", expected="float32 or float64", got=str(x),
                             fix="flow.cast(x, flow.float32) / y, or flow.math.floordiv(x, y)")
        x, y = _operands("math.divide", x, 0 if y == 0 else 1 / y)
        return x * y
    if not hasattr(x, "spec") and hasattr(y, "spec"):
        return _operands("math.divide", x, y)[0] * REGISTRY["reciprocal_no_nan"](y)
    return _e.div(*_operands("math.divide", x, y))


@front("Mod")
def mod(x, y):
    """Remainder with the sign of the divisor. Blobs only."""
    if not (hasattr(x, "spec") and hasattr(y, "spec")):
        raise UnsupportedError("math.mod: a number is not supported", expected="two blobs", got="a Python number",
                               fix="make it a blob: flow.constant(n, dtype, shape=(1,))")
    return _call(_e.mod, *_operands("math.mod", x, y))


for _name in ("abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp expm1 floor lgamma log log1p log_sigmoid "
              "reciprocal reciprocal_no_nan round rsqrt sigmoid sign sin sinh softplus sqrt square tan tanh gelu "
              "relu").split():
    globals()[_name] = _unary(_name)
negative = _unary("negative", "neg")
rint = _unary("rint", "round")


@front("AddN")
def add_n(inputs: Sequence):
    """The sum of values of one shape."""
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise CheckError("math.add_n: inputs is not a list of blobs", expected="one blob or more", got=repr(inputs),
                         fix="add_n([a, b])")
    total = inputs[0]
    for x in inputs[1:]:
        if x.shape != total.shape:
            raise CheckError("math.add_n: the shapes differ", got=f"{total.shape} and {x.shape}", expected="one shape",
                             fix="add with + to broadcast")
        total = _e.add(*_operands("math.add_n", total, x))
    return total


@front("Polyval")
def polyval(coeffs: Sequence[float], x):
    """coeffs[0] * x^(n-1) + ... + coeffs[n-1], elementwise."""
    if not isinstance(coeffs, (list, tuple)):
        raise ArgumentError("math.polyval: coeffs is not a list", expected="a list of numbers, the highest power first",
                            got=type(coeffs).__name__, fix="polyval([1.0, 0.0, 2.0], x) is x^2 + 2")
    y = REGISTRY["constant"](shape=x.shape, value=coeffs[0] if coeffs else 0, dtype=x.dtype)
    for c in coeffs[1:]:
        y = y * x + c
    return y


# ---- reductions
def reduced_axes(what: str, axis, rank: int) -> tuple[int, ...]:
    """The axes as a sorted tuple. None: all."""
    if axis is None:
        return tuple(range(rank))
    listed = axis if isinstance(axis, (list, tuple)) else [axis]
    for a in listed:
        if not isinstance(a, (int, np.integer)) or isinstance(a, bool) or not -rank <= a < rank:
            raise CheckError(f"{what}: axis is out of range", expected=f"integers in [{-rank}, {rank - 1}]", got=repr(axis),
                             fix="count axes from 0, or from the end with -1")
    return tuple(sorted({normal_axis(int(a), rank, what) for a in listed}))


def _reduction(name: str, prefix: str, f, plain: bool = True):
    """The function for users. plain: over no axes it is the identity."""
    @front(prefix)
    def reduce(x, axis=None, keepdims=False):
        axes = reduced_axes(f"math.{name}", axis, x.ndim)
        if not axes and x.ndim and plain:
            return x
        y = f(x, axes, keepdims)
        return y if y.ndim else REGISTRY["reshape"](y, shape=(1,))

    return _titled(reduce, name, f"{name} over `axis` (int, list, or None: all; then without keepdims the shape is (1,)).")


def mean_of(x, axes, keepdims):
    """The mean over some axes; nan where there is nothing."""
    count = prod(x.shape[a] for a in axes)
    return REGISTRY["sum"](x, axis=axes, keepdims=keepdims) * (1.0 / count if count else nan)


def variance_of(x, axes, keepdims):
    """The biased variance."""
    return mean_of(_e.square(x - mean_of(x, axes, True)), axes, keepdims)


def _logsumexp(x, axes, keepdims):
    top = REGISTRY["max"](x, axis=axes, keepdims=True)
    if x.dtype.is_floating_point:
        top = _e.where(_e.less(_e.abs(top), inf), top, scalar(0.0, x.dtype))        # inf - inf would be nan
    y = _e.log(REGISTRY["sum"](_e.exp(x - top), axis=axes, keepdims=True)) + top
    shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    return y if keepdims else REGISTRY["reshape"](y, shape=shape)


def _simple(op_name: str):
    return lambda x, axes, keepdims: REGISTRY[op_name](x, axis=axes, keepdims=keepdims)


def _truths(x, axes, keepdims):
    """(how many elements are not 0, how many there are)"""
    x = x if x.dtype.is_floating_point else REGISTRY["cast"](x, dtype=dt.int32)         # masks are int8
    ones = REGISTRY["cast"](_e.not_equal(x, x * 0), dtype=dt.int32)
    return REGISTRY["sum"](ones, axis=axes, keepdims=keepdims), prod(x.shape[a] for a in axes)


def _any(x, axes, keepdims):
    return _e.greater(_truths(x, axes, keepdims)[0], 0)


def _all(x, axes, keepdims):
    return _e.equal(*_truths(x, axes, keepdims))


reduce_sum = _reduction("reduce_sum", "ReduceSum", _simple("sum"))
reduce_mean = _reduction("reduce_mean", "ReduceMean", mean_of)
reduce_max = _reduction("reduce_max", "ReduceMax", _simple("max"))
reduce_min = _reduction("reduce_min", "ReduceMin", _simple("min"))
reduce_prod = _reduction("reduce_prod", "ReduceProd", _simple("prod"))
reduce_variance = _reduction("reduce_variance", "ReduceVariance", variance_of, plain=False)
reduce_std = _reduction("reduce_std", "ReduceStd", lambda x, a, k: _e.sqrt(variance_of(x, a, k)), plain=False)
reduce_euclidean_norm = _reduction("reduce_euclidean_norm", "ReduceEuclideanNorm",
                                   lambda x, a, k: _e.sqrt(REGISTRY["sum"](_e.square(x), axis=a, keepdims=k)),
                                   plain=False)
reduce_logsumexp = _reduction("reduce_logsumexp", "ReduceLogSumExp", _logsumexp)
reduce_any = _reduction("reduce_any", "ReduceAny", _any, plain=False)
reduce_all = _reduction("reduce_all", "ReduceAll", _all, plain=False)


@front("ArgMax")
def argmax(x, axis: int = -1):
    """Index of the largest element along `axis`, int32."""
    y = REGISTRY["argmax"](x, axis=normal_axis(axis, x.ndim, "math.argmax"))
    return REGISTRY["cast"](y, dtype=dt.int32)


@front("ClipByValue")
def clip_by_value(values, min_value=None, max_value=None):
    """Values kept inside [min_value, max_value]; either bound may be None."""
    if min_value is None and max_value is None:
        raise ArgumentError("math.clip_by_value: no bound is given", expected="min_value, max_value or both", got="None",
                            fix="clip_by_value(x, 0.0, 1.0)")
    if min_value is not None:
        values = REGISTRY["clamp_min"](*_operands("math.clip_by_value", values, min_value))
    if max_value is not None:
        values = REGISTRY["clamp_max"](*_operands("math.clip_by_value", values, max_value))
    return values


@front("L2Normalize")
def l2_normalize(x, axis: int, epsilon: float = 1e-12):
    """x / sqrt(max(sum(x^2, axis), epsilon))."""
    axes = reduced_axes("math.l2_normalize", axis, x.ndim)
    return x * _e.rsqrt(_e.maximum(REGISTRY["sum"](_e.square(x), axis=axes, keepdims=True), float(epsilon)))


@front("Matmul")
def matmul(a, b, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0):
    """alpha * op(a) @ op(b): equal batch axes, or an n-d a with a matrix b."""
    y = REGISTRY["matmul"](a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    return y if alpha == 1.0 else y * float(alpha)


# ---- second names
sigmoid_v2, tanh_v2 = sigmoid, tanh  # noqa: F821  (made by the loop above)
two_stage_reduce_max, two_stage_reduce_min = reduce_max, reduce_min        # of values that are split, always in two steps
__getattr__, __dir__ = lazy_import(__name__, dict.fromkeys(("fused_scale_tril", "fused_scale_tril_softmax_dropout"),
                                                           "flowedu.oneflow04.nn.fused"))
