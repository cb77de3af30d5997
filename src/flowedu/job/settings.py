"""The settings of OneFlow 0.4: one line each. job/config.py makes calls of them: `config.train.primary_lr(0.1)`.

Most only tuned OneFlow's runtime; their values are checked and kept, and results never depend on them. Those that do
something here say what in their text.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

from flowedu.blob.dtype import dtype
from flowedu.errors import CheckError

REQUIRED: Any = object()
_KINDS = {bool: ("True or False", "True"), int: ("an int", "1"), float: ("a number", "0.1"), str: ("a str", '"..."'),
          dict: ("a dict", "{}"), dtype: ("an element type such as flow.float", "flow.float")}
_STORED = "Stored: results do not depend on it."
_GONE = "Accepted: has no effect, and says so."
_LEGACY = "WARNING: func_config.train.* has been deprecated. Please replace it by the new optimizer api."


class UnknownSettingError(CheckError, AttributeError):
    """There is no setting of this name. (An AttributeError too, so that hasattr gives False.)"""


class Setting(NamedTuple):
    """One setting.

    Args:
        name: with its groups, "train.primary_lr".
        kind: the exact type of the value; for float any real number.
        says: what it does here.
        default: the value of a call without one; REQUIRED when there is none.
        notice: printed at every call; for settings that are going away.
        least: the smallest number it takes.
        choices: the values it takes; () for all.
    """

    name: str
    kind: type
    says: str = _STORED
    default: Any = REQUIRED
    notice: str = ""
    least: float | None = None
    choices: tuple = ()

    @property
    def effective(self) -> bool:
        return self.says is not _STORED and not self.says.startswith("Accepted")

    def checked(self, what: str, value: Any) -> Any:
        """`value`, or the default where it is REQUIRED; raises CheckError when it does not fit."""
        value = self.default if value is REQUIRED else value
        if value is not REQUIRED and self._fits(value):
            return float(value) if self.kind is float else value
        words, example = _KINDS[self.kind]
        if self.choices:
            words, example = " or ".join(map(repr, self.choices)), repr(self.choices[0])
        if self.least is not None:
            words, example = f"{words} of {self.least} or more", str(max(self.least, 1))
        raise CheckError(f"{what}.{self.name}: " + ("needs a value" if value is REQUIRED else "not a value it takes"),
                         expected=words, got="none" if value is REQUIRED else f"{value!r}, a {type(value).__name__}",
                         fix=f"{what}.{self.name}({example})")

    def _fits(self, value: Any) -> bool:
        if self.kind is float:
            return isinstance(value, Real) and not isinstance(value, bool)
        return (type(value) is self.kind and (self.least is None or value >= self.least)
                and (not self.choices or value in self.choices))


def table(*lines: Setting | Iterable[Setting]) -> dict[str, Setting]:
    """{name: setting} of settings, single or in groups."""
    flat = [s for line in lines for s in ([line] if isinstance(line, Setting) else line)]
    return {s.name: s for s in flat}


def _stored(kind: type, names: str, default: Any = REQUIRED, group: str = "") -> list[Setting]:
    return [Setting(group + n, kind, default=True if kind is bool and default is REQUIRED else default)
            for n in names.split()]


def _gone(names: str, default: Any = True, kind: type = bool) -> list[Setting]:
    return [Setting(n, kind, _GONE, default,
                    f"'{n}' has been deprecated, has no effect and will be removed in the future.") for n in names.split()]


JOB = table(
    Setting("default_data_type", dtype, "Accepted: variables and ops take float32 unless told."),
    Setting("prefetch", int, "flowedu's own: how many batches a job's data pipeline reads ahead (0: none).", least=0),
    Setting("enable_inplace", bool, "False: no op of the plan writes over its input.", True),
    Setting("enable_reused_mem", bool, "False: every value of the plan has memory of its own.", True),
    Setting("default_initialize_with_snapshot_path", str, "Variables start with the values of this checkpoint; those it "
            "lacks, with their initializers."),
    Setting("train.num_gradient_accumulation_steps", int, "The body runs once for each of that many micro-batches; one "
            "update.", least=1),
    [Setting(f"train.{name}", kind, says, notice=_LEGACY) for name, kind, says in (
        ("primary_lr", float, "Learning rate of the optimizer for flow.losses.add_loss."),
        ("secondary_lr", float, 'The same for variables whose model_name is "bias".'),
        ("model_update_conf", dict, 'That optimizer: {"naive_conf": {}}, {"momentum_conf": {"beta": 0.9}}, ...'),
        ("loss_scale_factor", float, "The loss is multiplied, and the gradients divided, by it, unless the optimizer "
         "has a loss scale of its own."))],
    Setting("optimizer_placement_optimization_mode", str, choices=("non_distributed", "distributed_split")),
    _stored(int, "optimizer_placement_optimization_threshold cudnn_buf_limit_mbyte cudnn_conv_force_fwd_algo "
            "cudnn_conv_force_bwd_data_algo cudnn_conv_force_bwd_filter_algo concurrency_width"),
    _stored(bool, "allow_cpu_return_op enable_auto_mixed_precision enable_non_distributed_optimizer "
            "prune_parallel_cast_ops prune_cast_to_static_shape_ops prune_amp_white_identity_ops "
            "enable_fuse_add_to_output enable_fuse_cast_scale enable_fuse_model_update_ops "
            "enable_gradients_stats_aggregation enable_cudnn cudnn_conv_heuristic_search_algo "
            "cudnn_conv_use_deterministic_algo_only cudnn_conv_enable_pseudo_half enable_true_half_config_when_conv "
            "enable_cudnn_fused_normalization_add_relu do_parallel_cast_before_widening_type_cast "
            "use_memory_allocation_algorithm_v2 enable_pseudo_chain_merge enable_ssp use_xla_jit use_tensorrt "
            "enable_quantization_aware_training"),
    _stored(str, "ssp_partition_strategy"),
    _stored(dict, "exp_run_conf indexed_slices_optimizer_conf"),
    _stored(bool, "use_fp16 use_int8", group="tensorrt."), _stored(str, "int8_calibration", group="tensorrt."),
    _stored(bool, "per_channel_weight_quantization symmetric", group="qat."), _stored(str, "target_backend", group="qat."),
    _stored(float, "moving_min_max_momentum", group="qat."),
    _stored(int, "moving_min_max_stop_update_after_iters", group="qat."),
    _gone("enable_nccl use_nccl_inter_node_communication use_boxing_v2 enable_inplace_in_reduce_struct "
          "enable_all_reduce_group all_reduce_fp16 disable_all_reduce_sequence enable_keep_header_only "
          "enable_float_compute_for_half_gemm"),
    _gone("all_reduce_group_num all_reduce_group_min_mbyte non_distributed_optimizer_group_size_mbyte", REQUIRED, int),
    _gone("all_reduce_group_size_warmup all_reduce_lazy_ratio", REQUIRED, float),
)

SESSION = table(
    Setting("enable_debug_mode", bool, "Every job writes its plan, and a train job its learning rates, into a folder of "
            "flow.env.log_dir.", True),
    Setting("machine_num", int, "Accepted: flow.env.machine says which machines there are.", least=1,
            notice="flow.config.machine_num is deprecated: flow.env.machine([...]) sets the machines"),
    Setting("enable_legacy_model_io", bool, "Accepted: checkpoints always have the layout of OneFlow 0.4.", True),
    _stored(int, "comm_net_worker_num max_mdsave_worker_num compute_thread_pool_size rdma_mem_block_mbyte "
            "rdma_recv_msg_buf_mbyte reserved_host_mem_mbyte reserved_device_mem_mbyte persistence_buf_byte "
            "cudnn_buf_limit_mbyte"),
    _stored(bool, "use_rdma thread_enable_local_message_queue save_downloaded_file_to_local_fs enable_model_io_v2 "
            "collect_act_event enable_tensor_float_32_compute enable_numa_aware_cuda_malloc_host "
            "cudnn_conv_heuristic_search_algo cudnn_conv_use_deterministic_algo_only"),
    _stored(bool, "nccl_use_compute_stream disable_group_boxing_by_dst_parallel", default=False),
    _stored(bool, "enable_fusion nccl_fusion_all_reduce nccl_fusion_reduce_scatter nccl_fusion_all_gather "
            "nccl_fusion_reduce nccl_fusion_broadcast nccl_fusion_all_reduce_use_buffer nccl_enable_all_to_all "
            "nccl_enable_mixed_fusion", group="collective_boxing."),
    _stored(int, "num_callback_threads nccl_num_streams nccl_fusion_threshold_mb nccl_fusion_max_ops",
            group="collective_boxing."),
    _stored(bool, "use_compute_stream enable_all_to_all enable_mixed_fusion fusion_all_reduce_use_buffer", group="nccl."),
    _stored(int, "num_streams fusion_threshold_mb fusion_max_ops", group="nccl."),
)

ALIASES = {"enable_reuse_mem": "enable_reused_mem", "enable_qat": "enable_quantization_aware_training",
           "cudnn_conv_enable_true_half": "enable_true_half_config_when_conv",
           "enable_cudnn_conv_pseudo_half": "cudnn_conv_enable_pseudo_half",
           "train.optimizer_placement_optimization_mode": "optimizer_placement_optimization_mode",
           "train.optimizer_placement_optimization_threshold": "optimizer_placement_optimization_threshold"}


class Settable:
    """An object whose attributes are the calls of a table's settings. Subclasses have `_what`, its name in messages,
    `_table`, and `_store(name, value)`."""

    __slots__ = ()
    _what = ""
    _table: Mapping[str, Setting] = {}

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return _find(self, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *(n.split(".")[0] for n in [*self._table, *ALIASES] if n in self._table
                                             or ALIASES[n] in self._table)})

    def _call(self, setting: Setting, value: Any):
        if setting.notice:
            print(setting.notice)
        return self._store(setting.name, setting.checked(self._what, value))


class Group:
    """The settings that begin with one word: `config.train`."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: Settable, name: str):
        self._owner, self._name = owner, name

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return _find(self._owner, f"{self._name}.{name}")

    def __dir__(self):
        return [n.removeprefix(f"{self._name}.") for n in self._owner._table if n.startswith(f"{self._name}.")]

    def __call__(self, *args):
        what = f"{self._owner._what}.{self._name}"
        raise CheckError(f"{what}: a group of settings, not one", expected=", ".join(f"{what}.{n}" for n in dir(self)),
                         got="a call", fix=f"{what}.{dir(self)[0]}(...)")


def _find(owner: Settable, name: str):
    """The function that sets `name`, or the group of that name."""
    setting = owner._table.get(ALIASES.get(name, name))
    if setting is not None:
        def setter(value: Any = REQUIRED):
            return owner._call(setting, value)
        setter.__name__, setter.__doc__ = name.split(".")[-1], setting.says
        return setter
    if any(n.startswith(f"{name}.") for n in owner._table):
        return Group(owner, name)
    known = [*owner._table, *(n for n in dir(type(owner)) if not n.startswith("_"))]
    import difflib
    close = difflib.get_close_matches(name, known, 1, 0.5)
    raise UnknownSettingError(f"{owner._what} has no setting {name!r}", expected="a setting of OneFlow 0.4" +
                              (f"; the nearest is {close[0]!r}" if close else ""), got=name,
                              fix=f"{owner._what}.{close[0]}(...)" if close else
                              f"dir({owner._what}) lists all settings")


def described(settings: Mapping[str, Setting]) -> str:
    """The table as text for help(): what does something here, then what is only stored, then what is gone."""
    def line(s: Setting) -> str:
        return f"    {s.name}({s.kind.__name__}{'' if s.default is REQUIRED else f' = {s.default}'})"

    works = "\n".join(f"{line(s)}\n        {s.says}" for s in settings.values() if s.effective)
    stored = "\n".join(line(s) for s in settings.values() if s.says is _STORED)
    rest = "\n".join(f"{line(s)}\n        {s.says}" for s in settings.values() if s.says.startswith("Accepted")
                     and s.says is not _GONE)
    gone = "\n".join(line(s) for s in settings.values() if s.says is _GONE)
    parts = {"Settings with an effect here": works, "Stored; results do not depend on them": stored, "Accepted": rest,
             "Without effect, in OneFlow 0.4 as here": gone}
    return "\n\n".join(f"{title}:\n{text}" for title, text in parts.items() if text) + "\n"
