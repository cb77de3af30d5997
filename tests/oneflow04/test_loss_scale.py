"""Loss scales: a power of two changes no bit of the training, intermediate gradients are multiplied by it,
and small gradients survive. With a dynamic policy, a step whose gradients overflow changes only the scale,
which follows OneFlow's rule.
"""
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from common import constant, constant_rate, fresh_session, refused, run  # noqa: F401
from flowedu.core.ops.define import REGISTRY

opt, scale = flow.optimizer, flow.optimizer.loss_scale
OPTIMIZERS = {
    "SGD": lambda **o: opt.SGD(constant_rate(0.1), momentum=0, **o),
    "momentum": lambda **o: opt.SGD(constant_rate(0.1), **o),
    "SGDW": lambda **o: opt.SGDW(constant_rate(0.1), weight_decay=0.1, **o),
    "Adam": lambda **o: opt.Adam(constant_rate(0.1), do_bias_correction=True, **o),
    "LazyAdam": lambda **o: opt.LazyAdam(constant_rate(0.1), **o),
    "RMSProp": lambda **o: opt.RMSProp(constant_rate(0.1), **o),
    "centered": lambda **o: opt.RMSProp(constant_rate(0.1), centered=True, **o),
    "LARS": lambda **o: opt.LARS(constant_rate(0.1), **o),
    "LAMB": lambda **o: opt.LAMB(constant_rate(0.1), **o),
    "two": lambda **o: opt.CombinedOptimizer([opt.SGD(constant_rate(0.1), variables=["w"]),
                                              opt.Adam(constant_rate(0.1), variables=["v"])], **o),
}
POWERS = ({"loss_scale_factor": 1024.0}, {"loss_scale_policy": scale.static_loss_scale(0.25)},
          {"loss_scale_policy": scale.dynamic_loss_scale()},
          {"loss_scale_policy": scale.dynamic_loss_scale(2 ** 10, increment_period=2, multiplier=4.0)})
BIG = "System-Train-DynamicLossScale-train-LossScale"
GOOD = "System-Train-DynamicLossScale-train-GoodStepCounter"


def train_with_loss_scale(optimizer, batches, eager=False, config=None, penalty=None, watch=None,
                          dtype=np.float32, devices=1):
    """Return the variables after each batch; the loss of a batch x is x * tanh(x @ w + v)."""
    flow.clear_default_session()
    flow.enable_eager_execution(eager)                     # for this session
    flow.config.cpu_device_num(devices)

    @flow.global_function("train", config)
    def train(x: tp.Numpy.Placeholder(batches[0].shape, flow.float64 if dtype == np.float64
                                      else flow.float32)) -> tp.Numpy:
        kind = flow.float64 if dtype == np.float64 else flow.float32
        if devices > 1:
            x = x.with_distribute(flow.distribute.split(0))
        w = flow.get_variable("w", (3, 3), kind, constant(np.linspace(-1, 1, 9).reshape(3, 3)),
                              regularizer=penalty)
        v = flow.get_variable("v", (3,), kind, constant([0.5, -0.5, 0.25]))
        y = flow.math.tanh(flow.matmul(x, w) + v)
        if watch:
            flow.watch_diff(y, watch)
        loss = y * x
        optimizer.minimize(loss)
        return loss

    found = []
    for x in batches:
        train(x.astype(dtype))
        found.append({n: v.numpy().copy() for n, v in flow.get_all_variables().items()})
    return found


def batches(n, seed=0):
    return list(np.random.default_rng(seed).standard_normal((n, 4, 3)).astype(np.float32))


def are_equal_states(a, b, leave=("DynamicLossScale", "TrainStep")):
    names = [n for n in a if not any(word in n for word in leave)]
    return names and all(np.array_equal(a[n], b[n]) for n in names)


# --- invariants
# -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("options", POWERS, ids=["factor", "static", "dynamic", "growing"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_power_of_two_changes_no_bit(name, options):
    clip = {} if name == "two" else {"grad_clipping": opt.grad_clipping.by_global_norm(0.3)}
    penalty = flow.regularizers.l1_l2(0.1, 0.01)
    for eager in (False, True):
        plain, scaled = (train_with_loss_scale(OPTIMIZERS[name](**clip, **more), batches(4), eager,
                                               penalty=penalty) for more in ({}, options))
        assert all(map(are_equal_states, plain, scaled)), "eager" if eager else "compiled"


@pytest.mark.parametrize("options", POWERS[1:3], ids=["static", "dynamic"])
def test_a_power_of_two_changes_no_bit_in_float64_or_on_two_devices(options):
    for more in ({"dtype": np.float64}, {"devices": 2}):
        plain, scaled = (train_with_loss_scale(OPTIMIZERS["Adam"](**o), batches(3), **more)
                         for o in ({}, options))
        assert all(map(are_equal_states, plain, scaled)), more


def test_other_factors_change_only_the_last_bits():
    plain, scaled = (train_with_loss_scale(OPTIMIZERS["SGD"](**o), batches(4))
                     for o in ({}, {"loss_scale_factor": 3.7}))
    np.testing.assert_allclose(plain[-1]["w"], scaled[-1]["w"], rtol=1e-5)


# --- intermediate gradients
# -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])
@pytest.mark.parametrize("how", ["factor", "policy", "dynamic", "config"])
def test_intermediate_gradients_are_multiplied(how, eager):
    seen = []
    config = flow.function_config()
    if how == "config":
        config.train.loss_scale_factor(64.0)
    options = {"factor": {"loss_scale_factor": 64.0},
               "policy": {"loss_scale_policy": scale.static_loss_scale(64.0)},
               "dynamic": {"loss_scale_policy": scale.dynamic_loss_scale(64.0)}}.get(how, {})
    for o, c in (({}, None), (options, config)):
        train_with_loss_scale(OPTIMIZERS["SGD"](**o), batches(1), eager, config=c,
                              watch=lambda x: seen.append(x.numpy()))
    np.testing.assert_array_equal(64.0 * seen[0], seen[1])


def test_the_setting_of_the_job_is_for_optimizers_without_a_scale_and_for_add_loss():
    seen = []
    config = flow.function_config()
    config.train.loss_scale_factor(64.0)
    config.train.primary_lr(0.1)
    config.train.model_update_conf({"naive_conf": {}})

    def body(legacy, **options):
        x = flow.get_variable("x", (2,), initializer=constant([1.0, 2.0]))
        flow.watch_diff(x, lambda d: seen.append(d.numpy().tolist()))
        if legacy:
            flow.losses.add_loss(x * 3.0)
        else:
            opt.SGD(constant_rate(0.1), **options).minimize(x * 3.0)
        return x

    run(lambda: body(True), type="train", config=config)
    run(lambda: body(False, loss_scale_factor=2.0), type="train", config=config)
    assert seen == [[192.0, 192.0], [6.0, 6.0]]


def test_gradients_that_would_underflow_survive():
    def body(**options):
        w = flow.get_variable("w", (1,), initializer=constant(0.0))
        opt.SGD(constant_rate(1e20), momentum=0, **options).minimize(w * 1e30 * 1e-25 * 1e-25)
        return w

    moved = []
    for options in ({}, {"loss_scale_factor": 2.0 ** 50},
                    {"loss_scale_policy": scale.dynamic_loss_scale(2.0 ** 50)}):
        run(partial(body, **options), type="train")
        moved.append(flow.get_all_variables()["w"].numpy().item())
    assert moved[0] == 0.0 and moved[1:] == pytest.approx([-1.0, -1.0], rel=1e-4)


# --- overflow
# ---------------------------------------------------------------------------------------------------------

def expected(good, first, period, multiplier):
    """Return (factor, counter) after each step by OneFlow's rule."""
    factor, counter = np.float32(first), 0
    for ok in good:
        if ok:
            counter += 1
            if counter >= period:
                factor, counter = (np.float32(min(float(factor) * multiplier,
                                                  float(np.finfo(np.float32).max))), 0)
        else:
            factor, counter = np.float32(max(float(factor) / multiplier, 1.0)), 0
        yield factor, counter


@given(st.lists(st.booleans(), min_size=3, max_size=8), st.sampled_from([1.0, 2.0 ** 20, 3e38]),
       st.integers(1, 3),
       st.sampled_from([2.0, 3.0]), st.sampled_from([np.inf, -np.inf, np.nan]), st.booleans())
def test_the_factor_follows_the_rule(good, first, period, multiplier, bad, eager):
    data = batches(len(good))
    for x, ok in zip(data, good):
        x *= 2.0 ** -110                                 # small enough for the largest factor
        if not ok:
            x[2, 1] = bad
    found = train_with_loss_scale(
        OPTIMIZERS["SGD"](loss_scale_policy=scale.dynamic_loss_scale(first, period, multiplier)), data, eager)
    assert [(v[BIG].item(), v[GOOD].item()) for v in found] == list(expected(good, first, period, multiplier))


@pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_that_overflows_changes_nothing(name, eager):
    data = batches(5)
    data[1][0, 0], data[3][3, 2] = np.inf, np.nan
    found = train_with_loss_scale(OPTIMIZERS[name](loss_scale_policy=scale.dynamic_loss_scale()), data, eager)
    assert are_equal_states(found[0], found[1]) and are_equal_states(found[2], found[3])
    assert not are_equal_states(found[1], found[2]) and not are_equal_states(found[3], found[4])
    assert all(np.isfinite(v).all() for v in found[-1].values())
    unscaled = train_with_loss_scale(OPTIMIZERS[name](), data, eager)
    assert not np.isfinite(unscaled[-1]["w"]).all(), "without the policy, one such step spoils everything"


def test_an_overflow_of_the_scaled_loss_alone_is_one_too():
    policy = scale.dynamic_loss_scale(2.0 ** 127, multiplier=2.0 ** 60)
    found = train_with_loss_scale(OPTIMIZERS["SGD"](loss_scale_policy=policy), [2 * x for x in batches(3)])
    start = train_with_loss_scale(OPTIMIZERS["SGD"](), [2 * x for x in batches(1)])
    assert not are_equal_states(found[0], start[0]) and not are_equal_states(found[0], found[1])
    assert [v[GOOD].item() for v in found] == [0, 1, 2] and found[0][BIG] == 2.0 ** 67


UPDATES = sorted(n for n, op in REGISTRY.items() if op.group is not None)


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_of_a_step_below_zero_changes_nothing(name):
    op, rng = REGISTRY[name], np.random.default_rng(0)
    names = {"lamb_update": 4}.get(name, op.group)       # the last two inputs of LAMB are scalars
    for shape in ((2, 3), (5000,)):
        group = [rng.random(shape, np.float32) + 0.5 for _ in range(names)]
        group += [np.full(1, 0.5, np.float32)] * (op.group - names)
        for step, still in ((-1, True), (0, False)):
            xs = [np.full(1, 0.1, np.float32), np.full(1, step, np.int64), *group]
            given = [flow.tensor(x) for x in xs]
            op(*given)
            assert all(np.array_equal(t.numpy(), x) for t, x in zip(given, xs)) is still
            reference = op.ask(op.ref, {"xs": xs, **dict(zip(op.attrs, op.complete({})))})
            assert all(np.array_equal(xs[n], y) for n, y in zip(op.mutates(len(xs)), reference)) is still


def test_one_loss_has_one_scale():
    parts = [opt.SGD(constant_rate(0.1), variables=[n], loss_scale_factor=f)
             for n, f in (("w", 2.0), ("v", 4.0))]
    with refused(AssertionError, "different loss scales", "CombinedOptimizer", at=False):
        train_with_loss_scale(opt.CombinedOptimizer(parts), batches(1))
    one = opt.CombinedOptimizer([parts[0], opt.SGD(constant_rate(0.1), variables=["v"])])
    assert are_equal_states(train_with_loss_scale(one, batches(1))[0],
                            train_with_loss_scale(OPTIMIZERS["momentum"](), batches(1))[0])


def test_the_factor_is_part_of_a_checkpoint(tmp_path):
    policy = {"loss_scale_policy": scale.dynamic_loss_scale(2.0 ** 10, increment_period=3)}
    straight = train_with_loss_scale(OPTIMIZERS["Adam"](**policy), batches(6))
    train_with_loss_scale(OPTIMIZERS["Adam"](**policy), batches(6)[:2])
    flow.checkpoint.save(str(tmp_path / "half"))
    config = flow.function_config()
    config.default_initialize_with_snapshot_path(str(tmp_path / "half"))
    again = train_with_loss_scale(OPTIMIZERS["Adam"](**policy), batches(6)[2:], config=config)
    assert are_equal_states(straight[-1], again[-1], leave=()) and straight[-1][BIG] == 2.0 ** 12
