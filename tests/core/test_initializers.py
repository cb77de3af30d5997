"""Initializers and regularizers: distributions against NumPy and theory, bounds, determinism, messages."""
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flowedu import regularizers as reg
from flowedu.core.values import dtype as dt
from flowedu.errors import FlowError
from flowedu.oneflow04 import initializers as init

SHAPES = st.lists(st.integers(0, 6), max_size=4).map(tuple)
SEEDS = st.integers(0, 2**32)
FLOATS = st.floats(-1e3, 1e3)
SIZES = st.floats(0, 1e3)
N = 40_000  # draws per statistic; the error of a mean is about 5 / sqrt(N) = 2.5% of the deviation

RANDOM = [
    init.random_uniform_initializer(-2, 3), init.random_uniform_initializer(-2, 3, dt.int32),
    init.random_normal_initializer(1, 2), init.truncated_normal_initializer(1, 2),
    init.truncated_normal(0.5), init.variance_scaling_initializer(),
    init.variance_scaling_initializer(2, "fan_out", "random_normal"),
    init.xavier_uniform_initializer(), init.xavier_normal_initializer(), init.glorot_uniform_initializer(),
    init.glorot_normal_initializer(), init.kaiming_initializer((20, 10)),
    init.kaiming_initializer((20, 10), "random_uniform")]
FIXED = [init.zeros_initializer(), init.ones_initializer(), init.constant_initializer(2.5)]


@pytest.mark.parametrize("initializer", RANDOM + FIXED + [init.empty_initializer()], ids=repr)
@given(shape=SHAPES.filter(len), seed=SEEDS, d=st.sampled_from([dt.float32, dt.float64, dt.float16,
                                                                dt.int32]))
def test_values_depend_only_on_shape_dtype_and_seed(initializer, shape, seed, d):
    a = initializer(shape, d, seed)
    assert a.shape == shape and a.dtype == d.numpy and a.flags.writeable and a.flags.c_contiguous
    if not isinstance(initializer, init.Empty):
        assert np.array_equal(a, initializer(list(shape), d, seed))
        wide = initializer(shape, dt.float64, seed)
        assert np.array_equal(a, wide.astype(d.numpy)), "values are drawn in float64, then cast"


@pytest.mark.parametrize("initializer", RANDOM, ids=repr)
def test_another_seed_gives_other_values(initializer):
    a, b, c = (initializer((50, 20), dt.float32, seed) for seed in (1, 2, None))
    assert not np.array_equal(a, b) and not np.array_equal(a, c)
    assert initializer.random


@given(SHAPES, FLOATS, FLOATS, SEEDS)
def test_uniform_stays_in_its_range(shape, a, b, seed):
    low, high = sorted((a, b))
    x = init.random_uniform_initializer(low, high)(shape, dt.float64, seed)
    assert (x >= low).all() and (x <= np.nextafter(high, np.inf)).all()


@given(SHAPES, st.integers(-50, 50), st.integers(1, 50), SEEDS)
def test_integer_uniform_leaves_the_end_out(shape, low, span, seed):
    x = init.random_uniform_initializer(low, low + span, dt.int64)(shape, dt.int64, seed)
    assert x.dtype == np.int64 and (x >= low).all() and (x < low + span).all()


def test_integer_uniform_meets_every_value():
    assert set(init.random_uniform_initializer(-1, 3, dt.int32)((500,), dt.int32, 0)) == {-1, 0, 1, 2}


@given(SHAPES, FLOATS, SIZES, SEEDS)
def test_truncated_normal_is_cut_at_two_deviations(shape, mean, std, seed):
    x = init.truncated_normal_initializer(mean, std)(shape, dt.float64, seed)
    assert (np.abs(x - mean) <= 2 * std * (1 + 1e-9) + 1e-12 * abs(mean)).all()


def test_truncated_normal_reaches_up_to_the_cut():
    x = np.abs(init.truncated_normal(1.0)((N,), dt.float64, 3))
    assert 1.99 < x.max() < 2 and (x > 1.9).mean() == pytest.approx(0.0125, abs=0.004)


def moments(initializer, shape=(N,), seed=5):
    x = initializer(shape, dt.float64, seed)
    return x.mean(), x.std()


def assert_moments(got, mean, std):
    assert abs(got[0] - mean) < 5 * std / math.sqrt(N), got
    assert got[1] == pytest.approx(std, rel=0.03)


CUT = 0.87962566103423978  # deviation of a unit normal truncated at 2


def test_the_cut_constant_matches_theory():
    phi, inside = math.exp(-2) / math.sqrt(2 * math.pi), math.erf(2 / math.sqrt(2))
    assert math.sqrt(1 - 4 * phi / inside) == pytest.approx(CUT, rel=1e-12)
    assert init._CUT_STD == CUT


def test_samples_have_the_requested_mean_and_deviation():
    assert_moments(moments(init.random_uniform_initializer(-2, 3)), 0.5, 5 / math.sqrt(12))
    assert_moments(moments(init.random_normal_initializer(1, 2)), 1, 2)
    assert_moments(moments(init.truncated_normal_initializer(1, 2)), 1, 2 * CUT)
    assert_moments(moments(init.truncated_normal(0.1)), 0, 0.1 * CUT)


FANS = {  # shape, data_format: fan_in, fan_out, written out by hand
    ((200, 100), ""): (100, 200), ((200, 100), "NHWC"): (100, 200), ((300,), ""): (1, 300),
    ((32, 16, 5, 3), "NCHW"): (16 * 5 * 3, 32 * 5 * 3), ((32, 16, 5, 3), ""): (16 * 5 * 3, 32 * 5 * 3),
    ((32, 5, 3, 16), "NHWC"): (16 * 5 * 3, 32 * 5 * 3), ((8, 4, 7), "NCW"): (28, 56),
    ((8, 7, 4), "NWC"): (28, 56),
    ((8, 4, 2, 3, 5), "NCDHW"): (120, 240), ((8, 2, 3, 5, 4), "NDHWC"): (120, 240)}


@pytest.mark.parametrize("shape, data_format", FANS)
def test_fan_counts_inputs_and_outputs(shape, data_format):
    fan_in, fan_out = FANS[shape, data_format]
    assert init.fan(shape, "fan_in", data_format) == fan_in
    assert init.fan(shape, "fan_out", data_format) == fan_out
    assert init.fan(shape, "fan_avg", data_format) == (fan_in + fan_out) / 2


@pytest.mark.parametrize("mode", ["fan_in", "FAN_OUT", "fan_avg"])
@pytest.mark.parametrize("distribution", ["truncated_normal", "Random_Normal", "random_uniform"])
def test_variance_scaling(mode, distribution):
    shape = (40, 10, 10, 10)
    fan = {"fan_in": 1000, "fan_out": 4000, "fan_avg": 2500}[mode.lower()]
    make = init.variance_scaling_initializer(3.0, mode, distribution, "NCHW")
    assert_moments(moments(make, shape), 0, math.sqrt(3 / fan))
    limit = {"truncated_normal": 2 * math.sqrt(3 / fan) / CUT,
             "random_uniform": math.sqrt(9 / fan)}.get(distribution)
    x = np.abs(make(shape, dt.float64, 1)).max()
    assert limit is None or 0.98 * limit < x <= limit


def test_xavier():
    shape = (100, 400)
    assert_moments(moments(init.xavier_uniform_initializer(), shape), 0, math.sqrt(1 / 250))
    assert_moments(moments(init.xavier_normal_initializer("NCHW"), shape), 0, math.sqrt(1 / 250))
    x = np.abs(init.glorot_uniform_initializer()(shape, dt.float64, 1))
    assert 0.999 < x.max() / math.sqrt(6 / 500) <= 1
    assert init.glorot_uniform_initializer() == init.xavier_uniform_initializer()
    assert init.glorot_normal_initializer() == init.xavier_normal_initializer()


@pytest.mark.parametrize("nonlinearity, slope, gain", [
    ("relu", 0, math.sqrt(2)), ("leaky_relu", 0.0, math.sqrt(2)), ("leaky_relu", 1.0, 1.0),
    ("tanh", 0, 5 / 3),
    ("sigmoid", 0, 1), ("linear", 0, 1), (None, 0, 1), ("leaky_relu", 0.5, math.sqrt(1.6))])
@pytest.mark.parametrize("mode, fan", [("fan_in", 1000), ("fan_out", 4000), ("fan_avg", 2500)])
def test_kaiming(nonlinearity, slope, gain, mode, fan):
    for shape, data_format in (((40, 10, 10, 10), "NCHW"), ((40, 10, 10, 10), "NHWC")):
        normal = init.kaiming_initializer(shape, "random_normal", mode, nonlinearity, slope, data_format)
        assert normal == init.random_normal_initializer(0, gain / math.sqrt(fan))
        uniform = init.kaiming_initializer(shape, "random_uniform", mode, nonlinearity, slope, data_format)
        assert_moments(moments(uniform, shape), 0, gain / math.sqrt(fan))


def test_constants():
    for make, value in ((init.zeros_initializer, 0), (init.ones_initializer, 1)):
        for d in (dt.float32, dt.int8, dt.bool_):
            assert (make(d)((3, 2), d, None) == value).all()
    assert (init.constant_initializer(2.9, dt.int32)((4,), dt.int64, 0) == 2).all()
    assert np.isneginf(init.constant_initializer(-math.inf)((2,), dt.float32, 0)).all()
    assert not init.zeros_initializer().random
    assert init.empty_initializer()((2, 3), dt.float16, 0).dtype == np.float16


def test_numpy_scalars_are_numbers():
    a = init.random_uniform_initializer(-np.sqrt(1 / 500.0), np.float32(0.5))
    assert type(a.low) is float and a.high == 0.5
    assert init.truncated_normal(np.float64(0.5)) == init.truncated_normal(0.5)


@pytest.mark.parametrize("initializer", RANDOM + FIXED + [init.empty_initializer()], ids=repr)
def test_repr_is_the_constructor_call(initializer):
    assert eval(repr(initializer), vars(init)) == initializer


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,), (3, 0, 2, 2)])
def test_random_initializers_accept_empty_shapes(shape):
    for initializer in RANDOM:
        assert initializer(shape, dt.float32, 0).shape == shape


def wrong(error, call, *words):
    with pytest.raises(error) as info:
        call()
    e = info.value
    assert isinstance(e, FlowError) and e.problem and e.expected and e.got and e.fix, str(e)
    for word in words:
        assert word in str(e), f"{word!r} is not in: {e}"


@pytest.mark.parametrize("call, error, word", [
    (lambda: init.variance_scaling_initializer(mode="fan"), ValueError, "'fan'"),
    (lambda: init.variance_scaling_initializer(distribution="normal"), ValueError, "'normal'"),
    (lambda: init.variance_scaling_initializer(-1), ValueError, "scale"),
    (lambda: init.variance_scaling_initializer(data_format="HWC"), AssertionError, "HWC"),
    (lambda: init.variance_scaling_initializer()(()), ValueError, "scalar"),
    (lambda: init.random_uniform_initializer(1, 0), AssertionError, "minval <= maxval"),
    (lambda: init.random_uniform_initializer(1, 1, dt.int32), ValueError, "maxval=2"),
    (lambda: init.random_uniform_initializer("a"), ValueError, "minval"),
    (lambda: init.random_uniform_initializer(0, math.inf), ValueError, "maxval"),
    (lambda: init.random_uniform_initializer(dtype=dt.record), NotImplementedError, "data type"),
    (lambda: init.constant_initializer(1, dt.tensor_buffer), NotImplementedError, "data type"),
    (lambda: init.constant_initializer(None), ValueError, "value"),
    (lambda: init.constant_initializer(math.nan, dt.int32), ValueError, "value"),
    (lambda: init.random_normal_initializer(stddev=-1), ValueError, "stddev"),
    (lambda: init.random_normal_initializer(math.nan), ValueError, "mean"),
    (lambda: init.random_normal_initializer(seed=1), AssertionError, "random_seed"),
    (lambda: init.random_normal_initializer(dtype=dt.float32), AssertionError, "None"),
    (lambda: init.truncated_normal(-0.1), ValueError, "stddev"),
    (lambda: init.kaiming_initializer([3, 4]), AssertionError, "tuple"),
    (lambda: init.kaiming_initializer((3,)), AssertionError, "tuple"),
    (lambda: init.kaiming_initializer((3, 0)), AssertionError, "above zero"),
    (lambda: init.kaiming_initializer((3, 4), "truncated_normal"), AssertionError, "truncated_normal"),
    (lambda: init.kaiming_initializer((3, 4), mode="fan"), AssertionError, "fan_in"),
    (lambda: init.kaiming_initializer((3, 4), nonlinearity="gelu"), AssertionError, "gelu"),
    (lambda: init.kaiming_initializer((3, 4), data_format="NCW"), AssertionError, "NHWC"),
    (lambda: init.constant_initializer(300)((2,), dt.int8), ValueError, "[-128, 127]"),
    (lambda: init.constant_initializer(1e39)((2,), dt.float32), ValueError, "float32"),
    (lambda: init.constant_initializer(math.nan)((2,), dt.int32), ValueError, "int32"),
    (lambda: init.constant_initializer(math.inf)((2,), dt.int64), ValueError, "int64"),
    (lambda: init.constant_initializer(2)((2,), dt.bool_), ValueError, "bool"),
    (lambda: init.zeros_initializer()((2,), dt.record), NotImplementedError, "record"),
    (lambda: reg.l1(-1), ValueError, "l1"), (lambda: reg.l2("x"), ValueError, "l2"),
    (lambda: reg.l1_l2(0.1, math.inf), ValueError, "l1_l2")])
def test_invalid_arguments_are_refused(call, error, word):
    wrong(error, call, word)


# --- regularizers
# ----------------------------------------------------------------------------------------------------

@given(st.floats(0, 10), st.floats(0, 10), st.lists(st.floats(-5, 5), min_size=1))
def test_the_gradient_equals_that_of_the_penalty(l1, l2, ws):
    assume(all(abs(w) > 1e-3 or w == 0 for w in ws))
    r, w, h = reg.l1_l2(l1, l2), np.array(ws), 1e-6

    def penalty(w):
        return l1 * np.abs(w) + l2 * w * w / 2

    slope = (penalty(w + h) - penalty(w - h)) / (2 * h)  # 0 at w = 0, because |w| is even
    g = r.gradient(w)
    assert np.allclose(0 if g is None else g, slope, rtol=1e-5, atol=1e-6)


def test_regularizer_factors():
    assert (reg.l1().l1, reg.l1().l2, reg.l2().l1, reg.l2().l2) == (0.01, 0, 0, 0.01)
    assert (reg.l1_l2().l1, reg.l1_l2().l2) == (0.01, 0.01)
    w = np.array([-2.0, 0.0, 4.0])
    assert reg.l1(0.5).gradient(w).tolist() == [-0.5, 0, 0.5]
    assert reg.l2(0.5).gradient(w).tolist() == [-1, 0, 2]
    assert reg.l2(0).gradient(w) is None
