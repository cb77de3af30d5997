"""Blobs and the 0.4 rules of flow.math and the shape functions: no promotion, int8 masks, (1,) reductions."""
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import flowedu as flow
import flowedu.typing as tp
from common import constant, f32, fresh_session, job, refused, run  # noqa: F401
from flowedu.errors import DTypeError

m = flow.math
x, y = f32(2, 3), f32(2, 3, seed=1)
ints = np.array([[7, -7, 6], [-6, 5, 1]], np.int32)
divisors = np.array([[3, 3, -4], [-4, 5, 2]], np.int32)


def look_inside_job(look, *arrays):
    """Return the result of `look`, called on the blobs while a job body runs."""
    found = []

    def body(*blobs):
        found.append(look(*blobs))
        return blobs[0]

    run(body, *arrays)
    return found[0]


# --- attributes
# ------------------------------------------------------------------------------------------------------

def test_blobs_have_the_attributes_of_their_spec():
    a, b, v = [], [], []

    def look(t):
        a.append(t)
        b.append(flow.math.relu(t, name="act"))
        v.append(flow.get_variable("w", (4,), flow.float64, flow.zeros_initializer()))
        return (t.shape, t.dtype, t.is_dynamic, b[0].shape, v[0].dtype, isinstance(t, flow.BlobDef),
                isinstance(t, flow.ConsistentBlob), isinstance(t, flow.BlobDesc))

    shape, dtype, dynamic, out, var, *kinds = look_inside_job(look, x)
    assert (shape, dtype, dynamic, out, var, kinds) == ((2, 3), flow.float, False, (2, 3), flow.double,
                                                        [True] * 3)
    assert type(shape) is tuple and a[0].op_name.startswith("Input_") and a[0].blob_name == "out"
    assert (b[0].op_name, b[0].blob_name, b[0].logical_blob_name) == ("act", "out_0", "act/out_0")
    assert (v[0].logical_blob_name, v[0].unique_name) == ("w/out", "w/out")
    assert (b[0].lbi.op_name, b[0].lbi.blob_name, b[0].job_name) == ("act", "out_0", "job")
    assert b[0].IdenticalTo(b[0]) and not b[0].IdenticalTo(a[0])


def test_unnamed_ops_get_unique_names():
    names = look_inside_job(lambda t: [flow.reshape(t, [3, 2]).op_name, flow.reshape(t, [6]).op_name,
                                       m.relu(t).op_name], x)
    assert len(set(names)) == 3 and names[0].startswith("Reshape_") and names[2].startswith("Relu_")
    pool = look_inside_job(lambda t: flow.nn.max_pool2d(t, 2, 2, "SAME", name="pool1").logical_blob_name,
                           f32(1, 1, 4, 4))
    assert pool == "pool1/y_0"


# --- operators
# -------------------------------------------------------------------------------------------------------

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv]


@pytest.mark.parametrize("op", OPERATORS)
def test_arithmetic_between_blobs_and_with_numbers_on_either_side(op):
    np.testing.assert_allclose(run(op, x, y), op(x, y), rtol=1e-6)
    for number in (2, -0.5, np.float64(3.0), True):
        np.testing.assert_allclose(run(lambda t, n=number: op(t, n), x), op(x, np.float32(number)), rtol=1e-6)
        np.testing.assert_allclose(run(lambda t, n=number: op(n, t), x), op(np.float32(number), x), rtol=1e-6)


@pytest.mark.parametrize("op, f", [
    (operator.eq, m.equal), (operator.ne, m.not_equal), (operator.lt, m.less), (operator.le, m.less_equal),
    (operator.gt, m.greater), (operator.ge, m.greater_equal)])
def test_comparisons_are_int8(op, f):
    a, b = np.array([1, 2, 3], np.float32), np.array([2, 2, 2], np.float32)
    for how in (op, f):
        got = run(how, a, b)
        assert got.dtype == np.int8
        np.testing.assert_array_equal(got, op(a, b))
    np.testing.assert_array_equal(run(lambda t: op(t, 2), a), op(a, 2))
    got = run(lambda t: m.logical_and(t > 1, t < 3), a)
    assert got.dtype == np.int8 and got.tolist() == [0, 1, 0]


def test_remainder_takes_the_sign_of_the_divisor():
    np.testing.assert_array_equal(run(operator.mod, ints, divisors), ints % divisors)
    np.testing.assert_allclose(run(m.mod, x, y), np.mod(x, y), atol=1e-6)
    for body in (lambda t: t % 2, lambda t: 2 % t, lambda t: m.mod(t, 2.0)):
        with refused(NotImplementedError, "two blobs"):
            run(body, x)


def test_division_by_a_python_zero_gives_zero():
    a = np.array([0, 1, -2], np.float32)
    np.testing.assert_array_equal(run(lambda t: t / 0, a), [0, 0, 0])
    np.testing.assert_array_equal(run(lambda t: m.divide(t, 0.0), a), [0, 0, 0])
    np.testing.assert_array_equal(run(lambda t: 4 / t, a), [0, 4, -2])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(operator.truediv, np.ones(3, np.float32), a),
                                      np.ones(3, np.float32) / a)


@pytest.mark.parametrize("do", [lambda t: -t, lambda t: t ** 2, lambda t: t @ t, lambda t: t[0],
                                lambda t: t // 2, len, list,
                                lambda t: t.numpy()])
def test_unsupported_blob_operations_raise(do):
    with pytest.raises((TypeError, ValueError)) as e:
        run(do, x)
    assert "flow." in str(e.value) or "//" in str(e.value) or "blob.shape" in str(e.value)


def test_truth_is_always_true_and_hashing_is_by_identity():
    assert look_inside_job(lambda t: bool(t * 0), x) is True
    assert look_inside_job(lambda t: len({t, t, t * 1}), x) == 2

    def augmented(t):
        before = t
        t += 1
        return t is not before

    assert look_inside_job(augmented, x)


# --- dtypes
# ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("f", [operator.add, operator.eq, m.maximum, m.pow, m.divide, m.mod, flow.matmul])
def test_dtypes_are_never_promoted(f):
    with refused(TypeError, "float32", "float64", "cast"):
        run(f, np.ones((2, 2), np.float32), np.ones((2, 2)))


@pytest.mark.parametrize("other", [np.float32(2), np.ones(3, np.float32), "2", None, np.int64(2)])
def test_only_python_numbers_mix_with_blobs(other):
    with refused(TypeError, "a blob, an int or a float"):
        run(lambda t: m.add(t, other), x)


def test_a_number_takes_the_dtype_of_the_blob():
    for body in (lambda t: t + 2.0, lambda t: 2 + t, lambda t: t - -2.0):
        got = run(body, ints)
        assert got.dtype == np.int32
        np.testing.assert_array_equal(got, ints + 2)
    assert run(lambda t: t * 2, np.ones(2)).dtype == np.float64


@pytest.mark.parametrize("body", [
    lambda t: t + 1.9, lambda t: 0.5 * t, lambda t: t < 1.5, lambda t: m.equal(t, -0.5),
    lambda t: t + 2 ** 31,
    lambda t: t * float("inf"), lambda t: m.maximum(t, float("nan")), lambda t: flow.clip(t, 0.5, 2),
    lambda t: flow.where(t, t, 1.5), lambda t: flow.constant(1.5, flow.int32, (2,)),
    lambda t: flow.pad(t, [(0, 1), (0, 0)], 0.1),
    lambda t: flow.constant(300, flow.int8, (2,)), lambda t: flow.constant(-1, flow.uint8, (2,)),
    lambda t: flow.one_hot(t, 3, on_value=0.5), lambda t: flow.masked_fill(t, t, 2.5)])
def test_a_number_that_the_dtype_does_not_have_is_refused(body):
    """OneFlow truncated 1.9 to 1 and wrapped 2**31 around, so x < 1.5 meant x < 1."""
    with refused(DTypeError, "is not a number of", "flow.cast"):
        run(body, ints)


def test_integers_are_divided_as_floats_or_by_floordiv():
    """OneFlow multiplied by int(1 / 2)."""
    with refused(DTypeError, "math.divide", "flow.cast(x, flow.float32)"):
        run(lambda t: t / 2, ints)
    np.testing.assert_array_equal(run(lambda t: m.floordiv(t, 2), ints), ints // 2)
    np.testing.assert_array_equal(run(lambda t: flow.cast(t, flow.float) / 2, ints), ints / 2)


def test_an_op_of_two_python_numbers_is_refused():
    for body in (lambda t: m.add(1, 2), lambda t: m.divide(1, 2), lambda t: flow.where(t, 1, 2)):
        with refused(DTypeError, "both operands are Python numbers", "flow.constant"):
            run(body, ints)


def test_cast_changes_the_dtype_or_returns_the_blob():
    got = run(lambda t: flow.cast(t, flow.int32), x * 3)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, (x * 3).astype(np.int32))
    assert look_inside_job(lambda t: flow.cast(t, flow.float) is t, x)


# --- broadcasting, elementwise
# ---------------------------------------------------------------------------------------

SHAPES = hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4, min_side=1)


@given(SHAPES, st.sampled_from([operator.add, operator.mul, m.maximum, operator.gt]), st.integers(0, 99))
def test_broadcasting_equals_numpys(shapes, op, seed):
    a, b = (f32(*s, seed=seed + i) for i, s in enumerate(shapes.input_shapes))
    want = {m.maximum: np.maximum}.get(op, op)(a, b)
    got = run(op, a, b)
    assert got.shape == shapes.result_shape
    np.testing.assert_array_equal(got, want)


@given(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4),
       hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
def test_shapes_that_do_not_broadcast_are_refused(p, q):
    try:
        np.broadcast_shapes(p, q)
    except ValueError:
        with refused(ValueError, str(p), str(q)):
            run(operator.add, np.zeros(p, np.float32), np.zeros(q, np.float32))


@pytest.mark.parametrize("name, numpy, domain", [
    ("abs", np.abs, 0), ("ceil", np.ceil, 0), ("floor", np.floor, 0), ("exp", np.exp, 0),
    ("expm1", np.expm1, 0),
    ("log", np.log, 1), ("log1p", np.log1p, 1), ("sqrt", np.sqrt, 1), ("rsqrt", lambda a: a ** -0.5, 1),
    ("sin", np.sin, 0),
    ("cos", np.cos, 0), ("tan", np.tan, 2), ("asin", np.arcsin, 2), ("acos", np.arccos, 2),
    ("atan", np.arctan, 0),
    ("sinh", np.sinh, 0), ("cosh", np.cosh, 0), ("tanh", np.tanh, 0), ("asinh", np.arcsinh, 0),
    ("atanh", np.arctanh, 2),
    ("acosh", lambda a: np.arccosh(a + 1), 1), ("negative", np.negative, 0), ("reciprocal", np.reciprocal, 1),
    ("rint", np.rint, 0), ("round", np.round, 0), ("sign", np.sign, 0), ("square", np.square, 0),
    ("sigmoid", lambda a: 1 / (1 + np.exp(-a)), 0), ("softplus", lambda a: np.log1p(np.exp(a)), 0),
    ("log_sigmoid", lambda a: -np.log1p(np.exp(-a)), 0), ("relu", lambda a: np.maximum(a, 0), 0)])
def test_unary_functions_equal_numpys(name, numpy, domain):
    a = (np.abs(x) + 0.1, np.clip(x, -0.9, 0.9))[domain - 1] if domain else x * 2
    got = run(getattr(m, name), a + 1 if name == "acosh" else a)
    np.testing.assert_allclose(got, numpy(a.astype(np.float64)), rtol=2e-5, atol=1e-6)


def test_error_function_gamma_and_gelu():
    import math
    for f, g in ((m.erf, math.erf), (m.erfc, math.erfc), (m.lgamma, math.lgamma),
                 (m.gelu, lambda a: a * (math.erf(a / math.sqrt(2)) + 1) / 2)):
        np.testing.assert_allclose(run(f, x), np.vectorize(g)(x.astype(np.float64)), rtol=1e-4, atol=1e-6)


def test_reciprocal_no_nan_xdivy_and_xlogy_at_zero():
    a = np.array([0, 2], np.float32)
    np.testing.assert_array_equal(run(m.reciprocal_no_nan, a), [0, 0.5])
    np.testing.assert_array_equal(run(m.xdivy, np.zeros(2, np.float32), a), [0, 0])
    np.testing.assert_array_equal(run(m.xlogy, np.zeros(2, np.float32), a), [0, 0])


@pytest.mark.parametrize("name, numpy", [
    ("maximum", np.maximum), ("minimum", np.minimum), ("atan2", np.arctan2), ("floordiv", np.floor_divide),
    ("squared_difference", lambda a, b: (a - b) ** 2)])
def test_binary_functions_equal_numpys(name, numpy):
    np.testing.assert_allclose(run(getattr(m, name), x, y), numpy(x, y), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run(m.pow, np.abs(x), y), np.abs(x) ** y, rtol=1e-5)
    np.testing.assert_allclose(run(lambda t: m.pow(t, 2), x), x ** 2, rtol=1e-5)


def test_add_n_clip_and_l2_normalize():
    np.testing.assert_allclose(run(lambda a, b: m.add_n([a, b, a]), x, y), x + y + x, rtol=1e-6)
    assert look_inside_job(lambda a: m.add_n([a]) is a, x)
    with refused(AssertionError, "add with +"):
        run(lambda a, b: m.add_n([a, b]), x, f32(3))
    np.testing.assert_array_equal(run(lambda a: m.clip_by_value(a, -0.1, 0.2), x),
                                  np.clip(x, np.float32(-0.1), np.float32(0.2)))
    np.testing.assert_array_equal(run(lambda a: flow.clip(a, max_value=0.0), x), np.minimum(x, 0))
    with refused(ValueError, "no bound"):
        run(lambda a: flow.clamp(a), x)
    np.testing.assert_allclose(run(lambda a: m.l2_normalize(a, 1), x),
                               x / np.linalg.norm(x, axis=1, keepdims=True), rtol=1e-5)


# --- reductions
# ------------------------------------------------------------------------------------------------------

REDUCTIONS = {
    "sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod, "std": np.std,
    "variance": np.var,
    "euclidean_norm": lambda a, axis, keepdims: np.sqrt(np.sum(a * a, axis=axis, keepdims=keepdims)),
    "logsumexp": lambda a, axis, keepdims: np.log(np.sum(np.exp(a), axis=axis, keepdims=keepdims))}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1, [0, 2], (1,), [0, 1, 2]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_equal_numpys(name, axis, keepdims):
    a = f32(2, 3, 4)
    got = run(lambda t: getattr(m, f"reduce_{name}")(t, axis, keepdims), a)
    want = REDUCTIONS[name](a.astype(np.float64), axis=tuple(axis) if isinstance(axis, list) else axis,
                            keepdims=keepdims)
    assert got.shape == (want.shape or (1,)), "a reduction over all axes has shape (1,)"
    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-4, atol=1e-5)


def test_any_and_all_are_int8_also_of_comparisons():
    a = np.array([[0, 1], [2, 3], [0, 0]], np.float32)
    for f, want in ((m.reduce_any, [1, 1, 0]), (m.reduce_all, [0, 1, 0])):
        for body in (lambda t, f=f: f(t, 1), lambda t, f=f: f(t > 0, axis=[1])):
            got = run(body, a)
            assert got.dtype == np.int8 and got.tolist() == want
    assert run(m.reduce_any, a).shape == (1,)


def test_an_empty_list_of_axes_reduces_nothing_and_a_wrong_one_is_refused():
    assert look_inside_job(lambda t: m.reduce_sum(t, []) is t, x)
    for axis in (2, -3, [0, 5], 1.0, "a"):
        with refused(AssertionError, "axis is out of range"):
            run(lambda t, axis=axis: m.reduce_mean(t, axis), x)


def test_argmax_is_int32():
    got = run(m.argmax, x)
    assert got.dtype == np.int32 and got.tolist() == x.argmax(-1).tolist()
    assert run(lambda t: m.argmax(t, 0), x).tolist() == x.argmax(0).tolist()


# --- matmul
# ----------------------------------------------------------------------------------------------------------

@given(st.booleans(), st.booleans(), st.integers(0, 2), st.booleans(), st.sampled_from([1.0, 0.5]))
def test_matmul_equals_numpys(ta, tb, batch, flat_b, alpha):
    lead = (2, 3)[:batch]
    a = f32(*lead, *((4, 5) if not ta else (5, 4)))
    b = f32(*(() if flat_b else lead), *((5, 6) if not tb else (6, 5)), seed=1)

    def call(p, q):
        return flow.matmul(p, q, transpose_a=ta, transpose_b=tb, alpha=alpha)

    if flat_b and batch and ta:
        with refused(ValueError):
            run(call, a, b)
        return
    want = alpha * np.matmul(np.swapaxes(a, -1, -2) if ta else a, np.swapaxes(b, -1, -2) if tb else b)
    np.testing.assert_allclose(run(call, a, b), want, rtol=1e-4, atol=1e-5)


def test_matmul_does_not_broadcast_batches():
    for p, q in (((1, 2, 3), (4, 3, 2)), ((2, 3), (4, 3, 2)), ((3,), (3, 2))):
        with refused(ValueError, "matmul"):
            run(flow.matmul, f32(*p), f32(*q))


# --- shapes
# ----------------------------------------------------------------------------------------------------------

a3 = f32(2, 3, 4)


@pytest.mark.parametrize("body, want", [
    (lambda t: flow.reshape(t, [t.shape[0], -1]), a3.reshape(2, 12)), (lambda t: flow.reshape(t, (4, 6)),
                                                                       a3.reshape(4, 6)),
    (lambda t: flow.transpose(t, [2, 0, 1]), a3.transpose(2, 0, 1)),
    (lambda t: flow.transpose(t, (0, -1, 1)), a3.swapaxes(1, 2)),
    (lambda t: flow.flatten(t, 1), a3.reshape(2, 12)), (flow.flatten, a3.ravel()),
    (lambda t: flow.expand_dims(t, -1), a3[..., None]), (lambda t: flow.expand_dims(t, 1), a3[:, None]),
    (lambda t: flow.squeeze(flow.expand_dims(t, 1), [1]), a3),
    (lambda t: flow.squeeze(flow.expand_dims(t, 0)), a3),
    (lambda t: flow.concat([t, t * 2], axis=1), np.concatenate([a3, a3 * 2], 1)),
    (lambda t: flow.concat(values=[t, t], axis=-1), np.concatenate([a3, a3], 2)),
    (lambda t: flow.stack([t, t], 1), np.stack([a3, a3], 1)),
    (lambda t: flow.slice(t, [None, 1, 0], [-1, 2, 3]), a3[:, 1:3, :3]),
    (lambda t: flow.slice(t, [0, -2, 1], [1, -1, None]), a3[:1, -2:, 1:]),
    (flow.identity, a3), (lambda t: flow.zeros_like(t), a3 * 0), (lambda t: flow.ones((2,), flow.float) + 1,
                                                                  np.full(2, 2)),
    (lambda t: flow.constant_like(t, 3, flow.int32), np.full(a3.shape, 3)),
    (lambda t: flow.where(t > 0, t, flow.zeros_like(t)), np.maximum(a3, 0)),
    (lambda t: flow.where(t > 0, t, 0), np.maximum(a3, 0)),
    (lambda t: flow.where(flow.cast(t > 0, flow.int32), t, t * 2), np.where(a3 > 0, a3, a3 * 2))])
def test_shape_functions_equal_numpys(body, want):
    got = run(body, a3)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("body, error", [
    (lambda t: flow.reshape(t, 24), AssertionError), (lambda t: flow.reshape(t, [5, -1]), AssertionError),
    (lambda t: flow.reshape(t, [-1, -1]), AssertionError), (lambda t: flow.reshape(t, [2, 0]),
                                                            AssertionError),
    (lambda t: flow.reshape(t, [2, 13]), AssertionError), (flow.transpose, AssertionError),
    (lambda t: flow.transpose(t, [0, 1]), ValueError), (lambda t: flow.transpose(t, [0, 0, 1]), ValueError),
    (lambda t: flow.squeeze(t, 0), AssertionError), (lambda t: flow.squeeze(t, [0]), AssertionError),
    (lambda t: flow.concat([]), AssertionError), (lambda t: flow.concat([t, flow.reshape(t, [3, 2, 4])]),
                                                  ValueError),
    (lambda t: flow.concat([t, flow.cast(t, flow.double)]), TypeError),
    (lambda t: flow.slice(t, [0, 0], [1, 1]), ValueError), (lambda t: flow.slice(t, [0, 0, 0], [0, 1, 1]),
                                                            ValueError),
    (lambda t: flow.slice(t, [0, 0, 0], [3, 1, 1]), ValueError), (lambda t: flow.constant(1), AssertionError),
    (lambda t: flow.constant(np.ones(2), flow.float), NotImplementedError),
    (lambda t: flow.gather(t, t), TypeError), (lambda t: flow.one_hot(t, 3), TypeError)])
def test_shape_functions_refuse_invalid_arguments(body, error):
    with refused(error):
        run(body, a3)


def test_one_input_is_returned_unchanged():
    for do in (lambda t: flow.concat([t]), lambda t: flow.concat(inputs=[t]),
               lambda t: flow.nn.dropout(x=t, rate=0.5)):
        assert look_inside_job(lambda t, do=do: do(t) is t, x)


def test_gather_and_one_hot():
    at = np.array([[1, 0], [1, 1]], np.int32)
    np.testing.assert_array_equal(run(lambda t, i: flow.gather(t, i, axis=1), a3, at), a3[:, at])
    got = run(lambda i: flow.one_hot(i, 3), at)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, np.eye(3)[at])
    got = run(lambda i: flow.one_hot(i, 2, on_value=5, off_value=-1, dtype=flow.float), at)
    np.testing.assert_array_equal(got, np.where(np.eye(2)[at] > 0, 5, -1))


def test_dtype_names():
    assert (flow.float is flow.float32 and flow.double is flow.float64 and flow.int is flow.int32
            and flow.long is flow.int64)
    assert flow.half is flow.float16
    assert flow.convert_oneflow_dtype_to_numpy_dtype(flow.int8) == np.int8
    with pytest.raises(NotImplementedError):
        flow.convert_oneflow_dtype_to_numpy_dtype(flow.tensor_buffer)
    with refused(TypeError, "convert_oneflow_dtype_to_numpy_dtype", "float32"):
        flow.convert_oneflow_dtype_to_numpy_dtype(np.float32)
    assert tp.Numpy.Placeholder((2,)).dtype is flow.float
