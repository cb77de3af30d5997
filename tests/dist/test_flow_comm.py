"""flow.comm and flow.env: collectives on local tensors."""
import re

import numpy as np
import pytest

import flowedu as flow
from flowedu import comm
from flowedu.core.sbp import ranks
from flowedu.distributed import set_virtual_devices, spawn
from flowedu.errors import ArgumentError, CallError, CommError, ShapeError

DTYPES = [flow.float32, flow.float64, flow.int32, flow.int64, flow.int8, flow.uint8, flow.float16,
          flow.bfloat16]


def make_rank_tensor(r, dtype=flow.float32, shape=(2, 3)):
    return (flow.arange(int(np.prod(shape))).reshape(*shape) % 5 + r).to(dtype)


def on(k, f):
    return spawn(lambda: f(flow.env.get_rank()), k)


def are_equal(x, y):
    return x.dtype is y.dtype and x.tolist() == y.tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_collectives(k, dtype):
    every = [make_rank_tensor(r, dtype) for r in range(k)]
    total = sum((x.float() for x in every[1:]), start=every[0].float()).to(dtype)

    def f(r):
        x = make_rank_tensor(r, dtype)
        assert comm.all_reduce(x) is x and are_equal(x, total)
        parts = [flow.empty(2, 3, dtype=dtype) for _ in range(k)]
        comm.all_gather(parts, make_rank_tensor(r, dtype))
        assert all(are_equal(a, b) for a, b in zip(parts, every))
        for shape in ((k, 2, 3), (k * 2, 3), (3, 2 * k), (6 * k,), (1, k, 3, 2)):
            whole = flow.empty(*shape, dtype=dtype)
            comm.all_gather_into_tensor(whole, make_rank_tensor(r, dtype))
            assert are_equal(whole, flow.cat(every).reshape(*shape))
            part = comm.reduce_scatter_tensor(flow.empty(2, 3, dtype=dtype),
                                              flow.cat([make_rank_tensor(r, dtype)] * k).reshape(*shape))
            assert are_equal(part, total)
        x = comm.broadcast(make_rank_tensor(r, dtype), k - 1)
        assert are_equal(x, every[-1])
        x = comm.scatter(flow.empty(2, 3, dtype=dtype), every if r == 0 else None, 0)
        assert are_equal(x, every[r])
        x = comm.reduce(make_rank_tensor(r, dtype), k - 1)
        assert are_equal(x, total if r == k - 1 else every[r])
        parts = [flow.empty(2, 3, dtype=dtype) for _ in range(k)] if r == 0 else None
        comm.gather(make_rank_tensor(r, dtype), parts, 0)
        assert r or all(are_equal(a, b) for a, b in zip(parts, every))
        parts = [flow.empty(2, 3, dtype=dtype) for _ in range(k)]
        comm.all_to_all(parts, [make_rank_tensor(10 * r + i, dtype) for i in range(k)])
        assert all(are_equal(a, make_rank_tensor(10 * i + r, dtype)) for i, a in enumerate(parts))
        out = comm.reduce_scatter(flow.empty(2, 3, dtype=dtype),
                                  [make_rank_tensor(i + r, dtype) for i in range(k)])
        assert are_equal(out, sum((make_rank_tensor(i + r, dtype).float() for i in range(1, k)),
                                  start=make_rank_tensor(r, dtype).float()).to(dtype))
        out = comm.reduce_scatter_tensor(flow.empty(2, 3, dtype=dtype),
                                         flow.cat([make_rank_tensor(r, dtype)] * k))
        assert are_equal(out, total)
        comm.barrier()

    on(k, f)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_send_and_recv(dtype):
    def f(r):
        if r == 0:
            comm.send(make_rank_tensor(3, dtype), 1)
            comm.send(flow.ones((), dtype=dtype), 1)
            comm.send(make_rank_tensor(4, dtype), 1, send_meta=False)
            comm.send(make_rank_tensor(5, dtype), 1)
            return
        assert are_equal(comm.recv(0), make_rank_tensor(3, dtype)) and comm.recv(0).shape == ()
        assert are_equal(comm.recv(0, (2, 3), dtype), make_rank_tensor(4, dtype))
        out = flow.empty(2, 3, dtype=dtype)
        assert comm.recv(0, out=out) is out and are_equal(out, make_rank_tensor(5, dtype))

    on(2, f)


def test_in_place_through_a_view_and_without_gradient():
    def f(r):
        x = flow.zeros(3, 4, requires_grad=True)
        y = x.detach().T[1]
        y += r + 1
        comm.all_reduce(y)
        assert y.tolist() == [3, 3, 3] and x[:, 1].tolist() == [3, 3, 3] and x[:, 0].tolist() == [0, 0, 0]
        w = flow.ones(2, requires_grad=True)
        y = (w * w).sum()
        comm.all_reduce(w)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()

    on(2, f)


@pytest.fixture
def virtual():
    before = ranks._process
    set_virtual_devices(3)
    yield
    ranks._process = before


def test_one_controller_of_three_devices(virtual):
    e = flow.env
    assert (e.get_rank(), e.get_world_size(), e.get_local_rank(), e.get_node_rank(),
            e.get_node_size()) == (0, 3, 0, 0, 1)
    assert e.is_multi_client()
    x = make_rank_tensor(1)
    assert are_equal(comm.all_reduce(x.clone()), x * 3) and are_equal(comm.reduce(x.clone()), x * 3)
    assert are_equal(comm.reduce(x.clone(), 1), x) and are_equal(comm.broadcast(x.clone(), 2), x)
    parts = [flow.empty(2, 3) for _ in range(3)]
    for do in (comm.all_gather, lambda p, x: comm.gather(x, p),
               lambda p, x: comm.all_to_all(p, [x, x + 1, x + 2])):
        do(parts, x)
        assert all(are_equal(p, x) for p in parts)
    assert are_equal(comm.scatter(flow.empty(2, 3), [x, x + 1, x + 2]), x)
    assert are_equal(comm.reduce_scatter(flow.empty(2, 3), [x, x + 1, x + 2]), x * 3)
    comm.barrier()
    with pytest.raises(CommError, match="does the work of all 3 ranks"):
        comm.send(x, 1)


@pytest.mark.parametrize("call, kind, message", [
    (lambda r: comm.all_reduce(np.ones(2)), CallError, "not a local tensor"),
    (lambda r: comm.all_gather([flow.ones(2)], flow.ones(2)), ArgumentError, "not one tensor for each rank"),
    (lambda r: comm.all_gather([flow.ones(3)] * 2, flow.ones(2)), ShapeError,
     r"tensor_list\[0\] has another shape"),
    (lambda r: comm.broadcast(flow.ones(2), 2), ArgumentError, "there is no rank 2"),
    (lambda r: comm.broadcast(flow.ones(2 + r)), ShapeError, "rank 0 sends another number of elements"),
    (lambda r: comm.scatter(flow.ones(2)), ArgumentError, "no scatter_list"),
    (lambda r: comm.gather(flow.ones(2)), ArgumentError, "no gather_list"),
    (lambda r: comm.all_to_all([flow.ones(2)], [flow.ones(2)]), ArgumentError, "output_tensor_list"),
    (lambda r: comm.all_gather_into_tensor(flow.ones(3), flow.ones(2)), ShapeError,
     "another number of elements"),
    (lambda r: comm.reduce_scatter_tensor(flow.ones(2), flow.ones(3)), ShapeError, "not one of equal parts"),
    (lambda r: comm.recv(1 - r, (2,)), ArgumentError, "belong together"),
    (lambda r: comm.send(flow.ones(2), 1 - r) or comm.recv(1 - r, out=flow.ones(3)), ShapeError,
     "out has another shape"),
    (lambda r: comm.all_reduce(flow.ones(2 + r)), CommError, "collectives of one group differ"),
])
def test_invalid_calls_of_comm_are_refused(call, kind, message):
    with pytest.raises(kind) as e:
        on(2, call)
    assert re.search(message, e.value.problem)  # not in the rest of the text, which contains the line above


def test_a_sampler_on_each_rank():
    def f(r):
        from flowedu.utils.data import DistributedSampler

        return list(DistributedSampler(range(6), shuffle=False))

    assert on(2, f) == [[0, 2, 4], [1, 3, 5]]
