"""Iteration over the merged axes of several operands, for strided kernels (Walk in view.h)."""
from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from flowedu.cuda.view import MAX_DIM


def joined(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """(shape, strides of each operand) without axes of size 1, neighbours that step evenly in all operands made one."""
    sizes: list[int] = []
    steps: list[list[int]] = []                                      # for each axis: a step of each operand
    for n, *own in zip(shape, *strides):
        if n == 1:
            continue
        if steps and all(a == b * n for a, b in zip(steps[-1], own)):
            sizes[-1], steps[-1] = sizes[-1] * n, own
        else:
            sizes.append(n)
            steps.append(own)
    return sizes or [1], [list(s) for s in zip(*steps)] or [[1] for _ in strides]


def spread(shape: Sequence[int], strides: Sequence[int], first: int, out: Sequence[int]) -> list[int]:
    """Strides over the axes of `out` of an operand whose first axis lies under axis `first`; 0 where it is broadcast."""
    own = [0] * len(out)
    for d, (n, s) in enumerate(zip(shape, strides)):
        own[first + d] = s if n != 1 else 0
    return own


def packed(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> bytes:
    """The C struct."""
    pad = (0,) * (MAX_DIM - len(shape))
    rows = [n for s in strides for n in (*s, *pad)]
    return struct.pack(f"={2 + MAX_DIM + len(rows)}q", len(shape), math.prod(shape) < 2 ** 31, *shape, *pad, *rows)
