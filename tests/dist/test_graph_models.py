"""Law: in an nn.Graph, LeNet, MobileNetV2, and a GPT have the losses of one device over 20 steps: data,
model, and hybrid parallel, ZeRO 1 to 3. (Pipelines: test_graph_pipelines.py.)
"""
import numpy as np
import pytest

import flowedu as flow
from common import few
from flowedu import nn

from .plans import MODELS, PLANS, spread

STEPS = 20
ZERO = {f"zero {stage}": stage for stage in (1, 2, 3)}


class TrainingGraph(nn.Graph):
    def __init__(self, model, loss_of, stage=0, micro=1):
        super().__init__()
        self.model, self.loss_of = model, loss_of
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.0005, momentum=0.9))
        self.config.set_gradient_accumulation_steps(micro)
        if stage:
            self.config.enable_zero(True, stage=stage, shard_min_size=64)

    def build(self, x, y):
        loss = self.loss_of(self.model, x, y)
        loss.backward()
        return loss


def losses(graph, x, y, steps=STEPS):
    return [float(graph(x, y).numpy().mean()) for _ in range(steps)]


@pytest.fixture(scope="module", params=few(MODELS, lambda name: name != "mobilenet"))
def one_device(request):
    make, loss_of, x, y = MODELS[request.param]
    flow.manual_seed(0)
    return request.param, losses(TrainingGraph(make(), loss_of), flow.tensor(x), flow.tensor(y))


@pytest.mark.parametrize("plan", [*PLANS, *ZERO])
def test_models_train_in_global_graphs_as_on_one_device(world, one_device, plan):
    world(4)
    name, want = one_device
    make, loss_of, x, y = MODELS[name]
    ranks, sbp, inputs = PLANS.get(plan) or PLANS["data"]
    flow.manual_seed(0)
    model = make()
    placement = spread(model, ranks, sbp)
    place = {"placement": placement, "sbp": inputs}
    graph = TrainingGraph(model, loss_of, ZERO.get(plan, 0))
    got = losses(graph, flow.tensor(x, **place), flow.tensor(y, **place))
    assert want[-1] < want[0]
    np.testing.assert_allclose(got, want, rtol=1e-6)
