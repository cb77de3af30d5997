"""oneflow._C: functions that OneFlow's layers and model libraries call, implemented with flowedu's.

Names and arguments follow OneFlow 0.9's functional API. A fused function calls the unfused ops.
"""
from __future__ import annotations

from collections.abc import Sequence

import flowedu as flow
from flowedu import Tensor
from flowedu.errors import ArgumentError
from flowedu.nn import functional as F

relu, gelu = F.relu, F.gelu
one_hot, l1_loss = F.one_hot, F.l1_loss
silu, sigmoid, tanh = F.silu, flow.sigmoid, flow.tanh
binary_cross_entropy_loss = F.binary_cross_entropy
binary_cross_entropy_with_logits_loss = F.binary_cross_entropy_with_logits
reshape, softmax = flow.reshape, flow.softmax
pad, normal = F.pad, flow.normal


def identity(x: Tensor) -> Tensor:
    """Return x."""
    return x


amp_white_identity = amp_black_identity = identity


def matmul(input: Tensor, other: Tensor, transpose_a: bool = False, transpose_b: bool = False,
           alpha: float = 1.0) -> Tensor:
    """Return alpha * input @ other; transpose_a and transpose_b swap the last two axes of an operand."""
    a = input.transpose(-2, -1) if transpose_a else input
    y = a @ (other.transpose(-2, -1) if transpose_b else other)
    return y if alpha == 1.0 else y * alpha


def cast(x: Tensor, dtype, pin_memory: bool = False) -> Tensor:
    """Convert x to a dtype."""
    return x.to(dtype)


def gather(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Return the slices of x along `axis` at `indices`; the axes of `indices` replace `axis`."""
    axis %= x.dim()
    y = flow.index_select(x, axis, indices.reshape(-1))
    return y.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])


def transpose(x: Tensor, perm: Sequence[int]) -> Tensor:
    """Permute the axes of x."""
    return x.permute(*perm)


def quick_gelu(x: Tensor) -> Tensor:
    """Return x * sigmoid(1.702 x)."""
    return x * flow.sigmoid(x * 1.702)


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """Return nn.functional.cross_entropy of the arguments."""
    return F.cross_entropy(input, target, weight, ignore_index=ignore_index, reduction=reduction,
                           label_smoothing=label_smoothing)


def sparse_softmax_cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    """Return the cross-entropy of each row: logits (..., classes), label (...)."""
    y = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), label.reshape(-1).long(), reduction="none")
    return y.reshape(label.shape)


def softmax_cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    """Return the cross-entropy of each row; label contains the probabilities of the classes."""
    return -(label * flow.log_softmax(logits, -1)).sum(-1)


def softmax_cross_entropy_grad(dy: Tensor, label: Tensor, prob: Tensor) -> Tensor:
    """Return the gradient of softmax_cross_entropy for logits with softmax `prob`. dy: one per row."""
    return dy.unsqueeze(-1) * (prob - label)


def sparse_cross_entropy(prediction: Tensor, label: Tensor, depth: int = -1) -> Tensor:
    """Return -log of the predicted probability of each row's label. depth: number of classes."""
    if depth not in (-1, prediction.shape[-1]):
        raise ArgumentError("sparse_cross_entropy: depth is another number of classes", got=str(depth),
                            expected=f"{prediction.shape[-1]}, as prediction has", fix="leave it out")
    return -flow.log(flow.gather(prediction, -1, label.long().unsqueeze(-1))).squeeze(-1)


def smooth_l1_loss(input: Tensor, target: Tensor, beta: float = 1.0, reduction: str = "mean") -> Tensor:
    """Return nn.functional.smooth_l1_loss; beta precedes reduction."""
    return F.smooth_l1_loss(input, target, reduction, beta)


def bias_add(x: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """Return x + bias, with the bias along `axis`."""
    return _along(x, bias, axis)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the axes start_dim to end_dim."""
    return input.flatten(start_dim, end_dim)


def reshape_like(x: Tensor, like: Tensor) -> Tensor:
    """Reshape x to the shape of `like`."""
    return x.reshape(like.shape)


def reduce_sum_like(x: Tensor, like: Tensor, axis: Sequence[int] = ()) -> Tensor:
    """Sum x over the axes and reshape the result to the shape of `like`."""
    return (x.sum(tuple(axis)) if len(axis) else x).reshape(like.shape)


def split_like(x: Tensor, like: Sequence[Tensor], axis: int = 0) -> tuple[Tensor, ...]:
    """Split x along `axis` into parts with the sizes of the tensors in `like`."""
    return flow.split(x, [y.shape[axis] for y in like], axis)


def arg_sort(input: Tensor, direction: str = "ASCENDING") -> Tensor:
    """Return the indices that sort the last axis."""
    return flow.argsort(input, -1, direction == "DESCENDING")


def layer_norm(x: Tensor, begin_norm_axis: int = 1, begin_params_axis: int = 1,
               epsilon: float = 1e-5) -> Tensor:
    """Normalize x to mean 0 and variance 1 over the axes from begin_norm_axis on."""
    return F.layer_norm(x, x.shape[begin_norm_axis % x.dim():], eps=epsilon)


def layer_norm_affine(x: Tensor, gamma: Tensor, beta: Tensor, begin_norm_axis: int = 1,
                      begin_params_axis: int = 1, epsilon: float = 1e-5) -> Tensor:
    """Return layer_norm(x) * gamma + beta."""
    return F.layer_norm(x, x.shape[begin_norm_axis % x.dim():], gamma, beta, epsilon)


def rms_norm(x: Tensor, weight: Tensor | None, normalized_shape: Sequence[int],
             epsilon: float = 1e-6) -> Tensor:
    """Return x / sqrt(mean of x^2 over the last axes + epsilon) * weight."""
    axes = tuple(range(-len(normalized_shape), 0))
    y = x * flow.rsqrt((x * x).mean(axes, keepdim=True) + epsilon)
    return y if weight is None else y * weight


def global_arange(start, end=None, step=1, *, dtype=None, placement=None, sbp=None) -> Tensor:
    """Return arange as a global tensor."""
    start, end = (0, start) if end is None else (start, end)
    return flow.arange(start, end, step, dtype=dtype, placement=placement, sbp=sbp)


def _along(x: Tensor, bias: Tensor, axis: int) -> Tensor:
    return x + bias.reshape(*(-1 if i == axis % x.dim() else 1 for i in range(x.dim())))


def fused_bias_add_gelu(x: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """Return gelu(x + bias), with the bias along `axis`."""
    return F.gelu(_along(x, bias, axis))


def fused_bias_add_dropout(x: Tensor, bias: Tensor, p: float = 0.5, axis: int = 1) -> Tensor:
    """Return dropout(x + bias), with the bias along `axis`."""
    return F.dropout(_along(x, bias, axis), p)


def fused_scale_tril(x: Tensor, diagonal: int = 0, fill_value: float = 0.0, scale: float = 1.0) -> Tensor:
    """Return scale * x on and below the diagonal, and fill_value above it."""
    above = flow.ones(x.shape[-2:], dtype=flow.bool).triu(diagonal + 1)
    return (x * scale).masked_fill(above, fill_value)


def fused_scale_tril_softmax_mask_scale(x: Tensor, p: float = 0.0, diagonal: int = 0,
                                        tril_scale_value: float = 1.0,
                                        tril_fill_value: float = 0.0) -> tuple[Tensor, Tensor]:
    """Return (dropout(y), y), where y = softmax of the scaled scores, filled above the diagonal."""
    y = flow.softmax(fused_scale_tril(x, diagonal, tril_fill_value, tril_scale_value), -1)
    return F.dropout(y, p), y


def fused_scale_mask_softmax(x: Tensor, mask: Tensor, fill_value: float = 0.0, scale: float = 1.0) -> Tensor:
    """Return the softmax of scale * x, with fill_value where the mask is False."""
    return flow.softmax((x * scale).masked_fill(mask == 0, fill_value), -1)


def fused_scale_mask_softmax_dropout(x: Tensor, mask: Tensor, fill_value: float = 0.0, scale: float = 1.0,
                                     p: float = 0.5, train: bool = True) -> tuple[Tensor, Tensor]:
    """Return (dropout(y), y), where y = fused_scale_mask_softmax."""
    y = fused_scale_mask_softmax(x, mask, fill_value, scale)
    return F.dropout(y, p, train), y


def fused_dot_feature_interaction(features: Sequence[Tensor], output_concat: Tensor | None = None,
                                  self_interaction: bool = False, output_padding: int = 0,
                                  pooling: str | None = None) -> Tensor:
    """Return the dot products of all pairs of features (batch, n_i, width), appended to output_concat.

    pooling="sum" returns ((sum of features)^2 - sum of squares) / 2, of shape (batch, width).
    """
    x = flow.cat([f if f.dim() == 3 else f.unsqueeze(1) for f in features], 1)
    if pooling == "sum":
        return (x.sum(1) ** 2 - (x * x).sum(1)) * 0.5
    if pooling not in (None, "none"):
        raise ArgumentError("fused_dot_feature_interaction: no such pooling", expected='"sum" or "none"',
                            got=repr(pooling), fix='pooling="sum"')
    rows, columns = flow.tril_indices(x.shape[1], x.shape[1], 0 if self_interaction else -1)
    y = (x @ x.transpose(1, 2))[:, rows, columns]
    parts = [*([] if output_concat is None else [output_concat]), y]
    if output_padding:
        parts.append(flow.zeros(x.shape[0], output_padding, dtype=x.dtype))
    return flow.cat(parts, 1)


def fused_cross_feature_interaction(x: Tensor, weight: Tensor, x0: Tensor, bias: Tensor,
                                    interaction_mode: str = "vector") -> Tensor:
    """Return a cross layer (DCN): x0 * (x w^T) + b + x ("vector"), or x0 * (x w^T + b) + x ("matrix")."""
    if interaction_mode not in ("vector", "matrix"):
        raise ArgumentError("fused_cross_feature_interaction: no such mode", expected='"vector" or "matrix"',
                            got=repr(interaction_mode), fix='interaction_mode="vector"')
    y = x @ weight.T
    return x0 * y + bias + x if interaction_mode == "vector" else x0 * (y + bias) + x
