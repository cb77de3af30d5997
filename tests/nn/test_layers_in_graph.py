"""Every layer agrees eagerly and in an nn.Graph: results, state afterwards, and a training step."""
import warnings

import numpy as np
import pytest

import flowedu as flow
from common import flatten
from flowedu import nn

from .cases import LAYERS, RECURRENT, array

# momentum=None needs a counter, which graphs do not keep
CASES = [c for c in LAYERS + RECURRENT if "momentum=None" not in c[0]]


def state(module):
    return {k: v.numpy().copy() for k, v in module.state_dict().items()}


def randomize(module):
    with flow.no_grad():
        for p in module.parameters():
            p.copy_(flow.tensor(np.random.default_rng(p.numel()).normal(0, 0.4, tuple(p.shape))))


class Forward(nn.Graph):
    def __init__(self, module):
        super().__init__()
        self.m = module

    def build(self, *xs):
        return self.m(*xs)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]} {c[1]}")
def test_layers_give_the_same_results_and_states_in_a_graph(case, train):
    text, *specs = case
    module = eval(text).double().train(train)
    randomize(module)
    xs = [flow.tensor(array(s, i)) for i, s in enumerate(specs)]
    before = state(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = Forward(module)(*xs)
        after = state(module)
        module.load_state_dict({k: flow.tensor(v) for k, v in before.items()})
        want = module(*xs)
    for a, b in zip(flatten(got), flatten(want), strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-10)
    for key, value in state(module).items():
        np.testing.assert_allclose(after[key], value, rtol=1e-9, atol=1e-12, err_msg=key)


NETWORKS = {
    "convolutions": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4),
                                           nn.ReLU6(),
                                           nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, groups=4), nn.GELU(),
                                           nn.AdaptiveAvgPool2d(1),
                                           nn.Flatten(), nn.Linear(4, 5)), (4, 3, 8, 8)),
    "attention": (lambda: nn.Sequential(nn.TransformerEncoderLayer(6, 2, 8, 0.0, "gelu"), nn.LayerNorm(6),
                                        nn.Flatten(1), nn.Linear(18, 5)), (4, 3, 6)),
    "style": (lambda: nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(3, 4, 3),
                                    nn.InstanceNorm2d(4, affine=True), nn.ReLU(),
                                    nn.UpsamplingNearest2d(scale_factor=2), nn.AvgPool2d(3, 2, 1),
                                    nn.Flatten(), nn.Linear(64, 5)), (4, 3, 4, 4)),
    "embedding": (lambda: nn.Sequential(nn.Embedding(9, 6, padding_idx=0), nn.Flatten(), nn.PReLU(),
                                        nn.Linear(18, 5)),
                  ("int", 9, (4, 3))),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(),
                                  nn.CrossEntropyLoss(ignore_index=1, label_smoothing=0.1)], ids=str)
def test_a_network_takes_the_same_step_in_a_graph(name, loss):
    make, spec = NETWORKS[name]
    x, y = flow.tensor(array(spec, 0)), flow.tensor(array(("int", 5, (4,)), 1))
    flow.manual_seed(0)
    eager, traced = make().double(), make().double()
    traced.load_state_dict(eager.state_dict())

    class Step(nn.Graph):              # a graph's learning rate is a float32; 0.125 is exact in both
        def __init__(self):
            super().__init__()
            self.m, self.loss = traced, loss
            self.add_optimizer(flow.optim.SGD(traced.parameters(), lr=0.125))

        def build(self, x, y):
            value = self.loss(self.m(x), y)
            value.backward()
            return value

    step, optimizer = Step(), flow.optim.SGD(eager.parameters(), lr=0.125)
    for _ in range(3):
        got = step(x, y)
        value = loss(eager(x), y)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        np.testing.assert_allclose(got.numpy(), value.detach().numpy(), rtol=1e-8)
    for key, value in state(eager).items():
        np.testing.assert_allclose(state(traced)[key], value, rtol=1e-7, atol=1e-10, err_msg=key)
