"""Law: x[index] and x[index] = value do what PyTorch does, for drawn indices of every kind, with gradients and views."""
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import flowedu as flow  # noqa: E402

few = settings(max_examples=120, deadline=None)


@st.composite
def an_index(draw, shape, advanced=True):
    """An index as (for flowedu, for PyTorch)."""
    items, axis = [], 0
    dots = draw(st.integers(-1, len(shape)))
    while axis < len(shape):
        if axis == dots:
            dots = -1
            items.append(Ellipsis)
            axis += draw(st.integers(0, 1))
            if axis < len(shape) and draw(st.booleans()):
                break
            continue
        n = shape[axis]
        kind = draw(st.sampled_from(["slice", "slice", "int", "none", "stop"] + (["list", "tensor",
            "mask"] if advanced else [])))
        if kind == "stop":
            break
        if kind == "none":
            if len(shape) + sum(i is None for i in items) < 6:
                items.append(None)
            continue
        if kind == "int" and n:
            items.append(draw(st.integers(-n, n - 1)))
        elif kind == "list" and n:
            items.append(draw(st.lists(st.integers(-n, n - 1), min_size=2, max_size=2)))
        elif kind == "tensor" and n:
            size = draw(st.sampled_from([(2,), (1, 2), (3, 1)]))
            items.append(("tensor", np.array(draw(st.lists(st.integers(-n, n - 1), min_size=int(np.prod(size)),
                                                          max_size=int(np.prod(size))))).reshape(size)))
        elif kind == "mask" and n == 2 and not any(isinstance(i, (list, tuple)) for i in items):
            items.append(("tensor", np.array(draw(st.sampled_from([[True, False], [False, True], [True, True]])))))
        else:
            items.append(slice(draw(st.none() | st.integers(-4, 4)), draw(st.none() | st.integers(-4, 4)),
                               draw(st.none() | st.integers(1, 3))))
        axis += 1
    if items.count(Ellipsis) and draw(st.booleans()):
        items = [i for i in items if i is not Ellipsis]
    make = lambda m: tuple(m.tensor(i[1]) if isinstance(i, tuple) else i for i in items)
    return make(flow), make(torch)


def both(data, advanced):
    shape = tuple(data.draw(st.lists(st.integers(0, 4) if not advanced else st.integers(1, 4), min_size=1, max_size=4)))
    try:
        ours, theirs = data.draw(an_index(shape, advanced))
        found = torch.zeros(shape)[theirs]
        assume(not advanced or found.numel())            # of nothing PyTorch does not look at the indices
    except (IndexError, RuntimeError):
        assume(False)
    return shape, ours, theirs


@few
@given(st.data())
def test_basic_indices_are_views(data):
    shape, ours, theirs = both(data, False)
    a = np.arange(float(np.prod(shape))).reshape(shape)
    x, t = flow.tensor(a), torch.tensor(a)
    y, u = x[ours], t[theirs]
    assert tuple(y.shape) == tuple(u.shape)
    np.testing.assert_array_equal(y.numpy(), u.numpy())
    y.fill_(-7.0)                                       # writing into the view writes into x
    u.fill_(-7.0)
    np.testing.assert_array_equal(x.numpy(), t.numpy())


@few
@given(st.data())
def test_any_index_reads_what_torch_reads(data):
    shape, ours, theirs = both(data, True)
    a = np.random.default_rng(0).standard_normal(shape)
    x, t = flow.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    y, u = x[ours], t[theirs]
    assert tuple(y.shape) == tuple(u.shape)
    np.testing.assert_array_equal(y.detach().numpy(), u.detach().numpy())
    w = np.random.default_rng(1).standard_normal(tuple(u.shape))
    (y * flow.tensor(w)).sum().backward()
    (u * torch.tensor(w)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-12, atol=1e-12)


@few
@given(st.data())
def test_any_index_writes_what_torch_writes(data):
    shape, ours, theirs = both(data, True)
    a = np.random.default_rng(0).standard_normal(shape)
    size = tuple(torch.tensor(a)[theirs].shape)
    places = torch.arange(a.size).reshape(shape)[theirs]
    assume(places.unique().numel() == places.numel())    # one value for each place
    cut = data.draw(st.integers(0, len(size)))
    v = np.random.default_rng(2).standard_normal(size[cut:])
    leaf, twin = flow.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    value, other = flow.tensor(v, requires_grad=True), torch.tensor(v, requires_grad=True)
    x, t = leaf * 2, twin * 2
    x[ours] = value
    t[theirs] = other
    np.testing.assert_array_equal(x.detach().numpy(), t.detach().numpy())
    w = np.random.default_rng(3).standard_normal(shape)
    (x * flow.tensor(w)).sum().backward()
    (t * torch.tensor(w)).sum().backward()
    for p, q in ((leaf, twin), (value, other)):
        g = np.zeros(p.shape) if p.grad is None else p.grad.numpy()
        np.testing.assert_allclose(g, q.grad.numpy(), rtol=1e-12, atol=1e-12)


def test_assignment_casts_and_broadcasts():
    x = flow.zeros(2, 3, dtype=flow.int64)
    x[0] = 2.7
    x[1, 1:] = flow.tensor([[1.9, -1.9]])                # leading axes of size 1 are dropped
    assert x.tolist() == [[2, 2, 2], [0, 1, -1]]
    x[:, 0] = flow.tensor(True)
    assert x[:, 0].tolist() == [1, 1]
    x[x > 1] = 0
    assert x.tolist() == [[1, 0, 0], [1, 1, -1]]
    x[[0, 1], [0, 2]] += 5
    assert x.tolist() == [[6, 0, 0], [1, 1, 4]]
    x[...] = 1
    x[1:, :2] *= 3
    assert x.tolist() == [[1, 1, 1], [3, 3, 1]]


def test_a_chain_of_views_writes_through():
    b = flow.zeros(3, 2)
    b[0][1] = 8
    b[1] += 5
    b.t()[0, 2] = 1
    assert b.tolist() == [[0, 8], [5, 5], [1, 0]]


def test_leaves_that_require_grad_are_not_written():
    leaf = flow.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[0] = 1
    with flow.no_grad():
        leaf[0] = 5
    assert leaf.tolist() == [5, 1, 1]


@pytest.mark.parametrize("index, words", [
    (3, "out of range"), ((0, 9), "out of range"), ((0, 0, 0), "Too many indices for tensor of dimension 2"),
    (1.0, "Invalid index float"), ("x", "Invalid index str"), (slice(None, None, -1), "step must be greater than zero"),
    ([5], "out of range"), (np.array([True]), "shape of the mask"), (([0, 1], [0, 1, 2]), "could not be broadcast"),
    (flow.tensor([1.0]), "must be long, int, byte or bool"), ((Ellipsis, Ellipsis), "single ellipsis")])
def test_messages(index, words):
    with pytest.raises((IndexError, ValueError), match=words) as e:
        flow.ones(3, 4)[index]
    assert e.value.expected and e.value.got and e.value.fix and "test_indexing.py" in e.value.at


def test_a_graph_assigns_out_of_place():
    class Write(flow.nn.Graph):
        def build(self, x, v):
            y = x * 1
            y[1:, ::2] = v
            y[0] = 7
            y[[0, 1], [1, 1]] = -1.0
            return y * 1

    x, v = np.arange(12.0).reshape(3, 4), np.array([100.0, 200.0])
    want = x.copy()
    want[1:, ::2] = v
    want[0] = 7
    want[[0, 1], [1, 1]] = -1
    np.testing.assert_array_equal(Write()(flow.tensor(x), flow.tensor(v)).numpy(), want)
