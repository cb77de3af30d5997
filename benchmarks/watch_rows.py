"""Row of the cost of watching: a training step with and without watched logits and a watched gradient."""
from __future__ import annotations

import numpy as np

import flowedu as flow
import flowedu.typing as tp

BATCH = 100


def watched_step():
    """Return the contenders of a row: "flowedu" watches, "without" does not."""
    r = np.random.default_rng(0)
    x, y = r.standard_normal((BATCH, 784)).astype(np.float32), r.integers(0, 10, BATCH).astype(np.int32)
    w = (r.standard_normal((512, 784)) / 28).astype(np.float32)
    seen = []
    flow.clear_default_session()

    def initialize(shape, dtype, seed):
        return w

    def define(name: str, watch: bool):
        def job(images: tp.Numpy.Placeholder((BATCH, 784)),
                labels: tp.Numpy.Placeholder((BATCH,), flow.int32)) -> tp.Numpy:
            h = flow.layers.dense(images, 512, flow.nn.relu, kernel_initializer=initialize, name=f"{name}1")
            logits = flow.layers.dense(h, 10, kernel_initializer=flow.truncated_normal(0.1), name=f"{name}2")
            loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1])).minimize(loss)
            if watch:
                flow.watch(logits, lambda a: seen.append(a.shape))
                flow.watch_diff(flow.get_variable(f"{name}2-weight", (10, 512)),
                                lambda a: seen.append(a.shape))
            return loss

        job.__name__ = name
        return flow.global_function("train")(job)

    on, off = define("on", True), define("off", False)

    def step():
        seen.clear()
        return on(x, y)

    step()
    assert seen == [(BATCH, 10), (10, 512)]
    return {"flowedu": step, "without": lambda: off(x, y)}
