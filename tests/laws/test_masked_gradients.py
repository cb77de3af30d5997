"""Law: masked elements have gradient 0, even if the gradient of the result there is infinite or NaN."""
import numpy as np
import pytest

import flowedu as flow

from .test_programs import Program

F = flow.nn.functional
X = np.array([-4.0, 0.25, -1.0, 4.0, -0.5, 1.0])
# f(x) is 0 where x is below 0 and x elsewhere; the sqrt after it has an infinite slope at 0
MASKED = {
    "where": lambda x: flow.where(x > 0, x, 0.0),
    "where other": lambda x: flow.where(x < 0, flow.zeros_like(x), x),
    "masked_fill": lambda x: x.masked_fill(x < 0, 0.0), "clamp": lambda x: x.clamp(min=0),
    "clamp both": lambda x: x.clamp(0, 9),
    "maximum": lambda x: flow.maximum(x, flow.zeros_like(x)),
    "minimum": lambda x: -flow.minimum(-x, flow.zeros_like(x)),
    "relu": lambda x: x.relu(), "threshold": lambda x: F.threshold(x, 0, 0), "relu6": lambda x: F.relu6(x),
    "hardtanh": lambda x: F.hardtanh(x, 0, 9),
    "fmax": lambda x: flow.fmax(x, flow.zeros_like(x)),
    "index": lambda x: flow.zeros_like(x).masked_scatter(x > 0, x[x > 0]),
    "set": lambda x: _set(x), "hardshrink": lambda x: F.hardshrink(x.clamp(min=-0.1), 0.2)}
JUMPS = {"floor": flow.floor, "ceil": flow.ceil, "round": flow.round, "sign": flow.sign, "trunc": flow.trunc,
         "floor_divide": lambda x: flow.floor_divide(x, 3.0)}


def _set(x):
    y = x * 1
    y[x < 0] = 0.0
    return y


def gradient_of_root(f, x):
    return flow.autograd.grad(f(x).sqrt().sum(), x)[0]


@pytest.mark.parametrize("name", MASKED)
def test_a_masked_element_has_gradient_zero(name):
    want = np.where(X > 0, 0.5 / np.sqrt(np.abs(X)), 0.0)
    x = flow.tensor(X, requires_grad=True)
    np.testing.assert_allclose(gradient_of_root(MASKED[name], x).numpy(), want, rtol=1e-12)
    if name != "index":                                       # needs the data
        got = Program(lambda x: gradient_of_root(MASKED[name], x))(x)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("name", JUMPS)
def test_step_functions_have_gradient_zero(name):
    """The derivative of floor(x) is 0, whatever follows floor(x)."""
    x = flow.tensor([0.5, -0.5, 2.25, 0.0], dtype=flow.float64, requires_grad=True)
    (JUMPS[name](x) * flow.tensor([float("inf"), float("nan"), 1.0, 2.0],
                                  dtype=flow.float64)).sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 0]
