"""In-place ops: values, dtypes, versions, and errors. (test_views.py tests their gradients.)"""
import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import ArgumentError, DTypeError, GradientError, ShapeError

from .meaning import m
from .meaning.kinds import T

X = np.array([[0.5, 1.25, 2.0], [3.5, 0.75, 1.0]])
Y = X[::-1].copy()
INDEX, ROWS, COLUMNS = np.array([[0, 1, 1], [1, 0, 0]]), np.array([1, 0]), np.array([0, 2])
NOTHING = """floor ceil round trunc fix abs absolute neg negative exp exp2 expm1 log log1p log2 log10 sqrt
    rsqrt reciprocal sin cos tan sinh cosh tanh atan asinh arctan arcsinh sigmoid relu square erf erfc sign
    sgn frac nan_to_num lgamma digamma deg2rad rad2deg sinc logical_not triu""".split()
SMALL = "asin acos atanh erfinv logit arcsin arccos arctanh".split()
OTHER = """add sub mul div pow remainder floor_divide fmod eq ne lt le gt ge not_equal less less_equal greater
    greater_equal true_divide subtract multiply divide atan2 arctan2 hypot xlogy copysign heaviside
    float_power logical_and logical_or logical_xor""".split()
ARGUMENTS = {
    "clamp": (0.6, 2.0), "clip": (0.6, 2.0), "clamp_min": (1.0,), "clamp_max": (1.0,),
    "masked_fill": (X > 1, 9.0),
    "masked_scatter": (X > 1, Y), "scatter": (0, INDEX, Y), "scatter_add": (0, INDEX, Y), "tril": (1,),
    "cumsum": (1,),
    "scatter_reduce": (0, INDEX, Y, "amax"), "index_add": (0, ROWS, Y), "index_fill": (1, COLUMNS, 7.0),
    "cumprod": (0,),
    "index_copy": (0, ROWS, Y), "addcmul": (X, Y), "addcdiv": (X, Y), "lerp": (Y, 0.25),
    "renorm": (2, 0, 1.5),
    "addmm": (np.ones((2, 4)), np.ones((4, 3))), "addr": (np.ones(2), X[0]), "ldexp": (INDEX,),
    "addmv": (np.ones((2, 4)), np.arange(4.0)), "baddbmm": (np.ones((2, 2, 4)), np.ones((2, 4, 3))),
    "addbmm": (np.ones((2, 2, 4)), np.ones((2, 4, 3))), "index_put": ((ROWS, COLUMNS), np.array([7.0, 8.0]))}
START = {"addmv": X[:, 0], "baddbmm": np.stack([X, Y])}
BITS = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split()
ROWS_OF_CASES = [(n, X, ()) for n in NOTHING] + [(n, X / 4, ()) for n in SMALL] + [
    (n, X + 1, ()) for n in ("acosh", "arccosh")]
ROWS_OF_CASES += [(n, X, (other,)) for n in OTHER for other in (Y, Y[0], 1.5, 2)
                  if n != "hypot" or isinstance(other, np.ndarray)]
ROWS_OF_CASES += [(n, START.get(n, X), args) for n, args in ARGUMENTS.items()]
ROWS_OF_CASES += [(n, INDEX + 2, (INDEX,)) for n in BITS] + [("bitwise_not", INDEX, ())]
# Below, and test_random.py.
FILLS = "uniform normal exponential random bernoulli trunc_normal".split()
SHAPES = "t transpose squeeze unsqueeze swapaxes swapdims movedim moveaxis".split()     # test_views.py
DRAWS = "kaiming_normal kaiming_uniform orthogonal xavier_normal xavier_uniform".split()     # nn/test_init.py
APART = "contiguous copy detach fill zero requires_grad".split()                        # tested separately
# test_written_places.py
APART += "fill_diagonal index_reduce put".split()


def convert_arrays(make, args):
    return [tuple(map(make,
                      v)) if isinstance(v, tuple) else make(v) if isinstance(
                          v, np.ndarray) else v for v in args]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, a, args", ROWS_OF_CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_an_in_place_method_equals_its_out_of_place_function(name, a, args, dtype):
    """Returns the tensor itself, with its dtype and memory; the version counter rises; other arguments do not
    change.
    """
    a = a.astype(dtype) if a.dtype.kind == "f" else a

    def cast(v):
        return v.astype(dtype) if v.dtype.kind == "f" and name != "masked_fill" else v

    x, given = flow.tensor(a), convert_arrays(lambda v: flow.tensor(cast(v)), args)
    f = m.clamp if name == "clip" else getattr(m, name)
    with np.errstate(all="ignore"):
        want = m.cast(f(T(a), *convert_arrays(lambda v: T(cast(v)), args)), a.dtype.name).a
    where, alias, version = x.data_ptr(), x.numpy(), x._version
    assert getattr(x, name + "_")(*given) is x and x.data_ptr() == where and x._version > version
    assert x.dtype.name == a.dtype.name
    np.testing.assert_array_equal(alias, x.numpy())
    rtol, atol = (1e-5, 1e-6) if dtype == "float32" else (1e-12, 0)
    np.testing.assert_allclose(x.numpy(), want, rtol=rtol, atol=atol)
    for v, before in zip(given, args):
        if isinstance(before, np.ndarray):
            np.testing.assert_array_equal(v.numpy(), cast(before))


def test_every_method_with_an_underline_has_a_row():
    have = {n[:-1] for n in dir(flow.Tensor) if n.endswith("_") and not n.startswith("_")}
    rows = {name for name, _, _ in ROWS_OF_CASES} | set(FILLS + SHAPES + DRAWS + APART)
    assert have == rows, f"no row for {sorted(have - rows)}, no method for {sorted(rows - have)}"


def test_copy_fill_and_zero():
    x = flow.tensor(X)
    assert x.copy_(flow.tensor(Y[0])) is x and x.tolist() == [Y[0].tolist()] * 2
    assert x.fill_(2.5).tolist() == [[2.5] * 3] * 2 and x.fill_(flow.tensor(3)).tolist() == [[3] * 3] * 2
    assert x.zero_().tolist() == [[0] * 3] * 2 and x._version == 4
    assert (flow.zero_(x.add_(1)) is x and flow.zeros_(x.add_(1)) is x and x.tolist() == [[0] * 3] * 2
            and x._version == 8)
    y = flow.tensor(X).T
    assert y.contiguous_() is y and y.is_contiguous() and y.tolist() == X.T.tolist()


def test_inplace_methods_accept_keywords():
    x = flow.tensor(X)
    x.add_(flow.tensor(X), alpha=2).sub_(flow.tensor(X), alpha=0.5)
    np.testing.assert_allclose(x.numpy(), 2.5 * X)
    assert flow.tensor(X).div_(2, rounding_mode="floor").tolist() == np.floor(X / 2).tolist()
    assert flow.tensor(-X).div_(2, rounding_mode="trunc").tolist() == np.trunc(-X / 2).tolist()
    x = flow.tensor(X).index_put_((flow.tensor([0, 0]), flow.tensor([1, 1])),
                                  flow.tensor([1.0, 2.0], dtype=flow.float64), accumulate=True)
    assert x[0, 1].item() == X[0, 1] + 3


@pytest.mark.parametrize("step", ["x += 2", "x -= 1.5", "x *= y", "x /= 2", "x **= 2", "x %= 2", "x //= 2",
                                  "x += y[0]", "x -= y", "x /= y", "x **= 0.5"])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_operators_write_in_place(step, dtype):
    """NumPy's in-place operators refuse the same: results of a higher category."""
    a, b = (X * 4).astype(dtype), (X * 8).astype(dtype)
    names, twins = {"x": (x := flow.tensor(a)), "y": flow.tensor(b)}, {"x": a.copy(), "y": b}
    try:
        exec(step, twins)
    except TypeError:
        with pytest.raises(RuntimeError, match="can't be cast"):
            exec(step, names)
        np.testing.assert_array_equal(x.numpy(), a)
        return
    exec(step, names)
    assert names["x"] is x
    np.testing.assert_allclose(x.numpy(), twins["x"], rtol=1e-6)


@pytest.mark.parametrize("step", ["m |= n", "m &= n", "m ^= n"])
@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8"])
def test_bit_operators(step, dtype):
    a, b = np.array([1, 3, 0], dtype), np.array([1, 2, 6], dtype)
    names, twins = {"m": (x := flow.tensor(a)), "n": flow.tensor(b)}, {"m": a.copy(), "n": b}
    exec(step, names)
    exec(step, twins)
    assert names["m"] is x and x.tolist() == twins["m"].tolist()


def test_shapes_do_not_grow():
    with pytest.raises(ShapeError, match=r"Can not expand origin shape \(1,\) to \(2,\) in an inplace "
                       r"operation"):
        flow.tensor([1.0]).add_(flow.tensor([1.0, 2.0]))
    with pytest.raises(ShapeError, match="must match the existing size"):
        flow.tensor([1.0]).copy_(flow.tensor([1.0, 2.0]))
    with pytest.raises(DTypeError, match="result type flowedu.float32 can't be cast to the desired output "
                       "type flowedu"):
        flow.tensor([1]).add_(1.5)


@pytest.mark.parametrize("write", [lambda x: x.add_(1), lambda x: x.clamp_(0, 1), lambda x: x.exp_(),
                                   lambda x: x.pow_(2),
                                   lambda x: x.mul_(flow.tensor([2.0, 3.0])),
                                   lambda x: x.copy_(flow.tensor([2.0, 3.0]))])
def test_invalid_writes_are_refused(write):
    leaf = flow.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GradientError, match="a leaf Tensor that requires grad is being used in an in-place "
                       "operation"):
        write(leaf)
    with pytest.raises(GradientError, match="a view of a leaf Tensor that requires grad"):
        write(leaf.view(2, 1).view(2))
    with pytest.raises(GradientError, match="more than one element of the written-to tensor refers to a "
                       "single memory"):
        write(flow.tensor([1.0]).expand(2))
    frozen = np.zeros(2, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        write(flow.from_numpy(frozen))
    assert leaf.tolist() == [1, 2] and leaf._version == 0 and not frozen.any()
    with flow.no_grad():
        write(leaf)
    assert leaf._version == 1 and leaf.requires_grad


SAVING = {"mul": lambda a: a * a, "exp": lambda a: a.exp(),
          "matmul": lambda a: a.reshape(1, 2) @ a.reshape(2, 1),
          "sigmoid": lambda a: a.sigmoid(), "relu": lambda a: a.relu(), "div": lambda a: 1 / a}


@pytest.mark.parametrize("write", [lambda x: x.add_(1), lambda x: x.__setitem__(0, 3.0),
                                   lambda x: x.data.zero_(),
                                   lambda x: x.detach().zero_(), lambda x: x[:1].mul_(2),
                                   lambda x: x.uniform_()],
                         ids="add_ setitem data detach view uniform_".split())
@pytest.mark.parametrize("name", sorted(SAVING))
def test_backward_detects_changed_saved_tensors(name, write):
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    a = w * 1
    y = SAVING[name](a)
    changed = y if name in ("exp", "sigmoid", "relu") else a
    total = y.sum()
    write(changed)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation") as e:
        total.backward()
    assert (name in str(e.value) and "version 1" in str(e.value) and "version 0" in str(e.value)
            and "clone" in str(e.value))


@pytest.mark.parametrize("op", [lambda a: a + 1, lambda a: a * 2, lambda a: a.reshape(2, 1),
                                lambda a: a.sum(),
                                lambda a: a.float(),
                                lambda a: a / flow.tensor([2.0, 2.0], dtype=flow.float64)])
def test_tensors_that_backward_does_not_need_may_be_changed(op):
    w = flow.tensor([1.0, 2.0], dtype=flow.float64, requires_grad=True)
    a = w * 1
    y = op(a)
    total = y.sum()
    with flow.no_grad():
        a.zero_()
        if y is not a:
            y.zero_()
    total.backward()
    assert w.grad is not None


def test_optimizer_like_updates_count_as_writes():
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    with flow.no_grad():
        w -= 0.1 * w.grad
    with pytest.raises(GradientError, match="modified by an inplace"):
        loss.backward()
    np.testing.assert_allclose(w.numpy(), [0.8, 1.6], rtol=1e-6)


def test_random_fills_are_reproducible_and_in_range():
    for name, args, low, high in [("uniform_", (2, 3), 2, 3), ("normal_", (), -9,
                                                               9), ("exponential_", (), 0, 40),
                                  ("bernoulli_", (0.3,), 0, 1), ("random_", (2, 7), 2,
                                                                 6), ("trunc_normal_", (), -2, 2)]:
        flow.manual_seed(5)
        a = getattr(flow.zeros(1000), name)(*args)
        flow.manual_seed(5)
        b = getattr(flow.ones(1000), name)(*args)
        assert (a.tolist() == b.tolist() and low <= a.min().item() and a.max().item() <= high
                and a.std().item() > 0)


def test_overlapping_copies_read_before_they_write():
    x = flow.tensor(np.arange(6.0))
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    y = flow.tensor(np.arange(4.0).reshape(2, 2))
    y.copy_(y.T)
    assert y.tolist() == [[0, 2], [1, 3]]
    z = flow.tensor(np.arange(4.0).reshape(2, 2))
    z += z[0]
    assert z.tolist() == [[0, 2], [2, 4]]


def test_strided_writes_reach_the_right_places():
    a = np.zeros((4, 6))
    x = flow.from_numpy(a)
    x.T[1::2, ::3].add_(flow.tensor(np.arange(6.0).reshape(3, 2)))
    want = np.zeros((4, 6))
    want.T[1::2, ::3] += np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(a, want)


def test_detach_():
    w = flow.tensor([1.0], requires_grad=True)
    a = w * 2
    assert a.detach_() is a and a.is_leaf and not a.requires_grad
    with pytest.raises(TypeError, match="can't detach views in-place"):
        (w * 2)[:].view(1, 1).detach_()
