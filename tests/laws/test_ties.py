"""Law: gradients at ties. Binary max and min give half to each; clipping gives all to the clipped value; amax
and amin share equally; max along an axis gives all to the returned index. Checked eagerly, in graphs, in
0.4 jobs, and in forward mode against NumPy definitions.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from flowedu.nn import functional as F

from .calls import few
from .test_programs import Program

SHAPES = [((6,), (6,)), ((2, 3), (3,)), ((3, 1), (1, 4)), ((4,), ())]


@st.composite
def tied_arrays(draw, special=False):
    """Draw two arrays of few distinct values, and the gradient of the result."""
    shapes = draw(st.sampled_from(SHAPES))
    rng = np.random.default_rng(draw(st.integers(0, 2 ** 31)))
    values = [-1.0, 0.0, 1.0, *([np.nan, np.inf] if special else [])]
    a, b = (rng.choice(values, s) for s in shapes)
    return a, b, rng.integers(-4, 5, np.broadcast_shapes(*shapes)) * 0.5


def summed(g, shape):
    """Sum the gradient over the axes that were broadcast from `shape`."""
    g = g.sum(tuple(range(g.ndim - len(shape))))
    return g.sum(tuple(i for i, n in enumerate(shape) if n == 1 and g.shape[i] != 1), keepdims=True)


def halves(a, b, dz, rising):
    """Split dz between both operands: all to the selected one, half each at ties, and to both where one is
    NaN.
    """
    lost_a, lost_b = (a < b, b < a) if rising else (b < a, a < b)
    share = np.where(a == b, dz / 2, dz)
    return [summed(np.where(lost, 0.0, share), x.shape) for lost, x in ((lost_a, a), (lost_b, b))]


def firsts(a, b, dz, rising):
    """Give all to the first operand at ties."""
    with np.errstate(invalid="ignore"):
        first = a >= b if rising else a <= b
    return [summed(np.where(first, dz, 0.0), a.shape), summed(np.where(first, 0.0, dz), b.shape)]


def input_gradients(f, a, b, dz):
    x, y = (flow.tensor(v, dtype=flow.float64, requires_grad=True) for v in (a, b))
    return flow.autograd.grad(f(x, y), (x, y), flow.tensor(dz, dtype=flow.float64))


def assert_gradients_equal(f, want, a, b, dz, rising):
    for got, right in zip(input_gradients(f, a, b, dz), want(a, b, dz, rising), strict=True):
        np.testing.assert_array_equal(got.numpy(), right)


SHARED = {"maximum": (flow.maximum, True), "minimum": (flow.minimum, False), "max": (flow.max, True),
          "min": (flow.min, False), "method": (lambda x, y: x.maximum(y), True),
          "math": (flow.math.maximum, True), "math minimum": (flow.math.minimum, False)}
FIRST = {"fmax": (flow.fmax, True), "fmin": (flow.fmin, False),
         "clamp_min": (lambda x, y: x.clamp(min=y), True), "clamp_max": (lambda x, y: x.clamp(max=y), False),
         "clip_by_value": (lambda x, y: flow.math.clip_by_value(x, y), True)}


@few
@given(data=st.data())
@pytest.mark.parametrize("name", SHARED)
def test_ties_share_the_gradient(name, data):
    f, rising = SHARED[name]
    assert_gradients_equal(f, halves, *data.draw(tied_arrays(special=name != "method")), rising)


@few
@given(data=st.data())
@pytest.mark.parametrize("name", FIRST)
def test_clipping_at_a_bound_passes_the_gradient_to_the_clipped_value(name, data):
    f, rising = FIRST[name]
    assert_gradients_equal(f, firsts, *data.draw(tied_arrays()), rising)


@few
@given(tied_arrays(), st.booleans())
def test_graphs_and_forward_mode_share_equally(case, rising):
    a, b, dz = case
    f = flow.maximum if rising else flow.minimum
    want = halves(a, b, dz, rising)
    x, y = (flow.tensor(v, dtype=flow.float64, requires_grad=True) for v in (a, b))
    got = Program(lambda x, y: flow.autograd.grad((f(x, y) * flow.tensor(dz)).sum(), (x, y)))(x, y)
    for g, right in zip(got, want, strict=True):
        np.testing.assert_array_equal(g.numpy(), right)
    along = [flow.tensor(np.random.default_rng(0).integers(-4, 5, v.shape) * 1.0) for v in (a, b)]
    with np.errstate(invalid="ignore"):
        _, moved = flow.func.jvp(f, (x.detach(), y.detach()), tuple(along))
    np.testing.assert_allclose(float((moved * flow.tensor(dz)).sum()),
                               sum(float((t.numpy() * w).sum()) for t, w in zip(along, want)))


@pytest.mark.parametrize("f, want", [(flow.math.maximum, 0.5), (flow.math.minimum, 0.5),
                                     (lambda x, y: flow.math.clip_by_value(x, 0.0, 1.0), 1.0),
                                     (lambda x, y: flow.nn.hardtanh(x, 0.0, 1.0), 0.0)], ids=range(4))
def test_a_job_shares_equally(f, want):
    """Gradient descent with rate 1: the variable changes by its gradient. Both operands are 0."""
    flow.clear_default_session()

    @flow.global_function(type="train")
    def step() -> tp.Numpy:
        w = flow.get_variable("w", (4,), initializer=flow.zeros_initializer())
        loss = flow.math.reduce_sum(f(w, flow.constant(0.0, flow.float32, (4,))))
        flow.optimizer.SGD(flow.optimizer.PiecewiseConstantScheduler([], [1.0]), momentum=0).minimize(loss)
        return w

    step()
    np.testing.assert_array_equal(step(), np.full(4, -want, np.float32))


@few
@given(tied_arrays())
def test_a_reduction_shares_evenly_and_an_index_gets_all(case):
    a, _, _ = case
    x = flow.tensor(a, requires_grad=True)
    for fold, index, top in ((flow.amax, flow.max, np.max), (flow.amin, flow.min, np.min)):
        tie = a == top(a, -1, keepdims=True)
        got, = flow.autograd.grad(fold(x, -1).sum(), x)
        np.testing.assert_allclose(got.numpy(), tie / tie.sum(-1, keepdims=True))
        found = index(x, -1)
        got, = flow.autograd.grad(found.values.sum(), x)
        np.testing.assert_array_equal(got.numpy(), np.arange(a.shape[-1]) == found.indices.numpy()[..., None])


@pytest.mark.parametrize("x", [-1.0, 1.0])
def test_hardtanh_is_flat_at_its_ends(x):
    x = flow.tensor([x], requires_grad=True)
    assert flow.autograd.grad(F.hardtanh(x).sum(), x)[0].tolist() == [0]


