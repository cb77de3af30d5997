"""flow.distribute, parallel_cast, and flow.advanced: with any hints, a job returns the same values as on one
device.
"""
import contextlib
import io

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant, constant_rate, f32, fresh_session, job, refused  # noqa: F401
from flowedu.errors import ArgumentError, CheckError, JobBuildAndInferError, ShapeError, UnsupportedError

D = flow.distribute


def on(devices, body, *arrays, **options):
    """Define a job on `devices` virtual devices."""
    flow.clear_default_session()
    flow.config.cpu_device_num(devices)
    config = flow.function_config()
    config.default_placement_scope(flow.scope.placement("cpu", f"0:0-{devices - 1}"))
    return job(body, *arrays, config=config, **options)


def run_on(devices, body, *arrays, **options):
    return on(devices, body, *arrays, **options)(*arrays)


def spread_of(made):
    return made.compiled.spread


# hints
def test_hints_are_singletons():
    assert D.split(0) is D.split(0) and D.split(1) is not D.split(0)
    assert D.broadcast() is D.broadcast() and D.auto() is D.auto()
    assert [d.suffix for d in (D.split(2), D.broadcast(), D.auto())] == [":S2", ":B", ""]
    assert [d.sbp for d in (D.split(2), D.broadcast(), D.auto())] == ["S2", "B", None]
    assert D.split(2).axis == 2 and repr(D.split(2)) == "flow.distribute.split(2)"
    assert repr(D.auto()) == "flow.distribute.auto()" and repr(D.broadcast()) == "flow.distribute.broadcast()"


@pytest.mark.parametrize("axis", [-1, "0", 1.0, None, True])
def test_split_requires_an_axis(axis):
    with refused(AssertionError, "split", repr(axis)):
        D.split(axis)


def test_only_distribute_objects_are_valid_hints():
    for d in (D.split(0), D.broadcast(), D.auto()):
        D.assert_is_valid_distribute(d)
    with refused(CheckError, "S0"):
        D.assert_is_valid_distribute("S0")


def test_old_names_of_views_warn():
    for old, new in (("mirrored_strategy", flow.scope.mirrored_view), ("consistent_strategy",
                                                                       flow.scope.consistent_view)):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert isinstance(getattr(D, old)(), new)
            assert getattr(D, f"{old}_enabled")() is (old == "consistent_strategy")
        assert f"distribute.{old} has been deprecated" in out.getvalue() and new.__name__ in out.getvalue()


# ---- on a handle
def test_a_handle_keeps_its_name():
    seen = []

    def body(x):
        y = flow.math.relu(x, name="act")
        for d in (D.split(1), D.broadcast(), D.auto()):
            z = y.with_distribute(d)
            assert z is not y and z.distribute is d and (z.op_name, z.blob_name) == (y.op_name, y.blob_name)
            seen.append(z.unique_name)
        assert y.unique_name == y.logical_blob_name
        assert y.distribute is D.auto()
        with refused(CheckError, "not a distribute strategy", at=False):
            y.with_distribute("S0")
        with refused(ArgumentError, "S2", "(4, 6)", at=False):
            y.with_distribute(D.split(2))
        return z

    x = f32(4, 6)
    np.testing.assert_array_equal(run_on(2, body, x), np.maximum(x, 0))
    assert seen == ["act/out_0:S1", "act/out_0:B", "act/out_0"]


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_hints_steer_and_change_nothing(devices):
    x, w = f32(6, 4), f32(4, 5, seed=1)

    def body(x, w):
        return flow.matmul(x.with_distribute(D.split(1)), w.with_distribute(D.split(0)), name="mm")

    made = on(devices, body, x, w)
    np.testing.assert_allclose(made(x, w), x @ w, rtol=1e-5, atol=1e-5)
    if devices == 1:
        assert spread_of(made) is None
    else:
        row = next(r for r in spread_of(made).rows if r.name == "mm")
        assert row.signature == "a=S(1), b=S(0) -> y=P"
        assert "mm (matmul)" in made.show()


def test_hints_that_contradict_each_other_name_the_line():
    x, w = f32(6, 4), f32(4, 5, seed=1)
    made = on(2, lambda x, w: flow.matmul(x.with_distribute(D.split(0)), w.with_distribute(D.split(1)),
                                          name="mm"), x, w)
    with refused(JobBuildAndInferError, "mm", "a=S(0), b=S(1)", "a=S(0) goes with a=S(0), b=B -> y=S(0)"):
        made(x, w)


def test_a_split_needs_an_element_for_every_device():
    x = f32(2, 4)
    made = on(3, lambda x: flow.math.relu(x.with_distribute(D.split(0)), name="act"), x)
    with refused(JobBuildAndInferError, "act", "x cannot be S(0) here", "(2, 4)"):
        made(x)
    made = on(3, lambda x: flow.parallel_cast(x, distribute=D.split(0), name="cut"), x)
    with refused(JobBuildAndInferError, "cut", "S(0)", "(2, 4)"):
        made(x)


# ---- on a value
@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize("there", [None, D.split(0), D.split(1), D.broadcast()], ids=str)
@pytest.mark.parametrize("back", [None, D.split(0), D.split(1), D.broadcast()], ids=str)
def test_parallel_cast(devices, there, back):
    x, w = f32(5, 3), f32(3, 4, seed=1)
    seen = {}

    def body(x):
        v = flow.get_variable("w", shape=w.shape, initializer=constant(w))
        y = flow.matmul(x, v)
        z = flow.parallel_cast(y, distribute=there, gradient_distribute=back, name="cast")
        loss = flow.math.reduce_sum(flow.math.square(z))
        flow.optimizer.SGD(constant_rate(0.1)).minimize(loss)
        flow.watch_diff(y, lambda dy: seen.update(dy=dy.numpy()))
        return loss

    made = on(devices, body, x, type="train")
    np.testing.assert_allclose(made(x), [np.square(x @ w).sum()], rtol=1e-5)
    np.testing.assert_allclose(seen["dy"], 2 * x @ w, rtol=1e-5)
    np.testing.assert_allclose(flow.get_all_variables()["w"].numpy(), w - 0.1 * x.T @ (2 * x @ w), rtol=1e-4,
                               atol=1e-4)
    if devices > 1:
        spread = spread_of(made)
        casts = [r for r in spread.rows if r.op == "parallel_cast"]
        assert [r.signature.split()[-1] for r in casts] == [f"S({d.axis})" if d is not D.broadcast() else "B"
                                                            for d in (there, back) if d is not None]


def test_with_gradient_distribute_and_tensors():
    x = f32(4, 6)
    np.testing.assert_array_equal(run_on(2, lambda x: x.with_gradient_distribute(D.split(1)), x), x)
    t = flow.tensor(x, requires_grad=True)
    flow.parallel_cast(t, distribute=D.split(0), gradient_distribute=D.broadcast()).sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), np.ones_like(x))
    for bad in (D.auto(), "S0"):
        with refused(AssertionError, "parallel_cast", "gradient_distribute"):
            flow.parallel_cast(t, gradient_distribute=bad)
    with refused(UnsupportedError, "to_global"):
        flow.hierarchical_parallel_cast(t, parallel_hierarchy=[2, 2], parallel_distribution=["S(0)", "S(1)"])


# ---- variables and layers
@pytest.mark.parametrize("wish", [dict(distribute=D.split(0)), dict(parallel_distribution=["S(0)"]),
                                  dict(parallel_distribution="S(0)")], ids=str)
def test_a_split_variable(wish):
    w = f32(5, 4)

    def body(x):
        v = flow.get_variable("w", shape=w.shape, initializer=constant(w), **wish)
        assert v.unique_name == "w/out:S0" and v.split_axis == 0
        return flow.matmul(x, v, transpose_b=True, name="mm")

    x = f32(6, 4, seed=1)
    made = on(2, body, x)
    np.testing.assert_allclose(made(x), x @ w.T, rtol=1e-5, atol=1e-6)
    spread = spread_of(made)
    assert next(r.signature for r in spread.rows if r.name == "mm") == "a=B, b=S(0) -> y=S(1)"
    assert all(b.value.name != "w" for r in spread.rows for b in r.boxed)


def test_wrong_hints_for_variables_and_layers():
    for wish in (D.auto(), "S0", 0):
        with refused(ValueError, "unsupported distribute"):
            flow.get_variable("w", shape=(2, 2), initializer=constant(0), distribute=wish)
    for wish in ("P", "S0", ["S(0)", "B"], 3):
        with refused(ValueError, "parallel_distribution"):
            flow.get_variable("w", shape=(2, 2), initializer=constant(0), parallel_distribution=wish)
    x = flow.tensor(f32(2, 3))
    for wish in (D.split(1), None, "S0"):
        with refused(AssertionError, "model_distribute"):
            flow.layers.dense(x, 4, model_distribute=wish)
    with refused(AssertionError, "two axes", "(2, 3, 4)"):
        flow.layers.dense(flow.tensor(f32(2, 3, 4)), 4, model_distribute=D.split(0))
    assert flow.layers.dense(x, 4, model_distribute=D.split(0)).shape == (2, 4)


def make_mlp_body(first, second):
    """Return the body of a training job: two dense layers with these hints; the batch (10) and the widths (7,
    5) are uneven.
    """
    def body(x, labels):
        h = flow.layers.dense(x, 7, flow.nn.relu, kernel_initializer=constant(f32(7, 6, seed=3)), name="one",
                              model_distribute=first, kernel_regularizer=flow.regularizers.l2(0.01))
        y = flow.layers.dense(h, 5, kernel_initializer=constant(f32(5, 7, seed=4)), name="two",
                              model_distribute=second)
        loss = flow.math.reduce_mean(flow.nn.sparse_softmax_cross_entropy_with_logits(labels, y))
        clip = flow.optimizer.grad_clipping.by_global_norm(0.5)
        flow.optimizer.Adam(constant_rate(0.01), grad_clipping=clip).minimize(loss)
        return loss, y
    return body


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize("first", [D.broadcast(), D.split(0), D.auto()], ids=str)
@pytest.mark.parametrize("second", [D.broadcast(), D.split(0), D.auto()], ids=str)
def test_model_parallel_training_equals_one_device(devices, first, second):
    x, labels = f32(10, 6), np.arange(10, dtype=np.int32) % 5

    def train(n):
        made = on(n, make_mlp_body(first, second), x, labels, type="train", returns=tuple[tp.Numpy, tp.Numpy])
        results = [made(x, labels) for _ in range(4)]
        return results, {k: v.numpy() for k, v in flow.get_all_variables().items()}, made

    want, weights, _ = train(1)
    got, found, made = train(devices)
    for (a, b), (c, d) in zip(got, want):
        np.testing.assert_allclose(a, c, rtol=2e-5)
        np.testing.assert_allclose(b, d, rtol=1e-4, atol=1e-5)
    assert found.keys() == weights.keys()
    for name in weights:
        np.testing.assert_allclose(found[name], weights[name], rtol=1e-4, atol=1e-5, err_msg=name)
    assert spread_of(made).bytes > 0


def test_a_convolutional_net_on_two_devices():
    """Batch norm uses the statistics of the whole batch, so they match those of one device."""
    x = f32(6, 3, 8, 8)

    def body(x):
        y = flow.layers.conv2d(x, 4, 3, padding="SAME", kernel_initializer=constant(f32(4, 3, 3, 3, seed=1)),
                               name="conv")
        y = flow.nn.relu(flow.layers.batch_normalization(y, axis=1, name="bn"))
        y = flow.nn.max_pool2d(y, 2, 2, "VALID")
        y = flow.layers.dense(flow.reshape(y, [6, -1]), 3, kernel_initializer=constant(f32(3, 64, seed=2)),
                              name="fc")
        loss = flow.math.reduce_mean(flow.math.square(y))
        flow.optimizer.SGD(constant_rate(0.05), momentum=0.9).minimize(loss)
        return loss

    results = []
    for n in (1, 2, 3):
        made = on(n, body, x, type="train")
        results.append(([made(x) for _ in range(3)],
                        {k: v.numpy() for k, v in flow.get_all_variables().items()}))
    for losses, weights in results[1:]:
        np.testing.assert_allclose(losses, results[0][0], rtol=1e-4)
        for k, v in results[0][1].items():
            np.testing.assert_allclose(weights[k], v, rtol=1e-3, atol=1e-5, err_msg=k)


# ---- flow.advanced
@pytest.mark.parametrize("devices", [1, 2, 3])
def test_the_lists_of_advanced(devices):
    x = f32(7, 5)

    def body(x):
        clones = flow.advanced.distribute_clone(x)
        pieces = flow.advanced.distribute_split(x, axis=1)
        assert len(clones) == len(pieces) == devices
        assert [p.shape for p in pieces] == [p.shape for p in np.array_split(np.zeros((7, 5)), devices,
                                                                             axis=1)]
        total = flow.advanced.distribute_add(clones, name="total")
        joined = flow.advanced.distribute_concat(pieces, axis=1)
        mapped = flow.advanced.distribute_map(x, lambda p: p * 2 + 1)
        both = flow.advanced.distribute_map([x, x], lambda a, b: (a * b, a - b), axis=1)
        return total, joined, mapped, *both

    got = run_on(devices, body, x, returns=tuple[(tp.Numpy,) * 5])
    want = (x * devices, x, x * 2 + 1, x * x, x * 0)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_advanced_on_tensors_and_its_gradients():
    t = flow.tensor(f32(4, 3), requires_grad=True)
    y = flow.advanced.distribute_map(t, lambda p: p * p)
    flow.advanced.distribute_add(flow.advanced.distribute_clone(y)).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), 2 * t.numpy(), rtol=1e-6)


def test_advanced_requires_one_blob_per_device():
    def body(x):
        with refused(CheckError, "distribute_add", "list of 3", "2 blobs", at=False):
            flow.advanced.distribute_add([x, x])
        with refused(CheckError, "distribute_concat", "list of 3", at=False):
            flow.advanced.distribute_concat(x)
        with refused(ShapeError, "distribute_split", "3 or more", "(2, 4)", at=False):
            flow.advanced.distribute_split(x)
        return x

    run_on(3, body, f32(2, 4))


def test_a_map_runs_each_part_on_its_device():
    x = f32(6, 4)
    made = on(3, lambda x: flow.advanced.distribute_map(x, lambda p: flow.math.exp(p)), x)
    np.testing.assert_allclose(made(x), np.exp(x), rtol=1e-6)
    assert [r.devices for r in spread_of(made).rows if r.op == "exp"] == [(0,), (1,), (2,)]
