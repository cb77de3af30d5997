"""Pictures from the bytes of a PNG, JPEG or BMP file, by Pillow; and where to cut a random piece out of one."""
from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np

from flowedu.errors import ArgumentError, DataError, UnsupportedError

CHANNELS = {"BGR": 3, "RGB": 3, "GRAY": 1}


def check_color_space(what: str, color_space: str) -> int:
    """How many channels it has. Raises ArgumentError."""
    if not isinstance(color_space, str) or color_space.upper() not in CHANNELS:
        raise ArgumentError(f"{what}: unknown color_space", expected='"BGR" (the default), "RGB" or "GRAY"',
                            got=repr(color_space), fix='color_space="RGB", say')
    return CHANNELS[color_space.upper()]


def pillow():
    """The modules Image and ImageOps of Pillow. Raises UnsupportedError without it."""
    try:
        from PIL import Image, ImageOps
    except ImportError as e:
        raise UnsupportedError("decoding images needs Pillow", expected="the package pillow", got=str(e),
                               fix="pip install flowedu[image]") from None
    return Image, ImageOps


def decode_image(data: bytes | np.ndarray, color_space: str = "BGR", where: str = "decode_image") -> np.ndarray:
    """The picture in a file's bytes: uint8 (height, width, channels). Transparency is dropped, 16 bits become 8, and a
    photo that says how the camera was held is turned upright, as OpenCV does.

    where: starts the message of the DataError for bytes that are no picture, or only a part of one.
    """
    check_color_space(where, color_space)
    image_module, ops = pillow()
    raw = data.tobytes() if isinstance(data, np.ndarray) else bytes(data)
    try:
        with image_module.open(io.BytesIO(raw)) as image:
            if "exif" in image.info:
                image = ops.exif_transpose(image)
            if image.mode.startswith("I"):
                image = image_module.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
            mode = "L" if color_space.upper() == "GRAY" else "RGB"
            image = image if image.mode == mode else image.convert(mode)
            pixels = image.tobytes("raw", "BGR" if color_space.upper() == "BGR" else mode)
    except Exception as e:        # damaged bytes make Pillow's decoders raise OSError, SyntaxError, struct.error and more
        raise DataError(f"{where}: the bytes are no picture that can be read", expected="a whole PNG, JPEG or BMP file",
                        got=f"{len(raw)} bytes starting {raw[:8]!r} ({type(e).__name__}: {e})",
                        fix="check the file, and that all of its bytes were stored") from e
    return np.frombuffer(pixels, np.uint8).reshape(image.height, image.width, CHANNELS[color_space.upper()]).copy()


def crop_window(rng: np.random.Generator, height: int, width: int, area: Sequence[float], ratio: Sequence[float],
                attempts: int) -> tuple[slice, slice]:
    """A random piece (rows, columns) of a picture: of an area and a width-to-height ratio within the given limits.

    Ratios are drawn evenly on a logarithmic scale. After `attempts` draws that do not fit inside, and for pictures too
    long or too high for the limits, the largest piece in the middle of the ratios. (OneFlow 0.4, as NVIDIA's DALI.)
    """
    least, most = ratio
    widest, highest = max(1, int(height * most)), max(1, int(width / least))
    if height * widest < area[0] * height * width:
        h, w = height, widest
    elif width * highest < area[0] * height * width:
        h, w = highest, width
    else:
        for _ in range(attempts):
            wanted = rng.uniform(*area) * height * width
            r = math.exp(rng.uniform(math.log(least), math.log(most)))
            w, h = max(1, round(math.sqrt(wanted * r))), max(1, round(math.sqrt(wanted / r)))
            if w <= width and h <= height and least <= w / h <= most:
                break
        else:
            h, w = height, width
            if width / height > most:
                w = widest
            elif width / height < least:
                h = highest
            shrink = math.sqrt(min(1.0, area[1] * height * width / (h * w)))
            h, w = max(1, int(h * shrink)), max(1, int(w * shrink))
    h, w = min(h, height), min(w, width)
    y, x = int(rng.integers(0, height - h + 1)), int(rng.integers(0, width - w + 1))
    return slice(y, y + h), slice(x, x + w)


def check_crop(what: str, area, ratio, attempts: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """(area, ratio) as pairs of floats. Raises ArgumentError."""
    pairs = []
    for name, pair in (("random_area", area), ("random_aspect_ratio", ratio)):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not 0 < pair[0] <= pair[1]:
            raise ArgumentError(f"{what}: {name} is not a range", expected="[least, most] with 0 < least <= most",
                                got=repr(pair), fix=f"{name}=[0.08, 1.0], say")
        pairs.append((float(pair[0]), float(pair[1])))
    if type(attempts) is not int or attempts < 1:
        raise ArgumentError(f"{what}: num_attempts must be an int above zero", expected="1 or more", got=repr(attempts),
                            fix="leave it out for 10")
    return pairs[0], pairs[1]
