"""backends.cuda as a module: which kernel computes attention may be chosen, and there is one."""
from __future__ import annotations

from flowedu.cuda.backends import cuda as _ours
from flowedu.mock.insides.attention import sdpa_kernel  # noqa: F401

matmul, preferred_blas_library, is_built = _ours.matmul, _ours.preferred_blas_library, _ours.is_built


def enable_flash_sdp(enabled: bool) -> None:
    """Nothing: there is one kernel."""


enable_math_sdp = enable_mem_efficient_sdp = enable_cudnn_sdp = enable_flash_sdp
allow_fp16_bf16_reduction_math_sdp = enable_flash_sdp


def flash_sdp_enabled() -> bool:
    """False."""
    return False


mem_efficient_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled


def math_sdp_enabled() -> bool:
    """True: the one there is."""
    return True
