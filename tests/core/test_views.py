"""Views and placements on virtual devices: a job returns the same result as on one device, under any
distribution.
"""
import contextlib

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant, constant_rate, f32, fresh_session, refused  # noqa: F401
from flowedu.oneflow04.job import env

BATCH, STEPS = 12, 20
IMAGES = np.random.default_rng(0).random((5, BATCH, 1, 28, 28), np.float32)
LABELS = np.random.default_rng(1).integers(0, 10, (5, BATCH)).astype(np.int32)


def normal_weights(seed, scale=0.1):
    return lambda shape, dtype, _: np.random.default_rng(seed).standard_normal(shape) * scale


def minimize_lenet_loss(images, labels, units=None, places=None):
    """Return the loss of LeNet, with an update. units: distribution of dense1's rows; places: placements of
    the two halves.
    """
    def at(i):
        return flow.scope.placement("gpu", places[i]) if places else contextlib.nullcontext()

    def block(x, filters, name, seed):
        x = flow.layers.conv2d(x, filters, 5, padding="SAME", activation=flow.nn.relu, name=name,
                               kernel_initializer=normal_weights(seed))
        return flow.nn.max_pool2d(x, 2, 2, "SAME", name=f"{name}_pool")

    with at(0):
        features = block(block(images, 4, "conv1", 1), 8, "conv2", 2)
        flat = flow.reshape(features, [-1, 8 * 49])
    with at(1):
        more = {"model_distribute": units} if units is not None else {}
        hidden = flow.layers.dense(flat, 32, activation=flow.nn.relu, name="dense1",
                                   kernel_initializer=normal_weights(3), **more)
        logits = flow.layers.dense(hidden, 10, name="dense2", kernel_initializer=normal_weights(4))
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits, name="loss")
        flow.optimizer.SGD(constant_rate(0.05)).minimize(loss)
    return loss


def whole(devices=1, **how):
    """Return the losses of a job in the consistent view."""
    flow.clear_default_session()
    flow.config.gpu_device_num(devices)

    @flow.global_function("train")
    def train(x: tp.Numpy.Placeholder((BATCH, 1, 28, 28)),
              y: tp.Numpy.Placeholder((BATCH,), flow.int32)) -> tp.Numpy:
        return minimize_lenet_loss(x, y, **how)
    return np.array([train(IMAGES[i % 5], LABELS[i % 5]) for i in range(STEPS)]), train


def mirrored_config():
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())
    return config


def mirrored(devices, cut):
    flow.clear_default_session()
    flow.config.gpu_device_num(devices)

    @flow.global_function("train", mirrored_config())
    def train(x: tp.ListNumpy.Placeholder((BATCH, 1, 28, 28)),
              y: tp.ListNumpy.Placeholder((BATCH,), flow.int32)) -> tp.ListNumpy:
        return minimize_lenet_loss(x, y)
    losses = []
    for i in range(STEPS):
        out = train(cut(IMAGES[i % 5]), cut(LABELS[i % 5]))
        assert type(out) is list and [len(o) for o in out] == [len(c) for c in cut(LABELS[0])]
        losses.append(np.concatenate(out))
    return np.array(losses)


@pytest.fixture(scope="module")
def one_device():
    losses, _ = whole()
    assert losses[-1].mean() < losses[0].mean(), "it learns"
    return losses


def same(losses, one_device):
    np.testing.assert_allclose(losses, one_device, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("devices", [2, 3])
def test_the_consistent_view_trains_as_one_device(devices, one_device):
    losses, train = whole(devices)
    same(losses, one_device)
    text = train.show()
    assert "x=S(0), w=B -> y=S(0)" in text and "all-reduce" in text and "bytes" in text


@pytest.mark.parametrize("cut", [lambda a: [a[:6], a[6:]], lambda a: [a[:1], a[1:]],
                                 lambda a: np.array_split(a, 3)],
                         ids=["even", "uneven", "three"])
def test_the_mirrored_view_trains_as_one_device(cut, one_device):
    same(mirrored(len(cut(IMAGES[0])), cut), one_device)


@pytest.mark.parametrize("devices", [2, 4])
def test_a_split_layer_trains_as_one_device(devices, one_device):
    losses, train = whole(devices, units=flow.distribute.split(0))
    same(losses, one_device)
    matmul = next(line for line in train.show().splitlines() if line.startswith("dense1-matmul"))
    assert "b=S(0) -> y=S(1)" in matmul, "a split of the weight's rows splits the units"


def test_a_pipeline_trains_as_one_device(one_device):
    losses, train = whole(2, places=["0:0", "0:1"])
    same(losses, one_device)
    placed = {n.placement for c in train.context.calls for n in c.nodes}
    assert placed == {((0,), (1,)), ((1,), (1,))}, "devices and hierarchy"


def test_a_pipeline_of_split_layers_trains_as_one_device(one_device):
    same(whole(4, places=["0:0-1", "0:2-3"], units=flow.distribute.split(0))[0], one_device)


def test_machines_are_simulated(one_device, monkeypatch):
    monkeypatch.setattr(env, "_env", env.Environment())
    flow.env.machine([{"addr": "10.0.0.1"}, {"addr": "10.0.0.2"}])
    flow.env.ctrl_port(50051)
    @flow.global_function("train")
    def train(x: tp.Numpy.Placeholder((BATCH, 1, 28, 28)),
              y: tp.Numpy.Placeholder((BATCH,), flow.int32)) -> tp.Numpy:
        return minimize_lenet_loss(x, y, places=[["0:0", "1:0"], "1:0"])
    same(np.array([train(IMAGES[i % 5], LABELS[i % 5]) for i in range(STEPS)]), one_device)


def test_numpy_arguments_are_split_in_the_mirrored_view_and_joined_when_returned(one_device):
    flow.config.gpu_device_num(2)

    @flow.global_function("train", mirrored_config())
    def train(x: tp.Numpy.Placeholder((BATCH, 1, 28, 28)),
              y: tp.Numpy.Placeholder((BATCH,), flow.int32)) -> tp.Numpy:
        assert isinstance(x, flow.ConsistentBlob)
        loss = minimize_lenet_loss(x, y)
        assert isinstance(loss, flow.MirroredBlob) and loss.shape == (BATCH // 2,)
        assert [b.op_name for b in loss.sub_consistent_blob_list] == ["loss_0", "loss_1"]
        return loss
    same(np.array([train(IMAGES[i % 5], LABELS[i % 5]) for i in range(STEPS)]), one_device)


def test_watch_in_the_mirrored_view():
    flow.config.gpu_device_num(2)
    lists, arrays, diffs = [], [], []

    @flow.global_function("train", mirrored_config())
    def train(x: tp.Numpy.Placeholder((5, 3))) -> tp.ListNumpy:
        w = flow.get_variable("w", (4, 3), initializer=constant(2.0))
        y = flow.matmul(x, w, transpose_b=True)
        flow.optimizer.SGD(constant_rate(0.0), momentum=0).minimize(y)

        def take_list(v: tp.ListNumpy):
            lists.append([a.shape for a in v])

        def take(v: tp.Numpy):
            arrays.append(v.shape)
        flow.watch(y, take_list)
        flow.watch(y, take)
        flow.watch_diff(y, take)
        flow.watch_diff(w, lambda d: diffs.append(d.numpy()))
        return y

    for _ in range(3):
        out = train(np.ones((5, 3), np.float32))
        assert [o.shape for o in out] == [(3, 4), (2, 4)]
    assert lists == [[(3, 4), (2, 4)]] * 3 and arrays == [(5, 4), (5, 4)] * 3
    np.testing.assert_array_equal(diffs, np.full((3, 4, 3), 5.0))


def test_watch_diff_on_several_devices_gives_the_logical_gradient():
    flow.config.gpu_device_num(2)
    seen = []

    @flow.global_function("train")
    def train(x: tp.Numpy.Placeholder((4, 3))) -> tp.Numpy:
        y = flow.layers.dense(x, 2, kernel_initializer=constant(1.0), name="d")
        flow.optimizer.SGD(constant_rate(0.1), momentum=0).minimize(y)
        flow.watch_diff(flow.get_variable("d-weight", (2, 3)), lambda d: seen.append(d.numpy()))
        return y

    train(np.ones((4, 3), np.float32))
    np.testing.assert_array_equal(seen[0], np.full((2, 3), 4.0))


def test_views_may_be_mixed():
    flow.config.gpu_device_num(2)

    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((6, 2))) -> tuple[tp.Numpy, tp.Numpy, tp.ListNumpy]:
        with flow.scope.mirrored_view():
            assert flow.scope.mirrored_view_enabled() and flow.current_scope().view == "mirrored"
            m = flow.cast_to_current_logical_view(x) * 2.0
            mean = flow.math.reduce_mean(m, axis=0, keepdims=True)        # mean of each half
        assert flow.scope.consistent_view_enabled()
        return flow.cast_to_current_logical_view(m) + x, flow.math.reduce_mean(m, axis=0), mean

    x = f32(6, 2)
    y, mean, halves = job(x)
    np.testing.assert_allclose(y, 3 * x, rtol=1e-6)
    np.testing.assert_allclose(mean, 2 * x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(halves, [2 * x[:3].mean(0, keepdims=True), 2 * x[3:].mean(0, keepdims=True)],
                               rtol=1e-5)


def test_list_numpy_in_the_consistent_view_is_the_logical_value():
    flow.config.gpu_device_num(2)

    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((4, 2))) -> list[tp.ListNumpy]:
        return [x * 2.0]

    out = job(f32(4, 2))
    assert len(out) == len(out[0]) == 1
    np.testing.assert_array_equal(out[0][0], f32(4, 2) * 2)


def test_default_placement_scope():
    flow.config.gpu_device_num(2)
    config = flow.function_config()
    config.default_placement_scope(flow.scope.placement("gpu", "0:1"))

    @flow.global_function("predict", config)
    def job(x: tp.Numpy.Placeholder((4, 2))) -> tp.Numpy:
        y = x * 2.0
        assert y.parallel_size == 1 and y.parallel_conf.devices == (1,)
        return y

    np.testing.assert_array_equal(job(f32(4, 2)), f32(4, 2) * 2)


def test_device_count_is_read_when_the_session_starts():
    seen = []

    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((4, 2))) -> tp.Numpy:
        seen.append(x.parallel_size)
        return x

    flow.config.gpu_device_num(3)              # surprise 5: set after the definition, before the first call
    job(f32(4, 2))
    assert seen == [3]


@pytest.mark.parametrize("ids, words", [("0:2", "no device 0:2"), ("1:0", "no device 1:0")])
def test_missing_devices_are_refused(ids, words):
    flow.config.gpu_device_num(2)

    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((4, 2))) -> tp.Numpy:
        with flow.scope.placement("cpu", ids):
            return x * 2.0

    with refused(flow.JobBuildAndInferError, words):
        job(f32(4, 2))


@pytest.mark.parametrize("ids", ["0", "a:b", "0:3-1", [], 7, ["0:0", "0:0"]])
def test_invalid_device_ids_are_refused(ids):
    with refused(AssertionError):
        flow.scope.placement("cpu", ids)


def test_a_batch_smaller_than_the_devices_is_refused():
    flow.config.gpu_device_num(3)

    @flow.global_function("predict", mirrored_config())
    def job(x: tp.Numpy.Placeholder((2, 2))) -> tp.Numpy:
        return x * 2.0

    with refused(AssertionError, "too few rows"):
        job(f32(2, 2))


def test_batch_norm_uses_the_whole_batch_in_the_consistent_view():
    def run(devices):
        flow.clear_default_session()
        flow.config.gpu_device_num(devices)

        @flow.global_function("train")
        def train(x: tp.Numpy.Placeholder((6, 4, 3, 3))) -> tp.Numpy:
            y = flow.layers.batch_normalization(x, axis=1, name="bn")
            flow.optimizer.SGD(constant_rate(0.1), momentum=0).minimize(y * x)
            return y
        out = [train(f32(6, 4, 3, 3, seed=i)) for i in range(3)]
        return out, flow.get_all_variables()["bn-moving_mean"].numpy()

    (a, mean_a), (b, mean_b) = run(1), run(2)
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean_a, mean_b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("devices", [2, 3])
def test_dropout_masks_do_not_depend_on_the_number_of_devices(devices):
    def run(n):
        flow.clear_default_session()
        flow.random.seed(3)
        flow.config.gpu_device_num(n)

        @flow.global_function("train")
        def train(x: tp.Numpy.Placeholder((6, 50))) -> tp.Numpy:
            y = flow.layers.dense(x, 50, kernel_initializer=normal_weights(1), name="d")
            y = flow.nn.dropout(flow.nn.dropout(y, 0.5), 0.3)
            flow.optimizer.SGD(constant_rate(0.1), momentum=0).minimize(y)
            return y
        return [train(f32(6, 50)) for _ in range(3)]

    one, many = run(1), run(devices)
    np.testing.assert_allclose(one, many, rtol=1e-4, atol=1e-5)
    assert ((one[0] == 0) != (one[1] == 0)).any(), "another mask in every run"
