"""Mixed precision is the same in every mode: tensors in autocast, an nn.Graph with enable_amp, and jobs with
enable_auto_mixed_precision, compiled and eager, give the same bits, including the weights. A value with
several readers is cast once.
"""
from collections import Counter

import numpy as np
import pytest

import flowedu as flow
import flowedu.nn.functional as F
import flowedu.typing as tp
from common import constant, constant_rate, fresh_session, refused  # noqa: F401
from flowedu import amp, nn
from flowedu.core.ops.define import REGISTRY

HALVES = (flow.float16, flow.bfloat16)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 8, 3, 6, 6)).astype("f4")                   # 4 batches of 8, so that means are exact
LABELS = RNG.integers(0, 4, (4, 8)).astype("i4")
START = {"k": RNG.normal(size=(4, 3, 3, 3)) * 0.3, "kb": np.linspace(-1, 1, 4), "w": RNG.normal(size=(4, 4)),
         "b": np.linspace(1, -1, 4)}
RATE = 2.0 ** -4


def compute_network(conv, x, k, kb, w, b):
    """Compute with `w` read twice, and the result of the first product read twice."""
    y = flow.math.relu(flow.nn.bias_add(conv(x, k), kb, "NCHW"))
    y = flow.math.reduce_mean(y, axis=[2, 3])
    y = flow.matmul(y, w)
    y = flow.math.tanh(y) + y
    return flow.nn.bias_add(flow.matmul(y, w), b)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        for name, a in START.items():
            setattr(self, name, nn.Parameter(flow.tensor(a.astype("f4"))))

    def forward(self, x):
        y = F.relu(F.conv2d(x, self.k, self.kb)).mean((2, 3))
        y = y @ self.w
        y = F.tanh(y) + y
        return REGISTRY["bias_add"](y @ self.w, self.b, axis=1)


def with_tensors(half):
    net = ConvNet()
    optimizer, losses = flow.optim.SGD(net.parameters(), lr=RATE), []
    for x, labels in zip(X, LABELS):
        with amp.autocast("cpu", dtype=half):
            loss = F.cross_entropy(net(flow.tensor(x)), flow.tensor(labels))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, [p.detach().numpy() for p in net.parameters()]


class Step(nn.Graph):
    def __init__(self, half):
        super().__init__()
        self.net = ConvNet()
        self.add_optimizer(flow.optim.SGD(self.net.parameters(), lr=RATE))
        self.config.enable_amp(True, dtype=half)

    def build(self, x, labels):
        loss = F.cross_entropy(self.net(x), labels)
        loss.backward()
        return loss


def with_a_graph(half):
    step = Step(half)
    losses = [step(flow.tensor(x), flow.tensor(labels)).item() for x, labels in zip(X, LABELS)]
    return losses, [p.detach().numpy() for p in step.net.parameters()]


def a_job(half, eager=False, config=None, **options):
    flow.clear_default_session()
    flow.enable_eager_execution(eager)
    config = config or flow.function_config()
    config.enable_auto_mixed_precision(True)
    config.auto_mixed_precision_data_type(half)

    @flow.global_function("train", config)
    def train(x: tp.Numpy.Placeholder(X.shape[1:]),
              labels: tp.Numpy.Placeholder((8,), flow.int32)) -> tp.Numpy:
        own = {n: flow.get_variable(n, a.shape, initializer=constant(a)) for n, a in START.items()}
        y = compute_network(lambda x, k: flow.nn.conv2d(x, k, strides=1, padding="VALID"), x, **own)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, y)
        flow.optimizer.SGD(constant_rate(RATE), momentum=0, **options).minimize(loss)
        return loss

    return train


def with_a_job(half, eager=False, **options):
    train = a_job(half, eager, **options)
    losses = [train(x, labels).astype("f8").mean().item() for x, labels in zip(X, LABELS)]
    return losses, [flow.get_all_variables()[n].numpy() for n in START]


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_every_mode_gives_the_same_bits(half):
    losses, weights = with_tensors(half)
    for other in (with_a_graph(half), with_a_job(half), with_a_job(half, eager=True)):
        np.testing.assert_allclose(other[0], losses, rtol=1e-6)         # a mean is summed in another order
        for a, b in zip(other[1], weights, strict=True):
            assert a.dtype == np.float32
            np.testing.assert_array_equal(a, b)


def casts(plan) -> Counter:
    """Return the number of computed casts of each variable in a plan."""
    return Counter(x.name.rpartition(".")[2] for n in plan.graph.nodes for x in n.inputs
                   if n.op.name == "cast" and x.kind == "variable")


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("without", ["", "cse"])
def test_a_value_with_several_readers_is_cast_once(half, without):
    """Casts of parameters are shared while the graph is built, all others by the pass cse."""
    step, config = Step(half), flow.function_config()
    if without:
        step.config.disable_pass(without)
        config.without_passes(without)
    step(flow.tensor(X[0]), flow.tensor(LABELS[0]))
    train = a_job(half, config=config)
    train(X[0], LABELS[0])
    for plan in (step._compiled.program.plan, train.program.only.program.plan):
        found = casts(plan)
        assert found["w"] == 1, found
        if without:
            continue
        nodes = [n for n in plan.graph.nodes if n.op.name == "cast"]
        assert len({(n.inputs, n.attrs) for n in nodes}) == len(nodes)


def test_a_job_without_the_setting_computes_in_float32():
    config = flow.function_config()
    config.enable_auto_mixed_precision(False)
    seen = []

    @flow.global_function("predict", config)
    def plain(x: tp.Numpy.Placeholder((3, 3))) -> tp.Numpy:
        seen.append(flow.matmul(x, x).dtype)
        return x

    plain(np.eye(3, dtype="f4"))
    assert seen == [flow.float32]


@pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])
@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_jobs_return_16_bits_or_float32_where_numpy_has_no_such_dtype(half, eager):
    flow.clear_default_session()
    flow.enable_eager_execution(eager)
    config, seen = flow.function_config(), []
    config.enable_auto_mixed_precision(True)
    config.auto_mixed_precision_data_type(half)

    @flow.global_function("train", config)
    def train(x: tp.Numpy.Placeholder((3, 3))) -> tp.Numpy:
        y = flow.matmul(x, flow.get_variable("w", (3, 3), initializer=constant(0.1)))
        flow.watch(y, seen.append)
        flow.watch_diff(y, seen.append)
        flow.optimizer.SGD(constant_rate(0.1), momentum=0).minimize(flow.cast(y, flow.float32))
        return y

    x = np.random.default_rng(0).normal(size=(3, 3)).astype("f4")
    got, narrow = train(x), flow.tensor(x).to(half)
    want = (narrow @ flow.full((3, 3), 0.1).to(half)).float().numpy()
    for a, b in ((got, want), (seen[0].numpy(), want), (seen[1].numpy(), np.ones((3, 3)))):
        assert a.dtype == (np.float16 if half is flow.float16 else np.float32)
        np.testing.assert_array_equal(a.astype("f4"), b)


@pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])
def test_a_gradient_beyond_float16_is_an_overflow_of_a_dynamic_scale(eager):
    """The step is skipped and the scale halved; the gradient fits in float32."""
    policy = flow.optimizer.loss_scale.dynamic_loss_scale(2.0 ** 30)
    _, weights = with_a_job(flow.float16, eager, loss_scale_policy=policy)
    big = [v for n, v in flow.get_all_variables().items() if n.endswith("LossScale")]
    assert [v.numpy().item() for v in big] == [2.0 ** 26]
    for a, b in zip(weights, START.values()):
        np.testing.assert_array_equal(a, b.astype("f4"))
    _, weights = with_a_job(flow.bfloat16, eager, loss_scale_policy=policy)
    assert all((a != b.astype("f4")).any() for a, b in zip(weights, START.values()))


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("scale", ["static", "dynamic"])
def test_a_power_of_two_scale_changes_no_bit(half, scale):
    """Holds as long as no value overflows or underflows."""
    policy = getattr(flow.optimizer.loss_scale, f"{scale}_loss_scale")(2.0 ** 4)
    for a, b in zip(with_a_job(half, loss_scale_policy=policy)[1], with_a_job(half)[1]):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_a_checkpoint_holds_variables_of_16_bits(half, tmp_path):
    """The checkpoint includes float32 master weights, so training continues unchanged."""
    def job(path=None):
        flow.clear_default_session()
        config = flow.function_config()
        if path is not None:
            config.default_initialize_with_snapshot_path(path)

        @flow.global_function("train", config)
        def train(x: tp.Numpy.Placeholder((4, 3))) -> tp.Numpy:
            w = flow.get_variable("w", (3, 3), half, constant(0.3))
            loss = flow.cast(flow.matmul(flow.cast(x, half), w), flow.float32)
            flow.optimizer.Adam(constant_rate(0.01), master_weights=True).minimize(loss * loss)
            return loss
        return train

    def variables():
        return {n: v.numpy() for n, v in flow.get_all_variables().items()}

    x, path = X[0, :4, 0, 0, :3], str(tmp_path / "half")
    train = job()
    train(x), train(x)
    flow.checkpoint.save(path)
    kept = variables()
    train(x)
    whole = variables()
    job(path)(x)
    again = variables()
    job()(x)
    flow.load_variables(flow.checkpoint.get(path))
    loaded = variables()
    assert ({*kept} >= {"w", "w-master", "w-m", "w-v"}
            and kept["w"].dtype == (np.float16 if half is flow.float16 else "f4"))
    for name in kept:
        np.testing.assert_array_equal(again[name], whole[name])
        np.testing.assert_array_equal(loaded[name], kept[name])
