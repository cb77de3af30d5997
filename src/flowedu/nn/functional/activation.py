"""Activations, softmax, and gumbel_softmax. `inplace=True` writes the result into the input's memory."""
from __future__ import annotations

import warnings
from collections.abc import Callable

from flowedu.core.ops.define import REGISTRY
from flowedu.core.ops.promote import REDUCING, cast, run, scalar
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, AxisError, DTypeError, ShapeError
from flowedu.errors.once import inert
from flowedu.nn.functional.common import check_floats, check_tensor, reshaped
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.devices import made_with
from flowedu.tensor.inplace import compute_into
from flowedu.tensor.promotion import in_float

_r = REGISTRY


def put(what: str, f: Callable, input, inplace: bool):
    """f(input), inplace: written into the input, of which backward still has what f saved."""
    return compute_into(input, f, (), {}, what) if inplace else f(input)


def _one(name: str, op_name: str, doc: str, place: bool = True):
    """A function that is one record; place: with the option inplace."""
    op = _r[op_name]

    def compute(input: Tensor) -> Tensor:
        check_tensor(name, input)
        return op.call((input,), ()) if input.dtype in dt.FLOATS else in_float(op, input)

    def with_inplace(input: Tensor, inplace: bool = False) -> Tensor:
        return put(name, compute, input, inplace)

    f = with_inplace if place else compute
    f.__name__ = f.__qualname__ = name
    f.__doc__ = doc
    f.quick = op, 2
    return f


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0); relu'(0) = 0."""
    return input.relu_() if inplace else E.relu(input)


relu.quick = E.relu.quick
_relu6 = _one("relu6", "relu6", "")


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return min(max(x, 0), 6); integers stay integers."""
    check_tensor("relu6", input)
    return _relu6(input, inplace) if input.dtype.is_floating_point else hardtanh(input, 0, 6, inplace)


silu = _one("silu", "swish", "x * sigmoid(x), also called swish.")
mish = _one("mish", "mish", "x * tanh(softplus(x)).")
hardsigmoid = _one("hardsigmoid", "hardsigmoid", "min(max(x / 6 + 0.5, 0), 1).")
hardswish = _one("hardswish", "hardswish", "x * hardsigmoid(x).")
logsigmoid = _one("logsigmoid", "log_sigmoid", "log(sigmoid(x)), exact where sigmoid(x) underflows.", False)
softsign = _one("softsign", "softsign", "x / (1 + |x|).", False)
quick_gelu = _one("quick_gelu", "quick_gelu", "x * sigmoid(1.702 * x).", False)
sigmoid, tanh = E.sigmoid, E.tanh


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), Phi being the normal distribution function; approximate="tanh": GPT-2's approximation of it."""
    check_floats("gelu", input)
    if approximate not in ("none", "tanh"):
        raise ArgumentError("gelu: approximate argument must be either none or tanh.", expected='"none" or "tanh"',
                            got=repr(approximate), fix="leave it out: the exact one is the default")
    return run(_r["gelu" if approximate == "none" else "gelu_tanh"], (input,))


def _bent(op_name: str, input, *numbers):
    """An op of x and numbers."""
    if input.dtype not in dt.FLOATS:
        return run(_r[op_name], (input, *(scalar(float(n), input.dtype) for n in numbers)))
    return _r[op_name].call((input, *(scalar(float(n), input.dtype) for n in numbers)), ())


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, negative_slope * x elsewhere."""
    check_floats("leaky_relu", input)
    return put("leaky_relu", lambda x: _bent("leaky_relu", x, negative_slope), input, inplace)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
    """leaky_relu whose slope is drawn for each element from [lower, upper) while training, and their mean otherwise."""
    check_floats("rrelu", input)
    if lower > upper:
        raise ArgumentError("rrelu: lower bound should be less than or equal to the upper bound", expected="lower <= upper",
                            got=f"lower={lower}, upper={upper}", fix="swap the two")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    from flowedu.tensor.random import uniform_of
    slope = uniform_of(tuple(input.shape), input.dtype, lower, upper)
    return put("rrelu", lambda x: _r["leaky_relu"].call((x, slope), ()), input, inplace)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where x > 0, weight * x elsewhere. weight: one number, or one for each channel (axis 1)."""
    check_floats("prelu", input)
    check_tensor("prelu", weight, "weight")
    n = weight.numel()
    if weight.ndim > 1:
        raise ShapeError("prelu: weight must have at most one axis", expected="a number, or one for each channel",
                         got=str(tuple(weight.shape)), fix="weight.reshape(-1)")
    channels = input.shape[1] if input.ndim > 1 else 1
    if n != 1 and n != channels:
        raise ShapeError(f"prelu: Mismatch of parameter numbers and input channel size. Found parameter numbers = {n} and "
                         f"channel size = {channels}.", expected=f"1 or {channels}", got=str(n),
                         fix="nn.PReLU(channels), or one number for all")
    shape = (1,) * input.ndim if n == 1 else (1, n, *(1,) * (input.ndim - 2))
    return run(_r["leaky_relu"], (input, reshaped(cast(weight, input.dtype), shape)))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, alpha * (exp(x) - 1) elsewhere."""
    check_floats("elu", input)
    return put("elu", lambda x: _bent("elu", x, alpha, 1.0), input, inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere."""
    check_floats("celu", input)
    if alpha == 0:
        raise ArgumentError("celu: alpha cannot be 0 for CELU", expected="another number", got="0",
                            fix="alpha=1.0 is the default")
    return put("celu", lambda x: _bent("elu", x, alpha, 1.0 / alpha), input, inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu with alpha 1.6733, times 1.0507: keeps mean 0 and variance 1 from layer to layer."""
    check_floats("selu", input)
    return put("selu", lambda x: _bent("elu", x, 1.6732632423543772848170429916717, 1.0)
               * 1.0507009873554804934193349852946, input, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x kept inside [min_val, max_val]."""
    check_tensor("hardtanh", input)
    if min_val > max_val:
        raise ArgumentError("hardtanh: min_val cannot be greater than max_val", expected="min_val <= max_val",
                            got=f"{min_val} > {max_val}", fix="exchange them")
    if not input.dtype.is_floating_point:
        return put("hardtanh", lambda x: E.clamp(x, int(min_val), int(max_val)), input, inplace)
    return put("hardtanh", lambda x: _bent("hardtanh", x, min_val, max_val), input, inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""
    check_floats("softplus", input)
    return E.softplus(input, beta, threshold)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd; 0 where it would pass it."""
    check_floats("softshrink", input)
    if lambd < 0:
        raise ArgumentError(f"softshrink: lambda must be greater or equal to 0, but found to be {lambd}",
                            expected="0 or more",
                            got=str(lambd), fix="lambd=0.5 is the default")
    return _bent("softshrink", input, lambd)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x where |x| > lambd, else 0."""
    check_floats("hardshrink", input)
    return _bent("hardshrink", input, lambd)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - E.tanh(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, else value."""
    check_tensor("threshold", input)
    whole = not input.dtype.is_floating_point
    return put("threshold", lambda x: E.where(E.le(x, threshold), scalar(value, x.dtype), x) if whole else
               _bent("threshold", x, threshold, value), input, inplace)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a * sigmoid(b), a and b being the halves of x along dim."""
    check_floats("glu", input)
    n = input.shape[_axis("glu", dim, input.ndim)] if input.ndim else 1
    if n % 2:
        raise ShapeError(f"glu: Halving dimension must be even, but dimension {dim} is size {n}", expected="an even size",
                         got=str(tuple(input.shape)), fix="twice as many outputs in the layer before it")
    a, b = input.chunk(2, dim)
    return a * E.sigmoid(b)


# ---- softmax
def _axis(what: str, dim: int, ndim: int) -> int:
    n = ndim or 1
    if not isinstance(dim, int) or not -n <= dim < n:
        raise AxisError(f"{what}: Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})",
                        expected=f"an axis in [{-n}, {n - 1}]", got=repr(dim), fix="dim=-1 is the last one")
    return dim % n


def _over(name: str, op_name: str):
    op = _r[op_name]

    def f(input: Tensor, dim: int | None = None, dtype=None) -> Tensor:
        check_tensor(name, input)
        if dim is None:
            dim = 0 if input.ndim in (0, 1, 3) else 1
            warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as "
                          "an argument.", stacklevel=2)
        x = input if dtype is None else cast(input, dt.as_dtype(dtype))
        if not x.dtype.is_floating_point:
            raise DTypeError(f'{name}: "{name}" is not implemented for {x.dtype!r}', expected="a floating dtype",
                             got=repr(x.dtype), fix="input.float(), or dtype=flow.float32")
        axis = _axis(name, dim, x.ndim)
        if not x.ndim:
            return reshaped(f(reshaped(x, (1,)), 0), ())
        return op.call((x,), (axis,)) if x.dtype in dt.FLOATS else run(op, (x,), (axis,), REDUCING)

    f.__name__ = f.__qualname__ = name
    return f


softmax, log_softmax = _over("softmax", "softmax"), _over("log_softmax", "log_softmax")
softmax.__doc__ = """exp(x) / sum(exp(x)) along `dim`; dtype: convert to it first. Raises AxisError, DTypeError."""
log_softmax.__doc__ = """log(softmax(x)) along `dim`, exact where softmax underflows; dtype: convert to it first."""


def softmin(input: Tensor, dim: int | None = None, dtype=None) -> Tensor:
    """softmax(-x)."""
    return softmax(E.neg(input), dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1.0, *, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A random sample of the classes: softmax((logits + noise) / tau). hard: one-hot, with the gradient of the soft one."""
    inert("nn.functional.gumbel_softmax(eps)", eps, 1e-10, "the noise is finite without it")
    check_floats("gumbel_softmax", logits)
    from flowedu.tensor.random import uniform_of
    with made_with(logits):
        # 16 bits have no number as small as 1e-38: noise of a draw of 0 would be infinite
        u = uniform_of(tuple(logits.shape), dt.float32 if logits.dtype in dt.HALVES else logits.dtype, 0, 1)
    noise = E.neg(E.log(E.neg(E.log1p(E.neg(u))) + 1e-38))
    soft = softmax((logits + cast(noise, logits.dtype)) / tau, dim)
    if not hard:
        return soft
    axis = _axis("gumbel_softmax", dim, logits.ndim)
    top = _r["argmax"](soft.detach(), axis=axis)
    with made_with(logits):
        places = _r["range"](size=logits.shape[axis], dtype=dt.int64)
    shape = (-1, *(1,) * (logits.ndim - axis - 1))
    hot = cast(E.eq(top.unsqueeze(axis), reshaped(places, (logits.shape[axis], *shape[1:]))), logits.dtype)
    return hot - soft.detach() + soft


__all__ = ["celu", "elu", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
           "leaky_relu",
           "log_softmax", "logsigmoid", "mish", "prelu", "quick_gelu", "relu", "relu6", "rrelu", "selu", "sigmoid", "silu",
           "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold"]
