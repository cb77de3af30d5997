"""Training by a job: the spec's vectors, the semantics of minimize, and the law that jobs and eager tensors
train alike.
"""
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from bounds import assert_learned
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


# --- optimizers
# ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("optimizer, want", [
    (lambda: opt.SGD(constant_rate(0.1)), [.95, .855, .7195]),
    (lambda: opt.SGD(constant_rate(0.1), momentum=0), [.95, .9, .85]),
    (lambda: opt.Adam(constant_rate(0.001)), [.99683772, .99258813, .98763790]),
    (lambda: opt.Adam(constant_rate(0.001), do_bias_correction=True), [.999, .998, .997])])
def test_optimizers_follow_the_trajectories_of_the_specification(optimizer, want):
    np.testing.assert_allclose(weights_after_steps(optimizer(), 3), want, rtol=1e-6)


def test_the_learning_rate_is_part_of_the_momentum():
    """The momentum history still moves w after the rate falls to 0."""
    got = weights_after_steps(opt.SGD(opt.PiecewiseConstantScheduler([0], [0.1, 0.0])), 3)
    np.testing.assert_allclose(got, [.95, .95 - .045, .95 - .045 - .0405], rtol=1e-6)


def test_schedules_see_the_step_before_it_is_counted():
    rates = opt.PiecewiseConstantScheduler([0, 2], [1.0, 0.5, 0.25])
    got = np.diff([1.0, *weights_after_steps(opt.SGD(rates, momentum=0), 5, slope=1.0)])
    np.testing.assert_allclose(got, [-1, -0.5, -0.5, -0.25, -0.25], rtol=1e-6)
    warm = opt.PiecewiseConstantScheduler([], [1.0], warmup=opt.warmup.linear(2, 0.5))
    np.testing.assert_allclose(np.diff([1.0, *weights_after_steps(opt.SGD(warm, momentum=0), 3, slope=1.0)]),
                               [-0.5, -0.75, -1], rtol=1e-6)


@pytest.mark.parametrize("options", [{"momentum": 1.0}, {"momentum": -0.1}, {"grad_clipping": 1.0}])
def test_sgd_refuses_invalid_arguments(options):
    with refused(ValueError, "optimizer.SGD" if "momentum" in options else "grad_clipping"):
        opt.SGD(constant_rate(0.1), **options)


def test_a_number_is_no_schedule_and_adam_checks_its_betas():
    with refused(ValueError, "PiecewiseConstantScheduler([], [0.1])"):
        opt.SGD(0.1)
    with refused(ValueError, "beta2"):
        opt.Adam(constant_rate(0.1), beta2=1.0)


# --- the objective
# ---------------------------------------------------------------------------------------------------

@given(st.sampled_from([(1,), (7,), (2, 3), (4, 1, 2)]))
def test_the_objective_is_the_mean_of_the_loss(shape):
    g = f32(*shape)

    def body(a):
        w = flow.get_variable("w", (1,), initializer=ones)
        loss = w * a
        opt.SGD(constant_rate(1.0), momentum=0).minimize(loss)
        return loss

    np.testing.assert_allclose(run(body, g, type="train"), g)
    np.testing.assert_allclose(variable_values()["w"], 1 - g.mean(), rtol=1e-5, atol=1e-6)


def test_several_losses_are_summed_means():
    a, b = f32(5), f32(5, seed=1)

    def body(p, q):
        w = flow.get_variable("w", (1,), initializer=ones)
        opt.SGD(constant_rate(1.0), momentum=0).minimize([w * p, w * q])
        return p

    run(body, a, b, type="train")
    np.testing.assert_allclose(variable_values()["w"], 1 - a.mean() - b.mean(), rtol=1e-5)
    with refused(RuntimeError, "different shapes"):
        run(body, a, f32(4), type="train")


def test_the_second_minimize_replaces_the_first():
    def body(a):
        w = flow.get_variable("w", (1,), initializer=ones)
        v = flow.get_variable("v", (1,), initializer=ones)
        opt.SGD(constant_rate(1.0)).minimize(w * a)
        opt.SGD(constant_rate(0.5), momentum=0).minimize(v * a)
        return a

    run(body, one, type="train")
    assert ((variable_values()["w"], variable_values()["v"]) == (1.0, 0.5)
            and "w-momentum" not in variable_values())


def test_only_variables_that_exist_are_trained():
    def body(a):
        w = flow.get_variable("w", (1,), initializer=ones)
        f = flow.get_variable("fixed", (1,), initializer=ones, trainable=False)
        loss = w * a * f
        opt.SGD(constant_rate(0.5), momentum=0).minimize(loss)
        return flow.get_variable("late", (1,), initializer=ones) * loss

    run(body, one, type="train")
    assert [variable_values()[n][0] for n in ("w", "fixed", "late")] == [0.5, 1, 1]


@pytest.mark.parametrize("chosen", [["b"], lambda: ["b"], ("b",)])
def test_variables_can_be_chosen(chosen):
    def body(t):
        a, b = (flow.get_variable(n, (1,), initializer=ones) for n in "ab")
        opt.SGD(constant_rate(0.5), momentum=0, variables=chosen).minimize(a * b * t)
        return t

    run(body, one, type="train")
    assert (variable_values()["a"], variable_values()["b"]) == (1.0, 0.5)


def test_unknown_variables_are_refused():
    def body(t):
        w = flow.get_variable("w", (1,), initializer=ones)
        opt.SGD(constant_rate(0.5), variables=["w", "nope"]).minimize(w * t)
        return t

    with refused(AssertionError, "nope", "'w'"):
        run(body, one, type="train")


def test_fetched_values_are_from_before_the_update():
    seen = []

    def body(a):
        w = flow.get_variable("w", (1,), initializer=ones)
        flow.watch(w, lambda t: seen.append(float(t[0])))
        loss = w * a
        opt.SGD(constant_rate(0.25), momentum=0).minimize(loss)
        return loss, w, flow.reshape(w, [1, 1]), w * 2, flow.identity(w)

    step = job(body, one, type="train", returns=tp.Bundle[tp.Numpy])
    for want in (1.0, 0.75, 0.5):
        assert [float(v.sum()) for v in step(one)] == [want, want, want, 2 * want, want]
    assert seen == [1.0, 0.75, 0.5]


def test_two_train_jobs_share_variables_and_slots_but_not_steps():
    def body(a):
        w = flow.get_variable("w", (1,), initializer=ones)
        opt.SGD(constant_rate(0.1)).minimize(w * a)
        return w

    p, q = job(body, one, type="train", name="p"), job(body, one, type="train", name="q")
    np.testing.assert_allclose([p(one), q(one), p(one)], [[1], [.9], [.71]], rtol=1e-6)
    v = variable_values()
    assert (v["System-Train-TrainStep-p"], v["System-Train-TrainStep-q"]) == (2, 1)
    assert v["System-Train-TrainStep-p"].dtype == np.int64 and v["System-Train-TrainStep-p"].shape == (1,)
    np.testing.assert_allclose(v["w-momentum"], [-0.271], rtol=1e-6)


def test_a_predict_job_uses_the_trained_variables():
    def train_body(a):
        opt.SGD(constant_rate(0.5), momentum=0).minimize(flow.get_variable("w", (1,), initializer=ones) * a)
        return a

    train, look = job(train_body, one, type="train",
                      name="t"), job(lambda a: a * flow.get_variable("w", (1,)), one,
                                     name="p")
    train(one)
    assert look(one) == 0.5


# --- jobs that cannot be trained
# -------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind, body, words", [
    ("train", lambda a: a, ["loss blob not found", "minimize"]),
    ("predict", lambda a: opt.SGD(constant_rate(0.1)).minimize(flow.layers.dense(a, 2)),
     ["minimize in a predict job", '"train"']),
    ("train", lambda a: opt.SGD(constant_rate(0.1)).minimize(a),
     ["does not depend on any trainable variable"]),
    ("train", lambda a: opt.SGD(constant_rate(0.1)).minimize(flow.layers.dense(a, 2, trainable=False)),
     ["trainable"]),
    ("train", lambda a: opt.SGD(constant_rate(0.1)).minimize(flow.math.argmax(flow.layers.dense(a, 2))),
     ["floating point"])])
def test_jobs_that_cannot_train_are_refused(kind, body, words):
    with refused(flow.JobBuildAndInferError, *words, at=False):
        run(lambda a: (body(a), a)[1], f32(2, 3), type=kind)


def test_minimize_takes_blobs_inside_jobs():
    with refused(NotImplementedError, "not inside a job"):
        opt.SGD(constant_rate(0.1)).minimize(None)
    with refused(AssertionError, "the loss is not a blob"):
        run(lambda a: opt.SGD(constant_rate(0.1)).minimize(3.0), one, type="train", returns=None)


# --- regularizers and clipping
# ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("regularizer, extra", [(flow.regularizers.l2(0.1), 0.2),
                                                (flow.regularizers.l1(0.1), 0.1),
                                                (flow.regularizers.l1_l2(0.1, 0.1), 0.3)])
def test_regularizers_change_the_gradient_but_not_the_loss(regularizer, extra):
    losses = []

    def body(a):
        w = flow.get_variable("w", (2,), initializer=constant([2, -2]), regularizer=regularizer)
        loss = w * a
        opt.SGD(constant_rate(1.0), momentum=0).minimize(loss)
        return loss

    a = np.array([1, 3], np.float32)
    losses = run(body, a, type="train")
    np.testing.assert_array_equal(losses, [2, -6])
    np.testing.assert_allclose(variable_values()["w"], [2 - 0.5 - extra, -2 - 1.5 + extra], rtol=1e-6)


def test_the_sign_of_zero_is_zero():
    assert weights_after_steps(opt.SGD(constant_rate(1.0), momentum=0), 1, slope=0.0, start=0.0,
                               regularizer=flow.regularizers.l1(0.5)) == [0]


def test_layers_pass_their_regularizers_on():
    def body(a):
        y = flow.layers.dense(a, 1, kernel_initializer=ones, bias_initializer=ones,
                              kernel_regularizer=flow.regularizers.l2(0.5),
                              bias_regularizer=flow.regularizers.l1(0.25), name="d")
        opt.SGD(constant_rate(1.0), momentum=0).minimize(y * 0.0)
        return y

    run(body, f32(2, 3), type="train")
    np.testing.assert_allclose(variable_values()["d-weight"], np.full((1, 3), 0.5))
    np.testing.assert_allclose(variable_values()["d-bias"], [0.75])


@pytest.mark.parametrize("clip, factor", [(1.0, 1 / 5), (2.5, 2.5 / 5), (5.0, 1.0), (100.0, 1.0)])
def test_clipping_by_global_norm(clip, factor):
    """Two variables with gradients 3 and 4 have a global norm of 5."""
    def body(a):
        p, q = (flow.get_variable(n, (1,), initializer=ones) for n in "pq")
        rule = opt.grad_clipping.by_global_norm(clip)
        opt.SGD(constant_rate(1.0), momentum=0, grad_clipping=rule).minimize(p * 3 * a + q * 4 * a)
        return a

    run(body, one, type="train")
    np.testing.assert_allclose([variable_values()["p"][0], variable_values()["q"][0]],
                               [1 - 3 * factor, 1 - 4 * factor], rtol=1e-5, atol=1e-6)


def test_clipping_sees_the_mean_gradient_with_the_regularizers():
    """The loss has 4 elements of slope 3, so the mean gradient is 3; l2 adds 1 * w = 1; norm 4 is clipped to
    1.
    """
    def body(a):
        w = flow.get_variable("w", (1,), initializer=ones, regularizer=flow.regularizers.l2(1.0))
        opt.SGD(constant_rate(0.5), momentum=0,
                grad_clipping=opt.grad_clipping.by_global_norm(1.0)).minimize(w * a)
        return a

    run(body, np.full(4, 3, np.float32), type="train")
    np.testing.assert_allclose(variable_values()["w"], [0.5], rtol=1e-6)


def test_clipping_leaves_zero_gradients_alone_and_takes_mixed_types():
    def body(a):
        w = flow.get_variable("w", (1,), initializer=ones)
        v = flow.get_variable("v", (1,), flow.double, initializer=ones)
        loss = w * a + flow.cast(v, flow.float) * a
        opt.SGD(constant_rate(1.0), momentum=0,
                grad_clipping=opt.grad_clipping.by_global_norm(1.0)).minimize(loss)
        return a

    run(body, one * 0, type="train")
    assert variable_values()["w"] == 1 and variable_values()["v"] == 1
    run(body, one, type="train")
    np.testing.assert_allclose([variable_values()["w"][0], variable_values()["v"][0]],
                               [1 - math.sqrt(0.5)] * 2, rtol=1e-5)
    with refused(ValueError, "clip_norm"):
        opt.grad_clipping.by_global_norm(0)


# --- law: jobs and eager tensors train alike
# -------------------------------------------------------------------------

def compute_mlp_loss(images, labels):
    init = flow.random_normal_initializer(stddev=0.3)
    h = flow.layers.dense(images, 16, flow.nn.relu, kernel_initializer=init, bias_initializer=init,
                          name="hidden")
    h = flow.layers.dense(h, 8, flow.math.tanh, kernel_initializer=init, name="middle")
    logits = flow.layers.dense(h, 3, kernel_initializer=init, name="out")
    return flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def convnet(images, labels):
    init = flow.random_normal_initializer(stddev=0.2)
    x = flow.reshape(images, [images.shape[0], 1, 6, 6])
    x = flow.layers.conv2d(x, 4, 3, padding="SAME", use_bias=False, kernel_initializer=init, name="conv1")
    x = flow.layers.batch_normalization_relu(x, axis=1, name="bn1")
    x = flow.nn.max_pool2d(x, 2, 2, "SAME")
    x = flow.layers.conv2d(x, 4, 3, padding="VALID", use_bias=False, kernel_initializer=init, name="conv2")
    x = flow.nn.relu(flow.layers.batch_normalization(x, 1, name="bn2"))
    logits = flow.layers.dense(flow.reshape(x, [x.shape[0], -1]), 3, kernel_initializer=init, name="out")
    return flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def batches(dtype=np.float32, steps=20, size=8, features=36):
    rng = np.random.default_rng(5)
    centres = 2 * rng.standard_normal((3, features))
    for _ in range(steps):
        labels = rng.integers(0, 3, size).astype(np.int32)
        yield (centres[labels] + rng.standard_normal((size, features))).astype(dtype), labels


class SGD:
    def __init__(self, rate, momentum):
        self.rate, self.momentum, self.m = rate, momentum, {}

    def __call__(self, name, w, g, t):
        m = self.m[name] = self.momentum * self.m.get(name, 0) - self.rate * g
        return w + m

    def make(self):
        return opt.SGD(constant_rate(self.rate), momentum=self.momentum)


class Adam:
    def __init__(self, rate, correct, epsilon=1e-8):
        self.rate = rate
        self.correct = correct
        self.epsilon = epsilon
        self.m = {}
        self.v = {}

    def __call__(self, name, w, g, t):
        m = self.m[name] = 0.9 * self.m.get(name, 0) + 0.1 * g
        v = self.v[name] = 0.999 * self.v.get(name, 0) + 0.001 * g * g
        rate = self.rate * math.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t) if self.correct else self.rate
        return w - rate * m / (np.sqrt(v) + self.epsilon)

    def make(self):
        return opt.Adam(constant_rate(self.rate), epsilon=self.epsilon, do_bias_correction=self.correct)


RULES = {"sgd": lambda: SGD(0.1, 0.0), "momentum": lambda: SGD(0.02, 0.9), "adam": lambda: Adam(0.002, False),
         "adam_corrected": lambda: Adam(0.01, True)}


def train_by_job(model, rule, dtype=np.float32):
    """Return (losses, variables before, variables after) for 20 steps."""
    def body(images, labels):
        loss = model(images, labels)
        rule.make().minimize(loss)
        return loss

    flow.random.seed(3)
    step = job(body, *next(batches(dtype)), type="train")
    before = variable_values()
    losses = [step(*batch) for batch in batches(dtype)]
    return np.stack(losses), before, variable_values()


def train_eagerly(model, rule):
    """Train with tensors and `backward`, with the update written out in NumPy."""
    flow.random.seed(3)                         # same names, hence same initial values
    store, losses = flow.core.layers.context.EAGER.variables, []
    for t, (images, labels) in enumerate(batches(), 1):
        loss = model(flow.tensor(images), flow.tensor(labels))
        loss.mean().backward()
        for name, w in store.items():
            if w.requires_grad:
                w.numpy()[...] = rule(name, w.numpy(), w.grad.numpy(), t)
                w.grad = None
        losses.append(loss.numpy())
    return np.stack(losses), {n: w.numpy() for n, w in store.items()}


def assert_near(a, b, tolerance):
    assert np.abs(a - b).max() <= tolerance * max(np.abs(b).max(), 1e-3), (np.abs(a - b).max(),
                                                                           np.abs(b).max())


@pytest.mark.parametrize("model", [compute_mlp_loss, convnet])
@pytest.mark.parametrize("rule", RULES)
def test_a_job_trains_as_eager_tensors_do(model, rule):
    losses, before, after = train_by_job(model, RULES[rule]())
    want, params = train_eagerly(model, RULES[rule]())
    assert_learned(losses.mean(1), 3)
    assert_near(losses, want, 1e-5)
    names = [n for n in after if not n.startswith("System-") and not n.endswith(("-momentum", "-m", "-v"))]
    assert sorted(names) == sorted(params)
    for name in names:
        assert (before[name] != after[name]).any(), f"{name} was not trained"
        assert_near(after[name], params[name], 1e-5)


@pytest.mark.parametrize("model", [compute_mlp_loss, convnet])
def test_passes_do_not_change_training(model):
    rule = RULES["momentum"]
    want = train_by_job(model, rule())[0]
    for off in (["fuse"], ["inplace", "reuse"], ["simplify", "cse", "dead", "fuse", "inplace", "reuse"]):
        flow.clear_default_session()
        config = flow.function_config()
        config.without_passes(*off)

        def body(images, labels):
            loss = model(images, labels)
            rule().make().minimize(loss)
            return loss

        flow.random.seed(3)
        step = job(body, *next(batches()), type="train", config=config)
        assert_near(np.stack([step(*b) for b in batches()]), want, 1e-5)


@pytest.mark.peer
@pytest.mark.parametrize("model", [compute_mlp_loss, convnet])
@pytest.mark.parametrize("rule, dtype, tolerance", [
    ("sgd", np.float32, 1e-4), ("momentum", np.float32, 1e-4), ("momentum", np.float64, 1e-11),
    ("adam", np.float64, 1e-9)])
def test_a_job_trains_as_pytorch_does(model, rule, dtype, tolerance):
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    # PyTorch adds Adam's epsilon in another place, so it is chosen too small to matter. Rates are kept in
    # float32.
    ours = Adam(0.01, True, 1e-25) if rule == "adam" else RULES[rule]()
    rate = float(np.float32(ours.rate))
    losses, before, after = train_by_job(model, ours, dtype)
    p = {n: torch.tensor(v, requires_grad=True) for n, v in before.items() if v.dtype == dtype
         and "moving" not in n
         and not n.endswith(("-momentum", "-m", "-v"))}
    moving = {n: torch.tensor(v) for n, v in before.items() if "moving" in n}

    def norm(x, name):
        return F.batch_norm(x, moving[f"{name}-moving_mean"], moving[f"{name}-moving_variance"],
                            p[f"{name}-gamma"], p[f"{name}-beta"], True, 0.01, 1e-3)

    def torch_mlp(x):
        h = torch.relu(F.linear(x, p["hidden-weight"], p["hidden-bias"]))
        h = torch.tanh(F.linear(h, p["middle-weight"], p["middle-bias"]))
        return F.linear(h, p["out-weight"], p["out-bias"])

    def torch_convnet(x):
        x = F.conv2d(x.reshape(-1, 1, 6, 6), p["conv1-weight"], padding=1)
        x = F.max_pool2d(torch.relu(norm(x, "bn1")), 2)
        x = torch.relu(norm(F.conv2d(x, p["conv2-weight"]), "bn2"))
        return F.linear(x.flatten(1), p["out-weight"], p["out-bias"])

    params = list(p.values())
    theirs = torch.optim.Adam(params, lr=rate, eps=1e-25) if rule == "adam" else \
        torch.optim.SGD(params, lr=rate, momentum=ours.momentum)
    for (images, labels), got in zip(batches(dtype), losses):
        logits = (torch_mlp if model is compute_mlp_loss else torch_convnet)(torch.tensor(images))
        loss = F.cross_entropy(logits, torch.tensor(labels).long(), reduction="none")
        assert_near(got, loss.detach().numpy(), tolerance)
        theirs.zero_grad()
        loss.mean().backward()
        theirs.step()
    for name in p:
        assert_near(after[name], p[name].detach().numpy(), tolerance)
    for name in moving:
        if name.endswith("mean"):  # PyTorch's running variance is the unbiased one
            assert_near(after[name], moving[name].numpy(), 10 * tolerance)


def test_a_train_job_returns_typed_results():
    @flow.global_function("train")
    def step(a: tp.Numpy.Placeholder((4, 3))) -> tuple[tp.Numpy, tp.Numpy]:
        y = flow.layers.dense(a, 2, kernel_initializer=ones)
        loss = flow.math.reduce_mean(y)
        opt.Adam(constant_rate(0.1)).minimize(loss)
        return loss, y

    loss, y = step(f32(4, 3))
    assert loss.shape == (1,) and y.shape == (4, 2)
    assert {"Dense-weight-m", "Dense-weight-v", "Dense-bias-m", "Dense-bias-v"} <= set(variable_values())
