"""The namespace of the Python array API standard, version 2025.12: `flow.array_api`.

`x.__array_namespace__()` returns this module, so that libraries written for the standard run on tensors. Each
function has the name, arguments, and type promotion of the standard, and calls the function of flowedu that
computes the result. Gradients are recorded as usual. Complex numbers, unsigned integers above 8 bits, and the
extension `fft` are not included. https://data-apis.org/array-api/2025.12 describes the functions.
"""
# ruff: noqa: F401, I001
from __future__ import annotations

from math import e, inf, nan, pi

from flowedu.core.values.dtype import (
    bool_ as bool, float32, float64, int8, int16, int32, int64, uint8)
from flowedu.tensor.array_api.adapters import (
    __array_namespace_info__, astype, can_cast, finfo, iinfo, isdtype, result_type)
from flowedu.tensor.array_api.creation import (
    arange, asarray, empty, eye, from_dlpack, full, linspace, meshgrid, ones, tril, triu, zeros)
from flowedu.tensor.array_api.elementwise import (
    add, atan2, bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor, clip, conj,
    copysign, divide, equal, floor_divide, greater, greater_equal, hypot, imag, less, less_equal,
    logaddexp, logical_and, logical_or, logical_xor, maximum, minimum, multiply, nextafter, not_equal,
    pow, real, remainder, sign, subtract, where)
from flowedu.tensor.array_api.linear_algebra import (
    linalg, matmul, outer, tensordot, vecdot)
from flowedu.tensor.array_api.reductions import (
    all, any, argmax, argmin, argsort, count_nonzero, cumulative_prod, cumulative_sum, diff, isin, max,
    mean, min, nonzero, prod, searchsorted, sort, std, sum, take, take_along_axis, unique_all,
    unique_all_result, unique_counts, unique_counts_result, unique_inverse, unique_inverse_result,
    unique_values, var)
from flowedu.tensor.array_api.shapes import (
    broadcast_arrays, broadcast_to, concat, expand_dims, flip, moveaxis, permute_dims, repeat, reshape,
    roll, squeeze, stack, tile, unstack)
from flowedu.tensor.construction.creation import empty_like, full_like, ones_like, zeros_like
from flowedu.tensor.elementwise import (
    abs, acos, acosh, asin, asinh, atan, atanh, bitwise_not as bitwise_invert, ceil, cos, cosh, exp, expm1,
    floor, isfinite, isinf, isnan, log, log1p, log2, log10, logical_not, negative, positive, reciprocal,
    round, signbit, sin, sinh, sqrt, square, tan, tanh, trunc)
from flowedu.tensor.shapes.reshape_and_permute import broadcast_shapes, mT as matrix_transpose

__array_api_version__ = "2025.12"
newaxis = None
for _space in (globals(), vars(linalg)):
    for _name, _function in [*_space.items()]:
        if getattr(_function, "__name__", "") == "<lambda>":
            _function.__name__ = _function.__qualname__ = _name
            _function.__doc__ = f"Compute `{_name}` of the array API standard."
        if (getattr(_function, "__module__", None) or "").startswith(__name__ + "."):
            _function.__module__ = __name__
