"""flow.cuda: the questions programs ask about GPUs, answered truthfully. This build has none, so seeding all of them,
emptying their cache and waiting for them have nothing to do."""
from __future__ import annotations

from flowedu.core.values.device import usable


def is_available() -> bool:
    """Whether tensors can be put on a GPU: False in this build."""
    return False


def device_count() -> int:
    return 0


def current_device() -> int:
    """The index of the current GPU. Raises DeviceError: there is none."""
    return usable("cuda").index


def get_device_name(device=None) -> str:
    """Raises DeviceError: there is no GPU."""
    return str(usable("cuda" if device is None else device))


def set_device(device) -> None:
    """Raises DeviceError: there is no GPU."""
    usable(f"cuda:{device}" if isinstance(device, int) else device)


def synchronize(device=None) -> None:
    """Waits for nothing."""


def manual_seed(seed: int) -> None:
    """Seeds nothing."""


def manual_seed_all(seed: int) -> None:
    """Seeds nothing."""


def empty_cache() -> None:
    """Frees nothing."""


def memory_allocated(device=None) -> int:
    return 0


def max_memory_allocated(device=None) -> int:
    return 0
