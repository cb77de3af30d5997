"""Laws of precision: log-densities, entropies, divergences, and their gradients over the whole range of
float32.

Bound of a value y: 2^-23 |y| + 2^-36. The result is rounded to float32 once (2^-24 |y|). The float64
computation before adds at most 2^-24 |y| where terms are large, since no two terms that are 2^28 times y
cancel, and 2^-36 from sums of at most 16 logarithms, each below 2^7 in magnitude: 2^4 * 2^7 * 2^-52 = 2^-41,
times 2^5 for the roundings within a term.

Bound of a gradient dy/dp: the same for the elasticity p dy/dp, which has the terms of y without their
logarithms. Float32 gradients below 2^-149 are 0, so 2^-149 |p| is added.
"""
import math
from decimal import Decimal

import numpy as np
import pytest

import flowedu as flow

from . import exact

d = flow.distributions
LARGEST = float(np.finfo(np.float32).max)
# Values over the whole range of float32, close together in the middle, where formulas change branches.
POSITIVE = [1.4e-45, 1e-42, 1.2e-38, 1e-30, 1e-20, 1e-12, 1e-8, 3e-8, 1e-5, 1e-3, 0.1, 0.5, 1.0, 1.5, 3.0,
            9.9, 10.1, 40.0, 99.0, 101.0, 1e3, 1e5, 1e6, 1e8, 1e12, 1e20, 1e30, 1e37]
COUNTS = [0.0, 1.0, 2.0, 7.0, 10.0, 99.0, 1e3, 1e5, 1e8, 1e12, 1e20, 1e30, 1e37]
PROBABILITIES = [1.2e-38, 1e-30, 1e-20, 1e-12, 1e-8, 3e-8, 1e-5, 1e-3, 0.1, 0.5, 0.75, 0.9, 0.999,
                 1 - 2.0 ** -23]
LOGITS = [-1e30, -1e4, -700.0, -90.0, -20.0, -1.0, -1e-6, 1e-6, 0.5, 15.0, 40.0, 100.0, 700.0, 1e4]
FACTORS = [1e-20, 1e-3, 0.3, 0.8, 0.9, 0.99, 1 - 1e-6, 1.0, 1 + 2.0 ** -20, 1.01, 1.11, 1.3, 5.0, 1e4]


def rounded(x: float) -> float:
    """Return a number rounded to float32."""
    with np.errstate(over="ignore"):
        return float(np.float32(x))


def is_normal(x: float) -> bool:
    """True if x is in the range of normal float32 numbers."""
    return 1.17549435e-38 <= abs(x) <= LARGEST


def around(center: float) -> list[float]:
    """Return normal numbers of float32 near a center and far from it."""
    return [x for x in (rounded(center * f) for f in FACTORS) if is_normal(x)]


def counts_around(center: float) -> list[float]:
    """Return integers near a center, and 0, 1, 2."""
    return sorted({0.0, 1.0, 2.0} | {rounded(np.round(x)) for x in around(center)})


SCALES = [1e-30, 1e-20, 1e-5, 0.3, 1.0, 7.0, 1e6, 1e20, 1e37]
PLACES = [(x, loc, s) for s in SCALES for loc, x in ((0.5, 0.5), (0.5, 0.75), (-3.0, 2e4), (1e-3, 1e25),
                                                     (2.0, -1e-3))]
# name: (constructor of the distribution, exact function of value and parameters, rows of arguments)
DENSITIES = {
    "Normal": (d.Normal, exact.normal, [p for p in PLACES if abs((p[0] - p[1]) / p[2]) < 1e18]),
    "Laplace": (d.Laplace, exact.laplace, [p for p in PLACES if abs((p[0] - p[1]) / p[2]) < 1e36]),
    "Cauchy": (d.Cauchy, exact.cauchy, PLACES),
    "Gumbel": (d.Gumbel, exact.gumbel, [p for p in PLACES if -80 < (p[0] - p[1]) / p[2] < 1e36]),
    "StudentT": (lambda n, m, s: d.StudentT(n, m, s), lambda x, n, m, s: exact.student_t(x, n, m, s),
                 [(x, n, 0.25, s) for n in POSITIVE for x, s in ((0.3, 1.0), (2.0, 0.5), (-30.0, 2.0),
                                                                 (1e10, 1e-3))]),
    "HalfNormal": (d.HalfNormal, exact.half_normal, [(x, s) for s in SCALES for x in around(s)]),
    "HalfCauchy": (d.HalfCauchy, exact.half_cauchy, [(x, s) for s in SCALES for x in around(s)]),
    "Exponential": (d.Exponential, exact.exponential, [(x, r) for r in POSITIVE for x in around(1 / r)]),
    "Weibull": (d.Weibull, exact.weibull,
                [(x, s, k) for s in SCALES for k in (1e-6, 0.1, 1.0, 4.0, 50.0, 1e5) for x in around(s)
                 if k * math.log(x / s) < 80]),
    "Pareto": (d.Pareto, exact.pareto, [(x, s, a) for s in SCALES for a in POSITIVE[::2] for x in around(s)
                                        if x >= s]),
    "Gamma": (d.Gamma, exact.gamma, [(x, a, r) for a in POSITIVE for r in (1e-20, 0.75, 1e6)
                                     for x in around(a / r)]),
    "Chi2": (d.Chi2, exact.chi2, [(x, n) for n in POSITIVE[1:] for x in around(n)]),
    "Beta": (d.Beta, exact.beta,
             [(x, a, b) for a in POSITIVE[::2] for b in POSITIVE[1::2] for x in [*around(a / (a + b)), 0.5]
              if x < 1]),
    "Bernoulli": (d.Bernoulli, exact.bernoulli, [(x, p) for p in PROBABILITIES for x in (0.0, 1.0)]),
    "Bernoulli, logits": (lambda x: d.Bernoulli(logits=x), exact.bernoulli_by_logits,
                          [(x, p) for p in LOGITS for x in (0.0, 1.0)]),
    "Geometric": (d.Geometric, exact.geometric, [(k, p) for p in PROBABILITIES
                                                 for k in counts_around(1 / p)]),
    "Geometric, logits": (lambda x: d.Geometric(logits=x), exact.geometric_by_logits,
                          [(k, p) for p in LOGITS if p > -80 for k in counts_around(1 + math.exp(-p))]),
    "Binomial": (d.Binomial, exact.binomial,
                 [(k, n, p) for n in COUNTS for p in PROBABILITIES for k in {*counts_around(n * p), n}
                  if k <= n]),
    "Binomial, logits": (lambda n, x: d.Binomial(n, logits=x), exact.binomial_by_logits,
                         [(k, n, x) for n in COUNTS for x in LOGITS if abs(x) < 1e5
                          for k in {0.0, 1.0, n // 2, n}
                          if k <= n]),
    "Poisson": (d.Poisson, exact.poisson, [(k, r) for r in POSITIVE for k in counts_around(r)]),
}
PAIRS_OF_POSITIVE = [(a, b) for a in POSITIVE for b in (*around(a)[2:], 1.0, 1e-6, 1e6)]
FEW = [1e-30, 1e-8, 0.1, 1.0, 3.0, 12.0, 150.0, 1e6, 1e12, 1e20, 1e30]
QUADRUPLES = [(a, b, c, e) for a in FEW for b in FEW
              for c, e in ((a, b), (rounded(a * 1.001), b), (a, rounded(b * 2)), (0.5, 0.5))]
OF_PLACES = [(m, s, n, t) for s in SCALES for t in (s, rounded(s * 1.0001), rounded(s * 3), 1.0)
             for m, n in ((0.5, 0.5), (0.5, 0.5000001), (-3.0, 2.0), (0.5, 1e3))]
# name: (constructor of the distribution, exact function of the parameters, rows of parameters)
ENTROPIES = {
    "Gamma": (d.Gamma, exact.gamma_entropy, [(a, r) for a in POSITIVE for r in (1e-20, 1.0, 1e6)]),
    "Chi2": (d.Chi2, exact.chi2_entropy, [(n,) for n in POSITIVE[1:]]),
    "StudentT": (d.StudentT, exact.student_t_entropy, [(n, 0.5, s) for n in POSITIVE for s in (1e-20, 1.0)]),
    "Beta": (d.Beta, exact.dirichlet_entropy, [(a, b) for a in POSITIVE for b in POSITIVE]),
    "Bernoulli": (d.Bernoulli, exact.bernoulli_entropy, [(p,) for p in PROBABILITIES]),
    "Geometric": (d.Geometric, exact.geometric_entropy, [(p,) for p in PROBABILITIES]),
    "Exponential": (d.Exponential, exact.exponential_entropy, [(r,) for r in POSITIVE]),
    "Weibull": (d.Weibull, exact.weibull_entropy, [(s, k) for s in SCALES for k in POSITIVE if k > 1e-5]),
    "Pareto": (d.Pareto, exact.pareto_entropy, [(s, k) for s in SCALES for k in POSITIVE if k > 1e-5]),
    "Normal": (d.Normal, exact.log_of_scale((exact.log(2 * exact.pi()) + 1) / 2), [(0.5, s) for s in SCALES]),
    "Laplace": (d.Laplace, exact.log_of_scale(exact.log(Decimal(2)) + 1),
                [(0.5, s) for s in (*SCALES, 3e38)]),
    "Cauchy": (d.Cauchy, exact.log_of_scale(exact.log(4 * exact.pi())), [(0.5, s) for s in SCALES]),
    "Gumbel": (d.Gumbel, exact.log_of_scale(1 + exact.euler()), [(0.5, s) for s in SCALES]),
    "HalfNormal": (d.HalfNormal, exact.log_of_scale((exact.log(exact.pi() / 2) + 1) / 2),
                   [(s,) for s in SCALES]),
    "HalfCauchy": (d.HalfCauchy, exact.log_of_scale(exact.log(2 * exact.pi())), [(s,) for s in SCALES]),
}
DIVERGENCES = {
    "Gamma": (d.Gamma, exact.gamma_kl, [q for q in QUADRUPLES if q[1] * q[2] / q[3] < 1e60]),
    "Beta": (d.Beta, exact.dirichlet_kl, QUADRUPLES),
    "Bernoulli": (d.Bernoulli, exact.bernoulli_kl, [(p, q) for p in PROBABILITIES for q in PROBABILITIES]),
    "Geometric": (d.Geometric, exact.geometric_kl, [(p, q) for p in PROBABILITIES for q in PROBABILITIES]),
    "Poisson": (d.Poisson, exact.poisson_kl, PAIRS_OF_POSITIVE),
    "Exponential": (d.Exponential, exact.exponential_kl, PAIRS_OF_POSITIVE),
    "HalfNormal": (d.HalfNormal, exact.half_normal_kl, PAIRS_OF_POSITIVE),
    "Normal": (d.Normal, exact.normal_kl, OF_PLACES),
    "Laplace": (d.Laplace, exact.laplace_kl, OF_PLACES),
    "Cauchy": (d.Cauchy, exact.cauchy_kl, OF_PLACES),
    "Gumbel": (d.Gumbel, exact.gumbel_kl, [q for q in OF_PLACES if abs(q[0] - q[2]) / q[3] < 80
                                           and q[1] / q[3] < 20]),
    "Pareto": (d.Pareto, exact.pareto_kl,
               [(s, a, s / 2, b) for s in SCALES for a in FEW for b in (a, rounded(a * 1.001), 1.0)]),
}


def violations(row: tuple, value: float, gradients: list[float], exact_function, slack: float) -> list[tuple]:
    """Return the violated bounds of one value and its gradients, as (arguments, name, computed, exact)."""
    wrong, want = [], exact_function(*row)
    if abs(want) < LARGEST and not abs(Decimal(value) - want) <= abs(want) / 2 ** 23 + Decimal(2) ** -36:
        wrong.append((row, "value", value, float(want)))
    for j, gradient in enumerate(gradients):
        if row[j] == 0:
            continue
        slope, size = exact.derivative(exact_function, row, j), abs(Decimal(row[j]))
        bound = size * abs(slope) / 2 ** 22 + Decimal(2) ** -36 + size / 2 ** 149 + Decimal(slack)
        if abs(slope) < LARGEST and not size * abs(Decimal(gradient) - slope) <= bound:
            wrong.append((row, f"gradient {j}", gradient, float(slope)))
    return wrong


def assert_precise(f, exact_function, rows: list[tuple], lowest: float = -math.inf,
                   slack: float = 0.0) -> None:
    """Check a function of float32 tensors, and its gradients, against an exact function of floats."""
    rows = [tuple(rounded(x) for x in row) for row in rows]
    leaves = [flow.tensor(np.array(column, np.float32), requires_grad=True) for column in zip(*rows)]
    y = f(*leaves)
    assert y.dtype is flow.float32
    gradients = []
    if y.requires_grad:
        found = flow.autograd.grad(y.sum(), leaves, allow_unused=True)
        gradients = [np.zeros(len(rows)) if g is None else g.numpy().astype(np.float64) for g in found]
    values = y.detach().numpy().astype(np.float64)
    assert (values >= lowest).all()
    wrong = []
    for i, row in enumerate(rows):
        wrong += violations(row, float(values[i]), [float(g[i]) for g in gradients], exact_function, slack)
    assert not wrong, f"{len(wrong)} of {len(rows)}: {wrong[:8]}"


# All rows take a minute, so the usual run takes every seventh row.
EVERY = pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])


@EVERY
@pytest.mark.parametrize("name", DENSITIES)
def test_log_densities(name, every):
    make, exact_function, rows = DENSITIES[name]

    def density(x, *parameters):
        distribution = make(*parameters)
        distribution._validate_args = False
        return distribution.log_prob(x)

    assert_precise(density, exact_function, rows[::every])


@EVERY
@pytest.mark.parametrize("name", ENTROPIES)
def test_entropies(name, every):
    make, exact_function, rows = ENTROPIES[name]
    assert_precise(lambda *parameters: make(*parameters).entropy(), exact_function, rows[::every])


@EVERY
@pytest.mark.parametrize("name", DIVERGENCES)
def test_divergences(name, every):
    make, exact_function, rows = DIVERGENCES[name]

    def divergence(*parameters):
        half = len(parameters) // 2
        return d.kl_divergence(make(*parameters[:half]), make(*parameters[half:]))

    assert_precise(divergence, exact_function, rows[::every], lowest=0.0)


# ---- vectors
CONCENTRATIONS = [(1.0, 1.0, 1.0), (0.1, 3.0, 7.0), (1e-30, 1e-20, 0.5), (1e6, 2e6, 3e6), (1e30, 1.0, 2.0),
                  (1e30, 1e30, 2e30), (0.5, 40.0, 1e12)]
SHARES = [(0.5, 0.25, 0.25), (1e-20, 0.75, 0.25), (0.125, 0.375, 0.5), (0.25, 0.25, 0.5)]


@pytest.mark.parametrize("a", CONCENTRATIONS)
def test_dirichlet(a):
    def split(f):
        return lambda *numbers: f(*(flow.stack(list(v), -1) for v in (numbers[:3], numbers[3:]) if v))

    # Gradients are sums of terms as large as the total concentration, which cancel.
    assert_precise(split(lambda x, b: d.Dirichlet(b, validate_args=False).log_prob(x)), exact.dirichlet,
                   [(*x, *a) for x in SHARES], slack=sum(a) / 2 ** 50)
    assert_precise(split(lambda b: d.Dirichlet(b).entropy()), exact.dirichlet_entropy, [a])
    others = [a, tuple(rounded(x * 1.001) for x in a), (a[1], a[0], a[2]), (a[0], a[1], rounded(a[2] * 1.5))]
    assert_precise(split(lambda b, c: d.kl_divergence(d.Dirichlet(b), d.Dirichlet(c))), exact.dirichlet_kl,
                   [(*a, *b) for b in others], lowest=0.0)


@pytest.mark.parametrize("n", [0, 4, 1000, 10 ** 6, 10 ** 9])
@pytest.mark.parametrize("weights", [(0.25, 0.25, 0.5), (0.5, 0.0, 0.5), (1.0, 0.0, 0.0), (1e-30, 0.5, 0.5)])
def test_multinomial(n, weights):
    """The weights are exact in float32, so exact function and distribution get the same parameters."""
    counts = [(n // 2, 0, n - n // 2), (0, 0, n), (n, 0, 0), (0, n // 2, n - n // 2)]
    logs = [math.log(w) if w else -math.inf for w in weights]
    for row in counts:
        @exact.exactly
        def log_probability(*k):
            return exact.lgamma(Decimal(n + 1)) + sum(exact.times_log(x, Decimal(w)) - exact.lgamma(x + 1)
                                                      for x, w in zip(k, weights))

        want = log_probability(*map(float, row))
        for by in ({"probs": flow.tensor(weights)}, {"logits": flow.tensor(logs, dtype=flow.float64)}):
            got = Decimal(d.Multinomial(n, **by,
                                        validate_args=False).log_prob(flow.tensor(row,
                                                                                  dtype=flow.float32)).item())
            if want == Decimal("-Infinity"):
                assert got == want
            else:
                # math.log rounds the logarithms, which adds n * 2^-53 * 69.
                assert abs(got - want) <= abs(want) / 2 ** 23 + Decimal(2) ** -36 + Decimal(n) / 2 ** 46, (
                    row, by)


def test_impossible_outcomes():
    """Outcomes of probability 0 have log-probability -inf, others stay correct, and no gradient is NaN."""
    nothing = -math.inf
    logits = flow.tensor([0.0, nothing, 0.0], requires_grad=True)
    probs = flow.tensor([0.5, 0.0, 0.5], requires_grad=True)
    counts = flow.tensor([2.0, 0.0, 2.0])
    for leaf, by in ((logits, {"logits": logits}), (probs, {"probs": probs})):
        results = [d.Multinomial(4, **by, validate_args=False).log_prob(counts),
                   d.Categorical(**by, validate_args=False).log_prob(flow.tensor(0)),
                   d.Categorical(**by, validate_args=False).entropy(),
                   d.OneHotCategorical(**by, validate_args=False).log_prob(flow.tensor([1.0, 0.0, 0.0])),
                   d.kl_divergence(d.Categorical(**by, validate_args=False),
                                   d.Categorical(flow.tensor([0.25, 0.25, 0.5])))]
        expected = [math.log(6 / 16), math.log(0.5), math.log(2), math.log(0.5), 0.5 * math.log(2)]
        for y, want in zip(results, expected):
            assert y.item() == pytest.approx(want, rel=2.0 ** -22)
            gradient, = flow.autograd.grad(y, leaf)
            assert gradient.isfinite().all(), y
        assert d.Categorical(**by, validate_args=False).log_prob(flow.tensor(1)).item() == nothing
        q = d.Categorical(**by, validate_args=False)
        assert d.kl_divergence(d.Categorical(flow.tensor([0.25, 0.25, 0.5])), q).item() == math.inf
    for make in (d.Bernoulli, d.Geometric, lambda p: d.Binomial(5, p)):
        for p, impossible, certain in ((0.0, 1.0, 0.0), (1.0, 0.0, 1.0)):
            if make is d.Geometric:
                impossible, certain, p = 1.0, 0.0, 1.0
            certain = certain * (1 if make in (d.Bernoulli, d.Geometric) else 5)
            leaf = flow.tensor(p, requires_grad=True)
            assert make(leaf).log_prob(flow.tensor(impossible)).item() == nothing
            y = make(leaf).log_prob(flow.tensor(certain))
            gradient, = flow.autograd.grad(y, leaf)
            assert y.item() == 0 and gradient.isfinite().all()


def test_improbable_logits_have_finite_divergences():
    p, q = d.Categorical(logits=flow.tensor([0.0, 0.0])), d.Categorical(logits=flow.tensor([0.0, -200.0]))
    assert d.kl_divergence(p, q).item() == pytest.approx(100 - math.log(2), rel=2.0 ** -22)
    p, q = d.Bernoulli(logits=flow.tensor(0.0)), d.Bernoulli(logits=flow.tensor(-1000.0))
    assert d.kl_divergence(p, q).item() == pytest.approx(500 - math.log(2), rel=2.0 ** -22)


@pytest.mark.parametrize("name", ["Gamma", "Beta", "StudentT", "Binomial", "Geometric", "Poisson", "Cauchy"])
def test_graphs_agree_with_eager_mode(name):
    """A graph returns the same float32 log-densities as eager mode."""
    make, _, rows = DENSITIES[name]
    rows = [[rounded(x) for x in row] for row in rows[::11]]
    columns = [flow.tensor(np.array(column, np.float32)) for column in zip(*rows)]

    def density(x, *parameters):
        distribution = make(*parameters)
        distribution._validate_args = False
        return distribution.log_prob(x)

    class Density(flow.nn.Graph):
        def build(self, *arguments):
            return density(*arguments)

    y, want = Density()(*columns), density(*columns)
    assert y.dtype is flow.float32
    np.testing.assert_allclose(y.numpy(), want.numpy(), rtol=2.0 ** -22, atol=2.0 ** -36)
