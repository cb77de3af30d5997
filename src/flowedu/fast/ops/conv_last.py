"""Convolution of channels-last images (NHWC): conv2d and its two gradients.

The layout pass (fast/passes/layout.py) substitutes these for conv2d where they are faster. Weights keep their
shape (o, c / groups, kh, kw). `conv2d_last_norm` is for inference: convolution, batch norm with fixed
statistics, and clipping.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops.define import define
from flowedu.core.ops.elementwise import maximum, minimum
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.ops.reverse import vjp
from flowedu.core.values.spec import Spec
from flowedu.errors import ShapeError
from flowedu.fast.ops.norm_clip import FEW, LIMITS
from flowedu.ops import conv, norm
from flowedu.ops.conv import ATTRS
from flowedu.ops.kept import KEPT
from flowedu.ops.types import AnyTensor, Gradients, Ints, Shape

register("conv_last")

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
Window = tuple[Ints, Ints, Ints, int]              # strides, pads, dilations, groups


def _first(shape: Shape) -> Shape:
    """Convert an NHWC shape to NCHW. Other ranks are unchanged, so that the checks can reject them."""
    return tuple(shape[i] for i in FIRST) if len(shape) == 4 else tuple(shape)


def _last(shape: Shape) -> Shape:
    return tuple(shape[i] for i in LAST)


def _check(name: str, x: Shape, w: Shape, y: Shape | None, got: str, strides: Ints, pads: Ints,
           dilations: Ints, groups: int) -> None:
    for role, shape in (("images", x), ("images", y), ("weights", w)):
        if shape is not None and len(shape) != 4:
            raise ShapeError(f"{name}: the {role} need four axes", got=got,
                             expected="x (n, H, W, c), w (o, c / groups, K, L), y (n, X, Y, o)")
    conv._check(name, _first(x), w, None if y is None else _first(y), got, strides, pads, dilations, groups)


# ---- forward
def _check_forward(x: Spec, w: Spec, strides: Ints, pads: Ints, dilations: Ints, groups: int) -> None:
    _check("conv2d_last", x.shape, w.shape, None, f"x {x.shape}, w {w.shape}", strides, pads,
           dilations, groups)
    conv._same_dtype("conv2d_last", x, w)


def _ref(x: np.ndarray, w: np.ndarray, strides: Ints, pads: Ints, dilations: Ints, groups: int) -> np.ndarray:
    return conv._ref(x.transpose(FIRST), w, strides, pads, dilations, groups).transpose(LAST)


def _shape(x: Spec, w: Spec, strides: Ints, pads: Ints, dilations: Ints) -> Shape:
    return (x.shape[0], *conv._out_hw(x.shape[1:3], w.shape[2:], strides, pads, dilations), w.shape[0])


conv2d_last = define(
    f"conv2d_last(x, w, *, {ATTRS}) -> y",
    Meaning(lambda w, strides, pads, groups: conv._equation("nHWc,ocKL->nXYo", w.shape[2:], strides, pads,
                                                            groups), _ref,
            shape=_shape, check=_check_forward),
    Kernel("conv2d_last",
           pack=lambda x, w, strides, pads, dilations, groups: conv._pack(
               x.shape[1:3], w.shape[2:], strides, pads, dilations, groups)),
    Split(linear=["x", "w"],
          localize=lambda x, w, groups, out, full_out: {
              "groups": conv._local_groups(groups, x.shape[3], w.shape[1], out.shape[3], full_out[3])}),
    Laws([dict(shapes=[(6, 5, 7, 6), (6, 6, 3, 2)], strides=(2, 1), pads=(1, 0, 1, 2), dilations=(1, 2)),
          dict(shapes=[(6, 5, 5, 4), (6, 2, 3, 3)], pads=(1, 1, 1, 1), groups=2),
          dict(shapes=[(6, 5, 5, 6), (6, 1, 3, 3)], pads=(2, 1, 0, 1), strides=(1, 2), groups=6),
          dict(shapes=[(2, 6, 5, 18), (18, 1, 3, 3)], pads=(1, 1, 1, 1), groups=18),
          dict(shapes=[(6, 6, 6, 12), (6, 12, 1, 1)])]),
    grad={"x": lambda dy, w, x_shape, strides, pads, dilations, groups: conv2d_last_input_grad(
              dy, w, hw=tuple(x_shape[1:3]), strides=strides, pads=pads, dilations=dilations, groups=groups),
          "w": lambda dy, x, w_shape, strides, pads, dilations, groups: conv2d_last_weight_grad(
              dy, x, kernel=tuple(w_shape[2:]), strides=strides, pads=pads, dilations=dilations,
              groups=groups)},
    doc="conv2d of NHWC images x with kernels w (o, c / groups, K, L).")


# ---- gradient for the input
def _check_input_grad(dy: Spec, w: Spec, hw: Shape, strides: Ints, pads: Ints, dilations: Ints,
                      groups: int) -> None:
    x = (dy.shape[0], *hw, w.shape[1] * groups) if dy.ndim == w.ndim == 4 else ()
    _check("conv2d_last_input_grad", x, w.shape, dy.shape, f"dy {dy.shape}, w {w.shape}, hw {hw}",
           strides, pads, dilations, groups)
    conv._same_dtype("conv2d_last_input_grad", dy, w)


def _ref_input_grad(dy: np.ndarray, w: np.ndarray, hw: Shape, strides: Ints, pads: Ints, dilations: Ints,
                    groups: int) -> np.ndarray:
    return conv._ref_input_grad(dy.transpose(FIRST), w, hw, strides, pads, dilations, groups).transpose(LAST)


conv2d_last_input_grad = define(
    f"conv2d_last_input_grad(dy, w, *, hw, {ATTRS}) -> dx",
    Meaning(lambda w, strides, pads, groups: conv._equation("nXYo,ocKL->nHWc", w.shape[2:], strides, pads,
                                                            groups),
            _ref_input_grad, shape=lambda dy, w, hw, groups: (dy.shape[0], *hw, w.shape[1] * groups),
            check=_check_input_grad),
    Kernel("conv2d_last_input_grad",
           pack=lambda w, hw, strides, pads, dilations, groups: conv._pack(
               hw, w.shape[2:], strides, pads, dilations, groups)),
    Split(linear=["dy", "w"],
          localize=lambda dy, w, groups, out, full: {
              "hw": tuple(out.shape[1:3]),
              "groups": conv._local_groups(groups, out.shape[3], w.shape[1], dy.shape[3], full[3])}),
    Laws([dict(shapes=[(6, 2, 7, 6), (6, 6, 3, 2)], hw=(5, 7), strides=(2, 1), pads=(1, 0, 1, 1),
               dilations=(1, 2)),
          dict(shapes=[(6, 5, 5, 6), (6, 2, 3, 3)], hw=(5, 5), pads=(1, 1, 1, 1), groups=2),
          dict(shapes=[(6, 3, 2, 6), (6, 1, 3, 3)], hw=(5, 5), groups=6, strides=(1, 2)),
          dict(shapes=[(2, 3, 4, 18), (18, 1, 3, 3)], hw=(5, 8), groups=18, strides=(2, 2),
               pads=(1, 1, 1, 1)),
          dict(shapes=[(6, 6, 6, 6), (6, 12, 1, 1)], hw=(6, 6))]),
    grad={"dy": lambda ddx, w, strides, pads, dilations, groups: conv2d_last(
              ddx, w, strides=strides, pads=pads, dilations=dilations, groups=groups),
          "w": lambda ddx, dy, w_shape, strides, pads, dilations, groups: conv2d_last_weight_grad(
              dy, ddx, kernel=tuple(w_shape[2:]), strides=strides, pads=pads, dilations=dilations,
              groups=groups)},
    doc="The adjoint of conv2d_last in x.")


# ---- gradient for the weights
def _check_weight_grad(dy: Spec, x: Spec, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints,
                       groups: int) -> None:
    w = (dy.shape[3], x.shape[3] // max(groups, 1), *kernel) if dy.ndim == x.ndim == 4 else ()
    _check("conv2d_last_weight_grad", x.shape, w, dy.shape, f"dy {dy.shape}, x {x.shape}, kernel {kernel}",
           strides, pads, dilations, groups)
    conv._same_dtype("conv2d_last_weight_grad", dy, x)


def _ref_weight_grad(dy: np.ndarray, x: np.ndarray, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints,
                     groups: int) -> np.ndarray:
    return conv._ref_weight_grad(dy.transpose(FIRST), x.transpose(FIRST), kernel, strides, pads,
                                 dilations, groups)


conv2d_last_weight_grad = define(
    f"conv2d_last_weight_grad(dy, x, *, kernel, {ATTRS}) -> dw",
    Meaning(lambda kernel, strides, pads, groups: conv._equation("nXYo,nHWc->ocKL", kernel, strides, pads,
                                                                 groups),
            _ref_weight_grad, shape=lambda dy, x, kernel, groups: (dy.shape[3], x.shape[3] // groups,
                                                                   *kernel),
            check=_check_weight_grad),
    Kernel("conv2d_last_weight_grad",
           pack=lambda x, kernel, strides, pads, dilations, groups: conv._pack(
               x.shape[1:3], kernel, strides, pads, dilations, groups)),
    Split(linear=["dy", "x"],
          localize=lambda dy, x, groups, out, full: {
              "groups": conv._local_groups(groups, x.shape[3], out.shape[1], dy.shape[3], full[3])}),
    Laws([dict(shapes=[(6, 2, 7, 6), (6, 5, 7, 6)], kernel=(3, 2), strides=(2, 1), pads=(1, 0, 1, 1),
               dilations=(1, 2)),
          dict(shapes=[(6, 5, 5, 6), (6, 5, 5, 4)], kernel=(3, 3), pads=(1, 1, 1, 1), groups=2),
          dict(shapes=[(6, 3, 2, 6), (6, 5, 5, 6)], kernel=(3, 3), groups=6, strides=(1, 2)),
          dict(shapes=[(2, 4, 5, 18), (2, 4, 5, 18)], kernel=(3, 3), groups=18, pads=(1, 1, 1, 1)),
          dict(shapes=[(6, 6, 6, 6), (6, 6, 6, 12)], kernel=(1, 1)),
          dict(shapes=[(2, 3, 3, 24), (2, 3, 3, 12)], kernel=(1, 1))]),
    grad={"dy": lambda ddw, x, strides, pads, dilations, groups: conv2d_last(
              x, ddw, strides=strides, pads=pads, dilations=dilations, groups=groups),
          "x": lambda ddw, dy, x_shape, strides, pads, dilations, groups: conv2d_last_input_grad(
              dy, ddw, hw=tuple(x_shape[1:3]), strides=strides, pads=pads, dilations=dilations,
              groups=groups)},
    doc="The adjoint of conv2d_last in w: the gradient of a kernel of size `kernel`.")


# ---- inference
def check_norm(name: str, x: Spec, w: Spec, norms: Sequence[Spec], window: Window) -> None:
    """Check the inputs. norms: gamma, beta, mean, var; window: strides, pads, dilations, groups."""
    _check(name, x.shape, w.shape, None, f"x {x.shape}, w {w.shape}", *window)
    conv._same_dtype(name, x, w)
    norm._check_channels(name)(w, 0, **dict(zip(("gamma", "beta", "mean", "var"), norms)))


def _check_norm(x: Spec, w: Spec, gamma: Spec, beta: Spec, mean: Spec, var: Spec, strides: Ints, pads: Ints,
                dilations: Ints, groups: int) -> None:
    check_norm("conv2d_last_norm", x, w, (gamma, beta, mean, var), (strides, pads, dilations, groups))


def _norm_axes(w: Spec, strides: Ints, pads: Ints, groups: int) -> str:
    # The op is not linear, so devices cannot compute partial sums over c.
    form = conv._equation("nHWc,ocKL->nXYo", w.shape[2:], strides, pads, groups).replace("c", "C")
    left, right = form.split("->")
    return f"{left}{f',{right[-1]}' * 4}->{right}"


def _norm_ref(x: np.ndarray, w: np.ndarray, gamma: np.ndarray, beta: np.ndarray, mean: np.ndarray,
              var: np.ndarray, strides: Ints, pads: Ints, dilations: Ints, groups: int, epsilon: float,
              low: float, high: float) -> np.ndarray:
    y = _ref(x, w, strides, pads, dilations, groups)
    return np.clip(norm._infer_ref(y, gamma, beta, mean, var, 3, epsilon), low, high)


def _norm_grad(dy: AnyTensor, x: AnyTensor, w: AnyTensor, gamma: AnyTensor, beta: AnyTensor, mean: AnyTensor,
               var: AnyTensor, strides: Ints, pads: Ints, dilations: Ints, groups: int, epsilon: float,
               low: float, high: float) -> Gradients:
    def f(x: AnyTensor, w: AnyTensor, gamma: AnyTensor, beta: AnyTensor, mean: AnyTensor,
          var: AnyTensor) -> AnyTensor:
        y = conv2d_last(x, w, strides=strides, pads=pads, dilations=dilations, groups=groups)
        y = norm.batch_norm_infer(y, gamma, beta, mean, var, axis=3, epsilon=epsilon)
        return minimum(maximum(y, low), high)

    names = ("x", "w", "gamma", "beta", "mean", "var")
    return dict(zip(names, vjp(f, (x, w, gamma, beta, mean, var), (dy,))))


_NORM = dict(epsilon=1e-3, **LIMITS)
conv2d_last_norm = define(
    f"conv2d_last_norm(x, w, gamma, beta, mean, var, *, {ATTRS}, epsilon, low, high) -> y",
    Meaning(_norm_axes, _norm_ref, shape=_shape, check=_check_norm),
    Kernel("conv2d_last_norm",
           pack=lambda x, w, strides, pads, dilations, groups, epsilon, low, high: (
               conv._pack(x.shape[1:3], w.shape[2:], strides, pads, dilations, groups)[0],
               (epsilon, low, high))),
    Split(localize=lambda x, w, groups, out, full_out: {
              "groups": conv._local_groups(groups, x.shape[3], w.shape[1], out.shape[3], full_out[3])}),
    Laws([dict(shapes=[(6, 5, 5, 4), (6, 2, 3, 3), *[(6,)] * 4], pads=(1, 1, 1, 1), groups=2, **_NORM),
          dict(shapes=[(2, 5, 5, 18), (18, 1, 3, 3), *[(18,)] * 4], pads=(1, 1, 1, 1), groups=18, **_NORM),
          dict(shapes=[(6, 3, 3, 12), (6, 12, 1, 1), *[(6,)] * 4], **_NORM)],
         domain={**FEW, "w": "few", "var": "positive"}),
    grad=_norm_grad, doc="clip(batch_norm_infer(conv2d_last(x, w)), low, high) in one pass over memory.")

KEPT[conv2d_last], KEPT[conv2d_last_norm] = (1,), (1, 2, 3, 4, 5)
