"""flowedu: the ideas of OneFlow in a core of 13,000 lines that you can read. `import flowedu as flow`.

The folders of the package form three groups. `core` and `_kernels/core` are the course. `tensor`, `autograd`, `nn`,
`optim`, `utils`, `distributed`, `distributions`, `vision`, `models`, `mock`, and `oneflow04` contain the names that users
type. The other folders serve these two. This file imports the public names, grouped by the chapter that explains them.
"""
import os as _os
from math import e, inf, nan, pi

from flowedu import aliases                             # first: what is imported by another path than where it lives

from flowedu.fast import kernels as _fast_kernels     # before anything is computed

# chapter 1: blobs, dtypes, placeholders
from flowedu.core.values.dtype import (
    bool_ as bool, char, dtype, dtypes, float16, float32, float64, int8, int16, int32, int64, record, tensor_buffer, uint8)
from flowedu.oneflow04.element_types import convert_oneflow_dtype_to_numpy_dtype
from flowedu.core.values.blob import BlobDef, BlobDesc
from flowedu.core.values.placeholder import ArgBlobDef, FixedTensorDef
from flowedu.oneflow04.mirrored import MirroredTensorDef, MirroredTensorListDef
from flowedu.oneflow04.job.signature import enable_typing_check as _enable_typing_check
from flowedu.fast.memory import empty_cache, memory_stats, set_cache
from flowedu import errors
from flowedu.errors import JobBuildAndInferError
from flowedu.oneflow04 import sysconfig
from flowedu.oneflow04 import typing

# chapter 2: ops and gradients
from flowedu import ops
from flowedu.core.eager.dispatch import get_num_threads, has_threads, set_num_threads
from flowedu.tensor import Tensor, empty, from_numpy, full, grad, no_grad, tensor
from flowedu.oneflow04 import math
from flowedu.oneflow04.array_ops import (
    acc, amp_white_identity, assign, cast, cast_to_static_shape, constant, constant_like, constant_scalar,
    dynamic_reshape, elem_cnt, expand_dims, identity, identity_n, pack, repeat, slice, unpack)
from flowedu.oneflow04.index_ops import (
    batch_gather, dim_gather, gather_nd, one_hot, scatter_nd, tensor_scatter_nd_add, tensor_scatter_nd_update,
    unsorted_batch_segment_sum, unsorted_segment_sum, unsorted_segment_sum_like)
from flowedu.oneflow04.math import (
    add as broadcast_add, clip_by_value, divide as broadcast_div, multiply as broadcast_mul, subtract as broadcast_sub)
from flowedu.oneflow04.matrix_ops import range
from flowedu.oneflow04.pads import (
    constant_pad2d, pad_grad, reflection_pad2d, replication_pad2d, same_padding, zero_pad2d)
from flowedu.oneflow04.shape_ops import (
    broadcast_like, broadcast_to_compatible_with, reshape_like, reverse, slice_update, slice_v2)
from flowedu.oneflow04.sort_ops import in_top_k
from flowedu.oneflow04.unique import count_not_finite, multi_count_not_finite, sync_dynamic_resize
from flowedu.oneflow04 import linalg

# chapter 3: variables, layers, optimizers
from flowedu.oneflow04 import layers, losses, optimizer, random, regularizers
from flowedu import nn
from flowedu.nn import amp
from flowedu.oneflow04.nn import public as _nn_names
from flowedu.oneflow04.initializers import (
    constant_initializer, empty_initializer, glorot_normal_initializer, glorot_uniform_initializer, kaiming_initializer,
    ones_initializer, random_normal_initializer, random_uniform_initializer, truncated_normal, truncated_normal_initializer,
    variance_scaling_initializer, xavier_normal_initializer, xavier_uniform_initializer, zeros_initializer)
from flowedu.oneflow04.nn.losses import combined_margin_loss, ctc_loss, smooth_l1_loss
from flowedu.oneflow04.variables import get_variable

# chapter 4: job functions
from flowedu.oneflow04.job import env, scope
from flowedu.oneflow04.job.blob import ConsistentBlob, EagerConsistentBlob, LocalBlob, MirroredBlob
from flowedu.oneflow04.job.config import ExecutionConfig, FunctionConfig, config, function_config
from flowedu.oneflow04.job.description import current_global_function_desc
from flowedu.oneflow04.job.eager import eager_execution_enabled, enable_eager_execution
from flowedu.oneflow04.job.env import current_machine_id, current_resource
from flowedu.oneflow04.job.function import global_function
from flowedu.oneflow04.job.scope import cast_to_current_logical_view, current_scope, namespace as name_scope
from flowedu.core.job.session import clear_default_session
from flowedu.oneflow04.job.session import get_all_variables
from flowedu.oneflow04.job.session import load_variables, sync_default_session
from flowedu.oneflow04.job.watch import watch, watch_diff
from flowedu.oneflow04 import deprecated, unittest
from flowedu.oneflow04.deprecated import device_prior_placement, fixed_placement

# records and passes that know special kernels
from flowedu.fast import operators as _fast_operators, ops as _fast_ops, passes as _fast, tensors as _fast_tensors
from flowedu.core.extensions import homes as _extension_homes

# chapter 5: tensors
from flowedu.tensor import return_types
from flowedu.tensor.creation import (
    BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor,
    ShortTensor, arange, as_tensor, empty_like, eye, full_like, linspace, logspace, ones, ones_like, zeros, zeros_like)
from flowedu import autograd, cuda
from flowedu.core.values.dtype import bfloat16, get_default_dtype, set_default_dtype
from flowedu.tensor.limits import finfo, iinfo
from flowedu.tensor.device import device
from flowedu.tensor.devices import to
from flowedu.tensor import (
    Size, enable_grad, from_dlpack, inference_mode, is_grad_enabled, is_inference_mode_enabled, set_grad_enabled)
from flowedu.tensor.memory_format import (
    channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format)
from flowedu.tensor.elementwise import (
    abs, absolute, acos, acosh, add, addcdiv, addcmul, all, allclose, any, arccos, arccosh, arcsin, arcsinh, arctan,
    arctan2, arctanh, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or,
    bitwise_right_shift, bitwise_xor, ceil, clamp, clamp_max, clamp_min, clip, clip as clip_by_scalar, clone, copysign,
    cos, cosh, count_nonzero, deg2rad, digamma, div, divide, eq, equal, erf, erfc, erfinv, exp, exp2, expm1, fix,
    float_power, floor, floor_divide, fmax, fmin, fmod, frac, ge, gelu, greater, greater_equal, gt, heaviside, hypot,
    isclose, isfinite, isinf, isnan, isneginf, isposinf, ldexp, le, lerp, less, less_equal, lgamma, log, log1p, log2,
    log10, log_sigmoid, logaddexp, logaddexp2, logical_and, logical_not, logical_or, logical_xor, logit, lt, maximum,
    minimum, mish, mul, multiply, nan_to_num, ne, neg, negative, not_equal, positive, pow, rad2deg, reciprocal, relu,
    remainder, round, rsqrt, rsub, selu, sgn, sigmoid, sign, signbit, silu, sin, sinc, sinh, softplus, softsign, sqrt,
    square, sub, subtract, tan, tanh, true_divide, trunc, where, xlogy)
from flowedu.tensor.reductions import (
    amax, amin, aminmax, argmax, argmin, log_softmax, logsumexp, max, mean, min, nanmean, nansum, norm, prod, renorm,
    softmax, std, std_mean, sum, var, var_mean)
from flowedu.tensor.running import cummax, cummin, cumprod, cumsum, diff, logcumsumexp, trapezoid
from flowedu.tensor.shapes import (
    adjoint, atleast_1d, atleast_2d, atleast_3d, broadcast_shapes, broadcast_tensors, broadcast_to, expand, flatten,
    movedim, moveaxis, permute, ravel, repeat_interleave, reshape, squeeze, swapaxes, swapdims, t, tile, transpose,
    unflatten, unsqueeze, view)
from flowedu.tensor.pieces import (
    as_strided, chunk, diagonal, dsplit, flip, fliplr, flipud, hsplit, narrow, roll, rot90, select, split, tensor_split,
    unbind, unfold, vsplit)
from flowedu.tensor.joining import (
    block_diag, cartesian_prod, cat, cat as concat, column_stack, concatenate, diag, diag_embed, diagflat, dstack, hstack,
    meshgrid, pad, row_stack, stack, take_along_dim, tril, triu, vander, vstack)
from flowedu.tensor.places import combinations, tril_indices, triu_indices
from flowedu.tensor.linear import (
    addbmm, addmm, addmv, addr, baddbmm, bmm, cdist, chain_matmul, cross, dot, ger, inner, kron, matmul, matrix_power, mm,
    mv, outer, tensordot, trace, vdot)
from flowedu.tensor.linalg import det, inv as inverse
from flowedu.tensor.factors import (
    cholesky_inverse, cholesky_solve, old_cholesky as cholesky, old_qr as qr, old_svd as svd, triangular_solve)
from flowedu.tensor.least_squares import logdet, matrix_exp, old_slogdet as slogdet, pinverse
from flowedu.tensor.covariance import corrcoef, cov
from flowedu.tensor.einsum import einsum
from flowedu.tensor import einops_backend as _einops_backend
from flowedu.tensor.search import (
    argsort, argwhere, bincount, bucketize, histc, isin, kthvalue, masked_select, median, mode, msort, nonzero, quantile,
    searchsorted, sort, topk, unique, unique_consecutive)
from flowedu.tensor.scatters import (
    gather, index_add, index_copy, index_fill, index_put, index_select, masked_fill, masked_scatter, scatter, scatter_add,
    scatter_reduce, select_scatter, slice_scatter, take)
from flowedu.tensor.generator import (
    Generator, default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state)
from flowedu.tensor.random import (
    bernoulli, multinomial, normal, poisson, rand, rand_like, randint, randint_like, randn, randn_like, randperm)
from flowedu.tensor.inplace_methods import zero_, zero_ as zeros_
from flowedu.tensor.windows import bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window
from flowedu.tensor.printing import set_printoptions
from flowedu.show.notebook import show
from flowedu.tensor.questions import is_floating_point, is_nonzero, is_tensor, numel
from flowedu.core.ops.promote import result_type
from flowedu.tensor.promotion import can_cast, promote_types

# chapter 5: training with tensors
from flowedu import models, optim, utils, vision
from flowedu.oneflow04 import names as _names
from flowedu.diagnostics.present import present_all as _present_all
from flowedu.diagnostics.lazy_imports import lazy_import as _lazy_import

# chapter 6: several devices
from flowedu.oneflow04 import advanced
from flowedu.oneflow04 import distribute
from flowedu.oneflow04.distribute import hierarchical_parallel_cast, parallel_cast
from flowedu.tensor.globals import global_to_global, local_to_global, to_global, to_local

# chapter 7: data whose size is known only when it is there
from flowedu.core.buffers import TensorBuffer, TensorList
from flowedu.oneflow04.buffers import (
    gen_tensor_buffer, tensor_buffer_to_list_of_tensors, tensor_buffer_to_tensor, tensor_buffer_to_tensor_list,
    tensor_list_split, tensor_list_to_tensor_buffer, tensor_to_tensor_buffer)

float = float32
double = float64
half = float16
int = int32
long = int64
short = int16

# what is imported when somebody asks for it
__getattr__, __dir__ = _lazy_import(__name__, {
    # chapters 3 and 4
    "core": "flowedu.core", "data": "flowedu.data", "checkpoint": "flowedu.oneflow04.job.checkpoint",
    "train": "flowedu.oneflow04.job.train",
    "custom": "flowedu.oneflow04.custom", "experimental": "flowedu.oneflow04.experimental",
    **dict.fromkeys(("consistent_user_op_builder", "consistent_user_op_module_builder", "custom_op", "user_op_builder",
                     "user_op_module_builder"), "flowedu.oneflow04.custom"),
    # chapter 5
    "load": "flowedu.saving", "save": "flowedu.saving", "saving": "flowedu.saving", "load_graph": "flowedu.saving.graph",
    "onnx": "flowedu.onnx", "distributions": "flowedu.distributions",
    "array_api": "flowedu.tensor.array_api", "autocast": "flowedu.nn.amp", "fft": "flowedu.tensor.fft",
    "func": "flowedu.autograd.func", "vmap": "flowedu.autograd.func",
    "nms": "flowedu.vision.ops.top", "roi_align": "flowedu.vision.ops.top",
    # chapter 6
    "placement": "flowedu.core.sbp.names", "sbp": "flowedu.sbp", "boxing": "flowedu.distributed.boxing",
    "explain": "flowedu.show.explaining",
    "comm": "flowedu.distributed.comm", "distributed": "flowedu.distributed",
    # chapter 7
    "detection": "flowedu.oneflow04.image.detection", "image": "flowedu.oneflow04.image.image",
    **dict.fromkeys(("object_bbox_flip", "object_bbox_scale", "object_segmentation_polygon_flip",
                     "object_segmentation_polygon_scale", "object_segmentation_polygon_to_mask"),
                    "flowedu.oneflow04.image.detection"),
    **{f"image_{n}": f"flowedu.oneflow04.image.image:{n}" for n in (
        "batch_align", "decode", "flip", "normalize", "random_crop", "resize", "target_resize")},
    # chapter 8
    "backends": "flowedu.cuda.backends",
    # programs written for torch and oneflow
    "mock": "flowedu.mock",
})
_PARTS = {"diagnostics", "aliases", "fast", "oneflow04", "saving"}         # of the house, which users need not know
__all__ = [_name for _name in __dir__() if not _name.startswith("_") and _name not in _PARTS]

# the functions behind the extension points of core/extensions.py
_extension_homes.update(
    plan_text="flowedu.show.plan:describe",
    gpu_plan="flowedu.cuda.plan:OnGpu",
    layouts_text="flowedu.show.bill:describe",
    route_text="flowedu.show.routes:describe",
    hop_text="flowedu.show.routes:hop",
    draw_route="flowedu.show.boxing:draw",
    choice_text="flowedu.show.choice:explained",
    no_layout_error="flowedu.show.choice:refusal",
    rank_memory="flowedu.show.ranks:memory",
    global_graph="flowedu.distributed.graph.view:GlobalView",
    global_placing="flowedu.distributed.graph.placing:Placing",
    spread_job="flowedu.distributed.spread:spread",
    reset_eager_sources="flowedu.ops.host:forget_states",
    start_ranks="flowedu.distributed.ranks.engine:start",
    remote_shards="flowedu.distributed.shards",
    rank_gpus="flowedu.cuda.ranks",
    raise_misfit="flowedu.diagnostics.explain:raise_misfit",
    construct_tensor="flowedu.tensor.creation:construct",
    bfloat16_array="flowedu.tensor.bfloat16:shown",
    job_signature="flowedu.oneflow04.job.signature:job_signature",
    place_buffers="flowedu.fast.arena:place",
    check_pass="flowedu.diagnostics.verify:pass_checks",
    check_plan="flowedu.diagnostics.verify:checked_plan",
    make_executor="flowedu.diagnostics.verify:make_executor",
    python_kernel="flowedu.ops.custom.pykernel:python_call",
    spread_slice="flowedu.ops.slice_part:spread",
    widen_formula="flowedu.ops.halves:widened",
    array_api="flowedu.tensor.array_api",
    op_type_name="flowedu.tensor.node_names:type_name")

__version__ = "0.1.0"

if _os.environ.get("FLOWEDU_HOLES"):     # a folder of answers to the exercises: they run in the places of the library's own
    from flowedu.learn.install import install as _install
    _install(_os.environ["FLOWEDU_HOLES"])

_present_all()                # last: from here on a wrong call of any of these says what is wrong
