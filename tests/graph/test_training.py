"""add_optimizer: the update in each call, and the state of optimizer and scheduler objects."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.optim import lr_scheduler as S

from .making import (
    assert_same_state,
    batch,
    copy_state,
    eager_step,
    make_graph,
    make_mlp,
    make_sgd,
    train_step,
    trainer,
    twins,
)

X, Y = batch()
LOSS = nn.CrossEntropyLoss()


def follow(make_optimizer, make_scheduler=None, steps=6, make=make_mlp, **options):
    """Run a graph and an eager loop in parallel; return the graph's optimizer and scheduler."""
    a, b = twins(make)
    oa, ob = make_optimizer(a), make_optimizer(b)
    sa, sb = (make_scheduler(oa), make_scheduler(ob)) if make_scheduler else (None, None)
    g = make_graph(train_step, (oa, sa), model=a, loss=LOSS, **options)
    for _ in range(steps):
        want = eager_step(b, ob, LOSS, X, Y)
        if sb is not None:
            sb.step()
        assert np.isclose(g(X, Y).item(), want, rtol=1e-5)
    assert_same_state(a, b)
    return oa, sa


OPTIMIZERS = {
    "sgd": lambda p: flow.optim.SGD(p, lr=0.1), "momentum": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9),
    "nesterov": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: flow.optim.Adam(p, lr=0.01),
    "amsgrad": lambda p: flow.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: flow.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: flow.optim.RMSprop(p, lr=0.01),
    "centered": lambda p: flow.optim.RMSprop(p, lr=0.01, centered=True),
    "adagrad": lambda p: flow.optim.Adagrad(p, lr=0.1), "adadelta": lambda p: flow.optim.Adadelta(p, lr=1.0),
    "lamb": lambda p: flow.optim.LAMB(p, lr=0.01)}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_equal_eager_updates(name):
    follow(lambda m: OPTIMIZERS[name](m.parameters()), steps=20)


def test_optimizer_and_scheduler_count_the_steps():
    optimizer, scheduler = follow(lambda m: flow.optim.Adam(m.parameters(), lr=0.01),
                                  lambda o: S.StepLR(o, 2, 0.1))
    state = optimizer.state_dict()
    assert scheduler.last_step == 6 and scheduler.get_last_lr() == [optimizer.param_groups[0]["lr"]]
    assert np.isclose(optimizer.param_groups[0]["lr"], 1e-5)
    assert (state["state"]["step"] == 6 and all(set(state["state"][i]) == {"exp_avg", "exp_avg_sq"}
                                                for i in range(4)))


SCHEDULERS = {
    "step": lambda o: S.StepLR(o, 2, 0.5), "multistep": lambda o: S.MultiStepLR(o, [1, 3], 0.5),
    "exponential": lambda o: S.ExponentialLR(o, 0.7), "cosine": lambda o: S.CosineAnnealingLR(o, 4),
    "decay": lambda o: S.CosineDecayLR(o, 4, 0.1), "constant": lambda o: S.ConstantLR(o, 0.3, 2),
    "linear": lambda o: S.LinearLR(o, 0.2, 1.0, 3), "polynomial": lambda o: S.PolynomialLR(o, 4, 0.01),
    "lambda": lambda o: S.LambdaLR(o, lambda t: 0.5 ** t),
    "restarts": lambda o: S.CosineAnnealingWarmRestarts(o, 2),
    "warmup": lambda o: S.WarmUpLR(S.StepLR(o, 2, 0.5), warmup_factor=0.3, warmup_iters=3),
    "sequence": lambda o: S.SequentialLR(o, [S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)], [2])}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers(name):
    follow(make_sgd, SCHEDULERS[name])


def test_several_optimizers():
    a, b = twins(make_mlp)

    def parts(m):
        return [flow.optim.SGD(m[0].parameters(), lr=0.1, momentum=0.5),
                flow.optim.Adam(m[2].parameters(), lr=0.01)]

    g = make_graph(train_step, *parts(a), model=a, loss=LOSS)
    o1, o2 = parts(b)
    for _ in range(4):
        o2.zero_grad()
        want = eager_step(b, o1, LOSS, X, Y)
        o2.step()
        assert np.isclose(g(X, Y).item(), want, rtol=1e-5)
    assert_same_state(a, b)
    assert {"model.0.weight-momentum", "model.2.bias-m"} <= set(g.state_dict())


@pytest.mark.parametrize("schedule", [
    lambda o: S.ExponentialLR(o, 0.5), lambda o: S.LambdaLR(o, [lambda t: 0.5 ** t, lambda t: 1 + t]),
    lambda o: S.MultiplicativeLR(o, [lambda t: 0.5, lambda t: 2])], ids=["one", "lambdas", "products"])
def test_groups_with_different_rates(schedule):
    follow(lambda m: flow.optim.SGD([{"params": m[0].parameters(), "lr": 0.2},
                                     {"params": m[2].parameters(), "lr": 0.01,
                                       "weight_decay": 0.1}], momentum=0.9),
           schedule)


def test_frozen_and_omitted_parameters():
    a, b = twins(make_mlp)
    for m in (a, b):
        m[0].requires_grad_(False)                                  # frozen, but in the optimizer
    start = copy_state(a)
    g = trainer(a, flow.optim.SGD([*a[0].parameters(), a[2].weight], lr=0.1))       # a[2].bias is in no group
    o = flow.optim.SGD([b[2].weight], lr=0.1)
    for _ in range(3):
        assert np.isclose(g(X, Y).item(), eager_step(b, o, LOSS, X, Y), rtol=1e-5)
    assert_same_state(a, b)
    assert [k for k, v in copy_state(a).items() if not np.array_equal(v, start[k])] == ["2.weight"]


@pytest.mark.parametrize("most", [0.05, 100.0])  # gradients are longer, and shorter, which are not scaled
@pytest.mark.parametrize("norm", [2.0, 1.0, 3.0, float("inf")])
def test_clipping(norm, most):
    def make(model):
        group = {"params": model.parameters(), "clip_grad_max_norm": most, "clip_grad_norm_type": norm}
        return flow.optim.SGD([group], lr=0.5)

    a, b = twins(make_mlp)
    g, o = trainer(a, make(a)), make(b)
    step = o.step
    o.step = lambda: (o.clip_grad(), step())                        # a graph clips by itself
    start = copy_state(a)
    for _ in range(3):
        assert np.isclose(g(X, Y).item(), eager_step(b, o, LOSS, X, Y), rtol=1e-5)
    assert_same_state(a, b)
    moved = sum(np.abs(v - start[k]).sum() for k, v in copy_state(a).items())
    assert 0 < moved < 3 * 0.5 * most * 51


def test_stale_eager_gradients_are_harmless():
    a, b = twins(make_mlp)
    LOSS(a(X), Y).backward()
    kept = a[0].weight.grad.numpy().copy()
    g, h = trainer(a, make_sgd(a)), trainer(b, make_sgd(b))
    for _ in range(2):
        assert g(X, Y).item() == h(X, Y).item()
    assert np.array_equal(a[0].weight.grad.numpy(), kept)           # and the user's gradients stay unchanged
    assert b[0].weight.grad is None
    trainer(b, make_sgd(b))(X, Y)  # a second training graph over the same parameters


def test_rate_changed_by_hand():
    model = make_mlp()
    optimizer = make_sgd(model)
    g = trainer(model, optimizer)
    g(X, Y)
    before = copy_state(model)
    optimizer.param_groups[0]["lr"] = 0.0
    g(X, Y)
    assert all(np.array_equal(v, before[k]) for k, v in copy_state(model).items())


def test_an_explicit_gradient_for_a_non_scalar_loss():
    a, b = twins(make_mlp)

    def build(self, x):
        y = self.model(x)
        y.backward(flow.ones_like(y) * 2)
        return y

    g, o = make_graph(build, make_sgd(a), model=a), make_sgd(b)
    g(X)
    y = b(X)
    y.backward(flow.ones_like(y) * 2)  # not divided by the number of elements, as in PyTorch
    o.step()
    assert_same_state(a, b)


def test_gradient_penalty():
    """autograd.grad inside build, differentiated again."""
    def penalty(model, x):
        y = model(x).sum()
        slope, = flow.autograd.grad(y, [x], create_graph=True)
        return (slope.norm(dim=1) - 1).square().mean() + y * 0.1

    def make():
        return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))

    def build(self, x):
        loss = penalty(self.model, x)
        loss.backward()
        return loss

    a, b = twins(make)
    g, o, x = make_graph(build, make_sgd(a), model=a), make_sgd(b), X.detach().requires_grad_()
    for _ in range(4):
        want = penalty(b, x)
        o.zero_grad()
        want.backward()
        o.step()
        assert np.isclose(g(x).item(), want.item(), rtol=1e-4)
    assert_same_state(a, b, rtol=1e-4)
    slopes = make_graph(lambda self, x: flow.autograd.grad(self.model(x).sum(),
                                                           [x, flow.ones(1, requires_grad=True)],
                                                           allow_unused=True), model=a)(x)
    assert slopes[1] is None and not slopes[0].requires_grad
    assert np.allclose(slopes[0].numpy(), flow.autograd.grad(a(x).sum(), [x])[0].numpy(), atol=1e-6)


def test_shared_parameters_are_updated_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
            self.b.weight = self.a.weight
            self.c = nn.Linear(4, 3)

        def forward(self, x):
            return self.c(self.b(self.a(x).tanh()))

    follow(lambda m: flow.optim.Adam(m.parameters(), lr=0.01), make=Tied)
