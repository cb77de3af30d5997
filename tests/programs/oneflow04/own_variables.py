"""Build layers from variables and operators, and read slots and values of a checkpoint by name."""
import numpy as np
import oneflow as flow
import oneflow.typing as tp


@flow.global_function("train")
def train_job(x: tp.Numpy.Placeholder((20, 3)), y: tp.Numpy.Placeholder((20, 1))) -> tp.Numpy:
    with flow.scope.namespace("line"):
        w = flow.get_variable("w", shape=(3, 1), dtype=flow.float,
                              initializer=flow.random_uniform_initializer(-1, 1))
        b = flow.get_variable("b", shape=(1,), dtype=flow.float, initializer=flow.zeros_initializer())
    out = flow.matmul(x, w)
    out += b
    loss = flow.math.reduce_mean(flow.math.square(out - y))
    scheduler = flow.optimizer.PiecewiseConstantScheduler([50, 100], [0.3, 0.1, 0.01])
    flow.optimizer.SGD(scheduler, momentum=0.5).minimize(loss)
    return loss


if __name__ == "__main__":
    x = np.random.RandomState(0).randn(20, 3).astype(np.float32)
    y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 3
    flow.load_variables({"line-b": np.ones(1, np.float32)})
    losses = [train_job(x, y)[0] for _ in range(120)]
    weight = flow.get_all_variables()["line-w"].numpy()
    print(weight)
