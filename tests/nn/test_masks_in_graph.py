"""Attention masks behave in a graph as eagerly, and masked positions have no effect."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from graph.making import make_graph

Q, K, E = 3, 5, 8                                  # queries, keys, features
AHEAD = np.triu(np.ones((Q, Q), bool), 1)          # True: masked
PADDED = np.array([[False, False, False, True, True], [False, True, False, False, True]])
SHORT = PADDED[:, 2:]


def draw_tensor(*shape, seed=0):
    return flow.tensor(np.random.default_rng(seed).standard_normal(shape))


def attention(**options):
    flow.manual_seed(0)
    return nn.MultiheadAttention(E, 2, batch_first=True, **options).double().eval()


def layer(kind):
    flow.manual_seed(0)
    return kind(E, 2, 16, batch_first=True).double().eval()


# name -> (module, tensors, masks by name): bool masks, and the same masks as additive numbers
CASES = {
    "attention, padding": (attention(), [draw_tensor(2, Q, E), draw_tensor(2, K, E,
                                                                           seed=1)]
                           + [draw_tensor(2, K, E, seed=2)],
                           {"key_padding_mask": PADDED}),
    "attention, one sequence": (attention(), [draw_tensor(Q, E), draw_tensor(K, E, seed=1),
                                              draw_tensor(K, E, seed=2)], {"key_padding_mask": PADDED[0]}),
    "attention, mask": (attention(),
                        [draw_tensor(2, Q, E), draw_tensor(2, K, E, seed=1), draw_tensor(2, K, E, seed=2)],
                        {"attn_mask": np.arange(K) > np.arange(Q)[:, None] + 1}),
    "attention, both": (attention(),
                        [draw_tensor(2, Q, E), draw_tensor(2, K, E, seed=1), draw_tensor(2, K, E, seed=2)],
                        {"attn_mask": np.arange(K) > np.arange(Q)[:, None] + 2, "key_padding_mask": PADDED}),
    "encoder": (layer(nn.TransformerEncoderLayer), [draw_tensor(2, Q, E)], {"src_mask": AHEAD,
                                                                            "src_key_padding_mask": SHORT}),
    "encoder, padding": (layer(nn.TransformerEncoderLayer), [draw_tensor(2, Q, E)],
                         {"src_key_padding_mask": SHORT}),
    "decoder": (layer(nn.TransformerDecoderLayer), [draw_tensor(2, Q, E), draw_tensor(2, K, E, seed=1)],
                {"tgt_mask": AHEAD, "memory_key_padding_mask": PADDED}),
}


def call_module(module, tensors, masks, in_graph):
    out = make_graph(lambda self, *xs, **ms: self.module(*xs, **ms),
                     module=module)(*tensors, **masks) if in_graph else \
        module(*tensors, **masks)
    return [out] if isinstance(out, flow.Tensor) else [y for y in out if y is not None]


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("name", CASES)
def test_a_bool_mask_equals_adding_minus_infinity(name, in_graph):
    module, tensors, masks = CASES[name]
    as_numbers = {k: flow.tensor(np.where(m, -np.inf, 0.0)) for k, m in masks.items()}
    want = call_module(module, tensors, as_numbers, False)
    got = call_module(module, tensors, {k: flow.tensor(m) for k, m in masks.items()}, in_graph)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-14)
    plain = call_module(module, tensors, {}, False)
    assert not np.allclose(got[0].numpy(), plain[0].numpy())


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
def test_a_padded_key_changes_nothing(in_graph):
    module, (q, k, v), _ = CASES["attention, padding"]
    mask = {"key_padding_mask": flow.tensor(PADDED)}
    other = flow.where(flow.tensor(PADDED)[:, :, None], draw_tensor(2, K, E, seed=9), v)
    for a, b in zip(call_module(module, [q, k, v], mask, in_graph),
                    call_module(module, [q, k, other], mask, in_graph), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
