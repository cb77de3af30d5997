"""Names at the top of both torch and oneflow that have little or no effect in flowedu."""
from __future__ import annotations

from flowedu import Tensor, dtype
from flowedu.mock.insides.amp import (  # noqa: F401
    autocast,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
)

_dtype = dtype


def compile(model=None, **options):
    """Return the model unchanged. To compile a network, use nn.Graph, which includes the backward pass."""
    return model if model is not None else lambda f: f


def is_complex(input: Tensor) -> bool:
    """Return False: flowedu has no complex tensors."""
    return False


def is_storage(obj) -> bool:
    """Return False: flowedu has no public storage class."""
    return False


def _assert(condition, message: str) -> None:
    """Raise AssertionError(message) if the condition is false."""
    assert condition, message


def set_float32_matmul_precision(precision: str) -> None:
    """Do nothing: products are always computed in float32."""


def get_float32_matmul_precision() -> str:
    """Return 'highest'."""
    return "highest"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Do nothing: results are deterministic for a given seed and number of threads."""


def are_deterministic_algorithms_enabled() -> bool:
    """Return True."""
    return True
