"""Activation and softmax layers.

The function of the same name in nn.functional documents each computation.
"""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.errors import ArgumentError
from flowedu.nn import functional as F
from flowedu.nn.init import constant_
from flowedu.nn.modules.linear import new_parameter
from flowedu.tensor import Tensor


def _plain(name: str, f, doc: str) -> type:
    """Return a layer class without options that calls `f`."""
    def forward(self, input: Tensor) -> Tensor:
        return f(input)

    forward.__qualname__ = f"{name}.forward"
    return type(name, (Module,), {"forward": forward, "__doc__": doc, "__module__": __name__})


def _with_inplace(name: str, f, doc: str) -> type:
    """Return a layer class that calls `f` and whose only option is `inplace`."""
    def __init__(self, inplace: bool = False):
        Module.__init__(self)
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return f(input, True) if self.inplace else f(input)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""

    forward.__qualname__ = f"{name}.forward"
    doc += "\n\nArgs:\n    inplace: write the result into the memory of the input."
    return type(name, (Module,), {"__init__": __init__, "forward": forward, "extra_repr": extra_repr,
                                  "__module__": __name__, "__doc__": doc})


ReLU = _with_inplace("ReLU", F.relu, "Rectified linear unit: max(x, 0) for each element.")
SELU = _with_inplace("SELU", F.selu,
                     "Scaled exponential linear unit (Klambauer et al. 2017) of each element.")
SiLU = _with_inplace("SiLU", F.silu, "Sigmoid linear unit (swish): x * sigmoid(x) for each element.")
Mish = _with_inplace("Mish", F.mish, "Mish: x * tanh(softplus(x)) for each element.")
Hardsigmoid = _with_inplace("Hardsigmoid", F.hardsigmoid,
                            "Piecewise linear sigmoid: min(max(x / 6 + 0.5, 0), 1).")
Hardswish = _with_inplace("Hardswish", F.hardswish, "Hard swish: x * hardsigmoid(x) for each element.")
Sigmoid = _plain("Sigmoid", F.sigmoid, "Logistic function: 1 / (1 + exp(-x)) for each element.")
Tanh = _plain("Tanh", F.tanh, "Hyperbolic tangent of each element.")
LogSigmoid = _plain("LogSigmoid", F.logsigmoid,
                    "Logarithm of the sigmoid of each element, without underflow.")
Softsign = _plain("Softsign", F.softsign, "Softsign: x / (1 + |x|) for each element.")
Tanhshrink = _plain("Tanhshrink", F.tanhshrink, "Tanhshrink: x - tanh(x) for each element.")
QuickGELU = _plain("QuickGELU", F.quick_gelu, "Sigmoid approximation of GELU: x * sigmoid(1.702 * x).")


class GELU(Module):
    """Gaussian error linear unit: x * Phi(x), where Phi is the normal distribution function.

    Args:
        approximate: "none" for the exact function, "tanh" for the approximation that GPT-2 uses.
    """

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return "" if self.approximate == "none" else f"approximate={self.approximate!r}"


class _Activation(Module):
    """Base class of activations with numeric options and `inplace`.

    `options` lists the names of the numeric options in the order of `__init__` and of the printed form.
    """

    options: tuple[str, ...] = ()

    def _set(self, *values, inplace: bool = False) -> None:
        for name, value in zip(self.options, values):
            setattr(self, name, value)
        self.inplace = inplace

    def extra_repr(self) -> str:
        shown = [f"{n}={getattr(self, n)}" for n in self.options]
        return ", ".join(shown + (["inplace=True"] if self.inplace else []))


class LeakyReLU(_Activation):
    """Leaky rectified linear unit: x where x > 0, negative_slope * x elsewhere.

    Args:
        negative_slope: slope for negative elements.
        inplace: write the result into the memory of the input.
    """

    options = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__()
        self._set(negative_slope, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_Activation):
    """Exponential linear unit: x where x > 0, alpha * (exp(x) - 1) elsewhere.

    Args:
        alpha: the result approaches -alpha for large negative elements.
        inplace: write the result into the memory of the input.
    """

    options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self._set(alpha, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Activation):
    """Continuously differentiable ELU: x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere.

    Args:
        alpha: the result approaches -alpha for large negative elements.
        inplace: write the result into the memory of the input.
    """

    options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self._set(alpha, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class RReLU(_Activation):
    """Leaky ReLU with a random slope per element in training mode and a constant slope in eval mode.

    Args:
        lower: smallest slope.
        upper: largest slope; eval mode uses (lower + upper) / 2.
        inplace: write the result into the memory of the input.
    """

    options = ("lower", "upper")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self._set(lower, upper, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Hardtanh(_Activation):
    """Hard tanh: each element clipped to [min_val, max_val].

    Args:
        min_val: smallest value of the result.
        max_val: largest value of the result.
        inplace: write the result into the memory of the input.

    Raises:
        ArgumentError: max_val is not larger than min_val.
    """

    options = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
        super().__init__()
        if not max_val > min_val:
            raise ArgumentError("Hardtanh: max_val must be larger than min_val", expected="min_val < max_val",
                                got=f"{min_val}, {max_val}", fix="exchange them")
        self._set(min_val, max_val, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """Clipped rectified linear unit: min(max(x, 0), 6) for each element.

    Args:
        inplace: write the result into the memory of the input.
    """

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.relu6(input, True) if self.inplace else F.relu6(input)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Threshold(_Activation):
    """Threshold: x where x > threshold, value elsewhere.

    Args:
        threshold: elements less than or equal to this number are replaced.
        value: replacement.
        inplace: write the result into the memory of the input.
    """

    options = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__()
        self._set(threshold, value, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class Softplus(Module):
    """Smooth rectified linear unit: log(1 + exp(beta * x)) / beta.

    Args:
        beta: sharpness of the curve near 0; the result approaches relu as beta grows.
        threshold: x itself is returned where beta * x exceeds this number, for numerical stability.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(_Shrink):
    """Soft thresholding: x moved towards 0 by lambd, and 0 where |x| <= lambd.

    Args:
        lambd: threshold, 0 or more.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Hardshrink(_Shrink):
    """Hard thresholding: x where |x| > lambd, 0 elsewhere.

    Args:
        lambd: threshold.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class PReLU(Module):
    """Leaky ReLU with a learnable slope: x where x > 0, weight * x elsewhere.

    Args:
        num_parameters: 1 for one slope, or the number of channels for one slope per channel (axis 1).
        init: initial slope.
        device: device of the weight; default: the CPU.
        dtype: dtype of the weight; default: the default dtype.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = new_parameter(num_parameters, dtype=dtype, device=device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to their initial value."""
        constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class GLU(Module):
    """Gated linear unit: a * sigmoid(b), where a and b are the halves of x along an axis.

    Args:
        dim: axis to split; its size must be even.
    """

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class _Over(Module):
    """Base class of the layers that work along one axis."""

    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_Over):
    """Softmax: exp(x) / sum(exp(x)) along an axis.

    Args:
        dim: axis that sums to 1. Default (deprecated, with a warning): 0 for inputs with 0, 1, or 3 axes,
            else 1.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_Over):
    """Logarithm of the softmax along an axis.

    Args:
        dim: axis of the softmax. Default (deprecated, with a warning): 0 for inputs with 0, 1, or 3 axes,
            else 1.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(_Over):
    """Softmax of -x along an axis.

    Args:
        dim: axis of the softmax. Default (deprecated, with a warning): 0 for inputs with 0, 1, or 3 axes,
            else 1.
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, -3)
