"""A ring all-reduce equals an all-reduce."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu.distributed.ring import ring_all_reduce


@settings(max_examples=25)
@given(st.integers(1, 5), st.lists(st.integers(0, 5), max_size=3), st.sampled_from([np.float32, np.int64]))
def test_all_ranks_get_the_sum(k, shape, dtype):
    parts = [np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape) + 100 * r for r in range(k)]

    def program():
        x = flow.tensor(parts[flow.env.get_rank()])
        y = ring_all_reduce(x)
        assert np.array_equal(x.numpy(), parts[flow.env.get_rank()])           # the input is not changed
        return y.numpy()

    for y in flow.distributed.spawn(program, k):
        assert y.dtype == dtype and np.array_equal(y, sum(parts))


def test_mismatched_ranks_are_reported():
    with pytest.raises(Exception, match="rank"):
        flow.distributed.spawn(lambda: ring_all_reduce(flow.ones(3)) if flow.env.get_rank() else None, 2)
