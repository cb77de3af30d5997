"""autocast: the dtype in which each op computes in every mode, nesting, caching of casts, and errors."""
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.nn.functional as F
from flowedu import amp, nn
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import FlowError
from flowedu.nn.amp.lists import AS_FIRST, MIXED, NARROW, WIDE

HALVES = (flow.float16, flow.bfloat16)


def test_the_lists_name_each_op_once():
    named = [*NARROW, *WIDE, *AS_FIRST, *MIXED]
    assert len(named) == len({*named}) and {*named} <= {*REGISTRY.values()}


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_dtypes_inside_a_block(half):
    x, w, b = flow.randn(2, 3, 6, 6), flow.randn(4, 3, 3, 3), flow.randn(4)
    with amp.autocast("cpu", dtype=half):
        y = F.conv2d(x, w, b)
        assert y.dtype is half and F.linear(x, flow.randn(5, 6), flow.randn(5)).dtype is half
        assert (x @ x).dtype is half and flow.matmul(x, x).dtype is half and (
            x.half() @ x.bfloat16()).dtype is half
        assert F.relu(y).dtype is half and (y + y).dtype is half and (y + 1.0).dtype is half
        assert (y + x[:, :1, :4, :4]).dtype is flow.float32
        assert F.softmax(y, 1).dtype is F.layer_norm(
            y, (4,)).dtype is y.exp().dtype is y.sum().dtype is flow.float32
        assert F.cross_entropy(y.flatten(1),
                               flow.tensor([0, 1])).dtype is F.mse_loss(y, y).dtype is flow.float32
        assert F.batch_norm(y, training=True).dtype is half and F.max_pool2d(y, 2).dtype is half
        assert F.scaled_dot_product_attention(x, x, x).dtype is half
        assert (x.double() @ x.double()).dtype is flow.float64 and flow.arange(3).dtype is flow.int64
    assert (x @ x).dtype is flow.float32 and not amp.is_autocast_enabled()


def model():
    flow.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(36, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 5))


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_eager_and_a_graph_train_equally(half):
    """Both insert the same casts: a graph with enable_amp equals the autocast block, step by step."""
    rng = np.random.default_rng(0)
    x, y = flow.tensor(rng.normal(size=(6, 1, 8, 8)).astype("f4")), flow.tensor(rng.integers(0, 5, 6))

    class Step(nn.Graph):
        def __init__(self, model, optimizer):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)
            self.config.enable_amp(True, dtype=half)

        def build(self, x, y):
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            return loss

    one, other = model(), model()
    eager, inside = (flow.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (one, other))
    step = Step(other, inside)
    for _ in range(4):
        with amp.autocast("cpu", dtype=half):
            loss = F.cross_entropy(one(x), y)
        loss.backward()
        eager.step()
        eager.zero_grad()
        np.testing.assert_allclose(step(x, y).item(), loss.item(), rtol=2e-2)
    for a, b in zip(one.parameters(), other.parameters()):
        assert a.dtype is b.dtype is flow.float32
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=0.05, atol=0.02)


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_gradients_equal_float32_up_to_rounding(half):
    x, y = flow.randn(6, 1, 8, 8), flow.tensor([0, 1, 2, 3, 4, 0])
    one, other = model(), model()
    F.cross_entropy(one(x), y).backward()
    with amp.autocast("cpu", dtype=half):
        F.cross_entropy(other(x), y).backward()  # inside the block, backward casts nothing
    for a, b in zip(one.parameters(), other.parameters()):
        room = 40 * (2 ** -10 if half is flow.float16 else 2 ** -7)
        assert b.grad.dtype is flow.float32
        assert (a.grad - b.grad).norm() <= room * (a.grad.norm() + 0.05)


@given(st.lists(st.sampled_from(["float16", "bfloat16", "off", "float32", "raises"]), min_size=1, max_size=5))
def test_blocks_nest_and_restore(kinds):
    x, seen = flow.ones(2, 2), []

    def inside(rest):
        before = (x @ x).dtype
        if not rest:
            return
        block = amp.autocast("cpu", enabled=False) if rest[0] == "off" else \
            amp.autocast("cpu", dtype=flow.float16 if rest[0] == "raises" else getattr(flow, rest[0]))
        try:
            with block:
                seen.append(((x @ x).dtype, rest[0]))
                inside(rest[1:])
                if rest[0] == "raises":
                    raise ValueError
        except ValueError:
            pass
        assert (x @ x).dtype is before

    inside(kinds)
    want = {"off": flow.float32, "raises": flow.float16, "float16": flow.float16, "bfloat16": flow.bfloat16,
            "float32": flow.float32}
    assert all(got is want[kind] for got, kind in seen) and not amp.is_autocast_enabled()


def test_a_block_is_thread_local_and_a_decorator():
    x, found = flow.ones(2, 2), []
    with amp.autocast("cpu"):
        t = threading.Thread(target=lambda: found.append((x @ x).dtype))
        t.start()
        t.join()
    assert found == [flow.float32]

    @amp.autocast("cpu", dtype=flow.float16)
    def f(x):
        """said"""
        return x @ x, amp.get_autocast_dtype("cpu")

    assert f(x)[0].dtype is f(x)[1] is flow.float16 and f.__doc__ == "said"
    assert amp.get_autocast_dtype("cpu") is flow.bfloat16 and amp.get_autocast_dtype("cuda") is flow.float16


def test_parameters_are_cast_once_in_a_block_and_again_after_a_write(monkeypatch):
    layer, x, casts = nn.Linear(3, 3), flow.ones(2, 3), []
    inner = type(REGISTRY["cast"]).call

    with amp.autocast("cpu", dtype=flow.float16):
        kept = thread_state.amp.kept
        layer(x), layer(x)
        assert {id(layer.weight)} == {*kept}
        first = kept[id(layer.weight)][3]
        layer(x)
        assert kept[id(layer.weight)][3] is first
        with flow.no_grad():
            layer.weight.add_(1.0)
        assert (layer(x) - 3 * 1.0).shape == (2, 3) and kept[id(layer.weight)][3] is not first
        with amp.autocast("cpu", dtype=flow.float16):                     # the same block
            assert thread_state.amp.kept is kept
    with amp.autocast("cpu", cache_enabled=False):
        layer(x)
        assert not thread_state.amp.kept
    assert inner is type(REGISTRY["cast"]).call and not casts


@pytest.mark.parametrize("call", [lambda: amp.autocast("tpu"), lambda: amp.autocast("cpu", dtype=flow.int32),
                                  lambda: amp.autocast("cpu", dtype=flow.float64)])
def test_invalid_arguments_of_autocast_are_refused(call):
    with pytest.raises(FlowError) as e:
        call()
    assert e.value.expected and e.value.fix


def test_float16_loses_small_gradients_and_bfloat16_loses_precision():
    """The reason for a scaler: 1e-8 is 0 in float16, and 1 + 2^-9 is 1 in bfloat16."""
    assert flow.tensor(1e-8).half().item() == 0.0 and flow.tensor(1e-8).bfloat16().float().item() > 0
    assert (flow.tensor(1 + 2 ** -9).bfloat16().float().item() == 1.0
            and flow.tensor(1 + 2 ** -9).half().item() > 1.0)
