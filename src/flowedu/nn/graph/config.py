"""GraphConfig: the switches of one graph (`self.config`). The names are those of OneFlow 0.9."""
from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from flowedu.core.graph.passes import NAMES as PASSES
from flowedu.core.trace.options import Options
from flowedu.core.values import dtype as dt
from flowedu.core.values import thread_state as ambient
from flowedu.errors import ArgumentError
from flowedu.errors.once import say_once
from flowedu.nn.amp.casts import autocast


class GraphConfig(Options):
    """Options of a graph. After a change of an option, the next call of the graph traces build again."""

    def __setattr__(self, name: str, value) -> None:
        super().__setattr__(name, value)
        ambient.changes += 1

    # ---- settings with an effect in flowedu
    def set_gradient_accumulation_steps(self, value: int) -> None:
        """Cut each input along axis 0 into `value` micro-batches, and update once per batch.

        Args:
            value: number of micro-batches; it must divide the size of the batch.

        Raises:
            ArgumentError: `value` is not a positive integer.
            UnsupportedError: an op combines rows, or depends on their number or position, so that the losses
                of the micro-batches do not determine that of the batch. The first call of the graph raises
                it, with the line of the op.

        Note:
            Build is traced on a micro-batch and on the whole batch. The two traces show which ops treat all
            rows alike. A BatchNorm layer in training normalizes each micro-batch separately, as in an eager
            loop, so its step differs from that of the whole batch. Random numbers are drawn for each
            micro-batch.

        Example:
            >>> graph = flow.nn.Graph.trace(lambda x: x.exp())
            >>> graph.config.set_gradient_accumulation_steps(4)
        """
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ArgumentError("set_gradient_accumulation_steps: value", expected="1, 2, 3, ...",
                                got=repr(value))
        self.accumulation = value

    def enable_amp(self, mode: bool = True, *, dtype: dt.dtype = dt.float16) -> None:
        """Run build in flow.amp.autocast (mixed precision). OneFlow's CPU build ignores this setting."""
        if dtype not in dt.HALVES:
            raise ArgumentError("enable_amp: dtype", expected="flow.float16 or flow.bfloat16",
                                got=repr(dtype), fix="self.config.enable_amp(dtype=flow.bfloat16)")
        self.amp = dtype if mode else None

    def computing(self) -> AbstractContextManager:
        """Return the context manager in which build runs."""
        return nullcontext() if self.amp is None else autocast("cpu", self.amp)

    def disable_pass(self, *names: str) -> None:
        """Switch optimization passes off by name (`graph.report()` lists them). flowedu only."""
        for name in names:
            if name not in PASSES:
                raise ArgumentError("disable_pass: there is no such pass", expected=", ".join(PASSES),
                                    got=repr(name))
            self.off = self.off | {name}

    def enable_pass(self, *names: str) -> None:
        self.off = self.off.difference(names)

    def _switch(self, name: str, mode: bool) -> None:
        self.off = self.off - {name} if mode else self.off | {name}

    @staticmethod
    def _nothing(name: str, why: str) -> None:
        say_once(f"nn.Graph.config.{name}", why, 3)

    def allow_fuse_model_update_ops(self, mode: bool = True) -> None:
        """Allow the pass "update" to merge updates into the ops that compute their gradients."""
        self._switch("update", mode)

    def allow_fuse_add_to_output(self, mode: bool = True) -> None:
        """Allow the pass "fuse" to merge additions into other ops."""
        self._switch("fuse_add", mode)

    def allow_fuse_cast_scale(self, mode: bool = True) -> None:
        """Allow the pass "fuse" to merge casts and multiplications into other ops."""
        self._switch("fuse_scale", mode)

    def enable_multi_tensor_update(self, mode: bool = True) -> None:
        """Update all parameters of a group in one call (True), or each in its own call (False)."""
        self.one_update = bool(mode)

    def enable_compress_memory(self, mode: bool = True) -> None:
        """Allow values of the plan to share memory."""
        self._switch("reuse", mode)

    # ---- OneFlow's settings without an effect: the first call warns
    def enable_fused_model_update_cast(self, mode: bool = True) -> None:
        """Accept the setting without effect; weights have no 16-bit copy for updates to write."""
        if mode:
            self._nothing("enable_fused_model_update_cast", "weights have no copy in half precision")

    def enable_cudnn_conv_heuristic_search_algo(self, mode: bool = True) -> None:
        """Accept the setting without effect; flowedu does not use cuDNN."""
        if mode:
            self._nothing("enable_cudnn_conv_heuristic_search_algo", "there is no cuDNN")

    def enable_straighten_algorithm(self, mode: str = "SpeedFirst") -> None:
        """Accept OneFlow's algorithm names without effect; calls always run in the order of build."""
        if mode not in ("Disable", "SpeedFirst", "MemoryFirst", "OverlapCpuGpu"):
            raise ArgumentError("enable_straighten_algorithm: mode", got=repr(mode),
                                expected="Disable, SpeedFirst, MemoryFirst or OverlapCpuGpu")
        if mode != "Disable":
            self._nothing("enable_straighten_algorithm", "calls have the order in which build makes them")

    def set_outputs_buffer_size(self, value: int = 2) -> None:
        """Accept the setting without effect; every call returns new tensors, not those of a buffer."""
        if not isinstance(value, int) or value < 1:
            raise ArgumentError("set_outputs_buffer_size: value", expected="1, 2, 3, ...", got=repr(value))
        if value != 2:
            self._nothing("set_outputs_buffer_size", "results are fresh tensors at every call")

    def enable_zero(self, mode: bool = True, *, stage: int = 2, shard_min_size: int = 1024,
                    shard_restore_level: int = 1) -> None:
        """Enable ZeRO: split broadcast parameters along an axis of their placement (distributed/zero.py).

        The optimizer states of these parameters are split as well, and ops that read a parameter gather it.
        After the first call of the graph, the parameters are split(0). On one device, ZeRO has no effect.

        Args:
            mode: True to enable it.
            stage: 1 all-reduces gradients, 2 reduce-scatters them, 3 also gathers a parameter for each use.
            shard_min_size: parameters with fewer elements are not split.
            shard_restore_level: 1; other values have no effect and warn once.
        """
        if stage not in (1, 2, 3):
            raise ArgumentError("enable_zero: stage", expected="1, 2 or 3", got=repr(stage))
        if not isinstance(shard_min_size, int) or shard_min_size < 1:
            raise ArgumentError("enable_zero: shard_min_size", expected="a number of elements, 1 or more",
                                got=repr(shard_min_size))
        if shard_restore_level != 1:
            self._nothing("enable_zero(shard_restore_level)",
                          "when a parameter is brought back follows from stage")
        self.zero_stage, self.zero_min_size = stage if mode else 0, shard_min_size

    def set_zero_redundancy_optimizer_mode(self, mode: str = "distributed_split") -> None:
        raise ArgumentError("set_zero_redundancy_optimizer_mode was renamed", expected="enable_zero",
                            got=repr(mode), fix="self.config.enable_zero(True, stage=1)")

    def enable_auto_parallel(self, mode: bool = True) -> None:
        """Choose the splits of all ops together, so that few bytes move (distributed/auto).

        Without this setting, the splits are chosen op by op. On one device it has no effect.
        """
        self.auto_parallel = bool(mode)

    def enable_auto_parallel_ignore_user_sbp_config(self, mode: bool = True) -> None:
        """Let enable_auto_parallel also choose the sbp of trained parameters.

        The parameters keep the chosen sbp after the first call. Inputs, and results of to_global in build,
        keep their own sbp.
        """
        self.auto_parameters = bool(mode)

    def set_auto_parallel_computation_cost_ratio(self, ratio: float = 1.0) -> None:
        """Set the bytes per unit of work for enable_auto_parallel.

        A unit of work is one element read or eight multiplications. OneFlow's ratio has another unit.
        """
        if not ratio > 0:
            raise ArgumentError("set_auto_parallel_computation_cost_ratio: ratio",
                                expected="a number above 0", got=repr(ratio))
        self.auto_ratio = float(ratio)

    def set_auto_parallel_wait_time(self, cost: float) -> None:
        """Accept the setting without effect; devices of one machine do not wait for a network."""
        if cost:
            self._nothing("set_auto_parallel_wait_time", "devices of one machine do not wait for a network")

    def enable_auto_parallel_trunk_algo(self, mode: bool = True) -> None:
        """Accept the setting without effect; flowedu solves the whole graph as one problem."""
        if mode:
            self._nothing("enable_auto_parallel_trunk_algo", "the whole graph is searched as one problem")

    def enable_auto_parallel_sbp_collector(self, mode: bool = True) -> None:
        """Accept the setting without effect; consumers always share one converted value."""
        if mode:
            self._nothing("enable_auto_parallel_sbp_collector",
                          "a value brought to a layout always serves all its readers")

    def __repr__(self) -> str:
        return f"(CONFIG:config:GraphConfig(training={self.training}, ))"
