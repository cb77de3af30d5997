"""flow.optim.lr_scheduler: OneFlow's reference sequences, composition, state, and the pure function that
nn.Graph calls.
"""
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.errors import FlowError
from flowedu.optim import SGD
from flowedu.optim import lr_scheduler as L


def optimizer(*rates):
    params = [flow.tensor([1.0], requires_grad=True) for _ in rates or (1,)]
    return SGD([{"params": [p], "lr": r} for p, r in zip(params, rates or (1.0,))])


def row(make, steps, *rates):
    """Return the rates of a schedule at its first steps: of the only group, or lists."""
    opt = optimizer(*rates)
    schedule, found = make(opt), []
    for _ in range(steps):
        found.append([g["lr"] for g in opt.param_groups])
        assert schedule.get_last_lr() == found[-1] and schedule.last_step == len(found) - 1
        schedule.step()
    return found if len(rates) > 1 else [f[0] for f in found]


# OneFlow 0.9, base rate 1
VECTORS = {
    "StepLR": (lambda o: L.StepLR(o, 2, 0.1), [1, 1, .1, .1, .01, .01]),
    "MultiStepLR": (lambda o: L.MultiStepLR(o, [2, 5], 0.1), [1, 1, .1, .1, .1, .01, .01]),
    "ExponentialLR": (lambda o: L.ExponentialLR(o, 0.5), [1, .5, .25]),
    "CosineAnnealingLR": (lambda o: L.CosineAnnealingLR(o, 4), [1, .853553, .5, .146447, 0, .146447, .5,
                                                                .853553, 1]),
    "CosineDecayLR": (lambda o: L.CosineDecayLR(o, 4, 0.1), [1, .868198, .55, .231802, .1, .1, .1]),
    "PolynomialLR": (lambda o: L.PolynomialLR(o, 4, 0.1, 1.0), [1, .775, .55, .325, .1, .1]),
    "LinearLR": (lambda o: L.LinearLR(o, 0.5, 1.0, 4), [.5, .625, .75, .875, 1, 1]),
    "ConstantLR": (lambda o: L.ConstantLR(o, 0.5, 3), [.5, .5, .5, 1, 1]),
    "WarmUpLR-linear": (lambda o: L.WarmUpLR(o, 0.1, 4, "linear"), [.1, .325, .55, .775, 1, 1]),
    "WarmUpLR-constant": (lambda o: L.WarmUpLR(o, 0.1, 4, "constant"), [.1, .1, .1, .1, 1, 1]),
    "WarmUpLR-StepLR": (lambda o: L.WarmUpLR(L.StepLR(o, 3, 0.1), 0.1, 2), [.1, .55, 1, .1, .1, .1, .01]),
    "CosineAnnealingWarmRestarts": (lambda o: L.CosineAnnealingWarmRestarts(o, 3),
                                    [1, .75, .25, 1, .75, .25]),
    "SequentialLR": (lambda o: L.SequentialLR(o, [L.ConstantLR(o, 0.5, 2), L.ExponentialLR(o, 0.5)], [2]),
                     [.5, .5, .25, .125]),
    # and formulas of OneFlow's documentation
    "WarmUpLR-CosineDecayLR": (lambda o: L.WarmUpLR(L.CosineDecayLR(o, 5, 0.1), 0.5, 2),
                               [.5, .5 + (.689058 - .5) / 2, .689058, .410942]),
    "WarmUpLR-prefix": (lambda o: L.WarmUpLR(L.StepLR(o, 2, 0.1), 0.5, 2, warmup_prefix=True),
                        [.5, .75, 1, 1, .1, .1, .01]),
    "WarmUpLR-0": (lambda o: L.WarmUpLR(L.StepLR(o, 2, 0.1), 0.5, 0), [1, 1, .1]),
    "SequentialLR-rescaled": (lambda o: L.SequentialLR(o, [L.ConstantLR(o, 0.5, 2), L.ExponentialLR(o, 0.5)],
                                                       [2], True),
                              [.5, .5, 1, .5]),
    "ChainedScheduler": (lambda o: L.ChainedScheduler([L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9)]),
                         [.1, .09, .81, .729]),
    "CosineAnnealingWarmRestarts-2": (lambda o: L.CosineAnnealingWarmRestarts(o, 1, 2, 0.0, 0.5),
                                      [1, .5, .25, .25, .213388]),
    "CosineAnnealingWarmRestarts-limit": (lambda o: L.CosineAnnealingWarmRestarts(o, 2, restart_limit=2,
                                                                                  eta_min=0.2),
                                          [1, .6, 1, .6, .2, .2]),
    "PolynomialLR-cycle": (lambda o: L.PolynomialLR(o, 2, 0.0, 1.0, cycle=True), [.5, .5, 0, .25, 0, 1 / 6]),
    "LambdaLR": (lambda o: L.LambdaLR(o, lambda n: 1 / (n + 1)), [1, .5, 1 / 3]),
    "MultiplicativeLR": (lambda o: L.MultiplicativeLR(o, lambda n: 0.5 if n < 3 else 1), [1, .5, .25, .25]),
}


@pytest.mark.parametrize("name", VECTORS)
def test_reference_sequences(name):
    make, want = VECTORS[name]
    np.testing.assert_allclose(row(make, len(want)), want, atol=5e-7)


@pytest.mark.parametrize("name", VECTORS)
def test_lr_at_equals_stepping_and_has_no_side_effects(name):
    """nn.Graph calls it for any step in any order."""
    make, want = VECTORS[name]
    opt = optimizer()
    schedule = make(opt)
    for n in (len(want) - 1, 0, *range(len(want))):
        assert schedule.lr_at(1.0, n) == pytest.approx(want[n], abs=5e-7)
    assert schedule.last_step == 0 and opt.param_groups[0]["lr"] == pytest.approx(want[0], abs=5e-7)
    assert opt.param_groups[0]["initial_lr"] == 1.0


@pytest.mark.parametrize("name", sorted(set(VECTORS) - {"PolynomialLR", "CosineAnnealingWarmRestarts-limit"}))
def test_groups_scale_equally(name):
    """All schedules except those with a lowest rate multiply the base rate."""
    make, want = VECTORS[name]
    for one, (a, b) in zip(want, row(make, len(want), 1.0, 0.5)):
        assert a == pytest.approx(one, abs=5e-7) and b == pytest.approx(one / 2, abs=5e-7)


@given(t0=st.integers(1, 7), mult=st.integers(1, 4), step=st.integers(0, 3000))
def test_restarts_are_exact_after_many_periods(t0, mult, step):
    """Compared with a loop over the periods."""
    schedule = L.CosineAnnealingWarmRestarts(optimizer(), t0, mult, decay_rate=0.9)
    start, length, k = 0, t0, 0
    while start + length <= step:
        start, length, k = start + length, length * mult, k + 1
    want = 0.9 ** k * (1 + math.cos(math.pi * (step - start) / length)) / 2
    assert schedule.get_lr(1.0, step) == pytest.approx(want, rel=1e-9, abs=1e-12)


def test_lambdas_per_group():
    assert row(lambda o: L.LambdaLR(o, [lambda n: n + 1, lambda n: 10 ** -n]), 3, 1.0, 0.5) == \
        [[1, .5], [2, pytest.approx(.05)], [3, pytest.approx(.005)]]
    o = optimizer(1.0, 1.0)
    chained = L.ChainedScheduler([L.LambdaLR(o, [lambda n: 2, lambda n: 3]), L.ConstantLR(o, 0.5, 9)])
    assert [g["lr"] for g in o.param_groups] == [1.0, 1.5] and chained.lr_at(1.0, 0, 1) == 1.5


@pytest.mark.parametrize("name", sorted(set(VECTORS)))
def test_a_loaded_schedule_continues(name, tmp_path):
    make, _ = VECTORS[name]
    opt = optimizer()
    schedule = make(opt)
    for _ in range(3):
        schedule.step()
    path = tmp_path / "state"
    flow.save({"schedule": schedule.state_dict(), "optimizer": opt.state_dict()}, path)
    state = flow.load(path)
    other = optimizer(9.0)
    other.load_state_dict(state["optimizer"])
    again = make(other)
    again.load_state_dict(state["schedule"])
    assert again.last_step == 3 and again.get_last_lr() == schedule.get_last_lr()
    for _ in range(4):
        schedule.step()
        again.step()
        assert other.param_groups[0]["lr"] == opt.param_groups[0]["lr"]
    assert {"last_step", "verbose", "base_lrs", "_last_lr"} <= set(schedule.state_dict())


def test_resuming_by_last_step():
    opt = optimizer()
    with pytest.raises(ValueError, match="initial_lr"):
        L.StepLR(opt, 2, 0.1, last_step=3)
    opt.param_groups[0]["initial_lr"] = 1.0
    schedule = L.StepLR(opt, 2, 0.1, last_step=3)
    assert schedule.last_step == 4 and opt.param_groups[0]["lr"] == pytest.approx(0.01)


def test_verbose_prints_each_new_rate(capsys):
    L.StepLR(optimizer(), 1, verbose=True).step()
    assert capsys.readouterr().out == ("Last step 0 adjusting learning rate of param_groups[0] to 1.0\n"
                                       "Last step 1 adjusting learning rate of param_groups[0] to 0.1\n")


def test_a_custom_schedule():
    class Mine(L.LRScheduler):
        def get_lr(self, base_lr, step):
            return base_lr + step

    assert row(Mine, 3) == [1, 2, 3] and Mine(optimizer()).lr_at(5, 2) == 7
    with pytest.raises(NotImplementedError, match="get_lr"):
        L.LRScheduler(optimizer())


def plateau(values, **options):
    opt = optimizer()
    schedule, rates = L.ReduceLROnPlateau(opt, **options), []
    for v in values:
        schedule.step(v)
        rates.append(opt.param_groups[0]["lr"])
    return rates


def test_plateau():
    assert plateau([5, 4, 4, 4, 4, 3], patience=1, factor=0.5) == [1, 1, 1, .5, .5, .5]
    assert plateau([1, 2, 2, 2], mode="max", patience=0, factor=0.5) == [1, 1, .5, .25]
    assert plateau([4, 4, 4, 4, 4, 4], patience=0, factor=0.5, cooldown=2) == [1, .5, .5, .5, .25, .25]
    assert plateau([4, 4, 4], patience=0, factor=0.5, min_lr=0.4) == [1, .5, .4]
    assert plateau([4, 3.9, 3.8], patience=0, factor=0.5, threshold=0.5, threshold_mode="abs") == [1, .5, .25]
    assert plateau([flow.tensor(4.0), flow.tensor([4.0])], patience=0) == [1, .1]
    first = L.ReduceLROnPlateau(optimizer(), patience=1)
    first.step(3)
    second = L.ReduceLROnPlateau(optimizer())
    second.load_state_dict(first.state_dict())
    assert second.best == 3 and second.patience == 1 and second.get_last_lr() == [1.0]
    assert not hasattr(first, "lr_at")              # nn.Graph checks this attribute


@pytest.mark.torch
def test_plateau_equals_pytorchs():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for mode in ("min", "max"):
        for threshold_mode in ("rel", "abs"):
            values = rng.standard_normal(60).tolist()
            options = dict(mode=mode, threshold_mode=threshold_mode, patience=2, factor=0.8, cooldown=1,
                           threshold=0.05)
            theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
            schedule, want = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options), []
            for v in values:
                schedule.step(v)
                want.append(theirs.param_groups[0]["lr"])
            np.testing.assert_allclose(plateau(values, **options), want)


def test_both_spellings_are_the_same_class():
    assert flow.optim.lr_scheduler.WarmupLR is flow.optim.lr_scheduler.WarmUpLR
    assert flow.optim.lr_scheduler.StepLR is L.StepLR


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda o: L.StepLR("optimizer", 3), TypeError, "str is not an Optimizer"),
    (lambda o: L.StepLR(o, 0), ValueError, "step_size"),
    (lambda o: L.StepLR(o, 2.5), ValueError, "step_size"),
    (lambda o: L.MultiStepLR(o, [5, 2]), ValueError, r"milestones=\[2, 5\]"),
    (lambda o: L.ExponentialLR(o, "fast"), ValueError, "gamma"),
    (lambda o: L.CosineAnnealingLR(o, 0), ValueError, "T_max"),
    (lambda o: L.CosineAnnealingWarmRestarts(o, 0), ValueError, "T_0"),
    (lambda o: L.LambdaLR(o, [math.sqrt, math.sqrt]), ValueError, "one per group"),
    (lambda o: L.SequentialLR(o, [], []), ValueError, "at least one"),
    (lambda o: L.SequentialLR(o, [L.StepLR(o, 1)], [2]), ValueError, "one more"),
    (lambda o: L.SequentialLR(o, [L.StepLR(optimizer(), 1)], []), ValueError, "same optimizer"),
    (lambda o: L.SequentialLR(o, [L.StepLR(o, 1), L.StepLR(o, 1)], [2], [True, True]), ValueError,
     "interval_rescaling"),
    (lambda o: L.ChainedScheduler([]), ValueError, "at least one"),
    (lambda o: L.ChainedScheduler([L.StepLR(o, 1), L.StepLR(optimizer(), 1)]), ValueError, "same optimizer"),
    (lambda o: L.ChainedScheduler([L.ReduceLROnPlateau(o)]), ValueError, "metric"),
    (lambda o: L.WarmUpLR(3), ValueError, "LRScheduler or an Optimizer"),
    (lambda o: L.WarmUpLR(o, warmup_method="slow"), ValueError, "'linear' or 'constant'"),
    (lambda o: L.WarmUpLR(o, warmup_iters=0), ValueError, "warmup_iters"),
    (lambda o: L.WarmUpLR(L.PolynomialLR(optimizer(1.0, 0.5), 4, 0.1)), ValueError, "different"),
    (lambda o: L.ReduceLROnPlateau(o, mode="low"), ValueError, "mode low is unknown"),
    (lambda o: L.ReduceLROnPlateau(o, factor=1.0), ValueError, "factor"),
    (lambda o: L.ReduceLROnPlateau(o, min_lr=[0, 0]), ValueError, "expected 1 min_lrs, got 2"),
    (lambda o: L.ReduceLROnPlateau(3), TypeError, "not an Optimizer"),
])
def test_errors_have_a_fix(call, error, words):
    with pytest.raises(error, match=words) as e:
        call(optimizer())
    assert isinstance(e.value, FlowError) and "fix:" in str(e.value)


def test_parts_of_composed_schedules_follow_the_whole():
    """After steps and after loading."""
    for make, want in ((lambda o: L.ChainedScheduler([L.StepLR(o, 2), L.ExponentialLR(o, 0.9)]), [3, 3]),
                       (lambda o: L.SequentialLR(o, [L.StepLR(o, 2), L.ExponentialLR(o, 0.9)], [2], True),
                        [1, 1])):
        schedule, other = make(optimizer()), make(optimizer())
        for _ in range(3):
            schedule.step()
        other.load_state_dict(schedule.state_dict())
        assert [s.last_step for s in schedule.schedulers] == want == [s.last_step for s in other.schedulers]


def test_reductions_smaller_than_eps_are_skipped():
    assert plateau([4, 4, 4], patience=0, factor=0.5, eps=0.3) == [1, .5, .5]
