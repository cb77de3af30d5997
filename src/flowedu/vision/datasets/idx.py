"""IDX files, the format of MNIST: a header of big-endian numbers, then the elements.

    00 00 | element type | rank | rank sizes of 4 bytes | elements
"""
from __future__ import annotations

import zlib
from math import prod
from pathlib import Path

import numpy as np

from flowedu.errors import DataError

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_LARGEST = 1 << 33


def read_idx(path: Path) -> np.ndarray:
    """Return the array in an IDX file, compressed with gzip if the name ends in .gz. Raises DataError."""
    import gzip

    remove = f"remove {path} and fetch it again with download=True"
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as f:
            magic = f.read(4)
            if len(magic) != 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES:
                raise DataError(f"{path} is not an IDX file",
                                expected="the bytes 00 00, an element type, a rank",
                                got=magic.hex(" ") or "an empty file", fix=remove)
            dtype, sizes = np.dtype(_TYPES[magic[2]]), f.read(4 * magic[3])
            shape = tuple(np.frombuffer(sizes, ">u4").tolist()) if len(sizes) == 4 * magic[3] else ()
            total = prod(shape) * dtype.itemsize
            if len(sizes) != 4 * magic[3] or total > _LARGEST:
                raise DataError(f"{path} has no sensible sizes", expected=f"{magic[3]} sizes", got=str(shape),
                                fix=remove)
            data = f.read(total + 1)        # one more byte, to check that nothing follows
    except (OSError, EOFError, zlib.error) as e:
        raise DataError(f"{path} cannot be read", got=f"{type(e).__name__}: {e}", fix=remove) from e
    if len(data) != total:
        raise DataError(f"{path} does not have the elements that its header promises",
                        expected=f"{total:,} bytes for {shape}", got=f"{len(data):,} bytes"
                        if len(data) < total else "more", fix=remove)
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=True).reshape(shape)
