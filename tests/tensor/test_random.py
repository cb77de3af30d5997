"""Random tensors: reproducible by seed, with the right distribution, and redrawn in every run of a graph."""
import numpy as np
import pytest

import flowedu as flow
from bounds import SIGMAS, assert_mean, assert_std


def draws():
    return [flow.rand(3, 4), flow.randn(5), flow.randint(0, 9,
                                                         (6,)), flow.randperm(7), flow.normal(1.0, 2.0, (3,)),
            flow.bernoulli(flow.full((8,), 0.5)), flow.multinomial(flow.tensor([0.2, 0.3, 0.5]), 4,
                                                                   replacement=True),
            flow.zeros(4).uniform_(-1, 1), flow.zeros(4).normal_(), flow.zeros(4).exponential_(), flow.zeros(
                4).random_(5),
            flow.rand_like(flow.ones(2)), flow.randn_like(flow.ones(2)), flow.poisson(flow.full((4,), 3.0))]


def test_a_seed_makes_everything_reproducible():
    first = (flow.manual_seed(3), [t.tolist() for t in draws()])[1]
    assert [t.tolist() for t in draws()] != first
    flow.manual_seed(3)
    assert [t.tolist() for t in draws()] == first
    flow.manual_seed(4)
    assert [t.tolist() for t in draws()] != first


def test_the_state_can_be_saved_and_restored():
    flow.manual_seed(0)
    flow.rand(2)
    state = flow.get_rng_state()
    assert state.dtype is flow.uint8
    a = flow.rand(5).tolist()
    flow.set_rng_state(state)
    assert flow.rand(5).tolist() == a
    with flow.fork_rng():
        flow.rand(100)
    b = flow.rand(5).tolist()
    flow.set_rng_state(state)
    flow.rand(5)
    assert flow.rand(5).tolist() == b


def test_a_separate_generator():
    g = flow.Generator().manual_seed(7)
    a = flow.rand(4, generator=g).tolist()
    flow.rand(4)
    b = flow.rand(4, generator=g).tolist()
    g.manual_seed(7)
    assert flow.rand(4, generator=g).tolist() == a and flow.rand(4, generator=g).tolist() == b != a
    assert g.initial_seed() == 7 and flow.manual_seed(5).initial_seed() == flow.initial_seed() == 5
    assert g.seed() == g.initial_seed()


def test_both_generations_follow_the_seed():
    flow.manual_seed(9)
    a = flow.random.bernoulli(flow.full((50,), 0.5)).tolist()
    flow.manual_seed(9)
    assert flow.random.bernoulli(flow.full((50,), 0.5)).tolist() == a


def test_nearby_seeds_and_draws_are_independent():
    rows = []
    for seed in range(4):
        flow.manual_seed(seed)
        rows += [flow.randn(2000).numpy(), flow.randn(2000).numpy()]
    c = np.corrcoef(rows)
    # independent samples correlate by 1 / sqrt(n)
    assert np.abs(c - np.eye(len(rows))).max() < SIGMAS / np.sqrt(2000)


@pytest.mark.parametrize("x, mean, std, low, high", [
    (lambda: flow.rand(40000), 0.5, 12 ** -0.5, 0, 1), (lambda: flow.randn(40000, dtype=flow.float64), 0,
                                                        1, -6, 6),
    (lambda: flow.randint(-3, 7, (40000,)).float(), 1.5, (99 / 12) ** 0.5, -3, 6),
    (lambda: flow.normal(2.0, 3.0,
(40000,)), 2, 3, -18, 22),
    (lambda: flow.normal(flow.full((40000,), 2.0), flow.full((40000,), 3.0)), 2, 3, -18, 22),
    (lambda: flow.normal(flow.full((40000,), 2.0), 0.5), 2, 0.5, -2, 6),
    (lambda: flow.normal(1.0, flow.full((40000,), 2.0)), 1, 2, -13, 15),
    (lambda: flow.bernoulli(flow.full((40000,), 0.3)), 0.3, 0.21 ** 0.5, 0, 1),
        (lambda: flow.empty(40000).exponential_(2.0), 0.5, 0.5, 0, 20),
    (lambda: flow.empty(40000).uniform_(-2, 4), 1, 3 ** 0.5, -2, 4),
    (lambda: flow.empty(40000).bernoulli_(0.25), 0.25,
0.1875 ** 0.5, 0, 1),
    (lambda: flow.randn(40000).half().float(), 0, 1, -6, 6), (lambda: flow.empty(40000).trunc_normal_(), 0,
        0.7737 ** 0.5, -2, 2),
    (lambda: flow.poisson(flow.full((40000,), 4.0)), 4, 2, 0, 30)])
def test_distributions(x, mean, std, low, high):
    flow.manual_seed(1)
    a = x().numpy().astype(np.float64)
    assert_mean(a, mean, std)
    assert_std(a, std, np.mean(((a - mean) / std) ** 4))
    assert a.min() >= low and a.max() <= high


def test_multinomial():
    flow.manual_seed(2)
    w = flow.tensor([[1.0, 0.0, 3.0, 6.0], [1.0, 1.0, 1.0, 1.0]])
    many = flow.multinomial(w, 20000, replacement=True).numpy()
    np.testing.assert_allclose(np.bincount(many[0], minlength=4) / 20000, [0.1, 0, 0.3, 0.6], atol=0.02)
    for _ in range(20):
        few = flow.multinomial(w, 3).numpy()
        assert sorted(few[0]) == [0, 2, 3] and len(set(few[1])) == 3
    first = [flow.multinomial(w[0], 1).item() for _ in range(2000)]
    np.testing.assert_allclose(np.bincount(first, minlength=4) / 2000, [0.1, 0, 0.3, 0.6], atol=0.05)
    with pytest.raises(RuntimeError, match="without replacement"):
        flow.multinomial(w[0], 4)


def test_randperm_returns_every_permutation():
    flow.manual_seed(0)
    seen = {tuple(flow.randperm(3).tolist()) for _ in range(200)}
    assert len(seen) == 6 and all(sorted(p) == [0, 1, 2] for p in seen) and flow.randperm(0).shape == (0,)


def test_creation_functions_accept_sizes_dtypes_and_requires_grad():
    assert flow.rand(2, 3).shape == flow.rand((2, 3)).shape == (2, 3) and flow.rand(()).ndim == 0
    assert (flow.randint(5, (2,)).dtype is flow.int64 and flow.randint(0, 5, (2,),
                                                                       dtype=flow.int32).dtype is flow.int32)
    assert (flow.randn(2, requires_grad=True).requires_grad
            and flow.rand(2, dtype=flow.float16).dtype is flow.float16)
    assert flow.normal(flow.zeros(3), flow.ones(3)).shape == (3,)
    with pytest.raises(NotImplementedError, match="Only support floating dtype"):
        flow.randn(2, dtype=flow.int32)
    for bad in (lambda: flow.randint(3, 3, (1,)), lambda: flow.bernoulli(flow.tensor([2.0])),
                lambda: flow.normal(0.0,
-1.0, (2,)),
                lambda: flow.manual_seed("x"), lambda: flow.set_rng_state(flow.zeros(3)),
                lambda: flow.randperm(-1)):
        with pytest.raises((ValueError, TypeError)) as e:
            bad()
        assert e.value.expected and e.value.got and e.value.fix


def test_a_graph_redraws_in_every_run():
    class Noise(flow.nn.Graph):
        def build(self, x):
            return x + flow.randn(3), flow.rand(3) * 1, flow.randperm(5) * 1

    x = flow.zeros(3)
    flow.manual_seed(6)
    g = Noise()
    one = [t.tolist() for t in g(x)]
    two = [t.tolist() for t in g(x)]
    assert one[0] != two[0] and one[1] != two[1] and sorted(two[2]) == [0, 1, 2, 3, 4]
    flow.manual_seed(6)
    h = Noise()
    assert [t.tolist() for t in h(x)] == one and [t.tolist() for t in h(x)] == two
