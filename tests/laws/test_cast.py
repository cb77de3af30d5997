"""Law: cast follows C and IEEE 754 from every dtype to every other, for any memory layout; the same holds for
fill. Ops that only move elements move bfloat16, which NumPy lacks, like float32.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.values.dtype import BY_CODE, bfloat16
from flowedu.errors import FlowError
from flowedu.ops import REGISTRY

from .calls import attributes, cases, label, strided, thin
from .draws import EXACT, arrays_of

NUMPY = tuple(d for d in BY_CODE if d.numpy is not None)


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Round float32 numbers to 8 binary digits, ties to even, in exact arithmetic: the values of bfloat16."""
    mantissa, exponent = np.frexp(x.astype(np.float64))
    # 8 digits; fewer for denormals, which are multiples of 2**-133
    step = np.ldexp(1.0, np.maximum(exponent - 8, -133))
    with np.errstate(all="ignore"):
        y = np.where(np.isfinite(x), np.rint(x.astype(np.float64) / step) * step, x)
        return np.where(np.abs(y) >= 2.0 ** 128, np.copysign(np.inf, y), y).astype(np.float32)


def ties(rng) -> np.ndarray:
    """Return float32 numbers around ties of bfloat16 and float16: below, at, and above; with even and odd
    neighbors.
    """
    high = rng.integers(0, 2 ** 16, 400, dtype=np.uint32) << 16
    near = (high[:, None] | np.array([0, 0x7fff, 0x8000, 0x8001, 0xffff], np.uint32)).ravel().view(np.float32)
    # ties of float16's 11 digits
    whole = np.ldexp(rng.integers(1024, 2048, 200) + 0.5, rng.integers(-26, 6, 200))
    small = np.ldexp(rng.integers(0, 1024, 100) + 0.5, -24)  # and among its denormals
    edge = np.array([65504, 65519.996, 65520, 3.3895314e38, 3.39e38, 3.4028235e38, 1e-45, -1e-45, 0.0, -0.0,
                     np.nan, np.inf, -np.inf], np.float32)
    # NaN whose upper half alone is not NaN
    odd = np.array([0x7f800001, 0xff800001, 0x7fffffff], np.uint32).view(np.float32)
    return np.concatenate([near, *(a.astype(np.float32) for a in (whole, -whole, small, -small)), edge, odd])


@given(st.integers(0, 2 ** 31), st.integers(0, 3))
def test_halves_round_to_nearest_with_ties_to_even(seed, layout):
    with np.errstate(all="ignore"):                   # signaling NaN, and overflow of 16 bits
        halves_round(ties(np.random.default_rng(seed)), layout)


def halves_round(x, layout):
    t = flow.from_numpy(strided(x, layout))
    np.testing.assert_array_equal(t.to(flow.float16).numpy(), x.astype(np.float16))
    half = t.to(bfloat16)
    np.testing.assert_array_equal(half.to(flow.float32).numpy(), to_bfloat16(x))
    wide = flow.from_numpy(x.astype(np.float64)).to(bfloat16).to(flow.float64)
    np.testing.assert_array_equal(wide.numpy(), to_bfloat16(x))
    np.testing.assert_array_equal(half.to(flow.float16).to(flow.float32).numpy(),
                                  to_bfloat16(x).astype(np.float16).astype(np.float32))


def draw_castable(d, to, rng) -> np.ndarray:
    """Draw numbers of dtype d, most of which dtype `to` represents exactly or, if it is an integer dtype,
    truncated.
    """
    if d.name == "bool":
        return rng.integers(0, 2, 300).astype(bool)
    top = 250.0
    for t in (d, to):
        if t.numpy.kind in "iu":
            top = min(top, np.iinfo(t.numpy).max)
    signed = d.is_signed and to.is_signed
    x = rng.uniform(-top if signed else 0, top, 300)
    x[:4] = 0, 1, top, -top if signed else 0
    x = x.astype(d.numpy)
    if d.is_floating_point and to.is_floating_point:
        x[4:8] = np.nan, np.inf, -np.inf, -0.0
    if not d.is_floating_point and not to.is_floating_point:      # integers wrap
        x[4:8] = np.iinfo(d.numpy).min, np.iinfo(d.numpy).max, np.iinfo(d.numpy).max - 1, 100
    return x


@pytest.mark.parametrize("to", NUMPY, ids=lambda d: d.name)
@pytest.mark.parametrize("d", NUMPY, ids=lambda d: d.name)
def test_casts_between_all_dtypes_follow_c(d, to):
    rng = np.random.default_rng(d.code * 10 + to.code)
    for layout in range(4):
        x = draw_castable(d, to, rng).reshape(20, 15)
        got = REGISTRY["cast"](flow.from_numpy(strided(x, layout)), dtype=to).numpy()
        assert got.dtype == to.numpy
        np.testing.assert_array_equal(got, x.astype(to.numpy))


@pytest.mark.parametrize("d", NUMPY, ids=lambda d: d.name)
def test_bfloat16_to_and_from(d):
    x = draw_castable(d, d, np.random.default_rng(d.code))[10:].reshape(29, 10)
    x = np.clip(x, -128, 127).astype(d.numpy) if d.name != "bool" else x
    half = flow.from_numpy(x).to(bfloat16)
    want = to_bfloat16(x.astype(np.float32))
    np.testing.assert_array_equal(half.to(flow.float32).numpy(), want)
    np.testing.assert_array_equal(half.t().to(d).numpy(), want.T.astype(d.numpy))


@pytest.mark.parametrize("d", BY_CODE, ids=lambda d: d.name)
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 4097])
def test_constants_of_each_dtype_are_filled(d, n):
    value = 1 if d.name == "bool" else -2.5 if d.is_floating_point else 100
    got = REGISTRY["constant"](shape=(n,), value=value, dtype=d)
    assert got.dtype is d
    np.testing.assert_array_equal(got.to(flow.float64).numpy(), np.full(n, value, np.float64))


def moves(case) -> bool:
    op, example = case
    if op.name not in EXACT or not op.inputs or any(t == "dtype" for t in op.attrs):
        return False
    try:
        call_op(case, bfloat16,
                arrays_of(op, example, np.dtype(np.float32), np.random.default_rng(0), "plain"))
    except FlowError:
        return False
    return True


def call_op(case, dtype, arrays):
    op, example = case
    out = op.call(tuple(flow.from_numpy(a).to(dtype) if a.dtype.kind == "f" else flow.from_numpy(a)
                        for a in arrays),
                  attributes(op, example))
    return [y.to(flow.float32).numpy() if y.dtype.is_floating_point else y.numpy() for y in
            (out if isinstance(out, tuple) else (out,))]


MOVERS = [c for c in cases() if moves(c)]


def test_ops_that_move_bfloat16():
    assert {op.name for op, _ in MOVERS} >= {"contiguous", "concat", "slice_grad", "where", "reshape",
                                             "slice", "transpose"}


@pytest.mark.parametrize("case", thin(MOVERS), ids=label)
@pytest.mark.parametrize("kind", ["plain", "edges"])
def test_bfloat16_is_moved_like_float32(case, kind):
    op, example = case
    rng = np.random.default_rng(3)
    arrays = [to_bfloat16(a) if a.dtype.kind == "f" else a
              for a in arrays_of(op, example, np.dtype(np.float32), rng, kind)]
    for a, b in zip(call_op(case, bfloat16, arrays), call_op(case, flow.float32, arrays), strict=True):
        np.testing.assert_array_equal(a, b)
