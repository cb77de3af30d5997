"""amp with PyTorch's interface: flow.amp, disabled with a warning if the device is not available."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps

from flowedu import bfloat16, cuda, float16, float32, is_tensor
from flowedu.errors import ArgumentError, user_place
from flowedu.nn import amp as own
from flowedu.nn.amp import get_autocast_dtype, is_autocast_enabled  # noqa: F401

_KINDS = ("cpu", "cuda", "mps", "xpu")
_SAID: dict[str, dict] = {}                        # {file: warning registry}: one warning per line


def _on(what: str, device, enabled: bool) -> bool:
    """Return True if `what` is enabled on `device`; warn if it is not available. Raises ArgumentError."""
    kind = str(device).partition(":")[0]
    if kind not in _KINDS:
        raise ArgumentError(f"{what}: there is no such kind of device",
                            expected=" or ".join(map(repr, _KINDS)), got=repr(device), fix=f'{what}("cpu")')
    if not enabled or kind == "cpu":
        return bool(enabled)
    if kind != "cuda" or not cuda.is_available():
        file, line = user_place() or (__file__, 1)
        warnings.warn_explicit(f"{what}: {kind} is not available, so it is switched off", UserWarning,
                               file, line, registry=_SAID.setdefault(file, {}))
        return False
    return True


class autocast(own.autocast):  # noqa: N801
    """Context manager or decorator in which layers compute in 16 bits."""

    def __init__(self, device_type: str, dtype=None, enabled: bool = True, cache_enabled: bool | None = None):
        kind = str(device_type).partition(":")[0]
        fast = dtype or (bfloat16 if kind == "cpu" else float16)
        on = fast is not float32 and _on("autocast", device_type, enabled)
        super().__init__(kind if kind in own.casts.KINDS else "cpu", fast, on, cache_enabled)


class GradScaler(own.GradScaler):
    """flow.amp.GradScaler with PyTorch's signature."""

    def __init__(self, device: str = "cuda", init_scale: float = 2.0 ** 16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True):
        super().__init__(init_scale, growth_factor, backoff_factor, growth_interval,
                         _on("GradScaler", device, enabled))


def custom_fwd(fwd: Callable | None = None, *, device_type: str = "cuda", cast_inputs=None) -> Callable:
    """Decorate the forward of an autograd.Function: within autocast, cast its inputs and disable autocast."""
    if fwd is None:
        return lambda f: custom_fwd(f, device_type=device_type, cast_inputs=cast_inputs)
    if cast_inputs is None:
        return fwd

    @wraps(fwd)
    def inside(*args, **kwargs):
        if not is_autocast_enabled():
            return fwd(*args, **kwargs)

        def cast(x):
            return x.to(cast_inputs) if is_tensor(x) and x.is_floating_point() else x

        with own.autocast("cpu", enabled=False):
            return fwd(*map(cast, args), **{k: cast(v) for k, v in kwargs.items()})
    return inside


def custom_bwd(bwd: Callable | None = None, *, device_type: str = "cuda") -> Callable:
    """Return bwd, or a decorator that returns it: the backward pass is never cast."""
    return bwd if bwd is not None else lambda f: f


def is_autocast_available(device_type: str) -> bool:
    """Return True if autocast casts on this device: the CPU, or an available GPU."""
    kind = str(device_type).partition(":")[0]
    return kind == "cpu" or kind == "cuda" and cuda.is_available()


def is_autocast_cpu_enabled() -> bool:
    """Return True within autocast."""
    return is_autocast_enabled()


def is_autocast_cache_enabled() -> bool:
    """Return True: parameters are cast once per block."""
    return True


def get_autocast_gpu_dtype():
    """Return float16."""
    return float16


def get_autocast_cpu_dtype():
    """Return the dtype of autocast: bfloat16, unless a block sets another."""
    return get_autocast_dtype("cpu")
