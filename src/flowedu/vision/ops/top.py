"""Box functions with the signatures of oneflow's top level: `flow.nms` and `flow.roi_align`."""
from __future__ import annotations

from flowedu.diagnostics.lazy_imports import imported
from flowedu.tensor import Tensor
from flowedu.vision.ops import roi
from flowedu.vision.ops.boxes import nms

__all__ = ["nms", "roi_align"]


def roi_align(x: Tensor, rois: Tensor, spatial_scale: float, pooled_h: int, pooled_w: int,
              sampling_ratio: int, aligned: bool) -> Tensor:
    """Return the features (K, C, pooled_h, pooled_w) in each of K boxes; see flow.vision.ops.roi_align.

    Args:
        x: (N, C, H, W).
        rois: (K, 5), the index of the image and x1, y1, x2, y2.
        spatial_scale: ratio of the coordinates of the features to those of the boxes.
        pooled_h: height of the result.
        pooled_w: width of the result.
        sampling_ratio: samples per element along each axis; 0 or less: one per pixel.
        aligned: treat pixels as centers of squares.
    """
    return roi.roi_align(x, rois, (pooled_h, pooled_w), spatial_scale, sampling_ratio, aligned)


imported(__name__)
