"""Options of graphs over several devices: each changes the moved bytes or the layouts as documented."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn

S0, B = flow.sbp.split(0), flow.sbp.broadcast
pytestmark = pytest.mark.usefixtures("four")


@pytest.fixture
def four(world):
    from flowedu.core.sbp.ranks import current

    if current().name == "mpi":
        pytest.skip("virtual devices")
    world(4)


def train_mlp_graph(sizes=(16, 32, 4), batch=8, **zero):
    """Train an MLP with broadcast parameters and a split batch in a graph; return the graph after one
    call.
    """
    flow.manual_seed(3)
    place = flow.placement("cpu", [0, 1, 2, 3])
    layers = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
    model = nn.Sequential(*[m for layer in layers for m in (layer, nn.Tanh())]).to_global(place, B)

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.Adam(model.parameters(), lr=0.01))
            if zero:
                self.config.enable_zero(**zero)

        def build(self, x):
            loss = self.model(x).square().sum()
            loss.backward()
            return loss

    graph = Train()
    x = np.random.default_rng(0).standard_normal((batch, sizes[0])).astype(np.float32)
    losses = [graph(flow.tensor(x).to_global(place, S0)).numpy().item() for _ in range(3)]
    return graph, model, losses


def test_the_stages_of_zero_move_the_documented_bytes():
    """Per parameter of n elements on k devices: stage 1 all-reduces the gradient and gathers, 2
    reduce-scatters it and gathers, 3 gathers once more for the backward pass.
    """
    plain, _, want = train_mlp_graph()
    found = {}
    for stage in (1, 2, 3):
        graph, _, losses = train_mlp_graph(stage=stage, shard_min_size=1)
        np.testing.assert_allclose(losses, want, rtol=1e-4)
        found[stage] = graph.bytes
    assert found[2] < found[1] and found[2] < found[3]
    assert train_mlp_graph(shard_min_size=1)[0].bytes == found[2], "the default"
    assert train_mlp_graph(mode=False, stage=1)[0].bytes == plain.bytes
    weight, k = 4 * 16 * 32, 4
    assert found[1] - found[2] >= weight * (k - 1), "an all-reduce is a reduce-scatter and a gather"


@pytest.mark.parametrize("least", [1, 32, 33, 128, 129, 512, 513, 1024])
def test_zero_leaves_small_parameters_whole(least):
    _, model, _ = train_mlp_graph(shard_min_size=least, stage=1)
    for name, p in model.named_parameters():
        size = int(np.prod(p.shape))
        assert p.sbp == ((S0,) if size >= least and p.shape[0] >= 4 else (B,)), (name, size, least)


def searched(ratio):
    """Return the choice for the product of a split and a whole matrix, whose result must be broadcast."""
    place = flow.placement("cpu", [0, 1, 2, 3])

    class Product(nn.Graph):
        def __init__(self):
            super().__init__()
            self.config.enable_auto_parallel(True)
            if ratio is not None:
                self.config.set_auto_parallel_computation_cost_ratio(ratio)

        def build(self, x, w):
            return (x @ w).to_global(sbp=B)

    graph = Product()
    x, w = flow.ones(16, 64), flow.ones(64, 64)
    y = graph(x.to_global(place, B), w.to_global(place, B))
    np.testing.assert_array_equal(y.numpy(), np.full((16, 64), 64))
    return graph._compiled.spread.found


def test_the_cost_of_compute_decides_between_bytes_and_recomputation():
    cheap, dear = searched(1e-6), searched(1e6)
    assert (cheap.best.bytes == 0
            and dear.best.bytes > 0), "work for nothing is done everywhere; dear work is shared out"
    assert cheap.best.work > dear.best.work
    assert searched(None).best.bytes == searched(1.0).best.bytes
    for found, ratio in ((cheap, 1e-6), (dear, 1e6)):
        assert found.best.cost == pytest.approx(found.best.bytes + ratio * found.best.work)
