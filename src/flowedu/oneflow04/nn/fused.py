"""Functions flow.nn.fused_* of OneFlow 0.4, which computes each in one kernel.

In flowedu they are compositions of flow.nn and flow.math, and passes decide which ops are fused.
"""
from __future__ import annotations

from flowedu.core.layers.context import current, gen_seed
from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.matmul import matmul
from flowedu.core.ops.view import reshape, transpose
from flowedu.errors import CheckError, UnsupportedError
from flowedu.oneflow04.functions.ranges_and_triangles import tril
from flowedu.oneflow04.nn.functions import bias_add, dropout, softmax
from flowedu.ops.front import front
from flowedu.ops.functions import gelu
from flowedu.ops.random import random_mask_like as random_mask_like_op


@front("FusedBiasAddGelu")
def fused_bias_add_gelu(value, bias, data_format: str | None = None):
    """Return gelu(bias_add(value, bias, data_format)).

    Args:
        value: a blob or tensor.
        bias: a vector with one element per channel.
        data_format: the layout, as for bias_add; None means channels in axis 1.
    """
    return gelu(bias_add.__wrapped__(value, bias, data_format))


def fused_bias_add_dropout(value, bias, data_format: str | None = None, rate: float = 0.0, noise_shape=None,
                           seed: int | None = None, name: str | None = None):
    """Return dropout(bias_add(value, bias, data_format), rate).

    Args:
        value: a blob or tensor.
        bias: a vector with one element per channel.
        data_format: the layout, as for bias_add; None means channels in axis 1.
        rate: the probability of dropping an element, in [0, 1).
        noise_shape: must be None.
        seed: the seed of the masks, as for dropout; None derives it from flow.random.seed.
    """
    y = bias_add(value, bias, data_format, name=name and f"{name}-bias_add")
    return dropout(y, rate, noise_shape, seed, name)


@front("FusedScaleTril")
def fused_scale_tril(x, diagonal: int = 0, fill_value: float = 0, scale: float = 1):
    """Return scale * x in the lower triangle of each matrix, and a constant above the diagonal.

    Args:
        x: a blob of shape (..., rows, columns).
        diagonal: the last diagonal that is kept.
        fill_value: the value above the diagonal.
        scale: the factor.
    """
    return tril.__wrapped__(x * float(scale) if x.dtype.is_floating_point else x * scale, diagonal,
                            fill_value)


def fused_scale_tril_softmax_dropout(x, diagonal: int = 0, fill_value: float = 0, scale: float = 1,
                                     rate: float = 0.0,
                                     noise_shape=None, seed: int | None = None, name: str | None = None):
    """Return dropout(softmax(fused_scale_tril(x))), the weights of causal attention.

    Args:
        x: the scores, a blob of shape (..., rows, columns).
        diagonal: the last diagonal that is kept.
        fill_value: the value above the diagonal.
        scale: the factor of the scores.
        rate: the probability of dropping an element, in [0, 1).
        noise_shape: must be None.
        seed: the seed of the masks, as for dropout; None derives it from flow.random.seed.
    """
    below = fused_scale_tril(x, diagonal, fill_value, scale, name=name and f"{name}-tril")
    return dropout(softmax(below, name=name and f"{name}-softmax"), rate, noise_shape, seed, name)


@front("FusedSelfAttentionQueryMulKeyAndValue", "query_mul_key")
def fused_self_attention_query_mul_key_and_value(x, head_size: int, alpha: float = 1.0):
    """Return the attention scores alpha * query @ key.T, and the values, of all heads.

    Args:
        x: a blob of shape (length, batch, heads * 3 * head_size). Each head has query, key, and value, in
            this order.
        head_size: the number of features of a head.
        alpha: the factor of the scores.

    Returns: (scores, values) of shapes (batch, heads, length, length) and (batch, heads, length, head_size).
    """
    if x.ndim != 3 or head_size < 1 or x.shape[2] % (3 * head_size):
        raise CheckError("fused_self_attention_query_mul_key_and_value: x does not fit", got=str(x.shape),
                         expected=f"(length, batch, heads * 3 * {head_size})",
                         fix="check head_size, and that the length comes first")
    length, batch, width = x.shape
    apart = reshape(x, shape=(length, batch, width // (3 * head_size), 3, head_size))
    q, k, v = (reshape(slice_op(apart, start=(0, 0, 0, i, 0), stop=(*apart.shape[:3], i + 1, head_size),
                                step=(1,) * 5), shape=(*apart.shape[:3], head_size)) for i in range(3))
    q, k, v = (transpose(t, perm=(1, 2, 0, 3)) for t in (q, k, v))
    return matmul(q, k, transpose_b=True) * float(alpha), v


def random_mask_like(like, rate: float, seed: int | None = None, noise_shape=None, name: str | None = None):
    """Return a random int8 mask in the shape of `like`, as dropout uses it before scaling.

    Args:
        like: a blob or tensor.
        rate: the probability of a 0, in [0, 1). All other elements are 1.
        seed: the seed; None derives it from flow.random.seed. In a job a seed requires a `name`.
        noise_shape: must be None.
    """
    if not (isinstance(rate, (int, float)) and 0.0 <= rate < 1.0):
        raise CheckError("random_mask_like: rate is not a probability", expected="0 <= rate < 1",
                         got=repr(rate), fix="rate=0.5")
    if noise_shape is not None:
        raise UnsupportedError("random_mask_like: noise_shape is not supported", expected="None",
                               got=str(noise_shape), fix="leave it out: every element is drawn on its own")
    if seed is not None and not name and current().in_job:
        raise CheckError("random_mask_like: a seed needs a name", expected="name=... with seed=...",
                         got=f"seed={seed}", fix='name="mask1"')
    return _mask(like, float(rate), gen_seed() if seed is None else seed, name=name)


@front("RandomMaskLike", "out")
def _mask(like, rate, seed):
    return random_mask_like_op(like, rate=rate, seed=seed, draw=0)


__all__ = ["fused_bias_add_dropout", "fused_bias_add_gelu", "fused_scale_tril",
           "fused_scale_tril_softmax_dropout", "fused_self_attention_query_mul_key_and_value",
           "random_mask_like"]
