"""Unchanged snippets of OneFlow's glossary and its pages on job functions and watch.

tests/programs holds the complete programs. Some snippets are wrong in OneFlow as well; their tests check the
error.
"""
# ruff: noqa: UP006, UP035, I001, B007, RET504, NPY002  (the snippets stay as they were)
from bounds import assert_learned, most_by_guessing
from typing import Tuple

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import f32, fresh_session, read_definitions, refused  # noqa: F401

BATCH_SIZE = 100


@pytest.fixture(scope="module")
def mnist(tmp_path_factory):
    return flow.data.load_mnist(BATCH_SIZE, BATCH_SIZE, out_dir=str(tmp_path_factory.mktemp("mnist")))


# --- placeholders
# ----------------------------------------------------------------------------------------------------

def test_placeholder():
    def test_job(
        images: tp.Numpy.Placeholder((32, 1, 28, 28), dtype=flow.float),
        labels: tp.Numpy.Placeholder((32,), dtype=flow.int32),
    ) -> Tuple[tp.Numpy, tp.Numpy]:
        # do something with images or labels
        return (images, labels)

    images, labels = f32(32, 1, 28, 28), np.arange(32, dtype=np.int32)
    got = flow.global_function()(test_job)(images, labels)
    assert type(got) is tuple
    np.testing.assert_array_equal(got[0], images)
    np.testing.assert_array_equal(got[1], labels)


# --- tensors
# ---------------------------------------------------------------------------------------------------------

def test_tensors(capsys):
    tensor1 = flow.tensor([[1., -1.], [1., -1.]], dtype=flow.float32)
    tensor2 = flow.tensor(np.array([[1, 2, 3], [4, 5, 6]]), dtype=flow.int64)
    assert tensor1.shape == (2, 2) and tensor2.dtype is flow.int64
    x = flow.tensor([[1, 2, 3], [4, 5, 6]])
    print(x[1][2])  # 6
    x[0][1] = 8
    print(x)
    assert capsys.readouterr().out == ("tensor(6, dtype=flowedu.int64)\n"
                                       "tensor([[1, 8, 3],\n        [4, 5, 6]], dtype=flowedu.int64)\n")
    y = flow.tensor([1.0, 2.0], requires_grad=True)
    (y * y).sum().backward()
    np.testing.assert_array_equal(y.grad.numpy(), [2, 4])


# --- job functions
# ---------------------------------------------------------------------------------------------------

def wrong_job(first, second, swapped, minimize=False):
    """Return the glossary's training job with configurable layer names and label order."""
    @flow.global_function(type="train")
    def train_job(
        images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float),
        labels: tp.Numpy.Placeholder((BATCH_SIZE,), dtype=flow.int32),
    ) -> tp.Callback[tp.Numpy]:
        initializer = flow.truncated_normal(0.1)
        reshape = flow.reshape(images, [images.shape[0], -1])
        hidden = flow.layers.dense(
            reshape, 512, activation=flow.nn.relu, kernel_initializer=initializer, **first
        )
        logits = flow.layers.dense(hidden, 10, kernel_initializer=initializer, **second)
        if swapped:
            loss = flow.nn.sparse_softmax_cross_entropy_with_logits(logits, labels)
        else:
            loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        if minimize:
            flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]),
                               momentum=0).minimize(loss)
        return loss

    return train_job


BATCH = f32(BATCH_SIZE, 1, 28, 28), np.zeros(BATCH_SIZE, np.int32)


def test_the_glossarys_job_is_wrong_in_three_ways():
    """Mend the glossary's job step by step: duplicate default layer names, swapped labels and logits, and no
    minimize call.
    """
    with refused(AssertionError, "variable 'Dense-weight' already exists", "another name",
                 "logits = flow.layers.dense"):
        wrong_job({}, {}, True)(*BATCH)
    names = {"name": "hidden"}, {"name": "output"}
    with refused((TypeError, ValueError), "labels", "swap the two arguments",
                 "flow.nn.sparse_softmax_cross_entropy_with_logits(logits, labels)"):
        wrong_job(*names, True)(*BATCH)
    with refused(RuntimeError, "train_job: loss blob not found", "minimize(loss)", at=False):
        wrong_job(*names, False)(*BATCH)
    got = []
    assert wrong_job(*names, False, minimize=True)(*BATCH)(got.append) is None
    assert got[0].shape == (BATCH_SIZE,)


def read_train_job(edit=("", "")):
    """Return the training job of the page on job functions."""
    return read_definitions("oneflow_job", "get_train_config", "train_job", edit=edit, flow=flow, tp=tp,
                            BATCH_SIZE=BATCH_SIZE)[1]


def test_job_function_define_and_call(mnist):
    train_job = read_train_job()
    flow.random.seed(1)
    (train_images, train_labels), (test_images, test_labels) = mnist
    losses = []
    for epoch in range(2):
        for i, (images, labels) in enumerate(zip(train_images, train_labels)):
            loss = train_job(images, labels)
            if i % 20 == 0:
                losses.append(loss.mean())
    assert loss.shape == (BATCH_SIZE,) and loss.dtype == np.float32
    assert_learned(losses, 10)


def test_job_function_with_a_callback(mnist):
    """Call the page's first definition; it returns a function that takes a callback for the loss."""
    train_job = read_train_job(edit=("-> tp.Numpy:", "-> tp.Callback[tp.Numpy]:"))
    losses = []
    (train_images, train_labels), _ = mnist
    for images, labels in zip(train_images, train_labels):
        train_job(images, labels)(lambda loss: losses.append(loss.mean()))
    assert len(losses) == len(train_images)
    assert_learned(losses, 10)


def test_calling_a_job_function(tmp_path, monkeypatch, capsys):
    """Call the job in the page's loop: forward pass, backward pass, update, and NumPy results."""
    train_job = read_train_job()
    monkeypatch.chdir(tmp_path)
    (train_images, train_labels), (test_images, test_labels) = flow.data.load_mnist(
        BATCH_SIZE
    )
    capsys.readouterr()
    for epoch in range(3):
        for i, (images, labels) in enumerate(zip(train_images, train_labels)):
            loss = train_job(images, labels)
            if i % 20 == 0:
                print(loss.mean())
    printed = [float(line) for line in capsys.readouterr().out.split()]
    assert len(printed) == 3 * -(-len(train_images) // 20)
    assert_learned(printed, 10)


@pytest.mark.parametrize("kind, fed", [(tp.Numpy, f32(4, 6)), (tp.ListNumpy, [f32(3, 6)]),
                                       (tp.ListListNumpy, [[f32(1, 6), f32(2, 6)]])])
def test_the_three_placeholders_take_numpy_arrays(kind, fed):
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())

    @flow.global_function(function_config=config)
    def job(x: kind.Placeholder((4, 6))) -> kind:
        assert isinstance(x, flow.BlobDef)
        return x

    def flat(x):
        return [x] if isinstance(x, np.ndarray) else [a for y in x for a in flat(y)]

    got = job(fed)
    assert type(got) is type(fed)
    for a, b in zip(flat(got), flat(fed), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_container_of_blobs_is_returned():
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((4, 6))) -> Tuple[tp.Numpy, tp.Numpy]:
        return x, x + 1

    got = job(f32(4, 6))
    assert type(got) is tuple and len(got) == 2


def test_blobs_are_described_by_a_base_class():
    """"All of them inherit, directly or not, from BlobDef": images, labels, and the results of ops and
    layers.
    """
    found = []

    @flow.global_function()
    def job(images: tp.Numpy.Placeholder((4, 6))) -> tp.Numpy:
        hidden = flow.layers.dense(images, 3)
        found.extend([images, hidden, flow.nn.relu(hidden)])
        return hidden

    job(f32(4, 6))
    assert all(isinstance(b, flow.BlobDef) for b in found)


def test_return_values_are_blobs_or_containers_of_blobs():
    @flow.global_function()
    def job(images: tp.Numpy.Placeholder((4, 6))) -> tp.Numpy:
        return 3

    with refused(AssertionError, "a blob"):
        job(f32(4, 6))


# --- layers and operators
# --------------------------------------------------------------------------------------------

def test_layer_example():
    layer_example, = read_definitions("oneflow_layer", "layer_example", flow=flow, tp=tp)
    x = np.random.randn(1, 64, 128, 128).astype(np.float32)
    out = layer_example(x)  # out.shape (1, 128, 64, 64)
    assert out.shape == (1, 128, 64, 64)
    # In a predict job, the moving statistics are used: mean 0 and variance 1.
    weight = flow.get_all_variables()["Conv2d-weight"].numpy()
    corner = x[0, :, 9:12, 19:22]  # SAME is SAME_LOWER: output (5, 10) reads rows 9-11 and columns 19-21
    np.testing.assert_allclose(out[0, :, 5, 10], np.einsum("chw,fchw->f", corner, weight) / np.sqrt(1 + 1e-3),
                               rtol=1e-3, atol=1e-3)


def lenet(data, train=False):
    initializer = flow.truncated_normal(0.1)
    conv1 = flow.layers.conv2d(
        data,
        32,
        5,
        padding="SAME",
        activation=flow.nn.relu,
        name="conv1",
        kernel_initializer=initializer,
    )
    pool1 = flow.nn.max_pool2d(
        conv1, ksize=2, strides=2, padding="SAME", name="pool1", data_format="NCHW"
    )
    conv2 = flow.layers.conv2d(
        pool1,
        64,
        5,
        padding="SAME",
        activation=flow.nn.relu,
        name="conv2",
        kernel_initializer=initializer,
    )
    pool2 = flow.nn.max_pool2d(
        conv2, ksize=2, strides=2, padding="SAME", name="pool2", data_format="NCHW"
    )
    reshape = flow.reshape(pool2, [pool2.shape[0], -1])
    hidden = flow.layers.dense(
        reshape,
        512,
        activation=flow.nn.relu,
        kernel_initializer=initializer,
        name="dense1",
    )
    if train:
        hidden = flow.nn.dropout(hidden, rate=0.5, name="dropout")
    return flow.layers.dense(hidden, 10, kernel_initializer=initializer, name="dense2")


def test_attributes_are_printed_while_the_network_is_built(capsys):
    @flow.global_function()
    def job(data: tp.Numpy.Placeholder((2, 1, 28, 28))) -> tp.Numpy:
        conv1 = flow.layers.conv2d(data, 32, 5, padding="SAME", activation=flow.nn.relu, name="conv1",
                                   kernel_initializer=flow.truncated_normal(0.1))
        print(conv1.shape, conv1.dtype)
        return conv1

    assert job(f32(2, 1, 28, 28)).shape == (2, 32, 28, 28)
    assert capsys.readouterr().out == "(2, 32, 28, 28) flowedu.float32\n"


def test_lenet_trains_and_predicts(mnist, capsys):
    @flow.global_function("train")
    def train_job(images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float),
                  labels: tp.Numpy.Placeholder((BATCH_SIZE,), dtype=flow.int32)) -> tp.Numpy:
        logits = lenet(images, train=True)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.02]), momentum=0).minimize(loss)
        return loss

    @flow.global_function()
    def eval_job(images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float)) -> tp.Numpy:
        logits = lenet(images)
        print(logits.shape, logits.dtype)
        return logits

    flow.random.seed(1)
    (images, labels), (test_images, test_labels) = mnist
    losses = [train_job(i, t).mean() for i, t in zip(images[:30], labels)]
    assert_learned(losses, 10)
    assert (eval_job(test_images[0]).argmax(1) == test_labels[0]).mean() > most_by_guessing(BATCH_SIZE, 10)
    assert (capsys.readouterr().out
            == "(100, 10) flowedu.float32\n"), "a body runs once, when the session starts"
    assert {n: v.shape for n, v in flow.get_all_variables().items() if not n.startswith("System")} == {
        "conv1-weight": (32, 1, 5, 5), "conv1-bias": (32,), "conv2-weight": (64, 32, 5, 5),
        "conv2-bias": (64,),
        "dense1-weight": (512, 3136), "dense1-bias": (512,), "dense2-weight": (10, 512), "dense2-bias": (10,)}


# --- several devices
# -------------------------------------------------------------------------------------------------

def configured(type, capsys):
    """Set the glossary's configuration and return its job with a model."""
    flow.config.gpu_device_num(2)
    flow.config.ctrl_port(50051)
    assert "cpu_device_num" in capsys.readouterr().out, "without a GPU these are CPU devices"

    @flow.global_function(*type)
    def train_job(images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float),
                  labels: tp.Numpy.Placeholder((BATCH_SIZE,), dtype=flow.int32)) -> tp.Numpy:
        initializer = flow.truncated_normal(0.1)
        reshape = flow.reshape(images, [images.shape[0], -1])
        hidden = flow.layers.dense(reshape, 128, activation=flow.nn.relu, kernel_initializer=initializer,
                                   name="hidden")
        logits = flow.layers.dense(hidden, 10, kernel_initializer=initializer, name="output")
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        assert loss.parallel_size == 2
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]), momentum=0).minimize(loss)
        return loss

    return train_job


def test_configuration_of_two_devices(mnist, capsys):
    """`ctrl_port` belongs to flow.env in OneFlow and is also accepted here; each device processes half of
    every batch.
    """
    with refused(RuntimeError, "minimize in a predict job", '@flow.global_function("train")',
                 ".minimize(loss)"):
        configured((), capsys)(*BATCH)  # the original @flow.global_function() defines a predict job
    (images, labels), _ = mnist
    losses = {}
    for devices in (2, 1):
        flow.clear_default_session()
        flow.random.seed(1)
        train_job = configured(("train",), capsys) if devices == 2 else None
        if devices == 1:
            train_job = one_device_job()
        losses[devices] = [train_job(i, t).mean() for i, t in zip(images[:30], labels)]
    assert_learned(losses[2], 10)
    np.testing.assert_allclose(losses[2], losses[1], rtol=1e-4, err_msg="just as one device would")


def one_device_job():
    @flow.global_function("train")
    def train_job(images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28)),
                  labels: tp.Numpy.Placeholder((BATCH_SIZE,), dtype=flow.int32)) -> tp.Numpy:
        initializer = flow.truncated_normal(0.1)
        x = flow.reshape(images, [images.shape[0], -1])
        x = flow.layers.dense(x, 128, activation=flow.nn.relu, kernel_initializer=initializer, name="hidden")
        x = flow.layers.dense(x, 10, kernel_initializer=initializer, name="output")
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]), momentum=0).minimize(loss)
        return loss
    return train_job


def views(model_distribute=None, mirrored=False, devices=1):
    """Return weights and logits after two steps of a small model on `devices` devices."""
    flow.clear_default_session()
    flow.random.seed(1)
    flow.config.cpu_device_num(devices)
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view() if mirrored else flow.scope.consistent_view())
    shapes = []

    def train(x, y):
        h = flow.layers.dense(x, 16, activation=flow.nn.relu, kernel_initializer=flow.truncated_normal(0.1),
                              name="a",
                              **({"model_distribute": model_distribute} if model_distribute else {}))
        h = flow.layers.dense(h, 4, kernel_initializer=flow.truncated_normal(0.1), name="b")
        shapes.append(h.shape)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, h)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.5]), momentum=0.9).minimize(loss)
        return h

    if mirrored:
        n = 8 // devices

        @flow.global_function("train", config)
        def job(x: tp.ListNumpy.Placeholder((n, 6)),
                y: tp.ListNumpy.Placeholder((n,), flow.int32)) -> tp.ListNumpy:
            return train(x, y)

        parts = [np.array_split(a, devices) for a in (f32(8, 6), np.arange(8, dtype=np.int32) % 4)]
        logits = [np.concatenate(job(*parts)) for _ in range(2)]
    else:
        @flow.global_function("train", config)
        def job(x: tp.Numpy.Placeholder((8, 6)), y: tp.Numpy.Placeholder((8,), flow.int32)) -> tp.Numpy:
            return train(x, y)

        logits = [job(f32(8, 6), np.arange(8, dtype=np.int32) % 4) for _ in range(2)]
    return shapes[0], [*logits, flow.get_all_variables()["a-weight"].numpy()]


@pytest.mark.parametrize("how, shape", [
    # "the model is broadcast, the data divided into four parts"
    ({"mirrored": True}, (2, 4)),
    ({}, (8, 4)),                                            # "regards multi hosts and devices as one"
    # "data parallelism, model parallelism or hybrid"
    ({"model_distribute": flow.distribute.split(0)}, (8, 4)),
])
def test_mirrored_and_consistent_view_on_four_devices(how, shape):
    """The two views as both glossaries define them; the values are those of one device in either view."""
    want = views()[1]
    seen, got = views(**how, devices=4)
    assert seen == shape
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_split_broadcast_partial_sum():
    """The glossary's S, B, and P are parts, copies, and summands; boxing restores the whole blob."""
    flow.config.cpu_device_num(2)
    a, b = f32(4, 6), f32(6, 2, seed=1)

    @flow.global_function()
    def job(a: tp.Numpy.Placeholder((4, 6)),
            b: tp.Numpy.Placeholder((6, 2))) -> Tuple[tp.Numpy, tp.Numpy, tp.Numpy]:
        s = flow.distribute.split
        rows = flow.matmul(a.with_distribute(s(0)), b.with_distribute(flow.distribute.broadcast()))
        columns = flow.matmul(a.with_distribute(flow.distribute.broadcast()), b.with_distribute(s(1)))
        sums = flow.matmul(a.with_distribute(s(1)), b.with_distribute(s(0)))
        return rows, columns, sums

    for got in job(a, b):
        np.testing.assert_allclose(got, a @ b, rtol=1e-5, atol=1e-6)


def test_boxing_between_different_numbers_of_devices():
    """Boxing connects ops with "different parallelism feature (such as different parallelism number)"."""
    flow.config.cpu_device_num(4)

    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((8, 6))) -> tp.Numpy:
        with flow.scope.placement("cpu", "0:0-3"):
            x = flow.math.tanh(x, name="four")
        with flow.scope.placement("cpu", "0:1-2"):
            x = flow.math.sigmoid(x, name="two")
        with flow.scope.placement("cpu", "0:3"):
            return flow.math.reduce_sum(x, axis=0, name="one")

    x = f32(8, 6)
    np.testing.assert_allclose(job(x), (1 / (1 + np.exp(-np.tanh(x)))).sum(0), rtol=1e-5)
    assert "S(0) on 0-3 -> S(0) on 1-2" in job.show(), "the compiler put it in"


# --- TensorBuffer and TensorList
# -------------------------------------------------------------------------------------

def test_tensor_buffer_and_tensor_list():
    """"We need to specify the dimension of the instance": every instance has its own memory, and the data of
    a TensorList "is continuous in memory".
    """
    @flow.global_function()
    def instances(x: tp.Numpy.Placeholder((2, 3, 4))) -> tp.Numpy:
        buffers = flow.tensor_to_tensor_buffer(x, instance_dims=2)
        assert buffers.shape == (2,) and buffers.dtype is flow.tensor_buffer
        return flow.tensor_buffer_to_tensor(buffers, flow.float32, (3, 4))

    x = f32(2, 3, 4)
    np.testing.assert_array_equal(instances(x), x)
    pictures = flow.TensorList([f32(1, 3, 4), f32(1, 2, 5)])
    assert pictures.data.shape == (22,) and pictures.data.flags.c_contiguous
    assert [pictures[i].shape for i in range(2)] == [(1, 3, 4), (1, 2, 5)]


# --- watch
# -----------------------------------------------------------------------------------------------------------

def test_watch(capsys):
    names = "watch_handler", "ReluJob"
    ReluJob = read_definitions("oneflow04/watch", *names, flow=flow, tp=tp)[1]
    flow.config.gpu_device_num(1)
    capsys.readouterr()
    data = np.array([0.5, 0.25, -1.0, 2.0, -0.625], np.float32)
    print("in:", data)
    assert ReluJob(data) is None
    assert (capsys.readouterr().out == "in: [ 0.5    0.25  -1.     2.    -0.625]\nout: [0.5  0.25 0.   2.   "
            "0.  ]\n")


def test_watch_in_pseudo_code():
    """Call `oneflow.watch(x, my_watch)` in a job that also returns T."""
    oneflow, T, seen = flow, tp.Numpy, []

    def my_watch(x: T):
        seen.append(x)

    @oneflow.global_function()
    def foo() -> T:
        x = oneflow.constant(2.0, dtype=oneflow.float, shape=(3,))
        oneflow.watch(x, my_watch)
        return x * 2

    np.testing.assert_array_equal(foo(), [4, 4, 4])
    np.testing.assert_array_equal(seen[0], [2, 2, 2])


def test_watch_diff(mnist, capsys):
    seen = []

    def watch_diff_handler(blob: tp.Numpy):
        seen.append(blob)
        print("watch_diff_handler:", blob, blob.shape, blob.dtype)

    train_job, = read_definitions("oneflow04/watch_diff", "train_job", flow=flow, tp=tp,
                                  BATCH_SIZE=BATCH_SIZE, watch_diff_handler=watch_diff_handler)
    (images, labels), _ = mnist
    capsys.readouterr()
    loss = train_job(images[0], labels[0])
    out = capsys.readouterr().out
    assert (out.startswith("watch_diff_handler: [[") and out.endswith("]] (100, 10) float32\n")
            and "..." not in out[:20])
    np.testing.assert_allclose(seen[0].sum(1), 0, atol=1e-5)
    np.testing.assert_allclose(-seen[0][np.arange(100), labels[0]], 1 - np.exp(-loss), rtol=1e-4, atol=1e-5)
