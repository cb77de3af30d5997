"""vmap: a function of one sample as a function of a batch, against a loop over the samples."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from common import refused
from flowedu import nn
from flowedu.core.ops import axes
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.record import Effects, Kernel, Laws, Meaning, read
from flowedu.nn import functional as F

RNG = np.random.default_rng(0)
X, W, IMAGE = (flow.tensor(RNG.standard_normal(s)) for s in ((5, 3, 4), (4, 2), (4, 2, 3, 8, 8)))
KERNEL = flow.tensor(RNG.standard_normal((4, 5, 3, 3, 3)))


def changed(x):
    y = x.clone()
    y[0] = 7
    y[1:] += 1
    return y.mul_(2)


MLP = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.LayerNorm(5), nn.Linear(5, 1)).double()
# (a function of one sample, its arguments, their batch axes)
CALLS = {
    "sum": (lambda x: x.sum(), (X,), 0), "matmul": (lambda x, w: x @ w, (X, W), (0, None)),
    "max": (lambda x: x.max(0).values, (X,), 0), "slices": (lambda x: x[1:, ::2], (X,), 0),
    "gather": (lambda x: x[[0, 2]], (X,), 0), "in place": (changed, (X,), 0),
    "var": (lambda x: x.var(0), (X,), 0),
    "cat": (lambda x: flow.cat([x, x * 2], 1), (X,), 0), "the second axis": (lambda x: x.cumsum(0), (X,), 1),
    "the last axis": (lambda x: x.softmax(0), (X,), -1),
    "einsum": (lambda x, w: flow.einsum("ij,jk->ki", x, w), (X, W),
               (0, None)),
    "convolution": (lambda x, k: F.conv2d(x, k, padding=1), (IMAGE, KERNEL[0]), (0, None)),
    "kernels": (lambda x, k: F.conv2d(x, k, padding=1), (IMAGE[0], KERNEL), (None, 0)),
    "both": (lambda x, k: F.conv2d(x, k), (IMAGE, KERNEL), 0), "pooling": (lambda x: F.max_pool2d(x, 2),
                                                                           (IMAGE,), 0),
    "classes": (F.cross_entropy, (X, flow.tensor(RNG.integers(0, 4, (5, 3)))), 0),
    "a class": (F.cross_entropy, (X[:, 0], flow.tensor(RNG.integers(0, 4, 5))), 0),
    "sort": (lambda x: x.sort(-1).indices, (X,), 0), "modules": (MLP, (X,), 0),
    "a vector": (MLP, (X[:, 0],), 0),
    "attention": (lambda q: F.scaled_dot_product_attention(q, q, q), (IMAGE[:, 0],), 0),
    "embedding": (lambda i: F.embedding(i, W), (flow.tensor([[0, 1], [2, 3]]),), 0),
    "dot": (flow.dot, (X[:, 0], X[:, 1]), 0),
    "where": (lambda x, m: flow.where(m > 0, x, -1.0), (X, X[0]), (0, None)),
    "nested": (lambda x: flow.vmap(lambda r: r.sum() * r, 1, 1)(x), (X,), 0),
    "norm": (lambda x: F.batch_norm(x, None, None, training=True), (IMAGE,), 0),
}


def one_by_one(f, args, dims):
    dims = dims if isinstance(dims, tuple) else (dims,) * len(args)
    n = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
    return [f(*[a if d is None else a.select(d, k) for a, d in zip(args, dims)]) for k in range(n)]


@pytest.mark.parametrize("name", CALLS)
def test_vmap_equals_the_stack_of_single_calls(name):
    f, args, dims = CALLS[name]
    want = flow.stack(one_by_one(f, args, dims)).detach().numpy()
    for chunk in (None, 1, 3):
        got = flow.vmap(f, dims, chunk_size=chunk)(*args)
        assert got.dtype.numpy == want.dtype
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-9, atol=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 2), st.integers(0, 2), st.integers(-3, 2))
def test_batch_axes_follow_in_dims_and_out_dims(one, other, out):
    a, b = X.movedim(0, one), {"key": [X.movedim(0, other), 3]}
    got = flow.vmap(lambda x, more: (x + more["key"][0] * more["key"][1], {"sum": x.sum()}),
                    (one, {"key": [other, None]}), (out, 0))(a, b)
    np.testing.assert_array_equal(got[0].numpy(), np.moveaxis((X + X * 3).numpy(), 0, out))
    np.testing.assert_allclose(got[1]["sum"].numpy(), X.numpy().sum((1, 2)), rtol=1e-12)


def test_unbatched_results_are_repeated_or_returned_unchanged():
    y, z = flow.vmap(lambda x: (W, W), out_dims=(0, None))(X)
    np.testing.assert_array_equal(y.numpy(), np.stack([W.numpy()] * 5))
    assert z is W
    with refused(ValueError, "out_dim is None"):
        flow.vmap(lambda x: x, out_dims=None)(X)


def test_gradients_through_vmap_equal_a_loop():
    x, w = (flow.tensor(t.numpy(), requires_grad=True) for t in (X, W))
    flow.vmap(lambda x: flow.tanh(x @ w).sum() ** 2)(x).sum().backward()
    a, b = (flow.tensor(t.numpy(), requires_grad=True) for t in (X, W))
    sum(flow.tanh(row @ b).sum() ** 2 for row in a).backward()
    np.testing.assert_allclose(x.grad.numpy(), a.grad.numpy(), rtol=1e-9)
    np.testing.assert_allclose(w.grad.numpy(), b.grad.numpy(), rtol=1e-9)


def test_vmap_runs_in_a_graph():
    class Pairs(nn.Graph):
        def build(self, x):
            return flow.vmap(lambda row: flow.vmap(lambda e: (row * e).sum())(row))(x)

    np.testing.assert_allclose(Pairs()(X[:, 0]).numpy(),
                               X[:, 0].numpy() * X[:, 0].numpy().sum(1, keepdims=True), rtol=1e-12)


def test_random_ops_follow_the_randomness_argument():
    def drops(x):
        return F.dropout(flow.ones_like(x)) + 0 * x, flow.randn(4)

    with refused(NotImplementedError, "randomness"):
        flow.vmap(drops)(X)
    same, numbers = flow.vmap(drops, randomness="same")(X)
    assert (same.numpy() == same[0].numpy()).all() and (numbers.numpy() == numbers[0].numpy()).all()
    flow.manual_seed(0)
    other, numbers = flow.vmap(drops, randomness="different")(X)
    assert len(np.unique(other.numpy().reshape(5, -1), axis=0)) == len(np.unique(numbers.numpy(),
                                                                                 axis=0)) == 5
    assert numbers.shape == (5, 4)


def test_invalid_calls_are_refused():
    with refused(flow.errors.LazyTensorError, "vmap", "flow.where"):
        flow.vmap(lambda x: x if x.sum() > 0 else -x)(X)
    with refused(ValueError, "sizes [4, 5]"):
        flow.vmap(lambda x, w: x.sum() + w.sum())(X, W)
    with refused(ValueError, "at least one tensor"):
        flow.vmap(lambda x: x, None)(X)
    with refused(ValueError, "in_dim is out of range"):
        flow.vmap(lambda x: x, 3)(X)
    with refused(ValueError, "structure of inputs"):
        flow.vmap(lambda x: x, (0, 0))(X)
    with refused(ValueError, "structure of outputs"):
        flow.vmap(lambda x: x, 0, (0, 0))(X)
    with refused(TypeError, "must return tensors"):
        flow.vmap(lambda x: 3.0)(X)
    with refused(ValueError, "randomness"):
        flow.vmap(lambda x: x, randomness="some")
    with refused(ValueError, "chunk_size"):
        flow.vmap(lambda x: x, chunk_size=0)
    with refused(flow.errors.LazyTensorError, "eager tensor"):
        flow.vmap(lambda x: flow.zeros(3, 4, dtype=flow.float64).copy_(x))(X)


def test_ops_with_an_effect_are_refused_before_they_run():
    """An op with side effects must run once per sample: a message, a counter, a file. An op that is only
    `fresh` has none.
    """
    calls = []

    def count(x):
        calls.append(x.shape)
        return x * 2

    def record(**effects):
        return Op(read("count(x) -> y"), Meaning(lambda x: "{0}->{0}".format(axes.same(x.ndim)), count),
                  Kernel(trusted=True), Effects(**effects), Laws(float_only=False), doc="Twice x.")

    loud = record(effect=True), record(fresh=True, effect=True)
    for op in loud:
        for f in (op, lambda x, op=op: op(x * 2).sum(), lambda x, op=op: (op(x), x)[1],
                  lambda x, op=op: flow.vmap(op)(x), flow.func.grad(lambda x, op=op: (op(x) + x).sum())):
            for randomness in ("error", "same", "different"):
                with refused(NotImplementedError, "vmap: count has an effect"):
                    flow.vmap(f, randomness=randomness)(X)
    assert not calls
    for op in loud:                            # unbatched inputs run once
        flow.vmap(lambda x, op=op: x + op(flow.ones(4, dtype=flow.float64)).sum())(X)
    assert calls == [(4,), (4,)]
    np.testing.assert_array_equal(flow.vmap(record(fresh=True))(X).numpy(), 2 * X.numpy())


RANDOM = {name: op for name, op in REGISTRY.items() if op.random and op.cpu is not None}
OPTIONS = {"random_uniform": dict(shape=(4,), dtype=flow.float64),
           "random_normal": dict(shape=(4,), dtype=flow.float64),
           "random_randint": dict(shape=(4,), high=1000), "random_mask_like": dict(rate=0.5)}


@pytest.mark.parametrize("name", RANDOM)
def test_every_random_op_follows_the_randomness_argument(name):
    def draw(x):
        return RANDOM[name](*[x.sum(1)] * len(RANDOM[name].inputs), **OPTIONS[name], seed=1, draw=0)

    with refused(NotImplementedError, f"vmap: {name} draws random numbers", "randomness='different'"):
        flow.vmap(draw)(flow.ones(40, 4, 2))
    rows = {how: np.unique(flow.vmap(draw, randomness=how)(flow.ones(40, 4, 2)).numpy(), axis=0)
            for how in ("same", "different")}
    # of 40 rows of four coins 9 or fewer are distinct with probability C(16, 9) * (9 / 16)**40 < 2e-6
    assert len(rows["same"]) == 1 and len(rows["different"]) >= (10 if name == "random_mask_like" else 40)


MUTATING = [name for name, op in REGISTRY.items() if op.mutates]


@pytest.mark.parametrize("name", MUTATING)
def test_every_op_that_writes_is_refused(name):
    """The registry entry determines this, before any other check of the call."""
    op = REGISTRY[name]
    inputs = [X] * max(len(op.inputs), 1)
    with refused(NotImplementedError, f"vmap: {name} has an effect"):
        flow.vmap(lambda *xs: op.call(xs, ()))(*inputs)
