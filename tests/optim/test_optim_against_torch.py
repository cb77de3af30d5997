"""flow.optim against PyTorch's optimizers with the same formulas: parameters and states after several
steps.
"""
import numpy as np
import pytest

import flowedu as flow

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.05}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "maximize": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "maximize": True}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3, "betas": (0.5, 0.7)}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3, "amsgrad": True, "maximize": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "weight_decay": 0.1, "initial_accumulator_value": 0.5,
                 "eps": 1e-3}),
    ("Adadelta", {"lr": 0.7}),
    ("Adadelta", {"lr": 0.7, "rho": 0.5, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
]
SHAPES = [(3, 4), (5,), (), (2, 1, 3), (70, 80)]
WANT = {"weight_decay": 0.0}                        # PyTorch's AdamW has another default


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join([c[0],
                                                                *(f"{k}={v}" for k, v in c[1].items())]))
def test_steps_are_equal(case, dtype):
    name, options = case
    rng = np.random.default_rng(1)
    start = [rng.standard_normal(s).astype(dtype) for s in SHAPES]
    ours = [flow.tensor(a, requires_grad=True) for a in start]
    theirs = [torch.tensor(a, requires_grad=True) for a in start]
    one = getattr(flow.optim, name)(ours, **options)
    two = getattr(torch.optim, name)(theirs, **{**WANT, **options})
    for step in range(6):
        for a, b in zip(ours, theirs):
            g = rng.standard_normal(a.shape).astype(dtype)
            a.grad, b.grad = flow.tensor(g), torch.tensor(g)
        if step == 3:                               # change the rate in between
            one.param_groups[0]["lr"] = two.param_groups[0]["lr"] = options["lr"] / 3
        one.step()
        two.step()
    tolerance = {"rtol": 2e-5, "atol": 2e-6} if dtype == "float32" else {"rtol": 1e-11, "atol": 1e-13}
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), **tolerance)
        mine, state = one.state.get(a, {}), two.state[b]
        for key, other in (("exp_avg", "exp_avg"), ("exp_avg_sq", "exp_avg_sq"),
                           ("max_exp_avg_sq", "max_exp_avg_sq"),
                           ("momentum_buf", "momentum_buffer"), ("sum", "sum"), ("square_avgs", "square_avg"),
                           ("acc_deltas", "acc_delta")):
            assert (key in mine) == (state.get(other) is not None)
            if key in mine:
                np.testing.assert_allclose(mine[key].numpy(), state[other].numpy(), **tolerance)


def test_training_is_equal():
    """A small network with groups, a schedule, and gradients that are sometimes missing."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((20, 3)).astype("float32"), rng.standard_normal((20, 1)).astype("float32")
    w1, w2, b = (rng.standard_normal(s).astype("float32") for s in ((3, 8), (8, 1), (1,)))

    def train(lib, optim, tensor):
        params = [tensor(a) for a in (w1, w2, b)]
        for p in params:
            p.requires_grad = True
        optimizer = optim.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.02, "momentum": 0.5}],
                              lr=0.05)
        schedule = optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
        losses = []
        for i in range(12):
            h = (tensor(x) @ params[0]).tanh() @ params[1]
            loss = ((h + (params[2] if i % 3 else 0.0) - tensor(y)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        return losses

    np.testing.assert_allclose(train(flow, flow.optim, flow.tensor), train(torch, torch.optim, torch.tensor),
                               rtol=1e-4)
