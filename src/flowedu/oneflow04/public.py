"""The names of `flow` that OneFlow 0.4 has, grouped by the chapter that explains them."""
# ruff: noqa: F401, I001
# chapter 1: blobs, dtypes, placeholders
from flowedu.oneflow04.functions.numpy_dtype import convert_oneflow_dtype_to_numpy_dtype
from flowedu.core.values.blob import BlobDef, BlobDesc
from flowedu.core.values.placeholder import ArgBlobDef, FixedTensorDef
from flowedu.oneflow04.mirrored import MirroredTensorDef, MirroredTensorListDef
from flowedu.oneflow04 import sysconfig
from flowedu.oneflow04 import typing

# chapter 2: ops and gradients
from flowedu.oneflow04 import math
from flowedu.oneflow04.functions.shapes_and_constants import (
    acc, amp_white_identity, assign, cast, cast_to_static_shape, constant, constant_like, constant_scalar,
    dynamic_reshape, elem_cnt, expand_dims, identity, identity_n, pack, repeat, slice, unpack)
from flowedu.oneflow04.functions.gather_scatter import (
    batch_gather, dim_gather, gather_nd, one_hot, scatter_nd, tensor_scatter_nd_add, tensor_scatter_nd_update,
    unsorted_batch_segment_sum, unsorted_segment_sum, unsorted_segment_sum_like)
from flowedu.oneflow04.math import (
    add as broadcast_add, clip_by_value, divide as broadcast_div, multiply as broadcast_mul,
    subtract as broadcast_sub)
from flowedu.oneflow04.functions.ranges_and_triangles import range
from flowedu.oneflow04.functions.image_padding import (
    constant_pad2d, pad_grad, reflection_pad2d, replication_pad2d, same_padding, zero_pad2d)
from flowedu.oneflow04.functions.pad_slice_broadcast import (
    broadcast_like, broadcast_to_compatible_with, reshape_like, reverse, slice_update, slice_v2)
from flowedu.oneflow04.functions.sort_and_top_k import in_top_k
from flowedu.oneflow04.functions.unique_and_finite import (
    count_not_finite,
    multi_count_not_finite,
    sync_dynamic_resize,
)
from flowedu.oneflow04 import linalg

# chapter 3: variables, layers, optimizers
from flowedu.oneflow04 import layers, losses, optimizer, random, regularizers
from flowedu.oneflow04.initializers import (
    constant_initializer, empty_initializer, glorot_normal_initializer, glorot_uniform_initializer,
    kaiming_initializer, ones_initializer, random_normal_initializer, random_uniform_initializer,
    truncated_normal, truncated_normal_initializer, variance_scaling_initializer, xavier_normal_initializer,
    xavier_uniform_initializer, zeros_initializer
)
from flowedu.oneflow04.nn.losses import combined_margin_loss, ctc_loss, smooth_l1_loss
from flowedu.oneflow04.variables import get_variable

# chapter 4: job functions
from flowedu.oneflow04.job import env, scope
from flowedu.oneflow04.job.placed_blobs import ConsistentBlob, EagerConsistentBlob, LocalBlob, MirroredBlob
from flowedu.oneflow04.job.config import ExecutionConfig, FunctionConfig, config, function_config
from flowedu.oneflow04.job.function_desc import current_global_function_desc
from flowedu.oneflow04.job.eager import eager_execution_enabled, enable_eager_execution
from flowedu.oneflow04.job.env import current_machine_id, current_resource
from flowedu.oneflow04.job.function04 import global_function
from flowedu.oneflow04.job.scope import cast_to_current_logical_view, current_scope, namespace as name_scope
from flowedu.core.job.session import clear_default_session
from flowedu.oneflow04.job.session04 import get_all_variables
from flowedu.oneflow04.job.session04 import load_variables, sync_default_session
from flowedu.oneflow04.job.watch import watch, watch_diff
from flowedu.oneflow04 import deprecated, unittest
from flowedu.oneflow04.deprecated import device_prior_placement, fixed_placement

# chapter 6: several devices
from flowedu.oneflow04 import advanced
from flowedu.oneflow04 import distribute
from flowedu.oneflow04.distribute import hierarchical_parallel_cast, parallel_cast

# chapter 7: data of varying size
from flowedu.core.buffers import TensorBuffer, TensorList
from flowedu.oneflow04.functions.tensor_buffers import (
    gen_tensor_buffer, tensor_buffer_to_list_of_tensors, tensor_buffer_to_tensor,
    tensor_buffer_to_tensor_list, tensor_list_split, tensor_list_to_tensor_buffer, tensor_to_tensor_buffer
)
