"""Law: ops that write their inputs in place store the values of their NumPy reference, for any number of
threads.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.eager.dispatch import get_num_threads, set_num_threads
from flowedu.core.values.spec import Spec
from flowedu.ops import REGISTRY

from .calls import assert_equal_up_to_rounding, attributes, call_inputs, cases, label, reference

WRITERS = cases(lambda op: op.mutates and op.examples)
GROUPS = {"sgd_update": 2, "momentum_update": 3, "adam_update": 4, "rmsprop_update": 3,
          "rmsprop_centered_update": 4,
          "lars_update": 3, "lamb_update": 4, "momentum_step": 3, "adam_step": 4, "amsgrad_step": 5,
          "adagrad_step": 3, "adadelta_step": 4, "lamb_step": 4}
NOT_NEGATIVE = {"adam_update": (3,), "lamb_update": (3,), "rmsprop_update": (2,), "adam_step": (3,),
                "amsgrad_step": (3, 4),
                "adagrad_step": (2,), "adadelta_step": (2, 3), "lamb_step": (3,)}  # averages of squares
LAYOUTS = ("plain", "transposed", "stepped")


def copy_with_layout(a, layout):
    """Return a copy of `a` with another memory layout."""
    if layout == "transposed":
        return np.array(a, order="F")
    if layout == "stepped" and a.ndim:
        room = np.zeros((*a.shape[:-1], 3 * a.shape[-1] + 1), a.dtype)[..., 1::3]
        room[...] = a
        return room
    return np.array(a, order="C")


def assert_update_equals_reference(op, arrays, attrs, threads=1, layouts=("plain",)):
    want = reference(op, [a.copy() for a in arrays], attrs)
    mine = [copy_with_layout(a, layouts[i % len(layouts)]) for i, a in enumerate(arrays)]
    old = get_num_threads()
    set_num_threads(threads)
    try:
        op.call(tuple(flow.from_numpy(a) for a in mine), attrs)
    finally:
        set_num_threads(old)
    written = op.mutates(len(arrays))
    assert len(written) == len(want)
    for i, w in zip(written, want):
        assert_equal_up_to_rounding(mine[i], w, w.dtype, scale=10.0)
    for i in set(range(len(arrays))) - set(written):
        np.testing.assert_array_equal(mine[i], arrays[i])
    return [mine[i] for i in written]


@pytest.mark.parametrize("name", GROUPS)
def test_updates_do_not_depend_on_alignment(name):
    """If the arrays are close together, a compiler's vectorized loop cannot be used."""
    op, n, found = REGISTRY[name], 9, set()
    values = np.random.default_rng(0).random((GROUPS[name], n), np.float32) + 0.5
    for gap in range(40):
        room = np.zeros(GROUPS[name] * (n + gap), np.float32)
        own = [room[i * (n + gap):i * (n + gap) + n] for i in range(GROUPS[name])]
        for a, v in zip(own, values):
            a[:] = v
        numbers = [np.full(1, 0.5, np.float32) for _ in range(op.group - GROUPS[name])]
        op(*map(flow.from_numpy, [np.full(1, 0.1, np.float32), np.full(1, 3), *own, *numbers]), scale=0.3,
           weight_decay=(0.01,), l1=(0.1,), l2=(0.03,))
        found.add(np.concatenate(own).tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("case", WRITERS, ids=label)
@given(data=st.data())
def test_updates_equal_the_reference(case, data):
    op, example = case
    dtypes = (np.float32, np.float64)
    arrays, _ = data.draw(call_inputs(op, example, dtypes=dtypes, resize=False))
    if op.name == "matmul_update":
        arrays[2] = arrays[2].astype(np.float32)          # the learning rate is always float32
    assert_update_equals_reference(op, [np.asarray(a, order="C") for a in arrays], attributes(op, example))


def group_of(name, shape, dtype, rng):
    """Draw a parameter, its gradient, and a valid state."""
    group = [rng.standard_normal(shape) for _ in range(GROUPS[name])]
    for i in NOT_NEGATIVE.get(name, ()):
        group[i] = np.abs(group[i])
    if name == "rmsprop_centered_update":
        # variances are not negative; near 0 they are dominated by rounding
        group[2] = group[3] ** 2 + np.abs(group[2]) + 0.1
    if name in ("lars_update", "lamb_update", "lamb_step") and rng.random() < 0.2:
        group[rng.integers(2)][...] = 0                    # a norm of 0
    if name == "lamb_update":
        group += [0.9 ** rng.integers(1, 50, (1,)), 0.99 ** rng.integers(1, 50, (1,))]
    return [np.asarray(a, dtype) for a in group]


@pytest.mark.parametrize("name", GROUPS)
@given(data=st.data())
def test_updates_of_several_parameters_equal_the_reference(name, data):
    """Several parameters at once, small and large, in any layout, with random attributes."""
    op = REGISTRY[name]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    shape = st.sampled_from([(), (0,), (1,), (3, 5), (64,), (2, 3, 4), (70, 31), (300, 300)])
    shapes = data.draw(st.lists(shape, min_size=1, max_size=5))
    factor = st.sampled_from([0.0, 0.01, 0.3])
    arrays = [np.array([0.1], np.float32), np.array([data.draw(st.integers(0, 50))], np.int64)]
    for shape in shapes:
        arrays += group_of(name, shape, dtype, rng)
    drawn = {n: tuple(data.draw(factor) for _ in shapes) for n in ("weight_decay", "l1", "l2")}
    if data.draw(st.booleans()):
        drawn = {n: v[:1] for n, v in drawn.items()}       # one number for all parameters
    op_flags = [a for a in ("do_bias_correction", "nesterov") if a in op.attr_index]
    drawn.update({a: data.draw(st.booleans()) for a in op_flags})
    if name == "momentum_step":
        drawn["dampening"] = data.draw(factor)
    if name == "adagrad_step":
        drawn["lr_decay"] = data.draw(factor)
    if name.startswith("lamb"):
        drawn["beta2"] = 0.99
    assert_update_equals_reference(op, arrays, op.complete({"scale": data.draw(st.sampled_from([1.0, 0.125])),
                                                            **drawn}), data.draw(st.sampled_from([1, 2, 3])),
                                   data.draw(st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=7)))


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("size", [1, 15, 17, 64, 511, 513, 4097])
@pytest.mark.parametrize("name", GROUPS)
def test_a_non_finite_gradient_affects_only_its_own_element(name, size, odd):
    """It affects the whole parameter if the rule needs its norm, but no other parameter."""
    op, rng = REGISTRY[name], np.random.default_rng(size)
    first, second = (group_of(name, (size,), np.float32, rng) for _ in range(2))
    first[1][size // 2] = odd
    arrays = [np.array([0.1], np.float32), np.array([3], np.int64), *first, *second]
    attrs = op.complete({})
    with np.errstate(all="ignore"):
        want = reference(op, [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays], attrs)
    op.call(tuple(flow.from_numpy(a) for a in arrays), attrs)
    written = op.mutates(len(arrays))
    for i, w in zip(written, want, strict=True):
        good = np.isfinite(w)                        # inf or NaN: the rule may compute sqrt(inf - inf) = NaN
        np.testing.assert_array_equal(np.isfinite(arrays[i]), good)
        np.testing.assert_allclose(arrays[i][good], w[good].astype(np.float32), rtol=1e-4, atol=1e-5)
    if not op.whole:
        assert np.isfinite(np.delete(arrays[2], size // 2)).all()
    assert np.isfinite(arrays[2 + len(first)]).all()


@pytest.mark.parametrize("name", ["lars_update", "lamb_update", "lamb_step"])
def test_norms_do_not_depend_on_threads(name):
    op, rng = REGISTRY[name], np.random.default_rng(0)
    arrays = [np.array([0.1], np.float32), np.array([3], np.int64)]
    for shape in ((5000,), (300, 300), (7,), (100, 41)):
        arrays += group_of(name, shape, np.float32, rng)
    one = assert_update_equals_reference(op, arrays, op.complete({}))
    for threads in (2, 3):
        for a, b in zip(assert_update_equals_reference(op, arrays, op.complete({}), threads), one):
            np.testing.assert_array_equal(a, b)


PASSES = ("simplify", "cse", "dead", "norm_clip", "layout", "fold_norm", "fuse", "update", "inplace", "reuse")


def train_without_passes(off: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Train a small network for five steps, compiled without the passes in `off`; return its parameters."""
    import flowedu.typing as tp
    flow.clear_default_session()
    flow.random.seed(5)
    config = flow.function_config()
    config.without_passes(*off)

    @flow.global_function("train", config)
    def job(x: tp.Numpy.Placeholder((6, 1, 8, 8)), y: tp.Numpy.Placeholder((6,), flow.int32)) -> tp.Numpy:
        h = flow.layers.conv2d(x, 3, 3, padding="SAME", activation=flow.nn.relu, name="conv")
        h = flow.layers.batch_normalization(h, axis=1, name="bn")
        h = flow.reshape(flow.nn.max_pool2d(h, 2, 2, "VALID"), [6, -1])
        h = flow.layers.dense(h, 7, flow.math.tanh, kernel_initializer=flow.xavier_uniform_initializer(),
                              name="a")
        o = flow.layers.dense(h, 4, kernel_initializer=flow.xavier_uniform_initializer(), name="b",
                              kernel_regularizer=flow.regularizers.l2(0.1))
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(y, o)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.1]), momentum=0).minimize(loss)
        return loss

    rng = np.random.default_rng(0)
    for _ in range(5):
        job(rng.standard_normal((6, 1, 8, 8)).astype(np.float32), rng.integers(0, 4, 6).astype(np.int32))
    names = [s.entry.op.name for s in job.plan.steps]
    assert ("matmul_update" in names) == ("update" not in off)
    values = {n: v.numpy() for n, v in flow.get_all_variables().items()}
    flow.clear_default_session()
    flow.random.seed(None)
    return values


@pytest.mark.parametrize("off", [*[(p,) for p in PASSES], PASSES], ids="-".join)
def test_training_does_not_depend_on_passes(off):
    want = train_without_passes(())
    for name, value in train_without_passes(off).items():
        np.testing.assert_allclose(value, want[name], rtol=2e-5, atol=1e-6, err_msg=name)


def factorise(off: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Take three SGD steps on a product of two variables: the gradient of each is a product with the
    other.
    """
    import flowedu.typing as tp
    flow.clear_default_session()
    flow.random.seed(1)
    config = flow.function_config()
    config.without_passes(*off)

    @flow.global_function("train", config)
    def job(target: tp.Numpy.Placeholder((6, 6))) -> tp.Numpy:
        u, v = (flow.get_variable(n, (6, 6), initializer=flow.random_normal_initializer()) for n in "uv")
        loss = flow.math.square(flow.matmul(u, v) - target)
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [0.5]), momentum=0).minimize(loss)
        return loss

    for _ in range(3):
        job(np.eye(6, dtype=np.float32))
    values = {n: v.numpy() for n, v in flow.get_all_variables().items()}
    flow.clear_default_session()
    flow.random.seed(None)
    return values


def test_no_update_reads_an_already_updated_variable():
    want = factorise(("update",))
    for name, value in factorise(()).items():
        np.testing.assert_allclose(value, want[name], rtol=2e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("name", sorted({*GROUPS} - {"lamb_update"}))  # it has additional scalar arguments
def test_more_axes_than_letters(name):
    """Each axis has its own letter; beyond the alphabet, axes that are split together share one."""
    op, many = REGISTRY[name], 2000
    spec, one = Spec((2, 3), flow.float32), Spec((1,), flow.float32)
    specs = [one, Spec((1,), flow.int64), *[spec] * GROUPS[name] * many]
    terms = op.equation(specs, op.complete({})).removesuffix("->").split(",")
    assert [len(t) for t in terms] == [s.ndim for s in specs]
    assert terms[2] == terms[3] != terms[2 + GROUPS[name]] and terms[-1] == terms[-1 - GROUPS[name]]
    assert len(set(terms[-1])) == 2 and terms[-1].isupper() == terms[2].isupper()
