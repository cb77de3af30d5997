"""Memory: sharing with NumPy, copies, and reuse of freed blocks."""
import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import flowedu as flow
from common import constant_rate, f32, fresh_session, job, refused  # noqa: F401
from laws.calls import attributes, cases, draw_arrays, draw_values, input_name, label, thin, types_of

TYPES = [np.float32, np.float64, np.int32, np.int64, np.int8, np.uint8, np.bool_, np.float16]
ARRAYS = st.sampled_from(TYPES).flatmap(
    lambda t: hnp.arrays(t, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)))


@pytest.fixture(autouse=True, scope="module")
def quick_collections():
    """Freeze objects of earlier tests, so that gc.collect() here does not scan them again."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def live():
    gc.collect()
    return flow.memory_stats()["live"]


# --- sharing
# ---------------------------------------------------------------------------------------------------------

@given(ARRAYS)
def test_tensor_copies_and_from_numpy_shares(a):
    copy, shared = flow.tensor(a), flow.from_numpy(a)
    for t in (copy, shared):
        assert t.shape == a.shape and t.dtype.numpy == a.dtype
        np.testing.assert_array_equal(t.numpy(), a)
    if a.size:
        assert not np.shares_memory(copy.numpy(), a) and np.shares_memory(shared.numpy(), a)
        a.flat[0] = 1 if a.flat[0] == 0 else 0
        assert shared.numpy().flat[0] == a.flat[0] != copy.numpy().flat[0]
        shared.numpy()[...] = 1
        assert (a == 1).all()


@given(hnp.array_shapes(min_dims=1, max_dims=4, max_side=4), st.data())
def test_views_of_arrays_keep_their_strides(shape, data):
    a = np.arange(np.prod(shape)).reshape(shape)
    steps = tuple(slice(None, None, data.draw(st.sampled_from([1, 2]))) for _ in shape)
    view = a.transpose(data.draw(st.permutations(range(len(shape)))))[steps]
    t = flow.from_numpy(view)
    assert t.stride() == tuple(s // 8 for s in view.strides)
    np.testing.assert_array_equal(t.numpy(), view)
    np.testing.assert_array_equal((t + 0).numpy(), view)


def test_views_share_memory_both_ways():
    t = flow.tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    for view in (t.reshape(6, 4), t.permute(2, 0, 1), t[1], t[:, ::2], t[0, 1, 2], t.detach(), t.flatten()):
        assert np.shares_memory(view.numpy(), t.numpy())
        view.numpy()[...] = -1
        assert (t.numpy() == -1).any()
        t.numpy()[...] = np.arange(24).reshape(2, 3, 4)
    assert not np.shares_memory(t.clone().numpy(), t.numpy())
    assert np.shares_memory(t.contiguous().numpy(), t.numpy()), "contiguous already"
    assert not np.shares_memory(t.permute(2, 1, 0).contiguous().numpy(), t.numpy())


def test_memory_lives_as_long_as_any_view():
    t = flow.tensor(f32(100))
    a, want = t.numpy(), t.numpy().copy()
    del t
    gc.collect()
    others = [flow.tensor(f32(100, seed=i)) for i in range(5)]      # would reuse the block if it were free
    np.testing.assert_array_equal(a, want)
    b = f32(50)
    kept = flow.from_numpy(b)
    want = b.copy()
    del b
    gc.collect()
    np.testing.assert_array_equal(kept.numpy(), want)
    assert len(others) == 5


def test_arrays_that_cannot_be_shared_are_refused():
    with refused(ValueError, fix=False):
        flow.from_numpy(np.zeros((1,) * 9, np.float32))
    with refused(TypeError):
        flow.from_numpy(np.array(["a"]))
    odd = np.zeros(3, np.dtype([("a", np.float32), ("b", np.int8)]))["a"]
    with pytest.raises(ValueError, match="whole elements"):
        flow.from_numpy(odd)
    with pytest.raises(BufferError):
        # np.frombuffer needs contiguous memory
        np.frombuffer(flow.tensor(f32(4, 4)).transpose(1, 0), np.float32)


# --- the allocator
# ---------------------------------------------------------------------------------------------------

def test_freed_blocks_are_used_again():
    flow.empty_cache()
    start = live()
    t = flow.empty(1000)
    address = t.address
    assert live() - start >= 4000
    del t
    assert live() == start and flow.memory_stats()["cached"] >= 4000
    t = flow.empty(1000)
    assert t.address == address
    del t
    flow.empty_cache()
    assert flow.memory_stats()["cached"] == 0


@given(st.lists(st.integers(0, 5000), max_size=30), st.randoms())
def test_live_bytes_equal_the_size_of_living_tensors(sizes, rng):
    start = live()
    held = []
    for n in sizes:
        held.append(flow.empty(n))
        assert held[-1].address % 64 == 0
        if rng.random() < 0.4:
            held.pop(rng.randrange(len(held)))
        used = flow.memory_stats()["live"] - start
        wanted = sum(4 * t.numel() for t in held)
        assert wanted <= used <= 1.26 * wanted + 64 * len(held)
    spans = sorted((t.address, t.address + 4 * t.numel()) for t in held if t.numel())
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), "two live tensors overlap"
    held.clear()
    assert live() == start


# --- leaks
# -----------------------------------------------------------------------------------------------------------

def test_eager_training_leaks_nothing():
    def step():
        loss = (flow.math.relu(x @ w + b) ** 2).sum()
        loss.backward()
        w.grad = b.grad = None

    x, w, b = (flow.tensor(f32(8, 16)), flow.tensor(f32(16, 4), requires_grad=True),
               flow.tensor(f32(4), requires_grad=True))
    step()
    start = live()
    for _ in range(20):
        step()
    assert live() == start


def test_a_graph_without_backward_is_freed_with_its_result():
    w = flow.tensor(f32(100), requires_grad=True)
    start = live()
    y = w
    for _ in range(50):
        y = (y * 2).tanh()
    assert live() > start
    del y
    assert live() == start


def test_a_very_long_chain_is_freed_and_traversed():
    w = flow.tensor(f32(1), requires_grad=True)
    start = live()
    y = w
    for _ in range(100_000):
        y = y + 1.0
    y.backward()
    assert w.grad.item() == 1.0
    w.grad = None
    del y
    y = w
    for _ in range(100_000):
        y = y * 1.0
    del y
    assert live() == start


def test_sessions_are_freed():
    def once():
        flow.clear_default_session()
        def body(a):
            loss = flow.layers.dense(a, 30, flow.nn.relu, kernel_initializer=flow.random_normal_initializer())
            flow.optimizer.Adam(constant_rate(0.1)).minimize(loss)
            return loss
        step = job(body, f32(20, 10), type="train")
        for _ in range(3):
            step(f32(20, 10))
        flow.clear_default_session()

    once()
    start = live()
    for _ in range(5):
        once()
    assert live() == start


@pytest.mark.parametrize("case", thin(cases(lambda op: bool(op.rules) and not op.random)), ids=label)
def test_backward_frees_saved_tensors(case):
    """After backward, only the inputs and their gradients stay allocated, for every op and in every run."""
    op, example = case
    attrs, rng = attributes(op, example), np.random.default_rng(0)
    types = types_of(op, example, np.float64)
    arrays = [draw_values(op.domain.get(input_name(op, i), "any"), s, t, rng, i)
              for i, (s, t) in enumerate(zip(example["shapes"], types))]
    tensors = [flow.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]

    def step():
        out = op.call(tuple(tensors), attrs)
        out = [y for y in (out if isinstance(out, tuple) else (out,)) if y.requires_grad]
        total = sum((y.sum() for y in out), 0.0)
        total.backward()
        bare = [t.detach() for t in (total, *out)]
        graph = live()
        del total, out
        assert live() == graph, "the walked graph still holds memory"
        for t in tensors:
            if t.requires_grad:
                t.grad = None
        return len(bare)

    step()
    start = live()
    for _ in range(3):
        step()
    assert live() == start


@pytest.mark.parametrize("case", thin(cases(lambda op: not op.mutates)), ids=label)
def test_calls_leak_nothing(case):
    op, example = case
    attrs, rng = attributes(op, example), np.random.default_rng(0)
    arrays = draw_arrays(op, example, np.float32, rng)
    op.call(tuple(map(flow.tensor, arrays)), attrs)
    start = live()
    for _ in range(3):
        op.call(tuple(map(flow.tensor, arrays)), attrs)
    assert live() == start
