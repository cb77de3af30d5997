"""The names of `flow` for tensors and dtypes, grouped by the chapter that explains them."""
# ruff: noqa: F401, I001
# chapter 1: blobs, dtypes, placeholders
from flowedu.core.values.dtype import (
    bool_ as bool, char, dtype, dtypes, float16, float32, float64, int8, int16, int32, int64, record,
    tensor_buffer, uint8
)

# chapter 2: ops and gradients
from flowedu.core.eager.dispatch import get_num_threads, has_threads, set_num_threads
from flowedu.tensor import Tensor, empty, from_numpy, full, grad, no_grad, tensor

# chapter 5: tensors
from flowedu.tensor import return_types
from flowedu.tensor.construction.creation import (
    BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor,
    LongTensor, ShortTensor, arange, as_tensor, empty_like, eye, full_like, linspace, logspace, ones,
    ones_like, zeros, zeros_like
)
from flowedu.core.values.dtype import bfloat16, get_default_dtype, set_default_dtype
from flowedu.tensor.dtypes.numeric_limits import finfo, iinfo
from flowedu.tensor.devices.device import device
from flowedu.tensor.devices.conversion import to
from flowedu.tensor import (
    Size, enable_grad, from_dlpack, inference_mode, is_grad_enabled, is_inference_mode_enabled,
    set_grad_enabled
)
from flowedu.tensor.devices.memory_format import (
    channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format)
from flowedu.tensor.elementwise import (
    abs, absolute, acos, acosh, add, addcdiv, addcmul, all, allclose, any, arccos, arccosh, arcsin, arcsinh,
    arctan, arctan2, arctanh, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_left_shift, bitwise_not,
    bitwise_or, bitwise_right_shift, bitwise_xor, ceil, clamp, clamp_max, clamp_min, clip,
    clip as clip_by_scalar, clone, copysign, cos, cosh, count_nonzero, deg2rad, digamma, div, divide, eq,
    equal, erf, erfc, erfinv, exp, exp2, expm1, fix, float_power, floor, floor_divide, fmax, fmin, fmod,
    frac, ge, gelu, greater, greater_equal, gt, heaviside, hypot, isclose, isfinite, isinf, isnan, isneginf,
    isposinf, ldexp, le, lerp, less, less_equal, lgamma, log, log1p, log2, log10, log_sigmoid, logaddexp,
    logaddexp2, logical_and, logical_not, logical_or, logical_xor, logit, lt, maximum, minimum, mish, mul,
    multiply, nan_to_num, ne, neg, negative, not_equal, positive, pow, rad2deg, reciprocal, relu, remainder,
    round, rsqrt, rsub, selu, sgn, sigmoid, sign, signbit, silu, sin, sinc, sinh, softplus, softsign, sqrt,
    square, sub, subtract, tan, tanh, true_divide, trunc, where, xlogy
)
from flowedu.tensor.reductions.reduce import (
    amax, amin, aminmax, argmax, argmin, log_softmax, logsumexp, max, mean, min, nanmean, nansum, norm, prod,
    renorm, softmax, std, std_mean, sum, var, var_mean
)
from flowedu.tensor.reductions.cumulative import (
    cummax,
    cummin,
    cumprod,
    cumsum,
    diff,
    logcumsumexp,
    trapezoid,
)
from flowedu.tensor.shapes.reshape_and_permute import (
    adjoint, atleast_1d, atleast_2d, atleast_3d, broadcast_shapes, broadcast_tensors, broadcast_to, expand,
    flatten, movedim, moveaxis, permute, ravel, repeat_interleave, reshape, squeeze, swapaxes, swapdims, t,
    tile, transpose, unflatten, unsqueeze, view
)
from flowedu.tensor.shapes.split_and_flip import (
    as_strided, chunk, diagonal, dsplit, flip, fliplr, flipud, hsplit, narrow, roll, rot90, select, split,
    tensor_split, unbind, unfold, vsplit
)
from flowedu.tensor.shapes.join_and_pad import (
    block_diag, cartesian_prod, cat, cat as concat, column_stack, concatenate, diag, diag_embed, diagflat,
    dstack, hstack, meshgrid, pad, row_stack, stack, take_along_dim, tril, triu, vander, vstack
)
from flowedu.tensor.indexing.index_lists import combinations, tril_indices, triu_indices
from flowedu.tensor.linalg.products import (
    addbmm, addmm, addmv, addr, baddbmm, bmm, cdist, chain_matmul, cross, dot, ger, inner, kron, matmul,
    matrix_power, mm, mv, outer, tensordot, trace, vdot
)
from flowedu.tensor.linalg.inverse_and_norms import det, inv as inverse
from flowedu.tensor.linalg.factorizations import (
    cholesky_inverse, cholesky_solve, old_cholesky as cholesky, old_qr as qr, old_svd as svd,
    triangular_solve
)
from flowedu.tensor.linalg.least_squares import logdet, matrix_exp, old_slogdet as slogdet, pinverse
from flowedu.tensor.reductions.covariance import corrcoef, cov
from flowedu.tensor.linalg.einsum import einsum
from flowedu.tensor.indexing.nonzero_positions import argwhere, nonzero
from flowedu.tensor.indexing.sort_and_search import (
    argsort, bincount, bucketize, histc, isin, kthvalue, masked_select, median, mode, msort,
    quantile, searchsorted, sort, topk, unique, unique_consecutive
)
from flowedu.tensor.indexing.gather_scatter import (
    gather, index_add, index_copy, index_fill, index_put, index_select, masked_fill, masked_scatter, scatter,
    scatter_add, scatter_reduce, select_scatter, slice_scatter, take
)
from flowedu.tensor.construction.generator import (
    Generator, default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state)
from flowedu.tensor.construction.random import (
    bernoulli, multinomial, normal, poisson, rand, rand_like, randint, randint_like, randn, randn_like,
    randperm
)
from flowedu.tensor.inplace.methods import zero_, zero_ as zeros_
from flowedu.tensor.construction.windows import (
    bartlett_window,
    blackman_window,
    hamming_window,
    hann_window,
    kaiser_window,
)
from flowedu.tensor.printing import set_printoptions
from flowedu.tensor.predicates import is_floating_point, is_nonzero, is_tensor, numel
from flowedu.core.ops.promote import result_type
from flowedu.tensor.dtypes.promotion import can_cast, promote_types

# chapter 6: several devices
from flowedu.tensor.global_tensors.functions import global_to_global, local_to_global, to_global, to_local

float = float32
double = float64
half = float16
int = int32
long = int64
short = int16
