"""flow.distributed with PyTorch's API of process groups."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from dist.ranks import launch, mpi
from flowedu.distributed import ReduceOp, spawn
from flowedu.errors import ArgumentError, CommError

HOW = {ReduceOp.SUM: np.sum, ReduceOp.AVG: np.mean, ReduceOp.PRODUCT: np.prod, ReduceOp.MIN: np.min,
       ReduceOp.MAX: np.max}


@given(st.integers(1, 4), st.sampled_from(list(ReduceOp)), st.sampled_from(["float32", "float64", "int64"]),
       st.integers(0, 2**31), st.booleans())
def test_collectives_on_all_ranks(k, op, dtype, seed, later):
    if op is ReduceOp.AVG and dtype == "int64":            # a mean is a float: refused, like mean()
        dtype = "float32"
    numbers = np.random.default_rng(seed).integers(-4, 5, (k, 2, 3)).astype(dtype)
    whole = HOW[op](numbers.astype("float64"), 0).astype(dtype)

    def rank():
        d = flow.distributed
        r = d.get_rank()
        assert d.get_world_size() == k and d.get_backend() == "threads" and d.is_available()
        for x, done in ((one := flow.tensor(numbers[r]), d.all_reduce(one, op, async_op=later)),
                        (two := flow.tensor(numbers[r]), d.reduce(two, k - 1, op, async_op=later))):
            assert (done.wait() and done.is_completed()) if later else done is None
            assert x.dtype is getattr(flow, dtype)
        three = flow.tensor(numbers[r])
        d.broadcast(three, k - 1)
        parts = [flow.empty_like(three) for _ in range(k)]
        d.all_gather(parts, flow.tensor(numbers[r]))
        d.barrier()
        return [one.numpy(), two.numpy(), three.numpy(), np.stack([p.numpy() for p in parts])]

    for r, (one, two, three, parts) in enumerate(spawn(rank, k)):
        np.testing.assert_allclose(one, whole, 1e-6)
        np.testing.assert_allclose(two, whole if r == k - 1 else numbers[r], 1e-6)
        np.testing.assert_array_equal(three, numbers[k - 1])
        np.testing.assert_array_equal(parts, numbers)


def test_a_program_of_one_rank(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    d = flow.distributed
    assert not d.is_initialized()
    d.init_process_group("nccl", init_method="env://", timeout=5)
    assert d.is_initialized() and (d.get_rank(), d.get_world_size()) == (0, 1)
    d.destroy_process_group()
    assert not d.is_initialized()
    for wrong in ({"world_size": 2}, {"world_size": 1, "rank": 1}):
        with pytest.raises(CommError, match="(?s)not the ranks that the program expects.*--nproc_per_node"):
            d.init_process_group("gloo", **wrong)
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(CommError, match="--nproc_per_node 3"):
        d.init_process_group()
    assert not d.is_initialized()
    x = flow.ones(2)
    with pytest.raises(ArgumentError, match="one group"):
        d.all_reduce(x, group=[0])
    with pytest.raises(ArgumentError, match="ReduceOp.SUM"):
        d.all_reduce(x, "sum")


def test_thread_ranks_do_not_initialize_the_process_group():
    before = flow.distributed.is_initialized()
    assert flow.distributed.spawn(lambda: flow.distributed.init_process_group("gloo", world_size=2),
                                  2) == [None, None]
    assert flow.distributed.is_initialized() == before


@mpi
def test_on_processes(tmp_path):
    said = launch(tmp_path, """
        import flowedu as flow
        import flowedu.distributed as dist
        assert dist.is_initialized()
        dist.init_process_group("nccl")
        x = flow.ones(2) * (dist.get_rank() + 1)
        dist.all_reduce(x, dist.ReduceOp.MAX)
        print(dist.get_backend(), dist.get_world_size(), x.sum().item())
    """, 2)
    assert said.code == 0 and said.out == "mpi 2 4.0\n" * 2, said.err
