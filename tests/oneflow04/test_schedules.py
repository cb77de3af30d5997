"""Learning-rate schedules against independent formulas and known vectors, and their error messages."""
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowedu.errors import FlowError
from flowedu.oneflow04.optim import schedule as sc
from flowedu.oneflow04.optim import warmup

RATES = st.floats(1e-6, 10)
STEPS = st.integers(1, 300)
N = st.integers(0, 1000)
BOUNDARIES = st.lists(st.integers(0, 50), max_size=6).map(sorted)


def close(a):
    return pytest.approx(a, rel=1e-9, abs=1e-12)


def scan(boundaries, values, n):
    """Return the value of the first boundary that is not below `n`."""
    for b, v in zip(boundaries, values):
        if n <= b:
            return v
    return values[-1]


@given(BOUNDARIES, st.data())
def test_piecewise_constant(boundaries, data):
    values = data.draw(st.lists(RATES, min_size=len(boundaries) + 1, max_size=len(boundaries) + 1))
    lr = sc.PiecewiseConstantScheduler(boundaries, values)
    assert [lr(n) for n in range(60)] == [scan(boundaries, values, n) for n in range(60)]


@given(RATES, BOUNDARIES, st.data())
def test_piecewise_scaling_factors_are_absolute(base, boundaries, data):
    k = len(boundaries)
    scale = data.draw(st.one_of(st.floats(0, 2), st.lists(st.floats(0, 2), min_size=k, max_size=k)))
    factors = [1.0] + (scale if isinstance(scale, list) else [scale] * k)
    lr = sc.PiecewiseScalingScheduler(base, boundaries, scale)
    assert [lr(n) for n in range(60)] == [close(base * scan(boundaries, factors, n)) for n in range(60)]


@given(RATES, STEPS, st.floats(0, 1), N)
def test_cosine(base, steps, alpha, n):
    up = math.cos(math.pi / 2 * min(n / steps, 1)) ** 2  # half-angle: (1 + cos 2x) / 2
    assert sc.CosineScheduler(base, steps, alpha)(n) == close(base * alpha + base * (1 - alpha) * up)


@given(RATES, STEPS, RATES, st.floats(0.1, 4), N)
def test_polynomial(base, steps, end, power, n):
    left = 0.0 if n >= steps else math.exp(power * math.log1p(-n / steps))
    assert sc.PolynomialScheduler(base, steps, end, power)(n) == close(end + left * (base - end))


@given(RATES, STEPS, RATES, st.floats(0.1, 4), st.integers(1, 1000))
def test_polynomial_cycle(base, steps, end, power, n):
    lr = sc.PolynomialScheduler(base, steps, end, power, cycle=True)
    horizon = steps
    while horizon < n:
        horizon += steps
    left = 0.0 if n == horizon else math.exp(power * math.log((horizon - n) / horizon))
    assert lr(n) == close(end + left * (base - end))
    assert lr(0) == lr(1), "step 0 counts as 1"
    assert lr(steps * 3) == close(end)


@given(RATES, STEPS, st.floats(0, 3), st.floats(0, 1), st.floats(0, 1), N)
def test_linear_cosine(base, steps, periods, alpha, beta, n):
    part = min(n / steps, 1)
    wave = math.cos(math.pi * periods * part) ** 2
    assert sc.LinearCosineScheduler(base, steps, periods, alpha, beta)(n) == close(
        base * alpha * wave + base * (1 - part) * wave + base * beta)


@given(RATES, STEPS, st.floats(0.01, 1.5), st.booleans(), st.integers(0, 300))
def test_exponential(base, steps, rate, staircase, n):
    part = math.floor(n / steps) if staircase else n / steps
    assert sc.ExponentialScheduler(base, steps, rate,
                                   staircase)(n) == close(base * math.exp(math.log(rate) * part))


@given(RATES, STEPS, st.floats(0, 5), st.booleans(), N)
def test_inverse_time_and_natural_exp(base, steps, rate, staircase, n):
    part = math.floor(n / steps) if staircase else n / steps
    assert 1 / sc.InverseTimeScheduler(base, steps, rate,
                                       staircase)(n) == pytest.approx((1 + rate * part) / base)
    lr = sc.NaturalExpScheduler(base, steps, rate, staircase)(n)
    assert lr == pytest.approx(base / math.exp(min(rate * part, 700)), rel=1e-9, abs=1e-300)


VECTORS = [  # (schedule, steps, rates), computed by hand
    (sc.PiecewiseConstantScheduler([], [0.1]), [0, 1, 10**9], [0.1, 0.1, 0.1]),
    (sc.PiecewiseConstantScheduler([10, 20], [0.1, 0.01, 0.001]), [0, 10, 11, 20, 21],
     [0.1, 0.1, 0.01, 0.01, 0.001]),
    (sc.PiecewiseScalingScheduler(0.2, [5, 10], [0.5, 0.1]), [5, 6, 10, 11], [0.2, 0.1, 0.1, 0.02]),
    (sc.PiecewiseScalingScheduler(0.2, [5, 10], 0.1), [5, 6, 11], [0.2, 0.02, 0.02]),
    (sc.CosineScheduler(1.0, 10, 0.1), [0, 5, 10, 99], [1, 0.55, 0.1, 0.1]),
    (sc.PolynomialScheduler(1.0, 4, 0.0), [0, 1, 4, 9], [1, 0.75, 0, 0]),
    (sc.PolynomialScheduler(1.0, 4, 0.0, 2.0, cycle=True), [0, 1, 2, 4, 5, 8, 9], [
        0.5625, 0.5625, 0.25, 0, 9 / 64, 0, 1 / 16]),
    (sc.LinearCosineScheduler(1.0, 10), [0, 5, 10, 11], [1.001, 0.251, 0.001, 0.001]),
    (sc.ExponentialScheduler(1.0, 2, 0.25), [0, 1, 2, 3], [1, 0.5, 0.25, 0.125]),
    (sc.ExponentialScheduler(1.0, 2, 0.25, True), [0, 1, 2, 3, 4], [1, 1, 0.25, 0.25, 0.0625]),
    (sc.InverseTimeScheduler(1.0, 2, 1.0), [0, 1, 2, 6], [1, 2 / 3, 0.5, 0.25]),
    (sc.InverseTimeScheduler(1.0, 2, 1.0, True), [1, 3], [1, 0.5]),
    (sc.NaturalExpScheduler(1.0, 1, math.log(2)), [0, 1, 3], [1, 0.5, 0.125]),
    (sc.PiecewiseConstantScheduler([], [0.01], warmup.constant(10, 0.1)), [0, 9, 10], [0.001, 0.001, 0.01]),
    (sc.PiecewiseConstantScheduler([], [0.01], warmup.linear(10, 0.1)), [0, 5, 9, 10],
     [0.001, 0.0055, 0.0091, 0.01]),
    # base is values[0]
    (sc.PiecewiseConstantScheduler([3], [0.4, 0.2], warmup.linear(5, 0)), [4, 5], [0.32, 0.2]),
    # the step is not shifted
    (sc.CosineScheduler(1.0, 10, warmup=warmup.constant(5, 0.5)), [4, 5], [0.5, 0.5])]


@pytest.mark.parametrize("lr, steps, rates", VECTORS, ids=lambda v: repr(v) if isinstance(v, sc.LrScheduler)
                         else "")
def test_known_vectors(lr, steps, rates):
    assert [lr(n) for n in steps] == [pytest.approx(r, rel=1e-12, abs=1e-12) for r in rates]
    assert type(lr(0)) is float


ALL = [v[0] for v in VECTORS] + [sc.PiecewiseScalingScheduler(0.1, [], []),
                                 sc.PiecewiseScalingScheduler(0.1, [4], 1),
                                 sc.PiecewiseConstantScheduler([3], [0.1, 0.1], warmup.linear(0, 0.1)),
                                 sc.PolynomialSchduler(0.1, 10)]


@pytest.mark.parametrize("lr", ALL, ids=repr)
def test_is_constant_matches_the_rates(lr):
    rates = {lr(n) for n in range(40)}
    assert lr.is_constant == (len(rates) == 1)


@pytest.mark.parametrize("lr", ALL, ids=repr)
@given(warm=st.one_of(st.none(), st.builds(warmup.constant, st.integers(0, 20), st.floats(0.01, 0.99)),
                      st.builds(warmup.linear, st.integers(0, 20), st.floats(0, 0.99))))
def test_warmup_comes_before_the_schedule_and_does_not_shift_it(lr, warm):
    names = [n for n in sc.inspect.signature(type(lr)).parameters if n != "warmup"]
    arguments = {n: getattr(lr, n) for n in names}
    warmed, plain = type(lr)(**arguments, warmup=warm), type(lr)(**arguments)
    steps = warm.steps if warm else 0
    for n in range(30):
        if n >= steps:
            assert warmed(n) == plain(n)
        elif isinstance(warm, warmup.constant):
            assert warmed(n) == close(lr.base_lr * warm.multiplier)
        else:
            s = warm.start_multiplier
            assert warmed(n) == close(np.interp(n, [0, steps], [lr.base_lr * s, lr.base_lr]))


@pytest.mark.parametrize("lr", ALL, ids=repr)
def test_repr_is_the_call_that_makes_it(lr):
    again = eval(repr(lr), {**vars(sc), "warmup": warmup})
    assert type(again) is type(lr) and repr(again) == repr(lr)
    assert [again(n) for n in range(30)] == [lr(n) for n in range(30)]
    assert [pickle.loads(pickle.dumps(lr))(n) for n in range(30)] == [lr(n) for n in range(30)]


def test_the_misspelt_name_is_the_same_schedule():
    old, new = sc.PolynomialSchduler(0.1, 10, power=2), sc.PolynomialScheduler(0.1, 10, power=2)
    assert ([old(n) for n in range(20)] == [new(n) for n in range(20)]
            and isinstance(old, sc.PolynomialScheduler))


def test_numpy_scalars_are_accepted():
    lr = sc.PiecewiseConstantScheduler(np.array([10]), np.array([0.1, 0.01], np.float64))
    assert (lr(np.int64(10)), lr(11)) == (0.1, 0.01) and type(lr(0)) is float
    assert sc.CosineScheduler(np.float32(0.5), np.int32(10))(0) == 0.5


def test_a_custom_scheduler_names_a_blob():
    lr = sc.CustomScheduler("lr/out")
    assert lr.lr_lbn == "lr/out" and lr.base_lr is None and not lr.is_constant
    assert repr(lr) == "CustomScheduler(lbn='lr/out')"


def test_a_custom_schedule():
    class Halving(sc.LrScheduler):
        def decay(self, n):
            return self.base_lr / 2 ** n

    assert Halving(0.4)(2) == 0.1 and Halving(0.4, warmup=warmup.constant(5, 0.5))(2) == 0.2


@pytest.mark.parametrize("call, error, word", [
    (lambda: sc.PiecewiseConstantScheduler([1], [0.1]), AssertionError, "2 values"),
    (lambda: sc.PiecewiseConstantScheduler([], []), AssertionError, "1 values"),
    (lambda: sc.PiecewiseConstantScheduler([], 0.1), AssertionError, "values"),
    (lambda: sc.PiecewiseConstantScheduler(10, [0.1, 0.2]), ValueError, "boundaries"),
    (lambda: sc.PiecewiseConstantScheduler([20, 10], [1, 2, 3]), ValueError, "[10, 20]"),
    (lambda: sc.PiecewiseConstantScheduler([1.5], [1, 2]), ValueError, "boundaries[0]"),
    (lambda: sc.PiecewiseConstantScheduler([-1], [1, 2]), ValueError, "boundaries[0]"),
    (lambda: sc.PiecewiseConstantScheduler([], [math.nan]), ValueError, "values[0]"),
    (lambda: sc.PiecewiseConstantScheduler([], ["a"]), ValueError, "values[0]"),
    (lambda: sc.PiecewiseScalingScheduler(0.1, [1, 2], [0.1]), AssertionError, "2 scale"),
    (lambda: sc.PiecewiseScalingScheduler(0.1, [1], [math.inf]), ValueError, "scale[0]"),
    (lambda: sc.CosineScheduler(0.1, 0), ValueError, "steps"),
    (lambda: sc.CosineScheduler(0.1, 10.0), ValueError, "steps"),
    (lambda: sc.CosineScheduler(None, 10), AssertionError, "base_lr"),
    (lambda: sc.CosineScheduler("fast", 10), ValueError, "base_lr"),
    (lambda: sc.CosineScheduler(0.1, 10, warmup=0.1), ValueError, "warmup.linear"),
    (lambda: sc.CosineScheduler(0.1, 10)(-1), ValueError, "negative"),
    (lambda: sc.PolynomialScheduler(0.1, 10, power=-1), ValueError, "power"),
    (lambda: sc.LinearCosineScheduler(0.1, 10, beta=math.nan), ValueError, "beta"),
    (lambda: sc.ExponentialScheduler(0.1, 10, -0.5), ValueError, "decay_rate"),
    (lambda: sc.ExponentialScheduler(0.1, 1, 10.0)(1000), ValueError, "step 1000"),
    (lambda: sc.NaturalExpScheduler(0.1, 1, -10.0)(1000), ValueError, "step 1000"),
    (lambda: sc.InverseTimeScheduler(0.1, 10, -1), ValueError, "decay_rate"),
    (lambda: sc.CustomScheduler(0.1), ValueError, "lbn"),
    (lambda: sc.CustomScheduler("lr/out")(0), NotImplementedError, "lr/out"),
    (lambda: sc.LrScheduler(0.1)(0), NotImplementedError, "PiecewiseConstantScheduler"),
    (lambda: sc.LrScheduler(), AssertionError, "base_lr"),
    (lambda: sc.as_scheduler(0.1, "SGD"), ValueError, "PiecewiseConstantScheduler([], [0.1])"),
    (lambda: warmup.constant(10, 0), ValueError, "multiplier"),
    (lambda: warmup.constant(10, 1), ValueError, "multiplier"),
    (lambda: warmup.constant(-1, 0.5), ValueError, "steps"),
    (lambda: warmup.linear(1.5, 0.5), ValueError, "steps"),
    (lambda: warmup.linear(10, 1), ValueError, "start_multiplier"),
    (lambda: warmup.linear(10, -0.1), ValueError, "start_multiplier")])
def test_invalid_arguments_are_refused(call, error, word):
    with pytest.raises(error) as info:
        call()
    e = info.value
    assert isinstance(e, FlowError) and e.problem and e.expected and e.got and e.fix, str(e)
    assert word in str(e)


def test_as_scheduler_passes_schedules_through():
    lr = sc.CosineScheduler(0.1, 10)
    assert sc.as_scheduler(lr, "SGD") is lr


@pytest.mark.peer
def test_schedules_match_torch():
    torch = pytest.importorskip("torch")
    lr_scheduler = torch.optim.lr_scheduler

    def rates(make, n=40):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
        schedule, out = make(optimizer), []
        for _ in range(n):
            out.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        return pytest.approx(out, rel=1e-6)

    def ours(lr, n=40):
        return [lr(i) for i in range(n)]

    assert ours(sc.CosineScheduler(0.3, 39,
                                   0.1)) == rates(lambda o: lr_scheduler.CosineAnnealingLR(o, 39, 0.03))
    assert ours(sc.ExponentialScheduler(0.3, 1, 0.9)) == rates(lambda o: lr_scheduler.ExponentialLR(o, 0.9))
    assert ours(sc.ExponentialScheduler(0.3, 7, 0.5, True)) == rates(lambda o: lr_scheduler.StepLR(o, 7, 0.5))
    assert ours(sc.PolynomialScheduler(0.3, 20, 0.0,
                                       2)) == rates(lambda o: lr_scheduler.PolynomialLR(o, 20, 2))
    # torch's milestones are exclusive
    assert ours(sc.PiecewiseScalingScheduler(0.3, [4, 9], [0.5, 0.25])) == rates(
        lambda o: lr_scheduler.MultiStepLR(o, [5, 10], 0.5))
    assert ours(sc.PiecewiseConstantScheduler([], [0.3], warmup.linear(8, 0.25))) == rates(
        lambda o: lr_scheduler.LinearLR(o, 0.25, 1.0, 8))
