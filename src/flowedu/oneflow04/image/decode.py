"""Decoding of PNG, JPEG, and BMP images with Pillow, and the choice of random crops."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from flowedu.errors import ArgumentError, DataError
from flowedu.oneflow04.image import _pixels
from flowedu.oneflow04.image.threads import each
from flowedu.utils.pictures import opened, pillow

CHANNELS = {"BGR": 3, "RGB": 3, "GRAY": 1}
LARGE = 8192          # bytes per file; decoding smaller files is dominated by Python, which holds the GIL


def check_color_space(what: str, color_space: str) -> int:
    """Return the number of channels. Raise ArgumentError for an unknown color space."""
    if not isinstance(color_space, str) or color_space.upper() not in CHANNELS:
        raise ArgumentError(f"{what}: unknown color_space", expected='"BGR" (the default), "RGB" or "GRAY"',
                            got=repr(color_space), fix='color_space="RGB", say')
    return CHANNELS[color_space.upper()]


def decode_image(data: bytes | np.ndarray, color_space: str = "BGR",
                 where: str = "decode_image") -> np.ndarray:
    """Return the image in a file's bytes as uint8 (height, width, channels).

    Transparency is dropped, 16 bits become 8, and a photo is rotated by its Exif data, as in OpenCV. Bytes
    that are not a complete image raise DataError; `where` is the start of its message.
    """
    channels = check_color_space(where, color_space)
    pillow()
    raw = data.tobytes() if isinstance(data, np.ndarray) else bytes(data)
    try:
        image = opened(raw)
        mode = "L" if channels == 1 else "RGB"
        return _pixels_of(image if image.mode == mode else image.convert(mode), color_space.upper() == "BGR")
    except Exception as e:        # Pillow's decoders raise OSError, SyntaxError, struct.error, and others
        raise DataError(f"{where}: the bytes are not an image that can be read",
                        expected="a whole PNG, JPEG or BMP file",
                        got=f"{len(raw)} bytes starting {raw[:8]!r} ({type(e).__name__}: {e})",
                        fix="check the file, and that all of its bytes were stored") from e


def _pixels_of(image, backwards: bool) -> np.ndarray:
    """Return the pixels of a Pillow image of mode L or RGB; `backwards` returns BGR."""
    channels = 3 if image.mode == "RGB" else 1
    out = np.empty((image.height, image.width, channels), np.uint8)
    if hasattr(image, "__arrow_c_array__"):       # Pillow 11.2 or later exports its memory
        try:
            _pixels.unpack(image.__arrow_c_array__()[1], out, backwards)
            return out
        except ValueError:                                          # a large image, stored in several blocks
            pass
    raw = image.tobytes("raw", "BGR" if backwards else image.mode)
    out[...] = np.frombuffer(raw, np.uint8).reshape(out.shape)
    return out


def decode_images(files: Sequence, color_space: str, where: Callable[[int], str]) -> Iterable[np.ndarray]:
    """Call `decode_image` for each file; `where(i)` is the start of the message of an error in file i."""
    large = sum(map(len, files)) >= LARGE * len(files)
    return each(lambda i: decode_image(files[i], color_space, where(i)), range(len(files)), large)


def crop_window(rng: np.random.Generator, height: int, width: int, area: Sequence[float],
                ratio: Sequence[float], attempts: int) -> tuple[slice, slice]:
    """Return a random crop (rows, columns) with an area and a ratio of width to height in the given ranges.

    Ratios are drawn uniformly on a logarithmic scale. After `attempts` draws that do not fit, and for images
    that are too long or too high for the ranges, the crop is the largest one with a ratio in the range, as in
    OneFlow 0.4 and NVIDIA DALI.
    """
    least, most = ratio
    widest, highest = max(1, int(height * most)), max(1, int(width / least))
    if height * widest < area[0] * height * width:
        h, w = height, widest
    elif width * highest < area[0] * height * width:
        h, w = highest, width
    else:
        for _ in range(attempts):
            wanted = rng.uniform(area[0], area[1]) * height * width
            r = math.exp(rng.uniform(math.log(least), math.log(most)))
            w, h = max(1, round(math.sqrt(wanted * r))), max(1, round(math.sqrt(wanted / r)))
            if w <= width and h <= height and least <= w / h <= most:
                break
        else:
            tall, wide = min(height, width / least), min(width, height * most)
            shrink = math.sqrt(min(1.0, area[1] * height * width / (tall * wide)))
            h, w = max(1, round(tall * shrink)), max(1, round(wide * shrink))
    h, w = min(h, height), min(w, width)
    y, x = int(rng.integers(0, height - h + 1)), int(rng.integers(0, width - w + 1))
    return slice(y, y + h), slice(x, x + w)


def check_crop(what: str, area, ratio, attempts: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (area, ratio) as pairs of floats. Raise ArgumentError for invalid arguments."""
    pairs = []
    for name, pair in (("random_area", area), ("random_aspect_ratio", ratio)):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not 0 < pair[0] <= pair[1]:
            raise ArgumentError(f"{what}: {name} is not a range",
                                expected="[least, most] with 0 < least <= most",
                                got=repr(pair), fix=f"{name}=[0.08, 1.0], say")
        pairs.append((float(pair[0]), float(pair[1])))
    if type(attempts) is not int or attempts < 1:
        raise ArgumentError(f"{what}: num_attempts must be an int above zero", expected="1 or more",
                            got=repr(attempts), fix="leave it out for 10")
    return pairs[0], pairs[1]
