"""The passes norm_clip, layout, and fold_norm: they apply where they should and change no result."""
import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from common import constant_rate, f32, fresh_session, refused  # noqa: F401
from flowedu.core.graph.backward import gradients
from flowedu.core.graph.ir import Graph
from flowedu.core.graph.passes import run_passes
from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError
from laws.graphs import run_graph

layout_pass = importlib.import_module("flowedu.fast.passes.layout")       # the function has the same name
R = flow.ops.REGISTRY
IMAGES = ("norm_clip", "layout", "fold_norm")


# complete networks
def build_network(x, training):
    """Build a network with all patterns of the passes: stem, depthwise of both strides, 1x1, residual, relu,
    relu6, bias, and mean.
    """
    def conv(x, n, k, s=1, groups=1, bias=False, name=""):
        pad = [(0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)]
        return flow.layers.conv2d(x, n, k, s, pad, groups=groups, use_bias=bias, name=name,
                                  kernel_initializer=flow.random_normal_initializer(stddev=0.4))

    def norm(x, name):
        return flow.layers.batch_normalization(x, axis=1, momentum=0.9, epsilon=1e-5, name=name)

    x = flow.nn.relu6(norm(conv(x, 8, 3, 2, name="stem"), "n1"))
    kept = x
    x = flow.math.relu(norm(conv(x, 24, 1, name="expand"), "n2"))
    x = flow.nn.relu6(norm(conv(x, 24, 3, 1, 24, name="depth"), "n3"))
    x = norm(conv(x, 8, 1, name="project"), "n4") + kept
    middle = x
    x = flow.math.tanh(conv(x, 8, 3, 2, 8, bias=True, name="depth2"))
    logits = flow.layers.dense(flow.math.reduce_mean(x, axis=[2, 3]), 5, name="classify",
                               kernel_initializer=flow.random_normal_initializer(stddev=0.4))
    return logits, middle


def train_without_passes(off=()):
    """Return (the plan's report, the values fetched in each step, the variables afterwards)."""
    flow.clear_default_session()
    flow.random.seed(3)
    config = flow.function_config()
    config.without_passes(*off)

    @flow.global_function("train", config)
    def job(x: tp.Numpy.Placeholder((4, 3, 12, 10)),
            y: tp.Numpy.Placeholder((4,), flow.int32)) -> tuple[tp.Numpy, tp.Numpy]:
        logits, middle = build_network(x, True)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        flow.optimizer.SGD(constant_rate(0.05), momentum=0.9).minimize(loss)
        return loss, middle

    steps = [job(f32(4, 3, 12, 10, seed=i), np.arange(4, dtype=np.int32)) for i in range(4)]
    values = {n: v.numpy() for n, v in flow.get_all_variables().items()}
    return job.compiled.program.report, [s.entry.op.name for s in job.plan.steps], steps, values


def predict(off=()):
    flow.clear_default_session()
    flow.random.seed(3)
    config = flow.function_config()
    config.without_passes(*off)

    @flow.global_function("predict", config)
    def job(x: tp.Numpy.Placeholder((4, 3, 12, 10))) -> tuple[tp.Numpy, tp.Numpy]:
        return build_network(x, False)

    out = job(f32(4, 3, 12, 10))
    return [s.entry.op.name for s in job.plan.steps], out


@pytest.mark.parametrize("off", [("norm_clip",), ("layout",), ("layout", "norm_clip"),
                                 (*IMAGES, "fuse", "inplace", "reuse")], ids="-".join)
def test_training_does_not_depend_on_the_passes(off):
    report, ops, steps, values = train_without_passes()
    assert "conv2d_last" in ops and "batch_norm_clip_grad" in ops and "conv2d" not in ops, report
    _, plain_ops, plain_steps, plain_values = train_without_passes(off)
    assert ("conv2d_last" in plain_ops) == ("layout" not in off)
    assert ("batch_norm_clip" in plain_ops) == ("norm_clip" not in off)
    for step, (ours, theirs) in enumerate(zip(steps, plain_steps)):
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=f"step {step}")
    for name, value in values.items():
        np.testing.assert_allclose(value, plain_values[name], rtol=2e-3, atol=2e-4, err_msg=name)


@pytest.mark.parametrize("off", [("fold_norm",), ("layout",), IMAGES], ids="-".join)
def test_inference_does_not_depend_on_the_passes(off):
    ops, out = predict()
    assert ops.count("conv2d_last_norm") == 4 and "batch_norm_infer" not in ops
    plain_ops, plain = predict(off)
    assert "conv2d_last_norm" not in plain_ops
    for a, b in zip(out, plain):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_the_report_lists_the_changes():
    report, *_ = train_without_passes()
    said = {line.split()[0]: line for line in report}
    assert "3 batch norms clip their result, 3 gradients with them" in said["norm_clip"]
    assert "run channels last, 2 changes of layout" in said["layout"]  # the argument and the returned image


def test_folded_statistics_follow_their_variables():
    """The batch norm is not folded when the job is compiled, so later loaded values are used."""
    def moved(off):
        flow.clear_default_session()
        config = flow.function_config()
        config.without_passes(*off)

        @flow.global_function("predict", config)
        def job(x: tp.Numpy.Placeholder((2, 24, 4, 4))) -> tp.Numpy:
            y = flow.layers.conv2d(x, 24, 3, 1, "SAME", groups=24, use_bias=False, name="c",
                                   kernel_initializer=flow.ones_initializer())
            return flow.nn.relu6(flow.layers.batch_normalization(y, axis=1, name="n"))

        before = job(f32(2, 24, 4, 4))
        flow.load_variables({"n-moving_mean": np.linspace(-1, 1, 24, dtype=np.float32),
                             "n-gamma": np.linspace(0.5, 2, 24, dtype=np.float32)}, ignore_mismatch=False)
        assert ("conv2d_last_norm" in [s.entry.op.name for s in job.plan.steps]) == (not off)
        return before, job(f32(2, 24, 4, 4))

    for a, b in zip(moved(()), moved(IMAGES)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_dense_convolutions_are_unchanged():
    g = Graph("lenet")
    x, w1, w2 = (g.input(n, Spec(s, flow.float32)) for n, s in (("x", (100, 1, 28, 28)),
                                                                ("w1", (32, 1, 5, 5)),
                                                                  ("w2", (64, 32, 5, 5))))
    with g.building():
        h = R["max_pool2d"](R["relu"](R["conv2d"](x, w1, pads=(2, 2, 2, 2))), ksize=(2, 2), strides=(2, 2))[0]
        loss = R["sum"](R["relu"](R["conv2d"](h, w2, pads=(2, 2, 2, 2))), axis=(0, 1, 2, 3))
    g.outputs = [loss, *gradients(g, [loss], [w1, w2])]
    assert "channels last" not in "".join(run_passes(g))


# random graphs of image ops with every region channels-last
@st.composite
def image_program(draw):
    names = ["conv", "depth", "point", "norm", "relu", "relu6", "bias", "scale", "add", "mean", "pool",
             "turn", "max", "global", "concat", "cut"]
    return (draw(st.lists(st.tuples(st.sampled_from(names), st.integers(0, 9)), min_size=2, max_size=8)),
            draw(st.booleans()))


def run_program(steps, x, p):
    """Run the program on x (3, 4, 6, 5) with p: (weights 3x3, depthwise, 1x1, a vector)."""
    wide, deep, point, vector = p
    pool = [x]
    for name, i in steps:
        u = pool[i % len(pool)]
        if name == "conv":
            y = R["conv2d"](u, wide, pads=(1, 1, 1, 1))
        elif name == "depth":
            y = R["conv2d"](u, deep, pads=(1, 1, 1, 1), groups=4)
        elif name == "point":
            y = R["conv2d"](u, point)
        elif name == "norm":
            y = R["batch_norm"](u, vector, vector, axis=1, epsilon=0.1)[0]
        elif name == "bias":
            y = R["bias_add"](u, vector, axis=1)
        elif name == "scale":
            y = 1.5 - u
        elif name == "add":
            y = u + pool[(i + 1) % len(pool)]
        elif name == "mean":
            y = u - R["sum"](u, axis=(2, 3), keepdims=True) * 0.1
        elif name == "max":
            y = u + R["reshape"](R["max"](u, axis=(2, 3)), shape=(3, 4, 1, 1))
        elif name == "pool":
            y = R["max_pool2d"](u, ksize=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1))[0]
        elif name == "global":
            y = u * R["avg_pool2d"](u, ksize=(6, 5), strides=(1, 1))
        elif name == "concat":
            y = R["sum"](R["reshape"](R["concat"](u, pool[i % 2 - 1], axis=1), shape=(3, 2, 4, 6, 5)),
                         axis=(1,))
        elif name == "cut":
            y = u + R["slice"](u, start=(0, 1, 0, 2), stop=(3, 2, 6, 3), step=(1, 1, 1, 1))
        elif name == "turn":
            y = u + R["contiguous"](R["slice"](u, start=(0, 0, 0, 0), stop=(3, 4, 1, 5), step=(1, 1, 1, 1)))
        else:
            y = R[name](u)
        pool.append(R["tanh"](y))
    return pool[-1], pool[len(pool) // 2]


@given(image_program(), st.integers(0, 2**31))
def test_any_region_has_the_same_results_channels_last(program, seed):
    steps, back = program
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(s) for s in ((3, 4, 6, 5), (4, 4, 3, 3), (4, 1, 3, 3), (4, 4, 1, 1), (4,))]
    results = []
    normal = layout_pass.gain
    for wanted in (-1.0, 1e12):
        layout_pass.gain = lambda node, wanted=wanted: wanted
        try:
            g = Graph("law")
            values = [g.input(f"x{i}", Spec(a.shape, flow.float64)) for i, a in enumerate(arrays)]
            with g.building():
                out = run_program(steps, values[0], values[1:])
            found = [d for d in gradients(g, [out[0]], values) if d is not None] if back else []
            g.outputs = [*out, *found]
            results.append(run_graph(g, arrays))
        finally:
            layout_pass.gain = normal
        assert any("_last" in n.op.name for n in g.nodes) == (wanted > 0 and any(
            n in ("conv", "depth", "point") for n in _used(g)))
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def _used(graph):
    """Return the convolutions that the graph has after dead code elimination."""
    return ["conv" for n in graph.nodes if n.op.name.startswith("conv2d")]


def test_images_that_are_channels_last_already_are_not_copied():
    g = Graph("nhwc")
    x, w = g.input("x", Spec((2, 8, 8, 24), flow.float32)), g.input("w", Spec((24, 1, 3, 3), flow.float32))
    with g.building():
        y = R["conv2d"](R["transpose"](x, perm=(0, 3, 1, 2)), w, pads=(1, 1, 1, 1), groups=24)
        g.outputs = [R["contiguous"](R["transpose"](R["relu"](y), perm=(0, 2, 3, 1)))]
    arrays = [f32(2, 8, 8, 24), f32(24, 1, 3, 3, seed=1)]
    got, = run_graph(g, arrays)
    assert ("contiguous" not in [n.op.name for n in g.nodes[:3]]
            and "conv2d_last" in [n.op.name for n in g.nodes])
    want = R["relu"](R["conv2d_last"](*map(flow.tensor, arrays), pads=(1, 1, 1, 1), groups=24)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_profile_reports_times_and_does_not_train():
    flow.clear_default_session()

    @flow.global_function("train")
    def job(x: tp.Numpy.Placeholder((4, 3, 12, 10)), y: tp.Numpy.Placeholder((4,), flow.int32)) -> tp.Numpy:
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, build_network(x, True)[0])
        flow.optimizer.SGD(constant_rate(0.05)).minimize(loss)
        return loss

    args = f32(4, 3, 12, 10), np.arange(4, dtype=np.int32)
    job(*args)
    weights = {n: v.numpy().copy() for n, v in flow.get_all_variables().items()}
    found = job.profile(*args, repeats=2)                   # one step, then the calls one by one
    assert len(found) == len(job.plan.steps) and found.seconds == pytest.approx(sum(found.by_op().values()))
    assert {t.part for t in found} == {"forward", "backward", "update"} and all(t.seconds > 0 for t in found)
    for word in (f"{len(found)} calls", "conv2d_last", "backward", "GB/s"):
        assert word in repr(found)
    after = {n: v.numpy().copy() for n, v in flow.get_all_variables().items()}
    job.profile(*args, repeats=3)
    assert any(np.any(weights[n] != after[n]) for n in weights)                    # changed by that one step
    step = next(n for n in after if "TrainStep" in n)
    assert flow.get_all_variables()[step].numpy() == after[step] + 1
    with refused(CheckError, "cannot be profiled"):
        job.profile(args[0].astype(np.float64).astype(np.float32)[::1, :, :, ::-1], args[1])
