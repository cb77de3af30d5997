"""16-bit floats on a device: elementwise programs read and write them, and other ops use float32 internally,
as on the CPU.
"""
import numpy as np
import pytest
from no_kernel import NO_KERNEL

import flowedu as flow
import flowedu.nn.functional as F
from amp.test_every_op import EPSILON, bits, draw_float32_arrays, list_calls_and_dtypes, rounded
from common import as_list
from flowedu.errors import UnsupportedError
from laws.calls import attributes

HALVES = (flow.float16, flow.bfloat16)
X = np.random.default_rng(0).normal(size=(6, 8)).astype("f4")
CALLS = {"a chain": lambda x, w: (x * 2 + x.exp()).tanh(),
         "a row": lambda x, w: x + x[:1], "a column": lambda x, w: x * x[:, :1],
         "comparison": lambda x, w: x > 0, "where": lambda x, w: flow.where(x > 0, x, -x),
         "matmul": lambda x, w: x @ w,
         "transposed": lambda x, w: x.t() + 1, "sum": lambda x, w: x.sum(1),
         "softmax": lambda x, w: F.softmax(x, 1),
         "layer norm": lambda x, w: F.layer_norm(x, (8,)), "gelu": lambda x, w: F.gelu(x),
         "cast": lambda x, w: x.float(),
         "mean": lambda x, w: x.mean(1), "mse": lambda x, w: F.mse_loss(x, x * 2),
         "einsum": lambda x, w: flow.einsum("...i,...i->...", x, x), "cat": lambda x, w: flow.cat([x, x * 2]),
         "norm": lambda x, w: F.batch_norm(x, None, None, training=True),
         "sort": lambda x, w: flow.sort(x, 1)[0],
         "index": lambda x, w: x[[0, -1]],
         "loss": lambda x, w: F.cross_entropy(x, flow.arange(6).to(x.device)),
         "conv": lambda x, w: F.conv2d(x.reshape(1, 1, 6, 8), w[:4, :2].reshape(2, 1, 2, 2))}


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_match_the_cpu(name, half):
    found = []
    for place in ("cpu", "cuda"):
        x = flow.tensor(X).to(half).to(place).requires_grad_()
        w = flow.tensor(X.T[:, :3].copy()).to(half).to(place)
        y = CALLS[name](x, w)
        assert y.dtype in (half, flow.bool, flow.float32) and y.device.type == place
        if y.dtype.is_floating_point:
            y.float().sum().backward()
            assert x.grad.dtype is half
        found.append((y.float().detach().cpu().numpy(), None if x.grad is None
                      else x.grad.float().cpu().numpy()))
    (a, da), (b, db) = found
    room = 4 * (2 ** -10 if half is flow.float16 else 2 ** -7)
    np.testing.assert_allclose(b, a, rtol=room, atol=room)
    if da is not None:
        np.testing.assert_allclose(db, da, rtol=room, atol=4 * room)


@pytest.mark.parametrize(("case", "half"),
                         list_calls_and_dtypes(lambda op: op.name not in NO_KERNEL and op.name != "cast"))
def test_results_are_near_those_of_the_cpu(case, half):
    """Results are within a few roundings of the CPU's, as for float32 kernels."""
    op, example = case
    attrs = attributes(op, example)
    narrow, _ = rounded(draw_float32_arrays(op, example), half)
    want = as_list(op.call(tuple(narrow), attrs))
    for got, y in zip(as_list(op.call(tuple([x.cuda() for x in narrow]), attrs)), want, strict=True):
        assert got.is_cuda and got.dtype is y.dtype and got.shape == y.shape
        a, b = bits(got.cpu()), bits(y)
        largest = np.abs(b).max(initial=1, where=np.isfinite(b)) if b.dtype.kind == "f" else 0
        room = 4 * EPSILON[half] * float(largest)
        np.testing.assert_allclose(a, b, rtol=4 * EPSILON[half], atol=room)


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("amp", [False, True], ids=["as they are", "autocast"])
def test_a_graph_matches_eager_calls(name, half, amp):
    """Where only a float32 kernel exists, the plan contains casts; autocast is also tested."""
    x, w = flow.tensor(X), flow.tensor(X.T[:, :3].copy())
    x, w = (t.cuda() if amp else t.to(half).cuda() for t in (x, w))

    class G(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            if amp:
                self.config.enable_amp(True, dtype=half)

        def build(self, x, w):
            return CALLS[name](x, w)

    with flow.amp.autocast("cuda", dtype=half, enabled=amp):
        want = CALLS[name](x, w)
    got = G()(x, w)
    assert got.is_cuda and got.dtype is want.dtype
    np.testing.assert_array_equal(got.float().cpu().numpy(), want.float().cpu().numpy())


def test_a_value_is_cast_once_for_all_its_readers():
    class G(flow.nn.Graph):
        def build(self, x):
            return x.sum(0), x.sum(1), flow.softmax(x, 1)

    g = G()
    g(flow.tensor(X).half().cuda())
    assert sum(node.op.name == "cast" and node.attrs == (flow.float32,)
               for node in g._compiled.program.graph.nodes) == 1


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_nan_infinity_and_overflow(half):
    x = flow.tensor([float("nan"), float("inf"), -1e30, 1e-30, 0.0]).to(half)
    np.testing.assert_array_equal((x.to("cuda") * 1.0).float().cpu().numpy(), (x * 1.0).float().numpy())


def test_updates_of_parameters_in_16_bits_are_refused():
    p = flow.nn.Parameter(flow.ones(3).half().to("cuda"))
    p.grad = flow.ones(3).half().to("cuda")
    with pytest.raises(UnsupportedError, match="(?s)float16.*float32"):
        flow.optim.SGD([p], lr=0.1).step()
    assert flow.equal(p.detach().cpu().float(), flow.ones(3))


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_a_program_with_autocast_and_a_scaler_trains_as_on_the_cpu(half):
    """Compare the losses of a typical program on both devices, with an overflow in the second step."""
    losses = []
    for place in ("cpu", "cuda"):
        flow.manual_seed(0)
        parts = flow.nn.Linear(8, 16), flow.nn.ReLU(), flow.nn.LayerNorm(16), flow.nn.Linear(16, 3)
        model = flow.nn.Sequential(*parts).to(place)
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
        scaler = flow.amp.GradScaler(init_scale=2.0 ** 10)
        x, y = flow.tensor(X).to(place), (flow.arange(6) % 3).to(place)
        for step in range(4):
            optimizer.zero_grad()
            with flow.amp.autocast(place, dtype=half):
                loss = F.cross_entropy(model(x * (np.inf if step == 1 else 1)), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(float(loss.item()))
        assert scaler.get_scale() == 2.0 ** 9
    here, there = np.array(losses).reshape(2, 4)
    np.testing.assert_allclose(there, here, rtol=16 * (2 ** -10 if half is flow.float16 else 2 ** -7))
    assert there[3] < there[0] and np.isnan(there[1])
