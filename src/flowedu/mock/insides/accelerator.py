"""accelerator: torch's device-independent names for the GPU, if one is available."""
from __future__ import annotations

from flowedu import cuda, device


def is_available() -> bool:
    """Return flow.cuda.is_available()."""
    return cuda.is_available()


def current_accelerator(check_available: bool = False):
    """Return device("cuda") if a GPU is available, else None."""
    return device("cuda") if cuda.is_available() else None


def device_count() -> int:
    """Return the number of GPUs."""
    return cuda.device_count()


def synchronize(device=None) -> None:
    """Wait for the GPU, if one is available."""
    if cuda.is_available():
        cuda.synchronize(device)
