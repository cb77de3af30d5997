"""Law: a Function with forward(*args) and setup_context equals the same Function with forward(ctx, *args)."""
import pytest

import flowedu as flow
from flowedu.errors import CallError, GradientError


def functions():
    """Yield pairs of Functions: forward takes ctx, or leaves it to setup_context."""
    class Scale(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            y = x * k
            ctx.k = k
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, False)
            return g * ctx.k + 0 * (x + y), None

    class SplitScale(Scale):
        @staticmethod
        def forward(x, k):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.k = inputs
            ctx.save_for_backward(x, output)

    class InPlace(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.mark_dirty(x)
            ctx.k = k
            return x.mul_(k)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    class SplitInPlace(InPlace):
        @staticmethod
        def forward(x, k):
            return x.mul_(k)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])
            ctx.k = inputs[1]

    class Two(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            order = x.argsort()
            ctx.mark_non_differentiable(order)
            ctx.save_for_backward(order)
            return x[order] * k, order

        @staticmethod
        def backward(ctx, g, _):
            order, = ctx.saved_tensors
            return flow.zeros_like(g).scatter(0, order, g * 3), None

    class SplitTwo(Two):
        @staticmethod
        def forward(x, k):
            order = x.argsort()
            return x[order] * k, order

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(output[1])

    return {"scale": (Scale, SplitScale), "in place": (InPlace, SplitInPlace), "two outputs": (Two, SplitTwo)}


@pytest.mark.parametrize("name", functions())
@pytest.mark.parametrize("call", [lambda f, *args: f.apply(*args), lambda f, *args: f()(*args)])
def test_both_forms_agree(name, call):
    results = []
    for f in functions()[name]:
        x = flow.tensor([3.0, 1.0, 2.0], requires_grad=True)
        y = call(f, x * 1, 3.0)
        first = y[0] if isinstance(y, tuple) else y
        (first * flow.arange(3.0)).sum().backward()
        results.append((first.detach().tolist(), x.grad.tolist()))
        with flow.no_grad():
            assert not call(f, x * 1, 3.0)[0].requires_grad
    assert results[0] == results[1]


def test_setup_context_alone_is_refused():
    class OnlyContext(flow.autograd.Function):
        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    with pytest.raises(CallError, match="forward is not defined"):
        OnlyContext.apply()
    with pytest.raises(CallError, match="setup_context is not defined"):
        flow.autograd.Function.setup_context(None, (), None)


def test_second_derivatives():
    _, split = functions()["scale"]
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    g, = flow.autograd.grad(split.apply(x, 3.0).square().sum(), x, create_graph=True)
    assert flow.autograd.grad(g.sum(), x)[0].tolist() == [18.0, 18.0]
    y = split.apply(x, 3.0).sum()
    y.backward()
    with pytest.raises(GradientError, match="freed"):
        y.backward()
