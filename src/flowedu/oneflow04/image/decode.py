"""Pictures from the bytes of a PNG, JPEG or BMP file, by Pillow; and where to cut a random piece out of one."""
from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from flowedu.errors import ArgumentError, DataError, UnsupportedError
from flowedu.errors.extras import install
from flowedu.oneflow04.image import _pixels
from flowedu.oneflow04.image.threads import each

CHANNELS = {"BGR": 3, "RGB": 3, "GRAY": 1}
LARGE = 8192          # bytes of a file; with smaller ones the time goes into Python, where threads wait for one another


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
                               fix=install("image")) from None
    return Image, ImageOps


def _plain_jpeg(data: bytes) -> tuple[str, tuple[int, int]] | None:
    """(mode, size) of a small JPEG file with a picture and nothing else, no Exif, say. None for all others.

    Pillow decodes such a picture right away if told these; to find them out it takes as long again, in Python.
    """
    found, at = None, 2
    if not data.startswith(b"\xff\xd8"):
        return None
    while at + 9 < len(data) and data[at] == 0xFF and data[at + 1] in _PLAIN:
        kind, length, bits, height, width, channels = _SEGMENT.unpack_from(data, at + 1)
        if kind == 0xDA:                                        # the picture itself
            return found
        if kind == 0xC0:                                        # what it looks like
            fits = bits == 8 and channels in (1, 3) and 0 < height * width <= _SMALL
            found = ("L" if channels == 1 else "RGB", (width, height)) if fits else None
        at += 2 + length
    return None


_PLAIN = {0xC0, 0xC4, 0xDA, 0xDB, 0xDD, 0xE0, 0xFE}             # frame, tables, scan, tables, restarts, JFIF, a comment
_SEGMENT = struct.Struct(">BHBHHB")
_SMALL = 1 << 18                                                # pixels


def opened(raw: bytes, upright: bool = True):
    """The picture as a Pillow image: decoded if it is a plain small JPEG file, else of at most 8 bits, and `upright` as its
    Exif says. Whatever is wrong with the bytes is one of Pillow's many exceptions."""
    image_module, ops = pillow()
    plain = _plain_jpeg(raw)
    if plain is not None:
        try:
            return image_module.frombytes(*plain, raw, "jpeg", plain[0], "")
        except (OSError, ValueError):                           # damaged: what follows says how
            pass
    with image_module.open(io.BytesIO(raw)) as image:
        if upright and "exif" in image.info:
            image = ops.exif_transpose(image)
        image.load()
        if image.mode.startswith("I"):
            image = image_module.fromarray((np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
        return image


def decode_image(data: bytes | np.ndarray, color_space: str = "BGR", where: str = "decode_image") -> np.ndarray:
    """The picture in a file's bytes: uint8 (height, width, channels). Transparency is dropped, 16 bits become 8, and a
    photo that says how the camera was held is turned upright, as OpenCV does.

    where: starts the message of the DataError for bytes that are no picture, or only a part of one.
    """
    channels = check_color_space(where, color_space)
    pillow()
    raw = data.tobytes() if isinstance(data, np.ndarray) else bytes(data)
    try:
        image = opened(raw)
        mode = "L" if channels == 1 else "RGB"
        return _pixels_of(image if image.mode == mode else image.convert(mode), color_space.upper() == "BGR")
    except Exception as e:        # damaged bytes make Pillow's decoders raise OSError, SyntaxError, struct.error and more
        raise DataError(f"{where}: the bytes are not an image that can be read", expected="a whole PNG, JPEG or BMP file",
                        got=f"{len(raw)} bytes starting {raw[:8]!r} ({type(e).__name__}: {e})",
                        fix="check the file, and that all of its bytes were stored") from e


def _pixels_of(image, backwards: bool) -> np.ndarray:
    """The pixels of a Pillow image of mode L or RGB; backwards: as BGR."""
    channels = 3 if image.mode == "RGB" else 1
    out = np.empty((image.height, image.width, channels), np.uint8)
    if hasattr(image, "__arrow_c_array__"):       # Pillow 11.2 shows its memory
        try:
            _pixels.unpack(image.__arrow_c_array__()[1], out, backwards)
            return out
        except ValueError:                                          # a large picture, which lies in several pieces
            pass
    raw = image.tobytes("raw", "BGR" if backwards else image.mode)
    out[...] = np.frombuffer(raw, np.uint8).reshape(out.shape)
    return out


def decode_images(files: Sequence, color_space: str, where: Callable[[int], str]) -> Iterable[np.ndarray]:
    """`decode_image` of each; `where(i)` starts the message of an error in file i."""
    large = sum(map(len, files)) >= LARGE * len(files)
    return each(lambda i: decode_image(files[i], color_space, where(i)), range(len(files)), large)


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
            h, w = min(height, width / least), min(width, height * most)
            shrink = math.sqrt(min(1.0, area[1] * height * width / (h * w)))
            h, w = max(1, round(h * shrink)), max(1, round(w * shrink))
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
