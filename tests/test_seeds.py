"""The snippets this project grew from: OneFlow's glossary and its pages on job functions and on watch, as they were
written. Where a snippet is wrong (OneFlow refuses it, too), what is said about it."""
# ruff: noqa: UP006, UP035, I001, B007, RET504, NPY002  (the snippets stay as they were)
from typing import Tuple

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import f32, fresh_session, refused  # noqa: F401

BATCH_SIZE = 100


@pytest.fixture(scope="module")
def mnist(tmp_path_factory):
    return flow.data.load_mnist(BATCH_SIZE, BATCH_SIZE, out_dir=str(tmp_path_factory.mktemp("mnist")))


# --- placeholders ----------------------------------------------------------------------------------------------------

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


# --- tensors ---------------------------------------------------------------------------------------------------------

def test_tensors():
    tensor1 = flow.tensor([[1., -1.], [1., -1.]], dtype=flow.float32)
    tensor2 = flow.tensor(np.array([[1, 2, 3], [4, 5, 6]]), dtype=flow.int64)
    assert tensor1.shape == (2, 2) and tensor2.dtype is flow.int64
    x = flow.tensor([[1, 2, 3], [4, 5, 6]])
    assert x[1][2].item() == 6


# --- job functions ---------------------------------------------------------------------------------------------------

def wrong_job(first, second, swapped, minimize=False):
    """The glossary's training job, with layer names and label order to choose."""
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
            flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]), momentum=0).minimize(loss)
        return loss

    return train_job


BATCH = f32(BATCH_SIZE, 1, 28, 28), np.zeros(BATCH_SIZE, np.int32)


def test_the_glossarys_job_is_wrong_in_three_ways():
    """Two layers of the same default name; (logits, labels) instead of (labels, logits); no minimize. Mended one by one."""
    with refused(AssertionError, "variable 'Dense-weight' already exists", "another name", "logits = flow.layers.dense"):
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


def test_job_function_define_and_call(mnist):
    def get_train_config():
        config = flow.function_config()
        config.default_data_type(flow.float)
        return config

    @flow.global_function(type="train", function_config=get_train_config())
    def train_job(
        images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float),
        labels: tp.Numpy.Placeholder((BATCH_SIZE,), dtype=flow.int32),
    ) -> tp.Numpy:
        # mlp
        initializer = flow.truncated_normal(0.1)
        reshape = flow.reshape(images, [images.shape[0], -1])
        hidden = flow.layers.dense(
            reshape,
            512,
            activation=flow.nn.relu,
            kernel_initializer=initializer,
            name="hidden",
        )
        logits = flow.layers.dense(
            hidden, 10, kernel_initializer=initializer, name="output"
        )
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(
            labels, logits, name="softmax_loss"
        )

        lr_scheduler = flow.optimizer.PiecewiseConstantScheduler([], [0.1])
        flow.optimizer.SGD(lr_scheduler, momentum=0).minimize(loss)
        return loss

    flow.random.seed(1)
    (train_images, train_labels), (test_images, test_labels) = mnist
    losses = []
    for epoch in range(2):
        for i, (images, labels) in enumerate(zip(train_images, train_labels)):
            loss = train_job(images, labels)
            if i % 20 == 0:
                losses.append(loss.mean())
    assert loss.shape == (BATCH_SIZE,) and loss.dtype == np.float32
    assert losses[0] > 2 and losses[-1] < 0.7, "it learns"


def test_blobs_are_described_by_a_base_class():
    """"All of them inherit, directly or not, from BlobDef": images, labels, and what ops and layers make."""
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


# --- layers and operators --------------------------------------------------------------------------------------------

def test_layer_example():
    @flow.global_function()
    def layer_example(x: tp.Numpy.Placeholder((1, 64, 128, 128)) ) -> tp.Numpy:
        initializer = flow.truncated_normal(0.1)
        conv2d = flow.layers.conv2d(
            x, filters=128, kernel_size=3, strides=2, padding='SAME', kernel_initializer=initializer, name="Conv2d"
        )
        batch_norm = flow.layers.batch_normalization(conv2d, axis=1)
        return batch_norm

    x = np.random.randn(1, 64, 128, 128).astype(np.float32)
    out = layer_example(x)  # out.shape (1, 128, 64, 64)
    assert out.shape == (1, 128, 64, 64)
    # a predict job: moving statistics, mean 0 and variance 1
    weight = flow.get_all_variables()["Conv2d-weight"].numpy()
    corner = x[0, :, 9:12, 19:22]              # SAME is SAME_LOWER: output (5, 10) looks at rows 9-11, columns 19-21
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


def test_lenet_trains_and_predicts(mnist, capsys):
    @flow.global_function("train")
    def train_job(images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float),
                  labels: tp.Numpy.Placeholder((BATCH_SIZE,), dtype=flow.int32)) -> tp.Numpy:
        logits = lenet(images, train=True)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]), momentum=0).minimize(loss)
        return loss

    @flow.global_function()
    def eval_job(images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float)) -> tp.Numpy:
        logits = lenet(images)
        print(logits.shape, logits.dtype)
        return logits

    flow.random.seed(1)
    (images, labels), (test_images, test_labels) = mnist
    losses = [train_job(i, t).mean() for i, t in zip(images[:30], labels)]
    assert losses[-1] < 0.7 * losses[0]
    assert (eval_job(test_images[0]).argmax(1) == test_labels[0]).mean() > 0.5
    assert capsys.readouterr().out == "(100, 10) flowedu.float32\n", "a body runs once, when the session starts"
    assert {n: v.shape for n, v in flow.get_all_variables().items() if not n.startswith("System")} == {
        "conv1-weight": (32, 1, 5, 5), "conv1-bias": (32,), "conv2-weight": (64, 32, 5, 5), "conv2-bias": (64,),
        "dense1-weight": (512, 3136), "dense1-bias": (512,), "dense2-weight": (10, 512), "dense2-bias": (10,)}


# --- several devices -------------------------------------------------------------------------------------------------

def test_configuration(capsys):
    """Without a GPU these are CPU devices. `ctrl_port` belongs to flow.env in OneFlow; it is accepted here, too."""
    flow.config.gpu_device_num(2)
    flow.config.ctrl_port(50051)
    assert "cpu_device_num" in capsys.readouterr().out


# --- watch -----------------------------------------------------------------------------------------------------------

def test_watch(capsys):
    def watch_handler(y: tp.Numpy):
        print("out:", y)

    @flow.global_function()
    def ReluJob(x: tp.Numpy.Placeholder((5,))) -> None:
        y = flow.nn.relu(x)
        flow.watch(y, watch_handler)

    flow.config.gpu_device_num(1)
    capsys.readouterr()
    data = np.array([0.5, 0.25, -1.0, 2.0, -0.625], np.float32)
    print("in:", data)
    assert ReluJob(data) is None
    assert capsys.readouterr().out == "in: [ 0.5    0.25  -1.     2.    -0.625]\nout: [0.5  0.25 0.   2.   0.  ]\n"


def test_watch_diff(mnist, capsys):
    seen = []

    def watch_diff_handler(blob: tp.Numpy):
        seen.append(blob)
        print("watch_diff_handler:", blob, blob.shape, blob.dtype)

    @flow.global_function(type="train")
    def train_job(
        images: tp.Numpy.Placeholder((BATCH_SIZE, 1, 28, 28), dtype=flow.float),
        labels: tp.Numpy.Placeholder((BATCH_SIZE,), dtype=flow.int32),
    ) -> tp.Numpy:
        initializer = flow.truncated_normal(0.1)
        reshape = flow.reshape(images, [images.shape[0], -1])
        hidden = flow.layers.dense(reshape, 512, activation=flow.nn.relu, kernel_initializer=initializer, name="hidden")
        logits = flow.layers.dense(hidden, 10, kernel_initializer=initializer, name="output")
        flow.watch_diff(logits, watch_diff_handler)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits, name="softmax_loss")
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]), momentum=0).minimize(loss)
        return loss

    (images, labels), _ = mnist
    loss = train_job(images[0], labels[0])
    assert "(100, 10) float32" in capsys.readouterr().out
    np.testing.assert_allclose(seen[0].sum(1), 0, atol=1e-5)
    np.testing.assert_allclose(-seen[0][np.arange(100), labels[0]], 1 - np.exp(-loss), rtol=1e-4, atol=1e-5)
