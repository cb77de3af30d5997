"""Samplers: in which order the items of a data set come."""
from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence, Sized
from types import GenericAlias

import numpy as np

from flowedu.errors import ArgumentError
from flowedu.tensor.generator import Generator, default_generator
from flowedu.tensor.random import multinomial, randint, randperm


def drawn_seed(generator: Generator | None = None) -> int:
    """A seed that follows the generator (default: that of flow.manual_seed), and another one at every call."""
    seed, draw = (generator or default_generator).next()
    return int(np.random.SeedSequence([seed, draw]).generate_state(1, np.uint64)[0] >> 1)


def positive(what: str, name: str, value) -> int:
    """`value` as an int of 1 or more; ArgumentError (a ValueError) otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not (
            1 <= value <= sys.maxsize):
        raise ArgumentError(f"{what}: {name} should be a positive integer value, but got {name}={value!r}",
                            expected="an int of 1 or more", got=repr(value), fix=f"{name}=1, say")
    return int(value)


class Sampler:
    """Numbers of items in some order. Write `__iter__()`, and `__len__()` if it is known."""

    __class_getitem__ = classmethod(GenericAlias)         # Sampler[int], in programs with types

    def __init__(self, data_source: Sized | None = None):
        pass

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(f"{type(self).__name__}.__iter__ is not defined: a sampler gives numbers of items")


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


_PART = 1 << 16


class RandomSampler(Sampler):
    """A new random order at every iteration.

    Args:
        replacement: whether an item may come more than once.
        num_samples: how many in one iteration; default: len(data_source). More than there are: one order after the other.
        generator: default: a new one each time, whose seed follows flow.manual_seed.
    """

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
                 generator: Generator | None = None):
        if not isinstance(replacement, bool):
            raise ArgumentError("RandomSampler: replacement should be a boolean value, but got "
                                f"replacement={replacement!r}", expected="True or False", got=repr(replacement),
                                fix="replacement=True")
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = None if num_samples is None else positive("RandomSampler", "num_samples", num_samples)

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, count = len(self.data_source), self.num_samples
        generator = self.generator or Generator().manual_seed(drawn_seed())
        if self.replacement:                             # in parts: num_samples may be "for ever", 1e10 say
            parts = (min(_PART, count - done) for done in range(0, count, _PART))
            return itertools.chain.from_iterable(randint(0, n, (k,), generator=generator).tolist() for k in parts)
        orders = (randperm(n, generator=generator).tolist() for _ in itertools.count())
        return itertools.islice(itertools.chain.from_iterable(orders), count) if n else iter(())

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """These numbers, in a new random order at every iteration."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        return (self.indices[i] for i in randperm(len(self.indices), generator=self.generator).tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """num_samples numbers, each i with a probability that goes by weights[i]."""

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True,
                 generator: Generator | None = None):
        from flowedu.tensor import tensor
        self.weights = tensor(np.asarray(weights, np.float64))
        self.num_samples = positive("WeightedRandomSampler", "num_samples", num_samples)
        self.replacement, self.generator = replacement, generator

    def __iter__(self) -> Iterator[int]:
        return iter(multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of batch_size numbers of another sampler. drop_last: leave out a last list that is shorter."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        self.sampler, self.batch_size = sampler, positive("BatchSampler", "batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ArgumentError(f"BatchSampler: drop_last should be a boolean value, but got drop_last={drop_last!r}",
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
