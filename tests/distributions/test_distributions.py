"""Laws of flow.distributions.

Densities sum to one. Mean, variance, entropy, divergence, and cdf match integrals of the density, and icdf
inverts cdf. Samples have the moments of the distribution, and gradients match difference quotients.
"""
import math

import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import FlowError, UnsupportedError

from .distribution_lines import (
    CONTINUOUS,
    DISCRETE,
    LINES,
    PAIRS,
    along,
    expectation,
    make_distribution,
    values_of,
)

D = flow.distributions
NUMBERS = [*CONTINUOUS, *DISCRETE]
HEAVY = ("Cauchy", "StudentT(t(3", "Pareto")             # heavy tails, where quadrature is less accurate
INFINITE = ("d.Cauchy", "d.HalfCauchy")


def assert_close(got, want, rtol=1e-6, atol=1e-7):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=rtol, atol=atol)


@pytest.mark.parametrize("line", NUMBERS)
def test_the_density_sums_to_one(line):
    d = make_distribution(line)
    np.testing.assert_allclose(expectation(d, line, lambda x, p: 1.0), np.ones(d.batch_shape),
                               rtol=1e-4 if "Laplace" in line else 1e-6)                  # it has a kink


def value_or_none(d, name):
    """Return a property or the result of a method; None if the distribution does not define it."""
    try:
        value = getattr(d, name)
        return value() if callable(value) else value
    except UnsupportedError as e:
        assert "it is not known" in str(e)
        return None


NO_MOMENTS = ("d.TransformedDistribution", "d.RelaxedBernoulli", "d.Poisson", "d.MixtureSameFamily")


@pytest.mark.parametrize("line", [n for n in NUMBERS if not n.startswith("d.Categorical")])
def test_moments_and_entropy_are_the_integrals(line):
    d = make_distribution(line)
    mean, variance, entropy = (value_or_none(d, n) for n in ("mean", "variance", "entropy"))
    assert all(v is not None for v in (mean, variance, entropy)) or line.startswith(NO_MOMENTS)
    loose = 1e-3 if any(h in line for h in HEAVY) else 1e-5 if "Laplace" in line else 1e-6
    if mean is not None and not line.startswith(INFINITE):
        assert_close(mean, expectation(d, line, lambda x, p: x), loose, loose)
        assert_close(variance, expectation(d, line, lambda x, p: (x - mean.detach().numpy()) ** 2),
                     0.02 if loose > 1e-4 else 1e-6)
        assert_close(d.stddev, np.sqrt(variance.detach().numpy()))
    if entropy is not None:
        assert_close(entropy, expectation(d, line, lambda x, p: -p))
        assert_close(d.perplexity(), np.exp(entropy.numpy()))


@pytest.mark.parametrize("line", ["d.Cauchy(t(-0.5), t(0.7))", "d.HalfCauchy(t(0.8))", "d.StudentT(t(1.5))",
                                  "d.StudentT(t(0.5))", "d.Pareto(t(1.0), t(0.9))"])
def test_moments_that_do_not_exist_are_infinite_or_nan(line):
    d = make_distribution(line)
    assert not np.isfinite(d.variance.item()) and ("StudentT(t(1.5" in line or not np.isfinite(d.mean.item()))


@pytest.mark.parametrize("line", NUMBERS)
def test_the_mode_has_the_largest_density(line):
    d, (x, _) = make_distribution(line), values_of(line)
    mode = value_or_none(d, "mode")
    if mode is None or bool(mode.isnan().any()):
        assert line.startswith((*NO_MOMENTS, "d.Uniform", "d.Beta"))
        return
    logs = d.log_prob(along(d, x)).numpy()
    own = type(d).log_prob(type(d).expand(d, d.batch_shape), mode.double() if mode.is_floating_point()
                           else mode).numpy() \
        if d.support is None or bool(d.support.check(mode).all()) else np.inf
    assert (np.where(np.isnan(own), np.inf, own) >= logs.max(0) - 1e-9).all()


@pytest.mark.parametrize("line", CONTINUOUS)
def test_cdf_is_the_integral_and_icdf_its_inverse(line):
    d, (x, w) = make_distribution(line), values_of(line)
    try:
        p = d.cdf(along(d, x)).numpy()
    except UnsupportedError:
        assert any(n in line for n in ("StudentT", "Beta", "RelaxedBernoulli"))
        return
    w = w.reshape(-1, *(1,) * len(d.batch_shape))
    mass = np.exp(d.log_prob(along(d, x)).numpy()) * w
    np.testing.assert_allclose(p, mass.cumsum(0) - mass / 2, atol=3e-3)
    assert (np.diff(p, axis=0) >= -1e-12).all()
    q = np.linspace(0.02, 0.98, 49)
    try:
        value = d.icdf(along(d, q))
    except UnsupportedError:
        assert line.startswith(("d.Gamma", "d.Chi2", "d.MixtureSameFamily",
                                "d.TransformedDistribution(d.Gamma"))
        return
    np.testing.assert_allclose(d.cdf(value).numpy(), along(d, q).numpy(), rtol=1e-9)


@pytest.mark.parametrize("line", DISCRETE)
def test_enumerate_support_lists_all_values(line):
    d = make_distribution(line)
    if not d.has_enumerate_support:
        assert "Geometric" in line or "Poisson" in line
        with pytest.raises(UnsupportedError):
            d.enumerate_support()
        return
    values = d.enumerate_support()
    assert values.shape == (DISCRETE[line] + 1, *d.batch_shape)
    assert_close(d.log_prob(values).exp().sum(0), np.ones(d.batch_shape))
    assert flow.equal(d.enumerate_support(expand=False).expand(values.shape), values)


def test_multinomial_sums_over_all_counts():
    d = make_distribution("d.Multinomial(4, t([0.2, 0.5, 0.3]))")
    x = flow.tensor([[i, j, 4 - i - j] for i in range(5) for j in range(5 - i)]).double()
    logs = d.log_prob(x)
    p = logs.exp()
    assert_close(p.sum(), 1.0)
    assert_close(d.entropy(), -(p * logs).sum().item())
    assert_close(d.mean, (p.unsqueeze(-1) * x).sum(0).numpy())
    assert_close(d.variance, (p.unsqueeze(-1) * (x - d.mean).square()).sum(0).numpy())


COUNT = 20000


@pytest.mark.parametrize("line", LINES)
def test_samples_have_the_moments_of_the_distribution(line):
    flow.manual_seed(3)
    d = make_distribution(line)
    x = d.sample((COUNT,))
    assert x.shape == (COUNT, *d.batch_shape, *d.event_shape) and not x.requires_grad
    assert d.support is None or bool(d.support.check(x).all())
    assert x.dtype is (flow.int64 if line.startswith("d.Categorical") else flow.float64)
    flow.manual_seed(3)
    assert flow.equal(make_distribution(line).sample((COUNT,)), x)
    if line.startswith("d.Categorical"):
        share = (x.unsqueeze(-1) == flow.arange(d.probs.shape[-1])).double().mean(0)
        np.testing.assert_allclose(share.numpy(), d.probs.numpy(), atol=5 / math.sqrt(COUNT))
        return
    mean, variance = value_or_none(d, "mean"), value_or_none(d, "variance")
    if mean is None and line in CONTINUOUS:
        mean = flow.tensor(expectation(d, line, lambda v, p: v))
        variance = flow.tensor(expectation(d, line, lambda v, p: (v - mean.numpy()) ** 2))
    if mean is not None and np.isfinite(variance.numpy()).all():
        off = (x.mean(0) - mean).abs().numpy() / np.sqrt(variance.numpy() / COUNT)
        assert off.max() < 5
        if not any(h in line for h in HEAVY):
            np.testing.assert_allclose(x.var(0).numpy(), variance.numpy(), rtol=0.15)


@pytest.mark.parametrize("line", CONTINUOUS)
def test_samples_follow_the_cdf(line):
    """The Kolmogorov-Smirnov distance of n samples exceeds 2.2 / sqrt(n) with probability 1 / 8,000."""
    flow.manual_seed(4)
    d, (x, w) = make_distribution(line), values_of(line)
    mass = np.exp(d.log_prob(along(d, x)).numpy()) * w.reshape(-1, *(1,) * len(d.batch_shape))
    total, samples = mass.cumsum(0) - mass / 2, np.sort(d.sample((COUNT,)).numpy(), 0)
    for at in np.ndindex(*d.batch_shape):
        column = (slice(None), *at)
        p = np.interp(samples[column], x, total[column])
        assert np.abs(p - (np.arange(COUNT) + 0.5) / COUNT).max() < 2.2 / math.sqrt(COUNT) + 3e-3


@pytest.mark.parametrize("p, q", PAIRS)
def test_the_divergence_is_the_integral(p, q):
    line, a, b = p, make_distribution(p), make_distribution(q)
    x, w = values_of(line) if line in CONTINUOUS or line in DISCRETE else values_of(
        next(k for k in [*CONTINUOUS, *DISCRETE] if k.startswith(line.split("(")[0] + "(")))
    la, lb = (m.log_prob(along(m, x if "Uniform" not in line else x)).numpy() for m in (a, b))
    with np.errstate(all="ignore"):
        terms = np.exp(la) * w * (la - lb)
    assert_close(D.kl_divergence(a, b), np.where(np.exp(la) * w == 0, 0, terms).sum(0), 1e-4, 1e-7)
    assert D.kl_divergence(a, a).abs().max().item() < 1e-9


def test_the_divergence_of_vectors_matches_samples():
    """The mean over the samples is within five of its standard errors."""
    flow.manual_seed(5)
    for p, q in ((D.Dirichlet(flow.tensor([1.5, 2.5, 3.0])), D.Dirichlet(flow.tensor([2.0, 1.0, 1.5]))),
                 (make_distribution("d.MultivariateNormal(t([0.3, -1.0]), t([[2.0, 0.6], [0.6, 1.0]]))"),
                  make_distribution(
                      "d.MultivariateNormal(t([0.0, 0.5]), scale_tril=t([[1.2, 0.0], [0.5, 0.8]]))")),
                 (make_distribution("d.OneHotCategorical(t([0.2, 0.5, 0.3]))"),
                  make_distribution("d.OneHotCategorical(t([0.4, 0.4, 0.2]))")),
                 (make_distribution("d.Independent(d.Normal(t([0.3, 1.0]), t(0.7)), 1)"),
                  make_distribution("d.Independent(d.Normal(t([0.0, 1.0]), t(1.0)), 1)"))):
        x = p.sample((COUNT,))
        off = p.log_prob(x) - q.log_prob(x)
        assert abs(off.mean() - D.kl_divergence(p, q)).item() < 5 * off.std().item() / math.sqrt(COUNT)
        if p.event_shape and value_or_none(p, "entropy") is not None:
            assert abs(-p.log_prob(x).mean() - p.entropy()).item() < 5 * p.log_prob(
                x).std().item() / math.sqrt(COUNT)


# ---- gradients
def gradients_and_quotients(line, f):
    """Yield (gradient, difference quotient) of f(distribution) by each tensor, in a random direction."""
    leaves: list = []
    y = f(make_distribution(line, leaves=leaves))
    if not y.requires_grad:
        return
    y.backward()
    numbers = [x.detach().numpy() for x in leaves]
    rng = np.random.default_rng(2)
    for i, leaf in enumerate(leaves):
        v = rng.standard_normal(numbers[i].shape)
        if "MultivariateNormal" in line and v.ndim == 2 and i:
            v = np.tril(v) if "scale_tril" in line else v + v.T

        def shifted(h, i=i, v=v):
            moved = iter([x + h * v if k == i else x for k, x in enumerate(numbers)])

            def t(x):
                return flow.tensor(next(moved))

            return f(eval(line, {"d": D, "t": t})).item()

        h = 1e-4
        want = (8 * (shifted(h) - shifted(-h)) - (shifted(2 * h) - shifted(-2 * h))) / (12 * h)
        yield float((leaf.grad.numpy() * v).sum()) if leaf.grad is not None else 0.0, want


@pytest.mark.parametrize("line", LINES)
def test_the_gradient_of_log_prob_and_entropy(line):
    flow.manual_seed(6)
    x = make_distribution(line).sample((5,))
    weights = flow.tensor(np.cos(np.arange(5.0))).reshape(5, *(1,) * len(make_distribution(line).batch_shape))

    def free(d):
        return setattr(d, "_validate_args", False) or d

    for got, want in gradients_and_quotients(line, lambda d: (free(d).log_prob(x) * weights).sum()):
        assert abs(got - want) <= 1e-6 * max(1.0, abs(want)), (got, want)
    if value_or_none(make_distribution(line), "entropy") is not None:
        for got, want in gradients_and_quotients(line, lambda d: d.entropy().sum()):
            assert abs(got - want) <= 1e-6 * max(1.0, abs(want)), (got, want)


BY_REJECTION = ("Gamma", "Chi2", "Beta", "Dirichlet", "StudentT")


@pytest.mark.parametrize("line", [n for n in LINES if make_distribution(n).has_rsample])
def test_the_gradient_of_samples(line):
    if "StraightThrough" in line:
        leaves: list = []
        d = make_distribution(line, leaves=leaves)
        d.rsample().sum(0).mul(2).backward()
        assert d.rsample().requires_grad and d.rsample().sum(-1).item() == pytest.approx(1)
        return
    if any(n in line for n in BY_REJECTION):
        leaves = []
        make_distribution(line, leaves=leaves).rsample((3,)).sum().backward()
        assert all(x.grad is not None for x in leaves)
        return

    def weigh_sample(d):
        flow.manual_seed(8)
        y = d.rsample((3,))
        return (y * flow.tensor(np.cos(np.arange(y.numel())).reshape(y.shape))).sum()

    for got, want in gradients_and_quotients(line, weigh_sample):
        assert abs(got - want) <= 1e-6 * max(1.0, abs(want)), (got, want)


@pytest.mark.parametrize("a", [0.4, 0.7, 1.0, 3.5, 40.0, 2000.0])
def test_the_gradient_of_a_gamma_variable(a):
    """The cdf at the variable stays constant while the concentration changes. Checked by quadrature."""
    from flowedu.distributions.gamma import slope

    from .distribution_lines import quadrature
    flow.manual_seed(7)
    z = D.Gamma(flow.tensor(a, dtype=flow.float64), 1.0).sample((12,)).numpy()

    def below(b, z):
        x, w = quadrature((0.0, z))
        return float((np.exp((b - 1) * np.log(x) - x - math.lgamma(b)) * w).sum())

    got, h = slope(np.full_like(z, a), z), 1e-3 * a
    for i, v in enumerate(z):
        density = math.exp((a - 1) * math.log(v) - v - math.lgamma(a))
        change = (8 * (below(a + h, v) - below(a - h, v)) - (below(a + 2 * h,
                                                                   v) - below(a - 2 * h, v))) / (12 * h)
        assert abs(got[i] + change / density) <= 1e-4 * abs(got[i]) + 1e-9


@pytest.mark.parametrize("line, by, slope", [
    ("d.Gamma(t(2.5), t(1.7))", 0, 1 / 1.7), ("d.Gamma(t(2.5), t(1.7))", 1, -2.5 / 1.7 ** 2),
    ("d.Chi2(t(3.0))", 0, 1.0),
    ("d.Beta(t(2.5), t(1.5))", 0, 1.5 / 16), ("d.Beta(t(2.5), t(1.5))", 1, -2.5 / 16)])
def test_the_gradient_of_samples_averages_to_that_of_the_mean(line, by, slope):
    flow.manual_seed(7)
    leaves: list = []
    grad, = flow.grad(make_distribution(line, leaves=leaves).rsample((COUNT,)).mean(), [leaves[by]])
    assert abs(grad.item() - slope) < 0.03 * abs(slope)


def test_gamma_samples_have_a_gradient_of_the_rate():
    rate = flow.tensor([2.0], requires_grad=True)
    flow.manual_seed(1)
    y = D.Gamma(flow.tensor([1.5]), rate).rsample()
    y.sum().backward()
    np.testing.assert_allclose(rate.grad.numpy(), -(y / rate).detach().numpy(), rtol=1e-6)


# ---- shapes
@pytest.mark.parametrize("line", LINES)
def test_expand_repeats_the_distribution(line):
    d = make_distribution(line)
    wide = d.expand((3, *d.batch_shape))
    assert (type(wide) is type(d) and wide.batch_shape == (3, *d.batch_shape)
            and wide.event_shape == d.event_shape)
    flow.manual_seed(2)
    x = wide.sample()
    assert x.shape == (3, *d.batch_shape, *d.event_shape)
    np.testing.assert_allclose(wide.log_prob(x).numpy(), d.log_prob(x).numpy(), rtol=1e-12)
    assert d.sample(flow.Size((0,))).shape == (0, *d.batch_shape, *d.event_shape)
    assert d.sample().shape == (*d.batch_shape, *d.event_shape)


class Drawn(flow.nn.Graph):
    """A graph that returns the log-probability of a value, and samples."""

    def __init__(self, line):
        super().__init__()
        self.line = line

    def build(self, x, *numbers):
        rest = iter(numbers)
        d = eval(self.line, {"d": D, "t": lambda _: next(rest)})
        return d.log_prob(x), d.sample((4,))


@pytest.mark.parametrize("line", ["d.Normal(t([0.3, -2.0]), t([0.5, 1.0]))",
                                  "d.Categorical(t([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]))",
                                  "d.Bernoulli(logits=t([0.5, -0.4]))",
                                  "d.Uniform(t([-1.0, 1.0]), t([2.5, 2.0]))",
                                  "d.MultivariateNormal(t([0.3, -1.0]), t([[2.0, 0.6], [0.6, 1.0]]))"])
def test_log_prob_and_samples_in_a_graph(line):
    leaves: list = []
    d = make_distribution(line, leaves=leaves)
    x = d.sample()
    graph = Drawn(line)
    p, drawn = graph(x, *[v.detach() for v in leaves])
    np.testing.assert_allclose(p.numpy(), d.log_prob(x).detach().numpy(), rtol=1e-9)
    again = graph(x, *[v.detach() for v in leaves])[1]
    assert drawn.shape == again.shape == (4, *d.batch_shape, *d.event_shape)
    assert "Normal" not in line or not flow.equal(drawn, again)


# ---- errors
REFUSED = {
    "d.Normal(t(0.0), t(-1.0))": "scale", "d.Bernoulli(t(1.5))": "probs", "d.Bernoulli()": "exactly one of",
    "d.Bernoulli(t(0.5), t(0.5))": "exactly one of", "d.Uniform(t(2.0), t(1.0))": "high",
    "d.Categorical(t(0.5))": "no axis", "d.Categorical(t([0.5, -0.5, 1.0]))": "probs",
    "d.Geometric(t(0.0))": "probs",
    "d.Normal('a', t(1.0))": "not a tensor", "d.Dirichlet(t([1.0, 0.0]))": "concentration",
    "d.MultivariateNormal(t([0.0, 0.0]), t([[1.0]]))": "does not fit loc",
    "d.MultivariateNormal(t([0.0, 0.0]), t([[1.0, 2.0], [2.0, 1.0]]))": "covariance_matrix",
    "d.Multinomial(t(2.0), t([0.5]))": "inhomogeneous",
    "d.Normal(t(0.0), t(1.0)).log_prob(1.0)": "not a tensor",
    "d.Exponential(t(1.0)).log_prob(t(-1.0))": "support",
    "d.Categorical(t([0.5, 0.5])).log_prob(t(2.0))": "support",
    "d.Exponential(t([1.0, 1.0])).log_prob(t([1.0, -1.0]))": "support",
    "d.Normal(t([0.0, 1.0]), t(1.0)).log_prob(t([1.0, 2.0, 3.0]))": "does not fit",
    "d.Bernoulli(t(0.5)).rsample()": "no smooth function", "d.Poisson(t(1.0)).cdf(t(1.0))": "not known",
    "d.kl_divergence(d.Normal(t(0.0), t(1.0)), d.Poisson(t(1.0)))": "no formula",
    "d.Independent(d.Poisson(t(1.0)), 1)": "out of range", "d.register_kl(int, d.Normal)": "no class",
    "d.TransformedDistribution(d.Poisson(t(1.0)), [3])": "no transform",
    "d.Distribution.set_default_validate_args(3)": "no truth",
    "d.Binomial(t([1.0, 2.0]), t(0.5)).entropy()": "differ in number",
    "d.kl_divergence(d.LogNormal(t(0.0), t(1.0)), d.TransformedDistribution(d.Normal(t(0.0), t(1.0)), []))": "alike",
    "d.StackTransform([d.ExpTransform()])(t([1.0, 2.0]))": "for each place",
    "d.AbsTransform().log_abs_det_jacobian(1, 2)":
    "there is no log_abs_det_jacobian",
}


@pytest.mark.parametrize("line", REFUSED)
def test_invalid_parameters_are_refused(line):
    with pytest.raises(FlowError, match=f"(?s){REFUSED[line]}.*expected.*got.*fix"):
        make_distribution(line)


def test_validation_can_be_disabled():
    d = D.Normal(flow.tensor(0.0), flow.tensor(-1.0), validate_args=False)
    assert d.log_prob(flow.tensor(0.0)).isnan() and d.expand((2,))._validate_args is False
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Exponential(flow.tensor(1.0)).log_prob(flow.tensor(-1.0)).item() == 1
    finally:
        D.Distribution.set_default_validate_args(True)


def test_register_kl_adds_a_formula():
    class Mine(D.Normal):
        pass

    @D.register_kl(Mine, D.Normal)
    def _mine(p, q):
        return flow.tensor(7.0)

    from flowedu.distributions import kl
    try:
        a, b = Mine(0.0, 1.0), D.Normal(0.0, 1.0)
        assert D.kl_divergence(a, b) == 7 and D.kl_divergence(b, a) == 0
    finally:
        del kl._TABLE[Mine, D.Normal]


@pytest.mark.slow
@pytest.mark.parametrize("a", [0.05, 0.8, 3.0, 40.0, 2000.0])
def test_the_cdf_of_a_gamma_variable_and_its_gradients(a):
    """The cdf matches an integral to 9 digits in both tails, and its gradients match difference quotients."""
    centre = max(a, 0.05)
    z = np.array([1e-3, 0.3, 0.9, 1.0, 1.1, 2.5, 8.0]) * centre
    x, w = np.polynomial.legendre.leggauss(600)          # in u = t^a the density has no pole at 0
    top = z[:, None] ** min(a, 1.0)
    u = top / 2 * (x + 1)
    t = u ** (1 / min(a, 1.0))
    logs = (a - 1) * np.log(t) - t - math.lgamma(a) + np.log(t) - np.log(u) - math.log(min(a, 1.0))
    want = (np.exp(logs) * w * top / 2).sum(1)
    leaves = [flow.tensor(v, dtype=flow.float64, requires_grad=True) for v in (np.full(7, a), z)]
    p = D.Gamma(leaves[0], flow.tensor(1.0, dtype=flow.float64)).cdf(leaves[1])
    np.testing.assert_allclose(p.detach().numpy(), want, rtol=1e-9, atol=1e-12)
    p.sum().backward()
    for i, leaf in enumerate(leaves):
        h = 1e-4 * leaf.detach().numpy()
        sides = [D.Gamma(*(flow.tensor(v) for v in (np.full(7, a) + (i == 0) * s * h, np.ones(7)))).cdf(
            flow.tensor(z + (i == 1) * s * h)).numpy() for s in (1, -1)]
        np.testing.assert_allclose(leaf.grad.numpy(), (sides[0] - sides[1]) / (2 * h), rtol=1e-4,
                                   atol=1e-7 / a)
    ends = D.Gamma(leaves[0][:2].detach(), 1.0,
                   validate_args=False).cdf(flow.tensor([0.0, np.inf], dtype=flow.float64))
    assert ends.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("call, told", [
    (lambda t: D.MixtureSameFamily(D.Normal(t([0.0]), 1.0), D.Normal(t([0.0]), 1.0)), "mixture_dist"),
    (lambda t: D.MixtureSameFamily(D.Categorical(t([0.5, 0.5])), t([0.0])), "component_dist"),
    (lambda t: D.MixtureSameFamily(D.Categorical(t([0.5, 0.5])), D.Normal(t([0.0, 1.0, 2.0]), 1.0)),
     "do not fit"),
    (lambda t: D.MixtureSameFamily(D.Categorical(t([0.5, 0.5])), D.Normal(t(0.0), 1.0)),
     "components do not fit"),
    (lambda t: D.MixtureSameFamily(D.Categorical(t([[0.5, 0.5]] * 3)), D.Normal(t([[0.0, 1.0]] * 2), 1.0)),
     "do not fit")])
def test_invalid_mixtures_are_refused(call, told):
    with pytest.raises(FlowError, match=f"(?s){told}.*fix:"):
        call(flow.tensor)
