"""Multi-head attention and the layers of a Transformer."""
from __future__ import annotations

import copy
import math
from collections.abc import Callable

from flowedu.core.layers.module import Module
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn import functional as F
from flowedu.nn import init
from flowedu.nn.containers import ModuleList
from flowedu.nn.modules.dropout import Dropout
from flowedu.nn.modules.linear import Linear, new_parameter
from flowedu.nn.modules.norm import LayerNorm
from flowedu.nn.modules.rnn import check_layers
from flowedu.tensor import Tensor, full


class MultiheadAttention(Module):
    """Multi-head attention (Vaswani et al. 2017).

    Each head computes softmax(q k.T / sqrt(d)) v, where q, k, and v are projections of query, key, and value
    to d = embed_dim / num_heads features.

    Args:
        embed_dim: number of features of query and output.
        num_heads: number of heads, a divisor of embed_dim.
        dropout: dropout probability of the attention weights in training mode.
        bias: add a learnable bias to the projections.
        add_bias_kv: append a learnable position to the key and to the value.
        add_zero_attn: append a position of zeros to the key and to the value.
        kdim: number of features of the key; default: embed_dim.
        vdim: number of features of the value; default: embed_dim.
        batch_first: the tensors are (N, L, E) instead of (L, N, E).
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None,
                 batch_first: bool = False, device=None, dtype=None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ArgumentError("MultiheadAttention: embed_dim must be divisible by num_heads",
                                expected="a multiple",
                                got=f"embed_dim={embed_dim}, num_heads={num_heads}",
                                fix="another number of heads")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.batch_first, self.head_dim, self.add_zero_attn = (batch_first, embed_dim // num_heads,
                                                               add_zero_attn)
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        place = {"device": device, "dtype": dtype}
        sizes = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = new_parameter(3 * embed_dim, embed_dim, **place)
        else:
            for name, size in sizes.items():
                setattr(self, name, new_parameter(embed_dim, size, **place))
        for name in ("in_proj_weight",) if not self._qkv_same_embed_dim else sizes:
            self.register_parameter(name, None)
        self.register_parameter("in_proj_bias", new_parameter(3 * embed_dim, **place) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, **place)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, new_parameter(1, 1, embed_dim, **place) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False):
        """Return (output, attention weights or None).

        Args:
            query: (L, N, embed_dim), or (N, L, embed_dim) with batch_first.
            key: (S, N, kdim).
            value: (S, N, vdim).
            key_padding_mask: mask (N, S); default: none. A bool mask is True for keys to ignore. A floating
                mask is added to the scores and contains -inf for keys to ignore.
            need_weights: return the attention weights.
            attn_mask: mask (L, S) or (N * heads, L, S); default: none. It has the same meaning as
                key_padding_mask, for pairs of a query and a key.
            average_attn_weights: average the returned weights over the heads.
            is_causal: declare that attn_mask is the causal mask; requires attn_mask.
        """
        turn = self.batch_first and query.ndim == 3
        if turn:
            same = query is key and key is value
            query = query.transpose(0, 1)
            key, value = (query, query) if same else (key.transpose(0, 1), value.transpose(0, 1))
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights, is_causal)
        return (out.transpose(0, 1) if turn else out), weights


def _activation(f: str | Callable) -> Callable:
    if isinstance(f, str):
        if f not in ("relu", "gelu"):
            raise ArgumentError(f"activation should be relu/gelu, not {f}",
                                expected='"relu", "gelu" or a function',
                                got=repr(f), fix="activation='relu' is the default")
        return getattr(F, f)
    return f


class _Layer(Module):
    """Base class of encoder and decoder layers.

    It contains the feed-forward part, and norms before (norm_first) or after each part.
    """

    def _build(self, d_model, dim_feedforward, dropout, activation, eps, norm_first, bias, norms, place):
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **place)
        self.norm_first = norm_first
        for i in range(1, norms + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=eps, bias=bias, **place))
        for i in range(1, norms + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _step(self, x, norm: Module, block: Callable, *args) -> Tensor:
        """Return the sum of x and the block's result, with a norm before or after it."""
        return x + block(norm(x), *args) if self.norm_first else norm(x + block(x, *args))

    # Subclasses may override the blocks, as in PyTorch.
    def _sa_block(self, x: Tensor, attn_mask, key_padding_mask, is_causal: bool = False) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask,
                                            is_causal=is_causal, need_weights=False)[0])

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, each with a residual connection and a layer norm.

    Args:
        d_model: number of features.
        nhead: number of heads.
        dim_feedforward: number of hidden features of the feed-forward network.
        dropout: dropout probability.
        activation: "relu", "gelu", or a function.
        layer_norm_eps: eps of the layer norms.
        batch_first: the tensors are (N, L, E) instead of (L, N, E).
        norm_first: normalize before each part instead of after it.
        bias: add learnable biases.
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation="relu",
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
                 bias: bool = True, device=None, dtype=None):
        super().__init__()
        place = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first,
                                            **place)
        self._build(d_model, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias, 2, place)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:
        x = self._step(src, self.norm1, self._sa_block, src_mask, src_key_padding_mask, is_causal)
        return self._step(x, self.norm2, self._ff_block)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._feed_forward(x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, and a feed-forward network.

    Each part has a residual connection and a layer norm.

    Args:
        d_model: number of features.
        nhead: number of heads.
        dim_feedforward: number of hidden features of the feed-forward network.
        dropout: dropout probability.
        activation: "relu", "gelu", or a function.
        layer_norm_eps: eps of the layer norms.
        batch_first: the tensors are (N, L, E) instead of (L, N, E).
        norm_first: normalize before each part instead of after it.
        bias: add learnable biases.
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation="relu",
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
                 bias: bool = True, device=None, dtype=None):
        super().__init__()
        place = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first,
                                            **place)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first,
                                                 **place)
        self._build(d_model, dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias, 3, place)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        x = self._step(tgt, self.norm1, self._sa_block, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        x = self._step(x, self.norm2, self._mha_block, memory, memory_mask, memory_key_padding_mask,
                       memory_is_causal)
        return self._step(x, self.norm3, self._ff_block)

    def _mha_block(self, x: Tensor, mem: Tensor, attn_mask, key_padding_mask, is_causal: bool = False
                   ) -> Tensor:
        return self.dropout2(self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal,
            need_weights=False)[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._feed_forward(x))


class TransformerEncoder(Module):
    """Stack of copies of an encoder layer.

    Args:
        encoder_layer: a TransformerEncoderLayer, which is copied.
        num_layers: number of copies.
        norm: layer applied to the result; default: none.
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        check_layers("TransformerEncoder", num_layers)
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Stack of copies of a decoder layer.

    Args:
        decoder_layer: a TransformerDecoderLayer, which is copied.
        num_layers: number of copies.
        norm: layer applied to the result; default: none.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        check_layers("TransformerDecoder", num_layers)
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Tensor, memory: Tensor, *masks, **options) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, **options)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Transformer: an encoder for `src`, and a decoder for `tgt` (Vaswani et al. 2017).

    The decoder attends to the output of the encoder.

    Args:
        d_model: number of features.
        nhead: number of heads.
        num_encoder_layers: number of encoder layers.
        num_decoder_layers: number of decoder layers.
        dim_feedforward: number of hidden features of the feed-forward networks.
        dropout: dropout probability.
        activation: "relu", "gelu", or a function.
        custom_encoder: module that replaces the encoder; default: a TransformerEncoder.
        custom_decoder: module that replaces the decoder; default: a TransformerDecoder.
        layer_norm_eps: eps of the layer norms.
        batch_first: the tensors are (N, L, E) instead of (L, N, E).
        norm_first: normalize before each part instead of after it.
        bias: add learnable biases.
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.

    Shape:
        src: (S, N, E). tgt: (T, N, E). The result has the shape of tgt.

    Raises:
        ShapeError: src and tgt have different batch sizes, or their last axis is not d_model (raised by the
            call).

    Note:
        Weight matrices are initialized with xavier_uniform_.
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
                 num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1, activation="relu",
                 custom_encoder: Module | None = None,
                 custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device=None, dtype=None):
        super().__init__()
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                 norm_first, bias, device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = (custom_encoder or TransformerEncoder(TransformerEncoderLayer(*layer),
                                                             num_encoder_layers, norm()))
        self.decoder = (custom_decoder or TransformerDecoder(TransformerDecoderLayer(*layer),
                                                             num_decoder_layers, norm()))
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None,
                tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.dim() != tgt.dim() or src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ShapeError("Transformer: src and tgt have other batches",
                             expected=f"as src: {tuple(src.shape)}",
                             got=str(tuple(tgt.shape)), fix="batch_first=True where axis 0 is the batch")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError("Transformer: the last axis is not d_model", expected=str(self.d_model),
                             got=f"{src.shape[-1]} and {tgt.shape[-1]}",
                             fix="an Embedding of that size before")
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                            bool(tgt_is_causal), memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None, dtype=None) -> Tensor:
        """Return the causal mask: 0 on and below the diagonal, -inf above it.

        Args:
            sz: number of rows and columns.
            device: device of the mask; default: the CPU.
            dtype: dtype of the mask; default: the default dtype.
        """
        return generate_square_subsequent_mask(sz, device, dtype)


def generate_square_subsequent_mask(size: int, device=None, dtype=None) -> Tensor:
    """Return the causal mask: 0 on and below the diagonal, -inf above it.

    Args:
        size: number of rows and columns.
        device: device of the mask; default: the CPU.
        dtype: dtype of the mask; default: the default dtype.
    """
    from flowedu.core.values import dtype as dt
    kind = dt.get_default_dtype() if dtype is None else dtype
    return full((size, size), -math.inf, dtype=kind, device=device).triu(1)
