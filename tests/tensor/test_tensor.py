"""Eager tensors: creation, inspection, computation, and first and second gradients of leaves and inner
values.
"""
import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import flowedu as flow
from common import f32, fresh_session, refused  # noqa: F401
from flowedu.errors import GradientError

x = f32(2, 3)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, max_side=4)


def make_leaf(a):
    return flow.tensor(np.asarray(a, np.float64), requires_grad=True)


# --- creation and inspection
# -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("data, dtype, shape", [
    (3, flow.int64, ()), (3.5, flow.float32, ()), (True, flow.bool, ()), ([1, 2], flow.int64, (2,)),
    ([1.0, 2], flow.float32, (2,)),
    ([[1, 2], [3, 4]], flow.int64, (2, 2)), ([], flow.float32, (0,)), (np.ones(2), flow.float64, (2,)),
    (np.int32(4), flow.int32, ()), (np.zeros((2, 0), np.int8), flow.int8, (2, 0)),
    ([True, False], flow.bool, (2,))])
def test_dtypes_of_data(data, dtype, shape):
    t = flow.tensor(data)
    assert (t.dtype, t.shape, t.ndim, t.numel(), t.dim()) == (dtype, shape, len(shape), math.prod(shape),
                                                              len(shape))
    np.testing.assert_array_equal(t.numpy(), data)
    assert t.tolist() == np.asarray(data).tolist()
    assert flow.tensor(data, dtype=flow.float64).dtype is flow.float64 and flow.tensor(t).dtype is dtype


def test_ragged_lists_and_unsupported_values_are_refused():
    with pytest.raises(ValueError, match="ragged"):
        flow.tensor([[1, 2], [3]])
    for strange in ("text", object(), {"a": 1}):
        with pytest.raises(TypeError, match="the data are no numbers"):
            flow.tensor(strange)


def test_inspecting_a_tensor():
    t = flow.tensor(x)
    assert (t.size() == (2, 3) and t.size(1) == 3 and t.stride() == (3, 1) and t.is_contiguous()
            and len(t) == 2)
    assert t.T.shape == (3, 2) and not t.T.is_contiguous() and t.T.stride() == (1, 3)
    assert [row.tolist() for row in t] == x.tolist()
    assert "tensor(" in repr(t) and "float32" in repr(t)
    assert "requires_grad=True" in repr(make_leaf(1.0)) and "mul_backward>" in repr(make_leaf(1.0) * 2)
    assert flow.tensor(2.5).item() == 2.5 and float(flow.tensor([2.5])) == 2.5 and int(flow.tensor(3)) == 3
    assert bool(flow.tensor(1)) and not bool(flow.tensor([0.0]))
    np.testing.assert_array_equal(np.exp(t), np.exp(x))
    assert hash(t) != hash(flow.tensor(x)) and t in [t]


@pytest.mark.parametrize("look", [bool, float, int, lambda t: t.item()])
def test_only_one_element_is_a_number(look):
    with pytest.raises(ValueError):
        look(flow.tensor([1.0, 2.0]))


def test_creation_functions_have_the_documented_values_and_dtypes():
    assert flow.full((2, 3), 1.5).tolist() == [[1.5] * 3] * 2 and flow.full(2, 1).dtype is flow.int64
    assert flow.full((2,), 1.0, requires_grad=True).requires_grad
    assert flow.empty(2, 3).shape == flow.empty((2, 3)).shape == (2, 3)
    assert flow.ones_like(flow.tensor(x)).tolist() == np.ones((2, 3)).tolist()
    assert flow.zeros_like(flow.tensor([1])).dtype is flow.int64
    assert flow.zeros((2,)).tolist() == [0, 0] and flow.ones((2,), flow.int32).dtype is flow.int32


# --- computation
# -----------------------------------------------------------------------------------------------------

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.ge,
              operator.eq, operator.ne]


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3, min_side=0),
       st.sampled_from(ARITHMETIC), st.integers(0, 99))
def test_operators_broadcast_as_in_numpy(shapes, op, seed):
    a, b = (f32(*s, seed=seed + i) for i, s in enumerate(shapes.input_shapes))
    got, want = op(flow.tensor(a), flow.tensor(b)), op(a, b)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("op", [*ARITHMETIC, operator.pow, operator.floordiv, operator.mod])
def test_numbers_on_either_side(op):
    t = np.abs(x) + np.float32(0.5)
    np.testing.assert_allclose(op(flow.tensor(t), 2).numpy(), op(t, np.float32(2)), rtol=1e-6)
    if op not in (operator.floordiv, operator.mod):
        np.testing.assert_allclose(op(2.0, flow.tensor(t)).numpy(), op(np.float32(2), t), rtol=1e-6)
    with pytest.raises(TypeError):
        op(flow.tensor(t), "2") if op not in (operator.eq, operator.ne) else flow.tensor(t) + "2"


@pytest.mark.parametrize("a, b, want", [
    (flow.int32, flow.int64, flow.int64), (flow.int64, flow.float32, flow.float32),
    (flow.float32, flow.float64, flow.float64)])
def test_unequal_dtypes_are_promoted(a, b, want):
    p, q = flow.tensor([1, 2], dtype=a), flow.tensor([3, 4], dtype=b)
    for got in (p + q, q * p):
        assert got.dtype is want
    assert (flow.tensor([1, 2]) / 2).dtype is flow.float32 and (flow.tensor([1, 2]) + 0.5).tolist() == [1.5,
                                                                                                        2.5]
    assert (flow.tensor(np.ones(2)) * 2).dtype is flow.float64 and (flow.tensor(
        [1]) + True).dtype is flow.int64


@given(st.data(), SHAPES)
def test_indexing_equals_numpys(data, shape):
    a = f32(*shape)
    index = []
    for n in shape[:data.draw(st.integers(0, len(shape)))]:
        index.append(data.draw(st.one_of(
            st.integers(-n, n - 1), st.builds(slice, st.none() | st.integers(-5, 5),
                                              st.none() | st.integers(-5, 5),
                                              st.none() | st.integers(1, 3) | st.integers(-3, -1)))))
    got, want = flow.tensor(a)[tuple(index)], a[tuple(index)]
    assert got.shape == np.shape(want)
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("index, error", [(2, IndexError), ((0, 3), IndexError), ((0, 0, 0), ValueError),
                                          (slice(None, None, 0), ValueError), ([0, 2], IndexError),
                                          (1.0, IndexError)])
def test_invalid_indices_are_refused(index, error):
    with pytest.raises(error):
        flow.tensor(x)[index]


@given(st.data(), hnp.array_shapes(min_dims=1, max_dims=4, max_side=6))
def test_reshape_of_any_view_equals_numpys(data, shape):
    """Includes strides that need a copy."""
    a = f32(*shape)
    perm = data.draw(st.permutations(range(len(shape))))
    steps = tuple(slice(None, None, data.draw(st.sampled_from([1, 1, 2]))) for _ in shape)
    v, t = a.transpose(perm)[steps], flow.tensor(a).permute(*perm)[steps]
    factors, n = [], v.size
    for _ in range(data.draw(st.integers(0, 3))):
        factors.append(data.draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0])))
        n //= factors[-1]
    new = data.draw(st.permutations([*factors, n]))
    np.testing.assert_array_equal(t.reshape(*new).numpy(), v.reshape(new))
    np.testing.assert_array_equal(t.flatten().numpy(), v.ravel())
    i = data.draw(st.integers(0, len(new) - 1))
    assert t.reshape(*new[:i], -1, *new[i + 1:]).shape == tuple(new)


@pytest.mark.parametrize("shape", [(7,), (-1, -1), (-1, 4), (5, -1), (2, -3)])
def test_reshape_refuses_invalid_sizes(shape):
    with pytest.raises(ValueError, match="reshape"):
        flow.tensor(x).reshape(*shape)


@given(SHAPES, st.data())
def test_reductions_equal_numpys(shape, data):
    a = f32(*shape)
    axis = data.draw(st.none() | st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1,
                                          unique_by=lambda d: d % len(shape)).map(tuple) if shape
                     else st.none())
    keep = data.draw(st.booleans())
    t = flow.tensor(a)
    for name in ("sum", "mean", "amax", "amin"):
        got = getattr(t, name)(() if axis is None else axis, keepdim=keep).numpy()
        want = getattr(np, name)(a, axis=axis, keepdims=keep)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_methods_equal_numpys():
    t, p = flow.tensor(x), np.abs(x) + 1
    for name, want in (("relu", np.maximum(x, 0)), ("exp", np.exp(x)), ("tanh", np.tanh(x)),
                       ("abs", np.abs(x)), ("sign", np.sign(x)),
                       ("square", x * x), ("floor", np.floor(x)), ("sigmoid", 1 / (1 + np.exp(-x)))):
        np.testing.assert_allclose(getattr(t, name)().numpy(), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(flow.tensor(p).log().numpy(), np.log(p), rtol=1e-5)
    np.testing.assert_allclose((t @ t.T).numpy(), x @ x.T, rtol=1e-5, atol=1e-6)
    assert t.argmax(1).tolist() == x.argmax(1).tolist()
    assert t.double().dtype is flow.float64 and t.to(flow.int32).dtype is flow.int32
    assert t.float() is t and (-t).tolist() == (-x).tolist() and abs(t).tolist() == np.abs(x).tolist()
    assert t.expand(4, 2, 3).shape == (4, 2, 3)


def test_wrong_operands_are_refused():
    with refused(ValueError, "matmul", "k"):
        flow.tensor(x) @ flow.tensor(x)
    with refused(ValueError, "add"):
        flow.tensor(x) + flow.tensor(f32(2))
    with refused(TypeError, "flow.cast"):
        flow.tensor(x) @ flow.tensor(x.T.astype(np.float64))
    with refused(TypeError, "not a tensor"):
        flow.ops.REGISTRY["relu"](x)


# --- gradients
# -------------------------------------------------------------------------------------------------------

def test_gradients_reach_the_leaves_and_add_up():
    a, b = make_leaf([1.0, 2, 3]), make_leaf(2.0)
    y = (a * b + a).sum()                       # b is broadcast, a is used twice
    assert not y.is_leaf and a.is_leaf and y.requires_grad and y.grad_fn is not None
    y.backward()
    assert a.grad.tolist() == [3, 3, 3] and b.grad.item() == 6
    (a * a).sum().backward()
    assert a.grad.tolist() == [5, 7, 9], "gradients accumulate until the user clears them"
    a.grad = None
    (a * 2).sum().backward()
    assert a.grad.tolist() == [2, 2, 2]


def test_the_accumulated_gradient_has_separate_memory():
    a, b = make_leaf([1.0, 2.0]), make_leaf([3.0, 4.0])
    (a + b).sum().backward()
    a.grad.numpy()[...] = 7
    assert b.grad.tolist() == [1, 1]
    kept = b.grad
    (b * 1.0).sum().backward()
    assert kept.tolist() in ([1, 1], [2, 2]) and b.grad.tolist() == [2, 2]


def test_a_gradient_can_be_given():
    a = make_leaf([1.0, 2.0])
    (a * a).backward(flow.tensor(np.array([1.0, 10.0])))
    assert a.grad.tolist() == [2, 40]
    with refused(ValueError, "shape", fix=False):
        (a * a).backward(flow.tensor(np.ones(3)))


def test_tensors_without_gradient_raise_in_backward():
    with pytest.raises(GradientError, match="one-element"):
        (make_leaf([1.0, 2.0]) * 2).backward()
    with pytest.raises(GradientError, match="requires_grad=True"):
        flow.tensor(1.0).backward()
    with pytest.raises(GradientError, match="floating point"):
        flow.tensor([1], requires_grad=True)
    with pytest.raises(GradientError, match="detach"):
        (make_leaf(1.0) * 2).requires_grad = False
    with pytest.raises(GradientError, match="not .*used"):
        flow.grad(make_leaf(1.0) * 2, make_leaf(1.0))


def test_a_second_backward_raises_with_advice():
    a = make_leaf(2.0)
    y = a * a * a
    y.backward(retain_graph=True)
    y.backward()
    assert a.grad.item() == 24
    with pytest.raises(GradientError, match="retain_graph=True") as e:
        y.backward()
    assert "mul" in str(e.value) and e.value.at.startswith("test_tensor.py")
    z = a + 1                                   # saves nothing, so a second backward pass works
    z.backward()
    z.backward()


def test_gradients_of_inner_values():
    a = make_leaf([1.0, 2.0])
    h = a * 3
    y = (h * h).sum()
    assert [g.tolist() for g in flow.grad(y, [h, a], retain_graph=True)] == [[6, 12], [18, 36]]
    assert a.grad is None and flow.grad(y, y)[0].item() == 1
    y, z = (a * a).sum(), (a * 5).sum()
    assert flow.grad([y, z], a)[0].tolist() == [7, 9]
    assert flow.grad(a * 2, a, flow.tensor(np.array([1.0, 3.0])))[0].tolist() == [2, 6]


def test_second_order_gradients():
    a = make_leaf(2.0)
    (first,) = flow.grad(a * a * a, a, create_graph=True)
    (second,) = flow.grad(first, a, create_graph=True)
    (third,) = flow.grad(second, a)
    assert (first.item(), second.item(), third.item()) == (12, 12, 6)
    (g,) = flow.grad((a.tanh() * 3).exp(), a, create_graph=True)
    g.backward()

    def f(v):
        return math.exp(3 * math.tanh(v))

    h = 1e-4
    np.testing.assert_allclose(a.grad.item(), (f(2 + h) - 2 * f(2) + f(2 - h)) / h ** 2, rtol=1e-4)


def test_no_grad_and_detach_record_nothing():
    a = make_leaf(2.0)
    with flow.no_grad():
        y = a * 3
        with flow.no_grad():
            pass
        assert not (y * 2).requires_grad and y.grad_fn is None
    assert (a * 3).requires_grad
    d = (a * 3).detach()
    assert not d.requires_grad and d.item() == 6
    (a * d).backward()
    assert a.grad.item() == 6
    with pytest.raises(ZeroDivisionError), flow.no_grad():
        raise ZeroDivisionError
    assert (a * 3).requires_grad, "an exception leaves no_grad too"


def test_integers_and_comparisons_stop_gradients():
    a = make_leaf([1.0, -1.0])
    assert not (a > 0).requires_grad and not a.argmax(0).requires_grad
    y = (a * (a > 0)).sum()
    y.backward()
    assert a.grad.tolist() == [1, 0]


@given(st.data())
def test_views_pass_gradients_on(data):
    a = t = make_leaf(np.arange(24.0).reshape(2, 3, 4))      # every element has a distinct value
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["transpose", "reshape", "slice", "expand", "flatten"]))
        if kind == "transpose":
            t = t.permute(*data.draw(st.permutations(range(t.ndim))))
        elif kind == "reshape":
            t = t.reshape(-1, t.shape[-1] if t.ndim else 1)
        elif kind == "slice" and t.ndim:
            t = t[tuple(slice(0, None, data.draw(st.integers(1, 2))) for _ in t.shape)]
        elif kind == "expand" and t.ndim < 4:
            t = t.expand(2, *t.shape)
        else:
            t = t.flatten()
    weights, want = np.random.default_rng(0).standard_normal(t.shape), np.zeros(24)
    (t * flow.tensor(weights)).sum().backward()
    np.add.at(want, t.numpy().astype(int), weights)
    np.testing.assert_allclose(a.grad.numpy().ravel(), want, rtol=1e-12, atol=1e-12)


@given(st.floats(-2, 2), st.floats(-2, 2), st.integers(0, 6))
def test_deep_graphs_with_shared_parts(p, q, depth):
    """Each level uses y twice, so there are 2^depth paths; each node is visited once."""
    a, b = make_leaf(p), make_leaf(q)
    y = a * b
    want_a = q
    want_b = p
    value = p * q
    for _ in range(depth):
        y = y + y * 0.5
        want_a = want_a * 1.5
        want_b = want_b * 1.5
        value = value * 1.5
    y.backward()
    np.testing.assert_allclose([y.item(), a.grad.item(), b.grad.item()], [value, want_a, want_b], rtol=1e-12,
                               atol=1e-12)


def test_training_by_hand():
    rng = np.random.default_rng(0)
    inputs, wanted = rng.standard_normal((64, 3)), rng.standard_normal((3, 1))
    data, target = flow.tensor(inputs), flow.tensor(inputs @ wanted)
    w = make_leaf(np.zeros((3, 1)))
    for _ in range(200):
        ((data @ w - target) ** 2).mean().backward()
        w.numpy()[...] -= 0.1 * w.grad.numpy()
        w.grad = None
    np.testing.assert_allclose(w.numpy(), wanted, atol=1e-6)


def test_thread_count_is_an_int():
    with refused(Exception, "1 to ", fix=False):
        flow.set_num_threads(0)
    flow.set_num_threads(2)
    assert flow.get_num_threads() == (2 if flow.has_threads() else 1)
