"""Law: every schedule of flow.optim.lr_scheduler equals its closed formula, over 30 steps and several groups,
even if it is saved in between and continued in another process.
"""
import copy
import math

import numpy as np
import pytest

import flowedu as flow
from flowedu.optim import SGD
from flowedu.optim import lr_scheduler as L

STEPS, RATES = 30, [1.0, 0.4]


def optimizer(rates=RATES):
    return SGD([{"params": [flow.tensor([1.0], requires_grad=True)], "lr": r} for r in rates])


def cosine(part):
    return (1 + math.cos(math.pi * part)) / 2


def restarts(b, n, first, times, low, fall, limit):
    """Look up the step in the list of periods."""
    start, length, k = 0, first, 0
    while n >= start + length:
        start, length, k = start + length, length * times, k + 1
    return low if limit and k >= limit else low + (b * fall ** k - low) * cosine((n - start) / length)


def stretched(n, steps):
    """Return the next multiple of `steps`, counting step 0 as 1."""
    return steps * math.ceil(max(n, 1) / steps)


def one_cycle(n, knots, cos=True):
    """Interpolate the curve through the list of [(step, rate)]."""
    (start, a), (end, b) = next(two for two in zip(knots, knots[1:]) if n <= two[1][0] or two[1] is knots[-1])
    part = (n - start) / (end - start)
    return b + (a - b) * cosine(part) if cos else a + (b - a) * part


def triangle(n, up, down):
    n %= up + down
    return np.interp(n, [0, up, up + down], [0, 1, 0])


still = {"cycle_momentum": False}


def half(o):
    return L.ExponentialLR(o, 0.5)


# name: (schedule, its rate at step n for a group with base rate b)
FORMULAS = {
    "StepLR": (lambda o: L.StepLR(o, 7, 0.3), lambda b, n: b * 0.3 ** (n // 7)),
    "StepLR default": (lambda o: L.StepLR(o, 4), lambda b, n: b * 0.1 ** (n // 4)),
    "MultiStepLR": (lambda o: L.MultiStepLR(o, [3, 3, 9, 25], 0.4),
                    lambda b, n: b * 0.4 ** sum(n >= s for s in (3, 3, 9, 25))),
    "ExponentialLR": (lambda o: L.ExponentialLR(o, 0.9), lambda b, n: b * 0.9 ** n),
    "ConstantLR": (lambda o: L.ConstantLR(o, 0.2, 6), lambda b, n: b * (0.2 if n < 6 else 1)),
    "ConstantLR default": (lambda o: L.ConstantLR(o), lambda b, n: b * (1 / 3 if n < 5 else 1)),
    "LinearLR": (lambda o: L.LinearLR(o, 0.2, 0.7, 12), lambda b, n: b * np.interp(n, [0, 12], [0.2, 0.7])),
    "LinearLR default": (lambda o: L.LinearLR(o), lambda b, n: b * np.interp(n, [0, 5], [1 / 3, 1])),
    "PolynomialLR": (lambda o: L.PolynomialLR(o, 20, 0.05, 2.5),
                     lambda b, n: 0.05 + (b - 0.05) * max(0, 1 - n / 20) ** 2.5),
    "PolynomialLR default": (lambda o: L.PolynomialLR(o, 20),
                             lambda b, n: 1e-4 + (b - 1e-4) * max(0, 1 - n / 20)),
    "PolynomialLR cycle": (lambda o: L.PolynomialLR(o, 8, 0.05, 2.0, cycle=True),
                           lambda b, n: 0.05 + (b - 0.05) * (1 - max(n, 1) / stretched(n, 8)) ** 2),
    "CosineDecayLR": (lambda o: L.CosineDecayLR(o, 11, 0.3),
                      lambda b, n: b * (0.3 + 0.7 * cosine(min(n, 11) / 11))),
    "CosineAnnealingLR": (lambda o: L.CosineAnnealingLR(o, 9, 0.1),
                          lambda b, n: 0.1 + (b - 0.1) * cosine(n / 9)),
    "CosineAnnealingWarmRestarts": (lambda o: L.CosineAnnealingWarmRestarts(o, 4, 2, 0.02, 0.8),
                                    lambda b, n: restarts(b, n, 4, 2, 0.02, 0.8, 0)),
    "CosineAnnealingWarmRestarts limit": (lambda o: L.CosineAnnealingWarmRestarts(o, 5, 1, 0.02, 1.0, 3),
                                          lambda b, n: restarts(b, n, 5, 1, 0.02, 1.0, 3)),
    "LambdaLR": (lambda o: L.LambdaLR(o, [lambda n: 1 / (n + 1), lambda n: 0.9 ** n]),
                 lambda b, n: b / (n + 1) if b == RATES[0] else b * 0.9 ** n),
    "MultiplicativeLR": (lambda o: L.MultiplicativeLR(o, lambda n: 0.5 if n % 3 == 0 else 1.1),
                         lambda b, n: b * 0.5 ** (n // 3) * 1.1 ** (n - n // 3)),
    "SequentialLR": (lambda o: L.SequentialLR(o, [L.ConstantLR(o, 0.1, 4), half(o), L.StepLR(o, 3, 0.5)],
                                              [4, 9]),
                     lambda b, n: b * (0.1 if n < 4 else 0.5 ** n if n < 9 else 0.5 ** (n // 3))),
    "SequentialLR rescaled": (
        lambda o: L.SequentialLR(o, [L.ConstantLR(o, 0.1, 4), half(o), L.StepLR(o, 3, 0.5)], [4, 9],
                                 [True, False]),
        lambda b, n: b * (0.1 if n < 4 else 0.5 ** (n - 4) if n < 9 else 0.5 ** (n // 3))),
    "ChainedScheduler": (lambda o: L.ChainedScheduler([L.ConstantLR(o, 0.1, 4), L.ExponentialLR(o, 0.9),
                                                       L.StepLR(o, 6)]),
                         lambda b, n: b * (0.1 if n < 4 else 1) * 0.9 ** n * 0.1 ** (n // 6)),
    "ChainedScheduler by group": (
        lambda o: L.ChainedScheduler([L.ExponentialLR(o, 0.9),
                                      L.LambdaLR(o, [lambda n: 0.5, lambda n: 1 / (n + 1)])]),
        lambda b, n: b * 0.9 ** n * (0.5 if b == RATES[0] else 1 / (n + 1))),
    "WarmUpLR": (lambda o: L.WarmUpLR(L.ExponentialLR(o, 0.9), 0.1, 6),
                 lambda b, n: b * (np.interp(n, [0, 6], [0.1, 0.9 ** 6]) if n < 6 else 0.9 ** n)),
    "WarmUpLR constant": (lambda o: L.WarmUpLR(L.ExponentialLR(o, 0.9), 0.1, 6, "constant"),
                          lambda b, n: b * (0.1 if n < 6 else 0.9 ** n)),
    "WarmUpLR prefix": (lambda o: L.WarmUpLR(L.ExponentialLR(o, 0.9), 0.1, 6, warmup_prefix=True),
                        lambda b, n: b * (np.interp(n, [0, 6], [0.1, 1]) if n < 6 else 0.9 ** (n - 6))),
    "OneCycleLR": (lambda o: L.OneCycleLR(o, 2.0, 30, **still),
                   lambda b, n: one_cycle(n, [(0, 0.08), (8, 2), (29, 8e-6)])),
    "OneCycleLR linear": (lambda o: L.OneCycleLR(o, [2.0, 3.0], epochs=5, steps_per_epoch=8, pct_start=0.25,
                                                 div_factor=10,
                                                 final_div_factor=100, anneal_strategy="linear", **still),
                          lambda b, n: one_cycle(n, [(0, 0.1), (9, 1), (39, 0.001)],
                                                 False) * (2 if b == 1 else 3)),
    "OneCycleLR three phases": (
        lambda o: L.OneCycleLR(o, 2.0, total_steps=30, pct_start=0.4, three_phase=True, **still),
        lambda b, n: one_cycle(n, [(0, 0.08), (11, 2), (22, 0.08), (29, 8e-6)])),
    "OneCycleLR down only": (lambda o: L.OneCycleLR(o, 2.0, 30, pct_start=1 / 30, **still),
                             lambda b, n: one_cycle(n, [(0, 2), (29, 8e-6)]) if n else 2),
    "CyclicLR": (lambda o: L.CyclicLR(o, 0.1, 0.5, 4, **still), lambda b, n: 0.1 + 0.4 * triangle(n, 4, 4)),
    "CyclicLR two": (lambda o: L.CyclicLR(o, [0.1, 0.2], [0.5, 0.6], 3, 5, mode="triangular2", **still),
                     lambda b, n: (0.1 if b == 1 else 0.2) + 0.4 * triangle(n, 3, 5) / 2 ** (n // 8)),
    "CyclicLR exp": (lambda o: L.CyclicLR(o, 0.1, 0.5, 4, 2, mode="exp_range", gamma=0.9, **still),
                     lambda b, n: 0.1 + 0.4 * triangle(n, 4, 2) * 0.9 ** n),
    "CyclicLR cycle": (lambda o: L.CyclicLR(o, 0.1, 0.5, 4, 2, scale_fn=lambda c: 1 / c ** 2, **still),
                       lambda b, n: 0.1 + 0.4 * triangle(n, 4, 2) / (n // 6 + 1) ** 2),
    "CyclicLR iterations": (
        lambda o: L.CyclicLR(o, 0.1, 0.5, 4, 2, scale_fn=lambda k: 0.5 ** k, scale_mode="iterations",
                             **still),
        lambda b, n: 0.1 + 0.4 * triangle(n, 4, 2) * 0.5 ** n),
    "WarmUpLR of an optimizer": (lambda o: L.WarmUpLR(o), lambda b, n: b * np.interp(n, [0, 5], [1 / 3, 1])),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_thirty_steps_with_saving_and_loading(name, tmp_path):
    make, rate = FORMULAS[name]
    opt = optimizer()
    schedule = make(opt)
    for n in range(STEPS):
        want = [rate(b, n) for b in RATES]
        np.testing.assert_allclose([g["lr"] for g in opt.param_groups], want, rtol=1e-9, atol=1e-12,
                                   err_msg=f"step {n}")
        np.testing.assert_allclose(schedule.get_last_lr(), want, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose([schedule.lr_at(b, n, i) for i, b in enumerate(RATES)], want, rtol=1e-9,
                                   atol=1e-12)
        if n in (2, 5, 11):  # saved, and loaded by a program that started with other rates
            flow.save({"rates": schedule.state_dict(), "steps": opt.state_dict()}, tmp_path / "state")
            saved = flow.load(tmp_path / "state")
            opt = optimizer([7.0, 7.0] if "WarmUp" in name else [7.0, 9.0])
            schedule = make(opt)
            opt.load_state_dict(saved["steps"])
            schedule.load_state_dict(saved["rates"])
            assert schedule.last_step == n
        schedule.step()


def rates_of(opt):
    return [g["lr"] for g in opt.param_groups]


@pytest.mark.parametrize("name", FORMULAS)
def test_a_state_of_any_step_continues_in_a_schedule_at_any_other_step(name):
    """Save at step n, load into a schedule and an optimizer that have taken m steps, and take three more
    steps.
    """
    make, rate = FORMULAS[name]
    opt = optimizer()
    schedule, states = make(opt), []
    for _ in range(STEPS - 3):
        states.append((copy.deepcopy(schedule.state_dict()), copy.deepcopy(opt.state_dict())))
        schedule.step()
    for n, (rates, groups) in enumerate(states):
        for m in {0, n, (7 * n + 5) % 20}:
            other = optimizer()
            late = make(other)
            for _ in range(m):
                late.step()
            other.load_state_dict(copy.deepcopy(groups))
            late.load_state_dict(copy.deepcopy(rates))
            for step in range(n, n + 3):
                assert late.last_step == step
                np.testing.assert_allclose(late.get_last_lr(), rates_of(other), rtol=0,
                                           err_msg=f"{m}, {n}, {step}")
                np.testing.assert_allclose(rates_of(other), [rate(b, step) for b in RATES], rtol=1e-9,
                                           atol=1e-12, err_msg=f"saved at {n}, loaded at {m}, step {step}")
                late.step()


@pytest.mark.parametrize("name", FORMULAS)
def test_a_loaded_state_is_a_copy(name):
    """Steps after saving or loading do not change the saved state."""
    make, rate = FORMULAS[name]
    opt, other = optimizer(), optimizer()
    first, second = make(opt), make(other)
    for _ in range(4):
        first.step()
    state = first.state_dict()
    before = copy.deepcopy(state)
    second.load_state_dict(state)
    for _ in range(5):
        first.step()
    for _ in range(3):
        second.step()
    assert second.last_step == 7 and first.last_step == 9
    np.testing.assert_allclose(rates_of(other), [rate(b, 7) for b in RATES], rtol=1e-9, atol=1e-12)
    third = make(optimizer())
    third.load_state_dict(before)
    third.step()
    np.testing.assert_allclose(third.get_last_lr(), [rate(b, 5) for b in RATES], rtol=1e-9, atol=1e-12)
    assert state["last_step"] == 4 and state["_last_lr"] == before["_last_lr"]


class Plateau:
    """Reference for ReduceLROnPlateau, computed from the history of the metric."""

    def __init__(self, better, factor, patience, cooldown, low):
        self.better = better
        self.factor = factor
        self.patience = patience
        self.cooldown = cooldown
        self.low = low
        self.best, self.bad, self.rest = None, 0, 0

    def rate(self, lr, value):
        good = self.best is None or self.better(value, self.best)
        self.best, self.bad = (value, 0) if good else (self.best, self.bad + 1)
        if self.rest:
            self.rest, self.bad = self.rest - 1, 0
        if self.bad <= self.patience:
            return lr
        self.bad, self.rest = 0, self.cooldown
        lower = max(lr * self.factor, self.low)
        return lower if lr - lower > 1e-8 else lr


BETTER = {("min", "rel"): lambda v, best: v < best * (1 - 0.05),
          ("min", "abs"): lambda v, best: v < best - 0.05,
          ("max", "rel"): lambda v, best: v > best * (1 + 0.05), ("max", "abs"): lambda v, best: v > best
          + 0.05}


@pytest.mark.parametrize("mode, kind", BETTER)
@pytest.mark.parametrize("patience, cooldown, low", [(0, 0, 0.0), (2, 0, 0.2), (1, 3, 0.05)])
@pytest.mark.parametrize("sign", ["positive", "negative", "both"])
def test_plateau(mode, kind, patience, cooldown, low, sign):
    ends = {"positive": (0.5, 2), "negative": (-2, -0.5), "both": (-1, 1)}[sign]
    values = np.random.default_rng(7).uniform(*ends, 60).round(2).tolist()
    options = dict(mode=mode, threshold_mode=kind, threshold=0.05, patience=patience, cooldown=cooldown,
                   factor=0.8, min_lr=low)
    opt, lr, peer = optimizer([1.0]), 1.0, Plateau(BETTER[mode, kind], 0.8, patience, cooldown, low)
    schedule = L.ReduceLROnPlateau(opt, **options)
    for n, value in enumerate(values):
        if n == 20:
            other = L.ReduceLROnPlateau(opt)
            other.load_state_dict(schedule.state_dict())
            schedule = other
        schedule.step(value)
        lr = peer.rate(lr, value)
        assert opt.param_groups[0]["lr"] == pytest.approx(lr, rel=1e-12), n
        assert schedule.get_last_lr() == [opt.param_groups[0]["lr"]]


@pytest.mark.parametrize("best", [2.0, 0.5, 0.0, -0.5, -2.0, math.inf, -math.inf])
@pytest.mark.parametrize("mode, kind", BETTER)
def test_comparison_with_the_best_metric(mode, kind, best):
    """On both sides of the threshold, and at it. With PyTorch's formula and a negative best metric, the
    relative threshold of "min" is above the metric, and that of "max" below it.
    """
    schedule = L.ReduceLROnPlateau(optimizer([1.0]), mode=mode, threshold_mode=kind, threshold=0.05)
    margin = 0.05 * (best if kind == "rel" else 1)
    bar = best if math.isinf(best) else best - margin if mode == "min" else best + margin
    for value in (-5.0, 0.0, 5.0, *(() if math.isinf(bar) else (bar - 1e-6, bar + 1e-6))):
        assert schedule.is_better(value, best) == (value < bar if mode == "min" else value > bar), value
    if math.isfinite(bar):
        assert (not schedule.is_better(bar, best) and schedule.is_better(bar,
                                                                         best) == BETTER[mode, kind](bar,
                                                                                                     best))


def test_every_schedule_has_a_formula():
    covered = {name.split()[0] for name in FORMULAS}
    assert set(L.__all__) - covered == {"CosineScheduler", "LRScheduler", "ReduceLROnPlateau", "WarmupLR"}, \
        "the base, the one above, second names"
