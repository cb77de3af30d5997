"""nn.utils: clipping, and parameters as one vector. (test_recurrent.py tests the sequences.)"""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.nn import utils

from .formulas.table import Draw

few = settings(max_examples=max(8, settings().max_examples // 3))


def draw_parameters(d):
    """Draw (parameters with gradients, one of them without; the gradients)."""
    made, grads = [], []
    for _ in range(d.one_of(1, 3)):
        shape = d.shape(0, 2)
        g = d.floats(*shape)
        p = nn.Parameter(flow.tensor(np.zeros(shape)))
        p.grad = flow.tensor(np.asarray(g))
        made.append(p)
        grads.append(np.asarray(g))
    return made + [nn.Parameter(flow.ones(1))], grads


def norm_of(grads, p):
    """Return the p-norm of all elements together."""
    flat = np.abs(np.concatenate([g.ravel() for g in grads]))
    return flat.max() if p == np.inf else (flat ** p).sum() ** (1 / p)


@few
@given(data=st.data())
def test_clip_grad_norm(data):
    d = Draw(data)
    params, grads = draw_parameters(d)
    p, limit = d.one_of(1.0, 2.0, 3.0, np.inf), d.one_of(0.1, 1.0, 100.0)
    norm = norm_of(grads, p)
    options = {} if p == 2 and d.one_of(True, False) else {"norm_type": p}
    np.testing.assert_allclose(float(utils.get_total_norm([q.grad for q in params[:-1]], **options)), norm,
                               rtol=1e-12)
    one = len(params) == 2 and d.one_of(True, False)
    got = utils.clip_grad_norm_(params[0] if one else params, limit, **options)
    np.testing.assert_allclose(float(got), norm, rtol=1e-12)
    for q, g in zip(params, grads):
        np.testing.assert_allclose(q.grad.numpy(), g * min(1, limit / (norm + 1e-6)), rtol=1e-9)
    assert params[-1].grad is None


@pytest.mark.parametrize("p, norm", [(0, 2.0), (-1, 1 / (1 / 3 + 1 / 4 + 1 / 5 + 1 / 2)), (-np.inf, 2.0)])
def test_norms_of_norms(p, norm):
    """Same result as OneFlow and PyTorch for orders without a joint norm."""
    some = [flow.tensor([3.0, -4.0]), flow.tensor([5.0, 2.0])]
    np.testing.assert_allclose(float(utils.get_total_norm([*some, flow.zeros(3)] if p == 0 else some, p)),
                               norm, rtol=1e-6)


@few
@given(data=st.data())
def test_clip_grad_value(data):
    d = Draw(data)
    params, grads = draw_parameters(d)
    limit = d.one_of(0.5, 1.5)
    utils.clip_grad_value_(params, limit)
    for q, g in zip(params, grads):
        np.testing.assert_array_equal(q.grad.numpy(), np.clip(g, -limit, limit))


def test_clip_grad_norm_of_empty_and_infinite_gradients():
    assert float(utils.clip_grad_norm_([], 1.0)) == 0
    p = nn.Parameter(flow.ones(2))
    p.grad = flow.tensor([np.inf, 1.0])
    assert float(utils.clip_grad_norm_(p, 1.0)) == np.inf
    p.grad = flow.tensor([np.inf, 1.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector():
    net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    v = utils.parameters_to_vector(net.parameters())
    assert v.shape == (14,)
    other = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    utils.vector_to_parameters(v, other.parameters())
    np.testing.assert_array_equal(other[1].weight.numpy(), net[1].weight.numpy())
    with pytest.raises(RuntimeError, match="does not fit"):
        utils.vector_to_parameters(v[:5], other.parameters())


def test_a_vector_of_parameters_in_order():
    params = [nn.Parameter(flow.tensor([[1.0, 2.0], [3.0, 4.0]])), nn.Parameter(flow.tensor(5.0))]
    v = utils.parameters_to_vector(params)
    assert v.tolist() == [1, 2, 3, 4, 5]
    (v * flow.tensor([1.0, 2, 3, 4, 5])).sum().backward()
    assert params[0].grad.tolist() == [[1, 2], [3, 4]] and params[1].grad.item() == 5
