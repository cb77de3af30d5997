"""float32 functions: their maximum error in units in the last place over all floats."""
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.ops import REGISTRY

erf, erfc = np.vectorize(math.erf, otypes=[float]), np.vectorize(math.erfc, otypes=[float])

# {name: (maximum error in ulp, float64 function)}
TRUE = {
    "exp": (1.0, np.exp), "expm1": (1.6, np.expm1), "exp2": (1.5, np.exp2),
    "log": (0.8, np.log), "log1p": (1.6, np.log1p), "log2": (1.0, np.log2), "log10": (1.0, np.log10),
    "softplus": (2.0, lambda x: np.logaddexp(0, x)),
    "sigmoid": (2.5, lambda x: np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))), "tanh": (2.5, np.tanh),
    "erf": (0.9, erf), "gelu": (6.5, lambda x: np.maximum(x, -40) * 0.5 * erfc(-x * math.sqrt(0.5))),
    "sin": (0.7, np.sin), "cos": (0.7, np.cos), "tan": (0.8, np.tan),
    "asin": (0.55, np.arcsin), "acos": (0.55, np.arccos), "atan": (0.55, np.arctan),
    "sinh": (0.55, np.sinh), "cosh": (0.55, np.cosh), "erfc": (0.6, erfc),
    "asinh": (0.55, np.arcsinh), "acosh": (0.55, np.arccosh), "atanh": (0.55, np.arctanh),
    "erfinv": (4.0, lambda x: called("erfinv", x)),  # float64: Newton's method over libm
    "lgamma": (lambda x: np.where(x > 0, 0.55, 4.0), np.vectorize(
        lambda x: math.inf if x <= 0 and x % 1 == 0 else math.lgamma(x), otypes=[float])),
    "sqrt": (0.5, np.sqrt), "rsqrt": (1.6, lambda x: 1 / np.sqrt(x)), "reciprocal": (0.5, lambda x: 1 / x),
}
OF_TWO = {"pow": (lambda x, y: np.where(y == 3, 1.5, np.where(y == -2, 2.0, 0.6)), np.power),
          "div": (0.5, np.divide), "atan2": (0.55, np.arctan2), "fmod": (0, np.fmod)}
EVERY = 262_139  # step over all bit patterns: a prime, so that all exponents and mantissa endings occur
STRIDED = np.arange(0, 2 ** 32, EVERY, dtype=np.uint64).astype(np.uint32).view(np.float32)
ODD = np.array([0.0, 1e-45, 1.17549421e-38, 1.17549435e-38, 1e-30, 0.5, 1.0, 1.5, 2.0, 3.0, 88.72283,
                88.72284, 103.97,
                104.1, 128.0, 149.0, 1e6, 1000001.0, 16777215.0, 16777216.0, 1e20, 3.4028235e38, np.inf,
                np.nan], np.float32)
ODD = np.concatenate([ODD, -ODD])


def called(name: str, *xs: np.ndarray) -> np.ndarray:
    return REGISTRY[name](*(flow.tensor(x) for x in xs)).numpy()


def ulp(got: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Return the error of `got` in units in the last place of the rounded `true`; infinity uses the ulp of
    the largest float.
    """
    nearest = true.astype(np.float32)
    most = np.finfo(np.float32).max
    unit = np.spacing(np.minimum(np.abs(nearest), most)).astype(np.float64)
    off = np.abs(got.astype(np.float64).clip(-most, most) - true.clip(-most, most)) / unit
    return np.where((got == nearest) & np.isinf(nearest) | np.isnan(got) & np.isnan(true), 0, off)


def assert_within_ulp_bound(name: str, *xs: np.ndarray) -> None:
    bound, meaning = (TRUE | OF_TWO)[name]
    bound = bound(*xs) if callable(bound) else np.full(xs[0].shape, bound)
    with np.errstate(all="ignore"):
        true = meaning(*(x.astype(np.float64) for x in xs))
        got = called(name, *xs)
        off = ulp(got, true)
    worst = int(np.argmax(np.where(np.isnan(off), np.inf, off - bound)))
    assert off[worst] <= bound[worst], (f"{name}{tuple(x[worst] for x in xs)} = {got[worst]}, not "
                                        f"{true[worst]}: {off[worst]} ulp")
    assert (np.signbit(got) == np.signbit(true))[(got == 0) & (true == 0)].all() or name == "gelu"


@pytest.mark.parametrize("name", TRUE)
def test_sampled_bit_patterns_and_special_values(name):
    assert_within_ulp_bound(name, STRIDED)
    assert_within_ulp_bound(name, ODD)


@pytest.mark.parametrize("name", OF_TWO)
def test_pairs_of_special_and_random_values(name):
    assert_within_ulp_bound(name, np.repeat(ODD, len(ODD)), np.tile(ODD, len(ODD)))
    assert_within_ulp_bound(name, STRIDED, np.random.default_rng(0).permutation(STRIDED))
    near = np.random.default_rng(1).uniform(-30, 30, 20_000).astype(np.float32)
    assert_within_ulp_bound(name, np.abs(near) + 1e-3, near[::-1])
    assert_within_ulp_bound(name, near, np.round(near[::-1]))


@pytest.mark.parametrize("name, meaning", [("fmod", np.fmod), ("mod", np.mod), ("floordiv", np.floor_divide)])
def test_quotients_up_to_2_to_the_28_are_exact(name, meaning):
    """This includes values next to integers, where a / b rounds to one."""
    r = np.random.default_rng(2)
    b = (r.standard_normal(60_000) * 10.0 ** r.integers(-40, 30, 60_000)).astype(np.float32)
    a = b * r.integers(-2 ** 27, 2 ** 27,
                       b.size).astype(np.float32) * 2.0 ** -r.integers(0, 30, b.size).astype(np.float32)
    a = np.nextafter(a, np.where(r.random(b.size) < 0.5, a, r.choice([-np.inf, np.inf],
                                                                     b.size).astype(np.float32)))
    small = np.isfinite(a) & (b != 0) & (np.abs(a.astype(np.float64)) <= np.abs(
        b.astype(np.float64)) * 2 ** 28)
    a, b = np.concatenate([a[small], [0.0, -0.0, 0.0, -0.0, 1, -1, 7,
                                      -7]]).astype(np.float32), np.concatenate(
                                          [b[small], [2, 2, -2, -2, np.inf, np.inf, 7, 7]]).astype(np.float32)
    true = meaning(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(called(name, a, b), true)


@pytest.mark.parametrize("power", [-4.0, -3.0, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0])
def test_a_power_does_not_depend_on_other_exponents(power):
    x = np.concatenate([ODD, np.random.default_rng(3).standard_normal(3000).astype(np.float32)])
    y = np.full_like(x, power)
    alone = called("pow", x, y)
    assert_within_ulp_bound("pow", x, y)
    y[::7] = 2.5
    mixed = called("pow", x, y)
    np.testing.assert_array_equal(np.delete(mixed, np.s_[::7]), np.delete(alone, np.s_[::7]))
    np.testing.assert_array_equal(called("pow", x, np.float32(power)), alone)
    assert_within_ulp_bound("pow", x, y)


@given(st.sampled_from(sorted(TRUE)), st.lists(st.floats(width=32), min_size=1, max_size=40))
def test_arbitrary_values(name, numbers):
    assert_within_ulp_bound(name, np.array(numbers, np.float32))


@given(st.sampled_from(sorted(TRUE)), st.sampled_from((1, 7, 8, 255, 256, 257, 1025)), st.integers(0, 300),
       st.integers(1, 2))
def test_an_element_does_not_depend_on_its_position_or_neighbors(name, n, at, threads):
    """The result also does not depend on in-place evaluation; large angles are mixed with small ones."""
    r = np.random.default_rng(n + at)
    x = (r.standard_normal(n) * 10.0 ** r.integers(-3, 9, n)).astype(np.float32)
    at %= n
    before = flow.get_num_threads()
    flow.set_num_threads(threads)
    try:
        together = called(name, x)
        in_graph = Chain(name)(flow.tensor(x)).numpy()
    finally:
        flow.set_num_threads(before)
    np.testing.assert_array_max_ulp(called(name, x[at:at + 1]), together[at:at + 1], 1)
    np.testing.assert_array_equal(in_graph, called("abs", called(name, x * 1)))


class Chain(nn.Graph):
    """Graph of abs(name(x * 1)): one kernel whose tiles are overwritten."""

    def __init__(self, name: str):
        super().__init__()
        self.op = REGISTRY[name]

    def build(self, x):
        return REGISTRY["abs"](self.op(x * 1.0))
