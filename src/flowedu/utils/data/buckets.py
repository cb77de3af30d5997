"""Batches of items of similar size: padded to the largest of each batch, they are little padding."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from flowedu.errors import ArgumentError, told_value
from flowedu.tensor.generator import Generator
from flowedu.tensor.random import randperm
from flowedu.utils.data.sampler import Sampler, drawn_seed, positive

Size = tuple[int, ...]


def similar(sizes: Sequence[Size], count: int) -> list[list[int]]:
    """Which items go together: lists of `count` indices into sizes (the last may be shorter), each index in one of them.

    Sorted along one axis and cut into bands of several batches, and each band sorted along the other axis: items of a batch
    are then alike along both. With as many bands as there are batches in each, neither axis is favoured.
    """
    batches = -(-len(sizes) // count)
    wide = max(1, round(batches / max(1, math.isqrt(batches)))) * count        # items of a band
    found = []
    for first, second in ((0, -1), (-1, 0)):
        order = sorted(range(len(sizes)), key=lambda i: sizes[i][first])
        bands = [sorted(order[at:at + wide], key=lambda i: sizes[i][second]) for at in range(0, len(order), wide)]
        order = [i for band in bands for i in band]
        found.append([order[at:at + count] for at in range(0, len(order), count)])
    return min(found, key=lambda made: padding(sizes, made))


def padding(sizes: Sequence[Size], batches: Sequence[Sequence[int]]) -> int:
    """How many elements of batches, each padded to its largest along every axis, belong to no item."""
    return sum(len(b) * math.prod(max(axis) for axis in zip(*(sizes[i] for i in b))) - sum(math.prod(sizes[i]) for i in b)
               for b in batches if len(b))


class BucketSampler(Sampler):
    """A batch_sampler for items of different sizes: a batch has items of similar size.

    Args:
        sizes: of each item, (height, width) or a number; any number of axes.
        batch_size: items in a batch.
        shuffle: batches come in a new order at every iteration. What is in a batch stays.
        drop_last: leave out a batch that is shorter.
        generator: default: a new one each time, whose seed follows flow.manual_seed.

    Raises ArgumentError: sizes are not whole numbers of 0 or more, or have different numbers of axes.
    """

    def __init__(self, sizes: Sequence[Size | int], batch_size: int, shuffle: bool = False, drop_last: bool = False,
                 generator: Generator | None = None):
        try:
            self.sizes = [tuple(map(int, s)) if hasattr(s, "__len__") else (int(s),) for s in sizes]
        except (TypeError, ValueError) as error:
            raise ArgumentError("BucketSampler: sizes are no sizes", expected="(height, width) of each item, or a number",
                                got=str(error)) from None
        odd = next((s for s in self.sizes if not s or len(s) != len(self.sizes[0]) or min(s) < 0), None)
        if odd is not None:
            raise ArgumentError("BucketSampler: an item has another kind of size", got=told_value(odd),
                                expected=f"{len(self.sizes[0]) or 1} numbers of 0 or more, as the first has")
        self.batch_size, self.shuffle = positive("BucketSampler", "batch_size", batch_size), shuffle
        self.drop_last, self.generator = drop_last, generator
        self.batches = similar(self.sizes, self.batch_size)
        if drop_last:
            self.batches = [b for b in self.batches if len(b) == self.batch_size]

    def __iter__(self) -> Iterator[list[int]]:
        if not self.shuffle:
            return iter(self.batches)
        generator = self.generator or Generator().manual_seed(drawn_seed())
        return (self.batches[i] for i in randperm(len(self.batches), generator=generator).tolist())

    def __len__(self) -> int:
        return len(self.batches)
