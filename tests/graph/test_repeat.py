"""Gradient accumulation and activation checkpointing: the same results with less memory."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.nn.graph import GraphModule

from .making import assert_same_state, batch, make_graph, make_mlp, trainer, twins

LOSS = nn.CrossEntropyLoss()


def make_momentum_sgd(model):
    return flow.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)


def accumulating(model, k, optimizer=make_momentum_sgd, **more):
    return trainer(model, optimizer(model), config={"set_gradient_accumulation_steps": k}, **more)


# ---- accumulation
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_micro_batches_give_the_gradient_of_the_mean(k):
    (a, b), (x, y) = twins(make_mlp), batch(8)
    g, o = accumulating(a, k), make_momentum_sgd(b)
    for _ in range(4):
        losses = g(x, y)
        parts = [LOSS(b(xi), yi) for xi, yi in zip(x.chunk(k), y.chunk(k))]
        o.zero_grad()
        (sum(parts[1:], parts[0]) / k).backward()
        o.step()
        assert losses.shape == ((k,) if k > 1 else ())
        assert np.allclose(losses.numpy().reshape(-1), [p.item() for p in parts], rtol=1e-5)
    assert_same_state(a, b)
    assert g.state_dict()["System-Train-TrainStep"].tolist() == [4]              # one update per call


def test_outputs_of_a_batch_are_joined():
    def build(self, x, y):
        out = self.model(x)
        loss = self.loss(out, y)
        loss.backward()
        return out, {"loss": loss, "both": out.sum(0)}

    model, (x, y) = make_mlp(), batch(6)
    want = model(x).numpy()
    g = make_graph(build, make_momentum_sgd(model), model=model, loss=LOSS,
                   config={"set_gradient_accumulation_steps": 3})
    out, more = g(x, y)
    assert out.shape == (6, 3) and np.allclose(out.numpy(), want, atol=1e-5) and more["loss"].shape == (3,)
    assert np.allclose(more["both"].numpy(), want.reshape(3, 2, 3).sum(1).reshape(-1), atol=1e-5)


def test_batches_that_cannot_be_split():
    g = accumulating(make_mlp(), 3)
    with pytest.raises(RuntimeError, match=r"accumulation_steps\(3\): .*_input.0.0_2 cannot be cut into 3 "
                       r"equal") as e:
        g(*batch(8))
    assert "a multiple of 3" in str(e.value)


def with_norm():
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6, momentum=0.3), nn.ReLU(), nn.Linear(6, 3))


def test_statistics_move_once_per_micro_batch():
    (a, b), (x, y) = twins(with_norm), batch(12)
    g, o = accumulating(a, 3), make_momentum_sgd(b)
    for _ in range(3):
        g(x, y)
        o.zero_grad()
        for xi, yi in zip(x.chunk(3), y.chunk(3)):
            (LOSS(b(xi), yi) / 3).backward()
        o.step()
    assert_same_state(a, b)


def test_every_micro_batch_has_different_masks():
    def build(self, x, w):
        y = self.drop(x)
        loss = (y * self.lin(w)).mean()
        loss.backward()
        return y

    lin = nn.Linear(1, 1)
    g = make_graph(build, flow.optim.SGD(lin.parameters(), lr=0.0), drop=nn.Dropout(0.5), lin=lin,
                   config={"set_gradient_accumulation_steps": 4})
    masks = g(flow.ones(4, 64), flow.ones(4, 1)).numpy() != 0
    assert len({m.tobytes() for m in masks}) == 4


def wide():
    return nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64),
                         nn.Tanh(), nn.Linear(64, 3))


def arena(g):
    return g._compiled.program.plan.arena


def test_accumulation_needs_less_memory():
    x, y = batch(2048)
    whole, parts = accumulating(wide(), 1), accumulating(wide(), 8)
    whole(x, y), parts(x, y)
    activations = 2048 * 64 * 4 * 3                                  # activations of three layers
    assert arena(whole) > activations and arena(parts) < 0.4 * arena(whole)


# ---- checkpointing
def checkpointed(g, *names):
    for name in names:
        part = g.model
        for key in name.split(".")[1:] if "." in name else ():
            part = part[int(key)]
        part.to(GraphModule).activation_checkpointing = True
    return g


def deep():
    def block():
        return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Dropout(0.2), nn.Linear(256, 64))

    return nn.Sequential(nn.Linear(4, 64), block(), block(), block(), nn.Linear(64, 3))


@pytest.mark.parametrize("marked", [("model.1",), ("model.1", "model.2", "model.3"), ("model",),
                                    ("model", "model.2"), ("model.0", "model.4")], ids="+".join)
def test_checkpointing_keeps_the_results_with_dropout(marked):
    x, y = batch(16)
    models = twins(deep)
    graphs = []
    for i, m in enumerate(models):
        g = trainer(m, make_momentum_sgd(m))
        flow.manual_seed(5)                                          # the same dropout seeds in both
        graphs.append(checkpointed(g, *marked) if i else g)
        g._compile(x, y)
    for _ in range(4):
        assert np.isclose(graphs[0](x, y).item(), graphs[1](x, y).item(), rtol=1e-5)
    assert_same_state(*models)


def test_checkpointing_needs_less_memory():
    x, y = batch(1024)
    plain, saving, parts = (trainer(m := deep(), make_momentum_sgd(m)) for _ in range(3))
    parts.config.set_gradient_accumulation_steps(4)
    for g in (saving, parts):
        checkpointed(g, "model.1", "model.2", "model.3")
    plain(x, y), saving(x, y), parts(x, y)
    assert arena(saving) < 0.6 * arena(plain) and arena(parts) < 0.6 * arena(saving)
    assert "Sys-Checkpointing-Fake-Fw-Op_model.1.0-matmul" in repr(saving)
    assert "activation_checkpointing=True" in repr(saving)


def test_modules_called_twice_and_nested_marks():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
            self.b = nn.Linear(4, 3)

        def forward(self, x):
            return self.b(self.a(self.a(x)) + x)

    (a, b), (x, y) = twins(Twice), batch()
    g, h = trainer(a, make_momentum_sgd(a)), trainer(b, make_momentum_sgd(b))
    h.model.to(GraphModule).activation_checkpointing = True
    h.model.a.to(GraphModule).activation_checkpointing = True
    for _ in range(4):
        assert np.isclose(g(x, y).item(), h(x, y).item(), rtol=1e-5)
    assert_same_state(a, b)


def test_statistics_move_once_although_computed_twice():
    (a, b), (x, y) = twins(with_norm), batch(12)
    g, h = trainer(a, make_momentum_sgd(a)), checkpointed(trainer(b, make_momentum_sgd(b)), "model")
    for _ in range(3):
        assert np.isclose(g(x, y).item(), h(x, y).item(), rtol=1e-5)
    assert_same_state(a, b)


def test_accumulation_and_checkpointing_together():
    (a, b), (x, y) = twins(deep), batch(16)
    for m in (a, b):
        m.eval()  # dropout masks differ, because the ops differ
    g, h = trainer(a, make_momentum_sgd(a)), checkpointed(accumulating(b, 4), "model.1", "model.2")
    for _ in range(3):
        assert np.isclose(g(x, y).item(), h(x, y).numpy().mean(), rtol=1e-5)
    assert_same_state(a, b)


def test_gradients_requested_in_build_recompute():
    def slopes(self, x, y):
        loss = self.loss(self.model(x), y)
        return flow.autograd.grad(loss, list(self.model.parameters()))

    x, y = batch(16)
    found = []
    for marked in (False, True):
        flow.manual_seed(3)
        g = make_graph(slopes, model=nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)),
                       loss=nn.CrossEntropyLoss())
        if marked:
            g.model.to(GraphModule).activation_checkpointing = True
        found.append([s.numpy() for s in g(x, y)])
        assert ("Sys-Checkpointing-Fake-Fw-Op" in repr(g)) == marked
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
