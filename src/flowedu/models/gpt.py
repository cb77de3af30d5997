"""A GPT: a transformer that guesses the next token. The layout is GPT-2's: norms first, one table for words in and out."""
from __future__ import annotations

import math

from flowedu import nn
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn import functional as F
from flowedu.tensor import Tensor, no_grad
from flowedu.tensor.joining import cat
from flowedu.tensor.random import multinomial


class CausalSelfAttention(nn.Module):
    """Every position looks at itself and at those before it: x (B, T, d) -> (B, T, d)."""

    def __init__(self, d: int, n_head: int, dropout: float, bias: bool):
        super().__init__()
        self.n_head, self.dropout = n_head, dropout
        self.qkv = nn.Linear(d, 3 * d, bias=bias)
        self.proj = nn.Linear(d, d, bias=bias)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, t, d = x.shape
        heads = (y.reshape(b, t, self.n_head, d // self.n_head).transpose(1, 2) for y in self.qkv(x).split(d, 2))
        y = F.scaled_dot_product_attention(*heads, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return self.drop(self.proj(y.transpose(1, 2).reshape(b, t, d)))


class Block(nn.Module):
    """Attention, then a network for each position; both add to what they got."""

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
    """Tokens idx (B, T), int64 with T <= block_size -> logits (B, T, vocab) for the token after each.

    With targets (B, T) too: (logits, loss), the mean cross-entropy. The table of words is used for the logits as well
    (weight tying), so it counts once among the parameters.
    """

    def __init__(self, vocab: int, n_layer: int = 4, n_head: int = 4, d: int = 128, block_size: int = 128,
                 dropout: float = 0.0, bias: bool = True):
        super().__init__()
        if d % n_head:
            raise ArgumentError("GPT: n_head does not divide d", expected=f"d a multiple of {n_head}", got=f"d={d}",
                                fix=f"d={math.ceil(d / n_head) * n_head}")
        self.vocab, self.block_size = vocab, block_size
        self.wte = nn.Embedding(vocab, d)
        self.wpe = nn.Embedding(block_size, d)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(d, n_head, dropout, bias) for _ in range(n_layer)))
        self.ln_f = nn.LayerNorm(d)
        for name, p in self.named_parameters():
            if name.endswith((".proj.weight", ".mlp.2.weight")):    # what 2 * n_layer of them add up to keeps its size
                nn.init.normal_(p, 0, 0.02 / math.sqrt(2 * n_layer))
            elif p.ndim == 2:
                nn.init.normal_(p, 0, 0.02)
            elif name.endswith(".bias"):
                nn.init.zeros_(p)

    def forward(self, idx, targets=None):
        t = idx.shape[1]
        if t > self.block_size:
            raise ShapeError(f"GPT: Cannot forward sequence of length {t}, block size is only {self.block_size}",
                             expected=f"at most {self.block_size} tokens", got=str(t), fix="idx[:, -model.block_size:]")
        x = self.drop(self.wte(idx) + self.wpe.weight[:t])
        logits = F.linear(self.ln_f(self.blocks(x)), self.wte.weight)
        if targets is None:
            return logits
        return logits, F.cross_entropy(logits.reshape(-1, self.vocab), targets.reshape(-1))

    def generate(self, idx: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
        """idx (B, T) with max_new_tokens more. temperature 0: always the likeliest; top_k: only from the k likeliest."""
        if temperature < 0:
            raise ArgumentError("generate: temperature is below zero", expected="0 or more", got=repr(temperature))
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
