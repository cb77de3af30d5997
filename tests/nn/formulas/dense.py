"""Linear layers, embeddings, reshaping layers, attention."""
import numpy as np

from .activations import softmax
from .table import row


def _linear(d):
    x = d.floats(*d.shape(1, 3))
    out = d.one_of(1, 2, 4)
    weight = d.floats(x.shape[-1]) if d.one_of(True, False, False) else d.floats(out, x.shape[-1])
    return {"input": x, "weight": weight} | (d.maybe(bias=lambda: d.floats(out)) if weight.ndim == 2 else {})


@row(_linear, module="Linear", other_defaults=("bias",), build=lambda a: None if a["weight"].ndim == 1 else
     {"in_features": a["weight"].shape[1], "out_features": a["weight"].shape[0], "bias": "bias" in a})
def linear(input, weight, bias=None):
    return input @ weight.T + (0 if bias is None else bias)


def _bilinear(d):
    lead = d.shape(1, 2)
    n = d.one_of(1, 3)
    m = d.one_of(1, 2)
    out = d.one_of(1, 4)
    return {"input1": d.floats(*lead, n), "input2": d.floats(*lead, m),
            "weight": d.floats(out, n, m)} | d.maybe(
                bias=lambda: d.floats(out))


@row(_bilinear, module="Bilinear", other_defaults=("bias",), build=lambda a: {
    "in1_features": a["weight"].shape[1], "in2_features": a["weight"].shape[2],
    "out_features": a["weight"].shape[0], "bias": "bias" in a})
def bilinear(input1, input2, weight, bias=None):
    return np.einsum("...i,oij,...j->...o", input1, weight, input2) + (0 if bias is None else bias)


def _rows(d):
    weight = d.floats(d.one_of(1, 3, 5), d.one_of(1, 4))
    return {"input": d.labels(len(weight), *d.shape(0, 3)), "weight": weight}


@row(_rows, module="Embedding", build=lambda a: dict(zip(("num_embeddings", "embedding_dim"),
                                                         a["weight"].shape)))
def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
              sparse=False):
    return weight[input]


def _bags(d):
    weight, mode = d.floats(d.one_of(1, 3, 5), d.one_of(1, 4)), d.one_of("sum", "mean", "max")
    args = {"weight": weight, "mode": mode} | d.options(padding_idx=(0, -1))
    if d.one_of(True, False):
        args["input"] = d.labels(len(weight), *d.shape(2, 2))
    else:
        n = d.one_of(0, 1, 5)
        args |= {"input": d.labels(len(weight), n), "offsets": np.sort(np.append(d.labels(n + 1, 2), 0))}
        if d.one_of(True, False):
            args |= {"include_last_offset": True, "offsets": np.append(args["offsets"], n)}
    return args | (d.maybe(per_sample_weights=lambda: d.floats(*args["input"].shape)) if mode == "sum"
                   else {})


@row(_bags, module="EmbeddingBag", build=lambda a: None if {"offsets", "per_sample_weights"} & {*a} else dict(
    zip(("num_embeddings", "embedding_dim"), a["weight"].shape)))
def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False,
                  mode="mean",
                  sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    ends = [] if offsets is None else [*offsets[1:], *([] if include_last_offset else [len(input)])]
    factors = np.ones(input.shape) if per_sample_weights is None else per_sample_weights
    bags = ([*zip(input, factors)] if offsets is None else [(input[a:b],
                                                             factors[a:b]) for a, b in zip(offsets, ends)])
    unread = None if padding_idx is None else padding_idx % len(weight)
    rows = [[weight[i] * f for i, f in zip(*bag) if i != unread] for bag in bags]
    return np.array([{"sum": np.sum, "mean": np.mean, "max": np.max}[mode](r, 0) if r else 0 * weight[0]
                     for r in rows]
                    ).reshape(len(rows), weight.shape[1])


@row(lambda d: {"input": d.labels(3, *d.shape(0, 3))} | d.options(num_classes=(3, 6)) | d.options(
    on_value=(5,), off_value=(-2,)))
def one_hot(input, num_classes=-1, on_value=1, off_value=0):
    classes = input.max() + 1 if num_classes == -1 else num_classes
    return np.where(np.arange(classes) == input[..., None], on_value, off_value)


# ---- reshaping
@row(lambda d: {"input": d.floats(*d.shape(1, 3))}, function=None, module="Identity",
     build=lambda a: {"unused": 1})
def identity(input):
    return input


@row(lambda d: {"input": d.floats(*d.shape(3, 4))} | d.options(start_dim=(0, 2), end_dim=(-1, 2)),
     function=None, module="Flatten")
def flatten(input, start_dim=1, end_dim=-1):
    end = end_dim % input.ndim
    return input.reshape(*input.shape[:start_dim], -1, *input.shape[end + 1:])


@row(lambda d: {"input": d.floats(2, 6, 3), "dim": 1,
                "unflattened_size": d.one_of((2, 3), (1, 6), (3, 1, 2))},
     function=None, module="Unflatten")
def unflatten(input, dim, unflattened_size):
    return input.reshape(*input.shape[:dim], *unflattened_size, *input.shape[dim + 1:])


# ---- attention
def _queries(d):
    lead = d.shape(1, 2)
    steps = d.one_of(1, 3)
    places = d.one_of(1, 4)
    size = d.one_of(1, 2, 4)
    heads = 2 * lead[-1] if (groups := d.one_of(True, False)) else lead[-1]
    args = {"query": d.floats(*lead[:-1], heads, steps, size), "key": d.floats(*lead, places, size),
            "value": d.floats(*lead, places,
                              d.one_of(1, 3))} | d.options(scale=(0.3,)) | ({"enable_gqa": True} if groups
                                                                          else {})
    mask = d.one_of(None, "causal", "bool", "numbers")
    if mask == "causal":
        return args | {"is_causal": True}
    if mask == "bool":
        allowed = d.rng.random((steps, places)) < 0.5
        allowed[:, 0] = True                                       # a row without keys gives NaN
        return args | {"attn_mask": allowed}
    return args | ({"attn_mask": d.floats(steps, places)} if mask else {})


@row(_queries)
def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
                                 scale=None, enable_gqa=False):
    if enable_gqa:
        key, value = (np.repeat(x, query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    scores = query @ key.swapaxes(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = np.tril(np.ones(scores.shape[-2:], bool))
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, -np.inf) if attn_mask.dtype == bool else scores + attn_mask
    return softmax(scores, -1) @ value
