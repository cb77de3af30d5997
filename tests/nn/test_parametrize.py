"""Parametrizations: a parameter computed from others; weight_norm, spectral_norm, and orthogonal, with both
APIs.
"""
import copy

import numpy as np
import pytest

import flowedu as flow
from common import refused
from flowedu import nn
from flowedu.nn.utils import parametrizations, parametrize

X = flow.tensor(np.random.default_rng(0).standard_normal((5, 4)))


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T

    def right_inverse(self, value):
        return value.triu()


class Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor

    def right_inverse(self, value):
        return value / self.factor


class Shifted(Scaled):
    def forward(self, x):
        return x + self.factor

    def right_inverse(self, value):
        return value - self.factor


class Ranked(nn.Module):
    """Rank-1 matrix from two vectors."""

    def forward(self, a, b):
        return a.unsqueeze(1) * b

    def right_inverse(self, value):
        return value[:, 0], value[0] / value[0, 0]


def square():
    return nn.Linear(4, 4).double()


def test_a_parametrized_weight_is_computed_on_access_and_trained():
    m = square()
    plain = m.weight
    assert parametrize.register_parametrization(m, "weight", Symmetric()) is m
    w = plain.detach().numpy()
    np.testing.assert_array_equal(m.weight.detach().numpy(), np.triu(w) + np.triu(w, 1).T)
    assert [n for n, _ in m.named_parameters()] == ["bias", "parametrizations.weight.original"]
    assert m.parametrizations.weight.original is plain and parametrize.is_parametrized(m, "weight")
    assert type(m).__name__ == "ParametrizedLinear" and isinstance(m, nn.Linear)
    assert parametrize.type_before_parametrizations(m) is nn.Linear is type(square())
    before = m(X).detach().numpy()
    opt = flow.optim.SGD(m.parameters(), lr=0.1)
    m(X).square().sum().backward()
    assert (plain.grad.numpy()[np.tril_indices(4, -1)] == 0).all() and (plain.grad.numpy()[np.triu_indices(
        4)] != 0).all()
    opt.step()
    after = m.weight.detach().numpy()
    np.testing.assert_array_equal(after, after.T)
    assert not np.allclose(before, m(X).detach().numpy())


def test_parametrizations_chain_and_allow_assignment():
    m = square()
    parametrize.register_parametrization(m, "weight", Symmetric())
    parametrize.register_parametrization(m, "weight", Scaled(3.0))
    value = flow.tensor(np.arange(16.0).reshape(4, 4))
    m.weight = value + value.T
    np.testing.assert_allclose(m.weight.detach().numpy(), (value + value.T).numpy(), rtol=1e-12)
    np.testing.assert_allclose(m.parametrizations.weight.original.detach().numpy(),
                               np.triu((value + value.T).numpy() / 3))
    plain = m.parametrizations.weight.original
    other = copy.deepcopy(m)
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is nn.Linear and m.weight is plain and not parametrize.is_parametrized(m)
    np.testing.assert_allclose(m.weight.detach().numpy(), (value + value.T).numpy(), rtol=1e-12)
    np.testing.assert_allclose(other(X).detach().numpy(), m(X).detach().numpy(), rtol=1e-12)
    parametrize.remove_parametrizations(other, "weight", leave_parametrized=False)
    assert (other.weight.detach().numpy()[np.tril_indices(4, -1)] == 0).all()


def test_the_last_parametrization_is_removed_first():
    m = square()
    for part in (Scaled(3.0), Shifted(1.0)):
        parametrize.register_parametrization(m, "weight", part)
    m.weight = flow.full((4, 4), 7.0, dtype=flow.float64)
    assert float(m.weight[0, 0]) == 7.0 and float(m.parametrizations.weight.original[0, 0]) == 2.0


def test_parametrizations_of_several_tensors_and_of_buffers():
    m = square()
    first = m.weight.detach().numpy()
    parametrize.register_parametrization(m, "weight", Ranked())
    assert {n for n, _ in m.named_parameters()} == {"bias", "parametrizations.weight.original0",
                                                   "parametrizations.weight.original1"}
    np.testing.assert_allclose(m.weight.detach().numpy(), np.outer(first[:, 0], first[0] / first[0, 0]),
                               rtol=1e-12)
    b = nn.BatchNorm1d(3)
    parametrize.register_parametrization(b, "running_var", Scaled(2.0))
    np.testing.assert_array_equal(b.running_var.numpy(), np.ones(3))
    assert "parametrizations.running_var.original" in dict(b.named_buffers())


def test_a_cached_parametrization_is_computed_once():
    m, calls = square(), []
    parametrize.register_parametrization(m, "weight", Symmetric())
    m.parametrizations.weight[0].register_forward_hook(lambda *_: calls.append(1))
    with parametrize.cached():
        assert m.weight is m.weight
        with parametrize.cached():
            m(X)
    assert len(calls) == 1
    with flow.no_grad():
        m.parametrizations.weight.original.mul_(2)
    with parametrize.cached():
        assert float(m.weight[0, 0]) == float(m.parametrizations.weight.original[0, 0])
    assert (m.weight is not m.weight
            and float(m.weight[0, 0]) == float(m.parametrizations.weight.original[0, 0]))


def test_invalid_parametrizations_are_refused():
    m = square()
    with refused(KeyError, "no parameter", "wait"):
        parametrize.register_parametrization(m, "wait", Symmetric())
    with refused(ValueError, "something else"):
        parametrize.register_parametrization(m, "weight", nn.Flatten(0))
    assert [n for n, _ in m.named_parameters()] == ["weight", "bias"] and type(m) is nn.Linear
    parametrize.register_parametrization(m, "weight", nn.Flatten(0), unsafe=True)
    assert m.weight.shape == (16,)
    with refused(NotImplementedError, "right_inverse"):
        m.weight = m.weight.detach()
    with refused(KeyError, "bias"):
        parametrize.remove_parametrizations(m, "bias")
    with refused(KeyError, "weight_norm"):
        nn.utils.remove_weight_norm(m)


# ---- built-in parametrizations
LAYERS = [lambda: nn.Linear(4, 3), lambda: nn.Conv2d(2, 3, 3), lambda: nn.ConvTranspose1d(2, 3, 2)]


@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize("norm, g, v", [(nn.utils.weight_norm, "weight_g", "weight_v"), (
    parametrizations.weight_norm, "parametrizations.weight.original0", "parametrizations.weight.original1")])
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(make, norm, g, v, dim):
    m = make().double()
    w = m.weight.detach().numpy().copy()
    norm(m, dim=dim)
    axes = tuple(i for i in range(w.ndim) if i != dim)
    length = np.sqrt((w ** 2).sum(None if dim is None else axes, keepdims=dim is not None))
    np.testing.assert_allclose(m.weight.detach().numpy(), w, rtol=1e-12)
    np.testing.assert_allclose(m.state_dict()[g].numpy(), length, rtol=1e-12)
    with flow.no_grad():
        m.state_dict()[v].mul_(5.0)
        m.state_dict()[g].mul_(2.0)
    np.testing.assert_allclose(m.weight.detach().numpy(), 2 * w, rtol=1e-12)


@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize("norm", [nn.utils.spectral_norm, parametrizations.spectral_norm])
def test_spectral_norm(make, norm):
    flow.manual_seed(0)  # power iteration converges slowly if the two largest singular values are close
    m = make().double()
    w = m.weight.detach().numpy().copy()
    norm(m)
    for _ in range(200):
        now = m.weight
    rows = np.moveaxis(w, 1 if isinstance(m, nn.ConvTranspose1d) else 0, 0)
    sigma = np.linalg.svd(rows.reshape(len(rows), -1))[1][0]
    np.testing.assert_allclose(now.detach().numpy(), w / sigma, rtol=1e-5, atol=1e-7)
    before = [b.numpy().copy() for b in m.buffers()]
    m.eval()
    with flow.no_grad():
        next(p for n, p in m.named_parameters() if "orig" in n).add_(1.0)
    m.weight  # noqa: B018
    assert all((a == b.numpy()).all() for a, b in zip(before, m.buffers())) and len(before) == 2


@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("sizes", [(3, 5), (5, 3), (4, 4)])
def test_orthogonal(kind, sizes):
    m = nn.Linear(*sizes).double()
    nn.init.orthogonal_(m.weight)
    first = m.weight.detach().numpy().copy()
    parametrizations.orthogonal(m, orthogonal_map=kind)
    np.testing.assert_allclose(m.weight.detach().numpy(), first, atol=1e-12)
    x, opt = (flow.tensor(np.random.default_rng(1).standard_normal((6, sizes[0]))),
              flow.optim.SGD(m.parameters(), lr=0.1))
    losses = []
    for _ in range(8):
        loss = (m(x) - 1).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        w = m.weight.detach().numpy()
        np.testing.assert_allclose(w.T @ w if len(w) >= w.shape[1] else w @ w.T, np.eye(min(w.shape)),
                                   atol=1e-9)
    assert losses[-1] < losses[0] and not np.allclose(w, first)


@pytest.mark.parametrize("make", [nn.utils.weight_norm, parametrizations.weight_norm,
                                  parametrizations.orthogonal,
                                  lambda m: parametrize.register_parametrization(m, "weight", Symmetric())])
def test_a_parametrized_weight_trains_in_a_graph(make):
    m = make(square())

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.m = m
            self.add_optimizer(flow.optim.SGD(m.parameters(), lr=0.1))

        def build(self, x):
            loss = self.m(x).square().mean()
            loss.backward()
            return loss

    twin = copy.deepcopy(m)
    opt, step = flow.optim.SGD(twin.parameters(), lr=0.1), Step()
    for _ in range(3):
        loss = twin(X).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        np.testing.assert_allclose(step(X).item(), loss.item(), rtol=1e-9)
    np.testing.assert_allclose(m.weight.detach().numpy(), twin.weight.detach().numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("norm, remove", [(nn.utils.weight_norm, nn.utils.remove_weight_norm),
                                          (nn.utils.spectral_norm, nn.utils.remove_spectral_norm)])
def test_legacy_norms_are_removed(norm, remove):
    m = norm(nn.Linear(4, 3).double())
    y, x = m(X).detach().numpy(), m.eval()(X).detach().numpy()
    assert norm is nn.utils.spectral_norm or (x == y).all()
    assert remove(m) is m and type(m) is nn.Linear and [*m.state_dict()] == ["bias", "weight"]
    np.testing.assert_allclose(m(X).detach().numpy(), x, rtol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("norm", ["weight_norm", "parametrizations.weight_norm",
                                  "parametrizations.spectral_norm",
                                  "spectral_norm", "parametrizations.orthogonal"])
@pytest.mark.filterwarnings("ignore:.*deprecated.*:FutureWarning")
def test_results_equal_pytorchs(norm):
    torch = pytest.importorskip("torch")
    made = []
    for package in (torch, flow):
        f = package.nn.utils
        for part in norm.split("."):
            f = getattr(f, part)
        made.append(f(package.nn.Linear(4, 4).double()))
    theirs, ours = made
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
    with flow.no_grad():
        for k, t in theirs.state_dict().items():
            ours.state_dict()[k].copy_(flow.tensor(t.numpy()))
    x = torch.tensor(X.numpy())
    for mode in (True, False):
        np.testing.assert_allclose(ours.train(mode)(X).detach().numpy(),
                                   theirs.train(mode)(x).detach().numpy(), rtol=1e-6)
    ours(X).square().sum().backward()
    theirs(x).square().sum().backward()
    for (k, a), (_, b) in zip(sorted(ours.named_parameters()), sorted(theirs.named_parameters())):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5, atol=1e-9, err_msg=k)


class LayerWithProperty(nn.Linear):
    """Linear layer whose class has a property."""

    @property
    def shift(self):
        return self.bias + 1


@pytest.mark.parametrize("assigned", ["parameter", "module"])
@pytest.mark.parametrize("name", ["weight", "shift"])
def test_a_property_name_is_refused_as_parameter_name(name, assigned):
    """The parameter would be registered, but hidden by the property."""
    layer = nn.utils.parametrizations.weight_norm(LayerWithProperty(2, 1))
    names = list(layer.state_dict())
    with pytest.raises(KeyError, match=f"attribute '{name}' already exists"):
        setattr(layer, name, nn.Parameter(flow.zeros(1, 2)) if assigned == "parameter" else nn.ReLU())
    assert list(layer.state_dict()) == names


def test_cached_values_belong_to_their_module():
    """Also after a module is freed and the next one reuses its address."""
    with parametrize.cached():
        for k in range(20):
            layer = nn.Linear(1, 1, bias=False)
            flow.nn.init.constant_(layer.weight, float(k))
            parametrize.register_parametrization(layer, "weight", Doubled())
            assert layer.weight.item() == 2 * k
            del layer


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x
