"""Guard: every public function of flow and every Tensor method has a line in cases.py, or is listed here with
the file that tests it. New names need one of both.
"""
import re
import types
from pathlib import Path

import flowedu as flow

from .cases import CASTS, CREATION, EVERY, OURS

TESTS = Path(__file__).parents[1]
# file: the functions of flow that it tests, which are not eager functions with a NumPy reference
FUNCTIONS = {
    "tensor/test_random.py": "bernoulli get_rng_state initial_seed manual_seed multinomial normal "
    "poisson rand rand_like randint randn randn_like randperm seed set_rng_state",
    "tensor/test_interop.py": "from_dlpack from_numpy get_default_dtype set_default_dtype",
    "tensor/test_autograd_api.py": "grad is_grad_enabled is_inference_mode_enabled",
    "vision/test_ops.py": "nms roi_align",
    "tensor/test_inplace.py": "zero_ zeros_",
    "tensor/test_printing.py": "set_printoptions", "autograd/test_vmap.py": "vmap",
    "tensor/test_attributes.py": "broadcast_add broadcast_div broadcast_mul broadcast_sub "
    "current_global_function_desc device_prior_placement fixed_placement randint_like set_cache image_resize "
                                 "image_target_resize consistent_user_op_module_builder is_floating_point "
    "is_nonzero is_tensor",
    "ops/test_array_ops.py": "acc assign broadcast_like broadcast_to_compatible_with constant_scalar "
    "dynamic_reshape elem_cnt identity_n reshape_like pack reverse slice slice_update slice_v2 unpack "
                             "clip_by_scalar",
    "core/job/test_blobs.py": "clip_by_value constant_like expand_dims convert_oneflow_dtype_to_numpy_dtype "
    "range identity",
    "ops/test_index_ops.py": "batch_gather dim_gather gather_nd scatter_nd tensor_scatter_nd_add "
    "tensor_scatter_nd_update unsorted_batch_segment_sum unsorted_segment_sum unsorted_segment_sum_like",
    "ops/test_losses.py": "combined_margin_loss ctc_loss smooth_l1_loss",
    "oneflow04/test_image_ops.py": "image_batch_align image_decode image_random_crop object_bbox_flip "
    "object_bbox_scale object_segmentation_polygon_flip object_segmentation_polygon_scale "
                                   "object_segmentation_polygon_to_mask",
    "core/test_tensor_buffer.py": "gen_tensor_buffer tensor_buffer_to_list_of_tensors "
    "tensor_buffer_to_tensor tensor_buffer_to_tensor_list tensor_list_split tensor_list_to_tensor_buffer "
                                  "tensor_to_tensor_buffer",
    "core/test_initializers.py": "constant_initializer empty_initializer glorot_normal_initializer "
                                 "glorot_uniform_initializer kaiming_initializer ones_initializer "
                                 "random_normal_initializer random_uniform_initializer truncated_normal "
                                 "truncated_normal_initializer "
                                 "variance_scaling_initializer xavier_normal_initializer "
    "xavier_uniform_initializer zeros_initializer",
    "core/job/test_replay.py": "image_flip image_normalize",
    "oneflow04/test_config.py": "current_machine_id current_resource dtypes",
    "core/test_views.py": "current_scope cast_to_current_logical_view",
    "ops/test_custom_ops.py": "custom_op",
    "oneflow04/test_eager_mode.py": "eager_execution_enabled enable_eager_execution",
    "core/test_storage.py": "empty_cache memory_stats",
    "dist/test_choose.py": "explain", "laws/test_registers.py": "report",
    "core/test_variables.py": "get_all_variables get_variable load_variables",
    "core/job/test_jobs.py": "clear_default_session global_function sync_default_session",
    "saving/test_save_load.py": "load save",
    "dist/test_global_tensors.py": "global_to_global local_to_global to_global to_local",
    "tensor/test_tensor.py": "get_num_threads has_threads set_num_threads",
    "oneflow04/test_schedules.py": "constant",
    "oneflow04/test_distribute.py": "hierarchical_parallel_cast parallel_cast",
    "graph/test_saving.py": "load_graph",
    "core/job/test_watch.py": "watch watch_diff",
    "oneflow04/test_small_ops.py": "amp_white_identity cast_to_static_shape constant_pad2d count_not_finite "
                                   "multi_count_not_finite pad_grad reflection_pad2d replication_pad2d "
    "same_padding sync_dynamic_resize to zero_pad2d",
    "show/test_notebook.py": "show",
    "oneflow04/test_user_op_builder.py": "user_op_builder user_op_module_builder consistent_user_op_builder",
}
METHODS = ({
     "tensor/test_interop.py": "data data_ptr element_size is_contiguous item itemsize nbytes numel "
     "numpy size storage_offset stride tolist untyped_storage",
     "tensor/test_autograd_api.py": "backward grad grad_fn is_inference is_leaf register_hook "
                                    "register_post_accumulate_grad_hook requires_grad retain_grad "
     "retains_grad",
     "tensor/test_devices.py": "cpu cuda device get_device is_complex is_cuda is_floating_point is_pinned "
     "pin_memory type",
     "cuda/test_engine_memory.py": "record_stream",
     "dist/test_spmd.py": "check_meta_consistency placement sbp to_global to_local",
     "tensor/test_random.py": "bernoulli multinomial",
     "tensor/test_written_places.py": "index_reduce put",
     "array_api/test_namespace.py": "to_device",
     "tensor/test_attributes.py": "H is_cpu is_eager is_global is_lazy is_local is_meta is_mkldnn is_mps "
     "is_nested is_quantized is_sparse is_xpu layout "
                                  "ndimension nelement new_empty output_nr to_consistent",
     "tensor/test_tensor.py": "dim dtype ndim shape",
     "dist/test_global_tensors.py": "global_to_global local_to_global",
 })
# Internals of the class: fields of the C part, and methods that other modules call.
INNER = set("address epoch has_memory inference global_layout link node out_index parts peek rare "
            "requires_grad_on refresh_view shares_block spec storage strides symbol tracked uniform".split())


def named() -> set[str]:
    return set(re.findall(r"(?:\.|\b(?=pad\())([A-Za-z_0-9]+)", " ".join(EVERY + OURS + CREATION + CASTS)))


def names_of_table(table: dict) -> set[str]:
    """Return the names of a table, after checking that each occurs in its file."""
    texts = {file: (TESTS / file).read_text(encoding="utf-8") for file in table}
    unknown = [(file, n) for file, names in table.items() for n in names.split()
               if not re.search(rf"\b{n}\b", texts[file])]
    assert not unknown, "these files do not mention these names"
    return {n for names in table.values() for n in names.split()}


def test_every_function_is_tested_or_listed():
    public = {n for n, x in vars(flow).items() if not n.startswith("_") and callable(x)
              and not isinstance(x, (type, types.ModuleType))}
    assert public - named() - names_of_table(FUNCTIONS) == set()


def test_every_method_is_tested_or_listed():
    """test_inplace.py tests the in-place methods."""
    public = {n for n in dir(flow.Tensor) if not n.startswith("_") and not n.endswith("_")}
    assert public - named() - names_of_table(METHODS) - INNER == set()
