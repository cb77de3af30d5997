"""accelerator: a GPU if flowedu has one, under torch's newest names."""
from __future__ import annotations

from flowedu import cuda, device


def is_available() -> bool:
    """Whether there is a GPU (flow.cuda.is_available())."""
    return cuda.is_available()


def current_accelerator(check_available: bool = False):
    """device("cuda") where there is one; None."""
    return device("cuda") if cuda.is_available() else None


def device_count() -> int:
    """How many GPUs there are."""
    return cuda.device_count()


def synchronize(device=None) -> None:
    """Wait for the GPU, where there is one."""
    if cuda.is_available():
        cuda.synchronize(device)
