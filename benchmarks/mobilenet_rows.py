"""MobileNetV2 (width 1.0) on batches of 64 images of 3x32x32: a training step with SGD, and inference.

The network is written twice from one table, for flowedu and for PyTorch; both get the same weights, and the first steps
must give the same losses.
"""
from __future__ import annotations

import numpy as np

import flowedu as flow
import flowedu.typing as tp

try:
    import torch
except ImportError:
    torch = None

BATCH, CLASSES, RATE = 64, 1000, 1e-3
TABLE = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def layers():
    """(name, in, out, kernel, stride, groups, relu6, residual): "begin" keeps the input, "end" adds it."""
    yield "stem", 3, 32, 3, 2, 1, True, ""
    c = 32
    for t, out, repeat, first in TABLE:
        for i in range(repeat):
            name, stride = f"block{out}_{i}", first if i == 0 else 1
            same = stride == 1 and c == out
            if t > 1:
                yield f"{name}_expand", c, c * t, 1, 1, 1, True, "begin" if same else ""
            yield f"{name}_depth", c * t, c * t, 3, stride, c * t, True, ""
            yield f"{name}_project", c * t, out, 1, 1, 1, False, "end" if same else ""
            c = out
    yield "head", c, 1280, 1, 1, 1, True, ""


def weights() -> dict[str, np.ndarray]:
    r = np.random.default_rng(0)
    found = {name: r.standard_normal((o, c // g, k, k)).astype(np.float32) * np.float32((2 / (k * k * o / g)) ** 0.5)
             for name, c, o, k, _, g, _, _ in layers()}
    return {**found, "classify": r.standard_normal((CLASSES, 1280)).astype(np.float32) * np.float32(0.01)}


def constant(array: np.ndarray):
    """An initializer that gives this array."""
    return lambda shape, dtype, seed: array.reshape(shape)


def network(x, w):
    """Logits of a batch, in a job."""
    kept = None
    for name, _, out, kernel, stride, groups, clipped, residual in layers():
        if residual == "begin":
            kept = x
        pad = (kernel // 2, kernel // 2)
        x = flow.layers.conv2d(x, out, kernel, stride, [0, 0, pad, pad], groups=groups, use_bias=False,
                               kernel_initializer=constant(w[name]), name=name)
        x = flow.layers.batch_normalization(x, axis=1, momentum=0.9, epsilon=1e-5, name=f"{name}_norm")
        if clipped:
            x = flow.nn.relu6(x, name=f"{name}_relu6")
        if residual == "end":
            x = flow.math.add(x, kept, name=f"{name}_add")
    x = flow.math.reduce_mean(x, axis=[2, 3])
    return flow.layers.dense(x, CLASSES, kernel_initializer=constant(w["classify"]), name="classify")


def torch_network(w):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, parts, residual):
            super().__init__()
            self.parts, self.residual = nn.Sequential(*parts), residual

        def forward(self, x):
            return x + self.parts(x) if self.residual else self.parts(x)

    whole, parts = [], []
    for name, c, o, k, s, g, clipped, residual in layers():
        conv = nn.Conv2d(c, o, k, s, k // 2, groups=g, bias=False)
        with torch.no_grad():
            conv.weight.copy_(torch.tensor(w[name]))
        parts += [conv, nn.BatchNorm2d(o, eps=1e-5), *([nn.ReLU6(inplace=True)] if clipped else [])]
        if not clipped or name in ("stem", "head"):
            whole.append(Block(parts, residual == "end"))
            parts = []
    classify = nn.Linear(1280, CLASSES)
    with torch.no_grad():
        classify.weight.copy_(torch.tensor(w["classify"]))
        classify.bias.zero_()
    return nn.Sequential(*whole, nn.AdaptiveAvgPool2d(1), nn.Flatten(), classify)


def data():
    r = np.random.default_rng(1)
    return r.standard_normal((BATCH, 3, 32, 32)).astype(np.float32), r.integers(0, CLASSES, BATCH).astype(np.int32)


def training_job(off=()):
    """The training step as a job: losses = train(images, labels); off: passes to leave out."""
    w = weights()
    flow.clear_default_session()
    config = flow.function_config()
    config.without_passes(*off)

    @flow.global_function("train", config)
    def train(images: tp.Numpy.Placeholder((BATCH, 3, 32, 32)),
              labels: tp.Numpy.Placeholder((BATCH,), dtype=flow.int32)) -> tp.Numpy:
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, network(images, w))
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [RATE]), momentum=0).minimize(loss)
        return loss

    return train


def mobilenet_training():
    x, y = data()
    train = training_job()
    found = {"flowedu": lambda: train(x, y)}
    if torch:
        model = torch_network(weights())
        opt = torch.optim.SGD(model.parameters(), RATE)
        tx, ty = torch.tensor(x), torch.tensor(y, dtype=torch.long)

        def step():
            opt.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(tx), ty)
            loss.backward()
            opt.step()
            return loss

        for _ in range(3):
            np.testing.assert_allclose(train(x, y).mean(), step().item(), rtol=2e-3)
        found["torch"] = step
    return found


def inference_job(off=()):
    """logits = predict(images)"""
    w = weights()
    flow.clear_default_session()
    config = flow.function_config()
    config.without_passes(*off)

    @flow.global_function("predict", config)
    def predict(images: tp.Numpy.Placeholder((BATCH, 3, 32, 32))) -> tp.Numpy:
        return network(images, w)

    return predict


def mobilenet_inference():
    x, _ = data()
    predict = inference_job()
    found = {"flowedu": lambda: predict(x)}
    if torch:
        model, tx = torch_network(weights()).eval(), torch.tensor(x)

        def forward():
            with torch.inference_mode():
                return model(tx)

        np.testing.assert_allclose(predict(x), forward().numpy(), rtol=2e-3, atol=2e-3)
        found["torch"] = forward
    return found
