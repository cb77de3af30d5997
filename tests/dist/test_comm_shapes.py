"""Law: on 4 ranks each function of flow.comm behaves as OneFlow 1.0 documents, for any shape, layout, and
dtype: a list has a tensor for each rank; a single tensor holds the ranks' tensors concatenated, stacked,
or in another shape with as many elements; in-place results keep their shape; ranks that receive nothing
keep their tensor.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import comm
from flowedu.core.sbp import ranks
from flowedu.distributed import set_virtual_devices, spawn
from flowedu.errors import ShapeError

K = 4
KINDS = ["float32", "float64", "int16", "int32", "int64", "int8", "uint8"]
SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)


def array(rank, shape, kind, to=0):
    """Return the tensor that a rank sends to another."""
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5 + rank + 2 * to).astype(kind)


def make_laid_out(a, turned: bool):
    """Return the tensor, or one with permuted axes in memory."""
    t = flow.tensor(a)
    return (flow.tensor(np.ascontiguousarray(a.T)).permute(*range(a.ndim - 1, -1, -1)) if turned
            and a.ndim > 1 else t)


def is_(x, want) -> None:
    assert tuple(x.shape) == want.shape and x.dtype.name == want.dtype.name
    np.testing.assert_array_equal(x.numpy(), want)


def rooms(shape, kind, n=K):
    return [flow.full(shape, 99, dtype=getattr(flow, kind)) for _ in range(n)]


def one_room(shape, kind):
    return rooms(shape, kind, 1)[0]


def run_on_ranks(f) -> None:
    spawn(lambda: f(flow.env.get_rank()), K)


@given(SHAPES, st.sampled_from(KINDS), st.booleans(), st.integers(0, K - 1))
def test_results_of_each_function(shape, kind, turned, root):
    every = [array(r, shape, kind) for r in range(K)]
    total = sum(every[1:], start=every[0]).astype(kind)

    def f(r):
        x = make_laid_out(every[r], turned)
        comm.all_reduce(x)
        is_(x, total)
        x = make_laid_out(every[r], turned)
        comm.reduce(x, root)
        is_(x, total if r == root else every[r])
        x = make_laid_out(every[r], turned)
        comm.broadcast(x, root)
        is_(x, every[root])
        parts = rooms(shape, kind)
        comm.all_gather(parts, make_laid_out(every[r], turned))
        for got, want in zip(parts, every, strict=True):
            is_(got, want)
        parts = rooms(shape, kind)
        comm.gather(make_laid_out(every[r], turned), parts, root)
        for got, want in zip(parts, every, strict=True):
            is_(got, want if r == root else np.full_like(want, 99))
        x = one_room(shape, kind)
        comm.scatter(x, [make_laid_out(a, turned) for a in every] if r == root else None, root)
        is_(x, every[r])
        parts = rooms(shape, kind)
        comm.all_to_all(parts, [make_laid_out(array(r, shape, kind, to), turned) for to in range(K)])
        for source, got in enumerate(parts):
            is_(got, array(source, shape, kind, r))
        x = one_room(shape, kind)
        comm.reduce_scatter(x, [make_laid_out(array(r, shape, kind, to), turned) for to in range(K)])
        is_(x, sum(array(s, shape, kind, r) for s in range(K)).astype(kind))

    run_on_ranks(f)


def of_as_many(shape) -> list[tuple]:
    """Return shapes that hold K tensors of `shape` in one: concatenated, stacked, flat, and others."""
    n = int(np.prod(shape, dtype=int)) * K
    return [(K * shape[0], *shape[1:]) if shape else (K,), (K, *shape), (n,), (n, 1), (K, n // K)]


@given(SHAPES, st.sampled_from(KINDS), st.booleans(), st.data())
def test_single_tensor_forms(shape, kind, turned, data):
    whole = data.draw(st.sampled_from(of_as_many(shape)))
    stacked = np.stack([array(r, shape, kind) for r in range(K)])

    def f(r):
        x = one_room(whole, kind)
        comm.all_gather_into_tensor(x, make_laid_out(stacked[r], turned))
        is_(x, stacked.reshape(whole))
        x = one_room(shape, kind)
        comm.reduce_scatter_tensor(x, make_laid_out((stacked + np.array(r, kind)).reshape(whole), turned))
        is_(x, (stacked[r] * K + sum(range(K))).astype(kind))

    run_on_ranks(f)


@given(SHAPES, st.sampled_from(KINDS), st.integers(0, K - 1))
def test_receivers_keep_their_shape(shape, kind, root):
    """`broadcast` requires equally many elements, not the same shape."""
    sent = array(root, shape, kind)

    def f(r):
        x = flow.tensor(sent) if r == root else one_room((sent.size, *[1] * r), kind)
        comm.broadcast(x, root)
        is_(x, sent if r == root else sent.reshape(sent.size, *[1] * r))

    run_on_ranks(f)


def test_wrong_sizes_are_refused():
    """Even if they would fit by broadcasting, and on ranks that receive nothing."""
    def f(r):
        with pytest.raises(ShapeError, match="what stays on a rank"):
            comm.all_to_all(rooms((2, 2), "float32"), rooms((2,), "float32"))
        with pytest.raises(ShapeError, match="what stays on a rank"):
            comm.all_to_all(rooms((2,), "float64"), rooms((2,), "float32"))

    run_on_ranks(f)
    before = ranks._process
    set_virtual_devices(K)
    try:
        f(0)
    finally:
        ranks._process = before
