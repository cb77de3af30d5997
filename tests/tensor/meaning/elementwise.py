"""Reference for elementwise functions and operators."""
import builtins
import math

import numpy as np

from .kinds import NAMES, T, as_kind, category, operate, real, result

each = np.vectorize


def digamma(x: float) -> float:
    """Use the recurrence up to 20 and the asymptotic series from there on."""
    shift = 0.0
    while x < 20:
        shift, x = shift - 1 / x, x + 1
    y = 1 / (x * x)
    return shift + math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)))


def erfinv(y: float) -> float:
    x = 0.0
    for _ in range(60):                                # Newton's method
        x -= (math.erf(x) - y) / (2 / math.sqrt(math.pi) * math.exp(-x * x))
    return x


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def phi(x):
    return (1 + each(math.erf, otypes=[float])(x / math.sqrt(2))) / 2


FLOAT = {                                              # float functions; integers count as float32
    **{n: getattr(np, n) for n in "exp expm1 exp2 log log1p log2 log10 sqrt sin cos tan sinh cosh tanh "
       "deg2rad rad2deg sinc"
       .split()},
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh,
    "rsqrt": lambda x: x ** -0.5, "reciprocal": lambda x: 1 / x, "sigmoid": sigmoid,
    "erfinv": each(erfinv, otypes=[float]),
    "erf": each(math.erf, otypes=[float]), "erfc": each(math.erfc, otypes=[float]),
    "lgamma": each(math.lgamma, otypes=[float]), "digamma": each(digamma, otypes=[float]),
    "silu": lambda x: x * sigmoid(x), "mish": lambda x: x * np.tanh(softplus(x)), "softplus": softplus,
    "softsign": lambda x: x / (1 + np.abs(x)), "gelu": lambda x: x * phi(x),
    "log_sigmoid": lambda x: -softplus(-x),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
}
FLOAT |= {"arc" + n[1:]: FLOAT[n] for n in "asin acos atan asinh acosh atanh".split()}
SAME = {                                               # any dtype, which the result keeps
    "abs": np.abs, "neg": np.negative, "square": np.square, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc,
    "sign": np.sign, "positive": lambda x: x, "clone": np.copy, "frac": lambda x: x - np.trunc(x),
    "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6), "absolute": np.abs,
    "negative": np.negative, "fix": np.trunc, "sgn": np.sign,
}
TEST = {                                               # any dtype, with bool results
    "isnan": np.isnan, "isfinite": np.isfinite, "isinf": np.isinf,
    "isposinf": lambda x: np.isinf(x) & (x > 0),
    "isneginf": lambda x: np.isinf(x) & (x < 0), "signbit": lambda x: np.signbit(x) if x.dtype.kind == "f"
    else x < 0, "logical_not": lambda x: x == 0,
}
COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
           "ge": np.greater_equal}
COMPARE |= {"not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
            "greater_equal": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
            "logical_xor": np.logical_xor}
TWO = {                                                # two operands of a common dtype, which the result has
    "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin,
    "multiply": np.multiply, "floor_divide": np.floor_divide, "remainder": np.mod, "fmod": np.fmod,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift, "hypot": np.hypot,
    "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2, "heaviside": np.heaviside,
}
TWO_FLOAT = {  # two operands of a common dtype, with integers as float32
    "true_divide": np.divide, "atan2": np.arctan2, "arctan2": np.arctan2, "copysign": np.copysign,
    "xlogy": lambda x, y: np.where(x == 0, 0, x * np.log(y)), "ldexp": lambda x, n: x * 2.0 ** n,
}


def of_float(f):
    return lambda x: real(f, x)


def of_same(f):
    return lambda x: operate(f, x)


def of_test(f):
    return lambda x: operate(f, x, out="bool")


def of_compare(f):
    """Compare integers with a Python number by value, even if the dtype cannot represent the number."""
    def compare(x, y):
        whole = all(category(z.kind) < 2 for z in (x, y) if isinstance(z, T))
        if not whole or isinstance(x, T) and isinstance(y, T):
            return operate(f, x, y, out="bool")
        a, b = (z.a.astype(object) if isinstance(z, T) else z for z in (x, y))
        return T(np.asarray(f(a, b), bool))

    return compare


def of_two(f):
    return lambda x, y: operate(f, x, y)


def of_two_float(f):
    return lambda x, y: real(f, x, y)


FUNCTIONS = {n: make(f) for make, names in ((of_float, FLOAT), (of_same, SAME), (of_test, TEST),
                                            (of_compare, COMPARE),
                                            (of_two, TWO), (of_two_float, TWO_FLOAT))
             for n, f in names.items()}


def add(x, y, alpha=1):
    return operate(lambda x, y: x | y if x.dtype == np.bool_ else x + alpha * y, x, y)


def sub(x, y, alpha=1):
    return operate(lambda x, y: x - alpha * y, x, y)


def rsub(x, y, alpha=1):
    return sub(y, x, alpha)


def div(x, y, rounding_mode=None):
    if rounding_mode is None:
        return real(np.divide, x, y)
    if rounding_mode == "floor":
        return operate(np.floor_divide, x, y)
    return as_kind(np.trunc(real(np.divide, x, y).a.astype(np.float64)), result(x, y))


def pow(x, y):
    return operate(lambda x, y: np.power(x, y) if x.dtype.kind != "b" else x | ~y, x, y)


def float_power(x, y):
    return operate(np.power, x, y, kind="float64")


def bitwise_not(x):
    return operate(np.invert, x)


def round(x, decimals=0):
    return operate(lambda x: np.round(x, decimals), x)


def logit(x, eps=None):
    return real(lambda x: (lambda p: np.log(p) - np.log(1 - p))(x if eps is None
                                                                else np.clip(x, eps, 1 - eps)), x)


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    return operate(lambda x: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf), x)


def softmax(x, dim=None, log=False, dtype=None):
    x = x if dtype is None else as_kind(x.a, dtype)

    def f(x):
        y = x - x.max(dim, keepdims=True)
        y = y - np.log(np.exp(y).sum(dim, keepdims=True))
        return y if log else np.exp(y)
    return real(f, x)


def log_softmax(x, dim=None):
    return softmax(x, dim, log=True)


def lerp(x, y, weight):
    return operate(lambda x, y, w: x + w * (y - x), x, y, weight)


def addcmul(x, y, z, value=1):
    return operate(lambda x, y, z: x + value * y * z, x, y, z)


def addcdiv(x, y, z, value=1):
    return operate(lambda x, y, z: x + value * y / z, x, y, z)


def clamp(x, min=None, max=None):
    bounds = [b for b in (min, max) if b is not None]
    out = x.kind if category(result(x, *bounds)) == category(x.kind) and not any(isinstance(b, T)
                                                                                 for b in bounds) else \
        result(x, *bounds)
    def f(x, *bounds):
        bounds = list(bounds)
        if min is not None:
            x = np.maximum(x, bounds.pop(0))
        return np.minimum(x, bounds.pop(0)) if max is not None else x
    return operate(f, x, *bounds, kind=out)


clip = clamp


def clamp_min(x, min):
    return clamp(x, min=min)


def clamp_max(x, max):
    return clamp(x, max=max)


def where(condition, x=None, y=None):
    if x is None:
        return tuple(T(i) for i in np.nonzero(condition.a))
    return operate(lambda x, y: np.where(condition.a, x, y), x, y)


def isclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    return T(np.isclose(x.a, y.a, rtol=rtol, atol=atol, equal_nan=equal_nan))


def allclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    return builtins.bool(isclose(x, y, rtol, atol, equal_nan).a.all())


def equal(x, y):
    return x.shape == y.shape and builtins.bool((x.a == y.a).all())


def to(x, kind):
    return as_kind(x.a, kind)


def cast(x, kind):
    return as_kind(x.a, kind)


def type_as(x, other):
    return as_kind(x.a, other.kind)


def type(x, kind):
    return as_kind(x.a, kind)


def detach(x):
    return x


def result_type(*operands):
    return result(*operands)


def can_cast(a, b):
    return category(a) <= category(b)


CONVERSIONS = dict(float="float32", double="float64", half="float16", bfloat16="bfloat16", int="int32",
                   long="int64", bool="bool", byte="uint8", char="int8", short="int16")
FUNCTIONS |= {n: (lambda x, kind=kind: as_kind(x.a, kind)) for n, kind in CONVERSIONS.items()}
FUNCTIONS |= {f.__name__: f for f in (add, sub, rsub, div, pow, float_power, bitwise_not, round, logit,
                                      nan_to_num, softmax,
              log_softmax, lerp, addcmul, addcdiv, clamp, clamp_min, clamp_max, where, isclose, allclose,
                                      equal, to, cast, type_as, type, detach, result_type, can_cast)}
FUNCTIONS |= {"subtract": sub, "divide": div, "clip": clamp}
DTYPES = {n: n for n in NAMES}

OPERATORS = {"add": add, "sub": sub, "mul": FUNCTIONS["mul"], "truediv": div,
             "floordiv": FUNCTIONS["floor_divide"],
             "mod": FUNCTIONS["remainder"], "pow": pow, "and": FUNCTIONS["bitwise_and"],
             "or": FUNCTIONS["bitwise_or"],
             "xor": FUNCTIONS["bitwise_xor"], "lshift": FUNCTIONS["bitwise_left_shift"],
             "rshift": FUNCTIONS["bitwise_right_shift"]}
for name, f in OPERATORS.items():
    setattr(T, f"__{name}__", f)
    setattr(T, f"__r{name}__", lambda x, y, f=f: f(y, x))
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(T, f"__{name}__", FUNCTIONS[name])
T.where = lambda x, condition, y: where(condition, x, y)
T.__neg__, T.__pos__, T.__abs__, T.__invert__ = (FUNCTIONS[n] for n in ("neg", "positive", "abs",
                                                                        "bitwise_not"))
