"""Tables of the settings of OneFlow 0.4, as rows of setting_kinds.py.

oneflow04/job/settable.py turns them into methods: `config.train.primary_lr(0.1)`.
tests/structure/test_settings.py tests every row.
"""
from __future__ import annotations

from flowedu.core.values.dtype import HALVES, dtype, float32
from flowedu.oneflow04.job.setting_kinds import (
    REFUSED,
    REQUIRED,
    WARNS,
    Setting,
    ignore,
    refuse,
    retire,
    table,
)

_NO_CUDNN, _NO_NCCL = "there is no cuDNN", "there is no NCCL"
_NO_NET, _NO_QAT = "one machine needs no network", "there is no quantization"
_LEGACY = "WARNING: func_config.train.* has been deprecated. Please replace it by the new optimizer api."

JOB = table(
    Setting("default_data_type", dtype, "Variables and ops take float32 unless told.", does=REFUSED,
            neutral=float32,
            fix='placeholders and flow.get_variable(..., dtype=flow.double) say it one by one'),
    Setting("prefetch", int, "flowedu's own: how many batches a job's data pipeline reads ahead (0: none).",
            least=0),
    Setting("enable_auto_mixed_precision", bool,
            "Products compute in 16 bits, what needs range in float32; variables and their gradients stay "
            "float32 (flow.amp).", True),
    Setting("auto_mixed_precision_data_type", dtype,
            "flowedu's own: the 16 bits of enable_auto_mixed_precision, float16 unless said.",
            choices=HALVES),
    Setting("enable_inplace", bool, "False: no op of the plan writes over its input.", True),
    Setting("enable_reused_mem", bool, "False: every value of the plan has memory of its own.", True),
    Setting("enable_fuse_add_to_output", bool, "False: additions stay ops of their own.", True),
    Setting("enable_fuse_cast_scale", bool, "False: casts and multiplications stay ops of their own.", True),
    Setting("enable_fuse_model_update_ops", bool,
            "False: no update goes into the op that makes its gradient.", True),
    Setting("enable_cudnn_fused_normalization_add_relu", bool, "False: batch norm and relu stay two ops.",
            True),
    Setting("default_initialize_with_snapshot_path", str,
            "Variables start with the values of this checkpoint; those it lacks, with their initializers."),
    Setting("train.num_gradient_accumulation_steps", int,
            "The body runs once for each of that many micro-batches; one update.", least=1),
    [Setting(f"train.{name}", kind, says, notice=_LEGACY) for name, kind, says in (
        ("primary_lr", float, "Learning rate of the optimizer for flow.losses.add_loss."),
        ("secondary_lr", float, 'The same for variables whose model_name is "bias".'),
        ("model_update_conf", dict, 'That optimizer: {"naive_conf": {}}, {"momentum_conf": {"beta": '
         '0.9}}, ...'),
        ("loss_scale_factor", float, "The loss is multiplied, and the gradients divided, by it, unless the "
         "optimizer has a loss scale of its own."))],
    refuse("enable_quantization_aware_training", "there is no quantization"),
    refuse("cudnn_conv_enable_pseudo_half enable_true_half_config_when_conv",
           "convolutions compute in float32"),
    refuse("enable_ssp", "a step always sees the weights of the step before"),
    refuse("tensorrt.use_fp16 tensorrt.use_int8",
           "there is no TensorRT, and nothing is computed in fewer bits"),
    refuse("tensorrt.int8_calibration", "there is no TensorRT", str),
    refuse("indexed_slices_optimizer_conf", "gradients are dense: every row of a table is updated", dict),
    Setting("optimizer_placement_optimization_mode", str, "virtual devices share one memory",
            choices=("non_distributed", "distributed_split"), does=WARNS),
    ignore(int, "optimizer_placement_optimization_threshold", "virtual devices share one memory"),
    ignore(int, "cudnn_buf_limit_mbyte cudnn_conv_force_fwd_algo cudnn_conv_force_bwd_data_algo "
           "cudnn_conv_force_bwd_filter_algo", _NO_CUDNN),
    ignore(int, "concurrency_width", "a plan is one sequence of calls"),
    ignore(bool, "enable_cudnn cudnn_conv_heuristic_search_algo cudnn_conv_use_deterministic_algo_only",
           _NO_CUDNN),
    ignore(bool, "allow_cpu_return_op", "results are always on the CPU"),
    ignore(bool, "enable_non_distributed_optimizer", "virtual devices share one memory"),
    ignore(bool, "prune_parallel_cast_ops prune_cast_to_static_shape_ops prune_amp_white_identity_ops",
           "ops that do nothing are always taken out"),
    ignore(bool, "enable_gradients_stats_aggregation", "batch norm has its statistics in one op"),
    ignore(bool, "do_parallel_cast_before_widening_type_cast", "a cast is where its value is made"),
    ignore(bool, "use_memory_allocation_algorithm_v2 enable_pseudo_chain_merge",
           "memory is planned in one way"),
    ignore(bool, "use_xla_jit use_tensorrt", "there is neither; flowedu's own passes run"),
    ignore(str, "ssp_partition_strategy", "enable_ssp is not there"),
    ignore(dict, "exp_run_conf", "OneFlow 0.4 does nothing with it, either"),
    ignore(bool, "per_channel_weight_quantization symmetric", _NO_QAT, "qat."),
    ignore(str, "target_backend", _NO_QAT, "qat."),
    ignore(float, "moving_min_max_momentum", _NO_QAT, "qat."),
    ignore(int, "moving_min_max_stop_update_after_iters", _NO_QAT, "qat."),
    retire("enable_nccl use_nccl_inter_node_communication use_boxing_v2 enable_inplace_in_reduce_struct "
           "enable_all_reduce_group all_reduce_fp16 disable_all_reduce_sequence enable_keep_header_only "
           "enable_float_compute_for_half_gemm"),
    retire("all_reduce_group_num all_reduce_group_min_mbyte non_distributed_optimizer_group_size_mbyte",
           REQUIRED, int),
    retire("all_reduce_group_size_warmup all_reduce_lazy_ratio", REQUIRED, float),
)

SESSION = table(
    Setting("enable_debug_mode", bool, "Every job writes its plan, and a train job its learning rates, into "
            "a folder of flow.env.log_dir.", True),
    Setting("machine_num", int, "flow.env.machine says which machines there are", least=1, does=WARNS,
            notice="flow.config.machine_num is deprecated: flow.env.machine([...]) sets the machines"),
    Setting("enable_legacy_model_io", bool, "checkpoints have the layout of OneFlow 0.4, and both are read",
            True, does=WARNS, neutral=False),
    ignore(int, "comm_net_worker_num max_mdsave_worker_num compute_thread_pool_size",
           "flow.set_num_threads sets them"),
    ignore(int, "rdma_mem_block_mbyte rdma_recv_msg_buf_mbyte", _NO_NET),
    ignore(int, "reserved_host_mem_mbyte reserved_device_mem_mbyte persistence_buf_byte",
           "memory is taken when needed"),
    ignore(int, "cudnn_buf_limit_mbyte", _NO_CUDNN),
    ignore(bool, "use_rdma", _NO_NET),
    ignore(bool, "thread_enable_local_message_queue", "a plan is one sequence of calls"),
    ignore(bool, "enable_mem_chain_merge", "memory is planned in one way"),
    ignore(bool, "save_downloaded_file_to_local_fs", "files are always local"),
    ignore(bool, "enable_model_io_v2", "checkpoints have the layout of OneFlow 0.4"),
    ignore(bool, "collect_act_event", "there are no actors; job.profile() measures"),
    ignore(bool, "enable_tensor_float_32_compute enable_numa_aware_cuda_malloc_host", "there is no GPU"),
    ignore(bool, "cudnn_conv_heuristic_search_algo cudnn_conv_use_deterministic_algo_only", _NO_CUDNN),
    ignore(bool, "nccl_use_compute_stream disable_group_boxing_by_dst_parallel", _NO_NCCL, default=False),
    ignore(bool, "enable_fusion nccl_fusion_all_reduce nccl_fusion_reduce_scatter nccl_fusion_all_gather "
           "nccl_fusion_reduce nccl_fusion_broadcast nccl_fusion_all_reduce_use_buffer "
           "nccl_enable_all_to_all nccl_enable_mixed_fusion", _NO_NCCL, "collective_boxing."),
    ignore(int, "num_callback_threads nccl_num_streams nccl_fusion_threshold_mb nccl_fusion_max_ops",
           _NO_NCCL, "collective_boxing."),
    ignore(bool, "use_compute_stream enable_all_to_all enable_mixed_fusion fusion_all_reduce_use_buffer",
           _NO_NCCL, "nccl."),
    ignore(int, "num_streams fusion_threshold_mb fusion_max_ops", _NO_NCCL, "nccl."),
)

# settings that switch a pass off when they are False (core/graph/passes.py): {pass: setting}
SWITCHES = {"inplace": "enable_inplace", "reuse": "enable_reused_mem",
           "fuse_add": "enable_fuse_add_to_output",
           "fuse_scale": "enable_fuse_cast_scale", "update": "enable_fuse_model_update_ops",
           "norm_clip": "enable_cudnn_fused_normalization_add_relu"}

ALIASES = {"enable_reuse_mem": "enable_reused_mem", "enable_qat": "enable_quantization_aware_training",
           "cudnn_conv_enable_true_half": "enable_true_half_config_when_conv",
           "enable_cudnn_conv_pseudo_half": "cudnn_conv_enable_pseudo_half",
           "train.optimizer_placement_optimization_mode": "optimizer_placement_optimization_mode",
           "train.optimizer_placement_optimization_threshold": "optimizer_placement_optimization_threshold"}
