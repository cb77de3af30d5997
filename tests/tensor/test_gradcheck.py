"""Law: gradcheck accepts correct gradients and detects a wrong element of any output. jacobian, hessian, vjp,
and jvp equal NumPy formulas.
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu.autograd import functional as A
from flowedu.autograd import gradcheck, gradgradcheck
from flowedu.errors import FlowError

RNG = np.random.default_rng(0)
M, X, Y = RNG.standard_normal((4, 3)), RNG.standard_normal(3), RNG.standard_normal(3)


def require_gradient(a):
    return flow.tensor(a, requires_grad=True)


def off_by_one_entry(row, column, amount=0.1):
    """Computes y = M x with a Jacobian that is wrong in one entry."""
    wrong = M.copy()
    wrong[row, column] += amount

    class Product(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return flow.tensor(M) @ x

        @staticmethod
        def backward(ctx, dy):
            return flow.tensor(wrong.T) @ dy

    return Product.apply


@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize("column", range(3))
def test_one_wrong_entry_is_detected(row, column):
    f = off_by_one_entry(row, column)
    with pytest.raises(FlowError, match="output 0 with respect to input 0") as e:
        gradcheck(f, require_gradient(X))
    assert f"d output[{row}] / d input[{column}]" in str(e.value)
    assert gradcheck(f, require_gradient(X), raise_exception=False) is False
    assert gradcheck(f, require_gradient(X), atol=0.2), "but not when that is within the tolerance"
    assert gradcheck(off_by_one_entry(row, column, 0.0), require_gradient(X))


def test_the_wrong_output_and_input_are_named():
    good, bad = (lambda x: x * x), off_by_one_entry(2, 1)
    with pytest.raises(FlowError, match="output 1 with respect to input 1"):
        gradcheck(lambda x, y: (good(x), good(x).sum() + bad(y)), (require_gradient(X), require_gradient(Y)))
    assert gradcheck(lambda x, y: (good(x), bad(x.detach()) * 0 + good(y).sum()),
                     (require_gradient(X), require_gradient(Y)))
    with pytest.raises(FlowError, match="Jacobian mismatch"):
        gradcheck(lambda x: (x * x).detach(), require_gradient(X))          # a missing gradient is wrong


def test_a_large_relative_error_of_small_values_is_detected():
    def scale(factor):
        return (lambda x: x * 1e-4 * factor)

    class Double(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1e-4

        @staticmethod
        def backward(ctx, dy):
            return dy * 2e-4

    assert gradcheck(scale(1), require_gradient(X))
    with pytest.raises(FlowError):
        gradcheck(Double.apply, require_gradient(X), atol=1e-6)


def test_second_derivatives():
    class Cube(flow.autograd.Function):
        """Cube with a correct first derivative, whose own derivative is detached."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, dy):
            x, = ctx.saved_tensors
            return dy * 3 * (x * x).detach()

    assert gradcheck(Cube.apply, require_gradient(X))
    with pytest.raises(FlowError, match="Jacobian mismatch"):
        gradgradcheck(Cube.apply, require_gradient(X))
    assert (gradgradcheck(lambda x: x ** 3, require_gradient(X)) and gradgradcheck(lambda x, y: (x * y).sin(),
                                                                                   (require_gradient(X),
                                                                                    require_gradient(Y))))


# f(x) = M x^2, elementwise g(x, y) = x y^2
def F(x):
    return flow.tensor(M) @ (x * x)


def G(x, y):
    return x * y * y


JF, GX, GY = M * 2 * X, np.diag(Y * Y), np.diag(2 * X * Y)


def assert_close_derivative(got, want):
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-12)


def test_jacobians():
    assert_close_derivative(A.jacobian(F, flow.tensor(X)), JF)
    a, b = A.jacobian(G, (flow.tensor(X), flow.tensor(Y)))
    assert_close_derivative(a, GX)
    assert_close_derivative(b, GY)
    (a, b), (c, d) = A.jacobian(lambda x, y: (G(x, y), x.sum()), (flow.tensor(X), flow.tensor(Y)))
    assert_close_derivative(a, GX)
    assert_close_derivative(b, GY)
    assert_close_derivative(c, np.ones(3))
    assert_close_derivative(d, np.zeros(3))
    with pytest.raises(ValueError, match="independent"):
        A.jacobian(lambda x, y: x * 1, (flow.tensor(X), flow.tensor(Y)), strict=True)
    assert_close_derivative(A.jacobian(lambda x: x.sum(), flow.tensor(M)), np.ones((4, 3)))
    assert tuple(A.jacobian(lambda x: x @ x.T, flow.tensor(M)).shape) == (4, 4, 4, 3)


def test_hessians():
    def total(x, y):
        return G(x, y).sum()

    (xx, xy), (yx, yy) = A.hessian(total, (flow.tensor(X), flow.tensor(Y)))
    assert_close_derivative(xx, np.zeros((3, 3)))
    assert_close_derivative(xy, np.diag(2 * Y))
    assert_close_derivative(yx, np.diag(2 * Y))
    assert_close_derivative(yy, np.diag(2 * X))
    assert_close_derivative(A.hessian(lambda x: (F(x) * F(x)).sum(), flow.tensor(X)),
                            2 * JF.T @ JF + 2 * np.diag(2 * M.T @ (M @ (X * X))))
    with pytest.raises(ValueError, match="not one number"):
        A.hessian(F, flow.tensor(X))


def test_products_with_vectors():
    u, v = RNG.standard_normal(3), RNG.standard_normal(4)
    y, got = A.vjp(F, flow.tensor(X), flow.tensor(v))
    assert_close_derivative(y, M @ (X * X))
    assert_close_derivative(got, v @ JF)
    y, got = A.jvp(F, flow.tensor(X), flow.tensor(u))
    assert_close_derivative(y, M @ (X * X))
    assert_close_derivative(got, JF @ u)
    y, (a, b) = A.vjp(G, (flow.tensor(X), flow.tensor(Y)), flow.tensor(u))
    assert_close_derivative(a, u @ GX)
    assert_close_derivative(b, u @ GY)
    y, got = A.jvp(G, (flow.tensor(X), flow.tensor(Y)), (flow.tensor(u), flow.tensor(2 * u)))
    assert_close_derivative(got, GX @ u + 2 * GY @ u)


def test_a_graph_through_them():
    x = require_gradient(X)
    j = A.jacobian(lambda x: x ** 3, x, create_graph=True)
    assert_close_derivative(flow.autograd.grad(j.sum(), x)[0], 6 * X)
    _, got = A.vjp(F, x, flow.ones(4, dtype=flow.float64), create_graph=True)
    assert_close_derivative(flow.autograd.grad(got.sum(), x)[0], 2 * M.sum(0))
    assert not A.vjp(F, x, flow.ones(4, dtype=flow.float64))[1].requires_grad
