"""Law for whole models: 20 training steps are equal eagerly, as an nn.Graph, and as a job function."""
import numpy as np
import pytest

import flowedu as flow
from common import constant, constant_rate, fresh_session, job  # noqa: F401
from flowedu import nn
from flowedu.models import GPT
from flowedu.nn.graph import GraphModule
from flowedu.vision import models
from flowedu.vision.models.neural_style_transfer import stylenet

from .making import assert_same_state, make_graph, twins

STEPS = 20


def pictures(n, c, size, classes, seed=0):
    rng = np.random.default_rng(seed)
    return (flow.tensor(rng.standard_normal((n, c, size, size)).astype(np.float32)),
            flow.tensor(rng.integers(0, classes, n)))


def words(seed=0):
    rows = np.random.default_rng(seed).integers(0, 11, (4, 9))
    return flow.tensor(rows[:, :8].copy()), flow.tensor(rows[:, 1:].copy())


def classify(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


def guess(model, x, y):
    return model(x, y)[1]


def paint(model, x, y):
    return nn.functional.mse_loss(model(x) / 255, y)


def small_mobilenet():
    return models.MobileNetV2(num_classes=5, width_mult=0.25, dropout=0.0,
                              inverted_residual_setting=[(1, 8, 1, 1), (6, 16, 2, 2), (6, 16, 1, 1)])


def style_data():
    return pictures(1, 3, 16, 2)[0] * 60 + 120, flow.rand(1, 3, 16, 16)


MODELS = {  # model, loss, data
    "mlp": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 4)), classify,
            lambda: pictures(8, 1, 8, 4)),
    "lenet": (lambda: models.lenet5(), classify, lambda: pictures(4, 1, 28, 10)),
    "mobilenet": (small_mobilenet, classify, lambda: pictures(4, 3, 32, 5)),
    "resnet18": (lambda: models.resnet18(num_classes=5, width_mult=0.125), classify,
                 lambda: pictures(4, 3, 32, 5)),
    "gpt": (lambda: GPT(11, n_layer=2, n_head=2, d=16, block_size=8), guess, words),
    "style": (lambda: stylenet.NeuralStyleTransfer(width_mult=0.125), paint, style_data)}
OPTIMIZERS = {
    "sgd": lambda p: flow.optim.SGD(p, lr=0.02),
    "momentum": lambda p: flow.optim.SGD(p, lr=0.01, momentum=0.9),
    "adam": lambda p: flow.optim.Adam(p, lr=1e-3),
    "adamw": lambda p: flow.optim.AdamW(p, lr=1e-3, weight_decay=0.1),
    "rmsprop": lambda p: flow.optim.RMSprop(p, lr=1e-3), "adagrad": lambda p: flow.optim.Adagrad(p, lr=0.01)}


def step_of(loss_of):
    def build(self, x, y):
        loss = loss_of(self.model, x, y)
        loss.backward()
        return loss
    return build


def loss_of_steps(g, x, y, steps=STEPS):
    return [g(x, y).item() for _ in range(steps)]


def train_model_eagerly(model, optimizer, loss_of, x, y, steps=STEPS):
    losses = []
    for _ in range(steps):
        loss = loss_of(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", MODELS)
def test_twenty_steps_of_a_model_equal_eager_steps(name):
    make, loss_of, data = MODELS[name]
    (a, b), (x, y) = twins(lambda: make().double()), data()          # rounding errors stay small in float64
    x, y = (t.double() if t.dtype is flow.float32 else t for t in (x, y))
    sgd = OPTIMIZERS["momentum"]
    losses = loss_of_steps(make_graph(step_of(loss_of), sgd(a.parameters()), model=a), x, y)
    np.testing.assert_allclose(losses, train_model_eagerly(b, sgd(b.parameters()), loss_of, x, y), rtol=1e-6)
    assert losses[-1] < losses[0]
    assert_same_state(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", MODELS)
def test_float32_steps_and_predictions_are_near_eager_ones(name):
    """A few float32 steps, as in typical use, followed by prediction."""
    make, loss_of, data = MODELS[name]
    (a, b), (x, y) = twins(make), data()
    sgd = OPTIMIZERS["sgd"]
    losses = loss_of_steps(make_graph(step_of(loss_of), sgd(a.parameters()), model=a), x, y, 3)
    np.testing.assert_allclose(losses, train_model_eagerly(b, sgd(b.parameters()), loss_of, x, y, 3),
                               rtol=2e-3)
    a.eval()
    predicted = make_graph(lambda self, x: self.model(x), model=a)(x).numpy()
    want = a(x).numpy()
    np.testing.assert_allclose(predicted, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", ["lenet", "gpt"])
def test_every_optimizer_trains_a_model_as_in_eager_mode(name, optimizer):
    make, loss_of, data = MODELS[name]
    make_optimizer = OPTIMIZERS[optimizer]
    (a, b), (x, y) = twins(lambda: make().double()), data()
    x = x.double() if x.dtype is flow.float32 else x
    losses = loss_of_steps(make_graph(step_of(loss_of), make_optimizer(a.parameters()), model=a), x, y)
    np.testing.assert_allclose(losses, train_model_eagerly(b, make_optimizer(b.parameters()), loss_of, x, y),
                               rtol=1e-5)
    assert_same_state(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["mobilenet", "gpt"])
@pytest.mark.parametrize("off", ["simplify", "cse", "dead", "fuse", "update", "inplace", "reuse"])
def test_disabling_a_pass_does_not_change_training(name, off):
    make, loss_of, data = MODELS[name]
    (a, b), (x, y) = twins(lambda: make().double()), data()
    x = x.double() if x.dtype is flow.float32 else x
    g, h = (make_graph(step_of(loss_of), OPTIMIZERS["adam"](m.parameters()), model=m) for m in (a, b))
    h.config.disable_pass(off)
    np.testing.assert_allclose(loss_of_steps(g, x, y, 3), loss_of_steps(h, x, y, 3), rtol=1e-9)
    assert_same_state(a, b, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["mobilenet", "gpt"])
def test_checkpointing_does_not_change_training(name):
    make, loss_of, data = MODELS[name]
    (a, b), (x, y) = twins(lambda: make().double()), data()
    x = x.double() if x.dtype is flow.float32 else x
    g, h = (make_graph(step_of(loss_of), OPTIMIZERS["sgd"](m.parameters()), model=m) for m in (a, b))
    for part in h.model.features if name == "mobilenet" else h.model.blocks:
        part.to(GraphModule).activation_checkpointing = True
    np.testing.assert_allclose(loss_of_steps(g, x, y, 5), loss_of_steps(h, x, y, 5), rtol=1e-9)
    assert_same_state(a, b, rtol=1e-6, atol=1e-9)
    assert h._compiled.program.plan.arena < g._compiled.program.plan.arena


# ---- the same models as job functions, from the same weights
def variable(name, array):
    return flow.get_variable(name, array.shape, initializer=constant(array))


def job_mlp(w, x):
    h = flow.math.tanh(flow.matmul(flow.reshape(x, [8, 64]),
                                   variable("w1", w["1.weight"].T)) + variable("b1", w["1.bias"]))
    return flow.matmul(h, variable("w2", w["3.weight"].T)) + variable("b2", w["3.bias"])


def job_convnet(w, x):
    y = flow.nn.conv2d(x, variable("k", w["0.weight"]), 1, "SAME")
    y = flow.nn.relu(flow.nn.bias_add(y, variable("kb", w["0.bias"]), "NCHW"))
    y = flow.reshape(flow.nn.max_pool2d(y, 2, 2, "VALID"), [8, -1])
    return flow.matmul(y, variable("w", w["4.weight"].T)) + variable("b", w["4.bias"])


def convnet():
    return nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(96, 4))


JOBS = {"mlp": (MODELS["mlp"][0], job_mlp), "convnet": (convnet, job_convnet)}
RATES = {"sgd": lambda: flow.optimizer.SGD(constant_rate(0.02), momentum=0),
         "momentum": lambda: flow.optimizer.SGD(constant_rate(0.01), momentum=0.9),
         "adam": lambda: flow.optimizer.Adam(constant_rate(1e-3), do_bias_correction=True)}


@pytest.mark.parametrize("optimizer", RATES)
@pytest.mark.parametrize("name", JOBS)
def test_graph_equals_job_function(name, optimizer):
    make, body = JOBS[name]
    model, = twins(make, 1)
    x, y = pictures(8, 1, 8, 4)
    weights = {k: v.numpy().copy() for k, v in model.state_dict().items()}

    def train(x, y):
        loss = flow.math.reduce_mean(flow.nn.sparse_softmax_cross_entropy_with_logits(y, body(weights, x)))
        RATES[optimizer]().minimize(loss)
        return loss

    step = job(train, x.numpy(), y.numpy().astype(np.int32), type="train")
    in_job = [step(x.numpy(), y.numpy().astype(np.int32)).item() for _ in range(STEPS)]
    g = make_graph(step_of(classify), OPTIMIZERS[optimizer](model.parameters()), model=model)
    np.testing.assert_allclose(loss_of_steps(g, x, y), in_job, rtol=2e-4)
    trained = sorted(np.abs(v.numpy()).sum() for v in flow.get_all_variables().values() if v.numpy().size > 1)
    own = sorted(np.abs(v.numpy()).sum() for v in model.state_dict().values())
    assert all(np.isclose(trained, total, rtol=1e-4).any() for total in own)  # Adam's states are among them
