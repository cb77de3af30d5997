"""Written by `make stubs`: do not edit."""
import numpy as _np
from builtins import bool as _bool, float as _float, int as _int
from collections.abc import Callable, Sequence
from flowedu.core.eager.dispatch import Slots, TensorBase
from flowedu.core.values.size import Size as Size
from flowedu.tensor import return_types
from flowedu.tensor.device import device as _device
from flowedu.tensor.hooks import Handle
from flowedu.tensor.interop import UntypedStorage
from flowedu.tensor.memory_format import memory_format
from typing import Any, Iterator, Literal, overload

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
    def H(self) -> Tensor: """The last two axes exchanged, a view: there are no complex numbers."""
    @property
    def T(self) -> Tensor: """All axes reversed."""
    def __abs__(input) -> Tensor: ...
    def __and__(self, other) -> Tensor: ...
    def __array__(self, dtype=None, copy=None) -> Any: ...
    def __array_namespace__(self, /, *, api_version: str | None = None): ...
    def __bool__(self) -> _bool: ...
    def __complex__(self) -> complex: ...
    def __contains__(self, x) -> _bool: ...
    def __copy__(self) -> Tensor: ...
    @property
    def __cuda_array_interface__(self) -> Any:
        """What PyCUDA, CuPy, Numba and flow.cuda.kernel look at this memory by; AttributeError for tensors on the CPU."""
    def __deepcopy__(self, memo: dict) -> Tensor: ...
    def __dlpack__(self, *, stream=None, max_version: tuple[_int, _int] | None = None, dl_device: tuple[_int, _int] | None = None, copy: _bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> Any: ...
    def __eq__(self, other) -> Tensor: ...  # type: ignore[override]
    def __float__(self) -> _float: ...
    def __floordiv__(self, other) -> Tensor: ...
    def __format__(self, spec: str) -> str: ...
    def __ge__(self, other) -> Tensor: ...
    def __getitem__(self, index) -> Tensor: ...
    def __gt__(self, other) -> Tensor: ...
    def __hash__(self) -> _int: ...
    def __iand__(self, other) -> Tensor: ...
    def __ifloordiv__(self, other) -> Tensor: ...
    def __imod__(self, other) -> Tensor: ...
    def __index__(self) -> _int: ...
    def __int__(self) -> _int: ...
    def __invert__(input) -> Tensor: ...
    def __ior__(self, other) -> Tensor: ...
    def __ipow__(self, other) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __ixor__(self, other) -> Tensor: ...
    def __le__(self, other) -> Tensor: ...
    def __len__(self) -> _int: ...
    def __lshift__(self, other) -> Tensor: ...
    def __lt__(self, other) -> Tensor: ...
    def __mod__(self, other) -> Tensor: ...
    def __ne__(self, other) -> Tensor: ...  # type: ignore[override]
    def __neg__(input) -> Tensor: ...
    def __or__(self, other) -> Tensor: ...
    def __pos__(input) -> Tensor: ...
    def __pow__(self, other) -> Tensor: ...
    def __rand__(self, other) -> Tensor: ...
    def __reduce_ex__(self, protocol): ...
    def __repr__(self) -> str: ...
    def __rfloordiv__(self, other) -> Tensor: ...
    def __rlshift__(self, other) -> Tensor: ...
    def __rmod__(self, other) -> Tensor: ...
    def __ror__(self, other) -> Tensor: ...
    def __rpow__(self, other) -> Tensor: ...
    def __rrshift__(self, other) -> Tensor: ...
    def __rshift__(self, other) -> Tensor: ...
    def __rxor__(self, other) -> Tensor: ...
    def __setitem__(self, index, value) -> None: ...
    def __xor__(self, other) -> Tensor: ...
    def abs(input) -> Tensor: """Elementwise abs."""
    def abs_(self) -> Tensor: """`abs`, written into the tensor itself."""
    def absolute(input) -> Tensor: """Elementwise abs."""
    def absolute_(self, *args, **kwargs) -> Tensor: """`absolute`, written into the tensor itself."""
    def acos(input) -> Tensor: """Elementwise acos."""
    def acos_(self) -> Tensor: """`acos`, written into the tensor itself."""
    def acosh(input) -> Tensor: """Elementwise acosh."""
    def acosh_(self) -> Tensor: """`acosh`, written into the tensor itself."""
    def add(input, other, *, alpha=1) -> Tensor:
        """input + alpha * other. flow.add(a, b, c), or of a list: the sum of all."""
    def add_(self, other, *args, **kwargs) -> Tensor: """`add`, written into the tensor itself."""
    def addbmm(input, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
        """beta * input + alpha * the sum of all products of the batch."""
    def addbmm_(self, *args, **kwargs) -> Tensor: """`addbmm`, written into the tensor itself."""
    def addcdiv(input, tensor1, tensor2, *, value=1) -> Tensor: """input + value * tensor1 / tensor2."""
    def addcdiv_(self, *args, **kwargs) -> Tensor: """`addcdiv`, written into the tensor itself."""
    def addcmul(input, tensor1, tensor2, *, value=1) -> Tensor: """input + value * tensor1 * tensor2."""
    def addcmul_(self, *args, **kwargs) -> Tensor: """`addcmul`, written into the tensor itself."""
    def addmm(input, mat1, mat2, *, beta=1, alpha=1) -> Tensor: """beta * input + alpha * mat1 @ mat2."""
    def addmm_(self, *args, **kwargs) -> Tensor: """`addmm`, written into the tensor itself."""
    def addmv(input, mat, vec, *, beta=1, alpha=1) -> Tensor: """beta * input + alpha * mat @ vec."""
    def addmv_(self, *args, **kwargs) -> Tensor: """`addmv`, written into the tensor itself."""
    def addr(input, vec1, vec2, *, beta=1, alpha=1) -> Tensor: """beta * input + alpha * outer(vec1, vec2)."""
    def addr_(self, *args, **kwargs) -> Tensor: """`addr`, written into the tensor itself."""
    def adjoint(input) -> Tensor: """The last two axes exchanged, a view: there are no complex numbers."""
    def all(input, dim=None, keepdim: _bool = False) -> Tensor: """Whether no element is 0."""
    def allclose(input, other, *, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
        """Whether all elements are close: see isclose."""
    def amax(input, dim=..., keepdim: _bool = False) -> Tensor: """The max over `dim` (int, tuple; none: all)."""
    def amin(input, dim=..., keepdim: _bool = False) -> Tensor: """The min over `dim` (int, tuple; none: all)."""
    def aminmax(input, *, dim=None, keepdim: _bool = False) -> tuple[Tensor, Tensor]: """(smallest, largest)."""
    def any(input, dim=None, keepdim: _bool = False) -> Tensor: """Whether an element is not 0."""
    def arccos(input) -> Tensor: """Elementwise acos."""
    def arccos_(self, *args, **kwargs) -> Tensor: """`arccos`, written into the tensor itself."""
    def arccosh(input) -> Tensor: """Elementwise acosh."""
    def arccosh_(self, *args, **kwargs) -> Tensor: """`arccosh`, written into the tensor itself."""
    def arcsin(input) -> Tensor: """Elementwise asin."""
    def arcsin_(self, *args, **kwargs) -> Tensor: """`arcsin`, written into the tensor itself."""
    def arcsinh(input) -> Tensor: """Elementwise asinh."""
    def arcsinh_(self, *args, **kwargs) -> Tensor: """`arcsinh`, written into the tensor itself."""
    def arctan(input) -> Tensor: """Elementwise atan."""
    def arctan2(input, other) -> Tensor:
        """Elementwise atan2 of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def arctan2_(self, *args, **kwargs) -> Tensor: """`arctan2`, written into the tensor itself."""
    def arctan_(self, *args, **kwargs) -> Tensor: """`arctan`, written into the tensor itself."""
    def arctanh(input) -> Tensor: """Elementwise atanh."""
    def arctanh_(self, *args, **kwargs) -> Tensor: """`arctanh`, written into the tensor itself."""
    def argmax(input, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """Where the largest element is (the first of equals, a NaN before all), int64; None: in the flattened tensor."""
    def argmin(input, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """Where the smallest element is (the first of equals, a NaN before all), int64; None: in the flattened tensor."""
    def argsort(input, dim: _int = -1, descending: _bool = False, stable: _bool = True) -> Tensor:
        """The places, int64, that sort x along `dim`."""
    def argwhere(input) -> Tensor: """nonzero(input)."""
    def as_strided(input, size, stride, storage_offset: _int | None = None) -> Tensor:
        """Any look at the memory of a contiguous tensor; strides in elements."""
    def asin(input) -> Tensor: """Elementwise asin."""
    def asin_(self) -> Tensor: """`asin`, written into the tensor itself."""
    def asinh(input) -> Tensor: """Elementwise asinh."""
    def asinh_(self) -> Tensor: """`asinh`, written into the tensor itself."""
    def atan(input) -> Tensor: """Elementwise atan."""
    def atan2(input, other) -> Tensor:
        """Elementwise atan2 of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def atan2_(self, *args, **kwargs) -> Tensor: """`atan2`, written into the tensor itself."""
    def atan_(self) -> Tensor: """`atan`, written into the tensor itself."""
    def atanh(input) -> Tensor: """Elementwise atanh."""
    def atanh_(self) -> Tensor: """`atanh`, written into the tensor itself."""
    def backward(self, gradient: Tensor | None = None, retain_graph: _bool | None = None, create_graph: _bool = False, inputs: Sequence[Tensor] | Tensor | None = None) -> None:
        """Add d(self)/d(leaf) to every leaf's `.grad`."""
    def baddbmm(input, batch1, batch2, *, beta=1, alpha=1) -> Tensor: """beta * input + alpha * batch1 @ batch2."""
    def baddbmm_(self, *args, **kwargs) -> Tensor: """`baddbmm`, written into the tensor itself."""
    def bernoulli(input, p: _float | None = None, *, generator=None) -> Tensor:
        """Ones and zeros: 1 with the probability that the input has there (or p everywhere), in the input's dtype."""
    def bernoulli_(self, *args, **kwargs) -> Tensor: """Fill the tensor with random numbers."""
    def bfloat16(self) -> Tensor: """The same numbers as bfloat16; the tensor itself when that is its dtype."""
    def bincount(input, weights=None, minlength: _int = 0) -> Tensor:
        """How often each number 0, 1, 2, ... occurs in a vector (or the sum of its weights)."""
    def bitwise_and(input, other) -> Tensor: """Elementwise bitwise_and of whole numbers or bools."""
    def bitwise_and_(self, *args, **kwargs) -> Tensor: """`bitwise_and`, written into the tensor itself."""
    def bitwise_left_shift(input, other) -> Tensor: """Elementwise bitwise_left_shift of whole numbers."""
    def bitwise_left_shift_(self, *args, **kwargs) -> Tensor: """`bitwise_left_shift`, written into the tensor itself."""
    def bitwise_not(input) -> Tensor: """Return ~x: the opposite of a bool, -1 - x of an integer."""
    def bitwise_not_(self, *args, **kwargs) -> Tensor: """`bitwise_not`, written into the tensor itself."""
    def bitwise_or(input, other) -> Tensor: """Elementwise bitwise_or of whole numbers or bools."""
    def bitwise_or_(self, *args, **kwargs) -> Tensor: """`bitwise_or`, written into the tensor itself."""
    def bitwise_right_shift(input, other) -> Tensor: """Elementwise bitwise_right_shift of whole numbers."""
    def bitwise_right_shift_(self, *args, **kwargs) -> Tensor: """`bitwise_right_shift`, written into the tensor itself."""
    def bitwise_xor(input, other) -> Tensor: """Elementwise bitwise_xor of whole numbers or bools."""
    def bitwise_xor_(self, *args, **kwargs) -> Tensor: """`bitwise_xor`, written into the tensor itself."""
    def bmm(input, mat2) -> Tensor: """The products of two batches of matrices."""
    def bool(self) -> Tensor: """The same numbers as bool; the tensor itself when that is its dtype."""
    def broadcast_to(input, size: Sequence[_int]) -> Tensor: """In the shape `size`, a view: axes of size 1 are repeated."""
    def byte(self) -> Tensor: """The same numbers as uint8; the tensor itself when that is its dtype."""
    def cast(self, dtype) -> Tensor: """In another dtype: to(dtype)."""
    def ceil(input) -> Tensor: """Elementwise ceil; whole numbers stay as they are."""
    def ceil_(self) -> Tensor: """`ceil`, written into the tensor itself."""
    def char(self) -> Tensor: """The same numbers as int8; the tensor itself when that is its dtype."""
    def check_meta_consistency(*args, **kwargs) -> _bool:
        """See help(flowedu.tensor.global_creation.check_meta_consistency)."""
    def cholesky(input, upper: _bool = False) -> Tensor: """flow.linalg.cholesky(input, upper=upper)."""
    def cholesky_inverse(input, upper: _bool = False) -> Tensor: """The inverse of A, of its Cholesky factor."""
    def cholesky_solve(input, input2, upper: _bool = False) -> Tensor:
        """X with A @ X = input, where input2 is A's Cholesky factor, the lower one or the upper one."""
    def chunk(input, chunks: _int, dim: _int = 0) -> tuple:
        """At most `chunks` pieces along an axis, all of one size but the last."""
    def clamp(input, min=None, max=None) -> Tensor: """x kept inside [min, max]: numbers or tensors, either may be None."""
    def clamp_(self, *args, **kwargs) -> Tensor: """`clamp`, written into the tensor itself."""
    def clamp_max(input, max) -> Tensor: """No element above `max`, a number or a tensor."""
    def clamp_max_(self, *args, **kwargs) -> Tensor: """`clamp_max`, written into the tensor itself."""
    def clamp_min(input, min) -> Tensor: """No element below `min`, a number or a tensor."""
    def clamp_min_(self, *args, **kwargs) -> Tensor: """`clamp_min`, written into the tensor itself."""
    def clip(input, min=None, max=None) -> Tensor: """x kept inside [min, max]: numbers or tensors, either may be None."""
    def clip_(self, *args, **kwargs) -> Tensor: """`clip`, written into the tensor itself."""
    def clone(input, memory_format: memory_format | None = None) -> Tensor:
        """A copy with memory of its own, row by row unless a format is given; differentiable."""
    def contiguous(input, memory_format: memory_format | None = None) -> Tensor:
        """x itself when its memory runs row by row (or as the format says), else a copy that does."""
    def contiguous_(self) -> Tensor: """GlobalLayout the elements out row by row."""
    def copy_(self, src: Tensor, non_blocking: _bool = False) -> Tensor:
        """Take the values of `src`, broadcast to this shape and cast to this dtype. non_blocking: of pinned memory onto a GPU they are still being copied when this returns."""
    def copysign(input, other) -> Tensor:
        """Elementwise copysign of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def copysign_(self, *args, **kwargs) -> Tensor: """`copysign`, written into the tensor itself."""
    def corrcoef(input) -> Tensor:
        """The correlations of the rows, cov by the product of standard deviations: numbers in [-1, 1]."""
    def cos(input) -> Tensor: """Elementwise cos."""
    def cos_(self) -> Tensor: """`cos`, written into the tensor itself."""
    def cosh(input) -> Tensor: """Elementwise cosh."""
    def cosh_(self) -> Tensor: """`cosh`, written into the tensor itself."""
    def count_nonzero(input, dim=None) -> Tensor: """How many elements are not 0, int64."""
    def cov(input, *, correction: _int = 1, fweights=None, aweights=None) -> Tensor:
        """Return the covariances of the rows: (variables, observations) -> (variables, variables); of one variable: () (as PyTorch)."""
    def cpu(self) -> Tensor: """Return a copy in main memory; self if it is already in main memory."""
    def cross(input, other, dim: _int | None = None) -> Tensor:
        """Return the cross product along an axis of size 3 of the broadcast shape (None: the first such)."""
    def cuda(self, device=None, non_blocking: _bool = False) -> Tensor:
        """Return a copy on a GPU (default: the current one); self if it is already on it."""
    def cummax(input, dim: _int) -> return_types.cummax:
        """(values, indices): the largest element up to each one along `dim`."""
    def cummin(input, dim: _int) -> return_types.cummin:
        """(values, indices): the smallest element up to each one along `dim`."""
    def cumprod(input, dim: _int, *, dtype=None) -> Tensor: """The product of all elements up to each one along `dim`."""
    def cumprod_(self, *args, **kwargs) -> Tensor: """`cumprod`, written into the tensor itself."""
    def cumsum(input, dim: _int, *, dtype=None) -> Tensor: """The sum of all elements up to each one along `dim`."""
    def cumsum_(self, *args, **kwargs) -> Tensor: """`cumsum`, written into the tensor itself."""
    @property
    def data(self) -> Tensor:
        """The same memory without history; setting it exchanges the memory and keeps history and gradient."""
    @data.setter
    def data(self, value) -> None: ...
    def data_ptr(self) -> _int: """The address of the first element."""
    def deg2rad(input) -> Tensor: """Degrees as radians."""
    def deg2rad_(self, *args, **kwargs) -> Tensor: """`deg2rad`, written into the tensor itself."""
    def det(A) -> Tensor: """The determinant of each square matrix."""
    def detach(self) -> Tensor: """Return a tensor with the same memory (or lazy value), without autograd history."""
    def detach_(self) -> Tensor: """Forget the history: the tensor becomes a leaf that requires no gradient."""
    @property
    def device(self) -> _device: ...
    def diag(input, diagonal: _int = 0) -> Tensor:
        """The diagonal of a matrix; or the matrix with a vector on its diagonal."""
    def diag_embed(input, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Matrices with x's last axis on their diagonal, zeros elsewhere; the matrix axes become dim1 and dim2."""
    def diagflat(input, offset: _int = 0) -> Tensor:
        """A square matrix with all elements on its diagonal `offset`, zeros elsewhere."""
    def diagonal(input, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """The diagonal of the matrix of two axes, as the last axis: a view. offset: places to the right."""
    def diff(input, n: _int = 1, dim: _int = -1, prepend=None, append=None) -> Tensor:
        """The n-th difference of neighbours along `dim`. prepend, append: tensors joined to it there first."""
    def digamma(input) -> Tensor: """The derivative of lgamma."""
    def digamma_(self, *args, **kwargs) -> Tensor: """`digamma`, written into the tensor itself."""
    def dim(self) -> _int: """How many axes it has."""
    def div(input, other, *, rounding_mode: str | None = None) -> Tensor:
        """Return input / other; rounding_mode "floor" or "trunc" rounds the quotient and keeps integers integers."""
    def div_(self, other, *args, **kwargs) -> Tensor: """`div`, written into the tensor itself."""
    def divide(input, other, *, rounding_mode: str | None = None) -> Tensor:
        """Return input / other; rounding_mode "floor" or "trunc" rounds the quotient and keeps integers integers."""
    def divide_(self, *args, **kwargs) -> Tensor: """`divide`, written into the tensor itself."""
    def dot(input, tensor) -> Tensor: """The inner product of two vectors."""
    def double(self) -> Tensor: """The same numbers as float64; the tensor itself when that is its dtype."""
    def dsplit(input, indices_or_sections) -> tuple: """Pieces along axis 2 of a tensor with 3 axes or more."""
    def element_size(self) -> _int: """Bytes of one element."""
    def eq(input, other) -> Tensor: """Elementwise eq: bools."""
    def eq_(self, *args, **kwargs) -> Tensor: """`eq`, written into the tensor itself."""
    def equal(input, other) -> _bool: """Whether both have the same shape and elements."""
    def erf(input) -> Tensor: """Elementwise erf."""
    def erf_(self) -> Tensor: """`erf`, written into the tensor itself."""
    def erfc(input) -> Tensor: """Elementwise erfc."""
    def erfc_(self) -> Tensor: """`erfc`, written into the tensor itself."""
    def erfinv(input) -> Tensor: """Elementwise erfinv."""
    def erfinv_(self, *args, **kwargs) -> Tensor: """`erfinv`, written into the tensor itself."""
    def exp(input) -> Tensor: """Elementwise exp."""
    def exp2(input) -> Tensor: """Elementwise exp2."""
    def exp2_(self, *args, **kwargs) -> Tensor: """`exp2`, written into the tensor itself."""
    def exp_(self) -> Tensor: """`exp`, written into the tensor itself."""
    def expand(input, *sizes_, size=None) -> Tensor:
        """Broadcast to a shape: axes of size 1 repeat without memory. -1 keeps an axis."""
    def expand_as(input, other) -> Tensor: """expand to the other tensor's shape."""
    def expm1(input) -> Tensor: """Elementwise expm1."""
    def expm1_(self) -> Tensor: """`expm1`, written into the tensor itself."""
    def exponential_(self, *args, **kwargs) -> Tensor: """Fill the tensor with random numbers."""
    def fill_(self, value) -> Tensor: """Make every element `value`, a number or a 0-dim tensor."""
    def fill_diagonal_(self, fill_value: _float, wrap: _bool = False) -> Tensor:
        """Write a number into the diagonal, the elements whose indices are equal."""
    def fix(input) -> Tensor: """Elementwise trunc; whole numbers stay as they are."""
    def fix_(self, *args, **kwargs) -> Tensor: """`fix`, written into the tensor itself."""
    def flatten(input, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """Axes start_dim..end_dim merged into one; a 0-dim tensor becomes one of one element."""
    def flip(input, *dims_, dims=None) -> Tensor: """Backwards along the axes."""
    def fliplr(input) -> Tensor: """The second axis in reverse order."""
    def flipud(input) -> Tensor: """The first axis in reverse order."""
    def float(self) -> Tensor: """The same numbers as float32; the tensor itself when that is its dtype."""
    def float_power(input, exponent) -> Tensor: """input ** exponent in float64; exponent: a tensor or a number."""
    def float_power_(self, *args, **kwargs) -> Tensor: """`float_power`, written into the tensor itself."""
    def floor(input) -> Tensor: """Elementwise floor; whole numbers stay as they are."""
    def floor_(self) -> Tensor: """`floor`, written into the tensor itself."""
    def floor_divide(input, other) -> Tensor:
        """Elementwise floor_divide of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def floor_divide_(self, *args, **kwargs) -> Tensor: """`floor_divide`, written into the tensor itself."""
    def fmax(input, other) -> Tensor: """The larger of two elements; of nan and a number, the number."""
    def fmin(input, other) -> Tensor: """The smaller of two elements; of nan and a number, the number."""
    def fmod(input, other) -> Tensor:
        """Elementwise fmod of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def fmod_(self, *args, **kwargs) -> Tensor: """`fmod`, written into the tensor itself."""
    def frac(input) -> Tensor: """x - trunc(x)."""
    def frac_(self, *args, **kwargs) -> Tensor: """`frac`, written into the tensor itself."""
    def gather(input, dim: _int, index, *, sparse_grad: _bool = False) -> Tensor:
        """y[i, j] = x[index[i, j], j] for dim 0, and so on."""
    def ge(input, other) -> Tensor: """Elementwise ge: bools."""
    def ge_(self, *args, **kwargs) -> Tensor: """`ge`, written into the tensor itself."""
    def gelu(input) -> Tensor: """Elementwise gelu."""
    def ger(input, vec2) -> Tensor: """Every element of one vector times every element of another."""
    def get_device(self) -> _int: """The number of its GPU; -1: the CPU."""
    def global_to_global(*args, **kwargs) -> Tensor: """See help(flowedu.tensor.global_creation.global_to_global)."""
    @property
    def grad_fn(self) -> Any: """The recorded call that computed this tensor; None for leaves."""
    def greater(input, other) -> Tensor: """Elementwise gt: bools."""
    def greater_(self, *args, **kwargs) -> Tensor: """`greater`, written into the tensor itself."""
    def greater_equal(input, other) -> Tensor: """Elementwise ge: bools."""
    def greater_equal_(self, *args, **kwargs) -> Tensor: """`greater_equal`, written into the tensor itself."""
    def gt(input, other) -> Tensor: """Elementwise gt: bools."""
    def gt_(self, *args, **kwargs) -> Tensor: """`gt`, written into the tensor itself."""
    def half(self) -> Tensor: """The same numbers as float16; the tensor itself when that is its dtype."""
    def heaviside(input, values) -> Tensor: """0 below 0, 1 above, `values` at 0."""
    def heaviside_(self, *args, **kwargs) -> Tensor: """`heaviside`, written into the tensor itself."""
    def histc(input, bins: _int = 100, min: _float = 0, max: _float = 0) -> Tensor:
        """How many elements fall into each of `bins` equal parts of [min, max] (both 0: of the data's own range)."""
    def hsplit(input, indices_or_sections) -> tuple:
        """Pieces along axis 1, of a vector along its only one: so many alike, or cut at the places in a list."""
    def hypot(input, other) -> Tensor:
        """Elementwise hypot of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def hypot_(self, *args, **kwargs) -> Tensor: """`hypot`, written into the tensor itself."""
    def in_top_k(targets, predictions, k: _int) -> Tensor:
        """bool (n,): whether class targets[i] is among the k largest of predictions[i]; ties at the border are inside."""
    def index_add(input, dim: _int, index, source, *, alpha=1) -> Tensor:
        """x with alpha * source added to the parts along `dim` that the index names."""
    def index_add_(self, *args, **kwargs) -> Tensor: """`index_add`, written into the tensor itself."""
    def index_copy(input, dim: _int, index, source) -> Tensor:
        """x with the parts along `dim` that the index names replaced by those of the source."""
    def index_copy_(self, *args, **kwargs) -> Tensor: """`index_copy`, written into the tensor itself."""
    def index_fill(input, dim: _int, index, value) -> Tensor:
        """x with a number in the parts along `dim` that the index names; -1 is the last."""
    def index_fill_(self, *args, **kwargs) -> Tensor: """`index_fill`, written into the tensor itself."""
    def index_put(input, indices, values, accumulate: _bool = False) -> Tensor:
        """x with x[indices] = values (accumulate: +=), out of place."""
    def index_put_(self, *args, **kwargs) -> Tensor: """`index_put`, written into the tensor itself."""
    def index_reduce(input, dim: _int, index, source, reduce: str, *, include_self: _bool = True) -> Tensor:
        """Return x with the parts of the source reduced into the parts along `dim` that the index names."""
    def index_reduce_(self, *args, **kwargs) -> Tensor: """`index_reduce`, written into the tensor itself."""
    def index_select(input, dim: _int, index) -> Tensor: """The parts along `dim` that a vector of indices names."""
    def inner(input, other) -> Tensor: """Products summed over the last axes of both."""
    def int(self) -> Tensor: """The same numbers as int32; the tensor itself when that is its dtype."""
    def inverse(A) -> Tensor: """The inverse of each square matrix."""
    def is_complex(self) -> _bool: """False: there are no complex numbers."""
    def is_contiguous(self, memory_format: memory_format | None = None) -> _bool:
        """Whether the memory runs without gaps in the order of a format (None: row by row)."""
    @property
    def is_cpu(self) -> _bool: """Whether it is in main memory."""
    @property
    def is_cuda(self) -> _bool: """Whether it is on a GPU."""
    def is_floating_point(self) -> _bool: """Whether the dtype is one of floats."""
    @property
    def is_global(self) -> _bool: """True if global."""
    def is_inference(self) -> _bool: """Whether it was made in inference mode."""
    @property
    def is_leaf(self) -> _bool: """Whether the tensor is not the output of a recorded op."""
    @property
    def is_local(self) -> _bool: """Whether it lives in one process, on one device."""
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
    def isclose(input, other, *, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> Tensor:
        """|input - other| <= atol + rtol * |other|; infinities are close to themselves."""
    def isfinite(input) -> Tensor: """Whether each element is a number and not infinite: a bool tensor."""
    def isin(elements, test_elements, *, assume_unique: _bool = False, invert: _bool = False) -> Tensor:
        """Whether each element is one of the test elements. assume_unique is a hint nothing here needs: True says so once."""
    def isinf(input) -> Tensor: """Whether each element is infinite, of either sign: a bool tensor."""
    def isnan(input) -> Tensor: """Whether each element is nan: a bool tensor."""
    def isneginf(input) -> Tensor: """Whether each element is -inf: a bool tensor."""
    def isposinf(input) -> Tensor: """Whether each element is inf: a bool tensor."""
    def item(self) -> Any: """Return the only element as a Python number."""
    @property
    def itemsize(self) -> _int: """Bytes of one element."""
    def kaiming_normal_(tensor, a: _float = 0.0, mode: str = 'fan_in', nonlinearity: str = 'leaky_relu', *, data_format: str = 'NCHW', generator=None) -> Tensor:
        """Normal with standard deviation gain / sqrt(fan). a: the slope of the leaky_relu that follows."""
    def kaiming_uniform_(tensor, a: _float = 0.0, mode: str = 'fan_in', nonlinearity: str = 'leaky_relu', *, data_format: str = 'NCHW', generator=None) -> Tensor:
        """Uniform with standard deviation gain / sqrt(fan). a: the slope of the leaky_relu that follows."""
    def kron(input, other) -> Tensor: """The Kronecker product."""
    def kthvalue(input, k: _int, dim: _int = -1, keepdim: _bool = False) -> return_types.kthvalue:
        """(values, indices) of the k-th smallest element along `dim` (k from 1 on)."""
    @property
    def layout(self) -> str: ...
    def ldexp(input, other) -> Tensor: """input * 2^other."""
    def ldexp_(self, *args, **kwargs) -> Tensor: """`ldexp`, written into the tensor itself."""
    def le(input, other) -> Tensor: """Elementwise le: bools."""
    def le_(self, *args, **kwargs) -> Tensor: """`le`, written into the tensor itself."""
    def lerp(input, end, weight) -> Tensor: """input + weight * (end - input)."""
    def lerp_(self, *args, **kwargs) -> Tensor: """`lerp`, written into the tensor itself."""
    def less(input, other) -> Tensor: """Elementwise lt: bools."""
    def less_(self, *args, **kwargs) -> Tensor: """`less`, written into the tensor itself."""
    def less_equal(input, other) -> Tensor: """Elementwise le: bools."""
    def less_equal_(self, *args, **kwargs) -> Tensor: """`less_equal`, written into the tensor itself."""
    def lgamma(input) -> Tensor: """Elementwise lgamma."""
    def lgamma_(self, *args, **kwargs) -> Tensor: """`lgamma`, written into the tensor itself."""
    def local_to_global(*args, **kwargs) -> Tensor: """See help(flowedu.tensor.global_creation.local_to_global)."""
    def log(input) -> Tensor: """Elementwise log."""
    def log10(input) -> Tensor: """Elementwise log10."""
    def log10_(self, *args, **kwargs) -> Tensor: """`log10`, written into the tensor itself."""
    def log1p(input) -> Tensor: """Elementwise log1p."""
    def log1p_(self) -> Tensor: """`log1p`, written into the tensor itself."""
    def log2(input) -> Tensor: """Elementwise log2."""
    def log2_(self, *args, **kwargs) -> Tensor: """`log2`, written into the tensor itself."""
    def log_(self) -> Tensor: """`log`, written into the tensor itself."""
    def log_softmax(self, dim: _int | None = None, dtype=None) -> Tensor:
        """Logarithm of softmax along `dim`; dtype: the input is converted before."""
    def logaddexp(input, other) -> Tensor: """log(exp(input) + exp(other)), without overflow."""
    def logaddexp2(input, other) -> Tensor: """log2(2^input + 2^other)."""
    def logcumsumexp(input, dim: _int) -> Tensor: """log(cumsum(exp(x))), shifted by the largest element."""
    def logdet(input) -> Tensor: """The logarithm of each determinant; nan where that is negative."""
    def logical_and(input, other) -> Tensor: """Elementwise logical_and: bools."""
    def logical_and_(self, *args, **kwargs) -> Tensor: """`logical_and`, written into the tensor itself."""
    def logical_not(input) -> Tensor: """True where x is 0."""
    def logical_not_(self, *args, **kwargs) -> Tensor: """`logical_not`, written into the tensor itself."""
    def logical_or(input, other) -> Tensor: """Elementwise logical_or: bools."""
    def logical_or_(self, *args, **kwargs) -> Tensor: """`logical_or`, written into the tensor itself."""
    def logical_xor(input, other) -> Tensor: """Elementwise logical_xor: bools."""
    def logical_xor_(self, *args, **kwargs) -> Tensor: """`logical_xor`, written into the tensor itself."""
    def logit(input, eps: _float | None = None) -> Tensor:
        """log(x / (1 - x)); with eps, x is first kept inside [eps, 1 - eps]."""
    def logit_(self, *args, **kwargs) -> Tensor: """`logit`, written into the tensor itself."""
    def logsumexp(input, dim, keepdim: _bool = False) -> Tensor: """log(sum(exp(x))), without overflow."""
    def long(self) -> Tensor: """The same numbers as int64; the tensor itself when that is its dtype."""
    def lt(input, other) -> Tensor: """Elementwise lt: bools."""
    def lt_(self, *args, **kwargs) -> Tensor: """`lt`, written into the tensor itself."""
    @property
    def mT(self) -> Tensor: """The last two axes exchanged."""
    def masked_fill(input, mask, value) -> Tensor:
        """x with a number (or a 0-dim tensor) where the mask is true; shapes broadcast."""
    def masked_fill_(self, *args, **kwargs) -> Tensor: """`masked_fill`, written into the tensor itself."""
    def masked_scatter(input, mask, source) -> Tensor:
        """x with the elements where the mask is true replaced, in order, by those of the source."""
    def masked_scatter_(self, *args, **kwargs) -> Tensor: """`masked_scatter`, written into the tensor itself."""
    def masked_select(input, mask) -> Tensor: """The elements where the mask is true, as a vector."""
    def matmul(input, other) -> Tensor:
        """The matrix product; vectors are rows on the left and columns on the right, batch axes broadcast."""
    def matrix_exp(input) -> Tensor: """Return 1 + A + A @ A / 2 + ... of each square matrix A."""
    def matrix_power(input, n: _int) -> Tensor: """x @ x @ ... @ x, n times; of the inverse for a negative n."""
    @overload
    def max(input, dim: Tensor | None = None, keepdim: _bool = False) -> Tensor:
        """max(x): the max of all; max(x, dim): (values, indices), the gradient goes to the element chosen; max(x, other): elementwise."""
    @overload
    def max(input, dim: _int, keepdim: _bool = False) -> return_types.max:
        """max(x): the max of all; max(x, dim): (values, indices), the gradient goes to the element chosen; max(x, other): elementwise."""
    def maximum(input, other) -> Tensor:
        """Elementwise maximum of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def mean(input, dim=None, keepdim: _bool = False, *, dtype=None) -> Tensor:
        """The mean over `dim` (None: all); NaN of nothing."""
    @overload
    def median(input, dim: Tensor | None = None, keepdim: _bool = False) -> Tensor:
        """The middle one of the sorted elements (of two the smaller), NaN if there is one; with dim (values, indices)."""
    @overload
    def median(input, dim: _int, keepdim: _bool = False) -> return_types.median:
        """The middle one of the sorted elements (of two the smaller), NaN if there is one; with dim (values, indices)."""
    @overload
    def min(input, dim: Tensor | None = None, keepdim: _bool = False) -> Tensor:
        """min(x): the min of all; min(x, dim): (values, indices), the gradient goes to the element chosen; min(x, other): elementwise."""
    @overload
    def min(input, dim: _int, keepdim: _bool = False) -> return_types.min:
        """min(x): the min of all; min(x, dim): (values, indices), the gradient goes to the element chosen; min(x, other): elementwise."""
    def minimum(input, other) -> Tensor:
        """Elementwise minimum of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def mish(input) -> Tensor: """Elementwise mish."""
    def mm(input, mat2) -> Tensor: """The product of two matrices."""
    def mode(input, dim: _int = -1, keepdim: _bool = False) -> return_types.mode:
        """(values, indices) of the most frequent element along `dim`; of several the smallest."""
    def moveaxis(input, source, destination) -> Tensor: """Move axes to other positions; the other axes keep their order."""
    def moveaxis_(self, *args, **kwargs) -> Tensor: """`moveaxis` of the tensor itself: its memory stays where it is."""
    def movedim(input, source, destination) -> Tensor: """Move axes to other positions; the other axes keep their order."""
    def movedim_(self, *args, **kwargs) -> Tensor: """`movedim` of the tensor itself: its memory stays where it is."""
    def msort(input) -> Tensor: """The values sorted along the first axis."""
    def mul(input, other) -> Tensor:
        """Elementwise mul of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def mul_(self, other, *args, **kwargs) -> Tensor: """`mul`, written into the tensor itself."""
    def multinomial(input, num_samples: _int, replacement: _bool = False, *, generator=None) -> Tensor:
        """int64 (num_samples,), or a row for each row: places drawn with the weights in the input."""
    def multiply(input, other) -> Tensor:
        """Elementwise mul of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def multiply_(self, *args, **kwargs) -> Tensor: """`multiply`, written into the tensor itself."""
    def mv(input, vec) -> Tensor: """Matrix times vector."""
    def nan_to_num(input, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> Tensor:
        """NaN becomes `nan`, the infinities the largest and smallest number of the dtype, unless given."""
    def nan_to_num_(self, *args, **kwargs) -> Tensor: """`nan_to_num`, written into the tensor itself."""
    def nanmean(input, dim=None, keepdim: _bool = False, *, dtype=None) -> Tensor:
        """Return the mean of the values that are not NaN."""
    def nansum(input, dim=None, keepdim: _bool = False, *, dtype=None) -> Tensor: """The sum that takes NaN for 0."""
    def narrow(input, dim: _int, start: _int, length: _int) -> Tensor:
        """`length` elements along an axis, from `start` on: a view."""
    @property
    def nbytes(self) -> _int: ...
    def ndimension(self) -> _int: """How many axes it has."""
    def ne(input, other) -> Tensor: """Elementwise ne: bools."""
    def ne_(self, *args, **kwargs) -> Tensor: """`ne`, written into the tensor itself."""
    def neg(input) -> Tensor: """-x."""
    def neg_(self) -> Tensor: """`neg`, written into the tensor itself."""
    def negative(input) -> Tensor: """-x."""
    def negative_(self, *args, **kwargs) -> Tensor: """`negative`, written into the tensor itself."""
    def nelement(self) -> _int: """Return the number of elements."""
    def new_empty(self, *size, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> Tensor:
        """Return an uninitialized tensor of this shape, by default with self's dtype and location."""
    def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> Tensor:
        """Return a tensor of this shape filled with one number, by default with self's dtype and location."""
    def new_ones(self, *size, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> Tensor:
        """Return a tensor of ones, by default with self's dtype and location."""
    def new_tensor(self, data, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> Tensor:
        """flow.tensor(data) in the dtype of this tensor."""
    def new_zeros(self, *size, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> Tensor:
        """Return a tensor of zeros, by default with self's dtype and location."""
    @overload
    def nonzero(input, *, as_tuple: Literal[False] = False) -> Tensor:
        """The places of the elements that are not 0: (how many, axes), int64; as_tuple: one vector for each axis."""
    @overload
    def nonzero(input, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
        """The places of the elements that are not 0: (how many, axes), int64; as_tuple: one vector for each axis."""
    def norm(input, p='fro', dim=None, keepdim: _bool = False, dtype=None) -> Tensor:
        """The p-norm over `dim` (None: all elements as one vector). "fro" is 2."""
    def normal_(self, *args, **kwargs) -> Tensor: """Fill the tensor with random numbers."""
    def not_equal(input, other) -> Tensor: """Elementwise ne: bools."""
    def not_equal_(self, *args, **kwargs) -> Tensor: """`not_equal`, written into the tensor itself."""
    def numel(self) -> _int: """Return the number of elements."""
    def numpy(self) -> _np.ndarray: """Return an ndarray that shares the memory; no `detach()` is needed before."""
    def orthogonal_(tensor, gain: _float = 1.0, generator=None) -> Tensor:
        """Rows (of the tensor as a matrix, first axis by all others) at right angles, or columns if there are fewer."""
    def outer(input, vec2) -> Tensor: """Every element of one vector times every element of another."""
    @property
    def output_nr(self) -> _int: """Which output of grad_fn it is."""
    @property
    def parts(self) -> Any: """{rank: shard} of the ranks this process owns; devices that hold the same may share it."""
    def peek(self) -> _np.ndarray: """Return numpy() for reading only; bfloat16 is converted to float32."""
    def permute(input, *dims_, dims=None) -> Tensor: """The axes in the given order."""
    def pin_memory(self, device=None) -> Tensor: """Return a copy in pinned main memory, which a GPU reads directly."""
    def pinverse(input, rcond: _float = 1e-15) -> Tensor: """flow.linalg.pinv(input, rcond)."""
    @property
    def placement(self) -> Any: """The devices of a global tensor."""
    def positive(input) -> Tensor: """x itself."""
    def pow(input, exponent) -> Tensor: """input ** exponent."""
    def pow_(self, *args, **kwargs) -> Tensor: """`pow`, written into the tensor itself."""
    def prod(input, dim=None, keepdim: _bool = False, *, dtype=None) -> Tensor:
        """The prod over `dim` (int, tuple; None: all)."""
    def put(input, index, source, accumulate: _bool = False) -> Tensor:
        """Return x with numbers of the source at places of the flattened tensor."""
    def put_(self, *args, **kwargs) -> Tensor: """`put`, written into the tensor itself."""
    def qr(input, some: _bool = True) -> return_types.qr: """flow.linalg.qr(input), "complete" unless some."""
    def quantile(input, q, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear') -> Tensor:
        """Return the q-quantiles (a number or a vector in [0, 1]) along `dim` (None: of all); NaN if the data has a NaN."""
    def rad2deg(input) -> Tensor: """Radians as degrees."""
    def rad2deg_(self, *args, **kwargs) -> Tensor: """`rad2deg`, written into the tensor itself."""
    def random_(self, *args, **kwargs) -> Tensor: """Fill the tensor with random numbers."""
    def ravel(input) -> Tensor: """All elements in one axis: reshape(-1), a view where strides allow it."""
    def reciprocal(input) -> Tensor: """Elementwise reciprocal."""
    def reciprocal_(self) -> Tensor: """`reciprocal`, written into the tensor itself."""
    def record_stream(self, stream) -> None:
        """Tells that kernels of another stream use this memory: it is given to others only when that stream is done with it."""
    def register_hook(self, hook: Callable) -> Handle:
        """Call `hook(gradient)` when this tensor's gradient is known; it may return another one."""
    def register_post_accumulate_grad_hook(self, hook: Callable) -> Handle:
        """Call `hook(tensor)` after a gradient was added to this leaf's `.grad`."""
    def relu(input) -> Tensor: """Elementwise relu."""
    def relu6(input) -> Tensor: """min(max(x, 0), 6)."""
    def relu_(self) -> Tensor: """`relu`, written into the tensor itself."""
    def remainder(input, other) -> Tensor:
        """Elementwise remainder of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def remainder_(self, *args, **kwargs) -> Tensor: """`remainder`, written into the tensor itself."""
    def renorm(input, p: _float, dim: _int, maxnorm: _float) -> Tensor:
        """x with every part along `dim` scaled down to a p-norm of at most maxnorm."""
    def renorm_(self, *args, **kwargs) -> Tensor: """`renorm`, written into the tensor itself."""
    def repeat(input, *times_, repeats=None) -> Tensor:
        """Repeat the tensor along each axis as often as `repeats` specifies; `repeats` may have more axes than x, in front."""
    def repeat_interleave(input, repeats=None, dim: _int | None = None, *, output_size=None) -> Tensor:
        """Every element (part along `dim`) `repeats` times in a row: an int, or a tensor with a number for each part."""
    @property
    def requires_grad(self) -> _bool: """Whether backward computes its gradient."""
    @requires_grad.setter
    def requires_grad(self, value) -> None: ...
    def requires_grad_(self, requires_grad: _bool = True) -> Tensor: """Set requires_grad; returns the tensor itself."""
    def requires_grad_on(self, requires_grad: _bool = True) -> Tensor: """Set requires_grad; returns the tensor itself."""
    def reshape(input, *sizes_, shape=None) -> Tensor: """The same elements in another shape; one size may be -1."""
    def reshape_as(input, other) -> Tensor: """reshape to the other tensor's shape."""
    def retain_grad(self) -> None: """Let backward leave this tensor's gradient in `.grad`, as it does for leaves."""
    @property
    def retains_grad(self) -> _bool: ...
    def roll(input, shifts, dims=None) -> Tensor:
        """Shift elements along axes; elements shifted past the end reappear at the start. dims None: in the flattened tensor."""
    def rot90(input, k: _int = 1, dims: Sequence[_int] = ...) -> Tensor:
        """Turned by k quarters in the plane of two axes, from the first towards the second."""
    def round(input, decimals: _int = 0) -> Tensor:
        """To the nearest number with that many decimals; halves go to the even one."""
    def round_(self, *args, **kwargs) -> Tensor: """`round`, written into the tensor itself."""
    def rsqrt(input) -> Tensor: """Elementwise rsqrt."""
    def rsqrt_(self) -> Tensor: """`rsqrt`, written into the tensor itself."""
    @property
    def sbp(self) -> Any:
        """The layout of a global tensor on its devices: one sbp for each axis of the placement's hierarchy."""
    def scatter(input, dim: _int, index, src, *, reduce: str | None = None) -> Tensor:
        """x with x[index[i, j], j] = src[i, j] for dim 0, and so on; src: a tensor or a number. reduce: "add" or "multiply"."""
    def scatter_(self, *args, **kwargs) -> Tensor: """`scatter`, written into the tensor itself."""
    def scatter_add(input, dim: _int, index, src) -> Tensor:
        """x with src[i, j] added to x[index[i, j], j] for dim 0, and so on; parts for one place add up."""
    def scatter_add_(self, *args, **kwargs) -> Tensor: """`scatter_add`, written into the tensor itself."""
    def scatter_reduce(input, dim: _int, index, src, reduce: str, *, include_self: _bool = True) -> Tensor:
        """scatter with "sum", "prod", "mean", "amax" or "amin" of all that meets in one place."""
    def scatter_reduce_(self, *args, **kwargs) -> Tensor: """`scatter_reduce`, written into the tensor itself."""
    def select(input, dim: _int, index: _int) -> Tensor: """One place along an axis, without that axis: a view."""
    def select_scatter(input, src, dim: _int, index: _int) -> Tensor: """x with one place along an axis replaced by src."""
    def selu(input) -> Tensor: """The scaled exponential linear unit."""
    def sgn(input) -> Tensor: """Elementwise sign."""
    def sgn_(self, *args, **kwargs) -> Tensor: """`sgn`, written into the tensor itself."""
    def short(self) -> Tensor: """The same numbers as int16; the tensor itself when that is its dtype."""
    def sigmoid(input) -> Tensor: """Elementwise sigmoid."""
    def sigmoid_(self) -> Tensor: """`sigmoid`, written into the tensor itself."""
    def sign(input) -> Tensor: """Elementwise sign."""
    def sign_(self) -> Tensor: """`sign`, written into the tensor itself."""
    def signbit(input) -> Tensor: """Whether x is negative (-0.0 too)."""
    def silu(input) -> Tensor: """x * sigmoid(x)."""
    def sin(input) -> Tensor: """Elementwise sin."""
    def sin_(self) -> Tensor: """`sin`, written into the tensor itself."""
    def sinc(input) -> Tensor: """sin(pi x) / (pi x); 1 at 0."""
    def sinc_(self, *args, **kwargs) -> Tensor: """`sinc`, written into the tensor itself."""
    def sinh(input) -> Tensor: """Elementwise sinh."""
    def sinh_(self) -> Tensor: """`sinh`, written into the tensor itself."""
    def size(self, dim: _int | None = None) -> Any: """The shape, or one axis of it."""
    def slice_scatter(input, src, dim: _int = 0, start=None, end=None, step: _int = 1) -> Tensor:
        """x with x[start:end:step] along an axis replaced by src."""
    def slogdet(input) -> return_types.slogdet: """flow.linalg.slogdet(input)."""
    def softmax(self, dim: _int | None = None, dtype=None) -> Tensor: """exp(x) / sum(exp(x)) along an axis."""
    def softplus(input, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
        """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""
    def softsign(input) -> Tensor: """Elementwise softsign."""
    def sort(input, dim: _int = -1, descending: _bool = False, stable: _bool = True) -> return_types.sort:
        """(values, indices) along `dim`."""
    def split(input, split_size_or_sections, dim: _int = 0) -> tuple:
        """Pieces along an axis: of one size (the last may be smaller), or of the sizes in a list."""
    def sqrt(input) -> Tensor: """Elementwise sqrt."""
    def sqrt_(self) -> Tensor: """`sqrt`, written into the tensor itself."""
    def square(input) -> Tensor: """x * x; of bools 0 and 1, int64."""
    def square_(self) -> Tensor: """`square`, written into the tensor itself."""
    def squeeze(input, dim=None) -> Tensor:
        """Without the axes of size 1 (all of them, or those of `dim` that have size 1)."""
    def squeeze_(self, *args, **kwargs) -> Tensor: """`squeeze` of the tensor itself: its memory stays where it is."""
    def std(input, dim=None, unbiased=None, keepdim: _bool = False, *, correction: _float | None = None) -> Tensor:
        """The standard deviation: the root of var."""
    def storage(self) -> UntypedStorage: """The memory under this tensor; equal for tensors that share it."""
    def storage_offset(self) -> _int: """Elements between the start of the memory block and the first element."""
    def stride(self, dim: _int | None = None) -> Any: """In elements: how far apart neighbours along each axis are."""
    def sub(input, other, *, alpha=1) -> Tensor: """input - alpha * other."""
    def sub_(self, other, *args, **kwargs) -> Tensor: """`sub`, written into the tensor itself."""
    def subtract(input, other, *, alpha=1) -> Tensor: """input - alpha * other."""
    def subtract_(self, *args, **kwargs) -> Tensor: """`subtract`, written into the tensor itself."""
    def sum(input, dim=None, keepdim: _bool = False, *, dtype=None) -> Tensor:
        """The sum over `dim` (int, tuple; None: all)."""
    def svd(input, some: _bool = True, compute_uv: _bool = True) -> return_types.svd:
        """(U, S, V) with input = U @ diag(S) @ V.mT; some=False: U and V are square; compute_uv=False: they are zeros."""
    def swapaxes(input, dim0: _int, dim1: _int) -> Tensor: """Two axes exchanged."""
    def swapaxes_(self, *args, **kwargs) -> Tensor: """`swapaxes` of the tensor itself: its memory stays where it is."""
    def swapdims(input, dim0: _int, dim1: _int) -> Tensor: """Two axes exchanged."""
    def swapdims_(self, *args, **kwargs) -> Tensor: """`swapdims` of the tensor itself: its memory stays where it is."""
    def t(input) -> Tensor: """The transpose of a matrix; a vector stays as it is."""
    def t_(self, *args, **kwargs) -> Tensor: """`t` of the tensor itself: its memory stays where it is."""
    def take(input, index) -> Tensor:
        """The elements at these places of the flattened tensor; negative ones count from the end."""
    def take_along_dim(input, indices, dim: _int | None = None) -> Tensor:
        """The elements that `indices` names along an axis; the other axes broadcast."""
    def tan(input) -> Tensor: """Elementwise tan."""
    def tan_(self) -> Tensor: """`tan`, written into the tensor itself."""
    def tanh(input) -> Tensor: """Elementwise tanh."""
    def tanh_(self) -> Tensor: """`tanh`, written into the tensor itself."""
    def tensor_split(input, indices_or_sections, dim: _int = 0) -> tuple:
        """Pieces along an axis: as many as a number says, or cut at the places in a list."""
    def tile(input, *dims_, dims=None) -> Tensor: """repeat; missing numbers in front are 1."""
    def to(self, *args, dtype=None, device=None, other: Tensor | None = None, non_blocking: _bool = False, copy: _bool = False, memory_format=None) -> Tensor:
        """Return this tensor with another dtype or on another device; itself if nothing changes and `copy` is False."""
    def to_consistent(*args, **kwargs) -> Tensor: """See help(flowedu.core.sbp.tensor.shards.to_global)."""
    def to_device(self, device, /, *, stream=None) -> Tensor:
        """Return the tensor on another device, as `x.to(device)` does. stream: None, as transfers use the current stream."""
    def to_global(*args, **kwargs) -> Tensor: """See help(flowedu.core.sbp.tensor.shards.to_global)."""
    def to_local(*args, **kwargs) -> Tensor: """See help(flowedu.core.sbp.tensor.shards.to_local)."""
    def tolist(self) -> Any: """Return the elements as nested lists, or the number of a 0-dim tensor."""
    def topk(input, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> return_types.topk:
        """(values, indices) of the k largest (smallest) elements along `dim`, the best first."""
    def trace(input) -> Tensor: """The sum of a matrix's diagonal."""
    def transpose(input, dim0: _int, dim1: _int) -> Tensor: """Two axes exchanged."""
    def transpose_(self, *args, **kwargs) -> Tensor: """`transpose` of the tensor itself: its memory stays where it is."""
    def triangular_solve(input, A, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> return_types.triangular_solve:
        """(solution X of A @ X = input, A); transpose: of A.mT @ X = input."""
    def tril(input, diagonal: _int = 0) -> Tensor:
        """Return the lower triangle of each matrix, zeros above the diagonal shifted `diagonal` columns to the right."""
    def tril_(self, *args, **kwargs) -> Tensor: """`tril`, written into the tensor itself."""
    def triu(input, diagonal: _int = 0) -> Tensor: """The upper triangle of each matrix, zeros below the diagonal."""
    def triu_(self, *args, **kwargs) -> Tensor: """`triu`, written into the tensor itself."""
    def true_divide(input, other) -> Tensor:
        """Elementwise true_divide of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def true_divide_(self, *args, **kwargs) -> Tensor: """`true_divide`, written into the tensor itself."""
    def trunc(input) -> Tensor: """Elementwise trunc; whole numbers stay as they are."""
    def trunc_(self) -> Tensor: """`trunc`, written into the tensor itself."""
    def trunc_normal_(self, *args, **kwargs) -> Tensor: """Fill the tensor with random numbers."""
    def type(self, dtype=None, non_blocking: _bool = False) -> Tensor:
        """Without argument the class name of its dtype, 'flowedu.FloatTensor'; else the tensor in that dtype (also by name)."""
    def type_as(input, other) -> Tensor: """x in the dtype of another tensor."""
    def unbind(input, dim: _int = 0) -> tuple: """One tensor for each place along an axis."""
    def unflatten(input, dim: _int, sizes: Sequence[_int]) -> Tensor: """One axis split into several; one size may be -1."""
    def unfold(input, dimension: _int, size: _int, step: _int) -> Tensor:
        """Windows of `size` elements, `step` apart, along an axis; they become the last axis."""
    def uniform_(self, *args, **kwargs) -> Tensor: """Fill the tensor with random numbers."""
    def unique(input, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
        """The different elements, in order (with dim: the different parts); inverse: where each element went; counts."""
    def unique_consecutive(input, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
        """Without the repetitions of neighbours."""
    def unsqueeze(input, dim: _int) -> Tensor: """With a new axis of size 1 at `dim`."""
    def unsqueeze_(self, *args, **kwargs) -> Tensor: """`unsqueeze` of the tensor itself: its memory stays where it is."""
    def untyped_storage(self) -> UntypedStorage: """The memory under this tensor; equal for tensors that share it."""
    def var(input, dim=None, unbiased=None, keepdim: _bool = False, *, correction: _float | None = None) -> Tensor:
        """The variance over `dim` (None: all): squares divided by n - correction; correction 1 unless unbiased=False."""
    def vdot(input, tensor) -> Tensor: """The inner product of two vectors."""
    def view(input, *shape) -> Tensor: """A view of another shape."""
    def view_as(input, other) -> Tensor: """view in the other tensor's shape."""
    def vsplit(input, indices_or_sections) -> tuple: """Pieces along axis 0 of a tensor with 2 axes or more."""
    @overload
    def where(self, condition, other: None) -> tuple[Tensor, ...]: """flow.where(condition, self, other)."""
    @overload
    def where(self, condition, other: Any) -> Tensor: """flow.where(condition, self, other)."""
    def xavier_normal_(tensor, gain: _float = 1.0, *, data_format: str = 'NCHW', generator=None) -> Tensor:
        """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out))."""
    def xavier_uniform_(tensor, gain: _float = 1.0, *, data_format: str = 'NCHW', generator=None) -> Tensor:
        """Uniform with standard deviation gain * sqrt(2 / (fan_in + fan_out))."""
    def xlogy(input, other) -> Tensor:
        """Elementwise xlogy of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
    def xlogy_(self, *args, **kwargs) -> Tensor: """`xlogy`, written into the tensor itself."""
    def zero_(input) -> Tensor: """Make every element 0."""
class TensorType(type):
    """Metaclass: a call makes a tensor, `flow.Tensor(2, 3)`; C code allocates without a call."""
    def __call__(cls, *args, device=None, placement=None, sbp=None) -> Any: ...
def attach(cls: type, methods: dict) -> None:
    """Set attributes of `cls`. methods: {name: function, property, or other descriptor}."""
slots: Slots
__all__ = ['Size', 'Tensor', 'attach']
