"""Distributions under test, as lines of code, and their expectations by quadrature or sums.

In a line, `d` is flow.distributions or torch.distributions, and `t` makes a float64 tensor. The quadrature
shares no code with the formulas of flow.distributions.
"""
import numpy as np

import flowedu as flow

REAL, POSITIVE, SHARE = "real", "positive", "share"
# line: domain of the values
CONTINUOUS = {
    "d.Normal(t(0.3), t(1.4))": REAL, "d.Normal(t([0.3, -2.0]), 0.5)": REAL,
    "d.Laplace(t(0.3), t(0.7))": REAL,
    "d.Cauchy(t(-0.5), t(0.7))": REAL, "d.Gumbel(t(0.3), t(1.2))": REAL,
    "d.StudentT(t(5.0), t(0.4), t(1.3))": REAL,
    "d.StudentT(t(3.0))": REAL, "d.Uniform(t(-1.0), t(2.5))": (-1.0, 2.5),
    "d.Exponential(t([0.5, 2.0]))": POSITIVE,
    "d.Gamma(t([0.8, 3.5]), t(1.7))": POSITIVE, "d.Chi2(t(3.0))": POSITIVE,
    "d.Beta(t([2.5, 0.7]), t([1.5, 0.8]))": SHARE,
    "d.HalfNormal(t(1.3))": POSITIVE, "d.HalfCauchy(t(0.8))": POSITIVE,
    "d.Weibull(t(1.4), t([0.9, 2.2]))": POSITIVE,
    "d.Pareto(t(1.5), t(4.5))": (1.5, np.inf), "d.LogNormal(t(0.2), t(0.6))": POSITIVE,
    "d.RelaxedBernoulli(t(0.7), probs=t(0.3))": SHARE,
    "d.TransformedDistribution(d.Normal(t(0.2), t(0.9)), [d.SigmoidTransform()])": SHARE,
    "d.TransformedDistribution(d.Normal(t(0.2), t(0.9)), [d.AffineTransform(1.0, -0.5), d.ExpTransform()])": POSITIVE,
    "d.TransformedDistribution(d.Gamma(t(2.0), t(1.0)), d.PowerTransform(t(0.5)))": POSITIVE,
    "d.TransformedDistribution(d.Normal(t(0.2), t(0.9)), d.SoftplusTransform())": POSITIVE,
    "d.TransformedDistribution(d.Normal(t(0.2), t(0.5)), d.TanhTransform())": (-1.0, 1.0),
    "d.MixtureSameFamily(d.Categorical(t([0.3, 0.7])), d.Normal(t([-1.0, 1.5]), t([0.5, 1.1])))": REAL,
    "d.MixtureSameFamily(d.Categorical(logits=t([[0.3, 1.0]] * 2)), d.Gamma(t([[1.5, 9.0]] * 2), t(1.2)))": POSITIVE,
}
DISCRETE = {                                             # line: largest value with a probability that matters
    "d.Bernoulli(t([0.3, 0.8]))": 1, "d.Bernoulli(logits=t(-0.4))": 1, "d.Geometric(t(0.35))": 120,
    "d.Binomial(5, t([0.2, 0.6]))": 5, "d.Binomial(7, logits=t(0.3))": 7, "d.Poisson(t([0.7, 4.5]))": 60,
    "d.Categorical(t([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]))": 2,
    "d.Categorical(logits=t([0.3, -1.0, 2.0, 0.0]))": 3, }
VECTORS = [                                              # multivariate, relaxed, and independent ones
    "d.OneHotCategorical(t([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]))",
    "d.OneHotCategoricalStraightThrough(logits=t([0.3, -1.0, 2.0]))",
    "d.Multinomial(3, t([0.2, 0.5, 0.3]))", "d.Dirichlet(t([[1.5, 2.5, 0.8], [3.0, 3.0, 3.0]]))",
    "d.MultivariateNormal(t([0.3, -1.0]), t([[2.0, 0.6], [0.6, 1.0]]))",
    "d.MultivariateNormal(t([0.3, -1.0]), precision_matrix=t([[2.0, 0.6], [0.6, 1.0]]))",
    "d.MultivariateNormal(t([[0.3, -1.0], [0.0, 0.0]]), scale_tril=t([[1.2, 0.0], [0.5, 0.8]]))",
    "d.Independent(d.Normal(t([[0.3, 1.0], [2.0, 0.0]]), t(0.7)), 1)",
    "d.RelaxedOneHotCategorical(t(0.8), t([0.2, 0.5, 0.3]))",
    "d.Independent(d.Bernoulli(t([0.3, 0.6])), 1)",
    "d.MixtureSameFamily(d.Categorical(t([0.3, 0.7])), d.Independent(d.Normal(t([[0.0, 2.0], [1.0, -1.0]]), "
    "t(0.7)), 1))",
    "d.TransformedDistribution(d.Normal(t([0.1, 0.2]), 1.0), d.StackTransform([d.ExpTransform(), "
    "d.TanhTransform()], -1))", ]
LINES = [*CONTINUOUS, *DISCRETE, *VECTORS]
PAIRS = [                                                # arguments of kl_divergence
    ("d.Normal(t(0.3), t(1.4))", "d.Normal(t(-0.5), t(0.9))"), ("d.Laplace(t(0.3), t(0.7))",
                                                                "d.Laplace(t(1.0), t(1.1))"),
    ("d.Cauchy(t(-0.5), t(0.7))", "d.Cauchy(t(0.5), t(1.7))"), ("d.Gumbel(t(0.3), t(1.2))",
                                                                "d.Gumbel(t(0.0), t(0.9))"),
    ("d.Gamma(t(2.5), t(1.7))", "d.Gamma(t(1.5), t(0.7))"), ("d.Exponential(t(0.5))",
                                                             "d.Exponential(t(1.5))"),
    ("d.Exponential(t(0.5))", "d.Gamma(t(1.5), t(0.7))"), ("d.Gamma(t(2.5), t(1.7))",
                                                           "d.Exponential(t(1.5))"),
    ("d.Chi2(t(3.0))", "d.Gamma(t(1.0), t(0.7))"), ("d.Beta(t(2.5), t(1.5))", "d.Beta(t(1.2), t(2.0))"),
    ("d.HalfNormal(t(1.3))", "d.HalfNormal(t(0.8))"), ("d.Pareto(t(1.5), t(4.5))",
                                                       "d.Pareto(t(1.2), t(3.0))"),
    ("d.Uniform(t(-1.0), t(2.5))", "d.Uniform(t(-2.0), t(3.0))"),
    ("d.Uniform(t(-1.0), t(2.5))", "d.Normal(t(0.3), t(1.4))"),
    ("d.Normal(t(0.3), t(1.4))", "d.Laplace(t(1.0), t(1.1))"), ("d.Laplace(t(0.3), t(0.7))",
                                                                "d.Normal(t(0.0), t(1.4))"),
    ("d.LogNormal(t(0.2), t(0.6))", "d.LogNormal(t(0.4), t(0.9))"), ("d.Bernoulli(t(0.3))",
                                                                     "d.Bernoulli(t(0.6))"),
    ("d.Binomial(5, t(0.2))", "d.Binomial(5, t(0.6))"), ("d.Poisson(t(4.5))", "d.Poisson(t(3.0))"),
    ("d.Geometric(t(0.35))", "d.Geometric(t(0.5))"),
    ("d.Categorical(t([0.2, 0.5, 0.3]))", "d.Categorical(logits=t([0.3, -1.0, 2.0]))"),
]


def make_distribution(line: str, module=flow, leaves: list | None = None):
    """Return the distribution of a line. With `leaves`, its tensors require gradients and are added there."""
    def t(x):
        y = module.tensor(np.asarray(x, np.float64), requires_grad=leaves is not None)
        if leaves is not None:
            leaves.append(y)
        return y

    return eval(line, {"d": module.distributions, "t": t})


def quadrature(where):
    """Return (points, weights) of double exponential quadrature over a domain.

    The integral of a function that is smooth inside the domain is exact up to rounding.
    """
    s = np.linspace(-3.3, 3.3, 3001)
    inner, slope = np.pi / 2 * np.sinh(s), np.pi / 2 * np.cosh(s) * (s[1] - s[0])
    if where == REAL:
        return np.sinh(inner), np.cosh(inner) * slope
    if where == POSITIVE:
        return np.exp(inner), np.exp(inner) * slope
    low, high = (0.0, 1.0) if where == SHARE else where
    if high == np.inf:
        return low + np.exp(inner), np.exp(inner) * slope
    x, w = low + (high - low) / (1 + np.exp(-2 * inner)), (high - low) / 2 * slope / np.cosh(inner) ** 2
    inside = (x > low) & (x < high)
    return x[inside], w[inside]


def values_of(line: str):
    """Return (values, weights) that cover the support of a line's distribution."""
    if line in DISCRETE:
        n = DISCRETE[line] + 1
        return np.arange(n, dtype=np.float64), np.ones(n)
    return quadrature(CONTINUOUS[line])


def along(d, x):
    """Return the values along a new first axis, expanded to the batch shape."""
    return flow.tensor(x).reshape(-1, *(1,) * len(d.batch_shape)).expand(len(x), *d.batch_shape)


def expectation(d, line, f):
    """Return the expectation of f(values, log densities) for each element of the batch.

    f takes arrays with the values along the first axis.
    """
    x, w = values_of(line)
    value = along(d, x)
    logs = d.log_prob(value).detach().numpy()
    w = w.reshape(-1, *(1,) * len(d.batch_shape))
    with np.errstate(all="ignore"):
        terms = np.exp(logs) * w * f(value.numpy(), logs)
    return np.where(np.exp(logs) * w == 0, 0, terms).sum(0)
