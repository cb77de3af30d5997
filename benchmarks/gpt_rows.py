"""A GPT block: pre-norm, causal self-attention, an MLP of 4 times the width with exact GELU, residuals, AdamW."""
from __future__ import annotations

import numpy as np

import flowedu as flow
import flowedu.typing as tp
from flowedu.nn import functions as F

try:
    import torch
except ImportError:
    torch = None

BATCH, LENGTH, WIDTH, HEADS = 4, 128, 256, 4
SHAPES = {"norm1-gamma": (WIDTH,), "norm1-beta": (WIDTH,), "qkv-weight": (3 * WIDTH, WIDTH), "qkv-bias": (3 * WIDTH,),
          "proj-weight": (WIDTH, WIDTH), "proj-bias": (WIDTH,), "norm2-gamma": (WIDTH,), "norm2-beta": (WIDTH,),
          "fc-weight": (4 * WIDTH, WIDTH), "fc-bias": (4 * WIDTH,), "out-weight": (WIDTH, 4 * WIDTH), "out-bias": (WIDTH,)}


def parameters() -> dict[str, np.ndarray]:
    r = np.random.default_rng(0)
    start = {n: r.standard_normal(s).astype(np.float32) * np.float32(s[-1] ** -0.5) for n, s in SHAPES.items()}
    for n in start:
        if len(SHAPES[n]) == 1:
            start[n] = np.full(SHAPES[n], 1.0 if "gamma" in n else 0.0, np.float32)
    return start


def block(x, w, mask):
    """x (batch, length, width) -> the same shape; w: name -> parameter; mask int8 (length, length), 1 hides."""
    b, t, d = x.shape
    norm = lambda x, name: F.layer_norm(x, w(f"{name}-gamma"), w(f"{name}-beta"), 2, 2)
    linear = lambda x, name: flow.matmul(x, w(f"{name}-weight"), transpose_b=True) + w(f"{name}-bias")
    heads = lambda x: flow.transpose(flow.reshape(x, [b, t, HEADS, d // HEADS]), [0, 2, 1, 3])
    qkv = linear(norm(x, "norm1"), "qkv")
    q, k, v = (heads(flow.slice(qkv, [0, 0, i * d], [b, t, d])) for i in range(3))
    scores = flow.matmul(q, flow.transpose(k, [0, 1, 3, 2])) * (d // HEADS) ** -0.5
    y = flow.matmul(flow.nn.softmax(flow.masked_fill(scores, mask, -np.inf)), v)
    x = x + linear(flow.reshape(flow.transpose(y, [0, 2, 1, 3]), [b, t, d]), "proj")
    return x + linear(flow.math.gelu(linear(norm(x, "norm2"), "fc")), "out")


def job(start: dict[str, np.ndarray], passes: dict[str, bool] | None = None):
    """The training step as a job: x -> the loss, mean(block(x) ** 2)."""
    flow.clear_default_session()
    config = flow.FunctionConfig()
    for name, on in (passes or {}).items():
        config.enable_pass(name, on)

    @flow.global_function("train", config)
    def train(x: tp.Numpy.Placeholder((BATCH, LENGTH, WIDTH))) -> tp.Numpy:
        variable = lambda n: flow.get_variable(n, SHAPES[n], initializer=lambda shape, dtype, seed: start[n])
        position = flow.range(LENGTH)
        hidden = flow.math.less(flow.reshape(position, [LENGTH, 1]), position)
        y = block(x, variable, hidden)
        loss = flow.math.reduce_mean(y * y)
        flow.optimizer.AdamW(flow.optimizer.PiecewiseConstantScheduler([], [3e-4]), weight_decay=0.01,
                             do_bias_correction=True).minimize(loss)
        return loss

    return train


def torch_step(start: dict[str, np.ndarray], x: np.ndarray, fused: bool = False):
    """The twin in PyTorch, eager."""
    functional = torch.nn.functional
    p = {n: torch.tensor(a, requires_grad=True) for n, a in start.items()}
    opt = torch.optim.AdamW(p.values(), lr=3e-4, weight_decay=0.01, fused=fused)
    tx, mask = torch.tensor(x), torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    linear = lambda x, name: functional.linear(x, p[f"{name}-weight"], p[f"{name}-bias"])
    norm = lambda x, name: functional.layer_norm(x, (WIDTH,), p[f"{name}-gamma"], p[f"{name}-beta"])

    def step():
        opt.zero_grad()
        qkv = linear(norm(tx, "norm1"), "qkv")
        q, k, v = (h.view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for h in qkv.split(WIDTH, 2))
        if fused:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (WIDTH // HEADS) ** -0.5
            y = torch.softmax(scores.masked_fill(mask, float("-inf")), -1) @ v
        h = tx + linear(y.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH), "proj")
        y = h + linear(functional.gelu(linear(norm(h, "norm2"), "fc")), "out")
        loss = (y * y).mean()
        loss.backward()
        opt.step()
        return loss

    return step


def gpt_block(fused: bool = False):
    """A row's contenders. fused: the peer uses PyTorch's fused attention and its fused optimizer."""
    start = parameters()
    x = np.random.default_rng(1).standard_normal((BATCH, LENGTH, WIDTH)).astype(np.float32)
    train = job(start)
    found = {"flowedu": lambda: train(x)}
    if torch:
        step = torch_step(start, x, fused)
        for _ in range(5):
            np.testing.assert_allclose(train(x), step().item(), rtol=1e-3)
        found["torch"] = step
    return found
