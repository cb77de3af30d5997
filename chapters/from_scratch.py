"""The milestone "from scratch" of chapters 1 to 4: trains LeNet on digits with all your answers.

`make from-scratch` runs it, and counts how much of the executed code is yours. The program defines an
activation (2.8, 2.9). It trains a few batches eagerly, with your NumPy formulas of momentum and Adam. Then it
compiles a training job, which uses your layer norm, and a prediction job for batches of any size.
"""
import time
from contextlib import ExitStack

import numpy as np

import flowedu as flow
import flowedu.typing as tp
from flowedu.autograd.forward import derivative
from flowedu.core.layers.context import EAGER
from flowedu.core.ops import elementwise
from flowedu.ops.norm import layer_norm, layer_norm_grad
from flowedu.ops.update_adaptive import _adam
from flowedu.ops.update_sgd import momentum
from flowedu.swap import replaced

BATCH, LAST = 100, 60
BATCHES, EPOCHS, WANTED = 40, 3, 0.93
EAGERLY, RATE = 10, 0.05


def snake(x):
    """Return x + sin(2x)^2 / 2, the activation of the hidden layer."""
    s = elementwise.sin(x * 2.0)
    return x + s * s * 0.5


def lenet(x, activation):
    """Return logits (batch, 10)."""
    first = flow.variance_scaling_initializer(2.0, "fan_in", "random_normal")
    h = flow.layers.conv2d(x, 8, 5, padding="SAME", activation=flow.nn.relu, name="conv1",
                           kernel_initializer=first)
    h = flow.nn.max_pool2d(h, 2, 2, "SAME", data_format="NCHW")
    h = flow.layers.conv2d(h, 16, 5, padding="SAME", activation=flow.math.tanh, name="conv2",
                           kernel_initializer=first)
    h = flow.nn.max_pool2d(h, 2, 2, "SAME", data_format="NCHW")
    h = flow.reshape(h, [-1, h.shape[1] * h.shape[2] * h.shape[3]])
    h = flow.layers.dense(h, 64, kernel_initializer=first, name="dense1")
    gamma = flow.get_variable("norm-gamma", (64,), initializer=flow.ones_initializer())
    beta = flow.get_variable("norm-beta", (64,), initializer=flow.zeros_initializer())
    h = activation(layer_norm(h, gamma, beta, begin_norm_axis=1, epsilon=1e-5)[0])
    return flow.layers.dense(h, 10, kernel_initializer=first, name="dense2")


def define_activation():
    """Define the activation as an op, and compare its gradient with the rates of forward mode."""
    activation = flow.ops.define_elementwise("from_scratch_snake(x) -> y", formula=snake)
    x = flow.tensor(np.linspace(-2, 2, 9), dtype=flow.float32, requires_grad=True)
    activation(x).sum().backward()
    difference = float(np.abs(x.grad.numpy() - derivative(snake, x.detach()).numpy()).max())
    print(f"your activation: backward and forward mode differ by {difference:.0e}", flush=True)
    return activation


def train_eagerly(images, labels, activation) -> None:
    """Train on ten batches with momentum, and on ten batches with Adam."""
    buffers, moments = {}, {}
    for step, (x, y) in enumerate(zip(images[:2 * EAGERLY], labels)):
        # a slice without the margin is a view
        logits = lenet(flow.tensor(x)[:, :, 1:27, 1:27], activation)
        # Keeps logits small.
        smooth = (flow.math.softplus(logits) * flow.math.sigmoid(logits)).mean() * 1e-4
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(flow.tensor(y), logits).mean() + smooth
        loss.backward()
        for name, v in EAGER.variables.items():
            w, g = v.numpy(), v.grad.numpy()
            zeros = np.zeros_like(w)
            if step < EAGERLY:
                w[...], buffers[name] = momentum(w, g, [buffers.get(name, zeros)], RATE, 0.0, 1, 0.9)
            else:
                w[...], *moments[name] = _adam(w, g, moments.get(name, [zeros, zeros]), 2e-3, 0.0,
                                               step - EAGERLY + 1, 0.9, 0.999, 1e-8, True)
            v.grad = None
    print(f"eagerly: loss {loss.item():.3f} after {step + 1} batches", flush=True)


def define_jobs(activation):
    """Return (training job, prediction job).

    They share variables, and the second takes batches of any size.
    """
    mirrored = flow.function_config()
    mirrored.default_logical_view(flow.scope.mirrored_view())

    @flow.global_function("train")
    def train(images: tp.Numpy.Placeholder((BATCH, 1, 28, 28)),
              labels: tp.Numpy.Placeholder((BATCH,), flow.int32)) -> tp.Numpy:
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, lenet(images, activation))
        flow.optimizer.Adam(flow.optimizer.PiecewiseConstantScheduler([], [2e-3])).minimize(loss)
        return loss

    @flow.global_function("predict", mirrored)
    def predict(images: tp.ListNumpy.Placeholder((BATCH, 1, 28, 28))) -> tp.ListNumpy:
        return flow.nn.softmax(lenet(images, activation))

    return train, predict


def accuracy(predict, images, labels) -> float:
    """Return the accuracy over batches of BATCH images and a last batch of LAST images."""
    batches = [*images[:9], images[9][:LAST]]
    guesses = np.concatenate([predict([x])[0].argmax(1) for x in batches])
    return float((guesses == labels[:10].reshape(-1)[:len(guesses)]).mean())


def main() -> None:
    flow.random.seed(0)
    flow.clear_default_session()
    (images, labels), test = flow.data.load_mnist(BATCH, BATCH)
    images, labels, began = images[:BATCHES], labels[:BATCHES], time.perf_counter()
    activation = define_activation()
    windows = flow.ops.REGISTRY["unfold"](flow.tensor(images[0, 0, 0].mean(0)), axis=0, size=7, step=7)
    print("mean brightness of the quarters of a mean image:", [round(v, 2) for v in windows.mean(1).tolist()],
          flush=True)
    with ExitStack() as stack:
        for op in (layer_norm, layer_norm_grad):
            stack.enter_context(replaced(op, cpu=None))                      # NumPy, not the kernels
        train_eagerly(images, labels, activation)
        train, predict = define_jobs(activation)
        rng = np.random.default_rng(0)
        for epoch in range(1, EPOCHS + 1):
            losses = [train(images[i], labels[i]).mean() for i in rng.permutation(BATCHES)]
            print(f"epoch {epoch}: loss {np.mean(losses):.3f}", flush=True)
        plan = train.plan
        found = accuracy(predict, *test)
        print(f"a step is {len(plan.steps)} calls in an arena of {plan.arena:,} bytes, bound "
              f"{plan.bound_bytes:,}")
    flow.clear_default_session()
    print(f"LeNet reads {found:.1%} of 960 test images, after {time.perf_counter() - began:.0f} s")
    if found < WANTED:
        print(f"missed: {found:.1%} of the digits are right, expected {WANTED:.0%}")
        raise SystemExit(1)


if __name__ == "__main__":
    main()
