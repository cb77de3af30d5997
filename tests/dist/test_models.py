"""Law: LeNet, MobileNetV2 and a GPT have the losses of one device under every plan, over 20 steps."""
import numpy as np
import pytest

import flowedu as flow

from .plans import MODELS, PLANS, spread

STEPS = 20


def train(model, loss_of, x, y, steps=STEPS):
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
    return request.param, train(make(), loss_of, flow.tensor(x), flow.tensor(y))


@pytest.mark.parametrize("plan", PLANS)
def test_eager(world, one_device, plan):
    world(4)
    name, want = one_device
    make, loss_of, x, y = MODELS[name]
    ranks, sbp, inputs = PLANS[plan]
    flow.manual_seed(0)
    model = make()
    placement = spread(model, ranks, sbp)
    place = {"placement": placement, "sbp": inputs}
    got = train(model, loss_of, flow.tensor(x, **place), flow.tensor(y, **place))
    assert want[-1] < want[0]
    np.testing.assert_allclose(got, want, rtol=1e-6)
