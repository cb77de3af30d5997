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

# chapter 2: ops and gradients
from flowedu import ops
from flowedu.ops.core import get_num_threads, has_threads, set_num_threads
from flowedu.tensor import Tensor, empty, from_numpy, full, grad, no_grad, tensor
from flowedu import math
from flowedu.array_ops import (
    cast, concat, constant, constant_like, expand_dims, flatten, gather, identity, one_hot, ones, ones_like, reshape, slice,
    squeeze, stack, transpose, where, zeros, zeros_like)
from flowedu.math import clip_by_value, clip_by_value as clamp, clip_by_value as clip, matmul

# chapter 3: variables, layers, optimizers
from flowedu import layers, nn, optimizer, random, regularizers
from flowedu.initializers import (
    constant_initializer, empty_initializer, glorot_normal_initializer, glorot_uniform_initializer, kaiming_initializer,
    ones_initializer, random_normal_initializer, random_uniform_initializer, truncated_normal,
    truncated_normal_initializer, variance_scaling_initializer, xavier_normal_initializer, xavier_uniform_initializer,
    zeros_initializer)
from flowedu.variables import get_variable

# chapter 4: job functions
from flowedu import data
from flowedu.job import checkpoint, scope
from flowedu.job.blob import ConsistentBlob, LocalBlob
from flowedu.job.config import ExecutionConfig, FunctionConfig, config, function_config
from flowedu.job.function import global_function
from flowedu.job.session import clear_default_session, get_all_variables, load_variables, sync_default_session
from flowedu.job.watch import watch, watch_diff

float = float32
double = float64
half = float16
int = int32
long = int64

__version__ = "0.1.0"
