"""Lazy tensors: refused calls, and in-place writes inside nn.Graph.build with the same results as eagerly."""
import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings

import flowedu as flow
from flowedu import nn
from flowedu.core.eager.dispatch import lazy_tensor
from flowedu.errors import GradientError, LazyTensorError
from tensor.programs import VIEWS, WRITES, _fits, ours, programs

X = np.array([[0.5, -1.25, 2.0], [3.5, 0.75, -1.0]])


class Run(nn.Graph):
    """Graph of one function."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def build(self, *args):
        return self.f(*args)


def run_eagerly_and_lazily(f, *arrays):
    """Return the result of f eagerly and as a graph; both must write the same values to the inputs."""
    mine, inputs = ([flow.tensor(a) for a in arrays] for _ in range(2))
    eager, lazy = f(*mine), Run(f)(*inputs)
    for a, b in zip(mine, inputs):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-12)
    return eager, lazy


def test_a_lazy_tensor_has_only_shape_and_dtype():
    t = lazy_tensor(object(), (2, 3), flow.float32, True, "relu_backward")
    assert t.is_lazy and not t.is_eager and t.shape == (2, 3) and t.dtype is flow.float32 and t.numel() == 6
    assert t.requires_grad and not t.is_leaf
    assert repr(t.grad_fn) == "<relu_backward>" and t.grad_fn.name() == "relu_backward"
    assert t.stride() == (3, 1) and t.is_contiguous() and t.ndim == 2 and len(t) == 2 and t.size(1) == 3
    assert "is_lazy='True'" in repr(t) and "size=(2, 3)" in repr(t)
    leaf = lazy_tensor(object(), (), flow.float32, True, "")
    assert leaf.is_leaf and leaf.grad_fn is None and leaf.requires_grad
    assert flow.tensor(1.0).symbol is None


@pytest.mark.parametrize("ask", [
    lambda t: t.numpy(), lambda t: t.tolist(), lambda t: t.item(), bool, float, int, np.asarray,
    lambda t: [0][t],
    pickle.dumps, lambda t: t.__dlpack__(), lambda t: t.data_ptr(), lambda t: t.untyped_storage(),
    copy.deepcopy, lambda t: t.retain_grad(),
    lambda t: t.register_hook(print), lambda t: setattr(t, "data", flow.ones(())), lambda t: t.backward(),
    lambda t: t + 1,
    lambda t: t.add_(1), lambda t: t.zero_(), lambda t: flow.cat([t.reshape(1)] * 20),
    lambda t: t.reshape(1)])
def test_reading_values_of_a_lazy_tensor_is_refused(ask):
    t = lazy_tensor(object(), (), flow.float32, True, "relu_backward")
    with pytest.raises((LazyTensorError, BufferError)) as e:
        ask(t)
    assert "lazy" in str(e.value)
    with pytest.raises((LazyTensorError, BufferError)):
        memoryview(t)


def test_the_messages_are_oneflows():
    t = lazy_tensor(object(), (), flow.float32)
    with pytest.raises(AssertionError,
                       match=r"tensor.numpy\(\) is not allowed to be called in nn.Graph.build\(\*args\)"):
        t.numpy()
    with pytest.raises(RuntimeError, match="Only eager scalar tensor support GetItem"):
        t.item()


CASES = {
    "tensor": lambda x, y: x.add_(y) * x,
    "alias": lambda x, y: (x.mul_(2), x + y)[1],
    "slice": lambda x, y: (x[1:].mul_(y[1:]), x * 1)[1],
    "set": lambda x, y: (x.__setitem__((slice(None), 1), 5.0), x + 0)[1],
    "set from its own part": lambda x, y: (x.__setitem__(0, x[1] * 2), x * y)[1],
    "view sees the base": lambda x, y: (lambda v: (x.mul_(3), v + 1)[1])(x[0]),
    "base sees the view of a view": lambda x, y: (x.transpose(0, 1)[1:].reshape(2, 2).add_(1),
                                                  x[:, ::2].exp_(), x * y)[2],
    "reshape": lambda x, y: (x.reshape(6).mul_(2), x * 1)[1],
    "squeeze": lambda x, y: x.clone().unsqueeze_(0).squeeze_(0).mul_(2),
    "relu": lambda x, y: (x.relu_(), x * 2)[1],
    "several": lambda x, y: (x.add_(1), y.mul_(x), x.sub_(y), x * y)[3],
    "iadd": lambda x, y: x.__iadd__(y[0]) * 2,
    "fill": lambda x, y: (x[0].fill_(2.0), y.copy_(x), y.zero_().add_(x))[2],
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_writes_in_build_equal_eager_writes(name):
    eager, lazy = run_eagerly_and_lazily(CASES[name], X, X * 0.5 + 1)
    np.testing.assert_allclose(lazy.numpy(), eager.numpy(), rtol=1e-12)


@given(programs)
@settings(max_examples=2 * settings.default.max_examples)
def test_random_programs_agree_in_a_graph(program):
    steps, seed = program
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, s) for s in [(2, 3), (3,), (2, 3)]]

    def f(*inputs):
        values = list(inputs)
        for kind, name, i, j in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            if kind == "view" and name != "detach" and VIEWS[name](x) is not None:
                values.append(VIEWS[name](x))
                assert (x.is_contiguous() == (tuple(x.stride()) == tuple(x.contiguous().stride()))
                        or x.numel() < 2)
            elif kind == "op" and name == "frozen":
                values.append(x.reshape(-1))             # a view or a copy, depending on the strides
            elif kind == "op" and _fits(x, y):
                values.append(x * y)
            elif kind in ("write",
                          "frozen") and name != "set_part" and x.numel() and y.numel() and _fits(y, x) \
                    and tuple(np.broadcast_shapes(tuple(x.shape), tuple(y.shape))) == tuple(x.shape):
                WRITES[name](x, y)
        return [v * 1 if k % 2 else v for k, v in enumerate(values) if v.numel()]

    eager = f(*map(ours, arrays))
    lazy = Run(f)(*map(ours, arrays))
    for a, b in zip(lazy, eager):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-12)


def test_gradients_through_writes_in_build():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(flow.tensor(X))

        def forward(self, x):
            h = self.w * x
            h[0] = h[1] * 2
            h.mul_(h)
            return h.sum()

    class Train(nn.Graph):
        def __init__(self, net):
            super().__init__()
            self.net = net
            self.add_optimizer(flow.optim.SGD(net.parameters(), lr=0.1))

        def build(self, x):
            loss = self.net(x)
            loss.backward()
            return loss

    eager, lazy, x = Net(), Net(), flow.tensor(X + 3)
    graph = Train(lazy)
    optimizer = flow.optim.SGD(eager.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = eager(x)
        loss.backward()
        optimizer.step()
        np.testing.assert_allclose(graph(x).item(), loss.item(), rtol=1e-6)
        np.testing.assert_allclose(lazy.w.numpy(), eager.w.numpy(), rtol=1e-6)


def test_buffers_written_in_build_keep_their_new_values():
    class Count(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", flow.zeros(2))

        def forward(self, x):
            self.n.add_(x)
            self.n[0] = self.n[0] * 2
            return self.n * 1

    class G(nn.Graph):
        def __init__(self):
            super().__init__()
            self.m = Count()

        def build(self, x):
            return self.m(x)

    g, m, x = G(), Count(), flow.ones(2)
    for _ in range(3):
        np.testing.assert_array_equal(g(x).numpy(), m(x).numpy())
    assert m.n.tolist() == g.m.to(nn.Module).n.tolist() == [14, 3]


def test_invalid_writes_in_build_are_refused():
    with pytest.raises(LazyTensorError, match="expand"):
        Run(lambda x: x.expand(2, 2, 3).mul_(2))(flow.tensor(X))
    with pytest.raises((GradientError, RuntimeError), match="leaf"):
        w = flow.tensor(X, requires_grad=True)
        Run(lambda x: w.mul_(x))(flow.tensor(X))
    with pytest.raises(LazyTensorError, match="Function"):
        class Same(flow.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, d):
                return d

        w = flow.tensor(X, requires_grad=True)
        Run(lambda x: Same.apply(w * x))(flow.tensor(X))
