"""Lazy layers, which infer the number of input features from the first input.

After its first call, a lazy layer is an ordinary layer.
"""
from __future__ import annotations

import inspect
from typing import Any

from flowedu.core.layers.module import Module
from flowedu.core.layers.parameter import Parameter
from flowedu.core.values import thread_state as ambient
from flowedu.errors import LazyTensorError, ShapeError
from flowedu.nn.modules import conv, linear, norm
from flowedu.nn.modules.linear import new_parameter
from flowedu.tensor import Tensor

_ParameterType: Any = type(Parameter)


class _Shapeless(_ParameterType):
    """Metaclass that lets UninitializedParameter be constructed without data."""

    def __call__(cls, requires_grad: bool = True, device=None, dtype=None):
        return super().__call__(new_parameter(0, dtype=dtype, device=device), requires_grad)


class UninitializedParameter(Parameter, metaclass=_Shapeless):
    """Parameter whose shape is not known yet.

    `materialize` sets the shape of this object in place, so an optimizer that was constructed with the
    parameter remains valid.

    Args:
        requires_grad: compute gradients.
        device: device; default: the CPU.
        dtype: dtype; default: the default dtype.
    """

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Turn this object into a Parameter of the given shape with uninitialized values.

        Args:
            shape: sizes of the axes.
            device: device; default: the CPU.
            dtype: dtype; default: unchanged.
        """
        self._become(new_parameter(*shape, dtype=dtype or self.dtype, device=device))

    def _become(self, p: Tensor) -> None:
        self.data = p.detach()
        parameter: Any = self
        parameter.__class__ = Parameter

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), type(self)(self.requires_grad, self.device, self.dtype))

    def __repr__(self) -> str:
        return "<UninitializedParameter>"


class LazyModule(Module):
    """Base class of the lazy layers, which are constructed without the first argument of the ordinary layer.

    `layer` is the class of the ordinary layer. The first call changes the class of an instance to it.
    """

    layer: type
    _uncalled = ("_get_in_channels", "_get_num_spatial_dims", "_infer_parameters", "has_uninitialized_params",
                 "initialize_parameters", "reset_parameters", "reset_running_stats")

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        self.given = given = bound.arguments
        affine = given.get("affine", True)
        for name, wanted in (("weight", affine), ("bias", affine and given.get("bias", True))):
            p = UninitializedParameter(device=given["device"], dtype=given["dtype"]) if wanted else None
            self.register_parameter(name, p)

    def count_features(self, input: Tensor) -> int:
        """Return the number of features of an input."""
        if issubclass(self.layer, linear.Linear):
            return input.shape[-1]
        return input.shape[-1 - self.axes if self.axes else 1]

    axes = property(lambda self: getattr(self.layer, "axes", 0))

    def count_saved_features(self, weight: Tensor) -> int:
        """Return the number of input features of the layer to which a loaded weight belonged."""
        if issubclass(self.layer, norm._Norm) or getattr(self.layer, "transposed", False):
            return weight.shape[0]
        return weight.shape[1] * self.given.get("groups", 1)

    def initialize(self, n: int) -> None:
        """Turn this module into the ordinary layer with n input features.

        The parameters remain the same objects and get initial values.
        """
        made, own = self.layer(n, **self.given), dict(self._parameters)
        for name, p in made._parameters.items():
            if p is not None and own.get(name) is not None:
                own[name]._become(p.to(own[name].dtype).to(own[name].device))
        kinds = [p for p in own.values() if p is not None]
        for name, b in made._buffers.items():
            self._buffers[name] = (b.to(kinds[0].dtype) if b is not None and kinds
                                   and b.dtype.is_floating_point else b)
        for name, value in vars(made).items():
            if name not in ("_parameters", "_buffers", "_modules", "training", "_hooks"):
                self.__dict__[name] = value
        del self.__dict__["given"]
        self.__class__ = self.layer
        ambient.changes += 1

    def first(self, input: Tensor, *rest, **options):
        """Initialize the layer and run its first forward pass."""
        if input.is_lazy:
            raise LazyTensorError(f"{type(self).__name__}: its parameters have no shape yet",
                                  expected="a layer that was called before", got="a call inside a graph",
                                  fix="call the model once on a batch")
        if issubclass(self.layer, norm._Norm) and input.ndim < 2:
            raise ShapeError(f"{type(self).__name__}: the input has no channels",
                             expected="(n, channels, ...)", got=str(tuple(input.shape)), fix="x.unsqueeze(0)")
        self.initialize(self.count_features(input))
        return self.forward(input, *rest, **options)

    def _load_from_state_dict(self, state_dict, prefix: str, *rest) -> None:
        found = next((state_dict[prefix + n] for n in ("weight", "running_mean") if prefix + n in state_dict),
                     None)
        if found is not None:
            self.initialize(self.count_saved_features(found))
        Module._load_from_state_dict(self, state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.given.items() if value is not None)


def _lazy(layer: Any, **defaults) -> type:
    """Return the lazy version of a layer class. `defaults` replaces default values of its arguments."""
    parameters = list(inspect.signature(layer.__init__).parameters.values())[2:]
    parameters = [p.replace(default=defaults.get(p.name, p.default)) for p in parameters]

    def forward(self, *inputs, **options):
        return self.first(*inputs, **options)

    forward.__dict__["__signature__"] = inspect.signature(layer.forward)
    return type(f"Lazy{layer.__name__}", (LazyModule, layer), {
        "layer": layer, "__signature__": inspect.Signature(parameters), "__module__": __name__,
        "forward": forward,
        "__doc__": f"{layer.__name__} that infers its first argument from the first input.\n\n"
                   f"{_describe_arguments(layer)}"})


def _describe_arguments(layer: Any) -> str:
    """Return the section `Args:` of the layer's docstring without its first argument."""
    _, heading, rest = inspect.cleandoc(layer.__doc__).partition("Args:\n")
    first_argument, _, others = rest.partition("\n\n")[0].partition("\n")
    return heading + others


LazyLinear = _lazy(linear.Linear)
LazyConv1d, LazyConv2d, LazyConv3d = map(_lazy, (conv.Conv1d, conv.Conv2d, conv.Conv3d))
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = map(_lazy, (
    conv.ConvTranspose1d, conv.ConvTranspose2d, conv.ConvTranspose3d))
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = map(_lazy, (norm.BatchNorm1d, norm.BatchNorm2d,
                                                                norm.BatchNorm3d))
# The defaults of InstanceNorm differ, as in PyTorch.
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(layer, affine=True, track_running_stats=True) for layer in (
        norm.InstanceNorm1d, norm.InstanceNorm2d, norm.InstanceNorm3d))
