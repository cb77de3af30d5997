"""Box functions in oneflow's top-level form: `flow.nms` is ops.nms, `flow.roi_align` takes numbers."""
from __future__ import annotations

from flowedu.diagnostics.lazy_imports import imported
from flowedu.tensor import Tensor
from flowedu.vision.ops import roi
from flowedu.vision.ops.boxes import nms

__all__ = ["nms", "roi_align"]


def roi_align(x: Tensor, rois: Tensor, spatial_scale: float, pooled_h: int, pooled_w: int, sampling_ratio: int,
              aligned: bool) -> Tensor:
    """(K, C, pooled_h, pooled_w): of each of K boxes the features below it, as flow.vision.ops.roi_align has them.

    Args:
        x: (N, C, H, W). rois: (K, 5), the number of the picture and x1, y1, x2, y2.
        spatial_scale: from the boxes' coordinates to those of the features.
        sampling_ratio: samples in y and in x for each element; 0 or less: as many as pixels lie below it.
        aligned: pixels are points in the middle of squares, so boxes are moved by half a pixel.
    """
    return roi.roi_align(x, rois, (pooled_h, pooled_w), spatial_scale, sampling_ratio, aligned)


imported(__name__)
