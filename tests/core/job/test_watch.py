"""watch and watch_diff: which values handlers receive, when, and in which cases none; with the spec's
vectors.
"""
import functools

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant, constant_rate, f32, fresh_session, job, refused, run  # noqa: F401

x = f32(2, 3)


def minimize(loss, rate=0.0):
    flow.optimizer.SGD(constant_rate(rate), momentum=0).minimize(loss)
    return loss


def diffs(body, *arrays, calls=1):
    """Return the values that handlers registered by `body(watch, *blobs)` received. The body returns the
    loss, and watch(name, blob) watches the gradient of blob.
    """
    seen = []

    def watched(name, blob):
        def handler(d: tp.Numpy):
            seen.append((name, d))
        flow.watch_diff(blob, handler)

    flow.clear_default_session()
    flow.random.seed(1)
    step = job(lambda *blobs: minimize(body(watched, *blobs)), *arrays, type="train")
    for _ in range(calls):
        step(*arrays)
    return seen


# --- watch
# -----------------------------------------------------------------------------------------------------------

def test_annotations_decide_the_type_a_handler_receives():
    got = {}

    def bare(t):
        got["bare"] = t

    def array(t: tp.Numpy):
        got["array"] = t

    def listed(t: tp.ListNumpy):
        got["listed"] = t

    class Keeper:
        def method(self, t: tp.Numpy):
            got["method"] = t

    def two(prefix, t: tp.Numpy):
        got[prefix] = t

    def body(a):
        for handler in (bare, array, listed, Keeper().method, functools.partial(two, "partial"),
                        lambda t: got.setdefault("lambda", t)):
            flow.watch(a, handler)
        return a

    run(body, x)
    assert isinstance(got["bare"], flow.LocalBlob) and isinstance(got["lambda"], flow.LocalBlob)
    assert type(got["listed"]) is list and len(got["listed"]) == 1
    for value in (got["bare"].numpy(), got["array"], got["listed"][0], got["method"], got["partial"],
                  got["lambda"].numpy()):
        assert type(value) is np.ndarray
        np.testing.assert_array_equal(value, x)


def test_handlers_run_once_a_run_in_the_order_of_registration():
    seen = []

    def body(a):
        b = a * 2
        flow.watch(b, lambda t: seen.append(("b", t.numpy())))
        flow.watch(a, lambda t: seen.append(("a", t.numpy())))
        flow.watch(b, lambda t: seen.append(("b again", t.numpy())))
        return a

    twice = job(body, x)
    for i in range(3):
        twice(x + i)
        assert [n for n, _ in seen] == ["b", "a", "b again"] * (i + 1)
        np.testing.assert_array_equal(seen[-3][1], (x + i) * 2)
        np.testing.assert_array_equal(seen[-1][1], (x + i) * 2)


def test_a_prompt_and_no_handler_print(capsys):
    def body(a):
        flow.watch(a, "the input:")
        flow.watch(a + 1)
        return a

    run(body, np.zeros(2, np.float32))
    assert capsys.readouterr().out.split("\n") == ["the input:", "[0. 0.]", "[1. 1.]", ""]


def test_every_kind_of_blob_can_be_watched():
    """Inputs, variables, views, fused and simplified values, labels, and constants are each reported with
    their own value.
    """
    seen = {}

    def body(a, labels):
        v = flow.get_variable("v", (3,), initializer=constant(2.5))
        blobs = {"input": a, "labels": labels, "variable": v, "view": flow.transpose(a, [1, 0]),
                 "identity": flow.identity(a), "fused": flow.math.relu(a * v + 1), "mask": a > 0,
                 "constant": flow.constant(3, flow.float, (2,)), "piece": flow.slice(a, [0, 1], [2, 1])}
        for name, blob in blobs.items():
            flow.watch(blob, keep(name))
        return flow.math.tanh(blobs["fused"])

    def keep(name):
        def handler(t: tp.Numpy):
            seen[name] = t
        return handler

    y = np.array([1, 2], np.int32)
    run(body, x, y)
    want = {"input": x, "labels": y, "variable": [2.5] * 3, "view": x.T, "identity": x,
            "fused": np.maximum(x * np.float32(2.5) + 1, 0), "mask": x > 0, "constant": [3, 3],
            "piece": x[:, 1:2]}
    assert seen.keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_allclose(seen[name], value, rtol=1e-6)
    assert seen["labels"].dtype == np.int32 and seen["mask"].dtype == np.int8


@pytest.mark.parametrize("handler, error, word", [
    (lambda: None, AssertionError, "only one parameter"), (lambda a, b: None, AssertionError,
                                                           "only one parameter"),
    (3, AssertionError, "not callable")])
@pytest.mark.parametrize("watch", [flow.watch, flow.watch_diff])
def test_handlers_are_checked(watch, handler, error, word):
    with refused(error, word):
        run(lambda a: (watch(a, handler), a)[1], x)


def test_odd_annotations_and_things_that_are_no_blobs_are_refused():
    def handler(t: np.ndarray):
        pass

    with refused(NotImplementedError, "annotation"):
        run(lambda a: (flow.watch(a, handler), a)[1], x)
    with refused(NotImplementedError, "not a blob"):
        run(lambda a: (flow.watch(x, print_it), a)[1], x)
    for watch in (flow.watch, flow.watch_diff):
        with refused(NotImplementedError, "not inside a job"):
            watch(None, print_it)


def print_it(t):
    pass


def test_an_exception_in_a_handler_reaches_the_caller():
    def handler(t: tp.Numpy):
        raise KeyError("mine")

    failing = job(lambda a: (flow.watch(a, handler), a)[1], x)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            failing(x)


# --- watch_diff
# ------------------------------------------------------------------------------------------------------

def test_matmul_gives_the_watched_values_of_the_specification():
    """With weights of 2 and inputs of 1, the gradient of the summed loss is 3 everywhere."""
    def body(watch, a):
        w = flow.get_variable("w", (3, 20), initializer=flow.constant_initializer(2))
        watch("w", w)
        return flow.matmul(a, w)

    [(_, d)] = diffs(body, np.ones((3, 3), np.float32))
    np.testing.assert_array_equal(d, np.full((3, 20), 3.0))


def test_convolution_gives_the_watched_values_of_the_specification():
    def body(watch, a):
        w = flow.get_variable("w", (1, 1, 3, 3), initializer=flow.ones_initializer())
        watch("w", w)
        return flow.nn.conv2d(a, w, 1, "VALID")

    [(_, d)] = diffs(body, np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4))
    np.testing.assert_array_equal(d[0, 0], [[14, 18, 22], [30, 34, 38], [46, 50, 54]])


def test_a_watched_variable_has_the_value_of_the_specification():
    seen = []

    def body(a):
        v = flow.get_variable("variable-weight", (5,), initializer=flow.constant_initializer(2.5))
        flow.watch(v, lambda t: seen.append(t.numpy()))
        return v

    run(body, x)
    np.testing.assert_array_equal(seen[0], [2.5] * 5)


def test_two_jobs_that_share_a_variable_watch_the_same_values():
    """`loss` = 3 * x1^2 with x1 = x + v, so d(x1) = 6 * x1: first with v = 0, then with the v that the first
    job wrote.
    """
    a = np.array([-2, -1, 0, 1, 2], np.float32)
    seen = []

    def body(t):
        x1 = t
        x1 += flow.get_variable("v", (5,), initializer=flow.zeros_initializer())
        flow.watch_diff(x1, lambda d: seen.append(d.numpy()))
        return minimize(flow.math.square(x1) * 3, 0.1)

    first, second = (job(body, a, type="train", name=n) for n in ("first", "second"))
    first(a), second(a)
    np.testing.assert_array_equal(seen[0], [-12, -6, 0, 6, 12])
    np.testing.assert_allclose(seen[1], 6 * (a - 0.1 * 6 * a / 5), rtol=1e-6)


def test_gradients_of_logits_sum_to_zero_per_sample():
    """From test_watch_diff.py in OneFlow's documents: rows sum to 0, one row per sample, not divided by N."""
    rng = np.random.default_rng(0)
    images, labels = f32(100, 1, 28, 28), rng.integers(0, 10, 100).astype(np.int32)

    def body(watch, i, t):
        init = flow.truncated_normal(0.1)
        h = flow.layers.dense(flow.reshape(i, [100, -1]), 512, flow.nn.relu, kernel_initializer=init,
                              name="hidden")
        logits = flow.layers.dense(h, 10, kernel_initializer=init, name="output")
        watch("logits", logits)
        watch("softmax", logits)
        return flow.nn.sparse_softmax_cross_entropy_with_logits(t, logits)

    (_, d), (_, again) = diffs(body, images, labels)
    assert d.shape == (100, 10) and d.dtype == np.float32
    np.testing.assert_allclose(d.sum(1), 0, atol=1e-5)
    assert ((d < 0).sum(1) == 1).all() and (d[np.arange(100), labels] < 0).all()
    assert d.min() > -1 and d.min() < -0.1, "gradients of the sum, not of the mean"
    np.testing.assert_array_equal(d, again)


def test_gradients_of_all_uses_add_up_and_the_loss_itself_has_ones():
    def body(watch, a):
        v = flow.get_variable("v", (2, 3), initializer=flow.ones_initializer())
        b = a * v
        loss = b * 2 + b * b
        watch("b", b), watch("loss", loss), watch("v", v)
        return loss

    (_, b), (_, loss), (_, v) = diffs(body, x)
    np.testing.assert_allclose(b, 2 + 2 * x, rtol=1e-6)
    np.testing.assert_array_equal(loss, np.ones((2, 3)))
    np.testing.assert_allclose(v, (2 + 2 * x) * x, rtol=1e-5)


def test_watch_diff_ignores_clipping_penalties_and_loss_scaling():
    seen = []

    def body(a):
        v = flow.get_variable("v", (2, 3), initializer=flow.ones_initializer(),
                              regularizer=flow.regularizers.l2(10.0))
        flow.watch_diff(v, lambda d: seen.append(d.numpy()))
        loss = v * a
        clip = flow.optimizer.grad_clipping.by_global_norm(1e-3)
        flow.optimizer.SGD(constant_rate(0.1), grad_clipping=clip).minimize(loss)
        flow.watch_diff(loss, lambda d: seen.append(d.numpy()))  # registering after minimize works as well
        return loss

    run(body, x, type="train")
    np.testing.assert_allclose(seen[0], x, rtol=1e-6)
    np.testing.assert_array_equal(seen[1], np.ones((2, 3)))


def test_watch_diff_runs_in_every_run_with_the_gradient_of_that_run():
    step_inputs = [x, x * 2, x - 1]
    seen = []

    def body(a):
        v = flow.get_variable("v", (1,), initializer=flow.ones_initializer())
        flow.watch_diff(v, lambda d: seen.append(float(d[0])))
        return minimize(v * a)

    step = job(body, x, type="train")
    for a in step_inputs:
        step(a)
    np.testing.assert_allclose(seen, [a.sum() for a in step_inputs], rtol=1e-4, atol=1e-5)


def test_watch_diff_does_not_run_without_a_gradient():
    """Covers a predict job, a blob that the loss does not use, and blobs that depend on nothing trainable."""
    seen = []
    run(lambda a: (flow.watch_diff(a * flow.get_variable("v", (1,), initializer=flow.ones_initializer()),
                                   seen.append), a)[1], x)

    def body(watch, a):
        v = flow.get_variable("v", (1,), initializer=flow.ones_initializer())
        fixed = flow.get_variable("fixed", (1,), initializer=flow.ones_initializer(), trainable=False)
        doubled = a * 2
        watch("unused", v * 3), watch("input", a), watch("of inputs", doubled), watch("fixed", fixed)
        watch("not differentiable", doubled > 0)
        watch("used", doubled * v)
        return doubled * v * fixed

    assert diffs(body, x) == [] and seen == []


def test_a_job_may_return_a_watched_blob():
    got = []

    @flow.global_function("train")
    def step(a: tp.Numpy.Placeholder((2, 3))) -> tuple[tp.Numpy, tp.Numpy]:
        v = flow.get_variable("v", (2, 3), initializer=flow.ones_initializer())
        flow.watch(v, lambda t: got.append(t.numpy()))
        flow.watch_diff(v, lambda t: got.append(t.numpy()))
        loss = v * a
        flow.optimizer.SGD(constant_rate(6.0), momentum=0).minimize(loss)
        return loss, v

    loss, v = step(x)
    np.testing.assert_array_equal(got[0], v)
    np.testing.assert_array_equal(got[1], x)
    np.testing.assert_array_equal(loss, x)
    np.testing.assert_allclose(step(x)[1], 1 - x, rtol=1e-5)
