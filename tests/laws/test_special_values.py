"""Law: every elementwise op has the special values of C99 Annex F and of the Python array API.

Tried are NaN, infinities, signed zeros, denormals, and huge numbers, for each operand, in every float dtype.
Each function runs eagerly, in an nn.Graph, and in a fused chain of an nn.Graph. special_values.py has the
table.
"""
import itertools
import math

import numpy as np
import pytest

import flowedu as flow
from flowedu.core.ops.define import REGISTRY

from .special_values import (
    COMPARISONS,
    EITHER_ZERO,
    FUNCTIONS,
    LEFT_OUT,
    MODERATE,
    OPS,
    SLOPES,
    SUBTRACTS,
    digamma_of_one,
    each,
    read_written,
)

inf, nan = math.inf, math.nan
DTYPES = {name: getattr(flow, name) for name in ("float32", "float64", "float16", "bfloat16")}
DIGITS = {"float32": 23, "float64": 52, "float16": 10, "bfloat16": 7}              # of the fraction
LARGEST = {"float32": float(np.finfo(np.float32).max), "float64": np.finfo(np.float64).max,
           "float16": 65504.0, "bfloat16": float(np.uint32(0x7f7f0000).view(np.float32))}
SMALLEST = {"float32": 2.0 ** -149, "float64": 2.0 ** -1074, "float16": 2.0 ** -24, "bfloat16": 2.0 ** -133}
NORMAL = {"float32": 2.0 ** -126, "float64": 2.0 ** -1022, "float16": 2.0 ** -14, "bfloat16": 2.0 ** -126}
ELEMENTWISE = [name for name, op in REGISTRY.items() if op.program is not None]


def list_special_numbers(dtype: str, few: bool, moderate: bool) -> list[float]:
    """Return the special numbers of a dtype, as float64.

    Args:
        few: fewer of them, for functions of three or four operands.
        moderate: without denormals and huge numbers.
    """
    tiny, most = SMALLEST[dtype], LARGEST[dtype]
    positive = [0.0, 1.0, 0.5, 2.0, inf] + ([] if few else [3.0, 1.5, 60.0])
    if not moderate:
        positive += [tiny, most]
    if not (few or moderate):
        positive += [NORMAL[dtype] - tiny, NORMAL[dtype], most / 2, 2.0 ** DIGITS[dtype] + 1]
    return [nan, *positive, *(-x for x in positive)]


def columns_to_tensors(columns, dtype: str) -> list:
    """Return the columns as tensors of the dtype, which represents them exactly."""
    return [flow.tensor(np.asarray(c, np.float64)).to(DTYPES[dtype]) for c in columns]


def as_float64(y) -> np.ndarray:
    return y.detach().to(flow.float64).numpy()


def round_to(x: np.ndarray, dtype: str) -> np.ndarray:
    """Return x, rounded to the dtype once."""
    if dtype == "bfloat16":
        return as_float64(flow.tensor(x.astype(np.float32)).to(flow.bfloat16))
    return x.astype(dtype).astype(np.float64)


def find_differences(name: str, got, operands, meaning, dtype: str) -> list[str]:
    """Return a line for each element that differs from the table.

    NaN, infinities, and the sign of zero must be equal. A finite result may be 32 units in the last place
    off. Composed functions round at most 8 times, each by at most 2 units, and double the error of an operand
    at most once. (tests/fast/test_functions.py checks the accuracy of the functions.) Near the largest
    number, infinity is accepted as well, and near 0 a denormal or 0.
    """
    with np.errstate(all="ignore"):
        true = np.asarray(meaning(*operands), np.float64)
        want = round_to(true, dtype)
    relative, tiny, most = 32 * 2.0 ** -(DIGITS[dtype] + 1), SMALLEST[dtype], LARGEST[dtype]
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(want), SUBTRACTS.get(name, 0.0))
        close = np.abs(got - want) <= relative * size + 32 * tiny
        both_large = np.minimum(np.abs(got), np.abs(true)) >= most * (1 - relative)
    over = both_large & (np.sign(got) == np.sign(true)) & (np.isinf(got) | np.isinf(want))
    same = np.where(np.isfinite(got) & np.isfinite(want), close, got == want) | over
    same |= np.isnan(got) & np.isnan(want)
    zeros = (got == 0) & (want == 0)
    if name not in EITHER_ZERO:
        same &= ~zeros | (np.signbit(got) == np.signbit(want))
    lines = []
    for i in np.flatnonzero(~same):
        listed = ", ".join(repr(float(x[i])) for x in operands)
        lines.append(f"{name}({listed}) = {float(got[i])!r}, not {float(want[i])!r}")
    return lines


class Direct(flow.nn.Graph):
    """Graph that returns f(...)."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def build(self, *xs):
        return self.f(*xs)


class Fused(Direct):
    """Graph with f between other ops that change no value: one kernel, if f is one op."""

    def build(self, *xs):
        y = self.f(*[x * 1.0 for x in xs])
        return flow.neg(flow.neg(y))


def operands_of(name: str, dtype: str, arity: int) -> list[np.ndarray]:
    """Return a column for each operand: all combinations of special numbers."""
    pool = list_special_numbers(dtype, few=arity > 2, moderate=name in MODERATE)
    columns = [np.array(c) for c in zip(*itertools.product(pool, repeat=arity))]
    return [round_to(c, dtype) for c in columns]


def call_op(name: str):
    """Return the op as a function of tensors."""
    op = REGISTRY[name]
    if name == "bias_add":
        return lambda x, b: op.call((x.reshape(-1, 1), b), op.complete({"axis": 0})).reshape(-1)
    if name == "where":
        return lambda cond, x, y: op.call((flow.ne(cond, 0), x, y), ())
    return lambda *xs: op.call(xs, ())


def assert_special_values(name: str, f, meaning, arity: int, dtype: str, modes=(None, Direct, Fused)) -> None:
    operands = operands_of(name, dtype, arity)
    xs = columns_to_tensors(operands, dtype)
    for mode in modes:
        y = f(*xs) if mode is None else mode(f)(*xs)
        bad = find_differences(name, as_float64(y), operands, meaning, dtype)
        where = mode.__name__ if mode else "eager"
        assert not bad, f"{where}, {dtype}: {len(bad)} differ\n" + "\n".join(bad[:20])


def test_every_elementwise_op_has_a_row():
    assert sorted(ELEMENTWISE) == sorted({*OPS, *COMPARISONS, *LEFT_OUT})
    assert not {*OPS, *COMPARISONS} & {*LEFT_OUT}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_special_values_of_an_op(name, dtype):
    assert_special_values(name, call_op(name), OPS[name], len(REGISTRY[name].inputs), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", COMPARISONS)
def test_special_values_of_a_comparison(name, dtype):
    f = call_op(name)
    assert_special_values(name, lambda x, y: f(x, y).to(DTYPES[dtype]), COMPARISONS[name], 2, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_of_a_function(name, dtype):
    find, meaning = FUNCTIONS[name]
    f = find(flow)
    arity = 3 if name in ("clamp", "lerp") else 1 if name in ONE_OPERAND else 2
    assert_special_values(name, lambda *xs: f(*xs).to(DTYPES[dtype]), meaning, arity, dtype)


ONE_OPERAND = {"digamma", "frac", "sinc", "logit", "selu", "celu", "signbit", "isnan", "isinf", "isfinite",
               "isposinf", "isneginf", "tanhshrink"}
TWO_OPERANDS = [name for name in OPS if len(REGISTRY[name].inputs) == 2 and name != "bias_add"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TWO_OPERANDS)
def test_special_values_of_one_number_as_operand(name, dtype):
    """A 0-dim operand is broadcast, and kernels may treat it as a constant."""
    f, pool = call_op(name), np.array(list_special_numbers(dtype, few=False, moderate=False))
    for number in pool:
        one, column = flow.tensor(number, dtype=DTYPES[dtype]), np.full(len(pool), number)
        x, = columns_to_tensors([pool], dtype)
        bad = find_differences(name, as_float64(f(x, one)), [pool, column], OPS[name], dtype)
        bad += find_differences(name, as_float64(f(one, x)), [column, pool], OPS[name], dtype)
        assert not bad, "\n".join(bad[:20])


# Operators with a Python number. x ** 0.5 and x ** -0.5 are omitted: they are sqrt and rsqrt, as in NumPy and
# PyTorch, with another value at -inf and another sign at -0.
OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "%": "mod", "**": "pow"}


@pytest.mark.parametrize("mode", [None, Direct], ids=["eager", "graph"])
@pytest.mark.parametrize("sign", OPERATORS)
def test_special_values_of_an_operator_and_a_python_number(sign, mode):
    pool = np.array(list_special_numbers("float32", few=mode is not None, moderate=False))
    x, = columns_to_tensors([pool], "float32")
    meaning = OPS[OPERATORS[sign]]
    for number in pool.tolist():
        if sign == "**" and abs(number) == 0.5:
            continue
        column = np.full(len(pool), number)
        for text, operands in ((f"x {sign} number", [pool, column]), (f"number {sign} x", [column, pool])):
            f = eval(f"lambda x: {text}", {"number": number})
            y = f(x) if mode is None else mode(f)(x)
            bad = find_differences(text, as_float64(y), operands, meaning, "float32")
            assert not bad, "\n".join(bad[:20])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SLOPES)
def test_slopes_of_activations_at_special_values(name, dtype):
    """No NaN is returned where the slope has a limit."""
    find, low, high = SLOPES[name]
    f, most = find(flow.nn.functional), LARGEST[dtype]
    places = [-inf, -most, -min(1e30, most / 2), min(1e30, most / 2), most, inf]

    def slope(x):
        y = f(x)
        return flow.autograd.grad(y, x, flow.ones_like(y))[0]

    x = flow.tensor(places).to(DTYPES[dtype]).requires_grad_(True)
    want = round_to(np.array([low] * 3 + [high] * 3, np.float64), dtype)
    # one more rounding; the slope of softsign falls like 1 / x ** 2
    np.testing.assert_allclose(as_float64(slope(x)), want, rtol=2.0 ** -DIGITS[dtype], atol=1e-59)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_of_digamma_beside_poles(dtype):
    """At a distance d from a pole it is pi / tan(pi d): the angle, tan, and the quotient round by 4 units
    together.
    """
    poles = np.arange(0.0, -40.0, -1.0).astype(dtype)
    x = [poles]
    for direction in (-inf, inf):
        near = poles
        for _ in range(4):
            near = np.nextafter(near, np.array(direction, dtype))
            x.append(near)
    x = np.concatenate(x[1:] + [np.array([1e10, 1e38, LARGEST[dtype]], dtype)])
    x = x[np.abs(x) > NORMAL[dtype]]                           # a quotient of denormals overflows
    want = round_to(each(digamma_of_one)(x.astype(np.float64)), dtype)
    np.testing.assert_allclose(as_float64(flow.digamma(flow.tensor(x))), want, rtol=4 * 2.0 ** -DIGITS[dtype],
                               atol=0)


def remainder(a: int, b: int) -> int:
    """Return a - b * (a / b rounded towards zero)."""
    return (abs(a) % abs(b)) * (-1 if a < 0 else 1)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("name", ["floordiv", "mod", "fmod"])
def test_special_values_of_integer_division(name, dtype):
    """The smallest integer divided by -1 wraps, and a division by 0 returns 0; neither crashes the
    process.
    """
    info = np.iinfo(dtype)
    pool = np.array([info.min, info.min + 1, -2, -1, 0, 1, 2, 7, info.max - 1, info.max])
    pool = np.unique(pool.clip(info.min, info.max))
    x, y = (np.array(c).astype(dtype) for c in zip(*itertools.product(pool.tolist(), repeat=2)))
    exact = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "fmod": remainder}[name]
    want = [0 if b == 0 else exact(a, b) for a, b in zip(x.tolist(), y.tolist())]
    want = np.array([(v - info.min) % (info.max - info.min + 1) + info.min for v in want], dtype)
    f = call_op(name)
    for mode in (None, Direct):
        a, b = flow.tensor(x), flow.tensor(y)
        got = f(a, b) if mode is None else mode(f)(a, b)
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_listed_by_c99_and_the_array_api(dtype):
    wrong = []
    for name, operands, result in read_written():
        f = flow.hypot if name == "hypot" else call_op(name)
        for length in (1, 37):                                # a scalar loop, and vectors with a remainder
            xs = columns_to_tensors([[x] * length for x in operands], dtype)
            got = as_float64(f(*xs))
            columns = [np.full(length, x) for x in operands]
            want = np.full(length, result)
            wrong += find_differences(name, got, columns, lambda *_, want=want: want, dtype)
    assert not wrong, "\n".join(wrong)
