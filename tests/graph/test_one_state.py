"""Law: k steps in one mode, saved in any format, and n - k steps in another mode equal n eager steps.

Modes of stepping: eager or graph. Ways to continue: the same objects; state dicts of model, optimizer, and
schedule in new objects; the same through a file; the graph's own state in a new graph.
"""
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn, optim
from flowedu.optim import lr_scheduler as L

from .making import make_graph

N, ROWS = 6, 8
RNG = np.random.default_rng(0)
X, Y = (RNG.standard_normal((N, ROWS, w)).astype(np.float32) for w in (4, 2))
OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.05, weight_decay=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9),
    "nesterov": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, dampening=0.0),
    "adam": lambda p: optim.Adam(p, lr=0.05), "amsgrad": lambda p: optim.Adam(p, lr=0.05, amsgrad=True),
    "plain": lambda p: optim.Adam(p, lr=0.05, do_bias_correction=False),
    "adamw": lambda p: optim.AdamW(p, lr=0.05, weight_decay=0.1), "lamb": lambda p: optim.LAMB(p, lr=0.05),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.02),
    "centered": lambda p: optim.RMSprop(p, lr=0.02, centered=True),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.3),
    "adadelta": lambda p: optim.Adadelta(p, lr=1.0)}
SCHEDULES = {
    "none": lambda o: None, "step": lambda o: L.StepLR(o, 2, 0.3),
    "multistep": lambda o: L.MultiStepLR(o, [2, 4], 0.3),
    "exponential": lambda o: L.ExponentialLR(o, 0.8), "cosine": lambda o: L.CosineAnnealingLR(o, 4),
    "decay": lambda o: L.CosineDecayLR(o, 5, 0.1), "restarts": lambda o: L.CosineAnnealingWarmRestarts(o, 2),
    "constant": lambda o: L.ConstantLR(o, 0.3, 3), "linear": lambda o: L.LinearLR(o, 0.2, 1.0, 4),
    "polynomial": lambda o: L.PolynomialLR(o, 5, 0.001),
    "lambda": lambda o: L.LambdaLR(o, lambda n: 1 / (n + 1)),
    "products": lambda o: L.MultiplicativeLR(o, lambda n: 0.9 - 0.05 * n),
    "warmup": lambda o: L.WarmUpLR(L.StepLR(o, 2, 0.5), 0.1, 3), "once": lambda o: L.OneCycleLR(
        o, 0.1, total_steps=N + 1, cycle_momentum=False),
    "cyclic": lambda o: L.CyclicLR(o, 0.01, 0.1, 2, cycle_momentum=False),
    "sequence": lambda o: L.SequentialLR(o, [L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.7)], [3], True),
    "chain": lambda o: L.ChainedScheduler([L.ConstantLR(o, 0.5, 2), L.StepLR(o, 2)])}


class Run:
    """Model, optimizer, and schedule with their step function. options: clip, micro-batches, loss scale."""

    def __init__(self, optimizer, schedule, clip=False, micro=1, scale=1.0):
        self.made = optimizer, schedule, clip, micro, scale
        flow.manual_seed(1)
        self.model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
        first, last = self.model[0], self.model[2]
        more = {"clip_grad_max_norm": 0.05, "clip_grad_norm_type": 2.0} if clip else {}
        self.optimizer = OPTIMIZERS[optimizer]([{"params": [*first.parameters()], **more},
                                                {"params": [*last.parameters()], "lr": 0.03, **more}])
        self.schedule = SCHEDULES[schedule](self.optimizer)
        self.micro = micro
        self.scale = scale
        self.clip = clip
        self.at = 0
        self.g = None

    def eager(self, k):
        for x, y in zip(X[self.at:self.at + k], Y[self.at:self.at + k]):
            for xi, yi in zip(flow.tensor(x).chunk(self.micro), flow.tensor(y).chunk(self.micro)):
                (self.loss(xi, yi) / self.micro).backward()
            if self.clip:
                self.optimizer.clip_grad()
            self.optimizer.step()
            self.optimizer.zero_grad()
            if self.schedule:
                self.schedule.step()
        self.at += k

    def loss(self, x, y):
        return ((self.model(x) - y) ** 2).mean() * self.scale

    def graph(self, k):
        for x, y in zip(X[self.at:self.at + k], Y[self.at:self.at + k]):
            self.compiled()(flow.tensor(x), flow.tensor(y))
        self.at += k

    def compiled(self):
        def build(_, x, y):
            loss = self.loss(x, y)
            loss.backward()
            return loss

        if self.g is None:
            self.g = make_graph(build, (self.optimizer, self.schedule), model=self.model,
                                config={"set_gradient_accumulation_steps": self.micro})
        return self.g

    # ---- ways to continue: each returns the run that continues
    def objects(self, path):
        return self

    def dicts(self, path, file=False):
        parts = [self.model, self.optimizer, *([self.schedule] if self.schedule else [])]
        states = [part.state_dict() for part in parts]
        if file:
            flow.save(states[0], str(path / "model"))
            flow.save(dict(enumerate(states[1:])), str(path / "rest"))
            states = [flow.load(str(path / "model")), *flow.load(str(path / "rest")).values()]
        new = self.again()
        for part, state in zip([new.model, new.optimizer, new.schedule], states):
            part.load_state_dict(state)
        return new

    def files(self, path):
        return self.dicts(path, file=True)

    def own(self, path):
        new = self.again()
        new.compiled().load_state_dict(self.compiled().state_dict())
        return new

    def again(self):
        new = Run(*self.made)
        new.at = self.at
        return new


WAYS = ("objects", "dicts", "files", "own")


def read_state(run):
    """Return every value that a program can read."""
    state = run.optimizer.state_dict()
    found = {"lr": [g["lr"] for g in run.optimizer.param_groups], "steps": state["state"]["step"]}
    found.update({k: p.numpy() for k, p in run.model.state_dict().items()})
    found.update({(i, k): t.numpy() for i, own in state["state"].items() if i != "step"
                  for k, t in own.items()})
    if run.schedule:
        found.update(last=run.schedule.last_step, rates=run.schedule.get_last_lr())
    return found


def assert_close_states(got, want):
    got, want = read_state(got), read_state(want)
    assert got.keys() == want.keys()
    for k in want:
        np.testing.assert_allclose(got[k], want[k], rtol=2e-4, atol=1e-6, err_msg=str(k))


def law(how, first, then, way, k, path):
    one, want = Run(*how), Run(*how)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(one, first)(k)
        want.eager(k)
        assert_close_states(one, want)
        one = getattr(one, way)(path)
        assert_close_states(one, want)
        getattr(one, then)(N - k)
        want.eager(N - k)
        assert_close_states(one, want)
        getattr(one, first)(0)


MODES = [(a, b) for a in ("eager", "graph") for b in ("eager", "graph")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first, then", MODES)
@pytest.mark.parametrize("how", [("momentum", "step"), ("adam", "warmup", True, 2, 8.0)], ids=["sgd", "adam"])
def test_continuing_in_another_mode(how, first, then, way, tmp_path):
    law(how, first, then, way, 3, tmp_path)


HOW = st.tuples(st.sampled_from(sorted(OPTIMIZERS)), st.sampled_from(sorted(SCHEDULES)), st.booleans(),
                st.sampled_from([1, 2, 4]), st.sampled_from([1.0, 8.0]))


@given(HOW, st.sampled_from(MODES), st.sampled_from(WAYS), st.integers(1, N - 1))
def test_continuing_in_random_modes(tmp_path_factory, how, modes, way, k):
    law(how, *modes, way, k, tmp_path_factory.mktemp("state"))


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("optimizer, schedule", [*((o, "step") for o in OPTIMIZERS),
                                                 *(("momentum", s) for s in SCHEDULES)])
def test_every_optimizer_and_schedule(optimizer, schedule, way, tmp_path):
    for first, then in MODES:
        law((optimizer, schedule), first, then, way, 3, tmp_path)


def test_two_graphs_and_eager_steps_alternate():
    """For example graphs of two batch sizes with one optimizer."""
    one, other, want = (Run("adam", "exponential") for _ in range(3))
    other.model, other.optimizer, other.schedule = one.model, one.optimizer, one.schedule
    for i in range(N):
        run = (one, other, one)[i % 3]
        run.at = i
        (run.graph if i % 3 < 2 else run.eager)(1)
        want.eager(1)
        assert_close_states(one, want)


def test_a_loaded_state_is_used_by_a_compiled_graph():
    one, best = Run("adam", "step"), Run("adam", "step")
    best.eager(2)
    one.graph(4)
    for part, state in ((one.model, best.model), (one.optimizer, best.optimizer),
                        (one.schedule, best.schedule)):
        part.load_state_dict(state.state_dict())
    one.at = 2
    one.graph(3), best.eager(3)
    assert_close_states(one, best)
    fresh, want = Run("adam", "step"), Run("adam", "step")           # an empty state is a valid state
    for part, state in ((one.model, fresh.model), (one.optimizer, fresh.optimizer),
                        (one.schedule, fresh.schedule)):
        part.load_state_dict(state.state_dict())
    one.at = 0
    one.graph(3), want.eager(3)
    assert_close_states(one, want)


def test_a_failed_step_does_not_count():
    model = nn.Linear(4, 3)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = L.StepLR(optimizer, 1, 0.5)

    def build(self, x, y):
        loss = self.loss(self.model(x), y)
        loss.backward()
        return loss

    g = make_graph(build, (optimizer, schedule), model=model, loss=nn.CrossEntropyLoss())
    x = flow.tensor(X[0])
    g(x, flow.zeros(ROWS, dtype=flow.int64))
    for _ in range(2):
        with pytest.raises(Exception, match="label"):
            g(x, flow.full((ROWS,), 7, dtype=flow.int64))
        assert (schedule.last_step == 1 == optimizer.state_dict()["state"]["step"]
                and schedule.get_last_lr() == [0.05])
    g(x, flow.zeros(ROWS, dtype=flow.int64))
    assert schedule.last_step == 2 == optimizer.state_dict()["state"]["step"]


def test_a_manual_schedule_step_after_a_graph_step():
    """OneFlow's graphs ignore it; programs often contain it from eager mode."""
    from flowedu.errors import once
    once.told.discard("StepLR.step()")
    one, want = Run("adam", "step"), Run("adam", "step")
    with pytest.warns(once.OptionWarning, match=r"StepLR.step\(\) does nothing here"):
        for _ in range(3):
            one.graph(1)
            one.schedule.step()
    want.eager(3)
    assert_close_states(one, want)
    one.eager(2), want.eager(2)
    assert_close_states(one, want)


def test_a_rate_set_by_hand_holds_until_the_next_schedule_step():
    one, want = Run("sgd", "exponential"), Run("sgd", "exponential")
    for run, step in ((one, one.graph), (want, want.eager)):
        step(2)
        run.optimizer.param_groups[1]["lr"] = 0.2
        step(2)
    assert_close_states(one, want)


@pytest.mark.parametrize("way", ["objects", "own"])
def test_optimizers_of_one_graph_count_separately(way):
    def made():
        flow.manual_seed(1)
        model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
        optimizers = [optim.Adam(model[i].parameters(), lr=0.05) for i in (0, 2)]
        return model, optimizers, [L.ExponentialLR(optimizers[0], 0.5), L.StepLR(optimizers[1], 2)]

    def loss(model):
        return ((model(flow.tensor(X[0])) - flow.tensor(Y[0])) ** 2).mean()

    def eagerly(model, optimizers, schedules, which):
        loss(model).backward()
        for i in which:
            optimizers[i].step(), schedules[i].step()
        for o in optimizers:
            o.zero_grad()

    def train(made):
        def build(self, x, y):
            loss = ((self.model(x) - y) ** 2).mean()
            loss.backward()
        return make_graph(build, *zip(*made[1:]), model=made[0])

    one, want = made(), made()
    for which in ((1,), (1,), (0, 1)):
        eagerly(*want, which), eagerly(*one, which)
    g = train(one)
    if way == "own":
        state, one = g.state_dict(), made()
        g = train(one)
        g.load_state_dict(state)
    for _ in range(2):
        g(flow.tensor(X[0]), flow.tensor(Y[0]))
        eagerly(*want, (0, 1))
    eagerly(*want, (0,)), eagerly(*one, (0,))
    for a, b in zip(one[0].parameters(), want[0].parameters()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
    assert [s.last_step for s in one[2]] == [4, 5] == [o.state_dict()["state"]["step"] for o in one[1]]
    assert [s.get_last_lr() for s in one[2]] == [s.get_last_lr() for s in want[2]]


@pytest.mark.parametrize("schedule", sorted({*SCHEDULES} - {"none"}))
@pytest.mark.parametrize("k", [1, 3])
def test_a_state_loaded_after_graph_steps_continues_by_hand(schedule, k):
    """A step of the graph cancels the next `step()` of its schedule. A loaded state has no graph step, so its
    next `step()` counts.
    """
    run, want = Run("sgd", schedule), Run("sgd", schedule)
    for _ in range(k):
        want.schedule.step()
    state = want.schedule.state_dict()
    run.graph(3)
    run.schedule.load_state_dict(state)
    for _ in range(2):
        run.schedule.step()
        want.schedule.step()
        assert run.schedule.last_step == want.schedule.last_step
        assert run.schedule.get_last_lr() == want.schedule.get_last_lr()
        assert [g["lr"] for g in run.optimizer.param_groups] == want.schedule.get_last_lr()


@pytest.mark.parametrize("schedule", sorted({*SCHEDULES} - {"none"}))
def test_a_state_saved_after_graph_steps_continues_by_hand(schedule):
    """The state is loaded into new objects and into the objects that saved it."""
    run, new, want = Run("sgd", schedule), Run("sgd", schedule), Run("sgd", schedule)
    run.graph(3)
    for _ in range(4):
        want.schedule.step()
    rates, steps = run.schedule.state_dict(), run.optimizer.state_dict()
    for other in (new, run):
        other.optimizer.load_state_dict(steps)
        other.schedule.load_state_dict(rates)
        other.schedule.step()
        assert other.schedule.last_step == 4 and other.schedule.get_last_lr() == want.schedule.get_last_lr()
