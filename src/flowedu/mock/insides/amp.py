"""amp: mixed precision that is switched off. What is asked for with enabled=False does nothing, as in PyTorch, and so does
what is meant for a GPU where there is none; what would have to compute in 16 bits is refused when it is made."""
from __future__ import annotations

import warnings
from collections.abc import Callable

from flowedu import Tensor, bfloat16, cuda, float16, float32
from flowedu.errors import ArgumentError, UnsupportedError, user_place

_KINDS = ("cpu", "cuda", "mps", "xpu")


def _off(what: str, device, enabled: bool) -> None:
    """Nothing, where `what` is switched off or PyTorch would switch it off. Raises ArgumentError, UnsupportedError."""
    kind = str(device).partition(":")[0]
    if kind not in _KINDS:
        raise ArgumentError(f"{what}: there is no such kind of device", expected=" or ".join(map(repr, _KINDS)),
                            got=repr(device), fix=f'{what}("cpu", enabled=False)')
    if not enabled:
        return
    if kind != "cpu" and not (kind == "cuda" and cuda.is_available()):
        file, line = user_place() or (__file__, 1)
        warnings.warn_explicit(f"{what}: {kind} is not available, so it is switched off", UserWarning, file, line)
        return
    raise UnsupportedError(f"{what}: layers compute in the dtype of their parameters, there is no mixed precision",
                           expected="enabled=False", got=f"enabled=True on {kind}",
                           fix="enabled=False: the same program, in float32")


class autocast:  # noqa: N801
    """A context, or a decorator, in which all is computed as outside of it."""

    def __init__(self, device_type: str, dtype=None, enabled: bool = True, cache_enabled: bool | None = None):
        self.device, self.fast_dtype = str(device_type), dtype or get_autocast_dtype(device_type)
        if self.fast_dtype is not float32:
            _off("autocast", device_type, enabled)

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *error) -> None:
        pass

    def __call__(self, func: Callable) -> Callable:
        return func


class GradScaler:
    """A scaler of losses that is switched off: it scales by 1, and its step is the optimizer's."""

    def __init__(self, device: str = "cuda", init_scale: float = 2.0 ** 16, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True):
        _off("GradScaler", device, enabled)
        self._numbers = {"growth_factor": growth_factor, "backoff_factor": backoff_factor,
                         "growth_interval": growth_interval}

    def scale(self, outputs: Tensor) -> Tensor:
        """outputs: a tensor, or several."""
        return outputs

    def unscale_(self, optimizer) -> None:
        """Nothing: the gradients are not scaled."""

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step(*args, **kwargs)."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | None = None) -> None:
        """Nothing: the scale stays."""

    def get_scale(self) -> float:
        """1.0."""
        return 1.0

    def get_growth_factor(self) -> float:
        """What was set; it has no effect."""
        return self._numbers["growth_factor"]

    def set_growth_factor(self, new_factor: float) -> None:
        """Kept, without effect."""
        self._numbers["growth_factor"] = new_factor

    def get_backoff_factor(self) -> float:
        """What was set; it has no effect."""
        return self._numbers["backoff_factor"]

    def set_backoff_factor(self, new_factor: float) -> None:
        """Kept, without effect."""
        self._numbers["backoff_factor"] = new_factor

    def get_growth_interval(self) -> int:
        """What was set; it has no effect."""
        return self._numbers["growth_interval"]

    def set_growth_interval(self, new_interval: int) -> None:
        """Kept, without effect."""
        self._numbers["growth_interval"] = new_interval

    def is_enabled(self) -> bool:
        """False."""
        return False

    def state_dict(self) -> dict:
        """{}: a scaler that is switched off has no state."""
        return {}

    def load_state_dict(self, state_dict: dict) -> None:
        """Nothing: a state of a scaler that was on has no meaning here."""


def custom_fwd(fwd: Callable | None = None, *, device_type: str = "cuda", cast_inputs=None) -> Callable:
    """fwd, or a decorator that returns it: outside of autocast there is nothing to cast."""
    return fwd if fwd is not None else lambda f: f


def custom_bwd(bwd: Callable | None = None, *, device_type: str = "cuda") -> Callable:
    """bwd, or a decorator that returns it."""
    return bwd if bwd is not None else lambda f: f


def is_autocast_available(device_type: str) -> bool:
    """False."""
    return False


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """False."""
    return False


is_autocast_cpu_enabled = is_autocast_cache_enabled = is_autocast_enabled


def get_autocast_dtype(device_type: str):
    """What autocast would compute in: float16, on the CPU bfloat16."""
    return bfloat16 if str(device_type).startswith("cpu") else float16


def get_autocast_gpu_dtype():
    """float16."""
    return float16


def get_autocast_cpu_dtype():
    """bfloat16."""
    return bfloat16
