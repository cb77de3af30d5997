"""Ranks that are threads: collectives, and errors for calls that do not match."""
import re
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import HANGS
from dist import comm_laws
from dist.ranks import comm, on_threads
from flowedu.core.sbp import ranks
from flowedu.distributed import set_virtual_devices, spawn
from flowedu.distributed.ranks import base, engine
from flowedu.distributed.ranks.mirror import Mirror
from flowedu.errors import ArgumentError, CommError


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_collectives_on_threads_follow_all_laws(k):
    on_threads(k, comm_laws.check_all)


@given(st.integers(1, 4), st.lists(st.integers(0, 6), max_size=3).map(tuple),
       st.sampled_from(comm_laws.DTYPES))
def test_collectives_equal_numpy_for_any_shape_and_dtype(k, shape, dtype):
    on_threads(k, comm_laws.check_collectives, shape, dtype)


def test_large_sums_are_bitwise_equal_on_all_ranks():
    xs = [np.random.default_rng(r).normal(size=200_003).astype("f4") for r in range(3)]
    got = on_threads(3, lambda c: c.all_reduce(xs[c.rank]))
    assert got[0].tobytes() == got[1].tobytes() == got[2].tobytes() == ((xs[0] + xs[1]) + xs[2]).tobytes()


# ---- calls that do not match
def waits_in_vain(f, k=2) -> str:
    """Return the message of the CommError of f(comm) on k ranks, which must not be caused by a timeout."""
    with pytest.raises(CommError) as e:
        on_threads(k, f)
    assert "FLOWEDU_TIMEOUT" not in str(e.value)
    return str(e.value)


def test_a_call_to_a_finished_rank_is_reported():
    said = waits_in_vain(lambda c: c.rank == 1 and c.all_reduce(np.ones(3)))
    assert "one that has ended" in said and "rank 0 has finished" in said
    assert "rank 1 waits in all_reduce sum float64 (3,) of ranks 0, 1" in said and "test_comm.py" in said


def test_different_collectives_are_reported():
    said = waits_in_vain(lambda c: c.all_gather(np.ones(2)) if c.rank
                         else c.broadcast(np.ones(2), 0, what="weights"))
    assert "collectives of one group differ" in said and "rank 1 called all_gather float64 (2,)" in said
    assert "rank 0 called broadcast from rank 0 of ranks 0, 1 [weights]" in said


@pytest.mark.parametrize("mine", [lambda r: np.ones(3 + r), lambda r: np.ones(3, "f4" if r else "f8")])
def test_arrays_of_different_specs_are_reported(mine):
    said = waits_in_vain(lambda c: c.all_reduce(mine(c.rank)))
    assert "rank 0 called all_reduce sum float64 (3,)" in said and "rank 1 called" in said


def test_different_reductions_are_reported():
    assert "all_reduce max" in waits_in_vain(lambda c: c.all_reduce(np.ones(1), op="max" if c.rank
                                                                    else "sum"))


def test_a_cycle_of_waiting_ranks_is_reported():
    """Rank 0 waits for 1, 1 for 2, and 2 for 0; another rank continues."""
    done = threading.Event()

    def f(c):
        if c.rank == 3:
            done.wait(HANGS)
            return
        try:
            c.recv((c.rank + 1) % 3, (1,), "f4")
        finally:
            done.set()

    said = waits_in_vain(f, 4)
    assert "ranks wait for each other" in said and "rank 2 waits in recv from rank 0 float32 (1,)" in said
    assert "rank 3 is elsewhere, waiting for nobody" in said


def test_a_message_of_another_shape_is_reported():
    said = waits_in_vain(lambda c: c.exchange([(1 - c.rank, np.ones(3))], [(1 - c.rank, (4,), "f8")]))
    assert ("expects another array than" in said and "send to rank" in said and "(3,)" in said
            and "(4,)" in said)


def test_overlapping_groups_in_different_order():
    said = waits_in_vain(lambda c: c.barrier((0, 1) if c.rank == 0 else (1, 2) if c.rank == 1 else (0, 2)), 3)
    assert "ranks wait for each other" in said and "barrier of ranks 1, 2" in said


def test_an_exception_on_one_rank_ends_the_others():
    def f(c):
        if c.rank == 1:
            raise KeyError("mine")
        if c.rank == 0:
            c.barrier()
        while True:                                     # computes without communication
            pass

    with pytest.raises(KeyError, match="mine") as e:
        on_threads(3, f)
    assert "(raised on rank 1 of 3)" in e.value.__notes__


def test_a_long_wait_is_reported_and_ends(monkeypatch, capfd):
    monkeypatch.setattr(base.options, "notice", 0.1)
    monkeypatch.setattr(base.options, "timeout", 2.0)
    event = threading.Event()

    def f(c):
        if c.rank == 2:
            event.wait(HANGS)
        try:
            c.barrier()
        finally:
            event.set()

    with pytest.raises(CommError, match=r"has waited \d+ s for ranks .*2 \(FLOWEDU_TIMEOUT\)"):
        on_threads(3, f)
    err = capfd.readouterr().err
    assert re.search(r"rank [01] has waited \d+ s in barrier of ranks 0, 1, 2 for ranks .*2, test_comm.py",
                     err), err


# ---- arguments
@pytest.mark.parametrize("call, message", [
    (lambda c: c.all_reduce(np.ones(2), (1, 0)), "not a group this rank is in"),
    (lambda c: c.all_reduce(np.ones(2), (0, 2)), "not a group this rank is in"),
    (lambda c: c.barrier((1 - c.rank,)), "not a group this rank is in"),
    (lambda c: c.all_reduce(np.ones(2), op="mean"), "not a reduction"),
    (lambda c: c.all_reduce(np.ones(2), out=np.empty(3)), "does not fit into out"),
    (lambda c: c.reduce_scatter(np.ones((3, 2))), "not as long as the group"),
    (lambda c: c.broadcast(None, 0, (0, 1)) if c.rank == 0 else None, "rank 0 has no array"),
    (lambda c: c.send(c.rank, np.ones(1)), "cannot send to"),
    (lambda c: c.recv(7, (1,), "f4"), "cannot receive from"),
])
def test_invalid_arguments_are_refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        on_threads(2, call)


# ---- engines
def test_engines():
    assert ranks.current().name == "virtual"

    def f():
        e = ranks.current()
        return (e.name, e.size, e.owned, e.rank, flow.env.get_rank(), flow.env.get_world_size(),
                flow.env.get_local_rank())

    assert spawn(f, 3) == [("threads", 3, (r,), r, r, 3, r) for r in range(3)]
    assert ranks.current().name == "virtual"             # of this thread
    with pytest.raises(ArgumentError, match="this is rank [01] of a world of 2"):
        spawn(lambda: set_virtual_devices(3), 2)
    for bad in (0, -1, 2.0, True):
        with pytest.raises(ArgumentError, match="not a number of devices"):
            set_virtual_devices(bad)
        with pytest.raises(ArgumentError, match="not a number of ranks"):
            spawn(print, bad)


@pytest.fixture
def three():
    before = ranks._process
    set_virtual_devices(3)
    yield ranks.current()
    ranks._process = before


def test_virtual_devices(three):
    assert (three.size, three.owned, three.rank) == (3, (0, 1, 2), 0)
    assert three.run({r: lambda c: c.all_reduce(np.array([2.0 ** c.rank])).tolist()
                      for r in range(3)}) == dict.fromkeys(
                          range(3), [7.0])
    with pytest.raises(ZeroDivisionError):
        three.run({r: (lambda c: 1 / 0) if r else (lambda c: c.barrier()) for r in range(3)})
    with pytest.raises(CommError, match="rank 1 has nothing to do"):
        three.run({0: lambda c: c.recv(1, (1,), "f4")})
    three.run(dict.fromkeys(range(3), comm_laws.check_messages))    # still usable after an error


def test_devices_from_the_environment(monkeypatch):
    monkeypatch.setenv("FLOWEDU_DEVICES", "4")
    assert ranks._devices() == 4
    monkeypatch.setenv("FLOWEDU_DEVICES", "two")
    with pytest.raises(ArgumentError, match="FLOWEDU_DEVICES"):
        ranks._devices()


def test_another_launcher(monkeypatch):
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(CommError, match="mpiexec did not start this process"):
        engine.start(lambda: 1)


@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                  "all_gather_object"])
def test_a_mirror_runs_identical_ranks(name):
    a = comm_laws.array(0, (3, 4), "f4")
    call = {"broadcast": lambda c: c.broadcast(a, 1),
            "all_gather_object": lambda c: c.all_gather_object({"a": [1]})}.get(
                name, lambda c: getattr(c, name)(a))
    assert np.array_equal(call(Mirror(3)), on_threads(3, call)[0])


def test_comm_is_the_rank_of_the_thread():
    assert spawn(lambda: comm().rank, 4) == [0, 1, 2, 3]
