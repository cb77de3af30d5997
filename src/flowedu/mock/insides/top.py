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
    """The model: it runs as it is. A compiled network is an nn.Graph, whose gradient comes from its own step."""
    return model if model is not None else lambda f: f


def is_complex(input: Tensor) -> bool:
    """False: there are no complex tensors."""
    return False


def is_storage(obj) -> bool:
    """False: storages are no objects that users see."""
    return False


def _assert(condition, message: str) -> None:
    """AssertionError(message) unless the condition holds."""
    assert condition, message


def set_float32_matmul_precision(precision: str) -> None:
    """Do nothing: products are always computed in float32."""


def get_float32_matmul_precision() -> str:
    """'highest'."""
    return "highest"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Nothing: the same seed and as many threads give the same bits here anyway."""


def are_deterministic_algorithms_enabled() -> bool:
    """True."""
    return True
