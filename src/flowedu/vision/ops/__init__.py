"""Bounding boxes in images, and blocks: `ops.nms(boxes, scores, 0.5)`, `ops.roi_align(x, boxes, 7)`.

Names, arguments, and results are torchvision's (flowvision has the same). Boxes are rows (x1, y1, x2, y2) of
pixels.
"""
from flowedu.diagnostics.lazy_imports import imported
from flowedu.vision.ops.blocks import (
    MLP, Conv2dNormActivation, FrozenBatchNorm2d, Permute, SqueezeExcitation, StochasticDepth,
    stochastic_depth
)
from flowedu.vision.ops.boxes import (
    batched_nms, box_area, box_convert, box_iou, clip_boxes_to_image, generalized_box_iou, masks_to_boxes,
    nms, remove_small_boxes
)
from flowedu.vision.ops.focal import sigmoid_focal_loss
from flowedu.vision.ops.roi import RoIAlign, roi_align

imported(__name__)

__all__ = ["Conv2dNormActivation", "FrozenBatchNorm2d", "MLP", "Permute", "RoIAlign", "SqueezeExcitation",
           "StochasticDepth", "batched_nms", "box_area", "box_convert", "box_iou", "clip_boxes_to_image",
           "generalized_box_iou", "masks_to_boxes", "nms", "remove_small_boxes", "roi_align",
           "sigmoid_focal_loss", "stochastic_depth"]
