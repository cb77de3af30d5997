"""Pictures in files as tensors (C, H, W) of uint8, and back: `io.read_image("cat.jpg")`. By Pillow.

Names and arguments are torchvision's.
"""
from __future__ import annotations

import os
from enum import Enum

import numpy as np

from flowedu.errors import ArgumentError, DataError, NotATensorError, ShapeError
from flowedu.oneflow04.image.decode import opened
from flowedu.tensor import Tensor, from_numpy
from flowedu.vision.transforms.functional import pillow
from flowedu.vision.utils import save_whole

__all__ = ["ImageReadMode", "decode_image", "read_image", "write_jpeg", "write_png"]


class ImageReadMode(Enum):
    """Which channels a picture gets: those it has, grey, grey and alpha, red green blue, or these and alpha."""

    UNCHANGED, GRAY, GRAY_ALPHA, RGB, RGB_ALPHA = range(5)


_MODES = dict(zip((*ImageReadMode,)[1:], ("L", "LA", "RGB", "RGBA")))


def read_image(path: str | os.PathLike, mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
               apply_exif_orientation: bool = False) -> Tensor:
    """The picture in a file, (C, H, W) of uint8. mode: an ImageReadMode or its name; apply_exif_orientation: turned as the
    camera says. Errors: FileNotFoundError; DataError, of a file that holds no picture."""
    with open(path, "rb") as f:
        return _decoded(f.read(), mode, apply_exif_orientation, f"read_image: {os.fspath(path)}")


def decode_image(input: Tensor, mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
                 apply_exif_orientation: bool = False) -> Tensor:
    """The same of the bytes of a file: a vector of uint8."""
    if not isinstance(input, Tensor):
        raise NotATensorError("decode_image", input, "input")
    return _decoded(input.cpu().numpy().astype(np.uint8).tobytes(), mode, apply_exif_orientation, "decode_image")


def _decoded(data: bytes, mode, turned: bool, what: str) -> Tensor:
    if isinstance(mode, str):
        if mode.upper() not in ImageReadMode.__members__:
            raise ArgumentError(f"{what}: no such mode", expected=", ".join(ImageReadMode.__members__), got=repr(mode))
        mode = ImageReadMode[mode.upper()]
    pillow()
    try:
        image = opened(data, turned)
    except Exception as e:                               # damaged bytes make Pillow raise many kinds
        raise DataError(f"{what} is not an image", expected="PNG, JPEG, GIF, WebP or another format of Pillow",
                        got=f"{len(data)} bytes", fix="look whether the file is whole") from e
    want = _MODES.get(mode, image.mode if image.mode in _MODES.values() else "RGBA" if image.mode in ("P", "PA") and
                      "transparency" in image.info else "L" if image.mode == "1" else "RGB")
    a = np.asarray(image if image.mode == want else image.convert(want))
    return from_numpy(np.ascontiguousarray(a.reshape(*a.shape[:2], -1).transpose(2, 0, 1)))


def write_png(input: Tensor, filename: str | os.PathLike, compression_level: int = 6) -> None:
    """The picture (1 or 3, H, W) of uint8 as a file. compression_level: 0 to 9."""
    image = _image("write_png", input)
    save_whole(filename, image, "PNG", compress_level=compression_level)


def write_jpeg(input: Tensor, filename: str | os.PathLike, quality: int = 75) -> None:
    """The picture (1 or 3, H, W) of uint8 as a file. quality: 1 to 100."""
    image = _image("write_jpeg", input)
    save_whole(filename, image, "JPEG", quality=quality)


def _image(what: str, input: Tensor):
    if not isinstance(input, Tensor):
        raise NotATensorError(what, input, "input")
    a = input.cpu().numpy()
    if a.ndim != 3 or a.shape[0] not in (1, 3) or a.dtype != np.uint8:
        raise ShapeError(f"{what}: this is not an image", expected="(1, H, W) or (3, H, W) of uint8",
                         got=f"{tuple(a.shape)} of {a.dtype}", fix="(x * 255).to(flow.uint8)")
    return pillow()[0].fromarray(np.ascontiguousarray(a[0] if len(a) == 1 else a.transpose(1, 2, 0)))
