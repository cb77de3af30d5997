"""Image files as uint8 tensors (C, H, W), and back: `io.read_image("cat.jpg")`. It uses Pillow.

Names and arguments are torchvision's.
"""
from __future__ import annotations

import os
from enum import Enum

import numpy as np

from flowedu.errors import ArgumentError, DataError, NotATensorError, ShapeError
from flowedu.tensor import Tensor, from_numpy
from flowedu.utils.pictures import opened
from flowedu.vision.transforms.functional import pillow
from flowedu.vision.utils import save_whole

__all__ = ["ImageReadMode", "decode_image", "read_image", "write_jpeg", "write_png"]


class ImageReadMode(Enum):
    """Channels of a decoded image: unchanged, gray, gray with alpha, RGB, or RGB with alpha.

    Args:
        value: 0 to 4, the index in this list.
    """

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


_MODES = dict(zip((*ImageReadMode,)[1:], ("L", "LA", "RGB", "RGBA")))


def read_image(path: str | os.PathLike, mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
               apply_exif_orientation: bool = False) -> Tensor:
    """Return the image in a file as a uint8 tensor (C, H, W).

    Args:
        path: file.
        mode: an ImageReadMode or its name.
        apply_exif_orientation: rotate the image as its metadata states.

    Raises:
        FileNotFoundError: the file is missing.
        DataError: the file contains no image.
    """
    with open(path, "rb") as f:
        return _decode(f.read(), mode, apply_exif_orientation, f"read_image: {os.fspath(path)}")


def decode_image(input: Tensor, mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
                 apply_exif_orientation: bool = False) -> Tensor:
    """Return the image in the bytes of a file as a uint8 tensor (C, H, W).

    Args:
        input: uint8 vector of the bytes.
        mode: an ImageReadMode or its name.
        apply_exif_orientation: rotate the image as its metadata states.
    """
    if not isinstance(input, Tensor):
        raise NotATensorError("decode_image", input, "input")
    data = input.cpu().numpy().astype(np.uint8).tobytes()
    return _decode(data, mode, apply_exif_orientation, "decode_image")


def _target_mode(image) -> str:
    """Return the mode in which an image is stored unchanged."""
    if image.mode in _MODES.values():
        return image.mode
    if image.mode in ("P", "PA") and "transparency" in image.info:
        return "RGBA"
    return "L" if image.mode == "1" else "RGB"


def _decode(data: bytes, mode, upright: bool, caller: str) -> Tensor:
    if isinstance(mode, str):
        if mode.upper() not in ImageReadMode.__members__:
            raise ArgumentError(f"{caller}: no such mode", expected=", ".join(ImageReadMode.__members__),
                                got=repr(mode))
        mode = ImageReadMode[mode.upper()]
    pillow()
    try:
        image = opened(data, upright)
    # Pillow raises many types of errors for damaged bytes
    except Exception as e:
        raise DataError(f"{caller} is not an image",
                        expected="PNG, JPEG, GIF, WebP or another format of Pillow",
                        got=f"{len(data)} bytes", fix="look whether the file is whole") from e
    want = _MODES.get(mode) or _target_mode(image)
    a = np.asarray(image if image.mode == want else image.convert(want))
    return from_numpy(np.ascontiguousarray(a.reshape(*a.shape[:2], -1).transpose(2, 0, 1)))


def write_png(input: Tensor, filename: str | os.PathLike, compression_level: int = 6) -> None:
    """Write an image to a PNG file.

    Args:
        input: uint8 tensor (1 or 3, H, W).
        filename: file.
        compression_level: 0 to 9.
    """
    image = _image("write_png", input)
    save_whole(filename, image, "PNG", compress_level=compression_level)


def write_jpeg(input: Tensor, filename: str | os.PathLike, quality: int = 75) -> None:
    """Write an image to a JPEG file.

    Args:
        input: uint8 tensor (1 or 3, H, W).
        filename: file.
        quality: 1 to 100.
    """
    image = _image("write_jpeg", input)
    save_whole(filename, image, "JPEG", quality=quality)


def _image(caller: str, input: Tensor):
    if not isinstance(input, Tensor):
        raise NotATensorError(caller, input, "input")
    a = input.cpu().numpy()
    if a.ndim != 3 or a.shape[0] not in (1, 3) or a.dtype != np.uint8:
        raise ShapeError(f"{caller}: this is not an image", expected="(1, H, W) or (3, H, W) of uint8",
                         got=f"{tuple(a.shape)} of {a.dtype}", fix="(x * 255).to(flow.uint8)")
    return pillow()[0].fromarray(np.ascontiguousarray(a[0] if len(a) == 1 else a.transpose(1, 2, 0)))
