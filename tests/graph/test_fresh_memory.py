"""Laws of uninitialized memory in a graph's first call: no step reads unwritten memory, and optimizer states
start with zeros, whatever the memory held before.
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu.core.eager.tensor import Tensor
from flowedu.fast.memory import empty_cache, memory_stats, set_cache, zeros

from .making import make_graph, twins
from .test_models import MODELS, OPTIMIZERS, step_of

LEFT = 4                     # blocks full of NaN: more than one call allocates of one size


def leave(nbytes: int) -> None:
    """Fill the cache with free blocks full of NaN, for later allocations of any size."""
    blocks = [flow.full((nbytes,), 255, dtype=flow.uint8) for _ in range(LEFT)]
    assert all(np.isnan(b.numpy()[:nbytes // 4 * 4].view(np.float32)).all() for b in blocks)


@pytest.mark.parametrize("name", MODELS)
def test_a_first_step_reads_no_unwritten_memory(name):
    make, loss_of, data = MODELS[name]
    (a, b), (x, y) = twins(make), data()
    found, arena = [], 0
    for model, dirty in ((a, False), (b, True)):
        empty_cache()
        if dirty:
            leave(arena)
        step = make_graph(step_of(loss_of), OPTIMIZERS["adam"](model.parameters()), model=model)
        loss = step(x, y).numpy()
        model.eval()
        found.append([loss, make_graph(lambda self, *xs: self.model(*xs), model=model)(x).numpy()
                      if name != "gpt" else loss, *(p.numpy() for p in model.parameters())])
        arena = step._compiled.program.plan.arena
    for clean, other in zip(*found, strict=True):
        np.testing.assert_array_equal(other, clean)


@pytest.mark.parametrize("n", [0, 1, 1000, 1 << 16, (1 << 16) + 7, 1 << 19, (1 << 20) + 1, 3 << 20])
@pytest.mark.parametrize("kept", [True, False])
def test_zeros_are_zero_in_any_memory(n, kept):
    """Reused memory, fresh pages, and a disabled cache, before and after."""
    empty_cache()
    live = memory_stats()["live"]
    for _ in range(2):
        x = zeros((n,), flow.float32, Tensor)
        assert x.shape == (n,) and x.dtype is flow.float32 and x.address % 64 == 0 and not x.numpy().any()
        x.numpy()[:] = np.nan
        del x                                            # the second iteration reuses this memory
        if not kept:
            empty_cache()
    x = zeros((n,), flow.float32, Tensor)
    set_cache(False)                                     # a block made with the cache is freed without it
    try:
        del x
        y = zeros((n,), flow.float32, Tensor)
        assert not y.numpy().any()
        del y
    finally:
        set_cache(True)
    empty_cache()
    assert memory_stats()["live"] == live
