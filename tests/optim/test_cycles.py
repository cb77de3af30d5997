"""OneCycleLR and CyclicLR: momentum moves opposite to the rate if the optimizer has momentum; steps beyond
the end; errors. test_schedule_formulas.py tests their rates.
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn, optim
from flowedu.errors import FlowError, UnsupportedError
from flowedu.optim import lr_scheduler as L


def make(kind, **options):
    return kind([flow.tensor([1.0, 2.0], requires_grad=True)], lr=0.3, **options)


def momentum(optimizer):
    group = optimizer.param_groups[0]
    return group["betas"][0] if "betas" in group else group["momentum"]


CYCLES = {"one": (lambda o: L.OneCycleLR(o, 1.0, 20, base_momentum=0.7, max_momentum=0.9), (5, 19)),
          "three": (lambda o: L.OneCycleLR(o, 1.0, 20, pct_start=0.4, three_phase=True, base_momentum=0.7,
                                           max_momentum=0.9), (7, 14)),
          "cyclic": (lambda o: L.CyclicLR(o, 0.1, 1.0, 5, 3, base_momentum=0.7, max_momentum=0.9), (5, 8))}


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.LAMB], ids=lambda k: k.__name__)
@pytest.mark.parametrize("name", CYCLES)
def test_momentum_moves_opposite_to_the_rate(kind, name):
    """Momentum is highest where the rate is lowest, and vice versa; in between it falls while the rate
    rises.
    """
    schedule, (top, back) = CYCLES[name]
    optimizer = make(kind)
    second = optimizer.param_groups[0].get("betas", (0, None))[1]
    scheduler = schedule(optimizer)
    seen = []
    for _ in range(back + 1):
        seen.append((optimizer.param_groups[0]["lr"], momentum(optimizer)))
        scheduler.step()
    rates, momenta = np.array(seen).T
    assert rates[top] == rates.max() == 1.0 and momenta[[0, top, back]] == pytest.approx([0.9, 0.7, 0.9])
    assert (np.diff(rates[:top + 1]) > 0).all() and (np.diff(momenta[:top + 1]) < 0).all()
    assert (np.diff(rates[top:]) < 0).all() and (np.diff(momenta[top:]) > 0).all()
    assert second is None or optimizer.param_groups[0]["betas"][1] == second


@pytest.mark.parametrize("name", CYCLES)
def test_a_step_uses_the_current_rate_and_momentum(name):
    """Compared with SGD formulas."""
    w = flow.tensor([1.0, -2.0], requires_grad=True)
    optimizer = optim.SGD([w], lr=0.3, momentum=0.5)
    scheduler = CYCLES[name][0](optimizer)
    by_hand, b = w.detach().numpy().astype("f8").copy(), 0.0
    for _ in range(8):
        lr, m = optimizer.param_groups[0]["lr"], momentum(optimizer)
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        scheduler.step()
        b = m * b + 2 * by_hand
        by_hand = by_hand - lr * b
        np.testing.assert_allclose(w.detach().numpy(), by_hand, rtol=1e-4, atol=1e-5)


def test_a_graph_follows_the_rate_and_refuses_momentum_cycling():
    def trained(cycle):
        model = nn.Linear(2, 1, bias=False)
        with flow.no_grad():
            model.weight.fill_(1.0)
        optimizer = optim.SGD(model.parameters(), lr=0.3)
        scheduler = L.OneCycleLR(optimizer, 0.01, 5, cycle_momentum=cycle)

        class Train(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model = model
                self.add_optimizer(optimizer, lr_sch=scheduler)

            def build(self, x):
                loss = self.model(x).sum()
                loss.backward()
                return loss

        graph, x = Train(), flow.ones(1, 2)
        for _ in range(3):
            graph(x)
        return model.weight.numpy()[0, 0], [scheduler.lr_at(0, n) for n in range(3)]

    weight, rates = trained(False)
    assert weight == pytest.approx(1 - sum(rates), rel=1e-5)
    with pytest.raises(UnsupportedError,
                       match="(?s)momentum stays as it is.*fix: *OneCycleLR.*cycle_momentum=False"):
        trained(True)


def test_a_step_beyond_the_end():
    scheduler = L.OneCycleLR(make(optim.SGD), 1.0, 4)
    for _ in range(4):
        scheduler.step()
    with pytest.raises(ValueError, match=r"(?s)Tried to step 5 times.*total steps is 4.*fix"):
        scheduler.step()


@pytest.mark.parametrize("call", [
    lambda o: L.OneCycleLR(o, 0.1), lambda o: L.OneCycleLR(o, 0.1, epochs=3),
    lambda o: L.OneCycleLR(o, 0.1, 0),
    lambda o: L.OneCycleLR(o, [0.1, 0.2], 5), lambda o: L.OneCycleLR(o, 0.1, 5, pct_start=1.5),
    lambda o: L.OneCycleLR(o, 0.1, 5, anneal_strategy="exp"), lambda o: L.OneCycleLR(3, 0.1, 5),
    lambda o: L.CyclicLR(o, 0.1, 0.2, mode="square"), lambda o: L.CyclicLR(o, 0.1, 0.2, 0),
    lambda o: L.CyclicLR(o, 0.1, 0.2, scale_mode="epochs"), lambda o: L.CyclicLR(o, [0.1], [0.2, 0.3]),
    lambda o: L.OneCycleLR(make(optim.Adagrad), 0.1, 5), lambda o: L.CyclicLR(make(optim.Adagrad), 0.1, 0.2)])
def test_invalid_arguments_are_refused(call):
    optimizer = make(optim.SGD)
    with pytest.raises(FlowError, match="(?s)(OneCycleLR|CyclicLR).*expected.*got.*fix"):
        call(optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.3 and "initial_lr" not in optimizer.param_groups[0]
