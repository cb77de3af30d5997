"""RoIAlign (He et al., 2017): the part of a feature map in a box, resampled to a fixed size.

Bilinear interpolation and the means over samples are separable in y and x. The result for a box is Y @
features @ X^T, with a matrix Y for the rows and a matrix X for the columns of the box.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import flowedu as flow
from flowedu import nn
from flowedu.errors import ArgumentError, NotATensorError, ShapeError
from flowedu.tensor import Tensor, from_numpy
from flowedu.vision.ops.boxes import checked


def roi_align(input: Tensor, boxes: Tensor | Sequence[Tensor], output_size: int | tuple[int, int],
              spatial_scale: float = 1.0, sampling_ratio: int = -1, aligned: bool = False) -> Tensor:
    """Return the features (K, C, *output_size) in each of K boxes; boxes get no gradient.

    Args:
        input: (N, C, H, W).
        boxes: (K, 5), the index of the image and x1, y1, x2, y2; or a list of N tensors (L, 4).
        output_size: an int or (height, width).
        spatial_scale: ratio of the coordinates of the features to those of the boxes, such as 1/16.
        sampling_ratio: samples per element along each axis; 0 or less: one per pixel.
        aligned: treat pixels as centers of squares, which moves boxes by half a pixel.

    Raises:
        NotATensorError, ShapeError, ArgumentError: arguments that do not fit.
    """
    if not isinstance(input, Tensor):
        raise NotATensorError("roi_align", input, "input")
    if input.ndim != 4:
        raise ShapeError("roi_align: these are no feature maps", expected="(N, C, H, W)",
                         got=str(tuple(input.shape)), fix="input.unsqueeze(0)")
    rows = _rows(boxes, input.shape[0])
    size = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
    parts: dict[int, Tensor] = {}
    for image in np.unique(rows[:, 0]).astype(int):
        mine = np.flatnonzero(rows[:, 0] == image)
        both = (_weights(rows[mine], axis, input.shape[3 - axis], size[1 - axis], spatial_scale,
                         sampling_ratio, aligned)
                for axis in (1, 0))
        y, x = (from_numpy(w[:, None]).to(device=input.device, dtype=input.dtype) for w in both)
        values = y.matmul(input[int(image)].unsqueeze(0)).matmul(x.transpose(2, 3))
        parts.update(zip(mine.tolist(), values.unbind(0)))
    if not parts:
        return input.new_zeros((0, input.shape[1], *size))
    return flow.stack([parts[k] for k in range(len(rows))])


def _rows(boxes, pictures: int) -> np.ndarray:
    """Return (K, 5) in float64: the index of the image, and the box."""
    if isinstance(boxes, (list, tuple)):
        if len(boxes) != pictures:
            raise ShapeError("roi_align: not as many lists of boxes as images",
                             expected=f"{pictures} tensors (L, 4)",
                             got=f"{len(boxes)}", fix="an empty tensor (0, 4) for an image without boxes")
        arrays = [checked("roi_align", b).detach().cpu().numpy().astype(np.float64) for b in boxes]
        return np.concatenate([np.c_[np.full(len(a), float(i)), a]
                               for i, a in enumerate(arrays)]) if arrays else \
            np.zeros((0, 5))
    if not isinstance(boxes, Tensor):
        raise NotATensorError("roi_align", boxes, "boxes")
    if boxes.ndim != 2 or boxes.shape[1] != 5:
        raise ShapeError("roi_align: boxes", expected="(K, 5): the image's index, x1, y1, x2, y2; or a list "
                         "of (L, 4)", got=str(tuple(boxes.shape)))
    a = boxes.detach().cpu().numpy().astype(np.float64)
    if len(a) and not ((a[:, 0] >= 0) & (a[:, 0] < pictures)).all():
        raise ArgumentError("roi_align: a box of a missing image", expected=f"numbers 0 to {pictures - 1}",
                            got=str(a[:, 0].tolist())[:60])
    return a


def _weights(rows, axis: int, extent: int, bins: int, scale: float, ratio: int, aligned: bool) -> np.ndarray:
    """Return the weights (K, bins, extent) of the pixels along one axis (0: x, 1: y), averaged over samples.
    """
    shift = 0.5 if aligned else 0.0
    start, end = rows[:, 1 + axis] * scale - shift, rows[:, 3 + axis] * scale - shift
    values = np.zeros((len(rows), bins, extent))
    for k, (low, length) in enumerate(zip(start, end - start)):
        step = (length if aligned else max(length, 1.0)) / bins
        count = ratio if ratio > 0 else max(math.ceil(step), 0)
        for b, i in np.ndindex(bins, count):
            at = low + (b + (i + 0.5) / count) * step
            if -1.0 <= at <= extent:                     # other weights are 0
                at = min(max(at, 0.0), extent - 1.0)
                left = int(at)
                values[k, b, left] += (1 - (at - left)) / count
                if at > left:
                    values[k, b, left + 1] += (at - left) / count
    return values


class RoIAlign(nn.Module):
    """roi_align as a layer: (input, rois) to (K, C, *output_size).

    Args:
        output_size: an int or (height, width).
        spatial_scale: ratio of the coordinates of the features to those of the boxes.
        sampling_ratio: samples per element along each axis; 0 or less: one per pixel.
        aligned: treat pixels as centers of squares.
    """

    def __init__(self, output_size: int | tuple[int, int], spatial_scale: float, sampling_ratio: int,
                 aligned: bool = False):
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale
        self.sampling_ratio, self.aligned = sampling_ratio, aligned

    def forward(self, input: Tensor, rois: Tensor | Sequence[Tensor]) -> Tensor:
        return roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)

    def extra_repr(self) -> str:
        return (f"output_size={self.output_size}, spatial_scale={self.spatial_scale}, "
                f"sampling_ratio={self.sampling_ratio}, aligned={self.aligned}")
