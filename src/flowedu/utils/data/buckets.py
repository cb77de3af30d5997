"""Batches of items with similar sizes, which need little padding."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from flowedu.errors import ArgumentError, format_value
from flowedu.tensor.construction.generator import Generator
from flowedu.tensor.construction.random import randperm
from flowedu.utils.data.sampler import Sampler, draw_seed, positive

Size = tuple[int, ...]


def similar(sizes: Sequence[Size], count: int) -> list[list[int]]:
    """Return lists of `count` indices of items with similar sizes (the last list may be shorter).

    The items are sorted along one axis and cut into bands of several batches. Each band is sorted along the
    other axis, so that the items of a batch are similar along both axes. The number of bands is close to the
    number of batches per band, so neither axis is favored.
    """
    batches = -(-len(sizes) // count)
    width = max(1, round(batches / max(1, math.isqrt(batches)))) * count        # items per band
    candidates = []
    for first, second in ((0, -1), (-1, 0)):
        order = sorted(range(len(sizes)), key=lambda i: sizes[i][first])
        bands = [sorted(order[at:at + width], key=lambda i: sizes[i][second])
                 for at in range(0, len(order), width)]
        order = [i for band in bands for i in band]
        candidates.append([order[at:at + count] for at in range(0, len(order), count)])
    return min(candidates, key=lambda candidate: padding(sizes, candidate))


def padding(sizes: Sequence[Size], batches: Sequence[Sequence[int]]) -> int:
    """Return the number of padding elements if each batch is padded to its largest size along every axis."""
    return sum(len(b) * math.prod(max(axis) for axis in zip(*(sizes[i] for i in b))) - sum(math.prod(sizes[i])
                                                                                           for i in b)
               for b in batches if len(b))


def _as_size(size: Any) -> Size:
    return tuple(map(int, size)) if hasattr(size, "__len__") else (int(size),)


class BucketSampler(Sampler):
    """Batch sampler that groups items of similar size.

    Args:
        sizes: size of each item, a number or a tuple such as (height, width).
        batch_size: number of items in a batch.
        shuffle: reorder the batches at every iteration; default: False. Each batch keeps its items.
        drop_last: drop an incomplete last batch; default: False.
        generator: generator of the order; default: a new one each time, seeded from flow.manual_seed.

    Raises:
        ArgumentError: sizes are not integers >= 0, or have different numbers of axes.
    """

    def __init__(self, sizes: Sequence[Size | int], batch_size: int, shuffle: bool = False,
                 drop_last: bool = False, generator: Generator | None = None):
        try:
            self.sizes = [_as_size(s) for s in sizes]
        except (TypeError, ValueError) as error:
            raise ArgumentError("BucketSampler: sizes are no sizes",
                                expected="(height, width) of each item, or a number",
                                got=str(error)) from None
        odd = next((s for s in self.sizes if not s or len(s) != len(self.sizes[0]) or min(s) < 0), None)
        if odd is not None:
            raise ArgumentError("BucketSampler: an item has another kind of size", got=format_value(odd),
                                expected=f"{len(self.sizes[0]) or 1} numbers of 0 or more, as the first has")
        self.batch_size, self.shuffle = positive("BucketSampler", "batch_size", batch_size), shuffle
        self.drop_last, self.generator = drop_last, generator
        self.batches = similar(self.sizes, self.batch_size)
        if drop_last:
            self.batches = [b for b in self.batches if len(b) == self.batch_size]

    def __iter__(self) -> Iterator[list[int]]:
        if not self.shuffle:
            return iter(self.batches)
        generator = self.generator or Generator().manual_seed(draw_seed())
        return (self.batches[i] for i in randperm(len(self.batches), generator=generator).tolist())

    def __len__(self) -> int:
        return len(self.batches)
