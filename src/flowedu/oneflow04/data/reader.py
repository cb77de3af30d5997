"""flow.data.ofrecord_reader: the records of an OFRecord data set in batches, in order or shuffled.

A record passes through three generators: the parts of an epoch in sequence, a shuffle buffer, and the
division into batches, which continues across the end of an epoch.
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
    """A batch of records, the input of the decoders. The first decoder parses the records for all decoders.

    `batch[i]` is an OFRecord message; `batch.spec` is Spec((N,), flow.record).

    Args:
        raw: the records, a sequence of RawRecord.
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
        """Return an iterator over (record, kind of its feature `name`, values), such as kind "float_list".

        Args:
            name: the name of the feature.
            what: the start of the message of an error.

        Raises:
            DataError: a record does not have the feature.
        """
        for raw, message in zip(self.raw, self.records):
            found = message.feature.get(name)
            kind = found.WhichOneof("kind") if found is not None else None
            if kind is None:
                has = ", ".join(f"{n!r} ({f.WhichOneof('kind')})" for n, f in sorted(message.feature.items()))
                raise DataError(f"{what}: the record at {raw.where} has no feature {name!r}",
                                got=has or "no features", expected=f"a feature {name!r}",
                                fix="blob_name must be a name the data set was written with")
            yield raw, kind, getattr(found, kind).value


def shuffled(records: Iterable, size: int, rng: np.random.Generator) -> Iterator:
    """Return the items in random order, drawn from a buffer of `size` items.

    The next item of the input replaces the drawn item. The buffer is emptied at the end, so that every item
    occurs exactly once. With a buffer as large as the input, every order is equally likely. With a smaller
    buffer, an item can move back by any number of positions, but forward by at most `size` positions.
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
    """The position of a reader in its files.

    `next(n)` returns the next n records and starts again after the last.

    Arguments are as for `ofrecord_reader`. The order depends on `seed` only; None derives it from
    flow.random.seed.
    """

    def __init__(self, paths: Sequence[str], random_shuffle: bool, shuffle_buffer_size: int,
                 shuffle_after_epoch: bool, seed: int | None):
        self.paths, self.shuffle_parts = list(paths), shuffle_after_epoch
        self.buffer_size = shuffle_buffer_size if random_shuffle else 0
        self.seed = gen_seed() if seed is None and (random_shuffle or shuffle_after_epoch) else seed or 0
        self.lock = threading.Lock()
        self.stream = self.forever()

    def epoch(self, number: int) -> Iterator[RawRecord]:
        """Return the records of one epoch, each once."""
        paths, rng = self.paths, np.random.default_rng([self.seed, number])
        if self.shuffle_parts and number:
            paths = [paths[i] for i in rng.permutation(len(paths))]
        records = itertools.chain.from_iterable(map(read_part, paths))
        return shuffled(records, self.buffer_size, rng) if self.buffer_size else records

    def forever(self) -> Iterator[RawRecord]:
        """Return the records of all epochs."""
        for number in itertools.count():
            records = self.epoch(number)
            first = next(records, None)
            if first is None:
                raise DataError(f"ofrecord_reader: there are no records in {', '.join(self.paths)}",
                                expected="at least one record", got="empty files",
                                fix="write the data set again")
            yield first
            yield from records

    def next(self, n: int) -> RecordBatch:
        """Return the next n records."""
        with self.lock:
            try:
                return RecordBatch(tuple(itertools.islice(self.stream, n)))
            except FlowError:
                self.stream = self.forever()            # a generator ends when it raises: start again
                raise


_streams: weakref.WeakValueDictionary[int, RecordReader] = weakref.WeakValueDictionary()
_stream_numbers = itertools.count()


def _check(paths, batch_size, shuffle_buffer_size):
    for name, value in (("batch_size", batch_size), ("shuffle_buffer_size", shuffle_buffer_size)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ArgumentError(f"ofrecord_reader: {name} is not a number of records",
                                expected="an int of 1 or more", got=repr(value), fix=f"{name}=32")
    check_parts(paths)


def _open(paths, random_shuffle, shuffle_buffer_size, shuffle_after_epoch, seed, stream):
    reader = _streams.get(stream)
    if reader is None:
        reader = RecordReader(paths, random_shuffle, shuffle_buffer_size, shuffle_after_epoch, seed)
        if stream is not None:
            _streams[stream] = reader
    return reader


_read = define_host("ofrecord_reader(*, paths, batch_size, random_shuffle, shuffle_buffer_size, "
                    "shuffle_after_epoch, seed, stream) -> out", shape=lambda batch_size: (batch_size,),
                    dtype=lambda: record, check=_check,
                    state=_open, host=lambda state, batch_size: state.next(batch_size),
                    doc="The next records of a data set; calls with the same `stream` share a position.")


@front("OFRecord_Reader", "out")
def _reader(seed, **attrs):
    return _read(seed=seed_of(seed) if attrs["random_shuffle"] or attrs["shuffle_after_epoch"] else 0,
                 **attrs)


def ofrecord_reader(ofrecord_dir: str, batch_size: int = 1, data_part_num: int = 1,
                    part_name_prefix: str = "part-",
                    part_name_suffix_length: int = -1, random_shuffle: bool = False,
                    shuffle_buffer_size: int = 1024,
                    shuffle_after_epoch: bool = False, name: str | None = None, *, seed: int | None = None):
    """Read the next `batch_size` records of a data set.

    In a job each run reads the next batch, and after the last record the reader starts again. Outside a job
    each call with the same arguments continues after the previous one and returns a RecordBatch. On several
    devices in the mirrored view each device gets its own batch in turn; in OneFlow each device has its own
    files.

    Args:
        ofrecord_dir: the folder of the files `<prefix><i>`, with i from 0.
        batch_size: the number of records.
        data_part_num: the number of files.
        part_name_prefix: the start of the names of the files.
        part_name_suffix_length: the number of digits in the names; -1 does not pad.
        random_shuffle: shuffle through a buffer of `shuffle_buffer_size` records. Unlike OneFlow's, the
            buffer is emptied at the end of an epoch, so that an epoch has every record exactly once.
        shuffle_buffer_size: the size of this buffer.
        shuffle_after_epoch: shuffle the files after each epoch.
        seed: the seed of the shuffling; None derives it from flow.random.seed. Only flowedu has this
            argument.

    Returns: a blob of shape (batch_size,) and dtype flow.record.

    Raises:
        DataError: a part is missing (when the job is compiled) or damaged (when a run reads it).
    """
    paths = tuple(part_paths(ofrecord_dir, data_part_num, part_name_prefix, part_name_suffix_length))
    return _reader(paths=paths, batch_size=batch_size, random_shuffle=bool(random_shuffle),
                   shuffle_buffer_size=shuffle_buffer_size, shuffle_after_epoch=bool(shuffle_after_epoch),
                   seed=seed, stream=next(_stream_numbers) if current().in_job else None, name=name)


def ofrecord_loader(ofrecord_dir: str, batch_size: int = 1, data_part_num: int = 1,
                    part_name_prefix: str = "part-",
                    part_name_suffix_length: int = -1, shuffle: bool = False, shuffle_buffer_size: int = 1024,
                    name: str | None = None):
    """Call `ofrecord_reader`. This is the name of that function in OneFlow 0.1.

    Args:
        ofrecord_dir: the folder of the files.
        batch_size: the number of records.
        data_part_num: the number of files.
        part_name_prefix: the start of the names of the files.
        part_name_suffix_length: the number of digits in the names; -1 does not pad.
        shuffle: shuffle through a buffer of `shuffle_buffer_size` records.
        shuffle_buffer_size: the size of this buffer.
    """
    return ofrecord_reader(ofrecord_dir, batch_size, data_part_num, part_name_prefix, part_name_suffix_length,
                           shuffle, shuffle_buffer_size, name=name)
