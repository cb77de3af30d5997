"""Laws of random ops: no two of them draw the same numbers, in one graph or in two, in a loop, or in the next
run.
"""
import itertools

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.core.graph.executor import Executor
from flowedu.core.graph.ir import Graph
from flowedu.core.graph.passes import run_passes
from flowedu.core.graph.plan import make_plan
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.spec import Spec
from flowedu.nn import functional as F
from graph.making import make_graph

N = 64                     # elements per draw: two draws of 64 coins are equal with probability 2**-64
SOURCES = {"random_uniform": dict(shape=(N,), dtype=flow.float32),
           "random_normal": dict(shape=(N,), dtype=flow.float32),
           "random_randint": dict(shape=(N,), low=0, high=1000), "random_mask_like": dict(rate=0.5)}


def assert_all_differ(draws):
    """Assert that no two arrays are equal."""
    for (i, a), (j, b) in itertools.combinations(enumerate(draws), 2):
        assert not np.array_equal(a, b), f"draws {i} and {j} are equal"


def test_every_random_op_is_listed():
    random = {name for name, op in REGISTRY.items() if op.random and op.cpu is not None}
    assert random == set(SOURCES)


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.parametrize("seeds", [(3, 3, 3), (0, 0, 1)])
@pytest.mark.parametrize("name", SOURCES)
def test_ops_of_one_graph_and_its_next_runs_differ(name, seeds, passes):
    """Even if the user passes equal seeds."""
    g = Graph("law")
    x = g.input("x", Spec((N,), flow.float32))
    with g.building():
        given = (x,) if name == "random_mask_like" else ()
        g.outputs = [REGISTRY[name](*given, **SOURCES[name], seed=s, draw=0) for s in seeds]
    if passes:
        run_passes(g)
    executor = Executor(make_plan(g, {}))
    runs = [executor.run((np.zeros(N, np.float32),)) for _ in range(3)]
    assert_all_differ([np.array(y) for run in runs for y in run])


DRAWS = {"rand": lambda x: flow.rand(N), "randn": lambda x: flow.randn(N),
         "randint": lambda x: flow.randint(0, 1000, (N,)),
         "randperm": lambda x: flow.randperm(N), "rand_like": flow.rand_like, "randn_like": flow.randn_like,
         "bernoulli": lambda x: flow.bernoulli(x * 0 + 0.5), "normal": lambda x: flow.normal(0.0, 1.0, (N,)),
         "multinomial": lambda x: flow.multinomial(x * 0 + 1, N, replacement=True),
         "dropout": lambda x: F.dropout(x + 1),
         "rrelu": lambda x: F.rrelu(x - 1, training=True), "gumbel_softmax": lambda x: F.gumbel_softmax(x),
         "uniform_": lambda x: (x + 0).uniform_(), "normal_": lambda x: (x + 0).normal_(),
         "exponential_": lambda x: (x + 0).exponential_(), "random_": lambda x: (x + 0).random_(1000),
         "bernoulli_": lambda x: (x + 0).bernoulli_(0.5),
         "trunc_normal_": lambda x: nn.init.trunc_normal_(x + 0),
         "init.normal_": lambda x: nn.init.normal_(x + 0), "init.uniform_": lambda x: nn.init.uniform_(x + 0)}


@pytest.mark.parametrize("name", DRAWS)
def test_calls_in_a_loop_differ(name):
    flow.manual_seed(1)
    x = flow.zeros(N)
    eager = [DRAWS[name](x).numpy() for _ in range(4)]
    g = make_graph(lambda self, x: tuple(DRAWS[name](x) * 1 for _ in range(4)))
    runs = [[y.numpy() for y in g(x)] for _ in range(2)]
    assert_all_differ([*eager, *runs[0], *runs[1]])


@pytest.mark.parametrize("name", DRAWS)
def test_two_graphs_of_one_kind_differ(name):
    flow.manual_seed(1)
    x = flow.zeros(N)
    graphs = [make_graph(lambda self, x: DRAWS[name](x) * 1) for _ in range(3)]
    assert_all_differ([g(x).numpy() for _ in range(2) for g in graphs])


def test_layers_of_one_kind_differ():
    """Dropout layers of a block, called several times in training mode."""
    flow.manual_seed(1)
    x = flow.ones(N)
    layers = [nn.Dropout() for _ in range(3)]
    g = make_graph(lambda self, x: tuple(layer(x) for layer in (*self.layers, *self.layers)),
                   layers=nn.ModuleList(layers))
    assert_all_differ([y.numpy() for y in (*g(x), *g(x), *(layer(x) for layer in layers))])


def test_microbatches_differ():
    flow.manual_seed(1)
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Dropout())
    nn.init.ones_(model[0].weight)

    def build(self, x):
        y = self.model(x)
        y.sum().backward()
        return y

    g = make_graph(build, flow.optim.SGD(model.parameters(), lr=0.0), model=model,
                   config={"set_gradient_accumulation_steps": 4})
    y = g(flow.ones(4 * N, 1)).numpy()
    assert_all_differ(np.split(y, 4))


def test_ranks_with_one_seed_draw_equally_and_parts_of_a_global_tensor_differ():
    def program():
        flow.manual_seed(5)
        placement = flow.placement("cpu", [0, 1])
        local = flow.rand(N).numpy()
        split = flow.rand(2 * N, placement=placement, sbp=flow.sbp.split(0)).to_local().numpy()
        whole = flow.rand(2 * N, placement=placement, sbp=flow.sbp.broadcast).to_local().numpy()
        ones = flow.ones(2 * N, placement=placement, sbp=flow.sbp.split(0))
        dropped = [F.dropout(ones).to_local().numpy() for _ in range(2)]
        return local, whole, split, *dropped

    (local, whole, *parts), (other_local, other_whole, *other_parts) = flow.distributed.spawn(program, 2)
    np.testing.assert_array_equal(local, other_local)
    np.testing.assert_array_equal(whole, other_whole)
    assert_all_differ([local, *parts, *other_parts])
