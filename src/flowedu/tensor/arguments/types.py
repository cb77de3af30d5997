"""Types of arguments that many functions of tensors share, for annotations."""
from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import SupportsIndex, TypeAlias

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.sbp.names import placement, sbp
from flowedu.tensor.devices.device import device

Number: TypeAlias = int | float
# One axis or several.
Axes: TypeAlias = int | Sequence[int]
# What `*sizes` takes: f(2, 3), f((2, 3)), or f(shape). A size may be a 0-dim tensor.
Sizes: TypeAlias = int | Sequence[int] | Tensor
# Index of a tensor, or the parts of one.
Index: TypeAlias = SupportsIndex | slice | EllipsisType | Sequence | np.ndarray | Tensor | None
# Name of a device, or number of a GPU.
Device: TypeAlias = str | int | device
Placement: TypeAlias = placement
# One sbp, or one for each axis of the placement's hierarchy.
Sbp: TypeAlias = sbp | Sequence[sbp]
