"""flowedu: OneFlow, small enough to read in a week. `import flowedu as flow`.

Public names, grouped by the chapter that explains them. No logic here.
"""
# chapter 1: blobs, dtypes, placeholders
from flowedu.blob.dtype import (
    bool_ as bool,
    char,
    convert_oneflow_dtype_to_numpy_dtype,
    dtype,
    dtypes,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    record,
    tensor_buffer,
    uint8,
)
from flowedu.blob.blob import BlobDef, BlobDesc
from flowedu.blob.placeholder import ArgBlobDef, FixedTensorDef, MirroredTensorDef, MirroredTensorListDef
from flowedu.blob.signature import enable_typing_check as _enable_typing_check
from flowedu.blob.storage import empty_cache, memory_stats, set_cache
from flowedu import errors, typing
from flowedu.errors import JobBuildAndInferError
from flowedu import sysconfig

# chapter 2: ops and gradients
from flowedu import ops
from flowedu.ops.core import get_num_threads, has_threads, set_num_threads
from flowedu.tensor import Tensor, empty, from_numpy, full, grad, no_grad, tensor
from flowedu import math
from flowedu.array_ops import (
    acc, assign, cast, concat, constant, constant_like, constant_scalar, dynamic_reshape, elem_cnt, expand_dims, flatten,
    identity, identity_n, masked_fill, ones, ones_like, pack, repeat, reshape, slice, squeeze, stack, transpose, unpack,
    where, zeros, zeros_like)
from flowedu.index_ops import (
    argwhere, dim_gather, gather, gather_nd, nonzero, one_hot, scatter_nd, tensor_scatter_nd_add, tensor_scatter_nd_update,
    unsorted_batch_segment_sum, unsorted_segment_sum, unsorted_segment_sum_like)
from flowedu.math import (
    add as broadcast_add, clip_by_value, clip_by_value as clamp, clip_by_value as clip, clip_by_value as clip_by_scalar,
    divide as broadcast_div, matmul, multiply as broadcast_mul, subtract as broadcast_sub)
from flowedu.matrix_ops import diag, eye, range, tril, triu
from flowedu.shape_ops import (
    broadcast_like, broadcast_to_compatible_with, pad, reshape_like, reverse, slice_update, slice_v2, swapaxes)
from flowedu.sort_ops import argsort, in_top_k, sort
from flowedu import linalg

# chapter 3: variables, layers, optimizers
from flowedu import layers, losses, nn, optimizer, random, regularizers
from flowedu.initializers import (
    constant_initializer, empty_initializer, glorot_normal_initializer, glorot_uniform_initializer, kaiming_initializer,
    ones_initializer, random_normal_initializer, random_uniform_initializer, truncated_normal,
    truncated_normal_initializer, variance_scaling_initializer, xavier_normal_initializer, xavier_uniform_initializer,
    zeros_initializer)
from flowedu.nn.losses import combined_margin_loss, ctc_loss, smooth_l1_loss
from flowedu.variables import get_variable

# chapter 4: job functions
from flowedu import core, data
from flowedu.job import checkpoint, env, scope, train
from flowedu.job.blob import ConsistentBlob, EagerConsistentBlob, LocalBlob, MirroredBlob
from flowedu.job.checkpoint import load_files as load, save_files as save
from flowedu.job.config import ExecutionConfig, FunctionConfig, config, function_config
from flowedu.job.description import current_global_function_desc
from flowedu.job.eager import eager_execution_enabled, enable_eager_execution
from flowedu.job.env import current_machine_id, current_resource
from flowedu.job.function import global_function
from flowedu.job.scope import cast_to_current_logical_view, current_scope, namespace as name_scope
from flowedu.job.session import clear_default_session, get_all_variables, load_variables, sync_default_session
from flowedu.job.watch import watch, watch_diff
from flowedu import deprecated, unittest
from flowedu.deprecated import device_prior_placement, fixed_placement
from flowedu import experimental
from flowedu.custom import (
    consistent_user_op_builder, consistent_user_op_module_builder, custom_op, user_op_builder, user_op_module_builder)

# chapter 6: several devices
from flowedu import advanced
from flowedu.hints import hierarchical_parallel_cast, parallel_cast
from flowedu.job import distribute

# chapter 7: data whose size is known only when it is there
from flowedu.dynamic import TensorBuffer, TensorList, detection, image
from flowedu.dynamic.detection import (
    object_bbox_flip, object_bbox_scale, object_segmentation_polygon_flip, object_segmentation_polygon_scale,
    object_segmentation_polygon_to_mask)
from flowedu.dynamic.image import (
    batch_align as image_batch_align, decode as image_decode, flip as image_flip, normalize as image_normalize,
    random_crop as image_random_crop, resize as image_resize, target_resize as image_target_resize)
from flowedu.dynamic.ops import (
    gen_tensor_buffer, tensor_buffer_to_list_of_tensors, tensor_buffer_to_tensor, tensor_buffer_to_tensor_list,
    tensor_list_split, tensor_list_to_tensor_buffer, tensor_to_tensor_buffer)

float = float32
double = float64
half = float16
int = int32
long = int64

__version__ = "0.1.0"
