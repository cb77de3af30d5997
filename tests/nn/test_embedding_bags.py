"""Law: a bag is the slice of the input between two offsets; other offsets are refused."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.nn.functional as F
from flowedu.errors import ArgumentError, ShapeError

ROWS, SIZE = 6, 2
REDUCE = {"sum": lambda rows: rows.sum(0), "mean": lambda rows: rows.mean(0), "max": lambda rows: rows.max(0)}


@st.composite
def bags(draw):
    """Draw indices, the offsets of their bags, and include_last_offset."""
    indices = draw(st.lists(st.integers(0, ROWS - 1), max_size=8))
    cuts = sorted(draw(st.lists(st.integers(0, len(indices)), max_size=5)))
    return indices, [0, *cuts], draw(st.booleans())


@pytest.mark.parametrize("mode", REDUCE)
@given(drawn=bags())
def test_a_bag_is_a_slice(mode, drawn):
    indices, offsets, has_end = drawn
    values = np.random.default_rng(0).permutation(ROWS * SIZE).reshape(ROWS, SIZE).astype(np.float64)
    ends = offsets[1:] if has_end else [*offsets[1:], len(indices)]
    expected, gradient = np.zeros((len(ends), SIZE)), np.zeros_like(values)
    for k, (start, end) in enumerate(zip(offsets, ends)):
        bag = indices[start:end]
        if bag:
            expected[k] = REDUCE[mode](values[bag])
            winners = values[bag].argmax(0)
            for i, row in enumerate(bag):
                gradient[row] += winners == i if mode == "max" else 1 / len(bag) if mode == "mean" else 1
    weight = flow.tensor(values, requires_grad=True)
    y = F.embedding_bag(flow.tensor(indices, dtype=flow.int64), weight, flow.tensor(offsets), mode=mode,
                        include_last_offset=has_end)
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-12)
    y.sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), gradient, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", REDUCE)
@pytest.mark.parametrize("has_end", [False, True])
@given(offsets=st.lists(st.integers(-3, 7), min_size=1, max_size=4))
def test_invalid_offsets_are_refused(mode, has_end, offsets):
    indices = flow.tensor([0, 1, 2, 3])
    valid = offsets == sorted(offsets) and offsets[0] == 0 and offsets[-1] <= 4

    def call():
        return F.embedding_bag(indices, flow.ones(ROWS, SIZE), flow.tensor(offsets), mode=mode,
                               include_last_offset=has_end)

    if valid:
        assert call().shape == (len(offsets) - has_end, SIZE)
    else:
        with pytest.raises(ArgumentError, match="embedding_bag"):
            call()


def test_include_last_offset_needs_an_offset():
    with pytest.raises(ShapeError, match="at least one offset"):
        F.embedding_bag(flow.tensor([0]), flow.ones(2, 2), flow.tensor([], dtype=flow.int64),
                        include_last_offset=True)
