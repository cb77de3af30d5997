"""flow.data.ofrecord_reader: batches of records, in order or shuffled, outside and inside of jobs."""
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from common import fresh_session, refused, write_numbered_records  # noqa: F401
from flowedu.data.ofrecord import part_paths
from flowedu.data.reader import RecordReader, shuffled
from flowedu.errors import ArgumentError, DataError
from flowedu.oneflow04.random import seed_of
from flowedu.ops.host import forget_states


@pytest.fixture(autouse=True)
def fresh_readers():
    forget_states()


def read_indices(batch):
    return [r.feature["i"].int32_list.value[0] for r in batch.records]


# ---- the reader
# ----------------------------------------------------------------------------------------------------

def test_batches_continue_across_the_end_of_an_epoch(tmp_path):
    write_numbered_records(tmp_path, 5)
    found = [read_indices(flow.data.ofrecord_reader(tmp_path, 2)) for _ in range(6)]
    assert found == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4], [0, 1]]
    # Different arguments create another reader; a batch may span several epochs.
    assert read_indices(flow.data.ofrecord_reader(tmp_path, 7)) == [0, 1, 2, 3, 4, 0, 1]


def test_a_batch_of_records_has_a_spec(tmp_path):
    batch = flow.data.ofrecord_reader(write_numbered_records(tmp_path, 3), 3)
    assert (batch.spec == flow.core.values.spec.Spec((3,), flow.record) and batch.shape == (3,)
            and len(batch) == 3)
    assert batch[2].feature["i"].int32_list.value[0] == 2 and "part-0" in repr(batch)


def epochs(folder, count, n, parts=1, size=1024, after=False, seed=1):
    reader = RecordReader(part_paths(folder, parts), size > 0, size, after, seed)
    return [read_indices(reader.next(count)) for _ in range(n)]


@pytest.mark.parametrize("size", [1, 3, 10, 100])
def test_every_epoch_is_a_permutation(tmp_path, size):
    found = epochs(write_numbered_records(tmp_path, 20, 2), 20, 4, 2, size)
    assert all(sorted(e) == list(range(20)) for e in found)
    if size > 1:
        assert len({tuple(e) for e in found}) == 4
    for e in found:                 # the parts are read in order, so item i is at position i of the input
        places = [(*range(0, 20, 2), *range(1, 20, 2)).index(i) for i in e]
        assert all(place < at + size for at, place in enumerate(places))


def test_shuffling_follows_the_seed(tmp_path):
    write_numbered_records(tmp_path, 30, 3)
    assert epochs(tmp_path, 30, 3, 3) == epochs(tmp_path, 30, 3, 3) != epochs(tmp_path, 30, 3, 3, seed=2)

    def read(**seed):
        return read_indices(flow.data.ofrecord_reader(tmp_path, 30, 3, random_shuffle=True, **seed))

    flow.random.seed(5)
    first = read()
    forget_states()
    flow.random.seed(5)
    assert read() == first and sorted(first) == list(range(30))
    assert read(seed=3) != read(seed=4)


def test_the_parts_are_shuffled_from_the_second_epoch_on(tmp_path):
    found = epochs(write_numbered_records(tmp_path, 8, 8), 8, 6, 8, 0, after=True)
    assert found[0] == list(range(8)) and all(sorted(e) == list(range(8)) for e in found)
    assert len({tuple(e) for e in found}) == 6
    assert epochs(tmp_path, 8, 6, 8, 0, after=True) == found


@given(st.lists(st.integers(), max_size=30), st.integers(1, 40), st.integers(0, 100))
def test_a_shuffle_buffer_loses_nothing(items, size, seed):
    assert sorted(shuffled(items, size, np.random.default_rng(seed))) == sorted(items)


def test_a_buffer_as_large_as_the_input_makes_every_order_equally_likely():
    rng = np.random.default_rng(0)
    orders = [tuple(shuffled(range(3), 3, rng)) for _ in range(6000)]
    counts = [orders.count(o) for o in set(orders)]
    assert len(counts) == 6 and all(abs(c - 1000) < 150 for c in counts)      # 5 standard deviations


def test_invalid_arguments_of_the_reader_are_refused(tmp_path):
    write_numbered_records(tmp_path, 3, 2)
    with refused(DataError, "part-2", "data_part_num", "part-0, part-1"):
        flow.data.ofrecord_reader(tmp_path, 1, 3)
    with refused(DataError, "no such folder"):
        flow.data.ofrecord_reader(tmp_path / "nowhere", 1)
    for wrong in (0, -1, 1.5, True, "8"):
        with refused(ArgumentError, "batch_size"):
            flow.data.ofrecord_reader(tmp_path, wrong)
    with refused(ArgumentError, "shuffle_buffer_size"):
        flow.data.ofrecord_reader(tmp_path, 1, random_shuffle=True, shuffle_buffer_size=0)
    (tmp_path / "part-0").write_bytes(b"")
    with refused(DataError, "no records"):
        flow.data.ofrecord_reader(tmp_path, 1)


def test_a_reader_continues_after_an_error(tmp_path):
    path = Path(write_numbered_records(tmp_path, 4)) / "part-0"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    reader = RecordReader([str(path)], False, 1, False, 0)
    for _ in range(2):
        assert read_indices(reader.next(2)) == [0, 1]
        with pytest.raises(DataError, match="cut off"):
            reader.next(2)
    path.write_bytes(whole)
    assert read_indices(reader.next(4)) == [0, 1, 2, 3]


# ---- in jobs
# -------------------------------------------------------------------------------------------------------

def read_job(folder, batch, type="predict", config=None, **options):
    @flow.global_function(type, config)
    def read() -> tp.Numpy:
        records = flow.data.ofrecord_reader(folder, batch, name="reader", **options)
        assert records.shape == (batch,) and records.dtype is flow.record and records.op_name == "reader"
        return flow.data.OFRecordRawDecoder(records, "i", (), flow.int32)

    return read


def test_every_run_of_a_job_reads_on(tmp_path):
    read = read_job(write_numbered_records(tmp_path, 5), 2)
    assert [read().tolist() for _ in range(4)] == [[0, 1], [2, 3], [4, 0], [1, 2]]


def test_two_readers_of_a_session_are_independent(tmp_path):
    write_numbered_records(tmp_path, 6)

    @flow.global_function()
    def pair() -> tuple[tp.Numpy, tp.Numpy]:
        a, b = (flow.data.ofrecord_reader(tmp_path, 2) for _ in range(2))
        return tuple(flow.data.OFRecordRawDecoder(x, "i", (), flow.int32) for x in (a, b))

    @flow.global_function()
    def other() -> tp.Numpy:
        return flow.data.OFRecordRawDecoder(flow.data.ofrecord_reader(tmp_path, 2), "i", (), flow.int32)

    assert [[x.tolist() for x in pair()] for _ in range(2)] == [[[0, 1]] * 2, [[2, 3]] * 2]
    assert other().tolist() == [0, 1]


def test_a_job_shuffles_by_its_seed(tmp_path):
    write_numbered_records(tmp_path, 12)

    def epochs():
        flow.clear_default_session()
        flow.random.seed(3)
        read = read_job(tmp_path, 4, random_shuffle=True)
        return [read().tolist() for _ in range(6)]

    first = epochs()
    assert first == epochs()
    assert (all(sorted(sum(e, [])) == list(range(12)) for e in (first[:3], first[3:]))
            and first[:3] != first[3:])


def test_devices_of_the_mirrored_view_take_turns(tmp_path):
    write_numbered_records(tmp_path, 8)
    flow.config.cpu_device_num(2)
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())
    read = read_job(tmp_path, 2, config=config)
    assert [read().tolist() for _ in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 2, 3]]


def test_errors_reach_the_caller_of_the_job(tmp_path):
    read = read_job(tmp_path / "nowhere", 2)
    with refused(DataError, "no such folder"):
        read()
    flow.clear_default_session()
    path = Path(write_numbered_records(tmp_path, 4)) / "part-0"
    path.write_bytes(path.read_bytes()[:-1])
    read = read_job(tmp_path, 2)
    assert read().tolist() == [0, 1]
    with pytest.raises(DataError, match="part-0 ends within the record") as e:
        read()
    assert "threading.py" not in str(e.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15)
@given(st.integers(1, 9), st.integers(1, 3), st.integers(1, 5), st.integers(0, 3), st.booleans(),
       st.booleans(), st.integers(0, 99))
def test_prefetching_returns_the_records_of_the_reader(tmp_path, count, parts, batch, depth, shuffle,
                                                       after, seed):
    """With any prefetch depth, no record is lost or repeated across the ends of epochs, shuffled or not."""
    flow.clear_default_session()
    folder = write_numbered_records(tmp_path / f"{count}-{parts}", max(count, parts), parts)
    config = flow.function_config()
    config.prefetch(depth)
    read = read_job(folder, batch, config=config, data_part_num=parts, random_shuffle=shuffle,
                    shuffle_buffer_size=3, shuffle_after_epoch=after, seed=seed)
    reader = RecordReader(part_paths(folder, parts), shuffle, 3, after, seed_of(seed) if shuffle
                          or after else 0)
    assert [read().tolist() for _ in range(7)] == [read_indices(reader.next(batch)) for _ in range(7)]


def test_prefetching_continues_after_an_error_as_the_reader_does(tmp_path):
    path = Path(write_numbered_records(tmp_path, 5)) / "part-0"
    path.write_bytes(path.read_bytes()[:-1])
    reader = RecordReader([str(path)], False, 1, False, 0)

    def seen(f):
        try:
            return f()
        except DataError as e:
            return e.problem

    want = [seen(lambda: read_indices(reader.next(2))) for _ in range(6)]
    read = read_job(tmp_path, 2)
    assert ([seen(lambda: read().tolist()) for _ in range(6)] == want
            and want[:2] == want[3:5] == [[0, 1], [2, 3]])
