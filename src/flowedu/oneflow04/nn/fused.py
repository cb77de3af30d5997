"""flow.nn.fused_*: what OneFlow 0.4 computes in one kernel, by its name. Here passes decide what is fused; the parts are
those of flow.nn and flow.math."""
from __future__ import annotations

from flowedu import ops
from flowedu.core.layers.context import current, gen_seed
from flowedu.errors import CheckError, UnsupportedError
from flowedu.oneflow04.matrix_ops import tril
from flowedu.oneflow04.nn.functions import bias_add, dropout, softmax
from flowedu.ops.front import front

_o = ops.REGISTRY


@front("FusedBiasAddGelu")
def fused_bias_add_gelu(value, bias, data_format: str | None = None):
    """gelu(bias_add(value, bias, data_format))."""
    return _o["gelu"](bias_add.__wrapped__(value, bias, data_format))


def fused_bias_add_dropout(value, bias, data_format: str | None = None, rate: float = 0.0, noise_shape=None,
                           seed: int | None = None, name: str | None = None):
    """dropout(bias_add(value, bias, data_format), rate)."""
    y = bias_add(value, bias, data_format, name=name and f"{name}-bias_add")
    return dropout(y, rate, noise_shape, seed, name)


@front("FusedScaleTril")
def fused_scale_tril(x, diagonal: int = 0, fill_value: float = 0, scale: float = 1):
    """scale * x in the lower triangle of each matrix, fill_value above the diagonal."""
    return tril.__wrapped__(x * float(scale) if x.dtype.is_floating_point else x * scale, diagonal, fill_value)


def fused_scale_tril_softmax_dropout(x, diagonal: int = 0, fill_value: float = 0, scale: float = 1, rate: float = 0.0,
                                     noise_shape=None, seed: int | None = None, name: str | None = None):
    """dropout(softmax(fused_scale_tril(x, diagonal, fill_value, scale)), rate): the weights of causal attention."""
    below = fused_scale_tril(x, diagonal, fill_value, scale, name=name and f"{name}-tril")
    return dropout(softmax(below, name=name and f"{name}-softmax"), rate, noise_shape, seed, name)


@front("FusedSelfAttentionQueryMulKeyAndValue", "query_mul_key")
def fused_self_attention_query_mul_key_and_value(x, head_size: int, alpha: float = 1.0):
    """(alpha * query times key, value) of all heads: (batch, heads, length, length), (batch, heads, length, head_size).

    x: (length, batch, heads * 3 * head_size); of each head query, key and value, one after the other.
    """
    if x.ndim != 3 or head_size < 1 or x.shape[2] % (3 * head_size):
        raise CheckError("fused_self_attention_query_mul_key_and_value: x does not fit", got=str(x.shape),
                         expected=f"(length, batch, heads * 3 * {head_size})", fix="check head_size, and that the length "
                         "comes first")
    length, batch, width = x.shape
    apart = _o["reshape"](x, shape=(length, batch, width // (3 * head_size), 3, head_size))
    q, k, v = (_o["reshape"](_o["slice"](apart, start=(0, 0, 0, i, 0), stop=(*apart.shape[:3], i + 1, head_size),
                                         step=(1,) * 5), shape=(*apart.shape[:3], head_size)) for i in range(3))
    q, k, v = (_o["transpose"](t, perm=(1, 2, 0, 3)) for t in (q, k, v))
    return _o["matmul"](q, k, transpose_b=True) * float(alpha), v


def random_mask_like(like, rate: float, seed: int | None = None, noise_shape=None, name: str | None = None):
    """int8, 0 with probability `rate`, else 1, in the shape of `like`: what dropout multiplies by, before it scales."""
    if not (isinstance(rate, (int, float)) and 0.0 <= rate < 1.0):
        raise CheckError("random_mask_like: rate is not a probability", expected="0 <= rate < 1", got=repr(rate),
                         fix="rate=0.5")
    if noise_shape is not None:
        raise UnsupportedError("random_mask_like: noise_shape is not supported", expected="None", got=str(noise_shape),
                               fix="leave it out: every element is drawn on its own")
    if seed is not None and not name and current().in_job:
        raise CheckError("random_mask_like: a seed needs a name", expected="name=... with seed=...", got=f"seed={seed}",
                         fix='name="mask1"')
    return _mask(like, float(rate), gen_seed() if seed is None else seed, name=name)


@front("RandomMaskLike", "out")
def _mask(like, rate, seed):
    return _o["random_mask_like"](like, rate=rate, seed=seed, draw=0)


__all__ = ["fused_bias_add_dropout", "fused_bias_add_gelu", "fused_scale_tril", "fused_scale_tril_softmax_dropout",
           "fused_self_attention_query_mul_key_and_value", "random_mask_like"]
