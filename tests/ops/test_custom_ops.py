"""flow.custom_op: Python ops. Eager calls, jobs, NumPy, and finite differences agree; the laws of the
registry hold for them.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from common import constant_rate, f32, fresh_session, job, refused, run  # noqa: F401
from custom_ops import affine, cube, leaky, make_tensors, own_registry  # noqa: F401
from flowedu.core.graph.ir import Graph
from flowedu.core.ops.define import REGISTRY, define
from flowedu.core.ops.record import Laws, Meaning
from flowedu.core.sbp.signature import signatures
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, GradientError
from laws import calls, test_gradients, test_modes, test_signatures
from laws.graphs import run_graph

DTYPES = [np.float32, np.float64, np.int32, np.int64, np.int8, np.uint8, np.bool_, np.float16]


# --- values
# -----------------------------------------------------------------------------------------------------------

@given(st.lists(st.integers(0, 5), max_size=4), st.sampled_from(DTYPES), st.integers(0, 3))
def test_eager_job_and_numpy_agree(shape, dtype, layout):
    """For every dtype, rank, empty axis, and strided input, between compiled kernels."""
    op = flow.custom_op("flip", lambda x: x[..., ::-1] if x.ndim else x, replace=True)
    x = calls.strided(np.random.default_rng(0).integers(0, 2, shape).astype(dtype), layout)
    want = x[..., ::-1] if x.ndim else x
    got = op(flow.from_numpy(x))
    assert got.shape == x.shape and got.dtype.numpy == x.dtype
    np.testing.assert_array_equal(got.numpy(), want)
    g = Graph("bare")                       # a job accepts no empty arrays
    with g.building():
        g.outputs = [op.op(g.input("x", Spec(x.shape, as_dtype(x.dtype))))]
    np.testing.assert_array_equal(run_graph(g, [x])[0], want)


def test_between_compiled_kernels_with_views():
    """The kernel receives a transposed input without a copy: strided and read-only."""
    seen = []

    @flow.custom_op("peek")
    def peek(x):
        seen.append((x.strides, x.flags.writeable))
        return x * 2

    x = f32(3, 5)
    y = run(lambda a: flow.math.relu(peek(flow.transpose(a, perm=[1, 0]), name="p") + 1), x)
    np.testing.assert_allclose(y, np.maximum(x.T * 2 + 1, 0))
    assert seen[-1] == ((4, 20), False)


def test_names_in_a_job():
    op, names = cube(), []

    def body(x):
        with flow.scope.namespace("deep"):
            y = op(x, name="first")
        names.extend([y.op_name, op(y).op_name])
        return y

    run(body, f32(2))
    assert names[0] == "deep-first" and names[1].startswith("Cube")


def test_attributes_inputs_by_name_and_documentation():
    op, x = leaky(), np.array([[-2.0, 4.0]], np.float32)
    np.testing.assert_array_equal(op(flow.tensor(x)).numpy(), [[-0.5, 4]])
    np.testing.assert_array_equal(op(x=flow.tensor(x), slope=0.5).numpy(), [[-1, 4]])
    np.testing.assert_array_equal(run(lambda a: op(a, slope=0.5), x), [[-1, 4]])
    assert (op.op.signature == "leaky(x, *, slope=0.25) -> y"
            and op.__doc__.startswith("leaky(x, *, slope=0.25)"))
    with refused(ArgumentError, "unknown speed"):
        op(flow.tensor(x), speed=1)
    with refused(ArgumentError, "the attribute slope is not a constant", "pass arrays as inputs"):
        op(flow.tensor(x), slope={})


def test_several_outputs_and_infer():
    op = flow.custom_op("stats", lambda x, axis=0: (x.sum(axis), x.argmax(axis)), outputs=("total", "where"),
                        infer=lambda x, axis: [x.shape[:axis] + x.shape[axis + 1:],
                                               (x.shape[:axis] + x.shape[axis + 1:], flow.int64)])
    x = f32(3, 4)
    for axis in (0, 1):
        eagerly = [y.numpy() for y in op(flow.tensor(x), axis=axis)]
        for total, where in (eagerly, run(lambda a, axis=axis: op(a, axis=axis), x,
                                          returns=tuple[tp.Numpy, tp.Numpy])):
            np.testing.assert_allclose(total, x.sum(axis), rtol=1e-6)
            np.testing.assert_array_equal(where, x.argmax(axis))


def test_a_source_and_a_numpy_function():
    op = flow.custom_op("steps", lambda *, n: np.arange(n, dtype=np.int64),
                        infer=lambda n: ((n,), flow.int64))
    np.testing.assert_array_equal(op(n=4).numpy(), [0, 1, 2, 3])
    sinc = flow.custom_op("sinc", np.sinc, inputs="x")
    np.testing.assert_allclose(sinc(flow.tensor(np.array([0.0, 0.5]))).numpy(), np.sinc([0.0, 0.5]))


def test_keywords_as_names():
    """OneFlow's "in" is a Python keyword, so functions use "in_"."""
    op = flow.custom_op("named", lambda x: x * 2, lambda dout, in_: dout * 2 + in_ * 0, inputs=["in"],
                        outputs=["out"])
    x, = make_tensors(np.ones(3))
    op(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2, 2])
    assert op.op.inputs == ("in_",) and op.op.outputs == ("out",)


def test_a_registered_op_with_its_reference_as_kernel():
    """Calls `define` without a Kernel, with any number of inputs."""
    op = define("total(*xs, scale=1) -> y", Meaning(lambda xs: ",".join(["a"] * len(xs)) + "->a",
                                                    lambda xs, scale: sum(xs) * scale),
                Laws(float_only=False))
    xs = [np.arange(3) + i for i in range(70)]
    np.testing.assert_array_equal(op(*map(flow.from_numpy, xs), scale=2).numpy(), sum(xs) * 2)
    np.testing.assert_array_equal(run(lambda *blobs: op(*blobs), *xs[:3]), sum(xs[:3]))


# --- gradients
# --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("make", [cube, leaky, affine])
def test_the_laws_hold(make):
    """The laws of the registry: gradient = derivative, graph = eager."""
    op = make().op
    for example in calls.examples(op)[:2]:
        test_gradients.test_gradient_is_the_derivative(case=(op, example))
        test_modes.test_graph_equals_eager(case=(op, example))
        test_modes.test_graph_gradients_equal_eager_gradients(case=(op, example))


@pytest.mark.parametrize("make, attrs, shapes", [
    (affine, {"shapes": ((6, 12), (12,), (12,))}, [(6, 12), (6, 12), (12,)]),
    (leaky, {"slope": 0.25, "shapes": ((6, 12),)}, [(6, 12), (6, 12)])])
@pytest.mark.parametrize("p", [2, 3])
def test_signatures_are_sound(make, attrs, shapes, p):
    """sbp= also determines the signatures of the gradient; a split batch makes a weight gradient a partial
    sum.
    """
    op = make().op
    for example in op.examples:
        test_signatures.test_signatures_are_sound_and_complete(case=(op, example), p=p)
    grad, rng = REGISTRY[f"{op.name}_grad"], np.random.default_rng(0)
    arrays, values = [rng.standard_normal(s) for s in shapes], grad.complete(attrs)
    want = calls.reference(grad, arrays, values)
    found = signatures(grad, [Spec(a.shape, as_dtype(a.dtype)) for a in arrays], values)
    assert len(found) == 3
    for s in found:
        assert test_signatures.holds(grad, arrays, values, want, s, p, rng)


def test_without_sbp_nothing_is_split():
    op = cube().op
    assert signatures(op, [Spec((4, 6), flow.float32)], ()) == {("B", "B")}


def test_letters_that_cannot_be_split():
    from flowedu.ops.custom.gradient import gradient_equation as eq
    assert eq("ab,b->ab", ["x", "w"], ["y"], ["dy", "x", "w"]) == "ab,ab,b->ab,b"
    assert eq("ab->a", ["x"], ["y"], ["dy"]) == "a->aB"  # backward receives no tensor with axis b
    assert eq("ab->a", ["x"], ["y"], ["dy", "x"]) == "a,ab->ab"
    assert eq("ab->a", ["x"], ["y"], ["dy", "x", "y"]) == "a,aB,a->aB"  # a split b would leave a part of y


def test_outputs_without_gradient_and_inputs_without_gradient():
    op = flow.custom_op("pick", lambda x, i: (x[i], x * 2), outputs=("a", "b"),
                        infer=lambda x, i: [i.shape, x.shape],
                        backward=lambda da, db, x, i: (np.bincount(i, da, len(x)) + 2 * db, None))
    i = np.array([2, 2, 0])
    for use, want in ((lambda a, b: a, [1, 0, 2]), (lambda a, b: b, [2, 2, 2]),
                      (lambda a, b: a.sum() + b.sum(), [3, 2, 4])):
        x, = make_tensors(np.arange(3.0))
        use(*op(x, flow.tensor(i))).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), want)
    scaled = flow.custom_op("scaled", lambda x, w: x * w, backward=lambda dy, w: (dy * w, None))
    x, w = make_tensors(np.arange(3.0), np.full(3, 2.0))
    scaled(x, w).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2, 2])
    np.testing.assert_array_equal(w.grad.numpy(), [0, 0, 0])         # None means no gradient, which is zeros


def test_gradients_of_every_order():
    """For gradients written in ops and for chains of custom ops; a missing gradient raises instead of
    returning zeros.
    """
    third = flow.custom_op("third", lambda ddx, dy, x: 6 * x * dy * ddx + 3 * x * x * 0)
    second = flow.custom_op("cube_rule", lambda dy, x: 3 * x * x * dy, outputs="dx", inputs=("dy", "x"),
                            backward=lambda ddx, dy, x: (3 * x * x * ddx, 6 * x * dy * ddx))
    chained = flow.custom_op("chained", lambda x: x ** 3, second)
    in_ops = flow.custom_op("in_ops", lambda x: x ** 3, grad={"x": lambda dy, x: dy * x * x * 3})
    for op in (chained, in_ops):
        x, = make_tensors(np.arange(4.0))
        g, = flow.grad(op(x).sum(), [x], create_graph=True)
        gg, = flow.grad(g.sum(), [x])
        np.testing.assert_allclose(gg.numpy(), 6 * np.arange(4.0))
    x, = make_tensors(np.arange(4.0))
    g, = flow.grad(cube()(x).sum(), [x], create_graph=True)
    with refused(GradientError, "cube", "first derivatives only", "grad={...}"):
        g.sum().backward()
    with refused(ArgumentError, "does not fit as its backward"):
        flow.custom_op("other", lambda x: x, third)


# --- training
# ---------------------------------------------------------------------------------------------------------

def test_myop_of_the_oneflow_documents():
    """3x^2 with gradient 6x, by the builder, and a job with the same formula; the second job reads the update
    of the first.
    """
    flow.custom_op("myop", lambda x: 3 * x * x, lambda dout, in_: 6 * in_ * dout, inputs=["in"],
                   outputs=["out"], library="final_myop")
    flow.config.load_library("final_myop.so")
    kept = {}

    def myop(blob):
        return (flow.user_op_builder("myop_demo").Op("myop").Input("in", [blob]).Output("out").Build()
                .InferAndTryRun().SoleOutputBlob())

    def step(loss_of, key):
        def body(x):
            x += flow.get_variable(name="v1", shape=(5,), dtype=flow.float,
                                   initializer=flow.zeros_initializer())
            loss = loss_of(x)
            flow.optimizer.SGD(constant_rate(1e-4), momentum=0).minimize(loss)
            flow.watch_diff(x, lambda d: kept.setdefault(key, d))
            return loss
        return body

    x = np.array([-2, -1, 0, 1, 2], np.float32)
    first = job(step(myop, "x1"), x, type="train", name="MyJob")
    second = job(step(lambda x: 3 * x * x, "x2"), x, type="train", name="CompareJob")
    np.testing.assert_array_equal(first(x), [12, 3, 0, 3, 12])
    np.testing.assert_array_equal(kept["x1"].numpy(), [-12, -6, 0, 6, 12])
    v = -1e-4 * 6 * x / 5
    np.testing.assert_allclose(second(x), 3 * (x + v) ** 2, rtol=1e-6)
    np.testing.assert_allclose(kept["x2"].numpy(), 6 * (x + v), rtol=1e-6)


def test_training_equals_the_compiled_op():
    """A network with a Python ReLU learns the same weights as with the compiled one."""
    relu = flow.custom_op("python_relu", lambda x: (x > 0) * x, lambda dy, y: (y > 0) * dy)
    x, labels, results = f32(6, 4), np.arange(6, dtype=np.int32) % 3, []
    for activation in (relu, flow.nn.relu):
        flow.clear_default_session()
        flow.random.seed(3)

        def body(x, labels, activation=activation):
            h = flow.layers.dense(x, 7, kernel_initializer=flow.xavier_uniform_initializer(), name="a")
            o = flow.layers.dense(activation(h), 3, kernel_initializer=flow.xavier_uniform_initializer(),
                                  name="b")
            loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, o)
            flow.optimizer.Adam(constant_rate(0.1)).minimize(loss)
            return loss

        train = job(body, x, labels, type="train")
        results.append([train(x, labels) for _ in range(5)])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
