"""Transforms of Pillow images; array.py and tensor.py contain the same functions for the other two kinds."""
from __future__ import annotations

import numpy as np

from flowedu.errors.once import inert
from flowedu.utils.pictures import pillow
from flowedu.vision.transforms import array
from flowedu.vision.transforms.resample import InterpolationMode


def dimensions(img) -> tuple[int, int, int]:
    """Return (channels, height, width)."""
    return len(img.getbands()), img.height, img.width


def hflip(img):
    return img.transpose(pillow()[0].Transpose.FLIP_LEFT_RIGHT)


def vflip(img):
    return img.transpose(pillow()[0].Transpose.FLIP_TOP_BOTTOM)


def crop(img, top: int, left: int, height: int, width: int):
    return img.crop((left, top, left + width, top + height))


def resize(img, height: int, width: int, mode: InterpolationMode, antialias: bool):
    inert("transforms.Resize(antialias) of Pillow images", antialias, True, "Pillow always widens its filter")
    return img.resize((width, height), getattr(pillow()[0].Resampling, mode.name))


def pad(img, left: int, top: int, right: int, bottom: int, fill, mode: str):
    image = pillow()[0]
    if mode == "constant":
        fill = (tuple(fill) * len(img.getbands()) if isinstance(fill, (tuple, list)) and len(fill) == 1
                else fill)
        fill = ((fill,) * len(img.getbands()) if isinstance(fill, (int, float)) and len(img.getbands()) > 1
                else fill)
        out = image.new(img.mode, (img.width + left + right, img.height + top + bottom),
                        tuple(fill) if isinstance(fill, (tuple, list)) else fill)
        if img.mode == "P":
            out.putpalette(img.getpalette())
        out.paste(img, (left, top))
        return out
    out = image.fromarray(array.pad(np.asarray(img), left, top, right, bottom, 0, mode))
    if img.mode == "P":
        out.putpalette(img.getpalette())
    return out


def grayscale(img, channels: int):
    grey = img.convert("L")
    return grey if channels == 1 else pillow()[0].merge("RGB", (grey, grey, grey))


def brightness(img, factor: float):
    from PIL import ImageEnhance
    return ImageEnhance.Brightness(img).enhance(factor)


def contrast(img, factor: float):
    from PIL import ImageEnhance
    return ImageEnhance.Contrast(img).enhance(factor)


def saturation(img, factor: float):
    from PIL import ImageEnhance
    return ImageEnhance.Color(img).enhance(factor)


def hue(img, factor: float):
    if img.mode in ("L", "1", "I", "F"):
        return img
    h, s, v = img.convert("HSV").split()
    # Integer steps, rounded towards 0, as in torchvision.
    turn = int(factor * 255) % 256
    h = pillow()[0].fromarray((np.asarray(h) + np.uint8(turn)).astype(np.uint8))
    return pillow()[0].merge("HSV", (h, s, v)).convert(img.mode)
