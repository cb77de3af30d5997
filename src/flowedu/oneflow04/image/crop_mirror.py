"""flow.image.CropMirrorNormalize: crops, mirrors, and normalizes images, from uint8 to floats (OneFlow 0.4).
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError, UnsupportedError
from flowedu.errors.buffers import wrong_dtype
from flowedu.oneflow04.functions.tensor_buffers import need_buffer, need_value
from flowedu.oneflow04.image import _pixels
from flowedu.oneflow04.image.decode import check_color_space
from flowedu.oneflow04.image.pictures import allocate_output, channel_numbers, check_pictures
from flowedu.oneflow04.image.threads import each, much
from flowedu.ops.front import front
from flowedu.ops.host import anew, define_host

WHAT = "image.CropMirrorNormalize"


def check_room(height: int, width: int, h: int, w: int, where: str) -> None:
    """Raise ShapeError unless a crop of h x w pixels fits into an image."""
    if h > height or w > width:
        raise ShapeError(f"{WHAT}: {where} is smaller than the crop",
                         expected=f"at least {h} x {w} pixels (high x wide)",
                         got=f"{height} x {width}", fix="resize first, or crop less")


def _crop(a: np.ndarray, h: int, w: int, at_y: float, at_x: float, where: str) -> np.ndarray:
    """Return a view of h x w pixels of (H, W, C) at a relative position; a size of 0 keeps the axis."""
    height, width = a.shape[:2]
    h, w = h or height, w or width
    check_room(height, width, h, w, where)
    y, x = int((height - h) * at_y), int((width - w) * at_x)
    return a[y:y + h, x:x + w]


@anew
def _run(xs: tuple, channels: int, layout: str, crop_h: int, crop_w: int, crop_pos_y: float,
         crop_pos_x: float, mean: tuple, std: tuple, dtype: dt.dtype) -> np.ndarray:
    x = xs[0]
    many = isinstance(x, TensorBuffer)
    if many:
        check_pictures(WHAT, x, channels)
    # Result for each grey level.
    table = np.arange(256, dtype=dtype.numpy) - np.array(mean, dtype.numpy)[:, None]
    table *= 1 / np.array(std, dtype.numpy)[:, None]
    mirror = xs[1].ravel() if len(xs) > 1 else np.zeros(len(x), np.int8)
    out = allocate_output(_shape((x.spec if many else x,), channels, layout, crop_h, crop_w), dtype)
    pictures = out if layout == "NHWC" else out.transpose(0, 2, 3, 1)

    def fill(i: int) -> None:
        picture = x[i]
        if picture.dtype != np.uint8:
            raise wrong_dtype(WHAT, x.where(i), dt.uint8, picture.dtype)
        piece = _crop(picture, crop_h, crop_w, crop_pos_y, crop_pos_x, x.where(i) if many else "the batch")
        piece = piece[:, ::-1] if mirror[i] else piece
        _pixels.look_up(piece, table, pictures[i])

    list(each(fill, range(len(out)), much(out.size)))
    return out


def _shape(xs: tuple, channels: int, layout: str, crop_h: int, crop_w: int) -> tuple[int, ...]:
    n, *rest = xs[0].shape
    h, w = (crop_h, crop_w) if not rest else (crop_h or rest[0], crop_w or rest[1])
    return (n, channels, h, w) if layout == "NCHW" else (n, h, w, channels)


_op = define_host("crop_mirror_normalize(*xs, channels, layout, crop_h, crop_w, crop_pos_y, crop_pos_x, "
                  "mean, std, dtype) -> y", host=_run, shape=_shape, dtype=lambda dtype: dtype)


@front("CropMirrorNormalize")
def CropMirrorNormalize(input_blob, mirror_blob=None, color_space: str = "BGR", output_layout: str = "NCHW",
                        crop_h: int = 0, crop_w: int = 0, crop_pos_y: float = 0.5, crop_pos_x: float = 0.5,
                        mean: Sequence[float] = (0.0,), std: Sequence[float] = (1.0,),
                        output_dtype: dt.dtype = dt.float32):
    """Crop images, mirror some of them, and compute (image - mean) / std as one float tensor.

    Args:
        input_blob: uint8 of shape (N, H, W, C), or a TensorBuffer of uint8 images, which requires crop_h and
            crop_w.
        mirror_blob: int8 of shape (N,), from flow.random.CoinFlip. Images with a value other than 0 are
            mirrored. None mirrors no image.
        color_space: "BGR", "RGB", or "GRAY". It determines the number of channels and the order of mean and
            std; the image is not converted.
        output_layout: "NCHW" or "NHWC".
        crop_h: the height of the crop in pixels; 0 keeps the height.
        crop_w: the width of the crop in pixels; 0 keeps the width.
        crop_pos_y: the vertical position of the crop, from 0 (top) to 1; 0.5 is the middle.
        crop_pos_x: the horizontal position of the crop, from 0 (left) to 1.
        mean: one mean, or one per channel.
        std: one standard deviation, or one per channel.
        output_dtype: float32 or float64.
    """
    spec = need_value(WHAT, input_blob)
    channels = check_color_space(WHAT, color_space)
    if spec.dtype is dt.tensor_buffer:
        need_buffer(WHAT, input_blob, rank=1)
        if crop_h < 1 or crop_w < 1:
            raise ArgumentError(f"{WHAT}: images of many sizes need crop_h and crop_w",
                                expected="both above zero",
                                got=f"crop_h={crop_h}, crop_w={crop_w}",
                                fix="crop_h=224, crop_w=224, say; or Resize first")
    elif spec.dtype is not dt.uint8:
        raise UnsupportedError(f"{WHAT}: the input has another element type",
                               expected="uint8 or a TensorBuffer",
                               got=spec.dtype.name, fix="pass what flow.image.Resize or decode gives")
    elif len(spec.shape) != 4 or spec.shape[3] != channels:
        raise ShapeError(f"{WHAT}: the input is not a batch of such images",
                         expected=f"(N, H, W, {channels}) for color_space={color_space}", got=str(spec.shape),
                         fix="color_space says how many channels there are: GRAY 1, RGB and BGR 3")
    else:
        check_room(*spec.shape[1:3], crop_h, crop_w, "the batch")
    if mirror_blob is not None and need_value(WHAT, mirror_blob).size != spec.shape[0]:
        raise ShapeError(f"{WHAT}: mirror_blob does not fit",
                         expected=f"one number for each of {spec.shape[0]} images",
                         got=str(mirror_blob.spec), fix=f"flow.random.CoinFlip(batch_size={spec.shape[0]})")
    if output_layout not in ("NCHW", "NHWC") or not 0 <= crop_pos_y <= 1 or not 0 <= crop_pos_x <= 1:
        raise ArgumentError(f"{WHAT}: an argument does not fit",
                            expected='output_layout "NCHW" or "NHWC", crop_pos_y and '
                            "crop_pos_x from 0 to 1", got=f"{output_layout!r}, {crop_pos_y}, {crop_pos_x}",
                            fix="leave them out for NCHW, from the middle")
    if output_dtype not in (dt.float32, dt.float64):
        raise UnsupportedError(f"{WHAT}: output_dtype is not supported",
                               expected="flow.float32 or flow.float64",
                               got=repr(output_dtype), fix="flow.cast the result")
    return _op(*([input_blob] if mirror_blob is None else [input_blob, mirror_blob]), channels=channels,
               layout=output_layout, crop_h=int(crop_h), crop_w=int(crop_w), crop_pos_y=float(crop_pos_y),
               crop_pos_x=float(crop_pos_x), mean=channel_numbers(WHAT, "mean", mean, channels),
               std=channel_numbers(WHAT, "std", std, channels), dtype=output_dtype)
