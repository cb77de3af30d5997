"""Laws of put, index_reduce, and fill_diagonal_ against loops, of memory sharing between copies, and of
quotient dtypes.
"""
import copy
import itertools

import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import ArgumentError, FlowError, ShapeError


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
def test_put(dtype, accumulate):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    index, values = np.array([[4, -6], [1, -1]]), np.array([[10, 20], [30, 40]]).astype(dtype)
    want = x.copy().reshape(-1)
    for i, v in zip(index.ravel(), values.ravel()):
        want[i] = want[i] + v if accumulate else v
    t = flow.tensor(x).t().contiguous().t()  # non-contiguous: positions count logical elements
    got = t.put(flow.tensor(index), flow.tensor(values), accumulate)
    np.testing.assert_array_equal(got.numpy(), want.reshape(2, 3))
    assert t.put_(flow.tensor(index), flow.tensor(values), accumulate) is t and flow.equal(t, got)
    for bad in ((flow.tensor([6]), flow.tensor(values)[:1, 0]), (flow.tensor([0]), flow.tensor(values))):
        with pytest.raises(FlowError):
            t.put(*bad)


def test_put_has_a_gradient():
    x, v = (flow.ones(n, requires_grad=True) for n in (4, 2))
    y = x.put(flow.tensor([1, 3]), v * 2)
    (y * flow.arange(4.0)).sum().backward()
    assert x.grad.tolist() == [0, 0, 2, 0] and v.grad.tolist() == [2, 6]


FOLDS = {"prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("reduce", FOLDS)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_reduce(dim, reduce, include_self):
    rng = np.random.default_rng(0)
    x, index = rng.standard_normal((4, 5)), np.array([2, 0, 2])
    source = rng.standard_normal((3, 5) if dim == 0 else (4, 3))
    want = x.copy()
    for i in set(index.tolist()):
        parts = [np.take(x, i, dim)] * include_self + [np.take(source, j, dim) for j in range(3)
                                                       if index[j] == i]
        np.moveaxis(want, dim, 0)[i] = FOLDS[reduce](np.stack(parts), axis=0)
    args = (dim, flow.tensor(index), flow.tensor(source), reduce)
    t = flow.tensor(x)
    np.testing.assert_allclose(t.index_reduce(*args, include_self=include_self).numpy(), want, rtol=1e-14)
    assert t.index_reduce_(*args, include_self=include_self) is t
    np.testing.assert_allclose(t.numpy(), want, rtol=1e-14)
    with pytest.raises(ArgumentError, match="unknown reduce"):
        t.index_reduce(dim, flow.tensor(index), flow.tensor(source), "sum")
    with pytest.raises(ShapeError, match="does not fit"):
        t.index_reduce(dim, flow.tensor(index), flow.tensor(source)[:2, :2], reduce)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (7, 2), (8, 3), (3, 3, 3)])
def test_fill_diagonal(shape, wrap):
    want = np.zeros(shape)
    if len(shape) == 2:
        np.fill_diagonal(want, 5, wrap=wrap)
    else:
        for i in range(shape[0]):
            want[(i,) * len(shape)] = 5
    for t in (flow.zeros(*shape), flow.zeros(*shape[::-1]).permute(*range(len(shape))[::-1])):
        assert t.fill_diagonal_(5, wrap) is t
        np.testing.assert_array_equal(t.numpy(), want)
    x = flow.ones(*shape, requires_grad=True)
    (x * 2).fill_diagonal_(7.0, wrap).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * (want == 0))
    for bad in (flow.zeros(3), flow.zeros(2, 3, 3)):
        with pytest.raises(ShapeError, match="no diagonal"):
            bad.fill_diagonal_(1)


VIEWS = {"row": lambda a: a[1], "column": lambda a: a[:, 2], "transposed": lambda a: a.t(),
         "detached": lambda a: a.detach(), "flat": lambda a: a.flatten(),
         "view of a view": lambda a: a[1:][0, 2:],
         "strided": lambda a: a[::2, ::2], "expanded": lambda a: a[0].expand(2, 4), "the same": lambda a: a}


@pytest.mark.parametrize("order", ["base first", "view first"])
@pytest.mark.parametrize("name", VIEWS)
def test_deep_copies_share_memory_as_their_originals(name, order):
    """A write into one copy shows in the other copies exactly as it would in the originals, which do not
    change.
    """
    a = flow.arange(12.0).reshape(3, 4).clone()
    tensors = [a, VIEWS[name](a)]
    tensors = tensors if order == "base first" else tensors[::-1]
    before = [t.clone() for t in tensors]
    copies = copy.deepcopy(tensors)
    assert all(flow.equal(x, y) for x, y in zip(tensors, copies))
    base = copies[0 if order == "base first" else 1]
    base.add_(100)
    if name != "detached" or order == "base first":  # a detached tensor does not refer to its base
        assert all(flow.equal(x + 100, y) for x, y in zip(before, copies))
    assert all(flow.equal(x, y) for x, y in zip(before, tensors))
    assert all(y.is_leaf and y.node is None for y in copies)


def test_a_deep_copy_of_a_view_alone():
    a = flow.arange(6.0).reshape(2, 3)
    y = copy.deepcopy(a[1])
    y.fill_(9)
    assert a.tolist() == [[0, 1, 2], [3, 4, 5]] and y.tolist() == [9, 9, 9]


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "int64"])
def test_the_dtype_of_a_quotient(dtype, mode):
    """With a rounding_mode, the dtype is that of a product; without, integers give the default float
    dtype.
    """
    x = flow.tensor([7, -7, 3]).to(getattr(flow, dtype))
    others = [2, 2.5, True, flow.tensor(2), flow.tensor([2, 2, 2]), flow.tensor(2.5),
              flow.tensor([2, 3, 1], dtype=flow.int32)]
    for f, other in itertools.product((flow.div, flow.Tensor.div), others):
        want = (x * other).dtype
        if mode is None and not want.is_floating_point:
            want = flow.float32
        y = f(x, other, rounding_mode=mode)
        assert y.dtype is want, other
        if mode is not None:
            exact = x.double().numpy() / np.asarray(other if not isinstance(other, flow.Tensor)
                                                    else other.double().numpy())
            assert y.tolist() == (np.trunc(exact) if mode == "trunc" else np.floor(exact)).tolist()
