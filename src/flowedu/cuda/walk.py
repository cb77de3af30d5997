"""Iteration over the merged axes of several operands, for strided kernels (Walk in view.h)."""
from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from flowedu.cuda.view import MAX_DIM


def joined(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Return (shape, strides of each operand) with fewer axes.

    Axes of size 1 are removed, and adjacent axes are merged if every operand has one stride for both.
    """
    sizes: list[int] = []
    steps: list[list[int]] = []  # for each axis, the stride of each operand
    for n, *axis_steps in zip(shape, *strides):
        if n == 1:
            continue
        if steps and all(a == b * n for a, b in zip(steps[-1], axis_steps)):
            sizes[-1], steps[-1] = sizes[-1] * n, axis_steps
        else:
            sizes.append(n)
            steps.append(axis_steps)
    return sizes or [1], [list(s) for s in zip(*steps)] or [[1] for _ in strides]


def spread(shape: Sequence[int], strides: Sequence[int], first: int, out: Sequence[int]) -> list[int]:
    """Return strides over the axes of `out`: 0 if broadcast. The operand's first axis is axis `first`."""
    result = [0] * len(out)
    for d, (n, s) in enumerate(zip(shape, strides)):
        result[first + d] = s if n != 1 else 0
    return result


def packed(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> bytes:
    """Return the C struct."""
    pad = (0,) * (MAX_DIM - len(shape))
    rows = [n for s in strides for n in (*s, *pad)]
    return struct.pack(f"={2 + MAX_DIM + len(rows)}q", len(shape), math.prod(shape) < 2 ** 31, *shape,
                       *pad, *rows)
