"""Deterministic functions from one image to one image.

An image is a Pillow image, an ndarray (H, W) or (H, W, C), or a tensor (..., C, H, W). The result is of the
same kind, unless the function's name indicates otherwise. Pillow is needed for Pillow images only.
"""
from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, CallError, ShapeError
from flowedu.tensor import Tensor, from_numpy
from flowedu.utils.pictures import pillow
from flowedu.vision.transforms import array, blur, pil, tensor
from flowedu.vision.transforms.resample import InterpolationMode, check_mode, new_size

PAD_MODES = ("constant", "edge", "reflect", "symmetric")


def is_pil(img) -> bool:
    """Return True for a Pillow image, without importing Pillow."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(img, module.Image)


def _kind(what: str, img):
    """Return the module with the functions for this kind of image, or raise CallError or ShapeError.
    """
    if isinstance(img, Tensor):
        if img.ndim < 2:
            raise ShapeError(f"{what}: the tensor is not an image", expected="(..., C, H, W)",
                             got=str(tuple(img.shape)))
        return tensor
    if isinstance(img, np.ndarray):
        if img.ndim not in (2, 3):
            raise ShapeError(f"{what}: the array is not an image", expected="(H, W) or (H, W, C)",
                             got=str(img.shape), fix="for a batch, a tensor of shape (N, C, H, W)")
        return array
    if is_pil(img):
        return pil
    raise CallError(f"{what}: this is not an image", got=type(img).__name__,
                    expected="a Pillow image, an ndarray (H, W, C) or a tensor (..., C, H, W)")


def pair(what: str, name: str, size) -> tuple[int, int]:
    """Return (height, width) from a number or two; raise ArgumentError (a ValueError)."""
    numbers = tuple(size) if isinstance(size, Sequence) else (size,)
    if len(numbers) not in (1, 2) or any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1
                                         for n in numbers):
        raise ArgumentError(f"{what}: {name} does not fit",
                            expected="a number above zero, or (height, width)",
                            got=repr(size), fix=f"{name}=(224, 224), say")
    return int(numbers[0]), int(numbers[-1])


# ---- conversions
def to_tensor(pic) -> Tensor:
    """Convert a Pillow image or ndarray (H, W[, C]) to a tensor (C, H, W): uint8 becomes float32 in 0 to 1.

    Args:
        pic: image; other dtypes than uint8 are unchanged.

    Raises:
        CallError (a TypeError): anything else, including tensors.
    """
    if is_pil(pic):
        a = _pixels(pic)
    elif isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ShapeError("to_tensor: pic should be 2/3 dimensional", expected="(H, W) or (H, W, C)",
                             got=str(pic.shape))
        a = pic
    else:
        raise CallError(f"to_tensor: pic should be PIL Image or ndarray. Got {type(pic).__name__}",
                        expected="a Pillow image or an ndarray (H, W, C)", got=type(pic).__name__,
                        fix="a tensor needs no ToTensor; uint8 to float: convert_image_dtype(x)"
                        if isinstance(pic, Tensor) else "np.asarray(pic)")
    a = a[None] if a.ndim == 2 else a.transpose(2, 0, 1)
    if a.dtype == np.uint8:
        return from_numpy(np.divide(a, np.float32(255), out=np.empty(a.shape, np.float32)))
    return from_numpy(np.ascontiguousarray(a))


def _pixels(img) -> np.ndarray:
    """Return the pixels of a Pillow image: 1-bit as 0 and 255, 16-bit as int32, palettes as indices.
    """
    a = np.asarray(img)
    if img.mode == "1":
        return a.astype(np.uint8) * np.uint8(255)
    return a.astype(np.int32) if img.mode.startswith("I") else a


def pil_to_tensor(pic) -> Tensor:
    """Convert a Pillow image to a tensor (C, H, W) with the same values, usually uint8.

    Args:
        pic: Pillow image; others raise CallError (a TypeError).
    """
    if not is_pil(pic):
        raise CallError(f"pil_to_tensor: pic should be PIL Image. Got {type(pic).__name__}",
                        expected="a Pillow image",
                        got=type(pic).__name__, fix="to_tensor(pic) also accepts ndarrays")
    a = _pixels(pic)
    return from_numpy(np.array(a[None] if a.ndim == 2 else a.transpose(2, 0, 1), order="C"))


def convert_image_dtype(image: Tensor, dtype: dt.dtype = dt.float32) -> Tensor:
    """Convert an image tensor to another dtype, scaled: integers fill their range, floats are 0 to 1.

    Args:
        image: tensor.
        dtype: dtype.
    """
    if not isinstance(image, Tensor):
        raise CallError("convert_image_dtype: the input should be a tensor", expected="a tensor",
                        got=type(image).__name__)
    before, after = image.dtype.is_floating_point, dtype.is_floating_point
    if image.dtype is dtype or before and after:
        return image.to(dtype)

    def top(d: dt.dtype) -> float:
        return float(np.iinfo(d.numpy).max)

    if after:
        return image.to(dtype) / top(image.dtype)
    if before:                  # 1.0 is the maximum; each integer has an equal part of 0 to 1
        return (image * (top(dtype) + 1.0 - 1e-3)).to(dtype)
    return (image.to(dt.float64) * ((top(dtype) + 1) / (top(image.dtype) + 1))).floor().to(dtype)


def to_pil_image(pic, mode: str | None = None):
    """Convert a tensor (C, H, W) or (H, W), or an ndarray (H, W[, C]), to a Pillow image.

    Args:
        pic: image. Float tensors are 0 to 1; float arrays with one channel keep their values (mode "F").
        mode: Pillow's mode; default: by the number of channels: L, LA, RGB, RGBA.

    Raises:
        CallError (a TypeError), ShapeError, ArgumentError (ValueErrors): anything else.
    """
    image = pillow()[0]
    if isinstance(pic, Tensor):
        if pic.ndim not in (2, 3):
            raise ShapeError("to_pil_image: pic should be 2/3 dimensional", expected="(C, H, W) or (H, W)",
                             got=str(tuple(pic.shape)), fix="one image of the batch: x[0]")
        a = (pic.detach() if pic.requires_grad else pic).numpy()
        if a.dtype.kind == "f" and mode != "F":
            a = (a * 255).astype(np.uint8)
        a = a.transpose(1, 2, 0) if a.ndim == 3 else a
    elif isinstance(pic, np.ndarray):
        a = pic
    else:
        raise CallError(f"to_pil_image: pic should be Tensor or ndarray. Got {type(pic).__name__}",
                        expected="a tensor (C, H, W) or an ndarray (H, W, C)", got=type(pic).__name__)
    if a.ndim == 3 and a.shape[2] == 1:
        a = a[:, :, 0]
    channels = a.shape[2] if a.ndim == 3 else 1
    if a.ndim not in (2, 3) or not 1 <= channels <= 4:
        raise ShapeError("to_pil_image: pic should not have > 4 channels", expected="1 to 4 channels",
                         got=str(a.shape))
    if channels > 1 and a.dtype != np.uint8 or a.dtype not in (np.uint8, np.int32, np.float32):
        raise CallError("to_pil_image: images have no such element type",
                        expected="uint8 (one channel: int32, float32)",
                        got=str(a.dtype), fix="(x * 255).astype(np.uint8)")
    allowed = {1: {"u": ("L",), "i": ("I",), "f": ("F",)}[a.dtype.kind], 2: ("LA",),
               3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}[channels]
    mode = allowed[0] if mode is None else mode
    if mode not in allowed:
        raise ArgumentError(f"to_pil_image: mode {mode!r} does not fit {channels} channels of {a.dtype}",
                            expected=" or ".join(allowed), got=repr(mode), fix="leave mode out")
    a = np.ascontiguousarray(a)
    return image.frombytes(mode, (a.shape[1], a.shape[0]), a.tobytes())


# ---- sizes
def get_dimensions(img) -> list[int]:
    """Return [channels, height, width].

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
    """
    return list(_kind("get_dimensions", img).dimensions(img))


def get_image_size(img) -> list[int]:
    """Return [width, height], Pillow's order.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
    """
    return get_dimensions(img)[:0:-1]


def resize(img, size: int | Sequence[int], interpolation: InterpolationMode = InterpolationMode.BILINEAR,
           max_size: int | None = None, antialias: bool = True):
    """Resize an image.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
        size: (height, width), or the size of the shorter side, with the other in proportion.
        interpolation: an InterpolationMode.
        max_size: largest size of the longer side, if size is a number; default: no limit.
        antialias: use all pixels when the image shrinks, not only the nearest ones (Pillow always does).

    Raises:
        ArgumentError (a ValueError): a size that does not fit.
    """
    kind, mode = _kind("resize", img), check_mode("resize", interpolation)
    height, width = pair("resize", "size", size)
    one = not isinstance(size, Sequence) or len(size) == 1
    if max_size is not None and (not one or max_size <= height):
        raise ArgumentError("resize: max_size does not fit", got=f"size={size}, max_size={max_size}",
                            expected="size one number, smaller than max_size",
                            fix=f"max_size={height + 1} or more, or none")
    _, h, w = kind.dimensions(img)
    new = new_size(h, w, height if one else (height, width), max_size)
    return img if new == (h, w) else kind.resize(img, *new, mode, antialias)


def crop(img, top: int, left: int, height: int, width: int):
    """Crop a region; pixels outside the image are black.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
        top: first row.
        left: first column.
        height: height of the region.
        width: width of the region.
    """
    return _kind("crop", img).crop(img, top, left, height, width)


def center_crop(img, output_size: int | Sequence[int]):
    """Crop the central region; smaller images are padded with black.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
        output_size: (height, width), or an int.
    """
    kind = _kind("center_crop", img)
    height, width = pair("center_crop", "output_size", output_size)
    _, h, w = kind.dimensions(img)
    if width > w or height > h:
        x, y = max(width - w, 0), max(height - h, 0)
        img = kind.pad(img, x // 2, y // 2, (x + 1) // 2, (y + 1) // 2, 0, "constant")
        _, h, w = kind.dimensions(img)
    return kind.crop(img, round((h - height) / 2), round((w - width) / 2), height, width)


def resized_crop(img, top: int, left: int, height: int, width: int, size: Sequence[int],
                 interpolation: InterpolationMode = InterpolationMode.BILINEAR, antialias: bool = True):
    """Crop a region and resize it.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
        top, left, height, width: the region, see crop.
        size: (height, width) of the result.
        interpolation: an InterpolationMode.
        antialias: use all pixels when the region shrinks.
    """
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def pad(img, padding: int | Sequence[int], fill=0, padding_mode: str = "constant"):
    """Pad the sides of an image.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
        padding: one number, (left and right, top and bottom), or (left, top, right, bottom).
        fill: constant, a number or one per channel.
        padding_mode: "constant", "edge" (repeat the last pixel), "reflect" (mirror without it), or
            "symmetric" (mirror with it).

    Raises:
        ArgumentError (a ValueError): padding or mode does not fit.
    """
    kind = _kind("pad", img)
    sides = tuple(padding) if isinstance(padding, Sequence) else (padding,)
    if len(sides) not in (1, 2, 4) or any(not isinstance(n, (int, np.integer)) or n < 0 for n in sides):
        raise ArgumentError("pad: padding does not fit", expected="1, 2 or 4 integers, none below zero",
                            got=repr(padding), fix="padding=(left, top, right, bottom)")
    if padding_mode not in PAD_MODES:
        raise ArgumentError("pad: unknown padding_mode", expected=", ".join(PAD_MODES),
                            got=repr(padding_mode))
    sides *= 4 // len(sides)
    left, top, right, bottom = sides
    channels, h, w = kind.dimensions(img)
    if isinstance(fill, (tuple, list)) and len(fill) not in (1, channels):
        raise ArgumentError("pad: fill does not fit", expected=f"a number, or {channels} of them",
                            got=repr(fill))
    fill = fill[0] if isinstance(fill, (tuple, list)) and len(fill) == 1 else fill
    if padding_mode == "reflect" and (max(left, right) >= w or max(top, bottom) >= h):
        raise ArgumentError("pad: there are too few pixels to reflect",
                            expected=f"less than {w} across and {h} down",
                            got=repr(padding), fix='padding_mode="symmetric" or "edge"')
    return kind.pad(img, left, top, right, bottom, fill, padding_mode)


# ---- flips and colors
def hflip(img):
    """Flip an image horizontally.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
    """
    return _kind("hflip", img).hflip(img)


def vflip(img):
    """Flip an image vertically.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
    """
    return _kind("vflip", img).vflip(img)


def rgb_to_grayscale(img, num_output_channels: int = 1):
    """Convert an image to gray.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W), with 1 or 3 channels.
        num_output_channels: 1, or 3 equal channels.

    Raises:
        ArgumentError, ShapeError (ValueErrors): another number of channels.
    """
    kind = _kind("rgb_to_grayscale", img)
    if num_output_channels not in (1, 3):
        raise ArgumentError("rgb_to_grayscale: num_output_channels should be either 1 or 3",
                            got=repr(num_output_channels))
    channels = kind.dimensions(img)[0]
    if kind is not pil and channels not in (1, 3):
        raise ShapeError("rgb_to_grayscale: the image has no red, green and blue", expected="1 or 3 channels",
                         got=f"{channels}: {tuple(img.shape)}")
    return kind.grayscale(img, num_output_channels)


to_grayscale = rgb_to_grayscale


def _adjust(what: str, img, factor: float):
    kind = _kind(what, img)
    if not factor >= 0:
        raise ArgumentError(f"adjust_{what}: the factor is below zero",
                            expected="0 or more; 1 changes nothing", got=repr(factor))
    return getattr(kind, what)(img, float(factor))


def adjust_brightness(img, brightness_factor: float):
    """Change the brightness.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
        brightness_factor: 0 is black, 1 the image itself, 2 twice as bright.
    """
    return _adjust("brightness", img, brightness_factor)


def adjust_contrast(img, contrast_factor: float):
    """Change the contrast.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
        contrast_factor: 0 is uniform gray, 1 the image itself.
    """
    return _adjust("contrast", img, contrast_factor)


def adjust_saturation(img, saturation_factor: float):
    """Change the saturation.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
        saturation_factor: 0 is black and white, 1 the image itself.
    """
    return _adjust("saturation", img, saturation_factor)


def adjust_hue(img, hue_factor: float):
    """Shift the hue; gray images have none.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
        hue_factor: part of the color circle, -0.5 to 0.5; 0 is the image itself.
    """
    kind = _kind("hue", img)
    if not -0.5 <= hue_factor <= 0.5:
        raise ArgumentError("adjust_hue: hue_factor is not in [-0.5, 0.5]",
                            expected="-0.5 to 0.5; 0 changes nothing", got=repr(hue_factor))
    return kind.hue(img, float(hue_factor))


def gaussian_blur(img, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None):
    """Blur an image with a Gaussian kernel.

    Args:
        img: Pillow image, ndarray (H, W[, C]), or tensor (..., C, H, W).
        kernel_size: odd number of pixels, or a pair of them for (x, y).
        sigma: standard deviation, or a pair for (x, y); default: 0.15 * kernel_size + 0.35.
    """
    _kind("gaussian_blur", img)
    kernel = _make_pair(kernel_size)
    sigmas = tuple(0.15 * k + 0.35 for k in kernel) if sigma is None else _make_pair(sigma)
    if not all(isinstance(k, int) and k > 0 and k % 2 for k in kernel) or not all(s > 0 for s in sigmas):
        raise ArgumentError("gaussian_blur: kernel_size or sigma does not fit",
                            expected="odd numbers; sigma above 0",
                            got=f"{kernel_size!r}, {sigma!r}", fix="gaussian_blur(img, 3, 0.5)")
    if isinstance(img, Tensor):
        return blur.blurred(img, kernel, sigmas)
    array_ = np.asarray(img)
    x = from_numpy(np.ascontiguousarray(array_.transpose(2, 0, 1) if array_.ndim == 3 else array_[None]))
    y = blur.blurred(x, kernel, sigmas).numpy()
    y = y.transpose(1, 2, 0) if array_.ndim == 3 else y[0]
    return to_pil_image(np.ascontiguousarray(y), img.mode) if is_pil(img) else y


def _make_pair(value) -> tuple:
    """Return a number, or a sequence of one or two numbers, as a pair."""
    if isinstance(value, (tuple, list)) and len(value) in (1, 2):
        return tuple(value) * (2 // len(value))
    return value, value


def normalize(tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False):
    """Return (x - mean) / std for each channel.

    Args:
        tensor: float tensor (..., C, H, W) or float array (H, W, C).
        mean: number per channel.
        std: number per channel.
        inplace: write into `tensor`.

    Raises:
        CallError (a TypeError), ArgumentError (a ValueError): arguments that do not fit.
    """
    if is_pil(tensor) or not isinstance(tensor, (Tensor, np.ndarray)):
        raise CallError(f"normalize: img should be Tensor Image. Got {type(tensor).__name__}",
                        expected="a float tensor (..., C, H, W)", got=type(tensor).__name__,
                        fix="put ToTensor() before Normalize(...)")
    floating = tensor.dtype.is_floating_point if isinstance(tensor, Tensor) else tensor.dtype.kind == "f"
    if not floating:
        raise CallError("normalize: Input tensor should be a float tensor", expected="floats",
                        got=str(tensor.dtype), fix="put ToTensor() before Normalize(...), or x.float() / 255")
    channels = _kind("normalize", tensor).dimensions(tensor)[0]
    numbers = []
    for name, values in (("mean", mean), ("std", std)):
        a = np.asarray(values, np.float64).reshape(-1)
        if a.size not in (1, channels) or name == "std" and not a.all():
            raise ArgumentError(f"normalize: {name} does not fit", got=repr(values),
                                expected=f"1 or {channels} numbers, one for each channel"
                                         + ", none of them 0" * (name == "std"))
        numbers.append(a)
    if isinstance(tensor, np.ndarray):
        m, s = (a.astype(tensor.dtype) for a in numbers)
        if not inplace:
            return (tensor - m) / s
        tensor -= m
        tensor /= s
        return tensor
    shift, scale = (from_numpy(a.astype(tensor.dtype.numpy).reshape(-1, 1, 1)) for a in numbers)
    return tensor.sub_(shift).div_(scale) if inplace else (tensor - shift) / scale
