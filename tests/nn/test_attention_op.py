"""Laws of the op attention in addition to those in tests/laws: masks and blocks, threads, NaN, memory,
errors.
"""
import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.ops.define import REGISTRY
from flowedu.nn import functional as F
from flowedu.nn.functional import attention as parts
from flowedu.ops.attention import _ref, _ref_grad

attention, attention_grad = REGISTRY["attention"], REGISTRY["attention_grad"]
SIZES = st.sampled_from([1, 2, 15, 16, 17, 63, 64, 65, 130, 200])


def normal(rng, *shape):
    return rng.standard_normal(shape)


@st.composite
def calls(draw):
    """Draw (q, k, v, mask, attributes) in float64: leading axes, and masks of every kind, some of which hide
    whole blocks.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    lead = draw(st.sampled_from([(), (3,), (2, 2)]))
    rows, keys = draw(SIZES), draw(SIZES)
    e, d = draw(st.sampled_from([1, 3, 16, 33])), draw(st.sampled_from([1, 5, 32, 70]))
    shape = draw(st.sampled_from([(1, 1), (rows, keys), (keys,), (rows, 1), (*lead, rows, keys),
                                  (*lead, 1, keys)]))
    mask = (rng.random(shape) < draw(st.sampled_from([0.0, 0.3, 0.9]))).astype(np.int8)
    if shape[-1] > 64 and draw(st.booleans()):
        mask[..., :64] = 1                                         # a block of keys that every query masks
    return (normal(rng, *lead, rows, e), normal(rng, *lead, keys, e), normal(rng, *lead, keys, d), mask,
            dict(scale=1 / math.sqrt(e), causal=draw(st.booleans())))


def strided(x, way):
    """Return x with its last axes permuted in memory, or sliced out of a wider array, as heads are."""
    if way == 1:
        return flow.tensor(np.ascontiguousarray(np.swapaxes(x, -1, -2))).transpose(-1, -2)
    return flow.tensor(np.concatenate([x, x], -1))[..., :x.shape[-1]] if way == 2 else flow.tensor(x)


@settings(deadline=None)
@given(calls(), st.tuples(*[st.integers(0, 2)] * 4), st.sampled_from([np.float32, np.float64]))
def test_results_and_gradients_equal_those_of_full_scores(call, ways, dtype):
    *arrays, mask, attrs = call
    dy = np.random.default_rng(1).standard_normal((*arrays[0].shape[:-1], arrays[2].shape[-1]))
    want, lse = _ref(*arrays, mask, **attrs, nan=False)
    delta = (dy * want).sum(-1)
    grads = _ref_grad(dy, *arrays, mask, lse, delta, **attrs)
    q, k, v, given_dy = [strided(x.astype(dtype), way) for x, way in zip((*arrays, dy), ways)]
    y, found = attention(q, k, v, flow.tensor(mask), **attrs)
    back = attention_grad(given_dy, q, k, v, flow.tensor(mask), found, flow.tensor(delta.astype(dtype)),
                          **attrs)
    eps = np.finfo(dtype).eps
    # the sums in dq and dk may cancel, so their error is relative to the terms, dy v'
    terms = (np.abs(dy) @ np.swapaxes(np.abs(arrays[2]), -1, -2)).max() * max(np.abs(x).max()
                                                                              for x in arrays[:2])
    for got, right, most in zip((y, found, *back), (want, lse, *grads), (0, 0, terms, terms, 0)):
        np.testing.assert_allclose(got.numpy(), right, rtol=0,
                                   atol=60 * eps * max(1.0, np.abs(right).max(), most))


@pytest.mark.parametrize("keys", [63, 512, 5000])
def test_the_error_does_not_grow_with_the_length(keys):
    """Blocks of 64 are summed, then the blocks, so the error is a few roundings of the largest value at any
    length.
    """
    rng = np.random.default_rng(0)
    q, k, v = normal(rng, 70, 32), normal(rng, keys, 32), 1 + normal(rng, keys, 8)
    want, lse = _ref(q, k, v, np.zeros((1, 1), np.int8), 1.0, False, False)
    given = [flow.tensor(x.astype(np.float32)) for x in (q, k, v)]
    got, found = attention(*given, flow.zeros(1, 1, dtype=flow.int8), scale=1.0)
    # the error of exp is that of the score
    bound = 32 * np.finfo(np.float32).eps * np.abs(v).max() * np.abs(q @ k.T).max()
    assert np.abs(got.numpy() - want).max() < bound
    assert np.abs(found.numpy() - lse).max() < bound


def test_results_do_not_depend_on_the_number_of_threads():
    flow.manual_seed(0)
    q, k, v, dy = (flow.randn(3, 150, 40) for _ in range(4))
    none, attrs = flow.zeros(1, 1, dtype=flow.bool), dict(scale=0.2, causal=True)
    before, found = flow.get_num_threads(), []
    try:
        for n in (1, 2, 5):
            flow.set_num_threads(n)
            y, lse = attention(q, k, v, none, **attrs)
            found.append((y, lse, *attention_grad(dy, q, k, v, none, lse, lse, **attrs)))
    finally:
        flow.set_num_threads(before)
    assert all(a.numpy().tobytes() == b.numpy().tobytes() for other in found[1:]
               for a, b in zip(found[0], other))


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_nan_affects_only_dependent_results(number):
    flow.manual_seed(0)
    q, k, v = (flow.randn(4, 100, 16) for _ in range(3))
    right, _ = attention(q, k, v, flow.zeros(1, 1, dtype=flow.bool), scale=0.25, causal=True)
    q[1, 70, 3] = number
    v[2, 80, 5] = number
    got, _ = attention(q, k, v, flow.zeros(1, 1, dtype=flow.bool), scale=0.25, causal=True)
    touched = np.zeros((4, 100, 16), bool)
    touched[1, 70], touched[2, 80:, 5] = True, True
    touched[2, 64:80, 5] = True                           # in its block of keys, 0 times NaN
    assert not np.isfinite(got.numpy()[2, 80:, 5]).any() and np.isnan(got.numpy()[1, 70]).all()
    assert (got.numpy() == right.numpy())[~touched].all()


def test_a_fully_masked_row():
    """The result is 0 with a gradient of 0, like PyTorch's scaled_dot_product_attention, or NaN, like
    softmax, on request.
    """
    x = flow.randn(70, 8)
    mask = flow.ones(70, 70, dtype=flow.bool)
    mask[3] = False
    y, lse = attention(x, x, x, flow.logical_not(mask), nan=True)
    assert (np.isnan(y.numpy()[3]).all() and np.isnan(lse.numpy()[3])
            and np.isfinite(np.delete(y.numpy(), 3, 0)).all())
    q = x.clone().requires_grad_()
    y = F.scaled_dot_product_attention(q, x, x, attn_mask=mask)
    y.sum().backward()
    assert (y.numpy()[3] == 0).all() and (q.grad.numpy()[3] == 0).all() and np.isfinite(q.grad.numpy()).all()


@settings(deadline=None)
@given(calls())
def test_the_op_equals_matmul_and_softmax(call):
    """Where the op is not used (GPU, dropout, float mask), matrix products and a softmax compute the same."""
    *arrays, mask, attrs = call
    q, k, v = map(flow.tensor, arrays)
    looks = None if attrs["causal"] else flow.tensor(mask == 0)
    sdpa = functools.partial(F.scaled_dot_product_attention, q, k, v, attn_mask=looks,
                             is_causal=attrs["causal"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "_as_one", lambda *given: False)
        want = sdpa()
    np.testing.assert_allclose(sdpa().numpy(), want.numpy(), rtol=0, atol=1e-12)


def test_the_score_matrix_is_never_allocated():
    """A training step of 4 heads over 512 tokens, whose full scores would take 4 MB per copy."""
    class Step(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.net = flow.nn.Linear(32, 96)
            self.add_optimizer(flow.optim.SGD(self.net.parameters(), 0.1))

        def build(self, x):
            q, k, v = (h.reshape(512, 4, 8).transpose(0, 1) for h in self.net(x).split(32, 1))
            loss = F.scaled_dot_product_attention(q, k, v).sum()
            loss.backward()
            return loss

    step = Step()
    step(flow.randn(512, 32))
    assert step._compiled.program.plan.arena < 4 * 512 * 512 * 4
