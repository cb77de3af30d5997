"""Laws of Comm for any kind of ranks: test_comm.py runs them on threads, test_comm_mpi.py as a script."""
import sys

import numpy as np

SIZES = [(), (0,), (1,), (7,), (3, 5), (40_000,), (300, 401)]
DTYPES = ["f4", "f8", "i4", "i8", "i1", "u1", "f2", "?"]
REDUCED = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def array(rank: int, shape, dtype, seed: int = 0) -> np.ndarray:
    """Return the input of `rank`, which every rank can compute."""
    rng = np.random.default_rng([seed, rank])
    numbers = (rng.integers(0, 2 if dtype == "?" else 4, shape) if dtype[0] in "?u"
               else rng.integers(-3, 4, shape))
    return np.array(numbers if dtype[0] in "?ui" else numbers / 4, dtype)


def groups(rank: int, size: int):
    """Return the groups that contain this rank; all ranks list them in the same order."""
    for g in [tuple(range(size)), (0, 1), tuple(range(1, size)), (0, size - 1), *((r,) for r in range(size))]:
        if rank in g and list(g) == sorted(set(g)) and g[-1] < size:
            yield g


def check_collectives(c, shape, dtype):
    for g in groups(c.rank, c.size):
        mine, every = array(c.rank, shape, dtype), [array(r, shape, dtype) for r in g]
        before = mine.copy()
        for op in REDUCED if dtype in ("f4", "i8") else ("max",) if dtype == "?" else ("sum",):
            f = REDUCED[op]
            want = every[0].copy()
            for x in every[1:]:
                want = f(want, x)
            got = c.all_reduce(mine, g, op)
            assert got.dtype == mine.dtype and np.array_equal(got, want), (op, g)
            inside = mine.copy()
            assert c.all_reduce(inside, g, op, out=inside) is inside and np.array_equal(inside, want)
        assert np.array_equal(c.all_gather(mine, g), np.stack(every))
        out = np.empty((len(g), *shape), dtype)
        assert c.all_gather(mine, g, out=out) is out and np.array_equal(out, np.stack(every))
        root = g[-1]
        assert np.array_equal(c.broadcast(mine if c.rank == root else None, root, g),
                              array(root, shape, dtype))
        if dtype != "?":
            stacks = [np.stack([array(r, shape, dtype, i) for i in range(len(g))]) for r in g]
            i = g.index(c.rank)
            want = stacks[0][i].copy()
            for x in stacks[1:]:
                want = want + x[i]
            assert np.array_equal(c.reduce_scatter(stacks[i], g), want)
        assert np.array_equal(mine, before)


def check_strided(c):
    a = np.arange(24.0).reshape(4, 6)[::2, ::3].T + c.rank
    assert not a.flags.c_contiguous
    assert np.array_equal(c.all_reduce(a), c.size * (a - c.rank) + c.size * (c.size - 1) / 2)
    assert np.array_equal(c.all_gather(a)[c.rank], a)


def check_results_are_own(c):
    """Later changes of another rank's result or argument have no effect."""
    for n in (5, 100_000):
        mine = np.full(n, c.rank + 1.0)
        total, every, root = c.all_reduce(mine), c.all_gather(mine), c.broadcast(mine, 0)
        after, before = (c.rank + 1) % c.size, (c.rank - 1) % c.size
        got = c.exchange([(after, mine)], [(before, (n,), "f8")])[0] if c.size > 1 else mine * 0
        for a in (mine, total, every, root, got):
            a[:] = -1
        c.barrier()
        assert c.all_reduce(np.full(n, 1.0))[0] == c.size


def check_messages(c):
    """Messages between two ranks keep their order, whatever their sizes, and sending does not block."""
    others = [r for r in range(c.size) if r != c.rank]
    sizes = [3, 200_000, 1, 0, 70_000, 5]
    for n in sizes:
        for to in others:
            c.send(to, np.full((n,), 10 * c.rank + to, "i8"), "law")
    for n in sizes:
        for source in others:
            assert (c.recv(source, (n,), "i8") == 10 * source + c.rank).all()
    got = c.exchange([(to, array(c.rank, (2, 3), "f4", to)) for to in others],
                     [(r, (2, 3), "f4") for r in others])
    for r, a in zip(others, got):
        assert np.array_equal(a, array(r, (2, 3), "f4", c.rank))


def check_objects(c):
    mine = {"rank": c.rank, "list": [1, 2.5, None, True, "é" * 50 * c.rank]}
    assert c.all_gather_object(mine) == [{"rank": r, "list": [1, 2.5, None, True, "é" * 50 * r]}
                                         for r in range(c.size)]
    for g in groups(c.rank, c.size):
        c.barrier(g)
        assert c.all_gather_object(c.rank, g) == list(g)


def check_started(c):
    """Run several reductions concurrently."""
    arrays = [np.full(n, float(c.rank + n)) for n in (1, 1000, 50_000)]
    waits = [c.start_all_reduce(a) for a in arrays]
    for n, wait in zip((1, 1000, 50_000), waits):
        assert (wait() == c.size * n + c.size * (c.size - 1) / 2).all()


def check_all(c):
    for shape in SIZES:
        for dtype in DTYPES if np.prod(shape) < 10 else ("f4", "f2", "?"):
            check_collectives(c, shape, dtype)
    for law in (check_strided, check_results_are_own, check_messages, check_objects, check_started):
        law(c)


if __name__ == "__main__":
    from flowedu import distributed
    from flowedu.core.sbp.ranks import current

    distributed.debug("debug" in sys.argv)
    engine = current()
    check_all(engine.comm(engine.rank))
    print(f"rank {engine.rank} of {engine.size} ok, machine {engine.node_rank} of {engine.node_size}",
          flush=True)
