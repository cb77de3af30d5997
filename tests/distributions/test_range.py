"""Laws of sampling over the range of float32: cost, half-open intervals, and gradients of gamma variables."""
import math
import sys

import numpy as np
import pytest

import flowedu as flow
from flowedu.distributions import gamma

from . import exact

d = flow.distributions
WIDE = [1e-37, 1e-20, 1e-8, 1e-3, 0.1, 8.0, 19.0, 21.0, 1e4, 1e8, 1e12, 1e18]
PROBABILITIES = [1e-37, 1e-20, 1e-8, 1e-3, 0.1, 0.9, 1 - 2.0 ** -23]
# name: (constructor with one parameter, its values). The reference value is 1, or 1/2 for probabilities.
FAMILIES = {
    "Gamma": (lambda a: d.Gamma(a, 1.0), WIDE), "Gamma, rate": (lambda a: d.Gamma(2.0, a), WIDE),
    "Chi2": (d.Chi2, WIDE),
    "Beta": (lambda a: d.Beta(a, a), WIDE), "Beta, one": (lambda a: d.Beta(a, 1.0), WIDE),
    "Dirichlet": (lambda a: d.Dirichlet(flow.stack([a, a, 1 + a * 0], -1)), WIDE),
    "StudentT": (d.StudentT, WIDE),
    "Exponential": (d.Exponential, WIDE), "Weibull": (lambda a: d.Weibull(1.0, a), WIDE),
    "Pareto": (lambda a: d.Pareto(1.0, a), WIDE), "Normal": (lambda a: d.Normal(0.0, a), WIDE),
    "HalfCauchy": (d.HalfCauchy, WIDE), "Poisson": (d.Poisson, WIDE),
    "Binomial, count": (lambda n: d.Binomial(n.ceil(), 0.3), [1.0, 30.0, 1e4, 1e8, 1e12, 1e18]),
    "Multinomial, count": (lambda n: d.Multinomial(int(n[0].item()),
                                                   flow.tensor([0.2, 0.5, 0.3]).expand(len(n), 3)),
                           [1.0, 30.0, 1e4, 1e8, 1e12, 1e18]),
    "Bernoulli": (d.Bernoulli, PROBABILITIES), "Geometric": (d.Geometric, PROBABILITIES),
    "Binomial": (lambda p: d.Binomial(1000, p), PROBABILITIES), "Categorical": (
        lambda p: d.Categorical(flow.stack([p, 1 - p], -1)), PROBABILITIES),
}


def count_lines(f) -> int:
    """Return the number of Python lines that a call of f runs. Unlike time, it has no noise."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        f()
    finally:
        sys.settrace(before)
    return count


def draw(make, x: float) -> None:
    """Draw four samples with parameter x, and compute the gradient if the distribution has rsample."""
    leaf = flow.full((4,), x, requires_grad=True)
    distribution = make(leaf)
    if distribution.has_rsample:
        distribution.rsample().sum().backward()
    else:
        distribution.sample()


@pytest.mark.parametrize("name", FAMILIES)
def test_the_cost_of_samples_does_not_grow(name):
    make, values = FAMILIES[name]
    flow.manual_seed(0)
    middle = 0.5 if values is PROBABILITIES else 1.0
    draw(make, middle)                                   # fills caches
    limit = 10 * count_lines(lambda: draw(make, middle))
    for x in values:
        assert count_lines(lambda x=x: draw(make, x)) <= limit, x


@pytest.mark.parametrize("z", [0.0, 1e-3, 1.0, 1e8, 1e30])
def test_the_cost_of_a_cdf_does_not_grow(z):
    def run(a):
        leaf = flow.tensor([a], requires_grad=True)
        d.Gamma(leaf, 1.0, validate_args=False).cdf(flow.tensor([z])).sum().backward()

    run(1.0)
    # The continued fraction may take 1000 steps of 6 lines, and the gradient's series 1000 steps of 4 lines.
    limit = 10_000 + 10 * count_lines(lambda: run(1.0))
    for a in WIDE:
        assert count_lines(lambda a=a: run(a)) <= limit, a


def exact_slope(a: float, z: float) -> tuple[float, float]:
    """Return dz/da of a gamma variable at constant probability, and the probability of values above z.

    Both use the power series of the incomplete gamma function in decimal arithmetic.
    """
    @exact.exactly
    def run(a, z):
        term = 1 / a
        psi = exact.digamma(a + 1)
        total = exact.ZERO
        mass = exact.ZERO
        log, k = exact.log(z), 0
        while term > abs(total) * exact.D(10) ** -40 or k < 5:
            total, mass = total - term * (log - psi), mass + term
            k += 1
            term, psi = term * z / (a + k), psi + 1 / (a + k)
        return z * total, 1 - mass * (a * log - z - exact.lgamma(a)).exp()

    y, tail = run(a, z)
    return float(y), float(tail)


@pytest.mark.parametrize("a", [1e-20, 1e-3, 0.5, 1.0, 7.0, 19.9, 20.1, 35.0, 100.0, 300.0, 1e4, 1e6])
def test_the_slope_of_a_gamma_variable(a):
    """The bound 1e-13 covers the truncation of the expansion and the rounding of z.

    The omitted terms are below 1e-14. Each z = a + w sqrt(a) has an error of a 2^-52, which changes the slope
    by half of that over sqrt(a). The series for a below 20 sums terms of both signs, which add up to 1 - F
    times the largest, so its error is 2^-52 / (1 - F), times 2^3 for its roundings.
    """
    w = np.array([-6, -3, -1, -1e-3, 0, 1e-9, 0.5, 2, 5] + [10] * (a > 20))
    z = np.array([x for x in a + math.sqrt(a) * w if x > 0])
    want, tail = np.array([exact_slope(a, x) for x in z]).T
    columns = np.full_like(z, a)
    bound = 1e-13 + 2.0 ** -49 / tail * (a < 20)
    off = np.abs(gamma.slope(columns, z) / want - 1)
    assert (off <= bound).all(), (z, off, bound)


@pytest.mark.parametrize("a", [1e8, 1e12, 1e20, 1e30])
def test_the_slope_of_a_large_gamma_variable(a):
    """The slope of the quantile a + w sqrt(a) + (w^2 - 1) / 3 + ... is 1 + w / (2 sqrt(a)) + O(w^3 / a)."""
    w = np.array([-5.0, -1.0, 0.0, 2.0, 6.0])
    z = a + w * np.sqrt(a) + (w * w - 1) / 3
    np.testing.assert_allclose(gamma.slope(np.full_like(z, a), z), 1 + w / (2 * np.sqrt(a)),
                               rtol=1e-14 + 40 / a)


@pytest.mark.parametrize("a", [20.0, 50.0, 100.0, 1e3, 1e5])
def test_the_cdf_of_a_large_concentration_matches_the_series(a):
    """The reference is the series, which needs many terms for a large concentration.

    Both have errors below 1e-13, from 250 roundings of terms below 1. The factor exp(a log(z) - z -
    lgamma(a)) of the series adds 2^-52 a log(a).
    """
    z = a + math.sqrt(a) * np.linspace(-4, 0.5, 20)
    columns = np.full_like(z, a)
    np.testing.assert_allclose(gamma.below(columns, z), gamma._below_by_series(columns, z), rtol=0,
                               atol=1e-13 + 2.0 ** -50 * a * math.log(a))


def test_samples_of_small_concentrations_reach_both_ends():
    """Samples of Beta(a, a) with small a are near 0 or 1. Underflowing gamma variables would give 1/2."""
    flow.manual_seed(1)
    n = 4000
    for a in (1e-6, 1e-3):
        x = d.Beta(flow.tensor(a), flow.tensor(a)).sample((n,)).numpy()
        # The probability of [0.1, 0.9] is about a log(9) <= 0.0023. Allow five standard deviations more.
        assert ((x > 0.1) & (x < 0.9)).sum() <= n * 0.0023 + 5 * math.sqrt(n * 0.0023)
        # Five standard deviations of a fair coin.
        assert abs((x > 0.5).sum() - n / 2) <= 5 * math.sqrt(n) / 2
        y = d.Dirichlet(flow.full((3,), a)).sample((n,)).numpy()
        for share in (y > 0.5).sum(0):
            # At most 1 % have no entry above 1/2.
            assert abs(share - n / 3) <= 5 * math.sqrt(n * 2 / 9) + n * 0.01


@pytest.mark.parametrize("a", [1e-30, 1e-6, 0.5, 1e6, 1e30])
def test_gradients_of_samples_are_finite(a):
    for make in (lambda x: d.Gamma(x, 1.0), d.Chi2, lambda x: d.Beta(x, 2.0), lambda x: d.Beta(x, x),
                 lambda x: d.Dirichlet(flow.stack([x, x * 0 + 2], -1)), d.StudentT):
        flow.manual_seed(2)
        x = flow.full((50,), a, requires_grad=True)
        y = make(x).rsample()
        assert y.isfinite().all() and not flow.autograd.grad(y.sum(), x)[0].isnan().any()


@pytest.mark.parametrize("low, high", [(0.0, 1.0), (-2.0, 3.0), (1e8, 1e8 + 8), (-1.0, 0.0), (-3e38, 3e38),
                                       (1.0, 1 + 2.0 ** -23)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_samples_are_half_open(low, high, dtype):
    flow.manual_seed(3)
    low, high = (flow.tensor(x, dtype=getattr(flow, dtype)) for x in (low, high))
    if not bool(low < high) or not bool((low.isfinite() & high.isfinite()).item()):
        return
    x = d.Uniform(low, high).sample((20000,))
    assert x.dtype is low.dtype and bool(((x >= low) & (x < high)).all())
    assert bool(d.Uniform(low, high).log_prob(x).isfinite().all())
    leaf = high.detach().requires_grad_()
    assert flow.autograd.grad(d.Uniform(low, leaf).rsample((5,)).float().sum(), leaf)[0].isfinite().all()


def test_counts_of_large_multinomials():
    flow.manual_seed(4)
    n, p = 10 ** 9, flow.tensor([[0.2, 0.5, 0.3], [0.0, 0.25, 0.75]], dtype=flow.float64)
    x = d.Multinomial(n, p).sample((50,))
    assert x.shape == (50, 2, 3) and bool((x.sum(-1) == n).all()) and bool((x[:, 1, 0] == 0).all())
    # Allow six standard deviations for each count.
    assert bool(((x - n * p).abs() <= 6 * (n * p * (1 - p)).sqrt()).all())
