"""Modules of torch and oneflow with little or no effect in flowedu, each a table {name: value}.

names.py has their paths: "flowedu.mock.insides.tables:cudnn" is the module of the table "cudnn".
"""
from __future__ import annotations

import contextlib
import types

from flowedu.cuda.backends import cuda
from flowedu.mock.insides.attention import sdpa_kernel
from flowedu.mock.names import VERSIONS


def _flags(**settings):
    """Return a context manager without an effect."""
    return contextlib.nullcontext()


def _disable(fn=None, recursive: bool = True, **options):
    """Return fn, or a decorator that returns its argument."""
    return fn if fn is not None else lambda f: f


def _name_all(names: str, value: object) -> dict[str, object]:
    return dict.fromkeys(names.split(), value)


TABLES: dict[str, dict[str, object]] = {
    "absent": {
        "__doc__": "mps, xpu: devices that flowedu does not support.",
        **_name_all("is_available is_built", lambda: False),
        "device_count": lambda: 0,
        "manual_seed": lambda seed: None,
        **_name_all("manual_seed_all empty_cache synchronize", lambda *args: None)},
    "absent_library": {
        "__doc__": "backends.mkl, mkldnn, openmp: libraries that flowedu does not use. Flags have no effect.",
        **_name_all("enabled deterministic allow_tf32", False),
        "strategy": None,
        "is_available": lambda: False,
        **_name_all("flags set_flags verbose", _flags)},
    "compatible": {
        "__doc__": "compatible: compatible.single_client is oneflow itself, which has the names of OneFlow "
                   "0.4 and 1.0."},
    "compiler": {
        "__doc__": "compiler and _dynamo: torch.compile has no effect in flowedu, so these functions have "
                   "none either.",
        "config": types.SimpleNamespace(suppress_errors=False, cache_size_limit=8, recompile_limit=8,
                                        verbose=False),
        **_name_all("disable allow_in_graph", _disable),
        **_name_all("is_compiling is_dynamo_compiling is_exporting", lambda: False),
        "reset": lambda: None,
        **_name_all("cudagraph_mark_step_begin mark_dynamic mark_static", lambda *args, **kwargs: None)},
    "cpu": {
        "__doc__": "cpu: the device interface of torch.cuda, for the CPU. Calls are complete when they "
                   "return.",
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: "cpu",
        **_name_all("synchronize set_device current_stream", lambda device=None: None),
        "stream": lambda stream: contextlib.nullcontext()},
    "cudnn": {
        "__doc__": "backends.cudnn: settings of a library that flowedu does not use. They have no effect.",
        **_name_all("enabled benchmark deterministic allow_tf32", False),
        "benchmark_limit": 10,
        "is_available": lambda: False,
        "version": lambda: None,
        "flags": _flags},
    "fx": {
        "__doc__": "fx: not supported, except for `wrap`, which has no effect (errors/left_out.py has the "
                   "missing names).",
        "wrap": lambda fn_or_name: fn_or_name},
    "inductor": {
        "__doc__": "_inductor: the compiler of torch.compile, which has no effect in flowedu."},
    "inductor_config": {
        "__doc__": "_inductor.config: settings of a compiler that flowedu does not use. They have no effect.",
        **_name_all("coordinate_descent_tuning epilogue_fusion fx_graph_cache force_fuse_int_mm_with_mul",
                    False),
        "triton": types.SimpleNamespace(unique_kernel_names=False)},
    "nccl": {
        "__doc__": "boxing.nccl: settings of a library that flowedu does not use. They have no effect.",
        **_name_all("""set_fusion_threshold_mbytes set_fusion_max_ops_num allow_fuse_all_reduce
            allow_fuse_reduce allow_fuse_reduce_scatter allow_fuse_broadcast allow_fuse_mixed_ops
            enable_use_buffer_to_fuse_all_reduce set_stream_num enable_all_to_all enable_use_compute_stream
            disable_group_boxing_by_dst_parallel""",
                    lambda value=None: None)},
    "torch_cuda_backend": {
        "__doc__": "backends.cuda: flowedu has only one kernel for attention, so its selection has no "
                   "effect.",
        "matmul": cuda.matmul,
        "preferred_blas_library": cuda.preferred_blas_library,
        "is_built": cuda.is_built,
        "sdpa_kernel": sdpa_kernel,
        **_name_all("""enable_flash_sdp enable_math_sdp enable_mem_efficient_sdp enable_cudnn_sdp
            allow_fp16_bf16_reduction_math_sdp""", lambda enabled: None),
        **_name_all("flash_sdp_enabled mem_efficient_sdp_enabled cudnn_sdp_enabled", lambda: False),
        "math_sdp_enabled": lambda: True},
    "torch_internals": {
        "__doc__": "_C: functions of PyTorch's internals that have no effect in flowedu.",
        "_log_api_usage_once": lambda event: None},
    "version": {
        "__doc__": "version: version information of the mocked torch.",
        "__version__": VERSIONS["torch"],
        **_name_all("cuda hip git_version", None),
        "debug": False},
}


def _make_module(name: str) -> types.ModuleType:
    module = types.ModuleType(f"{__name__}.{name}")
    vars(module).update(TABLES[name])
    return module


MODULES = {name: _make_module(name) for name in TABLES}
