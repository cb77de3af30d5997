"""cuda.amp: older names of torch.amp, without the argument for the device."""
from __future__ import annotations

from flowedu import float16
from flowedu.mock.insides import amp
from flowedu.mock.insides.amp import custom_bwd, custom_fwd  # noqa: F401


class autocast(amp.autocast):  # noqa: N801
    """Equivalent of amp.autocast("cuda", ...)."""

    def __init__(self, enabled: bool = True, dtype=float16, cache_enabled: bool = True):
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """Equivalent of amp.GradScaler("cuda", ...)."""

    def __init__(self, init_scale: float = 2.0 ** 16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True):
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
