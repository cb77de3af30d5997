"""Steps of an nn.Graph and eager steps of global tensors, by one optimizer, in turns: as eager steps on one device."""
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


def made(place=None):
    flow.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    if place:
        model.to_global(place, B)
    optimizer = flow.optim.Adam(model.parameters(), lr=0.05)
    return model, optimizer, ExponentialLR(optimizer, 0.8)


def eagerly(model, optimizer, schedule, x, y):
    ((model(x) - y) ** 2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    schedule.step()


@pytest.mark.parametrize("order", ["egege", "ggeeg"])
def test_in_turns(order):
    place = flow.placement("cpu", [0, 1])
    one, want = made(place), made()
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
        eagerly(*one, x, y) if mode == "e" else g(x, y)
        eagerly(*want, flow.tensor(X), flow.tensor(Y))
    for a, b in zip(one[0].parameters(), want[0].parameters()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)
    assert one[1].state_dict()["state"]["step"] == 5 == one[2].last_step
    for a, b in zip(one[1].state.values(), want[1].state.values()):
        for k in b:
            np.testing.assert_allclose(a[k].numpy(), b[k].numpy(), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("stage", [1, 2])
def test_loaded_into_new_objects_after_zero(stage):
    """ZeRO splits what the optimizer remembers; what is saved is whole, and goes into any layout."""
    place = flow.placement("cpu", [0, 1])
    one, want = made(place), made()
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
        eagerly(*want, flow.tensor(X), flow.tensor(Y))
    new = made(place)
    for part, old in zip(new, one):
        part.load_state_dict(old.state_dict())
    for state in new[1].state.values():
        assert all(t.is_global for t in state.values())
    h = train(new)
    for _ in range(2):
        h(x, y)
        eagerly(*want, flow.tensor(X), flow.tensor(Y))
    for a, b in zip(new[0].parameters(), want[0].parameters()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)
