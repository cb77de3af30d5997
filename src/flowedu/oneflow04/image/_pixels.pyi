"""Written by `make stubs`: do not edit."""
import numpy as _np
from flowedu.core.eager.tensor import Tensor

class Axis:
    """What `resample.taps(source, ...)` gave for one axis, laid out for `blend`: the taps of an output pixel together."""
    def __init__(self, *args, **kwargs) -> None: ...
def blend(x: _np.ndarray, y: _np.ndarray, rows: Axis, cols: Axis) -> Tensor:
    """Resize x (H, W, C) into y (height, width, C), each uint8 or float32, without gaps."""
def look_up(x: _np.ndarray, table: _np.ndarray, y: _np.ndarray) -> Tensor:
    """y[i, j, c] = table[c, x[i, j, c]]: x uint8 (H, W, C), table (C, 256) and y (H, W, C) float32 or float64."""
def unpack(capsule, y: _np.ndarray, backwards: bool) -> Tensor:
    """y (H, W, C) uint8 = the pixels of a picture of 1 or 3 channels as Pillow shows them by `__arrow_c_array__`: one byte each, or four; backwards: the last channel first."""
