"""Laws of ops without a gradient rule: their results require grad, and a backward pass that reaches them
raises by name.
"""
import itertools

import numpy as np
import pytest

import flowedu as flow
from custom_ops import own_registry  # noqa: F401
from flowedu import nn
from flowedu.core.ops.define import Op
from flowedu.core.ops.record import Kernel, Meaning, read
from flowedu.core.values.dtype import as_dtype
from flowedu.errors import GradientError

from .calls import attributes, cases, draw_values, label, types_of

number = itertools.count()


def custom():
    return flow.custom_op(f"half_of_{next(number)}", forward=lambda x: x / 2)


def core():
    """Create an op without `grad=`, like `define`, outside of the registry, whose laws try each op."""
    return Op(read(f"third_of_{next(number)}(x) -> y"),
              Meaning(lambda x: "ABCDEFGH"[:x.ndim] + "->" + "ABCDEFGH"[:x.ndim],
                      lambda x: x / np.float32(3)), Kernel())


def several():
    """Create an op with any number of inputs, followed by one with two outputs."""
    many = Op(read(f"many_{next(number)}(*xs) -> y"),
              Meaning(lambda xs: ",".join(["A"] * len(xs)) + "->A", lambda xs: sum(xs)), Kernel())
    two = Op(read(f"two_{next(number)}(x) -> (y, z)"), Meaning("A->A,A", lambda x: (x + 0, x + 1)), Kernel())
    return lambda x: two(many(x, x))[1]


def leaf():
    return flow.ones(3, requires_grad=True)


OPS = [custom, core, several]
BACKWARDS = {
    "backward": lambda f: f(leaf()).sum().backward(),
    "beside another path": lambda f: (lambda x: (f(x) + x * 2).sum().backward())(leaf()),
    "before and behind ops with gradients": lambda f: (f(leaf() * 2).tanh() * 3).sum().backward(),
    "autograd.grad": lambda f: (lambda x: flow.autograd.grad(f(x).sum(), x))(leaf()),
    "create_graph": lambda f: (lambda x: flow.autograd.grad((f(x) * x).sum(), x, create_graph=True))(leaf()),
    "flow.func.grad": lambda f: flow.func.grad(lambda x: f(x).sum())(flow.ones(3)),
    "flow.func.vjp": lambda f: flow.func.vjp(f, flow.ones(3))[1](flow.ones(3)),
    "flow.func.jacrev": lambda f: flow.func.jacrev(f)(flow.ones(3)),
    "a second backward": lambda f: (lambda x: flow.autograd.grad(
        flow.autograd.grad((x ** 3).sum(), x, create_graph=True)[0].pow(2).sum() + f(x).sum(), x))(leaf()),
}


@pytest.mark.parametrize("make", OPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("run", BACKWARDS.values(), ids=BACKWARDS)
def test_backward_raises_by_name(run, make):
    with pytest.raises(GradientError,
                       match=r"backward: (half_of|third_of|many|two)_\d+ has no gradient") as e:
        run(make())
    assert "test_no_gradient.py" in e.value.at and "x.detach()" in e.value.fix


@pytest.mark.parametrize("make", [custom, core], ids=lambda f: f.__name__)
def test_the_error_has_the_line_of_the_call_not_of_backward(make):
    f, x = make(), leaf()
    y = f(x)                                                     # this line
    with pytest.raises(GradientError) as e:
        y.sum().backward()
    assert "# this line" in e.value.at


@pytest.mark.parametrize("make", OPS, ids=lambda f: f.__name__)
def test_nothing_is_raised_where_no_gradient_arrives(make):
    f, x = make(), leaf()
    y = f(x)
    assert y.requires_grad and not y.is_leaf
    (f(x.detach()) + x).sum().backward()                         # as the fix recommends
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(3, np.float32))
    (y.detach() * x).sum().backward()
    with flow.no_grad():
        assert not f(x).requires_grad
    assert not f(flow.ones(3)).requires_grad


class Layer(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f, self.inner = f, nn.Linear(3, 3)

    def forward(self, x):
        return self.f(self.inner(x))


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another path"])
@pytest.mark.parametrize("make", [custom, core], ids=lambda f: f.__name__)
def test_a_graph_raises_by_name(make, beside):
    layer, other = Layer(make()), nn.Linear(3, 3)

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.layer, self.other = layer, other
            self.add_optimizer(flow.optim.SGD([*layer.parameters(), *other.parameters()], lr=0.1))

        def build(self, x):
            loss = self.layer(x).sum() + (self.other(x).sum() if beside else 0)
            loss.backward()
            return loss
    with pytest.raises(GradientError, match="has no gradient") as e:
        Train()(flow.ones(2, 3))
    assert "test_no_gradient.py" in e.value.at


@pytest.mark.parametrize("make", [custom, core], ids=lambda f: f.__name__)
def test_a_graph_that_detaches_first_trains(make):
    f, other = make(), nn.Linear(3, 3)

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.other = other
            self.add_optimizer(flow.optim.SGD(other.parameters(), lr=0.1))

        def build(self, x):
            y = self.other(x)
            loss = (f(y.detach()) + y).sum()
            loss.backward()
            return loss
    before = other.weight.numpy().copy()
    Train()(flow.ones(2, 3))
    assert (other.weight.numpy() != before).all()


def test_a_global_tensor_raises_by_name(world):
    world(2)
    x = flow.ones(4, requires_grad=True)
    y = x.to_global(flow.placement("cpu", [0, 1]), flow.sbp.broadcast)
    with pytest.raises(GradientError, match="has no gradient"):
        custom()(y).sum().backward()


def test_anomaly_mode_and_hooks_do_not_hide_it():
    f, x = custom(), leaf()
    x.register_hook(lambda g: g)
    with flow.autograd.detect_anomaly(), pytest.raises(GradientError, match="has no gradient"):
        f(x).sum().backward()


CALLS = cases(lambda op: not op.mutates and not op.rules and op.inputs)


@pytest.mark.parametrize("case", CALLS, ids=label)
def test_results_require_grad_and_backward_names_the_op(case):
    """A result requires grad exactly if it is floating and an input requires grad; then backward raises with
    the op's name. Integers never require grad, as in PyTorch.
    """
    op, example = case
    rng = np.random.default_rng(0)
    domain = op.domain if isinstance(op.domain, dict) else {}
    tensors = []
    for i, (shape, kind) in enumerate(zip(example["shapes"], types_of(op, example, np.float32))):
        name = op.inputs[0 if op.variadic else i]
        x = flow.tensor(draw_values(domain.get(name, "any"), shape, kind, rng), dtype=as_dtype(kind))
        tensors.append(x.requires_grad_() if x.dtype.is_floating_point else x)
    results = op.call(tuple(tensors), attributes(op, example))
    tracked = any(x.requires_grad for x in tensors)
    for y in results if isinstance(results, tuple) else (results,):
        assert y.requires_grad == (tracked and y.dtype.is_floating_point)
        if y.requires_grad:
            with pytest.raises(GradientError, match=f"backward: {op.name} has no gradient"):
                y.sum().backward()


@pytest.mark.parametrize("f", [flow.sign, flow.round, flow.floor, flow.ceil], ids=lambda f: f.__name__)
def test_steps_have_a_gradient_of_zero(f):
    x = flow.tensor([-1.5, 0.3, 2.0], requires_grad=True)
    f(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros(3, np.float32))


@pytest.mark.parametrize("f", [lambda x: x.argmax(0), lambda x: x > 0, lambda x: x == x,
                               lambda x: x.argsort(),
                               lambda x: flow.isnan(x), lambda x: x.int()], ids=range(6))
def test_integers_never_require_grad(f):
    assert not f(leaf()).requires_grad
