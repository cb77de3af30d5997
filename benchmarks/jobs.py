"""The models of twins.py as job functions. `start` has the arrays of the model's parameters in order."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

import flowedu as flow
import flowedu.typing as tp
import twins
from flowedu.oneflow04.nn import functions as F

GPT = ("norm1", "norm2", "qkv", "proj", "fc", "out")             # parts in the order of twins.gpt_block


def constant(array: np.ndarray) -> Callable:
    """Return an initializer with the values of an array."""
    return lambda shape, dtype, seed: array.reshape(shape)


def sgd(rate: float):
    return flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [rate]), momentum=0)


def classifier(network: Callable, x: np.ndarray, y: np.ndarray | None,
               settings: Callable = flow.function_config) -> Callable:
    """Return a job over network(images) -> logits: a training step of SGD with labels, inference without."""
    flow.clear_default_session()
    if y is None:
        @flow.global_function("predict")
        def predict(images: tp.Numpy.Placeholder(x.shape)) -> tp.Numpy:
            return network(images)

        return lambda: predict(x)
    y = y.astype(np.int32)

    @flow.global_function("train", settings())
    def train(images: tp.Numpy.Placeholder(x.shape),
              labels: tp.Numpy.Placeholder(y.shape, flow.int32)) -> tp.Numpy:
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, network(images))
        sgd(1e-3).minimize(loss)
        return loss

    return lambda: train(x, y)


def dense(x, arrays, name: str, activation=None):
    weight, bias = next(arrays), next(arrays)
    return flow.layers.dense(x, len(bias), activation, name=name, kernel_initializer=constant(weight),
                             bias_initializer=constant(bias))


def mlp(start, x, y=None):
    def network(h):
        arrays = iter(start)
        for i in range(len(start) // 2 - 1):
            h = dense(h, arrays, f"hidden{i}", flow.nn.relu)
        return dense(h, arrays, "output")

    return classifier(network, x, y)


def lenet(start, x, y=None, settings: Callable = flow.function_config):
    def network(h):
        arrays = iter(start)
        for name in ("conv1", "conv2"):
            weight, bias = next(arrays), next(arrays)
            h = flow.layers.conv2d(h, len(bias), 5, padding="SAME", activation=flow.nn.relu, name=name,
                                   kernel_initializer=constant(weight), bias_initializer=constant(bias))
            h = flow.nn.max_pool2d(h, 2, 2, "SAME", name=f"pool_{name}")
        h = flow.reshape(h, [h.shape[0], -1])
        return dense(dense(h, arrays, "dense1", flow.nn.relu), arrays, "dense2")

    return classifier(network, x, y, settings)


def mobilenet(start, x, y=None):
    def network(h):
        arrays, count = iter(start), 0

        def conv(h, out, kernel, stride=1, groups=1, clipped=True):
            nonlocal count
            count, pad = count + 1, (kernel // 2, kernel // 2)
            h = flow.layers.conv2d(h, out, kernel, stride, [0, 0, pad, pad], groups=groups, use_bias=False,
                                   kernel_initializer=constant(next(arrays)), name=f"conv{count}")
            h = flow.layers.batch_normalization(h, axis=1, momentum=0.9, epsilon=1e-5, name=f"norm{count}",
                                                gamma_initializer=constant(next(arrays)),
                                                beta_initializer=constant(next(arrays)))
            return flow.nn.relu6(h) if clipped else h

        h, c = conv(h, 32, 3, 2), 32
        for t, out, repeat, first in twins.MOBILENET:
            for i in range(repeat):
                stride, kept = first if i == 0 else 1, h
                if t > 1:
                    h = conv(h, c * t, 1)
                h = conv(conv(h, c * t, 3, stride, c * t), out, 1, clipped=False)
                h = flow.math.add(h, kept) if stride == 1 and c == out else h
                c = out
        return dense(flow.math.reduce_mean(conv(h, 1280, 1), axis=[2, 3]), arrays, "classify")

    return classifier(network, x, y)


def gpt_block(start, x, target, heads: int = 4):
    """Return a training step of AdamW on the mean squared error."""
    batch, length, width = x.shape
    arrays = iter(start)
    w = {f"{name}-{kind}": next(arrays) for name in GPT for kind in ("weight", "bias")}
    flow.clear_default_session()

    def variable(n):
        return flow.get_variable(n, w[n].shape, initializer=constant(w[n]))

    def norm(h, n):
        return F.layer_norm(h, variable(f"{n}-weight"), variable(f"{n}-bias"), 2, 2)

    def linear(h, n):
        return flow.matmul(h, variable(f"{n}-weight"), transpose_b=True) + variable(f"{n}-bias")

    def split(h):
        return flow.transpose(flow.reshape(h, [batch, length, heads, width // heads]), [0, 2, 1, 3])

    @flow.global_function("train")
    def train(x: tp.Numpy.Placeholder(x.shape), target: tp.Numpy.Placeholder(x.shape)) -> tp.Numpy:
        position = flow.range(length)
        hidden = flow.math.less(flow.reshape(position, [length, 1]), position)
        qkv = linear(norm(x, "norm1"), "qkv")
        q, k, v = (split(flow.slice(qkv, [0, 0, i * width], [batch, length, width])) for i in range(3))
        scores = flow.matmul(q, flow.transpose(k, [0, 1, 3, 2])) * (width // heads) ** -0.5
        y = flow.matmul(flow.nn.softmax(flow.masked_fill(scores, hidden, -np.inf)), v)
        h = x + linear(flow.reshape(flow.transpose(y, [0, 2, 1, 3]), [batch, length, width]), "proj")
        y = h + linear(flow.math.gelu(linear(norm(h, "norm2"), "fc")), "out")
        loss = flow.math.reduce_mean((y - target) * (y - target))
        flow.optimizer.AdamW(flow.optimizer.PiecewiseConstantScheduler([], [3e-4]), weight_decay=0.01,
                             do_bias_correction=True).minimize(loss)
        return loss

    return lambda: train(x, target)
