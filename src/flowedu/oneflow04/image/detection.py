"""Boxes and outlines of objects, transformed together with their image: flow.detection (OneFlow 0.4).

Boxes and outlines are TensorBuffers of shape (N,), with one array per image:

boxes (n, 4): left, top, right, and bottom of each box in pixels. The right and bottom pixels are inside.

poly (p, 2): x and y of all points of all outlines in the image.

poly_index (p, 3): for each point, its index in its polygon, the index of the polygon in its object, and the
index of the object. All indices start at 0.

The sizes are tensors: image_size (N, 2) has width and height, and scale (N, 2) has the factors of both, as
returned by flow.image.target_resize.
"""
from __future__ import annotations

import numpy as np

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.values import dtype as dt
from flowedu.errors import DataError, ShapeError
from flowedu.errors.buffers import wrong_dtype
from flowedu.oneflow04.functions.tensor_buffers import need_buffer, need_value
from flowedu.oneflow04.image.pictures import FLIPS, flip_codes, with_codes
from flowedu.ops.front import front
from flowedu.ops.host import define_host


def _check(what: str, x: TensorBuffer, columns: int, kinds: str = "f") -> None:
    for i, a in enumerate(x.items):
        if a.ndim != 2 or a.shape[1] != columns:
            raise ShapeError(f"{what}: {x.where(i)} has another shape", expected=f"(n, {columns})",
                             got=str(a.shape),
                             fix="one row each: boxes are (left, top, right, bottom), points (x, y), "
                                 "indices (point, polygon, object)")
        if a.dtype.kind not in kinds:
            raise wrong_dtype(what, x.where(i), dt.float32 if kinds == "f" else dt.int32, a.dtype)


def _need(what: str, x, pairs, name: str):
    """Raise an error unless x is a TensorBuffer (N,) and pairs has the shape (N, 2)."""
    n = need_buffer(what, x, rank=1).shape[0]
    if need_value(what, pairs).shape != (n, 2):
        raise ShapeError(f"{what}: {name} does not fit",
                         expected=f"({n}, 2): a width and a height for each image",
                         got=str(pairs.spec.shape), fix="what flow.image.target_resize gives has this shape")


def _make_flip(what: str, last: int):
    """Make the host function of a flip, size - last - position.

    Boxes count pixels (last=1); points are between pixels (last=0).
    """
    def host(xs: tuple, code: int | None) -> TensorBuffer:
        x, size = xs[:2]
        _check(what, x, 4 if last else 2)
        out = []
        for a, wh, c in zip(x.items, size, flip_codes(what, xs[2] if code is None else code, x.size)):
            b = a.copy()
            for axis in FLIPS[c]:
                # Axis 1 of an image is x, column 0 of a point.
                k = 1 - axis
                turned = wh[k] - last - a[:, k::2]
                # The left edge becomes the right one.
                b[:, k::2] = turned[:, ::-1] if last else turned
            out.append(b)
        return TensorBuffer(out, x.shape)
    return host


def _make_scale(what: str, columns: int):
    def host(x: TensorBuffer, scale: np.ndarray) -> TensorBuffer:
        _check(what, x, columns)
        return TensorBuffer([a * np.tile(s, columns // 2).astype(a.dtype) for a, s in zip(x.items, scale)],
                            x.shape)
    return host


def _define(signature: str, host):
    first = (lambda xs: xs[0].shape) if "*xs" in signature else lambda x: x.shape
    return define_host(signature, host=host, shape=first, dtype=lambda: dt.tensor_buffer)


_POLYGON = "object_segmentation_polygon"
_bbox_flip = _define("object_bbox_flip(*xs, code=None) -> y", _make_flip("object_bbox_flip", 1))
_poly_flip = _define(_POLYGON + "_flip(*xs, code=None) -> y", _make_flip(_POLYGON + "_flip", 0))
_bbox_scale = _define("object_bbox_scale(x, scale) -> y", _make_scale("object_bbox_scale", 4))
_poly_scale = _define(_POLYGON + "_scale(x, scale) -> y", _make_scale(_POLYGON + "_scale", 2))


@front("ObjectBboxFlip")
def object_bbox_flip(bbox, image_size, flip_code):
    """Flip boxes with their images (flow.image.flip): x becomes width - 1 - x; left and right are exchanged.

    Args:
        bbox: boxes, a TensorBuffer of shape (N,) of arrays (n, 4).
        image_size: width and height of the images, of shape (N, 2).
        flip_code: as for flow.image.flip.
    """
    _need("object_bbox_flip", bbox, image_size, "image_size")
    return with_codes("object_bbox_flip", _bbox_flip, (bbox, image_size), flip_code)


@front("ObjectBboxScale")
def object_bbox_scale(bbox, scale):
    """Scale boxes with their images.

    Args:
        bbox: boxes, a TensorBuffer of shape (N,) of arrays (n, 4).
        scale: the factors of width and height, of shape (N, 2).
    """
    _need("object_bbox_scale", bbox, scale, "scale")
    return _bbox_scale(bbox, scale)


@front("ObjectSegmPolygonFlip")
def object_segmentation_polygon_flip(poly, image_size, flip_code):
    """Flip outlines with their images: x becomes width - x.

    Args:
        poly: points, a TensorBuffer of shape (N,) of arrays (p, 2).
        image_size: width and height of the images, of shape (N, 2).
        flip_code: as for flow.image.flip.
    """
    _need(_POLYGON + "_flip", poly, image_size, "image_size")
    return with_codes(_POLYGON + "_flip", _poly_flip, (poly, image_size), flip_code)


@front("ObjectSegmPolygonScale")
def object_segmentation_polygon_scale(poly, scale):
    """Scale outlines with their images.

    Args:
        poly: points, a TensorBuffer of shape (N,) of arrays (p, 2).
        scale: the factors of width and height, of shape (N, 2).
    """
    _need(_POLYGON + "_scale", poly, scale, "scale")
    return _poly_scale(poly, scale)


# ---- outlines to masks
def fill(polygons: list[np.ndarray], height: int, width: int) -> np.ndarray:
    """Return an int8 mask (height, width) with 1 inside and on the outline of polygons.

    Points are rounded to pixels.

    A row of pixels crosses an edge if one end of the edge is at or above the row and the other is below it.
    Pixels after an odd number of crossings are inside. The function marks the crossings and sums them from
    left to right. A region inside two polygons is a hole.
    """
    marks, line = np.zeros((height, width + 1), np.int32), np.zeros((height, width), bool)
    for points in polygons:
        ends = np.rint(points).astype(np.int64)
        for (x0, y0), (x1, y1) in zip(ends, np.roll(ends, -1, axis=0)):
            n = max(abs(x1 - x0), abs(y1 - y0), 1)
            ys, xs = (np.rint(np.linspace(a, b, n + 1)).astype(np.int64) for a, b in ((y0, y1), (x0, x1)))
            on = (ys >= 0) & (ys < height) & (xs >= 0) & (xs < width)
            line[ys[on], xs[on]] = True
            top, bottom = max(min(y0, y1), 0), min(max(y0, y1), height)
            rows = np.arange(top, bottom)
            if rows.size:
                at = np.ceil(x0 + (rows - y0) * (x1 - x0) / (y1 - y0)).astype(np.int64)
                marks[rows, np.clip(at, 0, width)] += 1
    return ((np.cumsum(marks, axis=1)[:, :width] % 2 == 1) | line).astype(np.int8)


def _to_mask(poly: TensorBuffer, poly_index: TensorBuffer, image_size: np.ndarray) -> TensorBuffer:
    what = _POLYGON + "_to_mask"
    _check(what, poly, 2)
    _check(what, poly_index, 3, "iu")
    out = []
    for i, (points, index, (width, height)) in enumerate(zip(poly.items, poly_index.items, image_size)):
        if len(points) != len(index):
            raise ShapeError(f"{what}: {poly.where(i)}: points and indices differ in number",
                             expected="a row of poly_index per point",
                             got=f"{len(points)} points and {len(index)} rows",
                             fix="help(flow.detection) describes the rows")
        groups, objects = np.unique(index[:, :0:-1], axis=0), np.unique(index[:, 2])
        order = np.lexsort((index[:, 0], index[:, 1], index[:, 2]))
        if (not len(points) or (order != np.arange(len(order))).any() or objects[-1] != len(objects) - 1
            or objects[0]):
            raise DataError(f"{what}: {poly_index.where(i)} is out of order",
                            expected="points of a polygon, polygons of an object, and objects counted from "
                            "0, in order", got=str(index[:8].tolist()),
                            fix="sort the points by object, polygon, point")
        masks = np.zeros((len(objects), int(height), int(width)), np.int8)
        for k in objects:
            members = [points[(index[:, 2] == k) & (index[:, 1] == p)] for o, p in groups if o == k]
            masks[k] = fill(members, int(height), int(width))
        out.append(masks)
    return TensorBuffer(out, poly.shape)


_to_mask_op = define_host(_POLYGON + "_to_mask(poly, poly_index, image_size) -> y", host=_to_mask,
                          shape=lambda poly: poly.shape, dtype=lambda: dt.tensor_buffer)


@front("ObjectSegmPolygonToMask")
def object_segmentation_polygon_to_mask(poly, poly_index, image_size):
    """Convert outlines to masks.

    Args:
        poly: points, a TensorBuffer of shape (N,) of arrays (p, 2).
        poly_index: indices of point, polygon, and object, a TensorBuffer of shape (N,) of arrays (p, 3).
        image_size: width and height of the images, of shape (N, 2).

    Returns: a TensorBuffer of int8 masks (objects, height, width), with 1 inside the object.
    """
    what = _POLYGON + "_to_mask"
    _need(what, poly, image_size, "image_size")
    _need(what, poly_index, image_size, "image_size")
    return _to_mask_op(poly, poly_index, image_size)


__all__ = ["object_bbox_flip", "object_bbox_scale", "object_segmentation_polygon_flip",
           "object_segmentation_polygon_scale", "object_segmentation_polygon_to_mask"]
