"""Written by `make stubs`: do not edit."""
import numpy as _np
from builtins import bool as _bool, float as _float, int as _int
from collections.abc import Callable, Sequence
from flowedu import (
    autograd as autograd, core as core, cuda as cuda, distributed as distributed, distributions as distributions,
    errors as errors, mock as mock, models as models, nn as nn, onnx as onnx, ops as ops, optim as optim, sbp as sbp,
    utils as utils, vision as vision)
from flowedu.autograd import func as func
from flowedu.core.buffers.tensor_buffer import TensorBuffer as TensorBuffer
from flowedu.core.buffers.tensor_list import TensorList as TensorList
from flowedu.core.eager.tensor import Tensor as Tensor, Tensor as _Tensor
from flowedu.core.job.session import Variable
from flowedu.core.sbp.names import placement as placement
from flowedu.core.values.blob import BlobDef as BlobDef, BlobDesc as BlobDesc
from flowedu.core.values.dtype import dtype as _dtype, dtype as dtype
from flowedu.core.values.placeholder import ArgBlobDef as ArgBlobDef, FixedTensorDef as FixedTensorDef
from flowedu.core.values.size import Size as Size
from flowedu.cuda import backends as backends
from flowedu.distributed import boxing as boxing, comm as comm
from flowedu.errors import JobBuildAndInferError as JobBuildAndInferError
from flowedu.nn import amp as amp
from flowedu.nn.amp.casts import autocast as autocast
from flowedu.oneflow04 import (
    advanced as advanced, custom as custom, data as data, deprecated as deprecated, distribute as distribute,
    experimental as experimental, layers as layers, linalg as linalg, losses as losses, math as math,
    optimizer as optimizer, random as random, regularizers as regularizers, sysconfig as sysconfig, typing as typing,
    unittest as unittest)
from flowedu.oneflow04.custom.builder import UserOpBuilder, UserOpModuleBuilder
from flowedu.oneflow04.distribute import Distribute
from flowedu.oneflow04.image import detection as detection, image as image
from flowedu.oneflow04.initializers import Initializer
from flowedu.oneflow04.job import checkpoint as checkpoint, env as env, scope as scope, train as train
from flowedu.oneflow04.job.blob import (
    ConsistentBlob as ConsistentBlob, EagerConsistentBlob as EagerConsistentBlob, LocalBlob as LocalBlob,
    MirroredBlob as MirroredBlob)
from flowedu.oneflow04.job.config import (
    FunctionConfig as ExecutionConfig, FunctionConfig as FunctionConfig, FunctionConfig as function_config, GlobalConfig)
from flowedu.oneflow04.job.description import FunctionDesc
from flowedu.oneflow04.job.env import Resource
from flowedu.oneflow04.job.scope import Scope, namespace as name_scope, placement as _placement
from flowedu.oneflow04.mirrored import (
    MirroredTensorDef as MirroredTensorDef, MirroredTensorListDef as MirroredTensorListDef)
from flowedu.saving.graph import LoadedGraph
from flowedu.tensor import array_api as array_api, fft as fft, return_types as _return_types, return_types as return_types
from flowedu.tensor.device import device as device
from flowedu.tensor.generator import Generator as Generator, Generator as _Generator, _Default, fork_rng as fork_rng
from flowedu.tensor.limits import finfo as finfo, iinfo as iinfo
from flowedu.tensor.memory_format import memory_format as _memory_format, memory_format as memory_format
from flowedu.tensor.modes import (
    enable_grad as enable_grad, inference_mode as inference_mode, no_grad as no_grad, set_grad_enabled as set_grad_enabled)
from typing import Any, IO, Literal, overload

def BFloat16Tensor(*args, device=None, placement=None, sbp=None) -> _Tensor:
    """A bfloat16 tensor: BFloat16Tensor(2, 3) is uninitialised, BFloat16Tensor([1, 2]) holds these numbers."""
def BoolTensor(*args, device=None, placement=None, sbp=None) -> _Tensor:
    """A bool tensor: BoolTensor(2, 3) is uninitialised, BoolTensor([1, 2]) holds these numbers."""
def ByteTensor(*args, device=None, placement=None, sbp=None) -> _Tensor:
    """A uint8 tensor: ByteTensor(2, 3) is uninitialised, ByteTensor([1, 2]) holds these numbers."""
def CharTensor(*args, device=None, placement=None, sbp=None) -> _Tensor:
    """A int8 tensor: CharTensor(2, 3) is uninitialised, CharTensor([1, 2]) holds these numbers."""
def DoubleTensor(*args, device=None, placement=None, sbp=None) -> _Tensor:
    """A float64 tensor: DoubleTensor(2, 3) is uninitialised, DoubleTensor([1, 2]) holds these numbers."""
def FloatTensor(*args, device=None, placement=None, sbp=None) -> _Tensor:
    """A float32 tensor: FloatTensor(2, 3) is uninitialised, FloatTensor([1, 2]) holds these numbers."""
def HalfTensor(*args, device=None, placement=None, sbp=None) -> _Tensor:
    """A float16 tensor: HalfTensor(2, 3) is uninitialised, HalfTensor([1, 2]) holds these numbers."""
def IntTensor(*args, device=None, placement=None, sbp=None) -> _Tensor:
    """A int32 tensor: IntTensor(2, 3) is uninitialised, IntTensor([1, 2]) holds these numbers."""
def LongTensor(*args, device=None, placement=None, sbp=None) -> _Tensor:
    """A int64 tensor: LongTensor(2, 3) is uninitialised, LongTensor([1, 2]) holds these numbers."""
def ShortTensor(*args, device=None, placement=None, sbp=None) -> _Tensor:
    """A int16 tensor: ShortTensor(2, 3) is uninitialised, ShortTensor([1, 2]) holds these numbers."""
def abs(input) -> _Tensor: """Elementwise abs."""
def absolute(input) -> _Tensor: """Elementwise abs."""
def acc(*args, **kwargs) -> _Tensor: """OneFlow's acc adds up over micro-batches."""
def acos(input) -> _Tensor: """Elementwise acos."""
def acosh(input) -> _Tensor: """Elementwise acosh."""
def add(input, other, *, alpha=1) -> _Tensor: """input + alpha * other. flow.add(a, b, c), or of a list: the sum of all."""
def addbmm(input, batch1, batch2, *, beta=1, alpha=1) -> _Tensor:
    """beta * input + alpha * the sum of all products of the batch."""
def addcdiv(input, tensor1, tensor2, *, value=1) -> _Tensor: """input + value * tensor1 / tensor2."""
def addcmul(input, tensor1, tensor2, *, value=1) -> _Tensor: """input + value * tensor1 * tensor2."""
def addmm(input, mat1, mat2, *, beta=1, alpha=1) -> _Tensor: """beta * input + alpha * mat1 @ mat2."""
def addmv(input, mat, vec, *, beta=1, alpha=1) -> _Tensor: """beta * input + alpha * mat @ vec."""
def addr(input, vec1, vec2, *, beta=1, alpha=1) -> _Tensor: """beta * input + alpha * outer(vec1, vec2)."""
def adjoint(input) -> _Tensor: """The last two axes exchanged, a view: there are no complex numbers."""
def all(input, dim=None, keepdim: _bool = False) -> _Tensor: """Whether no element is 0."""
def allclose(input, other, *, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
    """Whether all elements are close: see isclose."""
def amax(input, dim=..., keepdim: _bool = False) -> _Tensor: """The max over `dim` (int, tuple; none: all)."""
def amin(input, dim=..., keepdim: _bool = False) -> _Tensor: """The min over `dim` (int, tuple; none: all)."""
def aminmax(input, *, dim=None, keepdim: _bool = False) -> tuple[_Tensor, _Tensor]: """(smallest, largest)."""
def amp_white_identity(x, name=None) -> _Tensor:
    """x. (Where OneFlow computes in 16 bits, a place at which it may; here products alone do.)"""
def any(input, dim=None, keepdim: _bool = False) -> _Tensor: """Whether an element is not 0."""
def arange(start, end=None, step=1, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """start, start + step, ... before end; arange(end) begins at 0."""
def arccos(input) -> _Tensor: """Elementwise acos."""
def arccosh(input) -> _Tensor: """Elementwise acosh."""
def arcsin(input) -> _Tensor: """Elementwise asin."""
def arcsinh(input) -> _Tensor: """Elementwise asinh."""
def arctan(input) -> _Tensor: """Elementwise atan."""
def arctan2(input, other) -> _Tensor:
    """Elementwise atan2 of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def arctanh(input) -> _Tensor: """Elementwise atanh."""
def argmax(input, dim: _int | None = None, keepdim: _bool = False) -> _Tensor:
    """Where the largest element is (the first of equals, a NaN before all), int64; None: in the flattened tensor."""
def argmin(input, dim: _int | None = None, keepdim: _bool = False) -> _Tensor:
    """Where the smallest element is (the first of equals, a NaN before all), int64; None: in the flattened tensor."""
@overload
def argsort(input, dim: _int = -1, descending: _bool = False, stable: _bool = True) -> _Tensor:
    """The places, int64, that sort x along `dim`."""
@overload
def argsort(input, axis: _int = -1, direction: str = 'ASCENDING', name=None) -> _Tensor:
    """The positions, int32, that sort `input` along `axis`."""
@overload
def argwhere(input) -> _Tensor: """nonzero(input)."""
@overload
def argwhere(condition, dtype=None, name=None) -> _Tensor:
    """The index of every element that is not 0, one row each: (how many, axes), int32."""
def as_strided(input, size, stride, storage_offset: _int | None = None) -> _Tensor:
    """Any look at the memory of a contiguous tensor; strides in elements."""
def as_tensor(data, dtype=None, device=None) -> _Tensor:
    """The tensor itself, a tensor over the array's memory (also a GPU's, of any object with __cuda_array_interface__), or a new one from numbers and lists."""
def asin(input) -> _Tensor: """Elementwise asin."""
def asinh(input) -> _Tensor: """Elementwise asinh."""
def assign(ref, value, dtype=None, name: str | None = None) -> None:
    """Let the variable `ref` be `value` from the end of this run on: the rest of the job still reads the old one."""
def atan(input) -> _Tensor: """Elementwise atan."""
def atan2(input, other) -> _Tensor:
    """Elementwise atan2 of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def atanh(input) -> _Tensor: """Elementwise atanh."""
def atleast_1d(*tensors) -> _Tensor:
    """Views of at least one axis, one for each tensor; of one tensor, or a list of them, as it comes."""
def atleast_2d(*tensors) -> _Tensor: """Views of at least two axes; new axes come in front."""
def atleast_3d(*tensors) -> _Tensor: """Views of at least three axes: of (n,), (1, n, 1); of (n, m), (n, m, 1)."""
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1) -> _Tensor: """beta * input + alpha * batch1 @ batch2."""
def bartlett_window(window_length: _int, periodic: _bool = True, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """1 - |2 k / n - 1| for k = 0, 1, ..., a triangle: (window_length,)."""
def batch_gather(input, indices, name=None) -> _Tensor:
    """Parts of each batch, by its own indices: all axes of `indices` but the last are batch axes, which `input` has, too. y[b, j, ...] = input[b, indices[b, j], ...]."""
def bernoulli(input, p: _float | None = None, *, generator=None) -> _Tensor:
    """Ones and zeros: 1 with the probability that the input has there (or p everywhere), in the input's dtype."""
bfloat16: _dtype
def bincount(input, weights=None, minlength: _int = 0) -> _Tensor:
    """How often each number 0, 1, 2, ... occurs in a vector (or the sum of its weights)."""
def bitwise_and(input, other) -> _Tensor: """Elementwise bitwise_and of whole numbers or bools."""
def bitwise_left_shift(input, other) -> _Tensor: """Elementwise bitwise_left_shift of whole numbers."""
def bitwise_not(input) -> _Tensor: """Return ~x: the opposite of a bool, -1 - x of an integer."""
def bitwise_or(input, other) -> _Tensor: """Elementwise bitwise_or of whole numbers or bools."""
def bitwise_right_shift(input, other) -> _Tensor: """Elementwise bitwise_right_shift of whole numbers."""
def bitwise_xor(input, other) -> _Tensor: """Elementwise bitwise_xor of whole numbers or bools."""
def blackman_window(window_length: _int, periodic: _bool = True, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n) for k = 0, 1, ...: (window_length,)."""
def block_diag(*tensors) -> _Tensor: """The matrices along the diagonal of a larger one, zeros elsewhere."""
def bmm(input, mat2) -> _Tensor: """The products of two batches of matrices."""
bool: _dtype
def broadcast_add(x, y, name=None) -> _Tensor:
    """Elementwise add, broadcasting. x, y: blobs or Python numbers of one dtype."""
def broadcast_div(x, y, name=None) -> _Tensor: """x / y."""
def broadcast_like(x, like, broadcast_axes: Sequence[_int] | None = None, name=None) -> _Tensor:
    """x repeated to the shape of `like`."""
def broadcast_mul(x, y, name=None) -> _Tensor:
    """Elementwise multiply, broadcasting. x, y: blobs or Python numbers of one dtype."""
def broadcast_shapes(*shapes) -> tuple[_int, ...]: """The shape that all broadcast to."""
def broadcast_sub(x, y, name=None) -> _Tensor:
    """Elementwise subtract, broadcasting. x, y: blobs or Python numbers of one dtype."""
def broadcast_tensors(*tensors) -> list: """All in their common shape, without copies."""
def broadcast_to(input, size: Sequence[_int]) -> _Tensor: """In the shape `size`, a view: axes of size 1 are repeated."""
def broadcast_to_compatible_with(x, compatible: Sequence, name=None) -> _Tensor:
    """x repeated so that it has the shape that x and all of `compatible` broadcast to."""
def bucketize(input, boundaries, *, out_int32: _bool = False, right: _bool = False) -> _Tensor:
    """The number of the bucket between `boundaries` each value falls into."""
def can_cast(from_: _dtype, to: _dtype) -> _bool:
    """Whether an in-place op may write a result of dtype `from_` into `to`: not from a higher category to a lower."""
def cartesian_prod(*tensors) -> _Tensor: """All combinations of elements of vectors, one row each."""
def cast(x, dtype, name=None) -> _Tensor:
    """The same numbers in another dtype; the same blob when it has that dtype already."""
def cast_to_current_logical_view(x):
    """`x` as a blob of the present view: itself, or split over the devices along axis 0, or joined."""
def cast_to_static_shape(x, name=None) -> _Tensor: """x. (Here every value has the shape that it has in this run.)"""
def cat(tensors: Sequence, dim: _int = 0) -> _Tensor:
    """Joined along `dim`; all other axes must agree. dtypes are promoted."""
def cdist(x1, x2, p: _float = 2.0, compute_mode: str | None = None) -> _Tensor:
    """The p-norm distance of every row of x1 to every row of x2. compute_mode: one of PyTorch's three; the differences are always formed, which is its exact way."""
def ceil(input) -> _Tensor: """Elementwise ceil; whole numbers stay as they are."""
def chain_matmul(*matrices) -> _Tensor: """The product of one matrix or more."""
channels_last: _memory_format
channels_last_3d: _memory_format
char: _dtype
def cholesky(input, upper: _bool = False) -> _Tensor: """flow.linalg.cholesky(input, upper=upper)."""
def cholesky_inverse(input, upper: _bool = False) -> _Tensor: """The inverse of A, of its Cholesky factor."""
def cholesky_solve(input, input2, upper: _bool = False) -> _Tensor:
    """X with A @ X = input, where input2 is A's Cholesky factor, the lower one or the upper one."""
def chunk(input, chunks: _int, dim: _int = 0) -> tuple:
    """At most `chunks` pieces along an axis, all of one size but the last."""
@overload
def clamp(input, min=None, max=None) -> _Tensor: """x kept inside [min, max]: numbers or tensors, either may be None."""
@overload
def clamp(values, min_value=None, max_value=None, name=None) -> _Tensor:
    """Values kept inside [min_value, max_value]; either bound may be None."""
def clamp_max(input, max) -> _Tensor: """No element above `max`, a number or a tensor."""
def clamp_min(input, min) -> _Tensor: """No element below `min`, a number or a tensor."""
def clear_default_session() -> None: """Discard all jobs, variables, and resource settings."""
@overload
def clip(input, min=None, max=None) -> _Tensor: """x kept inside [min, max]: numbers or tensors, either may be None."""
@overload
def clip(values, min_value=None, max_value=None, name=None) -> _Tensor:
    """Values kept inside [min_value, max_value]; either bound may be None."""
@overload
def clip_by_scalar(input, min=None, max=None) -> _Tensor:
    """x kept inside [min, max]: numbers or tensors, either may be None."""
@overload
def clip_by_scalar(values, min_value=None, max_value=None, name=None) -> _Tensor:
    """Values kept inside [min_value, max_value]; either bound may be None."""
def clip_by_value(values, min_value=None, max_value=None, name=None) -> _Tensor:
    """Values kept inside [min_value, max_value]; either bound may be None."""
def clone(input, memory_format: _memory_format | None = None) -> _Tensor:
    """A copy with memory of its own, row by row unless a format is given; differentiable."""
def column_stack(tensors: Sequence) -> _Tensor: """Concatenate vectors as columns, and matrices along the columns."""
def combinations(input, r: _int = 2, with_replacement: _bool = False) -> _Tensor:
    """All ways to choose r elements of a vector, one row each."""
def combined_margin_loss(x: _Tensor, label: _Tensor, m1: _float = 1.0, m2: _float = 0.0, m3: _float = 0.0, name=None) -> _Tensor:
    """x, cosines (n, classes), with that of each row's label made harder: cos(m1 * acos(x) + m2) - m3."""
@overload
def concat(tensors: Sequence, dim: _int = 0) -> _Tensor:
    """Joined along `dim`; all other axes must agree. dtypes are promoted."""
@overload
def concat(inputs: Sequence | None = None, axis: _int = 0, max_dim_size=None, name: str | None = None, values: Sequence | None = None) -> _Tensor:
    """Joined along `axis`; all other axes must agree."""
def concatenate(tensors: Sequence, dim: _int = 0) -> _Tensor:
    """Joined along `dim`; all other axes must agree. dtypes are promoted."""
config: GlobalConfig
def consistent_user_op_builder(op_name: str) -> UserOpBuilder:
    """A builder for one op of a job, called `op_name` (with the prefix of flow.scope.namespace); works eagerly, too."""
def consistent_user_op_module_builder(op_type_name: str) -> UserOpModuleBuilder:
    """A builder for ops of this type, to be kept: OneFlow's modules make one and call it for every op."""
def constant(value, dtype=None, shape: Sequence[_int] | None = None, name=None) -> _Tensor:
    """A value everywhere. dtype is required."""
def constant_initializer(value: _float = 0, dtype: _dtype = ...) -> Initializer:
    """All elements `value`; rounded towards zero when `dtype` is an integer type."""
def constant_like(like, value, dtype=None, name=None) -> _Tensor:
    """`value` everywhere, in the shape (and dtype) of `like`."""
def constant_pad2d(x, padding: _int | Sequence[_int], constant_value: _float = 0, name=None) -> _Tensor:
    """x (N, C, H, W) with a border of one value. padding: how wide; or four ints: left, right, top, bottom."""
def constant_scalar(value, dtype=None, name: str | None = None) -> _Tensor:
    """A blob of one element, shape (1,). dtype is required."""
contiguous_format: _memory_format
def convert_oneflow_dtype_to_numpy_dtype(d: _dtype) -> _np.dtype: """The NumPy type of `d`."""
def copysign(input, other) -> _Tensor:
    """Elementwise copysign of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def corrcoef(input) -> _Tensor:
    """The correlations of the rows, cov by the product of standard deviations: numbers in [-1, 1]."""
def cos(input) -> _Tensor: """Elementwise cos."""
def cosh(input) -> _Tensor: """Elementwise cosh."""
def count_nonzero(input, dim=None) -> _Tensor: """How many elements are not 0, int64."""
def count_not_finite(x, name=None) -> _Tensor: """How many elements are infinite or NaN: int64 (1,)."""
def cov(input, *, correction: _int = 1, fweights=None, aweights=None) -> _Tensor:
    """Return the covariances of the rows: (variables, observations) -> (variables, variables); of one variable: () (as PyTorch)."""
def cross(input, other, dim: _int | None = None) -> _Tensor:
    """Return the cross product along an axis of size 3 of the broadcast shape (None: the first such)."""
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank: _int = 0, reduction: str = 'mean', zero_infinity: _bool = False, name=None) -> _Tensor:
    """Connectionist temporal classification: -log of the probability of each sequence of labels, over all alignments."""
def cummax(input, dim: _int) -> _return_types.cummax:
    """(values, indices): the largest element up to each one along `dim`."""
def cummin(input, dim: _int) -> _return_types.cummin:
    """(values, indices): the smallest element up to each one along `dim`."""
def cumprod(input, dim: _int, *, dtype=None) -> _Tensor: """The product of all elements up to each one along `dim`."""
def cumsum(input, dim: _int, *, dtype=None) -> _Tensor: """The sum of all elements up to each one along `dim`."""
def current_global_function_desc() -> FunctionDesc: """The job whose body runs now."""
def current_machine_id() -> _int: """The id of the machine this process is on: 0, since one process does the work of all."""
def current_resource() -> Resource:
    """The machines, the devices of each, and the settings of flow.config, as they are now."""
def current_scope() -> Scope: """The scope at this place of a job's body."""
def custom_op(name: str, forward: Callable | None = None, backward: Callable | None = None, infer: Callable | None = None, sbp: str | None = None, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] = ..., attrs: dict | None = None, grad: dict | None = None, linear: Sequence = ..., examples: Sequence[dict] = ..., domain: dict | None = None, float_only: _bool = True, random: _bool = False, library: str | None = None, gradient_name: str | None = None, replace: _bool = False, doc: str = '') -> Callable:
    """Make an op from Python functions."""
default_generator: _Default
def deg2rad(input) -> _Tensor: """Degrees as radians."""
def det(A) -> _Tensor: """The determinant of each square matrix."""
def device_prior_placement(device_tag: str, machine_device_ids) -> _placement: """The old name of flow.scope.placement."""
@overload
def diag(input, diagonal: _int = 0) -> _Tensor: """The diagonal of a matrix; or the matrix with a vector on its diagonal."""
@overload
def diag(x, diagonal: _int = 0, name=None) -> _Tensor:
    """The diagonal of a matrix, or the square matrix with x, of one axis, on its diagonal and zeros elsewhere."""
def diag_embed(input, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> _Tensor:
    """Matrices with x's last axis on their diagonal, zeros elsewhere; the matrix axes become dim1 and dim2."""
def diagflat(input, offset: _int = 0) -> _Tensor:
    """A square matrix with all elements on its diagonal `offset`, zeros elsewhere."""
def diagonal(input, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> _Tensor:
    """The diagonal of the matrix of two axes, as the last axis: a view. offset: places to the right."""
def diff(input, n: _int = 1, dim: _int = -1, prepend=None, append=None) -> _Tensor:
    """The n-th difference of neighbours along `dim`. prepend, append: tensors joined to it there first."""
def digamma(input) -> _Tensor: """The derivative of lgamma."""
def dim_gather(input, dim: _int, index, name=None) -> _Tensor:
    """y[i, j] = input[i, index[i, j]] for dim 1, and so on: as NumPy's take_along_axis."""
def div(input, other, *, rounding_mode: str | None = None) -> _Tensor:
    """Return input / other; rounding_mode "floor" or "trunc" rounds the quotient and keeps integers integers."""
def divide(input, other, *, rounding_mode: str | None = None) -> _Tensor:
    """Return input / other; rounding_mode "floor" or "trunc" rounds the quotient and keeps integers integers."""
def dot(input, tensor) -> _Tensor: """The inner product of two vectors."""
double: _dtype
def dsplit(input, indices_or_sections) -> tuple: """Pieces along axis 2 of a tensor with 3 axes or more."""
def dstack(tensors: Sequence) -> _Tensor: """Joined along the third axis."""
def dtypes() -> list[_dtype]: """Return all element types."""
def dynamic_reshape(x, shape: Sequence[_int], name=None) -> _Tensor:
    """The same elements in another shape; one axis may be -1."""
e: _float
def eager_execution_enabled() -> _bool: """Whether jobs run eagerly."""
def einsum(equation: str, *operands) -> _Tensor:
    """Return sums of products in Einstein notation: einsum("bij,bjk->bik", a, b)."""
def elem_cnt(inputs, dtype=None, name=None) -> _Tensor: """The number of elements, shape (1,); int32 unless given."""
def empty(*size, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None, pin_memory: _bool = False, memory_format=None) -> _Tensor:
    """Memory as it is found (in a graph: zeros)."""
def empty_cache() -> None: """Return all cached memory to the system."""
def empty_initializer(dtype: _dtype = ...) -> Initializer: """Uninitialised memory."""
def empty_like(input, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None, memory_format=None) -> _Tensor:
    """Return an uninitialized tensor with the shape, dtype, and location of another tensor."""
def enable_eager_execution(value: _bool = True) -> None: """Run jobs eagerly from now on (or, with False, compiled)."""
def eq(input, other) -> _Tensor: """Elementwise eq: bools."""
def equal(input, other) -> _bool: """Whether both have the same shape and elements."""
def erf(input) -> _Tensor: """Elementwise erf."""
def erfc(input) -> _Tensor: """Elementwise erfc."""
def erfinv(input) -> _Tensor: """Elementwise erfinv."""
def exp(input) -> _Tensor: """Elementwise exp."""
def exp2(input) -> _Tensor: """Elementwise exp2."""
def expand(input, *sizes_, size=None) -> _Tensor:
    """Broadcast to a shape: axes of size 1 repeat without memory. -1 keeps an axis."""
def expand_dims(x, axis: _int, name=None) -> _Tensor: """With a new axis of size 1 at `axis`."""
def explain(x, *args, **kwargs) -> None:
    """Print which signatures there were, what each would have moved, which one won and because of what."""
def expm1(input) -> _Tensor: """Elementwise expm1."""
@overload
def eye(n: _int, m: _int | None = None, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """Ones on the diagonal of an n x m (n x n) matrix."""
@overload
def eye(n: _int, m: _int | None = None, dtype=..., name=None) -> _Tensor:
    """The n x m matrix (n x n) with ones on the diagonal. (Not in OneFlow 0.4.)"""
def fix(input) -> _Tensor: """Elementwise trunc; whole numbers stay as they are."""
def fixed_placement(device_tag: str, machine_device_ids) -> _placement: """The old name of flow.scope.placement."""
@overload
def flatten(input, start_dim: _int = 0, end_dim: _int = -1) -> _Tensor:
    """Axes start_dim..end_dim merged into one; a 0-dim tensor becomes one of one element."""
@overload
def flatten(x, start_dim: _int = 0, end_dim: _int = -1, name=None) -> _Tensor:
    """Axes start_dim..end_dim merged into one."""
def flip(input, *dims_, dims=None) -> _Tensor: """Backwards along the axes."""
def fliplr(input) -> _Tensor: """The second axis in reverse order."""
def flipud(input) -> _Tensor: """The first axis in reverse order."""
float: _dtype
float16: _dtype
float32: _dtype
float64: _dtype
def float_power(input, exponent) -> _Tensor: """input ** exponent in float64; exponent: a tensor or a number."""
def floor(input) -> _Tensor: """Elementwise floor; whole numbers stay as they are."""
def floor_divide(input, other) -> _Tensor:
    """Elementwise floor_divide of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def fmax(input, other) -> _Tensor: """The larger of two elements; of nan and a number, the number."""
def fmin(input, other) -> _Tensor: """The smaller of two elements; of nan and a number, the number."""
def fmod(input, other) -> _Tensor:
    """Elementwise fmod of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def frac(input) -> _Tensor: """x - trunc(x)."""
def from_dlpack(x, *, device=None, copy: _bool | None = None) -> _Tensor:
    """Return a tensor over the memory of another library's array, or of a DLPack capsule."""
def from_numpy(a: _np.ndarray) -> _Tensor:
    """Return a tensor that shares the memory and strides of `a`; writes to either change both."""
def full(size, fill_value, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """`fill_value` everywhere; the dtype is that of the value (float: the default one) unless given."""
def full_like(input, fill_value, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None, memory_format=None) -> _Tensor:
    """Return a tensor of `fill_value` with the shape, dtype, and location of another tensor."""
@overload
def gather(input, dim: _int, index, *, sparse_grad: _bool = False) -> _Tensor:
    """y[i, j] = x[index[i, j], j] for dim 0, and so on."""
@overload
def gather(params, indices, axis: _int | None = None, batch_dims: _int = 0, name=None) -> _Tensor:
    """params[indices] along `axis` (default: the first behind the batch axes)."""
def gather_nd(params, indices, name=None) -> _Tensor:
    """For every row of `indices` (its last axis), the part of `params` it names: indices (n, 1) names n rows, (n, 2) n rows of matrices or n elements of one."""
def ge(input, other) -> _Tensor: """Elementwise ge: bools."""
def gelu(input) -> _Tensor: """Elementwise gelu."""
def gen_tensor_buffer(shape: Sequence[_int], shape_list: Sequence[Sequence[_int]], value_list: Sequence[_float], data_type: _dtype = ..., dynamic_out: _bool = False, name=None) -> _Tensor:
    """A TensorBuffer of `shape`; buffer i has the shape `shape_list[i]` and holds `value_list[i]` everywhere."""
def ger(input, vec2) -> _Tensor: """Every element of one vector times every element of another."""
def get_all_variables() -> dict[str, Variable]:
    """Live handles with .shape, .dtype and .numpy(), optimizer state included."""
def get_default_dtype() -> _dtype:
    """Return the dtype of tensors made from Python floats: float32 or set_default_dtype's."""
def get_num_threads() -> _int: """Return the number of threads that kernels may use."""
def get_rng_state() -> _Tensor: """The state of the default generator, a uint8 tensor."""
def get_variable(name: str, shape=None, dtype=..., initializer=None, regularizer=None, trainable: _bool | None = None, model_name: str | None = None, random_seed: _int | None = None, parallel_distribution=None, distribute=None, reuse: _bool = True) -> _Tensor:
    """The variable `name`, made on first use."""
def global_function(type: str = 'predict', function_config=None) -> Callable:
    """Decorator that makes a function a job: `@flow.global_function("train")`."""
def global_to_global(*args, **kwargs) -> _Tensor: """See help(flowedu.tensor.global_creation.global_to_global)."""
def glorot_normal_initializer(data_format: str = '') -> Initializer: """Normal with variance 1 / fan_avg."""
def glorot_uniform_initializer(data_format: str = '') -> Initializer: """Uniform with variance 1 / fan_avg."""
def grad(outputs, inputs, grad_outputs=None, retain_graph: _bool | None = None, create_graph: _bool = False, only_inputs: _bool = True, allow_unused: _bool | None = None, is_grads_batched: _bool = False, materialize_grads: _bool = False) -> tuple:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; `.grad` is left alone."""
def greater(input, other) -> _Tensor: """Elementwise gt: bools."""
def greater_equal(input, other) -> _Tensor: """Elementwise ge: bools."""
def gt(input, other) -> _Tensor: """Elementwise gt: bools."""
half: _dtype
def hamming_window(window_length: _int, periodic: _bool = True, alpha: _float = 0.54, beta: _float = 0.46, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """alpha - beta cos(2 pi k / n) for k = 0, 1, ...: (window_length,)."""
def hann_window(window_length: _int, periodic: _bool = True, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """0.5 - 0.5 cos(2 pi k / n) for k = 0, 1, ...: (window_length,)."""
def has_threads() -> _bool: """Return False if the compiler has no OpenMP."""
def heaviside(input, values) -> _Tensor: """0 below 0, 1 above, `values` at 0."""
def hierarchical_parallel_cast(input, parallel_hierarchy=None, parallel_distribution=None, grad_mode=None, grad_parallel_hierarchy=None, grad_parallel_distribution=None, name: str | None = None) -> _Tensor:
    """The same blob, which lies on a grid of the placement's devices from here on."""
def histc(input, bins: _int = 100, min: _float = 0, max: _float = 0) -> _Tensor:
    """How many elements fall into each of `bins` equal parts of [min, max] (both 0: of the data's own range)."""
def hsplit(input, indices_or_sections) -> tuple:
    """Pieces along axis 1, of a vector along its only one: so many alike, or cut at the places in a list."""
def hstack(tensors: Sequence) -> _Tensor: """Joined along the second axis (vectors: the first)."""
def hypot(input, other) -> _Tensor:
    """Elementwise hypot of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def identity(x, name=None) -> _Tensor: """x, under another name."""
def identity_n(inputs: Sequence, name=None) -> tuple[_Tensor, ...]: """The inputs, a list, each under another name."""
def image_batch_align(images, shape: Sequence[_int], dtype: _dtype, alignment: _int, name=None) -> _Tensor:
    """Buffers of pictures in one dynamic tensor (N, H, W, C), with zeros to the right of and below each."""
def image_decode(images_bytes_buffer, dtype: _dtype = ..., color_space: str = 'BGR', name=None) -> _Tensor:
    """Buffers of the bytes of PNG, JPEG or BMP files as buffers of pictures, (height, width, channels)."""
def image_flip(image, flip_code, name=None) -> _Tensor:
    """Each picture mirrored: flip_code 1 swaps left and right, 16 up and down, 17 both, 0 nothing."""
def image_normalize(image, std: Sequence[_float], mean: Sequence[_float], name=None) -> _Tensor:
    """(picture - mean) / std, channel by channel, for float pictures."""
def image_random_crop(input_blob, num_attempts: _int = 10, seed: _int | None = None, random_area: Sequence[_float] | None = None, random_aspect_ratio: Sequence[_float] | None = None, name=None) -> Any:
    """A random piece of each picture: random_area (default [0.08, 1.0]) of its area, with a width-to-height ratio in random_aspect_ratio (default [0.75, 1.333333])."""
def image_resize(image, target_size: _int | Sequence[_int] | None = None, min_size: _int | None = None, max_size: _int | None = None, keep_aspect_ratio: _bool = False, resize_side: str = 'shorter', channels: _int = 3, dtype: _dtype | None = None, interpolation_type: str = 'auto', name: str | None = None, color_space: str | None = None, interp_type: str | None = None, resize_shorter: _int = 0, resize_x: _int = 0, resize_y: _int = 0) -> _Tensor:
    """Buffers of pictures in another size."""
def image_target_resize(images, target_size: _int, min_size: _int | None = None, max_size: _int | None = None, resize_side: str = 'shorter', interpolation_type: str = 'auto', name: str | None = None) -> _Tensor:
    """Resize with keep_aspect_ratio: `(images, new_size, scale)`."""
def in_top_k(targets, predictions, k: _int, name=None) -> _Tensor:
    """int8 (n,): whether class targets[i] is among the k largest of predictions[i]; ties at the border count as inside."""
def index_add(input, dim: _int, index, source, *, alpha=1) -> _Tensor:
    """x with alpha * source added to the parts along `dim` that the index names."""
def index_copy(input, dim: _int, index, source) -> _Tensor:
    """x with the parts along `dim` that the index names replaced by those of the source."""
def index_fill(input, dim: _int, index, value) -> _Tensor:
    """x with a number in the parts along `dim` that the index names; -1 is the last."""
def index_put(input, indices, values, accumulate: _bool = False) -> _Tensor:
    """x with x[indices] = values (accumulate: +=), out of place."""
def index_select(input, dim: _int, index) -> _Tensor: """The parts along `dim` that a vector of indices names."""
inf: _float
def initial_seed() -> _int: """The seed that the default generator was given last."""
def inner(input, other) -> _Tensor: """Products summed over the last axes of both."""
int: _dtype
int16: _dtype
int32: _dtype
int64: _dtype
int8: _dtype
def inverse(A) -> _Tensor: """The inverse of each square matrix."""
def is_floating_point(input: _Tensor) -> _bool: """Whether its dtype is a float type."""
def is_grad_enabled() -> _bool: """Return True if eager calls of this thread are recorded for backward."""
def is_inference_mode_enabled() -> _bool: ...
def is_nonzero(input: _Tensor) -> _bool: """bool(input), of one element."""
def is_tensor(obj: object) -> _bool: """Whether it is a Tensor."""
def isclose(input, other, *, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _Tensor:
    """|input - other| <= atol + rtol * |other|; infinities are close to themselves."""
def isfinite(input) -> _Tensor: """Whether each element is a number and not infinite: a bool tensor."""
def isin(elements, test_elements, *, assume_unique: _bool = False, invert: _bool = False) -> _Tensor:
    """Whether each element is one of the test elements. assume_unique is a hint nothing here needs: True says so once."""
def isinf(input) -> _Tensor: """Whether each element is infinite, of either sign: a bool tensor."""
def isnan(input) -> _Tensor: """Whether each element is nan: a bool tensor."""
def isneginf(input) -> _Tensor: """Whether each element is -inf: a bool tensor."""
def isposinf(input) -> _Tensor: """Whether each element is inf: a bool tensor."""
def kaiming_initializer(shape: tuple[_int, ...], distribution: str = 'random_normal', mode: str = 'fan_in', nonlinearity: str | None = 'leaky_relu', negative_slope: _float = 0.0, data_format: str = 'NCHW') -> Initializer:
    """Mean 0 and standard deviation gain / sqrt(fan), after He et al. 2015."""
def kaiser_window(window_length: _int, periodic: _bool = True, beta: _float = 12.0, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor: ...
def kron(input, other) -> _Tensor: """The Kronecker product."""
def kthvalue(input, k: _int, dim: _int = -1, keepdim: _bool = False) -> _return_types.kthvalue:
    """(values, indices) of the k-th smallest element along `dim` (k from 1 on)."""
def ldexp(input, other) -> _Tensor: """input * 2^other."""
def le(input, other) -> _Tensor: """Elementwise le: bools."""
def lerp(input, end, weight) -> _Tensor: """input + weight * (end - input)."""
def less(input, other) -> _Tensor: """Elementwise lt: bools."""
def less_equal(input, other) -> _Tensor: """Elementwise le: bools."""
def lgamma(input) -> _Tensor: """Elementwise lgamma."""
def linspace(start: _float, end: _float, steps: _int, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """Return `steps` values from start to end, both included."""
def load(path: str | Any | IO[bytes], global_src_rank: _int | None = None, map_location: Any = None, *, support_pytorch_format: _bool = True) -> Any:
    """Load the object saved at `path`."""
def load_graph(path, device=None) -> LoadedGraph:
    """What flow.save(graph, path) wrote, as something to call, on a device (None: the CPU)."""
def load_variables(value_dict: dict, ignore_mismatch: _bool = True) -> None:
    """Copy values into variables of the same name."""
def local_to_global(*args, **kwargs) -> _Tensor: """See help(flowedu.tensor.global_creation.local_to_global)."""
def log(input) -> _Tensor: """Elementwise log."""
def log10(input) -> _Tensor: """Elementwise log10."""
def log1p(input) -> _Tensor: """Elementwise log1p."""
def log2(input) -> _Tensor: """Elementwise log2."""
def log_sigmoid(input) -> _Tensor: """log(sigmoid(x)), exact where sigmoid(x) underflows."""
def log_softmax(input, dim: _int | None = None, dtype=None) -> _Tensor: """log_softmax along `dim`."""
def logaddexp(input, other) -> _Tensor: """log(exp(input) + exp(other)), without overflow."""
def logaddexp2(input, other) -> _Tensor: """log2(2^input + 2^other)."""
def logcumsumexp(input, dim: _int) -> _Tensor: """log(cumsum(exp(x))), shifted by the largest element."""
def logdet(input) -> _Tensor: """The logarithm of each determinant; nan where that is negative."""
def logical_and(input, other) -> _Tensor: """Elementwise logical_and: bools."""
def logical_not(input) -> _Tensor: """True where x is 0."""
def logical_or(input, other) -> _Tensor: """Elementwise logical_or: bools."""
def logical_xor(input, other) -> _Tensor: """Elementwise logical_xor: bools."""
def logit(input, eps: _float | None = None) -> _Tensor:
    """log(x / (1 - x)); with eps, x is first kept inside [eps, 1 - eps]."""
def logspace(start: _float, end: _float, steps: _int, base: _float = 10.0, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """`steps` numbers from base^start to base^end."""
def logsumexp(input, dim, keepdim: _bool = False) -> _Tensor: """log(sum(exp(x))), without overflow."""
long: _dtype
def lt(input, other) -> _Tensor: """Elementwise lt: bools."""
def manual_seed(seed: _int) -> _Generator: """Make all random numbers from here on reproducible."""
@overload
def masked_fill(input, mask, value) -> _Tensor:
    """x with a number (or a 0-dim tensor) where the mask is true; shapes broadcast."""
@overload
def masked_fill(x, mask, value: _float, name=None) -> _Tensor: """x with `value` where the mask is not 0; broadcasting."""
def masked_scatter(input, mask, source) -> _Tensor:
    """x with the elements where the mask is true replaced, in order, by those of the source."""
def masked_select(input, mask) -> _Tensor: """The elements where the mask is true, as a vector."""
@overload
def matmul(input, other) -> _Tensor:
    """The matrix product; vectors are rows on the left and columns on the right, batch axes broadcast."""
@overload
def matmul(a, b, transpose_a: _bool = False, transpose_b: _bool = False, alpha: _float = 1.0, name=None) -> _Tensor:
    """alpha * op(a) @ op(b): equal batch axes, or an n-d a with a matrix b."""
def matrix_exp(input) -> _Tensor: """Return 1 + A + A @ A / 2 + ... of each square matrix A."""
def matrix_power(input, n: _int) -> _Tensor: """x @ x @ ... @ x, n times; of the inverse for a negative n."""
@overload
def max(input, dim: _Tensor | None = None, keepdim: _bool = False) -> _Tensor:
    """max(x): the max of all; max(x, dim): (values, indices), the gradient goes to the element chosen; max(x, other): elementwise."""
@overload
def max(input, dim: _int, keepdim: _bool = False) -> _return_types.max:
    """max(x): the max of all; max(x, dim): (values, indices), the gradient goes to the element chosen; max(x, other): elementwise."""
def maximum(input, other) -> _Tensor:
    """Elementwise maximum of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def mean(input, dim=None, keepdim: _bool = False, *, dtype=None) -> _Tensor:
    """The mean over `dim` (None: all); NaN of nothing."""
@overload
def median(input, dim: _Tensor | None = None, keepdim: _bool = False) -> _Tensor:
    """The middle one of the sorted elements (of two the smaller), NaN if there is one; with dim (values, indices)."""
@overload
def median(input, dim: _int, keepdim: _bool = False) -> _return_types.median:
    """The middle one of the sorted elements (of two the smaller), NaN if there is one; with dim (values, indices)."""
def memory_stats() -> dict: """Bytes in use by arrays (`live`) and held for reuse (`cached`)."""
def meshgrid(*tensors, indexing: str = 'ij') -> tuple:
    """Coordinates of a grid: for vectors of n and m elements two (n, m) tensors ("ij") or two (m, n) ("xy")."""
@overload
def min(input, dim: _Tensor | None = None, keepdim: _bool = False) -> _Tensor:
    """min(x): the min of all; min(x, dim): (values, indices), the gradient goes to the element chosen; min(x, other): elementwise."""
@overload
def min(input, dim: _int, keepdim: _bool = False) -> _return_types.min:
    """min(x): the min of all; min(x, dim): (values, indices), the gradient goes to the element chosen; min(x, other): elementwise."""
def minimum(input, other) -> _Tensor:
    """Elementwise minimum of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def mish(input) -> _Tensor: """Elementwise mish."""
def mm(input, mat2) -> _Tensor: """The product of two matrices."""
def mode(input, dim: _int = -1, keepdim: _bool = False) -> _return_types.mode:
    """(values, indices) of the most frequent element along `dim`; of several the smallest."""
def moveaxis(input, source, destination) -> _Tensor: """Move axes to other positions; the other axes keep their order."""
def movedim(input, source, destination) -> _Tensor: """Move axes to other positions; the other axes keep their order."""
def msort(input) -> _Tensor: """The values sorted along the first axis."""
def mul(input, other) -> _Tensor:
    """Elementwise mul of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def multi_count_not_finite(x: Sequence, name=None) -> _Tensor:
    """How many elements of all these are infinite or NaN: int64 (1,)."""
def multinomial(input, num_samples: _int, replacement: _bool = False, *, generator=None) -> _Tensor:
    """int64 (num_samples,), or a row for each row: places drawn with the weights in the input."""
def multiply(input, other) -> _Tensor:
    """Elementwise mul of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def mv(input, vec) -> _Tensor: """Matrix times vector."""
nan: _float
def nan_to_num(input, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> _Tensor:
    """NaN becomes `nan`, the infinities the largest and smallest number of the dtype, unless given."""
def nanmean(input, dim=None, keepdim: _bool = False, *, dtype=None) -> _Tensor:
    """Return the mean of the values that are not NaN."""
def nansum(input, dim=None, keepdim: _bool = False, *, dtype=None) -> _Tensor: """The sum that takes NaN for 0."""
def narrow(input, dim: _int, start: _int, length: _int) -> _Tensor:
    """`length` elements along an axis, from `start` on: a view."""
def ne(input, other) -> _Tensor: """Elementwise ne: bools."""
def neg(input) -> _Tensor: """-x."""
def negative(input) -> _Tensor: """-x."""
def nms(boxes: _Tensor, scores: _Tensor, iou_threshold: _float) -> _Tensor:
    """Which boxes to keep, int64, the best first: of those that overlap by more than iou_threshold the one of the highest score. boxes: (N, 4); scores: (N,)."""
@overload
def nonzero(input, *, as_tuple: Literal[False] = False) -> _Tensor:
    """The places of the elements that are not 0: (how many, axes), int64; as_tuple: one vector for each axis."""
@overload
def nonzero(input, *, as_tuple: Literal[True]) -> tuple[_Tensor, ...]:
    """The places of the elements that are not 0: (how many, axes), int64; as_tuple: one vector for each axis."""
@overload
def nonzero(a, name=None) -> _Tensor: """argwhere with one column for each element: (axes, how many)."""
def norm(input, p='fro', dim=None, keepdim: _bool = False, dtype=None) -> _Tensor:
    """The p-norm over `dim` (None: all elements as one vector). "fro" is 2."""
def normal(mean, std=1.0, size=None, *, generator=None, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """Normal: normal(mean, std, size) with numbers, or one number for each element of the tensors mean and std."""
def not_equal(input, other) -> _Tensor: """Elementwise ne: bools."""
def numel(input: _Tensor) -> _int: """How many elements it has."""
def object_bbox_flip(bbox, image_size, flip_code, name=None) -> Any:
    """Boxes of pictures that were flipped (flow.image.flip): x becomes width - 1 - x, and left and right change places."""
def object_bbox_scale(bbox, scale, name=None) -> _Tensor: """Boxes of pictures that were resized."""
def object_segmentation_polygon_flip(poly, image_size, flip_code, name=None) -> _Tensor:
    """Outlines of pictures that were flipped: x becomes width - x."""
def object_segmentation_polygon_scale(poly, scale, name=None) -> _Tensor: """Outlines of pictures that were resized."""
def object_segmentation_polygon_to_mask(poly, poly_index, image_size, name=None) -> _Tensor:
    """Outlines as masks: per picture int8 (objects, height, width), 1 where the object is."""
def one_hot(indices, depth: _int, on_value=1, off_value=0, axis: _int = -1, dtype=None, name=None) -> _Tensor:
    """A new axis (the last, or `axis`) of `depth` elements: on_value at the index, off_value elsewhere. dtype: int32."""
@overload
def ones(*size, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor: """Ones."""
@overload
def ones(shape: Sequence[_int], dtype=..., name: str | None = None) -> _Tensor: """Ones."""
def ones_initializer(dtype: _dtype = ...) -> Initializer: """All elements 1."""
@overload
def ones_like(input, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None, memory_format=None) -> _Tensor:
    """Return ones with the shape, dtype, and location of another tensor. memory_format: contiguous unless given."""
@overload
def ones_like(like, dtype=None, name: str | None = None) -> _Tensor: ...
def outer(input, vec2) -> _Tensor: """Every element of one vector times every element of another."""
def pack(*args, **kwargs) -> _Tensor: """OneFlow's pack joins the results of micro-batches."""
@overload
def pad(input, pad: Sequence[_int], mode: str = 'constant', value: _float | None = None) -> _Tensor:
    """x with more elements around it. pad: (before, after) of the last axis, then of the one before it, ..."""
@overload
def pad(x, paddings: Sequence[Sequence[_int]], constant_value: _float = 0, name=None) -> _Tensor:
    """x with `constant_value` around it. paddings: (before, after) for each axis."""
def pad_grad(x, paddings: Sequence[Sequence[_int]], constant_value: _float = 0, name=None) -> _Tensor:
    """The gradient of flow.pad's input, of that of its result: x without the border. constant_value changes nothing."""
def parallel_cast(input, name: str | None = None, distribute: Distribute | None = None, gradient_distribute: Distribute | None = None) -> _Tensor:
    """The same blob, which lies on the devices of this placement as `distribute` says from here on; its gradient as `gradient_distribute` says."""
def permute(input, *dims_, dims=None) -> _Tensor: """The axes in the given order."""
pi: _float
def pinverse(input, rcond: _float = 1e-15) -> _Tensor: """flow.linalg.pinv(input, rcond)."""
def poisson(input, generator=None) -> _Tensor: """Poisson numbers with the rates in the input."""
def positive(input) -> _Tensor: """x itself."""
def pow(input, exponent) -> _Tensor: """input ** exponent."""
preserve_format: _memory_format
def prod(input, dim=None, keepdim: _bool = False, *, dtype=None) -> _Tensor:
    """The prod over `dim` (int, tuple; None: all)."""
def promote_types(type1: _dtype, type2: _dtype) -> _dtype:
    """The smallest dtype that holds both: promote_types(int32, float16) is float16."""
def qr(input, some: _bool = True) -> _return_types.qr: """flow.linalg.qr(input), "complete" unless some."""
def quantile(input, q, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear') -> _Tensor:
    """Return the q-quantiles (a number or a vector in [0, 1]) along `dim` (None: of all); NaN if the data has a NaN."""
def rad2deg(input) -> _Tensor: """Radians as degrees."""
def rand(*size, generator=None, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """Uniform in [0, 1)."""
def rand_like(input, *, generator=None, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None, memory_format=None) -> _Tensor:
    """Return rand with the shape, dtype, and location of another tensor."""
def randint(low, high=None, size=None, *, generator=None, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """Whole numbers in [low, high), int64 unless dtype says otherwise: randint(10, (2, 3)), randint(1, 7, (2, 3))."""
def randint_like(input, low, high=None, *, generator=None, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None, memory_format=None) -> _Tensor:
    """Return randint with the shape, dtype, and location of another tensor."""
def randn(*size, generator=None, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """Normal with mean 0 and standard deviation 1."""
def randn_like(input, *, generator=None, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None, memory_format=None) -> _Tensor:
    """Return randn with the shape, dtype, and location of another tensor."""
def random_normal_initializer(mean: _float = 0.0, stddev: _float = 1.0, seed: None = None, dtype: None = None) -> Initializer:
    """Normal with this mean and standard deviation."""
def random_uniform_initializer(minval: _float = 0, maxval: _float = 1, dtype: _dtype = ...) -> Initializer:
    """Uniform over [minval, maxval]; for an integer `dtype` the integers minval, ..., maxval - 1."""
def randperm(n: _int, *, generator=None, dtype=..., device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """The numbers 0 to n - 1 in random order."""
def range(start: _int, limit: _int | None = None, delta: _int = 1, dtype=None, name: str | None = 'range') -> _Tensor:
    """start, start + delta, ... below limit; 0, 1, ... below `start` when it stands alone. dtype: int64 unless given."""
def ravel(input) -> _Tensor: """All elements in one axis: reshape(-1), a view where strides allow it."""
def reciprocal(input) -> _Tensor: """Elementwise reciprocal."""
record: _dtype
def reflection_pad2d(x, padding: _int | Sequence[_int], name=None) -> _Tensor:
    """x (N, C, H, W) with a border in which it is mirrored, its edge not repeated. padding: as for constant_pad2d."""
def relu(input) -> _Tensor: """Elementwise relu."""
def remainder(input, other) -> _Tensor:
    """Elementwise remainder of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def renorm(input, p: _float, dim: _int, maxnorm: _float) -> _Tensor:
    """x with every part along `dim` scaled down to a p-norm of at most maxnorm."""
def repeat(*args, **kwargs) -> _Tensor: """OneFlow's repeat gives a blob to several micro-batches."""
def repeat_interleave(input, repeats=None, dim: _int | None = None, *, output_size=None) -> _Tensor:
    """Every element (part along `dim`) `repeats` times in a row: an int, or a tensor with a number for each part."""
def replication_pad2d(x, padding: _int | Sequence[_int], name=None) -> _Tensor:
    """x (N, C, H, W) with a border that repeats its edge. padding: as for constant_pad2d."""
@overload
def reshape(input, *sizes_, shape=None) -> _Tensor: """The same elements in another shape; one size may be -1."""
@overload
def reshape(x, shape: Sequence[_int], name=None) -> _Tensor: """The same elements in another shape; one axis may be -1."""
def reshape_like(x, like, name=None) -> _Tensor: """The elements of x in the shape of `like`, which must have as many."""
def result_type(*operands) -> _dtype:
    """Return the dtype of a result of these values and numbers (dtypes count as tensors with axes)."""
def reverse(input, axis: _int | Sequence[_int], name=None) -> _Tensor: """Backwards along an axis or several."""
def roi_align(x: _Tensor, rois: _Tensor, spatial_scale: _float, pooled_h: _int, pooled_w: _int, sampling_ratio: _int, aligned: _bool) -> _Tensor:
    """(K, C, pooled_h, pooled_w): of each of K boxes the features below it, as flow.vision.ops.roi_align has them."""
def roll(input, shifts, dims=None) -> _Tensor:
    """Shift elements along axes; elements shifted past the end reappear at the start. dims None: in the flattened tensor."""
def rot90(input, k: _int = 1, dims: Sequence[_int] = ...) -> _Tensor:
    """Turned by k quarters in the plane of two axes, from the first towards the second."""
def round(input, decimals: _int = 0) -> _Tensor:
    """To the nearest number with that many decimals; halves go to the even one."""
def row_stack(tensors: Sequence) -> _Tensor: """Joined along the first axis; vectors become rows."""
def rsqrt(input) -> _Tensor: """Elementwise rsqrt."""
def rsub(input, other, *, alpha=1) -> _Tensor: """other - alpha * input."""
def same_padding(x, padding: str, data_format: str, kernel_size: Sequence[_int], strides: Sequence[_int], dilation_rate: Sequence[_int], name=None) -> _Tensor:
    """x with the border of zeros that a convolution with padding "SAME_UPPER" or "SAME_LOWER" sees."""
def save(obj: Any, path: str | Any | IO[bytes], global_dst_rank: _int | None = None) -> None:
    """Write a state (nested dicts, lists and tuples of tensors, arrays, numbers and strings) into the directory `path`, or into a file that is open for writing bytes."""
def scatter(input, dim: _int, index, src, *, reduce: str | None = None) -> _Tensor:
    """x with x[index[i, j], j] = src[i, j] for dim 0, and so on; src: a tensor or a number. reduce: "add" or "multiply"."""
def scatter_add(input, dim: _int, index, src) -> _Tensor:
    """x with src[i, j] added to x[index[i, j], j] for dim 0, and so on; parts for one place add up."""
def scatter_nd(indices, updates, shape: Sequence[_int], name=None) -> _Tensor:
    """Zeros of `shape`, with every part of `updates` added where its row of `indices` says: parts for one place add up."""
def scatter_reduce(input, dim: _int, index, src, reduce: str, *, include_self: _bool = True) -> _Tensor:
    """scatter with "sum", "prod", "mean", "amax" or "amin" of all that meets in one place."""
def searchsorted(sorted_sequence, input, *, out_int32: _bool = False, right: _bool = False, side: str | None = None, sorter=None) -> _Tensor:
    """Where each value would go in a sorted vector (or in its row of a sorted matrix); right: behind equal elements. sorter: places (argsort's) that put an unsorted sequence in order."""
def seed() -> _int: """Set an unpredictable seed for the default generators, and return it."""
def select(input, dim: _int, index: _int) -> _Tensor: """One place along an axis, without that axis: a view."""
def select_scatter(input, src, dim: _int, index: _int) -> _Tensor: """x with one place along an axis replaced by src."""
def selu(input) -> _Tensor: """The scaled exponential linear unit."""
def set_cache(enabled: _bool) -> None:
    """Switch reuse of freed blocks on or off (off lets a memory checker see every access)."""
def set_default_dtype(d: _dtype) -> None: """Set the dtype of tensors made from Python floats."""
def set_num_threads(n) -> None: """Set the number of threads of kernels: from 1 to max(256, number of processors)."""
def set_printoptions(precision: _int | None = None, threshold: _float | None = None, edgeitems: _int | None = None, linewidth: _int | None = None, profile: str | None = None, sci_mode: _bool | None = None) -> None:
    """How tensors print."""
def set_rng_state(new_state: _Tensor) -> None: """The default generator draws on from a state that get_rng_state gave."""
def sgn(input) -> _Tensor: """Elementwise sign."""
short: _dtype
def show(thing: Any, path: str | Any | None = None) -> Any | None:
    """Show a graph, a plan, a job, a route, a timeline or a tensor: in a notebook as a picture or a table, elsewhere as text."""
def sigmoid(input) -> _Tensor: """Elementwise sigmoid."""
def sign(input) -> _Tensor: """Elementwise sign."""
def signbit(input) -> _Tensor: """Whether x is negative (-0.0 too)."""
def silu(input) -> _Tensor: """x * sigmoid(x)."""
def sin(input) -> _Tensor: """Elementwise sin."""
def sinc(input) -> _Tensor: """sin(pi x) / (pi x); 1 at 0."""
def sinh(input) -> _Tensor: """Elementwise sinh."""
def slice(x, begin: Sequence[_int], size: Sequence[_int], name=None) -> _Tensor:
    """x[begin : begin+size] on every axis; None begins at 0, size -1 goes to the end."""
def slice_scatter(input, src, dim: _int = 0, start=None, end=None, step: _int = 1) -> _Tensor:
    """x with x[start:end:step] along an axis replaced by src."""
def slice_update(x, update, slice_tup_list: Sequence[Sequence[_int | None]], name=None) -> _Tensor:
    """x with x[start:stop:step, ...] replaced by `update`."""
def slice_v2(x, slice_tup_list: Sequence[Sequence[_int | None]], name=None) -> _Tensor:
    """x[start:stop:step, ...] as Python slices do: (start, stop, step) for each axis, each may be None, steps may be negative."""
def slogdet(input) -> _return_types.slogdet: """flow.linalg.slogdet(input)."""
def smooth_l1_loss(prediction, label, beta: _float = 1.0, name=None) -> _Tensor:
    """x^2 / (2 beta) where x = |prediction - label| is below beta, x - beta / 2 elsewhere; one loss per element."""
def softmax(input, dim: _int | None = None, dtype=None) -> _Tensor: """softmax along `dim`."""
def softplus(input, beta: _float = 1.0, threshold: _float = 20.0) -> _Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""
def softsign(input) -> _Tensor: """Elementwise softsign."""
@overload
def sort(input, dim: _int = -1, descending: _bool = False, stable: _bool = True) -> _return_types.sort:
    """(values, indices) along `dim`."""
@overload
def sort(input, axis: _int = -1, direction: str = 'ASCENDING', name=None) -> _Tensor:
    """`input` sorted along `axis`, ASCENDING or DESCENDING."""
def split(input, split_size_or_sections, dim: _int = 0) -> tuple:
    """Pieces along an axis: of one size (the last may be smaller), or of the sizes in a list."""
def sqrt(input) -> _Tensor: """Elementwise sqrt."""
def square(input) -> _Tensor: """x * x; of bools 0 and 1, int64."""
@overload
def squeeze(input, dim=None) -> _Tensor: """Without the axes of size 1 (all of them, or those of `dim` that have size 1)."""
@overload
def squeeze(x, axis: Sequence[_int] | None = None, name: str | None = None) -> _Tensor:
    """Without the axes of size 1 in `axis` (a list; None: all of them, in the largest batch where the batch varies)."""
@overload
def stack(tensors: Sequence, dim: _int = 0) -> _Tensor: """Joined along a new axis; all shapes must agree."""
@overload
def stack(inputs: Sequence, axis: _int = 0, name=None) -> _Tensor: """Joined along a new axis."""
def std(input, dim=None, unbiased=None, keepdim: _bool = False, *, correction: _float | None = None) -> _Tensor:
    """The standard deviation: the root of var."""
def std_mean(input, dim=None, unbiased=None, keepdim: _bool = False, *, correction: _float | None = None) -> tuple[_Tensor, _Tensor]:
    """(standard deviation, mean)."""
def sub(input, other, *, alpha=1) -> _Tensor: """input - alpha * other."""
def subtract(input, other, *, alpha=1) -> _Tensor: """input - alpha * other."""
def sum(input, dim=None, keepdim: _bool = False, *, dtype=None) -> _Tensor:
    """The sum over `dim` (int, tuple; None: all)."""
def svd(input, some: _bool = True, compute_uv: _bool = True) -> _return_types.svd:
    """(U, S, V) with input = U @ diag(S) @ V.mT; some=False: U and V are square; compute_uv=False: they are zeros."""
@overload
def swapaxes(input, dim0: _int, dim1: _int) -> _Tensor: """Two axes exchanged."""
@overload
def swapaxes(x, axis1: _int, axis2: _int, name=None) -> _Tensor: """x with two axes exchanged. (Not in OneFlow 0.4.)"""
def swapdims(input, dim0: _int, dim1: _int) -> _Tensor: """Two axes exchanged."""
def sync_default_session() -> None: """Wait for launched jobs and callbacks."""
def sync_dynamic_resize(inputs, size, axis: _int = 0, eager: _bool = False, name=None) -> _Tensor:
    """The first `size` elements along an axis. size: (1,) whole numbers, known only when the job runs. eager: no matter."""
def t(input) -> _Tensor: """The transpose of a matrix; a vector stays as it is."""
def take(input, index) -> _Tensor:
    """The elements at these places of the flattened tensor; negative ones count from the end."""
def take_along_dim(input, indices, dim: _int | None = None) -> _Tensor:
    """The elements that `indices` names along an axis; the other axes broadcast."""
def tan(input) -> _Tensor: """Elementwise tan."""
def tanh(input) -> _Tensor: """Elementwise tanh."""
def tensor(data, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None, pin_memory: _bool = False) -> _Tensor:
    """Return a tensor with a copy of numbers, nested lists, or an array."""
tensor_buffer: _dtype
def tensor_buffer_to_list_of_tensors(x, out_shape: Sequence[_int], out_dtype: _dtype, dynamic_out: _bool = False, name=None) -> tuple[_Tensor, ...]:
    """Every buffer as a blob of its own: a tuple of `prod(x.shape)`."""
def tensor_buffer_to_tensor(x, dtype: _dtype, instance_shape: Sequence[_int], name=None) -> _Tensor:
    """One tensor of shape `x.shape + instance_shape`."""
def tensor_buffer_to_tensor_list(input, shape: Sequence[_int], dtype: _dtype, name=None) -> tuple[_Tensor, ...]:
    """A TensorBuffer of shape (N,) as a tensor list: N tensors (1, ...), cast to `dtype`, in one piece of memory."""
def tensor_list_split(input_tensor_list, name=None) -> tuple[_Tensor, ...]:
    """The tensors of a list, each a dynamic blob, without their first axis of 1: a tuple of N."""
def tensor_list_to_tensor_buffer(input, name=None) -> _Tensor:
    """A tensor list of N tensors (1, ...) as a TensorBuffer of shape (N,); the axes of 1 are dropped."""
def tensor_scatter_nd_add(params, indices, updates, name=None) -> _Tensor:
    """`params`, with the parts of `updates` added where rows of `indices` say."""
def tensor_scatter_nd_update(params, indices, updates, name=None) -> _Tensor:
    """`params`, the parts that rows of `indices` name replaced by those of `updates`; of several for one place the last one stays, and alone has a gradient."""
def tensor_split(input, indices_or_sections, dim: _int = 0) -> tuple:
    """Pieces along an axis: as many as a number says, or cut at the places in a list."""
def tensor_to_tensor_buffer(x, instance_dims: _int, name=None) -> _Tensor:
    """The last `instance_dims` axes of `x` into buffers: a TensorBuffer of shape `x.shape[:-instance_dims]`."""
def tensordot(a, b, dims=2) -> _Tensor:
    """Products summed over axes: the last `dims` of a with the first of b, or two lists of axes."""
def tile(input, *dims_, dims=None) -> _Tensor: """repeat; missing numbers in front are 1."""
def to(self, *args, dtype=None, device=None, other: _Tensor | None = None, non_blocking: _bool = False, copy: _bool = False, memory_format=None) -> _Tensor:
    """Return this tensor with another dtype or on another device; itself if nothing changes and `copy` is False."""
def to_global(*args, **kwargs) -> _Tensor: """See help(flowedu.core.sbp.tensor.shards.to_global)."""
def to_local(*args, **kwargs) -> _Tensor: """See help(flowedu.core.sbp.tensor.shards.to_local)."""
def topk(input, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> _return_types.topk:
    """(values, indices) of the k largest (smallest) elements along `dim`, the best first."""
def trace(input) -> _Tensor: """The sum of a matrix's diagonal."""
@overload
def transpose(input, dim0: _int, dim1: _int) -> _Tensor: """Two axes exchanged."""
@overload
def transpose(a, perm: Sequence[_int] | None = None, conjugate: _bool = False, batch_axis_non_change: _bool = False, name=None) -> _Tensor:
    """Axes in the order `perm` (required, as in OneFlow 0.4)."""
def trapezoid(y, x=None, *, dx: _float = 1.0, dim: _int = -1) -> _Tensor:
    """Return the area under y along an axis by trapezoids: of points x, a vector or broadcast with y, or dx apart."""
def triangular_solve(input, A, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> _return_types.triangular_solve:
    """(solution X of A @ X = input, A); transpose: of A.mT @ X = input."""
@overload
def tril(input, diagonal: _int = 0) -> _Tensor:
    """Return the lower triangle of each matrix, zeros above the diagonal shifted `diagonal` columns to the right."""
@overload
def tril(x, diagonal: _int = 0, fill_value: _float = 0, name=None) -> _Tensor:
    """The lower triangle of each matrix (the last two axes), `fill_value` above the diagonal."""
def tril_indices(row: _int, col: _int, offset: _int = 0, *, dtype=..., device=None, placement=None, sbp=None) -> _Tensor:
    """(2, n): rows and columns of the lower triangle."""
@overload
def triu(input, diagonal: _int = 0) -> _Tensor: """The upper triangle of each matrix, zeros below the diagonal."""
@overload
def triu(x, diagonal: _int = 0, fill_value: _float = 0, name=None) -> _Tensor:
    """The upper triangle of each matrix (the last two axes), `fill_value` below the diagonal. (Not in OneFlow 0.4.)"""
def triu_indices(row: _int, col: _int, offset: _int = 0, *, dtype=..., device=None, placement=None, sbp=None) -> _Tensor:
    """(2, n): rows and columns of the upper triangle."""
def true_divide(input, other) -> _Tensor:
    """Elementwise true_divide of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def trunc(input) -> _Tensor: """Elementwise trunc; whole numbers stay as they are."""
def truncated_normal(stddev: _float = 1.0) -> Initializer: """truncated_normal_initializer with mean 0."""
def truncated_normal_initializer(mean: _float = 0.0, stddev: _float = 1.0) -> Initializer:
    """Normal, but no value is 2 stddev or more away from the mean."""
uint8: _dtype
def unbind(input, dim: _int = 0) -> tuple: """One tensor for each place along an axis."""
def unflatten(input, dim: _int, sizes: Sequence[_int]) -> _Tensor: """One axis split into several; one size may be -1."""
def unfold(input, dimension: _int, size: _int, step: _int) -> _Tensor:
    """Windows of `size` elements, `step` apart, along an axis; they become the last axis."""
def unique(input, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
    """The different elements, in order (with dim: the different parts); inverse: where each element went; counts."""
def unique_consecutive(input, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
    """Without the repetitions of neighbours."""
def unpack(*args, **kwargs) -> _Tensor: """OneFlow's unpack cuts a batch into micro-batches."""
def unsorted_batch_segment_sum(data, segment_ids, num_segments: _int, name=None) -> _Tensor:
    """unsorted_segment_sum for each of a batch: segment_ids has data's leading axes, the last of them is summed over."""
def unsorted_segment_sum(data, segment_ids, num_segments: _int, axis: _int = 0, name=None) -> _Tensor:
    """Sums over parts of `data` along `axis`: part i goes into segment segment_ids[i]."""
def unsorted_segment_sum_like(data, segment_ids, like, axis: _int = 0, name=None) -> _Tensor:
    """unsorted_segment_sum with as many segments as `like` has along `axis`."""
def unsqueeze(input, dim: _int) -> _Tensor: """With a new axis of size 1 at `dim`."""
def user_op_builder(op_name: str) -> UserOpBuilder:
    """A builder for one op of a job, called `op_name` (with the prefix of flow.scope.namespace); works eagerly, too."""
def user_op_module_builder(op_type_name: str) -> UserOpModuleBuilder:
    """A builder for ops of this type, to be kept: OneFlow's modules make one and call it for every op."""
def vander(x, N: _int | None = None, increasing: _bool = False) -> _Tensor:
    """Return columns x^0, x^1, ... (falling unless increasing); for integers as int64."""
def var(input, dim=None, unbiased=None, keepdim: _bool = False, *, correction: _float | None = None) -> _Tensor:
    """The variance over `dim` (None: all): squares divided by n - correction; correction 1 unless unbiased=False."""
def var_mean(input, dim=None, unbiased=None, keepdim: _bool = False, *, correction: _float | None = None) -> tuple[_Tensor, _Tensor]:
    """(variance, mean)."""
def variance_scaling_initializer(scale: _float = 1.0, mode: str = 'fan_in', distribution: str = 'truncated_normal', data_format: str = '') -> Initializer:
    """Mean 0 and variance scale / fan."""
def vdot(input, tensor) -> _Tensor: """The inner product of two vectors."""
def view(input, *shape) -> _Tensor: """A view of another shape."""
def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = 'error', *, chunk_size: _int | None = None) -> Callable:
    """Return a function that applies `func` to each sample of a batch at once."""
def vsplit(input, indices_or_sections) -> tuple: """Pieces along axis 0 of a tensor with 2 axes or more."""
def vstack(tensors: Sequence) -> _Tensor: """Joined along the first axis; vectors become rows."""
def watch(blob_watched, handler_or_prompt: Callable | str | None = None) -> None:
    """Call the handler with the blob's value in each run (or print it, after the prompt if one is given)."""
def watch_diff(blob_watched, handler_or_prompt: Callable | str | None = None) -> None:
    """The same for the gradient: d(sum of the loss's elements)/d(blob), before any averaging, penalty or clipping."""
@overload
def where(condition, input: None = None, other: None = None) -> tuple[_Tensor, ...]:
    """`input` where the condition holds, else `other`; shapes broadcast, dtypes are promoted; numbers are fine."""
@overload
def where(condition, input: Any, other: Any) -> _Tensor:
    """`input` where the condition holds, else `other`; shapes broadcast, dtypes are promoted; numbers are fine."""
@overload
def where(condition, x=None, y=None, name=None) -> _Tensor: """x where condition is not 0, else y; broadcasting."""
def xavier_normal_initializer(data_format: str = '') -> Initializer: """Normal with variance 1 / fan_avg."""
def xavier_uniform_initializer(data_format: str = '') -> Initializer: """Uniform with variance 1 / fan_avg."""
def xlogy(input, other) -> _Tensor:
    """Elementwise xlogy of two tensors, or of a tensor and a number; shapes broadcast, dtypes are promoted."""
def zero_(input) -> _Tensor: """Make every element 0."""
def zero_pad2d(x, padding: _int | Sequence[_int], name=None) -> _Tensor: """constant_pad2d with zeros."""
@overload
def zeros(*size, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None) -> _Tensor:
    """Zeros: zeros(2, 3), zeros((2, 3)); zeros(()) is 0-dim."""
@overload
def zeros(shape: Sequence[_int], dtype=..., name: str | None = None) -> _Tensor: """Zeros."""
def zeros_(input) -> _Tensor: """Make every element 0."""
def zeros_initializer(dtype: _dtype = ...) -> Initializer: """All elements 0."""
@overload
def zeros_like(input, *, dtype=None, device=None, requires_grad: _bool = False, placement=None, sbp=None, memory_format=None) -> _Tensor:
    """Return zeros with the shape, dtype, and location of another tensor. memory_format: contiguous unless given."""
@overload
def zeros_like(like, dtype=None, name: str | None = None) -> _Tensor: ...
