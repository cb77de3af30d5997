"""Group and instance normalization as functions that create their variables, as in OneFlow 0.4.

Both form groups of channels, normalize each group of each sample by its own mean and variance, and then scale
and shift each channel. Instance normalization has one group per channel. Chapter 5 introduces the modules
with nn.Graph.
"""
from __future__ import annotations

from math import prod

from flowedu.core.layers.context import unique_name
from flowedu.errors import CheckError
from flowedu.nn.functional.common import reshaped
from flowedu.nn.functional.norm import by_groups
from flowedu.nn.layout import check_rank
from flowedu.oneflow04 import initializers as init
from flowedu.oneflow04.variables import get_variable
from flowedu.ops.front import front


@front("GroupNorm")
def _normalize_groups(x, gamma, beta, groups, eps):
    """Normalize x (N, C, ...); gamma and beta have the shape (1, C, 1), or are None."""
    y = by_groups(x, groups, eps)[0]
    if gamma is None:
        return y
    return reshaped(reshaped(y, (*x.shape[:2], prod(x.shape[2:]))) * gamma + beta, x.shape)


def _normalize(x, groups, eps, affine, name):
    gamma = beta = None
    if affine:
        shape = (1, x.shape[1], 1)
        gamma = get_variable(f"{name}_gamma", shape, x.dtype, init.ones_initializer())
        beta = get_variable(f"{name}_beta", shape, x.dtype, init.zeros_initializer())
    return _normalize_groups(x, gamma, beta, groups, float(eps), name=name)


def GroupNorm(x, num_groups: int = 32, eps: float = 1e-5, affine: bool = True, name: str | None = None):
    """Compute (x - mean) / sqrt(variance + eps) * gamma + beta for each group of channels of each sample.

    The variance is biased. gamma and beta are variables of shape (1, C, 1), with ones and zeros as initial
    values.

    Args:
        x: a blob of shape (N, C, ...) with three or more axes.
        num_groups: the number of groups, which divides C.
        eps: a constant added to the variance.
        affine: learn gamma and beta, the variables "<name>_gamma" and "<name>_beta".
        name: the prefix of the variables, required to share them between jobs or calls; None creates new
            variables in each call.

    Raises:
        CheckError: x has fewer axes, or num_groups does not divide its channels.

    Note:
        gamma and beta have one element per channel, as in the paper; OneFlow 0.4 has one per group.
    """
    if len(x.shape) < 3:
        raise CheckError("GroupNorm: x needs three axes or more", expected="(N, C, ...)", got=str(x.shape),
                         fix="flow.reshape it: (N, C, 1) normalises over channels alone")
    if not isinstance(num_groups, int) or num_groups < 1 or x.shape[1] % num_groups:
        raise CheckError("GroupNorm: the channels are not divisible by num_groups",
                         got=f"num_groups={num_groups!r}, {x.shape[1]} channels",
                         expected="an int that divides the channels (axis 1)",
                         fix=f"num_groups={x.shape[1]}, a group for each channel, say")
    return _normalize(x, num_groups, eps, affine, name or unique_name("GroupNorm"))


def _instance_norm(axes: int, layout: str):
    what = f"InstanceNorm{axes}d"

    def norm(x, eps: float = 1e-5, affine: bool = True, name: str | None = None):
        check_rank(what, "x", x, layout)
        return _normalize(x, x.shape[1], eps, affine, name or unique_name(f"InstanceNorm{axes}D"))

    norm.__name__ = norm.__qualname__ = what
    norm.__doc__ = f"""Normalize each channel of each sample by its mean and biased variance.

    Args:
        x: a blob of shape ({", ".join(layout)}).
        eps: a constant added to the variance.
        affine: scale and shift by the variables "<name>_gamma" and "<name>_beta" of shape (1, C, 1).
        name: the prefix of the variables, required to share them between jobs or calls; None creates new
            variables in each call.

    Raises:
        CheckError: x has another number of axes.
    """
    return norm


InstanceNorm1d = _instance_norm(1, "NCL")
InstanceNorm2d = _instance_norm(2, "NCHW")
InstanceNorm3d = _instance_norm(3, "NCDHW")

__all__ = ["GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]
