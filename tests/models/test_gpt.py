"""Properties of flowedu.models.GPT; test_models_against_torch.py compares it with PyTorch."""
import numpy as np
import pytest

import flowedu as flow
from bounds import SIGMAS, assert_std
from flowedu.models import GPT


def small(**kwargs):
    flow.manual_seed(0)
    return GPT(11, **{"n_layer": 2, "n_head": 2, "d": 16, "block_size": 8, **kwargs})


def test_the_embedding_table_is_shared():
    model = small()
    d, layers = 16, 2
    per_block = 4 * d + (3 * d * d + 3 * d) + (d * d + d) + (4 * d * d + 4 * d) + (4 * d * d + d)
    assert sum(p.numel() for p in model.parameters()) == 11 * d + 8 * d + layers * per_block + 2 * d
    names = [n for n, _ in model.named_parameters()]
    assert names[:2] == ["wte.weight", "wpe.weight"] and "blocks.1.attn.qkv.weight" in names and not [
        n for n in names if "head" in n]
    assert not [n for n, _ in small(bias=False).named_parameters() if n.endswith("attn.qkv.bias")]


def test_initial_weights():
    model = small(d=64, n_layer=8)
    weights = {n: p.numpy() for n, p in model.named_parameters() if p.ndim == 2}
    for name, got in weights.items():
        want = 0.02 / 4 if name.endswith(("proj.weight", "mlp.2.weight")) else 0.02
        assert_std(got, want)
    assert not any(p.numpy().any() for n, p in model.named_parameters() if n.endswith("bias"))


def test_the_first_loss_equals_that_of_guessing():
    model = small()
    idx, targets = np.random.default_rng(0).integers(0, 11, (2, 16, 8))
    logits, loss = model(flow.tensor(idx), flow.tensor(targets))
    assert logits.shape == (16, 8, 11) and loss.shape == ()
    # Logits are products of normalized rows (16 values, length 4) and weights with standard deviation 0.02,
    # so theirs is 0.08.
    spread = 0.08
    error = spread ** 2 / 2 + SIGMAS * spread / np.sqrt(targets.size)
    assert abs(loss.item() - np.log(11)) < error


def test_attention_is_causal():
    model = small()
    idx = np.random.default_rng(0).integers(0, 11, (1, 8))
    base = model(flow.tensor(idx)).detach().numpy()
    for t in range(8):
        other = idx.copy()
        other[0, t] = (other[0, t] + 1) % 11
        changed = np.abs(model(flow.tensor(other)).detach().numpy() - base).max((0, 2)) > 1e-6
        assert changed.tolist() == [i >= t for i in range(8)]
    np.testing.assert_allclose(model(flow.tensor(idx[:, :5])).detach().numpy(), base[:, :5], atol=1e-5)


def test_the_model_learns_to_count():
    model = small()
    optimizer = flow.optim.AdamW(model.parameters(), lr=1e-2)
    rng = np.random.default_rng(0)
    for _ in range(60):
        rows = (rng.integers(0, 11, (16, 1)) + np.arange(9)) % 11
        _, loss = model(flow.tensor(rows[:, :8].copy()), flow.tensor(rows[:, 1:].copy()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < np.log(2), "the right numbers have more than half of the probability"
    start = flow.tensor(np.array([[3], [9]]))
    for kwargs in ({"temperature": 0}, {"top_k": 1}):
        out = model.generate(start, 12, **kwargs)  # longer than block_size: the oldest tokens are dropped
        assert (out.numpy().tolist() == [[(s + i) % 11 for i in range(13)] for s in (3, 9)]
                and out.dtype is flow.int64)


def test_generate_follows_the_seed():
    model = small()
    start = flow.tensor(np.zeros((2, 1), np.int64))

    def draw(seed):
        flow.manual_seed(seed)
        return model.generate(start, 10, temperature=1.5, top_k=7).numpy().tolist()

    assert draw(1) == draw(1) != draw(2)
    assert all(not p.grad for p in model.parameters() if p.grad is None)


def test_the_temperature_divides_the_logits():
    """At a low temperature, every draw is the likeliest token; at a high one, all tokens are equally
    likely.
    """
    model = small()
    flow.nn.init.normal_(model.wte.weight, 0, 1)              # so that some tokens are likelier than others
    start = flow.tensor(np.full((400, 1), 3))
    likeliest = model.generate(start[:1], 1, temperature=0).numpy()[0, 1]
    flow.manual_seed(0)
    assert (model.generate(start, 1, temperature=1e-3).numpy()[:, 1] == likeliest).all()
    hot = np.bincount(model.generate(start, 1, temperature=1e6).numpy()[:, 1], minlength=11)
    assert hot.min() > 10 and hot.max() < 80, hot             # 36 expected for each


def test_dropout_only_while_training():
    model = small(dropout=0.5)
    idx = flow.tensor(np.zeros((2, 4), np.int64))
    assert (model(idx).detach().numpy() != model(idx).detach().numpy()).any()
    model.eval()
    np.testing.assert_array_equal(model(idx).detach().numpy(), model(idx).detach().numpy())


def test_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="n_head does not divide d"):
        GPT(5, n_head=3, d=16)
    with pytest.raises(ValueError, match="Cannot forward sequence of length 9, block size is only 8"):
        small()(flow.tensor(np.zeros((1, 9), np.int64)))
    with pytest.raises(ValueError, match="temperature is below zero"):
        small().generate(flow.tensor(np.zeros((1, 1), np.int64)), 1, temperature=-1)
