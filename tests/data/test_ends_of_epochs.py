"""An epoch ends only where its sampler or iterable dataset ends. StopIteration, GeneratorExit, and similar
exceptions from a user's function are errors, with and without workers; treated as an end, they would silently
drop batches.
"""
import numpy as np
import pytest

from flowedu.errors import DataError
from flowedu.utils.data import DataLoader, Dataset, IterableDataset

SIGNALS = StopIteration, StopAsyncIteration, GeneratorExit


class Items(Dataset):
    """Dataset of 0 to 5 that calls `f` at item 3."""

    def __init__(self, f=None):
        self.f = f

    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i == 3 and self.f is not None:
            self.f()
        return i


class Many(Items):
    def __getitems__(self, indices):
        return [self[i] for i in indices]


class Stream(IterableDataset):
    def __init__(self, begin=None):
        self.begin = begin

    def __iter__(self):
        return self.begin() if self.begin else iter(range(6))


class Pinned:
    def pin_memory(self):
        dry()


class Travelling:
    """Object that calls `dry` when it is unpickled in the main process."""

    def __reduce__(self):
        return dry, ()


class Order:
    def __init__(self, f):
        self.f = f

    def __iter__(self):
        return self.f()

    def __len__(self):
        return 6


def dry():
    return next(iter([]))


def raiser(kind):
    def f(*args):
        raise kind("planted")
    return f


def late(f):
    """Return a collate_fn that calls f at the batch of item 2."""
    return lambda items: f() if 2 in (items if isinstance(items, list) else [items]) else items


PLACES = {
    "an item": lambda f, n: DataLoader(Items(f), 2, num_workers=n),
    "an item without batches": lambda f, n: DataLoader(Items(f), None, num_workers=n),
    "items": lambda f, n: DataLoader(Many(f), 2, num_workers=n),
    "collate_fn": lambda f, n: DataLoader(Items(), 2, collate_fn=late(f), num_workers=n),
    "collate_fn without batches": lambda f, n: DataLoader(Items(), None, collate_fn=late(f), num_workers=n),
    "collate_fn of a stream": lambda f, n: DataLoader(Stream(), 2, collate_fn=late(f), num_workers=n),
    "collate_fn of a stream without batches": lambda f, n: DataLoader(Stream(), None, collate_fn=late(f),
                                                                      num_workers=n),
    "the beginning of a stream": lambda f, n: DataLoader(Stream(f), 2, num_workers=n),
    "the beginning of a sampler": lambda f, n: DataLoader(Items(), None, sampler=Order(f), num_workers=n),
}


def assert_reported_as_data_error(call, kind):
    """Check that the call raises a DataError, a RuntimeError, with the name of `kind` in its message and the
    error as its cause.
    """
    with pytest.raises(DataError, match=kind.__name__) as e:
        call()
    assert isinstance(e.value, RuntimeError) and isinstance(e.value.__cause__, kind) and e.value.fix
    return str(e.value)


@pytest.mark.parametrize("kind", SIGNALS)
@pytest.mark.parametrize("place", PLACES)
def test_an_exception_without_workers_does_not_end_the_epoch(place, kind):
    assert_reported_as_data_error(lambda: list(PLACES[place](raiser(kind), 0)), kind)


@pytest.mark.parametrize("place", PLACES)
def test_an_exception_in_a_worker_does_not_end_the_epoch(place):
    for kind in {StopIteration, SIGNALS[len(place) % 3]}:
        text = assert_reported_as_data_error(lambda kind=kind: list(PLACES[place](raiser(kind), 2)), kind)
        if place != "the beginning of a sampler":                # the sampler runs in the main process
            assert ("worker process" in text and "planted" in text
                    and "raiser" in text), "the worker's traceback"


@pytest.mark.parametrize("workers", [0, 2])
def test_next_on_an_exhausted_iterator(workers):
    """A user function calls next() on an exhausted iterator, as in the original bug report."""
    assert_reported_as_data_error(lambda: list(DataLoader(Items(dry), 2, num_workers=workers)), StopIteration)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", SIGNALS)
def test_a_sampler_behind_batches(kind, workers):
    """BatchSampler is a generator, and Python converts a StopIteration that leaves a generator."""
    with pytest.raises(RuntimeError, match=kind.__name__) as e:
        list(DataLoader(Items(), 2, sampler=Order(raiser(kind)), num_workers=workers))
    assert isinstance(e.value.__cause__, kind)


@pytest.mark.parametrize("kind", SIGNALS)
def test_worker_init_fn(kind):
    assert "worker process" in assert_reported_as_data_error(
        lambda: list(DataLoader(Items(), 2, num_workers=2, worker_init_fn=raiser(kind))), kind)


def test_user_code_in_the_main_process():
    """pin_memory of a batch's objects, and functions that unpickling calls."""
    loader = DataLoader(Items(), 2, num_workers=1, collate_fn=lambda items: Pinned())
    loader.pin_memory = True                                     # without a GPU, the option has no effect
    assert_reported_as_data_error(lambda: list(loader), StopIteration)
    loader = DataLoader(Items(), 2, num_workers=1, collate_fn=lambda items: Travelling())
    assert_reported_as_data_error(lambda: list(loader), StopIteration)


def test_the_other_batches_are_still_returned():
    it = iter(DataLoader(Items(raiser(StopIteration)), 1, num_workers=2))
    assert [next(it).item() for _ in range(3)] == [0, 1, 2]
    assert_reported_as_data_error(lambda: next(it), StopIteration)
    assert [x.item() for x in it] == [4, 5]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_exit_exceptions_end_the_program(kind):
    """KeyboardInterrupt and similar exceptions propagate unchanged; a worker that they end is reported."""
    with pytest.raises(kind):
        list(DataLoader(Items(raiser(kind)), 2))
    with pytest.raises(RuntimeError, match="worker"):
        list(DataLoader(Items(raiser(kind)), 2, num_workers=2))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("size", [None, 1, 4])
def test_normal_ends_of_iteration_still_end_the_epoch(workers, size):
    def batches(dataset):
        return sorted(np.concatenate([np.ravel(b) for b in DataLoader(dataset, size, num_workers=workers)]))
    assert batches(Items()) == list(range(6))
    assert batches(Stream()) == sorted(list(range(6)) * max(workers, 1))
    assert list(DataLoader(Stream(lambda: iter([])), size, num_workers=workers)) == []
