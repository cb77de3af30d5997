"""16-bit floats on a device: elementwise programs read and write them, other ops go by way of float32; as on the CPU."""
import numpy as np
import pytest

import flowedu as flow
import flowedu.nn.functional as F
from flowedu.errors import UnsupportedError

HALVES = (flow.float16, flow.bfloat16)
X = np.random.default_rng(0).normal(size=(6, 8)).astype("f4")
CALLS = {"a chain": lambda x, w: (x * 2 + x.exp()).tanh(),
         "a row": lambda x, w: x + x[:1], "a column": lambda x, w: x * x[:, :1],
         "comparison": lambda x, w: x > 0, "where": lambda x, w: flow.where(x > 0, x, -x), "matmul": lambda x, w: x @ w,
         "transposed": lambda x, w: x.t() + 1, "sum": lambda x, w: x.sum(1), "softmax": lambda x, w: F.softmax(x, 1),
         "layer norm": lambda x, w: F.layer_norm(x, (8,)), "gelu": lambda x, w: F.gelu(x), "cast": lambda x, w: x.float(),
         "conv": lambda x, w: F.conv2d(x.reshape(1, 1, 6, 8), w[:4, :2].reshape(2, 1, 2, 2))}


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_the_cpus(name, half):
    found = []
    for place in ("cpu", "cuda"):
        x = flow.tensor(X).to(half).to(place).requires_grad_()
        w = flow.tensor(X.T[:, :3].copy()).to(half).to(place)
        y = CALLS[name](x, w)
        assert y.dtype in (half, flow.bool, flow.float32) and y.device.type == place
        if y.dtype.is_floating_point:
            y.float().sum().backward()
            assert x.grad.dtype is half
        found.append((y.float().detach().cpu().numpy(), None if x.grad is None else x.grad.float().cpu().numpy()))
    (a, da), (b, db) = found
    room = 4 * (2 ** -10 if half is flow.float16 else 2 ** -7)
    np.testing.assert_allclose(b, a, rtol=room, atol=room)
    if da is not None:
        np.testing.assert_allclose(db, da, rtol=room, atol=4 * room)


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_nan_infinity_and_what_is_too_large(half):
    x = flow.tensor([float("nan"), float("inf"), -1e30, 1e-30, 0.0]).to(half)
    np.testing.assert_array_equal((x.to("cuda") * 1.0).float().cpu().numpy(), (x * 1.0).float().numpy())


def test_updates_of_parameters_in_16_bits_are_refused():
    p = flow.nn.Parameter(flow.ones(3).half().to("cuda"))
    p.grad = flow.ones(3).half().to("cuda")
    with pytest.raises(UnsupportedError, match="(?s)float16.*float32"):
        flow.optim.SGD([p], lr=0.1).step()
    assert flow.equal(p.detach().cpu().float(), flow.ones(3))
