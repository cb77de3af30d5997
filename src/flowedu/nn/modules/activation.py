"""Activations and softmax as modules.

The function of the same name in nn.functional documents each computation.
"""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.core.layers.parameter import Parameter
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError
from flowedu.nn import functional as F
from flowedu.tensor import Tensor, full


def _plain(name: str, f, doc: str) -> type:
    """A module without options."""
    def forward(self, input: Tensor) -> Tensor:
        return f(input)

    forward.__qualname__ = f"{name}.forward"
    return type(name, (Module,), {"forward": forward, "__doc__": doc, "__module__": __name__})


def _with_inplace(name: str, f, doc: str) -> type:
    """A module whose only option is inplace."""
    def __init__(self, inplace: bool = False):
        Module.__init__(self)
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return f(input, True) if self.inplace else f(input)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""

    forward.__qualname__ = f"{name}.forward"
    return type(name, (Module,), {"__init__": __init__, "forward": forward, "extra_repr": extra_repr,
                                  "__module__": __name__,
                                  "__doc__": doc + " inplace: into the input's memory."})


ReLU = _with_inplace("ReLU", F.relu, "max(x, 0).")
ReLU6 = _with_inplace("ReLU6", F.relu6, "min(max(x, 0), 6).")
SELU = _with_inplace("SELU", F.selu, "The scaled exponential linear unit.")
SiLU = _with_inplace("SiLU", F.silu, "x * sigmoid(x).")
Mish = _with_inplace("Mish", F.mish, "x * tanh(softplus(x)).")
Hardsigmoid = _with_inplace("Hardsigmoid", F.hardsigmoid, "min(max(x / 6 + 0.5, 0), 1).")
Hardswish = _with_inplace("Hardswish", F.hardswish, "x * hardsigmoid(x).")
Sigmoid = _plain("Sigmoid", F.sigmoid, "1 / (1 + exp(-x)).")
Tanh = _plain("Tanh", F.tanh, "The hyperbolic tangent.")
LogSigmoid = _plain("LogSigmoid", F.logsigmoid, "log(sigmoid(x)).")
Softsign = _plain("Softsign", F.softsign, "x / (1 + |x|).")
Tanhshrink = _plain("Tanhshrink", F.tanhshrink, "x - tanh(x).")
QuickGELU = _plain("QuickGELU", F.quick_gelu, "x * sigmoid(1.702 * x).")


class GELU(Module):
    """x * Phi(x), exactly; approximate="tanh": GPT-2's approximation."""

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return "" if self.approximate == "none" else f"approximate={self.approximate!r}"


class _Bent(Module):
    """A module with numbers and inplace. options: their names, in the order of __init__ and of the printed form."""

    options: tuple[str, ...] = ()

    def _set(self, *values, inplace: bool = False) -> None:
        for name, value in zip(self.options, values):
            setattr(self, name, value)
        self.inplace = inplace

    def extra_repr(self) -> str:
        shown = [f"{n}={getattr(self, n)}" for n in self.options]
        return ", ".join(shown + (["inplace=True"] if self.inplace else []))


class LeakyReLU(_Bent):
    """x where x > 0, negative_slope * x elsewhere."""

    options = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__()
        self._set(negative_slope, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class ELU(_Bent):
    """x where x > 0, alpha * (exp(x) - 1) elsewhere."""

    options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self._set(alpha, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Bent):
    """x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere."""

    options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False):
        super().__init__()
        self._set(alpha, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class RReLU(_Bent):
    """leaky_relu with a random slope in [lower, upper) while training, with their mean in eval()."""

    options = ("lower", "upper")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self._set(lower, upper, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Hardtanh(_Bent):
    """x kept inside [min_val, max_val]."""

    options = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
        super().__init__()
        if not max_val > min_val:
            raise ArgumentError("Hardtanh: max_val must be larger than min_val", expected="min_val < max_val",
                                got=f"{min_val}, {max_val}", fix="exchange them")
        self._set(min_val, max_val, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class Threshold(_Bent):
    """x where x > threshold, else value."""

    options = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__()
        self._set(threshold, value, inplace=inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""

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
    """x moved towards 0 by lambd; 0 where it would pass it."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Hardshrink(_Shrink):
    """x where |x| > lambd, else 0."""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class PReLU(Module):
    """x where x > 0, weight * x elsewhere; the weight is learnt: one number, or num_parameters, one for each channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        values = full((num_parameters,), float(init), dtype=dt.get_default_dtype() if dtype is None else dtype)
        self.weight = Parameter(values if device is None else values.to(device))

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class GLU(Module):
    """a * sigmoid(b), a and b being the halves of x along dim."""

    def __init__(self, dim: int = -1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class _Over(Module):
    def __init__(self, dim: int | None = None):
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_Over):
    """exp(x) / sum(exp(x)) along dim."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_Over):
    """log(softmax(x)) along dim."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(_Over):
    """softmax(-x) along dim."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, -3)
