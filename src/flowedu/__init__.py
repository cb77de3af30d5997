"""flowedu: the ideas of OneFlow in a core of 13,000 lines that you can read. `import flowedu as flow`.

The folders of the package form three groups. `core` and `_kernels/core` are the course. `tensor`, `autograd`,
`nn`, `optim`, `utils`, `distributed`, `distributions`, `vision`, `models`, `mock`, and `oneflow04` contain
the names that users type. The other folders contain the code behind these names. This file collects the
public names. `oneflow04/public.py` has the names of OneFlow 0.4, and `tensor/public.py` those of tensors.
"""
import os as _os
from math import e, inf, nan, pi

# first, because it installs the import finder of the aliases
from flowedu import aliases

from flowedu.fast import kernels as _fast_kernels     # before anything is computed

# OneFlow 0.4: blobs, job functions, layers
from flowedu.oneflow04.public import *
from flowedu.oneflow04.job.call_signature import enable_typing_check as _enable_typing_check

from flowedu.fast.memory import empty_cache, memory_stats, set_cache
from flowedu import errors, nn, ops
from flowedu.errors import JobBuildAndInferError
from flowedu.nn import amp
from flowedu.oneflow04.nn import public as _nn_names

# records and passes that know special kernels
from flowedu.fast import (
    operators as _fast_operators,
    ops as _fast_ops,
    passes as _fast,
    tensors as _fast_tensors,
)
from flowedu.core.extensions import homes as _extension_homes

# tensors and training. Names of both generations are those of tensors
from flowedu.tensor.public import *
from flowedu import autograd, cuda
from flowedu.tensor.interop import einops_backend as _einops_backend
from flowedu.show.notebook import show
from flowedu import models, optim, utils, vision
from flowedu.oneflow04 import names as _names
from flowedu.diagnostics.present import present_all as _present_all
from flowedu.diagnostics.lazy_imports import lazy_import as _lazy_import

# names that are imported on first use
__getattr__, __dir__ = _lazy_import(__name__, {
    # chapters 3 and 4
    "core": "flowedu.core", "data": "flowedu.data", "checkpoint": "flowedu.oneflow04.job.checkpoint",
    "train": "flowedu.oneflow04.job.train",
    "custom": "flowedu.oneflow04.custom", "experimental": "flowedu.oneflow04.experimental",
    **dict.fromkeys(("consistent_user_op_builder", "consistent_user_op_module_builder", "custom_op",
                     "user_op_builder", "user_op_module_builder"), "flowedu.oneflow04.custom"),
    # chapter 5
    "load": "flowedu.saving", "save": "flowedu.saving", "saving": "flowedu.saving",
    "load_graph": "flowedu.saving.graph", "onnx": "flowedu.onnx", "distributions": "flowedu.distributions",
    "array_api": "flowedu.tensor.array_api", "autocast": "flowedu.nn.amp", "fft": "flowedu.tensor.fft",
    "func": "flowedu.autograd.func", "vmap": "flowedu.autograd.func",
    "profiler": "flowedu.utils.profiler",
    "nms": "flowedu.vision.ops.top", "roi_align": "flowedu.vision.ops.top",
    # chapter 6
    "placement": "flowedu.core.sbp.names", "sbp": "flowedu.sbp", "boxing": "flowedu.distributed.boxing",
    "explain": "flowedu.show.explaining", "report": "flowedu.swap.registers",
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
# Internal modules, which are not part of the public names.
_PARTS = {"diagnostics", "aliases", "fast", "oneflow04", "saving"}
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
    construct_tensor="flowedu.tensor.construction.creation:construct",
    bfloat16_array="flowedu.tensor.dtypes.bfloat16:to_ml_dtypes",
    job_signature="flowedu.oneflow04.job.call_signature:job_signature",
    place_buffers="flowedu.fast.arena:place",
    check_pass="flowedu.diagnostics.verify:pass_checks",
    check_plan="flowedu.diagnostics.verify:checked_plan",
    make_executor="flowedu.diagnostics.verify:make_executor",
    python_kernel="flowedu.ops.custom.pykernel:python_call",
    spread_slice="flowedu.ops.slice_part:spread",
    widen_formula="flowedu.ops.halves:widened",
    array_api="flowedu.tensor.array_api",
    op_type_name="flowedu.tensor.gradients.node_names:type_name")

__version__ = "0.1.0"

# a folder of answers to the exercises, which replace functions of the library
if _os.environ.get("FLOWEDU_HOLES"):
    import importlib as _importlib
    _importlib.import_module("flowedu_course.install").install(_os.environ["FLOWEDU_HOLES"])

_present_all()                # last, because it wraps the functions imported above
