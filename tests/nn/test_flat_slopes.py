"""Piecewise linear activations, pools, and nll_loss: their second derivative is 0, and does not raise "not in
the graph".
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.errors import GradientError
from flowedu.nn import functional as F

STRAIGHT = {"relu": F.relu, "relu6": F.relu6, "leaky_relu": F.leaky_relu, "rrelu": F.rrelu,
            "hardsigmoid": F.hardsigmoid,
            "hardtanh": F.hardtanh, "hardshrink": F.hardshrink, "softshrink": F.softshrink, "abs": flow.abs,
            "threshold": lambda x: F.threshold(x, 0.1, 2.0),
            "prelu": lambda x: F.prelu(x, flow.tensor([0.25], dtype=x.dtype)),
            "method": lambda x: x.relu(), "in place": lambda x: (x * 1).relu_()}

def _plane(pool, d):
    """Pool a row of values, as an image with d axes."""
    return lambda x: pool(F.pad(x.reshape(1, 1, *(1,) * (d - 1), -1), (0, 5 - x.shape[0])))


def _pool(kind, d):
    return _plane(lambda x: getattr(F, f"{kind}_pool{d}d")(x, (1,) * (d - 1) + (2,)), d)


POOLS = {**{f"{kind} {d}": _pool(kind, d) for kind in ("max", "avg") for d in (1, 2, 3)},
         "adaptive_max": _plane(lambda x: F.adaptive_max_pool2d(x, (1, 2)), 2),
         "adaptive_avg": _plane(lambda x: F.adaptive_avg_pool2d(x, (1, 2)), 2),
         "nll_loss": lambda x: F.nll_loss(x.reshape(1, -1), flow.tensor([0])),
         "nll_loss of many": lambda x: F.nll_loss(x.reshape(-1, 1), flow.zeros(x.shape[0]).long(),
                                                  reduction="sum")}
numbers = st.lists(st.floats(-9, 9).map(lambda v: v + 1e-3), min_size=1, max_size=5)


@pytest.mark.parametrize("name", [*STRAIGHT, *POOLS])
@given(values=numbers)
def test_the_second_derivative_is_zero(name, values):
    f = {**STRAIGHT, **POOLS}[name]
    x = flow.tensor(values, dtype=flow.float64, requires_grad=True)
    for before in (lambda x: x, lambda x: x * 2):  # for a leaf and for a computed value
        first, = flow.autograd.grad(f(before(x)).sum(), x, create_graph=True)
        assert first.requires_grad
        for allowed in (False, True):
            second, = flow.autograd.grad(first.sum(), x, retain_graph=True, allow_unused=allowed)
            np.testing.assert_array_equal(second.numpy(), np.zeros(len(values)))
    hessian = flow.autograd.functional.hessian(lambda x: f(x).sum(), x)
    np.testing.assert_array_equal(hessian.numpy(), np.zeros((len(values),) * 2))


@pytest.mark.parametrize("name", STRAIGHT)
def test_a_gradient_penalty_has_gradients_for_all_parameters(name):
    """The derivative of the penalty by a bias before an activation is 0. The last bias is not in the graph,
    which raises.
    """
    flow.manual_seed(1)
    one, two = flow.nn.Linear(3, 4), flow.nn.Linear(4, 1)
    x = flow.randn(5, 3, requires_grad=True)
    slope, = flow.autograd.grad(two(STRAIGHT[name](one(x))).sum(), x, create_graph=True)
    penalty = (slope.norm(dim=1) - 1).square().sum()
    found = flow.autograd.grad(penalty, [one.weight, one.bias, two.weight], retain_graph=True)
    assert [tuple(g.shape) for g in found] == [(4, 3), (4,), (1, 4)] and not found[1].any()
    assert found[0].any() and found[2].any()
    with pytest.raises(GradientError, match="not have been used"):
        flow.autograd.grad(penalty, two.bias, retain_graph=True)
    assert flow.autograd.grad(penalty, two.bias, allow_unused=True) == (None,)
