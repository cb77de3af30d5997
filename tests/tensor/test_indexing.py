"""Law: x[index] and x[index] = value match NumPy (with integers applied first, as PyTorch does), for random
indices of every kind, with gradients and views; and match PyTorch, where it is installed.
"""
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import flowedu as flow

from .meaning import m
from .meaning.kinds import T

few = settings(max_examples=120, deadline=None)


@st.composite
def an_index(draw, shape, advanced=True, steps=(-3, -2, -1, 1, 2, 3)):
    """Draw an index as a function of the array constructor of a library. steps: steps allowed in slices."""
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
            items.append(("tensor", np.array(draw(st.lists(st.integers(-n, n - 1),
                                                           min_size=int(np.prod(size)),
                                                          max_size=int(np.prod(size))))).reshape(size)))
        elif kind == "mask" and n == 2 and not any(isinstance(i, (list, tuple)) for i in items):
            items.append(("tensor", np.array(draw(st.sampled_from([[True, False], [False, True],
                                                                   [True, True]])))))
        else:
            items.append(slice(draw(st.none() | st.integers(-4, 4)), draw(st.none() | st.integers(-4, 4)),
                               draw(st.none() | st.sampled_from(steps))))
        axis += 1
    if items.count(Ellipsis) and draw(st.booleans()):
        items = [i for i in items if i is not Ellipsis]
    return lambda make: tuple(make(i[1]) if isinstance(i, tuple) else i for i in items)


def draw_index(data, advanced, steps=(-3, -2, -1, 1, 2, 3)):
    """Draw (shape, index as above, flat positions of the selected elements)."""
    shape = tuple(data.draw(st.lists(st.integers(0, 4) if not advanced else st.integers(1, 4), min_size=1,
                                     max_size=4)))
    try:
        index = data.draw(an_index(shape, advanced, steps))
        places = T(np.arange(int(np.prod(shape))).reshape(shape))[index(m.tensor)].a
    except IndexError:
        assume(False)
    assume(not advanced or places.size)                  # PyTorch does not check indices into nothing
    return shape, index, places


@few
@given(st.data())
def test_basic_indices_are_views(data):
    shape, index, places = draw_index(data, False, (1, 2, 3))
    x = flow.tensor(np.arange(float(np.prod(shape))).reshape(shape))
    y = x[index(flow.tensor)]
    assert tuple(y.shape) == places.shape
    np.testing.assert_array_equal(y.numpy(), places)
    y.fill_(-7.0)                                       # writing to the view writes to x
    want = np.arange(float(np.prod(shape)))
    want[places] = -7
    np.testing.assert_array_equal(x.numpy().ravel(), want)


@few
@given(st.data())
def test_any_index_reads_its_positions_and_scatters_the_gradient(data):
    shape, index, places = draw_index(data, True)
    a = np.random.default_rng(0).standard_normal(shape)
    x = flow.tensor(a, requires_grad=True)
    y = x[index(flow.tensor)]
    np.testing.assert_array_equal(y.detach().numpy(), a.ravel()[places])
    w = np.random.default_rng(1).standard_normal(places.shape)
    (y * flow.tensor(w)).sum().backward()
    want = np.zeros(a.size)
    np.add.at(want, places, w)
    np.testing.assert_allclose(x.grad.numpy().ravel(), want, rtol=1e-12, atol=1e-12)


@few
@given(st.data())
def test_any_index_writes_its_positions_and_gathers_the_gradient_of_the_value(data):
    shape, index, places = draw_index(data, True)
    assume(len(np.unique(places)) == places.size)        # one value for each position
    a = np.random.default_rng(0).standard_normal(shape)
    v = np.random.default_rng(2).standard_normal(places.shape[data.draw(st.integers(0, places.ndim)):])
    leaf, value = flow.tensor(a, requires_grad=True), flow.tensor(v, requires_grad=True)
    x = leaf * 2
    x[index(flow.tensor)] = value
    want = 2 * a.ravel()
    want[places] = v
    np.testing.assert_array_equal(x.detach().numpy().ravel(), want)
    w = np.random.default_rng(3).standard_normal(shape)
    (x * flow.tensor(w)).sum().backward()
    kept = 2 * w.ravel()
    kept[places] = 0
    np.testing.assert_allclose(leaf.grad.numpy().ravel(), kept, rtol=1e-12)
    share = np.zeros(v.size)
    np.add.at(share, np.broadcast_to(np.arange(v.size).reshape(v.shape), places.shape), w.ravel()[places])
    np.testing.assert_allclose(value.grad.numpy().ravel(), share, rtol=1e-12, atol=1e-12)


@few
@given(st.data())
def test_pytorch_selects_the_same_positions(data):
    torch = pytest.importorskip("torch")
    shape, index, places = draw_index(data, True, (1, 2, 3))
    np.testing.assert_array_equal(torch.arange(int(np.prod(shape))).reshape(shape)[index(
        torch.tensor)].numpy(), places)


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


@pytest.mark.parametrize("index", [
    np.s_[::-1], np.s_[:, ::-2], np.s_[::-1, 1], np.s_[None, 2:0:-1, ..., ::-1], np.s_[0:2:-1],
    np.s_[::-1, [2, 0]], np.s_[[0, 2], ::-1], np.s_[-1:-9:-3, 1:]])
@pytest.mark.parametrize("graph", [False, True])
def test_negative_steps_copy(index, graph):
    """x[::-1].fill_(7) does not change x, like an index list; x[::-1] = value and x[::-1] -= 100 do."""
    def write(x):
        x = x * 1
        x[index].fill_(-7.0)
        x[index] -= 100
        x[index] = x[index] * 2
        return x

    class Write(flow.nn.Graph):
        def build(self, x):
            return write(x)

    want = np.arange(12.0).reshape(3, 4)
    x = flow.tensor(want)
    want[index] = (want[index] - 100) * 2
    np.testing.assert_array_equal((Write() if graph else write)(x).numpy(), want)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0, 3), (3, 1)])
def test_empty_masks_select_nothing(shape):
    """A mask has the size of the axis, or 0, by the array API standard."""
    x = flow.ones(shape)
    for rank in range(1, len(shape) + 1):
        for zeros in range(1, 2 ** rank):
            mask = flow.ones([0 if zeros >> i & 1 else n for i, n in enumerate(shape[:rank])],
                             dtype=flow.bool)
            assert x[mask].shape == (0, *shape[rank:])
            x[mask] = 5.0
            assert (x == 1).all()


def test_leaves_that_require_grad_are_not_written():
    leaf = flow.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[0] = 1
    with flow.no_grad():
        leaf[0] = 5
    assert leaf.tolist() == [5, 1, 1]


@pytest.mark.parametrize("index, words", [
    (3, "out of range"), ((0, 9), "out of range"), ((0, 0, 0), "Too many indices for tensor of dimension 2"),
    (1.0, "Invalid index float"), ("x", "Invalid index str"), (slice(None, None, 0), "step cannot be zero"),
    ([5], "out of range"), (np.array([True]), "shape of the mask"), (([0, 1], [0, 1, 2]),
                                                                     "could not be broadcast"),
    (flow.tensor([1.0]), "must be long, int, byte or bool"), ((Ellipsis, Ellipsis), "single ellipsis")])
def test_invalid_indices_are_refused(index, words):
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
