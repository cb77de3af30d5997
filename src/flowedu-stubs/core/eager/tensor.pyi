"""Written by `make stubs`: do not edit."""
import numpy as _np
from builtins import bool as _bool, float as _float, int as _int, type as _type
from collections.abc import Callable, Iterator, Sequence
from flowedu.core.eager.dispatch import Slots, TensorBase
from flowedu.core.values.dtype import dtype as _dtype
from flowedu.core.values.size import Size as Size
from flowedu.tensor import return_types
from flowedu.tensor.arguments.types import Axes, Device, Index, Number, Placement, Sbp, Sizes
from flowedu.tensor.construction.generator import Generator
from flowedu.tensor.devices.device import device as _device
from flowedu.tensor.devices.memory_format import memory_format
from flowedu.tensor.gradients.hooks import Handle
from flowedu.tensor.interop.protocols import UntypedStorage
from typing import Any, Literal, SupportsIndex, overload

class LazyGrad:
    """The grad_fn of a lazy tensor, which has only a name."""
    def __init__(self, name: str) -> None: ...
    def __repr__(self) -> str: ...
    def name(self) -> str: ...
    next_functions: tuple
REGISTRY: dict
class Tensor(TensorBase, metaclass=TensorType):
    """An n-dimensional array with automatic differentiation."""
    @property
    def H(self) -> Tensor:
        """Return a view with the last two axes exchanged, which is the adjoint because tensors are real."""
    @property
    def T(self) -> Tensor: """View with reversed axes."""
    def __abs__(input) -> Tensor: ...
    def __and__(self, other: Any) -> Tensor: ...
    def __array__(self, dtype: _type | _np.dtype | str | None = None, copy: _bool | None = None) -> Any: ...
    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any: ...
    def __bool__(self) -> _bool: ...
    def __complex__(self) -> complex: ...
    def __contains__(self, x) -> _bool: ...
    def __copy__(self) -> Tensor: ...
    @property
    def __cuda_array_interface__(self) -> Any:
        """Return the interface through which PyCUDA, CuPy, and Numba read GPU memory."""
    def __deepcopy__(self, memo: dict) -> Tensor: ...
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[_int, _int] | None = None, dl_device: tuple[_int, _int] | None = None, copy: _bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> Any: ...
    def __eq__(self, other) -> Tensor: ...  # type: ignore[override]
    def __float__(self) -> _float: ...
    def __floordiv__(self, other) -> Tensor: ...
    def __format__(self, spec: str) -> str: ...
    def __ge__(self, other) -> Tensor: ...
    def __getitem__(self, index: Index) -> Tensor: ...
    def __gt__(self, other) -> Tensor: ...
    def __hash__(self) -> _int: ...
    def __iand__(self, other: Any) -> Tensor: ...
    def __ifloordiv__(self, other: Any) -> Tensor: ...
    def __imod__(self, other: Any) -> Tensor: ...
    def __index__(self) -> _int: ...
    def __int__(self) -> _int: ...
    def __invert__(input) -> Tensor: ...
    def __ior__(self, other: Any) -> Tensor: ...
    def __ipow__(self, other: Any) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __ixor__(self, other: Any) -> Tensor: ...
    def __le__(self, other) -> Tensor: ...
    def __len__(self) -> _int: ...
    def __lshift__(self, other: Any) -> Tensor: ...
    def __lt__(self, other) -> Tensor: ...
    def __mod__(self, other) -> Tensor: ...
    def __ne__(self, other) -> Tensor: ...  # type: ignore[override]
    def __neg__(input) -> Tensor: ...
    def __or__(self, other: Any) -> Tensor: ...
    def __pos__(input) -> Tensor: ...
    def __pow__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple: ...
    def __repr__(self) -> str: ...
    def __rfloordiv__(self, other) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __rmod__(self, other) -> Tensor: ...
    def __ror__(self, other: Any) -> Tensor: ...
    def __rpow__(self, other) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def __setitem__(self, index: Index, value: Tensor | Number) -> None: ...
    def __xor__(self, other: Any) -> Tensor: ...
    @property
    def _base(self) -> Any: """Tensor that this view is a part of, or None if this is not a view."""
    def _is_view(self) -> _bool: ...
    def _repr_html_(t) -> str | None: ...
    def _require_data(self, what: str) -> None: ...
    @property
    def _version(self) -> _int: """Number of in-place writes to this memory, through any tensor that shares it."""
    def abs(input) -> Tensor: """Return the absolute value of x, for each element."""
    def abs_(self) -> Tensor: """Write the result of `abs` into the tensor and return it."""
    def absolute(input) -> Tensor: """Return the absolute value of x, for each element."""
    def absolute_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `absolute` into the tensor and return it."""
    def acos(input) -> Tensor: """Return the arc cosine of x, in radians, for each element."""
    def acos_(self) -> Tensor: """Write the result of `acos` into the tensor and return it."""
    def acosh(input) -> Tensor: """Return the inverse hyperbolic cosine of x, for each element."""
    def acosh_(self) -> Tensor: """Write the result of `acosh` into the tensor and return it."""
    def add(input, other: Tensor | Number, *, alpha: Number = 1) -> Tensor: """Return input + alpha * other."""
    def add_(self, other: Tensor | Number, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `add` into the tensor and return it."""
    def addbmm(input, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return beta * input + alpha * the sum of all products of the batch."""
    def addbmm_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `addbmm` into the tensor and return it."""
    def addcdiv(input, tensor1: Tensor, tensor2: Tensor | Number, *, value: Number = 1) -> Tensor:
        """Return input + value * tensor1 / tensor2."""
    def addcdiv_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `addcdiv` into the tensor and return it."""
    def addcmul(input, tensor1: Tensor, tensor2: Tensor | Number, *, value: Number = 1) -> Tensor:
        """Return input + value * tensor1 * tensor2."""
    def addcmul_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `addcmul` into the tensor and return it."""
    def addmm(input, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return beta * input + alpha * mat1 @ mat2."""
    def addmm_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `addmm` into the tensor and return it."""
    def addmv(input, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return beta * input + alpha * mat @ vec."""
    def addmv_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `addmv` into the tensor and return it."""
    def addr(input, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return beta * input + alpha * outer(vec1, vec2)."""
    def addr_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `addr` into the tensor and return it."""
    def adjoint(input) -> Tensor:
        """Return a view with the last two axes exchanged, which is the adjoint because tensors are real."""
    def all(input, dim: Axes | None = None, keepdim: _bool = False) -> Tensor: """Return True if no element is 0."""
    def allclose(input, other: Tensor, *, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
        """Return True if all elements are close; see isclose."""
    def amax(input, dim: Axes | None = ..., keepdim: _bool = False) -> Tensor:
        """Return the max of the elements; equal elements share the gradient."""
    def amin(input, dim: Axes | None = ..., keepdim: _bool = False) -> Tensor:
        """Return the min of the elements; equal elements share the gradient."""
    def aminmax(input, *, dim: Axes | None = None, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
        """Return (minimum, maximum) of the elements."""
    def any(input, dim: Axes | None = None, keepdim: _bool = False) -> Tensor:
        """Return True if at least one element is not 0."""
    def arccos(input) -> Tensor: """Return the arc cosine of x, in radians, for each element."""
    def arccos_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `arccos` into the tensor and return it."""
    def arccosh(input) -> Tensor: """Return the inverse hyperbolic cosine of x, for each element."""
    def arccosh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `arccosh` into the tensor and return it."""
    def arcsin(input) -> Tensor: """Return the arc sine of x, in radians, for each element."""
    def arcsin_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `arcsin` into the tensor and return it."""
    def arcsinh(input) -> Tensor: """Return the inverse hyperbolic sine of x, for each element."""
    def arcsinh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `arcsinh` into the tensor and return it."""
    def arctan(input) -> Tensor: """Return the arc tangent of x, in radians, for each element."""
    def arctan2(input, other: Tensor | Number) -> Tensor:
        """Return the angle of the point (other, input), in radians, for each element."""
    def arctan2_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `arctan2` into the tensor and return it."""
    def arctan_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `arctan` into the tensor and return it."""
    def arctanh(input) -> Tensor: """Return the inverse hyperbolic tangent of x, for each element."""
    def arctanh_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `arctanh` into the tensor and return it."""
    def argmax(input, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """Return the int64 position of the maximum, the first one of equal elements; NaN counts as the maximum."""
    def argmin(input, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """Return the int64 position of the minimum, the first one of equal elements; NaN counts as the minimum."""
    def argsort(input, dim: _int = -1, descending: _bool = False, stable: _bool = True) -> Tensor:
        """Return the int64 positions that sort x along an axis."""
    def argwhere(input) -> Tensor:
        """Return the positions of the elements that are not 0, as an int64 tensor (count, axes)."""
    def as_strided(input, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> Tensor:
        """Return a view with the given sizes and strides over the memory of a contiguous tensor."""
    def asin(input) -> Tensor: """Return the arc sine of x, in radians, for each element."""
    def asin_(self) -> Tensor: """Write the result of `asin` into the tensor and return it."""
    def asinh(input) -> Tensor: """Return the inverse hyperbolic sine of x, for each element."""
    def asinh_(self) -> Tensor: """Write the result of `asinh` into the tensor and return it."""
    def atan(input) -> Tensor: """Return the arc tangent of x, in radians, for each element."""
    def atan2(input, other: Tensor | Number) -> Tensor:
        """Return the angle of the point (other, input), in radians, for each element."""
    def atan2_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `atan2` into the tensor and return it."""
    def atan_(self) -> Tensor: """Write the result of `atan` into the tensor and return it."""
    def atanh(input) -> Tensor: """Return the inverse hyperbolic tangent of x, for each element."""
    def atanh_(self) -> Tensor: """Write the result of `atanh` into the tensor and return it."""
    def backward(self, gradient: Tensor | None = None, retain_graph: _bool | None = None, create_graph: _bool = False, inputs: Sequence[Tensor] | Tensor | None = None) -> None:
        """Add the gradient of this tensor to `.grad` of every leaf."""
    def baddbmm(input, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return beta * input + alpha * batch1 @ batch2."""
    def baddbmm_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `baddbmm` into the tensor and return it."""
    def bernoulli(input, p: _float | None = None, *, generator: Generator | None = None) -> Tensor:
        """Return random zeros and ones in the dtype of the input."""
    def bernoulli_(self, *args: Any, **kwargs: Any) -> Tensor: """Fill the tensor with random numbers and return it."""
    def bfloat16(self) -> Tensor: """Convert to bfloat16; return the tensor itself if it has this dtype."""
    def bincount(input, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
        """Return the number of occurrences of 0, 1, 2, ... in a vector."""
    def bitwise_and(input, other: Tensor | Number) -> Tensor:
        """Compute bitwise_and of integers or bools, for each element."""
    def bitwise_and_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `bitwise_and` into the tensor and return it."""
    def bitwise_left_shift(input, other: Tensor | Number) -> Tensor:
        """Compute bitwise_left_shift of integers, for each element."""
    def bitwise_left_shift_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `bitwise_left_shift` into the tensor and return it."""
    def bitwise_not(input) -> Tensor: """Return ~x, which is the opposite of a bool, and -1 - x for an integer."""
    def bitwise_not_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `bitwise_not` into the tensor and return it."""
    def bitwise_or(input, other: Tensor | Number) -> Tensor:
        """Compute bitwise_or of integers or bools, for each element."""
    def bitwise_or_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `bitwise_or` into the tensor and return it."""
    def bitwise_right_shift(input, other: Tensor | Number) -> Tensor:
        """Compute bitwise_right_shift of integers, for each element."""
    def bitwise_right_shift_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `bitwise_right_shift` into the tensor and return it."""
    def bitwise_xor(input, other: Tensor | Number) -> Tensor:
        """Compute bitwise_xor of integers or bools, for each element."""
    def bitwise_xor_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `bitwise_xor` into the tensor and return it."""
    def bmm(input, mat2: Tensor) -> Tensor: """Return the products of two batches of matrices."""
    def bool(self) -> Tensor: """Convert to bool; return the tensor itself if it has this dtype."""
    def broadcast_to(input, size: Sequence[_int]) -> Tensor: """Return a view that is broadcast to a shape, like expand."""
    def byte(self) -> Tensor: """Convert to uint8; return the tensor itself if it has this dtype."""
    def cast(self, dtype: _dtype | _type | str) -> Tensor: """Convert to another dtype."""
    def ceil(input) -> Tensor: """Return the smallest integer that is at least x, for each element."""
    def ceil_(self) -> Tensor: """Write the result of `ceil` into the tensor and return it."""
    def char(self) -> Tensor: """Convert to int8; return the tensor itself if it has this dtype."""
    def check_meta_consistency(*args: Any, **kwargs: Any) -> _bool:
        """See help(flowedu.tensor.global_tensors.creation.check_meta_consistency)."""
    def cholesky(input, upper: _bool = False) -> Tensor: """Return flow.linalg.cholesky(input, upper=upper)."""
    def cholesky_inverse(input, upper: _bool = False) -> Tensor: """Return the inverse of A from its Cholesky factor."""
    def cholesky_solve(input, input2: Tensor, upper: _bool = False) -> Tensor: """Return X with A @ X = input."""
    def chunk(input, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """Return at most `chunks` pieces along an axis, which have equal sizes except for the last one."""
    def clamp(input, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
        """Limit each element to [min, max]."""
    def clamp_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `clamp` into the tensor and return it."""
    def clamp_max(input, max: Tensor | Number) -> Tensor: """Limit each element to at most `max`."""
    def clamp_max_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `clamp_max` into the tensor and return it."""
    def clamp_min(input, min: Tensor | Number) -> Tensor: """Limit each element to at least `min`."""
    def clamp_min_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `clamp_min` into the tensor and return it."""
    def clip(input, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
        """Limit each element to [min, max]."""
    def clip_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `clip` into the tensor and return it."""
    def clone(input, memory_format: memory_format | None = None) -> Tensor: """Return a differentiable copy."""
    def contiguous(input, memory_format: memory_format | None = None) -> Tensor:
        """Return x if its elements are stored in row-major order (or in the format), else a copy in this order."""
    def contiguous_(self) -> Tensor: """Store the elements in row-major order, and return the tensor."""
    def copy_(self, src: Tensor, non_blocking: _bool = False) -> Tensor:
        """Copy the values of another tensor, broadcast and cast, and return this tensor."""
    def copysign(input, other: Tensor | Number) -> Tensor: """Return |input| with the sign of other, for each element."""
    def copysign_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `copysign` into the tensor and return it."""
    def corrcoef(input) -> Tensor: """Return the correlations of the rows, in [-1, 1]."""
    def cos(input) -> Tensor: """Return the cosine of x, in radians, for each element."""
    def cos_(self) -> Tensor: """Write the result of `cos` into the tensor and return it."""
    def cosh(input) -> Tensor: """Return the hyperbolic cosine of x, for each element."""
    def cosh_(self) -> Tensor: """Write the result of `cosh` into the tensor and return it."""
    def count_nonzero(input, dim: Axes | None = None) -> Tensor: """Return the int64 number of elements that are not 0."""
    def cov(input, *, correction: _int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """Return the covariances of the rows, of shape (variables, variables)."""
    def cpu(self) -> Tensor: """Return a copy in main memory, or the tensor itself if it is already in main memory."""
    def cross(input, other: Tensor, dim: _int | None = None) -> Tensor:
        """Return the cross product along an axis of size 3."""
    def cuda(self, device: Device | None = None, non_blocking: _bool = False) -> Tensor:
        """Return a copy on a GPU, or the tensor itself if it is already on that GPU."""
    def cummax(input, dim: _int) -> return_types.cummax:
        """Return (values, indices) of the largest element up to each index."""
    def cummin(input, dim: _int) -> return_types.cummin:
        """Return (values, indices) of the smallest element up to each index."""
    def cumprod(input, dim: _int, *, dtype: _dtype | None = None) -> Tensor:
        """Return the running product along an axis; integers give int64."""
    def cumprod_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `cumprod` into the tensor and return it."""
    def cumsum(input, dim: _int, *, dtype: _dtype | None = None) -> Tensor:
        """Return the running sum along an axis; integers give int64."""
    def cumsum_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `cumsum` into the tensor and return it."""
    @property
    def data(self) -> Tensor: """The same memory without history."""
    @data.setter
    def data(self, value) -> None: ...
    def data_ptr(self) -> _int: """Return the address of the first element."""
    def deg2rad(input) -> Tensor: """Convert degrees to radians."""
    def deg2rad_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `deg2rad` into the tensor and return it."""
    def det(A) -> Tensor: """Return the determinant of each square matrix."""
    def detach(self) -> Tensor: """Return a tensor with the same memory (or lazy value), without autograd history."""
    def detach_(self) -> Tensor:
        """Remove the history, so that the tensor becomes a leaf that does not require a gradient."""
    @property
    def device(self) -> _device: ...
    def diag(input, diagonal: _int = 0) -> Tensor:
        """Return the diagonal of a matrix, or a matrix with a vector on its diagonal."""
    def diag_embed(input, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Return matrices with the last axis of the input on their diagonals, and zeros elsewhere."""
    def diagflat(input, offset: _int = 0) -> Tensor:
        """Return a square matrix with all elements on its diagonal, and zeros elsewhere."""
    def diagonal(input, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """Return a view of the diagonals of two axes; a new last axis replaces the two axes."""
    def diff(input, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
        """Return the n-th difference of neighbors along an axis."""
    def digamma(input) -> Tensor: """Return the derivative of lgamma, for each element."""
    def digamma_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `digamma` into the tensor and return it."""
    def dim(self) -> _int: """Return the number of axes."""
    def div(input, other: Tensor | Number, *, rounding_mode: str | None = None) -> Tensor: """Return input / other."""
    def div_(self, other: Tensor | Number, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `div` into the tensor and return it."""
    def divide(input, other: Tensor | Number, *, rounding_mode: str | None = None) -> Tensor: """Return input / other."""
    def divide_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `divide` into the tensor and return it."""
    def dot(input, tensor: Tensor) -> Tensor: """Return the inner product of two vectors."""
    def double(self) -> Tensor: """Convert to float64; return the tensor itself if it has this dtype."""
    def dsplit(input, indices_or_sections: _int | Sequence[_int] | Tensor) -> tuple[Tensor, ...]:
        """Return views of pieces along axis 2."""
    def element_size(self) -> _int: """Return the size of one element in bytes."""
    def eq(input, other: Tensor | Number) -> Tensor: """Return input == other, as a bool for each element."""
    def eq_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `eq` into the tensor and return it."""
    def equal(input, other: Tensor) -> _bool: """Return True if both tensors have the same shape and elements."""
    def erf(input) -> Tensor: """Return the error function of x, for each element."""
    def erf_(self) -> Tensor: """Write the result of `erf` into the tensor and return it."""
    def erfc(input) -> Tensor: """Return 1 - erf(x), accurate for large x, for each element."""
    def erfc_(self) -> Tensor: """Write the result of `erfc` into the tensor and return it."""
    def erfinv(input) -> Tensor: """Return the inverse of the error function, for each element."""
    def erfinv_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `erfinv` into the tensor and return it."""
    def exp(input) -> Tensor: """Return exp(x), for each element."""
    def exp2(input) -> Tensor: """Return 2 to the power x, for each element."""
    def exp2_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `exp2` into the tensor and return it."""
    def exp_(self) -> Tensor: """Write the result of `exp` into the tensor and return it."""
    def expand(input, *sizes_: Sizes, size: Sequence[_int] | None = None) -> Tensor:
        """Return a view that is broadcast to a shape; axes of size 1 are repeated without a copy."""
    def expand_as(input, other: Tensor) -> Tensor: """Return a view that is broadcast to the shape of another tensor."""
    def expm1(input) -> Tensor: """Return exp(x) - 1, accurate near 0, for each element."""
    def expm1_(self) -> Tensor: """Write the result of `expm1` into the tensor and return it."""
    def exponential_(self, *args: Any, **kwargs: Any) -> Tensor: """Fill the tensor with random numbers and return it."""
    def fill_(self, value: Tensor | Number) -> Tensor: """Fill the tensor with a value."""
    def fill_diagonal_(self, fill_value: _float, wrap: _bool = False) -> Tensor:
        """Write a number into the diagonal, which consists of the elements whose indices are equal."""
    def fix(input) -> Tensor: """Return x without its fraction, for each element."""
    def fix_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `fix` into the tensor and return it."""
    def flatten(input, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """Merge adjacent axes into one; a 0-dim tensor becomes a vector."""
    def flip(input, *dims_: Sizes, dims: Axes | None = None) -> Tensor: """Reverse the order along axes."""
    def fliplr(input) -> Tensor: """Reverse the second axis."""
    def flipud(input) -> Tensor: """Reverse the first axis."""
    def float(self) -> Tensor: """Convert to float32; return the tensor itself if it has this dtype."""
    def float_power(input, exponent: Tensor | Number) -> Tensor: """Return input ** exponent in float64."""
    def float_power_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `float_power` into the tensor and return it."""
    def floor(input) -> Tensor: """Return the largest integer that is at most x, for each element."""
    def floor_(self) -> Tensor: """Write the result of `floor` into the tensor and return it."""
    def floor_divide(input, other: Tensor | Number) -> Tensor: """Return input / other, rounded down, for each element."""
    def floor_divide_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `floor_divide` into the tensor and return it."""
    def fmax(input, other: Tensor | Number) -> Tensor:
        """Return the larger of two elements; if one of them is NaN, return the other."""
    def fmin(input, other: Tensor | Number) -> Tensor:
        """Return the smaller of two elements; if one of them is NaN, return the other."""
    def fmod(input, other: Tensor | Number) -> Tensor:
        """Return the remainder of input / other, with the sign of input, for each element."""
    def fmod_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `fmod` into the tensor and return it."""
    def frac(input) -> Tensor: """Return x - trunc(x) for each element."""
    def frac_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `frac` into the tensor and return it."""
    def gather(input, dim: _int, index: Tensor, *, sparse_grad: _bool = False) -> Tensor:
        """Return the elements at indices along an axis: y[i, j] = x[index[i, j], j] for dim 0, and so on."""
    def ge(input, other: Tensor | Number) -> Tensor: """Return input >= other, as a bool for each element."""
    def ge_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `ge` into the tensor and return it."""
    def gelu(input) -> Tensor: """Return x * Phi(x), where Phi is the normal distribution function, for each element."""
    def ger(input, vec2: Tensor) -> Tensor: """Return the products of all pairs of elements of two vectors."""
    def get_device(self) -> _int: """Return the index of the GPU, or -1 for the CPU."""
    def global_to_global(*args: Any, **kwargs: Any) -> Tensor:
        """See help(flowedu.tensor.global_tensors.creation.global_to_global)."""
    @property
    def grad_fn(self) -> Any: """The recorded call that computed this tensor; None for leaves."""
    def greater(input, other: Tensor | Number) -> Tensor: """Return input > other, as a bool for each element."""
    def greater_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `greater` into the tensor and return it."""
    def greater_equal(input, other: Tensor | Number) -> Tensor: """Return input >= other, as a bool for each element."""
    def greater_equal_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `greater_equal` into the tensor and return it."""
    def gt(input, other: Tensor | Number) -> Tensor: """Return input > other, as a bool for each element."""
    def gt_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `gt` into the tensor and return it."""
    def half(self) -> Tensor: """Convert to float16; return the tensor itself if it has this dtype."""
    def heaviside(input, values: Tensor | Number) -> Tensor:
        """Return 0 for negative elements, 1 for positive ones, and `values` for 0."""
    def heaviside_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `heaviside` into the tensor and return it."""
    def histc(input, bins: _int = 100, min: _float = 0, max: _float = 0) -> Tensor:
        """Return the number of elements in each of several bins of equal width."""
    def hsplit(input, indices_or_sections: _int | Sequence[_int] | Tensor) -> tuple[Tensor, ...]:
        """Return views of pieces along axis 1, or along axis 0 of a vector."""
    def hypot(input, other: Tensor | Number) -> Tensor:
        """Return sqrt(input^2 + other^2), without overflow, for each element."""
    def hypot_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `hypot` into the tensor and return it."""
    def in_top_k(targets, predictions: Tensor, k: _int) -> Tensor:
        """Return a bool tensor (n,), True where class targets[i] is one of the k largest of predictions[i]."""
    def index_add(input, dim: _int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
        """Return x with alpha * source added to the slices that the index selects."""
    def index_add_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `index_add` into the tensor and return it."""
    def index_copy(input, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """Return a copy of x in which the slices of the source replace the slices that the index selects."""
    def index_copy_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `index_copy` into the tensor and return it."""
    def index_fill(input, dim: _int, index: Tensor, value: Tensor | Number) -> Tensor:
        """Return a copy of x in which a number fills the slices that the index selects."""
    def index_fill_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `index_fill` into the tensor and return it."""
    def index_put(input, indices: Sequence[Tensor], values: Tensor | Number, accumulate: _bool = False) -> Tensor:
        """Return a copy of x after x[indices] = values."""
    def index_put_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `index_put` into the tensor and return it."""
    def index_reduce(input, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """Return x with the slices of the source combined by `reduce` into the slices that the index selects."""
    def index_reduce_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `index_reduce` into the tensor and return it."""
    def index_select(input, dim: _int, index: Tensor) -> Tensor:
        """Return the slices along an axis that a vector of indices selects."""
    def inner(input, other: Tensor) -> Tensor: """Return the sums of products along the last axes of both tensors."""
    def int(self) -> Tensor: """Convert to int32; return the tensor itself if it has this dtype."""
    def inverse(A) -> Tensor: """Return the inverse of each square matrix."""
    def is_complex(self) -> _bool: """Return False: complex numbers are not supported."""
    def is_contiguous(self, memory_format: memory_format | None = None) -> _bool:
        """Return True if the elements are stored in the order of a format, without gaps."""
    @property
    def is_cpu(self) -> _bool: """True if the tensor is in main memory."""
    @property
    def is_cuda(self) -> _bool: """True if the tensor is on a GPU."""
    def is_floating_point(self) -> _bool: """Return True if the dtype is floating."""
    @property
    def is_global(self) -> _bool: """True if global."""
    def is_inference(self) -> _bool: """Return True if the tensor was made in inference mode."""
    @property
    def is_leaf(self) -> _bool: """True if no recorded op computed this tensor."""
    @property
    def is_local(self) -> _bool: """True if the tensor is stored in one process, on one device."""
    @property
    def is_meta(self) -> _bool: ...
    @property
    def is_mkldnn(self) -> _bool: ...
    @property
    def is_mps(self) -> _bool: ...
    @property
    def is_nested(self) -> _bool: ...
    def is_pinned(self) -> _bool: """Return True if the tensor is in pinned memory."""
    @property
    def is_quantized(self) -> _bool: ...
    @property
    def is_sparse(self) -> _bool: ...
    @property
    def is_xpu(self) -> _bool: ...
    def isclose(input, other: Tensor, *, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """Return True where |input - other| <= atol + rtol * |other|."""
    def isfinite(input) -> Tensor: """Return True where an element is neither NaN nor infinite."""
    def isin(elements, test_elements: Tensor | Number, *, assume_unique: _bool = False, invert: _bool = False) -> Tensor:
        """Return True for each element that is equal to one of the test elements."""
    def isinf(input) -> Tensor: """Return True where an element is infinity or -infinity."""
    def isnan(input) -> Tensor: """Return True where an element is NaN."""
    def isneginf(input) -> Tensor: """Return True where an element is -infinity."""
    def isposinf(input) -> Tensor: """Return True where an element is infinity."""
    def item(self) -> Any: """Return the only element as a Python number."""
    @property
    def itemsize(self) -> _int: """Return the size of one element in bytes."""
    def kaiming_normal_(tensor, a: _float = 0.0, mode: str = 'fan_in', nonlinearity: str = 'leaky_relu', *, data_format: str = 'NCHW', generator=None) -> Tensor:
        """Fill with normal values of standard deviation gain / sqrt(fan)."""
    def kaiming_uniform_(tensor, a: _float = 0.0, mode: str = 'fan_in', nonlinearity: str = 'leaky_relu', *, data_format: str = 'NCHW', generator=None) -> Tensor:
        """Fill with uniform values of standard deviation gain / sqrt(fan)."""
    def kron(input, other: Tensor) -> Tensor: """Return the Kronecker product."""
    def kthvalue(input, k: _int, dim: _int = -1, keepdim: _bool = False) -> return_types.kthvalue:
        """Return (values, indices) of the k-th smallest element along an axis."""
    @property
    def layout(self) -> str: ...
    def ldexp(input, other: Tensor) -> Tensor: """Return input * 2^other."""
    def ldexp_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `ldexp` into the tensor and return it."""
    def le(input, other: Tensor | Number) -> Tensor: """Return input <= other, as a bool for each element."""
    def le_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `le` into the tensor and return it."""
    def lerp(input, end: Tensor, weight: Tensor | Number) -> Tensor:
        """Return the linear interpolation input + weight * (end - input)."""
    def lerp_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `lerp` into the tensor and return it."""
    def less(input, other: Tensor | Number) -> Tensor: """Return input < other, as a bool for each element."""
    def less_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `less` into the tensor and return it."""
    def less_equal(input, other: Tensor | Number) -> Tensor: """Return input <= other, as a bool for each element."""
    def less_equal_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `less_equal` into the tensor and return it."""
    def lgamma(input) -> Tensor: """Return log |gamma(x)|, for each element."""
    def lgamma_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `lgamma` into the tensor and return it."""
    def local_to_global(*args: Any, **kwargs: Any) -> Tensor:
        """See help(flowedu.tensor.global_tensors.creation.local_to_global)."""
    def log(input) -> Tensor: """Return the natural logarithm of x, for each element."""
    def log10(input) -> Tensor: """Return the logarithm of x to base 10, for each element."""
    def log10_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `log10` into the tensor and return it."""
    def log1p(input) -> Tensor: """Return log(1 + x), accurate near 0, for each element."""
    def log1p_(self) -> Tensor: """Write the result of `log1p` into the tensor and return it."""
    def log2(input) -> Tensor: """Return the logarithm of x to base 2, for each element."""
    def log2_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `log2` into the tensor and return it."""
    def log_(self) -> Tensor: """Write the result of `log` into the tensor and return it."""
    def log_softmax(self, dim: _int | None = None, dtype: _dtype | None = None) -> Tensor:
        """Return the logarithm of softmax along an axis."""
    def logaddexp(input, other: Tensor | Number) -> Tensor: """Return log(exp(input) + exp(other)), without overflow."""
    def logaddexp2(input, other: Tensor | Number) -> Tensor: """Return log2(2^input + 2^other), without overflow."""
    def logcumsumexp(input, dim: _int) -> Tensor: """Return log(cumsum(exp(x))) along an axis, without overflow."""
    def logdet(input) -> Tensor: """Return the logarithm of each determinant, or NaN for a negative determinant."""
    def logical_and(input, other: Tensor | Number) -> Tensor:
        """Return True if both are not 0, as a bool for each element."""
    def logical_and_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `logical_and` into the tensor and return it."""
    def logical_not(input) -> Tensor: """Return True where an element is 0."""
    def logical_not_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `logical_not` into the tensor and return it."""
    def logical_or(input, other: Tensor | Number) -> Tensor:
        """Return True if input or other is not 0, as a bool for each element."""
    def logical_or_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `logical_or` into the tensor and return it."""
    def logical_xor(input, other: Tensor | Number) -> Tensor:
        """Return True if exactly one operand is not 0, as a bool for each element."""
    def logical_xor_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `logical_xor` into the tensor and return it."""
    def logit(input, eps: _float | None = None) -> Tensor: """Return log(x / (1 - x)) for each element."""
    def logit_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `logit` into the tensor and return it."""
    def logsumexp(input, dim: Axes, keepdim: _bool = False) -> Tensor: """Return log(sum(exp(x))), without overflow."""
    def long(self) -> Tensor: """Convert to int64; return the tensor itself if it has this dtype."""
    def lt(input, other: Tensor | Number) -> Tensor: """Return input < other, as a bool for each element."""
    def lt_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `lt` into the tensor and return it."""
    @property
    def mT(self) -> Tensor: """Return a view with the last two axes exchanged."""
    def masked_fill(input, mask: Tensor, value: Tensor | Number) -> Tensor:
        """Return x with a number where the mask is True."""
    def masked_fill_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `masked_fill` into the tensor and return it."""
    def masked_scatter(input, mask: Tensor, source: Tensor) -> Tensor:
        """Return a copy of x in which the elements of the source, in order, replace those where the mask is True."""
    def masked_scatter_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `masked_scatter` into the tensor and return it."""
    def masked_select(input, mask: Tensor) -> Tensor: """Return the elements where the mask is True, as a vector."""
    def matmul(input, other: Tensor) -> Tensor: """Return the matrix product; batch axes broadcast."""
    def matrix_exp(input) -> Tensor: """Return 1 + A + A @ A / 2 + ... of each square matrix A."""
    def matrix_power(input, n: _int) -> Tensor:
        """Return the matrix power x @ x @ ... @ x; a negative exponent gives a power of the inverse."""
    @overload
    def max(input, dim: Tensor | None = None, keepdim: _bool = False) -> Tensor:
        """Return the maximum of all elements, along an axis, or of two tensors."""
    @overload
    def max(input, dim: _int, keepdim: _bool = False) -> return_types.max:
        """Return the maximum of all elements, along an axis, or of two tensors."""
    def maximum(input, other: Tensor | Number) -> Tensor:
        """Return the larger element, or NaN if one is NaN, for each element."""
    def mean(input, dim: Axes | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor:
        """Return the mean of the elements, or NaN for a tensor without elements."""
    @overload
    def median(input, dim: Tensor | None = None, keepdim: _bool = False) -> Tensor:
        """Return the median, or NaN if an element is NaN."""
    @overload
    def median(input, dim: _int, keepdim: _bool = False) -> return_types.median:
        """Return the median, or NaN if an element is NaN."""
    @overload
    def min(input, dim: Tensor | None = None, keepdim: _bool = False) -> Tensor:
        """Return the minimum of all elements, along an axis, or of two tensors."""
    @overload
    def min(input, dim: _int, keepdim: _bool = False) -> return_types.min:
        """Return the minimum of all elements, along an axis, or of two tensors."""
    def minimum(input, other: Tensor | Number) -> Tensor:
        """Return the smaller element, or NaN if one is NaN, for each element."""
    def mish(input) -> Tensor: """Return x * tanh(softplus(x)), for each element."""
    def mm(input, mat2: Tensor) -> Tensor: """Return the product of two matrices."""
    def mode(input, dim: _int = -1, keepdim: _bool = False) -> return_types.mode:
        """Return (values, indices) of the most frequent element along an axis."""
    def moveaxis(input, source: Axes, destination: Axes) -> Tensor:
        """Move axes to other positions; the other axes keep their order."""
    def moveaxis_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Apply `moveaxis` to the tensor itself, without moving its memory, and return it."""
    def movedim(input, source: Axes, destination: Axes) -> Tensor:
        """Move axes to other positions; the other axes keep their order."""
    def movedim_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Apply `movedim` to the tensor itself, without moving its memory, and return it."""
    def msort(input) -> Tensor: """Return the values sorted along the first axis."""
    def mul(input, other: Tensor | Number) -> Tensor: """Return input * other, for each element."""
    def mul_(self, other: Tensor | Number, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `mul` into the tensor and return it."""
    def multinomial(input, num_samples: _int, replacement: _bool = False, *, generator: Generator | None = None) -> Tensor:
        """Draw int64 positions in each row, with probabilities proportional to the weights."""
    def multiply(input, other: Tensor | Number) -> Tensor: """Return input * other, for each element."""
    def multiply_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `multiply` into the tensor and return it."""
    def mv(input, vec: Tensor) -> Tensor: """Return the product of a matrix and a vector."""
    def nan_to_num(input, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """Replace NaN and infinities by numbers."""
    def nan_to_num_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `nan_to_num` into the tensor and return it."""
    def nanmean(input, dim: Axes | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor:
        """Return the mean of the elements that are not NaN."""
    def nansum(input, dim: Axes | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor:
        """Return the sum of the elements that are not NaN."""
    def narrow(input, dim: _int, start: _int, length: _int) -> Tensor:
        """Return a view of `length` elements along an axis."""
    @property
    def nbytes(self) -> _int: ...
    def ndimension(self) -> _int: """Return the number of axes."""
    def ne(input, other: Tensor | Number) -> Tensor: """Return input != other, as a bool for each element."""
    def ne_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `ne` into the tensor and return it."""
    def neg(input) -> Tensor: """Return -x for each element."""
    def neg_(self) -> Tensor: """Write the result of `neg` into the tensor and return it."""
    def negative(input) -> Tensor: """Return -x for each element."""
    def negative_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `negative` into the tensor and return it."""
    def nelement(self) -> _int: """Return the number of elements."""
    def new_empty(self, *size: Sizes, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
        """Return an uninitialized tensor, by default with the dtype and location of this tensor."""
    def new_full(self, size: _int | Sequence[_int], fill_value: Number | Tensor, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
        """Return a tensor filled with a number, by default with the dtype and location of this tensor."""
    def new_ones(self, *size: Sizes, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
        """Return a tensor of ones, by default with the dtype and location of this tensor."""
    def new_tensor(self, data: Any, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
        """Return flow.tensor(data), by default with the dtype and location of this tensor."""
    def new_zeros(self, *size: Sizes, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> Tensor:
        """Return a tensor of zeros, by default with the dtype and location of this tensor."""
    @overload
    def nonzero(input, *, as_tuple: Literal[False] = False) -> Tensor:
        """Return the positions of the elements that are not 0, as an int64 tensor (count, axes)."""
    @overload
    def nonzero(input, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
        """Return the positions of the elements that are not 0, as an int64 tensor (count, axes)."""
    def norm(input, p: Number | str = 'fro', dim: Axes | None = None, keepdim: _bool = False, dtype: _dtype | None = None) -> Tensor:
        """Return the p-norm of the elements."""
    def normal_(self, *args: Any, **kwargs: Any) -> Tensor: """Fill the tensor with random numbers and return it."""
    def not_equal(input, other: Tensor | Number) -> Tensor: """Return input != other, as a bool for each element."""
    def not_equal_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `not_equal` into the tensor and return it."""
    def numel(self) -> _int: """Return the number of elements."""
    def numpy(self) -> _np.ndarray: """Return an ndarray that shares the memory."""
    def orthogonal_(tensor, gain: _float = 1.0, generator=None) -> Tensor:
        """Fill with a matrix with orthogonal rows, or orthogonal columns if it has fewer columns than rows."""
    def outer(input, vec2: Tensor) -> Tensor: """Return the products of all pairs of elements of two vectors."""
    @property
    def output_nr(self) -> _int: """Index of the tensor in grad_fn's outputs."""
    @property
    def parts(self) -> Any: """{rank: shard} of the ranks of this process; devices with equal shards may share one."""
    def peek(self) -> _np.ndarray: """Return an ndarray for reading only, with bfloat16 converted to float32."""
    def permute(input, *dims_: Sizes, dims: Sequence[_int] | None = None) -> Tensor:
        """Return a view with the axes in another order."""
    def pin_memory(self, device: Device | None = None) -> Tensor:
        """Return a copy in pinned main memory, which a GPU reads directly."""
    def pinverse(input, rcond: _float = 1e-15) -> Tensor: """Return flow.linalg.pinv(input, rcond)."""
    @property
    def placement(self) -> Any: """Devices of a global tensor."""
    def positive(input) -> Tensor: """Return the tensor itself."""
    def pow(input, exponent: Tensor | Number) -> Tensor: """Return input ** exponent."""
    def pow_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `pow` into the tensor and return it."""
    def prod(input, dim: Axes | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor:
        """Return the prod of the elements."""
    def put(input, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """Return x with the elements of the source written at positions in the flattened tensor."""
    def put_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `put` into the tensor and return it."""
    def qr(input, some: _bool = True) -> return_types.qr: """Return flow.linalg.qr(input), an older form."""
    def quantile(input, q: Tensor | _float | Sequence[_float], dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear') -> Tensor:
        """Return quantiles, or NaN if an element is NaN."""
    def rad2deg(input) -> Tensor: """Convert radians to degrees."""
    def rad2deg_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `rad2deg` into the tensor and return it."""
    def random_(self, *args: Any, **kwargs: Any) -> Tensor: """Fill the tensor with random numbers and return it."""
    def ravel(input) -> Tensor: """Return all elements as a vector, a view if the strides allow it."""
    def reciprocal(input) -> Tensor: """Return 1 / x, for each element."""
    def reciprocal_(self) -> Tensor: """Write the result of `reciprocal` into the tensor and return it."""
    def record_stream(self, stream: Any) -> None:
        """Record that kernels of another stream use this memory, so that it is reused only after them."""
    def register_hook(self, hook: Callable) -> Handle:
        """Register a hook that is called as hook(gradient) when the gradient of this tensor has been computed."""
    def register_post_accumulate_grad_hook(self, hook: Callable) -> Handle:
        """Register a hook that is called as hook(tensor) after a gradient was added to this leaf's `.grad`."""
    def relu(input) -> Tensor: """Return max(x, 0), for each element."""
    def relu6(input) -> Tensor: """Return min(max(x, 0), 6) for each element."""
    def relu_(self) -> Tensor: """Write the result of `relu` into the tensor and return it."""
    def remainder(input, other: Tensor | Number) -> Tensor:
        """Return the remainder of input / other, with the sign of other, for each element."""
    def remainder_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `remainder` into the tensor and return it."""
    def renorm(input, p: _float, dim: _int, maxnorm: _float) -> Tensor:
        """Scale down the slices along an axis, so that the p-norm of each is at most maxnorm."""
    def renorm_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `renorm` into the tensor and return it."""
    def repeat(input, *times_: Sizes, repeats: Sequence[_int] | None = None) -> Tensor:
        """Repeat the tensor along its axes."""
    def repeat_interleave(input, repeats: Tensor | _int | None = None, dim: _int | None = None, *, output_size: _int | None = None) -> Tensor:
        """Repeat every element, or every slice along an axis, several times in a row."""
    @property
    def requires_grad(self) -> _bool: """True if backward computes the gradient of this tensor."""
    @requires_grad.setter
    def requires_grad(self, value) -> None: ...
    def requires_grad_(self, requires_grad: _bool = True) -> Tensor: """Set requires_grad and return the tensor."""
    def requires_grad_on(self, requires_grad: _bool = True) -> Tensor: """Set requires_grad and return the tensor."""
    def reshape(input, *sizes_: Sizes, shape: Sequence[_int] | None = None) -> Tensor:
        """Return the elements in another shape, as a view if the strides allow it, and else as a copy."""
    def reshape_as(input, other: Tensor) -> Tensor: """Return the elements in the shape of another tensor."""
    def retain_grad(self) -> None:
        """Let the backward pass store this tensor's gradient in `.grad`, as it does for leaves."""
    @property
    def retains_grad(self) -> _bool: ...
    def roll(input, shifts: Axes, dims: Axes | None = None) -> Tensor:
        """Shift elements along axes; elements shifted past the end reappear at the start."""
    def rot90(input, k: _int = 1, dims: Sequence[_int] = ...) -> Tensor:
        """Rotate by multiples of 90 degrees in the plane of two axes."""
    def round(input, decimals: _int = 0) -> Tensor:
        """Round each element to a number of decimals; halves go to the even digit."""
    def round_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `round` into the tensor and return it."""
    def rsqrt(input) -> Tensor: """Return 1 / sqrt(x), for each element."""
    def rsqrt_(self) -> Tensor: """Write the result of `rsqrt` into the tensor and return it."""
    @property
    def sbp(self) -> Any:
        """Layout of a global tensor on its devices: one sbp for each axis of the placement's hierarchy."""
    def scatter(input, dim: _int, index: Tensor, src: Tensor | Number, *, reduce: str | None = None) -> Tensor:
        """Return x with x[index[i, j], j] = src[i, j] for dim 0, and so on."""
    def scatter_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `scatter` into the tensor and return it."""
    def scatter_add(input, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """Return x with src[i, j] added to x[index[i, j], j] for dim 0, and so on; repeated indices add up."""
    def scatter_add_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `scatter_add` into the tensor and return it."""
    def scatter_reduce(input, dim: _int, index: Tensor, src: Tensor, reduce: str, *, include_self: _bool = True) -> Tensor:
        """Return x with all src elements of the same position combined by `reduce`; not supported in graphs."""
    def scatter_reduce_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `scatter_reduce` into the tensor and return it."""
    def select(input, dim: _int, index: _int) -> Tensor:
        """Return a view of one position along an axis, without that axis."""
    def select_scatter(input, src: Tensor, dim: _int, index: _int) -> Tensor:
        """Return a copy of x in which src replaces the slice at one position along an axis."""
    def selu(input) -> Tensor: """Return the scaled exponential linear unit of each element; see nn.functional.selu."""
    def sgn(input) -> Tensor: """Return -1, 0, or 1, the sign of x, for each element."""
    def sgn_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `sgn` into the tensor and return it."""
    def short(self) -> Tensor: """Convert to int16; return the tensor itself if it has this dtype."""
    def sigmoid(input) -> Tensor: """Return 1 / (1 + exp(-x)), for each element."""
    def sigmoid_(self) -> Tensor: """Write the result of `sigmoid` into the tensor and return it."""
    def sign(input) -> Tensor: """Return -1, 0, or 1, the sign of x, for each element."""
    def sign_(self) -> Tensor: """Write the result of `sign` into the tensor and return it."""
    def signbit(input) -> Tensor: """Return True for negative elements, including -0.0."""
    def silu(input) -> Tensor: """Return x * sigmoid(x) for each element."""
    def sin(input) -> Tensor: """Return the sine of x, in radians, for each element."""
    def sin_(self) -> Tensor: """Write the result of `sin` into the tensor and return it."""
    def sinc(input) -> Tensor: """Return sin(pi x) / (pi x) for each element, and 1 at 0."""
    def sinc_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `sinc` into the tensor and return it."""
    def sinh(input) -> Tensor: """Return the hyperbolic sine of x, for each element."""
    def sinh_(self) -> Tensor: """Write the result of `sinh` into the tensor and return it."""
    def size(self, dim: _int | None = None) -> Any: """Return the shape, or the size of one axis."""
    def slice_scatter(input, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> Tensor:
        """Return a copy of x in which src replaces x[start:end:step] along an axis."""
    def slogdet(input) -> return_types.slogdet: """Return flow.linalg.slogdet(input)."""
    def softmax(self, dim: _int | None = None, dtype: _dtype | None = None) -> Tensor:
        """Return exp(x) / sum(exp(x)) along an axis."""
    def softplus(input, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
        """Return log(1 + exp(beta * x)) / beta for each element."""
    def softsign(input) -> Tensor: """Return x / (1 + |x|), for each element."""
    def sort(input, dim: _int = -1, descending: _bool = False, stable: _bool = True) -> return_types.sort:
        """Sort along an axis and return (values, indices)."""
    def split(input, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Return views of pieces along an axis."""
    def sqrt(input) -> Tensor: """Return the square root of x, for each element."""
    def sqrt_(self) -> Tensor: """Write the result of `sqrt` into the tensor and return it."""
    def square(input) -> Tensor: """Return x * x for each element; bools give int64."""
    def square_(self) -> Tensor: """Write the result of `square` into the tensor and return it."""
    def squeeze(input, dim: Axes | None = None) -> Tensor: """Remove axes of size 1."""
    def squeeze_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Apply `squeeze` to the tensor itself, without moving its memory, and return it."""
    def std(input, dim: Axes | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None) -> Tensor:
        """Return the standard deviation, the square root of var."""
    def storage(self) -> UntypedStorage:
        """Return the memory block of this tensor; tensors that share memory return equal blocks."""
    def storage_offset(self) -> _int:
        """Return the number of elements between the start of the memory block and the first element."""
    def stride(self, dim: _int | None = None) -> Any:
        """Return the distance in memory between neighbors along each axis, in elements."""
    def sub(input, other: Tensor | Number, *, alpha: Number = 1) -> Tensor: """Return input - alpha * other."""
    def sub_(self, other: Tensor | Number, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `sub` into the tensor and return it."""
    def subtract(input, other: Tensor | Number, *, alpha: Number = 1) -> Tensor: """Return input - alpha * other."""
    def subtract_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `subtract` into the tensor and return it."""
    def sum(input, dim: Axes | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> Tensor:
        """Return the sum of the elements."""
    def svd(input, some: _bool = True, compute_uv: _bool = True) -> return_types.svd:
        """Return (U, S, V) with input = U @ diag(S) @ V.mT; an older form of linalg.svd."""
    def swapaxes(input, dim0: _int, dim1: _int) -> Tensor: """Return a view with two axes exchanged."""
    def swapaxes_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Apply `swapaxes` to the tensor itself, without moving its memory, and return it."""
    def swapdims(input, dim0: _int, dim1: _int) -> Tensor: """Return a view with two axes exchanged."""
    def swapdims_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Apply `swapdims` to the tensor itself, without moving its memory, and return it."""
    def t(input) -> Tensor: """Return the transpose of a matrix; vectors are returned unchanged."""
    def t_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Apply `t` to the tensor itself, without moving its memory, and return it."""
    def take(input, index: Tensor) -> Tensor: """Return the elements at positions in the flattened tensor."""
    def take_along_dim(input, indices: Tensor, dim: _int | None = None) -> Tensor:
        """Return the elements that an index tensor selects along an axis."""
    def tan(input) -> Tensor: """Return the tangent of x, in radians, for each element."""
    def tan_(self) -> Tensor: """Write the result of `tan` into the tensor and return it."""
    def tanh(input) -> Tensor: """Return the hyperbolic tangent of x, for each element."""
    def tanh_(self) -> Tensor: """Write the result of `tanh` into the tensor and return it."""
    def tensor_split(input, indices_or_sections: _int | Sequence[_int] | Tensor, dim: _int = 0) -> tuple[Tensor, ...]:
        """Return pieces along an axis."""
    def tile(input, *dims_: Sizes, dims: Sequence[_int] | None = None) -> Tensor: """Repeat the tensor along its axes."""
    def to(self, *args: Any, dtype: _dtype | None = None, device: Device | None = None, other: Tensor | None = None, non_blocking: _bool = False, copy: _bool = False, memory_format: memory_format | None = None) -> Tensor:
        """Return this tensor with another dtype or on another device, or the tensor itself if nothing changes."""
    def to_consistent(*args: Any, **kwargs: Any) -> Tensor: """See help(flowedu.core.sbp.tensor.shards.to_global)."""
    def to_device(self, device: Device, /, *, stream: Any = None) -> Tensor:
        """Return the tensor on another device, as `x.to(device)` does."""
    def to_global(*args: Any, **kwargs: Any) -> Tensor: """See help(flowedu.core.sbp.tensor.shards.to_global)."""
    def to_local(*args: Any, **kwargs: Any) -> Tensor: """See help(flowedu.core.sbp.tensor.shards.to_local)."""
    def tolist(self) -> Any: """Return the elements as nested lists, or the number of a 0-dim tensor."""
    def topk(input, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> return_types.topk:
        """Return (values, indices) of the k largest elements along an axis."""
    def trace(input) -> Tensor: """Return the sum of the diagonal of a matrix."""
    def transpose(input, dim0: _int, dim1: _int) -> Tensor: """Return a view with two axes exchanged."""
    def transpose_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Apply `transpose` to the tensor itself, without moving its memory, and return it."""
    def triangular_solve(input, A: Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> return_types.triangular_solve:
        """Return (X, A) with A @ X = input for a triangular matrix A; an older form of solve_triangular."""
    def tril(input, diagonal: _int = 0) -> Tensor: """Return the lower triangle of each matrix, with zeros above it."""
    def tril_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `tril` into the tensor and return it."""
    def triu(input, diagonal: _int = 0) -> Tensor: """Return the upper triangle of each matrix, with zeros below it."""
    def triu_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `triu` into the tensor and return it."""
    def true_divide(input, other: Tensor | Number) -> Tensor: """Return input / other, as a float, for each element."""
    def true_divide_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Write the result of `true_divide` into the tensor and return it."""
    def trunc(input) -> Tensor: """Return x without its fraction, for each element."""
    def trunc_(self) -> Tensor: """Write the result of `trunc` into the tensor and return it."""
    def trunc_normal_(self, *args: Any, **kwargs: Any) -> Tensor: """Fill the tensor with random numbers and return it."""
    def type(self, dtype: _dtype | _type | str | None = None, non_blocking: _bool = False) -> Tensor | str:
        """Return the class name of the dtype, such as 'flowedu.FloatTensor', or convert to another dtype."""
    def type_as(input, other: Tensor) -> Tensor: """Convert to the dtype of another tensor."""
    def unbind(input, dim: _int = 0) -> tuple[Tensor, ...]: """Return one view per position along an axis."""
    def unflatten(input, dim: _int, sizes: Sequence[_int]) -> Tensor: """Split one axis into several."""
    def unfold(input, dimension: _int, size: _int, step: _int) -> Tensor:
        """Return a view of sliding windows along an axis, with the elements of each window along a new last axis."""
    def uniform_(self, *args: Any, **kwargs: Any) -> Tensor: """Fill the tensor with random numbers and return it."""
    def unique(input, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
        """Return the distinct elements in order, and optionally their inverse indices and counts."""
    def unique_consecutive(input, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
        """Return the elements, except for elements that equal their predecessor."""
    def unsqueeze(input, dim: _int) -> Tensor: """Insert an axis of size 1."""
    def unsqueeze_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Apply `unsqueeze` to the tensor itself, without moving its memory, and return it."""
    def untyped_storage(self) -> UntypedStorage:
        """Return the memory block of this tensor; tensors that share memory return equal blocks."""
    def var(input, dim: Axes | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None) -> Tensor:
        """Return the variance: the sum of squared deviations divided by n - correction."""
    def vdot(input, tensor: Tensor) -> Tensor: """Return the inner product of two vectors."""
    def view(input, *shape: Any) -> Tensor: """Return a view in another shape."""
    def view_as(input, other: Tensor) -> Tensor: """Return a view in the shape of another tensor."""
    def vsplit(input, indices_or_sections: _int | Sequence[_int] | Tensor) -> tuple[Tensor, ...]:
        """Return views of pieces along axis 0."""
    @overload
    def where(self, condition: Tensor, other: None) -> tuple[Tensor, ...]: """Return flow.where(condition, self, other)."""
    @overload
    def where(self, condition: Tensor, other: Any) -> Tensor: """Return flow.where(condition, self, other)."""
    def xavier_normal_(tensor, gain: _float = 1.0, *, data_format: str = 'NCHW', generator=None) -> Tensor:
        """Fill with normal values of standard deviation gain * sqrt(2 / (fan_in + fan_out))."""
    def xavier_uniform_(tensor, gain: _float = 1.0, *, data_format: str = 'NCHW', generator=None) -> Tensor:
        """Fill with uniform values of standard deviation gain * sqrt(2 / (fan_in + fan_out))."""
    def xlogy(input, other: Tensor | Number) -> Tensor:
        """Return input * log(other), and 0 where input is 0, for each element."""
    def xlogy_(self, *args: Any, **kwargs: Any) -> Tensor: """Write the result of `xlogy` into the tensor and return it."""
    def zero_(input) -> Tensor: """Fill the tensor with zeros."""
class TensorType(type):
    """Metaclass that defines the call `flow.Tensor(2, 3)`."""
    def __call__(cls, *args: object, device: object | None = None, placement: object | None = None, sbp: object | None = None) -> Any: ...
def attach(cls: type, methods: dict) -> None: """Set attributes of a class."""
slots: Slots
__all__ = ['Size', 'Tensor', 'attach']
