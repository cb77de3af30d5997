"""Elementwise ops, each with a record and a line in _kernels/core/formulas.h or a Formula."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from flowedu.core.ops.define import Op
from flowedu.core.ops.promote import DIVIDING, scalar
from flowedu.core.ops.record import Laws, Operand, Split
from flowedu.core.ops.tiled import elementwise
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import ops as errors


def _pow(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x ** y; for integers and y < 0, 1 / x ** -y rounded towards zero (0 for x = 0)."""
    if y.dtype.kind != "i":
        return np.power(x, y)
    inverse = np.where(x == 1, 1, np.where(x == -1, 1 - 2 * (y & 1), 0))
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0))).astype(x.dtype)


def unary(name: str, ref: Callable, grad: Callable | None = None, domain: str = "any",
          float_only: bool = True, linear: Sequence[str] = (), rising: Sequence[str] = ()) -> Op:
    return elementwise(f"{name}(x) -> y", Split(linear=linear, rising=rising),
                       Laws(domain={"x": domain}, float_only=float_only), tile=name, ref=ref,
                       grad=None if grad is None else {"x": grad})


# ---- gradients that are 0 also where dz is infinite or NaN, unlike dz * 0
def where_true(mask: Operand, dz: Operand) -> Operand:
    """Return dz where the mask is true, else 0."""
    return where(mask, dz, scalar(0, dz.dtype))


def where_false(mask: Operand, dz: Operand) -> Operand:
    """Return 0 where the mask is true, else dz."""
    return where(mask, scalar(0, dz.dtype), dz)


def larger_share(dz: Operand, x: Operand, y: Operand) -> Operand:
    """Return dz where x > y, half of it where x and y are equal, else 0."""
    return where_false(less(x, y), where(equal(x, y), dz * 0.5, dz))


def zeros_of(dz: Operand) -> Operand:
    """Return zeros of the shape and dtype of dz."""
    return where_true(greater(dz, dz), dz)


# ---- arithmetic
add = elementwise("add(x, y) -> z", Split(linear=[("x", "y")]), Laws(float_only=False), tile="add",
                  ref=lambda x, y: np.add(x, y), grad={"x": lambda dz: dz, "y": lambda dz: dz})
sub = elementwise("sub(x, y) -> z", Split(linear=[("x", "y")]), Laws(float_only=False), tile="sub",
                  ref=lambda x, y: np.subtract(x, y),
                  grad={"x": lambda dz: dz, "y": lambda dz: neg(dz)})
mul = elementwise("mul(x, y) -> z", Split(linear=["x", "y"]), Laws(float_only=False), tile="mul",
                  ref=lambda x, y: np.multiply(x, y),
                  grad={"x": lambda dz, y: dz * y, "y": lambda dz, x: dz * x})
div = elementwise("div(x, y) -> z", Split(linear=["x"]), Laws(domain={"y": "nonzero"}), tile="div",
                  ref=lambda x, y: np.divide(x, y),         # grad avoids z: it may be overwritten
                  grad={"x": lambda dz, y: dz / y, "y": lambda dz, x, y: neg(dz * (x / y) / y)})
neg = unary("neg", lambda x: np.negative(x), lambda dy: neg(dy), float_only=False, linear=["x"])
pow = elementwise(
    "pow(x, y) -> z", Laws(domain={"x": "positive"}), tile="pow", ref=lambda x, y: _pow(x, y),
    grad={"x": lambda dz, x, y: dz * y * pow(x, where_true(not_equal(y, 0.0), y - 1)),
          "y": lambda dz, x, y, z: where_false(equal(maximum(abs(x), abs(y)), 0.0),
                                               dz * xlogy(z, x))})
maximum = elementwise("maximum(x, y) -> z", Split(fold="max", rising=["x", "y"]),
                      Laws(float_only=False), tile="maximum", ref=lambda x, y: np.maximum(x, y),
                      grad={"x": lambda dz, x, y: larger_share(dz, x, y),
                            "y": lambda dz, x, y: larger_share(dz, y, x)})
minimum = elementwise("minimum(x, y) -> z", Split(fold="min", rising=["x", "y"]),
                      Laws(float_only=False), tile="minimum", ref=lambda x, y: np.minimum(x, y),
                      grad={"x": lambda dz, x, y: larger_share(dz, y, x),
                            "y": lambda dz, x, y: larger_share(dz, x, y)})
floordiv = elementwise("floordiv(x, y) -> z",                # jumps only at x = 0 in this domain
                       Laws(domain={"x": "unit", "y": "above_one"}, float_only=False),
                       tile="floordiv", ref=lambda x, y: np.floor_divide(x, y),
                       grad={"x": lambda dz: zeros_of(dz), "y": lambda dz: zeros_of(dz)})
mod = elementwise("mod(x, y) -> z", Laws(domain={"x": "unit", "y": "above_one"}, float_only=False),
                  tile="mod", ref=lambda x, y: np.mod(x, y),
                  grad={"x": lambda dz: dz, "y": lambda dz, x, y: neg(dz * floordiv(x, y))})
DIVIDING.update({floordiv, mod})
xdivy = elementwise("xdivy(x, y) -> z", Split(linear=["x"]),
                    Laws(domain={"y": "nonzero"}), tile="xdivy",
                    ref=lambda x, y: np.where((x == 0) & (y == y), np.zeros_like(x), x / y),
                    grad={"x": lambda dz, y: dz / y, "y": lambda dz, y, z: neg(dz * xdivy(z, y))})
xlogy = elementwise(
    "xlogy(x, y) -> z", Split(linear=["x"]), Laws(domain={"y": "positive"}), tile="xlogy",
    ref=lambda x, y: np.where((x == 0) & (y == y), np.zeros_like(x), x * np.log(y)),
    grad={"x": lambda dz, x, y: where_false(equal(maximum(abs(x), y), 0.0), dz * log(y)),
          "y": lambda dz, x, y: dz * xdivy(x, y)})

# ---- one input
abs = unary("abs", lambda x: np.abs(x), lambda dy, x: dy * sign(x), float_only=False)
sign = unary("sign", lambda x: np.where(x != x, x.dtype.type(0), np.sign(x)),
             lambda dy: zeros_of(dy), float_only=False)
square = unary("square", lambda x: np.square(x), lambda dy, x: dy * x * 2, float_only=False)
relu = unary("relu", lambda x: np.maximum(x, 0), lambda dy, y: relu_grad(dy, y),
             float_only=False, rising=["x"])
relu_grad = elementwise(
    "relu_grad(dy, y) -> dx", Split(linear=["dy"]), Laws(float_only=False), tile="relu_grad",
    ref=lambda dy, y: np.where(y > 0, dy, dy.dtype.type(0)),
    grad={"dy": lambda ddx, y: relu_grad(ddx, y), "y": lambda ddx: None})       # constant in y
exp = unary("exp", lambda x: np.exp(x), lambda dy, y: dy * y, rising=["x"])
expm1 = unary("expm1", lambda x: np.expm1(x), lambda dy, y: dy * (y + 1))
log = unary("log", lambda x: np.log(x), lambda dy, x: dy / x, domain="positive")
log1p = unary("log1p", lambda x: np.log1p(x), lambda dy, x: dy / (x + 1), domain="positive")
sqrt = unary("sqrt", lambda x: np.sqrt(x), lambda dy, y: dy / (y * 2), domain="positive")
rsqrt = unary("rsqrt", lambda x: 1 / np.sqrt(x), lambda dy, x, y: dy * y / x * -0.5,
              domain="positive")
reciprocal = unary("reciprocal", lambda x: 1 / x, lambda dy, y: neg(dy * square(y)),
                   domain="nonzero")
sin = unary("sin", lambda x: np.sin(x), lambda dy, x: dy * cos(x))
cos = unary("cos", lambda x: np.cos(x), lambda dy, x: neg(dy * sin(x)))
tanh = unary("tanh", lambda x: np.tanh(x), lambda dy, y: dy * (1 - square(y)), rising=["x"])
ceil = unary("ceil", lambda x: np.ceil(x), lambda dy: zeros_of(dy))
floor = unary("floor", lambda x: np.floor(x), lambda dy: zeros_of(dy))
round = unary("round", lambda x: np.rint(x), lambda dy: zeros_of(dy))
sigmoid = unary("sigmoid", lambda x: 1 / (1 + np.exp(-x)), lambda dy, y: dy * y * (1 - y),
                rising=["x"])
softplus = unary("softplus", lambda x: np.logaddexp(x, np.zeros_like(x)),
                 lambda dy, x: dy * sigmoid(x))


# ---- comparisons with int8 results (0 or 1), as in OneFlow 0.4
def comparison(name: str, ref: np.ufunc, result: dt.dtype = dt.int8) -> Op:
    return elementwise(f"{name}(x, y) -> z",
                       Laws(domain={"x": "few", "y": "few"}, float_only=False), tile=name,
                       ref=lambda x, y: ref(x, y).astype(result.numpy), dtype=lambda x: result)


equal = comparison("equal", np.equal)
not_equal = comparison("not_equal", np.not_equal)
less = comparison("less", np.less)
less_equal = comparison("less_equal", np.less_equal)
greater = comparison("greater", np.greater)
greater_equal = comparison("greater_equal", np.greater_equal)
logical_and = comparison("logical_and", np.logical_and)
logical_or = comparison("logical_or", np.logical_or)
logical_xor = comparison("logical_xor", np.logical_xor)


# ---- comparisons of tensors, with bool results
eq = comparison("eq", np.equal, dt.bool_)
ne = comparison("ne", np.not_equal, dt.bool_)
lt = comparison("lt", np.less, dt.bool_)
le = comparison("le", np.less_equal, dt.bool_)
gt = comparison("gt", np.greater, dt.bool_)
ge = comparison("ge", np.greater_equal, dt.bool_)
both = comparison("both", np.logical_and, dt.bool_)
either = comparison("either", np.logical_or, dt.bool_)
differ = comparison("differ", np.logical_xor, dt.bool_)


def _where_type(cond: Spec, x: Spec) -> dt.dtype:
    if cond.dtype.bytes != 1:
        raise errors.not_a_mask(cond)
    return x.dtype


where = elementwise("where(cond, x, y) -> z", Split(linear=[("x", "y")]),
                    Laws(domain={"cond": "mask"}, float_only=False),
                    tile="where", ref=lambda cond, x, y: np.where(cond != 0, x, y),
                    dtype=_where_type, grad={"x": lambda dz, cond: where_true(cond, dz),
                                             "y": lambda dz, cond: where_false(cond, dz)})
