"""Lane: messages arrive in order and under their tag; small collectives, which use lanes, mixed with large
ones and other groups.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dist.ranks import launch, mpi
from flowedu.distributed.mpi.lanes import HEAD, Lane

CAPACITY = 256


def ends():
    rows = np.zeros((2, 2 * (HEAD + CAPACITY)), np.uint8)
    return Lane(rows[0], rows[1]), Lane(rows[1], rows[0])


ARRAYS = st.tuples(st.sampled_from(["f4", "f8", "i2", "?", "f2"]), st.lists(st.integers(0, 4), max_size=3))


@given(st.lists(st.tuples(ARRAYS, st.booleans(), st.integers(-2**63, 2**63 - 1)), min_size=1, max_size=12))
def test_messages_arrive_in_order(calls):
    a, b = ends()
    rng = np.random.default_rng(0)
    for (kind, shape), turned, tag in calls:
        if np.prod(shape) * np.dtype(kind).itemsize > CAPACITY:
            continue
        x, y = (rng.integers(0, 100, shape).astype(kind) for _ in "ab")
        given_x = np.asfortranarray(x) if turned else x
        a.put(given_x, tag)
        assert not a.here(tag), "the other has put nothing yet"
        assert b.swap(y, tag)
        assert a.here(tag) and not a.here(tag ^ 1), "another tag is another call"
        for lane, got in ((a, y), (b, x)):
            arrays = lane.arrays(tuple(shape), np.dtype(kind))
            np.testing.assert_array_equal(arrays[lane.side], got)
            assert arrays[lane.side].dtype == got.dtype and arrays[lane.side].shape == tuple(shape)


def test_one_end_may_be_one_call_ahead():
    a, b = ends()
    one, two, three = (np.full(4, n, "f4") for n in (1, 2, 3))
    a.put(one, 5)
    assert b.swap(two, 5) and a.here(5)
    a.put(three, 6)                                         # before b has read the first
    assert b.arrays((4,), one.dtype)[b.side].tolist() == one.tolist()
    b.put(two, 6)
    assert b.here(6) and b.arrays((4,), one.dtype)[b.side].tolist() == three.tolist()


def test_too_large_messages():
    a, _ = ends()
    a.put(np.zeros(CAPACITY, np.uint8), 1)
    with pytest.raises(ValueError, match="257 bytes, where 256 fit"):
        a.put(np.zeros(CAPACITY + 1, np.uint8), 1)


MIXED = """
    from functools import reduce
    import numpy as np
    from flowedu.core.sbp.ranks import current
    comm = current().comm(current().rank)
    rng, me, k = np.random.default_rng(7), comm.rank, comm.size
    groups = [tuple(range(k)), None, list(range(k)), (0, 1), tuple(range(k))[-2:], (0, k - 1),
              tuple(range(0, k, 2))]
    for turn in range(400):
        group = groups[rng.integers(len(groups))]
        ranks = tuple(range(k)) if group is None else tuple(group)
        n = int(rng.choice([0, 1, 7, 300, 2048, 2049, 9000]))
        kind = rng.choice(["f4", "f8", "i4", "f2"])
        every = rng.integers(-8, 9, (k, n)).astype(kind)
        op, way = rng.choice(["sum", "max", "min"]), rng.integers(5)
        if me not in ranks:
            continue
        a, want = every[me], [every[r] for r in ranks]
        f = {"sum": np.add, "max": np.maximum, "min": np.minimum}[op]
        total = reduce(f, want)
        if way == 0:
            got, total = comm.all_gather(a, group, "here"), np.stack(want)
        elif way == 1:
            got = comm.all_reduce(a, group, op)
        elif way == 2:
            got = a.copy()
            comm.all_reduce(got, group, op, out=got)
        elif way == 3:
            got = comm.all_reduce(np.repeat(a, 2)[::2], group, op, "strided")
        else:
            got, total = comm.broadcast(a, ranks[0], group), every[ranks[0]]
        assert got.dtype == total.dtype and np.array_equal(got, total), (turn, way, n, kind, ranks)
    print("right")
"""


@mpi
@pytest.mark.parametrize("k", [2, 3, 4])
def test_small_and_large_collectives_may_be_mixed(tmp_path, k):
    said = launch(tmp_path, MIXED, k)
    assert said.code == 0 and said.out.split() == ["right"] * k, said.err


@mpi
def test_mismatched_calls_on_small_arrays_are_reported(tmp_path):
    said = launch(tmp_path, """
    import numpy as np
    from flowedu.core.sbp.ranks import current
    c = current().comm(current().rank)
    for _ in range(3):
        c.all_reduce(np.ones(4, "f4"))
        c.all_gather(np.ones(4, "f4"))
    if c.rank:
        c.all_reduce(np.ones(4, "f4"), None, "max")
    else:
        c.all_reduce(np.ones(4, "f4"))
    """, 2)
    assert said.code
    assert "all_reduce sum float32 (4,)" in said.err and "all_reduce max float32 (4,)" in said.err
