"""config.train.num_gradient_accumulation_steps: micro-batches, one update."""
import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant, constant_rate, f32, fresh_session, refused  # noqa: F401


def train_job(steps, rows=12):
    config = flow.function_config()
    config.train.num_gradient_accumulation_steps(steps)

    @flow.global_function("train", config)
    def train(x: tp.Numpy.Placeholder((rows, 6)), y: tp.Numpy.Placeholder((rows,), flow.int32)) -> tp.Numpy:
        assert x.shape == (rows // steps, 6), "the body sees a micro-batch"
        hidden = flow.layers.dense(flow.reshape(x, [x.shape[0], -1]), 5, activation=flow.math.tanh, name="a",
                                   kernel_initializer=constant(f32(5, 6, seed=1)))
        logits = flow.layers.dense(hidden, 3, kernel_initializer=constant(f32(3, 5, seed=2)), name="b")
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        flow.optimizer.SGD(constant_rate(0.3)).minimize(loss)
        return loss
    return train


@pytest.mark.parametrize("steps", [2, 3, 4])
def test_micro_batches_train_like_the_whole_batch(steps):
    x, y = f32(12, 6), np.arange(12, dtype=np.int32) % 3
    runs = []
    for n in (1, steps):
        flow.clear_default_session()
        job = train_job(n)
        runs.append(([job(x, y) for _ in range(5)], flow.get_all_variables()["a-weight"].numpy()))
    np.testing.assert_allclose(runs[0][0], runs[1][0], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(runs[0][1], runs[1][1], rtol=2e-5, atol=1e-6)


def test_an_indivisible_batch_is_refused():
    job = train_job(5)
    with refused(AssertionError, "micro-batches"):
        job(f32(12, 6), np.zeros(12, np.int32))
