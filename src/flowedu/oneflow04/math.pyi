"""Written by `make stubs`: do not edit."""
from collections.abc import Callable, Sequence
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import Op as Op
from flowedu.core.values import dtype as dt
from flowedu.core.values.dtype import dtype
from flowedu.errors import (
    ArgumentError as ArgumentError, CheckError as CheckError, DTypeError as DTypeError,
    UnsupportedError as UnsupportedError)
from typing import Any

DIVIDING: set
REGISTRY: dict
def abs(x, name=None) -> Tensor: """Compute abs elementwise."""
def acos(x, name=None) -> Tensor: """Compute acos elementwise."""
def acosh(x, name=None) -> Tensor: """Compute acosh elementwise."""
def add(x, y, name=None) -> Tensor: """Compute add elementwise, with broadcasting."""
def add_n(inputs: Sequence, name=None) -> Tensor: """Return the sum of blobs."""
def argmax(x, axis: int = -1, name=None) -> Tensor: """Return the index of the largest element along an axis, as int32."""
def asin(x, name=None) -> Tensor: """Compute asin elementwise."""
def asinh(x, name=None) -> Tensor: """Compute asinh elementwise."""
def atan(x, name=None) -> Tensor: """Compute atan elementwise."""
def atan2(x, y, name=None) -> Tensor: """Compute atan2 elementwise, with broadcasting."""
def atanh(x, name=None) -> Tensor: """Compute atanh elementwise."""
def broadcast_to_compatible_with(x, compatible: Sequence, name=None) -> Tensor:
    """Broadcast `x` to the shape that `x` and all blobs of `compatible` broadcast to."""
def ceil(x, name=None) -> Tensor: """Compute ceil elementwise."""
def check_number(what: str, value: float, dtype: dtype) -> None:
    """Raise a DTypeError if an integer dtype cannot hold this number (1.5, or 300 for int8)."""
def clip_by_value(values, min_value=None, max_value=None, name=None) -> Tensor:
    """Clip elements to [min_value, max_value]."""
def cos(x, name=None) -> Tensor: """Compute cos elementwise."""
def cosh(x, name=None) -> Tensor: """Compute cosh elementwise."""
def divide(x, y, name=None) -> Tensor: """Compute x / y elementwise, with broadcasting."""
def equal(x, y, name=None) -> bool: """Compute equal elementwise, with broadcasting."""
def erf(x, name=None) -> Tensor: """Compute erf elementwise."""
def erfc(x, name=None) -> Tensor: """Compute erfc elementwise."""
def exp(x, name=None) -> Tensor: """Compute exp elementwise."""
def expm1(x, name=None) -> Tensor: """Compute expm1 elementwise."""
def floor(x, name=None) -> Tensor: """Compute floor elementwise."""
def floordiv(x, y, name=None) -> Tensor: """Compute floordiv elementwise, with broadcasting."""
def front(prefix: str, blob_name: str = 'out_0', arrays: bool = False) -> Callable:
    """Return a decorator that lets a function run in jobs and outside, with an argument `name`."""
def fused_scale_tril(x, diagonal: int = 0, fill_value: float = 0, scale: float = 1, name=None) -> Tensor:
    """Return scale * x in the lower triangle of each matrix, and a constant above the diagonal."""
def fused_scale_tril_softmax_dropout(x, diagonal: int = 0, fill_value: float = 0, scale: float = 1, rate: float = 0.0, noise_shape=None, seed: int | None = None, name: str | None = None) -> Tensor:
    """Return dropout(softmax(fused_scale_tril(x))), the weights of causal attention."""
def gelu(x, name=None) -> Tensor: """Compute gelu elementwise."""
def gelu_grad(x, dy, name=None) -> Tensor: """Return the gradient of gelu."""
def greater(x, y, name=None) -> Tensor: """Compute greater elementwise, with broadcasting."""
def greater_equal(x, y, name=None) -> Tensor: """Compute greater_equal elementwise, with broadcasting."""
def in_top_k(targets, predictions, k: int, name=None) -> Tensor:
    """Check whether the class of each target is among the `k` largest predictions."""
inf: float
def l2_normalize(x, axis: int, epsilon: float = 1e-12, name=None) -> Tensor:
    """Return x / sqrt(max(sum(x^2, axis), epsilon))."""
def less(x, y, name=None) -> Tensor: """Compute less elementwise, with broadcasting."""
def less_equal(x, y, name=None) -> Tensor: """Compute less_equal elementwise, with broadcasting."""
def lgamma(x, name=None) -> Tensor: """Compute lgamma elementwise."""
def log(x, name=None) -> Tensor: """Compute log elementwise."""
def log1p(x, name=None) -> Tensor: """Compute log1p elementwise."""
def log_sigmoid(x, name=None) -> Tensor: """Compute log_sigmoid elementwise."""
def logical_and(x, y, name=None) -> Tensor: """Compute logical_and elementwise, with broadcasting."""
def matmul(a, b, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, name=None) -> Tensor:
    """Return alpha * op(a) @ op(b), where op transposes the last two axes if the flag is set."""
def maximum(x, y, name=None) -> Tensor: """Compute maximum elementwise, with broadcasting."""
def mean_of(x, axes, keepdims) -> Tensor: """Return the mean over axes; NaN if there are no elements."""
def minimum(x, y, name=None) -> Tensor: """Compute minimum elementwise, with broadcasting."""
def mod(x, y, name=None) -> Tensor: """Compute the remainder of x / y elementwise, with the sign of the divisor."""
def multiply(x, y, name=None) -> Tensor: """Compute multiply elementwise, with broadcasting."""
nan: float
def negative(x, name=None) -> Tensor: """Compute negative elementwise."""
def nonzero(name: str, divisor: Any) -> Tensor: """Return an integer divisor, with a check that no element is 0."""
def normal_axis(axis: int, rank: int, what: str) -> int:
    """Return `axis` counted from the front, or raise ShapeError if it is not in [-rank, rank)."""
def not_equal(x, y, name=None) -> Tensor: """Compute not_equal elementwise, with broadcasting."""
def polyval(coeffs: Sequence[float], x, name=None) -> Tensor:
    """Evaluate a polynomial elementwise: coeffs[0] * x^(n-1) + ... + coeffs[n-1]."""
def pow(x, y, name=None) -> Tensor: """Compute pow elementwise, with broadcasting."""
def reciprocal(x, name=None) -> Tensor: """Compute reciprocal elementwise."""
def reciprocal_no_nan(x, name=None) -> Tensor: """Compute reciprocal_no_nan elementwise."""
def reduce_all(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_all over axes."""
def reduce_any(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_any over axes."""
def reduce_euclidean_norm(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_euclidean_norm over axes."""
def reduce_logsumexp(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_logsumexp over axes."""
def reduce_max(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_max over axes."""
def reduce_mean(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_mean over axes."""
def reduce_min(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_min over axes."""
def reduce_prod(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_prod over axes."""
def reduce_std(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_std over axes."""
def reduce_sum(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_sum over axes."""
def reduce_variance(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_variance over axes."""
def reduced_axes(what: str, axis, rank: int) -> tuple[int, ...]: """Return the axes as a sorted tuple."""
def relu(x, name=None) -> Tensor: """Compute relu elementwise."""
def rint(x, name=None) -> Tensor: """Compute rint elementwise."""
def round(x, name=None) -> Tensor: """Compute round elementwise."""
def rsqrt(x, name=None) -> Tensor: """Compute rsqrt elementwise."""
def scalar(value: Any, dtype: dtype, what: str = 'scalar') -> Any:
    """Return a number as an operand of the op `what`: a 0-dim tensor, or a constant of a graph."""
def sigmoid(x, name=None) -> Tensor: """Compute sigmoid elementwise."""
def sigmoid_grad(y, dy, name=None) -> Tensor: """Return the gradient of the sigmoid, `dy * y * (1 - y)`."""
def sigmoid_v2(x, name=None) -> Tensor: """Compute sigmoid elementwise."""
def sign(x, name=None) -> Tensor: """Compute sign elementwise."""
def sin(x, name=None) -> Tensor: """Compute sin elementwise."""
def sinh(x, name=None) -> Tensor: """Compute sinh elementwise."""
def softplus(x, name=None) -> Tensor: """Compute softplus elementwise."""
def sqrt(x, name=None) -> Tensor: """Compute sqrt elementwise."""
def square(x, name=None) -> Tensor: """Compute square elementwise."""
def squared_difference(x, y, name=None) -> Tensor: """Compute squared_difference elementwise, with broadcasting."""
def subtract(x, y, name=None) -> Tensor: """Compute subtract elementwise, with broadcasting."""
def tan(x, name=None) -> Tensor: """Compute tan elementwise."""
def tanh(x, name=None) -> Tensor: """Compute tanh elementwise."""
def tanh_v2(x, name=None) -> Tensor: """Compute tanh elementwise."""
def top_k(input, axis: int = -1, k: int = 1, sorted: bool = True, name=None) -> Tensor:
    """Return the indices of the `k` largest elements along an axis, as int32."""
def tril(x, diagonal: int = 0, fill_value: float = 0, name=None) -> Tensor: """Return the lower triangle of each matrix."""
def triu(x, diagonal: int = 0, fill_value: float = 0, name=None) -> Tensor: """Return the upper triangle of each matrix."""
def two_stage_reduce_max(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_max over axes."""
def two_stage_reduce_min(x, axis=None, keepdims=False, name=None) -> Tensor: """Compute reduce_min over axes."""
def unsorted_batch_segment_sum(data, segment_ids, num_segments: int, name=None) -> Tensor:
    """Compute unsorted_segment_sum for each element of a batch."""
def unsorted_segment_sum(data, segment_ids, num_segments: int, axis: int = 0, name=None) -> Tensor:
    """Sum parts of `data` by segment: part i along `axis` is added to segment `segment_ids[i]`."""
def unsorted_segment_sum_like(data, segment_ids, like, axis: int = 0, name=None) -> Tensor:
    """Compute unsorted_segment_sum with as many segments as `like` has elements along `axis`."""
def variance_of(x, axes, keepdims) -> Tensor: """Return the biased variance over axes."""
def xdivy(x, y, name=None) -> Tensor: """Compute xdivy elementwise, with broadcasting."""
def xlogy(x, y, name=None) -> Tensor: """Compute xlogy elementwise, with broadcasting."""
