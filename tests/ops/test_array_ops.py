"""range, pad, slices, broadcasts, assign, random order ..., eagerly and in jobs, against NumPy."""
import numpy as np
import pytest
from array_common import gradients, run_checked_job
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from bounds import assert_rate
from common import constant, constant_rate, f32, fresh_session, job, refused, run  # noqa: F401
from flowedu.errors import ArgumentError, CheckError

some = settings(max_examples=15)


def shapes(low=1, high=4, rank=(1, 3)):
    return st.lists(st.integers(low, high), min_size=rank[0], max_size=rank[1]).map(tuple)


# --- range, eye, diag, tril
# ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("args, dtype", [((10,), None), ((1, 10, 3), flow.int64), ((-3, 4, 2), flow.int32),
                                         ((0, 5), flow.float32)])
def test_range(args, dtype):
    want = np.arange(*args).astype(dtype.numpy if dtype else np.int64)
    for got in (flow.range(*args, dtype=dtype).numpy(), run(lambda: flow.range(*args, dtype=dtype))):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_two_ranges_need_names():
    def body():
        return flow.range(3) + flow.range(3, 6)

    with refused(RuntimeError, "'range'"):
        run(body)
    np.testing.assert_array_equal(run(lambda: flow.range(3) + flow.range(3, 6, name="second")), [3, 5, 7])


@pytest.mark.parametrize("args", [(3, 3), (5, 2), (0,), (0, 5, 0), (0, 5, -1), (1.5,), (0, 4.0), (True,)])
def test_range_refuses_invalid_arguments(args):
    with refused(AssertionError, "range"):
        flow.range(*args)


@some
@given(st.lists(st.integers(1, 5), min_size=2, max_size=3).map(tuple), st.integers(-5, 5),
       st.sampled_from([0, -1.5]))
def test_triangles(shape, diagonal, fill):
    x = f32(*shape)
    lower = np.tril(np.ones(shape), diagonal).astype(bool)
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.tril(a, diagonal, fill), x),
                                  np.where(lower, x, np.float32(fill)))
    upper = np.triu(np.ones(shape), diagonal).astype(bool)
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.triu(a, diagonal, fill), x),
                                  np.where(upper, x, np.float32(fill)))
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.diag(flow.diag(a, diagonal), diagonal),
                                                  x.reshape(-1)), x.reshape(-1))


def test_matrices():
    assert flow.math.tril is flow.nn.tril and flow.tril.__wrapped__ is flow.math.tril.function
    np.testing.assert_array_equal(flow.eye(3, 4).numpy(), np.eye(3, 4, dtype=np.float32))
    np.testing.assert_array_equal(run(lambda: flow.eye(2, dtype=flow.int32)), np.eye(2, dtype=np.int32))
    x = f32(3, 5)
    for k in range(-2, 5):
        np.testing.assert_array_equal(run_checked_job(lambda a, k=k: flow.diag(a, k), x), np.diag(x, k))
        np.testing.assert_array_equal(run_checked_job(lambda a, k=k: flow.diag(a, k), x[0]), np.diag(x[0], k))
    weights, (g,) = gradients(lambda a: flow.diag(a, 1), x)
    want = np.zeros_like(x)
    want[np.arange(3), np.arange(3) + 1] = weights
    np.testing.assert_allclose(g, want)
    weights, (g,) = gradients(flow.tril, x)
    np.testing.assert_allclose(g, np.tril(weights))
    with refused(ValueError, "diagonal=5"):
        flow.oneflow04.functions.ranges_and_triangles.diag(flow.tensor(x), 5)
    assert flow.diag(flow.tensor(x), 5).shape == (0,)        # for tensors, as in PyTorch
    with refused(ValueError, "matrix"):
        flow.tril(flow.tensor(x[0]))
    with refused((AssertionError, TypeError), "diagonal"):
        flow.tril(flow.tensor(x), 0.5)


# --- pad and slices
# --------------------------------------------------------------------------------------------------

@some
@given(st.data())
def test_pad(data):
    shape = data.draw(shapes())
    around = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=len(shape),
                                max_size=len(shape)))
    value = data.draw(st.sampled_from([0, 1.5, -np.inf, 1e30]))
    x = f32(*shape)
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.pad(a, around, value), x),
                                  np.pad(x, around, constant_values=np.float32(value)))
    weights, (g,) = gradients(lambda a: flow.pad(a, around, 2.0), x)
    np.testing.assert_allclose(g, weights[tuple(slice(a, a + n) for (a, _), n in zip(around, shape))])


def test_pad_keeps_integers_and_refuses():
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    got = run_checked_job(lambda a: flow.pad(a, [(1, 0), (0, 2)], constant_value=7), x)
    np.testing.assert_array_equal(got, np.pad(x, [(1, 0), (0, 2)], constant_values=7))
    t = flow.tensor(x)
    for bad in (1, [(1, 1)], [(1, 1), (-1, 0)], [(1, 1), 2], [(1, 1), (1, 1, 1)], [(1, 1), (0.5, 1)]):
        with refused(ValueError, "paddings"):
            flow.pad(t, bad)


def a_slice(n):
    def none(s):
        return st.one_of(st.none(), s)

    return st.tuples(none(st.integers(-n, n - 1)), none(st.integers(-n - 2, n + 2)),
                     none(st.integers(-3, 3).filter(bool)))


@some
@given(st.data())
def test_slice_v2_slices_as_python_does(data):
    shape = data.draw(shapes(high=6))
    slices = [data.draw(a_slice(n)) for n in shape[:data.draw(st.integers(0, len(shape)))]]
    at = tuple(slice(*s) for s in slices)
    x = f32(*shape)
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.slice_v2(a, slices), x), x[at])
    weights, (g,) = gradients(lambda a: flow.slice_v2(a, slices), x) if x[at].size else (0, (0,))
    if x[at].size:
        want = np.zeros_like(x)
        want[at] = weights
        np.testing.assert_allclose(g, want)
    ahead = [(a, b, abs(c) if c else c) for a, b, c in slices]
    part = f32(*x[tuple(slice(*s) for s in ahead)].shape, seed=1)
    if part.size:
        want = x.copy()
        want[tuple(slice(*s) for s in ahead)] = part
        np.testing.assert_array_equal(run_checked_job(lambda a, u: flow.slice_update(a, u, ahead), x, part),
                                      want)


@pytest.mark.parametrize("slices, word", [
    ([(0, 1, 0)], "step is 0"), ([(3, None, None)], "start is out of range"),
    ([(-4, None, None)], "start is out of range"),
    ([(0, 1)], "(start, stop, step)"), ([(0, 1, 1)] * 3, "up to 2"), (3, "up to 2"),
    ([(0, 1.5, 1)], "three ints")])
def test_slice_v2_refuses_invalid_arguments(slices, word):
    with refused(ValueError, word):
        flow.slice_v2(flow.tensor(f32(3, 2)), slices)


def test_slice_update_refuses_invalid_arguments():
    x, u = flow.tensor(f32(3, 2)), flow.tensor(f32(1, 2))
    with refused(ValueError, "float32 (2, 2)"):
        flow.slice_update(x, u, [(0, 2, 1)])
    with refused(ValueError, "negative"):
        flow.slice_update(x, u, [(None, None, -1)])


def test_reverse_and_swapaxes():
    x = f32(3, 4, 2)
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.reverse(a, 1), x), x[:, ::-1])
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.reverse(a, [0, -1]), x), x[::-1, :, ::-1])
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.swapaxes(a, 0, -1), x), x.swapaxes(0, -1))


# --- like another, fills, counts
# -------------------------------------------------------------------------------------

def test_broadcasts():
    like = f32(3, 4, 2)
    for shape, axes in (((3, 1, 2), (1,)), ((3, 2), (1,)), ((3,), [1, 2]), ((3, 1, 1), (1, 2)),
                        ((4, 2), None), ((), None), ((1, 1, 1), (0, 1, 2))):
        x = f32(*shape, seed=1)
        lifted = x.reshape([1 if a in (axes or ()) else n for a, n in enumerate(like.shape)]) if axes else x

        def f(a, b, axes=axes):
            return flow.broadcast_like(a, b, axes)

        np.testing.assert_array_equal(run_checked_job(f, x, like), np.broadcast_to(lifted, like.shape))
    np.testing.assert_array_equal(run_checked_job(lambda a, b: flow.broadcast_to_compatible_with(a, [b]),
                                                  f32(1, 2), f32(3, 1, 1)),
                                  np.broadcast_to(f32(1, 2), (3, 1, 2)))
    np.testing.assert_array_equal(run_checked_job(flow.reshape_like, like, f32(6, 4)), like.reshape(6, 4))
    t = flow.tensor(like)
    for axes in ([], [0, 0, 1, 1], 1):
        with refused(ValueError, "broadcast_axes"):
            flow.broadcast_like(t, t, axes)
    for x, axes in ((f32(4, 2), (1,)), (f32(3, 4, 2, 1), None), (f32(5, 2), None)):
        with refused(ValueError, "x"):
            flow.broadcast_like(flow.tensor(x), t, axes)
    with refused(AssertionError, "24 elements"):
        flow.reshape_like(t, flow.tensor(f32(5)))


def test_masked_fill_and_where():
    x, mask = f32(3, 4), np.array([1, 0, 3, 0])
    for dtype in (np.int8, np.int32, np.int64):
        got = run_checked_job(lambda a, m: flow.masked_fill(a, m, 5), x, mask.astype(dtype))
        np.testing.assert_array_equal(got, np.where(mask != 0, np.float32(5), x))
    weights, (g,) = gradients(lambda a, m: flow.masked_fill(a, m, 5), x, mask)
    np.testing.assert_allclose(g, weights * (mask == 0))
    with refused(TypeError, "mask"):
        flow.masked_fill(flow.tensor(x), flow.tensor(x), 5)
    with refused(ValueError, "value"):
        flow.masked_fill(flow.tensor(x), flow.tensor(mask), flow.tensor(x))


def test_miscellaneous_functions():
    x = f32(2, 3)
    a, b = flow.identity_n([flow.tensor(x), flow.tensor(x + 1)])
    np.testing.assert_array_equal(b.numpy() - a.numpy(), (x + 1) - x)
    got = run(lambda a, b: tuple(flow.identity_n([a, b], name="both")), x, x + 1,
              returns=tuple[tp.Numpy, tp.Numpy])
    np.testing.assert_array_equal(got[1], x + 1)
    np.testing.assert_array_equal(run_checked_job(flow.elem_cnt, x), np.int32([6]))
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.elem_cnt(a, dtype=flow.int64), x),
                                  np.int64([6]))
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.dynamic_reshape(a, [3, -1]), x),
                                  x.reshape(3, 2))
    np.testing.assert_array_equal(run(lambda: flow.constant_scalar(2.5, flow.float32)), np.float32([2.5]))
    np.testing.assert_array_equal(run_checked_job(lambda a: flow.broadcast_add(a, a), x), x + x)
    np.testing.assert_allclose(run_checked_job(lambda a: flow.math.polyval([1.0, 3.0, -2.0], a),
                                               np.float32([1, 2, 3])), [2, 8, 16])
    assert flow.linalg.matmul is flow.matmul and flow.clip_by_scalar.function is flow.clip.function


@pytest.mark.parametrize("name", ["repeat", "pack", "unpack", "acc"])
def test_micro_batches_point_to_the_config(name):
    with refused(NotImplementedError, name, "num_gradient_accumulation_steps"):
        getattr(flow, name)(flow.tensor(f32(2)), 2)


def test_large_constants_do_not_overflow():
    for value in (1e30, -1e30, np.inf, 2.0 ** 63):
        np.testing.assert_array_equal(flow.constant(float(value), flow.float32, (2,)).numpy(),
                                      np.float32([value] * 2))


# --- assign
# ----------------------------------------------------------------------------------------------------------

def variable(name, value, trainable=False):
    return flow.get_variable(name, value.shape, flow.float32, constant(value), trainable=trainable)


def test_assign_takes_effect_in_the_next_run():
    x = f32(3)

    def body(a):
        v = variable("v", np.zeros(3, np.float32))
        before = v + 0.0
        assert flow.assign(v, v + a) is None
        return before, v, v * 1.0

    f = job(body, x, returns=tuple[tp.Numpy, tp.Numpy, tp.Numpy])
    for n in range(3):
        for got in f(x):
            np.testing.assert_allclose(got, n * x, rtol=1e-6)
    np.testing.assert_allclose(flow.get_all_variables()["v"].numpy(), 3 * x, rtol=1e-6)


def test_two_variables_can_swap():
    a, b = f32(3), f32(3, seed=1)

    def body():
        u, v = variable("u", a), variable("v", b)
        flow.assign(u, v)
        flow.assign(v, u)
        return u - v

    f = job(body)
    np.testing.assert_allclose(f(), a - b)
    np.testing.assert_allclose(f(), b - a)
    np.testing.assert_allclose(f(), a - b)


def test_assign_in_a_training_job_and_eagerly():
    def body(x):
        v, seen = (variable("w", np.ones(2, np.float32), trainable=True),
                   variable("seen", np.zeros(2, np.float32)))
        flow.optimizer.SGD(constant_rate(0.5), momentum=0).minimize(v * x)
        flow.assign(seen, v)
        return v * x

    x = np.float32([1, 2])
    f = job(body, x, type="train")
    f(x)
    f(x)
    np.testing.assert_allclose(flow.get_all_variables()["w"].numpy(), 1 - 0.5 * x)
    # as the second run read it
    np.testing.assert_allclose(flow.get_all_variables()["seen"].numpy(), 1 - 0.25 * x)
    t = flow.tensor(np.zeros(2, np.float32))
    flow.assign(t, flow.tensor(x))
    np.testing.assert_array_equal(t.numpy(), x)


def test_assign_refuses_invalid_arguments():
    x = f32(3)
    with refused(ValueError, "not a variable"):
        run(lambda a: flow.assign(a, a), x, returns=None)
    with refused(ValueError, "float32[2]"):
        run(lambda a: flow.assign(variable("v", x), a), x[:2], returns=None)


# --- random
# ----------------------------------------------------------------------------------------------------------

def test_bernoulli():
    p = np.full((40, 50), 0.3, np.float32)
    p[0], p[1] = 0, 1
    f = job(lambda a: flow.random.bernoulli(a), p)
    first, second = f(p), f(p)
    assert first.dtype == np.float32 and set(np.unique(first)) == {0, 1} and (first != second).any()
    for y in (first, second, flow.random.bernoulli(flow.tensor(p), dtype=flow.int8).numpy()):
        assert not y[0].any() and y[1].all()
        assert_rate(y[2:], 0.3)
    a, b = (flow.random.bernoulli(flow.tensor(p), seed=4).numpy() for _ in range(2))
    np.testing.assert_array_equal(a, b)
    flow.clear_default_session()
    with refused(RuntimeError, "'Bernoulli'"):
        run(lambda a: flow.random.bernoulli(a) + flow.random.bernoulli(a), p)
    with refused(TypeError, "probabilities"):
        flow.random.bernoulli(flow.tensor(np.ones(3, np.int32)))


def test_shuffle():
    x = np.arange(60, dtype=np.int32).reshape(30, 2)
    f = job(lambda a: (flow.random.shuffle(a), flow.random.generate_random_batch_permutation_indices(a)), x,
            returns=tuple[tp.Numpy, tp.Numpy])
    runs = [f(x) for _ in range(3)]
    for rows, order in runs:
        np.testing.assert_array_equal(rows[np.argsort(rows[:, 0])], x)
        np.testing.assert_array_equal(np.sort(order), np.arange(30))
        assert order.dtype == np.int32
    assert (runs[0][0] != runs[1][0]).any() and (runs[0][1] != runs[1][1]).any()
    t = flow.tensor(x)
    a, b = (flow.random.shuffle(t, seed=3, name="order").numpy() for _ in range(2))
    np.testing.assert_array_equal(a, b)
    rows = flow.tensor(f32(5), requires_grad=True)
    (flow.random.shuffle(rows) * flow.tensor(np.arange(5, dtype=np.float32))).sum().backward()
    np.testing.assert_array_equal(np.sort(rows.grad.numpy()), np.arange(5))
    with refused(AssertionError, "name"):
        flow.random.shuffle(t, seed=3)


def test_sizes_must_be_integers():
    x = flow.tensor(f32(4, 3))
    for shape in ([4.0, 3], [True, 12], ["4", 3]):
        with refused(CheckError, "reshape: every size"):
            flow.reshape(x, shape)
    assert flow.reshape(x, [np.int64(3), -1]).shape == (3, 4)
    for shape in (3, (-1,), (2.0,), "ab"):
        with refused(ArgumentError, "constant: shape is not a shape"):
            flow.constant(1.0, flow.float, shape)
    assert flow.constant(1, flow.int32).shape == ()


def test_flatten_merges_following_axes():
    x = flow.tensor(f32(2, 3, 4))
    assert flow.flatten(x, 1, 1).shape == (2, 3, 4) and flow.flatten(x, -2).shape == (2, 12)
    with refused((CheckError, ValueError), "end_dim comes before start_dim"):
        flow.flatten(x, 2, 1)
