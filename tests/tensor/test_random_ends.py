"""Laws of the ends of random ranges: the excluded end is never returned, in any dtype, and a draw at either
end of the range becomes a finite number.
"""
import math

import numpy as np
import pytest

import flowedu as flow
from flowedu import distributions as D
from flowedu import nn
from flowedu.nn import functional as F
from flowedu.ops import REGISTRY
from flowedu.tensor.construction import random as draws
from flowedu.tensor.dtypes.numeric_limits import largest_below

FLOATS = (flow.float16, flow.bfloat16, flow.float32, flow.float64)
N = 20000


def spacing(dtype):
    """Return the distance from 1 to the next representable number."""
    return flow.finfo(dtype).eps


def ranges(dtype):
    """Return ranges whose ends are powers of two, other numbers of the dtype, and numbers between two of
    them.
    """
    eps = spacing(dtype)
    return [(0, 1), (-2, 3), (-1, 0), (-3, -1), (0, 0.3), (0.25,
                                                           0.7), (1, 1
                                                                  + eps), (1, 1 + 2 * eps), (-1 - eps, -1),
            (2 - eps, 2 + 2 * eps), (1000, 1001), (0, 1e-3), (0, flow.finfo(dtype).tiny)]


FILLS = {"uniform_": lambda low, high, dtype: flow.empty(N, dtype=dtype).uniform_(low, high),
         "init.uniform_": lambda low, high, dtype: nn.init.uniform_(flow.empty(N, dtype=dtype), low, high),
         "uniform_ in a graph": lambda low, high, dtype: Filled(low, high)(flow.empty(N, dtype=dtype))}


class Filled(nn.Graph):
    def __init__(self, low, high):
        super().__init__()
        self.ends = low, high

    def build(self, x):
        return (x * 0).uniform_(*self.ends)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("fill", FILLS)
def test_uniform_numbers_stay_below_the_upper_end(fill, dtype):
    flow.manual_seed(0)
    for low, high in ranges(dtype):
        x = FILLS[fill](low, high, dtype)
        assert x.dtype is dtype
        values = x.double().numpy()
        lowest = flow.tensor(low, dtype=dtype).double().item()
        assert lowest <= values.min() and values.max() < high, (low, high)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_uniform_numbers_are_uniform_up_to_rounding(dtype):
    """The distance of the two distribution functions is below sqrt(9 / N) with probability 1 - 2e-8
    (Dvoretzky, Kiefer, and Wolfowitz: 2 exp(-2 N t^2)); rounding moves no sample by more than one spacing
    of the dtype.
    """
    flow.manual_seed(1)
    for low, high in (0, 1), (-2, 3), (-1, 0):
        x = np.sort(flow.empty(N, dtype=dtype).uniform_(low, high).double().numpy())
        want = (x - low) / (high - low)
        step = spacing(dtype) * max(abs(low), abs(high)) / (high - low)
        after, before = (np.searchsorted(x, x, side) / N for side in ("right", "left"))
        bound = math.sqrt(9 / N) + step
        assert (after - want).max() <= bound and (want - before).max() <= bound
        if dtype in (flow.float16, flow.bfloat16) and low == 0:
            assert x[0] < 4 / N and x[-1] == largest_below(dtype, 1)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("name, draw", [("rand", lambda dtype: flow.rand(N, dtype=dtype)),
                                        ("rand_like",
                                         lambda dtype: flow.rand_like(flow.empty(N, dtype=dtype)))])
def test_rand_is_below_1(name, draw, dtype):
    flow.manual_seed(2)
    x = draw(dtype).double().numpy()
    assert x.min() >= 0 and x.max() < 1


INTEGERS = {"randint": lambda low, high, dtype: flow.randint(low, high, (N,), dtype=dtype),
            "randint_like": lambda low, high, dtype: flow.randint_like(flow.empty(N, dtype=dtype), low, high),
            "random_": lambda low, high, dtype: flow.empty(N, dtype=dtype).random_(low, high)}


@pytest.mark.parametrize("dtype", [*FLOATS, flow.int8, flow.uint8, flow.int16, flow.int32, flow.int64],
                         ids=lambda d: d.name)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_include_every_value_but_the_upper_end(name, dtype):
    flow.manual_seed(3)
    for low, high in (0, 1), (0, 2), (3, 8), (0 if dtype is flow.uint8 else -3, 4), (100, 128):
        assert np.unique(INTEGERS[name](low, high, dtype).double().numpy()).tolist() == list(range(low, high))


@pytest.mark.parametrize("bits", [8, 11, 24, 31])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", INTEGERS)
def test_rounded_integers_stay_below_the_upper_end(name, dtype, bits):
    flow.manual_seed(4)
    for high in 2 ** bits, 2 ** bits + 1, 2 ** (bits + 1):
        if high <= flow.finfo(dtype).max:
            x = INTEGERS[name](high - 4, high, dtype).double().numpy()
            assert x.max() < high and x.min() >= min(high - 4, largest_below(dtype, high))


@pytest.mark.parametrize("dtype", FLOATS[2:], ids=lambda d: d.name)
def test_kernels_stay_below_the_upper_end(dtype):
    """If the range holds only two numbers, rounding would move half of the draws to the upper one."""
    eps = spacing(dtype)
    for low, high in (1, 1 + eps), (-1 - eps, -1), (1, 1 + 2 * eps), (0, 1), (3.0, 3.0):
        x = REGISTRY["random_uniform"](shape=(N,), dtype=dtype, low=float(low), high=float(high), seed=7,
                                       draw=0).numpy()
        assert x.min() >= low and (x.max() < high or low == high), (low, high)
    for width in 1, 2, 3, 2 ** 31 + 1, 2 ** 32:
        x = REGISTRY["random_randint"](shape=(N,), low=-5, high=width - 5, seed=7, draw=0).numpy()
        assert x.min() >= -5 and x.max() < width - 5
        assert x.min() < -5 + width / 50 and x.max() >= width - 5 - width / 50 - 1


def test_masks_have_the_requested_rate():
    """Rates 0 and 1 are exact; other rates are within 5 standard deviations."""
    for rate in 0.0, 0.1, 0.5, 0.9, 1.0:
        kept = REGISTRY["random_mask_like"](flow.empty(N), rate=rate, seed=7, draw=0).numpy().mean()
        assert abs(kept - (1 - rate)) <= 5 * math.sqrt(rate * (1 - rate) / N)
        for probability in (flow.bernoulli(flow.full((N,), rate, dtype=d)).double().mean().item()
                            for d in FLOATS):
            assert abs(probability - rate) <= 5 * math.sqrt(rate * (1 - rate) / N) + (2 ** -9 if rate % 0.5
                                                                                      else 0)


@pytest.mark.parametrize("dtype", FLOATS[:2], ids=lambda d: d.name)
def test_16_bit_probabilities_are_not_rounded_before_comparison(dtype):
    p = flow.linspace(0, 1, N).to(dtype)
    flow.manual_seed(5)
    got = flow.bernoulli(p)
    flow.manual_seed(5)
    assert got.dtype is dtype and flow.equal(got.float(), flow.bernoulli(p.float()))


@pytest.fixture(params=["lowest", "highest"])
def at_the_end(request, monkeypatch):
    """Replace all uniform draws by the lowest or the highest that the kernel returns."""
    def draw(op, inputs, attrs, generator=None):
        assert op is REGISTRY["random_uniform"]
        shape, dtype, low, high = attrs
        # the kernel has 24 bits for float32 and 53 for float64
        top = low + (high - low) * (1 - 2.0 ** (-24 if dtype is flow.float32 else -53))
        return flow.full(shape, low if request.param == "lowest" else min(top, largest_below(dtype, high)),
                         dtype=dtype)

    monkeypatch.setattr(draws, "draw", draw)
    return request.param


def one(dtype, value=1.0):
    return flow.full((3,), value, dtype=dtype)


FUNCTIONS = {
    "exponential_": lambda d: one(d).exponential_(),
    "trunc_normal_": lambda d: one(d).trunc_normal_(),
    "gumbel_softmax": lambda d: F.gumbel_softmax(flow.zeros(2, 3, dtype=d)),
    "gumbel_softmax hard": lambda d: F.gumbel_softmax(flow.zeros(2, 3, dtype=d), hard=True),
    "multinomial": lambda d: flow.multinomial(one(d), 2),
    "multinomial with replacement": lambda d: flow.multinomial(one(d), 9, replacement=True),
    "rrelu": lambda d: F.rrelu(-one(d), training=True),
    **{kind.__name__: lambda d, kind=kind, values=values: kind(*[one(d, v) for v in values]).sample((2,))
       for kind, values in ((D.Bernoulli, [0.3]), (D.Cauchy, [0, 1]), (D.Exponential, [2]),
                            (D.Geometric, [0.5]),
                            (D.Gumbel, [0, 1]), (D.HalfCauchy, [1]), (D.Laplace, [0, 1]), (D.Pareto, [1, 2]),
                            (D.RelaxedBernoulli, [1, 0.5]), (D.Uniform, [0, 1]), (D.Weibull, [1, 2]))},
    "RelaxedOneHotCategorical": lambda d: D.RelaxedOneHotCategorical(one(d, 1)[0], one(d, 1 / 3)).sample()}


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_draw_at_an_end_of_the_range_becomes_a_finite_number(name, dtype, at_the_end):
    assert np.isfinite(FUNCTIONS[name](dtype).double().numpy()).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_largest_below_is_the_neighbour(dtype):
    def previous(x):
        """Return the number before x, as a float. NumPy has no bfloat16, whose neighbors differ in the upper
        16 bits.
        """
        if dtype is flow.bfloat16:
            return float((np.float32(x).view(np.uint32) - np.uint32(1 << 16)).view(np.float32))
        return float(np.nextafter(dtype.numpy.type(x), dtype.numpy.type(-np.inf)))

    info = flow.finfo(dtype)
    for x in (1.0, 1.5, 2.0, 1024.0, 2.0 ** -10, 3 * 2.0 ** -12, info.tiny, info.max):
        assert largest_below(dtype, x) == previous(x) and largest_below(dtype, -previous(x)) == -x
        between = x - (x - previous(x)) / 4
        assert between == x or largest_below(dtype, between) == previous(x)
    assert largest_below(dtype, 0.0) == -info.tiny * info.eps and largest_below(dtype, math.inf) == info.max
