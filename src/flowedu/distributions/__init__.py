"""flow.distributions: random variables with densities, entropies, and divergences, as in PyTorch.

    policy = flow.distributions.Categorical(logits=net(state))
    action = policy.sample()                                       # uses flow's generator: flow.manual_seed
    loss = -policy.log_prob(action) * reward                       # REINFORCE

The distributions are composed of existing ops, so they have gradients. Start with distribution.py, the base
class, and kl.py.
"""
from flowedu.diagnostics.lazy_imports import imported
from flowedu.distributions import constraints, transforms
from flowedu.distributions.categorical import (
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from flowedu.distributions.composed import Independent, LogNormal, TransformedDistribution
from flowedu.distributions.discrete import Bernoulli, Binomial, Geometric, Poisson
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.gamma import Beta, Chi2, Dirichlet, Gamma
from flowedu.distributions.kl import kl_divergence, register_kl
from flowedu.distributions.location_scale import Cauchy, Gumbel, Laplace, Normal, StudentT, Uniform
from flowedu.distributions.mixture import MixtureSameFamily
from flowedu.distributions.multivariate_normal import MultivariateNormal
from flowedu.distributions.positive import Exponential, HalfCauchy, HalfNormal, Pareto, Weibull
from flowedu.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    PowerTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    TanhTransform,
    Transform,
    identity_transform,
)

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2",
    "ComposeTransform", "Dirichlet", "Distribution", "ExpTransform", "Exponential", "Gamma", "Geometric",
    "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform", "Laplace", "LogNormal",
    "MixtureSameFamily", "Multinomial", "MultivariateNormal", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PowerTransform", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform",
    "StackTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform",
    "Weibull", "constraints", "identity_transform", "kl_divergence", "register_kl", "transforms"
]
imported(__name__)
