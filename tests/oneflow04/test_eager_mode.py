"""Eager execution mode: the same jobs, run on the data of every call."""
# ruff: noqa: UP006, UP035  (annotations as OneFlow scripts write them: Tuple and List of typing)
from typing import Tuple

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant, constant_rate, f32, fresh_session, refused  # noqa: F401

X, Y = f32(8, 6), np.arange(8, dtype=np.int32) % 3
OPTIMIZERS = [lambda r: flow.optimizer.SGD(r), lambda r: flow.optimizer.SGD(r, momentum=0),
              lambda r: flow.optimizer.Adam(r),
              lambda r: flow.optimizer.SGD(r, grad_clipping=flow.optimizer.grad_clipping.by_global_norm(0.1))]


def define(optimizer, diffs=None):
    @flow.global_function("train")
    def train(x: tp.Numpy.Placeholder((8, 6)),
              y: tp.Numpy.Placeholder((8,), flow.int32)) -> Tuple[tp.Numpy, tp.Numpy]:
        hidden = flow.layers.dense(x, 5, activation=flow.nn.relu,
                                   kernel_initializer=constant(f32(5, 6, seed=1)),
                                   kernel_regularizer=flow.regularizers.l2(0.1), name="hidden")
        hidden = flow.layers.batch_normalization(hidden, name="bn")
        logits = flow.layers.dense(hidden, 3, kernel_initializer=constant(f32(3, 5, seed=2)), name="out")
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        optimizer(flow.optimizer.PiecewiseConstantScheduler([2], [0.1, 0.05])).minimize(loss)
        if diffs is not None:
            flow.watch_diff(logits, lambda d: diffs.append(d.numpy()))
        return loss, flow.get_variable("hidden-weight", (5, 6))
    return train


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_eager_is_the_compiled_job(optimizer):
    trajectories, seen = [], []
    for eager in (False, True):
        flow.clear_default_session()
        flow.enable_eager_execution(eager)
        assert flow.eager_execution_enabled() is eager
        diffs = []
        train = define(optimizer, diffs)
        trajectories.append([train(X, Y) for _ in range(5)])
        seen.append(diffs)
    for (l1, w1), (l2, w2) in zip(*trajectories):
        np.testing.assert_allclose(l1, l2, rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(w1, w2, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(seen[0], seen[1], rtol=1e-4, atol=1e-6)


def test_the_body_runs_at_every_call_and_sees_data():
    flow.enable_eager_execution(True)
    bodies = []

    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
        y = x * 2.0
        bodies.append(y.numpy())
        assert y.numpy_list()[0].shape == (2, 3) and isinstance(y, flow.EagerConsistentBlob)
        flow.watch(y, lambda v: bodies.append("watched"))
        bodies.append("after")
        return y

    for i in range(3):
        np.testing.assert_array_equal(job(np.full((2, 3), i, np.float32)), np.full((2, 3), 2.0 * i))
    assert [b if isinstance(b, str) else float(b[0, 0]) for b in bodies] == [
        0.0, "watched", "after", 2.0, "watched", "after", 4.0, "watched", "after"]


def test_jobs_may_be_defined_at_any_time_and_share_variables():
    flow.enable_eager_execution(True)

    def step():
        @flow.global_function("train")
        def job(x: tp.Numpy.Placeholder((8, 6))) -> tp.Numpy:
            loss = flow.layers.dense(x, 1, kernel_initializer=constant(f32(1, 6)), name="d")
            flow.optimizer.SGD(constant_rate(0.1), momentum=0).minimize(loss)
            return loss
        return job(X).mean()

    losses = [step() for _ in range(4)]
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]


def test_eager_mode_refuses_late_calls_and_bad_input():
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
        return x

    with refused(NotImplementedError, "before the first"):
        flow.enable_eager_execution(True)
    flow.clear_default_session()
    flow.enable_eager_execution(True)

    @flow.global_function()
    def strict(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
        return x

    with refused(TypeError, "float32", "float64"):
        strict(np.zeros((2, 3)))
    with refused(AssertionError, "shape"):
        strict(np.zeros((2, 4), np.float32))


def test_returned_variables_are_those_from_before_the_update():
    flow.enable_eager_execution(True)
    _, w = define(OPTIMIZERS[1])(X, Y)
    np.testing.assert_array_equal(w, f32(5, 6, seed=1))


def test_clearing_ends_the_mode():
    flow.enable_eager_execution(True)
    flow.clear_default_session()
    assert not flow.eager_execution_enabled()
