"""Ranks with one GPU each, which exchange messages through pinned memory, as threads and as MPI processes."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from dist.ranks import launch, mpi
from flowedu import comm
from flowedu.distributed import spawn
from flowedu.errors import DeviceError

pytestmark = pytest.mark.skipif(flow.cuda.device_count() < 3, reason="three GPUs, or the simulator")
B, P, split = flow.sbp.broadcast, flow.sbp.partial_sum, flow.sbp.split
DTYPES = [flow.float32, flow.int64, flow.float16, flow.bfloat16]


def make_rank_tensor(rank, device, dtype=flow.float32):
    return (flow.arange(6, device=device).reshape(2, 3) % 5 + rank).to(dtype)


def assert_same_tensor(x, y):
    assert x.dtype is y.dtype and x.tolist() == y.tolist() and x.is_cuda


def collectives(k, dtype):
    """Compare every collective on GPU tensors with the same one on CPU tensors."""
    r = flow.env.get_rank()
    device = f"cuda:{r % flow.cuda.device_count()}"
    every = [make_rank_tensor(i, "cpu", dtype) for i in range(k)]
    total = sum((x.float() for x in every[1:]), start=every[0].float()).to(dtype)
    own, room = (lambda: make_rank_tensor(r, device, dtype),
                 lambda: flow.empty(2, 3, dtype=dtype, device=device))
    x = own()
    assert comm.all_reduce(x) is x and x.device == flow.device(device) and x._version == 1
    assert_same_tensor(x, total)
    parts = [room() for _ in range(k)]
    comm.all_gather(parts, own())
    for a, b in zip(parts, every):
        assert_same_tensor(a, b)
    whole = flow.empty(k, 2, 3, dtype=dtype, device=device)
    comm.all_gather_into_tensor(whole, own())
    assert_same_tensor(whole, flow.stack(every))
    assert_same_tensor(comm.broadcast(own().T.contiguous().T, k - 1), every[-1])
    # Uninitialized memory is never read.
    assert_same_tensor(comm.broadcast(own() if r == 0 else room(), 0), every[0])
    assert_same_tensor(comm.reduce(own(), 0), total if r == 0 else every[r])
    assert_same_tensor(comm.reduce_scatter(room(), [own() for _ in range(k)]), total)
    assert_same_tensor(comm.scatter(room(), [x.to(device) for x in every] if r == 0 else None), every[r])
    parts = [room() for _ in range(k)]
    comm.all_to_all(parts, [x.to(device) for x in every])
    for a in parts:
        assert_same_tensor(a, every[r])
    if r == 0:
        comm.send(own(), 1)
    if r == 1:
        assert_same_tensor(comm.recv(0, device=device), every[0])
        assert not flow.ones(1).is_cuda


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_collectives(dtype):
    spawn(collectives, 2, (2, dtype))


@settings(max_examples=15)
@given(st.sampled_from([B, P, split(0), split(1)]), st.sampled_from([B, P, split(0), split(1)]),
       st.sampled_from([("cuda", "cuda"), ("cpu", "cuda"), ("cuda", "cpu")]), st.integers(3, 7))
def test_boxing_between_ranks(src, dst, kinds, n):
    """Every rank has its part on its GPU, and the value is preserved."""
    a = np.arange(n * 4, dtype=np.float32).reshape(n, 4)

    def program():
        r = flow.env.get_rank()
        x = flow.tensor(a, placement=flow.placement(kinds[0], [0, 1, 2]), sbp=src)
        y = x.to_global(flow.placement(kinds[1], [0, 1, 2]), dst)
        part, at = y.to_local(), flow.device(kinds[1], r if kinds[1] == "cuda" else 0)
        assert part.device == at and y.sbp == (dst,)
        return y.numpy().tolist(), part.cpu().numpy()

    found = spawn(program, 3)
    assert all(values == a.tolist() for values, _ in found)
    parts = [p for _, p in found]
    whole = (sum(parts) if dst is P else parts[0] if dst is B
             else np.concatenate(parts, axis=int(dst.text[1:])))
    np.testing.assert_array_equal(whole, a)


def test_shards_of_ranks():
    def program():
        r = flow.env.get_rank()
        p = flow.placement("cuda", [0, 1])
        for device in ("cpu", f"cuda:{r}"):
            w = flow.full((2, 3), float(r), device=device, requires_grad=True)
            x = w.to_global(p, split(0))
            (x * x).sum().to_global(sbp=B).to_local().backward()
            assert x.to_local().device == flow.device("cuda", r) and w.grad.device == w.device
            assert x.shape == (4, 3) and w.grad.tolist() == [[4 * r] * 3] * 2  # the losses of both ranks
        y = flow.full((2,), float(r), device=f"cuda:{r}").to_global(p, B)
        assert y.to_local().tolist() == [0, 0]                   # rank 0's values are used
        with pytest.raises(DeviceError, match=rf"rank {r} is on another rank's GPU(.|\n)*cuda:{r}"):
            flow.ones(2, device=f"cuda:{1 - r}").to_global(p, split(0))
    spawn(program, 2)


def test_data_parallel():
    """DistributedDataParallel with the module on each rank's GPU has the gradients of the CPU."""
    a = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)

    def program(kind):
        r = flow.env.get_rank()
        device = f"cuda:{r}" if kind == "cuda" else "cpu"
        flow.manual_seed(r)
        m = flow.nn.Sequential(flow.nn.Linear(5, 3), flow.nn.BatchNorm1d(3), flow.nn.Linear(3, 2)).to(device)
        m = flow.nn.parallel.DistributedDataParallel(m)
        opt = flow.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(2):
            m(flow.tensor(a[2 * r:2 * r + 2], device=device)).square().mean().backward()
            assert all(str(w.grad.device) == str(w.device) for w in m.parameters())
            grads = [w.grad.cpu().numpy() for w in m.parameters()]
            opt.step()
            opt.zero_grad()
        return grads

    here, there = spawn(program, 2, ("cpu",)), spawn(program, 2, ("cuda",))
    for want, got, other in zip(here[0], there[0], there[1]):
        np.testing.assert_array_equal(got, other)
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


@mpi
def test_processes(tmp_path):
    """Two processes with simulated GPUs run collectives, global tensors, and gradients."""
    said = launch(tmp_path, """
        import sys
        import flowedu as flow
        sys.path.insert(0, sys.argv[1])
        from cuda.test_global_ranks import B, P, collectives, split
        collectives(2, flow.float32)
        r, p = flow.env.get_rank(), flow.placement("cuda", [0, 1])
        x = flow.arange(10, placement=p, sbp=split(0)).float()
        assert (x.to_local().device == flow.device("cuda", r)
                and x.to_local().tolist() == [*range(5 * r, 5 * r + 5)])
        assert x.to_global(sbp=B).to_local().tolist() == x.tolist() == [*range(10)]
        w = flow.ones(10, placement=p, sbp=B, requires_grad=True)
        (x * w).sum().backward()
        assert w.grad.to_global(sbp=B).to_local().tolist() == [*range(10)] and w.grad.placement == p
        assert x.to("cpu").to_local().device == flow.device("cpu")
        print("rank", r, "ok")
        """, 2, args=[__file__.rpartition("/cuda/")[0]])
    assert said.code == 0, said.err
    assert sorted(said.out.splitlines()) == ["rank 0 ok", "rank 1 ok"]
