"""flow.data.ofrecord_reader: the records of an OFRecord data set in batches, epoch after epoch, in order or shuffled.

A record passes through three stages, each a generator: the parts of an epoch one after the other, a shuffle buffer, and
the cut into batches, which runs on over the end of an epoch.
"""
from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from flowedu.core.layers.context import current, gen_seed
from flowedu.core.values.dtype import record
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, DataError, FlowError
from flowedu.oneflow04.data.ofrecord import RawRecord, check_parts, part_paths, read_part
from flowedu.oneflow04.random import seed_of
from flowedu.ops.front import front
from flowedu.ops.host import define_host


class RecordBatch:
    """Some records: what the decoders take. They are parsed when the first decoder asks, once for all decoders.

    `batch[i]` is an OFRecord message; `batch.spec` is Spec((N,), flow.record).
    """

    dtype = record
    ndim = 1

    def __init__(self, raw: Sequence[RawRecord]):
        self.raw = tuple(raw)

    @functools.cached_property
    def records(self) -> list:
        return [r.parse() for r in self.raw]

    @property
    def shape(self) -> tuple[int]:
        return (len(self.raw),)

    @property
    def spec(self) -> Spec:
        return Spec(self.shape, record)

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, i: int):
        return self.records[i]

    def __repr__(self) -> str:
        return f"<{len(self)} records, the first at {self.raw[0].where}>" if self.raw else "<no records>"

    def features(self, name: str, what: str) -> Iterator[tuple[RawRecord, str, object]]:
        """For every record: itself, the kind of its feature `name` ("float_list", ...) and the values.

        DataError, naming the record, where it has no such feature.
        """
        for raw, message in zip(self.raw, self.records):
            found = message.feature.get(name)
            kind = found.WhichOneof("kind") if found is not None else None
            if kind is None:
                has = ", ".join(f"{n!r} ({f.WhichOneof('kind')})" for n, f in sorted(message.feature.items()))
                raise DataError(f"{what}: the record at {raw.where} has no feature {name!r}", got=has or "no features",
                                expected=f"a feature {name!r}",
                                fix="blob_name must be a name the data set was written with")
            yield raw, kind, getattr(found, kind).value


def shuffled(records: Iterable, size: int, rng: np.random.Generator) -> Iterator:
    """The same items in another order: each comes from a buffer of `size`, at random, and the next one takes its place.

    The buffer is emptied at the end, so that every item comes exactly once. With a buffer as large as the input every
    order is equally likely; with a smaller one an item can come late, but at most `size` places early.
    """
    records = iter(records)
    buffer = list(itertools.islice(records, size))
    for new in records:
        i = int(rng.integers(len(buffer)))
        yield buffer[i]
        buffer[i] = new
    rng.shuffle(buffer)
    yield from buffer


class RecordReader:
    """Where a reader is in its files. `next(n)` gives the next n records, beginning again after the last one.

    Args: as for `ofrecord_reader`. The order depends on `seed` alone (None: from flow.random.seed, or random).
    """

    def __init__(self, paths: Sequence[str], random_shuffle: bool, shuffle_buffer_size: int, shuffle_after_epoch: bool,
                 seed: int | None):
        self.paths, self.shuffle_parts = list(paths), shuffle_after_epoch
        self.buffer_size = shuffle_buffer_size if random_shuffle else 0
        self.seed = gen_seed() if seed is None and (random_shuffle or shuffle_after_epoch) else seed or 0
        self.lock = threading.Lock()
        self.stream = self.forever()

    def epoch(self, number: int) -> Iterator[RawRecord]:
        """The records of one epoch, each once."""
        paths, rng = self.paths, np.random.default_rng([self.seed, number])
        if self.shuffle_parts and number:
            paths = [paths[i] for i in rng.permutation(len(paths))]
        records = itertools.chain.from_iterable(map(read_part, paths))
        return shuffled(records, self.buffer_size, rng) if self.buffer_size else records

    def forever(self) -> Iterator[RawRecord]:
        for number in itertools.count():
            records = self.epoch(number)
            first = next(records, None)
            if first is None:
                raise DataError(f"ofrecord_reader: there are no records in {', '.join(self.paths)}",
                                expected="at least one record", got="empty files", fix="write the data set again")
            yield first
            yield from records

    def next(self, n: int) -> RecordBatch:
        with self.lock:
            try:
                return RecordBatch(tuple(itertools.islice(self.stream, n)))
            except FlowError:
                self.stream = self.forever()            # a generator that has raised is dead; begin again
                raise


_streams: weakref.WeakValueDictionary[int, RecordReader] = weakref.WeakValueDictionary()
_stream_numbers = itertools.count()


def _check(paths, batch_size, shuffle_buffer_size):
    for name, value in (("batch_size", batch_size), ("shuffle_buffer_size", shuffle_buffer_size)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ArgumentError(f"ofrecord_reader: {name} is not a number of records", expected="an int of 1 or more",
                                got=repr(value), fix=f"{name}=32")
    check_parts(paths)


def _open(paths, random_shuffle, shuffle_buffer_size, shuffle_after_epoch, seed, stream):
    reader = _streams.get(stream)
    if reader is None:
        reader = RecordReader(paths, random_shuffle, shuffle_buffer_size, shuffle_after_epoch, seed)
        if stream is not None:
            _streams[stream] = reader
    return reader


_read = define_host("ofrecord_reader(*, paths, batch_size, random_shuffle, shuffle_buffer_size, shuffle_after_epoch, "
                    "seed, stream) -> out", shape=lambda batch_size: (batch_size,), dtype=lambda: record, check=_check,
                    state=_open, host=lambda state, batch_size: state.next(batch_size),
                    doc="The next records of a data set; calls with the same `stream` number continue one another.")


@front("OFRecord_Reader", "out")
def _reader(seed, **attrs):
    return _read(seed=seed_of(seed) if attrs["random_shuffle"] or attrs["shuffle_after_epoch"] else 0, **attrs)


def ofrecord_reader(ofrecord_dir: str, batch_size: int = 1, data_part_num: int = 1, part_name_prefix: str = "part-",
                    part_name_suffix_length: int = -1, random_shuffle: bool = False, shuffle_buffer_size: int = 1024,
                    shuffle_after_epoch: bool = False, name: str | None = None, *, seed: int | None = None):
    """The next `batch_size` records of the data set in `ofrecord_dir`: a blob of shape (batch_size,), dtype flow.record.

    In a job every run reads on; after the last record it begins again. Outside a job every call with the same arguments
    reads on where the last one stopped, and gives a RecordBatch. On several devices in the mirrored view the devices take
    turns: each gets a batch of its own. (OneFlow 0.2 to 0.4; there each device has its own part files.)

    Args:
        data_part_num, part_name_prefix, part_name_suffix_length: the files are named `<prefix><i>`, i from 0, zero-padded
            to so many digits (-1: not padded).
        random_shuffle: shuffle, through a buffer of `shuffle_buffer_size` records. Unlike OneFlow's, the buffer is
            emptied at the end of an epoch, so that an epoch has every record exactly once.
        shuffle_after_epoch: read the parts in another order from the second epoch on.
        seed: of the shuffling (flowedu only; default: from flow.random.seed).

    Raises DataError for a part that is missing (when the job is compiled) or damaged (when a run reads it).
    """
    paths = tuple(part_paths(ofrecord_dir, data_part_num, part_name_prefix, part_name_suffix_length))
    return _reader(paths=paths, batch_size=batch_size, random_shuffle=bool(random_shuffle),
                   shuffle_buffer_size=shuffle_buffer_size, shuffle_after_epoch=bool(shuffle_after_epoch), seed=seed,
                   stream=next(_stream_numbers) if current().in_job else None, name=name)


def ofrecord_loader(ofrecord_dir: str, batch_size: int = 1, data_part_num: int = 1, part_name_prefix: str = "part-",
                    part_name_suffix_length: int = -1, shuffle: bool = False, shuffle_buffer_size: int = 1024,
                    name: str | None = None):
    """`ofrecord_reader` under its name in OneFlow 0.1."""
    return ofrecord_reader(ofrecord_dir, batch_size, data_part_num, part_name_prefix, part_name_suffix_length, shuffle,
                           shuffle_buffer_size, name=name)
