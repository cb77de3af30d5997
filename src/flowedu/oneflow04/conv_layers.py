"""flow.layers.* on feature maps: convolutions, prelu, upsampling.

Also the code shared by all layers: names and activations.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from flowedu.errors import ArgumentError, CallError, CheckError
from flowedu.nn.layout import FORMATS, channels_last, check_rank
from flowedu.oneflow04 import initializers as init
from flowedu.oneflow04.distribute import BROADCAST
from flowedu.oneflow04.nn import conv, maps
from flowedu.oneflow04.nn import functions as F
from flowedu.oneflow04.variables import get_variable
from flowedu.ops.padding import conv_ints


def named(name: str, part: str, override: str | None = None) -> str:
    """The name of a layer's variable: "<name>-<part>", unless the user gave one."""
    return override or f"{name}-{part}"


def activated(y, activation: Callable | None, name: str, what: str):
    """activation(y, name="<name>-activation"), or y."""
    if activation is None:
        return y
    if not callable(activation):
        raise CheckError(f"{what}: activation is not a function", expected="a function called as f(blob, name=...)",
                         got=repr(activation), fix=f"flow.nn.{activation}" if isinstance(activation, str)
                         else "flow.nn.relu")
    if inspect.isfunction(activation):
        signature = inspect.signature(activation)
        try:
            signature.bind(y, name=name)
        except TypeError:
            raise CallError(f"{what}: activation takes no name", expected="a function called as f(blob, name=...)",
                            got=f"{activation.__name__}{signature}",
                            fix="lambda x, name: flow.nn.leaky_relu(x, 0.1, name=name)") from None
    return activation(y, name=f"{name}-activation")


def _convolution(axes: int, convolve: Callable) -> Callable:
    """The layer around conv1d, conv2d or conv3d."""
    what = f"layers.conv{axes}d"

    def layer(inputs, filters: int, kernel_size=1, strides=1, padding="VALID", data_format: str = FORMATS[axes][0],
              dilation_rate=None, groups: int = 1, activation: Callable | None = None, use_bias: bool = True,
              kernel_initializer=None, bias_initializer=None, kernel_regularizer=None, bias_regularizer=None,
              trainable: bool = True, name: str = f"Conv{axes}d", weight_name: str | None = None,
              bias_name: str | None = None):
        last = channels_last(what, data_format, axes)
        layout = FORMATS[axes][last]
        check_rank(what, "inputs", inputs, layout)
        kernel = conv_ints(kernel_size, f"{what}: kernel_size", axes)
        channels = inputs.shape[-1 if last else 1]
        if not isinstance(filters, int) or filters < 1 or min(kernel) < 1:
            raise ArgumentError(f"{what}: filters or kernel_size is below 1", expected="ints above 0",
                                got=f"filters={filters!r}, kernel_size={kernel_size}", fix=f"{what}(x, 32, 3)")
        if not isinstance(groups, int) or not 0 < groups <= filters or filters % groups or channels % groups or (
                last and groups != 1):
            raise CheckError(f"{what}: groups does not divide the channels", got=f"groups={groups}, filters={filters}, "
                             f"channels={channels}", expected="filters and channels that groups divides"
                             + (f" (1 for {layout})" if last else ""), fix=f"groups=1, or {FORMATS[axes][0]} data and "
                             "channel counts that are multiples of groups")
        shape = (filters, *kernel, channels) if last else (filters, channels // groups, *kernel)
        weight = get_variable(named(name, "weight", weight_name), shape, inputs.dtype,
                              kernel_initializer or init.xavier_uniform_initializer(layout), kernel_regularizer, trainable,
                              "weight", reuse=False)
        y = convolve(inputs, weight, strides, padding, layout, dilation_rate, groups, name=name)
        if use_bias:
            bias = get_variable(named(name, "bias", bias_name), (filters,), inputs.dtype,
                                bias_initializer or init.constant_initializer(0), bias_regularizer, trainable, "bias",
                                reuse=False)
            y = F.bias_add(y, bias, layout, name=f"{name}-bias_add")
        return activated(y, activation, name, what)

    sizes = ", ".join("d h w".split()[-axes:])
    layer.__name__ = layer.__qualname__ = f"conv{axes}d"
    layer.__doc__ = f"""{axes}-d convolution of {FORMATS[axes][0]} or {FORMATS[axes][1]} data with a variable kernel, a bias
    and an activation.

    Variables: "<name>-weight" (filters, in // groups, {sizes}), channels last (filters, {sizes}, in) with groups=1; and
    "<name>-bias" (filters,). Initial values: xavier_uniform and zeros. Strides, padding and dilation_rate are those of
    flow.nn.conv{axes}d. As in OneFlow 0.4.
    """
    return layer


conv1d = _convolution(1, conv.conv1d)
conv2d = _convolution(2, conv.conv2d)
conv3d = _convolution(3, conv.conv3d)


def prelu(inputs, alpha_initializer=None, alpha_regularizer=None, shared_axes: Sequence[int] | None = None,
          trainable: bool = True, name: str = "PRelu", model_distribute=BROADCAST):
    """inputs where they are above 0, alpha * inputs elsewhere, with a variable "<name>-alpha" (at first zeros).

    alpha has a number for every place of a sample, shape inputs.shape[1:]; along `shared_axes` (counted as those of inputs:
    [2, 3] shares it over height and width) it has one for all. model_distribute: how alpha lies on several devices. As in
    OneFlow 0.4.
    """
    shape, rank = list(inputs.shape[1:]), len(inputs.shape)
    if shared_axes is not None and not isinstance(shared_axes, (list, tuple)):
        raise CheckError("layers.prelu: shared_axes is not a list", expected="a list of axes, or None",
                         got=repr(shared_axes), fix=f"shared_axes=[{shared_axes}]")
    for axis in shared_axes or ():
        if not isinstance(axis, int) or not 1 <= axis < rank:
            raise CheckError("layers.prelu: an axis of shared_axes is out of range", expected=f"axes in [1, {rank - 1}]",
                             got=str(shared_axes), fix="axis 0, the batch, is always shared")
        shape[axis - 1] = 1
    alpha = get_variable(named(name, "alpha"), shape, inputs.dtype, alpha_initializer or init.constant_initializer(0),
                         alpha_regularizer, trainable, "alpha", distribute=model_distribute, reuse=False)
    return maps.prelu(inputs, alpha, name=name)


def upsample_2d(x, size: float | Sequence[float] = (2, 2), align_corners: bool = False, data_format: str = "NCHW",
                interpolation: str = "nearest", name: str = "Upsample2D"):
    """Images enlarged to int(height * size[0]), int(width * size[1]).

    Args:
        size: a factor for both, or two.
        align_corners: for "bilinear": the middles of the corner pixels stay where they are, instead of their edges.
        interpolation: "nearest" or "bilinear"; others, and "nearest" with align_corners, are ArgumentErrors.
    """
    return maps.upsample_2d(x, size, align_corners, data_format, interpolation, name=name)
