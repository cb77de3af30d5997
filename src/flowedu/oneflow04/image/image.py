"""Functions that turn encoded image files into a batch for a network: flow.image (OneFlow 0.4).

    bytes (N,)  --decode-->  images (N,) HWC  --Resize-->  uint8 (N, H, W, C)
    --CropMirrorNormalize-->  float (N, C, H, W)

Before Resize every image has its own size, so the values are TensorBuffers. Channels are in the order blue,
green, red unless color_space="RGB" is given.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.layers.context import gen_seed
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.errors.buffers import wrong_dtype
from flowedu.oneflow04.functions.tensor_buffers import need_buffer, sizes
from flowedu.oneflow04.image.crop_mirror import CropMirrorNormalize
from flowedu.oneflow04.image.decode import check_color_space, check_crop, crop_window, decode_images
from flowedu.oneflow04.image.pictures import (
    FLIPS,
    channel_numbers,
    check_pictures,
    flip_codes,
    pixel_type,
    with_codes,
)
from flowedu.oneflow04.image.resize import Resize, target_resize
from flowedu.ops.front import front
from flowedu.ops.host import define_host


# ---- decode
def _decode(x: TensorBuffer, dtype: dt.dtype, color_space: str) -> TensorBuffer:
    for i, a in enumerate(x.items):
        if a.dtype.itemsize != 1:
            raise DTypeError(f"image.decode: {x.where(i)} does not hold bytes", expected="uint8 or int8",
                             got=a.dtype.name, fix="np.frombuffer(data, np.uint8) of the file's bytes")
    found = decode_images([a.ravel() for a in x.items], color_space, lambda i: f"image.decode: {x.where(i)}")
    return TensorBuffer([a.astype(dtype.numpy, copy=False) for a in found], x.shape)


_decode_op = define_host("image_decode(x, *, dtype, color_space) -> y", host=_decode, shape=lambda x: x.shape,
                         dtype=lambda: dt.tensor_buffer)


@front("ImageDecode")
def decode(images_bytes_buffer, dtype: dt.dtype = dt.uint8, color_space: str = "BGR"):
    """Decode the bytes of PNG, JPEG, or BMP files. Requires Pillow.

    Args:
        images_bytes_buffer: a TensorBuffer of bytes.
        dtype: uint8, or float32 with values from 0 to 255.
        color_space: "BGR", "RGB", or "GRAY".

    Returns: a TensorBuffer of images (height, width, channels).

    Raises:
        DataError: the bytes are damaged.
    """
    need_buffer("image.decode", images_bytes_buffer)
    check_color_space("image.decode", color_space)
    return _decode_op(images_bytes_buffer, dtype=pixel_type("image.decode", dtype),
                      color_space=color_space.upper())


# ---- one tensor from images of several sizes
def _align(x: TensorBuffer, shape: tuple, dtype: dt.dtype, alignment: int) -> np.ndarray:
    what = "image.batch_align"
    check_pictures(what, x, shape[2])
    for i, a in enumerate(x.items):
        if a.dtype != dtype.numpy:
            raise wrong_dtype(what, x.where(i), dtype, a.dtype)

    def up(n: int) -> int:
        return -(-n // alignment) * alignment if alignment else n

    height, width = (up(max((a.shape[k] for a in x.items), default=0)) for k in (0, 1))
    if height * width > shape[0] * shape[1]:
        tall = max(range(x.size), key=lambda i: x.items[i].size)
        raise ShapeError(f"{what}: the batch does not fit into shape",
                         expected=f"at most {shape[0] * shape[1]} pixels each, shape={shape}",
                         got=f"({height}, {width}, {shape[2]}) for all; the largest is {x.where(tall)}, "
                         f"{x.items[tall].shape}", fix="raise shape, or resize the images first")
    out = np.zeros((x.size, height, width, shape[2]), dtype.numpy)
    for y, a in zip(out, x.items):
        y[:a.shape[0], :a.shape[1]] = a
    return out


_align_op = define_host("image_batch_align(x, *, shape, dtype, alignment) -> y", host=_align, dynamic=["y"],
                        shape=lambda x, shape: x.shape + shape, dtype=lambda dtype: dtype)


@front("ImageBatchAlign")
def batch_align(images, shape: Sequence[int], dtype: dt.dtype, alignment: int):
    """Store images of several sizes in one dynamic tensor, with zeros to the right of and below each image.

    Args:
        images: a TensorBuffer of shape (N,) of images.
        shape: the largest size of an image after rounding, (H, W, C).
        dtype: the dtype of the images, uint8 or float32.
        alignment: the height and width of the batch are rounded up to a multiple of this power of two; 0 does
            not round.

    Returns: a tensor of shape (N, H, W, C) with the largest height and width of the images.
    """
    what = "image.batch_align"
    need_buffer(what, images, rank=1)
    if len(sizes(what, "shape", shape)) != 3:
        raise ShapeError(f"{what}: shape is not that of an image", expected="(H, W, C)",
                         got=str(tuple(shape)), fix="leave the batch axis out of shape")
    if type(alignment) is not int or alignment < 0 or alignment & (alignment - 1):
        raise ArgumentError(f"{what}: alignment must be a power of two, or 0", expected="0, 1, 2, 4, 8, ...",
                            got=repr(alignment), fix="alignment=16, say")
    return _align_op(images, shape=sizes(what, "shape", shape), dtype=pixel_type(what, dtype),
                     alignment=alignment)


# ---- transformations
def _normalize(x: TensorBuffer, std: tuple, mean: tuple) -> TensorBuffer:
    what = "image.normalize"
    check_pictures(what, x, len(std))
    for i, a in enumerate(x.items):
        if a.dtype.kind != "f":
            raise wrong_dtype(what, x.where(i), dt.float32, a.dtype)
    return x.map(lambda a: ((a - np.array(mean, a.dtype)) / np.array(std, a.dtype)))


_normalize_op = define_host("image_normalize(x, *, std, mean) -> y", host=_normalize, shape=lambda x: x.shape,
                            dtype=lambda: dt.tensor_buffer)


@front("ImageNormalize")
def normalize(image, std: Sequence[float], mean: Sequence[float]):
    """Compute (image - mean) / std per channel, for images of floats.

    Args:
        image: a TensorBuffer of images.
        std: one standard deviation per channel. This argument comes before `mean`.
        mean: one mean per channel.
    """
    what = "image.normalize"
    need_buffer(what, image)
    std, mean = channel_numbers(what, "std", std, 0), channel_numbers(what, "mean", mean, 0)
    if len(std) != len(mean):
        raise ArgumentError(f"{what}: std and mean differ in length",
                            expected="one number per channel in each",
                            got=f"{len(std)} and {len(mean)}",
                            fix="std=(1.0, 1.0, 1.0), mean=(0.0, 0.0, 0.0)")
    return _normalize_op(image, std=std, mean=mean)


def _flip(xs: tuple, code: int | None) -> TensorBuffer:
    x = xs[0]
    check_pictures("image.flip", x)
    codes = flip_codes("image.flip", xs[1] if code is None else code, x.size)
    return TensorBuffer([np.flip(a, FLIPS[c]).copy() for a, c in zip(x.items, codes)], x.shape)


_flip_op = define_host("image_flip(*xs, code=None) -> y", host=_flip, shape=lambda xs: xs[0].shape,
                       dtype=lambda: dt.tensor_buffer)


@front("ImageFlip")
def flip(image, flip_code):
    """Flip images.

    Args:
        image: a TensorBuffer of images.
        flip_code: 0 keeps an image, 1 flips left and right, 16 flips up and down, 17 flips both. An int, or
            int8 of shape (N,), such as the result of flow.random.CoinFlip.
    """
    need_buffer("image.flip", image)
    return with_codes("image.flip", _flip_op, (image,), flip_code)


def _random_crop(x: TensorBuffer, state, area: tuple, ratio: tuple, num_attempts: int) -> TensorBuffer:
    check_pictures("image.random_crop", x)
    return x.map(lambda a: a[crop_window(state, a.shape[0], a.shape[1], area, ratio, num_attempts)].copy())


_random_crop_op = define_host("image_random_crop(x, *, area, ratio, num_attempts, seed) -> y",
                              host=_random_crop, shape=lambda x: x.shape, dtype=lambda: dt.tensor_buffer,
                              state=lambda seed: np.random.default_rng(gen_seed() if seed is None else seed))


@front("ImageRandomCrop")
def random_crop(input_blob, num_attempts: int = 10, seed: int | None = None,
                random_area: Sequence[float] | None = None,
                random_aspect_ratio: Sequence[float] | None = None):
    """Return a random crop of each image. The crops differ in every run.

    Args:
        input_blob: a TensorBuffer of images.
        num_attempts: the number of attempts to draw a crop that fits.
        seed: the seed of the crops; None derives it from flow.random.seed.
        random_area: the range of the area, as a fraction of the image; None is [0.08, 1.0].
        random_aspect_ratio: the range of the ratio of width to height; None is [0.75, 1.333333].
    """
    what = "image.random_crop"
    need_buffer(what, input_blob)
    area, ratio = check_crop(what, random_area or [0.08, 1.0], random_aspect_ratio or [0.75, 1.333333],
                             num_attempts)
    return _random_crop_op(input_blob, area=area, ratio=ratio, num_attempts=num_attempts, seed=seed)


resize, crop_mirror_normalize = Resize, CropMirrorNormalize

__all__ = ["CropMirrorNormalize", "Resize", "batch_align", "crop_mirror_normalize", "decode", "flip",
           "normalize", "random_crop", "resize", "target_resize"]
