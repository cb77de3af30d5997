"""What the benchmark measures. Each row builds the same computation for flowedu, PyTorch (if installed) and NumPy."""
from __future__ import annotations

from importlib.util import find_spec

import numpy as np

import flowedu as flow
import flowedu.typing as tp
from data_rows import data_pipeline
from dist_rows import rows as dist_rows
from gpt_rows import gpt_block
from graph_rows import rows as graph_rows
from mobilenet_rows import mobilenet_inference, mobilenet_training
from run import Row
from watch_rows import watched_step

try:
    import torch
except ImportError:
    torch = None


def versions() -> str:
    return f"numpy {np.__version__}" + (f", torch {torch.__version__}" if torch else ", no torch: pip install torch")


def peer_threads(n: int) -> None:
    """PyTorch's threads follow ours. (NumPy's OpenBLAS keeps its own.)"""
    if torch:
        torch.set_num_threads(n)


def agree(a, b, tol: float = 2e-3) -> None:
    """Refuse to time two things that do not compute the same."""
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# ---- eager
def eager_add():
    a, b = rng().standard_normal((2, 4, 4)).astype(np.float32)
    x, y = flow.tensor(a), flow.tensor(b)
    found = {"flowedu": lambda: x + y}
    if torch:
        p, q = torch.tensor(a), torch.tensor(b)
        agree((x + y).numpy(), (p + q).numpy())
        found["torch"] = lambda: p + q
    found["numpy"] = lambda: a + b
    return found


def eager_backward():
    r = rng()
    a, w, b = (r.standard_normal(s).astype(np.float32) for s in ((8, 16), (16, 16), (16,)))
    x, v, c = (flow.tensor(t, requires_grad=True) for t in (a, w, b))

    def ours():
        (x @ v + c).relu().sum().backward()
        g = v.grad
        x.grad = v.grad = c.grad = None
        return g

    found = {"flowedu": ours}
    if torch:
        p, q, s = (torch.tensor(t, requires_grad=True) for t in (a, w, b))

        def theirs():
            (p @ q + s).relu().sum().backward()
            g = q.grad
            p.grad = q.grad = s.grad = None
            return g

        agree(ours().numpy(), theirs().numpy())
        found["torch"] = theirs
    return found


# ---- jobs
def _constant(array: np.ndarray):
    """An initializer that gives this array."""
    return lambda shape, dtype, seed: array.reshape(shape)


def _mlp(sizes, batch: int, rate: float):
    """The same training step three times: dense, relu, dense, softmax cross-entropy, SGD."""
    r = rng()
    n_in, hidden, n_out = sizes
    w1, w2 = (r.standard_normal((o, i)).astype(np.float32) * np.float32(i ** -0.5)
              for o, i in ((hidden, n_in), (n_out, hidden)))
    x = r.standard_normal((batch, n_in)).astype(np.float32)
    y = r.integers(0, n_out, batch).astype(np.int32)
    flow.clear_default_session()

    @flow.global_function("train")
    def train(images: tp.Numpy.Placeholder((batch, n_in)),
              labels: tp.Numpy.Placeholder((batch,), dtype=flow.int32)) -> tp.Numpy:
        h = flow.layers.dense(images, hidden, flow.nn.relu, kernel_initializer=_constant(w1), name="d1")
        logits = flow.layers.dense(h, n_out, kernel_initializer=_constant(w2), name="d2")
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [rate]), momentum=0).minimize(loss)
        return loss

    found = {"flowedu": lambda: train(x, y)}
    if torch:
        model = torch.nn.Sequential(torch.nn.Linear(n_in, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, n_out))
        with torch.no_grad():
            model[0].weight.copy_(torch.tensor(w1)), model[2].weight.copy_(torch.tensor(w2))
            model[0].bias.zero_(), model[2].bias.zero_()
        opt = torch.optim.SGD(model.parameters(), rate)
        tx, ty = torch.tensor(x), torch.tensor(y, dtype=torch.long)

        def step():
            opt.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(tx), ty)
            loss.backward()
            opt.step()
            return loss

        for _ in range(3):
            agree(train(x, y).mean(), step().item())
        found["torch"] = step
    a1, a2, b1, b2 = w1.copy(), w2.copy(), np.zeros(hidden, np.float32), np.zeros(n_out, np.float32)
    rows = np.arange(batch)

    def by_hand():
        z = x @ a1.T + b1
        h = np.maximum(z, 0)
        o = h @ a2.T + b2
        p = np.exp(o - o.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        loss = -np.log(p[rows, y])
        p[rows, y] -= 1
        p *= np.float32(1 / batch)
        dh = (p @ a2) * (h > 0)
        for parameter, gradient in ((a2, p.T @ h), (b2, p.sum(0)), (a1, dh.T @ x), (b1, dh.sum(0))):
            parameter -= np.float32(rate) * gradient
        return loss

    found["numpy"] = by_hand
    return found


def tiny_mlp():
    return _mlp((4, 16, 3), 8, 0.1)


def mlp():
    return _mlp((784, 512, 10), 100, 0.1)


def _lenet_weights():
    r = rng()
    shapes = {"conv1": (32, 1, 5, 5), "conv2": (64, 32, 5, 5), "dense1": (512, 3136), "dense2": (10, 512)}
    return {n: r.standard_normal(s).astype(np.float32) * np.float32(0.05) for n, s in shapes.items()}


def _lenet(images, weights):
    conv = lambda x, n, name: flow.layers.conv2d(x, n, 5, padding="SAME", activation=flow.nn.relu, name=name,
                                                 kernel_initializer=_constant(weights[name]))
    x = flow.nn.max_pool2d(conv(images, 32, "conv1"), 2, 2, "SAME", name="pool1")
    x = flow.nn.max_pool2d(conv(x, 64, "conv2"), 2, 2, "SAME", name="pool2")
    x = flow.reshape(x, [x.shape[0], -1])
    x = flow.layers.dense(x, 512, flow.nn.relu, kernel_initializer=_constant(weights["dense1"]), name="dense1")
    return flow.layers.dense(x, 10, kernel_initializer=_constant(weights["dense2"]), name="dense2")


def _torch_lenet(weights):
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2),
                          nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10))
    with torch.no_grad():
        for i, name in ((0, "conv1"), (3, "conv2"), (7, "dense1"), (9, "dense2")):
            model[i].weight.copy_(torch.tensor(weights[name]))
            model[i].bias.zero_()
    return model


def _lenet_data():
    r = rng()
    return r.standard_normal((100, 1, 28, 28)).astype(np.float32), r.integers(0, 10, 100).astype(np.int32)


def lenet_training():
    weights, (x, y) = _lenet_weights(), _lenet_data()
    flow.clear_default_session()

    @flow.global_function("train")
    def train(images: tp.Numpy.Placeholder((100, 1, 28, 28)),
              labels: tp.Numpy.Placeholder((100,), dtype=flow.int32)) -> tp.Numpy:
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, _lenet(images, weights))
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.01]), momentum=0).minimize(loss)
        return loss

    found = {"flowedu": lambda: train(x, y)}
    if torch:
        model = _torch_lenet(weights)
        opt = torch.optim.SGD(model.parameters(), 0.01)
        tx, ty = torch.tensor(x), torch.tensor(y, dtype=torch.long)

        def step():
            opt.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(tx), ty)
            loss.backward()
            opt.step()
            return loss

        for _ in range(3):
            agree(train(x, y).mean(), step().item())
        found["torch"] = step
    return found


def lenet_inference():
    weights, (x, _) = _lenet_weights(), _lenet_data()
    flow.clear_default_session()

    @flow.global_function("predict")
    def predict(images: tp.Numpy.Placeholder((100, 1, 28, 28))) -> tp.Numpy:
        return _lenet(images, weights)

    found = {"flowedu": lambda: predict(x)}
    if torch:
        model, tx = _torch_lenet(weights).eval(), torch.tensor(x)

        def forward():
            with torch.inference_mode():
                return model(tx)

        agree(predict(x), forward().numpy())
        found["torch"] = forward
    return found


def all_rows() -> list[Row]:
    """The table, in order. `target` is the ratio to PyTorch eager the project sets itself."""
    return [
        Row("eager add, 4x4", eager_add, 3, inner=20000, rounds=30),
        Row("eager relu(x@w+b).sum() + backward, 8x16x16", eager_backward, 8, inner=2000, rounds=30),
        Row("job: MLP 4-16-3 batch 8, training step", tiny_mlp, 50, inner=1000, rounds=30),
        Row("job: MLP 784-512-10 batch 100, training step", mlp, 1.3, inner=20, rounds=40),
        Row("job: LeNet batch 100, training step", lenet_training, 1.1, inner=1, rounds=40),
        Row("job: LeNet batch 100, inference", lenet_inference, 1.5, inner=2, rounds=40),
        Row("job: MobileNetV2 batch 64, training step", mobilenet_training, 2.0, inner=1, rounds=20),
        Row("job: MobileNetV2 batch 64, inference", mobilenet_inference, 1.3, inner=2, rounds=30),
        Row("job: GPT block, batch 4, length 128, training step", gpt_block, 1.0, inner=1, rounds=40),
        Row("job: MLP training step, two things watched", watched_step, 0.9, inner=20, rounds=40),
        *graph_rows(Row),
        *([Row("data: 100 JPEGs read and resized", lambda: data_pipeline(0), 1.3, inner=10, rounds=10),
           Row("data: the same, torch with 2 workers", lambda: data_pipeline(2), 0.6, inner=10, rounds=10),
           Row("data: 4 x 64 JPEGs of 320x240 made 224x224", lambda: data_pipeline(0, True), 1.3, rounds=10)]
          if find_spec("PIL") and find_spec("google") else []),
        *dist_rows(Row),
    ]
