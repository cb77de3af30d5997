"""Scaled dot-product attention and multi-head attention."""
from __future__ import annotations

import math
from typing import Any

from flowedu.core.ops import matmul as matmul_ops
from flowedu.core.ops.concat import concat
from flowedu.core.ops.promote import cast, scalar
from flowedu.core.ops.reduce import sum as sum_op
from flowedu.core.ops.view import constant, contiguous, expand, reshape
from flowedu.core.ops.view import transpose as transpose_op
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn.functional.activation import softmax
from flowedu.nn.functional.common import check_floats, reshaped, times
from flowedu.nn.functional.dense import linear
from flowedu.nn.functional.dropouts import dropout
from flowedu.ops import attention as attention_ops
from flowedu.ops.order import range as range_op
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.devices.conversion import beside
from flowedu.tensor.devices.device import place_at


def causal_mask(rows: int, columns: int) -> Tensor:
    """Return a bool mask (rows, columns) that is True above the diagonal, at future positions."""
    place = range_op(size=rows, dtype=dt.int64)
    return E.gt(range_op(size=columns, dtype=dt.int64), reshaped(place, (rows, 1)))


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """Return softmax(query @ key.T * scale + mask) @ value.

    Args:
        query: (*, L, E).
        key: (*, S, E).
        value: (*, S, V). The leading axes of query, key, and value broadcast.
        attn_mask: mask that broadcasts to (*, L, S); default: no mask. A bool mask is True where a query
            attends to a key. A floating mask is added to the scores. A query that attends to no key gets
            zeros, as in PyTorch.
        dropout_p: dropout probability of the attention weights; pass 0.0 in eval mode.
        is_causal: query i attends only to the keys 0 to i.
        scale: factor of the scores; default: 1 / sqrt(E).
        enable_gqa: key and value may have fewer heads (axis -3) than the query; their heads are repeated.

    Returns:
        A tensor (*, L, V).
    """
    for name, x in (("query", query), ("key", key), ("value", value)):
        check_floats("scaled_dot_product_attention", x, name)
        if x.ndim < 2:
            raise ShapeError("scaled_dot_product_attention: two axes are needed",
                             expected=f"{name} (*, L, E)",
                             got=str(tuple(x.shape)), fix="x.unsqueeze(0) adds one")
    if is_causal and attn_mask is not None:
        raise ArgumentError("scaled_dot_product_attention: Explicit attn_mask should not be set when "
                            "is_causal=True", expected="one of the two", got="both",
                            fix="leave is_causal out and put the triangle into the mask")
    if enable_gqa:
        _check_heads(query, key, value)
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scale = 1.0 / math.sqrt(max(query.shape[-1], 1)) if scale is None else float(scale)
    if _as_one(query, key, value, attn_mask, dropout_p):
        return _at_once(query, key, value, attn_mask, is_causal, scale)
    # The query is smaller than the scores.
    first = attn_mask is not None and key.shape[-2] > query.shape[-1]
    scores = _product(times(query, scale), key, True) if first else times(_product(query, key, True), scale)
    looks = None
    if is_causal:
        mask = beside(causal_mask(query.shape[-2], key.shape[-2]), scores)
        scores = E.where(mask, scalar(-math.inf, scores.dtype), scores)
    elif attn_mask is not None:
        scores, looks = _masked(scores, attn_mask)
    weights = softmax(scores, -1)
    return _only(looks, _product(dropout(weights, dropout_p, dropout_p > 0.0), value, False))


def _check_heads(query: Tensor, key: Tensor, value: Tensor) -> None:
    for name, x in (("key", key), ("value", value)):
        if query.ndim < 3 or x.ndim < 3 or x.shape[-3] < 1 or query.shape[-3] % x.shape[-3]:
            raise ShapeError("scaled_dot_product_attention: the number of heads in key and value must divide "
                             "the number of heads in query",
                             expected="axis -3 of key and value divides axis -3 of query",
                             got=f"query {tuple(query.shape)}, {name} {tuple(x.shape)}",
                             fix="leave enable_gqa out if all have the same number of heads")


def _as_one(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float) -> bool:
    """Return True if the op `attention`, which does not store the scores, supports the arguments."""
    lead = query.shape[:-2]
    return (not place_at(query) and dropout_p == 0.0 and query.dtype is key.dtype is value.dtype
            and (mask is None or mask.dtype is dt.bool_) and key.shape[:-2] == lead == value.shape[:-2]
            and query.shape[-1] == key.shape[-1] and key.shape[-2] == value.shape[-2] > 0)


def _at_once(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool,
             scale: float) -> Tensor:
    hidden = constant(shape=(1, 1), value=0, dtype=dt.bool_) if mask is None else E.logical_not(mask)
    y, _ = attention_ops.attention.call((query, key, value, hidden), (scale, causal, False))
    return y


def _masked(scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return (scores plus mask, rows that attend to any key).

    A softmax over an empty row would make every gradient NaN, so such a row stays finite here and `_only`
    zeroes it.
    """
    nothing, low = scalar(0.0, scores.dtype), scalar(-math.inf, scores.dtype)
    if mask.dtype is dt.bool_:
        looks = E.any(mask, -1, True)
        return E.where(mask, scores, E.where(looks, low, nothing)), looks
    mask = cast(mask, scores.dtype)
    looks = E.any(E.ne(mask, low), -1, True)
    return scores + E.where(looks, mask, nothing), looks


def _only(looks: Tensor | None, x: Tensor) -> Tensor:
    """Return x with zeros in the rows (axis -2) that attend to no key."""
    return x if looks is None else E.where(looks, x, scalar(0.0, x.dtype))


def _product(a: Tensor, b: Tensor, transpose: bool) -> Tensor:
    """Return a @ b, or a @ b.T, with broadcast leading axes."""
    if a.ndim == b.ndim and a.shape[:-2] == b.shape[:-2]:
        return matmul_ops.matmul.call((a, b), (False, transpose))
    return a.matmul(b.transpose(-2, -1) if transpose else b)


def _heads(x: Tensor, count: int) -> Tensor:
    """Reshape (L, N, E) to (N, heads, L, E / heads)."""
    length, batch, size = x.shape
    return transpose_op(reshaped(x, (length, batch, count, size // count)), perm=(1, 2, 0, 3))


def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int,
                                 num_heads: int,
                                 in_proj_weight: Tensor, in_proj_bias: Tensor, bias_k: Tensor, bias_v: Tensor,
                                 add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
                                 out_proj_bias: Tensor,
                                 training: bool = True, key_padding_mask: Tensor | None = None,
                                 need_weights: bool = True,
                                 attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
                                 q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
                                 v_proj_weight: Tensor | None = None, average_attn_weights: bool = True,
                                 is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    """Compute multi-head attention with the given weights; see nn.MultiheadAttention.

    Args:
        query: (L, N, E) or (L, E).
        key: (S, N, ...) or (S, ...).
        value: (S, N, ...) or (S, ...).
        embed_dim_to_check: the expected E.
        num_heads: number of heads.
        in_proj_weight: (3 E, E), the projections of query, key, and value.
        in_proj_bias: (3 E,).
        bias_k, bias_v: positions (1, 1, E) that are appended to the key and to the value, or None.
        add_zero_attn: append a position of zeros to the key and to the value.
        dropout_p: dropout probability of the attention weights.
        out_proj_weight: (E, E).
        out_proj_bias: (E,).
        training: apply dropout.
        key_padding_mask: mask (N, S); default: none. A bool mask is True for keys to ignore. A floating mask
            is added to the scores and contains -inf for keys to ignore.
        need_weights: return the attention weights.
        attn_mask: mask (L, S) or (N * heads, L, S); default: none. It has the same meaning as
            key_padding_mask, for pairs of a query and a key.
        use_separate_proj_weight: use q_proj_weight, k_proj_weight, and v_proj_weight.
        q_proj_weight, k_proj_weight, v_proj_weight: separate projections; default: None.
        average_attn_weights: average the returned weights over the heads.
        is_causal: declare that attn_mask is the causal mask; requires attn_mask.

    Returns:
        (output, weights). The output has the shape (L, N, E). The weights have the shape (N, L, S), or
        (N, heads, L, S) if they are not averaged, or are None.
    """
    single = query.ndim == 2
    if single:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    if query.ndim != 3 or query.shape[2] != embed_dim_to_check or key.shape[:2] != value.shape[:2]:
        raise ShapeError(f"multi_head_attention: was expecting embedding dimension of {embed_dim_to_check}, "
                         f"but got {query.shape[-1]}",
                         expected=f"query (L, N, {embed_dim_to_check}), key and value (S, N, ...)",
                         got=f"{tuple(query.shape)}, {tuple(key.shape)}, {tuple(value.shape)}",
                         fix="a module made with this embed_dim; batch_first=True for (N, L, E)")
    separate: Any = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _projected(query, key, value, in_proj_weight if separate is None else separate, in_proj_bias)
    length, batch, size = q.shape
    more = 0
    if bias_k is not None:
        k, v = (concat(x, contiguous(expand(b, shape=(1, batch, size))), axis=0)
                for x, b in ((k, bias_k), (v, bias_v)))
        more += 1
    q, k, v = (_heads(x, num_heads) for x in (q, k, v))
    if add_zero_attn:
        zero = constant(shape=(*k.shape[:2], 1, k.shape[3]), value=0.0, dtype=k.dtype)
        k, v = concat(k, zero, axis=2), concat(v, zero, axis=2)
        more += 1
    mask = _joint_mask(attn_mask, key_padding_mask, batch, num_heads, q.dtype, more, is_causal)
    scores = times(_product(q, k, True), 1.0 / math.sqrt(size // num_heads))
    scores, looks = (scores, None) if mask is None else _masked(scores, mask)
    weights = dropout(softmax(scores, -1), dropout_p, training and dropout_p > 0.0)
    weights = _only(looks, weights) if need_weights else weights
    out = transpose_op(_only(looks, _product(weights, v, False)), perm=(2, 0, 1, 3))
    out = linear(reshape(out, shape=(length, batch, size)), out_proj_weight, out_proj_bias)
    shown = None
    if need_weights:
        shown = times(sum_op(weights, axis=(1,)), 1.0 / num_heads) if average_attn_weights else weights
        shown = reshaped(shown, tuple(shown.shape[1:])) if single else shown
    return reshaped(out, (length, size)) if single else out, shown


def _projected(query: Tensor, key: Tensor, value: Tensor, weights: Tensor | tuple[Tensor, Tensor, Tensor],
               bias: Tensor | None) -> tuple[Tensor, ...]:
    """Project query, key, and value. `weights` contains three matrices, or one with three times as many rows.
    """
    size = query.shape[-1]
    if isinstance(weights, tuple):
        matrices: tuple[Tensor, ...] = weights
    elif query is key and key is value:
        return linear(query, weights, bias).chunk(3, -1)
    else:
        matrices = tuple(reshaped(w, (size, size)) for w in weights.chunk(3, 0))
    biases = (None,) * 3 if bias is None else bias.chunk(3, 0)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), matrices, biases))


def _joint_mask(attn_mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, dtype: dt.dtype,
                more: int, is_causal: bool) -> Tensor | None:
    """Return the term added to the scores (batch, heads, L, S), or None.

    Masks are True (or -inf) at positions without attention.
    """
    total = None
    if attn_mask is not None:
        m = _added(attn_mask, dtype, more)
        if m.ndim == 3:                                  # (batch * heads, L, S)
            m = reshaped(m, (batch, heads, *m.shape[1:])) if m.shape[0] == batch * heads else m.unsqueeze(1)
        total = m
    elif is_causal:
        raise ArgumentError("multi_head_attention: Need attn_mask if specifying the is_causal hint.",
                            expected="attn_mask",
                            got="None", fix="nn.Transformer.generate_square_subsequent_mask(length)")
    if padding is not None:
        m = _added(padding, dtype, more)
        m = reshaped(m, (batch, 1, 1, m.shape[-1]))
        total = m if total is None else total + m
    return total


def _added(mask: Tensor, dtype: dt.dtype, more: int) -> Tensor:
    if mask.dtype is dt.bool_:
        mask = E.where(mask, scalar(-math.inf, dtype), scalar(0.0, dtype))
    mask = cast(mask, dtype)
    if more:
        zero = constant(shape=(*mask.shape[:-1], more), value=0.0, dtype=dtype)
        mask = concat(mask, zero, axis=mask.ndim - 1)
    return mask


__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]
