"""Common subexpressions: what is equal is computed once, what is drawn is drawn each time."""
import pytest

import flowedu as flow
from flowedu.graph.ir import Graph
from flowedu.graph.passes import cse
from flowedu.ops.define import REGISTRY

from .making import graph

DRAWN = {"dropout": lambda x: flow.nn.functional.dropout(x, 0.5), "rand": lambda x: flow.rand(64) + 0 * x,
         "randn": lambda x: flow.randn(64) + 0 * x, "uniform_": lambda x: flow.empty(64).uniform_() + 0 * x,
         "bernoulli": lambda x: flow.bernoulli(0 * x + 0.5), "rand_like": lambda x: flow.rand_like(x)}


@pytest.mark.parametrize("name", DRAWN)
def test_two_draws_differ(name):
    """In one call, and from call to call."""
    g = graph(lambda self, x: (DRAWN[name](x), DRAWN[name](x)))
    x = flow.ones(64)
    found = [y.numpy().tobytes() for _ in range(3) for y in g(x)]
    assert len(set(found)) == 6


RANDOM = {"random_uniform": dict(shape=(3,), dtype=flow.float32), "random_normal": dict(shape=(3,), dtype=flow.float32),
          "random_randint": dict(shape=(3,), high=5), "random_mask_like": dict(rate=0.5)}


def test_the_pass_leaves_random_nodes():
    """Also those that are equal in everything that is written down, their seeds included."""
    assert {n for n, op in REGISTRY.items() if op.random} == set(RANDOM)
    for name, attrs in RANDOM.items():
        op, g = REGISTRY[name], Graph("g")
        inputs = [g.input("x", flow.ones(3).spec)] if name == "random_mask_like" else []
        for _ in range(2):
            g.append(op, inputs, op.complete(attrs), reseed=False)
        cse(g)
        assert len(g.nodes) == 2, name


def test_what_is_equal_is_merged():
    g = Graph("g")
    x = g.input("x", flow.ones(3).spec)
    relu = REGISTRY["relu"]
    a, b = (g.append(relu, [x], ())[0] for _ in range(2))
    g.outputs = [g.append(REGISTRY["add"], [a, b], ())[0]]
    cse(g)
    assert [n.op.name for n in g.nodes] == ["relu", "add"] and g.nodes[1].inputs == (a, a)
