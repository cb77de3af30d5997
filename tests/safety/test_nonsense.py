"""Law: invalid values raise an error that names the problem, not an internal one like ZeroDivisionError."""
import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import FlowError

F, INF, NAN = flow.nn.functional, float("inf"), float("nan")
ONES, PICTURE, EMPTY = flow.ones(2, 3), flow.ones(1, 1, 2, 2), flow.ones(1, 1, 0, 2)


def itself():
    x = []
    x.append(x)
    return x


def deep(n=100_000):
    x = []
    for _ in range(n):
        x = [x]
    return x


def put(value):
    x = flow.tensor([1, 2])
    x[0] = value


CALLS = {
    "25 axes": lambda: flow.zeros((1,) * 25), "25 axes by reshape": lambda: flow.ones(1).reshape((1,) * 25),
    "25 axes by expand": lambda: flow.ones(1).expand((1,) * 25), "9 axes": lambda: flow.ones((1,) * 9),
    "25 axes by repeat": lambda: flow.ones(1).repeat((1,) * 25),
    "30 axes of an array": lambda: flow.tensor(np.ones((1,) * 30)),
    "9 axes by stack": lambda: flow.stack([flow.ones((1,) * 8)]),
    "26 random axes": lambda: flow.rand((1,) * 26),
    "arange to inf": lambda: flow.arange(0, INF), "arange of nan": lambda: flow.arange(NAN),
    "arange of too many": lambda: flow.arange(0, 1e300, 1e-300),
    "arange by nan": lambda: flow.arange(0, 1, NAN),
    "arange of denormal steps": lambda: flow.arange(0, 1.0, 1e-320),
    "interpolate by nan": lambda: F.interpolate(PICTURE, scale_factor=NAN),
    "interpolate by inf": lambda: F.interpolate(PICTURE, scale_factor=INF),
    "interpolate by 1e18": lambda: F.interpolate(PICTURE, scale_factor=1e18),
    "interpolate by 0": lambda: F.interpolate(PICTURE, scale_factor=0.0, mode="bicubic"),
    **{f"interpolate nothing, {m}": lambda m=m: F.interpolate(EMPTY, size=3, mode=m)
       for m in ("nearest", "bilinear", "bicubic", "area", "nearest-exact")},
    "histc of 0 bins": lambda: flow.histc(ONES, 0), "histc of -3 bins": lambda: flow.histc(ONES, -3),
    "histc of nan": lambda: flow.histc(ONES * NAN), "histc of inf": lambda: flow.histc(ONES * INF),
    "histc upside down": lambda: flow.histc(ONES, min=3, max=1),
    "repeat_interleave by -1": lambda: flow.repeat_interleave(flow.ones(2), flow.tensor([-1, 3])),
    "one_hot of nothing": lambda: F.one_hot(flow.tensor([], dtype=flow.int64)),
    "multinomial of nothing": lambda: flow.multinomial(flow.ones(0), 1),
    "multinomial of rows of nothing": lambda: flow.multinomial(flow.ones(2, 0), 1),
    "poisson of -1": lambda: flow.poisson(flow.tensor([-1.0])),
    "poisson of nan": lambda: flow.poisson(flow.tensor([NAN])),
    "poisson of 1e30": lambda: flow.poisson(flow.tensor([1e30])),
    "0 pieces": lambda: flow.tensor_split(ONES, 0),
    "a whole nan": lambda: put(NAN), "a whole inf": lambda: flow.tensor([1]).fill_(INF),
    "a float of 400 digits": lambda:
    flow.ones(1) + 10**400, "masked by nan": lambda: flow.tensor([1]).masked_fill(flow.tensor([True]), NAN),
    "padded with nan": lambda: F.pad(flow.tensor([1]), (1, 1), value=NAN),
    "a list that holds itself": lambda: flow.tensor(itself()), "a deep list": lambda: flow.tensor(deep()),
    "as_tensor of a list that holds itself": lambda: flow.as_tensor(itself()),
    "Tensor of a deep list": lambda:
    flow.Tensor(deep()), "pad_sequence of nothing": lambda: flow.nn.utils.rnn.pad_sequence([]),
    "unique_consecutive of no axis": lambda: flow.unique_consecutive(ONES, dim=5),
    "size of no axis": lambda: ONES.size(2**32),
    "stride of no axis": lambda: ONES.stride(3), "chunk of 0 axes": lambda: flow.chunk(flow.tensor(2.0), 2),
    "split of 0 axes": lambda: flow.split(flow.tensor(2.0), 3), "unflatten of 0 axes": lambda: flow.tensor(
        2.0).unflatten(0, (1, 1)), "combinations of 0 axes": lambda: flow.combinations(flow.tensor(2.0)),
    "atleast_1d of nothing": lambda: flow.atleast_1d(),
    "chain_matmul of nothing": lambda: flow.chain_matmul(),
    "no dtype": lambda: ONES.norm(dtype=()), "a tensor as dtype": lambda: ONES.sum(dtype=ONES),
    "two dtypes": lambda:
    flow.cumsum(ONES, 0, dtype=(flow.float32, flow.float32)),
    "trunc_normal of std 0": lambda: flow.tensor([2.0]).trunc_normal_(-2, 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_invalid_values_raise_flow_errors(name):
    with pytest.raises(FlowError) as info:
        CALLS[name]()
    assert info.value.problem and info.value.expected and info.value.got


def test_calls_that_look_invalid_but_are_valid():
    assert flow.unique_consecutive(flow.ones(0)).shape == (0,)
    assert flow.unique_consecutive(flow.ones(0, 2), dim=0).shape == (0, 2)
    np.testing.assert_array_equal(ONES.round(decimals=400).numpy(), np.ones((2, 3)))
    np.testing.assert_array_equal(flow.round(ONES, decimals=-400).numpy(), np.zeros((2, 3)))
    none, ones = flow.ones(1, 2, 0), flow.ones(1, 2, 3)
    np.testing.assert_array_equal(F.scaled_dot_product_attention(none, none, ones).numpy(),
                                  np.ones((1, 2, 3)))
    assert flow.arange(0, 1.0, 0.25).shape == (4,) and flow.tensordot(ONES, ONES, 0).shape == (2, 3, 2, 3)
