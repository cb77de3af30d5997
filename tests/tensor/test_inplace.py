"""In-place ops: values, dtypes, versions, what is refused. (Their gradients: test_views.py.)"""
import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import ArgumentError, DTypeError, GradientError, ShapeError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

UNARY = ("floor_ ceil_ round_ trunc_ abs_ neg_ exp_ log_ sqrt_ rsqrt_ reciprocal_ sin_ cos_ tan_ tanh_ sigmoid_ relu_ "
         "square_ erf_ expm1_ log1p_ sign_ frac_ log2_ zero_ erfc_ sinh_ cosh_ atan_ nan_to_num_").split()
WITH_OTHER = "add_ sub_ mul_ div_ pow_ remainder_ floor_divide_ fmod_ eq_ ne_ lt_ le_ gt_ ge_ copy_".split()
X = np.array([[0.5, 1.25, 2.0], [3.5, 0.75, 1.0]])
INDEX = np.array([[0, 1, 1], [1, 0, 0]])
CALLS = {
    "clamp_": [(0.6, 2.0)], "clamp_min_": [(1.0,)], "clamp_max_": [(1.0,)], "clip_": [(0.6, 2.0)], "fill_": [(2.5,)],
    "add_alpha": [], "masked_fill_": [(X > 1, 9.0)], "scatter_": [(0, INDEX, X * 2)], "scatter_add_": [(0, INDEX, X * 2)],
    "index_add_": [(0, np.array([1, 0]), X * 2)], "index_fill_": [(1, np.array([0, 2]), 7.0)],
    "index_copy_": [(0, np.array([1, 0]), X * 2)], "addcmul_": [(X, X * 2)], "addcdiv_": [(X, X * 2)],
    "lerp_": [(X * 3, 0.25)], "addmm_": [(np.ones((2, 4)), np.ones((4, 3)))], "triu_": [()], "tril_": [(1,)],
    "logical_not_": [()], "cumsum_": [(1,)], "erfinv_": [],
}


def pair(a, dtype=None):
    return flow.tensor(a if dtype is None else a.astype(dtype)), torch.tensor(a if dtype is None else a.astype(dtype))


def run(name, a, *args):
    """The tensor after the call, in flowedu and PyTorch; both must return the tensor itself and keep the memory."""
    out = []
    for lib, x in zip((flow, torch), pair(a)):
        given = [lib.tensor(v) if isinstance(v, np.ndarray) else v for v in args]
        where, alias = x.data_ptr(), x.numpy()
        assert getattr(x, name)(*given) is x and x.data_ptr() == where
        np.testing.assert_array_equal(alias, x.numpy())
        out.append((x.numpy(), str(x.dtype).split(".")[1], x._version > 0))
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    (a, kind, written), (b, kind2, _) = run(name, X.astype(dtype))
    np.testing.assert_allclose(a, b, rtol=2e-6)
    assert kind == kind2 == dtype and written


@pytest.mark.parametrize("other", [X[::-1].copy(), X[0], 1.5, 2], ids=["tensor", "row", "float", "int"])
@pytest.mark.parametrize("name", WITH_OTHER)
def test_with_another_operand(name, other):
    if name == "copy_" and not isinstance(other, np.ndarray):
        return
    (a, kind, _), (b, kind2, _) = run(name, X, other)
    np.testing.assert_allclose(a, b, rtol=1e-12)
    assert kind == kind2


@pytest.mark.parametrize("name, args", [(n, a) for n, calls in CALLS.items() for a in calls])
def test_with_arguments(name, args):
    (a, _, _), (b, _, _) = run(name, X, *args)
    np.testing.assert_allclose(a, b, rtol=1e-12)


def test_keywords():
    for lib in (flow, torch):
        x = lib.tensor(X)
        x.add_(lib.tensor(X), alpha=2).sub_(lib.tensor(X), alpha=0.5)
        np.testing.assert_allclose(x.numpy(), 2.5 * X)
    x = flow.tensor(X)
    assert x.div_(2, rounding_mode="floor").tolist() == np.floor(X / 2).tolist()


@pytest.mark.parametrize("step", ["x += 2", "x -= 1.5", "x *= y", "x /= 2", "x **= 2", "x %= 2", "x //= 2", "x += y[0]"])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_operators_write_in_place(step, dtype):
    found = []
    for lib in (flow, torch):
        x, y = lib.tensor((X * 4).astype(dtype)), lib.tensor((X * 8).astype(dtype))
        names = {"x": x, "y": y}
        try:
            exec(step, names)
            assert names["x"] is x
            found.append(x.numpy())
        except RuntimeError:
            found.append(None)
    assert (found[0] is None) == (found[1] is None), step
    if found[0] is not None:
        np.testing.assert_allclose(*found, rtol=1e-6)


@pytest.mark.parametrize("step", ["m |= n", "m &= n", "m ^= n"])
def test_bit_operators(step):
    found = []
    for lib in (flow, torch):
        names = {"m": lib.tensor([True, True, False]), "n": lib.tensor([True, False, False])}
        exec(step, names)
        found.append(names["m"].tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("to", ["float32", "float64", "int32", "int64", "int8", "uint8", "bool"])
@pytest.mark.parametrize("from_", ["float32", "float64", "int32", "int64", "int8", "uint8", "bool"])
def test_dtypes_of_results(to, from_):
    """copy_ converts everything; add_ only what does not lose the kind."""
    for name in ("copy_", "add_", "mul_"):
        found = []
        for lib in (flow, torch):
            x, y = lib.tensor(np.array([1, 0, 1]).astype(to)), lib.tensor(np.array([2, 1, 3]).astype(from_))
            try:
                found.append(getattr(x, name)(y).numpy())
            except RuntimeError:
                found.append(None)
        assert (found[0] is None) == (found[1] is None), name
        if found[0] is not None:
            np.testing.assert_array_equal(*found)
            assert found[0].dtype == found[1].dtype


def test_shapes_do_not_grow():
    with pytest.raises(ShapeError, match=r"Can not expand origin shape \(1,\) to \(2,\) in an inplace operation"):
        flow.tensor([1.0]).add_(flow.tensor([1.0, 2.0]))
    with pytest.raises(ShapeError, match="must match the existing size"):
        flow.tensor([1.0]).copy_(flow.tensor([1.0, 2.0]))
    with pytest.raises(DTypeError, match="result type flowedu.float32 can't be cast to the desired output type flowedu"):
        flow.tensor([1]).add_(1.5)


@pytest.mark.parametrize("write", [lambda x: x.add_(1), lambda x: x.fill_(0), lambda x: x.exp_(), lambda x: x.uniform_(),
                                   lambda x: x.mul_(flow.tensor([2.0, 3.0])), lambda x: x.copy_(flow.tensor([2.0, 3.0]))])
def test_what_must_not_be_written(write):
    leaf = flow.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GradientError, match="a leaf Tensor that requires grad is being used in an in-place operation"):
        write(leaf)
    with pytest.raises(GradientError, match="a view of a leaf Tensor that requires grad"):
        write(leaf.view(2, 1).view(2))
    with pytest.raises(GradientError, match="more than one element of the written-to tensor refers to a single memory"):
        write(flow.tensor([1.0]).expand(2))
    frozen = np.zeros(2, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        write(flow.from_numpy(frozen))
    assert leaf.tolist() == [1, 2] and leaf._version == 0 and not frozen.any()
    with flow.no_grad():
        write(leaf)
    assert leaf._version == 1 and leaf.requires_grad


SAVING = {"mul": lambda a: a * a, "exp": lambda a: a.exp(), "matmul": lambda a: a.reshape(1, 2) @ a.reshape(2, 1),
          "sigmoid": lambda a: a.sigmoid(), "relu": lambda a: a.relu(), "div": lambda a: 1 / a}


@pytest.mark.parametrize("write", [lambda x: x.add_(1), lambda x: x.__setitem__(0, 3.0), lambda x: x.data.zero_(),
                                   lambda x: x.detach().zero_(), lambda x: x[:1].mul_(2), lambda x: x.uniform_()],
                         ids="add_ setitem data detach view uniform_".split())
@pytest.mark.parametrize("name", sorted(SAVING))
def test_backward_notices_what_was_changed(name, write):
    w = flow.tensor([1.0, 2.0], requires_grad=True)
    a = w * 1
    y = SAVING[name](a)
    changed = y if name in ("exp", "sigmoid", "relu") else a
    total = y.sum()
    write(changed)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation") as e:
        total.backward()
    assert name in str(e.value) and "version 1" in str(e.value) and "version 0" in str(e.value) and "clone" in str(e.value)


@pytest.mark.parametrize("op", [lambda a: a + 1, lambda a: a * 2, lambda a: a.reshape(2, 1), lambda a: a.sum(),
                                lambda a: a.float(), lambda a: a / flow.tensor([2.0, 2.0], dtype=flow.float64)])
def test_what_backward_does_not_need_may_be_changed(op):
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
    for name, args, low, high in [("uniform_", (2, 3), 2, 3), ("normal_", (), -9, 9), ("exponential_", (), 0, 40),
                                  ("bernoulli_", (0.3,), 0, 1), ("random_", (2, 7), 2, 6), ("trunc_normal_", (), -2, 2)]:
        flow.manual_seed(5)
        a = getattr(flow.zeros(1000), name)(*args)
        flow.manual_seed(5)
        b = getattr(flow.ones(1000), name)(*args)
        assert a.tolist() == b.tolist() and low <= a.min().item() and a.max().item() <= high and a.std().item() > 0


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
