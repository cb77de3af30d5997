"""types and functional: type aliases, and functions that are also at the top level of torch."""
from __future__ import annotations

import builtins
import os
from collections.abc import Sequence

from flowedu import Size, Tensor, device, dtype  # noqa: F401

_int, _float, _bool = builtins.int, builtins.float, builtins.bool
_dtype, _device = dtype, device
_size = Size | list[int] | tuple[int, ...]
Number = int | float | bool
Device = device | str | int | None
FileLike = str | os.PathLike
_TensorOrTensors = Tensor | Sequence[Tensor]
