"""Details in which implementations easily deviate from PyTorch: negative indices, gradients of another dtype,
and norm orders that are strings.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.errors import ArgumentError, AxisError, DTypeError

FLOATS = [flow.float16, flow.bfloat16, flow.float32, flow.float64]


@given(st.integers(1, 5), st.data(), st.booleans())
def test_index_fill_accepts_negative_indices(n, data, inplace):
    dim = data.draw(st.sampled_from([0, 1, -1, -2]))
    at = data.draw(st.lists(st.integers(-n, n - 1), max_size=4))
    shape = (n, 3) if dim in (0, -2) else (3, n)
    x = flow.arange(3.0 * n).reshape(shape).requires_grad_()
    want = x.detach().numpy().copy()
    np.moveaxis(want, dim, 0)[at] = -1
    index = flow.tensor(at, dtype=flow.int64)
    y = (x * 1).index_fill_(dim, index, -1.0) if inplace else x.index_fill(dim, index, -1.0)
    np.testing.assert_array_equal(y.detach(), want)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, want != -1)
    for bad in (-n - 1, n):
        with pytest.raises(AxisError, match=f"index {bad} is out of bounds"):
            flow.index_fill(x, dim, flow.tensor([*at, bad]), -1.0)


def test_index_fill_in_a_graph():
    class Fill(nn.Graph):
        def build(self, x, i):
            return flow.index_fill(x, 0, i, -1.0)

    x = flow.zeros(3, 2)
    np.testing.assert_array_equal(Fill()(x, flow.tensor([-1])), flow.index_fill(x, 0, flow.tensor([2]), -1.0))


@pytest.mark.parametrize("ours", FLOATS, ids=str)
@pytest.mark.parametrize("given_", FLOATS, ids=str)
def test_a_gradient_has_the_dtype_of_its_tensor(ours, given_):
    p = nn.Parameter(flow.ones(2, dtype=ours))
    if ours is given_:
        p.grad = flow.ones(2, dtype=given_)
        assert p.grad.dtype is ours
    else:
        with pytest.raises(DTypeError, match=r"(?s)another dtype.*fix:.*\.to\("):
            p.grad = flow.ones(2, dtype=given_)
        assert p.grad is None


@pytest.mark.parametrize("p", ["nuc", "blah", "", "Fro"])
def test_an_invalid_norm_name_is_refused(p):
    for call in (lambda: flow.norm(flow.ones(2, 2), p), lambda: flow.ones(3).norm(p)):
        with pytest.raises(ArgumentError, match="(?s)there is no norm.*expected.*fro.*fix"):
            call()
