"""flow.function_config() and flow.config: switches of OneFlow 0.4. Those that only tuned its runtime are stored."""
from __future__ import annotations

from flowedu.errors import CheckError
from flowedu.job.session import default_session, nearest

_FLAGS = """default_data_type default_placement_scope default_logical_view default_distribute_strategy
allow_cpu_return_op enable_auto_mixed_precision prune_parallel_cast_ops prune_cast_to_static_shape_ops enable_inplace
enable_inplace_in_reduce_struct enable_reused_mem enable_reuse_mem enable_fuse_add_to_output enable_fuse_cast_scale
enable_fuse_model_update_ops enable_cudnn cudnn_buf_limit_mbyte enable_cudnn_fused_normalization_add_relu
concurrency_width enable_keep_header_only use_boxing_v2 enable_nccl exp_run_conf""".split()


class FunctionConfig:
    """Settings of one job. Every setting is a call: `config.default_data_type(flow.float)`.

    `without_passes(...)` is flowedu's own: it compiles the job without the passes named.
    """

    def __init__(self):
        self.__dict__.update(values={}, default_initializer=None, off=(), job_type=None)

    def default_initializer_conf(self, initializer) -> None:
        """The initializer of variables that name none."""
        self.default_initializer = initializer

    def without_passes(self, *names: str) -> None:
        """Compile the job without these passes: simplify, cse, dead, fuse, update, inplace, reuse."""
        known = ("simplify", "cse", "dead", "fuse", "update", "inplace", "reuse")
        for n in names:
            if n not in known:
                raise CheckError("without_passes: unknown pass", expected=", ".join(known), got=repr(n),
                                 fix="job.show() lists the passes that ran")
        self.off = names

    @property
    def passes_off(self) -> tuple[str, ...]:
        return tuple(self.off)

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in _FLAGS:
            raise CheckError(f"function_config has no setting {name!r}", expected=nearest(name, _FLAGS).replace(
                "the session's variables", "the settings OneFlow 0.4 documents"), got=name,
                             fix="correct the name; help(flow.FunctionConfig) lists what there is")

        def setter(value=True) -> None:
            self.values[name] = value
        return setter


function_config = ExecutionConfig = FunctionConfig


class _GlobalConfig:
    """flow.config: resources of the session. Calls after the session started do nothing, and say so."""

    def _set(self, name: str, value) -> None:
        session = default_session()
        if session.running:
            print(f"flow.config.{name}: nothing happened because the session is running")
            return
        session.config[name] = value

    def gpu_device_num(self, n: int) -> None:
        """How many devices. Without a GPU they are CPU devices, as in OneFlow's CPU build."""
        print("flow.config.gpu_device_num: no GPU here, so this sets cpu_device_num")
        self.cpu_device_num(n)

    def cpu_device_num(self, n: int) -> None:
        """How many CPU devices the session has (more than one: chapter 6)."""
        if not isinstance(n, int) or n < 1:
            raise CheckError("flow.config.cpu_device_num: not a number of devices", expected="1 or more", got=repr(n),
                             fix="cpu_device_num(1)")
        self._set("cpu_device_num", n)

    def enable_legacy_model_io(self, value: bool = True) -> None:
        """Accepted; checkpoints always have the per-variable layout."""
        self._set("enable_legacy_model_io", value)

    def enable_debug_mode(self, value: bool = True) -> None:
        """Accepted; see `job.show()` for the plan."""
        self._set("enable_debug_mode", value)

    def ctrl_port(self, port: int) -> None:
        """Accepted (the real one is flow.env.ctrl_port)."""
        self._set("ctrl_port", port)


config = _GlobalConfig()
