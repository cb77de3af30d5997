"""flow.func: gradients of functions, nested in any order and under vmap, against formulas, differences and
PyTorch.
"""
import numpy as np
import pytest

import flowedu as flow
from common import refused
from flowedu import nn
from flowedu.autograd.trees import leaves

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 3))
W = RNG.standard_normal((3, 2))
Y = RNG.standard_normal((5, 2))
V = RNG.standard_normal(3)


def loss(m):
    return lambda w, x, y: ((m.tanh(x @ w) - y) ** 2).mean()


def waves(m):
    return lambda x: (m.sin(x) ** 2 * x).sum()


def in_place(x):
    y = x * 2
    y += x
    y[0] = 3
    return (y ** 2).sum()


def network_gradients(m, f, t):
    net = m.nn.Sequential(m.nn.Linear(3, 4), m.nn.Tanh(), m.nn.Linear(4, 2)).double()
    rng = np.random.default_rng(3)
    with m.no_grad():
        for p in net.parameters():
            p.copy_(t(rng.standard_normal(tuple(p.shape))))
    weights = {k: p.detach() for k, p in net.named_parameters()}

    def of_weights(weights, x, y):
        return ((f.functional_call(net, weights, (x,)) - y) ** 2).sum()

    return (f.grad(of_weights)(weights, t(X), t(Y)), f.vmap(f.grad(of_weights),
                                                            (None, 0, 0))(weights, t(X), t(Y)))


# m: the package, f: its func, t: its tensor
PROGRAMS = {
    "grad": lambda m, f, t: f.grad(waves(m))(t(V)),
    "grad of grad": lambda m, f, t: f.grad(lambda x: f.grad(waves(m))(x).sum())(t(V)),
    "grad where the inner function sees the outer": lambda m, f, t: f.grad(
        lambda x: f.grad(lambda y: (y ** 3 * x).sum())(x * 2).sum())(t(V)),
    "several": lambda m, f, t: f.grad_and_value(loss(m), argnums=(0, 1))(t(W), t(X), t(Y)),
    "aux": lambda m, f, t: f.grad(lambda x: ((x ** 2).sum(), {"twice": x * 2}), has_aux=True)(t(V)),
    "in place": lambda m, f, t: f.grad(in_place)(t(V)),
    "per sample": lambda m, f, t: f.vmap(f.grad(loss(m)), (None, 0, 0))(t(W), t(X), t(Y)),
    "per sample, what is differentiated shared": lambda m, f, t: f.vmap(
        lambda x, y: f.grad(lambda w: loss(m)(w, x, y))(t(W)))(t(X), t(Y)),
    "grad of vmap": lambda m, f, t: f.grad(lambda x: f.vmap(waves(m))(x).sum())(t(X)),
    "two vmaps": lambda m, f, t: f.vmap(f.vmap(f.grad(lambda a, b: (m.sin(a) * b).sum()), (None, 0)),
                                        (0, None))(
                                            t(X), t(X)),
    "vjp": lambda m, f, t: f.vjp(lambda x, w: (m.sin(x) @ w, w * 2), t(X), t(W))[1]((t(Y), t(W))),
    "vjp, the value": lambda m, f, t: f.vjp(lambda x: m.sin(x) * x, t(V))[0],
    "jvp": lambda m, f, t: f.jvp(lambda x, w: m.tanh(x @ w), (t(X), t(W)), (t(X) * 2, t(W))),
    "vmap of jvp": lambda m, f, t: f.vmap(lambda x, v: f.jvp(m.sin, (x,), (v,))[1])(t(X), t(X)),
    **{f"{name}{more}": program for name in ("jacrev", "jacfwd") for more, program in {
        "": lambda m, f, t, name=name: getattr(f, name)(lambda x: m.tanh(x @ t(W)))(t(X)),
        " of trees": lambda m, f, t, name=name: getattr(f, name)(
            lambda w, x: {"a": m.tanh(x @ w), "b": (x.sum(),)}, argnums=(0, 1))(t(W), t(X)),
        " under vmap": lambda m, f, t, name=name: f.vmap(getattr(f, name)(lambda x: m.tanh(x @ t(W))))(t(X)),
        " of vmap": lambda m, f, t, name=name: getattr(f, name)(f.vmap(lambda x: m.tanh(x @ t(W))))(t(X)),
    }.items()},
    "hessian": lambda m, f, t: f.hessian(waves(m))(t(V)),
    "hessian under vmap": lambda m, f, t: f.vmap(f.hessian(waves(m)))(t(X)),
    "modules": network_gradients,
}


def alike(got, want):
    got, want = leaves(got), leaves(want)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_equal_pytorchs(name):
    torch = pytest.importorskip("torch")
    alike(PROGRAMS[name](flow, flow.func, flow.tensor), PROGRAMS[name](torch, torch.func, torch.tensor))


def test_the_torch_func_alias():
    with flow.mock.enable("torch"):
        import torch
        from torch.func import grad, vmap
        assert torch.vmap is vmap is flow.vmap and torch.func.grad is grad
        alike(vmap(grad(waves(torch)))(torch.tensor(X)),
              flow.func.grad(lambda x: waves(flow)(x))(flow.tensor(X)))


# ---- comparison with formulas
def test_derivatives_equal_their_closed_form():
    x = flow.tensor(V)
    s, c = np.sin(V), np.cos(V)
    first, second = s * s + 2 * s * c * V, 4 * s * c + 2 * V * (c * c - s * s)
    np.testing.assert_allclose(flow.func.grad(waves(flow))(x).numpy(), first, rtol=1e-12)
    for f in (flow.func.hessian, lambda f: flow.func.jacrev(flow.func.jacrev(f)), lambda f: flow.func.jacfwd(
            flow.func.grad(f))):
        np.testing.assert_allclose(f(waves(flow))(x).numpy(), np.diag(second), rtol=1e-12, atol=1e-15)
    value, found = flow.func.value_and_grad(waves(flow))(x)
    np.testing.assert_allclose([value.item(), *found.numpy()], [(s * s * V).sum(), *first], rtol=1e-12)
    out, pull = flow.func.vjp(lambda x: x ** 3, x)
    np.testing.assert_allclose(pull(flow.tensor(X[0]))[0].numpy(), 3 * V ** 2 * X[0], rtol=1e-12)
    rate = flow.func.jvp(lambda x: x ** 3, (x,), (flow.tensor(X[0]),))[1]
    np.testing.assert_allclose(rate.numpy(), 3 * V ** 2 * X[0], rtol=1e-12)


def test_per_sample_gradients_equal_single_sample_gradients():
    per_sample = flow.vmap(flow.func.grad(loss(flow)), (None, 0, 0))(*map(flow.tensor, (W, X, Y)))
    for k in range(len(X)):
        w = flow.tensor(W, requires_grad=True)
        loss(flow)(w, flow.tensor(X[k]), flow.tensor(Y[k])).backward()
        np.testing.assert_allclose(per_sample[k].numpy(), w.grad.numpy(), rtol=1e-9)


def test_per_sample_gradients_of_a_convolution():
    rng = np.random.default_rng(1)
    net = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.GroupNorm(1, 3), nn.ReLU(), nn.Flatten(),
                        nn.Linear(48, 2)).double()
    x, y = flow.tensor(rng.standard_normal((3, 2, 4, 4))), flow.tensor([0, 1, 1])
    weights = {k: p.detach() for k, p in net.named_parameters()}

    def of_weights(weights, x, y):
        return nn.functional.cross_entropy(flow.func.functional_call(net, weights, (x.unsqueeze(0),)),
                                           y.unsqueeze(0))

    got = flow.vmap(flow.func.grad(of_weights), (None, 0, 0))(weights, x, y)
    for k in range(3):
        net.zero_grad()
        nn.functional.cross_entropy(net(x[k:k + 1]), y[k:k + 1]).backward()
        for name, p in net.named_parameters():
            np.testing.assert_allclose(got[name][k].numpy(), p.grad.numpy(), rtol=1e-8, atol=1e-12,
                                       err_msg=name)


# ---- interaction with the tape
@pytest.mark.parametrize("vmapped", [False, True])
def test_captured_tensors_get_gradients_from_outside(vmapped):
    x, c = flow.tensor(X if vmapped else V), flow.tensor(V, requires_grad=True)
    f = flow.func.grad(lambda x: (x * c).sin().sum())
    (flow.vmap(f) if vmapped else f)(x).sum().backward()
    z = x.numpy() * V                                            # d/dc of c cos(x c)
    want = np.cos(z) - z * np.sin(z)
    np.testing.assert_allclose(c.grad.numpy(), want.sum(0) if vmapped else want, rtol=1e-9)


def test_no_tape_is_recorded_without_requires_grad():
    x = flow.tensor(V)
    found = [flow.func.grad(waves(flow))(x), *flow.func.grad_and_value(waves(flow))(x),
             flow.func.hessian(waves(flow))(x),
             *leaves(flow.func.jvp(flow.sin, (x,), (x,))), flow.func.vjp(flow.sin, x)[0]]
    assert not any(y.requires_grad for y in found) and not x.requires_grad and x.grad is None
    y = flow.tensor(V, requires_grad=True)
    assert flow.func.grad(waves(flow))(y).requires_grad and y.grad is None


def test_no_grad_inside_cuts_a_path():
    def half(x):
        with flow.no_grad():
            y = x * 2
        return (y * x).sum()

    for f in (flow.func.grad(half), lambda x: flow.vmap(flow.func.grad(half))(x.unsqueeze(0))[0]):
        np.testing.assert_allclose(f(flow.tensor(V)).numpy(), 2 * V)


# ---- modules
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3, bias=False)
        self.b = nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.register_buffer("scale", flow.tensor(2.0))

    def forward(self, x, more=0):
        return self.b(self.a(x)) * self.scale + more


def test_functional_call_leaves_the_module_alone():
    m, x = Tied(), flow.tensor(X, dtype=flow.float32)
    before, new = {k: t.numpy().copy() for k, t in m.state_dict().items()}, flow.ones(3, 3)
    got = flow.func.functional_call(m, ({"a.weight": new}, {"scale": flow.tensor(1.0)}), x, {"more": 1})
    np.testing.assert_allclose(got.numpy(), (x @ new.T @ new.T + m.b.bias).detach().numpy() + 1, rtol=1e-5)
    apart = flow.func.functional_call(m, {"a.weight": new}, (x,), tie_weights=False)
    np.testing.assert_allclose(apart.detach().numpy(), (m.b(x @ new.T) * 2).detach().numpy(), rtol=1e-5)
    with pytest.raises(ZeroDivisionError):
        flow.func.functional_call(m, {"a.weight": new}, (x,),
                                  {"more": type("", (), {"__radd__": lambda *_: 1 / 0})()})
    assert m.a.weight is m.b.weight and all((t.numpy() == before[k]).all() for k, t in m.state_dict().items())
    with refused(KeyError, "unknown weight"):
        flow.func.functional_call(m, {"weight": new}, (x,))
    with refused(KeyError, "no scale"):
        flow.func.functional_call(m, {k: v for k, v in m.state_dict().items() if k != "scale"}, (x,),
                                  strict=True)
    with refused(ValueError, "given twice"):
        flow.func.functional_call(m, ({"scale": new}, {"scale": new}), (x,))


def test_vmap_runs_an_ensemble_in_one_call():
    models = [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU()).eval() for _ in range(3)]
    parameters, buffers = flow.func.stack_module_state(models)
    x = flow.tensor(X, dtype=flow.float32)
    got = flow.vmap(lambda p, b: flow.func.functional_call(models[0], (p, b), (x,)))(parameters, buffers)
    for y, m in zip(got, models):
        np.testing.assert_allclose(y.detach().numpy(), m(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert all(p.is_leaf and p.requires_grad for p in parameters.values()) and buffers
    with refused(ValueError, "not of one kind"):
        flow.func.stack_module_state([nn.Linear(2, 2), nn.ReLU()])


def test_invalid_calls_are_refused():
    x = flow.tensor(V)
    with refused(ValueError, "one number", "(3,)"):
        flow.func.grad(flow.sin)(x)
    with refused(ValueError, "argnums"):
        flow.func.grad(waves(flow), argnums=1)(x)
    with refused(ValueError, "floating"):
        flow.func.grad(lambda i: i.sum())(flow.tensor([1, 2]))
    with refused(TypeError, "has_aux"):
        flow.func.grad(waves(flow), has_aux=True)(x)
    with refused(ValueError, "do not fit"):
        flow.func.vjp(flow.sin, x)[1](flow.ones(2))
    with refused(ValueError, "do not fit"):
        flow.func.jvp(flow.sin, (x,), (flow.ones(2),))
    with refused(NotImplementedError, "in place inside vmap"):
        flow.vmap(flow.func.grad(in_place))(flow.tensor(X))
