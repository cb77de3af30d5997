"""Samplers, which determine the order of the items of a data set."""
from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence, Sized
from types import GenericAlias
from typing import Any

import numpy as np

from flowedu.errors import ArgumentError
from flowedu.tensor.construction.generator import Generator, default_generator
from flowedu.tensor.construction.random import multinomial, randint, randperm


def draw_seed(generator: Generator | None = None) -> int:
    """Draw a new seed from the generator (default: flow's default generator)."""
    seed, draw = (generator or default_generator).next()
    return int(np.random.SeedSequence([seed, draw]).generate_state(1, np.uint64)[0] >> 1)


def positive(what: str, name: str, value) -> int:
    """Return `value` if it is an int >= 1; otherwise raise ArgumentError (a ValueError)."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not (
            1 <= value <= sys.maxsize):
        raise ArgumentError(f"{what}: {name} should be a positive integer value, but got {name}={value!r}",
                            expected="an int of 1 or more", got=repr(value), fix=f"{name}=1, say")
    return int(value)


class Sampler:
    """Iterable of indices. Define `__iter__()`, and `__len__()` if the length is known.

    Args:
        data_source: accepted for compatibility; default: None.
    """

    __class_getitem__: Any = classmethod(GenericAlias)    # Sampler[int] in annotations

    def __init__(self, data_source: Sized | None = None):
        pass

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__}.__iter__ is not defined: a sampler gives numbers "
                                  f"of items")


class SequentialSampler(Sampler):
    """Sampler of the indices 0, 1, 2, ... in order.

    Args:
        data_source: data set with a length.
    """

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


_PART = 1 << 16


class RandomSampler(Sampler):
    """Sampler with a new random order at every iteration.

    Args:
        data_source: data set with a length.
        replacement: allow repeated items; default: False.
        num_samples: number of indices per iteration; default: len(data_source). Larger numbers concatenate
            several orders.
        generator: generator of the order; default: a new one each time, seeded from flow.manual_seed.
    """

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
                 generator: Generator | None = None):
        if not isinstance(replacement, bool):
            raise ArgumentError("RandomSampler: replacement should be a boolean value, but got "
                                f"replacement={replacement!r}", expected="True or False",
                                got=repr(replacement), fix="replacement=True")
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = (None if num_samples is None else positive("RandomSampler", "num_samples",
                                                                       num_samples))

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, count = len(self.data_source), self.num_samples
        generator = self.generator or Generator().manual_seed(draw_seed())
        if self.replacement:                             # in chunks, because num_samples may be 1e10
            parts = (min(_PART, count - done) for done in range(0, count, _PART))
            return itertools.chain.from_iterable(randint(0, n, (k,), generator=generator).tolist()
                                                 for k in parts)
        orders = (randperm(n, generator=generator).tolist() for _ in itertools.count())
        return itertools.islice(itertools.chain.from_iterable(orders), count) if n else iter(())

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Sampler of given indices, in a new random order at every iteration.

    Args:
        indices: indices.
        generator: generator of the order; default: the one of flow.manual_seed.
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in randperm(len(self.indices), generator=self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Sampler of random indices with given weights.

    Args:
        weights: weight of each index. The weights need not sum to 1.
        num_samples: number of indices per iteration.
        replacement: allow repeated indices; default: True.
        generator: generator of the indices; default: the one of flow.manual_seed.
    """

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True,
                 generator: Generator | None = None):
        from flowedu.tensor import tensor
        self.weights = tensor(np.asarray(weights, np.float64))
        self.num_samples = positive("WeightedRandomSampler", "num_samples", num_samples)
        self.replacement, self.generator = replacement, generator

    def __iter__(self) -> Iterator[int]:
        return iter(multinomial(self.weights, self.num_samples, self.replacement,
                                generator=self.generator).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Sampler of lists of indices.

    Args:
        sampler: iterable of indices.
        batch_size: number of indices per list.
        drop_last: drop an incomplete last list.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        self.sampler: Any = sampler
        self.batch_size = positive("BatchSampler", "batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ArgumentError(f"BatchSampler: drop_last should be a boolean value, but got "
                                f"drop_last={drop_last!r}",
                                expected="True or False", got=repr(drop_last), fix="drop_last=True")
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        rest = iter(self.sampler)
        while batch := list(itertools.islice(rest, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
