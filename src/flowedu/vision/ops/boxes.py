"""Bounding boxes: areas, overlaps, and non-maximum suppression. Rows are (x1, y1, x2, y2) by default."""
from __future__ import annotations

import numpy as np

import flowedu as flow
from flowedu.errors import ArgumentError, NotATensorError, ShapeError
from flowedu.tensor import Tensor, from_numpy

FORMS = ("xyxy", "xywh", "cxcywh")


def checked(what: str, boxes, name: str = "boxes") -> Tensor:
    """Return boxes after checking that they are a tensor (N, 4); raise NotATensorError or ShapeError."""
    if not isinstance(boxes, Tensor):
        raise NotATensorError(what, boxes, name)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ShapeError(f"{what}: {name} are no boxes", expected="(N, 4): x1, y1, x2, y2",
                         got=str(tuple(boxes.shape)), fix=f"{name}.view(-1, 4)")
    return boxes


def box_area(boxes: Tensor) -> Tensor:
    """Return the areas (N,) of boxes.

    Args:
        boxes: (N, 4).
    """
    x1, y1, x2, y2 = _wide(checked("box_area", boxes)).unbind(1)
    return (x2 - x1) * (y2 - y1)


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """Convert boxes to another format.

    Args:
        boxes: (N, 4).
        in_fmt: "xyxy" (corners), "xywh" (corner and size), or "cxcywh" (center and size).
        out_fmt: the same.
    """
    checked("box_convert", boxes)
    for name, form in (("in_fmt", in_fmt), ("out_fmt", out_fmt)):
        if form not in FORMS:
            raise ArgumentError(f"box_convert: {name}", expected=", ".join(map(repr, FORMS)), got=repr(form),
                                fix='"xyxy" is what the other functions take')
    if in_fmt == out_fmt:
        return boxes.clone()
    a, b, c, d = boxes.unbind(1)
    if in_fmt == "xywh":
        c, d = a + c, b + d
    elif in_fmt == "cxcywh":
        corner = a - 0.5 * c, b - 0.5 * d
        c, d = a + 0.5 * c, b + 0.5 * d
        a, b = corner
    if out_fmt == "xywh":
        c, d = c - a, d - b
    elif out_fmt == "cxcywh":
        center = (a + c) / 2, (b + d) / 2
        c, d = c - a, d - b
        a, b = center
    return flow.stack((a, b, c, d), 1)


def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Return the intersection over union (N, M) of all pairs of boxes; NaN for two boxes without area.

    Args:
        boxes1: (N, 4).
        boxes2: (M, 4).
    """
    inter, union = _overlap("box_iou", boxes1, boxes2)
    return inter / union


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Return the generalized IoU (N, M) of all pairs of boxes (Rezatofighi et al., 2019).

    It is box_iou minus the uncovered share of the smallest box around both.

    Args:
        boxes1: (N, 4).
        boxes2: (M, 4).
    """
    inter, union = _overlap("generalized_box_iou", boxes1, boxes2)
    a, b = _wide(boxes1).unsqueeze(1), _wide(boxes2).unsqueeze(0)
    size = (flow.maximum(a[..., 2:], b[..., 2:]) - flow.minimum(a[..., :2], b[..., :2])).clamp(min=0)
    around = size[..., 0] * size[..., 1]
    return inter / union - (around - union) / around


def _overlap(what: str, boxes1: Tensor, boxes2: Tensor) -> tuple[Tensor, Tensor]:
    """Return the areas (N, M) of intersections and unions."""
    a, b = _wide(checked(what, boxes1, "boxes1")), _wide(checked(what, boxes2, "boxes2"))
    low = flow.maximum(a[:, None, :2], b[None, :, :2])
    size = (flow.minimum(a[:, None, 2:], b[None, :, 2:]) - low).clamp(min=0)
    inter = size[..., 0] * size[..., 1]
    return inter, box_area(a)[:, None] + box_area(b) - inter


def _wide(boxes: Tensor) -> Tensor:
    """Return boxes in a dtype that can represent their products."""
    if not boxes.dtype.is_floating_point:
        return boxes.long()
    return boxes.float() if boxes.dtype is flow.float16 else boxes


def clip_boxes_to_image(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """Clip boxes at the edges of an image.

    Args:
        boxes: (N, 4).
        size: (height, width) of the image.
    """
    checked("clip_boxes_to_image", boxes)
    x1, y1, x2, y2 = boxes.unbind(1)
    height, width = size
    return flow.stack((x1.clamp(0, width), y1.clamp(0, height), x2.clamp(0, width), y2.clamp(0, height)), 1)


def remove_small_boxes(boxes: Tensor, min_size: float) -> Tensor:
    """Return the int64 indices of boxes that are large enough.

    Args:
        boxes: (N, 4).
        min_size: smallest width and height.
    """
    a = checked("remove_small_boxes", boxes).detach().cpu().numpy()
    return from_numpy(np.flatnonzero((a[:, 2] - a[:, 0] >= min_size) & (a[:, 3] - a[:, 1] >= min_size)))


def masks_to_boxes(masks: Tensor) -> Tensor:
    """Return the float32 boxes (N, 4) around the nonzero elements of masks.

    Args:
        masks: (N, H, W).
    """
    if not isinstance(masks, Tensor):
        raise NotATensorError("masks_to_boxes", masks, "masks")
    a = masks.detach().cpu().numpy() != 0
    if a.ndim != 3 or not a.any((1, 2)).all():
        raise ShapeError("masks_to_boxes: not every mask has a box",
                         expected="(N, H, W), each with one that is not 0",
                         got=f"{tuple(masks.shape)}", fix="masks[masks.flatten(1).any(1)]")
    boxes = []
    for m in a:
        y, x = np.flatnonzero(m.any(1)), np.flatnonzero(m.any(0))
        boxes.append((x[0], y[0], x[-1], y[-1]))
    return from_numpy(np.array(boxes, np.float32).reshape(-1, 4))


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the int64 indices of the boxes to keep, the best first (non-maximum suppression).

    Of boxes that overlap by more than iou_threshold, the one with the highest score is kept.

    Args:
        boxes: (N, 4).
        scores: (N,).
        iou_threshold: largest overlap.
    """
    return _suppress("nms", boxes, scores, None, iou_threshold)


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """Return the indices of non-maximum suppression among boxes of the same class; see nms.

    Args:
        boxes: (N, 4).
        scores: (N,).
        idxs: (N,), class of each box.
        iou_threshold: largest overlap.
    """
    return _suppress("batched_nms", boxes, scores, idxs, iou_threshold)


def _suppress(what: str, boxes: Tensor, scores: Tensor, classes: Tensor | None, threshold: float) -> Tensor:
    checked(what, boxes)
    for name, x in (("scores", scores), ("idxs", classes)):
        if x is not None and (not isinstance(x, Tensor) or tuple(x.shape) != (len(boxes),)):
            raise ShapeError(f"{what}: {name} do not fit the boxes", expected=f"a tensor ({len(boxes)},)",
                             got=str(tuple(x.shape)) if isinstance(x, Tensor) else type(x).__name__)
    a = _wide(boxes).detach().cpu().numpy()
    order = np.argsort(-scores.detach().cpu().numpy().astype(np.float64), kind="stable")
    kind = np.zeros(len(a)) if classes is None else classes.cpu().numpy()
    area = box_area(boxes).detach().cpu().numpy()
    indices = []
    while order.size:
        best, order = order[0], order[1:]
        indices.append(best)
        size = np.minimum(a[best, 2:], a[order, 2:]) - np.maximum(a[best, :2], a[order, :2])
        inter = np.clip(size, 0, None).prod(1)
        with np.errstate(invalid="ignore"):              # boxes without area
            over = (inter / (area[best] + area[order] - inter)).astype(np.float64) > threshold
        order = order[~(over & (kind[best] == kind[order]))]
    return from_numpy(np.array(indices, np.int64))
