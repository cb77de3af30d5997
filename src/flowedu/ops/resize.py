"""resize2d, which enlarges or shrinks images, and its adjoint.

Both ops are linear, and each is the gradient of the other.

Rows and columns are resized independently: an output row is a weighted mean of two input rows, and an output
column is a weighted mean of two input columns. `neighbours` returns their indices and weights, which the
kernel and the reference function both use.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, ShapeError
from flowedu.ops.types import Packed, Shape

register("resize")

NEARLY = 1 + 2.0 ** -40               # compensates for the rounding of an integer
Neighbours = tuple[np.ndarray, np.ndarray, np.ndarray]        # first, second, share of the second
ATTRS = 'scale, mode="nearest", align_corners=False'


def neighbours(size: int, out: int, scale: float, mode: str, align_corners: bool) -> Neighbours:
    """Return the two input positions next to each output position, and the share of the second.

    The result is (first, second, share), three arrays of size `out`. The input axis has `size` elements.

    Pixels are squares. Output pixel i has its center at (i + 0.5) / scale in the input, where pixel k has its
    center at k + 0.5. With align_corners, the centers of the first and last pixels of input and output
    coincide instead. "nearest" selects pixel floor(i / scale), as OneFlow 0.4 and PyTorch do.
    """
    i = np.arange(out)
    if mode == "nearest":
        first = np.minimum(np.floor(i / scale * NEARLY).astype(np.int64), size - 1)
        return first, first, np.zeros(out)
    if align_corners:
        at = i * ((size - 1) / (out - 1) if out > 1 else 0.0)
    else:
        at = np.maximum((i + 0.5) / scale - 0.5, 0.0)
    first = np.minimum(np.floor(at).astype(np.int64), size - 1)
    second = np.minimum(first + 1, size - 1)
    return first, second, np.where(second > first, at - first, 0.0)


def _axes(hw: Shape, size: Shape, scale: tuple[float, float], mode: str,
          align_corners: bool) -> list[Neighbours]:
    return [neighbours(n, out, s, mode, align_corners) for n, out, s in zip(hw, size, scale)]


def _check(name: str, shape: Shape, hw: Shape, size: Shape, scale: tuple[float, float], mode: str) -> None:
    """Check the arguments of a resize; hw and size: of the small and of the resized planes."""
    if len(shape) != 4:
        raise ShapeError(f"{name}: the input needs four axes", expected="(n, c, H, W)", got=str(shape))
    if mode not in ("nearest", "bilinear"):
        raise ArgumentError(f"{name}: unknown mode", expected='"nearest" or "bilinear"', got=repr(mode))
    if len(hw) != 2 or len(size) != 2 or min(*hw, *size) < 1:
        raise ShapeError(f"{name}: a plane without pixels cannot be resized", expected="sizes of 1 or more",
                         got=f"{tuple(hw)} to {tuple(size)}")
    if len(scale) != 2 or not all(0 < s < float("inf") for s in scale):
        raise ArgumentError(f"{name}: scale is not right", expected="two numbers above 0", got=str(scale))


def _pack(hw: Shape, size: Shape, scale: tuple[float, float], mode: str, align_corners: bool) -> Packed:
    vertical, horizontal = _axes(hw, size, scale, mode, align_corners)
    row1, row2, down = vertical
    col1, col2, right = horizontal
    return (int(mode != "nearest"), *row1.tolist(), *row2.tolist(), *col1.tolist(), *col2.tolist()), \
        (*down.tolist(), *right.tolist())


def _ref(x: np.ndarray, size: Shape, scale: tuple[float, float], mode: str,
         align_corners: bool) -> np.ndarray:
    vertical, horizontal = _axes(x.shape[2:], size, scale, mode, align_corners)
    row1, row2, down = vertical
    col1, col2, right = horizontal
    if mode == "nearest":
        return x[:, :, row1[:, None], col1]
    down, right = down.astype(x.dtype)[:, None], right.astype(x.dtype)
    rows = x[:, :, row1] * (1 - down) + x[:, :, row2] * down
    return rows[..., col1] * (1 - right) + rows[..., col2] * right


resize2d = define(
    f"resize2d(x, *, size, {ATTRS}) -> y",
    Meaning("ncHW->ncXY", _ref, shape=lambda x, size: (*x.shape[:2], *size),
            check=lambda x, size, scale, mode: _check("resize2d", x.shape, x.shape[2:], size, scale, mode)),
    Kernel("resize2d",
           pack=lambda x, size, scale, mode, align_corners: _pack(x.shape[2:], size, scale, mode,
                                                                  align_corners)),
    Split(linear=["x"]),
    Laws([dict(shapes=[(6, 6, 3, 4)], size=(6, 8), scale=(2.0, 2.0)),
          dict(shapes=[(6, 6, 5, 2)], size=(7, 7), scale=(1.5, 3.5)),
          dict(shapes=[(6, 6, 3, 4)], size=(6, 12), scale=(2.0, 3.0), mode="bilinear"),
          dict(shapes=[(6, 6, 5, 1)], size=(3, 5), scale=(0.6, 5.0), mode="bilinear"),
          dict(shapes=[(6, 6, 3, 4)], size=(1, 7), scale=(0.4, 1.8), mode="bilinear",
               align_corners=True)]),
    grad={"x": lambda dy, x_shape, scale, mode, align_corners: resize2d_grad(
        dy, hw=tuple(x_shape[2:]), scale=scale, mode=mode, align_corners=align_corners)},
    doc="Images x resized to `size`. scale: output pixels per input pixel, for rows and columns.")


def _check_grad(dy: Spec, hw: Shape, scale: tuple[float, float], mode: str) -> None:
    _check("resize2d_grad", dy.shape, hw, dy.shape[2:], scale, mode)


def _ref_grad(dy: np.ndarray, hw: Shape, scale: tuple[float, float], mode: str,
              align_corners: bool) -> np.ndarray:
    vertical, horizontal = _axes(hw, dy.shape[2:], scale, mode, align_corners)
    row1, row2, down = vertical
    col1, col2, right = horizontal
    down, right = down.astype(dy.dtype)[:, None], right.astype(dy.dtype)
    columns = np.zeros((*dy.shape[:3], hw[1]), dy.dtype)
    place: Any                        # NumPy's types for `at` lack indices with slices
    for col, share in ((col1, 1 - right), (col2, right)):
        place = (..., col)
        np.add.at(columns, place, dy * share)
    dx = np.zeros((*dy.shape[:2], *hw), dy.dtype)
    for row, share in ((row1, 1 - down), (row2, down)):
        place = (slice(None), slice(None), row)
        np.add.at(dx, place, columns * share)
    return dx


resize2d_grad = define(
    f"resize2d_grad(dy, *, hw, {ATTRS}) -> dx",
    Meaning("ncXY->ncHW", _ref_grad, shape=lambda dy, hw: (*dy.shape[:2], *hw), check=_check_grad),
    Kernel("resize2d_grad",
           pack=lambda dy, hw, scale, mode, align_corners: _pack(hw, dy.shape[2:], scale, mode,
                                                                 align_corners)),
    Split(linear=["dy"]),
    Laws([dict(shapes=[(6, 6, 6, 8)], hw=(3, 4), scale=(2.0, 2.0)),
          dict(shapes=[(6, 6, 6, 12)], hw=(3, 4), scale=(2.0, 3.0), mode="bilinear"),
          dict(shapes=[(6, 6, 2, 7)], hw=(3, 4), scale=(0.7, 1.8), mode="bilinear",
               align_corners=True)]),
    grad={"dy": lambda ddx, dy_shape, scale, mode, align_corners: resize2d(
        ddx, size=tuple(dy_shape[2:]), scale=scale, mode=mode, align_corners=align_corners)},
    doc="The adjoint of resize2d: what reaches images of spatial size hw from dy.")
