"""Tables of the settings of OneFlow 0.4.

oneflow04/job/config.py turns them into methods: `config.train.primary_lr(0.1)`.

Settings that take effect in flowedu have a text that describes the effect. Settings that would change results
in OneFlow, but cannot do so in flowedu, are rejected unless they request the existing behaviour. Most
settings only tuned OneFlow's runtime. Their values are checked and stored, and the first call of each setting
warns that it has no effect. tests/structure/test_settings.py contains the table.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

from flowedu.core.values.dtype import HALVES, dtype, float32
from flowedu.errors import CheckError, UnsupportedError
from flowedu.errors.nearest import nearest, similar
from flowedu.errors.once import say_once

REQUIRED: Any = object()
_KINDS = {bool: ("True or False", "True"), int: ("an int", "1"), float: ("a number", "0.1"),
          str: ("a str", '"..."'),
          dict: ("a dict", "{}"), dtype: ("an element type such as flow.float", "flow.float")}
ACTS, REFUSED = "acts", "refused"
WARNS, GONE = "warns", "gone"
_NO_CUDNN, _NO_NCCL = "there is no cuDNN", "there is no NCCL"
_NO_NET, _NO_QAT = "one machine needs no network", "there is no quantization"
_LEGACY = "WARNING: func_config.train.* has been deprecated. Please replace it by the new optimizer api."


class UnknownSettingError(CheckError, AttributeError):
    """An unknown setting. It is also an AttributeError, so that hasattr returns False."""


class Setting(NamedTuple):
    """One setting.

    Args:
        name: the name with its groups, "train.primary_lr".
        kind: the exact type of the value; float accepts any real number.
        says: the effect of the setting, or the reason why it has no effect.
        default: the value of a call without an argument; REQUIRED if a value must be given.
        notice: text printed in each call, for deprecated settings.
        least: the smallest accepted value.
        choices: the accepted values; () for all.
        does: ACTS has an effect. REFUSED rejects all values except `neutral`. WARNS warns once that the
            setting has no effect. GONE is for settings without effect in OneFlow 0.4, as `notice` explains.
        neutral: the value that requests the existing behaviour.
        fix: the fix in the error of a rejected setting.
    """

    name: str
    kind: type
    says: str
    default: Any = REQUIRED
    notice: str = ""
    least: float | None = None
    choices: tuple = ()
    does: str = ACTS
    neutral: Any = REQUIRED
    fix: str = ""

    def checked(self, what: str, value: Any) -> Any:
        """Return `value`, or the default if `value` is REQUIRED. Raise CheckError if it is not valid."""
        value = self.default if value is REQUIRED else value
        if value is not REQUIRED and self._fits(value):
            if self.does == REFUSED and value != self.neutral:
                raise UnsupportedError(f"{what}.{self.name}({value!r}): {self.says}", got=repr(value),
                                       fix=self.fix, expected=f"{self.neutral!r}, or no call")
            return float(value) if self.kind is float else value
        words, example = _KINDS[self.kind]
        if self.choices:
            words, example = " or ".join(map(repr, self.choices)), repr(self.choices[0])
        if self.least is not None:
            words, example = f"{words} of {self.least} or more", str(max(self.least, 1))
        raise CheckError(f"{what}.{self.name}: " + ("needs a value" if value is REQUIRED
                                                    else "not a value it takes"),
                         expected=words, got="none" if value is REQUIRED
                         else f"{value!r}, a {type(value).__name__}", fix=f"{what}.{self.name}({example})")

    def _fits(self, value: Any) -> bool:
        if self.kind is float:
            return isinstance(value, Real) and not isinstance(value, bool)
        value_type = type(value)
        return (value_type is self.kind and (self.least is None or value >= self.least)
                and (not self.choices or value in self.choices))


def table(*lines: Setting | Iterable[Setting]) -> dict[str, Setting]:
    """Return {name: setting} of single settings and groups of settings."""
    flat = [s for line in lines for s in ([line] if isinstance(line, Setting) else line)]
    return {s.name: s for s in flat}


def _warns(kind: type, names: str, why: str, group: str = "", default: Any = REQUIRED) -> list[Setting]:
    default = True if kind is bool and default is REQUIRED else default
    return [Setting(group + n, kind, why, default, does=WARNS) for n in names.split()]


def _refused(names: str, why: str, kind: type = bool) -> list[Setting]:
    return [Setting(n, kind, why, True if kind is bool else REQUIRED, does=REFUSED, neutral=kind(),
                    fix="leave it out") for n in names.split()]


def _retire(names: str, default: Any = True, kind: type = bool) -> list[Setting]:
    return [Setting(n, kind, "it did nothing in OneFlow 0.4, either", default,
                    f"'{n}' has been deprecated, has no effect and will be removed in the future.", does=GONE)
            for n in names.split()]


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
    _refused("enable_quantization_aware_training", "there is no quantization"),
    _refused("cudnn_conv_enable_pseudo_half enable_true_half_config_when_conv",
             "convolutions compute in float32"),
    _refused("enable_ssp", "a step always sees the weights of the step before"),
    _refused("tensorrt.use_fp16 tensorrt.use_int8",
             "there is no TensorRT, and nothing is computed in fewer bits"),
    _refused("tensorrt.int8_calibration", "there is no TensorRT", str),
    _refused("indexed_slices_optimizer_conf", "gradients are dense: every row of a table is updated", dict),
    Setting("optimizer_placement_optimization_mode", str, "virtual devices share one memory",
            choices=("non_distributed", "distributed_split"), does=WARNS),
    _warns(int, "optimizer_placement_optimization_threshold", "virtual devices share one memory"),
    _warns(int, "cudnn_buf_limit_mbyte cudnn_conv_force_fwd_algo cudnn_conv_force_bwd_data_algo "
           "cudnn_conv_force_bwd_filter_algo", _NO_CUDNN),
    _warns(int, "concurrency_width", "a plan is one sequence of calls"),
    _warns(bool, "enable_cudnn cudnn_conv_heuristic_search_algo cudnn_conv_use_deterministic_algo_only",
           _NO_CUDNN),
    _warns(bool, "allow_cpu_return_op", "results are always on the CPU"),
    _warns(bool, "enable_non_distributed_optimizer", "virtual devices share one memory"),
    _warns(bool, "prune_parallel_cast_ops prune_cast_to_static_shape_ops prune_amp_white_identity_ops",
           "ops that do nothing are always taken out"),
    _warns(bool, "enable_gradients_stats_aggregation", "batch norm has its statistics in one op"),
    _warns(bool, "do_parallel_cast_before_widening_type_cast", "a cast is where its value is made"),
    _warns(bool, "use_memory_allocation_algorithm_v2 enable_pseudo_chain_merge",
           "memory is planned in one way"),
    _warns(bool, "use_xla_jit use_tensorrt", "there is neither; flowedu's own passes run"),
    _warns(str, "ssp_partition_strategy", "enable_ssp is not there"),
    _warns(dict, "exp_run_conf", "OneFlow 0.4 does nothing with it, either"),
    _warns(bool, "per_channel_weight_quantization symmetric", _NO_QAT, "qat."),
    _warns(str, "target_backend", _NO_QAT, "qat."),
    _warns(float, "moving_min_max_momentum", _NO_QAT, "qat."),
    _warns(int, "moving_min_max_stop_update_after_iters", _NO_QAT, "qat."),
    _retire("enable_nccl use_nccl_inter_node_communication use_boxing_v2 enable_inplace_in_reduce_struct "
          "enable_all_reduce_group all_reduce_fp16 disable_all_reduce_sequence enable_keep_header_only "
          "enable_float_compute_for_half_gemm"),
    _retire("all_reduce_group_num all_reduce_group_min_mbyte non_distributed_optimizer_group_size_mbyte",
            REQUIRED, int),
    _retire("all_reduce_group_size_warmup all_reduce_lazy_ratio", REQUIRED, float),
)

SESSION = table(
    Setting("enable_debug_mode", bool, "Every job writes its plan, and a train job its learning rates, into "
            "a folder of flow.env.log_dir.", True),
    Setting("machine_num", int, "flow.env.machine says which machines there are", least=1, does=WARNS,
            notice="flow.config.machine_num is deprecated: flow.env.machine([...]) sets the machines"),
    Setting("enable_legacy_model_io", bool, "checkpoints have the layout of OneFlow 0.4, and both are read",
            True, does=WARNS, neutral=False),
    _warns(int, "comm_net_worker_num max_mdsave_worker_num compute_thread_pool_size",
           "flow.set_num_threads sets them"),
    _warns(int, "rdma_mem_block_mbyte rdma_recv_msg_buf_mbyte", _NO_NET),
    _warns(int, "reserved_host_mem_mbyte reserved_device_mem_mbyte persistence_buf_byte",
           "memory is taken when needed"),
    _warns(int, "cudnn_buf_limit_mbyte", _NO_CUDNN),
    _warns(bool, "use_rdma", _NO_NET),
    _warns(bool, "thread_enable_local_message_queue", "a plan is one sequence of calls"),
    _warns(bool, "enable_mem_chain_merge", "memory is planned in one way"),
    _warns(bool, "save_downloaded_file_to_local_fs", "files are always local"),
    _warns(bool, "enable_model_io_v2", "checkpoints have the layout of OneFlow 0.4"),
    _warns(bool, "collect_act_event", "there are no actors; job.profile() measures"),
    _warns(bool, "enable_tensor_float_32_compute enable_numa_aware_cuda_malloc_host", "there is no GPU"),
    _warns(bool, "cudnn_conv_heuristic_search_algo cudnn_conv_use_deterministic_algo_only", _NO_CUDNN),
    _warns(bool, "nccl_use_compute_stream disable_group_boxing_by_dst_parallel", _NO_NCCL, default=False),
    _warns(bool, "enable_fusion nccl_fusion_all_reduce nccl_fusion_reduce_scatter nccl_fusion_all_gather "
           "nccl_fusion_reduce nccl_fusion_broadcast nccl_fusion_all_reduce_use_buffer "
           "nccl_enable_all_to_all nccl_enable_mixed_fusion", _NO_NCCL, "collective_boxing."),
    _warns(int, "num_callback_threads nccl_num_streams nccl_fusion_threshold_mb nccl_fusion_max_ops",
           _NO_NCCL, "collective_boxing."),
    _warns(bool, "use_compute_stream enable_all_to_all enable_mixed_fusion fusion_all_reduce_use_buffer",
           _NO_NCCL, "nccl."),
    _warns(int, "num_streams fusion_threshold_mb fusion_max_ops", _NO_NCCL, "nccl."),
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


class Settable:
    """Base class of objects whose methods are the settings of a table.

    Subclasses have `_what`, the name in messages, `_table`, and `_store(name, value)`.
    """

    __slots__ = ()
    _what = ""
    _table: Mapping[str, Setting] = {}

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return _find(self, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *(n.split(".")[0] for n in [*self._table, *ALIASES]
                                             if n in self._table
                                             or ALIASES[n] in self._table)})

    def _call(self, setting: Setting, value: Any):
        value = setting.checked(self._what, value)
        if setting.notice:
            print(setting.notice)
        if setting.does == WARNS and value != setting.neutral:
            say_once(f"{self._what}.{setting.name}", setting.says, 4)
        return self._store(setting.name, value)


class Group:
    """The settings of one group, such as `config.train`."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: Settable, name: str):
        self._owner, self._name = owner, name

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return _find(self._owner, f"{self._name}.{name}")

    def __dir__(self):
        return [n.removeprefix(f"{self._name}.") for n in self._owner._table
                if n.startswith(f"{self._name}.")]

    def __call__(self, *args):
        what = f"{self._owner._what}.{self._name}"
        raise CheckError(f"{what}: a group of settings, not one",
                         expected=", ".join(f"{what}.{n}" for n in dir(self)),
                         got="a call", fix=f"{what}.{dir(self)[0]}(...)")


def _find(owner: Settable, name: str):
    """Return the function that sets `name`, or the group with this name."""
    setting = owner._table.get(ALIASES.get(name, name))
    if setting is not None:
        def setter(value: Any = REQUIRED):
            return owner._call(setting, value)
        setter.__name__, setter.__doc__ = name.split(".")[-1], setting.says
        return setter
    if any(n.startswith(f"{name}.") for n in owner._table):
        return Group(owner, name)
    known = [*owner._table, *(n for n in dir(type(owner)) if not n.startswith("_"))]
    close = nearest(name, known) or similar(name, known)     # names share words, so a weaker match also helps
    raise UnknownSettingError(f"{owner._what} has no setting {name!r}", expected="a setting of OneFlow 0.4" +
                              (f"; the nearest is {close!r}" if close else ""), got=name,
                              fix=f"{owner._what}.{close}(...)" if close else
                              f"dir({owner._what}) lists all settings")


TITLES = {ACTS: "Settings with an effect here", REFUSED: "Refused, for results would depend on them",
          WARNS: "Kept; results do not depend on them, and the first call says so",
          GONE: "Without effect, in OneFlow 0.4 as here"}


def described(settings: Mapping[str, Setting]) -> str:
    """Return a table as text for help()."""
    def line(s: Setting) -> str:
        return (f"    {s.name}({s.kind.__name__}{'' if s.default is REQUIRED else f' = {s.default}'})"
                + (f"\n        {s.says}" if s.does != GONE else ""))

    parts = {title: "\n".join(line(s) for s in settings.values() if s.does == does)
             for does, title in TITLES.items()}
    return "\n\n".join(f"{title}:\n{text}" for title, text in parts.items() if text) + "\n"
