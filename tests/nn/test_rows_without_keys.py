"""Law: a query without unmasked keys gets zeros from attention and does not affect any gradient. (A softmax
over nothing is NaN, and NaN times 0 is NaN, so one such row would spoil all weights.)
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import flowedu as flow
from flowedu.nn import functional as F
from graph.making import make_graph

INF = float("inf")


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def attended(q, k, v, mask, in_graph=False, **options):
    """Return (result, gradients of q, k, v) of a weighted sum."""
    leaves = [flow.tensor(a, requires_grad=True) for a in (q, k, v)]

    def both(*xs):
        y = F.scaled_dot_product_attention(*xs[:3], xs[3], **options)
        weights = flow.tensor(draw(*y.shape, seed=5))
        return (y, *flow.autograd.grad((y * weights).sum(), xs[:3]))

    out = make_graph(lambda self, *xs: both(*xs))(*leaves, mask) if in_graph else both(*leaves, mask)
    return [y.detach().numpy() for y in out]


def attend_to_unmasked_keys(q, k, v, looks):
    """Compute each row over its unmasked keys."""
    y = np.zeros((*q.shape[:-1], v.shape[-1]))
    for at in np.ndindex(q.shape[:-1]):
        keys = np.flatnonzero(looks[at])
        if keys.size:
            s = k[at[:-1]][keys] @ q[at] / np.sqrt(q.shape[-1])
            w = np.exp(s - s.max())
            y[at] = w @ v[at[:-1]][keys] / w.sum()
    return y


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("numbers", [False, True], ids=["bools", "numbers"])
@given(looks=arrays.arrays(bool, (2, 3, 6)), low=st.integers(0, 2))
def test_zeros_and_finite_gradients(in_graph, numbers, looks, low):
    """A mask may have the shape (L, S) or (N, 1, S)."""
    looks = looks if low == 0 else looks[:1] if low == 1 else looks[:, :1]
    q, k, v = draw(2, 3, 4), draw(2, 6, 4, seed=1), draw(2, 6, 5, seed=2)
    mask = flow.tensor(np.where(looks, 0.0, -INF) if numbers else looks)
    y, *grads = attended(q, k, v, mask, in_graph)
    whole = np.broadcast_to(looks, (2, 3, 6))
    np.testing.assert_allclose(y, attend_to_unmasked_keys(q, k, v, whole), rtol=1e-10, atol=1e-12)
    # only the rows that have keys
    blind = ~whole.any(-1)
    kept = np.where(blind[..., None], True, whole)
    weights = np.where(blind[..., None], 0.0, draw(2, 3, 5, seed=5))
    leaves = [flow.tensor(a, requires_grad=True) for a in (q, k, v)]
    z = F.scaled_dot_product_attention(*leaves, flow.tensor(kept))
    for got, want in zip(grads, flow.autograd.grad((z * flow.tensor(weights)).sum(), leaves), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-9, atol=1e-12)


def test_the_mask_has_a_gradient_of_zeros_there():
    mask = flow.tensor([[0.0, 0.0], [-INF, -INF]], requires_grad=True)
    x = flow.tensor(draw(2, 4).astype(np.float32))
    F.scaled_dot_product_attention(x, x, x, mask).square().sum().backward()
    assert (np.isfinite(mask.grad.numpy()).all() and mask.grad[0].abs().sum() > 0
            and mask.grad[1].tolist() == [0, 0])


def test_no_keys_at_all():
    q, k = flow.ones(2, 3, 4, requires_grad=True), flow.ones(2, 0, 4, requires_grad=True)
    for mask in (None, flow.ones(3, 0).bool(), flow.zeros(3, 0)):
        y = F.scaled_dot_product_attention(q, k, k, mask)
        y.sum().backward()
        assert (y.tolist() == np.zeros((2, 3, 4)).tolist() and q.grad.abs().sum() == 0
                and k.grad.shape == k.shape)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
def test_a_sample_that_is_all_padding(need_weights, in_graph):
    """The other samples get the same results as without it, and so do the weights of the layer."""
    flow.manual_seed(0)
    layer = flow.nn.MultiheadAttention(4, 2, batch_first=True).double()
    x = flow.tensor(draw(2, 3, 4))
    padding = flow.tensor([[False, True, False], [True] * 3])

    def step(x, padding):
        y, w = layer(x, x, x, key_padding_mask=padding, need_weights=need_weights)
        return [y, *flow.autograd.grad(y[0].square().sum(),
                                       list(layer.parameters()))] + ([w] if need_weights else [])

    got = (make_graph(lambda self, x, p: step(x, p), module=layer)(x, padding) if in_graph
           else step(x, padding))
    alone = step(x[:1], padding[:1])
    assert got[0][1].tolist() == [layer.out_proj.bias.tolist()] * 3
    np.testing.assert_allclose(got[0][:1].numpy(), alone[0].numpy(), rtol=1e-12)
    for a, b in zip(got[1:5], alone[1:5], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-12)
    if need_weights:
        assert got[5][1].tolist() == np.zeros((3, 3)).tolist()


@pytest.mark.torch
@pytest.mark.parametrize("numbers", [False, True], ids=["bools", "numbers"])
@pytest.mark.parametrize("looks", [[[True, True], [False, False]], [[False, True], [True, False]],
                                   [[False] * 2] * 2])
def test_attention_equals_pytorchs(looks, numbers):
    torch = pytest.importorskip("torch")
    out = []
    for m, attention in ((flow, F.scaled_dot_product_attention),
                         (torch, torch.nn.functional.scaled_dot_product_attention)):
        q, k, v = (m.tensor(draw(1, 1, 2, 4, seed=i), requires_grad=True) for i in range(3))
        mask = m.tensor(np.where(looks, 0.0, -INF) if numbers else looks)
        y = attention(q, k, v, mask)
        y.square().sum().backward()
        out.append([a.detach().numpy() for a in (y, q.grad, k.grad, v.grad)])
    for a, b in zip(*out, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.torch
def test_the_layer_equals_pytorchs():
    """With need_weights=False; PyTorch returns NaN weights where flowedu returns 0."""
    torch = pytest.importorskip("torch")
    theirs = torch.nn.MultiheadAttention(4, 2, batch_first=True).double()
    ours = flow.nn.MultiheadAttention(4, 2, batch_first=True).double()
    ours.load_state_dict({k: flow.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()})
    padding = [[False, True, False], [True] * 3]
    for m, layer in ((flow, ours), (torch, theirs)):
        x = m.tensor(draw(2, 3, 4))
        layer(x, x, x, key_padding_mask=m.tensor(padding), need_weights=False)[0].square().sum().backward()
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-9, atol=1e-12, err_msg=name)
