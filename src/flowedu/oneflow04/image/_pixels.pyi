"""Written by `make stubs`: do not edit."""
import numpy as _np
from flowedu.core.eager.tensor import Tensor

class Axis:
    """The result of `resample.taps(source, ...)` for an axis."""
    def __init__(self, *args, **kwargs) -> None: ...
def blend(x: _np.ndarray, y: _np.ndarray, rows: Axis, cols: Axis) -> Tensor:
    """Resize x (H, W, C) into y (height, width, C), each uint8 or float32 and C-contiguous."""
def look_up(x: _np.ndarray, table: _np.ndarray, y: _np.ndarray) -> Tensor: """Compute y[i, j, c] = table[c, x[i, j, c]]."""
def unpack(capsule, y: _np.ndarray, backwards: bool) -> Tensor:
    """Copy the pixels of a Pillow image of 1 or 3 channels into y, uint8 (H, W, C)."""
