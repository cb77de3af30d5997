"""Learning rates and step counters that a job computes or stores itself, and state variables that the body
also requests.
"""
import math

import numpy as np
import pytest

import flowedu as flow
from common import (  # noqa: F401
    constant,
    constant_rate,
    f32,
    fresh_session,
    job,
    refused,
    run,
    variable_values,
)

opt = flow.optimizer
ones = flow.ones_initializer()
one = np.ones(1, np.float32)


@pytest.mark.parametrize("eager", [False, True], ids=["job", "eager"])
@pytest.mark.parametrize("make", [lambda lbn: opt.CustomScheduler(lbn),
                                  lambda lbn: opt.LrScheduler(lr_lbn=lbn)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_rate_can_be_a_blob_of_the_job(eager, make, dtype):
    flow.enable_eager_execution(eager)

    def body(g, r):
        w = flow.get_variable("w", (1,), initializer=ones)
        rate = flow.math.multiply(r, 0.5, name="half")
        opt.SGD(make(rate.logical_blob_name), momentum=0).minimize(w * g)
        return w

    step = job(body, one, np.ones((1, 1), dtype), type="train")
    for rate in (1.0, 0.25, 0.0):
        step(one, np.full((1, 1), rate, dtype))
    np.testing.assert_allclose(variable_values()["w"], [1 - 0.5 - 0.125], rtol=1e-6)


@pytest.mark.parametrize("eager", [False, True], ids=["job", "eager"])
def test_the_rate_can_be_an_argument_or_come_from_a_buffer(eager):
    for source in ("argument", "buffer"):
        flow.clear_default_session()
        flow.enable_eager_execution(eager)

        def body(g, r, source=source):
            w = flow.get_variable("w", (1,), initializer=ones)
            if source == "buffer":
                r = flow.tensor_buffer_to_tensor(flow.tensor_to_tensor_buffer(r, 1), flow.float32, [1],
                                                 name="rate")
            opt.SGD(opt.CustomScheduler(r.logical_blob_name), momentum=0).minimize(w * g)
            return w

        step = job(body, one, np.ones((1, 1), np.float32), type="train")
        for rate in (0.5, 0.25):
            step(one, np.full((1, 1), rate, np.float32))
        np.testing.assert_allclose(variable_values()["w"], [0.25], rtol=1e-6, err_msg=source)


def test_the_rate_can_be_a_variable_for_vectors_and_matrices():
    """A matrix, whose gradient is a matrix product, is updated by a different kernel."""
    def body(x):
        rate = flow.get_variable("rate", (1,), initializer=constant(0.5), trainable=False)
        w = flow.get_variable("w", (3, 2), initializer=ones)
        opt.SGD(opt.CustomScheduler(rate.logical_blob_name), momentum=0).minimize(flow.matmul(x, w))
        return w

    x = f32(4, 3)
    step = job(body, x, type="train")
    step(x)
    flow.load_variables({"rate": np.zeros(1, np.float32)})
    step(x)
    np.testing.assert_allclose(variable_values()["w"], 1 - 0.5 * np.repeat(x.sum(0)[:, None] / 8, 2, 1),
                               rtol=1e-5)


@pytest.mark.parametrize("lbn, error, words", [
    ("nowhere/out", RuntimeError, ["no blob 'nowhere/out'", "w/...", "half/..."]),
    ("wide/out", TypeError, ["not a learning rate"]),
    ("count/out_0", TypeError, ["not a learning rate"]), ("w/out", RuntimeError, ["trainable"])])
def test_invalid_rate_blobs_are_refused(lbn, error, words):
    def body(g):
        w = flow.get_variable("w", (1,), initializer=ones)
        flow.get_variable("wide", (2,), initializer=ones, trainable=False)
        flow.math.multiply(g, 0.5, name="half")
        flow.cast(g, flow.int32, name="count")
        opt.SGD(opt.CustomScheduler(lbn)).minimize(w * g)
        return w

    with refused(error, "CustomScheduler", *words, at=False):
        run(body, one, type="train")


@pytest.mark.parametrize("eager", [False, True], ids=["job", "eager"])
@pytest.mark.parametrize("combined", [False, True])
def test_steps_can_be_counted_by_a_variable(eager, combined):
    flow.enable_eager_execution(eager)
    rates = opt.PiecewiseConstantScheduler([2], [0.5, 0.25])

    def body(g):
        lbn = flow.get_variable("step", (1,), flow.int64, flow.zeros_initializer(),
                                trainable=False).logical_blob_name
        w = flow.get_variable("w", (1,), initializer=ones)
        part = opt.SGD(rates, momentum=0, train_step_lbn=None if combined else lbn)
        (opt.CombinedOptimizer([part], train_step_lbn=lbn) if combined else part).minimize(w * g)
        return w

    step = job(body, one, type="train")
    for count, want in ((0, 0.5), (2, 0.0), (3, -0.25), (0, -0.75)):
        if "w" in flow.get_all_variables():
            flow.load_variables({"step": np.array([count])})
        step(one)
        np.testing.assert_allclose(variable_values()["w"], [want], atol=1e-6)
    assert variable_values()["step"] == 0 and variable_values()["System-Train-TrainStep-job"] == 4


def test_bias_correction_uses_the_step_variable():
    def body(g):
        flow.get_variable("step", (1,), flow.int64, constant(9), trainable=False)
        w = flow.get_variable("w", (1,), initializer=ones)
        opt.Adam(constant_rate(0.1), do_bias_correction=True, train_step_lbn="step/out").minimize(w * g)
        return w

    run(body, one, type="train")
    rate = 0.1 * math.sqrt(1 - 0.999 ** 10) / (1 - 0.9 ** 10)
    np.testing.assert_allclose(variable_values()["w"], [1 - rate * 0.1 / math.sqrt(0.001)], rtol=1e-5)


@pytest.mark.parametrize("lbn, word", [("nowhere/out", "no such variable"), ("w/out", "float32")])
def test_invalid_step_counters_are_refused(lbn, word):
    def body(g):
        w = flow.get_variable("w", (1,), initializer=ones)
        opt.SGD(constant_rate(0.1), train_step_lbn=lbn).minimize(w * g)
        return w

    with refused(RuntimeError, "optimizer.SGD", lbn, word, at=False):
        run(body, one, type="train")


def test_schedules_have_a_rate_or_the_name_of_one():
    for wrong in ({}, {"base_lr": 0.1, "lr_lbn": "a/b"}):
        with refused(AssertionError, "LrScheduler", "base_lr"):
            opt.LrScheduler(**wrong)


def test_state_that_the_body_made_itself_is_used_or_refused():
    def body(g, shape):
        flow.get_variable("w-momentum", shape, initializer=ones, trainable=False)
        w = flow.get_variable("w", (1,), initializer=ones)
        opt.SGD(constant_rate(0.5)).minimize(w * g)
        return w

    run(lambda g: body(g, (1,)), one, type="train")
    np.testing.assert_allclose(variable_values()["w"], [1 + 0.9 - 0.5], rtol=1e-6)
    with refused(RuntimeError, "w-momentum", at=False):
        run(lambda g: body(g, (2,)), one, type="train")
