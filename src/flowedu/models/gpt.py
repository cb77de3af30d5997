"""GPT: a transformer that predicts the next token, with GPT-2's architecture (pre-norm, tied embeddings)."""
from __future__ import annotations

import math

from flowedu import nn
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn import functional as F
from flowedu.tensor import Tensor, no_grad
from flowedu.tensor.construction.random import multinomial
from flowedu.tensor.shapes.join_and_pad import cat


class CausalSelfAttention(nn.Module):
    """Self-attention of each position to itself and to earlier positions: x (B, T, d) -> (B, T, d)."""

    def __init__(self, d: int, n_head: int, dropout: float, bias: bool):
        super().__init__()
        self.n_head, self.dropout = n_head, dropout
        self.qkv = nn.Linear(d, 3 * d, bias=bias)
        self.proj = nn.Linear(d, d, bias=bias)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, t, d = x.shape
        heads = (y.reshape(b, t, self.n_head, d // self.n_head).transpose(1, 2)
                 for y in self.qkv(x).split(d, 2))
        y = F.scaled_dot_product_attention(*heads, is_causal=True, dropout_p=self.dropout if self.training
                                           else 0.0)
        return self.drop(self.proj(y.transpose(1, 2).reshape(b, t, d)))


class Block(nn.Module):
    """Transformer block: attention, then an MLP per position, each with a residual connection."""

    def __init__(self, d: int, n_head: int, dropout: float, bias: bool):
        super().__init__()
        self.ln1 = nn.LayerNorm(d)
        self.attn = CausalSelfAttention(d, n_head, dropout, bias)
        self.ln2 = nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d, bias=bias), nn.GELU(), nn.Linear(4 * d, d, bias=bias),
                                 nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    """Decoder-only transformer for text.

    A call takes tokens idx (B, T), int64 with T <= block_size, and returns the logits (B, T, vocab) of each
    next token. With targets (B, T) it returns (logits, loss), where loss is the mean cross-entropy. The
    embedding and the logits share one weight matrix (weight tying), which counts once among the parameters.

    Args:
        vocab: size of the vocabulary.
        n_layer: number of blocks; default: 4.
        n_head: number of attention heads per block; default: 4.
        d: size of the embedding, a multiple of `n_head`; default: 128.
        block_size: maximum number of tokens in a sequence; default: 128.
        dropout: probability of zeroing an element in training; default: 0.0.
        bias: add biases in the blocks; default: True.

    Raises:
        ArgumentError: `n_head` does not divide `d`.
    """

    def __init__(self, vocab: int, n_layer: int = 4, n_head: int = 4, d: int = 128, block_size: int = 128,
                 dropout: float = 0.0, bias: bool = True):
        super().__init__()
        if d % n_head:
            raise ArgumentError("GPT: n_head does not divide d", expected=f"d a multiple of {n_head}",
                                got=f"d={d}", fix=f"d={math.ceil(d / n_head) * n_head}")
        self.vocab, self.block_size = vocab, block_size
        self.wte = nn.Embedding(vocab, d)
        self.wpe = nn.Embedding(block_size, d)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(d, n_head, dropout, bias) for _ in range(n_layer)))
        self.ln_f = nn.LayerNorm(d)
        for name, p in self.named_parameters():
            # The residual stream sums 2 * n_layer outputs of these layers; this scale keeps its variance.
            if name.endswith((".proj.weight", ".mlp.2.weight")):
                nn.init.normal_(p, 0, 0.02 / math.sqrt(2 * n_layer))
            elif p.ndim == 2:
                nn.init.normal_(p, 0, 0.02)
            elif name.endswith(".bias"):
                nn.init.zeros_(p)

    def forward(self, idx, targets=None):
        t = idx.shape[1]
        if t > self.block_size:
            raise ShapeError(f"GPT: Cannot forward sequence of length {t}, block size is only "
                             f"{self.block_size}",
                             expected=f"at most {self.block_size} tokens", got=str(t),
                             fix="idx[:, -model.block_size:]")
        x = self.drop(self.wte(idx) + self.wpe.weight[:t])
        logits = F.linear(self.ln_f(self.blocks(x)), self.wte.weight)
        if targets is None:
            return logits
        return logits, F.cross_entropy(logits.reshape(-1, self.vocab), targets.reshape(-1))

    def generate(self, idx: Tensor, max_new_tokens: int, temperature: float = 1.0,
                 top_k: int | None = None) -> Tensor:
        """Return idx (B, T) followed by `max_new_tokens` sampled tokens.

        Args:
            idx: int tensor (B, T) of tokens.
            max_new_tokens: number of tokens to append.
            temperature: divisor of the logits; default: 1.0. 0 always selects the most likely token.
            top_k: sample only from the `top_k` most likely tokens; default: None (all tokens).

        Raises:
            ArgumentError: `temperature` is negative.
        """
        if temperature < 0:
            raise ArgumentError("generate: temperature is below zero", expected="0 or more",
                                got=repr(temperature))
        with no_grad():
            for _ in range(max_new_tokens):
                logits = self(idx[:, -self.block_size:])[:, -1]
                if temperature == 0:
                    new = logits.argmax(-1).reshape(-1, 1)
                else:
                    if top_k is not None:
                        least = logits.topk(min(top_k, self.vocab), -1)[0][:, -1:]
                        logits = logits.masked_fill(logits < least, float("-inf"))
                    new = multinomial(F.softmax(logits / temperature, -1), 1)
                idx = cat([idx, new.to(idx.dtype)], 1)
        return idx
