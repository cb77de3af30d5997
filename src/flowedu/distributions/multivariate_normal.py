"""MultivariateNormal: normal vectors with a mean and a covariance."""
from __future__ import annotations

import math

from flowedu.distributions import constraints
from flowedu.distributions.distribution import Distribution
from flowedu.distributions.utils import lazy_property, normal, one_of
from flowedu.errors import ShapeError
from flowedu.tensor.linalg.factorizations import cholesky, cholesky_inverse, identity, solve_triangular
from flowedu.tensor.shapes.reshape_and_permute import broadcast_shapes


def log_det(scale_tril):
    """Return the logarithm of the determinant of a triangular matrix."""
    return scale_tril.diagonal(0, -2, -1).log().sum(-1)


def mahalanobis(scale_tril, off):
    """Return |scale_tril^-1 off|^2 for each vector `off` along the last axis."""
    return solve_triangular(scale_tril, off.unsqueeze(-1), upper=False).squeeze(-1).square().sum(-1)


class MultivariateNormal(Distribution):
    """Multivariate normal distribution. Pass exactly one of the three matrices.

    Args:
        loc: means of shape (..., n).
        covariance_matrix: covariances of shape (..., n, n); default: None.
        precision_matrix: inverse of the covariance; default: None.
        scale_tril: Cholesky factor of the covariance, which is used in computations; default: None.
        validate_args: check parameters and values; default: as set by set_default_validate_args.
    """

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite,
                       "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None,
                 validate_args: bool | None = None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
                 "scale_tril": scale_tril}
        name = one_of("MultivariateNormal", **given)
        matrix = given[name]
        if loc.ndim < 1 or matrix.ndim < 2 or matrix.shape[-2:] != (loc.shape[-1],) * 2:
            raise ShapeError(f"MultivariateNormal: {name} does not fit loc",
                             expected="loc (..., n) and a matrix (..., n, n)",
                             got=f"{tuple(loc.shape)} and {tuple(matrix.shape)}",
                             fix="loc.expand(matrix.shape[:-1])")
        batch, n = broadcast_shapes(loc.shape[:-1], matrix.shape[:-2]), loc.shape[-1]
        self.loc = loc.expand(*batch, n)
        setattr(self, name, matrix.expand(*batch, n, n))
        self._own = ("loc", name)
        super().__init__(batch, (n,), validate_args)

    @lazy_property
    def scale_tril(self):
        if "covariance_matrix" in vars(self):
            return cholesky(self.covariance_matrix)
        # Upper, of the inverse.
        turned = cholesky(self.precision_matrix.flip((-2, -1))).flip((-2, -1)).mT
        return solve_triangular(turned, identity(turned, turned.shape[-1]), upper=False)

    @lazy_property
    def covariance_matrix(self):
        return self.scale_tril @ self.scale_tril.mT

    @lazy_property
    def precision_matrix(self):
        return cholesky_inverse(self.scale_tril)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return self.scale_tril.square().sum(-1)

    def rsample(self, sample_shape=()):
        z = normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self.scale_tril @ z.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value):
        off = self._checked(value) - self.loc
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + mahalanobis(self.scale_tril,
                                                               off)) - log_det(self.scale_tril)

    def entropy(self):
        return 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + log_det(self.scale_tril)
