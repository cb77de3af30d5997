"""Common subexpressions: equal values are computed once, and random ops are never merged."""
import numpy as np
import pytest

import flowedu as flow
from flowedu.core.graph.ir import Graph
from flowedu.core.graph.passes import cse
from flowedu.core.ops.define import REGISTRY

from .making import make_graph

DRAWN = {"dropout": lambda x: flow.nn.functional.dropout(x, 0.5), "rand": lambda x: flow.rand(64) + 0 * x,
         "randn": lambda x: flow.randn(64) + 0 * x, "uniform_": lambda x: flow.empty(64).uniform_() + 0 * x,
         "bernoulli": lambda x: flow.bernoulli(0 * x + 0.5), "rand_like": lambda x: flow.rand_like(x)}


@pytest.mark.parametrize("name", DRAWN)
def test_two_draws_differ(name):
    """Both within one call and between calls."""
    g = make_graph(lambda self, x: (DRAWN[name](x), DRAWN[name](x)))
    x = flow.ones(64)
    found = [y.numpy().tobytes() for _ in range(3) for y in g(x)]
    assert len(set(found)) == 6


RANDOM = {"random_uniform": dict(shape=(3,), dtype=flow.float32),
          "random_normal": dict(shape=(3,), dtype=flow.float32),
          "random_randint": dict(shape=(3,), high=5), "random_mask_like": dict(rate=0.5)}


def test_the_pass_leaves_random_nodes():
    """Even nodes with identical attributes, including their seeds."""
    assert {n for n, op in REGISTRY.items() if op.random} == set(RANDOM)
    for name, attrs in RANDOM.items():
        op, g = REGISTRY[name], Graph("g")
        inputs = [g.input("x", flow.ones(3).spec)] if name == "random_mask_like" else []
        for _ in range(2):
            g.append(op, inputs, op.complete(attrs), reseed=False)
        cse(g)
        assert len(g.nodes) == 2, name


def test_equal_values_are_merged():
    g = Graph("g")
    x = g.input("x", flow.ones(3).spec)
    relu = REGISTRY["relu"]
    a, b = (g.append(relu, [x], ())[0] for _ in range(2))
    g.outputs = [g.append(REGISTRY["add"], [a, b], ())[0]]
    cse(g)
    assert [n.op.name for n in g.nodes] == ["relu", "add"] and g.nodes[1].inputs == (a, a)


@pytest.mark.parametrize("read", [lambda s: s, lambda s: s * 2.0], ids=["returned", "read"])
def test_a_gradient_with_another_reader_survives_its_update(read):
    """The pass `update` computes gradients directly into their weights if they have no other reader."""
    def step(self, x):
        loss = self.model(x).square().sum()
        slope, = flow.autograd.grad(loss, [self.model.weight], retain_graph=True)
        loss.backward()
        return loss, read(slope)

    flow.manual_seed(1)
    models = [flow.nn.Linear(4, 3, bias=False) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [flow.optim.SGD(m.parameters(), lr=0.01) for m in models]
    g = make_graph(step, optimizers[1], model=models[1])
    for i in range(3):
        x = flow.arange(8.0).reshape(2, 4) * (i + 1) / 8
        loss = models[0](x).square().sum()
        loss.backward()
        want = read(models[0].weight.grad).numpy().copy()
        optimizers[0].step()
        optimizers[0].zero_grad()
        got, slope = g(x)
        np.testing.assert_allclose(slope.numpy(), want, rtol=1e-5)
        np.testing.assert_allclose(got.item(), loss.item(), rtol=1e-5)
        np.testing.assert_allclose(models[1].weight.numpy(), models[0].weight.numpy(), rtol=1e-5)
