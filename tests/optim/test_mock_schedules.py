"""torch.optim.lr_scheduler under flowedu.mock against PyTorch: signatures, and rates with random settings,
rates set by hand, groups that are added late, step(epoch), and states exchanged between both.
"""
import copy
import importlib
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_mock_optim import OURS as OPTIM
from test_mock_optim import signature_of

import flowedu as flow
from flowedu import mock
from flowedu.errors import ArgumentError, FlowError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
with mock.enable("torch"):
    OURS = importlib.import_module("torch.optim.lr_scheduler")
THEIRS = torch.optim.lr_scheduler

NAMES = [*THEIRS.__all__]
FACTOR, STEPS_, LOW = st.sampled_from([1.0, 0.5, 0.1]), st.integers(1, 9), st.sampled_from([0.0, 0.01])
FUNCTION = st.sampled_from([lambda n: 0.9, lambda n: 1 / (1 + n)])
MOMENTA = {"base_momentum": st.sampled_from([0.5, 0.85]), "max_momentum": st.sampled_from([0.9, 0.95])}
PARTS = {
    "LambdaLR": {"lr_lambda": FUNCTION},
    "MultiplicativeLR": {"lr_lambda": FUNCTION},
    "StepLR": {"step_size": STEPS_, "gamma": FACTOR},
    "MultiStepLR": {"milestones": st.lists(st.integers(0, 20), max_size=4), "gamma": FACTOR},
    "ConstantLR": {"factor": FACTOR, "total_iters": STEPS_},
    "LinearLR": {"start_factor": FACTOR, "end_factor": FACTOR, "total_iters": STEPS_},
    "ExponentialLR": {"gamma": FACTOR},
    "PolynomialLR": {"total_iters": STEPS_, "power": st.sampled_from([1.0, 2.0])},
    "CosineAnnealingLR": {"T_max": STEPS_, "eta_min": LOW},
    "CosineAnnealingWarmRestarts": {"T_0": STEPS_, "T_mult": st.integers(1, 2), "eta_min": LOW}}
CYCLES = {
    "OneCycleLR": {"max_lr": FACTOR, "total_steps": st.integers(30, 40),
                   "pct_start": st.sampled_from([0.1, 0.3]),
                   "cycle_momentum": st.booleans(), "anneal_strategy": st.sampled_from(["cos", "linear"]),
                   "three_phase": st.booleans(), **MOMENTA},
    "CyclicLR": {"base_lr": LOW, "max_lr": FACTOR, "step_size_up": STEPS_, "step_size_down": STEPS_,
                 "gamma": FACTOR,
                 "mode": st.sampled_from(["triangular", "triangular2", "exp_range"]),
                 "cycle_momentum": st.booleans(), **MOMENTA}}
MADE = ["SequentialLR", "ChainedScheduler"]
# options have one entry for each initial group
FIT = {"LambdaLR", *CYCLES, "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "MultiplicativeLR"}


@pytest.mark.parametrize("name", NAMES)
def test_the_arguments_of_schedules_equal_pytorchs(name):
    """The last argument is that of PyTorch up to 2.6, verbose."""
    ours = [(n, p) for n, p in signature_of(getattr(OURS, name)).items() if n != "verbose"]
    assert ours == list(signature_of(getattr(THEIRS, name)).items())
    assert [*signature_of(getattr(OURS, name))][-1] == ("optimizer" if name == "ChainedScheduler"
                                                        else "verbose")


class Both:
    """Optimizer and scheduler of both libraries: [flowedu's, PyTorch's]."""

    def __init__(self, name, options, rate=0.5):
        self.optimizers = [OPTIM.SGD([flow.zeros(1, requires_grad=True)], lr=rate, momentum=0.5),
                           torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=rate, momentum=0.5)]
        self.name, self.options = name, options
        self.make()

    def make(self):
        self.schedules = [self.made(module, o) for module, o in zip((OURS, THEIRS), self.optimizers)]

    def made(self, module, optimizer):
        parts = [getattr(module, n)(optimizer, **options) for n, options in self.options.get("parts", ())]
        more = {k: v for k, v in self.options.items() if k != "parts"}
        first = {"SequentialLR": (optimizer, parts), "ChainedScheduler": (parts,
                                                                          )}.get(self.name, (optimizer,))
        return getattr(module, self.name)(*first, **more)

    def each(self, f):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for s, o in zip(self.schedules, self.optimizers):
                f(s, o)

    def same(self):
        one, two = self.optimizers
        for a, b in zip(one.param_groups, two.param_groups):
            for key in ("lr", "momentum", "initial_lr"):
                np.testing.assert_allclose(a[key], b[key], rtol=1e-9, atol=1e-12, err_msg=key)
        one, two = self.schedules
        np.testing.assert_allclose(one.get_last_lr(), two.get_last_lr(), rtol=1e-9, atol=1e-12)
        if self.name != "ChainedScheduler":
            assert one.last_epoch == two.last_epoch

    def exchange(self):
        """Let each continue in a new optimizer from the saved state of the other."""
        saved = [(copy.deepcopy(s.state_dict()), copy.deepcopy(o.state_dict()))
                 for s, o in zip(self.schedules, self.optimizers)]
        assert self.name in CYCLES or {*saved[1][0]} <= {*saved[0][0]}
        self.__init__(self.name, self.options)
        for schedule, optimizer, (state, rates) in zip(self.schedules, self.optimizers, reversed(saved)):
            schedule.load_state_dict(state)
            optimizer.load_state_dict(rates)


def part(data, names, label):
    name = data.draw(st.sampled_from(names), label)
    return name, data.draw(st.fixed_dictionaries(PARTS[name]), label)


@pytest.mark.parametrize("name", [*PARTS, *CYCLES, *MADE])
@given(data=st.data())
def test_rates_are_equal(name, data):
    if name in MADE:
        options = {"parts": [part(data, [*PARTS], f"part {i}") for i in range(data.draw(st.integers(1, 3)))]}
        if name == "SequentialLR":
            options["milestones"] = sorted(data.draw(st.sets(st.integers(1, 15),
                                                             min_size=len(options["parts"]) - 1,
                                                             max_size=len(options["parts"]) - 1),
                                                     "milestones"))
    else:
        options = data.draw(st.fixed_dictionaries({**PARTS, **CYCLES}[name]), "options")
    both = Both(name, options)
    when = st.integers(0, 25)
    by_hand = data.draw(st.dictionaries(when, FACTOR, max_size=2), "by hand")
    exchanged = data.draw(st.sets(when, max_size=2), "exchanged")
    jumps = (data.draw(st.dictionaries(when, st.integers(0, 12), max_size=2), "step(epoch)")
             if name not in MADE else {})
    late = data.draw(when, "late") if name not in FIT and name not in MADE and not exchanged else None
    both.same()
    for step in range(25):
        if step in exchanged:
            both.exchange()
        if step in by_hand:
            both.each(lambda s, o, lr=by_hand[step]: o.param_groups[0].update(lr=lr))
        if step == late:
            for o, lib in zip(both.optimizers, (flow, torch)):
                o.add_param_group({"params": [lib.ones(1, requires_grad=True)], "lr": 0.3, "initial_lr": 0.3})
            jumps = {}
        to = (jumps[step],) if step in jumps else ()
        if not to and both.schedules[0].last_epoch == options.get("total_steps"):
            break  # a jump ahead: PyTorch has no further step either
        both.each(lambda s, o, to=to: s.step(*to))
        both.same()


@pytest.mark.parametrize("name", [*PARTS, *CYCLES])
@given(data=st.data())
def test_last_epoch_continues_a_stopped_program(name, data):
    """A scheduler created over an optimizer that was trained so far, at any rate."""
    both = Both(name, data.draw(st.fixed_dictionaries({**PARTS, **CYCLES}[name]), "options"))
    steps, last = data.draw(st.integers(0, 12), "steps"), data.draw(st.integers(0, 12), "last_epoch")
    for _ in range(steps):
        both.each(lambda s, o: s.step())
    both.options = {**both.options, "last_epoch": last}
    both.make()
    for _ in range(10):
        both.same()
        both.each(lambda s, o: s.step())


@given(data=st.data())
def test_rates_by_a_metric_are_equal(data):
    options = data.draw(st.fixed_dictionaries({
        "mode": st.sampled_from(["min", "max"]), "factor": st.sampled_from([0.5, 0.1]),
        "patience": st.integers(0, 2),
        "threshold": st.sampled_from([1e-4, 0.3]), "threshold_mode": st.sampled_from(["rel", "abs"]),
        "cooldown": st.integers(0, 2), "min_lr": LOW}), "options")
    metrics = data.draw(st.lists(st.sampled_from([-1.0, 0.5, 0.9, 1.0, 2.0]), min_size=10, max_size=20),
                        "metrics")
    exchanged, late = data.draw(st.integers(0, 20), "exchanged"), data.draw(st.integers(0, 20), "late")
    both = Both("ReduceLROnPlateau", options)
    for step, metric in enumerate(metrics):
        if step == exchanged and late > step:
            both.each(lambda s, o: o.param_groups[0].setdefault("initial_lr", 0.5))
            both.exchange()
        if step == late:
            for o, lib in zip(both.optimizers, (flow, torch)):
                o.add_param_group({"params": [lib.ones(1, requires_grad=True)], "lr": 0.3})
        both.each(lambda s, o, m=metric: s.step(m))
        both.each(lambda s, o: [g.setdefault("initial_lr", 0.5) for g in o.param_groups])
        both.same()
        assert both.schedules[0].num_bad_epochs == both.schedules[1].num_bad_epochs
    assert isinstance(both.schedules[0], OURS.LRScheduler) and not hasattr(both.schedules[0], "lr_at")


@pytest.mark.parametrize("name", sorted(FIT))
def test_a_late_group_without_a_rate_is_refused(name):
    """PyTorch raises ValueError for these as well; the group is not ignored silently."""
    options = {"LambdaLR": {"lr_lambda": lambda n: 0.9}, "MultiplicativeLR": {"lr_lambda": lambda n: 0.9},
               "OneCycleLR": {"max_lr": 0.1, "total_steps": 9}, "CyclicLR": {"base_lr": 0.1, "max_lr": 0.2},
               "CosineAnnealingLR": {"T_max": 1}, "CosineAnnealingWarmRestarts": {"T_0": 3}}[name]
    both = Both(name, options)
    for optimizer, lib, schedule in zip(both.optimizers, (flow, torch), both.schedules):
        optimizer.step()
        optimizer.add_param_group({"params": [lib.ones(1, requires_grad=True)], "lr": 0.3})
        with pytest.raises((FlowError, ValueError, KeyError)):
            for _ in range(3):
                schedule.step()


def test_a_tensor_rate_remains_a_tensor():
    for optim, schedules, lib in ((OPTIM, OURS, flow), (torch.optim, THEIRS, torch)):
        rate = lib.tensor(0.5)
        optimizer = optim.Adam([lib.zeros(1, requires_grad=True)], lr=rate, foreach=False)
        schedule = schedules.ExponentialLR(optimizer, 0.5)
        optimizer.step()
        schedule.step()
        assert optimizer.param_groups[0]["lr"] is rate and float(rate) == 0.25


def test_a_sequence_accepts_only_mock_schedules():
    optimizer = OPTIM.SGD([flow.zeros(1, requires_grad=True)])
    with pytest.raises(ArgumentError, match="(?s)OneFlow's.*fix:"):
        OURS.ChainedScheduler([flow.optim.lr_scheduler.StepLR(optimizer, 3)])
