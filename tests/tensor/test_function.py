"""autograd.Function: operations with a custom backward."""
import gc

import numpy as np
import pytest

import flowedu as flow
from common import leaf
from flowedu.errors import CallError, GradientError

Function = flow.autograd.Function


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, dy):
        x, = ctx.saved_tensors
        return 3 * x * x * dy


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        return ctx.saved_variables[0] * dy               # attribute of old OneFlow programs


def test_values_gradients_and_names():
    x = leaf(1.0, 2.0)
    y = Cube.apply(x)
    assert y.tolist() == [1, 8] and y.requires_grad and y.grad_fn.name() == "Cube_backward"
    assert y.grad_fn.next_functions[0][0].variable is x
    y.sum().backward()
    assert x.grad.tolist() == [3, 12]
    assert not Cube.apply(x.detach()).requires_grad
    with flow.no_grad():
        assert not Cube.apply(x).requires_grad


@pytest.mark.parametrize("f", [Cube, Exp])
def test_derivatives_of_every_order(f):
    x = leaf(0.3, -0.7)
    assert flow.autograd.gradcheck(f.apply, x) and flow.autograd.gradgradcheck(f.apply, x)
    g, = flow.autograd.grad((f.apply(x) * x).sum(), x, create_graph=True)
    h, = flow.autograd.grad(g.sum(), x, create_graph=True)
    k, = flow.autograd.grad(h.sum(), x)
    a = x.detach().numpy()
    np.testing.assert_allclose(k.numpy(), 24 * a if f is Cube else np.exp(a) * (a + 3))


def test_several_outputs_other_arguments_and_missing_gradients():
    class Split(Function):
        @staticmethod
        def forward(ctx, x, scale, name, y):
            assert ctx.needs_input_grad == (True, False, False, False) and name == "n"
            ctx.scale = scale
            index = x.argmax()
            ctx.mark_non_differentiable(index)
            return x * scale, index, x + y

        @staticmethod
        def backward(ctx, a, index, b):
            assert a is not None and b is not None
            return a * ctx.scale + b, None, None, None

    x = leaf(1.0, 3.0)
    a, index, b = Split.apply(x, 5, "n", flow.tensor([1.0, 1.0], dtype=flow.float64))
    assert index.item() == 1 and not index.requires_grad and b.tolist() == [2, 4]
    a.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [5, 5]
    (a + b).sum().backward()
    assert x.grad.tolist() == [11, 11]


def test_unused_outputs():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a is None, b is None))
            return b * 2

    x = leaf(1.0)
    Two.apply(x)[1].sum().backward()
    assert seen == [(True, False)] and x.grad.item() == 2


def test_returned_inputs_and_inputs_changed_in_place():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, dy):
            return dy * 7

    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx, dy):
            return dy * 2

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x
    y.sum().backward()
    assert x.grad.item() == 7 and x.is_leaf
    x.grad = None
    a = x * 3
    b = Twice.apply(a)
    assert b is a and a.tolist() == [6]
    (a * a).sum().backward()
    assert x.grad.item() == 72


def test_invalid_functions_are_refused():
    class Count(Cube):
        @staticmethod
        def backward(ctx, dy):
            return dy, dy

    class Kind(Cube):
        @staticmethod
        def backward(ctx, dy):
            return "gradient"

    class Shape(Cube):
        @staticmethod
        def backward(ctx, dy):
            return flow.ones(5)

    x = leaf(1.0, 2.0)
    for f, text in [(Count, "incorrect number of gradients"), (Kind, "something else than a tensor"),
                    (Shape, "invalid gradient at index 0"), (Function, "forward is not defined")]:
        with pytest.raises((GradientError, CallError), match=text):
            f.apply(x).sum().backward()
    y = Cube.apply(x).sum()
    y.backward()
    with pytest.raises(GradientError, match="Cube_backward.*released"):
        y.backward()
    a = x * 1
    y = Cube.apply(a).sum()
    a.add_(1)
    with pytest.raises(GradientError, match="modified by an inplace operation: Cube saved"):
        y.backward()
    with pytest.raises(CallError, match="can only save"):
        type("Bad", (Function,), {"forward": staticmethod(lambda ctx, x: ctx.save_for_backward(3))}).apply(x)


def test_once_differentiable():
    from flowedu.autograd.function import once_differentiable

    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, dy):
            return flow.from_numpy(2 * ctx.saved_tensors[0].detach().numpy() * dy.detach().numpy())

    x = leaf(3.0)
    Once.apply(x).sum().backward()
    assert x.grad.item() == 6
    g, = flow.autograd.grad((Once.apply(x) * x).sum(), x, create_graph=True)
    with pytest.raises(GradientError, match="once_differentiable"):
        flow.autograd.grad(g.sum(), x)


def test_checkpointing_by_a_backward_inside_backward():
    class Again(Function):
        @staticmethod
        def forward(ctx, f, x):
            ctx.f = f
            ctx.save_for_backward(x)
            return f(x)

        @staticmethod
        def backward(ctx, dy):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with flow.enable_grad():
                y = ctx.f(x)
            y.backward(dy)
            return None, x.grad

    w, x = leaf(2.0), leaf(1.5)
    y = Again.apply(lambda h: (h * w).tanh(), x * 2)
    (y * 3).sum().backward()
    d = 3 * (1 - np.tanh(6) ** 2)
    np.testing.assert_allclose([w.grad.item(), x.grad.item()], [d * 3, d * 4])


def test_views_made_inside_belong_to_the_function():
    class Row(Function):
        @staticmethod
        def forward(ctx, x):
            return x[0]

        @staticmethod
        def backward(ctx, dy):
            return flow.stack([dy * 10, dy * 0])

    x = flow.tensor(np.ones((2, 3)), requires_grad=True)
    y = Row.apply(x)
    assert y._base is None
    y.sum().backward()
    assert x.grad.tolist() == [[10] * 3, [0] * 3]


def test_function_calls_leak_nothing():
    def work():
        x = leaf(*np.ones(100))
        y = Exp.apply(Cube.apply(x))
        y.sum().backward()

    work()
    gc.collect()
    gc.disable()
    try:
        live = flow.memory_stats()["live"]
        for _ in range(10):
            work()
        assert flow.memory_stats()["live"] == live
    finally:
        gc.enable()


def test_calling_an_instance_equals_apply():
    """Cube()(x) equals Cube.apply(x), up to the second derivative; attributes of the instance have no
    effect.
    """
    class Scaled(Cube):
        def __init__(self, name):
            self.name = name

    for f in (Cube(), Scaled("mine"), Cube.apply):
        x = leaf(1.0, -2.0)
        y = f(x)
        first, = flow.autograd.grad(y.sum(), x, create_graph=True)
        second, = flow.autograd.grad(first.sum(), x)
        assert [t.tolist() for t in (y, first, second)] == [[1, -8], [3, 12], [6, -12]]
    assert not Cube()(leaf(1.0).detach()).requires_grad


class Write(Function):
    """In-place op with a custom backward: WRITES[name][0]."""

    @staticmethod
    def forward(ctx, x, name, *others):
        ctx.name = name
        ctx.save_for_backward(*others)
        ctx.mark_dirty(x)
        WRITES[name][0](x, *others)
        return x

    @staticmethod
    def backward(ctx, g):
        return WRITES[ctx.name][1](g, *ctx.saved_tensors)


WRITES = {
    "mul_": (lambda x: x.mul_(3), lambda g: (g * 3, None)),
    "add_": (lambda x, w: x.add_(w), lambda g, w: (g, None, g.sum().reshape(w.shape))),
    "zero_": (lambda x: x.zero_(), lambda g: (flow.zeros_like(g), None)),
    "scale": (lambda x, w: x.mul_(w.detach()), lambda g, w: (g * w, None, None)),
}
VIEWS = {
    "whole": lambda z: z, "row": lambda z: z[0], "column": lambda z: z[:, 1], "transposed": lambda z: z.t(),
    "narrowed": lambda z: z.narrow(1, 1, 2), "chunk": lambda z: z.chunk(2, 1)[1],
    "steps": lambda z: z[:, ::2],
    "unsqueezed": lambda z: z.unsqueeze(0), "reshaped": lambda z: z.reshape(6),
    "diagonal": lambda z: z.diagonal(),
    "view of a view": lambda z: z[1].narrow(0, 1, 2), "view of a transposed view": lambda z: z.t()[1:][0],
    "one number": lambda z: z[1, 2],
}
READS = {
    "the base": lambda z, v, old: z.square().sum(),
    "the view": lambda z, v, old: v.square().sum(),
    "both": lambda z, v, old: z.square().sum() + v.pow(3).sum(),
    "an older view": lambda z, v, old: old.square().sum(),
    "a later view": lambda z, v, old: z[:, 1:].square().sum() + old.sum(),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_writes_into_views_have_the_gradient_of_the_same_built_in_write(view, name):
    for read in READS.values():
        gradients = []
        for custom in (False, True):
            x, w = leaf([1.0, 2.0, 3.0], [-4.0, 5.0, 6.0]), leaf(1.5)[0]
            z = x * 2
            old, v = z[0:2], VIEWS[view](z)
            others = (w,) if name in ("add_", "scale") else ()
            if custom:
                v = Write.apply(v, name, *others)
            else:
                WRITES[name][0](v, *others)
            loss = read(z, v, old) + w * 0
            loss.backward()
            gradients.append((loss.item(), x.grad.tolist()))
        assert gradients[0] == gradients[1]


def test_a_write_into_a_view_makes_the_base_require_a_gradient():
    z, w = flow.zeros(2, 2, dtype=flow.float64), leaf(3.0)
    Write.apply(z[0], "add_", w)
    assert z.requires_grad
    (z * flow.tensor([[1.0, 2.0], [4.0, 8.0]], dtype=flow.float64)).sum().backward()
    assert w.grad.tolist() == [3.0]
