"""flow.distributions compared with torch.distributions, and programs for PyTorch that run under the mock.

Both have the same names, values, shapes, supports, and reprs.
"""
import importlib
import inspect

import numpy as np
import pytest

import flowedu as flow
from flowedu import mock

from .distribution_lines import LINES, PAIRS, make_distribution


def assert_close(got, want, rtol=1e-7):
    assert tuple(got.shape) == tuple(want.shape) and got.dtype.name == str(want.dtype).removeprefix("torch.")
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=rtol, atol=1e-9)


@pytest.mark.torch
# PyTorch does not sum the log-determinants of a StackTransform over its axis.
@pytest.mark.parametrize("line", [line for line in LINES if "Stack" not in line])
def test_values_match_pytorch(line):
    torch = pytest.importorskip("torch")
    a, b = make_distribution(line), make_distribution(line, torch)
    assert tuple(a.batch_shape) == tuple(b.batch_shape) and tuple(a.event_shape) == tuple(b.event_shape)
    assert a.has_rsample == b.has_rsample and a.has_enumerate_support == b.has_enumerate_support
    flow.manual_seed(9)
    x = a.sample((6,))
    y = torch.tensor(x.numpy())
    assert_close(a.log_prob(x), b.log_prob(y), 1e-6)
    for name in ("mean", "variance", "stddev", "mode", "entropy", "perplexity"):
        try:
            want = getattr(b, name)
            want = want() if callable(want) else want
        except NotImplementedError:
            continue
        got = getattr(a, name)
        got = got() if callable(got) else got
        # PyTorch's is nan for a concentration below 1
        if "Weibull" in line and name == "mode":
            got, want = got[1], want[1]
        assert_close(got, want)
    for name, value, other in (("cdf", x, y), ("icdf", x.double() * 0 + 0.3, y.double() * 0 + 0.3)):
        try:
            want = getattr(b, name)(other)
        except (NotImplementedError, ValueError):
            continue
        assert_close(getattr(a, name)(value), want)
    if a.has_enumerate_support:
        assert_close(a.enumerate_support(), b.enumerate_support())


@pytest.mark.torch
@pytest.mark.parametrize("p, q", PAIRS)
def test_the_divergence_matches_pytorch(p, q):
    torch = pytest.importorskip("torch")
    got = flow.distributions.kl_divergence(make_distribution(p), make_distribution(q))
    assert_close(got, torch.distributions.kl_divergence(make_distribution(p, torch),
                                                        make_distribution(q, torch)), 1e-6)


@pytest.mark.torch
@pytest.mark.parametrize("line", ["d.Normal(t(0.5), t(2.0))", "d.Normal(t([0.5, 1.0]), 2.0)",
                                  "d.Exponential(t(0.5))",
                                  "d.Bernoulli(t(0.5))", "d.Categorical(t([0.5, 0.5]))", "d.Poisson(t(0.5))",
                                  "d.Independent(d.Laplace(t([0.5, 1.0]), t(1.0)), 1)",
                                  "d.Bernoulli(logits=t([0.5]))",
                                  "d.ComposeTransform([d.ExpTransform(), d.TanhTransform()])"])
def test_the_repr_matches_pytorch(line):
    torch = pytest.importorskip("torch")
    ours, theirs = repr(make_distribution(line)), repr(make_distribution(line, torch))

    def plain(text):
        return text.replace("flowedu.", "torch.").replace("\n", "").replace(" ", "")

    assert plain(ours) == plain(theirs)


@pytest.mark.torch
def test_arguments_match_pytorch():
    torch = pytest.importorskip("torch")
    for name in flow.distributions.__all__:
        ours, theirs = (getattr(m.distributions, name) for m in (flow, torch))
        if inspect.isclass(ours):
            a, b = (list(inspect.signature(x).parameters) for x in (ours, theirs))
            assert a == b, (name, a, b)


SUPPORTS = {"real": [0.0, -1e9, float("nan")], "positive": [1.0, 0.0, -1.0], "nonnegative": [0.0, -1.0],
            "boolean": [0.0, 1.0, 0.5], "unit_interval": [0.0, 1.0, 1.1],
            "nonnegative_integer": [0.0, 2.5, -1.0],
            "positive_integer": [0.0, 1.0], "simplex": [[0.5, 0.5], [0.6, 0.5], [-0.5, 1.5]],
            "one_hot": [[0.0, 1.0], [1.0, 1.0]], "real_vector": [[0.0, float("nan")], [1.0, 2.0]],
            "lower_cholesky": [[[1.0, 0.0], [2.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]],
            "positive_definite": [[[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]]}


@pytest.mark.torch
@pytest.mark.parametrize("name", SUPPORTS)
def test_constraints_match_pytorch(name):
    torch = pytest.importorskip("torch")
    ours, theirs = (getattr(m.distributions.constraints, name) for m in (flow, torch))
    got, want = ours.check(flow.tensor(SUPPORTS[name])), theirs.check(torch.tensor(SUPPORTS[name]))
    assert (got.tolist() == want.tolist() and ours.event_dim == theirs.event_dim
            and ours.is_discrete == theirs.is_discrete)


TRANSFORMS = ["ExpTransform()", "SigmoidTransform()", "TanhTransform()", "SoftplusTransform()",
              "AbsTransform()",
              "AffineTransform(0.5, -2.0)", "AffineTransform(0.5, 2.0, event_dim=1)", "SoftmaxTransform()",
              "ComposeTransform([d.AffineTransform(0.5, -0.3), d.ExpTransform(), d.PowerTransform(t(0.7))])",
              "IndependentTransform(d.ExpTransform(), 1)", "ExpTransform().inv.inv",
              "StackTransform([d.ExpTransform(), d.TanhTransform(), d.AffineTransform(1.0, 3.0)], -1)"]


@pytest.mark.torch
@pytest.mark.parametrize("line", TRANSFORMS)
def test_transforms_match_pytorch(line):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).standard_normal((4, 3))
    ours, theirs = make_distribution("d." + line), make_distribution("d." + line, torch)
    a, b = flow.tensor(x), torch.tensor(x)
    assert_close(ours(a), theirs(b))
    assert_close(ours.inv(ours(a)), theirs.inv(theirs(b)))
    assert ours.bijective == theirs.bijective
    assert ours.domain.event_dim == theirs.domain.event_dim or "Stack" in line
    assert (ours == make_distribution("d." + line) or "Stack" in line or "Independent" in line
            or "Power" in line)
    if ours.bijective:
        assert_close(ours.inv(ours(a)), b)
        assert_close(ours.log_abs_det_jacobian(a, ours(a)), theirs.log_abs_det_jacobian(b, theirs(b)))
        assert_close(ours.inv.log_abs_det_jacobian(ours(a), a), theirs.inv.log_abs_det_jacobian(theirs(b), b))


REINFORCE = """
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical
from torch.distributions.normal import Normal

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
baseline, rewards = 0.0, []
for episode in range(150):
    state = torch.randn(16, 4)
    m = Categorical(logits=policy(state))
    action = m.sample()
    # 1 if the action is the sign of the first number
    reward = (action == (state[:, 0] > 0).long()).float()
    loss = (-m.log_prob(action) * (reward - 0.5)).mean() - 0.001 * m.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    rewards.append(reward.mean().item())
latent = Normal(torch.zeros(3), torch.ones(3)).rsample((2,))
p, q = Normal(torch.ones(3), torch.ones(3)), Normal(torch.zeros(3), torch.ones(3))
kl = torch.distributions.kl_divergence(p, q).sum()
"""


def test_reinforce_learns():
    with mock.enable("torch"):
        names = {}
        exec(REINFORCE, names)
    first, last = np.mean(names["rewards"][:10]), np.mean(names["rewards"][-20:])
    assert first < 0.7 and last > 0.85 and names["latent"].shape == (2, 3) and names["kl"].item() == 1.5


@pytest.mark.parametrize(
    "path", "categorical normal kl transforms constraints distribution multivariate_normal utils".split())
def test_submodules_of_torch_distributions_exist(path):
    with mock.enable("torch"):
        module = importlib.import_module(f"torch.distributions.{path}")
        assert {"categorical": "Categorical", "normal": "Normal", "kl": "kl_divergence",
                "transforms": "ExpTransform",
                "constraints": "positive", "distribution": "Distribution",
                "multivariate_normal": "MultivariateNormal", "utils": "broadcast_all"}[path] in dir(module)
