"""Surprising behaviors of OneFlow 0.4 that a re-implementation easily gets wrong, one test each (numbered as
in the project's notes).
"""
import os

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from bounds import assert_rate
from common import constant, constant_rate, f32, fresh_session, job, refused, run  # noqa: F401

SGD, X = flow.optimizer.SGD, f32(4, 3)


def train_job(body, *arrays, runs=1, returns=tp.Numpy):
    """Run a train job `runs` times and return the results; `body` returns the job's outputs."""
    flow.clear_default_session()
    fn = job(body, *arrays, type="train", returns=returns, name="train_job")
    return [fn(*arrays) for _ in range(runs)]


def weight(name="w", shape=(3,), value=1.0, **more):
    return flow.get_variable(name, shape, initializer=constant(value), **more)


# ---- language surface
def test_01_global_function_must_be_called():
    with refused(AssertionError, "parentheses"):
        flow.global_function(lambda: None)
    with refused(AssertionError, "predict"):
        flow.global_function("eval")


def test_02_placeholders():
    with refused(AssertionError, "tuple"):
        tp.Numpy.Placeholder([4, 3])
    with refused(NotImplementedError, "parameter annotation"):
        @flow.global_function()
        def f(x: tp.Numpy) -> tp.Numpy:
            return x
    with refused(NotImplementedError, "return annotation"):
        @flow.global_function()
        def g(x: tp.Numpy.Placeholder((4, 3))) -> tp.Numpy.Placeholder((4, 3)):
            return x


def test_03_positional_exact_shapes_silent_cast():
    double = job(lambda x: x * 2.0, X)
    with pytest.raises(TypeError, match="positional"):
        double(x0=X)
    with refused(AssertionError, "shape"):
        double(X[:3])
    assert double(X.astype(np.float64)).dtype == np.float32


def test_04_bodies_run_once_and_all_jobs_are_compiled_together():
    log = []
    first = job(lambda x: log.append("first") or x, X, name="first")
    job(lambda x: log.append("old") or x, X, name="second")
    job(lambda x: log.append("second") or x, X, name="second")       # replaces the first job with that name
    first(X)
    first(X)
    assert log == ["first", "second"]
    with refused(NotImplementedError, "after the session started"):
        job(lambda x: x, X, name="third")


def test_05_resources_are_read_at_the_start(capsys):
    sizes = []
    fn = job(lambda x: sizes.append(x.parallel_size) or x, X)
    flow.config.gpu_device_num(2)
    fn(X)
    assert sizes == [2]
    capsys.readouterr()
    assert not flow.config.gpu_device_num(4) and "session is running" in capsys.readouterr().out
    flow.clear_default_session()
    job(lambda x: sizes.append(x.parallel_size) or x, X)(X)
    assert sizes == [2, 1] and not flow.get_all_variables()


def test_06_gpu_without_a_gpu_is_cpu():
    flow.config.gpu_device_num(2)

    def body(x):
        with flow.scope.placement("gpu", "0:0-1"):
            return x * 2.0
    np.testing.assert_array_equal(job(body, X)(X), X * 2)


def test_07_return_annotations_are_strict_and_none_gives_a_future():
    with refused(AssertionError, "tuple"):
        run(lambda x: [x, x], X, returns=tuple[tp.Numpy, tp.Numpy])
    with refused(AssertionError):
        run(lambda x: x, X, returns=None)
    flow.clear_default_session()

    @flow.global_function()
    def bare(x: tp.Numpy.Placeholder((4, 3))):
        return x
    future = bare(X)
    local = future.get()
    assert isinstance(local, flow.LocalBlob) and (local.numpy() == X).all()
    with refused(AssertionError, "taken"):
        future.get()


def test_08_none_and_callback_jobs_have_run_when_the_call_returns():
    seen = []
    fn = job(lambda x: flow.watch(x, lambda v: seen.append("watched")), X, returns=None)
    assert fn(X) is None and seen == ["watched"]
    flow.clear_default_session()
    job(lambda x: x, X, returns=tp.Callback[tp.Numpy])(X)(lambda v: seen.append(v.shape))
    assert seen == ["watched", (4, 3)], "no sync is needed"
    flow.sync_default_session()


def test_09_a_callback_of_a_tuple_gets_one_tuple():
    seen = []
    fn = job(lambda x: (x, x), X, returns=tp.Callback[tuple[tp.Numpy, tp.Numpy]])
    assert fn(X)(lambda *args: seen.append(args)) is None
    assert len(seen) == 1 and len(seen[0]) == 1 and type(seen[0][0]) is tuple


def test_10_list_numpy_is_dynamic_and_has_one_array_per_device():
    flow.config.gpu_device_num(2)
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())

    @flow.global_function("predict", config)
    def fn(x: tp.ListNumpy.Placeholder((4, 3))) -> tp.ListNumpy:
        assert x.is_dynamic
        return x * 2.0
    assert [a.shape for a in fn([X, X[:1]])] == [(4, 3), (1, 3)]


# ---- blobs and ops
def test_11_unsupported_uses_of_blobs():
    seen = []

    def body(x):
        for f in (lambda: -x, lambda: x ** 2, lambda: x @ x, lambda: x[0], lambda: len(x), lambda: list(x)):
            with refused(ValueError):
                f()
        seen.append((bool(x), (x == x).dtype, {x: 1}[x]))
        y = x
        y += 1.0
        seen.append(y is x)
        return y
    np.testing.assert_allclose(run(body, X), X + 1)
    assert seen == [(True, flow.int8, 1), False]


def test_12_dtypes_of_results():
    def body(x):
        assert (x < x).dtype is flow.int8 and flow.math.argmax(x).dtype is flow.int32
        with refused(TypeError):
            x + flow.cast(x, flow.float64)
        return x
    run(body, X)


def test_13_division_and_scalars():
    zero = np.array([0.0, 2.0], np.float32)
    assert run(lambda x: x / 0, zero).tolist() == [0, 0]
    assert run(lambda x: 1.0 / x, zero).tolist() == [0, 0.5]
    with np.errstate(all="ignore"):
        assert np.isnan(run(lambda x: x / x, zero)[0])
    with refused(Exception):
        run(lambda x: flow.math.add(x, np.float32(1)), zero)


def test_14_full_reductions_and_variance():
    assert run(lambda x: flow.math.reduce_sum(x), X).shape == (1,)
    np.testing.assert_allclose(run(lambda x: flow.math.reduce_variance(x, axis=0), X), X.var(0), rtol=1e-5)


IMAGE = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)


def ones_conv(x, k, s, padding, conv=None):
    w = weight("k", (1, 1, k, k))
    return (conv or flow.nn.conv2d)(x, w, s, padding)


def test_15_same_is_same_lower():
    assert run(lambda x: ones_conv(x, 3, 2, "SAME"), IMAGE)[0, 0].tolist() == [[14, 30], [57, 99]]
    assert run(lambda x: ones_conv(x, 3, 2, "SAME_UPPER"), IMAGE)[0, 0].tolist() == [[54, 45], [72, 54]]
    assert run(lambda x: ones_conv(x, 3, 2, "SAME", flow.nn.compat_conv2d),
               IMAGE)[0, 0].tolist() == [[54, 45], [72, 54]]
    nine = IMAGE[:, :, :3, :3] * 0 + np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    assert run(lambda x: flow.nn.max_pool2d(x, 2, 2, "SAME"), nine)[0, 0].tolist() == [[1, 3], [7, 9]]


def test_16_pools():
    nine = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
    assert run(lambda x: flow.nn.avg_pool2d(x, 2, 2, "SAME"), nine)[0, 0].tolist() == [[1, 2.5], [5.5, 7]]
    ceil = dict(ceil_mode=True)
    assert run(lambda x: flow.nn.max_pool2d(x, 2, 2, [[0, 0], [0, 0], [0, 0], [0, 0]], **ceil),
               nine).shape[2:] == (2, 2)
    assert run(lambda x: flow.nn.max_pool2d(x, 2, 2, "VALID", **ceil), nine).shape[2:] == (1, 1)
    tied = np.ones((1, 1, 2, 2), np.float32)
    seen = []

    def body(x):
        y = flow.nn.max_pool2d(x * weight("s", (1,)), 2, 2, "VALID")
        SGD(constant_rate(0.1)).minimize(y)
        return y

    def watched(x):
        z = x * weight("s", (1,))
        y = flow.nn.max_pool2d(z, 2, 2, "VALID")
        SGD(constant_rate(0.1)).minimize(y)
        flow.watch_diff(z, lambda d: seen.append(d.numpy()))
        return y
    train_job(watched, tied)
    assert seen[0].sum() == 1 and seen[0][0, 0, 0, 0] == 1, "one of the tied maxima, the first"


def test_17_arguments_of_shape_ops():
    def body(x):
        with refused(AssertionError, "perm"):
            flow.transpose(x)
        with refused(AssertionError, "list"):
            flow.squeeze(x, 0)
        with refused(ValueError):
            flow.slice(x, [0], [1])
        with refused(AssertionError):
            flow.nn.softmax(flow.reshape(x, [-1]))
        assert flow.concat([x], axis=0) is x
        return x
    run(body, X)


def test_18_sparse_cross_entropy_takes_labels_first():
    logits = np.array([[1, 2, 3], [1, 1, 1]], np.float32)
    for labels in (np.array([2, 0], np.int32), np.array([[2], [0]], np.int64)):
        loss = run(lambda y, x: flow.nn.sparse_softmax_cross_entropy_with_logits(y, x), labels, logits)
        np.testing.assert_allclose(loss, [0.407606, 1.0986123], rtol=1e-5)
    with refused(TypeError):
        run(lambda y, x: flow.nn.sparse_softmax_cross_entropy_with_logits(x, y), np.zeros(2, np.int32),
            logits)


def test_19_dropout():
    def body(x):
        assert flow.nn.dropout(x, 0.5) is x
        return x
    run(body, X)

    def seeded(x):
        with refused(AssertionError, "name"):
            flow.nn.dropout(x, 0.5, seed=1)
        y = flow.nn.dropout(x * weight(), rate=0.25, name="drop")
        SGD(constant_rate(0.0)).minimize(y)
        return y
    big = np.ones((4000, 3), np.float32)
    y = train_job(seeded, big)[0]
    assert np.allclose(y[y != 0], 1 / 0.75)
    assert_rate(y == 0, 0.25)


def test_20_reshape_with_the_static_batch():
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())

    @flow.global_function("predict", config)
    def fn(x: tp.ListNumpy.Placeholder((4, 6))) -> tuple[tp.ListNumpy, tp.ListNumpy]:
        return flow.reshape(x, [x.shape[0], -1]), flow.reshape(x, [-1, 3])
    a, b = fn([f32(2, 6)])
    assert a[0].shape == (4, 3) and b[0].shape == (4, 3)
    assert fn([f32(4, 6)])[1][0].shape == (8, 3)


# ---- layers and variables
def test_21_defaults_of_dense_and_conv():
    def body(x):
        flow.layers.conv2d(flow.reshape(x, [1, 2, 2, 3]), 5, 3, padding="SAME", data_format="NHWC",
                           name="nhwc")
        return flow.layers.dense(x, 2)
    assert not run(body, X).any()
    variables = flow.get_all_variables()
    assert variables["Dense-weight"].shape == (2, 3) and variables["nhwc-weight"].shape == (5, 3, 3, 3)
    assert variables["nhwc-weight"].numpy().any(), "xavier_uniform"


def test_22_layer_names_are_constant():
    with refused(AssertionError, "already exists"):
        run(lambda x: flow.layers.dense(flow.layers.dense(x, 3), 3), X)
    flow.clear_default_session()
    a = job(lambda x: flow.layers.dense(x, 2, kernel_initializer=constant(1.0)), X, name="a")
    b = job(lambda x: flow.layers.dense(x, 2), X, name="b")
    np.testing.assert_array_equal(a(X), b(X))


def test_23_get_variable():
    def body(x):
        w = weight()
        assert flow.get_variable("w", (99,)).shape == (3,) and w.op_name == "w"
        with refused(AssertionError, "shape"):
            flow.get_variable("w")
        return x * w
    run(body, X)
    with refused(flow.JobBuildAndInferError, "initializer"):
        run(lambda x: x * flow.get_variable("v", (3,)), X)


def test_24_batch_norm_defaults():
    x = f32(8, 3) * 3 + 1

    def body(x):
        return flow.layers.batch_normalization(x, training=True)
    np.testing.assert_allclose(run(body, x), x / np.sqrt(1 + 1e-3), rtol=1e-5)

    def frozen(x):
        y = flow.layers.batch_normalization(x, trainable=False) * weight()
        SGD(constant_rate(0.0)).minimize(y)
        return y
    np.testing.assert_allclose(train_job(frozen, x)[0], x / np.sqrt(1 + 1e-3), rtol=1e-5)
    assert not flow.get_all_variables()["BatchNorm-moving_mean"].numpy().any()

    def moving(x):
        y = flow.layers.batch_normalization(x)
        SGD(constant_rate(0.0)).minimize(y)
        return y
    train_job(moving, x)
    np.testing.assert_allclose(flow.get_all_variables()["BatchNorm-moving_mean"].numpy(), 0.01 * x.mean(0),
                               rtol=1e-4)


def test_25_activations_get_a_name():
    names = []

    def act(x, name):
        names.append(name)
        return flow.math.relu(x, name=name)
    run(lambda x: flow.layers.dense(x, 2, activation=act, name="d"), X)
    assert len(names) == 1 and names[0].endswith("activation")


def test_26_variables_after_minimize_are_not_trained():
    def body(x):
        loss = x * weight("early")
        SGD(constant_rate(0.1)).minimize(loss)
        weight("late")
        weight("fixed", trainable=False)
        return loss * 1.0
    train_job(body, X)
    variables = flow.get_all_variables()
    assert "early-momentum" in variables and "late-momentum" not in variables and "fixed" in variables


def test_27_regularizers_leave_the_loss_alone():
    def body(x):
        w = weight(value=2.0, regularizer=flow.regularizers.l2(0.5))
        loss = x * w
        SGD(constant_rate(1.0), momentum=0).minimize(loss)
        return loss
    zero = np.zeros((4, 3), np.float32)
    assert not train_job(body, zero)[0].any()
    np.testing.assert_allclose(flow.get_all_variables()["w"].numpy(), 2.0 - 0.5 * 2.0)


def test_28_initial_values_differ_unless_a_seed_is_set():
    def values():
        run(lambda x: flow.layers.dense(x, 2, kernel_initializer=flow.random_normal_initializer()), X)
        return flow.get_all_variables()["Dense-weight"].numpy()
    assert (values() != values()).any()
    flow.random.seed(3)
    a = values()
    flow.random.seed(3)
    np.testing.assert_array_equal(a, values())


# ---- optimisation: w0 = 1, constant gradient 0.5
def trajectory(optimizer, n):
    def body(x):
        w = weight(shape=(1,))
        loss = w * 0.5 + x * 0.0
        optimizer.minimize(loss)
        return w * 1.0
    train_job(body, np.zeros(1, np.float32), runs=n)
    return float(flow.get_all_variables()["w"].numpy()[0])


def test_29_default_momentum_and_the_rate_inside_the_buffer():
    assert [round(trajectory(SGD(constant_rate(0.1)), n), 6) for n in (1, 2, 3)] == [0.95, 0.855, 0.7195]
    falling = flow.optimizer.PiecewiseConstantScheduler([0], [0.1, 0.0])
    assert round(trajectory(SGD(falling), 2), 6) == round(0.95 - 0.9 * 0.05, 6), "history keeps its rate"


def test_30_adam_without_bias_correction():
    adam = flow.optimizer.Adam
    got = [trajectory(adam(constant_rate(0.001)), n) for n in (1, 2, 3)]
    np.testing.assert_allclose(got, [0.99683772, 0.99258813, 0.98763790], rtol=1e-6)
    np.testing.assert_allclose(trajectory(adam(constant_rate(0.001), do_bias_correction=True), 3), 0.997,
                               rtol=1e-6)


def test_31_the_objective_is_the_mean_and_watch_diff_the_sum():
    seen = []

    def body(x):
        w = weight("w", (3, 20), 2.0)
        y = flow.matmul(x, w)
        SGD(constant_rate(1.0), momentum=0).minimize(y)
        flow.watch_diff(w, lambda d: seen.append(d.numpy()))
        return y
    train_job(body, np.ones((3, 3), np.float32))
    np.testing.assert_array_equal(seen[0], np.full((3, 20), 3.0))
    np.testing.assert_allclose(flow.get_all_variables()["w"].numpy(), 2.0 - 3.0 / 60, rtol=1e-6)


def test_32_the_last_minimize_counts():
    def body(x):
        a, b = weight("a"), weight("b")
        SGD(constant_rate(1.0), momentum=0).minimize(x * a)
        SGD(constant_rate(1.0), momentum=0).minimize(x * b)
        return x * a
    train_job(body, np.ones((1, 3), np.float32))
    variables = flow.get_all_variables()
    assert (variables["a"].numpy() == 1).all() and (variables["b"].numpy() < 1).all()

    def two(x):
        SGD(constant_rate(1.0)).minimize([x * weight("a"), flow.reshape(x * weight("b"), [-1])])
        return x
    with refused(flow.JobBuildAndInferError, "shapes"):
        train_job(two, X)


def test_33_schedules():
    o = flow.optimizer
    piecewise = o.PiecewiseConstantScheduler([2], [1.0, 0.5])
    assert [piecewise(n) for n in range(5)] == [1, 1, 1, 0.5, 0.5]
    scaling = o.PiecewiseScalingScheduler(1.0, [1, 3], 0.1)
    assert [round(scaling(n), 6) for n in range(6)] == [1, 1, 0.1, 0.1, 0.1, 0.1]
    warm = o.PiecewiseConstantScheduler([2], [1.0, 0.5], warmup=o.warmup.linear(4, 0.0))
    assert [round(warm(n), 6) for n in range(6)] == [0, 0.25, 0.5, 0.75, 0.5, 0.5]


def test_34_clipping_multiplies_by_the_norm():
    clip = flow.optimizer.grad_clipping.by_global_norm
    assert round(trajectory(SGD(constant_rate(1.0), momentum=0, grad_clipping=clip(0.1)), 1), 6) == 0.9
    assert round(trajectory(SGD(constant_rate(1.0), momentum=0, grad_clipping=clip(10.0)), 1), 6) == 0.5


def test_35_results_are_from_before_the_update():
    def body(x):
        w = weight()
        SGD(constant_rate(1.0), momentum=0).minimize(x * w)
        return w
    runs = train_job(body, np.ones((1, 3), np.float32), runs=2)
    assert (runs[0] == 1).all() and (runs[1] < 1).all()


def test_36_slots_and_steps_are_variables(tmp_path):
    def body(x):
        loss = x * weight()
        flow.optimizer.Adam(constant_rate(0.1)).minimize(loss)
        return loss
    train_job(body, X, runs=3)
    flow.checkpoint.save(str(tmp_path / "c"))
    saved = flow.checkpoint.get(str(tmp_path / "c"))
    assert {"w", "w-m", "w-v", "System-Train-TrainStep-train_job"} <= set(saved)
    assert saved["System-Train-TrainStep-train_job"].numpy().tolist() == [3]
    flow.clear_default_session()
    evaluate = job(lambda x: x * weight(value=5.0), X, name="evaluate")
    flow.load_variables(saved)
    np.testing.assert_allclose(evaluate(X), X * saved["w"].numpy(), rtol=1e-6)


# ---- checkpoints and watch
def test_37_layout_of_a_checkpoint(tmp_path):
    job(lambda x: x * weight(), X)(X)
    flow.checkpoint.save(str(tmp_path / "c"))
    assert (tmp_path / "c" / "snapshot_done").is_file()
    meta = (tmp_path / "c" / "w" / "meta").read_text(encoding="utf-8")
    assert "dim: 3" in meta and "data_type: kFloat" in meta
    assert (tmp_path / "c" / "w" / "out").read_bytes() == np.ones(3, np.float32).tobytes()
    with refused(AssertionError):
        flow.checkpoint.save(str(tmp_path / "c"))


def test_38_load_variables():
    fn = job(lambda x: x * weight(), X)
    flow.load_variables({"unknown": np.ones(3, np.float32), "w": np.full(3, 2, np.float32)})
    np.testing.assert_array_equal(fn(X), X * 2)
    with refused(RuntimeError, "not a variable name"):
        flow.load_variables({"unknown": np.ones(3, np.float32)}, ignore_mismatch=False)
    with refused(AssertionError, "vs"):
        flow.load_variables({"w": np.ones(4, np.float32)})


def test_39_checkpoint_functions_start_the_session(tmp_path):
    with refused(AssertionError, "no job"):
        flow.get_all_variables()
    log = []
    job(lambda x: log.append("body") or x * weight(), X)
    flow.checkpoint.save(str(tmp_path / "c"))
    assert log == ["body"]


def test_40_watch_handlers():
    with refused(AssertionError, "one parameter"):
        run(lambda x: flow.watch(x, lambda a, b: None), X, returns=None)
    seen = []

    def body(x):
        y = x * weight()
        flow.watch(y, lambda v: seen.append(type(v)))
        flow.watch_diff(y, lambda v: seen.append("never"))
        return y
    run(body, X)
    assert seen == [flow.LocalBlob]


# ---- distribution
def test_41_hints_change_no_values():
    flow.config.gpu_device_num(2)

    def body(x):
        hint = x.with_distribute(flow.distribute.split(1))
        assert hint.op_name == x.op_name and hint.distribute is flow.distribute.split(1)
        y = flow.parallel_cast(x, distribute=flow.distribute.broadcast())
        assert y.op_name != x.op_name
        return hint * 1.0 + y
    x = f32(4, 6)
    np.testing.assert_allclose(job(body, x)(x), 2 * x, rtol=1e-6)


def test_42_distributes_are_singletons():
    d = flow.distribute
    assert d.split(0) is d.split(0) and d.broadcast() is d.broadcast() and d.auto() is d.auto()
    assert d.split(0) is not d.split(1)


def test_43_dense_split_0_splits_units():
    flow.config.gpu_device_num(2)
    initializer = flow.random_normal_initializer()
    fn = job(lambda x: flow.layers.dense(x, 6, kernel_initializer=initializer,
                                         model_distribute=flow.distribute.split(0)), X)
    y = fn(X)
    np.testing.assert_allclose(y, X @ flow.get_all_variables()["Dense-weight"].numpy().T, rtol=1e-4,
                               atol=1e-5)
    assert "b=S(0) -> y=S(1)" in fn.show()


def test_44_uneven_splits():
    for rows in (5, 3):
        flow.clear_default_session()
        flow.config.gpu_device_num(3)
        x = f32(rows, 3)
        np.testing.assert_allclose(job(lambda x: flow.math.tanh(x), x)(x), np.tanh(x), rtol=1e-5)
    flow.clear_default_session()
    flow.config.gpu_device_num(3)
    x = f32(2, 3)
    np.testing.assert_allclose(job(lambda x: flow.math.tanh(x), x)(x), np.tanh(x), rtol=1e-5)


def test_45_static_mirrored_losses_do_not_multiply_the_gradient():
    after = []
    for devices in (1, 2):
        flow.clear_default_session()
        flow.config.gpu_device_num(devices)
        config = flow.function_config()
        config.default_logical_view(flow.scope.mirrored_view())

        def body(x):
            loss = x * weight()
            SGD(constant_rate(0.1), momentum=0).minimize(loss)
            return loss
        job(body, X, type="train", config=config)(X)
        after.append(flow.get_all_variables()["w"].numpy())
    np.testing.assert_allclose(after[0], after[1], rtol=1e-6)


# ---- data and the rest
def test_46_results_of_resize():
    images = flow.tensor(np.zeros((2, 6, 8, 3), np.uint8))
    buffers = flow.tensor_to_tensor_buffer(images, instance_dims=3)
    whole, scale, size = flow.image.Resize(buffers, target_size=(4, 5))
    assert whole.shape == (2, 5, 4, 3) and size is None and scale.shape == (2, 2)
    old = flow.image.Resize(buffers, color_space="RGB", resize_x=4, resize_y=5)
    assert old.shape == (2, 5, 4, 3)
    order = flow.image.target_resize(buffers, target_size=4)
    assert order[1].dtype is flow.int32 and order[2].dtype is flow.float32


def test_47_load_mnist_is_batched(tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "mnist.npz", **{
        f"{x}_{part}": rng.integers(0, 10, (n, 28, 28) if x == "x" else n).astype(np.uint8)
        for part, n in (("train", 60), ("test", 20)) for x in "xy"})
    (images, labels), (test_images, _) = flow.data.load_mnist(20, 10, out_dir=str(tmp_path), hash_check=None)
    assert (images.shape == (3, 20, 1, 28, 28) and labels.dtype == np.int32
            and test_images.shape == (2, 10, 1, 28, 28))
    assert "already exist" in capsys.readouterr().out
    with pytest.raises(ValueError):
        flow.data.load_mnist(7, 10, out_dir=str(tmp_path), hash_check=None)


def test_48_names_of_sources():
    names = []

    def body():
        flips = [flow.random.CoinFlip(4), flow.random.CoinFlip(4, name="mine"), flow.random.CoinFlip(4)]
        names.extend(f.op_name for f in flips)
        return flips[0]
    assert run(body).dtype == np.int8
    assert names[:2] == ["CoinFlip", "mine"] and names[2] not in names[:2], "constant, and then numbered"


def test_49_user_op_builder():
    def body(x):
        with flow.scope.namespace("block"):
            built = flow.user_op_builder("my").Op("relu").Input("in",
                                                                [x]).Output("out").Build().InferAndTryRun()
        outs = built.RemoteBlobList()
        assert type(outs) is tuple and outs[0].op_name == "block-my"
        return outs[0]
    np.testing.assert_array_equal(run(body, X), np.maximum(X, 0))
    with refused(ValueError, "out"):
        run(lambda x: flow.user_op_builder("my").Op("relu").Input(
            "in", [x]).Build().InferAndTryRun().SoleOutputBlob(), X)


def test_50_tensor_list_ops_of_both_generations_exist():
    for name in ("tensor_list_to_tensor_buffer", "tensor_buffer_to_tensor_list", "tensor_list_split",
                 "gen_tensor_buffer", "tensor_buffer_to_list_of_tensors"):
        assert callable(getattr(flow, name))
    assert tp.ListListNumpy.Placeholder((2, 3, 3))


def test_51_the_second_job_sees_the_variable_after_the_first():
    x = np.arange(-2, 3, dtype=np.float32)
    seen = []

    def body(x):
        v = weight("v", (5,), 0.0)
        x1 = x + v
        loss = flow.math.square(x1) * 3.0
        SGD(constant_rate(0.1), momentum=0).minimize(loss)
        flow.watch_diff(x1, lambda d: seen.append(d.numpy()))
        return x1
    first = job(body, x, type="train", name="first")
    second = job(body, x, type="train", name="second")
    first(x)
    x1 = second(x)
    np.testing.assert_allclose(seen[0], [-12, -6, 0, 6, 12])
    np.testing.assert_allclose(x1, x - 0.1 * 6 * x / 5, rtol=1e-6)
    np.testing.assert_allclose(seen[1], 6 * x1, rtol=1e-6)


def test_52_op_names_are_unique_per_job_only():
    a = job(lambda x: flow.math.relu(x, name="r"), X, name="a")
    b = job(lambda x: flow.math.relu(x, name="r"), X, name="b")
    np.testing.assert_array_equal(a(X), b(X))
    with refused(flow.JobBuildAndInferError, "already exists"):
        run(lambda x: flow.math.relu(flow.math.relu(x, name="r"), name="r"), X)


def test_the_numbers_are_complete():
    assert [int(n[5:7]) for n in globals() if n[:5] == "test_" and n[5:7].isdigit()] == list(range(1, 53))
    assert os.path.basename(__file__) == "test_surprises.py"
