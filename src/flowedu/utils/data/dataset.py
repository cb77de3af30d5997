"""Data sets with indexed items (Dataset) or a stream of items (IterableDataset)."""
from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import GenericAlias
from typing import Any

from flowedu.errors import ArgumentError, AxisError, CheckError
from flowedu.tensor import Tensor, no_grad, tensor
from flowedu.tensor.construction.generator import Generator
from flowedu.tensor.construction.random import randperm


class Dataset:
    """Data set with indexed items. Define `__getitem__(index)` and, for samplers, `__len__()`.

    An optional method `__getitems__(indices)` returns all items of a batch at once.
    """

    __class_getitem__: Any = classmethod(GenericAlias)    # Dataset[int] in annotations
    __len__: Callable[[], int]                            # defined by data sets with a length

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.__getitem__ is not defined: a Dataset gives items "
                                  f"by number")

    def __add__(self, other: Dataset) -> ConcatDataset | ChainDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Data set as a stream of items. Define `__iter__()`.

    In a DataLoader with workers, every worker iterates over its own copy. Split the items according to
    get_worker_info(); otherwise each item is returned once per worker.
    """

    def __iter__(self) -> Iterator:
        raise NotImplementedError(f"{type(self).__name__}.__iter__ is not defined: an IterableDataset gives "
                                  f"an iterator")

    def __add__(self, other: Dataset) -> ChainDataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Data set of tuples. Item i contains t[i] of each tensor t.

    Args:
        *tensors: tensors whose first axes have the same size.
    """

    def __init__(self, *tensors: Tensor):
        sizes = [len(t) for t in tensors]
        if len(set(sizes)) > 1:
            raise CheckError("TensorDataset: Size mismatch between tensors",
                             expected="one size of the first axis",
                             got=", ".join(map(str, sizes)), fix="give every tensor one row per item")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __getbatch__(self, indices: Sequence[int]) -> list[Tensor]:
        """Return default_collate of these items, computed in one step."""
        with no_grad():
            rows = tensor(list(indices))
            return [t[rows] for t in self.tensors]

    def __len__(self) -> int:
        return len(self.tensors[0])


class ConcatDataset(Dataset):
    """Concatenation of several data sets.

    Args:
        datasets: data sets with a length.
    """

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise CheckError("ConcatDataset: datasets should not be an empty iterable",
                             expected="at least one data set", got="none", fix="ConcatDataset([a, b])")
        for d in self.datasets:
            if isinstance(d, IterableDataset):
                raise CheckError("ConcatDataset does not support IterableDataset", got=type(d).__name__,
                                 expected="data sets with items by number", fix="ChainDataset([a, b])")
        self.cumulative_sizes = list(itertools.accumulate(map(len, self.datasets)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        n = len(self)
        if not -n <= index < n:
            raise AxisError("ConcatDataset: the index is out of range", expected=f"-{n} to {n - 1}",
                            got=str(index))
        index %= n
        i = bisect_right(self.cumulative_sizes, index)
        return self.datasets[i][index - (self.cumulative_sizes[i - 1] if i else 0)]


class ChainDataset(IterableDataset):
    """Concatenation of several iterable data sets.

    Args:
        datasets: iterable data sets.
    """

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets: Iterable[Any] = datasets

    def __iter__(self) -> Iterator:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class Subset(Dataset):
    """Part of a data set.

    Args:
        dataset: data set.
        indices: indices of the items.
    """

    def __init__(self, dataset: Dataset, indices: Sequence[int]):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[[self.indices[i] for i in index] if isinstance(index,
                                                                           list) else self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset, lengths: Sequence[int | float],
                 generator: Generator | None = None) -> list[Subset]:
    """Split a data set randomly into subsets.

    Args:
        dataset: data set with a length.
        lengths: numbers of items that sum to len(dataset), or fractions that sum to 1. Fractions are rounded
            down; the remaining items go to the first subsets, one each.
        generator: generator of the order; default: the one of flow.manual_seed.
    """
    n = len(dataset)
    counts: Sequence[Any] = lengths
    if any(isinstance(x, float) for x in lengths):
        if not math.isclose(sum(lengths), 1) or any(not 0 <= x <= 1 for x in lengths):
            raise ArgumentError("random_split: the parts do not add up to 1", expected="1",
                                got=str(sum(lengths)), fix="random_split(dataset, [0.8, 0.2])")
        counts = [math.floor(n * x) for x in lengths]
        for i in range(n - sum(counts)):
            counts[i % len(counts)] += 1
    if sum(counts) != n:
        raise ArgumentError("random_split: Sum of input lengths does not equal the length of the input "
                            "dataset!", expected=str(n), got=f"{list(counts)}, which is {sum(counts)}",
                            fix=f"random_split(dataset, [{n - n // 5}, {n // 5}])")
    order, ends = randperm(n, generator=generator).tolist(), list(itertools.accumulate(counts))
    return [Subset(dataset, order[end - length:end]) for end, length in zip(ends, counts)]
