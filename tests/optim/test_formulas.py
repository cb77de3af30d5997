"""Law: with any options, an optimizer of flow.optim takes the steps of its formula, for any number of
groups.
"""
import inspect

import numpy as np
import pytest
from formulas import FORMULAS, cases

import flowedu as flow
from flowedu import optim

# as in PyTorch: a "step" for every parameter
OWN_CLOCK = {"ASGD", "Adamax", "Ftrl", "NAdam", "RAdam", "Rprop"}
SINGLE = {"ASGD", "NAdam"}        # keep per-parameter scalars in float32, as PyTorch does
SHAPES = [(3, 4), (5,), (), (2, 1, 3), (40, 130)]


def named(case):
    return "-".join([case[0], *(f"{k}={v}" for k, v in case[1].items())])


class Peer:
    """Reference optimizer over a list of groups: dicts of options with "params", a list of arrays."""

    def __init__(self, name, groups):
        self.formula, defaults, _ = FORMULAS[name]
        self.groups = [{**defaults, **g} for g in groups]
        self.states, self.t = {}, 0

    def step(self, gradients):
        """Take a step. gradients: a list for every group, with None for a parameter without one."""
        self.t += 1
        for i, (group, given) in enumerate(zip(self.groups, gradients)):
            for j, g in enumerate(given):
                if g is not None:
                    state = self.states.setdefault((i, j), {})
                    group["params"][j] = self.formula(group["params"][j], g, state, self.t, group)


def decay(name, value):
    """Return a weight decay option, if the optimizer has one."""
    return {"weight_decay": value} if "weight_decay" in FORMULAS[name][1] else {}


def pair(name, shapes, options, dtype=np.float64, groups=({},)):
    """Return (optimizer, reference) with the same values; every group has parameters of these shapes."""
    rng = np.random.default_rng(4)
    start = [[rng.standard_normal(s).astype(dtype) for s in shapes] for _ in groups]
    params = [[flow.tensor(a, requires_grad=True) for a in row] for row in start]
    one = getattr(optim, name)([{"params": p, **g} for p, g in zip(params, groups)], **options)
    two = Peer(name, [{**options, **g, "params": [a.astype(float) for a in row]}
                      for row, g in zip(start, groups)])
    return one, two


def both_step(one, two, rng, skip=()):
    given = [[rng.standard_normal(np.shape(a)) for a in g["params"]] for g in two.groups]
    for i, (group, row) in enumerate(zip(one.param_groups, given)):
        for j, (p, g) in enumerate(zip(group["params"], row)):
            p.grad = None if (i, j) in skip else flow.tensor(g).to(p.dtype)
    two.step([[None if (i, j) in skip else p.grad.numpy().astype(float) for j, p in enumerate(g["params"])]
              for i, g in enumerate(one.param_groups)])
    one.step()


def assert_same_parameters(one, two, rtol=1e-10):
    rtol = max(rtol, 1e-6) if type(one).__name__ in SINGLE else rtol
    for i, (mine, theirs) in enumerate(zip(one.param_groups, two.groups)):
        for j, (p, a) in enumerate(zip(mine["params"], theirs["params"])):
            np.testing.assert_allclose(p.numpy(), a, rtol=rtol, atol=rtol)
            want = two.states.get((i, j), {})
            assert set(one.state.get(p, {})) == set(want)
            for key, value in want.items():
                np.testing.assert_allclose(one.state[p][key].numpy(), value, rtol=rtol, atol=rtol,
                                           err_msg=key)


@pytest.mark.parametrize("case", cases(), ids=named)
def test_six_steps_equal_the_formula(case):
    name, options = case
    one, two = pair(name, SHAPES, options)
    rng = np.random.default_rng(1)
    for _ in range(6):
        both_step(one, two, rng)
    assert_same_parameters(one, two)


@pytest.mark.parametrize("name", FORMULAS)
def test_six_float32_steps_are_near_the_formula(name):
    one, two = pair(name, SHAPES, FORMULAS[name][2] | {"lr": 0.05} | decay(name, 0.1), np.float32)
    rng = np.random.default_rng(2)
    for _ in range(4):
        both_step(one, two, rng)
    assert_same_parameters(one, two, 2e-5)


@pytest.mark.parametrize("name", FORMULAS)
def test_groups_changed_options_and_missing_gradients(name):
    """Group options override the optimizer's; a changed option holds from the next step; t counts every step
    or, with per-parameter counts, the parameter's.
    """
    groups = [{}, {"lr": 0.3}, {**decay(name, 0.2), "maximize": True}, {**FORMULAS[name][2], "lr": 0.02}]
    one, two = pair(name, [(2, 3), (4,)], {"lr": 0.07}, groups=groups)
    rng = np.random.default_rng(3)
    for step in range(7):
        if step == 2:
            one.param_groups[0]["lr"] = two.groups[0]["lr"] = 0.011
        if step == 4:
            for o in (one.param_groups, two.groups):
                o[1].update(decay(name, 0.5))
                o[2]["maximize"] = False
        both_step(one, two, rng, skip={(0, 1), (3, 0)} if step in (0, 3) else ())
    assert_same_parameters(one, two)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_loaded_state_continues_with_the_formula(name, tmp_path):
    """Saved to a file: steps, states, rates, and options equal those of the saved optimizer."""
    options = {"lr": 0.05, **FORMULAS[name][2]}
    one, two = pair(name, [(3,), (2, 2)], options, groups=({}, {"lr": 0.2}))
    rng = np.random.default_rng(5)
    for _ in range(3):
        both_step(one, two, rng)
    flow.save(one.state_dict(), tmp_path / "state")
    again, _ = pair(name, [(3,), (2, 2)], {}, groups=({}, {}))
    for a, b in zip(again.param_groups, one.param_groups):
        for p, q in zip(a["params"], b["params"]):
            p.data.copy_(q.detach())
    again.load_state_dict(flow.load(tmp_path / "state"))
    steps = again.state_dict()["state"]
    assert ([float(own["step"]) for own in steps.values()] == [3] * 4 if name in OWN_CLOCK
            else steps["step"] == 3)
    for _ in range(3):
        both_step(again, two, rng)
    assert_same_parameters(again, two)


@pytest.mark.parametrize("kind", [1.0, 2.0, float("inf")])
@pytest.mark.parametrize("size", [0.5, 1e9])
def test_clipping_uses_the_norm_of_a_group(kind, size):
    """All gradients of a group are scaled by one factor, at most 1."""
    clip = {"clip_grad_max_norm": size, "clip_grad_norm_type": kind}
    one, _ = pair("SGD", [(3, 2), (4,)], {}, groups=(clip, clip))
    rng = np.random.default_rng(6)
    given = [[rng.standard_normal(p.shape) for p in g["params"]] for g in one.param_groups]
    for g, row in zip(one.param_groups, given):
        for p, a in zip(g["params"], row):
            p.grad = flow.tensor(a)
    one.clip_grad()
    for g, row in zip(one.param_groups, given):
        norm = np.linalg.norm(np.concatenate([a.ravel() for a in row]), kind)
        for p, a in zip(g["params"], row):
            np.testing.assert_allclose(p.grad.numpy(), a * min(1, size / (norm + 1e-6)), rtol=1e-5)


@pytest.mark.parametrize("name", FORMULAS)
def test_defaults_are_oneflows(name):
    """The defaults of the formulas equal those of the signature; parameters without a formula default are not
    compared.
    """
    _, defaults, others = FORMULAS[name]
    have = {k: p.default for k, p in inspect.signature(getattr(optim, name)).parameters.items()}
    assert {k: have[k] for k in defaults} == defaults
    nothing = {"params", "contiguous_params", "fused", "foreach", "capturable", "differentiable",
               "master_weights"}  # for 16-bit parameters: tests/amp/test_master_weights.py
    single = {"SGD": {"dampening", "nesterov"}, "LAMB": {"amsgrad"}, "RMSprop": {"momentum"}}.get(name, set())
    assert set(have) - nothing - single == set(others) | {"lr", *decay(name, 0),
                                                          "maximize"}, "an option without a case"


def test_every_optimizer_has_a_formula():
    found = {n for n, x in vars(optim).items() if isinstance(x, type) and issubclass(x, optim.Optimizer)}
    assert found == set(FORMULAS) | {"Optimizer", "LBFGS"}      # uses a line search: test_lbfgs.py
