"""Layers of flow.layers for feature maps: convolutions, prelu, and upsampling.

The module also has the code for names and activations that all layers share.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from flowedu.errors import ArgumentError, CallError, CheckError
from flowedu.nn.layout import FORMATS, channels_last, check_rank
from flowedu.oneflow04 import initializers as init
from flowedu.oneflow04.distribute import BROADCAST
from flowedu.oneflow04.nn import conv, feature_maps
from flowedu.oneflow04.nn import functions as F
from flowedu.oneflow04.variables import get_variable
from flowedu.ops.padding import conv_ints


def variable_name(name: str, part: str, override: str | None = None) -> str:
    """Return the name of a layer's variable: `override`, or "<name>-<part>"."""
    return override or f"{name}-{part}"


def apply_activation(y, activation: Callable | None, name: str, what: str):
    """Return `activation(y, name="<name>-activation")`, or `y` without an activation."""
    if activation is None:
        return y
    if not callable(activation):
        raise CheckError(f"{what}: activation is not a function",
                         expected="a function called as f(blob, name=...)",
                         got=repr(activation), fix=f"flow.nn.{activation}" if isinstance(activation, str)
                         else "flow.nn.relu")
    if inspect.isfunction(activation):
        signature = inspect.signature(activation)
        try:
            signature.bind(y, name=name)
        except TypeError:
            raise CallError(f"{what}: activation takes no name",
                            expected="a function called as f(blob, name=...)",
                            got=f"{activation.__name__}{signature}",
                            fix="lambda x, name: flow.nn.leaky_relu(x, 0.1, name=name)") from None
    return activation(y, name=f"{name}-activation")


def _convolution(axes: int, convolve: Callable) -> Callable:
    """Make the layer around conv1d, conv2d, or conv3d."""
    what = f"layers.conv{axes}d"

    def layer(inputs, filters: int, kernel_size=1, strides=1, padding="VALID",
              data_format: str = FORMATS[axes][0],
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
                                got=f"filters={filters!r}, kernel_size={kernel_size}",
                                fix=f"{what}(x, 32, 3)")
        if not isinstance(groups,
                          int) or not 0 < groups <= filters or filters % groups or channels % groups or (
                                  last and groups != 1):
            raise CheckError(f"{what}: groups does not divide the channels",
                             got=f"groups={groups}, filters={filters}, channels={channels}",
                             expected="filters and channels that groups divides"
                             + (f" (1 for {layout})" if last else ""),
                             fix=f"groups=1, or {FORMATS[axes][0]} data and channel counts that are "
                             f"multiples of groups")
        shape = (filters, *kernel, channels) if last else (filters, channels // groups, *kernel)
        weight = get_variable(variable_name(name, "weight", weight_name), shape, inputs.dtype,
                              kernel_initializer or init.xavier_uniform_initializer(layout),
                              kernel_regularizer, trainable, "weight", reuse=False)
        y = convolve(inputs, weight, strides, padding, layout, dilation_rate, groups, name=name)
        if use_bias:
            bias = get_variable(variable_name(name, "bias", bias_name), (filters,), inputs.dtype,
                                bias_initializer or init.constant_initializer(0), bias_regularizer,
                                trainable, "bias", reuse=False)
            y = F.bias_add(y, bias, layout, name=f"{name}-bias_add")
        return apply_activation(y, activation, name, what)

    sizes = ", ".join("d h w".split()[-axes:])
    layer.__name__ = layer.__qualname__ = f"conv{axes}d"
    layer.__doc__ = f"""Compute a {axes}-d convolution with a kernel and a bias that are variables.

    Args:
        inputs: a blob in the layout `data_format`.
        filters: the number of output channels.
        kernel_size: an int, or one per spatial axis.
        strides: as for flow.nn.conv{axes}d.
        padding: as for flow.nn.conv{axes}d.
        data_format: "{FORMATS[axes][0]}" or "{FORMATS[axes][1]}".
        dilation_rate: as for flow.nn.conv{axes}d; None is 1.
        groups: the number of groups of channels; 1 for "{FORMATS[axes][1]}".
        activation: a function called as activation(y, name=...), or None.
        use_bias: add a bias.
        kernel_initializer: the initializer of the kernel; None is xavier_uniform.
        bias_initializer: the initializer of the bias; None is zeros.
        kernel_regularizer: a regularizer of flow.regularizers, or None.
        bias_regularizer: a regularizer of flow.regularizers, or None.
        trainable: False excludes both variables from training.
        name: the name of the layer.
        weight_name: the name of the kernel; None is "<name>-weight".
        bias_name: the name of the bias; None is "<name>-bias".

    Shape:
        - kernel: (filters, in // groups, {sizes}), or (filters, {sizes}, in) for "{FORMATS[axes][1]}"
        - bias: (filters,)
    """
    return layer


conv1d = _convolution(1, conv.conv1d)
conv2d = _convolution(2, conv.conv2d)
conv3d = _convolution(3, conv.conv3d)


def prelu(inputs, alpha_initializer=None, alpha_regularizer=None, shared_axes: Sequence[int] | None = None,
          trainable: bool = True, name: str = "PRelu", model_distribute=BROADCAST):
    """Return `inputs` where positive and `alpha * inputs` elsewhere, where alpha is a variable.

    Args:
        inputs: a blob of shape (N, ...).
        alpha_initializer: the initializer of alpha; None is zeros.
        alpha_regularizer: a regularizer of flow.regularizers, or None.
        shared_axes: axes of `inputs` along which alpha has size 1. For example, [2, 3] shares the slope over
            height and width. None shares no axis except the batch.
        trainable: False excludes alpha from training.
        name: the name of the layer; the variable is "<name>-alpha".
        model_distribute: the layout of alpha on several devices.

    Shape:
        - alpha: inputs.shape[1:], with size 1 along `shared_axes`
    """
    shape, rank = list(inputs.shape[1:]), len(inputs.shape)
    if shared_axes is not None and not isinstance(shared_axes, (list, tuple)):
        raise CheckError("layers.prelu: shared_axes is not a list", expected="a list of axes, or None",
                         got=repr(shared_axes), fix=f"shared_axes=[{shared_axes}]")
    for axis in shared_axes or ():
        if not isinstance(axis, int) or not 1 <= axis < rank:
            raise CheckError("layers.prelu: an axis of shared_axes is out of range",
                             expected=f"axes in [1, {rank - 1}]",
                             got=str(shared_axes), fix="axis 0, the batch, is always shared")
        shape[axis - 1] = 1
    alpha = get_variable(variable_name(name, "alpha"), shape, inputs.dtype,
                         alpha_initializer or init.constant_initializer(0), alpha_regularizer, trainable,
                         "alpha", distribute=model_distribute, reuse=False)
    return feature_maps.prelu(inputs, alpha, name=name)


def upsample_2d(x, size: float | Sequence[float] = (2, 2), align_corners: bool = False,
                data_format: str = "NCHW", interpolation: str = "nearest", name: str = "Upsample2D"):
    """Enlarge images to (int(height * size[0]), int(width * size[1])).

    Args:
        x: a blob of four axes in the layout `data_format`.
        size: one factor for height and width, or two.
        align_corners: for "bilinear", align the centers of the corner pixels instead of their outer edges.
        data_format: "NCHW" or "NHWC".
        interpolation: "nearest" or "bilinear".

    Raises:
        ArgumentError: the interpolation is unknown, or "nearest" is combined with align_corners.
    """
    return feature_maps.upsample_2d(x, size, align_corners, data_format, interpolation, name=name)
