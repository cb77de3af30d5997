"""Convolution, and the two ops of its gradients.

A convolution is linear in the input and in the weights. The gradient of each of the three ops in this file
consists of the other two, so they can be differentiated any number of times.
"""
from __future__ import annotations

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.values.dtype import float64
from flowedu.core.values.spec import Spec, check_spec
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.ops.padding import out_size, used_stride
from flowedu.ops.types import Ints, Packed, Shape

register("conv")

ATTRS = "strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), groups=1"


def _out_hw(hw: Shape, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints) -> Ints:
    return tuple(out_size(hw[i], pads[2 * i], pads[2 * i + 1], kernel[i], strides[i], dilations[i])
                 for i in (0, 1))


def _equation(form: str, kernel: Ints, strides: Ints, pads: Ints, groups: int) -> str:
    """Return the axis equation of a convolution.

    A window needs the whole plane, unless it is a single pixel. Groups are split together with their
    channels.
    """
    if tuple(kernel) == (1, 1) and tuple(strides) == (1, 1) and not any(pads):
        form = form.translate(str.maketrans("HWXY", "hwhw"))
    if groups > 1:
        form = form.replace("ocKL", "gDKL").replace("c", "g").replace("o", "g")
    return form


def _local_groups(groups: int, channels: int, each: int, other: int, whole: int) -> int:
    """Return the groups of a device that has `channels` of one image, `each` to a group.

    Return 0, which no convolution accepts, unless the device has the same groups of the other image: `other`
    of its `whole` channels.
    """
    mine = channels // each
    return mine if groups == 1 or other * groups == whole * mine else 0


def _check(name: str, x: Shape, w: Shape, y: Shape | None, got: str, strides: Ints, pads: Ints,
           dilations: Ints, groups: int) -> None:
    """x, w, y: the shapes of input, weights and output (y None: whatever comes out)."""
    expected = "x (n, c, H, W), w (o, c / groups, K, L), y (n, o, X, Y)"
    if len(x) != 4 or len(w) != 4 or (y is not None and len(y) != 4):
        raise ShapeError(f"{name}: the inputs need four axes", expected=expected, got=got)
    for attr, value, length, least in (("strides", strides, 2, 1), ("pads", pads, 4, 0),
                                       ("dilations", dilations, 2, 1)):
        if len(value) != length or min(value) < least:
            raise ArgumentError(f"{name}: {attr} is not right", expected=f"{length} ints of {least} or more",
                                got=str(value))
    if groups < 1 or x[1] % groups or w[0] % groups:
        raise ArgumentError(f"{name}: groups must divide the channels",
                            got=f"groups={groups}, c={x[1]}, o={w[0]}",
                            expected="c % groups == 0 and o % groups == 0")
    if w[1] * groups != x[1]:
        raise ShapeError(f"{name}: axis c has two sizes, {x[1]} and {w[1]} x groups {groups}",
                         expected=expected, got=got, fix=f"make w ({w[0]}, {x[1] // groups}, {w[2]}, {w[3]})")
    hw = _out_hw(x[2:], w[2:], strides, pads, dilations)
    if min(hw) < 1 or min(w[2:]) < 1:
        raise ShapeError(f"{name}: the kernel does not fit into the padded input", got=f"{got}, pads {pads}",
                         expected=f"H, W of {tuple((k - 1) * d + 1 for k, d in zip(w[2:], dilations))} "
                         f"or more", fix="pad the input, or use a smaller kernel or dilation")
    check_spec(f"{name}: the padded input", Spec((*x[:2], x[2] + sum(pads[:2]), x[3] + sum(pads[2:])),
                                                 float64))
    if y is not None and tuple(y) != (x[0], w[0], *hw):
        raise ShapeError(f"{name}: dy does not have the shape of the output", expected=str((x[0], w[0], *hw)),
                         got=str(tuple(y)),
                         fix="use the strides, pads and dilations of the forward convolution")


def _same_dtype(name: str, a: Spec, b: Spec) -> None:
    if a.dtype is not b.dtype:
        raise DTypeError(f"{name}: the inputs have two element types", expected="one", fix="cast one of them",
                         got=f"{a.dtype.name} and {b.dtype.name}")


def _pack(hw: Shape, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints, groups: int) -> Packed:
    """Return the attributes of a call in the form of the kernels.

    Strides and dilations that make no difference are small.
    """
    steps = [used_stride(hw[i], pads[2 * i], pads[2 * i + 1], kernel[i], strides[i], dilations[i])
             for i in (0, 1)]
    return (*steps, *pads, *(d if k > 1 else 1 for d, k in zip(dilations, kernel)), groups), ()


# ---- forward
def _check_forward(x: Spec, w: Spec, strides: Ints, pads: Ints, dilations: Ints, groups: int) -> None:
    _check("conv2d", x.shape, w.shape, None, f"x {x.shape}, w {w.shape}", strides, pads, dilations, groups)
    _same_dtype("conv2d", x, w)


def _windows(x: np.ndarray, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints) -> np.ndarray:
    """Return the inputs of every output pixel: (n, c, X, Y, K, L), a view of the padded x."""
    x = np.pad(x, ((0, 0), (0, 0), pads[:2], pads[2:]))
    extent = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations))
    w = np.lib.stride_tricks.sliding_window_view(x, extent, (2, 3))
    return w[:, :, ::strides[0], ::strides[1], ::dilations[0], ::dilations[1]]


def _ref(x: np.ndarray, w: np.ndarray, strides: Ints, pads: Ints, dilations: Ints, groups: int) -> np.ndarray:
    n = x.shape[0]
    o, c, k, m = w.shape
    v = _windows(x, (k, m), strides, pads, dilations)
    v = v.reshape(n, groups, c, *v.shape[2:])
    return np.einsum("ngcxykl,gockl->ngoxy", v, w.reshape(groups, o // groups, c, k,
                                                          m)).reshape(n, o, *v.shape[3:5])


conv2d = define(
    f"conv2d(x, w, *, {ATTRS}) -> y",
    Meaning(lambda w, strides, pads, groups: _equation("ncHW,ocKL->noXY", w.shape[2:], strides, pads, groups),
            _ref, shape=lambda x, w, strides, pads, dilations: (
                x.shape[0], w.shape[0], *_out_hw(x.shape[2:], w.shape[2:], strides, pads, dilations)),
            check=_check_forward),
    Kernel("conv2d",
           pack=lambda x, w, strides, pads, dilations, groups: _pack(
               x.shape[2:], w.shape[2:], strides, pads, dilations, groups)),
    Split(linear=["x", "w"],
          localize=lambda x, w, groups, out, full_out: {
              "groups": _local_groups(groups, x.shape[1], w.shape[1], out.shape[1], full_out[1])}),
    Laws([dict(shapes=[(6, 6, 5, 7), (6, 6, 3, 2)], strides=(2, 1), pads=(1, 0, 1, 2),
               dilations=(1, 2)),
          dict(shapes=[(6, 4, 5, 5), (6, 2, 3, 3)], pads=(1, 1, 1, 1), groups=2),
          dict(shapes=[(6, 6, 5, 5), (6, 1, 3, 3)], pads=(2, 1, 0, 1), strides=(1, 2), groups=6),
          dict(shapes=[(2, 18, 4, 5), (18, 1, 3, 3)], pads=(1, 1, 1, 1), groups=18),
          dict(shapes=[(6, 12, 6, 6), (6, 12, 1, 1)])]),
    grad={"x": lambda dy, w, x_shape, strides, pads, dilations, groups: conv2d_input_grad(
              dy, w, hw=tuple(x_shape[2:]), strides=strides, pads=pads, dilations=dilations, groups=groups),
          "w": lambda dy, x, w_shape, strides, pads, dilations, groups: conv2d_weight_grad(
              dy, x, kernel=tuple(w_shape[2:]), strides=strides, pads=pads, dilations=dilations,
              groups=groups)},
    doc="2-D convolution (cross-correlation) of NCHW images x with kernels w (o, c / groups, K, L).")


# ---- gradient for the input
def _check_input_grad(dy: Spec, w: Spec, hw: Shape, strides: Ints, pads: Ints, dilations: Ints,
                      groups: int) -> None:
    x = (dy.shape[0], w.shape[1] * groups, *hw) if dy.ndim == w.ndim == 4 else ()
    _check("conv2d_input_grad", x, w.shape, dy.shape, f"dy {dy.shape}, w {w.shape}, hw {hw}", strides, pads,
           dilations, groups)
    _same_dtype("conv2d_input_grad", dy, w)


def _ref_input_grad(dy: np.ndarray, w: np.ndarray, hw: Shape, strides: Ints, pads: Ints, dilations: Ints,
                    groups: int) -> np.ndarray:
    n, _, oh, ow = dy.shape
    o, c, kh, kw = w.shape
    dy, w = dy.reshape(n, groups, o // groups, oh, ow), w.reshape(groups, o // groups, c, kh, kw)
    dx = np.zeros((n, groups * c, hw[0] + pads[0] + pads[1], hw[1] + pads[2] + pads[3]), dy.dtype)
    for i in range(kh):
        for j in range(kw):
            part = np.einsum("ngoxy,goc->ngcxy", dy, w[..., i, j]).reshape(n, groups * c, oh, ow)
            h, v = i * dilations[0], j * dilations[1]
            dx[:, :, h:h + (oh - 1) * strides[0] + 1:strides[0], v:v + (
                ow - 1) * strides[1] + 1:strides[1]] += part
    return np.ascontiguousarray(dx[:, :, pads[0]:pads[0] + hw[0], pads[2]:pads[2] + hw[1]])


conv2d_input_grad = define(
    f"conv2d_input_grad(dy, w, *, hw, {ATTRS}) -> dx",
    Meaning(lambda w, strides, pads, groups: _equation("noXY,ocKL->ncHW", w.shape[2:], strides, pads, groups),
            _ref_input_grad, shape=lambda dy, w, hw, groups: (dy.shape[0], w.shape[1] * groups, *hw),
            check=_check_input_grad),
    Kernel("conv2d_input_grad",
           pack=lambda w, hw, strides, pads, dilations, groups: _pack(hw, w.shape[2:], strides, pads,
                                                                      dilations, groups)),
    Split(linear=["dy", "w"],
          localize=lambda dy, w, groups, out, full: {
              "hw": tuple(out.shape[2:]),
              "groups": _local_groups(groups, out.shape[1], w.shape[1], dy.shape[1], full[1])}),
    Laws([dict(shapes=[(6, 6, 2, 7), (6, 6, 3, 2)], hw=(5, 7), strides=(2, 1), pads=(1, 0, 1, 1),
               dilations=(1, 2)),
          dict(shapes=[(6, 6, 5, 5), (6, 2, 3, 3)], hw=(5, 5), pads=(1, 1, 1, 1), groups=2),
          dict(shapes=[(6, 6, 3, 2), (6, 1, 3, 3)], hw=(5, 5), groups=6, strides=(1, 2)),
          dict(shapes=[(2, 18, 3, 4), (18, 1, 3, 3)], hw=(5, 8), groups=18, strides=(2, 2),
               pads=(1, 1, 1, 1)),
          dict(shapes=[(6, 6, 6, 6), (6, 12, 1, 1)], hw=(6, 6))]),
    grad={"dy": lambda ddx, w, strides, pads, dilations, groups: conv2d(
              ddx, w, strides=strides, pads=pads, dilations=dilations, groups=groups),
          "w": lambda ddx, dy, w_shape, strides, pads, dilations, groups: conv2d_weight_grad(
              dy, ddx, kernel=tuple(w_shape[2:]), strides=strides, pads=pads, dilations=dilations,
              groups=groups)},
    doc="The adjoint of conv2d in x: what reaches an input of spatial size hw from dy. Also known as "
    "deconvolution.")


# ---- gradient for the weights
def _check_weight_grad(dy: Spec, x: Spec, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints,
                       groups: int) -> None:
    w = (dy.shape[1], x.shape[1] // max(groups, 1), *kernel) if dy.ndim == x.ndim == 4 else ()
    _check("conv2d_weight_grad", x.shape, w, dy.shape, f"dy {dy.shape}, x {x.shape}, kernel {kernel}",
           strides, pads, dilations, groups)
    _same_dtype("conv2d_weight_grad", dy, x)


def _ref_weight_grad(dy: np.ndarray, x: np.ndarray, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints,
                     groups: int) -> np.ndarray:
    n, o, oh, ow = dy.shape
    v = _windows(x, kernel, strides, pads, dilations)
    v = v.reshape(n, groups, x.shape[1] // groups, *v.shape[2:])
    dw = np.einsum("ngoxy,ngcxykl->gockl", dy.reshape(n, groups, o // groups, oh, ow), v)
    return dw.reshape(o, x.shape[1] // groups, *kernel)


conv2d_weight_grad = define(
    f"conv2d_weight_grad(dy, x, *, kernel, {ATTRS}) -> dw",
    Meaning(lambda kernel, strides, pads, groups: _equation("noXY,ncHW->ocKL", kernel, strides, pads, groups),
            _ref_weight_grad, shape=lambda dy, x, kernel, groups: (dy.shape[1], x.shape[1] // groups,
                                                                   *kernel),
            check=_check_weight_grad),
    Kernel("conv2d_weight_grad",
           pack=lambda x, kernel, strides, pads, dilations, groups: _pack(
               x.shape[2:], kernel, strides, pads, dilations, groups)),
    Split(linear=["dy", "x"],
          localize=lambda dy, x, groups, out, full: {
              "groups": _local_groups(groups, x.shape[1], out.shape[1], dy.shape[1], full[1])}),
    Laws([dict(shapes=[(6, 6, 2, 7), (6, 6, 5, 7)], kernel=(3, 2), strides=(2, 1), pads=(1, 0, 1, 1),
               dilations=(1, 2)),
          dict(shapes=[(6, 6, 5, 5), (6, 4, 5, 5)], kernel=(3, 3), pads=(1, 1, 1, 1), groups=2),
          dict(shapes=[(6, 6, 3, 2), (6, 6, 5, 5)], kernel=(3, 3), groups=6, strides=(1, 2)),
          dict(shapes=[(2, 18, 4, 5), (2, 18, 4, 5)], kernel=(3, 3), groups=18, pads=(1, 1, 1, 1)),
          dict(shapes=[(6, 6, 6, 6), (6, 12, 6, 6)], kernel=(1, 1))]),
    grad={"dy": lambda ddw, x, strides, pads, dilations, groups: conv2d(
              x, ddw, strides=strides, pads=pads, dilations=dilations, groups=groups),
          "x": lambda ddw, dy, x_shape, strides, pads, dilations, groups: conv2d_input_grad(
              dy, ddw, hw=tuple(x_shape[2:]), strides=strides, pads=pads, dilations=dilations,
              groups=groups)},
    doc="The adjoint of conv2d in w: the gradient of a kernel of size `kernel`.")
