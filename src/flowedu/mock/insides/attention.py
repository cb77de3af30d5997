"""nn.attention: selection of the attention kernel. flowedu has only one, so a selection has no effect."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import Enum


class SDPBackend(Enum):
    """PyTorch's kernels."""

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION = -1, 0, 1, 2, 3


@contextlib.contextmanager
def sdpa_kernel(backends=None, set_priority: bool = False) -> Iterator[None]:
    """Nothing is other inside."""
    yield
