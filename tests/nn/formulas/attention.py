"""Multi-head attention and Transformer layers, from their parameters by name."""
import numpy as np

from .activations import gelu, relu, softmax
from .norms import standard


def attention(own, prefix, query, key, value, heads, masks=(), bias_kv=False, zero=False):
    """Return (output (L, N, E), weights (N, heads, L, S)). Each mask is broadcast and added to the scores (N,
    heads, L, S).
    """
    size = query.shape[-1]
    if prefix + "in_proj_weight" in own:
        weights = np.split(own[prefix + "in_proj_weight"], 3)
    else:
        weights = [own[f"{prefix}{n}_proj_weight"] for n in "qkv"]
    biases = np.split(own.get(prefix + "in_proj_bias", np.zeros(3 * size)), 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((query, key, value), weights, biases))
    if bias_kv:
        k, v = (np.concatenate([x, np.repeat(own[prefix + n], x.shape[1], 1)])
                for x, n in ((k, "bias_k"), (v, "bias_v")))
    if zero:
        k, v = (np.concatenate([x, np.zeros_like(x[:1])]) for x in (k, v))
    results, shown = [], []
    for q_, k_, v_ in zip(*(np.split(x, heads, -1) for x in (q, k, v))):
        scores = np.einsum("lne,sne->nls", q_, k_) / np.sqrt(size // heads)
        shown.append(scores)
        results.append(v_)
    scores = np.stack(shown, 1)
    for mask in masks:
        known = scores.shape[-1] - mask.shape[-1]                  # the added positions are never masked
        scores = scores + np.concatenate([mask, np.zeros((*mask.shape[:-1], known))], -1)
    weights = softmax(scores, -1)
    out = np.concatenate([np.einsum("nls,sne->lne", weights[:, i], v_) for i, v_ in enumerate(results)], -1)
    return out @ own[prefix + "out_proj.weight"].T + own.get(prefix + "out_proj.bias", 0), weights


def _norm(own, name, x, eps):
    return standard(x, -1, eps) * own[name + ".weight"] + own.get(name + ".bias", 0)


def _dense(own, name, x):
    return x @ own[name + ".weight"].T + own.get(name + ".bias", 0)


def transformer_layer(own, x, memory=None, heads=1, masks=(), memory_masks=(), activation="relu",
                      norm_first=False, eps=1e-5):
    """Compute an encoder layer or, with memory, a decoder layer. x has shape (L, N, E)."""
    f = {"relu": relu, "gelu": gelu}.get(activation, activation)
    steps = [lambda y: attention(own, "self_attn.", y, y, y, heads, masks)[0]]
    if memory is not None:
        steps.append(lambda y: attention(own, "multihead_attn.", y, memory, memory, heads, memory_masks)[0])
    steps.append(lambda y: _dense(own, "linear2", f(_dense(own, "linear1", y))))
    for i, part in enumerate(steps, 1):
        name = f"norm{i}"
        x = x + part(_norm(own, name, x, eps)) if norm_first else _norm(own, name, x + part(x), eps)
    return x
