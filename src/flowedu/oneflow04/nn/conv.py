"""Convolutions with the layouts, paddings, and errors of OneFlow 0.4, computed by nn.functional."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from flowedu.errors import ArgumentError, CheckError
from flowedu.nn.functional.conv import convolution
from flowedu.nn.layout import (
    FORMATS,
    channels_last,
    check_positive,
    check_rank,
    count_windows,
    to_first,
    to_last,
)
from flowedu.ops.conv import conv2d_input_grad
from flowedu.ops.front import front
from flowedu.ops.padding import conv_ints, conv_padding, out_size


def _check_channels(what: str, x, w, groups) -> None:
    """Raise CheckError unless the channels of x (n, c, ...) and w (o, c / groups, ...) fit."""
    if not isinstance(groups, int) or groups < 1 or x.shape[1] % groups or w.shape[0] % groups:
        raise CheckError(f"{what}: groups does not divide the channels",
                         expected="an int that divides both numbers of channels",
                         got=f"groups={groups!r}, {x.shape[1]} input and {w.shape[0]} output channels",
                         fix="groups=1")
    if w.shape[1] * groups != x.shape[1]:
        raise CheckError(f"{what}: the filters have another number of input channels",
                         expected=f"{x.shape[1]} / groups = {x.shape[1] // groups}", got=f"{w.shape[1]}",
                         fix="filters are (out, in // groups, ...), for N...C data (out, ..., in // groups)")


def _channels_first(what: str, axes: int, data_format: str, **named):
    """Return (True if the layout has channels last, each array with its channels first)."""
    last = channels_last(what, data_format, axes)
    for name, value in named.items():
        check_rank(what, name, value, FORMATS[axes][last])
    return last, *((to_first(x) if last else x) for x in named.values())


def _check_steps(what: str, axes: int, strides, dilations):
    """Return (strides, dilations), each with one int per axis."""
    strides = conv_ints(strides, f"{what}: strides", axes)
    dilations = conv_ints(1 if dilations is None else dilations, f"{what}: dilations", axes)
    check_positive(what, strides=strides, dilations=dilations)
    return strides, dilations


def _convolution(axes: int) -> Callable:
    what, (first, other) = f"conv{axes}d", FORMATS[axes]

    @front(f"Conv{axes}d")
    def conv(input, filters, strides, padding, data_format: str = first, dilations=None, groups: int = 1):
        last, x, w = _channels_first(what, axes, data_format, input=input, filters=filters)
        strides, dilations = _check_steps(what, axes, strides, dilations)
        _check_channels(what, x, w, groups)
        pads = conv_padding(padding, x.shape[2:], w.shape[2:], strides, dilations, data_format)
        count_windows(what, x.shape[2:], w.shape[2:], strides, pads, dilations)
        y = convolution(x, w, strides, pads, dilations, groups)
        return to_last(y) if last else y

    conv.__name__ = conv.__qualname__ = conv.__wrapped__.__qualname__ = what
    taps = ("k", "kh, kw", "kd, kh, kw")[axes - 1]
    conv.__doc__ = f"""Compute a {axes}-d convolution.

    Args:
        input: a blob or tensor in the layout `data_format`.
        filters: the kernels.
        strides: an int, or {("a list of one int", "two ints", "three ints")[axes - 1]}.
        padding: "VALID"; "SAME", which is "SAME_LOWER" (an odd element is added before); "SAME_UPPER"
            (after); or one entry, an int or a pair, per axis of data_format.
        data_format: "{first}" or "{other}", also in lower case.
        dilations: an int, or {("a list of one int", "two ints", "three ints")[axes - 1]}; None is 1.
        groups: the number of groups of channels.

    Shape:
        - input: ({", ".join(first)}), or ({", ".join(other)})
        - filters: (out, in // groups, {taps}), or (out, {taps}, in // groups) for "{other}"

    Note:
        In OneFlow 0.4 groups work in the layout "{first}" only.
    """
    return conv


conv1d, conv2d, conv3d = _convolution(1), _convolution(2), _convolution(3)


def compat_conv2d(input, filters, strides, padding, data_format: str = "NCHW", dilations=None,
                  groups: int = 1, name: str | None = None):
    """Compute conv2d with TensorFlow's meaning of "SAME": extra padding is added at the bottom and right.

    Args:
        input: a blob or tensor in the layout `data_format`.
        filters: the kernels, as for conv2d.
        strides: an int, or two ints.
        padding: "SAME" is "SAME_UPPER"; other values as for conv2d.
        data_format: "NCHW" or "NHWC".
        dilations: an int, or two ints; None is 1.
        groups: the number of groups of channels.
    """
    if isinstance(padding, str) and padding.upper() == "SAME":
        padding = "SAME_UPPER"
    return conv2d(input, filters, strides, padding, data_format, dilations, groups, name=name)


# ---- transposed
def conv2d_transpose(value=None, filter=None, output_shape: Sequence[int] | None = None, strides=None,
                     padding="VALID",
                     data_format: str = "NCHW", name: str | None = None, input=None, filters=None,
                     dilations=None, groups: int = 1):
    """Compute a transposed 2-d convolution, the adjoint of the conv2d from `output_shape` to `value`.

    Args:
        value: a blob of shape (N, in, H, W), or (N, H, W, in) for "NHWC".
        filter: the filters of that conv2d, (in, out // groups, kh, kw), or (in, kh, kw, out // groups) for
            "NHWC".
        output_shape: four ints in the order of data_format. With a stride, several output sizes are possible.
            None takes (size - 1) * stride + window for "VALID" and size * stride for "SAME". OneFlow 0.4
            requires the shape.
        strides: an int, or two ints.
        padding: "VALID", "SAME", "SAME_LOWER", or one entry per axis, as for conv2d. "SAME" is "SAME_UPPER",
            as in OneFlow 0.4 and TensorFlow, so it gives the adjoint of compat_conv2d. "SAME_LOWER", which
            OneFlow 0.4 does not have, gives the adjoint of conv2d with "SAME".
        data_format: "NCHW" or "NHWC".
        input: another name of `value`.
        filters: another name of `filter`.
        dilations: an int, or two ints; None is 1.
        groups: the number of groups of channels.

    Raises:
        CheckError: value or filter is missing, or that conv2d would not map an image of output_shape to
            `value`.
    """
    for one, other, names in ((value, input, "value (or input)"), (filter, filters, "filter (or filters)")):
        if (one is None) == (other is None):
            raise CheckError(f"conv2d_transpose: {names} must be given once", expected="one of the two names",
                             got="neither" if one is None else "both",
                             fix="conv2d_transpose(value, filter, output_shape, strides)")
    value, filter = input if value is None else value, filters if filter is None else filter
    if isinstance(output_shape, (list, tuple)) and list(output_shape[:1]) == list(value.shape[:1]):
        # The batch here is the largest one; others may be smaller.
        output_shape = (-1, *output_shape[1:])
    return _conv2d_transpose(value, filter, output_shape, strides, padding, data_format, dilations, groups,
                             name=name)


def torch_conv2d_transpose(value=None, filter=None, output_padding: Sequence[int] | None = None, strides=1,
                           padding_needed: Sequence[int] = (0, 0), data_format: str = "NCHW",
                           name: str | None = None, input=None, filters=None, dilations=None):
    """Compute conv2d_transpose with PyTorch's parameters.

    The size of the result is (size - 1) * stride + window - padding_needed + output_padding.

    Args:
        value: a blob of shape (N, in, H, W), or (N, H, W, in) for "NHWC".
        filter: the filters, as for conv2d_transpose.
        output_padding: two ints, of height and width; None is (0, 0).
        strides: an int, or two ints.
        padding_needed: twice PyTorch's padding, of height and width.
        data_format: "NCHW" or "NHWC".
        input: another name of `value`.
        filters: another name of `filter`.
        dilations: an int, or two ints; None is 1.
    """
    value, filter = input if value is None else value, filters if filter is None else filter
    steps = [n if isinstance(n, (list, tuple)) else [n or 1] * 2 for n in (strides, dilations)]
    if (not isinstance(padding_needed, (list, tuple)) or len(padding_needed) != 2
        or any(p % 2 for p in padding_needed)):
        raise CheckError("torch_conv2d_transpose: padding_needed does not fit",
                         expected="two even numbers, of height and width", got=repr(padding_needed),
                         fix="padding_needed=[2 * p, 2 * p]")
    last = data_format.upper() == "NHWC"
    hw, kernel = (value.shape[1:3], filter.shape[1:3]) if last else (value.shape[2:], filter.shape[2:])
    size = [(n - 1) * s + (k - 1) * d + 1 - p + o for n, s, k, d, p, o in zip(
        hw, steps[0], kernel, steps[1], padding_needed, output_padding or (0, 0))]
    channels = filter.shape[3 if last else 1]
    pads = [[p // 2, p // 2] for p in padding_needed]
    return conv2d_transpose(value, filter, [-1, *size, channels] if last else [-1, channels, *size], strides,
                            [[0, 0], *pads, [0, 0]] if last else [[0, 0], [0, 0], *pads], data_format, name,
                            dilations=dilations)


@front("Deconv2d")
def _conv2d_transpose(value, filter, output_shape, strides, padding, data_format, dilations, groups):
    what = "conv2d_transpose"
    last, y, w = _channels_first(what, 2, data_format, value=value, filter=filter)
    strides, dilations = _check_steps(what, 2, strides, dilations)
    if not isinstance(groups, int) or groups < 1 or y.shape[1] % groups or w.shape[0] != y.shape[1]:
        raise CheckError(f"{what}: value and filter do not fit",
                         got=f"value {value.shape}, filter {filter.shape}, groups={groups!r}",
                         expected="filter.shape[0] equal to the channels of value, a multiple of groups",
                         fix="filter is (in, out // groups, kh, kw), for NHWC (in, kh, kw, out // groups)")
    padding = _name_of_padding(padding)
    kernel, extent = w.shape[2:], [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    if output_shape is not None:
        hw = _output_size(output_shape, (y.shape[0], w.shape[1] * groups), last)
    elif isinstance(padding, str) and padding != "VALID":
        hw = [n * s for n, s in zip(y.shape[2:], strides)]
    else:
        pads = conv_padding(padding, extent, kernel, strides, dilations, data_format)
        hw = [(n - 1) * s + e - sum(pads[2 * i:2 * i + 2])
              for i, (n, s, e) in enumerate(zip(y.shape[2:], strides, extent))]
    pads = conv_padding(padding, hw, kernel, strides, dilations, data_format)
    counts = tuple(out_size(n, *pads[2 * i:2 * i + 2], kernel[i], strides[i], dilations[i])
                   for i, n in enumerate(hw))
    if counts != tuple(y.shape[2:]) or min(hw) < 1:
        raise CheckError(f"{what}: no conv2d makes value from output_shape",
                         expected=f"an image from which a window {tuple(extent)} and strides {strides} give "
                         f"{tuple(y.shape[2:])}", fix="leave output_shape out",
                         got=f"{tuple(hw)}, which gives {counts}")
    x = conv2d_input_grad(y, w, hw=tuple(hw), strides=strides, pads=pads, dilations=dilations, groups=groups)
    return to_last(x) if last else x


def _name_of_padding(padding):
    """Return the padding with "SAME" replaced by "SAME_UPPER"."""
    if not isinstance(padding, str):
        return padding
    mode = padding.upper()
    if mode not in ("SAME", "SAME_LOWER", "SAME_UPPER", "VALID"):
        raise ArgumentError("conv2d_transpose: padding has an unknown name", got=repr(padding),
                            expected='"SAME" (= "SAME_UPPER"), "SAME_LOWER" or "VALID"',
                            fix='padding="SAME" makes images `strides` times as large')
    return "SAME_UPPER" if mode == "SAME" else mode


def _output_size(output_shape, batch_and_channels, last):
    """Return height and width of an output_shape in the order of the layout."""
    n, c = batch_and_channels
    listed = list(output_shape) if isinstance(output_shape, (list, tuple)) else []
    fits = len(listed) == 4 and listed[0] in (-1, n) and listed[3 if last else 1] == c
    if not fits or not all(isinstance(size, int) for size in listed):
        raise CheckError("conv2d_transpose: output_shape does not fit", expected=f"({n}, H, W, {c})"
                         if last else
                         f"({n}, {c}, H, W)", got=repr(output_shape),
                         fix="leave it out, or take batch and channels from value.shape[0] and the filter")
    return listed[1:3] if last else listed[2:]


__all__ = ["compat_conv2d", "conv1d", "conv2d", "conv2d_transpose", "conv3d", "torch_conv2d_transpose"]
