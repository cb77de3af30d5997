"""Checkpoints in one file, a zip archive of the directory that flow.save writes.

This format is used for streams (io.BytesIO, open(path, "wb")) and by torch.save.

    pack(lambda folder: flow.save(state, folder), stream)
    pack_file(lambda stream: flow.save(state, stream), path)
    with unpacked(stream or path) as folder: ...             # a temporary directory

The archive is not compressed, so that a small file cannot expand to a very large directory. Equal states give
equal bytes.
"""
from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeGuard

from flowedu.errors.files import replacing
from flowedu.saving.folder import CheckpointFileError

MARK = "state.json"


def is_stream(f: Any) -> TypeGuard[IO[bytes]]:
    """Return True for an open file, False for a path."""
    return (not isinstance(f, (str, bytes, os.PathLike)) and callable(getattr(f, "write", None)
                                                                      or getattr(f, "read", None)))


def pack(write: Callable[[Path], None], f: IO[bytes]) -> None:
    """Call write(directory) with a new directory and append its contents to the stream f as one zip archive.

    If the directory stays empty (on a rank that does not write), nothing is written. A text stream raises
    CheckpointFileError.
    """
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryFile() as archive:
        folder = Path(place, "state")
        write(folder)
        if not folder.exists():
            return
        with zipfile.ZipFile(archive, "w") as z:
            for file in sorted(p for p in folder.rglob("*") if p.is_file()):
                entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
                with file.open("rb") as source, z.open(entry, "w", force_zip64=True) as target:
                    shutil.copyfileobj(source, target)
        archive.seek(0)
        try:
            shutil.copyfileobj(archive, f)
        except TypeError:
            raise CheckpointFileError("flow.save: the file takes text", expected="a file of bytes",
                                      got=repr(f)[:80], fix='open(path, "wb"), or io.BytesIO()') from None


def pack_file(write: Callable[[IO[bytes]], object], path: str | os.PathLike) -> None:
    """Call write(stream) and store what it writes in the file at `path`.

    An old file stays until the new one is complete. Parent directories are created.

    If `write` writes nothing, the old file stays unchanged.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise CheckpointFileError(f"{path} is a directory", expected="the path of a file", got="a directory",
                                  fix="another path, or remove it")
    with replacing(path, keep_empty=False) as f:
        write(f)


def read_rest(f: IO[bytes]) -> io.BytesIO:
    """Return the remaining bytes of the stream. Raise CheckpointFileError for text or an empty stream."""
    data = f.read()
    if not data or not isinstance(data, bytes):
        raise CheckpointFileError(f"flow.load: {name_of(f)} has nothing to read",
                                  expected="the bytes of flow.save",
                                  got="text" if data else "its end",
                                  fix='f.seek(0) before, of a file opened with "rb"')
    return io.BytesIO(data)


def is_packed(f: Any) -> bool:
    """Return True if `f`, the path of a file or a stream, contains an archive that `pack` wrote."""
    try:
        with zipfile.ZipFile(f) as z:
            return MARK in z.namelist()
    except Exception:                                # damaged bytes make zipfile raise many classes
        return False


@contextlib.contextmanager
def unpacked(f: Any) -> Iterator[Path]:
    """Yield a temporary directory with the contents of the file.

    Raise CheckpointFileError if the file is damaged.
    """
    with tempfile.TemporaryDirectory() as place:
        try:
            with zipfile.ZipFile(f) as z:
                entries = z.infolist()
                for e in entries:
                    if (e.compress_type != zipfile.ZIP_STORED or e.header_offset and e is entries[0]
                        or e.is_dir()):
                        raise ValueError(f"entry {e.filename!r} is not as flow.save writes it")
                z.extractall(place)
        except Exception as e:                       # damaged bytes make zipfile raise many classes
            raise CheckpointFileError(f"flow.load: {name_of(f)} cannot be read",
                                      expected="one whole file of flow.save",
                                      got=f"{type(e).__name__}: {e}"[:200],
                                      fix="it is damaged: take another copy; several states go into one "
                                          "dict") from None
        yield Path(place)


def name_of(f: Any) -> str:
    """Return the name of a path or stream for messages."""
    return f"the {type(f).__name__}" if is_stream(f) else os.fspath(f)
