"""repeat, tile, and repeat_interleave work for all shapes whose result has at most eight axes."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.errors import ShapeError

COUNTED = st.integers(0, 8).flatmap(lambda rank: st.tuples(
    st.lists(st.sampled_from([1, 1, 2, 0]), min_size=rank, max_size=rank),
    st.lists(st.sampled_from([1, 2, 2, 0]), min_size=rank, max_size=8)))


@given(COUNTED)
def test_repeat_equals_numpys_tile(case):
    shape, times = case
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    y = flow.tensor(x).repeat(*times)
    np.testing.assert_array_equal(y.numpy(), np.tile(x, times))
    np.testing.assert_array_equal(flow.tile(flow.tensor(x), tuple(times)).numpy(), y.numpy())


@given(COUNTED, st.data())
def test_repeat_interleave_equals_numpys_repeat(case, data):
    shape = [*case[0], 2][:8]
    axis, n = data.draw(st.integers(0, len(shape) - 1)), data.draw(st.integers(1, 3))
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    np.testing.assert_array_equal(flow.tensor(x).repeat_interleave(n, axis).numpy(), np.repeat(x, n, axis))


def test_the_gradient_of_a_repeat_of_many_axes_counts_the_copies():
    x = flow.ones(2, 2, 2, 2, 2, requires_grad=True)
    x.repeat(2, 1, 2, 3, 2).sum().backward()
    assert (x.grad == 24).all().item()


@pytest.mark.parametrize("times", [(1,) * 9, (2, -1)])
def test_errors_name_repeat(times):
    with pytest.raises(ShapeError, match="^repeat: "):
        flow.ones(2, 2).repeat(*times)
