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
        self.zero_stage = 0
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
        """ZeRO shards over several devices; on one device there is nothing to shard."""
        if stage not in (1, 2, 3):
            raise ArgumentError("enable_zero: stage", expected="1, 2 or 3", got=repr(stage))
        self.zero_stage = stage if mode else 0

    def set_zero_redundancy_optimizer_mode(self, mode: str = "distributed_split") -> None:
        raise ArgumentError("set_zero_redundancy_optimizer_mode was renamed", expected="enable_zero", got=repr(mode),
                            fix="self.config.enable_zero(True, stage=1)")

    def enable_auto_parallel(self, mode: bool = True) -> None:
        """One device: nothing to choose."""
        self.accepted["enable_auto_parallel"] = mode

    def __repr__(self) -> str:
        return f"(CONFIG:config:GraphConfig(training={self.training}, ))"
