"""The optimizer that config.train.* describes, and flow.losses.add_loss, as in OneFlow before 0.2."""
import numpy as np
import pytest

import flowedu as flow
from common import fresh_session, refused, run, variable_values  # noqa: F401
from flowedu.oneflow04.optim.optimizer_conf import optimizer_from_conf

opt = flow.optimizer
ones = flow.ones_initializer()
one = np.ones(1, np.float32)


def conf(update, **more):
    return {"train.primary_lr": 0.1, "train.model_update_conf": update, **{f"train.{k}": v
                                                                           for k, v in more.items()}}


@pytest.mark.parametrize("update, kind, hyper", [
    ({"naive_conf": {}}, opt.SGD, {}), ({"momentum_conf": {}}, opt.SGD, {"beta": 0.9}),
    ({"momentum_conf": {"beta": 0.5}}, opt.SGD, {"beta": 0.5}),
    ({"rmsprop_conf": {"centered": True}}, opt.RMSProp, {"decay_rate": 0.99, "epsilon": 1e-8}),
    ({"lars_conf": {"momentum_beta": 0.8}}, opt.LARS,
     {"momentum_beta": 0.8, "epsilon": 1e-9, "lars_coefficient": 1e-4}),
    ({"adam_conf": {"epsilon": 1e-5}}, opt.Adam,
     {"beta1": .9, "beta2": .999, "epsilon": 1e-5, "do_bias_correction": False}),
    ({"lazy_adam_conf": {}}, opt.LazyAdam, {"beta1": .9, "beta2": .999, "epsilon": 1e-8,
                                            "do_bias_correction": True}),
    ({"lamb_conf": {"beta1": .9, "beta2": .99, "epsilon": 1e-7}}, opt.LAMB,
     {"beta1": .9, "beta2": .99, "epsilon": 1e-7})])
def test_settings_describe_every_rule(update, kind, hyper):
    made = optimizer_from_conf(conf(update))
    assert (type(made) is kind and made.rule.attrs == hyper and made.lr_scheduler(7) == 0.1
            and made.secondary is None)


@pytest.mark.parametrize("decay, want", [
    ({"exponential_conf": {"decay_batches": 10, "decay_rate": 0.5}}, opt.ExponentialScheduler(0.1, 10, 0.5)),
    ({"inverse_time_conf": {"decay_batches": 3, "decay_rate": 0.5, "staircase": True}},
     opt.InverseTimeScheduler(0.1, 3, 0.5, True)),
    ({"natural_exp_conf": {"decay_batches": 3, "decay_rate": 0.5}}, opt.NaturalExpScheduler(0.1, 3, 0.5)),
    ({"piecewise_constant_conf": {"boundaries": [4], "values": [3.0, 2.0]}},
     opt.PiecewiseConstantScheduler([4], [3.0, 2.0])),
    ({"polynomial_conf": {"decay_batches": 20, "power": 2.0}}, opt.PolynomialScheduler(0.1, 20, power=2.0)),
    ({"cosine_conf": {"decay_batches": 20}}, opt.CosineScheduler(0.1, 20)),
    ({"linear_cosine_conf": {"decay_batches": 20, "beta": 0.1}},
     opt.LinearCosineScheduler(0.1, 20, beta=0.1)),
    ({"piecewise_scaling_conf": {"boundaries": [4, 6], "scales": [.5, .1]}},
     opt.PiecewiseScalingScheduler(0.1, [4, 6], [.5, .1]))])
def test_settings_describe_every_schedule(decay, want):
    warm = {"linear_conf": {"warmup_batches": 4, "start_multiplier": 0.5}}
    for more, start in (({}, None), ({"warmup_conf": warm}, [0.05, 0.0625, 0.075, 0.0875])):
        made = optimizer_from_conf(conf({"naive_conf": {}, "learning_rate_decay": decay,
                                         **more})).lr_scheduler
        got = [made(n) for n in range(30)]
        if start:
            np.testing.assert_allclose(got[:4], start)
        assert got[4:] == [want(n) for n in range(4, 30)]
    made = optimizer_from_conf(conf({"naive_conf": {}, "warmup_conf": {
        "constant_conf": {"warmup_batches": 2, "multiplier": 0.1}}})).lr_scheduler
    np.testing.assert_allclose([made(n) for n in range(3)], [0.01, 0.01, 0.1])


def test_settings_describe_clipping_decay_and_scaling():
    made = optimizer_from_conf(conf({"rmsprop_conf": {},
                                     "clip_conf": {"clip_by_global_norm": {"clip_norm": 2.5}},
                                     "weight_decay_conf": {"weight_decay_rate": 0.1,
                                                           "excludes": {"pattern": ["bias"]}}},
                                    loss_scale_factor=8.0))
    assert made.grad_clipping.clip_norm == 2.5 and made.loss_scale_policy.loss_scale_factor == 8.0
    assert made.update_of(["w", "w-bias"]).attrs["weight_decay"] == (0.1, 0.0)


@pytest.mark.parametrize("values, words", [
    ({}, ["primary_lr is not set"]), ({"train.primary_lr": 0.1}, ["model_update_conf is not set"]),
    (conf({}), ["naive_conf"]), (conf({"naive_conf": {}, "adam_conf": {}}), ["naive_conf or momentum_conf"]),
    (conf({"sgd": {}}), ["unknown 'sgd'"]),
    (conf({"momentum_conf": {"momentum": 1}}), ["unknown 'momentum'"]),
    (conf({"momentum_conf": 0.9}), ["not a dictionary"]),
    (conf({"lamb_conf": {"beta1": 0.9}}), ["beta2, epsilon"]),
    (conf({"naive_conf": {}, "learning_rate_decay": {"cosine_conf": {}}}), ["decay_batches"]),
    (conf({"naive_conf": {}, "weight_decay_conf": {}}), ["weight_decay_rate"]),
    (conf({"naive_conf": {}, "weight_decay_conf": {"weight_decay_rate": 1, "includes": {}, "excludes": {}}}),
     ["includes"])])
def test_incomplete_settings_are_refused(values, words):
    with refused(AssertionError, *words, at=False):
        optimizer_from_conf(values)


def test_a_norm_cannot_be_given():
    with refused(NotImplementedError, "global_norm", at=False):
        optimizer_from_conf(conf({"naive_conf": {}, "clip_conf": {
            "clip_by_global_norm": {"clip_norm": 1.0, "global_norm": 2.0}}}))


def legacy(body, *arrays, secondary=None, update=None):
    config = flow.function_config()
    config.train.primary_lr(0.5)
    if secondary is not None:
        config.train.secondary_lr(secondary)
    config.train.model_update_conf(update or {"naive_conf": {}})
    return run(body, *arrays, type="train", config=config)


@pytest.mark.parametrize("clip, factor", [(None, 1.0), (2.5, 0.5)])
def test_losses_are_added_and_biases_have_a_separate_rate(clip, factor):
    def body(a):
        w = flow.get_variable("w", (1,), initializer=ones, model_name="weight")
        b = flow.get_variable("b", (1,), initializer=ones, model_name="bias")
        flow.losses.add_loss(w * 3 * a)
        flow.losses.add_loss(b * 4 * a)
        return w

    update = {"naive_conf": {}, **({"clip_conf": {"clip_by_global_norm": {"clip_norm": clip}}} if clip
                                   else {})}
    legacy(body, one, secondary=0.25, update=update)
    np.testing.assert_allclose([variable_values()["w"][0], variable_values()["b"][0]],
                               [1 - 1.5 * factor, 1 - factor], rtol=1e-5, atol=1e-6)


def test_layers_mark_their_bias_variables():
    def body(a):
        y = flow.layers.dense(a, 1, kernel_initializer=ones, bias_initializer=ones, name="d")
        flow.losses.add_loss(y)
        return y

    legacy(body, np.ones((2, 3), np.float32), secondary=0.0)
    np.testing.assert_allclose(variable_values()["d-weight"], np.full((1, 3), 0.5))
    np.testing.assert_array_equal(variable_values()["d-bias"], [1])


def test_add_loss_takes_blobs_in_train_jobs():
    with refused(NotImplementedError, "losses.add_loss", "not inside a job"):
        flow.losses.add_loss(None)
    with refused(AssertionError, "the loss is not a blob"):
        run(lambda a: flow.losses.add_loss(3.0), one, type="train", returns=None)
    with refused(RuntimeError, "add_loss in a predict job"):
        run(lambda a: flow.losses.add_loss(a), one, returns=None)
    with refused(AssertionError, "primary_lr is not set", at=False):
        run(lambda a: flow.losses.add_loss(flow.get_variable("w", (1,), initializer=ones) * a), one,
            type="train", returns=None)
