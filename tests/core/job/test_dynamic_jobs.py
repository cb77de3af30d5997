"""Jobs whose shapes vary from call to call (tp.ListNumpy, tp.ListListNumpy), and host ops before the plan."""
# ruff: noqa: UP006, UP035  (annotations as OneFlow scripts write them: Tuple and List of typing)
import threading
from typing import List, Tuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from common import constant, constant_rate, f32, fresh_session, refused  # noqa: F401
from flowedu.ops.front import front
from flowedu.ops.host import HOST, define_host

SGD = flow.optimizer.SGD


def mirrored():
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())
    return config


def train_two_layers(x, y):
    hidden = flow.layers.dense(flow.reshape(x, [-1, 6]), 5, activation=flow.math.tanh,
                               kernel_initializer=constant(f32(5, 6, seed=1)), name="hidden")
    logits = flow.layers.dense(hidden, 3, kernel_initializer=constant(f32(3, 5, seed=2)), name="out")
    loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
    SGD(constant_rate(0.2), momentum=0).minimize(loss)
    return loss


def data(n, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2, 3)).astype(np.float32), rng.integers(0, 3, n).astype(np.int32)


@settings(max_examples=10)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=6))
def test_a_varying_batch_trains_as_jobs_of_fixed_size_do(sizes):
    def dynamic():
        @flow.global_function("train", mirrored())
        def job(x: tp.ListNumpy.Placeholder((8, 2, 3)),
                y: tp.ListNumpy.Placeholder((8,), flow.int32)) -> tp.ListNumpy:
            bodies.append(x.shape)
            assert x.is_dynamic
            return train_two_layers(x, y)
        return [job([x], [y])[0] for x, y in map(data, sizes, range(len(sizes)))]

    def fixed():
        jobs = {}
        for n in set(sizes):
            def fn(x: tp.Numpy.Placeholder((n, 2, 3)), y: tp.Numpy.Placeholder((n,), flow.int32)) -> tp.Numpy:
                return train_two_layers(x, y)
            fn.__name__ = f"job_{n}"
            jobs[n] = flow.global_function("train")(fn)
        return [jobs[n](*data(n, seed)) for seed, n in enumerate(sizes)]

    bodies = []
    flow.clear_default_session()
    got = dynamic()
    assert bodies == [(8, 2, 3)], "the body runs once, and sees the largest shape"
    flow.clear_default_session()
    for a, b in zip(got, fixed()):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_plans_of_old_shapes_are_evicted():
    from flowedu.oneflow04.job.program04 import KEPT

    @flow.global_function("predict", mirrored())
    def job(x: tp.ListNumpy.Placeholder((100, 2))) -> tp.ListNumpy:
        return x * 2.0

    for n in range(1, 60):
        assert job([np.ones((n, 2), np.float32)])[0].shape == (n, 2)
    assert len(job.program.kept) == KEPT


def test_a_dynamic_blob_may_not_be_returned_as_numpy():
    @flow.global_function("predict", mirrored())
    def job(x: tp.ListNumpy.Placeholder((4, 2))) -> tp.Numpy:
        return x * 2.0

    with refused(AssertionError, "fixed shape", "ListNumpy"):
        job([f32(4, 2)])


def test_list_numpy_needs_the_mirrored_view():
    @flow.global_function()
    def job(x: tp.ListNumpy.Placeholder((4, 2))) -> tp.ListNumpy:
        return x

    with refused(AssertionError, "mirrored_view", at=False):
        job([f32(4, 2)])


@pytest.mark.parametrize("bad, words", [
    ([f32(5, 2)], ["larger than the placeholder"]), ([f32(4)], ["rank"]), (f32(4, 2), ["per device"]),
    ([f32(2, 2), f32(2, 2)], ["per device"])])
def test_arguments_that_do_not_fit_the_placeholder_are_refused(bad, words):
    @flow.global_function("predict", mirrored())
    def job(x: tp.ListNumpy.Placeholder((4, 2))) -> tp.ListNumpy:
        return x * 2.0

    with refused(AssertionError, *words):
        job(bad)
    assert job([f32(1, 8)])[0].shape == (1, 8), "only the number of elements is bounded"


def test_reshape_with_the_static_batch_freezes_it():
    @flow.global_function("predict", mirrored())
    def job(x: tp.ListNumpy.Placeholder((4, 6))) -> tp.ListNumpy:
        return flow.reshape(x, [x.shape[0], -1])

    assert job([f32(4, 6)])[0].shape == (4, 6)
    assert job([f32(2, 6)])[0].shape == (4, 3), "surprise 20: the upper bound is frozen, the grouping changes"


def test_watch_receives_the_fed_arrays():
    seen = []

    @flow.global_function("train", mirrored())
    def job(x: tp.ListNumpy.Placeholder((8, 2, 3)),
            y: tp.ListNumpy.Placeholder((8,), flow.int32)) -> tp.ListNumpy:
        loss = train_two_layers(x, y)

        def listed(v: tp.ListNumpy):
            seen.append([a.shape for a in v])
        flow.watch(x, listed)
        flow.watch_diff(loss, lambda v: seen.append((v.is_dynamic, v.numpy().tolist())))
        return loss

    job(*[[a] for a in data(2, 0)])
    job(*[[a] for a in data(5, 1)])
    assert seen == [[(2, 2, 3)], (True, [1.0] * 2), [(5, 2, 3)], (True, [1.0] * 5)]


def test_a_future_returns_dynamic_blobs():
    @flow.global_function("predict", mirrored())
    def job(x: tp.ListNumpy.Placeholder((4, 2))):
        return {"twice": x * 2.0}

    result = job([f32(3, 2)]).get()["twice"]
    assert result.is_dynamic and result.parallel_num() == 1 and result.numpy_list()[0].shape == (3, 2)


# ---- host ops
def counter():
    if "test_counter" not in HOST:
        define_host("test_counter(*, size, start=0) -> y",
                    host=lambda size, state: np.full(size, next(state), np.float32),
                    shape=lambda size: (size,), dtype=lambda: flow.float32,
                    state=lambda start: iter(range(start, 1000)))
        define_host("test_longest(x) -> y", host=lambda x: x[: int(x.flat[0])], shape=lambda x: x.shape,
                    dtype=lambda x: x.dtype, dynamic=["y"])
    return HOST["test_counter"], HOST["test_longest"]


@front("Count")
def count(size, start=0):
    return counter()[0](size=size, start=start)


@front("Longest")
def longest(x):
    return counter()[1](x)


def test_a_source_advances_with_every_run_and_reads_ahead():
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((3,))) -> Tuple[tp.Numpy, tp.Numpy]:
        a, b = count(3), count(3, start=10)
        return a, x * a + b

    before = threading.active_count()
    x = np.array([1, 2, 3], np.float32)
    for i in range(20):
        a, y = job(x)
        np.testing.assert_array_equal(a, np.full(3, i))
        np.testing.assert_array_equal(y, x * i + 10 + i)
    flow.clear_default_session()
    assert threading.active_count() == before, "the thread that reads ahead has ended"


def test_a_job_without_arguments_advances_its_source():
    @flow.global_function()
    def job() -> tp.Numpy:
        return count(2, start=5)

    assert [job().tolist() for _ in range(3)] == [[5, 5], [6, 6], [7, 7]]


def test_training_on_a_source():
    @flow.global_function("train")
    def job() -> tp.Numpy:
        w = flow.get_variable("w", (3,), initializer=flow.ones_initializer())
        loss = w * count(3)
        SGD(constant_rate(0.3), momentum=0).minimize(loss)
        return loss

    w = np.ones(3, np.float32)
    for i in range(4):
        np.testing.assert_allclose(job(), w * i, rtol=1e-6)
        w = w - np.float32(0.3) * i / 3


def test_a_host_result_whose_size_varies():
    @flow.global_function("predict")
    def job(x: tp.Numpy.Placeholder((6,))) -> Tuple[tp.ListNumpy, tp.ListNumpy]:
        y = longest(flow.math.negative(x))
        assert y.is_dynamic and y.shape == (6,)
        return y, y * 2.0

    for n in (2, 5, 2):
        y, twice = job(-np.full(6, n, np.float32))
        assert y[0].shape == (n,)
        np.testing.assert_array_equal(twice[0], 2 * y[0])


def test_an_exception_in_a_source_reaches_the_caller():
    @flow.global_function()
    def job() -> tp.Numpy:
        return count(2, start=999)

    assert job().tolist() == [999, 999]
    with pytest.raises((StopIteration, RuntimeError, flow.errors.FlowError)):
        job()


def test_tensor_lists_in_and_out():
    @flow.global_function("predict", mirrored())
    def job(x: tp.ListListNumpy.Placeholder((3, 4, 5))) -> Tuple[tp.ListListNumpy, List[tp.ListNumpy]]:
        return x, list(flow.tensor_list_split(x))

    arrays = [f32(1, 2, 3), f32(1, 4, 1), f32(1, 1, 5)]
    whole, parts = job([arrays])
    for a, b, c in zip(arrays, whole[0], parts):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a[0], c[0])


def test_a_tensor_list_is_no_blob_of_numbers():
    @flow.global_function("predict", mirrored())
    def job(x: tp.ListListNumpy.Placeholder((3, 4, 5))) -> tp.ListNumpy:
        return flow.math.relu(x)

    with refused(TypeError, "tensor list"):
        job([[f32(1, 2, 3)]])


def test_plans_of_different_shapes_draw_different_numbers():
    @flow.global_function("predict", mirrored())
    def job(x: tp.ListNumpy.Placeholder((100, 2))) -> tp.ListNumpy:
        return flow.random.bernoulli(x)

    def draw_rows(n):
        return job([np.full((n, 2), 0.5, np.float32)])[0][:50].ravel()

    draws = [draw_rows(50), draw_rows(100), draw_rows(99), draw_rows(50)]
    assert all((a != b).any() for i, a in enumerate(draws) for b in draws[:i])


def test_a_tensor_buffer_cannot_be_watched():
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((3, 4))) -> tp.Numpy:
        buffers = flow.tensor_to_tensor_buffer(x, instance_dims=1)
        with refused(NotImplementedError, "not numeric"):
            flow.watch(buffers)
        with refused(TypeError, "tensor_buffer"):
            flow.math.relu(buffers)
        return flow.tensor_buffer_to_tensor(buffers, flow.float32, [4])

    np.testing.assert_array_equal(job(f32(3, 4)), f32(3, 4))
