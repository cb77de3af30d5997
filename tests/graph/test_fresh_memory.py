"""Laws of memory that a graph's first call takes as it is: no step reads what it has not written, and what optimizers
remember begins with zeros, whatever lay there before."""
import numpy as np
import pytest

import flowedu as flow
from flowedu.core.eager.tensor import Tensor
from flowedu.fast.memory import empty_cache, memory_stats, set_cache, zeros

from .making import graph, twins
from .test_models import MODELS, OPTIMIZERS, step_of

LEFT = 4                     # blocks full of NaNs: more than one call takes of one size


def leave(nbytes: int) -> None:
    """Memory full of NaNs is free, and will be handed out to who wants so much."""
    blocks = [flow.full((nbytes,), 255, dtype=flow.uint8) for _ in range(LEFT)]
    assert all(np.isnan(b.numpy()[:nbytes // 4 * 4].view(np.float32)).all() for b in blocks)


@pytest.mark.parametrize("name", MODELS)
def test_a_first_step_reads_nothing_it_has_not_written(name):
    make, loss_of, data = MODELS[name]
    (a, b), (x, y) = twins(make), data()
    found, arena = [], 0
    for model, dirty in ((a, False), (b, True)):
        empty_cache()
        if dirty:
            leave(arena)
        step = graph(step_of(loss_of), OPTIMIZERS["adam"](model.parameters()), model=model)
        loss = step(x, y).numpy()
        model.eval()
        found.append([loss, graph(lambda self, *xs: self.model(*xs), model=model)(x).numpy() if name != "gpt" else loss,
                      *(p.numpy() for p in model.parameters())])
        arena = step._compiled.program.plan.arena
    for clean, other in zip(*found, strict=True):
        np.testing.assert_array_equal(other, clean)


@pytest.mark.parametrize("n", [0, 1, 1000, 1 << 16, (1 << 16) + 7, 1 << 19, (1 << 20) + 1, 3 << 20])
@pytest.mark.parametrize("kept", [True, False])
def test_zeros_are_zero_wherever_they_lie(n, kept):
    """In memory used before, in fresh pages, and with the cache switched off, there and back."""
    empty_cache()
    live = memory_stats()["live"]
    for _ in range(2):
        x = zeros((n,), flow.float32, Tensor)
        assert x.shape == (n,) and x.dtype is flow.float32 and x.address % 64 == 0 and not x.numpy().any()
        x.numpy()[:] = np.nan
        del x                                            # the second time its memory is there again
        if not kept:
            empty_cache()
    x = zeros((n,), flow.float32, Tensor)
    set_cache(False)                                     # a block made with the cache is given back without it
    try:
        del x
        y = zeros((n,), flow.float32, Tensor)
        assert not y.numpy().any()
        del y
    finally:
        set_cache(True)
    empty_cache()
    assert memory_stats()["live"] == live
