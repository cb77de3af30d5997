"""OneFlow 0.4 jobs in the placement "gpu": the CPU's values, and variables on the device that are saved,
loaded, and watched.
"""
import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant_rate, fresh_session, job, run, variable_values  # noqa: F401
from custom_ops import cube, own_registry  # noqa: F401
from flowedu.cuda.plan import DeviceExecutor
from flowedu.errors import DeviceError, KernelError, UnsupportedError

TAGS = ("cpu", "gpu")
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((3, 6, 8)).astype(np.float32), RNG.integers(0, 4, (3, 6)).astype(np.int32)
START = flow.random_uniform_initializer(-0.5, 0.5)
OPTIMIZERS = {"momentum": lambda rate: flow.optimizer.SGD(rate, momentum=0.9), "adam": flow.optimizer.Adam,
              "clipped": lambda rate: flow.optimizer.LAMB(rate, grad_clipping=CLIPPING)}
CLIPPING = flow.optimizer.grad_clipping.by_global_norm(0.1)


def define_jobs(tag, optimizer="adam", seen=None, ids="0:0"):
    """Define a train job and a predict job over the same variables, in a new session."""
    flow.clear_default_session()
    flow.random.seed(5)

    def model(x, drop):
        h = flow.layers.dense(x, 16, activation=flow.nn.relu, name="d1", kernel_initializer=START)
        if drop:
            h = flow.nn.dropout(h, 0.5, name="drop")
        if seen is not None:
            flow.watch(h, lambda v: seen.append(v.numpy()))
            flow.watch_diff(h, lambda v: seen.append(v.numpy()))
        return flow.layers.dense(h, 4, name="d2", kernel_initializer=START)

    @flow.global_function("train")
    def train(x: tp.Numpy.Placeholder((6, 8)), y: tp.Numpy.Placeholder((6,), flow.int32)) -> tp.Numpy:
        with flow.scope.placement(tag, ids):
            loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, True))
            rate = flow.optimizer.PiecewiseConstantScheduler([2], [0.1, 0.01])
            OPTIMIZERS[optimizer](rate).minimize(loss)
        return loss

    @flow.global_function()
    def predict(x: tp.Numpy.Placeholder((6, 8))) -> tp.Numpy:
        with flow.scope.placement(tag, ids):
            return flow.nn.softmax(model(x, False))

    return train, predict


def assert_close_values(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_on_a_gpu_matches_the_cpu(optimizer):
    found = []
    for tag in TAGS:
        seen = []
        train, predict = define_jobs(tag, optimizer, seen)
        losses = [train(X[i % 3], Y[i % 3]) for i in range(5)]
        assert isinstance(train.executor, DeviceExecutor) == isinstance(predict.executor,
                                                                        DeviceExecutor) == (tag == "gpu")
        found.append((losses, predict(X[0]), variable_values(), seen))
    (losses, out, state, seen), (far_losses, far_out, far_state, far_seen) = found
    assert_close_values(far_losses, losses)
    assert_close_values(far_out, out)
    assert state.keys() == far_state.keys() and state["System-Train-TrainStep-train"][0] == 5
    for name in state:
        assert_close_values(far_state[name], state[name])
    for a, b in zip(far_seen, seen, strict=True):
        assert_close_values(a, b)


def test_variables_are_on_the_device():
    train, _ = define_jobs("gpu")
    train(X[0], Y[0])
    variables = flow.get_all_variables()
    assert {v.tensor.is_cuda for n, v in variables.items() if "TrainStep" not in n} == {True}
    assert not variables["System-Train-TrainStep-train"].tensor.is_cuda


@pytest.mark.parametrize("first,second", [("gpu", "gpu"), ("gpu", "cpu"), ("cpu", "gpu")])
def test_a_checkpoint_round_trips(tmp_path, first, second):
    train, _ = define_jobs(first)
    for i in range(2):
        train(X[i], Y[i])
    flow.checkpoint.save(str(tmp_path / "c"))
    want, state = train(X[2], Y[2]), variable_values()
    train, _ = define_jobs(second)
    train(X[0], Y[0])
    flow.load_variables(flow.checkpoint.get(str(tmp_path / "c")))
    assert_close_values(train(X[2], Y[2]), want)
    for name, value in variable_values().items():
        assert_close_values(value, state[name])


def test_show_and_profile_of_a_job():
    train, predict = define_jobs("gpu")
    assert "matmul" in train.show()
    assert len(train.profile(X[0], Y[0], repeats=2)) == len(train.plan.steps)
    profiled = variable_values()                                 # as after one call
    train, predict = define_jobs("gpu")
    train(X[0], Y[0])
    for name, value in variable_values().items():
        np.testing.assert_array_equal(value, profiled[name])
    assert predict(np.asfortranarray(X[0])).shape == (6, 4)              # arrays that must be made contiguous


def test_a_job_with_its_own_gpu_placement():
    config = flow.function_config()
    config.default_placement_scope(flow.scope.placement("gpu", "0:0"))
    flow.clear_default_session()
    f = job(lambda x: flow.math.exp(x), X[0], config=config)
    assert_close_values(f(X[0]), np.exp(X[0]))
    assert isinstance(f.executor, DeviceExecutor)


def test_several_virtual_devices_on_one_gpu():
    found = []
    for tag in TAGS:
        flow.clear_default_session()
        flow.config.gpu_device_num(2)

        def body(x, tag=tag):
            with flow.scope.placement(tag, "0:0-1"):
                w = flow.get_variable("w", (8, 3), initializer=flow.ones_initializer())
                y = flow.matmul(x, w)
                flow.optimizer.SGD(constant_rate(0.1), momentum=0).minimize(y)
            return y

        f = job(body, X[0], type="train")
        found.append([f(X[0]) for _ in range(2)])
        assert isinstance(f.executor, DeviceExecutor) == (tag == "gpu")
    assert_close_values(found[1], found[0])


def test_shapes_that_vary():
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())

    @flow.global_function(function_config=config)
    def f(x: tp.ListNumpy.Placeholder((6, 8))) -> tp.ListNumpy:
        with flow.scope.placement("gpu", "0:0"):
            return flow.math.relu(x)
    for n in (6, 2, 6):
        assert_close_values(f([X[0][:n]])[0], np.maximum(X[0][:n], 0))
        assert isinstance(f.executor, DeviceExecutor)


def test_dtypes_and_empty_results():
    def with_gpu(f):
        return lambda *xs: _on_gpu(f, *xs)

    a = np.arange(6, dtype=np.int64).reshape(2, 3)
    np.testing.assert_array_equal(run(with_gpu(lambda x: flow.transpose(x, (1, 0))), a), a.T)
    np.testing.assert_array_equal(run(with_gpu(lambda x: flow.cast(x, flow.int8)), a), a.astype(np.int8))


def _on_gpu(f, *xs):
    with flow.scope.placement("gpu", "0:0"):
        return f(*xs)


# ---- errors
def test_one_variable_on_two_devices():
    flow.clear_default_session()

    def body(tag):
        def f(x):
            with flow.scope.placement(tag, "0:0"):
                return flow.layers.dense(x, 2, name="d", kernel_initializer=START)
        return f
    a = job(body("gpu"), X[0], name="a")
    job(body("cpu"), X[0], name="b")
    with pytest.raises(DeviceError, match=r"'d-weight' is used on two devices(.|\n)*a runs on cuda:0, b runs "
                       r"on cpu:0"):
        a(X[0])


def test_an_index_out_of_range():
    f = job(lambda x, i: _on_gpu(lambda x, i: flow.gather(x, i), x, i), X[0], Y[0])
    f(X[0], Y[0])
    with pytest.raises(KernelError, match="job: gather(.|\n)*9"):
        f(X[0], np.full(6, 9, np.int32))
    assert_close_values(f(X[0], Y[0]), X[0][Y[0]])


def test_a_python_kernel_names_its_node():
    op = cube()
    with pytest.raises(UnsupportedError, match=r"no CUDA kernel(.|\n)*at: +test_plan_jobs.py(.|\n)*outside "
                       r"the graph"):
        job(lambda x: _on_gpu(op, x), X[0])(X[0])
