"""nn.attention: selection of the attention kernel. flowedu has one kernel, so a selection has no effect."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import Enum


class SDPBackend(Enum):
    """Names of PyTorch's attention kernels."""

    ERROR, MATH, FLASH_ATTENTION = -1, 0, 1
    EFFICIENT_ATTENTION, CUDNN_ATTENTION = 2, 3


@contextlib.contextmanager
def sdpa_kernel(backends=None, set_priority: bool = False) -> Iterator[None]:
    """Return a context manager without an effect."""
    yield
