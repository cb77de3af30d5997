"""Law: memory plans are not only sound but good: near the least possible where that can be worked out, and within a few
percent of what is alive at once for real models."""
import itertools

import numpy as np
import pytest

import flowedu as flow
import flowedu._kernels as kernels
from flowedu.core.graph.memory import Buffer, lower_bound, place, rounded
from graph.making import graph
from graph.test_models import MODELS, OPTIMIZERS, step_of


def lowest(buffers, order) -> int:
    """The arena when buffers are put, in this order, each at the lowest offset that is free while it lives."""
    placed, size = [], 0
    for b in order:
        n, at = rounded(buffers[b].nbytes), 0
        live = sorted((start, start + rounded(o.nbytes)) for start, o in placed
                      if o.first <= buffers[b].last and buffers[b].first <= o.last)
        for start, end in live:
            if at + n <= start:
                break
            at = max(at, end)
        placed.append((at, buffers[b]))
        size = max(size, at + n)
    return size


def least(buffers) -> int:
    """The smallest arena there is: any placement is that of some order, the order of its offsets."""
    return min(lowest(buffers, order) for order in itertools.permutations(range(len(buffers))))


def draw(rng, n: int) -> list[Buffer]:
    first = rng.integers(0, 8, n)
    return [Buffer(str(i), "temp", int(rng.integers(1, 40)) * 64, first=int(f), last=int(f + rng.integers(0, 5)))
            for i, f in enumerate(first)]


def test_near_the_least_possible():
    """Of 300 small cases. (Greedy by size is not always best: that problem is NP-hard.)"""
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(300):
        buffers = draw(rng, 5)
        ratios.append(place(buffers) / least(buffers))
    assert min(ratios) >= 1                            # or `least` is wrong
    assert np.mean(np.array(ratios) == 1) > 0.9 and np.mean(ratios) < 1.01 and max(ratios) < 1.4


def test_the_largest_first_is_better_than_other_orders():
    rng = np.random.default_rng(1)
    mine = small = written = bound = 0
    for _ in range(60):
        buffers = draw(rng, 40)
        mine += place(buffers)
        small += lowest(buffers, sorted(range(40), key=lambda i: buffers[i].nbytes))
        written += lowest(buffers, sorted(range(40), key=lambda i: buffers[i].first))
        bound += lower_bound(buffers, 12)
    assert bound <= mine < 1.06 * bound
    assert mine < 0.98 * written and mine < 0.95 * small


def test_the_bound_is_what_is_alive():
    rng = np.random.default_rng(2)
    for _ in range(50):
        buffers = draw(rng, 12)
        live = [sum(rounded(b.nbytes) for b in buffers if b.first <= t <= b.last) for t in range(13)]
        assert lower_bound(buffers, 12) == max(live)


def live_bytes(plan) -> int:
    """What is alive at once, counted here."""
    steps = range(len(plan.steps))
    return max(sum(rounded(b.nbytes) for b in plan.buffers if b.in_arena and b.first <= t <= b.last) for t in steps)


# Of what the buffers would take without sharing, the arena of a training step and of a prediction takes no more than
SHARE = {"mlp": (0.85, 1.0), "lenet": (0.4, 0.75), "mobilenet": (0.65, 0.7), "resnet18": (0.13, 0.3), "gpt": (0.5, 0.25)}


# The kernels of each instruction set want other scratch, and LeNet's on AVX2 fits least well into the gaps (1.247).
ABOVE = 1.05 if kernels.ISA == "v4" else 1.25


@pytest.mark.parametrize("name", SHARE)
def test_plans_of_models(name):
    """The arena is hardly more than what is alive at once, and far less than all buffers."""
    make, loss_of, data = MODELS[name]
    flow.manual_seed(0)
    model, (x, y) = make(), data()
    step = graph(step_of(loss_of), OPTIMIZERS["sgd"](model.parameters()), model=model)
    step(x, y)
    model.eval()
    predict = graph(lambda self, x: self.model(x), model=model)
    predict(x)
    for g, share in zip((step, predict), SHARE[name]):
        plan = g._compiled.program.plan
        lasting = sum(rounded(s.scratch.nbytes) for s in plan.steps if s.scratch and s.node in plan.graph.kept)
        assert live_bytes(plan) == plan.bound_bytes
        shared = plan.arena - lasting                    # packed weights lie beside it
        assert shared <= ABOVE * (plan.bound_bytes - lasting) and shared <= share * (plan.sum_bytes - lasting)
        assert not lasting or g is predict
