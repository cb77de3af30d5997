"""Conversions of arrays and of containers of values."""
from __future__ import annotations

from typing import Any

import numpy as np


def aligned_array(a: np.ndarray) -> np.ndarray:
    """Return a contiguous, aligned array with the same values, as plans require."""
    a = np.asarray(a, order="C")
    return a if a.flags.aligned else a.copy()


def flat(result: Any) -> tuple:
    """Return the values of a front-end function's result as a tuple."""
    if result is None:
        return ()
    return tuple(result) if isinstance(result, (list, tuple)) else (result,)


def shaped_like(result: Any, blobs: list) -> Any:
    """Return the blobs in a container of the type of `result`."""
    if isinstance(result, (list, tuple)):
        return type(result)(blobs)
    return blobs[0] if blobs else None
