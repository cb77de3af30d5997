"""Alternating graph steps and eager steps of global tensors with one optimizer equal eager steps on one
device. States saved in one layout are loaded into another.
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.core.sbp.ranks import current, set_virtual_devices
from flowedu.optim.lr_scheduler import ExponentialLR

B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((8, 4)).astype(np.float32), RNG.standard_normal((8, 2)).astype(np.float32)


@pytest.fixture(autouse=True)
def devices(world):
    world(1)
    if current().name == "mpi":
        if current().size < 2:
            pytest.skip("needs 2 ranks")
    else:
        set_virtual_devices(2)


def make_training_objects(place=None):
    flow.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    if place:
        model.to_global(place, B)
    optimizer = flow.optim.Adam(model.parameters(), lr=0.05)
    return model, optimizer, ExponentialLR(optimizer, 0.8)


def step_eagerly(model, optimizer, schedule, x, y):
    ((model(x) - y) ** 2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    schedule.step()


@pytest.mark.parametrize("order", ["egege", "ggeeg"])
def test_alternating_graph_and_eager_steps(order):
    place = flow.placement("cpu", [0, 1])
    one, want = make_training_objects(place), make_training_objects()
    x, y = (flow.tensor(a).to_global(place, S0) for a in (X, Y))

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = one[0]
            self.add_optimizer(one[1], lr_sch=one[2])

        def build(self, x, y):
            loss = ((self.model(x) - y) ** 2).mean()
            loss.backward()
            return loss

    g = Train()
    for mode in order:
        step_eagerly(*one, x, y) if mode == "e" else g(x, y)
        step_eagerly(*want, flow.tensor(X), flow.tensor(Y))
    for a, b in zip(one[0].parameters(), want[0].parameters()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)
    assert one[1].state_dict()["state"]["step"] == 5 == one[2].last_step
    for a, b in zip(one[1].state.values(), want[1].state.values()):
        for k in b:
            np.testing.assert_allclose(a[k].numpy(), b[k].numpy(), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("stage", [1, 2])
def test_zero_state_loaded_into_new_objects(stage):
    """ZeRO splits the optimizer state; a saved state is whole, and can be loaded into any layout."""
    place = flow.placement("cpu", [0, 1])
    one, want = make_training_objects(place), make_training_objects()
    x, y = (flow.tensor(a).to_global(place, S0) for a in (X, Y))

    def train(parts):
        class Train(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model = parts[0]
                self.add_optimizer(parts[1], lr_sch=parts[2])
                self.config.enable_zero(True, stage=stage, shard_min_size=1)

            def build(self, x, y):
                loss = ((self.model(x) - y) ** 2).mean()
                loss.backward()
                return loss
        return Train()

    g = train(one)
    for _ in range(2):
        g(x, y)
        step_eagerly(*want, flow.tensor(X), flow.tensor(Y))
    new = make_training_objects(place)
    for part, old in zip(new, one):
        part.load_state_dict(old.state_dict())
    for state in new[1].state.values():
        assert all(t.is_global for t in state.values())
    h = train(new)
    for _ in range(2):
        h(x, y)
        step_eagerly(*want, flow.tensor(X), flow.tensor(Y))
    for a, b in zip(new[0].parameters(), want[0].parameters()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)


ROW, GRID, LAST = (flow.placement("cpu", [0, 1]), flow.placement("cpu", [[0, 1], [2, 3]]),
                   flow.placement("cpu", [3]))
LAYOUTS = [(ROW, (S0,)), (ROW, (flow.sbp.broadcast,)), (GRID, (flow.sbp.broadcast, S0)),
           (LAST, (flow.sbp.broadcast,))]


class Trained(nn.Graph):
    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, x):
        loss = (self.model(x) ** 2).mean()
        loss.backward()
        return loss


def train_in_layout(layout):
    """Return (module, optimizer, its graph, an input) in a layout: `Module.to_global` twice, first
    broadcast.
    """
    flow.manual_seed(1)
    place, sbp = layout
    whole = [flow.sbp.broadcast] * len(sbp)
    model = nn.Sequential(nn.Linear(3, 8, bias=False), nn.BatchNorm1d(8),
                          nn.Linear(8, 4)).to_global(place, whole)
    assert model.to_global(place, lambda t: sbp if t.ndim else whole) is model
    assert all(p.placement == place and p.sbp == sbp for p in model.parameters())
    optimizer = flow.optim.Adam(model.parameters(), lr=0.1)
    return model, optimizer, Trained(model, optimizer), flow.tensor(X[:, :3], placement=place, sbp=whole)


@pytest.mark.parametrize("how", ["graph", "eager"])
@pytest.mark.parametrize("source, target", [(a, b) for a in LAYOUTS for b in LAYOUTS if a is not b])
def test_a_state_is_loaded_into_every_other_layout(world, tmp_path, how, source, target):
    """Saved in one layout and loaded into another, training continues unchanged."""
    world(4)
    model, optimizer, graph, x = train_in_layout(source)
    graph(x)
    state = (graph.state_dict() if how == "graph" else {"model": model.state_dict(),
                                                        "optimizer": optimizer.state_dict()})
    flow.save(state, tmp_path / "state", global_dst_rank=0)
    state = flow.load(tmp_path / "state", global_src_rank=0)
    model2, optimizer2, graph2, x2 = train_in_layout(target)
    if how == "graph":
        graph2.load_state_dict(state)
    else:
        model2.load_state_dict(state["model"])
        optimizer2.load_state_dict(state["optimizer"])
    for a, b in zip(model.state_dict().values(), model2.state_dict().values()):
        assert b.placement == target[0]
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    for _ in range(2):
        np.testing.assert_allclose(graph(x).numpy(), graph2(x2).numpy(), rtol=1e-5)
    for a, b in zip(model.parameters(), model2.parameters()):
        assert b.sbp == target[1]
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)


def test_a_module_becomes_local(world):
    world(4)
    model, _, _, x = train_in_layout(LAYOUTS[3])
    want = [p.numpy() for p in model.state_dict().values()]
    assert model.to_local() is model and all(p.is_local for p in model.state_dict().values())
    for p, q in zip(model.state_dict().values(), want):
        np.testing.assert_array_equal(p.numpy(), q)
