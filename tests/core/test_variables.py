"""Variables, their names, and the layers that create them: shapes, defaults, sharing, and both modes of batch
norm.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from common import constant, constant_rate, f32, fresh_session, job, refused, run  # noqa: F401

x = f32(4, 3)
image = f32(2, 3, 6, 6)
ones = flow.ones_initializer()


def names_of(body, *arrays, **options):
    """Return {variable: shape} after a run of `body`."""
    run(body, *arrays, **options)
    return {n: v.shape for n, v in flow.get_all_variables().items()}


def minimize(y, **options):
    flow.optimizer.SGD(constant_rate(0.1), momentum=0).minimize(y)
    return y


# --- get_variable
# ----------------------------------------------------------------------------------------------------

def test_get_variable_returns_a_named_array_of_a_shape():
    got = run(lambda a: flow.get_variable("v", [2, 3], initializer=constant(np.arange(6).reshape(2, 3))), x)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, np.arange(6).reshape(2, 3))
    handle = flow.get_all_variables()["v"]
    assert (handle.shape, handle.dtype, handle.trainable) == ((2, 3), flow.float32, True)
    got = run(lambda a: flow.get_variable("v", (2,), flow.double, ones, trainable=False), x)
    assert got.dtype == np.float64 and not flow.get_all_variables()["v"].trainable


@pytest.mark.parametrize("call", [
    lambda: flow.get_variable(3, (2,), initializer=ones), lambda: flow.get_variable("v", initializer=ones),
    lambda: flow.get_variable("v", 3, initializer=ones),
    lambda: flow.get_variable("v", (-1,), initializer=ones)])
def test_get_variable_refuses_invalid_arguments(call):
    with refused(AssertionError, "get_variable"):
        run(lambda a: call(), x)


def test_get_variable_twice_returns_the_same_variable_or_raises():
    def body(a):
        v = flow.get_variable("v", (2,), initializer=ones)
        w = flow.get_variable("v", (5,), flow.double, flow.zeros_initializer())  # the initializer is ignored
        return v + w

    np.testing.assert_array_equal(run(body, x), [2, 2])
    with refused(AssertionError, "variable 'v' already exists", "another name"):
        run(lambda a: [flow.get_variable("v", (2,), initializer=ones, reuse=r) for r in (True, False)][1], x)


def test_a_missing_initializer_is_refused():
    with refused(flow.JobBuildAndInferError, "'v' has no initializer"):
        run(lambda a: flow.get_variable("v", (2,)), x)
    config = flow.function_config()
    config.default_initializer_conf(ones)
    np.testing.assert_array_equal(run(lambda a: flow.get_variable("v", (2,)), x, config=config), [1, 1])


def test_jobs_share_variables_by_name_and_the_first_initializer_runs():
    one = job(lambda a: flow.get_variable("v", (3,), initializer=ones) * a, x, name="one")
    two = job(lambda a: flow.get_variable("v", (3,), initializer=flow.zeros_initializer()) * a, x, name="two")
    np.testing.assert_array_equal(one(x), x)
    np.testing.assert_array_equal(two(x), x)
    flow.load_variables({"v": np.full(3, 2, np.float32)})
    np.testing.assert_array_equal(two(x), 2 * x)


@pytest.mark.parametrize("shape, dtype", [((4,), flow.float32), ((3,), flow.float64), ((3, 1), flow.float32)])
def test_jobs_that_disagree_on_a_variable_are_refused(shape, dtype):
    job(lambda a: (flow.get_variable("v", (3,), initializer=ones), a)[1], x, name="one")
    two = job(lambda a: (flow.get_variable("v", shape, dtype, ones), a)[1], x, name="two")
    with refused(flow.JobBuildAndInferError, "'v' differs between jobs", "one", "two"):
        two(x)


def test_initial_values_follow_the_seed_and_differ_by_name():
    """Includes names with a common prefix."""
    def values(seed):
        flow.random.seed(seed)
        normal = flow.random_normal_initializer()
        names = ["transformer_block1-weight", "transformer_block2-weight", "transformer_block1-bias"]
        run(lambda a: ([flow.get_variable(n, (5,), initializer=normal) for n in names], a)[1], x)
        return np.stack([flow.get_all_variables()[n].numpy() for n in names])

    a, b, c = values(1), values(1), values(2)
    np.testing.assert_array_equal(a, b)
    assert not (a == c).any()
    assert len({row.tobytes() for row in a}) == 3
    assert not (values(None) == values(None)).any()


def test_random_seed_determines_the_initial_value():
    def value(seed):
        return run(lambda a: flow.get_variable("v", (5,), initializer=flow.random_normal_initializer(),
                                               random_seed=seed), x)

    np.testing.assert_array_equal(value(3), value(3))
    assert not (value(3) == value(4)).any()


# --- names
# -----------------------------------------------------------------------------------------------------------

def test_names_of_layers_and_namespaces():
    def body(a):
        with flow.scope.namespace("net"):
            b = flow.layers.dense(a, 2, name="d")
            with flow.scope.namespace("block"):
                b = flow.layers.layer_norm(b, name="n")
            b = b + flow.get_variable("v", (2,), initializer=ones)
        return flow.layers.dense(b, 2)

    assert list(names_of(body, x)) == ["net-d-weight", "net-d-bias", "net-block-n-beta", "net-block-n-gamma",
                                       "net-v", "Dense-weight", "Dense-bias"]


def test_ops_inside_layers_are_named_after_them():
    found = []

    def activation(t, name):
        found.append((t.op_name, name))
        return flow.nn.relu(t, name=name)

    def body(a, b):
        with flow.scope.namespace("s"):
            found.append(flow.layers.dense(a, 2, activation, name="d").op_name)
        found.append(flow.layers.conv2d(b, 2, activation=activation, name="c").op_name)
        found.append(flow.layers.conv2d(b, 2, use_bias=False, name="plain").logical_blob_name)
        found.append(flow.layers.batch_normalization(b, 1, name="bn").op_name)
        return a

    run(body, x, image)
    assert found[0][0] == "s-d-bias_add" and found[1] == "s-d-activation"
    assert found[2][0] == "c-bias_add" and found[3] == "c-activation"
    assert found[4:] == ["plain/out_0", "bn"]


def test_two_layers_or_ops_of_one_name_are_refused():
    for body in (lambda a: flow.layers.dense(flow.layers.dense(a, 2), 2), lambda a: [
            flow.layers.conv2d(image_blob(a), 2, name="c") for _ in range(2)][1]):
        with refused(AssertionError, "already exists", "another name"):
            run(body, x)
    with refused(flow.JobBuildAndInferError, "the op name 'r' already exists"):
        run(lambda a: flow.nn.relu(flow.nn.relu(a, name="r"), name="r"), x)
    with refused(flow.JobBuildAndInferError, "the op name 'v' already exists"):
        run(lambda a: flow.get_variable("v", (3,), initializer=ones) + flow.nn.relu(a, name="v"), x)


def image_blob(a):
    return flow.reshape(a, [1, 1, 4, 3])


def test_explicit_variable_names_replace_the_default():
    def body(a):
        with flow.scope.namespace("s"):
            b = flow.layers.conv2d(a, 2, name="c", weight_name="kernel", bias_name="offset")
            return flow.layers.batch_normalization(b, 1, gamma_name="g", beta_name="b", moving_mean_name="mm",
                                                   moving_variance_name="mv")

    assert list(names_of(body, image)) == ["s-kernel", "s-offset", "s-g", "s-b", "s-mm", "s-mv"]


# --- dense
# -----------------------------------------------------------------------------------------------------------

def test_dense_computes_x_times_w_transposed_plus_b():
    w, b = f32(5, 3, seed=1), f32(5, seed=2)

    def layer(a, **more):
        return flow.layers.dense(a, 5, kernel_initializer=constant(w),
                                 bias_initializer=constant(b), **more)

    np.testing.assert_allclose(run(layer, x), x @ w.T + b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run(lambda a: layer(a, use_bias=False), x), x @ w.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run(lambda a: layer(a, activation=flow.math.tanh), x), np.tanh(x @ w.T + b),
                               rtol=1e-5)
    deep = f32(2, 2, 4, 3)
    np.testing.assert_allclose(run(layer, deep), deep @ w.T + b, rtol=1e-5, atol=1e-5)


def test_dense_defaults():
    assert names_of(lambda a: flow.layers.dense(a, 5), x) == {"Dense-weight": (5, 3), "Dense-bias": (5,)}
    assert not run(lambda a: flow.layers.dense(a, 5), x).any(), "the default kernel is zero"
    assert run(lambda a: flow.layers.dense(a, 5), x.astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize("body, error", [
    (lambda a: flow.layers.dense(flow.reshape(a, [12]), 5), AssertionError),
    (lambda a: flow.layers.dense(a, 0), ValueError),
    (lambda a: flow.layers.dense(a, "5"), ValueError), (lambda a: flow.layers.dense(a, 5, activation="relu"),
                                                        AssertionError)])
def test_dense_refuses_invalid_arguments(body, error):
    with refused(error, "layers.dense"):
        run(body, x)


# --- conv2d
# ----------------------------------------------------------------------------------------------------------

def test_conv2d_shapes_of_weights():
    conv = flow.layers.conv2d
    assert names_of(lambda a: conv(a, 4, (3, 2)), image) == {"Conv2d-weight": (4, 3, 3, 2),
                                                             "Conv2d-bias": (4,)}
    assert names_of(lambda a: conv(a, 6, 3, groups=3, use_bias=False),
                    image) == {"Conv2d-weight": (6, 1, 3, 3)}
    assert names_of(lambda a: conv(a, 4, 3, data_format="NHWC"), f32(2, 6, 6,
                                                                     3))["Conv2d-weight"] == (4, 3, 3, 3)
    assert run(lambda a: conv(a, 4, 3), image).shape == (2, 4, 4, 4)
    assert run(lambda a: conv(a, 4, 3, 2, "SAME", data_format="NHWC"), f32(2, 6, 6, 3)).shape == (2, 3, 3, 4)


def test_conv2d_is_initialised_by_xavier():
    names = names_of(lambda a: flow.layers.conv2d(a, 8, 3), image)
    weight = flow.get_all_variables()["Conv2d-weight"].numpy()
    limit = np.sqrt(3 / ((3 * 9 + 8 * 9) / 2))
    assert names["Conv2d-bias"] == (8,) and not flow.get_all_variables()["Conv2d-bias"].numpy().any()
    assert 0.8 * limit < np.abs(weight).max() <= limit


@pytest.mark.parametrize("options", [{"groups": 2}, {"groups": 0}, {"groups": 9}, {"groups": 1.0},
                                     {"kernel_size": (3, 3, 3)},
                                     {"activation": "relu"}])
def test_conv2d_refuses_invalid_arguments(options):
    with refused(AssertionError, "layers.conv2d"):
        run(lambda a: flow.layers.conv2d(a, 4, **options), image)


def test_conv2d_refuses_groups_of_nhwc_and_unknown_formats():
    with refused(AssertionError, "NHWC"):
        run(lambda a: flow.layers.conv2d(a, 6, groups=3, data_format="NHWC"), f32(2, 6, 6, 3))
    with refused(ValueError, "data_format"):
        run(lambda a: flow.layers.conv2d(a, 6, data_format="CHWN"), image)


# --- batch normalization
# ---------------------------------------------------------------------------------------------

def batch_norm(a, mean, var, gamma, beta, eps, axis):
    shape = [-1 if i == axis else 1 for i in range(a.ndim)]
    mean, var, gamma, beta = (v.reshape(shape) for v in (mean, var, gamma, beta))
    return (a - mean) / np.sqrt(var + eps) * gamma + beta


@given(st.sampled_from([1, -1, 0]), st.sampled_from([0.99, 0.9, 0.0]), st.sampled_from([1e-3, 1e-5]))
def test_batch_norm_trains_on_the_batch_and_predicts_with_moving_statistics(axis, momentum, eps):
    flow.clear_default_session()
    a = f32(3, 4, 5) * 2 + 1
    n, over = a.shape[axis], tuple(i for i in range(3) if i != axis % 3)
    g, b = f32(n, seed=1), f32(n, seed=2)

    def layer(t):
        return flow.layers.batch_normalization(t, axis, momentum, eps, gamma_initializer=constant(g),
                                               beta_initializer=constant(b))

    def step(t):
        y = layer(t)
        flow.optimizer.SGD(constant_rate(0.0), momentum=0).minimize(y)
        return y

    trained, predict = job(step, a, type="train", name="t"), job(layer, a, name="p")
    mean, var = np.zeros(n), np.ones(n)
    for _ in range(3):
        got = trained(a)
        np.testing.assert_allclose(got, batch_norm(a, a.mean(over), a.var(over), g, b, eps, axis % 3),
                                   rtol=1e-4, atol=1e-5)
        mean, var = (momentum * m + (1 - momentum) * s for m, s in ((mean, a.mean(over)), (var, a.var(over))))
        v = flow.get_all_variables()
        np.testing.assert_allclose(v["BatchNorm-moving_mean"].numpy(), mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(v["BatchNorm-moving_variance"].numpy(), var, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(predict(a), batch_norm(a, mean, var, g, b, eps, axis % 3), rtol=1e-3,
                                   atol=1e-4)
    assert list(v)[:4] == ["BatchNorm-gamma", "BatchNorm-beta", "BatchNorm-moving_mean",
                           "BatchNorm-moving_variance"]


def test_batch_norm_in_a_predict_job_ignores_training():
    got = run(lambda a: flow.layers.batch_normalization(a, 1, training=True), image)
    np.testing.assert_allclose(got, image / np.sqrt(1 + 1e-3), rtol=1e-5)


@pytest.mark.parametrize("options", [{"trainable": False}, {"training": False}])
def test_batch_norm_can_be_frozen(options):
    def body(a):
        y = flow.layers.batch_normalization(a, 1, **options)
        minimize(flow.layers.dense(flow.reshape(y, [2, -1]), 2, name="d"))
        return y

    got = run(body, image, type="train")
    np.testing.assert_allclose(got, image / np.sqrt(1 + 1e-3), rtol=1e-5)
    v = flow.get_all_variables()
    assert not v["BatchNorm-moving_mean"].numpy().any()
    assert v["BatchNorm-gamma"].trainable is options.get("trainable", True)


def test_batch_norm_updates_when_its_result_is_unused():
    def body(a):
        flow.layers.batch_normalization(a, 1)
        return minimize(flow.layers.dense(flow.reshape(a, [2, -1]), 2, name="d"))

    run(body, image + 1, type="train")
    assert flow.get_all_variables()["BatchNorm-moving_mean"].numpy().all()


def test_batch_norm_without_center_or_scale():
    names = names_of(lambda a: flow.layers.batch_normalization(a, 1, center=False, scale=False), image)
    assert list(names) == ["BatchNorm-moving_mean", "BatchNorm-moving_variance"]
    got = run(lambda a: flow.layers.batch_normalization(a, 1, center=False, scale=False), image)
    np.testing.assert_allclose(got, image / np.sqrt(1 + 1e-3), rtol=1e-5)


def test_batch_norm_and_relu():
    y = image / np.float32(np.sqrt(1 + 1e-3))
    np.testing.assert_allclose(run(lambda a: flow.layers.batch_normalization_relu(a, 1), image),
                               np.maximum(y, 0), rtol=1e-5)
    np.testing.assert_allclose(run(lambda a: flow.layers.batch_normalization_add_relu(a, a, 1), image),
                               np.maximum(y + image, 0), rtol=1e-5, atol=1e-6)


# --- layer norm
# ------------------------------------------------------------------------------------------------------

@given(st.sampled_from([(1, -1), (1, 1), (2, -1), (-1, -1), (2, 2), (0, 0)]), st.booleans(), st.booleans())
def test_layer_norm_equals_its_formula(begins, center, scale):
    a, (norm, params) = f32(2, 3, 4), begins
    over = tuple(range(norm % 3, 3))
    want = (a - a.mean(over, keepdims=True)) / np.sqrt(a.var(over, keepdims=True) + 1e-5)
    flow.clear_default_session()
    layer = job(lambda t: flow.layers.layer_norm(t, center, scale, begin_norm_axis=norm,
                                                 begin_params_axis=params), a)
    np.testing.assert_allclose(layer(a), want, rtol=1e-4, atol=1e-5)
    assert {n: v.shape for n, v in flow.get_all_variables().items()} == {
        f"LayerNorm-{n}": a.shape[params % 3:] for n, there in (("beta", center), ("gamma", scale)) if there}
    flow.load_variables({f"LayerNorm-{n}": f32(*a.shape[params % 3:], seed=3) for n in ("beta", "gamma")})
    g = f32(*a.shape[params % 3:], seed=3)
    np.testing.assert_allclose(layer(a), want * (g if scale else 1) + (g if center else 0), rtol=1e-4,
                               atol=1e-5)


def test_trainable_false_keeps_a_layer_as_it_is():
    def body(a):
        h = flow.layers.dense(a, 3, kernel_initializer=ones, trainable=False, name="fixed")
        return minimize(flow.layers.dense(h, 2, kernel_initializer=ones, name="learns"))

    step = job(body, x, type="train")
    before = {n: v.numpy() for n, v in flow.get_all_variables().items()}
    step(x)
    after = {n: v.numpy() for n, v in flow.get_all_variables().items()}
    assert (before["fixed-weight"] == after["fixed-weight"]).all() and (
        before["fixed-bias"] == after["fixed-bias"]).all()
    assert not (before["learns-weight"] == after["learns-weight"]).all()


def test_layers_work_eagerly():
    t = flow.tensor(x)
    y = flow.layers.dense(t, 2, kernel_initializer=ones, name="eager")
    np.testing.assert_allclose(y.numpy(), x.sum(1, keepdims=True).repeat(2, 1), rtol=1e-5)
    y.sum().backward()
    w = flow.get_variable("eager-weight", (2, 3))
    np.testing.assert_allclose(w.grad.numpy(), np.tile(x.sum(0), (2, 1)), rtol=1e-5)


def test_results_are_typed():
    @flow.global_function()
    def both(a: tp.Numpy.Placeholder((4, 3))) -> tuple[tp.Numpy, tp.Numpy]:
        w = flow.get_variable("w", (2, 3), initializer=ones)
        return flow.matmul(a, w, transpose_b=True), w

    y, w = both(x)
    assert y.shape == (4, 2) and (w == 1).all()
