"""minimize already takes the mean of the losses.

The program divides the losses by n, and minimize divides the gradients by n again. watch_diff shows
2 * error / n as the gradient of error, although minimize expects the gradient of the sum, 2 * error.
"""
import numpy as np

import flowedu as flow
import flowedu.typing as tp


def make_job(n, k, rate):
    """Return a job that takes one step of gradient descent on the mean of n squared errors."""
    flow.clear_default_session()

    @flow.global_function("train")
    def step(x: tp.Numpy.Placeholder((n, k)), y: tp.Numpy.Placeholder((n, 1))) -> tp.Numpy:
        w = flow.get_variable("w", (k, 1), initializer=flow.constant_initializer(0))
        error = flow.matmul(x, w) - y
        loss = flow.math.square(error)
        scheduler = flow.optimizer.PiecewiseConstantScheduler([], [rate])
        flow.optimizer.SGD(scheduler, momentum=0).minimize(loss)
        return error

    return step


def fit(x, y, steps, rate=0.1):
    """Fit y = x @ w, for x (n, k) and y (n, 1). Return w after the steps."""
    step = make_job(*x.shape, rate)
    for _ in range(steps):
        step(x, y)
    return flow.get_all_variables()["w"].numpy().copy()


if __name__ == "__main__":
    x = np.array([[1.0], [-1.0], [1.0], [-1.0]], np.float32)
    for steps in (1, 10, 20):
        w = fit(x, 3 * x, steps)[0, 0]
        print(f"{steps:2} steps: w = {w:.3f}; expected: {3 * (1 - 0.8 ** steps):.3f}")
