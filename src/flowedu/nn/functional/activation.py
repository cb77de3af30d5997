"""Activations, softmax, and gumbel_softmax."""
from __future__ import annotations

import warnings
from collections.abc import Callable

from flowedu.core.ops.define import Op
from flowedu.core.ops.promote import REDUCING, cast, run, scalar
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, AxisError, DTypeError, ShapeError
from flowedu.errors.once import inert
from flowedu.nn.functional.common import check_floats, check_tensor, reshaped
from flowedu.ops import activations, bounds, composed, functions
from flowedu.ops import softmax as softmax_ops
from flowedu.ops.argmax import argmax
from flowedu.ops.order import range as range_op
from flowedu.tensor import Tensor
from flowedu.tensor import elementwise as E
from flowedu.tensor.devices.conversion import use_device_of
from flowedu.tensor.dtypes.promotion import in_float
from flowedu.tensor.inplace.history import compute_into

_INPUT = "Args:\n    input: floating tensor of any shape."
_ARGS = f"{_INPUT}\n    inplace: write the result into the memory of the input."


def put(what: str, f: Callable, input: Tensor, inplace: bool) -> Tensor:
    """Return f(input), or write it into the input if `inplace`.

    The values that f saves for the backward pass remain valid.
    """
    return compute_into(input, f, (), {}, what) if inplace else f(input)


def _one(name: str, op: Op, doc: str, place: bool = True) -> Callable[..., Tensor]:
    """Return the function of one op. `place` adds the option inplace."""
    def compute(input: Tensor) -> Tensor:
        check_tensor(name, input)
        return op.call((input,), ()) if input.dtype in dt.FLOATS else in_float(op, input)

    def with_inplace(input: Tensor, inplace: bool = False) -> Tensor:
        return put(name, compute, input, inplace)

    f = with_inplace if place else compute
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{doc}\n\n{_ARGS if place else _INPUT}"
    f.quick = op, 2  # type: ignore[attr-defined]  # an attribute of a function
    return f


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return max(x, 0) for each element; the gradient at 0 is 0.

    Args:
        input: tensor of any shape.
        inplace: write the result into the memory of the input.
    """
    return input.relu_() if inplace else E.relu(input)


relu.quick = E.relu.quick  # type: ignore[attr-defined]  # an attribute of a function
_relu6 = _one("relu6", composed.relu6, "")


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return min(max(x, 0), 6) for each element.

    Args:
        input: tensor of any shape; integers stay integers.
        inplace: write the result into the memory of the input.
    """
    check_tensor("relu6", input)
    return _relu6(input, inplace) if input.dtype.is_floating_point else hardtanh(input, 0, 6, inplace)


silu = _one("silu", composed.swish, "Return x * sigmoid(x), also called swish, for each element.")
mish = _one("mish", composed.mish, "Return x * tanh(softplus(x)) for each element.")
hardsigmoid = _one("hardsigmoid", composed.hardsigmoid,
                   "Return min(max(x / 6 + 0.5, 0), 1) for each element.")
hardswish = _one("hardswish", composed.hardswish, "Return x * hardsigmoid(x) for each element.")
logsigmoid = _one("logsigmoid", composed.log_sigmoid,
                  "Return log(sigmoid(x)) for each element, without underflow.", False)
softsign = _one("softsign", composed.softsign, "Return x / (1 + |x|) for each element.", False)
quick_gelu = _one("quick_gelu", composed.quick_gelu, "Return x * sigmoid(1.702 * x) for each element.", False)
sigmoid, tanh = E.sigmoid, E.tanh


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return x * Phi(x) for each element, where Phi is the normal distribution function.

    Args:
        input: floating tensor of any shape.
        approximate: "none" for the exact function, "tanh" for the approximation that GPT-2 uses.
    """
    check_floats("gelu", input)
    if approximate not in ("none", "tanh"):
        raise ArgumentError("gelu: approximate argument must be either none or tanh.",
                            expected='"none" or "tanh"',
                            got=repr(approximate), fix="leave it out: the exact one is the default")
    return run(functions.gelu if approximate == "none" else composed.gelu_tanh, (input,))


def _with_numbers(op: Op, input: Tensor, *numbers: float) -> Tensor:
    """Return an op of a tensor and numbers."""
    inputs = input, *(scalar(float(n), input.dtype) for n in numbers)
    return op.call(inputs, ()) if input.dtype in dt.FLOATS else run(op, inputs)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x where x > 0, negative_slope * x elsewhere.

    Args:
        input: floating tensor of any shape.
        negative_slope: slope for negative elements.
        inplace: write the result into the memory of the input.
    """
    check_floats("leaky_relu", input)
    return put("leaky_relu", lambda x: _with_numbers(activations.leaky_relu, x, negative_slope),
               input, inplace)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
    """Return leaky_relu with a random slope per element in training, and with the mean slope otherwise.

    Args:
        input: floating tensor of any shape.
        lower: smallest slope.
        upper: largest slope.
        training: True: draw random slopes; False: use the slope (lower + upper) / 2.
        inplace: write the result into the memory of the input.
    """
    check_floats("rrelu", input)
    if lower > upper:
        raise ArgumentError("rrelu: lower bound should be less than or equal to the upper bound",
                            expected="lower <= upper",
                            got=f"lower={lower}, upper={upper}", fix="swap the two")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    from flowedu.tensor.construction.random import uniform_of
    slope = uniform_of(tuple(input.shape), input.dtype, lower, upper)
    return put("rrelu", lambda x: activations.leaky_relu.call((x, slope), ()), input, inplace)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x where x > 0, weight * x elsewhere.

    Args:
        input: (N, C, ...).
        weight: one element, or (C,) for one slope per channel (axis 1).
    """
    check_floats("prelu", input)
    check_tensor("prelu", weight, "weight")
    n = weight.numel()
    if weight.ndim > 1:
        raise ShapeError("prelu: weight must have at most one axis",
                         expected="a number, or one for each channel",
                         got=str(tuple(weight.shape)), fix="weight.reshape(-1)")
    channels = input.shape[1] if input.ndim > 1 else 1
    if n != 1 and n != channels:
        raise ShapeError(f"prelu: Mismatch of parameter numbers and input channel size. Found parameter "
                         f"numbers = {n} and channel size = {channels}.", expected=f"1 or {channels}",
                         got=str(n), fix="nn.PReLU(channels), or one number for all")
    shape = (1,) * input.ndim if n == 1 else (1, n, *(1,) * (input.ndim - 2))
    return run(activations.leaky_relu, (input, reshaped(cast(weight, input.dtype), shape)))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where x > 0, alpha * (exp(x) - 1) elsewhere.

    Args:
        input: floating tensor of any shape.
        alpha: the result approaches -alpha for large negative elements.
        inplace: write the result into the memory of the input.
    """
    check_floats("elu", input)
    return put("elu", lambda x: _with_numbers(activations.elu, x, alpha, 1.0), input, inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere.

    Args:
        input: floating tensor of any shape.
        alpha: the result approaches -alpha for large negative elements.
        inplace: write the result into the memory of the input.
    """
    check_floats("celu", input)
    if alpha == 0:
        raise ArgumentError("celu: alpha cannot be 0 for CELU", expected="another number", got="0",
                            fix="alpha=1.0 is the default")
    return put("celu", lambda x: _with_numbers(activations.elu, x, alpha, 1.0 / alpha), input, inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return 1.0507 * elu(x, 1.6733), which preserves mean 0 and variance 1 from layer to layer.

    Args:
        input: floating tensor of any shape.
        inplace: write the result into the memory of the input.
    """
    check_floats("selu", input)
    return put("selu", lambda x: _with_numbers(activations.elu, x, 1.6732632423543772848170429916717, 1.0)
               * 1.0507009873554804934193349852946, input, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return each element clipped to [min_val, max_val].

    Args:
        input: tensor of any shape.
        min_val: smallest value of the result.
        max_val: largest value of the result.
        inplace: write the result into the memory of the input.
    """
    check_tensor("hardtanh", input)
    if min_val > max_val:
        raise ArgumentError("hardtanh: min_val cannot be greater than max_val", expected="min_val <= max_val",
                            got=f"{min_val} > {max_val}", fix="exchange them")
    if not input.dtype.is_floating_point:
        return put("hardtanh", lambda x: E.clamp(x, int(min_val), int(max_val)), input, inplace)
    return put("hardtanh", lambda x: _with_numbers(bounds.hardtanh, x, min_val, max_val), input, inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return log(1 + exp(beta * x)) / beta for each element.

    Args:
        input: floating tensor of any shape.
        beta: sharpness of the curve near 0; the result approaches relu as beta grows.
        threshold: x itself is returned where beta * x exceeds this number, for numerical stability.
    """
    check_floats("softplus", input)
    return E.softplus(input, beta, threshold)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x moved towards 0 by lambd, and 0 where |x| <= lambd.

    Args:
        input: floating tensor of any shape.
        lambd: threshold, 0 or more.
    """
    check_floats("softshrink", input)
    if lambd < 0:
        raise ArgumentError(f"softshrink: lambda must be greater or equal to 0, but found to be {lambd}",
                            expected="0 or more",
                            got=str(lambd), fix="lambd=0.5 is the default")
    return _with_numbers(bounds.softshrink, input, lambd)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x where |x| > lambd, 0 elsewhere.

    Args:
        input: floating tensor of any shape.
        lambd: threshold.
    """
    check_floats("hardshrink", input)
    return _with_numbers(bounds.hardshrink, input, lambd)


def tanhshrink(input: Tensor) -> Tensor:
    """Return x - tanh(x) for each element.

    Args:
        input: floating tensor of any shape.
    """
    return input - E.tanh(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where x > threshold, value elsewhere.

    Args:
        input: tensor of any shape.
        threshold: elements less than or equal to this number are replaced.
        value: replacement.
        inplace: write the result into the memory of the input.
    """
    check_tensor("threshold", input)
    whole = not input.dtype.is_floating_point
    return put("threshold", lambda x: E.where(E.le(x, threshold), scalar(value, x.dtype), x) if whole else
               _with_numbers(bounds.threshold, x, threshold, value), input, inplace)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return a * sigmoid(b), where a and b are the halves of x along an axis.

    Args:
        input: floating tensor.
        dim: axis to split; its size must be even.
    """
    check_floats("glu", input)
    n = input.shape[_axis("glu", dim, input.ndim)] if input.ndim else 1
    if n % 2:
        raise ShapeError(f"glu: Halving dimension must be even, but dimension {dim} is size {n}",
                         expected="an even size",
                         got=str(tuple(input.shape)), fix="twice as many outputs in the layer before it")
    a, b = input.chunk(2, dim)
    return a * E.sigmoid(b)


# ---- softmax
def _axis(what: str, dim: int, ndim: int) -> int:
    n = ndim or 1
    if not isinstance(dim, int) or not -n <= dim < n:
        raise AxisError(f"{what}: Dimension out of range (expected to be in range of [{-n}, {n - 1}], but "
                        f"got {dim})",
                        expected=f"an axis in [{-n}, {n - 1}]", got=repr(dim), fix="dim=-1 is the last one")
    return dim % n


def _over(name: str, op: Op) -> Callable[..., Tensor]:
    """Return a function along one axis that calls an op."""
    def f(input: Tensor, dim: int | None = None, dtype: dt.dtype | None = None) -> Tensor:
        check_tensor(name, input)
        if dim is None:
            dim = 0 if input.ndim in (0, 1, 3) else 1
            warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to "
                          f"include dim=X as an argument.", stacklevel=2)
        x = input if dtype is None else cast(input, dt.as_dtype(dtype))
        if not x.dtype.is_floating_point:
            raise DTypeError(f'{name}: "{name}" is not implemented for {x.dtype!r}',
                             expected="a floating dtype",
                             got=repr(x.dtype), fix="input.float(), or dtype=flow.float32")
        axis = _axis(name, dim, x.ndim)
        if not x.ndim:
            return reshaped(f(reshaped(x, (1,)), 0), ())
        return op.call((x,), (axis,)) if x.dtype in dt.FLOATS else run(op, (x,), (axis,), REDUCING)

    f.__name__ = f.__qualname__ = name
    return f


softmax, log_softmax = _over("softmax", softmax_ops.softmax), _over("log_softmax", softmax_ops.log_softmax)
_ARGS_OF_SOFTMAX = """

Args:
    input: floating tensor of any shape.
    dim: axis that is normalized. Default (deprecated, with a warning): 0 for inputs with 0, 1, or 3 axes,
        else 1.
    dtype: dtype to convert the input to first; default: no conversion.

Raises:
    AxisError: the input has no axis `dim`.
    DTypeError: the input is not a floating tensor.
"""
softmax.__doc__ = f"Return exp(x) / sum(exp(x)) along an axis.{_ARGS_OF_SOFTMAX}"
log_softmax.__doc__ = f"Return log(softmax(x)) along an axis, without underflow.{_ARGS_OF_SOFTMAX}"


def softmin(input: Tensor, dim: int | None = None, dtype: dt.dtype | None = None) -> Tensor:
    """Return softmax(-x) along an axis.

    Args:
        input: floating tensor of any shape.
        dim: axis that is normalized. Default (deprecated, with a warning): 0 for inputs with 0, 1, or 3
            axes, else 1.
        dtype: dtype to convert the input to first; default: no conversion.
    """
    return softmax(E.neg(input), dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1.0, *, hard: bool = False, eps: float = 1e-10,
                   dim: int = -1) -> Tensor:
    """Return softmax((logits + Gumbel noise) / tau), a random sample of classes (Jang et al. 2017).

    Args:
        logits: floating tensor of unnormalized log-probabilities.
        tau: temperature; small values give almost one-hot samples.
        hard: return one-hot vectors; the backward pass uses the gradient of the softmax values.
        eps: ignored, as in PyTorch.
        dim: axis of the classes.
    """
    inert("nn.functional.gumbel_softmax(eps)", eps, 1e-10, "the noise is finite without it")
    check_floats("gumbel_softmax", logits)
    from flowedu.tensor.construction.random import uniform_of
    with use_device_of(logits):
        # 1e-38 underflows in 16 bits, so a draw of 0 would give infinite noise.
        u = uniform_of(tuple(logits.shape), dt.float32 if logits.dtype in dt.HALVES else logits.dtype, 0, 1)
    noise = E.neg(E.log(E.neg(E.log1p(E.neg(u))) + 1e-38))
    soft = softmax((logits + cast(noise, logits.dtype)) / tau, dim)
    if not hard:
        return soft
    axis = _axis("gumbel_softmax", dim, logits.ndim)
    top = argmax(soft.detach(), axis=axis)
    with use_device_of(logits):
        places = range_op(size=logits.shape[axis], dtype=dt.int64)
    shape = (-1, *(1,) * (logits.ndim - axis - 1))
    hot = cast(E.eq(top.unsqueeze(axis), reshaped(places, (logits.shape[axis], *shape[1:]))), logits.dtype)
    return hot - soft.detach() + soft


__all__ = ["celu", "elu", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
           "hardtanh", "leaky_relu", "log_softmax", "logsigmoid", "mish", "prelu", "quick_gelu", "relu",
           "relu6", "rrelu", "selu", "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink",
           "softsign", "tanh", "tanhshrink", "threshold"]
