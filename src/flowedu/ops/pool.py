"""Maximum and average pooling, and their gradients.

max_pool2d also returns the position of each maximum. Its gradient is a scatter to these positions, and the
gradient of the scatter is a gather from them. Average pooling and its gradient are each other's adjoints.
"""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowedu._kernels import register
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.values.dtype import float64, int32, int64
from flowedu.core.values.spec import Spec, check_spec
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.ops.bounds import flat_in
from flowedu.ops.padding import out_size, used_stride
from flowedu.ops.types import Ints, Packed, Shape

register("pool")

ATTRS = "ksize, strides, pads=(0, 0, 0, 0)"


def _out_hw(hw: Shape, ksize: Ints, strides: Ints, pads: Ints) -> Ints:
    return tuple(out_size(hw[i], pads[2 * i], pads[2 * i + 1], ksize[i], strides[i]) for i in (0, 1))


def _check(name: str, shape: Shape, hw: Shape, ksize: Ints, strides: Ints, pads: Ints) -> None:
    if len(shape) != 4:
        raise ShapeError(f"{name}: the input needs four axes", expected="(n, c, H, W)", got=str(shape))
    for attr, value, length, least in (("ksize", ksize, 2, 1), ("strides", strides, 2, 1),
                                       ("pads", pads, 4, 0)):
        if len(value) != length or min(value) < least:
            raise ArgumentError(f"{name}: {attr} is not right", expected=f"{length} ints of {least} or more",
                                got=str(value))
    if min(_out_hw(hw, ksize, strides, pads)) < 1:
        raise ShapeError(f"{name}: the window does not fit into the padded input",
                         expected=f"H, W of {ksize} or more",
                         got=f"{tuple(hw)}, pads {pads}", fix="use a smaller window, or pad the input")
    check_spec(f"{name}: the padded input", Spec((*shape[:2], hw[0] + sum(pads[:2]), hw[1] + sum(pads[2:])),
                                                 float64))


def _check_max(x: Spec, ksize: Ints, strides: Ints, pads: Ints) -> None:
    _check("max_pool2d", x.shape, x.shape[2:], ksize, strides, pads)
    if x.shape[2] * x.shape[3] >= 2 ** 31:
        raise ShapeError("max_pool2d: a plane is too large for int32 positions", expected="H * W below 2**31",
                         got=str(x.shape[2:]), fix="cut the plane into parts")
    for i, (size, out) in enumerate(zip(x.shape[2:], _out_hw(x.shape[2:], ksize, strides, pads))):
        if pads[2 * i] >= ksize[i] or (out - 1) * strides[i] - pads[2 * i] >= size:
            raise ArgumentError("max_pool2d: a window lies wholly in the padding and has no maximum",
                                fix="pad less",
                                expected="pads smaller than the window", got=f"pads {pads}, ksize {ksize}")


def _windows(hw: Shape, ksize: Ints, strides: Ints, pads: Ints) -> Iterator[tuple[int, int, slice, slice]]:
    """(output row, output column, slices of the real elements) of every window."""
    oh, ow = _out_hw(hw, ksize, strides, pads)
    for i in range(oh):
        for j in range(ow):
            h, w = i * strides[0] - pads[0], j * strides[1] - pads[2]
            yield i, j, slice(max(h, 0), max(min(h + ksize[0], hw[0]), 0)), slice(max(w, 0),
                                                                                  max(min(w + ksize[1],
                                                                                          hw[1]), 0))


def _pack(hw: Shape, ksize: Ints, strides: Ints, pads: Ints) -> Packed:
    """Return the attributes of a call in the form of the kernels.

    Rows and columns of the window that are always in the padding are left out.
    """
    steps = [used_stride(hw[i], pads[2 * i], pads[2 * i + 1], ksize[i], strides[i]) for i in (0, 1)]
    size, margins = list(ksize), list(pads)
    for i, out in enumerate(_out_hw(hw, ksize, strides, pads)):
        first = min(max(pads[2 * i] - (out - 1) * steps[i], 0), size[i] - 1)
        size[i] = max(min(size[i], pads[2 * i] + hw[i]) - first, 1)
        margins[2 * i] -= first
    return (*size, *steps, *margins), ()


# ---- maximum
def _ref_max(x: np.ndarray, ksize: Ints, strides: Ints, pads: Ints) -> tuple[np.ndarray, np.ndarray]:
    n, c, h, w = x.shape
    y = np.zeros((n, c, *_out_hw((h, w), ksize, strides, pads)), x.dtype)
    index = np.zeros(y.shape, np.int32)
    for i, j, rows, cols in _windows((h, w), ksize, strides, pads):
        width = cols.stop - cols.start
        part = x[:, :, rows, cols].reshape(n * c, (rows.stop - rows.start) * width)
        k = part.argmax(1)
        y[:, :, i, j] = part[np.arange(n * c), k].reshape(n, c)
        index[:, :, i, j] = ((rows.start + k // width) * w + cols.start + k % width).reshape(n, c)
    return y, index


def _pool_shape(x: Spec | np.ndarray, ksize: Ints, strides: Ints, pads: Ints) -> Shape:
    return (*x.shape[:2], *_out_hw(x.shape[2:], ksize, strides, pads))


max_pool2d = define(
    f"max_pool2d(x, *, {ATTRS}) -> (y, index)",
    Meaning("ncHW->ncXY,ncXY", _ref_max,
            shape=lambda x, ksize, strides, pads: (_pool_shape(x, ksize, strides, pads),) * 2,
            dtype=lambda x: (x.dtype, int32), check=_check_max),
    Kernel("max_pool2d", pack=lambda x, ksize, strides, pads: _pack(x.shape[2:], ksize, strides, pads)),
    Laws([dict(shapes=[(6, 6, 5, 7)], ksize=(2, 2), strides=(2, 2)),
          dict(shapes=[(6, 6, 5, 7)], ksize=(3, 2), strides=(2, 1), pads=(1, 1, 1, 0)),
          dict(shapes=[(6, 6, 5, 5)], ksize=(5, 5), strides=(1, 1))]),
    grad={"x": lambda dy, x, index: flat_in(max_pool2d_grad(dy, index, hw=tuple(x.shape[2:])), x)},
    doc="The largest element of every window (NaN counts as largest; padding never wins), and its "
        "position h * W + w in the input plane: the first one where several are equal.")


def _check_index(name: str, dy: Spec, index: Spec) -> None:
    if index.dtype not in (int32, int64):
        raise DTypeError(f"{name}: index has the wrong element type", expected="int32 or int64",
                         got=index.dtype.name, fix="pass the index that max_pool2d returned")
    if dy.ndim != 4 or index.ndim != 4 or (name == "max_pool2d_grad" and dy.shape != index.shape):
        raise ShapeError(f"{name}: the inputs do not fit", got=f"{dy.shape} and {index.shape}",
                         expected="(n, c, X, Y) arrays of the shape that max_pool2d returned",
                         fix="pass the index that max_pool2d returned")


def _ref_scatter(dy: np.ndarray, index: np.ndarray, hw: Shape) -> np.ndarray:
    n, c, oh, ow = dy.shape
    dx = np.zeros((n * c, hw[0] * hw[1]), dy.dtype)
    np.add.at(dx, (np.arange(n * c)[:, None], index.reshape(n * c, oh * ow)), dy.reshape(n * c, oh * ow))
    return dx.reshape(n, c, *hw)


max_pool2d_grad = define(
    "max_pool2d_grad(dy, index, *, hw) -> dx",
    Meaning("ncxy,ncxy->ncHW", _ref_scatter, shape=lambda dy, hw: (*dy.shape[:2], *hw),
            check=lambda dy, index: _check_index("max_pool2d_grad", dy, index)),
    Kernel("max_pool2d_grad", pack=lambda: ((), ()), range_help="0 <= index < H * W"), Split(linear=["dy"]),
    Laws([dict(shapes=[(6, 6, 2, 3), (6, 6, 2, 3)], hw=(5, 7)),
          dict(shapes=[(6, 6, 5, 7), (6, 6, 5, 7)], hw=(5, 7))], domain={"index": "index:35"}),
    grad={"dy": lambda ddx, index: max_pool2d_gather(ddx, index)},
    doc="Zeros of spatial size hw, with every dy added at its index.")


def _ref_gather(ddx: np.ndarray, index: np.ndarray) -> np.ndarray:
    n, c, h, w = ddx.shape
    oh, ow = index.shape[2:]
    return np.take_along_axis(ddx.reshape(n, c, h * w), index.reshape(n, c, oh * ow), 2).reshape(index.shape)


max_pool2d_gather = define(
    "max_pool2d_gather(ddx, index) -> ddy",
    Meaning("ncHW,ncxy->ncxy", _ref_gather, check=lambda ddx, index: _check_index("max_pool2d_gather", ddx,
                                                                                  index)),
    Kernel("max_pool2d_gather", pack=lambda: ((), ()), range_help="0 <= index < H * W"),
    Split(linear=["ddx"]), Laws([dict(shapes=[(6, 6, 5, 7), (6, 6, 2, 3)])], domain={"index": "index:35"}),
    grad={"ddx": lambda dddy, index, ddx_shape: max_pool2d_grad(
        dddy, index, hw=tuple(ddx_shape[2:]))},
    doc="The elements of each plane of ddx that index names.")


# ---- average
def _ref_avg(x: np.ndarray, ksize: Ints, strides: Ints, pads: Ints) -> np.ndarray:
    y = np.zeros(_pool_shape(x, ksize, strides, pads), x.dtype)
    for i, j, rows, cols in _windows(x.shape[2:], ksize, strides, pads):
        part = x[:, :, rows, cols]
        y[:, :, i, j] = part.sum((2, 3)) / max(part.shape[2] * part.shape[3], 1)
    return y


avg_pool2d = define(
    f"avg_pool2d(x, *, {ATTRS}) -> y",
    Meaning("ncHW->ncXY", _ref_avg, shape=_pool_shape,
            check=lambda x, ksize, strides, pads: _check("avg_pool2d", x.shape, x.shape[2:], ksize, strides,
                                                         pads)),
    Kernel("avg_pool2d", pack=lambda x, ksize, strides, pads: _pack(x.shape[2:], ksize, strides, pads)),
    Split(linear=["x"]),
    Laws([dict(shapes=[(6, 6, 5, 7)], ksize=(2, 2), strides=(2, 2)),
          dict(shapes=[(6, 6, 5, 7)], ksize=(3, 2), strides=(2, 1), pads=(1, 1, 1, 0)),
          dict(shapes=[(6, 6, 5, 5)], ksize=(5, 5), strides=(1, 1)),
          dict(shapes=[(6, 6, 5, 5)], ksize=(2, 2), strides=(2, 2), pads=(0, 2, 3, 0))]),
    grad={"x": lambda dy, x, ksize, strides, pads: flat_in(avg_pool2d_grad(
        dy, hw=tuple(x.shape[2:]), ksize=ksize, strides=strides, pads=pads), x)},
    doc="The mean of the real (not padding) elements of every window; 0 for a window without any.")


def _check_avg_grad(dy: Spec, hw: Shape, ksize: Ints, strides: Ints, pads: Ints) -> None:
    _check("avg_pool2d_grad", dy.shape, hw, ksize, strides, pads)
    if dy.shape[2:] != _out_hw(hw, ksize, strides, pads):
        raise ShapeError("avg_pool2d_grad: dy does not have the shape of the output", got=str(dy.shape),
                         expected=f"(n, c, {', '.join(map(str, _out_hw(hw, ksize, strides, pads)))})",
                         fix="use the ksize, strides and pads of the forward pooling")


def _ref_avg_grad(dy: np.ndarray, hw: Shape, ksize: Ints, strides: Ints, pads: Ints) -> np.ndarray:
    dx = np.zeros((*dy.shape[:2], *hw), dy.dtype)
    for i, j, rows, cols in _windows(hw, ksize, strides, pads):
        part = dx[:, :, rows, cols]
        part += dy[:, :, i:i + 1, j:j + 1] / max(part.shape[2] * part.shape[3], 1)
    return dx


avg_pool2d_grad = define(
    f"avg_pool2d_grad(dy, *, hw, {ATTRS}) -> dx",
    Meaning("ncXY->ncHW", _ref_avg_grad, shape=lambda dy, hw: (*dy.shape[:2], *hw), check=_check_avg_grad),
    Kernel("avg_pool2d_grad", pack=_pack), Split(linear=["dy"]),
    Laws([dict(shapes=[(6, 6, 2, 3)], hw=(5, 7), ksize=(2, 2), strides=(2, 2)),
          dict(shapes=[(6, 6, 3, 7)], hw=(5, 7), ksize=(3, 2), strides=(2, 1),
               pads=(1, 1, 1, 0))]),
    grad={"dy": lambda ddx, ksize, strides, pads: avg_pool2d(
        ddx, ksize=ksize, strides=strides, pads=pads)},
    doc="Every dy shared out evenly over the real elements of its window.")
