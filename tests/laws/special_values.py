"""Values of elementwise functions at NaN, infinities, signed zeros, denormals, and huge numbers.

`OPS` has a row for every elementwise op of the registry, `FUNCTIONS` for the public functions composed of
several ops. A row is the function in float64. NumPy's functions follow C99 Annex F and the special cases of
the Python array API. Where NumPy lacks a function or differs, the row is written out here. `WRITTEN` repeats
the tables of C99 as text, so that the law does not depend on NumPy alone.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

inf, nan = math.inf, math.nan


def each(f: Callable) -> Callable:
    """Return a NumPy function that calls `f` with one Python float after the other."""
    return np.vectorize(f, otypes=[np.float64])


def limit(f: Callable, at: dict[float, float]) -> Callable:
    """Return `f` with its limits at infinities, where the formula itself has inf * 0 or inf - inf."""
    def g(x):
        y = f(x)
        for where, value in at.items():
            y = np.where(x == where, value, y)
        return y
    return g


# ---- functions that NumPy does not have
def cdf(x):
    return each(lambda v: 0.5 * math.erfc(-v * math.sqrt(0.5)))(x)


def density(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def sigmoid(x):
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


def softplus(x):
    return np.logaddexp(x, 0.0)


def digamma_of_one(x: float) -> float:
    """Return digamma(x) by its recurrence up to 20 and the asymptotic series there; below 0 by reflection."""
    if x == 0:
        return -math.copysign(inf, x)
    if x < 0:
        if x == -inf or x % 1 == 0:
            return nan
        return digamma_of_one(1 - x) - math.pi / math.tan(math.pi * (x - round(x)))
    if x == inf:
        return inf
    y = 0.0
    while x < 20:
        y, x = y - 1 / x, x + 1
    w = 1 / x / x
    return y + math.log(x) - 0.5 / x - w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w / 240)))


def lgamma_of_one(x: float) -> float:
    if x <= 0 and x % 1 == 0:
        return inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return inf


def erfinv_of_one(x: float) -> float:
    if not abs(x) < 1:
        return x * inf if abs(x) == 1 else nan
    if abs(x) < 1e-8:
        return x * math.sqrt(math.pi) / 2                     # (1 + x) / 2 would lose x
    return NormalDist().inv_cdf((1 + x) / 2) / math.sqrt(2)


def sign(x):
    """Return 0 for NaN, as in OneFlow and PyTorch."""
    return np.where(x != x, 0.0, (x > 0) * 1.0 - (x < 0) * 1.0)


def relu(x):
    return np.where(x < 0, 0.0, x)


def xlogy(x, y):
    return np.where((x == 0) & (y == y), 0.0, x * np.log(y))


def swish(x):
    return limit(lambda x: x * sigmoid(x), {-inf: -0.0})(x)


def gelu_tanh(x):
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return limit(lambda x: x * (np.tanh(inner) + 1) * 0.5, {-inf: -0.0})(x)


def softsign(x):
    return limit(lambda x: x / (1 + np.abs(x)), {inf: 1.0, -inf: -1.0})(x)


def hypot(x, y):
    return np.where(np.isinf(x) | np.isinf(y), inf, np.hypot(x, y))


def clip(x, low, high):
    return np.minimum(np.maximum(x, low), high)


# ---- ops of the registry with float inputs
OPS: dict[str, Callable] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "pow": np.power,
    "maximum": np.maximum, "minimum": np.minimum, "clamp_min": np.maximum, "clamp_max": np.minimum,
    "floordiv": np.floor_divide, "mod": np.mod, "fmod": np.fmod,
    "xdivy": lambda x, y: np.where((x == 0) & (y == y), 0.0, x / y), "xlogy": xlogy,
    "abs": np.abs, "sign": sign, "square": np.square, "relu": relu,
    "relu_grad": lambda dy, y: np.where(y > 0, dy, 0.0),
    "exp": np.exp, "expm1": np.expm1, "exp2": np.exp2, "log": np.log, "log1p": np.log1p,
    "log2": np.log2, "log10": np.log10,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
    "reciprocal_no_nan": lambda x: np.where(x == 0, 0.0, 1 / x),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh,
    "atan2": np.arctan2, "hypot": hypot, "copysign": np.copysign,
    "ceil": np.ceil, "floor": np.floor, "round": np.rint, "trunc": np.trunc,
    "erf": each(math.erf), "erfc": each(math.erfc), "erfinv": each(erfinv_of_one),
    "lgamma": each(lgamma_of_one),
    "sigmoid": sigmoid, "softplus": softplus, "log_sigmoid": lambda x: -softplus(-x),
    "gelu": limit(lambda x: x * cdf(x), {-inf: -0.0}), "swish": swish, "gelu_tanh": gelu_tanh,
    "gelu_grad": lambda dy, x: dy * limit(lambda x: cdf(x) + x * density(x), {-inf: 0.0, inf: 1.0})(x),
    "quick_gelu": limit(lambda x: x * sigmoid(1.702 * x), {-inf: -0.0}),
    "mish": limit(lambda x: x * np.tanh(softplus(x)), {-inf: -0.0}),
    "relu6": lambda x: np.minimum(relu(x), 6.0),
    "relu6_grad": lambda dy, y: np.where((y > 0) & (y < 6), dy, 0.0),
    "hardsigmoid": lambda x: np.minimum(relu(x + 3), 6.0) / 6,
    "hardswish": limit(lambda x: x * (np.minimum(relu(x + 3), 6.0) / 6), {-inf: -0.0}), "softsign": softsign,
    "where": lambda cond, x, y: np.where(cond != 0, x, y), "bias_add": np.add,
    "threshold": lambda x, limit, value: np.where(x <= limit, value, x),
    "threshold_grad": lambda dy, x, limit: np.where(x <= limit, 0.0, dy),
    "hardtanh": clip, "hardshrink": lambda x, a: np.where(np.abs(x) <= a, 0.0, x),
    "softshrink": lambda x, a: x - clip(x, -a, a), "squared_difference": lambda x, y: np.square(x - y),
    "leaky_relu": lambda x, slope: np.where(x > 0, x, x * slope),
    "leaky_relu_grad": lambda dy, x, slope: np.where(x > 0, dy, dy * slope),
    "elu": lambda x, alpha, rate: np.where(x > 0, x, np.expm1(np.minimum(x * rate, 0.0)) * alpha),
    "blend": lambda x, y, a, b: x * a + y * b,
}
COMPARISONS: dict[str, Callable] = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor}
COMPARISONS |= dict(zip(("eq", "ne", "lt", "le", "gt", "ge", "both", "either", "differ"),
                        COMPARISONS.values()))

# Elementwise ops that the law omits.
LEFT_OUT = {
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor", "shift_left", "shift_right"), "of integers only"),
    **dict.fromkeys(("digamma_series", "digamma_steps"), "parts of digamma; FUNCTIONS has the whole"),
    **dict.fromkeys(("swish_grad", "quick_gelu_grad", "mish_grad", "hardswish_grad", "gelu_tanh_grad"),
                    "made of many steps; SLOPES has them at infinities and huge numbers"),
    **dict.fromkeys(("sigmoid_cross_entropy", "binary_cross_entropy"),
                    "losses: at infinite logits with a label of the other side, PyTorch's are NaN as well"),
}
# Functions whose intermediate values leave the range of the dtype at denormals and huge numbers, which are
# omitted.
MODERATE = {"elu", "blend", "lerp", "sinc"}
# Functions that subtract numbers of this size near their zeros. The bound is relative to such a number.
SUBTRACTS = {"digamma": 1.0, "gelu_tanh": 3.0, "sinc": 1.0, "logit": 1.0, "tanhshrink": 1.0}
# Ops whose zeros may have either sign.
EITHER_ZERO = {
    **dict.fromkeys(("sinc", "tanhshrink"), "a zero is what rounding leaves of numbers of other signs"),
    **dict.fromkeys(("maximum", "minimum", "clamp_min", "clamp_max", "relu", "relu6", "hardtanh",
                     "hardsigmoid", "hardswish", "softshrink", "fmax", "fmin", "clamp"),
                    "C99 and the array API leave the choice between 0 and -0 open"),
}


# ---- public functions composed of several ops
def div_trunc(x, y):
    return np.trunc(x / y)


def lerp(x, end, weight):
    return x + (end - x) * weight


def logaddexp2(x, y):
    return np.where(np.isinf(x) & (x == y), x, np.logaddexp2(x, y))


def fraction(x):
    return x - np.trunc(x)


def heaviside(x, at_zero):
    return np.where(x == 0, at_zero, (x > 0) * 1.0)


def sinc(x):
    return np.where(x == 0, 1.0, np.sin(math.pi * x) / (math.pi * np.where(x == 0, 1.0, x)))


def selu(x):
    return np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0.0))) * 1.0507009873554805


FUNCTIONS: dict[str, tuple[Callable, Callable]] = {
    "hypot": (lambda flow: flow.hypot, hypot),
    "logaddexp": (lambda flow: flow.logaddexp, np.logaddexp),
    "logaddexp2": (lambda flow: flow.logaddexp2, logaddexp2),
    "fmax": (lambda flow: flow.fmax, np.fmax), "fmin": (lambda flow: flow.fmin, np.fmin),
    "pow": (lambda flow: flow.pow, np.power),
    "clamp": (lambda flow: flow.clamp, clip), "lerp": (lambda flow: flow.lerp, lerp),
    "div, trunc": (lambda flow: lambda x, y: flow.div(x, y, rounding_mode="trunc"), div_trunc),
    "div, floor": (lambda flow: lambda x, y: flow.div(x, y, rounding_mode="floor"), np.floor_divide),
    "//": (lambda flow: lambda x, y: x // y, np.floor_divide), "%": (lambda flow: lambda x, y: x % y, np.mod),
    "digamma": (lambda flow: flow.digamma, each(digamma_of_one)), "frac": (lambda flow: flow.frac, fraction),
    "heaviside": (lambda flow: flow.heaviside, heaviside), "sinc": (lambda flow: flow.sinc, sinc),
    "logit": (lambda flow: flow.logit, lambda x: np.log(x) - np.log1p(-x)),
    "selu": (lambda flow: flow.selu, selu), "celu": (lambda flow: flow.nn.functional.celu, lambda x: np.where(
        x > 0, x, np.expm1(np.minimum(x, 0.0)))),
    "signbit": (lambda flow: flow.signbit, np.signbit), "isnan": (lambda flow: flow.isnan, np.isnan),
    "isinf": (lambda flow: flow.isinf, np.isinf), "isfinite": (lambda flow: flow.isfinite, np.isfinite),
    "isposinf": (lambda flow: flow.isposinf, np.isposinf),
    "isneginf": (lambda flow: flow.isneginf, np.isneginf),
    "tanhshrink": (lambda flow: flow.nn.functional.tanhshrink, lambda x: x - np.tanh(x)),
}

# ---- slopes of activations at -inf and inf; the same at -1e30 and 1e30
SLOPES: dict[str, tuple[Callable, float, float]] = {
    **{name: (lambda F, name=name: getattr(F, name), 0, 1) for name in (
        "relu", "elu", "celu", "gelu", "silu", "mish", "softplus", "hardswish", "quick_gelu")},
    **{name: (lambda F, name=name: getattr(F, name), 0, 0) for name in (
        "sigmoid", "tanh", "softsign", "relu6", "hardsigmoid", "hardtanh")},
    **{name: (lambda F, name=name: getattr(F, name), 1, 1) for name in (
        "tanhshrink", "softshrink", "hardshrink")},
    "gelu, tanh": (lambda F: lambda x: F.gelu(x, approximate="tanh"), 0, 1),
    "logsigmoid": (lambda F: F.logsigmoid, 1, 0),
    "leaky_relu": (lambda F: lambda x: F.leaky_relu(x, 0.25), 0.25, 1),
    "selu": (lambda F: F.selu, 0, 1.0507009873554805),
    "softplus, beta": (lambda F: lambda x: F.softplus(x, 2, 5), 0, 1),
}

# ---- C99, Annex F (F.10.1 to F.10.9), as text: function, operands, result
WRITTEN = """
acos 1 0 | acos 2 nan | asin 0 0 | asin -0 -0 | asin 2 nan | atan 0 0 | atan -0 -0 | atan inf pi/2
atan -inf -pi/2 | atan2 0 -0 pi | atan2 -0 -0 -pi | atan2 0 0 0 | atan2 -0 0 -0 | atan2 0 -1 pi
atan2 -0 -1 -pi | atan2 0 1 0 | atan2 -0 1 -0 | atan2 -1 0 -pi/2 | atan2 -1 -0 -pi/2 | atan2 1 0 pi/2
atan2 1 -0 pi/2 | atan2 1 -inf pi | atan2 -1 -inf -pi | atan2 1 inf 0 | atan2 -1 inf -0 | atan2 inf 1 pi/2
atan2 -inf 1 -pi/2 | atan2 inf -inf 3pi/4 | atan2 -inf -inf -3pi/4 | atan2 inf inf pi/4
atan2 -inf inf -pi/4 | atan2 nan 0 nan | atan2 0 nan nan | cos 0 1 | cos -0 1 | cos inf nan | cos -inf nan
sin 0 0 | sin -0 -0 | sin inf nan | sin -inf nan | tan 0 0 | tan -0 -0 | tan inf nan | tan -inf nan
acosh 1 0 | acosh 0.5 nan | acosh inf inf | asinh 0 0 | asinh -0 -0 | asinh inf inf | asinh -inf -inf
atanh 0 0 | atanh -0 -0 | atanh 1 inf | atanh -1 -inf | atanh 2 nan | cosh 0 1 | cosh inf inf
cosh -inf inf | sinh 0 0 | sinh -0 -0 | sinh inf inf | sinh -inf -inf | tanh 0 0 | tanh -0 -0 | tanh inf 1
tanh -inf -1 | exp 0 1 | exp -inf 0 | exp inf inf | exp2 0 1 | exp2 -inf 0 | exp2 inf inf | expm1 0 0
expm1 -0 -0 | expm1 -inf -1 | expm1 inf inf | log 0 -inf | log -0 -inf | log 1 0 | log -1 nan | log inf inf
log10 0 -inf | log10 1 0 | log10 -1 nan | log10 inf inf | log1p 0 0 | log1p -0 -0 | log1p -1 -inf
log1p -2 nan | log1p inf inf | log2 0 -inf | log2 1 0 | log2 -1 nan | log2 inf inf | abs -0 0 | abs -inf inf
hypot inf nan inf | hypot nan inf inf | hypot -inf nan inf | hypot nan -inf inf | hypot 0 -0 0
hypot 0 nan nan | pow 0 -1 inf | pow -0 -1 -inf | pow -0 -3 -inf | pow 0 -2 inf | pow -0 -2 inf
pow 0 -0.5 inf | pow 0 -inf inf | pow -0 -inf inf | pow 0 3 0 | pow -0 3 -0 | pow -0 2 0 | pow 0 0.5 0
pow -0 0.5 0 | pow -1 inf 1 | pow -1 -inf 1 | pow 1 nan 1 | pow 1 inf 1 | pow nan 0 1 | pow nan -0 1
pow inf 0 1 | pow -2 0.5 nan | pow 0.5 -inf inf | pow -0.5 -inf inf | pow 2 -inf 0 | pow -2 -inf 0
pow 0.5 inf 0 | pow 2 inf inf | pow -inf -3 -0 | pow -inf -2 0 | pow -inf 3 -inf | pow -inf 2 inf
pow -inf 0.5 inf | pow inf -1 0 | pow inf 1 inf | pow nan 1 nan | pow 2 nan nan | sqrt 0 0 | sqrt -0 -0
sqrt inf inf | sqrt -1 nan | erf 0 0 | erf -0 -0 | erf inf 1 | erf -inf -1 | erfc -inf 2 | erfc inf 0
lgamma 1 0 | lgamma 2 0 | lgamma 0 inf | lgamma -1 inf | lgamma inf inf | lgamma -inf inf | ceil 0 0
ceil -0 -0 | ceil -0.5 -0 | ceil inf inf | floor 0 0 | floor -0 -0 | floor inf inf | floor -inf -inf
round 0 0 | round -0 -0 | round -0.5 -0 | round 0.5 0 | round inf inf | trunc -0 -0 | trunc -0.5 -0
trunc -inf -inf | fmod 0 2 0 | fmod -0 2 -0 | fmod inf 2 nan | fmod 2 0 nan | fmod 2 inf 2 | fmod -4 2 -0
fmod 4 -2 0 | copysign 1 -0 -1 | copysign -1 0 1 | copysign 0 -1 -0 | div 1 0 inf | div 1 -0 -inf
div 0 0 nan | div -0 2 -0 | rsqrt 0 inf | rsqrt -0 -inf | rsqrt inf 0 | rsqrt -1 nan | reciprocal -0 -inf
reciprocal inf 0 | reciprocal -inf -0
"""
# The special cases of floor_divide and remainder in the Python array API, and Python's own // and %.
WRITTEN += """
floordiv 1 0 inf | floordiv 1 -0 -inf | floordiv -1 0 -inf | floordiv -1 -0 inf | floordiv 0 2 0
floordiv -0 2 -0 | floordiv 0 -2 -0 | floordiv -0 -2 0 | floordiv 1 inf 0 | floordiv -1 inf -1
floordiv 1 -inf -1 | floordiv -1 -inf 0 | floordiv 0 0 nan | floordiv inf inf nan | mod 0 2 0 | mod -0 2 0
mod 0 -2 -0 | mod -0 -2 -0 | mod 4 -2 -0 | mod -4 2 0 | mod 1 inf 1 | mod -1 inf inf | mod 1 -inf -inf
mod -1 -inf -1 | mod inf 2 nan | mod 2 0 nan | xlogy 0 nan nan | xlogy 0 0 0 | xlogy 0 inf 0 | xlogy 0 -1 0
xlogy nan 1 nan | xlogy 2 0 -inf
"""


def read_written() -> list[tuple[str, list[float], float]]:
    """Return WRITTEN as (function, operands, result)."""
    values = {"pi": math.pi, "pi/2": math.pi / 2, "pi/4": math.pi / 4, "3pi/4": 3 * math.pi / 4}
    values |= {"-" + name: -value for name, value in values.items()}

    def number(text):
        return values[text] if text in values else float(text)

    rows = [row.split() for row in WRITTEN.replace("\n", "|").split("|") if row.strip()]
    return [(name, [number(x) for x in operands], number(result)) for name, *operands, result in rows]
