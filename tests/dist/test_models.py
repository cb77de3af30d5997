"""Law: LeNet, MobileNetV2, and a GPT have the losses of one device under every plan, over 20 steps."""
import numpy as np
import pytest

import flowedu as flow
from common import few

from .plans import MODELS, PLANS, spread

STEPS = 20


def train_model(model, loss_of, x, y, steps=STEPS):
    optimizer, losses = flow.optim.SGD(model.parameters(), lr=0.0005), []
    for _ in range(steps):
        loss = loss_of(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.fixture(scope="module", params=MODELS)
def one_device(request):
    make, loss_of, x, y = MODELS[request.param]
    flow.manual_seed(0)
    return request.param, train_model(make(), loss_of, flow.tensor(x), flow.tensor(y))


@pytest.mark.parametrize("plan", few(list(PLANS), lambda plan: plan == "hybrid"))
def test_models_train_with_global_tensors_as_on_one_device(world, one_device, plan):
    world(4)
    name, want = one_device
    make, loss_of, x, y = MODELS[name]
    ranks, sbp, inputs = PLANS[plan]
    flow.manual_seed(0)
    model = make()
    placement = spread(model, ranks, sbp)
    place = {"placement": placement, "sbp": inputs}
    got = train_model(model, loss_of, flow.tensor(x, **place), flow.tensor(y, **place))
    assert want[-1] < want[0]
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_batch_norm_of_a_split_batch_moves_two_numbers_per_channel_and_direction(world):
    """Data parallel: a step moves the gradients' all-reduce, and four vectors per norm, but no activation."""
    world(4)
    make, loss_of, x, y = MODELS["mobilenet"]
    model = make()
    place = {"placement": spread(model, [0, 1], PLANS["data"][1]), "sbp": PLANS["data"][2]}

    class Step(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

        def build(self, x, y):
            loss = loss_of(self.model, x, y)
            loss.backward()
            return loss

    graph = Step()
    graph(flow.tensor(x, **place), flow.tensor(y, **place))
    norms = sum(m.num_features for m in model.modules() if isinstance(m, flow.nn.BatchNorm2d))
    # 1 is the loss
    assert graph.bytes == 2 * 8 * (sum(p.numel() for p in model.parameters()) + 4 * norms + 1)
