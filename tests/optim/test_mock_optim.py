"""torch.optim under flowedu.mock against PyTorch: signatures, and training with random settings, groups that
are added late, gradients that are None for a while, rates set by hand, and states exchanged between both.
"""
import copy
import importlib
import inspect
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import mock
from flowedu.errors import FlowError, UnsupportedError
from flowedu.mock.differs_optim import _BEHAVIOR, DIFFERS

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
with mock.enable("torch"):
    OURS = importlib.import_module("torch.optim")
    SCHEDULES = importlib.import_module("torch.optim.lr_scheduler")

NAMES = ["ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop",
         "Rprop", "SGD"]
SAME = {"ASGD", "Adamax", "NAdam", "RAdam", "Rprop"}        # not in OneFlow: flow.optim's equal PyTorch's
RATE = st.sampled_from([0.5, 0.05, 1e-3])
BETAS = st.tuples(st.sampled_from([0.0, 0.5, 0.9]), st.sampled_from([0.3, 0.99, 0.999]))
EPS, DECAY, FLAG = st.sampled_from([1e-8, 1e-3]), st.sampled_from([0, 0.1]), st.booleans()
MOMENTS = {"lr": RATE, "betas": BETAS, "eps": EPS, "weight_decay": DECAY, "maximize": FLAG}
OPTIONS = {
    "SGD": {"lr": RATE, "momentum": st.sampled_from([0, 0.9]), "dampening": st.sampled_from([0, 0.3]),
            "weight_decay": DECAY, "maximize": FLAG},
    "Adam": {**MOMENTS, "amsgrad": FLAG, "decoupled_weight_decay": FLAG},
    "AdamW": {**MOMENTS, "amsgrad": FLAG},
    "RMSprop": {"lr": RATE, "alpha": st.sampled_from([0.5, 0.99]), "eps": EPS, "weight_decay": DECAY,
                "maximize": FLAG, "momentum": st.sampled_from([0, 0.9]), "centered": FLAG},
    "Adagrad": {"lr": RATE, "lr_decay": st.sampled_from([0, 0.1]), "weight_decay": DECAY, "eps": EPS,
                "maximize": FLAG, "initial_accumulator_value": st.sampled_from([0, 0.5])},
    "Adadelta": {"lr": RATE, "rho": st.sampled_from([0.5, 0.9]), "eps": EPS, "weight_decay": DECAY,
                 "maximize": FLAG},
    "Adamax": MOMENTS,
    "NAdam": {**MOMENTS, "momentum_decay": st.sampled_from([0.004, 0.1]), "decoupled_weight_decay": FLAG},
    "RAdam": {**MOMENTS, "decoupled_weight_decay": FLAG},
    "Rprop": {"lr": RATE, "etas": st.sampled_from([(0.5, 1.2), (0.3, 2.0)]), "maximize": FLAG,
              "step_sizes": st.sampled_from([(1e-6, 50), (0.01, 0.1)])},
    "ASGD": {"lr": RATE, "lambd": st.sampled_from([1e-4, 0.1]), "alpha": st.sampled_from([0.75, 0.5]),
             "t0": st.sampled_from([1e6, 3]), "weight_decay": DECAY, "maximize": FLAG}}
SHAPES, STEPS = [(3, 2), (4,), ()], 20


# --- signatures
# ------------------------------------------------------------------------------------------------------

def signature_of(f):
    return {n: (p.kind, p.default) for n, p in inspect.signature(f).parameters.items()}


@pytest.mark.parametrize("name", NAMES)
def test_the_arguments_of_optimizers_equal_pytorchs(name):
    assert list(signature_of(getattr(OURS, name)).items()) == list(signature_of(getattr(torch.optim,
                                                                                        name)).items())


def test_every_existing_optimizer_is_tested():
    theirs = {n for n, v in vars(torch.optim).items() if isinstance(v, type)}
    assert {n for n in theirs if n in dir(OURS)} == {*NAMES, "LBFGS"}          # tested in test_lbfgs.py
    assert {*NAMES} == {*OPTIONS, "Optimizer"}
    for n in theirs - {*NAMES, "LBFGS"}:
        with pytest.raises(AttributeError, match="(?s)fix:"):
            getattr(OURS, n)


def test_the_table_has_a_row_for_each_parameter_that_differs():
    """Another default, another position, a parameter of OneFlow's only, and one of PyTorch's only."""
    def rows(name):
        return {tuple(row) for row in DIFFERS[f"optim.{name}"] if row.parameter}

    of_oneflow = {("do_bias_correction", "True, argument 7", ""), ("contiguous_params", "False, argument 8",
                                                                   ""),
                  ("master_weights", "False, by keyword", ""), ("fused", "None, argument 9",
                                                                "None, by keyword")}
    assert rows("Adam") == {*of_oneflow, ("decoupled_weight_decay", "", "False, by keyword")}
    assert rows("AdamW") == {*of_oneflow, ("weight_decay", "0, argument 5", "0.01, argument 5")}
    assert ("decay_batch", "argument 2", "") in rows("lr_scheduler.PolynomialLR")
    assert not {*DIFFERS} & {f"optim.{name}" for name in SAME}


def test_every_difference_of_behavior_is_of_a_class_in_the_table():
    assert {*_BEHAVIOR} <= {*DIFFERS} and all({*_BEHAVIOR[name]} < {*DIFFERS[name]} for name in _BEHAVIOR)


@pytest.mark.parametrize("name", NAMES)
def test_every_import_path_leads_to_the_same_class(name):
    with mock.enable("torch"):
        module = importlib.import_module(f"torch.optim.{name.lower()}")
        assert getattr(module, name) is getattr(importlib.import_module("torch.optim"), name)
        same = getattr(flow.optim, name) is getattr(module, name)
        assert same == (name in SAME), "one class where OneFlow has none of this name, else another one"


# --- training
# --------------------------------------------------------------------------------------------------------

def assert_equal_values(ours, theirs, name=""):
    """Assert equality up to a rounding of float32: PyTorch stores some coefficients, such as ASGD's eta and
    mu, in float32. An element near zero may be a difference of large ones, so the rounding is that of the
    largest element.
    """
    rounding = np.finfo(np.float32).eps * np.max(np.abs(theirs), initial=1e-2)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=rounding, err_msg=name)


class Two:
    """The same parameters and optimizers in both libraries: `one` (flowedu) and `two` (PyTorch)."""

    def __init__(self, name, options, seed, late):
        self.name, self.options, self.rng = name, options, np.random.default_rng(seed)
        start = [self.rng.standard_normal(s) for s in SHAPES]
        self.ours = [flow.tensor(a, requires_grad=True) for a in start]
        self.theirs = [torch.tensor(a, requires_grad=True) for a in start]
        self.sizes = [1, len(SHAPES) - 1 - bool(late)]
        self.make()

    def groups(self, params):
        first = self.sizes[0]
        return [{"params": params[:first]}, *({"params": params[sum(self.sizes[:i]):sum(self.sizes[:i + 1])],
                                               "lr": 0.02}
                                              for i in range(1, len(self.sizes)))]

    def make(self):
        self.one = getattr(OURS, self.name)(self.groups(self.ours), **self.options)
        self.two = getattr(torch.optim, self.name)(self.groups(self.theirs), **self.options)

    def step(self, absent):
        for i, (a, b) in enumerate(zip(self.ours, self.theirs)):
            g = self.rng.standard_normal(a.shape)
            a.grad, b.grad = (None, None) if i in absent else (flow.tensor(g), torch.tensor(g))
        self.one.step()
        self.two.step()

    def same(self):
        for a, b in zip(self.ours, self.theirs):
            assert_equal_values(a.numpy(), b.detach().numpy())
            mine, other = self.one.state.get(a, {}), self.two.state.get(b, {})
            assert {*mine} == {k for k, v in other.items() if v is not None}
            for k, v in mine.items():
                assert tuple(v.shape) == tuple(other[k].shape)
                assert_equal_values(v.numpy(), other[k].numpy(), k)

    def add(self):
        self.sizes.append(1)
        for optimizer, params in ((self.one, self.ours), (self.two, self.theirs)):
            optimizer.add_param_group({"params": params[-1:], "lr": 0.02})

    def exchange(self):
        """Let each continue from the saved state of the other."""
        saved, other = self.one.state_dict(), self.two.state_dict()
        assert {*saved} == {*other} and {*saved["state"]} == {i for i, own in other["state"].items() if any(
            v is not None for v in own.values())}
        assert [{*g} for g in saved["param_groups"]] == [{*g} for g in other["param_groups"]]
        self.make()
        self.one.load_state_dict(other)
        self.two.load_state_dict(as_torch(saved))
        self.same()
        for a, b in zip(self.one.param_groups, self.two.param_groups):
            assert {k: v for k, v in a.items() if k != "params"} == {k: v for k, v in b.items()
                                                                     if k != "params"}


def as_torch(saved):
    if isinstance(saved, dict):
        return {k: as_torch(v) for k, v in saved.items()}
    if isinstance(saved, list):
        return [as_torch(v) for v in saved]
    return torch.tensor(saved.numpy()) if isinstance(saved, flow.Tensor) else saved


@pytest.mark.parametrize("name", OPTIONS)
@given(data=st.data())
def test_training_is_equal(name, data):
    options = data.draw(st.fixed_dictionaries({}, optional=OPTIONS[name]), "options")
    if name == "SGD" and options.get("momentum") and not options.get("dampening"):
        options["nesterov"] = data.draw(FLAG, "nesterov")
    when = st.integers(0, STEPS)
    late = data.draw(when, "late") if name != "Adagrad" else 0        # PyTorch raises KeyError there
    absent = data.draw(st.dictionaries(st.integers(0, STEPS), st.sets(st.integers(0, 2)), max_size=12),
                       "without gradient")
    by_hand = data.draw(st.dictionaries(when, RATE, max_size=2), "by hand")
    exchanged = data.draw(st.sets(when, max_size=3), "exchanged")
    two = Two(name, options, data.draw(st.integers(0, 9), "seed"), late)
    for step in range(STEPS):
        if late and late == step:
            two.add()
        if step in by_hand:
            for optimizer in (two.one, two.two):
                optimizer.param_groups[0]["lr"] = by_hand[step]
        if step in exchanged:
            two.exchange()
        two.step(absent.get(step, ()))
    two.same()


@pytest.mark.parametrize(("name", "options"), [
    ("SGD", {"momentum": 0.9, "dampening": 0.3}), ("RMSprop", {"momentum": 0.9, "centered": True,
                                                               "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("ASGD", {"t0": 3, "lambd": 0.1}),
    ("NAdam", {"momentum_decay": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.1})])
def test_training_is_equal_in_rare_cases(name, options):
    """Combinations of settings; a parameter that starts in step 3, and a group that is added in step 5."""
    two = Two(name, options, 1, late=True)
    for step in range(10):
        if step == 5:
            two.add()
        two.step({1} if step < 3 else {2} if step == 7 else ())
        two.same()


def take_steps(optimizer, p, steps=3):
    for i in range(steps):
        p.grad = flow.full((2,), 1.0 + i)
        optimizer.step()
    return p.numpy()


def one(seed=0):
    return flow.tensor(np.random.default_rng(seed).standard_normal(2), dtype=flow.float32, requires_grad=True)


def test_a_first_gradient_in_step_4_counts_as_step_1():
    """PyTorch's recipe for unfreezing a layer: its bias correction is that of step 1, 2, ..."""
    w, late = one(), flow.ones(1, requires_grad=True)
    optimizer = OURS.Adam([w, late], lr=0.1)
    take_steps(optimizer, w)
    for _ in range(2):
        late.grad = flow.ones(1)
        take_steps(optimizer, w, 1)
    np.testing.assert_allclose(late.numpy(), [0.8], atol=1e-6)
    assert [float(optimizer.state[p]["step"]) for p in (w, late)] == [5, 2]


@pytest.mark.parametrize("name", OPTIONS)
def test_copied_and_pickled_optimizers_continue_equally(name):
    p = one()
    optimizer = getattr(OURS, name)([p])
    take_steps(optimizer, p)
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        q, = other.param_groups[0]["params"]
        r = one()
        fresh = getattr(OURS, name)([r])
        take_steps(fresh, r)
        np.testing.assert_array_equal(take_steps(other, q), take_steps(fresh, r))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "Adadelta"])
def test_a_state_saved_by_flow_optim_continues(name):
    options = {"momentum": 0.9} if name == "SGD" else {}
    p, q = one(), one()
    before = getattr(flow.optim, name)([p], **options)
    take_steps(before, p)
    after = getattr(OURS, name)([q], **options)
    q.data.copy_(p.data)
    after.load_state_dict(before.state_dict())
    np.testing.assert_allclose(take_steps(after, q), take_steps(before, p), rtol=1e-6)


def test_a_custom_optimizer():
    """As in PyTorch: state[p] is empty at first, and defaults need no lr."""
    class Own(OURS.Optimizer):
        def __init__(self, params, rate):
            super().__init__(params, {"rate": rate})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    if not state:
                        state["step"] = 0
                    state["step"] += 1
                    p.data.add_(p.grad, alpha=-group["rate"] / state["step"])

    p = one()
    optimizer = Own([("w", p)], 0.5)
    start = p.numpy().copy()
    np.testing.assert_allclose(take_steps(optimizer, p), start - 0.5 * (1 + 2 / 2 + 3 / 3), rtol=1e-6)
    saved = optimizer.state_dict()
    assert saved == {"state": {0: {"step": 3}}, "param_groups": [{"rate": 0.5, "params": [0],
                                                                  "param_names": ["w"]}]}
    other = Own([p], 0.1)
    other.load_state_dict(saved)
    assert other.state[p] == {"step": 3} and other.param_groups[0]["rate"] == 0.5
    assert isinstance(optimizer, flow.optim.Optimizer) and not isinstance(OURS.SGD([one()]), Own)
    assert isinstance(flow.optim.SGD([one()]), OURS.Optimizer) and not isinstance(3, OURS.Optimizer)


def train_layer_in_graph(make, steps=3):
    layer = flow.nn.Linear(2, 1, bias=False)
    layer.weight.data.fill_(0.5)
    optimizer, x = make(layer.parameters()), flow.tensor([[1.0, 2.0]])

    class Train(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.layer = layer
            self.add_optimizer(*optimizer[:1], **({"lr_sch": optimizer[1]} if optimizer[1:] else {}))

        def build(self, x):
            loss = self.layer(x).square().sum()
            loss.backward()
            return loss

    graph = Train()
    for _ in range(steps):
        graph(x)
    return layer.weight.numpy().copy()


def by_hand(make, steps=3):
    layer = flow.nn.Linear(2, 1, bias=False)
    layer.weight.data.fill_(0.5)
    optimizer, x = make(layer.parameters()), flow.tensor([[1.0, 2.0]])
    for _ in range(steps):
        optimizer[0].zero_grad()
        layer(x).square().sum().backward()
        for o in optimizer:
            o.step()
    return layer.weight.numpy().copy()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "Adadelta"])
def test_a_graph_trains_equally(name):
    def make(params):
        optimizer = getattr(OURS, name)(params, lr=0.01)
        return optimizer, SCHEDULES.StepLR(optimizer, 2)

    np.testing.assert_allclose(train_layer_in_graph(make), by_hand(make), rtol=1e-6)


@pytest.mark.parametrize(("name", "options"), [("RMSprop", {}), ("Adamax", {}), ("NAdam", {}), ("RAdam", {}),
                                               ("Rprop", {}),
                                               ("ASGD", {}), ("SGD", {"momentum": 0.9, "dampening": 0.1})])
def test_a_graph_refuses_optimizers_without_a_rule(name, options):
    with pytest.raises(UnsupportedError, match=f"(?s)optim.{name}.*not in an nn.Graph.*fix:"):
        train_layer_in_graph(lambda params: (getattr(OURS, name)(params, lr=0.01, **options),))


def test_an_incompatible_state_changes_nothing():
    p = one()
    optimizer = OURS.Adam([p])
    take_steps(optimizer, p)
    for wrong in ({}, {"state": {}, "param_groups": []}, {"state": {}, "param_groups": [{"params": [0, 1]}]},
                  {"state": {0: {"sum": flow.ones(2)}}, "param_groups": [{"params": [0], "lr": 3.0}]},
                  {"state": {}, "param_groups": [{"params": [0], "lr": -1.0}]}):
        with pytest.raises(FlowError, match="fix:"):
            optimizer.load_state_dict(wrong)
        assert optimizer.param_groups[0]["lr"] == 0.001 and float(optimizer.state[p]["step"]) == 3
