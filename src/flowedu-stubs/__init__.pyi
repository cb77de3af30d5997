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
from flowedu.oneflow04.job.config import (
    FunctionConfig as ExecutionConfig, FunctionConfig as FunctionConfig, FunctionConfig as function_config, GlobalConfig)
from flowedu.oneflow04.job.env import Resource
from flowedu.oneflow04.job.function_desc import FunctionDesc
from flowedu.oneflow04.job.placed_blobs import (
    ConsistentBlob as ConsistentBlob, EagerConsistentBlob as EagerConsistentBlob, LocalBlob as LocalBlob,
    MirroredBlob as MirroredBlob)
from flowedu.oneflow04.job.scope import Scope, namespace as name_scope, placement as _placement
from flowedu.oneflow04.mirrored import (
    MirroredTensorDef as MirroredTensorDef, MirroredTensorListDef as MirroredTensorListDef)
from flowedu.saving.graph import LoadedGraph
from flowedu.tensor import array_api as array_api, fft as fft, return_types as _return_types, return_types as return_types
from flowedu.tensor.arguments.types import Axes, Device, Number, Placement, Sbp, Sizes
from flowedu.tensor.construction.generator import (
    Generator as Generator, Generator as _Generator, _Default, fork_rng as fork_rng)
from flowedu.tensor.devices.device import device as device
from flowedu.tensor.devices.memory_format import memory_format as _memory_format, memory_format as memory_format
from flowedu.tensor.dtypes.numeric_limits import finfo as finfo, iinfo as iinfo
from flowedu.tensor.gradients.grad_mode import (
    enable_grad as enable_grad, inference_mode as inference_mode, no_grad as no_grad, set_grad_enabled as set_grad_enabled)
from flowedu.utils import profiler as profiler
from typing import Any, IO, Literal, overload

def BFloat16Tensor(*args: Any, device: Device | None = None, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor of dtype bfloat16."""
def BoolTensor(*args: Any, device: Device | None = None, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor of dtype bool."""
def ByteTensor(*args: Any, device: Device | None = None, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor of dtype uint8."""
def CharTensor(*args: Any, device: Device | None = None, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor of dtype int8."""
def DoubleTensor(*args: Any, device: Device | None = None, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor of dtype float64."""
def FloatTensor(*args: Any, device: Device | None = None, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor of dtype float32."""
def HalfTensor(*args: Any, device: Device | None = None, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor of dtype float16."""
def IntTensor(*args: Any, device: Device | None = None, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor of dtype int32."""
def LongTensor(*args: Any, device: Device | None = None, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor of dtype int64."""
def ShortTensor(*args: Any, device: Device | None = None, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor of dtype int16."""
def abs(input: _Tensor) -> _Tensor: """Return the absolute value of x, for each element."""
def absolute(input: _Tensor) -> _Tensor: """Return the absolute value of x, for each element."""
def acc(*args, **kwargs) -> _Tensor: """OneFlow's acc adds up over micro-batches."""
def acos(input: _Tensor) -> _Tensor: """Return the arc cosine of x, in radians, for each element."""
def acosh(input: _Tensor) -> _Tensor: """Return the inverse hyperbolic cosine of x, for each element."""
def add(input: _Tensor | Number, other: _Tensor | Number, *, alpha: Number = 1) -> _Tensor:
    """Return input + alpha * other."""
def addbmm(input: _Tensor, batch1: _Tensor, batch2: _Tensor, *, beta: Number = 1, alpha: Number = 1) -> _Tensor:
    """Return beta * input + alpha * the sum of all products of the batch."""
def addcdiv(input: _Tensor, tensor1: _Tensor, tensor2: _Tensor | Number, *, value: Number = 1) -> _Tensor:
    """Return input + value * tensor1 / tensor2."""
def addcmul(input: _Tensor, tensor1: _Tensor, tensor2: _Tensor | Number, *, value: Number = 1) -> _Tensor:
    """Return input + value * tensor1 * tensor2."""
def addmm(input: _Tensor, mat1: _Tensor, mat2: _Tensor, *, beta: Number = 1, alpha: Number = 1) -> _Tensor:
    """Return beta * input + alpha * mat1 @ mat2."""
def addmv(input: _Tensor, mat: _Tensor, vec: _Tensor, *, beta: Number = 1, alpha: Number = 1) -> _Tensor:
    """Return beta * input + alpha * mat @ vec."""
def addr(input: _Tensor, vec1: _Tensor, vec2: _Tensor, *, beta: Number = 1, alpha: Number = 1) -> _Tensor:
    """Return beta * input + alpha * outer(vec1, vec2)."""
def adjoint(input: _Tensor) -> _Tensor:
    """Return a view with the last two axes exchanged, which is the adjoint because tensors are real."""
def all(input: _Tensor, dim: Axes | None = None, keepdim: _bool = False) -> _Tensor: """Return True if no element is 0."""
def allclose(input: _Tensor, other: _Tensor, *, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _bool:
    """Return True if all elements are close; see isclose."""
def amax(input: _Tensor, dim: Axes | None = ..., keepdim: _bool = False) -> _Tensor:
    """Return the max of the elements; equal elements share the gradient."""
def amin(input: _Tensor, dim: Axes | None = ..., keepdim: _bool = False) -> _Tensor:
    """Return the min of the elements; equal elements share the gradient."""
def aminmax(input: _Tensor, *, dim: Axes | None = None, keepdim: _bool = False) -> tuple[_Tensor, _Tensor]:
    """Return (minimum, maximum) of the elements."""
def amp_white_identity(x, name=None) -> _Tensor: """Return `x` as a blob with its own name."""
def any(input: _Tensor, dim: Axes | None = None, keepdim: _bool = False) -> _Tensor:
    """Return True if at least one element is not 0."""
def arange(start: Number, end: Number | None = None, step: Number = 1, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return the vector start, start + step, ..., which ends before `end`."""
def arccos(input: _Tensor) -> _Tensor: """Return the arc cosine of x, in radians, for each element."""
def arccosh(input: _Tensor) -> _Tensor: """Return the inverse hyperbolic cosine of x, for each element."""
def arcsin(input: _Tensor) -> _Tensor: """Return the arc sine of x, in radians, for each element."""
def arcsinh(input: _Tensor) -> _Tensor: """Return the inverse hyperbolic sine of x, for each element."""
def arctan(input: _Tensor) -> _Tensor: """Return the arc tangent of x, in radians, for each element."""
def arctan2(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return the angle of the point (other, input), in radians, for each element."""
def arctanh(input: _Tensor) -> _Tensor: """Return the inverse hyperbolic tangent of x, for each element."""
def argmax(input: _Tensor, dim: _int | None = None, keepdim: _bool = False) -> _Tensor:
    """Return the int64 position of the maximum, the first one of equal elements; NaN counts as the maximum."""
def argmin(input: _Tensor, dim: _int | None = None, keepdim: _bool = False) -> _Tensor:
    """Return the int64 position of the minimum, the first one of equal elements; NaN counts as the minimum."""
@overload
def argsort(input: _Tensor, dim: _int = -1, descending: _bool = False, stable: _bool = True) -> _Tensor:
    """Return the int64 positions that sort x along an axis."""
@overload
def argsort(input, axis: _int = -1, direction: str = 'ASCENDING', name=None) -> _Tensor:
    """Return the indices that sort `input` along an axis, as int32."""
@overload
def argwhere(input: _Tensor) -> _Tensor:
    """Return the positions of the elements that are not 0, as an int64 tensor (count, axes)."""
@overload
def argwhere(condition, dtype=None, name=None) -> _Tensor:
    """Return the indices of the elements that are not 0, one row per element."""
def as_strided(input: _Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None) -> _Tensor:
    """Return a view with the given sizes and strides over the memory of a contiguous tensor."""
def as_tensor(data: Any, dtype: _dtype | None = None, device: Device | None = None) -> _Tensor:
    """Return a tensor of the data, without a copy if possible."""
def asin(input: _Tensor) -> _Tensor: """Return the arc sine of x, in radians, for each element."""
def asinh(input: _Tensor) -> _Tensor: """Return the inverse hyperbolic sine of x, for each element."""
def assign(ref, value, dtype=None, name: str | None = None) -> None:
    """Store `value` in the variable `ref` at the end of the run."""
def atan(input: _Tensor) -> _Tensor: """Return the arc tangent of x, in radians, for each element."""
def atan2(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return the angle of the point (other, input), in radians, for each element."""
def atanh(input: _Tensor) -> _Tensor: """Return the inverse hyperbolic tangent of x, for each element."""
def atleast_1d(*tensors: _Tensor | Sequence[_Tensor]) -> _Tensor: """Return views with at least one axis."""
def atleast_2d(*tensors: _Tensor | Sequence[_Tensor]) -> _Tensor:
    """Return views with at least two axes; new axes come first."""
def atleast_3d(*tensors: _Tensor | Sequence[_Tensor]) -> _Tensor:
    """Return views with at least three axes: (n,) becomes (1, n, 1), and (n, m) becomes (n, m, 1)."""
def baddbmm(input: _Tensor, batch1: _Tensor, batch2: _Tensor, *, beta: Number = 1, alpha: Number = 1) -> _Tensor:
    """Return beta * input + alpha * batch1 @ batch2."""
def bartlett_window(window_length: _int, periodic: _bool = True, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return the triangle 1 - |2 k / n - 1| for k = 0, 1, ..., a vector (window_length,)."""
def batch_gather(input, indices, name=None) -> _Tensor:
    """Gather parts of each batch: `y[b, j, ...] = input[b, indices[b, j], ...]`."""
def bernoulli(input: _Tensor, p: _float | None = None, *, generator: _Generator | None = None) -> _Tensor:
    """Return random zeros and ones in the dtype of the input."""
bfloat16: _dtype
def bincount(input: _Tensor, weights: _Tensor | None = None, minlength: _int = 0) -> _Tensor:
    """Return the number of occurrences of 0, 1, 2, ... in a vector."""
def bitwise_and(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Compute bitwise_and of integers or bools, for each element."""
def bitwise_left_shift(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Compute bitwise_left_shift of integers, for each element."""
def bitwise_not(input: _Tensor) -> _Tensor: """Return ~x, which is the opposite of a bool, and -1 - x for an integer."""
def bitwise_or(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Compute bitwise_or of integers or bools, for each element."""
def bitwise_right_shift(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Compute bitwise_right_shift of integers, for each element."""
def bitwise_xor(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Compute bitwise_xor of integers or bools, for each element."""
def blackman_window(window_length: _int, periodic: _bool = True, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return 0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n) for k = 0, 1, ..., a vector (window_length,)."""
def block_diag(*tensors: _Tensor) -> _Tensor: """Return a block-diagonal matrix."""
def bmm(input: _Tensor, mat2: _Tensor) -> _Tensor: """Return the products of two batches of matrices."""
bool: _dtype
def broadcast_add(x, y, name=None) -> _Tensor: """Compute add elementwise, with broadcasting."""
def broadcast_div(x, y, name=None) -> _Tensor: """Compute x / y elementwise, with broadcasting."""
def broadcast_like(x, like, broadcast_axes: Sequence[_int] | None = None, name=None) -> _Tensor:
    """Broadcast `x` to the shape of `like`."""
def broadcast_mul(x, y, name=None) -> _Tensor: """Compute multiply elementwise, with broadcasting."""
def broadcast_shapes(*shapes: _int | Sequence[_int]) -> tuple[_int, ...]:
    """Return the shape to which all given shapes broadcast."""
def broadcast_sub(x, y, name=None) -> _Tensor: """Compute subtract elementwise, with broadcasting."""
def broadcast_tensors(*tensors: _Tensor | Sequence[_Tensor]) -> list[_Tensor]:
    """Return views of the tensors in their common shape."""
def broadcast_to(input: _Tensor, size: Sequence[_int]) -> _Tensor:
    """Return a view that is broadcast to a shape, like expand."""
def broadcast_to_compatible_with(x, compatible: Sequence, name=None) -> _Tensor:
    """Broadcast `x` to the shape that `x` and all blobs of `compatible` broadcast to."""
def bucketize(input: _Tensor | Number, boundaries: _Tensor, *, out_int32: _bool = False, right: _bool = False) -> _Tensor:
    """Return the index of the bucket that contains each value; `boundaries` separates the buckets."""
def can_cast(from_: _dtype, to: _dtype) -> _bool:
    """Return True if an in-place op may write a result of dtype `from_` into `to`."""
def cartesian_prod(*tensors: _Tensor) -> _Tensor: """Return all combinations of elements of vectors, one row each."""
def cast(x, dtype, name=None) -> _Tensor: """Convert `x` to another dtype."""
def cast_to_current_logical_view(x):
    """Convert a blob to the current view: unchanged, split over the devices along axis 0, or joined."""
def cast_to_static_shape(x, name=None) -> _Tensor: """Return `x` as a blob with its own name."""
def cat(tensors: Sequence, dim: _int = 0) -> _Tensor: """Concatenate tensors along an axis."""
def cdist(x1: _Tensor, x2: _Tensor, p: _float = 2.0, compute_mode: str | None = None) -> _Tensor:
    """Return the p-norm distance of every row of x1 to every row of x2."""
def ceil(input: _Tensor) -> _Tensor: """Return the smallest integer that is at least x, for each element."""
def chain_matmul(*matrices: _Tensor) -> _Tensor: """Return the product of one matrix or more."""
channels_last: _memory_format
channels_last_3d: _memory_format
char: _dtype
def cholesky(input: _Tensor, upper: _bool = False) -> _Tensor: """Return flow.linalg.cholesky(input, upper=upper)."""
def cholesky_inverse(input: _Tensor, upper: _bool = False) -> _Tensor:
    """Return the inverse of A from its Cholesky factor."""
def cholesky_solve(input: _Tensor, input2: _Tensor, upper: _bool = False) -> _Tensor: """Return X with A @ X = input."""
def chunk(input: _Tensor, chunks: _int, dim: _int = 0) -> tuple[_Tensor, ...]:
    """Return at most `chunks` pieces along an axis, which have equal sizes except for the last one."""
@overload
def clamp(input: _Tensor, min: _Tensor | Number | None = None, max: _Tensor | Number | None = None) -> _Tensor:
    """Limit each element to [min, max]."""
@overload
def clamp(values, min_value=None, max_value=None, name=None) -> _Tensor: """Clip elements to [min_value, max_value]."""
def clamp_max(input: _Tensor, max: _Tensor | Number) -> _Tensor: """Limit each element to at most `max`."""
def clamp_min(input: _Tensor, min: _Tensor | Number) -> _Tensor: """Limit each element to at least `min`."""
def clear_default_session() -> None: """Discard all jobs, variables, and resource settings."""
@overload
def clip(input: _Tensor, min: _Tensor | Number | None = None, max: _Tensor | Number | None = None) -> _Tensor:
    """Limit each element to [min, max]."""
@overload
def clip(values, min_value=None, max_value=None, name=None) -> _Tensor: """Clip elements to [min_value, max_value]."""
@overload
def clip_by_scalar(input: _Tensor, min: _Tensor | Number | None = None, max: _Tensor | Number | None = None) -> _Tensor:
    """Limit each element to [min, max]."""
@overload
def clip_by_scalar(values, min_value=None, max_value=None, name=None) -> _Tensor:
    """Clip elements to [min_value, max_value]."""
def clip_by_value(values, min_value=None, max_value=None, name=None) -> _Tensor:
    """Clip elements to [min_value, max_value]."""
def clone(input: _Tensor, memory_format: _memory_format | None = None) -> _Tensor: """Return a differentiable copy."""
def column_stack(tensors: Sequence) -> _Tensor: """Concatenate vectors as columns, and matrices along the columns."""
def combinations(input: _Tensor, r: _int = 2, with_replacement: _bool = False) -> _Tensor:
    """Return all combinations of r elements of a vector, one row each."""
def combined_margin_loss(x: _Tensor, label: _Tensor, m1: _float = 1.0, m2: _float = 0.0, m3: _float = 0.0, name=None) -> _Tensor:
    """Return x, with the cosine of each row's label replaced by cos(m1 * acos(x) + m2) - m3."""
@overload
def concat(tensors: Sequence, dim: _int = 0) -> _Tensor: """Concatenate tensors along an axis."""
@overload
def concat(inputs: Sequence | None = None, axis: _int = 0, max_dim_size=None, name: str | None = None, values: Sequence | None = None) -> _Tensor:
    """Concatenate blobs along an axis."""
def concatenate(tensors: Sequence, dim: _int = 0) -> _Tensor: """Concatenate tensors along an axis."""
config: GlobalConfig
def consistent_user_op_builder(op_name: str) -> UserOpBuilder: """Return a builder for one op of a job."""
def consistent_user_op_module_builder(op_type_name: str) -> UserOpModuleBuilder:
    """Return a builder for several ops of one type."""
def constant(value, dtype=None, shape: Sequence[_int] | None = None, name=None) -> _Tensor:
    """Return a blob filled with one value."""
def constant_initializer(value: _float = 0, dtype: _dtype = ...) -> Initializer:
    """Return an initializer that fills a variable with one value."""
def constant_like(like, value, dtype=None, name=None) -> _Tensor:
    """Return a blob in the shape of `like`, filled with one value."""
def constant_pad2d(x, padding: _int | Sequence[_int], constant_value: _float = 0, name=None) -> _Tensor:
    """Pad images with a constant."""
def constant_scalar(value, dtype=None, name: str | None = None) -> _Tensor: """Return a blob of shape (1,)."""
contiguous_format: _memory_format
def convert_oneflow_dtype_to_numpy_dtype(d: _dtype) -> _np.dtype: """Return the NumPy dtype of a flowedu dtype."""
def copysign(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return |input| with the sign of other, for each element."""
def corrcoef(input: _Tensor) -> _Tensor: """Return the correlations of the rows, in [-1, 1]."""
def cos(input: _Tensor) -> _Tensor: """Return the cosine of x, in radians, for each element."""
def cosh(input: _Tensor) -> _Tensor: """Return the hyperbolic cosine of x, for each element."""
def count_nonzero(input: _Tensor, dim: Axes | None = None) -> _Tensor:
    """Return the int64 number of elements that are not 0."""
def count_not_finite(x, name=None) -> _Tensor: """Count the elements that are infinite or NaN."""
def cov(input: _Tensor, *, correction: _int = 1, fweights: _Tensor | None = None, aweights: _Tensor | None = None) -> _Tensor:
    """Return the covariances of the rows, of shape (variables, variables)."""
def cross(input: _Tensor, other: _Tensor, dim: _int | None = None) -> _Tensor:
    """Return the cross product along an axis of size 3."""
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank: _int = 0, reduction: str = 'mean', zero_infinity: _bool = False, name=None) -> _Tensor:
    """Compute the loss of connectionist temporal classification (CTC)."""
def cummax(input: _Tensor, dim: _int) -> _return_types.cummax:
    """Return (values, indices) of the largest element up to each index."""
def cummin(input: _Tensor, dim: _int) -> _return_types.cummin:
    """Return (values, indices) of the smallest element up to each index."""
def cumprod(input: _Tensor, dim: _int, *, dtype: _dtype | None = None) -> _Tensor:
    """Return the running product along an axis; integers give int64."""
def cumsum(input: _Tensor, dim: _int, *, dtype: _dtype | None = None) -> _Tensor:
    """Return the running sum along an axis; integers give int64."""
def current_global_function_desc() -> FunctionDesc: """Return the job whose body is running."""
def current_machine_id() -> _int: """Return 0, the id of the machine of this process."""
def current_resource() -> Resource: """Return the machines, the devices of each, and the current settings of flow.config."""
def current_scope() -> Scope: """Return the scope at this position of a job's body."""
def custom_op(name: str, forward: Callable | None = None, backward: Callable | None = None, infer: Callable | None = None, sbp: str | None = None, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] = ..., attrs: dict | None = None, grad: dict | None = None, linear: Sequence = ..., examples: Sequence[dict] = ..., domain: dict | None = None, float_only: _bool = True, random: _bool = False, library: str | None = None, gradient_name: str | None = None, replace: _bool = False, doc: str = '') -> Callable:
    """Make an op from Python functions."""
default_generator: _Default
def deg2rad(input: _Tensor) -> _Tensor: """Convert degrees to radians."""
def det(A: _Tensor) -> _Tensor: """Return the determinant of each square matrix."""
def device_prior_placement(device_tag: str, machine_device_ids) -> _placement:
    """Return flow.scope.placement(device_tag, machine_device_ids); the old name prints a warning."""
@overload
def diag(input: _Tensor, diagonal: _int = 0) -> _Tensor:
    """Return the diagonal of a matrix, or a matrix with a vector on its diagonal."""
@overload
def diag(x, diagonal: _int = 0, name=None) -> _Tensor:
    """Return the diagonal of a matrix, or a square matrix with a given diagonal."""
def diag_embed(input: _Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> _Tensor:
    """Return matrices with the last axis of the input on their diagonals, and zeros elsewhere."""
def diagflat(input: _Tensor, offset: _int = 0) -> _Tensor:
    """Return a square matrix with all elements on its diagonal, and zeros elsewhere."""
def diagonal(input: _Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> _Tensor:
    """Return a view of the diagonals of two axes; a new last axis replaces the two axes."""
def diff(input: _Tensor, n: _int = 1, dim: _int = -1, prepend: _Tensor | None = None, append: _Tensor | None = None) -> _Tensor:
    """Return the n-th difference of neighbors along an axis."""
def digamma(input: _Tensor) -> _Tensor: """Return the derivative of lgamma, for each element."""
def dim_gather(input, dim: _int, index, name=None) -> _Tensor:
    """Gather along one axis as NumPy's take_along_axis: for dim 1, `y[i, j] = input[i, index[i, j]]`."""
def div(input: _Tensor | Number, other: _Tensor | Number, *, rounding_mode: str | None = None) -> _Tensor:
    """Return input / other."""
def divide(input: _Tensor | Number, other: _Tensor | Number, *, rounding_mode: str | None = None) -> _Tensor:
    """Return input / other."""
def dot(input: _Tensor, tensor: _Tensor) -> _Tensor: """Return the inner product of two vectors."""
double: _dtype
def dsplit(input: _Tensor, indices_or_sections: _int | Sequence[_int] | _Tensor) -> tuple[_Tensor, ...]:
    """Return views of pieces along axis 2."""
def dstack(tensors: Sequence) -> _Tensor: """Concatenate tensors along the third axis."""
def dtypes() -> list[_dtype]: """Return all element types."""
def dynamic_reshape(x, shape: Sequence[_int], name=None) -> _Tensor: """Return the elements of `x` in another shape."""
e: _float
def eager_execution_enabled() -> _bool: """Return True if jobs run eagerly."""
def einsum(equation: str, *operands: _Tensor | Sequence[_Tensor]) -> _Tensor:
    """Return sums of products in Einstein notation."""
def elem_cnt(inputs, dtype=None, name=None) -> _Tensor: """Return the number of elements of a blob."""
def empty(*size: Sizes, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None, pin_memory: _bool = False, memory_format: _memory_format | None = None) -> _Tensor:
    """Return a tensor with uninitialized values (in a graph: zeros)."""
def empty_cache() -> None: """Return all cached memory to the system."""
def empty_initializer(dtype: _dtype = ...) -> Initializer: """Return an initializer that leaves memory uninitialized."""
def empty_like(input: _Tensor, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None, memory_format: _memory_format | None = None) -> _Tensor:
    """Return an uninitialized tensor with the shape of another one."""
def enable_eager_execution(value: _bool = True) -> None: """Run jobs eagerly from now on, or compiled."""
def eq(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return input == other, as a bool for each element."""
def equal(input: _Tensor, other: _Tensor) -> _bool: """Return True if both tensors have the same shape and elements."""
def erf(input: _Tensor) -> _Tensor: """Return the error function of x, for each element."""
def erfc(input: _Tensor) -> _Tensor: """Return 1 - erf(x), accurate for large x, for each element."""
def erfinv(input: _Tensor) -> _Tensor: """Return the inverse of the error function, for each element."""
def exp(input: _Tensor) -> _Tensor: """Return exp(x), for each element."""
def exp2(input: _Tensor) -> _Tensor: """Return 2 to the power x, for each element."""
def expand(input: _Tensor, *sizes_: Sizes, size: Sequence[_int] | None = None) -> _Tensor:
    """Return a view that is broadcast to a shape; axes of size 1 are repeated without a copy."""
def expand_dims(x, axis: _int, name=None) -> _Tensor: """Insert an axis of size 1 at position `axis`."""
def explain(x, *args, **kwargs) -> None:
    """Print the candidate signatures, the bytes that each would move, the choice, and the reason for it."""
def expm1(input: _Tensor) -> _Tensor: """Return exp(x) - 1, accurate near 0, for each element."""
@overload
def eye(n: _int, m: _int | None = None, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return an n x m matrix with ones on the diagonal."""
@overload
def eye(n: _int, m: _int | None = None, dtype=..., name=None) -> _Tensor: """Return a matrix with ones on the diagonal."""
def fix(input: _Tensor) -> _Tensor: """Return x without its fraction, for each element."""
def fixed_placement(device_tag: str, machine_device_ids) -> _placement:
    """Return flow.scope.placement(device_tag, machine_device_ids); the old name prints a warning."""
@overload
def flatten(input: _Tensor, start_dim: _int = 0, end_dim: _int = -1) -> _Tensor:
    """Merge adjacent axes into one; a 0-dim tensor becomes a vector."""
@overload
def flatten(x, start_dim: _int = 0, end_dim: _int = -1, name=None) -> _Tensor:
    """Merge the axes from `start_dim` to `end_dim` into one."""
def flip(input: _Tensor, *dims_: Sizes, dims: Axes | None = None) -> _Tensor: """Reverse the order along axes."""
def fliplr(input: _Tensor) -> _Tensor: """Reverse the second axis."""
def flipud(input: _Tensor) -> _Tensor: """Reverse the first axis."""
float: _dtype
float16: _dtype
float32: _dtype
float64: _dtype
def float_power(input: _Tensor | Number, exponent: _Tensor | Number) -> _Tensor: """Return input ** exponent in float64."""
def floor(input: _Tensor) -> _Tensor: """Return the largest integer that is at most x, for each element."""
def floor_divide(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return input / other, rounded down, for each element."""
def fmax(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return the larger of two elements; if one of them is NaN, return the other."""
def fmin(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return the smaller of two elements; if one of them is NaN, return the other."""
def fmod(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return the remainder of input / other, with the sign of input, for each element."""
def frac(input: _Tensor) -> _Tensor: """Return x - trunc(x) for each element."""
def from_dlpack(x: Any, *, device: Device | None = None, copy: _bool | None = None) -> _Tensor:
    """Return a tensor over the memory of another library's array, or of a DLPack capsule."""
def from_numpy(a: _np.ndarray) -> _Tensor:
    """Return a tensor that shares the memory and strides of `a`; writes to either change both."""
def full(size: _int | Sequence[_int], fill_value: Number | _Tensor, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor filled with a number."""
def full_like(input: _Tensor, fill_value: Number | _Tensor, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None, memory_format: _memory_format | None = None) -> _Tensor:
    """Return a tensor of the shape of another one, filled with a number."""
@overload
def gather(input: _Tensor, dim: _int, index: _Tensor, *, sparse_grad: _bool = False) -> _Tensor:
    """Return the elements at indices along an axis: y[i, j] = x[index[i, j], j] for dim 0, and so on."""
@overload
def gather(params, indices, axis: _int | None = None, batch_dims: _int = 0, name=None) -> _Tensor:
    """Return `params[indices]` along an axis."""
def gather_nd(params, indices, name=None) -> _Tensor: """Gather the parts of `params` that the rows of `indices` select."""
def ge(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return input >= other, as a bool for each element."""
def gelu(input: _Tensor) -> _Tensor:
    """Return x * Phi(x), where Phi is the normal distribution function, for each element."""
def gen_tensor_buffer(shape: Sequence[_int], shape_list: Sequence[Sequence[_int]], value_list: Sequence[_float], data_type: _dtype = ..., dynamic_out: _bool = False, name=None) -> _Tensor:
    """Return a TensorBuffer of constants."""
def ger(input: _Tensor, vec2: _Tensor) -> _Tensor: """Return the products of all pairs of elements of two vectors."""
def get_all_variables() -> dict[str, Variable]:
    """Return {name: live variable} with .shape, .dtype, and .numpy(), including optimizer state."""
def get_default_dtype() -> _dtype: """Return the dtype of tensors made from Python floats; float32 by default."""
def get_num_threads() -> _int: """Return the number of threads that kernels may use."""
def get_rng_state() -> _Tensor: """Return the state of the default generator, a uint8 tensor."""
def get_variable(name: str, shape=None, dtype=..., initializer=None, regularizer=None, trainable: _bool | None = None, model_name: str | None = None, random_seed: _int | None = None, parallel_distribution=None, distribute=None, reuse: _bool = True) -> _Tensor:
    """Return the variable `name`, which is created on first use."""
def global_function(type: str = 'predict', function_config=None) -> Callable:
    """Return a decorator that turns a function into a job: `@flow.global_function("train")`."""
def global_to_global(*args: Any, **kwargs: Any) -> _Tensor:
    """See help(flowedu.tensor.global_tensors.creation.global_to_global)."""
def glorot_normal_initializer(data_format: str = '') -> Initializer:
    """Return an initializer with a normal distribution of variance 1 / fan_avg (Glorot and Bengio 2010)."""
def glorot_uniform_initializer(data_format: str = '') -> Initializer:
    """Return an initializer with a uniform distribution of variance 1 / fan_avg (Glorot and Bengio 2010)."""
def grad(outputs: Sequence[_Tensor] | _Tensor, inputs: Sequence[_Tensor] | _Tensor, grad_outputs: Sequence[_Tensor] | _Tensor | None = None, retain_graph: _bool | None = None, create_graph: _bool = False, only_inputs: _bool = True, allow_unused: _bool | None = None, is_grads_batched: _bool = False, materialize_grads: _bool = False) -> tuple[_Tensor, ...]:
    """Return a tuple of the gradients of outputs with respect to inputs; `.grad` is not changed."""
def greater(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return input > other, as a bool for each element."""
def greater_equal(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return input >= other, as a bool for each element."""
def gt(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor: """Return input > other, as a bool for each element."""
half: _dtype
def hamming_window(window_length: _int, periodic: _bool = True, alpha: _float = 0.54, beta: _float = 0.46, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return alpha - beta cos(2 pi k / n) for k = 0, 1, ..., a vector (window_length,)."""
def hann_window(window_length: _int, periodic: _bool = True, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return 0.5 - 0.5 cos(2 pi k / n) for k = 0, 1, ..., a vector (window_length,)."""
def has_threads() -> _bool: """Return True if the kernels were compiled with OpenMP."""
def heaviside(input: _Tensor, values: _Tensor | Number) -> _Tensor:
    """Return 0 for negative elements, 1 for positive ones, and `values` for 0."""
def hierarchical_parallel_cast(input, parallel_hierarchy=None, parallel_distribution=None, grad_mode=None, grad_parallel_hierarchy=None, grad_parallel_distribution=None, name: str | None = None) -> _Tensor:
    """Convert a blob to a layout on a grid of the placement's devices."""
def histc(input: _Tensor, bins: _int = 100, min: _float = 0, max: _float = 0) -> _Tensor:
    """Return the number of elements in each of several bins of equal width."""
def hsplit(input: _Tensor, indices_or_sections: _int | Sequence[_int] | _Tensor) -> tuple[_Tensor, ...]:
    """Return views of pieces along axis 1, or along axis 0 of a vector."""
def hstack(tensors: Sequence) -> _Tensor: """Concatenate tensors along the second axis (vectors along the first)."""
def hypot(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return sqrt(input^2 + other^2), without overflow, for each element."""
def identity(x, name=None) -> _Tensor: """Return `x` as a blob with its own name."""
def identity_n(inputs: Sequence, name=None) -> tuple[_Tensor, ...]: """Return each input as a blob with its own name."""
def image_batch_align(images, shape: Sequence[_int], dtype: _dtype, alignment: _int, name=None) -> _Tensor:
    """Store images of several sizes in one dynamic tensor, with zeros to the right of and below each image."""
def image_decode(images_bytes_buffer, dtype: _dtype = ..., color_space: str = 'BGR', name=None) -> _Tensor:
    """Decode the bytes of PNG, JPEG, or BMP files."""
def image_flip(image, flip_code, name=None) -> _Tensor: """Flip images."""
def image_normalize(image, std: Sequence[_float], mean: Sequence[_float], name=None) -> _Tensor:
    """Compute (image - mean) / std per channel, for images of floats."""
def image_random_crop(input_blob, num_attempts: _int = 10, seed: _int | None = None, random_area: Sequence[_float] | None = None, random_aspect_ratio: Sequence[_float] | None = None, name=None) -> Any:
    """Return a random crop of each image."""
def image_resize(image, target_size: _int | Sequence[_int] | None = None, min_size: _int | None = None, max_size: _int | None = None, keep_aspect_ratio: _bool = False, resize_side: str = 'shorter', channels: _int = 3, dtype: _dtype | None = None, interpolation_type: str = 'auto', name: str | None = None, color_space: str | None = None, interp_type: str | None = None, resize_shorter: _int = 0, resize_x: _int = 0, resize_y: _int = 0) -> _Tensor:
    """Resize images."""
def image_target_resize(images, target_size: _int, min_size: _int | None = None, max_size: _int | None = None, resize_side: str = 'shorter', interpolation_type: str = 'auto', name: str | None = None) -> _Tensor:
    """Resize images with keep_aspect_ratio."""
def in_top_k(targets, predictions, k: _int, name=None) -> _Tensor:
    """Check whether the class of each target is among the `k` largest predictions."""
def index_add(input: _Tensor, dim: _int, index: _Tensor, source: _Tensor, *, alpha: Number = 1) -> _Tensor:
    """Return x with alpha * source added to the slices that the index selects."""
def index_copy(input: _Tensor, dim: _int, index: _Tensor, source: _Tensor) -> _Tensor:
    """Return a copy of x in which the slices of the source replace the slices that the index selects."""
def index_fill(input: _Tensor, dim: _int, index: _Tensor, value: _Tensor | Number) -> _Tensor:
    """Return a copy of x in which a number fills the slices that the index selects."""
def index_put(input: _Tensor, indices: Sequence[_Tensor], values: _Tensor | Number, accumulate: _bool = False) -> _Tensor:
    """Return a copy of x after x[indices] = values."""
def index_select(input: _Tensor, dim: _int, index: _Tensor) -> _Tensor:
    """Return the slices along an axis that a vector of indices selects."""
inf: _float
def initial_seed() -> _int: """Return the last seed of the default generator."""
def inner(input: _Tensor, other: _Tensor) -> _Tensor: """Return the sums of products along the last axes of both tensors."""
int: _dtype
int16: _dtype
int32: _dtype
int64: _dtype
int8: _dtype
def inverse(A: _Tensor) -> _Tensor: """Return the inverse of each square matrix."""
def is_floating_point(input: _Tensor) -> _bool: """Return True if the dtype is floating."""
def is_grad_enabled() -> _bool: """Return True if eager calls of this thread are recorded for backward."""
def is_inference_mode_enabled() -> _bool: ...
def is_nonzero(input: _Tensor) -> _bool: """Return True if the only element is not 0."""
def is_tensor(obj: object) -> _bool: """Return True for a Tensor."""
def isclose(input: _Tensor, other: _Tensor, *, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False) -> _Tensor:
    """Return True where |input - other| <= atol + rtol * |other|."""
def isfinite(input: _Tensor) -> _Tensor: """Return True where an element is neither NaN nor infinite."""
def isin(elements: _Tensor | Number, test_elements: _Tensor | Number, *, assume_unique: _bool = False, invert: _bool = False) -> _Tensor:
    """Return True for each element that is equal to one of the test elements."""
def isinf(input: _Tensor) -> _Tensor: """Return True where an element is infinity or -infinity."""
def isnan(input: _Tensor | Number) -> _Tensor: """Return True where an element is NaN."""
def isneginf(input: _Tensor) -> _Tensor: """Return True where an element is -infinity."""
def isposinf(input: _Tensor) -> _Tensor: """Return True where an element is infinity."""
def kaiming_initializer(shape: tuple[_int, ...], distribution: str = 'random_normal', mode: str = 'fan_in', nonlinearity: str | None = 'leaky_relu', negative_slope: _float = 0.0, data_format: str = 'NCHW') -> Initializer:
    """Return an initializer with mean 0 and standard deviation gain / sqrt(fan) (He et al. 2015)."""
def kaiser_window(window_length: _int, periodic: _bool = True, beta: _float = 12.0, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta) for k = 0, 1, ..., a vector (window_length,)."""
def kron(input: _Tensor, other: _Tensor) -> _Tensor: """Return the Kronecker product."""
def kthvalue(input: _Tensor, k: _int, dim: _int = -1, keepdim: _bool = False) -> _return_types.kthvalue:
    """Return (values, indices) of the k-th smallest element along an axis."""
def ldexp(input: _Tensor | Number, other: _Tensor) -> _Tensor: """Return input * 2^other."""
def le(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return input <= other, as a bool for each element."""
def lerp(input: _Tensor, end: _Tensor, weight: _Tensor | Number) -> _Tensor:
    """Return the linear interpolation input + weight * (end - input)."""
def less(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return input < other, as a bool for each element."""
def less_equal(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return input <= other, as a bool for each element."""
def lgamma(input: _Tensor) -> _Tensor: """Return log |gamma(x)|, for each element."""
def linspace(start: _float, end: _float, steps: _int, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a vector of evenly spaced values, including both ends."""
def load(path: str | Any | IO[bytes], global_src_rank: _int | None = None, map_location: Any = None, *, support_pytorch_format: _bool = True) -> Any:
    """Load the object saved at `path`."""
def load_graph(path, device=None) -> LoadedGraph: """Load a graph that flow.save(graph, path) wrote."""
def load_variables(value_dict: dict, ignore_mismatch: _bool = True) -> None:
    """Copy values into variables of the same name."""
def local_to_global(*args: Any, **kwargs: Any) -> _Tensor:
    """See help(flowedu.tensor.global_tensors.creation.local_to_global)."""
def log(input: _Tensor) -> _Tensor: """Return the natural logarithm of x, for each element."""
def log10(input: _Tensor) -> _Tensor: """Return the logarithm of x to base 10, for each element."""
def log1p(input: _Tensor) -> _Tensor: """Return log(1 + x), accurate near 0, for each element."""
def log2(input: _Tensor) -> _Tensor: """Return the logarithm of x to base 2, for each element."""
def log_sigmoid(input: _Tensor) -> _Tensor: """Return log(sigmoid(x)) for each element, without underflow."""
def log_softmax(input: _Tensor, dim: _int | None = None, dtype: _dtype | None = None) -> _Tensor:
    """Return the log_softmax along an axis."""
def logaddexp(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return log(exp(input) + exp(other)), without overflow."""
def logaddexp2(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return log2(2^input + 2^other), without overflow."""
def logcumsumexp(input: _Tensor, dim: _int) -> _Tensor: """Return log(cumsum(exp(x))) along an axis, without overflow."""
def logdet(input: _Tensor) -> _Tensor: """Return the logarithm of each determinant, or NaN for a negative determinant."""
def logical_and(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return True if both are not 0, as a bool for each element."""
def logical_not(input: _Tensor) -> _Tensor: """Return True where an element is 0."""
def logical_or(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return True if input or other is not 0, as a bool for each element."""
def logical_xor(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return True if exactly one operand is not 0, as a bool for each element."""
def logit(input: _Tensor, eps: _float | None = None) -> _Tensor: """Return log(x / (1 - x)) for each element."""
def logspace(start: _float, end: _float, steps: _int, base: _float = 10.0, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a vector of powers with evenly spaced exponents, from base^start to base^end."""
def logsumexp(input: _Tensor, dim: Axes, keepdim: _bool = False) -> _Tensor:
    """Return log(sum(exp(x))), without overflow."""
long: _dtype
def lt(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor: """Return input < other, as a bool for each element."""
def manual_seed(seed: _int) -> _Generator:
    """Seed the default generator, so that all later random numbers are reproducible, and return it."""
@overload
def masked_fill(input: _Tensor, mask: _Tensor, value: _Tensor | Number) -> _Tensor:
    """Return x with a number where the mask is True."""
@overload
def masked_fill(x, mask, value: _float, name=None) -> _Tensor:
    """Replace elements of `x` by a value where the mask is not 0."""
def masked_scatter(input: _Tensor, mask: _Tensor, source: _Tensor) -> _Tensor:
    """Return a copy of x in which the elements of the source, in order, replace those where the mask is True."""
def masked_select(input: _Tensor, mask: _Tensor) -> _Tensor: """Return the elements where the mask is True, as a vector."""
@overload
def matmul(input: _Tensor, other: _Tensor) -> _Tensor: """Return the matrix product; batch axes broadcast."""
@overload
def matmul(a, b, transpose_a: _bool = False, transpose_b: _bool = False, alpha: _float = 1.0, name=None) -> _Tensor:
    """Return alpha * op(a) @ op(b), where op transposes the last two axes if the flag is set."""
def matrix_exp(input: _Tensor) -> _Tensor: """Return 1 + A + A @ A / 2 + ... of each square matrix A."""
def matrix_power(input: _Tensor, n: _int) -> _Tensor:
    """Return the matrix power x @ x @ ... @ x; a negative exponent gives a power of the inverse."""
@overload
def max(input: _Tensor, dim: _Tensor | None = None, keepdim: _bool = False) -> _Tensor:
    """Return the maximum of all elements, along an axis, or of two tensors."""
@overload
def max(input: _Tensor, dim: _int, keepdim: _bool = False) -> _return_types.max:
    """Return the maximum of all elements, along an axis, or of two tensors."""
def maximum(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return the larger element, or NaN if one is NaN, for each element."""
def mean(input: _Tensor, dim: Axes | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> _Tensor:
    """Return the mean of the elements, or NaN for a tensor without elements."""
@overload
def median(input: _Tensor, dim: _Tensor | None = None, keepdim: _bool = False) -> _Tensor:
    """Return the median, or NaN if an element is NaN."""
@overload
def median(input: _Tensor, dim: _int, keepdim: _bool = False) -> _return_types.median:
    """Return the median, or NaN if an element is NaN."""
def memory_stats() -> dict: """Return the bytes in use by arrays (`live`) and the bytes held for reuse (`cached`)."""
def meshgrid(*tensors: _Tensor | Sequence[_Tensor], indexing: str = 'ij') -> tuple[_Tensor, ...]:
    """Return the coordinates of a grid."""
@overload
def min(input: _Tensor, dim: _Tensor | None = None, keepdim: _bool = False) -> _Tensor:
    """Return the minimum of all elements, along an axis, or of two tensors."""
@overload
def min(input: _Tensor, dim: _int, keepdim: _bool = False) -> _return_types.min:
    """Return the minimum of all elements, along an axis, or of two tensors."""
def minimum(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return the smaller element, or NaN if one is NaN, for each element."""
def mish(input: _Tensor) -> _Tensor: """Return x * tanh(softplus(x)), for each element."""
def mm(input: _Tensor, mat2: _Tensor) -> _Tensor: """Return the product of two matrices."""
def mode(input: _Tensor, dim: _int = -1, keepdim: _bool = False) -> _return_types.mode:
    """Return (values, indices) of the most frequent element along an axis."""
def moveaxis(input: _Tensor, source: Axes, destination: Axes) -> _Tensor:
    """Move axes to other positions; the other axes keep their order."""
def movedim(input: _Tensor, source: Axes, destination: Axes) -> _Tensor:
    """Move axes to other positions; the other axes keep their order."""
def msort(input: _Tensor) -> _Tensor: """Return the values sorted along the first axis."""
def mul(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor: """Return input * other, for each element."""
def multi_count_not_finite(x: Sequence, name=None) -> _Tensor:
    """Count the elements of several blobs that are infinite or NaN."""
def multinomial(input: _Tensor, num_samples: _int, replacement: _bool = False, *, generator: _Generator | None = None) -> _Tensor:
    """Draw int64 positions in each row, with probabilities proportional to the weights."""
def multiply(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor: """Return input * other, for each element."""
def mv(input: _Tensor, vec: _Tensor) -> _Tensor: """Return the product of a matrix and a vector."""
nan: _float
def nan_to_num(input: _Tensor, nan: _float = 0.0, posinf: _float | None = None, neginf: _float | None = None) -> _Tensor:
    """Replace NaN and infinities by numbers."""
def nanmean(input: _Tensor, dim: Axes | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> _Tensor:
    """Return the mean of the elements that are not NaN."""
def nansum(input: _Tensor, dim: Axes | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> _Tensor:
    """Return the sum of the elements that are not NaN."""
def narrow(input: _Tensor, dim: _int, start: _int, length: _int) -> _Tensor:
    """Return a view of `length` elements along an axis."""
def ne(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return input != other, as a bool for each element."""
def neg(input: _Tensor) -> _Tensor: """Return -x for each element."""
def negative(input: _Tensor) -> _Tensor: """Return -x for each element."""
def nms(boxes: _Tensor, scores: _Tensor, iou_threshold: _float) -> _Tensor:
    """Return the int64 indices of the boxes to keep, the best first (non-maximum suppression)."""
@overload
def nonzero(input: _Tensor, *, as_tuple: Literal[False] = False) -> _Tensor:
    """Return the positions of the elements that are not 0, as an int64 tensor (count, axes)."""
@overload
def nonzero(input: _Tensor, *, as_tuple: Literal[True]) -> tuple[_Tensor, ...]:
    """Return the positions of the elements that are not 0, as an int64 tensor (count, axes)."""
@overload
def nonzero(a, name=None) -> _Tensor: """Return the indices of the elements that are not 0, one column per element."""
def norm(input: _Tensor, p: Number | str = 'fro', dim: Axes | None = None, keepdim: _bool = False, dtype: _dtype | None = None) -> _Tensor:
    """Return the p-norm of the elements."""
def normal(mean: _Tensor | _float, std: _Tensor | _float = 1.0, size: _int | Sequence[_int] | None = None, *, generator: _Generator | None = None, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return normal random numbers, of shape `size` or one for each element of the tensors mean and std."""
def not_equal(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return input != other, as a bool for each element."""
def numel(input: _Tensor) -> _int: """Return the number of elements."""
def object_bbox_flip(bbox, image_size, flip_code, name=None) -> Any:
    """Flip boxes with their images (flow.image.flip): x becomes width - 1 - x; left and right are exchanged."""
def object_bbox_scale(bbox, scale, name=None) -> _Tensor: """Scale boxes with their images."""
def object_segmentation_polygon_flip(poly, image_size, flip_code, name=None) -> _Tensor:
    """Flip outlines with their images: x becomes width - x."""
def object_segmentation_polygon_scale(poly, scale, name=None) -> _Tensor: """Scale outlines with their images."""
def object_segmentation_polygon_to_mask(poly, poly_index, image_size, name=None) -> _Tensor:
    """Convert outlines to masks."""
def one_hot(indices, depth: _int, on_value=1, off_value=0, axis: _int = -1, dtype=None, name=None) -> _Tensor:
    """Return one-hot vectors."""
@overload
def ones(*size: Sizes, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor of ones."""
@overload
def ones(shape: Sequence[_int], dtype=..., name: str | None = None) -> _Tensor: """Return a blob filled with ones."""
def ones_initializer(dtype: _dtype = ...) -> Initializer: """Return an initializer that fills a variable with ones."""
@overload
def ones_like(input: _Tensor, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None, memory_format: _memory_format | None = None) -> _Tensor:
    """Return a tensor of ones with the shape of another one."""
@overload
def ones_like(like, dtype=None, name: str | None = None) -> _Tensor: """Return ones in the shape of `like`."""
def outer(input: _Tensor, vec2: _Tensor) -> _Tensor: """Return the products of all pairs of elements of two vectors."""
def pack(*args, **kwargs) -> _Tensor: """OneFlow's pack joins the results of micro-batches."""
@overload
def pad(input: _Tensor, pad: Sequence[_int], mode: str = 'constant', value: _float | None = None) -> _Tensor:
    """Pad a tensor on the sides of its last axes."""
@overload
def pad(x, paddings: Sequence[Sequence[_int]], constant_value: _float = 0, name=None) -> _Tensor:
    """Pad `x` with a constant."""
def pad_grad(x, paddings: Sequence[Sequence[_int]], constant_value: _float = 0, name=None) -> _Tensor:
    """Return the gradient of the input of flow.pad: `x` without the border."""
def parallel_cast(input, name: str | None = None, distribute: Distribute | None = None, gradient_distribute: Distribute | None = None) -> _Tensor:
    """Convert a blob to a layout on the devices of the placement."""
def permute(input: _Tensor, *dims_: Sizes, dims: Sequence[_int] | None = None) -> _Tensor:
    """Return a view with the axes in another order."""
pi: _float
def pinverse(input: _Tensor, rcond: _float = 1e-15) -> _Tensor: """Return flow.linalg.pinv(input, rcond)."""
def poisson(input: _Tensor, generator: _Generator | None = None) -> _Tensor:
    """Return Poisson random numbers; not supported in graphs."""
def positive(input: _Tensor) -> _Tensor: """Return the tensor itself."""
def pow(input: _Tensor | Number, exponent: _Tensor | Number) -> _Tensor: """Return input ** exponent."""
preserve_format: _memory_format
def prod(input: _Tensor, dim: Axes | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> _Tensor:
    """Return the prod of the elements."""
def promote_types(type1: _dtype, type2: _dtype) -> _dtype:
    """Return the dtype to which two dtypes are promoted, such as float16 for int32 and float16."""
def qr(input: _Tensor, some: _bool = True) -> _return_types.qr: """Return flow.linalg.qr(input), an older form."""
def quantile(input: _Tensor, q: _Tensor | _float | Sequence[_float], dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear') -> _Tensor:
    """Return quantiles, or NaN if an element is NaN."""
def rad2deg(input: _Tensor) -> _Tensor: """Convert radians to degrees."""
def rand(*size: Sizes, generator: _Generator | None = None, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return uniform random numbers in [0, 1)."""
def rand_like(input: _Tensor, *, generator: _Generator | None = None, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None, memory_format: _memory_format | None = None) -> _Tensor:
    """Return uniform random numbers in [0, 1) with the shape of another tensor."""
def randint(low: _int, high: _int | Sequence[_int] | None = None, size: _int | Sequence[_int] | None = None, *, generator: _Generator | None = None, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return random integers in [low, high): randint(10, (2, 3)) or randint(1, 7, (2, 3))."""
def randint_like(input: _Tensor, low: _int, high: _int | None = None, *, generator: _Generator | None = None, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None, memory_format: _memory_format | None = None) -> _Tensor:
    """Return random integers in [low, high) with the shape of another tensor."""
def randn(*size: Sizes, generator: _Generator | None = None, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return normal random numbers with mean 0 and standard deviation 1."""
def randn_like(input: _Tensor, *, generator: _Generator | None = None, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None, memory_format: _memory_format | None = None) -> _Tensor:
    """Return normal random numbers with mean 0 and standard deviation 1 and the shape of another tensor."""
def random_normal_initializer(mean: _float = 0.0, stddev: _float = 1.0, seed: None = None, dtype: None = None) -> Initializer:
    """Return an initializer with a normal distribution."""
def random_uniform_initializer(minval: _float = 0, maxval: _float = 1, dtype: _dtype = ...) -> Initializer:
    """Return an initializer with a uniform distribution."""
def randperm(n: _int, *, generator: _Generator | None = None, dtype: _dtype = ..., device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return the integers 0 to n - 1 in random order."""
def range(start: _int, limit: _int | None = None, delta: _int = 1, dtype=None, name: str | None = 'range') -> _Tensor:
    """Return start, start + delta, ... below `limit`."""
def ravel(input: _Tensor) -> _Tensor: """Return all elements as a vector, a view if the strides allow it."""
def reciprocal(input: _Tensor) -> _Tensor: """Return 1 / x, for each element."""
record: _dtype
def reflection_pad2d(x, padding: _int | Sequence[_int], name=None) -> _Tensor:
    """Pad images with their reflection, without repeating the edge."""
def relu(input: _Tensor) -> _Tensor: """Return max(x, 0), for each element."""
def remainder(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return the remainder of input / other, with the sign of other, for each element."""
def renorm(input: _Tensor, p: _float, dim: _int, maxnorm: _float) -> _Tensor:
    """Scale down the slices along an axis, so that the p-norm of each is at most maxnorm."""
def repeat(*args, **kwargs) -> _Tensor: """OneFlow's repeat gives a blob to several micro-batches."""
def repeat_interleave(input: _Tensor, repeats: _Tensor | _int | None = None, dim: _int | None = None, *, output_size: _int | None = None) -> _Tensor:
    """Repeat every element, or every slice along an axis, several times in a row."""
def replication_pad2d(x, padding: _int | Sequence[_int], name=None) -> _Tensor: """Pad images by repeating their edge."""
def report() -> str: """Return the passes, the memory planner, and the boxing primitives that are registered, as text."""
@overload
def reshape(input: _Tensor, *sizes_: Sizes, shape: Sequence[_int] | None = None) -> _Tensor:
    """Return the elements in another shape, as a view if the strides allow it, and else as a copy."""
@overload
def reshape(x, shape: Sequence[_int], name=None) -> _Tensor: """Return the elements of `x` in another shape."""
def reshape_like(x, like, name=None) -> _Tensor: """Return the elements of `x` in the shape of `like`."""
def result_type(*operands: Any) -> _dtype: """Return the dtype of the result of an op on these operands."""
def reverse(input, axis: _int | Sequence[_int], name=None) -> _Tensor: """Reverse the order of elements along axes."""
def roi_align(x: _Tensor, rois: _Tensor, spatial_scale: _float, pooled_h: _int, pooled_w: _int, sampling_ratio: _int, aligned: _bool) -> _Tensor:
    """Return the features (K, C, pooled_h, pooled_w) in each of K boxes; see flow.vision.ops.roi_align."""
def roll(input: _Tensor, shifts: Axes, dims: Axes | None = None) -> _Tensor:
    """Shift elements along axes; elements shifted past the end reappear at the start."""
def rot90(input: _Tensor, k: _int = 1, dims: Sequence[_int] = ...) -> _Tensor:
    """Rotate by multiples of 90 degrees in the plane of two axes."""
def round(input: _Tensor, decimals: _int = 0) -> _Tensor:
    """Round each element to a number of decimals; halves go to the even digit."""
def row_stack(tensors: Sequence) -> _Tensor: """Concatenate tensors along the first axis; vectors become rows."""
def rsqrt(input: _Tensor) -> _Tensor: """Return 1 / sqrt(x), for each element."""
def rsub(input: _Tensor | Number, other: _Tensor | Number, *, alpha: Number = 1) -> _Tensor:
    """Return other - alpha * input."""
def same_padding(x, padding: str, data_format: str, kernel_size: Sequence[_int], strides: Sequence[_int], dilation_rate: Sequence[_int], name=None) -> _Tensor:
    """Pad with the zeros that a convolution with padding "SAME_UPPER" or "SAME_LOWER" uses."""
def save(obj: Any, path: str | Any | IO[bytes], global_dst_rank: _int | None = None) -> None:
    """Write a state into the directory `path`, or into a file that is open for writing bytes."""
def scatter(input: _Tensor, dim: _int, index: _Tensor, src: _Tensor | Number, *, reduce: str | None = None) -> _Tensor:
    """Return x with x[index[i, j], j] = src[i, j] for dim 0, and so on."""
def scatter_add(input: _Tensor, dim: _int, index: _Tensor, src: _Tensor) -> _Tensor:
    """Return x with src[i, j] added to x[index[i, j], j] for dim 0, and so on; repeated indices add up."""
def scatter_nd(indices, updates, shape: Sequence[_int], name=None) -> _Tensor:
    """Add parts of `updates` into zeros at the positions that the rows of `indices` select."""
def scatter_reduce(input: _Tensor, dim: _int, index: _Tensor, src: _Tensor, reduce: str, *, include_self: _bool = True) -> _Tensor:
    """Return x with all src elements of the same position combined by `reduce`; not supported in graphs."""
def searchsorted(sorted_sequence: _Tensor, input: _Tensor | Number, *, out_int32: _bool = False, right: _bool = False, side: str | None = None, sorter: _Tensor | None = None) -> _Tensor:
    """Return the position at which each value would be inserted into a sorted sequence."""
def seed() -> _int: """Set an unpredictable seed of the default generator and return it."""
def select(input: _Tensor, dim: _int, index: _int) -> _Tensor:
    """Return a view of one position along an axis, without that axis."""
def select_scatter(input: _Tensor, src: _Tensor, dim: _int, index: _int) -> _Tensor:
    """Return a copy of x in which src replaces the slice at one position along an axis."""
def selu(input: _Tensor) -> _Tensor:
    """Return the scaled exponential linear unit of each element; see nn.functional.selu."""
def set_cache(enabled: _bool) -> None: """Enable or disable the cache of freed blocks."""
def set_default_dtype(d: _dtype) -> None: """Set the dtype of tensors made from Python floats."""
def set_num_threads(n) -> None: """Set the number of threads of kernels."""
def set_printoptions(precision: _int | None = None, threshold: _float | None = None, edgeitems: _int | None = None, linewidth: _int | None = None, profile: str | None = None, sci_mode: _bool | None = None) -> None:
    """Set the form in which tensors are printed; None keeps an option, except for sci_mode."""
def set_rng_state(new_state: _Tensor) -> None: """Restore a state of the default generator."""
def sgn(input: _Tensor) -> _Tensor: """Return -1, 0, or 1, the sign of x, for each element."""
short: _dtype
def show(thing: Any, path: str | Any | None = None) -> Any | None:
    """Show an object as a diagram or a table in a notebook, and as text elsewhere."""
def sigmoid(input: _Tensor) -> _Tensor: """Return 1 / (1 + exp(-x)), for each element."""
def sign(input: _Tensor) -> _Tensor: """Return -1, 0, or 1, the sign of x, for each element."""
def signbit(input: _Tensor) -> _Tensor: """Return True for negative elements, including -0.0."""
def silu(input: _Tensor) -> _Tensor: """Return x * sigmoid(x) for each element."""
def sin(input: _Tensor) -> _Tensor: """Return the sine of x, in radians, for each element."""
def sinc(input: _Tensor) -> _Tensor: """Return sin(pi x) / (pi x) for each element, and 1 at 0."""
def sinh(input: _Tensor) -> _Tensor: """Return the hyperbolic sine of x, for each element."""
def slice(x, begin: Sequence[_int], size: Sequence[_int], name=None) -> _Tensor:
    """Return `x[begin : begin + size]` along every axis."""
def slice_scatter(input: _Tensor, src: _Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1) -> _Tensor:
    """Return a copy of x in which src replaces x[start:end:step] along an axis."""
def slice_update(x, update, slice_tup_list: Sequence[Sequence[_int | None]], name=None) -> _Tensor:
    """Return `x` with `x[start:stop:step, ...]` replaced by `update`."""
def slice_v2(x, slice_tup_list: Sequence[Sequence[_int | None]], name=None) -> _Tensor:
    """Return `x[start:stop:step, ...]` with the rules of Python slices."""
def slogdet(input: _Tensor) -> _return_types.slogdet: """Return flow.linalg.slogdet(input)."""
def smooth_l1_loss(prediction, label, beta: _float = 1.0, name=None) -> _Tensor:
    """Compute x^2 / (2 beta) where x = |prediction - label| is below beta, and x - beta / 2 elsewhere."""
def softmax(input: _Tensor, dim: _int | None = None, dtype: _dtype | None = None) -> _Tensor:
    """Return the softmax along an axis."""
def softplus(input: _Tensor, beta: _float = 1.0, threshold: _float = 20.0) -> _Tensor:
    """Return log(1 + exp(beta * x)) / beta for each element."""
def softsign(input: _Tensor) -> _Tensor: """Return x / (1 + |x|), for each element."""
@overload
def sort(input: _Tensor, dim: _int = -1, descending: _bool = False, stable: _bool = True) -> _return_types.sort:
    """Sort along an axis and return (values, indices)."""
@overload
def sort(input, axis: _int = -1, direction: str = 'ASCENDING', name=None) -> _Tensor: """Sort `input` along an axis."""
def split(input: _Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[_Tensor, ...]:
    """Return views of pieces along an axis."""
def sqrt(input: _Tensor) -> _Tensor: """Return the square root of x, for each element."""
def square(input: _Tensor) -> _Tensor: """Return x * x for each element; bools give int64."""
@overload
def squeeze(input: _Tensor, dim: Axes | None = None) -> _Tensor: """Remove axes of size 1."""
@overload
def squeeze(x, axis: Sequence[_int] | None = None, name: str | None = None) -> _Tensor: """Remove axes of size 1."""
@overload
def stack(tensors: Sequence, dim: _int = 0) -> _Tensor: """Join tensors along a new axis."""
@overload
def stack(inputs: Sequence, axis: _int = 0, name=None) -> _Tensor: """Concatenate blobs along a new axis."""
def std(input: _Tensor, dim: Axes | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None) -> _Tensor:
    """Return the standard deviation, the square root of var."""
def std_mean(input: _Tensor, dim: Axes | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None) -> tuple[_Tensor, _Tensor]:
    """Return (standard deviation, mean); see std."""
def sub(input: _Tensor | Number, other: _Tensor | Number, *, alpha: Number = 1) -> _Tensor:
    """Return input - alpha * other."""
def subtract(input: _Tensor | Number, other: _Tensor | Number, *, alpha: Number = 1) -> _Tensor:
    """Return input - alpha * other."""
def sum(input: _Tensor, dim: Axes | None = None, keepdim: _bool = False, *, dtype: _dtype | None = None) -> _Tensor:
    """Return the sum of the elements."""
def svd(input: _Tensor, some: _bool = True, compute_uv: _bool = True) -> _return_types.svd:
    """Return (U, S, V) with input = U @ diag(S) @ V.mT; an older form of linalg.svd."""
@overload
def swapaxes(input: _Tensor, dim0: _int, dim1: _int) -> _Tensor: """Return a view with two axes exchanged."""
@overload
def swapaxes(x, axis1: _int, axis2: _int, name=None) -> _Tensor: """Exchange two axes."""
def swapdims(input: _Tensor, dim0: _int, dim1: _int) -> _Tensor: """Return a view with two axes exchanged."""
def sync_default_session() -> None: """Wait for launched jobs and callbacks."""
def sync_dynamic_resize(inputs, size, axis: _int = 0, eager: _bool = False, name=None) -> _Tensor:
    """Return the first `size` elements along an axis."""
def t(input: _Tensor) -> _Tensor: """Return the transpose of a matrix; vectors are returned unchanged."""
def take(input: _Tensor, index: _Tensor) -> _Tensor: """Return the elements at positions in the flattened tensor."""
def take_along_dim(input: _Tensor, indices: _Tensor, dim: _int | None = None) -> _Tensor:
    """Return the elements that an index tensor selects along an axis."""
def tan(input: _Tensor) -> _Tensor: """Return the tangent of x, in radians, for each element."""
def tanh(input: _Tensor) -> _Tensor: """Return the hyperbolic tangent of x, for each element."""
def tensor(data: Any, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None, pin_memory: _bool = False) -> _Tensor:
    """Return a tensor with a copy of the data."""
tensor_buffer: _dtype
def tensor_buffer_to_list_of_tensors(x, out_shape: Sequence[_int], out_dtype: _dtype, dynamic_out: _bool = False, name=None) -> tuple[_Tensor, ...]:
    """Return each buffer of a TensorBuffer as a blob."""
def tensor_buffer_to_tensor(x, dtype: _dtype, instance_shape: Sequence[_int], name=None) -> _Tensor:
    """Stack the buffers of a TensorBuffer into one tensor."""
def tensor_buffer_to_tensor_list(input, shape: Sequence[_int], dtype: _dtype, name=None) -> tuple[_Tensor, ...]:
    """Convert a TensorBuffer to a tensor list."""
def tensor_list_split(input_tensor_list, name=None) -> tuple[_Tensor, ...]: """Split a tensor list into dynamic blobs."""
def tensor_list_to_tensor_buffer(input, name=None) -> _Tensor: """Convert a tensor list to a TensorBuffer."""
def tensor_scatter_nd_add(params, indices, updates, name=None) -> _Tensor:
    """Add `updates` to the parts of `params` that the rows of `indices` select."""
def tensor_scatter_nd_update(params, indices, updates, name=None) -> _Tensor:
    """Replace the parts of `params` that the rows of `indices` select."""
def tensor_split(input: _Tensor, indices_or_sections: _int | Sequence[_int] | _Tensor, dim: _int = 0) -> tuple[_Tensor, ...]:
    """Return pieces along an axis."""
def tensor_to_tensor_buffer(x, instance_dims: _int, name=None) -> _Tensor:
    """Pack the last axes of a tensor into a TensorBuffer."""
def tensordot(a: _Tensor, b: _Tensor, dims: _int | Sequence[Axes] | _Tensor = 2) -> _Tensor:
    """Return products summed over several axes."""
def tile(input: _Tensor, *dims_: Sizes, dims: Sequence[_int] | None = None) -> _Tensor:
    """Repeat the tensor along its axes."""
def to(self: _Tensor, *args: Any, dtype: _dtype | None = None, device: Device | None = None, other: _Tensor | None = None, non_blocking: _bool = False, copy: _bool = False, memory_format: _memory_format | None = None) -> _Tensor:
    """Return this tensor with another dtype or on another device, or the tensor itself if nothing changes."""
def to_global(*args: Any, **kwargs: Any) -> _Tensor: """See help(flowedu.core.sbp.tensor.shards.to_global)."""
def to_local(*args: Any, **kwargs: Any) -> _Tensor: """See help(flowedu.core.sbp.tensor.shards.to_local)."""
def topk(input: _Tensor, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> _return_types.topk:
    """Return (values, indices) of the k largest elements along an axis."""
def trace(input: _Tensor) -> _Tensor: """Return the sum of the diagonal of a matrix."""
@overload
def transpose(input: _Tensor, dim0: _int, dim1: _int) -> _Tensor: """Return a view with two axes exchanged."""
@overload
def transpose(a, perm: Sequence[_int] | None = None, conjugate: _bool = False, batch_axis_non_change: _bool = False, name=None) -> _Tensor:
    """Permute the axes of `a`."""
def trapezoid(y: _Tensor, x: _Tensor | None = None, *, dx: _float = 1.0, dim: _int = -1) -> _Tensor:
    """Return the area under y along an axis by the trapezoidal rule."""
def triangular_solve(input: _Tensor, A: _Tensor, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False) -> _return_types.triangular_solve:
    """Return (X, A) with A @ X = input for a triangular matrix A; an older form of solve_triangular."""
@overload
def tril(input: _Tensor, diagonal: _int = 0) -> _Tensor:
    """Return the lower triangle of each matrix, with zeros above it."""
@overload
def tril(x, diagonal: _int = 0, fill_value: _float = 0, name=None) -> _Tensor:
    """Return the lower triangle of each matrix."""
def tril_indices(row: _int, col: _int, offset: _int = 0, *, dtype: _dtype = ..., device: Device | None = None, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return the row and column indices of the n elements of a lower triangle, as a tensor (2, n)."""
@overload
def triu(input: _Tensor, diagonal: _int = 0) -> _Tensor:
    """Return the upper triangle of each matrix, with zeros below it."""
@overload
def triu(x, diagonal: _int = 0, fill_value: _float = 0, name=None) -> _Tensor:
    """Return the upper triangle of each matrix."""
def triu_indices(row: _int, col: _int, offset: _int = 0, *, dtype: _dtype = ..., device: Device | None = None, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return the row and column indices of the n elements of an upper triangle, as a tensor (2, n)."""
def true_divide(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return input / other, as a float, for each element."""
def trunc(input: _Tensor) -> _Tensor: """Return x without its fraction, for each element."""
def truncated_normal(stddev: _float = 1.0) -> Initializer: """Return truncated_normal_initializer(0.0, stddev)."""
def truncated_normal_initializer(mean: _float = 0.0, stddev: _float = 1.0) -> Initializer:
    """Return an initializer with a normal distribution without values 2 stddev or more from the mean."""
uint8: _dtype
def unbind(input: _Tensor, dim: _int = 0) -> tuple[_Tensor, ...]: """Return one view per position along an axis."""
def unflatten(input: _Tensor, dim: _int, sizes: Sequence[_int]) -> _Tensor: """Split one axis into several."""
def unfold(input: _Tensor, dimension: _int, size: _int, step: _int) -> _Tensor:
    """Return a view of sliding windows along an axis, with the elements of each window along a new last axis."""
def unique(input: _Tensor, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
    """Return the distinct elements in order, and optionally their inverse indices and counts."""
def unique_consecutive(input: _Tensor, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None) -> Any:
    """Return the elements, except for elements that equal their predecessor."""
def unpack(*args, **kwargs) -> _Tensor: """OneFlow's unpack cuts a batch into micro-batches."""
def unsorted_batch_segment_sum(data, segment_ids, num_segments: _int, name=None) -> _Tensor:
    """Compute unsorted_segment_sum for each element of a batch."""
def unsorted_segment_sum(data, segment_ids, num_segments: _int, axis: _int = 0, name=None) -> _Tensor:
    """Sum parts of `data` by segment: part i along `axis` is added to segment `segment_ids[i]`."""
def unsorted_segment_sum_like(data, segment_ids, like, axis: _int = 0, name=None) -> _Tensor:
    """Compute unsorted_segment_sum with as many segments as `like` has elements along `axis`."""
def unsqueeze(input: _Tensor, dim: _int) -> _Tensor: """Insert an axis of size 1."""
def user_op_builder(op_name: str) -> UserOpBuilder: """Return a builder for one op of a job."""
def user_op_module_builder(op_type_name: str) -> UserOpModuleBuilder: """Return a builder for several ops of one type."""
def vander(x: _Tensor, N: _int | None = None, increasing: _bool = False) -> _Tensor:
    """Return the matrix with columns x^(N-1), ..., x, 1."""
def var(input: _Tensor, dim: Axes | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None) -> _Tensor:
    """Return the variance: the sum of squared deviations divided by n - correction."""
def var_mean(input: _Tensor, dim: Axes | None = None, unbiased: _bool | None = None, keepdim: _bool = False, *, correction: _float | None = None) -> tuple[_Tensor, _Tensor]:
    """Return (variance, mean); see var."""
def variance_scaling_initializer(scale: _float = 1.0, mode: str = 'fan_in', distribution: str = 'truncated_normal', data_format: str = '') -> Initializer:
    """Return an initializer with mean 0 and variance scale / fan."""
def vdot(input: _Tensor, tensor: _Tensor) -> _Tensor: """Return the inner product of two vectors."""
def view(input: _Tensor, *shape: Any) -> _Tensor: """Return a view in another shape."""
def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = 'error', *, chunk_size: _int | None = None) -> Callable:
    """Return a function that applies `func` to each sample of a batch at once."""
def vsplit(input: _Tensor, indices_or_sections: _int | Sequence[_int] | _Tensor) -> tuple[_Tensor, ...]:
    """Return views of pieces along axis 0."""
def vstack(tensors: Sequence) -> _Tensor: """Concatenate tensors along the first axis; vectors become rows."""
def watch(blob_watched, handler_or_prompt: Callable | str | None = None) -> None:
    """Call a handler with the value of a blob in each run."""
def watch_diff(blob_watched, handler_or_prompt: Callable | str | None = None) -> None:
    """Call a handler with the gradient of a blob in each run."""
@overload
def where(condition: _Tensor | _bool, input: None = None, other: None = None) -> tuple[_Tensor, ...]:
    """Return `input` where the condition is True, and `other` elsewhere."""
@overload
def where(condition: _Tensor | _bool, input: Any, other: Any) -> _Tensor:
    """Return `input` where the condition is True, and `other` elsewhere."""
@overload
def where(condition, x=None, y=None, name=None) -> _Tensor: """Choose elements from `x` and `y` by a condition."""
def xavier_normal_initializer(data_format: str = '') -> Initializer:
    """Return an initializer with a normal distribution of variance 1 / fan_avg (Glorot and Bengio 2010)."""
def xavier_uniform_initializer(data_format: str = '') -> Initializer:
    """Return an initializer with a uniform distribution of variance 1 / fan_avg (Glorot and Bengio 2010)."""
def xlogy(input: _Tensor | Number, other: _Tensor | Number) -> _Tensor:
    """Return input * log(other), and 0 where input is 0, for each element."""
def zero_(input: _Tensor) -> _Tensor: """Fill the tensor with zeros."""
def zero_pad2d(x, padding: _int | Sequence[_int], name=None) -> _Tensor: """Pad images with zeros."""
@overload
def zeros(*size: Sizes, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None) -> _Tensor:
    """Return a tensor of zeros."""
@overload
def zeros(shape: Sequence[_int], dtype=..., name: str | None = None) -> _Tensor: """Return a blob filled with zeros."""
def zeros_(input: _Tensor) -> _Tensor: """Fill the tensor with zeros."""
def zeros_initializer(dtype: _dtype = ...) -> Initializer: """Return an initializer that fills a variable with zeros."""
@overload
def zeros_like(input: _Tensor, *, dtype: _dtype | None = None, device: Device | None = None, requires_grad: _bool = False, placement: Placement | None = None, sbp: Sbp | None = None, memory_format: _memory_format | None = None) -> _Tensor:
    """Return a tensor of zeros with the shape of another one."""
@overload
def zeros_like(like, dtype=None, name: str | None = None) -> _Tensor: """Return zeros in the shape of `like`."""
