"""Convolution over one, two and three axes, and transposed convolution: all are made of the ops of 2-D convolution.

One axis is an image of height 1. Three axes (D, H, W): every output slice sees kd input slices, so their channels are
laid side by side, the slices are treated as images of a batch, and one 2-D convolution does the rest.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from flowedu import ops
from flowedu.errors import ArgumentError, CheckError
from flowedu.frontend import front
from flowedu.nn.layout import FORMATS, channels_last, check_positive, check_rank, count_windows, to_first, to_last
from flowedu.ops.padding import conv_ints, conv_padding, out_size

_o = ops.REGISTRY


def _check_channels(what: str, x, w, groups) -> None:
    """x (n, c, ...), w (o, c / groups, ...)"""
    if not isinstance(groups, int) or groups < 1 or x.shape[1] % groups or w.shape[0] % groups:
        raise CheckError(f"{what}: groups does not divide the channels", expected="an int that divides both numbers of "
                         "channels", got=f"groups={groups!r}, {x.shape[1]} input and {w.shape[0]} output channels",
                         fix="groups=1")
    if w.shape[1] * groups != x.shape[1]:
        raise CheckError(f"{what}: the filters have another number of input channels", expected=f"{x.shape[1]} / groups = "
                         f"{x.shape[1] // groups}", got=f"{w.shape[1]}", fix="filters are (out, in // groups, ...), for "
                         "N...C data (out, ..., in // groups)")


def _conv1d(x, w, strides, pads, dilations, groups):
    """x (n, c, W), w (o, c / groups, K): images and kernels of height 1."""
    def flat(a):
        return _o["reshape"](a, shape=(*a.shape[:2], 1, a.shape[2]))

    y = _o["conv2d"](flat(x), flat(w), strides=(1, *strides), pads=(0, 0, *pads), dilations=(1, *dilations), groups=groups)
    return _o["reshape"](y, shape=(*y.shape[:2], y.shape[3]))


def _conv2d(x, w, strides, pads, dilations, groups):
    """x (n, c, H, W), w (o, c / groups, kh, kw): the op itself."""
    return _o["conv2d"](x, w, strides=strides, pads=pads, dilations=dilations, groups=groups)


def _conv3d(x, w, strides, pads, dilations, groups):
    """x (n, c, D, H, W), w (o, c / groups, kd, kh, kw)."""
    (n, c, depth, height, width), (o, part, kd, kh, kw) = x.shape, w.shape
    if (kd, kh, kw) == (1, 1, 1) and (*strides, *pads) == (1,) * 3 + (0,) * 6:     # a product of channels at every point
        y = _o["conv2d"](_o["reshape"](x, shape=(n, c, depth * height, width)), _o["reshape"](w, shape=(o, part, 1, 1)),
                         groups=groups)
        return _o["reshape"](y, shape=(n, o, depth, height, width))
    before, after = pads[:2]
    out = out_size(depth, before, after, kd, strides[0], dilations[0])
    if before or after:                                  # the adjoint of a slice: zeros around x
        full = (n, c, before + depth + after, height, width)
        x = _o["slice_grad"](x, shape=full, start=(0, 0, before, 0, 0), stop=(n, c, before + depth, height, width),
                             step=(1,) * 5)

    def seen(tap):
        """What each output slice sees at one place of the kernel's depth: (n, out, groups, 1, part, H, W), a view."""
        start = tap * dilations[0]
        band = _o["slice"](x, start=(0, 0, start, 0, 0), step=(1, 1, strides[0], 1, 1),
                           stop=(n, c, start + (out - 1) * strides[0] + 1, height, width))
        band = _o["transpose"](band, perm=(0, 2, 1, 3, 4))
        return _o["reshape"](band, shape=(n, out, groups, 1, part, height, width))

    images = _o["concat"](*map(seen, range(kd)), axis=3) if kd > 1 else seen(0)
    y = _o["conv2d"](_o["reshape"](images, shape=(n * out, groups * kd * part, height, width)),
                     _o["reshape"](_o["transpose"](w, perm=(0, 2, 1, 3, 4)), shape=(o, kd * part, kh, kw)),
                     strides=strides[1:], pads=pads[2:], dilations=dilations[1:], groups=groups)
    return _o["transpose"](_o["reshape"](y, shape=(n, out, *y.shape[1:])), perm=(0, 2, 1, 3, 4))


def _convolution(axes: int, compute: Callable, doc: str) -> Callable:
    what, layout = f"conv{axes}d", FORMATS[axes][0]

    @front(f"Conv{axes}d")
    def conv(input, filters, strides, padding, data_format: str = layout, dilations=None, groups: int = 1):
        last = channels_last(what, data_format, axes)
        for name, value in (("input", input), ("filters", filters)):
            check_rank(what, name, value, FORMATS[axes][last])
        x, w = (to_first(input), to_first(filters)) if last else (input, filters)
        strides = conv_ints(strides, f"{what}: strides", axes)
        dilations = conv_ints(1 if dilations is None else dilations, f"{what}: dilations", axes)
        check_positive(what, strides=strides, dilations=dilations)
        _check_channels(what, x, w, groups)
        pads = conv_padding(padding, x.shape[2:], w.shape[2:], strides, dilations, data_format)
        count_windows(what, x.shape[2:], w.shape[2:], strides, pads, dilations)
        y = compute(x, w, strides, pads, dilations, groups)
        return to_last(y) if last else y

    conv.__name__ = conv.__qualname__ = conv.__wrapped__.__qualname__ = what
    conv.__doc__ = doc
    return conv


_RULES = """

    strides, dilations: an int, or {}. padding: "VALID", "SAME" (= "SAME_LOWER": an odd element goes before),
    "SAME_UPPER", or one entry (an int or a pair) per axis of data_format. As in OneFlow 0.4; [FE] groups work in both
    layouts, whose names may be in lower case.
    """
conv1d = _convolution(1, _conv1d, "1-d convolution of (N, C, W) with filters (out, in // groups, k); data_format \"NWC\": "
                      "(N, W, C) with (out, k, in // groups)." + _RULES.format("a list of one"))
conv2d = _convolution(2, _conv2d, "2-d convolution of (N, C, H, W) with filters (out, in // groups, kh, kw); data_format "
                      "\"NHWC\": (N, H, W, C) with (out, kh, kw, in // groups)." + _RULES.format("two"))
conv3d = _convolution(3, _conv3d, "3-d convolution of (N, C, D, H, W) with filters (out, in // groups, kd, kh, kw); "
                      "data_format \"NDHWC\": (N, D, H, W, C) with (out, kd, kh, kw, in // groups)."
                      + _RULES.format("three"))


def compat_conv2d(input, filters, strides, padding, data_format: str = "NCHW", dilations=None, groups: int = 1,
                  name: str | None = None):
    """conv2d with TensorFlow's meaning of "SAME" (extra padding at the bottom and right)."""
    if isinstance(padding, str) and padding.upper() == "SAME":
        padding = "SAME_UPPER"
    return conv2d(input, filters, strides, padding, data_format, dilations, groups, name=name)


# ---- transposed
def conv2d_transpose(value=None, filter=None, output_shape: Sequence[int] | None = None, strides=None, padding="VALID",
                     data_format: str = "NCHW", name: str | None = None, input=None, filters=None, dilations=None,
                     groups: int = 1):
    """Transposed 2-d convolution: the adjoint of the conv2d that makes `value` out of an image of `output_shape`.

    Args:
        value: (N, in, H, W), for "NHWC" (N, H, W, in). `input` is another name for it.
        filter: (in, out // groups, kh, kw), for "NHWC" (in, kh, kw, out // groups): the filters of that conv2d. `filters`
            is another name for it.
        output_shape: four ints in the order of data_format. A stride leaves a choice of sizes; [FE] None takes
            (size - 1) * stride + window for "VALID" and size * stride for "SAME".
        padding: "VALID"; "SAME" (= "SAME_UPPER" here, as in OneFlow 0.4 and TensorFlow, so the adjoint of compat_conv2d);
            [FE] "SAME_LOWER", the adjoint of conv2d's "SAME"; or one entry per axis, as for conv2d.
        dilations, groups: as for conv2d.

    Raises:
        CheckError: a missing value or filter, or an output_shape from which that conv2d would not make `value`.
    """
    for one, other, names in ((value, input, "value (or input)"), (filter, filters, "filter (or filters)")):
        if (one is None) == (other is None):
            raise CheckError(f"conv2d_transpose: {names} must be given once", expected="one of the two names",
                             got="neither" if one is None else "both", fix="conv2d_transpose(value, filter, output_shape, "
                             "strides)")
    value, filter = input if value is None else value, filters if filter is None else filter
    if isinstance(output_shape, (list, tuple)) and list(output_shape[:1]) == list(value.shape[:1]):
        output_shape = (-1, *output_shape[1:])           # a batch may be smaller than the largest one, which we see here
    return _conv2d_transpose(value, filter, output_shape, strides, padding, data_format, dilations, groups, name=name)


@front("Deconv2d")
def _conv2d_transpose(value, filter, output_shape, strides, padding, data_format, dilations, groups):
    what = "conv2d_transpose"
    last = channels_last(what, data_format, 2)
    for name, x in (("value", value), ("filter", filter)):
        check_rank(what, name, x, FORMATS[2][last])
    y, w = (to_first(value), to_first(filter)) if last else (value, filter)
    strides = conv_ints(strides, f"{what}: strides")
    dilations = conv_ints(1 if dilations is None else dilations, f"{what}: dilations")
    check_positive(what, strides=strides, dilations=dilations)
    if not isinstance(groups, int) or groups < 1 or y.shape[1] % groups or w.shape[0] != y.shape[1]:
        raise CheckError(f"{what}: value and filter do not fit", got=f"value {value.shape}, filter {filter.shape}, "
                         f"groups={groups!r}", expected="filter.shape[0] equal to the channels of value, a multiple of "
                         "groups", fix="filter is (in, out // groups, kh, kw), for NHWC (in, kh, kw, out // groups)")
    if isinstance(padding, str):
        mode = padding.upper()
        if mode not in ("SAME", "SAME_LOWER", "SAME_UPPER", "VALID"):
            raise ArgumentError(f"{what}: padding has an unknown name", got=repr(padding),
                                expected='"SAME" (= "SAME_UPPER"), "SAME_LOWER" or "VALID"',
                                fix='padding="SAME" makes images `strides` times as large')
        padding = "SAME_UPPER" if mode == "SAME" else mode
    extent = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    if output_shape is None:
        if isinstance(padding, str) and padding != "VALID":
            hw = [n * s for n, s in zip(y.shape[2:], strides)]
        else:
            pads = conv_padding(padding, extent, w.shape[2:], strides, dilations, data_format)
            hw = [(n - 1) * s + e - sum(pads[2 * i:2 * i + 2])
                  for i, (n, s, e) in enumerate(zip(y.shape[2:], strides, extent))]
    else:
        hw = _output_size(output_shape, (y.shape[0], w.shape[1] * groups), last)
    pads = conv_padding(padding, hw, w.shape[2:], strides, dilations, data_format)
    counts = tuple(out_size(n, *pads[2 * i:2 * i + 2], w.shape[2 + i], strides[i], dilations[i]) for i, n in enumerate(hw))
    if counts != tuple(y.shape[2:]) or min(hw) < 1:
        raise CheckError(f"{what}: no conv2d makes value from output_shape", expected=f"an image from which a window "
                         f"{tuple(extent)} and strides {strides} give {tuple(y.shape[2:])}", fix="leave output_shape out",
                         got=f"{tuple(hw)}, which gives {counts}")
    x = _o["conv2d_input_grad"](y, w, hw=tuple(hw), strides=strides, pads=pads, dilations=dilations, groups=groups)
    return to_last(x) if last else x


def _output_size(output_shape, batch_and_channels, last):
    """Height and width of an output_shape in the order of the layout."""
    n, c = batch_and_channels
    listed = list(output_shape) if isinstance(output_shape, (list, tuple)) else []
    fits = len(listed) == 4 and listed[0] in (-1, n) and listed[3 if last else 1] == c
    if not fits or not all(isinstance(size, int) for size in listed):
        raise CheckError("conv2d_transpose: output_shape does not fit", expected=f"({n}, H, W, {c})" if last else
                         f"({n}, {c}, H, W)", got=repr(output_shape), fix="leave it out, or take batch and channels from "
                         "value.shape[0] and the filter")
    return listed[1:3] if last else listed[2:]


__all__ = ["compat_conv2d", "conv1d", "conv2d", "conv2d_transpose", "conv3d"]
