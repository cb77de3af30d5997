"""GraphConfig: the switches of one graph (`self.config`). Names as in OneFlow 0.9."""
from __future__ import annotations

from flowedu.blob import dtype as dt
from flowedu.errors import ArgumentError

PASSES = ("simplify", "cse", "dead", "fuse", "update", "fold", "layout", "fold_norm", "inplace", "reuse")


class GraphConfig:
    """Switches of a graph; set them before the first call.

    Attributes: training, whether the graph has an optimizer; accumulation, micro-batches in one call; amp, the dtype of
    enable_amp or None; off, names of passes that are switched off.
    """

    def __init__(self):
        self.training = False
        self.accumulation = 1
        self.amp: dt.dtype | None = None
        self.off: set[str] = set()
        self.zero_stage, self.zero_min_size = 0, 1024
        self.auto_parallel, self.auto_parameters, self.auto_ratio = False, False, 1.0
        self.outputs_buffer_size = 2
        self.accepted: dict[str, object] = {}      # OneFlow's switches that have no meaning here, as they were set

    # ---- what flowedu acts on
    def set_gradient_accumulation_steps(self, value: int) -> None:
        """Cut each input along axis 0 into `value` micro-batches; one update for all of them."""
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ArgumentError("set_gradient_accumulation_steps: value", expected="1, 2, 3, ...", got=repr(value))
        self.accumulation = value

    def enable_amp(self, mode: bool = True, *, dtype: dt.dtype = dt.float16) -> None:
        """Automatic mixed precision. Accepted, and without effect: the kernels of the CPU compute in float32, where
        half precision has nothing to gain (OneFlow's CPU build ignores it, too)."""
        if dtype not in (dt.float16, getattr(dt, "bfloat16", dt.float16)):
            raise ArgumentError("enable_amp: dtype", expected="flow.float16 or flow.bfloat16", got=repr(dtype))
        self.amp = dtype if mode else None

    def disable_pass(self, *names: str) -> None:
        """Switch optimization passes off by name (`graph.report()` lists them). flowedu only."""
        for name in names:
            if name not in PASSES:
                raise ArgumentError("disable_pass: there is no such pass", expected=", ".join(PASSES), got=repr(name))
            self.off.add(name)

    def enable_pass(self, *names: str) -> None:
        self.off.difference_update(names)

    # ---- OneFlow's, accepted
    def allow_fuse_model_update_ops(self, mode: bool = True) -> None:
        """Updates of all parameters are one call already."""
        self.accepted["allow_fuse_model_update_ops"] = mode

    def allow_fuse_add_to_output(self, mode: bool = True) -> None:
        """Chains of elementwise ops are fused by default: see disable_pass("fuse")."""
        self.accepted["allow_fuse_add_to_output"] = mode

    def allow_fuse_cast_scale(self, mode: bool = True) -> None:
        """Chains of elementwise ops are fused by default."""
        self.accepted["allow_fuse_cast_scale"] = mode

    def enable_multi_tensor_update(self, mode: bool = True) -> None:
        """Updates of all parameters are one call already."""
        self.accepted["enable_multi_tensor_update"] = mode

    def enable_fused_model_update_cast(self, mode: bool = True) -> None:
        self.accepted["enable_fused_model_update_cast"] = mode

    def enable_cudnn_conv_heuristic_search_algo(self, mode: bool = True) -> None:
        """There is no cuDNN here."""
        self.accepted["enable_cudnn_conv_heuristic_search_algo"] = mode

    def enable_straighten_algorithm(self, mode: str = "SpeedFirst") -> None:
        """The order of the calls is that of build; "Disable", "SpeedFirst", "MemoryFirst", "OverlapCpuGpu" are accepted."""
        if mode not in ("Disable", "SpeedFirst", "MemoryFirst", "OverlapCpuGpu"):
            raise ArgumentError("enable_straighten_algorithm: mode", got=repr(mode),
                                expected="Disable, SpeedFirst, MemoryFirst or OverlapCpuGpu")
        self.accepted["enable_straighten_algorithm"] = mode

    def enable_compress_memory(self, mode: bool = True) -> None:
        """Memory is planned by default: see disable_pass("reuse")."""
        self.accepted["enable_compress_memory"] = mode

    def set_outputs_buffer_size(self, value: int = 2) -> None:
        """Results are fresh tensors at every call; any size from 1 works."""
        if not isinstance(value, int) or value < 1:
            raise ArgumentError("set_outputs_buffer_size: value", expected="1, 2, 3, ...", got=repr(value))
        self.outputs_buffer_size = value

    def enable_zero(self, mode: bool = True, *, stage: int = 2, shard_min_size: int = 1024,
                    shard_restore_level: int = 1) -> None:
        """ZeRO: parameters that are broadcast along an axis of their placement are split along it, with what the optimizer
        remembers of them, and brought back for their readers (dist/graph/zero.py). After the first call of the graph they
        are split(0). On one device there is nothing to split.

        Args:
            stage: 1 all-reduces gradients, 2 reduce-scatters them, 3 also brings a parameter back for each use anew.
            shard_min_size: parameters with fewer elements stay whole.
            shard_restore_level: accepted, and without effect.
        """
        if stage not in (1, 2, 3):
            raise ArgumentError("enable_zero: stage", expected="1, 2 or 3", got=repr(stage))
        if not isinstance(shard_min_size, int) or shard_min_size < 1:
            raise ArgumentError("enable_zero: shard_min_size", expected="a number of elements, 1 or more",
                                got=repr(shard_min_size))
        self.zero_stage, self.zero_min_size = stage if mode else 0, shard_min_size

    def set_zero_redundancy_optimizer_mode(self, mode: str = "distributed_split") -> None:
        raise ArgumentError("set_zero_redundancy_optimizer_mode was renamed", expected="enable_zero", got=repr(mode),
                            fix="self.config.enable_zero(True, stage=1)")

    def enable_auto_parallel(self, mode: bool = True) -> None:
        """Choose how every op is split for the whole step together (dist/auto), not op by op, so that the fewest
        bytes are moved and little is computed twice. On one device there is nothing to choose."""
        self.auto_parallel = bool(mode)

    def enable_auto_parallel_ignore_user_sbp_config(self, mode: bool = True) -> None:
        """With enable_auto_parallel: choose the sbp of trained parameters, too, which after the first call lie as was
        chosen. (Inputs, and what to_global asks for in build, stay.)"""
        self.auto_parameters = bool(mode)

    def set_auto_parallel_computation_cost_ratio(self, ratio: float = 1.0) -> None:
        """With enable_auto_parallel: how many bytes the work is worth that takes as long as reading an element, or eight
        multiplications. (OneFlow's ratio has another unit.)"""
        if not ratio > 0:
            raise ArgumentError("set_auto_parallel_computation_cost_ratio: ratio", expected="a number above 0",
                                got=repr(ratio))
        self.auto_ratio = float(ratio)

    def set_auto_parallel_wait_time(self, cost: float) -> None:
        """Devices of one machine do not wait for a network."""
        self.accepted["set_auto_parallel_wait_time"] = cost

    def enable_auto_parallel_trunk_algo(self, mode: bool = True) -> None:
        """OneFlow's search in steps; here the whole graph is one problem."""
        self.accepted["enable_auto_parallel_trunk_algo"] = mode

    def enable_auto_parallel_sbp_collector(self, mode: bool = True) -> None:
        """The second step of the search does what this is for: a value brought to a layout once serves all its readers."""
        self.accepted["enable_auto_parallel_sbp_collector"] = mode

    def __repr__(self) -> str:
        return f"(CONFIG:config:GraphConfig(training={self.training}, ))"
