"""Written by `make stubs`: do not edit."""
from collections.abc import Callable, Sequence
from flowedu.core.eager.tensor import Tensor
from flowedu.core.values import dtype as dt
from flowedu.core.values.dtype import dtype
from flowedu.errors import (
    ArgumentError as ArgumentError, CheckError as CheckError, DTypeError as DTypeError,
    UnsupportedError as UnsupportedError)
from typing import Any

DIVIDING: set
REGISTRY: dict
def abs(x, name=None) -> Tensor: """Elementwise abs."""
def acos(x, name=None) -> Tensor: """Elementwise acos."""
def acosh(x, name=None) -> Tensor: """Elementwise acosh."""
def add(x, y, name=None) -> Tensor: """Elementwise add, broadcasting. x, y: blobs or Python numbers of one dtype."""
def add_n(inputs: Sequence, name=None) -> Tensor: """The sum of values of one shape."""
def argmax(x, axis: int = -1, name=None) -> Tensor: """Index of the largest element along `axis`, int32."""
def asin(x, name=None) -> Tensor: """Elementwise asin."""
def asinh(x, name=None) -> Tensor: """Elementwise asinh."""
def atan(x, name=None) -> Tensor: """Elementwise atan."""
def atan2(x, y, name=None) -> Tensor: """Elementwise atan2, broadcasting. x, y: blobs or Python numbers of one dtype."""
def atanh(x, name=None) -> Tensor: """Elementwise atanh."""
def broadcast_to_compatible_with(x, compatible: Sequence, name=None) -> Tensor:
    """x repeated so that it has the shape that x and all of `compatible` broadcast to."""
def ceil(x, name=None) -> Tensor: """Elementwise ceil."""
def check_number(what: str, value, dtype) -> None:
    """Raise a DTypeError if an integer dtype does not have this number (1.5, or 300 for int8)."""
def clip_by_value(values, min_value=None, max_value=None, name=None) -> Tensor:
    """Values kept inside [min_value, max_value]; either bound may be None."""
def cos(x, name=None) -> Tensor: """Elementwise cos."""
def cosh(x, name=None) -> Tensor: """Elementwise cosh."""
def divide(x, y, name=None) -> Tensor: """x / y."""
def equal(x, y, name=None) -> bool: """Elementwise equal, broadcasting. x, y: blobs or Python numbers of one dtype."""
def erf(x, name=None) -> Tensor: """Elementwise erf."""
def erfc(x, name=None) -> Tensor: """Elementwise erfc."""
def exp(x, name=None) -> Tensor: """Elementwise exp."""
def expm1(x, name=None) -> Tensor: """Elementwise expm1."""
def floor(x, name=None) -> Tensor: """Elementwise floor."""
def floordiv(x, y, name=None) -> Tensor:
    """Elementwise floordiv, broadcasting. x, y: blobs or Python numbers of one dtype."""
def front(prefix: str, blob_name: str = 'out_0', arrays: bool = False) -> Callable: """Decorator."""
def fused_scale_tril(x, diagonal: int = 0, fill_value: float = 0, scale: float = 1, name=None) -> Tensor:
    """scale * x in the lower triangle of each matrix, fill_value above the diagonal."""
def fused_scale_tril_softmax_dropout(x, diagonal: int = 0, fill_value: float = 0, scale: float = 1, rate: float = 0.0, noise_shape=None, seed: int | None = None, name: str | None = None) -> Tensor:
    """dropout(softmax(fused_scale_tril(x, diagonal, fill_value, scale)), rate): the weights of causal attention."""
def gelu(x, name=None) -> Tensor: """Elementwise gelu."""
def gelu_grad(x, dy, name=None) -> Tensor: """dy times the slope of gelu at x."""
def greater(x, y, name=None) -> Tensor: """Elementwise greater, broadcasting. x, y: blobs or Python numbers of one dtype."""
def greater_equal(x, y, name=None) -> Tensor:
    """Elementwise greater_equal, broadcasting. x, y: blobs or Python numbers of one dtype."""
def in_top_k(targets, predictions, k: int, name=None) -> Tensor:
    """int8 (n,): whether class targets[i] is among the k largest of predictions[i]; ties at the border count as inside."""
inf: float
def l2_normalize(x, axis: int, epsilon: float = 1e-12, name=None) -> Tensor: """x / sqrt(max(sum(x^2, axis), epsilon))."""
def less(x, y, name=None) -> Tensor: """Elementwise less, broadcasting. x, y: blobs or Python numbers of one dtype."""
def less_equal(x, y, name=None) -> Tensor:
    """Elementwise less_equal, broadcasting. x, y: blobs or Python numbers of one dtype."""
def lgamma(x, name=None) -> Tensor: """Elementwise lgamma."""
def log(x, name=None) -> Tensor: """Elementwise log."""
def log1p(x, name=None) -> Tensor: """Elementwise log1p."""
def log_sigmoid(x, name=None) -> Tensor: """Elementwise log_sigmoid."""
def logical_and(x, y, name=None) -> Tensor:
    """Elementwise logical_and, broadcasting. x, y: blobs or Python numbers of one dtype."""
def matmul(a, b, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, name=None) -> Tensor:
    """alpha * op(a) @ op(b): equal batch axes, or an n-d a with a matrix b."""
def maximum(x, y, name=None) -> Tensor: """Elementwise maximum, broadcasting. x, y: blobs or Python numbers of one dtype."""
def mean_of(x, axes, keepdims) -> Tensor: """The mean over some axes; nan where there is nothing."""
def minimum(x, y, name=None) -> Tensor: """Elementwise minimum, broadcasting. x, y: blobs or Python numbers of one dtype."""
def mod(x, y, name=None) -> Tensor: """Remainder with the sign of the divisor."""
def multiply(x, y, name=None) -> Tensor:
    """Elementwise multiply, broadcasting. x, y: blobs or Python numbers of one dtype."""
nan: float
def negative(x, name=None) -> Tensor: """Elementwise negative."""
def nonzero(name: str, divisor: Any) -> Any:
    """Return an integer divisor with a check against 0: integers have no infinity as the result of a division by zero."""
def normal_axis(axis: int, rank: int, what: str) -> int: """`axis` counted from the front."""
def not_equal(x, y, name=None) -> Tensor:
    """Elementwise not_equal, broadcasting. x, y: blobs or Python numbers of one dtype."""
def polyval(coeffs: Sequence[float], x, name=None) -> Tensor: """coeffs[0] * x^(n-1) + ... + coeffs[n-1], elementwise."""
def pow(x, y, name=None) -> Tensor: """Elementwise pow, broadcasting. x, y: blobs or Python numbers of one dtype."""
def reciprocal(x, name=None) -> Tensor: """Elementwise reciprocal."""
def reciprocal_no_nan(x, name=None) -> Tensor: """Elementwise reciprocal_no_nan."""
def reduce_all(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_all over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def reduce_any(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_any over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def reduce_euclidean_norm(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_euclidean_norm over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def reduce_logsumexp(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_logsumexp over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def reduce_max(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_max over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def reduce_mean(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_mean over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def reduce_min(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_min over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def reduce_prod(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_prod over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def reduce_std(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_std over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def reduce_sum(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_sum over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def reduce_variance(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_variance over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def reduced_axes(what: str, axis, rank: int) -> tuple[int, ...]: """The axes as a sorted tuple."""
def relu(x, name=None) -> Tensor: """Elementwise relu."""
def rint(x, name=None) -> Tensor: """Elementwise rint."""
def round(x, name=None) -> Tensor: """Elementwise round."""
def rsqrt(x, name=None) -> Tensor: """Elementwise rsqrt."""
def scalar(value, dtype: dtype, what: str = 'scalar'):
    """Return a 0-dim tensor (in a graph a constant node), an operand of the op `what`."""
def sigmoid(x, name=None) -> Tensor: """Elementwise sigmoid."""
def sigmoid_grad(y, dy, name=None) -> Tensor: """dy times the slope of the sigmoid whose result is y: dy * y * (1 - y)."""
def sigmoid_v2(x, name=None) -> Tensor: """Elementwise sigmoid."""
def sign(x, name=None) -> Tensor: """Elementwise sign."""
def sin(x, name=None) -> Tensor: """Elementwise sin."""
def sinh(x, name=None) -> Tensor: """Elementwise sinh."""
def softplus(x, name=None) -> Tensor: """Elementwise softplus."""
def sqrt(x, name=None) -> Tensor: """Elementwise sqrt."""
def square(x, name=None) -> Tensor: """Elementwise square."""
def squared_difference(x, y, name=None) -> Tensor:
    """Elementwise squared_difference, broadcasting. x, y: blobs or Python numbers of one dtype."""
def subtract(x, y, name=None) -> Tensor:
    """Elementwise subtract, broadcasting. x, y: blobs or Python numbers of one dtype."""
def tan(x, name=None) -> Tensor: """Elementwise tan."""
def tanh(x, name=None) -> Tensor: """Elementwise tanh."""
def tanh_v2(x, name=None) -> Tensor: """Elementwise tanh."""
def top_k(input, axis: int = -1, k: int = 1, sorted: bool = True, name=None) -> Tensor:
    """The positions, int32, of the k largest elements along `axis`, the largest first (whatever `sorted` says); all of them where the axis is shorter than k."""
def tril(x, diagonal: int = 0, fill_value: float = 0, name=None) -> Tensor:
    """The lower triangle of each matrix (the last two axes), `fill_value` above the diagonal."""
def triu(x, diagonal: int = 0, fill_value: float = 0, name=None) -> Tensor:
    """The upper triangle of each matrix (the last two axes), `fill_value` below the diagonal. (Not in OneFlow 0.4.)"""
def two_stage_reduce_max(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_max over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def two_stage_reduce_min(x, axis=None, keepdims=False, name=None) -> Tensor:
    """reduce_min over `axis` (int, list, or None: all; then without keepdims the shape is (1,))."""
def unsorted_batch_segment_sum(data, segment_ids, num_segments: int, name=None) -> Tensor:
    """unsorted_segment_sum for each of a batch: segment_ids has data's leading axes, the last of them is summed over."""
def unsorted_segment_sum(data, segment_ids, num_segments: int, axis: int = 0, name=None) -> Tensor:
    """Sums over parts of `data` along `axis`: part i goes into segment segment_ids[i]."""
def unsorted_segment_sum_like(data, segment_ids, like, axis: int = 0, name=None) -> Tensor:
    """unsorted_segment_sum with as many segments as `like` has along `axis`."""
def variance_of(x, axes, keepdims) -> Tensor: """The biased variance."""
def xdivy(x, y, name=None) -> Tensor: """Elementwise xdivy, broadcasting. x, y: blobs or Python numbers of one dtype."""
def xlogy(x, y, name=None) -> Tensor: """Elementwise xlogy, broadcasting. x, y: blobs or Python numbers of one dtype."""
