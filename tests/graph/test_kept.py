"""A predicting graph caches packed weights; after any write to a weight, the next call uses the new value."""
from __future__ import annotations

import ctypes

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.errors import KernelError
from graph.making import make_graph as graph_of


def net(kind: str) -> nn.Module:
    flow.manual_seed(0)
    layers = {"tiles": [nn.Conv2d(20, 40, 3, stride=2)], "winograd": [nn.Conv2d(32, 32, 3, padding=1)],
              "blocks": [nn.Conv2d(16, 48, 1, bias=False), nn.BatchNorm2d(48), nn.ReLU6(),
                         nn.Conv2d(48, 48, 3, padding=1, groups=48, bias=False), nn.BatchNorm2d(48)]}[kind]
    return nn.Sequential(*layers).eval()


SHAPES = {"tiles": (1, 20, 9, 9), "winograd": (8, 32, 18, 18), "blocks": (2, 16, 14, 14)}


def predictor(model):
    return graph_of(lambda self, x: self.model(x), model=model)


def by_copy(w):
    with flow.no_grad():
        w.copy_(w * 2)


def by_item(w):
    with flow.no_grad():
        w[0] = 3.0


def by_data(w):
    w.data.mul_(2)


def by_other_memory(w):
    w.data = w.detach() * 2


def by_step(w):
    w.grad = flow.ones_like(w)
    flow.optim.SGD([w], lr=0.5).step()
    w.grad = None


def by_numpy(w):
    w.detach().numpy()[0] += 1


def by_view(w):
    w.detach().reshape(-1)[0:9].add_(1)


def by_address(w):
    ctypes.cast(w.data_ptr(), ctypes.POINTER(ctypes.c_float))[0] += 5


def by_dlpack(w):
    np.from_dlpack(w.detach())                           # reads without writing
    flow.from_dlpack(w.detach()).add_(1)


def by_init(w):
    nn.init.constant_(w, 0.25)


WAYS = [by_copy, by_item, by_data, by_other_memory, by_step, by_numpy, by_view, by_address, by_dlpack,
        by_init]


def fresh(model, x):
    return predictor(model)(x).numpy()


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("way", WAYS, ids=lambda f: f.__name__)
def test_every_write_of_a_weight_is_detected(way, kind):
    model, x = (net(kind),
                flow.tensor(np.random.default_rng(0).standard_normal(SHAPES[kind]).astype(np.float32)))
    graph = predictor(model)
    before = [graph(x).numpy().copy() for _ in range(3)]
    np.testing.assert_array_equal(before[0], before[2])
    for _ in range(2):
        way(model[0].weight)
        got = [graph(x).numpy().copy() for _ in range(2)]
        want = fresh(model, x)
        assert (want != before[0]).any()
        for y in got:
            np.testing.assert_array_equal(y, want)


def test_an_array_that_stays_alive_may_write_at_any_time():
    model, x = net("blocks"), flow.ones(2, 16, 14, 14)
    graph, alive = predictor(model), model[0].weight.detach().numpy()
    for _ in range(3):
        alive[:, 1] += 1
        np.testing.assert_array_equal(graph(x).numpy(), fresh(model, x))


def test_weights_that_share_memory_with_an_array_follow_it():
    model, x = net("tiles"), flow.ones(1, 20, 9, 9)
    there = np.zeros((40, 20, 3, 3), np.float32)
    model[0].weight = nn.Parameter(flow.from_numpy(there))
    graph = predictor(model)
    graph(x), graph(x)
    there += 1
    np.testing.assert_array_equal(graph(x).numpy(), fresh(model, x))


@pytest.mark.parametrize("name", ["weight", "bias", "running_mean", "running_var"])
def test_writes_of_batch_norm_statistics_are_detected(name):
    model, x = net("blocks"), flow.ones(2, 16, 14, 14)
    graph = predictor(model)
    graph(x), graph(x)
    with flow.no_grad():
        getattr(model[1], name).add_(0.5)
    np.testing.assert_array_equal(graph(x).numpy(), fresh(model, x))


def test_a_training_step_between_two_predictions_is_detected():
    model, x = net("tiles"), flow.ones(1, 20, 9, 9)

    def step(self, x):
        loss = self.model(x).pow(2).sum()
        loss.backward()
        return loss

    train = graph_of(step, flow.optim.SGD(model.parameters(), lr=0.1), model=model)
    predict = predictor(model)
    for _ in range(3):
        predict(x), predict(x)
        train(x)
        np.testing.assert_array_equal(predict(x).numpy(), fresh(model, x))
    assert not train._compiled.graph.kept                # training caches no packed weights


def test_threads_may_change_between_calls():
    model, x = net("blocks"), flow.ones(2, 16, 14, 14)
    graph, before = predictor(model), flow.get_num_threads()
    try:
        for n in (1, 2, 3, 2):
            flow.set_num_threads(n)
            for _ in range(2):
                np.testing.assert_allclose(graph(x).numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-4)
    finally:
        flow.set_num_threads(before)


def test_a_failed_run_packs_again():
    """Partially packed weights of a run that failed are not reused."""
    class Lookup(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.conv = nn.Embedding(4, 20 * 81), nn.Conv2d(20, 40, 3)

        def forward(self, i):
            return self.conv(self.table(i).reshape(1, 20, 9, 9))

    model = Lookup().eval()
    graph = predictor(model)
    with pytest.raises(KernelError):
        graph(flow.tensor([7]))
    np.testing.assert_array_equal(graph(flow.tensor([2])).numpy(), fresh(model, flow.tensor([2])))


def test_a_loaded_graph_detects_writes_of_its_variables(tmp_path):
    model, x = net("blocks"), flow.ones(2, 16, 14, 14)
    graph = predictor(model)
    graph(x)
    flow.save(graph, tmp_path / "saved")
    loaded = flow.load_graph(tmp_path / "saved")
    for _ in range(3):
        np.testing.assert_array_equal(loaded(x).numpy(), graph(x).numpy())
        with flow.no_grad():
            model[0].weight.add_(0.5)
        loaded.variables["model.0.weight"].copy_(model[0].weight.detach())


@pytest.mark.parametrize("half", [flow.float16, flow.bfloat16], ids=repr)
@pytest.mark.parametrize("kind", SHAPES)
def test_16_bit_weights_are_never_stale(kind, half):
    """They are widened slice by slice into memory that the slices share."""
    model = net(kind).to(half)
    x = flow.tensor(np.random.default_rng(0).standard_normal(SHAPES[kind]).astype(np.float32)).to(half)
    graph = predictor(model)
    first, second = graph(x).float().numpy().copy(), graph(x).float().numpy()
    np.testing.assert_array_equal(first, second)
    with flow.no_grad():
        model[0].weight.mul_(2)
    np.testing.assert_array_equal(graph(x).float().numpy(), predictor(model)(x).float().numpy())
