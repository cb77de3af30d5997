"""Image decoding with Pillow: `pillow` imports Pillow, `opened` decodes the bytes of an image file."""
from __future__ import annotations

import io
import struct

import numpy as np

from flowedu.errors import UnsupportedError
from flowedu.errors.extras import install


def pillow():
    """Return the modules Image and ImageOps of Pillow. Raise UnsupportedError if Pillow is not installed."""
    try:
        from PIL import Image, ImageOps
    except ImportError as e:
        raise UnsupportedError("decoding images needs Pillow", expected="the package pillow", got=str(e),
                               fix=install("image")) from None
    return Image, ImageOps


def _plain_jpeg(data: bytes) -> tuple[str, tuple[int, int]] | None:
    """Return (mode, size) of a small JPEG file without metadata such as Exif, or None for other files.

    Given both, Pillow decodes the data directly; opening the file as an Image takes twice as long.
    """
    header, at = None, 2
    if not data.startswith(b"\xff\xd8"):
        return None
    while at + 9 < len(data) and data[at] == 0xFF and data[at + 1] in _PLAIN:
        segment = _SEGMENT.unpack_from(data, at + 1)
        kind, length, bits = segment[:3]
        height, width, channels = segment[3:]
        if kind == 0xDA:                                        # start of scan
            return header
        if kind == 0xC0:                                        # start of frame
            fits = bits == 8 and channels in (1, 3) and 0 < height * width <= _SMALL
            mode = "L" if channels == 1 else "RGB"
            header = (mode, (width, height)) if fits else None
        at += 2 + length
    return None


_PLAIN = {0xC0, 0xC4, 0xDA, 0xDB, 0xDD, 0xE0, 0xFE}             # SOF0, DHT, SOS, DQT, DRI, APP0 (JFIF), COM
_SEGMENT = struct.Struct(">BHBHHB")
_SMALL = 1 << 18                                                # pixels


def opened(raw: bytes, upright: bool = True):
    """Decode the bytes of an image file to a Pillow image with at most 8 bits per channel.

    With `upright`, the image is rotated according to its Exif data. Damaged bytes raise exceptions of Pillow.
    """
    image_module, ops = pillow()
    plain = _plain_jpeg(raw)
    if plain is not None:
        try:
            return image_module.frombytes(*plain, raw, "jpeg", plain[0], "")
        except (OSError, ValueError):                       # damaged; the code below reports it
            pass
    with image_module.open(io.BytesIO(raw)) as image:
        if upright and "exif" in image.info:
            image = ops.exif_transpose(image)
        image.load()
        if image.mode.startswith("I"):
            image = image_module.fromarray(
                (np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8))
        return image
