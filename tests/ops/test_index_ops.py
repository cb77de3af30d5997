"""gather, scatter, sort and top_k, eagerly and in jobs, against NumPy and PyTorch."""
import numpy as np
import pytest
from array_common import gradients, run_checked_job, weighted
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from common import f32, fresh_session, job, refused, run  # noqa: F401

some = settings(max_examples=15)
INTS = st.sampled_from([np.int32, np.int64])


def draw_shape(data, low=1, high=4, rank=(1, 3)):
    return tuple(data.draw(st.lists(st.integers(low, high), min_size=rank[0], max_size=rank[1])))


def indices(data, size, shape):
    return np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, size,
                                                                         shape).astype(data.draw(INTS))


# --- gather
# ----------------------------------------------------------------------------------------------------------

@some
@given(st.data())
def test_gather_with_batch_axes(data):
    batch = draw_shape(data, rank=(0, 2))
    own, mine = draw_shape(data), draw_shape(data, rank=(0, 2))
    axis = data.draw(st.integers(0, len(own) - 1))
    x, i = f32(*batch, *own), indices(data, own[axis], batch + mine)
    flat = [np.take(a, b, axis) for a, b in zip(x.reshape(-1, *own), i.reshape(-1, *mine))]
    want = np.array(flat).reshape((*batch, *own[:axis], *mine, *own[axis + 1:]))
    got = run_checked_job(lambda a, b: flow.gather(a, b, axis=len(batch) + axis, batch_dims=len(batch)), x, i)
    np.testing.assert_array_equal(got, want)


def test_gather_uses_the_axis_after_the_batch_by_default():
    x, i = f32(3, 4, 2), np.array([[0, 3], [1, 1], [2, 0]], np.int32)
    np.testing.assert_array_equal(run_checked_job(lambda a, b: flow.gather(a, b, batch_dims=1), x, i),
                                  x[np.arange(3)[:, None], i])
    np.testing.assert_array_equal(run_checked_job(lambda a, b: flow.gather(a, b), x, i % 3), x[i % 3])
    weights, (g,) = gradients(lambda a, b: flow.gather(a, b, batch_dims=1), x, i)
    want = np.zeros_like(x)
    np.add.at(want, (np.arange(3)[:, None], i), weights)
    np.testing.assert_allclose(g, want, rtol=1e-6)


def test_gather_refuses_invalid_arguments():
    x, i = flow.tensor(f32(3, 4)), flow.tensor(np.zeros((3, 2), np.int32))
    with refused(ValueError, "batch axes"):
        flow.gather(x, i, axis=0, batch_dims=1)
    with refused(ValueError, "(2, 4)", "(3, 2)"):
        flow.gather(flow.tensor(f32(2, 4)), i, batch_dims=1)
    with refused(TypeError, "int32 or int64"):
        flow.gather(x, flow.tensor(f32(3, 2)), batch_dims=1)
    with refused(RuntimeError, "out of range: 4"):           # not the first element of the next batch
        flow.gather(x, flow.tensor(np.full((3, 2), 4)), batch_dims=1)


# --- gather_nd, scatter_nd
# -------------------------------------------------------------------------------------------

def test_vectors_of_oneflow():
    x = np.arange(1, 10, dtype=np.float32).reshape(3, 3)

    def at(*rows):
        return np.array(rows, np.int32)

    np.testing.assert_array_equal(run_checked_job(flow.gather_nd, x, at([0], [2])), [[1, 2, 3], [7, 8, 9]])
    np.testing.assert_array_equal(run_checked_job(flow.gather_nd, x, at([0, 2], [2, 1])), [3, 8])
    got = run_checked_job(lambda i, u: flow.scatter_nd(i, u, [8]), at([1], [6], [4]),
                          np.float32([10.2, 5.1, 12.7]))
    np.testing.assert_array_equal(got, np.float32([0, 10.2, 0, 0, 12.7, 0, 5.1, 0]))
    rows, u = np.tile(np.float32([1, 2, 3]), (5, 1)), np.float32([[1, 1, 1], [2, 2, 2], [3, 3, 3]])
    got = run_checked_job(flow.tensor_scatter_nd_update, rows, at([0], [4], [2]), u)
    np.testing.assert_array_equal(got, [[1, 1, 1], [1, 2, 3], [3, 3, 3], [1, 2, 3], [2, 2, 2]])
    got = run_checked_job(flow.tensor_scatter_nd_add, rows, at([0], [4], [2]), u)
    np.testing.assert_array_equal(got, [[2, 3, 4], [1, 2, 3], [4, 5, 6], [1, 2, 3], [3, 4, 5]])


@some
@given(st.data())
def test_scatter_undoes_gather(data):
    shape = draw_shape(data, rank=(1, 3))
    k, rows = data.draw(st.integers(1, len(shape))), draw_shape(data, rank=(0, 2))
    x = f32(*shape)
    i = np.stack([indices(data, n, rows) for n in shape[:k]], axis=-1).astype(np.int64)
    at = tuple(np.moveaxis(i, -1, 0))
    part = run_checked_job(flow.gather_nd, x, i)
    np.testing.assert_array_equal(part, x[at])
    want = np.zeros_like(x)
    np.add.at(want, at, part)
    np.testing.assert_allclose(run_checked_job(lambda i, u: flow.scatter_nd(i, u, shape), i, part), want,
                               rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(run_checked_job(flow.tensor_scatter_nd_update, x, i, part), x)
    np.testing.assert_allclose(run_checked_job(flow.tensor_scatter_nd_add, x, i, part), x + want, rtol=1e-5,
                               atol=1e-6)


def test_only_the_last_update_of_an_index_has_a_gradient():
    x, i, u = f32(4), np.array([[1], [3], [1]]), f32(3, seed=1)
    weights, (dx, du) = gradients(flow.tensor_scatter_nd_update, x, i, u)
    np.testing.assert_allclose(dx, weights * [1, 0, 1, 0])
    np.testing.assert_allclose(du, [0, weights[3], weights[1]])


def test_scatter_refuses_invalid_arguments():
    x, i = flow.tensor(f32(4, 3)), flow.tensor(np.array([[1], [3]]))
    with refused(ValueError, "(2, 3)", "updates (2, 2)"):
        flow.scatter_nd(i, flow.tensor(f32(2, 2)), (4, 3))
    with refused(ValueError, "last axis of indices"):
        flow.gather_nd(x, flow.tensor(np.zeros((2, 3), np.int32)))
    with refused(TypeError, "float64"):
        flow.tensor_scatter_nd_add(x, i, flow.tensor(f32(2, 3).astype(np.float64)))
    with refused(TypeError, "types"):
        flow.tensor_scatter_nd_update(x, i, flow.tensor(f32(2, 3).astype(np.float64)))
    for f in (lambda i: flow.gather_nd(x, i), lambda i: flow.scatter_nd(i, flow.tensor(f32(2, 3)), (4, 3))):
        with refused(RuntimeError, "out of range: -1"):
            f(flow.tensor(np.array([[-1], [0]])))
    with refused(RuntimeError, "the index 4, out of range"):
        run(flow.gather_nd, f32(4, 3), np.array([[0], [4]]))


# --- one index for every element, segments, one-hot, argwhere
# --------------------------------------------------------

@some
@given(st.data())
def test_dim_gather(data):
    shape = draw_shape(data)
    dim, n = data.draw(st.integers(0, len(shape) - 1)), data.draw(st.integers(1, 5))
    x, i = f32(*shape), indices(data, shape[dim], (*shape[:dim], n, *shape[dim + 1:]))
    np.testing.assert_array_equal(run_checked_job(lambda a, b: flow.dim_gather(a, dim, b), x, i),
                                  np.take_along_axis(x, i, dim))


def test_batch_gather_uses_the_indices_of_each_batch():
    rng = np.random.default_rng(0)
    x, few = rng.standard_normal((2, 3, 4, 5)), rng.integers(0, 4, (2, 3, 6))
    want = np.stack([np.stack([x[b, c, few[b, c]] for c in range(3)]) for b in range(2)])
    np.testing.assert_array_equal(run_checked_job(flow.batch_gather, x, few), want)
    np.testing.assert_array_equal(run_checked_job(flow.batch_gather, x, few[0, 0] % 2), x[few[0, 0] % 2])


@some
@given(st.data())
def test_segment_sums(data):
    shape, batch = draw_shape(data, rank=(1, 3)), draw_shape(data, rank=(0, 2))
    axis, size = data.draw(st.integers(0, len(shape) - 1)), data.draw(st.integers(1, 5))
    x, i = f32(*shape), indices(data, size, shape[axis])
    want = np.zeros((*shape[:axis], size, *shape[axis + 1:]), np.float32)
    for k, segment in enumerate(i):
        want[(slice(None),) * axis + (segment,)] += np.take(x, k, axis)
    got = run_checked_job(lambda a, b: flow.unsorted_segment_sum(a, b, size, axis=axis), x, i)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    got = run_checked_job(lambda a, b, c: flow.unsorted_segment_sum_like(a, b, c, axis), x, i, want)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    x, i = f32(*batch, *shape), indices(data, size, (*batch, shape[0]))
    want = np.zeros((*batch, size, *shape[1:]), np.float32)
    for place in np.ndindex(*i.shape):
        want[(*place[:-1], i[place])] += x[place]
    got = run_checked_job(lambda a, b: flow.unsorted_batch_segment_sum(a, b, size), x, i)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_segments_refuse_invalid_arguments():
    x, i = flow.tensor(f32(3)), flow.tensor(np.array([0, 1, 2]))
    with refused(ValueError, "num_segments"):
        flow.unsorted_segment_sum(x, i, 0)
    with refused(RuntimeError, "out of range: 2"):
        flow.unsorted_segment_sum(x, i, 2)


@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
def test_one_hot_along_any_axis(axis):
    i = np.array([[0, 2], [1, 5]], np.int32)
    got = run_checked_job(lambda a: flow.one_hot(a, 3, on_value=5, off_value=-1, axis=axis), i)
    want = np.moveaxis(np.where(i[..., None] == np.arange(3), 5, -1), -1, axis)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, want)


def test_argwhere_eagerly():
    x = np.float32([[0, 1, 0], [2, 0, 2]])
    t = flow.tensor(x)
    got = flow.argwhere(t, dtype=flow.int32).numpy()         # dtype= selects OneFlow 0.4's function
    assert got.dtype == np.int32 and flow.argwhere(t).dtype is flow.int64
    np.testing.assert_array_equal(got, [[0, 1], [1, 0], [1, 2]])
    np.testing.assert_array_equal(flow.oneflow04.functions.shapes_and_constants.where(t).numpy(), got)
    np.testing.assert_array_equal(flow.oneflow04.functions.gather_scatter.nonzero(t).numpy(), got.T)
    np.testing.assert_array_equal(flow.nonzero(t).numpy(), got)          # for tensors, as in PyTorch
    np.testing.assert_array_equal([i.numpy() for i in flow.where(t)], got.T)
    assert flow.argwhere(t, dtype=flow.int64).numpy().dtype == np.int64
    assert flow.argwhere(flow.tensor(x * 0)).shape == (0, 2)


def test_argwhere_in_a_job_is_dynamic():
    x = np.int32([3, 0, 1, 0, 1])

    def body(a):
        y = flow.where(a)
        assert y.is_dynamic and y.shape == (5, 1) and y.dtype is flow.int32
        return y

    f = job(body, x, returns=tp.ListNumpy)
    for a in (x, x * 0, x * 0 + 1):
        (got,) = f(a)
        np.testing.assert_array_equal(got, np.argwhere(a))


def test_where_refuses_one_of_two():
    t = flow.tensor(f32(3))
    with refused(ValueError, "go together"):
        flow.where(t, t)


# --- order
# -----------------------------------------------------------------------------------------------------------

@some
@given(st.data())
def test_sort_is_stable_both_ways(data):
    shape, dtype = (draw_shape(data, high=40), data.draw(st.sampled_from([np.float32, np.float64, np.int32,
                                                                          np.int64])))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-3, 4, shape).astype(dtype)
    up = run_checked_job(lambda a: flow.argsort(a, axis=axis), x)
    down = run_checked_job(lambda a: flow.argsort(a, axis, "DESCENDING"), x)
    assert up.dtype == down.dtype == np.int32
    np.testing.assert_array_equal(up, np.argsort(x, axis, kind="stable"))
    np.testing.assert_array_equal(down, np.argsort(-x, axis, kind="stable"))
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.sort(a, axis=axis), x), np.sort(x, axis))
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.sort(a, axis, direction="DESCENDING"), x),
                                  -np.sort(-x, axis))
    k = data.draw(st.integers(1, 6))
    top = run_checked_job(lambda a: flow.math.top_k(a, axis, k), x)
    assert top.dtype == np.int32
    np.testing.assert_array_equal(top, np.take(down, range(min(k, x.shape[axis])), axis))


def test_nan_is_the_largest():
    x = np.float32([2, np.nan, -1, np.inf, np.nan])
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.argsort(a, axis=-1), x), [2, 0, 3, 1, 4])
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.argsort(a, direction="DESCENDING"), x),
                                  [1, 4, 3, 0, 2])
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.math.top_k(a, k=3), x), [1, 4, 3])


def test_sort_sends_gradients_back():
    x = f32(3, 5)
    weights, (g,) = gradients(lambda a: flow.sort(a, axis=0, direction="DESCENDING"), x)
    want = np.zeros_like(x)
    np.put_along_axis(want, np.argsort(-x, 0), weights, 0)
    np.testing.assert_allclose(g, want)


def test_sorting_functions_refuse_invalid_arguments():
    t = flow.tensor(f32(3))
    with refused(AssertionError, "DESCENDING", "'down'"):
        flow.sort(t, direction="down")
    # as before OneFlow 0.4
    np.testing.assert_array_equal(flow.sort(t, "DESCENDING").numpy(), -np.sort(-t.numpy()))
    with refused(ValueError, "k"):
        flow.math.top_k(t, k=0)
    with refused(ValueError, "axis"):
        flow.math.top_k(t, axis=1)


def test_in_top_k():
    targets = np.array([3, 1], np.int32)
    scores = np.float32([[0, 1, 2, 3], [3, 2, 1, 0]])
    got = run_checked_job(lambda t, p: flow.math.in_top_k(t, p, 1), targets, scores)
    assert got.dtype == np.int8
    np.testing.assert_array_equal(got, [1, 0])
    np.testing.assert_array_equal(run_checked_job(lambda t, p: flow.in_top_k(t, p, 2), targets, scores),
                                  [1, 1])
    ties = np.float32([[1, 1, 1, 0], [np.nan, 5, 1, 0]])
    np.testing.assert_array_equal(run_checked_job(lambda t, p: flow.in_top_k(t, p, 1), np.array([2, 1]),
                                                  ties), [1, 0])
    with refused(ValueError, "targets (n,)"):
        flow.in_top_k(flow.tensor(scores), flow.tensor(targets), 1)
    with refused(RuntimeError, "out of range: 4"):
        flow.in_top_k(flow.tensor(targets + 1), flow.tensor(scores), 1)


@pytest.mark.peer
def test_scatter_and_sort_agree_with_pytorch():
    torch = pytest.importorskip("torch")
    x, i = f32(4, 6), np.random.default_rng(1).integers(0, 6, (4, 3))
    weights, (g,) = gradients(lambda a, b: flow.dim_gather(a, 1, b), x, i)
    t = torch.tensor(x, requires_grad=True)
    weighted(torch.tensor(weights), torch.gather(t, 1, torch.tensor(i))).backward()
    np.testing.assert_allclose(g, t.grad.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.math.top_k(a, k=4), x),
                                  torch.topk(t, 4)[1].numpy())
