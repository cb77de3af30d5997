"""Small conversions of arrays, and of the containers that values come in."""
from __future__ import annotations

from typing import Any

import numpy as np


def flat_array(a: np.ndarray) -> np.ndarray:
    """Contiguous and aligned, as plans want it."""
    a = np.asarray(a, order="C")
    return a if a.flags.aligned else a.copy()


def flat(result: Any) -> tuple:
    """The values a front-end function gave, as a tuple."""
    if result is None:
        return ()
    return tuple(result) if isinstance(result, (list, tuple)) else (result,)


def shaped_like(result, blobs: list):
    """The blobs in the container the values came in."""
    if isinstance(result, (list, tuple)):
        return type(result)(blobs)
    return blobs[0] if blobs else None
