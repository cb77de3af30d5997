"""Atomic file writes: a file is written completely or not at all.

    with replacing(path) as f:                   # .NAME.0123456789ab.part, in the same folder
        f.write(data)
    # now it is `path`; after an exception the old file is unchanged

Each call has its own temporary name, so that several threads and processes may write the same path. The file
of the last one remains. An OSError has the path that the caller passed, and an errno.
"""
from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


def temporary_name(path: str | os.PathLike) -> Path:
    """Return a new hidden name in the folder of `path`.

    Long names are cut, since a name has at most 255 bytes.
    """
    path = Path(path)
    return path.with_name(f".{path.name[:50]}.{os.urandom(6).hex()}.part")


@contextlib.contextmanager
def naming(path: str | os.PathLike, temporary: str | os.PathLike) -> Iterator[None]:
    """Convert an OSError about `temporary`, its contents, or an open file to an OSError about `path`."""
    try:
        yield
    except OSError as error:
        name = error.filename
        if (isinstance(name, (str, bytes, os.PathLike))
            and not os.fsdecode(name).startswith(os.fspath(temporary))):
            raise
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), os.fspath(path)) from None


@contextlib.contextmanager
def replacing(path: str | os.PathLike, sync: bool = False, keep_empty: bool = True) -> Iterator[IO[bytes]]:
    """Open a new file that replaces `path` at the end of the with block, unless the block raises.

    Args:
        path: the file, or a link to it; parent folders are created.
        sync: wait until the content is on the disk before the file replaces `path`.
        keep_empty: False changes nothing if the new file is empty.

    Raises:
        OSError: the file or a parent folder cannot be written. Its filename is `path` or that folder.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(target)
    try:
        with naming(path, temporary):
            with open(temporary, "xb") as f:
                yield f
                size = f.tell()
                f.flush()
                if sync:
                    os.fsync(f.fileno())
            if size or keep_empty:
                with contextlib.suppress(FileNotFoundError):
                    os.chmod(temporary, target.stat().st_mode & 0o777)
                os.replace(temporary, target)
    finally:
        with contextlib.suppress(OSError):
            os.remove(temporary)


def write_text(path: str | os.PathLike, text: str) -> Path:
    """Write a text file in UTF-8, completely or not at all."""
    with replacing(path) as f:
        f.write(text.encode())
    return Path(path)
