"""The namespace of the Python array API standard, version 2025.12: `flow.array_api`.

`x.__array_namespace__()` returns this module, so that libraries written for the standard run on tensors. Each
function has the name, arguments, and type promotion of the standard, and calls the function of flowedu that
computes the result. Gradients are recorded as usual. Complex numbers, unsigned integers above 8 bits, and the
extension `fft` are not included. https://data-apis.org/array-api/2025.12 describes the functions.
"""
# ruff: noqa: F401, I001
from __future__ import annotations

import array
import builtins
from collections import namedtuple
from collections.abc import Callable, Sequence
from math import e, inf, nan, pi
from types import SimpleNamespace
from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.promote import cast, result_type as _result_type, scalar
from flowedu.core.values import dtype as dt
from flowedu.core.values.dtype import (
    bool_ as bool, float32, float64, get_default_dtype, int8, int16, int32, int64, uint8)
from flowedu.errors import ArgumentError, ShapeError
from flowedu.tensor import elementwise as E
from flowedu.tensor.arguments import dims
from flowedu.tensor.construction import creation
from flowedu.tensor.devices import device as devices
from flowedu.tensor.dtypes import numeric_limits
from flowedu.tensor.interop import protocols
from flowedu.tensor.linalg import inverse_and_norms as L
from flowedu.tensor.shapes import join_and_pad as J
from flowedu.tensor.indexing import nonzero_positions, sort_and_search
from flowedu.tensor.linalg import products
from flowedu.tensor.reductions import cumulative, reduce as R
from flowedu.tensor.shapes import reshape_and_permute as S, split_and_flip as P
from flowedu.tensor.construction.creation import empty_like, full_like, ones_like, zeros_like
from flowedu.tensor.devices.conversion import beside
from flowedu.tensor.elementwise import (
    abs, acos, acosh, asin, asinh, atan, atanh, bitwise_not as bitwise_invert, ceil, cos, cosh, exp, expm1,
    floor, isfinite, isinf, isnan, log, log1p, log2, log10, logical_not, negative, positive, reciprocal,
    round, signbit, sin, sinh, sqrt, square, tan, tanh, trunc)
from flowedu.tensor.shapes.reshape_and_permute import broadcast_shapes, mT as matrix_transpose
from flowedu.tensor.arguments.types import Axes, Device, Number

__array_api_version__ = "2025.12"
newaxis = None
_TYPES = {"bool": bool, "int8": int8, "int16": int16, "int32": int32, "int64": int64, "uint8": uint8,
          "float32": float32, "float64": float64}
_SIGNED, _REAL = {int8, int16, int32, int64}, {float32, float64}
_KINDS = {"bool": {bool}, "signed integer": _SIGNED, "unsigned integer": {uint8},
          "integral": _SIGNED | {uint8}, "real floating": _REAL, "complex floating": set(),
          "numeric": _SIGNED | {uint8} | _REAL}


# ---- dtypes and devices
def result_type(*arrays_and_dtypes: Tensor | dt.dtype | Number) -> dt.dtype:
    """Return the promoted dtype; 0-dim arrays are promoted like other arrays, unlike in PyTorch."""
    return _result_type(*(x.dtype if isinstance(x, Tensor) else x for x in arrays_and_dtypes))


def isdtype(dtype: dt.dtype, kind: dt.dtype | str | tuple) -> builtins.bool:
    """Return True if `dtype` is of a kind (a dtype, a name such as "integral", or a tuple of these)."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind not in _KINDS:
        raise ArgumentError("isdtype: unknown kind of dtype", expected=", ".join(_KINDS), got=repr(kind))
    return dtype in _KINDS[kind] if isinstance(kind, str) else dtype is kind


def _limits(info: Callable, type: Tensor | dt.dtype) -> SimpleNamespace:
    kind = result_type(type)
    return SimpleNamespace(**{**vars(info(kind)), "dtype": kind})


def can_cast(from_: Tensor | dt.dtype, to: dt.dtype, /) -> builtins.bool:
    """Return True if promotion converts values of dtype `from_` to `to`."""
    return result_type(from_, to) is to


def finfo(type: Tensor | dt.dtype, /) -> SimpleNamespace:
    """Return the limits of a floating-point dtype."""
    return _limits(numeric_limits.finfo, type)


def iinfo(type: Tensor | dt.dtype, /) -> SimpleNamespace:
    """Return the limits of an integer dtype."""
    return _limits(numeric_limits.iinfo, type)


def astype(x: Tensor, dtype: dt.dtype, /, *, copy: builtins.bool = True,
           device: Device | None = None) -> Tensor:
    """Return x with another dtype."""
    return x.to(device=device or x.device, dtype=dtype, copy=copy)


def __array_namespace_info__() -> SimpleNamespace:
    """Return functions that describe the namespace: its capabilities, devices, and dtypes."""
    return SimpleNamespace(
        capabilities=lambda: {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8},
        default_device=lambda: devices.CPU,
        devices=lambda: (devices.CPU, *(devices.device("cuda", i) for i in range(devices.gpus()))),
        default_dtypes=lambda *, device=None: {
            "real floating": get_default_dtype(), "integral": int64, "indexing": int64},
        dtypes=lambda *, device=None, kind=None: {
            name: dtype for name, dtype in _TYPES.items() if kind is None or isdtype(dtype, kind)})


# ---- adapters
def _promoted(*values: Tensor | Number) -> list[Tensor]:
    """Return arrays and numbers as arrays of their common dtype."""
    kind, like = result_type(*values), next((x for x in values if isinstance(x, Tensor)), None)
    return [cast(x, kind) if isinstance(x, Tensor) else beside(scalar(x, kind), like) for x in values]


def _binary(f: Callable) -> Callable[..., Tensor]:
    return lambda x1, x2, /: f(*_promoted(x1, x2))


def _filled(f: Callable) -> Callable[..., Tensor]:
    return lambda shape, *, dtype=None, device=None: f(shape, dtype=dtype, device=device)


def _reduce(f: Callable, x: Tensor, axis: Axes | None, keepdims: builtins.bool, **options: Any) -> Tensor:
    """Call a reduction of flowedu, where an empty tuple of axes means all; in the standard it means none."""
    if axis == ():
        return f(S.unsqueeze(x, 0), 0, False, **options)
    return f(x, axis, keepdims, **options)


def _reduction(f: Callable) -> Callable[..., Tensor]:
    return lambda x, /, *, axis=None, keepdims=False: _reduce(f, x, axis, keepdims)


def _total(f: Callable) -> Callable[..., Tensor]:
    return lambda x, /, *, axis=None, dtype=None, keepdims=False: _reduce(f, x, axis, keepdims, dtype=dtype)


def _spread(f: Callable) -> Callable[..., Tensor]:
    return lambda x, /, *, axis=None, correction=0.0, keepdims=False: _reduce(
        lambda x, axis, keepdims: f(x, axis, None, keepdims, correction=correction), x, axis, keepdims)


def _only_axis(axis: int | None, x: Tensor) -> int:
    """Return `axis`; None: 0, for an array of one axis."""
    if axis is None and x.ndim != 1:
        raise ShapeError("axis=None is for arrays of one axis", expected="(n,)", got=str(tuple(x.shape)),
                         fix="axis=0")
    return axis or 0


def _cumulate(f: Callable, initial: int, x: Tensor, axis: int | None, dtype: dt.dtype | None,
              include_initial: builtins.bool) -> Tensor:
    axis, kind = _only_axis(axis, x), dtype or (x.dtype if x.dtype.is_floating_point else int64)
    if include_initial:
        start = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
        x = J.cat([x.new_full(start, initial, dtype=kind), cast(x, kind)], axis)
    return f(x, axis, dtype=kind)


def _running(f: Callable, initial: int) -> Callable[..., Tensor]:
    return lambda x, /, *, axis=None, dtype=None, include_initial=False: _cumulate(
        f, initial, x, axis, dtype, include_initial)


# ---- creation
empty, ones, zeros = map(_filled, (creation.empty, creation.ones, creation.zeros))


def full(shape: int | Sequence[int], fill_value: Number, *, dtype: dt.dtype | None = None,
         device: Device | None = None) -> Tensor:
    """Return an array filled with a number."""
    return creation.full(shape, fill_value, dtype=dtype, device=device)


def from_dlpack(x: Any, /, *, device: Device | None = None, copy: builtins.bool | None = None) -> Tensor:
    """Return the array of another library that exports DLPack."""
    return protocols.from_dlpack(x, device=device, copy=copy)


def linspace(start: Number, stop: Number, /, num: int, *, dtype: dt.dtype | None = None,
             device: Device | None = None, endpoint: builtins.bool = True) -> Tensor:
    """Return `num` evenly spaced numbers from start to stop."""
    return creation.linspace(start, stop, num if endpoint else num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> Sequence[Tensor]:
    """Return the coordinates of the points of a grid, an array per axis."""
    return J.meshgrid(*arrays, indexing=indexing)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return x with zeros above the k-th diagonal."""
    return J.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return x with zeros below the k-th diagonal."""
    return J.triu(x, k)


def asarray(obj: Any, /, *, dtype: dt.dtype | None = None, device: Device | None = None,
            copy: builtins.bool | None = None) -> Tensor:
    """Return an array from numbers, nested lists, a buffer, or an array, without a copy where possible."""
    data = np.asarray(obj) if isinstance(obj, (memoryview, bytearray, array.array)) else obj
    y = creation.as_tensor(data, dtype, obj.device if device is None and isinstance(obj, Tensor) else device)
    shared = y is obj or isinstance(data, np.ndarray) and np.shares_memory(data, y.numpy())
    if copy is False and not shared:
        raise ArgumentError("asarray: a copy is needed", expected="copy=None", got="copy=False",
                            fix="leave copy out")
    return E.clone(y) if copy and shared else y


def arange(start: Number, /, stop: Number | None = None, step: Number = 1, *, dtype: dt.dtype | None = None,
           device: Device | None = None) -> Tensor:
    """Return start, start + step, ... before stop, or an empty array if the step leads away from it."""
    start, stop = (0, start) if stop is None else (start, stop)
    stop = start + 0 * (stop - start) if (stop - start) * step < 0 else stop
    return creation.arange(start, stop, step, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dt.dtype | None = None,
        device: Device | None = None) -> Tensor:
    """Return a matrix with ones on the k-th diagonal."""
    n_cols = n_rows if n_cols is None else n_cols
    k = builtins.max(-n_rows, builtins.min(k, n_cols))      # int64 holds it, and the result is the same
    rows, columns = creation.arange(n_rows, device=device), creation.arange(n_cols, device=device)
    return cast(E.eq(S.unsqueeze(rows, 1) + k, columns), dtype or get_default_dtype())


# ---- elementwise
add, subtract = _binary(E.add), _binary(E.sub)
multiply, divide = _binary(E.mul), _binary(E.div)
floor_divide, remainder = _binary(E.floor_divide), _binary(E.remainder)
pow, hypot, atan2 = _binary(E.pow), _binary(E.hypot), _binary(E.atan2)
copysign, logaddexp = _binary(E.copysign), _binary(E.logaddexp)
maximum, minimum = _binary(E.maximum), _binary(E.minimum)
equal, not_equal = _binary(E.eq), _binary(E.ne)
less, less_equal = _binary(E.lt), _binary(E.le)
greater, greater_equal = _binary(E.gt), _binary(E.ge)
logical_and, logical_or, logical_xor = _binary(E.logical_and), _binary(E.logical_or), _binary(E.logical_xor)
bitwise_and, bitwise_or, bitwise_xor = _binary(E.bitwise_and), _binary(E.bitwise_or), _binary(E.bitwise_xor)
bitwise_left_shift, bitwise_right_shift = _binary(E.bitwise_left_shift), _binary(E.bitwise_right_shift)
nextafter = _binary(lambda x1, x2: protocols.alike(
    np.nextafter(nonzero_positions.data("nextafter", x1), nonzero_positions.data("nextafter", x2)), x1))


def where(condition: Tensor, x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """Return x1 where the condition is True, and x2 elsewhere."""
    return E.where(condition, *_promoted(x1, x2))


def conj(x: Tensor, /) -> Tensor:
    """Return x, because flowedu has no complex numbers."""
    return E.positive(x)


def real(x: Tensor, /) -> Tensor:
    """Return x, because flowedu has no complex numbers."""
    return E.positive(x)


def imag(x: Tensor, /) -> Tensor:
    """Return zeros, because flowedu has no complex numbers."""
    return zeros_like(x)


def sign(x: Tensor, /) -> Tensor:
    """Return -1, 0, or 1; NaN for NaN, for which PyTorch's function returns 0."""
    return E.where(E.isnan(x), x, E.sign(x))


def clip(x: Tensor, /, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """Return x with each element limited to [min, max]."""
    low, high = (cast(b, x.dtype) if isinstance(b, Tensor) else b for b in (min, max))
    return E.clone(x) if low is None and high is None else E.clamp(x, low, high)


# ---- reductions
argmax, argmin = _reduction(R.argmax), _reduction(R.argmin)
max, min, mean = _reduction(R.amax), _reduction(R.amin), _reduction(R.mean)
all, any = (_reduction(lambda x, *rest, f=f: f(cast(x, bool), *rest)) for f in (E.all, E.any))
prod, sum = _total(R.prod), _total(R.sum)
std, var = _spread(R.std), _spread(R.var)
cumulative_prod, cumulative_sum = _running(cumulative.cumprod, 1), _running(cumulative.cumsum, 0)


def count_nonzero(x: Tensor, /, *, axis: Axes | None = None, keepdims: builtins.bool = False) -> Tensor:
    """Return the number of elements other than 0."""
    return _reduce(R.sum, E.ne(x, 0), axis, keepdims)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """Return the n-th differences of neighbors along an axis."""
    return cumulative.diff(x, n, axis, prepend, append)


# ---- indices, order, sets
def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Return the elements at indices of an axis."""
    return x[(slice(None),) * (_only_axis(axis, x) % x.ndim) + (cast(indices, int64),)]


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
    return sort_and_search.isin(*_promoted(x1, x2), invert=invert)


def searchsorted(x1: Tensor, x2: Tensor | Number, /, *, side: str = "left",
                 sorter: Tensor | None = None) -> Tensor:
    """Return the indices at which x2 can be inserted into the sorted array x1."""
    return sort_and_search.searchsorted(*_promoted(x1, x2), side=side, sorter=sorter)


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


# ---- shapes
def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Return the arrays, broadcast to one shape."""
    return tuple(S.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """Return x, broadcast to a shape."""
    return S.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Join arrays along an axis; None: flatten them first."""
    return J.cat([S.ravel(x) if axis is None else x for x in _promoted(*arrays)], axis or 0)


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """Reverse the order of elements along axes."""
    return P.flip(x, dims.dims(axis, x.ndim, "flip"))


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Move axes to other positions."""
    return S.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """Return x with its axes in another order."""
    return S.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Repeat each element."""
    return S.repeat_interleave(x, repeats, axis)


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Shift the elements along axes; those that leave one end enter at the other."""
    return P.roll(x, shift, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Join arrays along a new axis."""
    return J.stack(_promoted(*arrays), axis)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """Repeat x along each axis."""
    return S.tile(x, tuple(repetitions))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Split x along an axis into arrays without it."""
    return P.unbind(x, axis)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """Return x with a new axis of size 1 at each position in `axis`, a number or a tuple."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    for i in dims.dims(axes, x.ndim + len(axes), "expand_dims") if axes else ():
        x = S.unsqueeze(x, i)
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return x without the given axes; raise ShapeError if one of them has a size other than 1."""
    axes = dims.dims(axis, x.ndim, "squeeze") if axis != () else ()
    if builtins.any(x.shape[i] != 1 for i in axes):
        raise ShapeError("squeeze: an axis has a size other than 1", got=str(tuple(x.shape)),
                         fix="leave it out of axis")
    return S.reshape(x, [n for i, n in enumerate(x.shape) if i not in axes])


def reshape(x: Tensor, /, shape: Sequence[int], *, copy: builtins.bool | None = None) -> Tensor:
    """Return x in another shape; copy=False raises an error if the elements must be copied."""
    y = S.view(x, shape) if copy is False else S.reshape(x, shape)
    return E.clone(y) if copy else y


# ---- linear algebra
matmul, outer = _binary(products.matmul), _binary(products.outer)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Return the sum of products over axes."""
    return products.tensordot(*_promoted(x1, x2), axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the inner products of vectors along an axis, which must have the same size in both arrays."""
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError("vecdot: the vectors have different sizes",
                         got=f"{x1.shape[axis]} and {x2.shape[axis]}")
    return R.sum(multiply(x1, x2), axis, dtype=result_type(x1, x2))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the solution x of x1 @ x = x2; x2 is a vector if it has one axis, else it contains matrices."""
    a, b = _promoted(x1, S.unsqueeze(x2, 1) if x2.ndim == 1 else x2)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    y = L.solve(S.expand(a, (*batch, *a.shape[-2:])), S.expand(b, (*batch, *b.shape[-2:])))
    return S.squeeze(y, -1) if x2.ndim == 1 else y


linalg = SimpleNamespace(
    matmul=matmul, matrix_transpose=matrix_transpose, tensordot=tensordot, vecdot=vecdot, outer=outer,
    solve=solve, det=L.det, inv=L.inv, eigh=L.eigh, eigvalsh=L.eigvalsh, matrix_power=L.matrix_power,
    slogdet=L.slogdet, svdvals=L.svdvals, cholesky=lambda x, /, *, upper=False: L.cholesky(x, upper=upper),
    cross=lambda x1, x2, /, *, axis=-1: _binary(lambda a, b: L.cross(a, b, axis))(x1, x2),
    diagonal=lambda x, /, *, offset=0: L.diagonal(x, offset),
    matrix_norm=lambda x, /, *, keepdims=False, ord="fro": L.matrix_norm(x, ord, keepdim=keepdims),
    matrix_rank=lambda x, /, *, rtol=None: L.matrix_rank(x, rtol=rtol),
    pinv=lambda x, /, *, rtol=None: L.pinv(x, rtol=rtol), qr=lambda x, /, *, mode="reduced": L.qr(x, mode),
    svd=lambda x, /, *, full_matrices=True: L.svd(x, full_matrices),
    trace=lambda x, /, *, offset=0, dtype=None: R.sum(L.diagonal(x, offset), -1, dtype=dtype),
    vector_norm=lambda x, /, *, axis=None, keepdims=False, ord=2: _reduce(
        lambda x, axis, keepdims: L.vector_norm(x, ord, axis, keepdims), x, axis, keepdims))
del solve                                               # only in linalg
for _space in (globals(), vars(linalg)):
    for _name, _function in [*_space.items()]:
        if getattr(_function, "__name__", "") == "<lambda>":
            _function.__name__ = _function.__qualname__ = _name
            _function.__doc__ = f"Compute `{_name}` of the array API standard."
