"""Every optimizer against its formula in NumPy, and their shared features: weight decay, clipping, loss
scaling, state, and several optimizers in one job.
"""
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from common import (  # noqa: F401
    constant,
    constant_rate,
    f32,
    fresh_session,
    job,
    refused,
    run,
    variable_values,
    weights_after_steps,
)

opt = flow.optimizer
ones = flow.ones_initializer()
one = np.ones(1, np.float32)
few = settings(max_examples=6)


def norm(*arrays):
    return math.sqrt(sum(float((a * a).sum()) for a in arrays))


# --- the formulas, one variable, double precision
# ---------------------------------------------------------------------

def momentum(w, g, s, lr, wd, t, beta):
    m = s["m"] = beta * s.get("m", 0) - lr * g
    return w + m - lr * wd * w


def sgd(w, g, s, lr, wd, t):
    return w - lr * (g + wd * w)


def adam(w, g, s, lr, wd, t, beta1, beta2, epsilon, correct):
    m = s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    v = s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g ** 2
    rate = lr * math.sqrt(1 - beta2 ** t) / (1 - beta1 ** t) if correct else lr
    return w - rate * (m / (np.sqrt(v) + epsilon) + wd * w)


def rmsprop(w, g, s, lr, wd, t, rho, epsilon, centered):
    ms = s["ms"] = rho * s.get("ms", 0) + (1 - rho) * g ** 2
    mg = s["mg"] = rho * s.get("mg", 0) + (1 - rho) * g
    return w - lr * g / np.sqrt(ms - (mg ** 2 if centered else 0) + epsilon)


def lars(w, g, s, lr, wd, t, beta, epsilon, coefficient):
    trust = coefficient * norm(w) / (epsilon + norm(g) + wd * norm(w)) if norm(w) and norm(g) else 1.0
    m = s["m"] = beta * s.get("m", 0) - lr * trust * g
    return w + m - lr * trust * wd * w


def lamb(w, g, s, lr, wd, t, beta1, beta2, epsilon):
    m = s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    v = s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g ** 2
    a = m / (1 - beta1 ** t) / (np.sqrt(v / (1 - beta2 ** t)) + epsilon)
    return w - lr * (norm(w) / norm(a) if norm(w) and norm(a) else 1.0) * (a + wd * w)


# name: (class, function of p and q in (0, 1) that returns its keyword arguments, formula, function that
# returns the formula's arguments, True if it supports weight decay)
RULES = {
    "SGD0": (opt.SGD, lambda p, q: {"momentum": 0}, sgd, lambda p, q: (), False),
    "SGD": (opt.SGD, lambda p, q: {"momentum": p}, momentum, lambda p, q: (p,), False),
    "SGDW0": (opt.SGDW, lambda p, q: {"momentum": 0}, sgd, lambda p, q: (), True),
    "SGDW": (opt.SGDW, lambda p, q: {"momentum": p}, momentum, lambda p, q: (p,), True),
    "Adam": (opt.Adam, lambda p, q: {"beta1": p, "beta2": q, "epsilon": 1e-4}, adam,
             lambda p, q: (p, q, 1e-4, False), False),
    "AdamW": (opt.AdamW, lambda p, q: {"beta1": p, "beta2": q, "do_bias_correction": True}, adam,
              lambda p, q: (p, q, 1e-8, True), True),
    "LazyAdam": (opt.LazyAdam, lambda p, q: {"beta1": p, "beta2": q}, adam, lambda p, q: (p, q, 1e-8, True),
                 False),
    "RMSProp": (opt.RMSProp, lambda p, q: {"decay_rate": q, "epsilon": 1e-3}, rmsprop,
                lambda p, q: (q, 1e-3, False), False),
    "centered": (opt.RMSProp, lambda p, q: {"decay_rate": q, "epsilon": 1e-3, "centered": True}, rmsprop,
                 lambda p, q: (q, 1e-3, True), False),
    "LARS": (opt.LARS, lambda p, q: {"momentum_beta": p, "lars_coefficient": 0.3 * q}, lars,
             lambda p, q: (p, 1e-9, 0.3 * q), True),
    "LAMB": (opt.LAMB, lambda p, q: {"beta1": p, "beta2": q}, lamb, lambda p, q: (p, q, 1e-6), True),
}
STATE = {"SGD0": [], "SGD": ["momentum"], "SGDW": ["momentum"], "SGDW0": [], "Adam": ["m", "v"],
         "AdamW": ["m", "v"],
         "LazyAdam": ["m", "v"], "RMSProp": ["mean_square"], "centered": ["mean_gradient", "mean_square"],
         "LARS": ["momentum"], "LAMB": ["beta1_t", "beta2_t", "m", "v"]}
SHAPES = {"a": (3, 4), "b": (5,)}


def drive(optimizer, gradients, dtype, start, l2=0.0):
    """Return (loss, a, b before each step) of a job whose variables have the given gradients; the loss has 12
    elements.
    """
    def body(ga, gb):
        a = flow.get_variable("a", (3, 4), _types[dtype],
                              constant(start["a"]), regularizer=flow.regularizers.l2(l2))
        b = flow.get_variable("b", (5,), _types[dtype], constant(start["b"]))
        loss = a * ga + flow.math.reduce_sum(b * gb)
        optimizer.minimize(loss)
        return loss

    step = job(body, *gradients[0], type="train")
    for pair in gradients:
        step(*pair)
    return variable_values()


_types = {np.float32: flow.float32, np.float64: flow.float64}


def expected(rule, args, gradients, start, lr, wd, l2, clip):
    """Compute the same in NumPy: scale by 1/count, add the regularizer, clip both gradients together, and
    apply the rule.
    """
    w, state = {n: v.astype(np.float64) for n, v in start.items()}, {"a": {}, "b": {}}
    for t, (ga, gb) in enumerate(gradients, 1):
        g = {"a": ga.astype(np.float64) / 12 + l2 * w["a"], "b": gb.astype(np.float64)}
        factor = min(1.0, clip / norm(*g.values())) if clip else 1.0
        for n in w:
            w[n] = rule(w[n], g[n] * factor, state[n], lr, wd[n], t, *args)
    return w


def draw_gradients(rng, steps, dtype):
    return [(rng.standard_normal((3, 4)).astype(dtype) * 6,
             rng.standard_normal(5).astype(dtype)) for _ in range(steps)]


@pytest.mark.parametrize("eager", [False, True], ids=["job", "eager"])
@pytest.mark.parametrize("name", RULES)
@few
@given(seed=st.integers(0, 2**31), p=st.floats(0.3, 0.95), q=st.floats(0.5, 0.999),
       clip=st.sampled_from([None, 0.7, 1.0, 50.0]), decay=st.sampled_from([0.0, 0.1]),
       l2=st.sampled_from([0.0, 0.2]), dtype=st.sampled_from([np.float32, np.float64]))
def test_twenty_steps_follow_the_formula(name, eager, seed, p, q, clip, decay, l2, dtype):
    flow.clear_default_session()
    flow.enable_eager_execution(eager)
    cls, options, rule, args, decays = RULES[name]
    rng, lr = np.random.default_rng(seed), 0.01
    gradients = draw_gradients(rng, 20, dtype)
    start = {n: (rng.standard_normal(s) + 2).astype(dtype) for n, s in SHAPES.items()}
    more = {"weight_decay": decay, "weight_decay_includes": "a"} if decays else {}
    if clip:
        more["grad_clipping"] = opt.grad_clipping.by_global_norm(clip)
    got = drive(cls(constant_rate(lr), **options(p, q), **more), gradients, dtype, start, l2)
    wd = {"a": decay if decays else 0, "b": 0}
    want = expected(rule, args(p, q), gradients, start, float(np.float32(lr)), wd, l2, clip)
    for n in want:
        tolerance = 1e-8 if dtype is np.float64 else 3e-4
        np.testing.assert_allclose(got[n], want[n], rtol=tolerance, atol=tolerance)
        assert got[n].dtype == dtype and (got[n] != start[n]).any()
    flow.clear_default_session()


@pytest.mark.parametrize("name", RULES)
def test_state_has_the_names_of_oneflow(name):
    cls, options = RULES[name][:2]
    drive(cls(constant_rate(0.1), **options(0.9, 0.99)),
          draw_gradients(np.random.default_rng(0), 1, np.float32), np.float32,
          {n: np.ones(s, np.float32) for n, s in SHAPES.items()})
    found = variable_values()
    for n, shape in SHAPES.items():
        assert sorted(k[2:] for k in found if k.startswith(f"{n}-")) == STATE[name]
        for suffix in STATE[name]:
            assert found[f"{n}-{suffix}"].shape == ((1,) if suffix.endswith("_t") else shape)
    if name == "LAMB":
        np.testing.assert_allclose([found["a-beta1_t"][0], found["a-beta2_t"][0]], [0.9 ** 2, 0.99 ** 2],
                                   rtol=1e-6)


@pytest.mark.parametrize("optimizer, want", [
    (lambda: opt.SGDW(constant_rate(0.1)), [.95, .855, .7195]),
    (lambda: opt.AdamW(constant_rate(0.001)), [.99683772, .99258813, .98763790]),
    (lambda: opt.LazyAdam(constant_rate(0.001)), [.999, .998, .997]),
    (lambda: opt.RMSProp(constant_rate(0.001)), [.99, .98291])])
def test_known_trajectories(optimizer, want):
    np.testing.assert_allclose(weights_after_steps(optimizer(), len(want)), want, rtol=2e-6)


def test_centered_rmsprop_stays_finite_where_the_variance_is_rounded_below_zero():
    got = weights_after_steps(opt.RMSProp(constant_rate(1e-6), centered=True), 400, slope=1234.5)
    assert np.isfinite(got).all() and (np.diff(got) < 0).all()


@pytest.mark.parametrize("make", [opt.LARS, opt.LAMB])
def test_zero_norms_do_not_scale_the_rate(make):
    """A weight of 0 would never be updated, and a gradient of 0 would divide by 0."""
    def body(g):
        w = flow.get_variable("w", (2,), initializer=flow.zeros_initializer())
        v = flow.get_variable("v", (2,), initializer=ones)
        make(constant_rate(0.5)).minimize(w * g + v * 0.0)
        return w

    run(body, np.full(2, 3, np.float32), type="train")
    np.testing.assert_allclose(variable_values()["w"], [-0.75] * 2 if make is opt.LARS else [-0.5] * 2,
                               rtol=1e-5)
    np.testing.assert_array_equal(variable_values()["v"], [1, 1])


# --- weight decay
# -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("rule", [opt.SGDW, opt.AdamW, opt.LARS, opt.LAMB])
@pytest.mark.parametrize("choice, decayed", [
    ({}, {"dense-weight", "dense-bias", "bn-gamma"}), ({"weight_decay_includes": "weight"}, {"dense-weight"}),
    ({"weight_decay_includes": ["bias$", "^bn"]}, {"dense-bias", "bn-gamma"}),
    ({"weight_decay_includes": []}, set()),
    ({"weight_decay_excludes": "ense-b"}, {"dense-weight", "bn-gamma"}),
    ({"weight_decay_excludes": ("bias", "g.mma")}, {"dense-weight"}),
    ({"weight_decay_excludes": []}, {"dense-weight", "dense-bias", "bn-gamma"})])
def test_patterns_are_searched_in_the_names(rule, choice, decayed):
    names = ["dense-weight", "dense-bias", "bn-gamma"]
    optimizer = rule(constant_rate(0.1), weight_decay=0.25, **choice)
    assert optimizer.update_of(names).attrs["weight_decay"] == tuple(0.25 * (n in decayed) for n in names)
    assert not rule(constant_rate(0.1), **choice).update_of(names).attrs["weight_decay"]


@pytest.mark.parametrize("options, error, words", [
    ({"weight_decay": -0.1}, ValueError, ["weight_decay"]), ({"weight_decay": "much"}, ValueError,
                                                             ["weight_decay"]),
    ({"weight_decay": 0.1, "weight_decay_includes": "a", "weight_decay_excludes": "b"}, AssertionError,
     ["includes", "excludes"]),
    ({"weight_decay_includes": 3}, ValueError, ["weight_decay_includes"]),
    ({"weight_decay_excludes": ["ok", "("]}, ValueError, ["weight_decay_excludes", "'('"])])
def test_wrong_weight_decay_is_refused(options, error, words):
    with refused(error, "optimizer.SGDW", *words):
        opt.SGDW(constant_rate(0.1), **options)


# --- arguments
# --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("make, options, word", [
    (opt.AdamW, {"beta1": 1.0}, "beta1"), (opt.LazyAdam, {"beta2": -0.1}, "beta2"),
    (opt.Adam, {"epsilon": -1}, "epsilon"),
    (opt.RMSProp, {"decay_rate": 1.0}, "decay_rate"), (opt.RMSProp, {"epsilon": float("nan")}, "epsilon"),
    (opt.LARS, {"lars_coefficient": 0}, "lars_coefficient"), (opt.LARS, {"momentum_beta": 1},
                                                              "momentum_beta"),
    (opt.LAMB, {"beta1": "x"}, "beta1"), (opt.LAMB, {"variables": "w"}, "variables"),
    (opt.LAMB, {"loss_scale_policy": 3}, "loss_scale_policy"), (opt.LAMB, {"train_step_lbn": 3},
                                                                "train_step_lbn"),
    (opt.LAMB, {"loss_scale_factor": 0}, "loss_scale_factor"), (opt.LAMB, {"grad_clipping": 1.0},
                                                                "grad_clipping")])
def test_arguments_out_of_range_are_refused(make, options, word):
    with refused(ValueError, word):
        make(constant_rate(0.1), **options)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "rmsprop", "rmsprop_centered", "lars", "lamb"])
def test_updates_refuse_inputs_that_do_not_fit(name):
    size = {"sgd": 2, "momentum": 3, "rmsprop": 3, "lars": 3, "lamb": 6}.get(name, 4)
    good = [f32(2, 3)] * min(size, 4) + [one] * (size - 4)
    for i in range(size):
        for wrong in (f32(3, 2), f32(6), np.zeros((2, 3), np.int32), f32(2, 3).astype(np.float64)):
            group = [wrong if i == j else x for j, x in enumerate(good)]
            with refused((ValueError, TypeError), f"{name}_update"):
                flow.ops.REGISTRY[f"{name}_update"](*map(flow.tensor, [one, np.zeros(1, np.int64), *group]))


# --- loss scaling: see test_loss_scale.py
# -----------------------------------------------------------------------------

def test_wrong_loss_scales_are_refused():
    with refused(AssertionError, "loss_scale_factor and loss_scale_policy"):
        opt.SGD(constant_rate(0.1), 2.0, loss_scale_policy=opt.loss_scale.static_loss_scale(2.0))
    for wrong in (lambda: opt.loss_scale.static_loss_scale(-1), lambda: opt.loss_scale.dynamic_loss_scale(0),
                  lambda: opt.loss_scale.dynamic_loss_scale(increment_period=0),
                  lambda: opt.loss_scale.dynamic_loss_scale(multiplier=1)):
        with refused(ValueError, "loss_scale."):
            wrong()


# --- several optimizers in one job
# ------------------------------------------------------------------------------------

def two(optimizer, steps=5):
    rng = np.random.default_rng(4)
    start = {n: rng.standard_normal(s).astype(np.float32) for n, s in SHAPES.items()}
    return drive(optimizer, draw_gradients(rng, steps, np.float32), np.float32, start, 0.1)


def parts(choose):
    rates = opt.PiecewiseConstantScheduler([1], [0.1, 0.02]), opt.CosineScheduler(0.05, 4)
    clip = opt.grad_clipping.by_global_norm(0.5)
    return [opt.SGDW(rates[0], weight_decay=0.3, grad_clipping=clip,
                     variables=["a"]) if "a" in choose else None,
            opt.LAMB(rates[1], variables=lambda: ["b"]) if "b" in choose else None]


def test_each_part_of_a_combined_optimizer_trains_as_it_does_alone():
    got = two(opt.CombinedOptimizer(parts("ab")))
    for n, part in zip("ab", parts("ab")):
        flow.clear_default_session()
        alone = two(part)
        for name in alone:
            if name == n or name.startswith(f"{n}-"):
                np.testing.assert_array_equal(got[name], alone[name], err_msg=name)
    assert got["System-Train-TrainStep-job"] == 5


def test_variables_of_a_combined_optimizer_are_disjoint():
    sgd = [opt.SGD(constant_rate(0.1), variables=["a", "a"]), opt.SGD(constant_rate(0.1),
                                                                      variables=["b", "a"])]
    with refused(AssertionError, "share variables", "got:      a"):
        two(opt.CombinedOptimizer(sgd))
    flow.clear_default_session()
    with refused(AssertionError, "share variables", "a, b"):
        two(opt.CombinedOptimizer([opt.SGD(constant_rate(0.1)), opt.Adam(constant_rate(0.1))]))


def test_a_variable_named_twice_is_updated_once():
    optimizer = opt.SGD(constant_rate(0.1), momentum=0, variables=["w", "w"])
    np.testing.assert_allclose(weights_after_steps(optimizer, 1), [0.95], rtol=1e-6)


def test_combined_optimizer_checks_its_parts():
    rate = constant_rate(0.1)
    for wrong in ([], opt.SGD(rate), [rate]):
        with refused(AssertionError, "optimizer.CombinedOptimizer"):
            opt.CombinedOptimizer(wrong)
    with refused(AssertionError, "only one train_step_lbn"):
        opt.CombinedOptimizer([opt.SGD(rate, train_step_lbn="s/out")], train_step_lbn="s/out")
    with refused(AssertionError, "only one loss_scale_policy"):
        opt.CombinedOptimizer([opt.SGD(rate, loss_scale_factor=2.0)], loss_scale_factor=2.0)
    with refused(NotImplementedError, "not inside a job"):
        opt.CombinedOptimizer([opt.SGD(rate)]).minimize(None)


# --- a checkpoint resumes the trajectory
# ------------------------------------------------------------------------------

@pytest.mark.parametrize("name", RULES)
def test_a_checkpoint_resumes_training_exactly(name, tmp_path):
    cls, options = RULES[name][:2]
    rng = np.random.default_rng(8)
    gradients = draw_gradients(rng, 8, np.float32)
    start = {n: rng.standard_normal(s).astype(np.float32) for n, s in SHAPES.items()}

    def session(part, saved=None):
        flow.clear_default_session()
        optimizer = cls(opt.CosineScheduler(0.1, 10), **options(0.8, 0.9))

        def body(ga, gb):
            a, b = (flow.get_variable(n, s, initializer=constant(start[n])) for n, s in SHAPES.items())
            optimizer.minimize(a * ga + flow.math.reduce_sum(b * gb))
            return ga

        step = job(body, *gradients[0], type="train")
        if saved:
            flow.load_variables(flow.checkpoint.get(saved))
        for pair in part:
            step(*pair)
        return variable_values()

    want = session(gradients)
    session(gradients[:4])
    flow.checkpoint.save(str(tmp_path / "c"))
    got = session(gradients[4:], str(tmp_path / "c"))
    assert sorted(got) == sorted(want)
    for n in want:
        np.testing.assert_array_equal(got[n], want[n], err_msg=n)


# --- PyTorch, where the formulas agree
# --------------------------------------------------------------------------------

@pytest.mark.peer
@pytest.mark.parametrize("name, ours, theirs", [
    ("RMSprop", lambda lr: opt.RMSProp(lr, decay_rate=0.9, epsilon=1e-30), {"alpha": 0.9, "eps": 1e-15}),
    ("RMSprop", lambda lr: opt.RMSProp(lr, 0.95, 1e-30, True), {"alpha": 0.95, "eps": 1e-15,
                                                                "centered": True}),
    ("SGD", lambda lr: opt.SGDW(lr, momentum=0, weight_decay=0.2), {"weight_decay": 0.2}),
    ("AdamW", lambda lr: opt.LazyAdam(lr, 0.8, 0.9, 1e-25), {"betas": (0.8, 0.9), "eps": 1e-25,
                                                             "weight_decay": 0}),
    ("Adam", lambda lr: opt.Adam(lr, 0.8, 0.9, 1e-25, True,
                                 grad_clipping=opt.grad_clipping.by_global_norm(0.5)),
     {"betas": (0.8, 0.9), "eps": 1e-25})])
def test_optimizers_match_pytorch(name, ours, theirs):
    torch = pytest.importorskip("torch")
    rng, lr = np.random.default_rng(2), float(np.float32(0.01))
    gradients = draw_gradients(rng, 20, np.float64)
    start = {n: rng.standard_normal(s) for n, s in SHAPES.items()}
    optimizer = ours(constant_rate(lr))
    got = drive(optimizer, gradients, np.float64, start)
    params = {n: torch.tensor(v, requires_grad=True) for n, v in start.items()}
    peer = getattr(torch.optim, name)(list(params.values()), lr=lr, **theirs)
    for ga, gb in gradients:
        params["a"].grad, params["b"].grad = torch.tensor(ga / 12), torch.tensor(gb)
        if optimizer.grad_clipping:
            torch.nn.utils.clip_grad_norm_(list(params.values()), 0.5)
        peer.step()
    for n in params:
        np.testing.assert_allclose(got[n], params[n].detach().numpy(), rtol=1e-6, atol=1e-6)
