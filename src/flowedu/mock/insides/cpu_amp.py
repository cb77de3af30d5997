"""cpu.amp: older names of torch.amp, without the argument for the device."""
from __future__ import annotations

from flowedu import bfloat16
from flowedu.mock.insides import amp


class autocast(amp.autocast):  # noqa: N801
    """Equivalent of amp.autocast("cpu", ...)."""

    def __init__(self, dtype=bfloat16, enabled: bool = True, cache_enabled: bool = True):
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """Equivalent of amp.GradScaler("cpu", ...)."""

    def __init__(self, init_scale: float = 2.0 ** 16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True):
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
