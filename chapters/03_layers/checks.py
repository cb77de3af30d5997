"""What the exercises of chapter 3 must do."""
import numpy as np

import flowedu as flow
from flowedu.core.layers.context import EAGER
from flowedu.learn.exercises import Wrong, expect
from flowedu.ops.padding import conv_padding


def check_same_pads(f):
    expect("same_pads(4, 2, 1, lower=True)", f(4, 2, 1, True), (1, 0), "4 windows of 2 take 5 cells: 1 zero in front")
    expect("same_pads(4, 2, 1, lower=False)", f(4, 2, 1, False), (0, 1), "SAME_UPPER puts the extra zero behind")
    expect("same_pads(28, 5, 1, lower=True)", f(28, 5, 1, True), (2, 2), "28 windows of 5 reach over 32 elements")
    expect("same_pads(7, 1, 3, lower=True)", f(7, 1, 3, True), (0, 0), "windows may skip elements: 0 zeros, not fewer")
    for size in range(1, 12):
        for kernel in range(1, 6):
            for stride in range(1, 4):
                for lower in (True, False):
                    want = conv_padding("SAME_LOWER" if lower else "SAME_UPPER", (size,), (kernel,), (stride,))
                    expect(f"same_pads({size}, {kernel}, {stride}, lower={lower})", f(size, kernel, stride, lower),
                           want, "the last of n windows ends at (n - 1) * stride + kernel")


def check_moving_mean(f):
    expect("moving_mean(0, 5, 0.99, 1)", float(f(0.0, 5.0, 0.99, 1)), 0.05, "one step: 0.99 * 0 + 0.01 * 5")
    expect("moving_mean(0, 5, 0.99, 100)", float(f(0.0, 5.0, 0.99, 100)), 3.1698383,
           "how far from batch_mean is it, and what does one step do to that distance?")
    expect("moving_mean(2, -1, 0.9, 10)", float(f(2.0, -1.0, 0.9, 10)), 0.04603533, "it need not start at 0")


def check_scaled_dense(f):
    # A store of variables of its own: the reader's variables stay as they are.
    mine, EAGER.variables = EAGER.variables, {}
    try:
        x = flow.tensor([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]])
        y = f(x, 2, "layer", flow.constant_initializer(0.5))
        shapes = {n: v.shape for n, v in EAGER.variables.items()}
        expect("its variables", dict(sorted(shapes.items())),
               {"layer-bias": (2,), "layer-scale": (2,), "layer-weight": (2, 3)},
               "flow.get_variable(f'{name}-weight', ...)")
        expect("scaled_dense(x, 2, ...), weights 0.5", y.numpy(), np.array([[3.0, 3.0], [0.5, 0.5]]),
               "x @ W.T, times a scale that is 1 at first, plus a bias that is 0 at first")
        EAGER.variables["layer-scale"].numpy()[...] = (10, 20)
        EAGER.variables["layer-bias"].numpy()[...] = (1, 2)
        again = f(x, 2, "layer", flow.constant_initializer(7.0))
        expect("the same with scale (10, 20) and bias (1, 2)", again.numpy(), np.array([[31.0, 62.0], [6.0, 12.0]]),
               "the second call must find the variables of the first, and the scale comes before the bias")
        again.sum().backward()
        expect("the gradient of the scale", EAGER.variables["layer-scale"].grad.numpy(), np.array([3.5, 3.5]),
               "stay with ops; numpy() inside the layer hides it from the tape")
    finally:
        EAGER.variables = mine


def check_keeping_std(f):
    rng = np.random.default_rng(0)
    for width in (64, 256, 400):
        h = np.maximum(rng.standard_normal((200, width)), 0)
        before = h.std()
        for _ in range(20):
            h = np.maximum(h @ (rng.standard_normal((width, width)) * f(width)), 0)
        ratio = h.std() / before
        if not 0.2 < ratio < 5:
            raise Wrong(f"after 20 layers of {width} units the signal is {ratio:.1e} times as large\n  hint: an output "
                        "is a sum of fan_in products, and relu halves the mean square of what comes in")
    expect("keeping_std(50)", float(f(50)), 0.2, "close, but not exact: the variance is 2 / fan_in")


def check_layer_norm(f):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in ((4, 6), (6,), (6,))]
    dy = flow.tensor(rng.standard_normal((4, 6)))

    def both(g):
        values = [flow.tensor(a, requires_grad=True) for a in arrays]
        y = g(*values)
        return y.numpy(), [d.numpy() for d in flow.grad((y * dy).sum(), values)]

    want, want_grads = both(lambda x, g, b: flow.nn.layer_norm(x, g, b, epsilon=1e-3))
    got, grads = both(lambda x, g, b: f(x, g, b, 1e-3))
    expect("layer_norm(x, gamma, beta, 0.001)", got, want, "mean and variance are those of a row: dim 1, keepdim=True")
    for name, a, b in zip(("x", "gamma", "beta"), grads, want_grads):
        expect(f"the gradient of {name}", a, b, "the mean and the variance depend on x, too: let the tape see how")


def check_momentum_step(f):
    weight, buffer = np.array([1.0, 2.0]), np.zeros(2)
    given = weight
    f(weight, np.array([1.0, -1.0]), buffer, 0.1, 0.9)
    expect("weight after one step", weight, np.array([0.9, 2.1]), "the first step is plain gradient descent, in place")
    expect("buffer after one step", buffer, np.array([-0.1, 0.1]), "the buffer holds what was added to the weight")
    f(weight, np.array([1.0, 1.0]), buffer, 0.01, 0.9)
    expect("weight after a second step, rate 0.01", weight, np.array([0.8, 2.18]),
           "the old buffer is not rescaled when the rate changes: 0.9 * buffer - rate * grad")
    expect("the array you were given", given is weight, True, "change it in place")
